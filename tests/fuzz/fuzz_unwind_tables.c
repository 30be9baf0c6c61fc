/*
 * Any bytes as .eh_frame_hdr and .eh_frame: every row of every function, and its expressions; and
 * the same bytes as code, and as an expression.
 *
 *   0  u16  size of .eh_frame_hdr, which comes next; 0 = none; the rest is .eh_frame. Bit 15: i386;
 *           bit 14: it is .debug_frame
 */
#include "unwind/prologue.h"
#include "unwind/rule.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_VADDR = 0x10000, FRAMES_VADDR = 0x20000, ROWS_MAX = 200, FDES_MAX = 64,
       CODE_MAX = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *copy(const uint8_t *bytes, size_t n)
{
	uint8_t *to = malloc(n ? n : 1);

	if (to && n)
		memcpy(to, bytes, n);
	return to;
}

static bool read_memory(void *ctx, uint64_t address, unsigned n, uint64_t *out)
{
	(void)ctx;
	(void)n;
	*out = address * 0x9e3779b97f4a7c15u;
	return address & 8;
}

static void evaluate_bytes(const uint8_t *bytes, size_t n, bool is_32_bit, uint32_t *budget)
{
	uint64_t regs[EH_REGISTERS] = {1, 2, 3}, start = 5, value;
	struct eh_machine machine = {.regs = regs, .known = 0xffff, .read = read_memory,
				     .budget = budget, .is_32_bit = is_32_bit};

	eh_evaluate(bytes, n, &start, &machine, &value);
}

static void evaluate(const struct eh_frame *tables, const struct eh_rule *rule, uint32_t *budget)
{
	const uint8_t *bytes;
	size_t n;

	if (rule->how != EH_EXPRESSION && rule->how != EH_AT_EXPRESSION)
		return;
	if (!eh_frame_expression(tables, rule->value, &bytes, &n))
		__builtin_trap();
	evaluate_bytes(bytes, n, eh_frame_is_32_bit(tables), budget);
}

static void walk_function(const struct eh_frame *tables, uint64_t start, uint64_t end)
{
	uint32_t budget = EH_BUDGET, rows;
	struct eh_row row;
	unsigned i;

	for (rows = 0; start < end && rows < ROWS_MAX; rows++) {
		enum eh_result result = eh_frame_row(tables, start, &budget, &row);

		/* In an unsorted table, equal starts may find another function, or none. */
		if (result != EH_OK)
			return;
		if (start < row.start || start >= row.end)
			__builtin_trap();
		if (rule_compile(tables, &row, start).kind == RULE_EMPTY)
			__builtin_trap();
		evaluate(tables, &row.cfa, &budget);
		for (i = 0; i < EH_REGISTERS; i++)
			evaluate(tables, &row.regs[i], &budget);
		start = row.end;
	}
}

/* These two: from a buffer of its own, at whose end a read too far is seen. */
static void evaluate_alone(const uint8_t *data, size_t size, bool is_32_bit)
{
	uint8_t *bytes = copy(data, size);
	uint32_t budget = EH_BUDGET;

	if (bytes)
		evaluate_bytes(bytes, size, is_32_bit, &budget);
	free(bytes);
}

static void follow_prologue(const uint8_t *data, size_t size)
{
	uint8_t *code = copy(data, size), before[PROLOGUE_CALL_BYTES] = {0};
	uint32_t depth;

	if (code && prologue_depth(code, size, &depth) && depth % 8)
		__builtin_trap();
	if (code && size)
		memcpy(before, code, size < sizeof(before) ? size : sizeof(before));
	prologue_call_before(before, size);
	free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct eh_sections in = {.header_vaddr = HEADER_VADDR, .frames_vaddr = FRAMES_VADDR};
	struct eh_frame *tables = NULL;
	uint64_t start, end;
	bool is_debug_frame;
	uint32_t i;

	if (size < 2)
		return 0;
	in.header_bytes = (data[0] | (size_t)data[1] << 8) & 0x3fff;
	in.is_32_bit = data[1] >> 7;
	is_debug_frame = data[1] >> 6 & 1;
	data += 2;
	size -= 2;
	evaluate_alone(data, size, in.is_32_bit);
	if (in.header_bytes > size)
		in.header_bytes = size;
	in.header = in.header_bytes ? copy(data, in.header_bytes) : NULL;
	in.frames_bytes = size - in.header_bytes;
	in.frames = copy(data + in.header_bytes, in.frames_bytes);
	if (in.frames && is_debug_frame)
		eh_frame_of_debug_frame(in.frames, in.frames_bytes);
	if (eh_frame_new(&in, &tables, NULL))
		return 0;
	for (i = 0; i < size && i < CODE_MAX; i++) {
		follow_prologue(data + i, size - i);
		eh_frame_add_code(tables, i, data + i, size - i);
		eh_frame_find_code(tables, i);
	}
	for (i = 0; i < eh_frame_count(tables) && i < FDES_MAX; i++) {
		if (eh_frame_range(tables, i, &start, &end))
			walk_function(tables, start, end);
	}
	eh_frame_free(tables);
	return 0;
}
