/*
 * One step out of a JVM's code, with registers, stack and code as the fuzzer wants them: it ends,
 * rises, and reads nothing outside of what there is.
 *
 *   0    u8   kind of the code that is left, modulo 13; what is left of it chooses the version
 *   1    u8   PC in it
 *   2    u8   flags, see below
 *   3    u8   frame's size in words, modulo 16
 *   4    u8   where the frame is complete
 *   5    16 registers, a byte each; see value()
 *   21   48 bytes of code, the 24th is that at PC
 *   69   up to 96 words of the stack, a byte each; what follows is the JVM's memory, repeated
 */
#include "managed/hotspot/hotspot.h"
#include "managed/hotspot/step.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	FROM_CALLER = 1, HANGS = 2, OLD = 4, UNKNOWN_REGISTERS = 8, STUB_MAKES_FRAME = 16,
	FROM_NATIVE = 32, AGAIN = 64, THROWN = 128,
	HEAD = 5, REGISTERS = 16, CODE = 48, CODE_AT_PC = 24, STACK = 96,
	HEAP = 0x10000, BLOB_BYTES = 0x1000, CODE_AT = 0x100, CODE_BYTES = 0x100, CALLER_WORDS = 4,
	RETURN_AT = 0x40, METHOD = 0x5000, BYTECODES = 0x6000, NBYTECODES = 0x40, SP = 0x70000,
};
enum { LEFT, COMPILED, INTERPRETED, CALL_STUB, WRAPPER, BLOBS };

struct world {
	uint64_t stack[STACK];
	const uint8_t *memory;
	size_t nmemory;
	bool hangs;
};

static bool word(void *ctx, uint64_t address, uint64_t *out)
{
	const struct world *w = ctx;

	if (address < SP || address % WORD || (address - SP) / WORD >= STACK)
		return false;
	*out = w->stack[(address - SP) / WORD];
	return true;
}

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct world *w = ctx;
	size_t at = w->nmemory ? (size_t)(address % w->nmemory) : 0;

	n = n < w->nmemory - at ? n : w->nmemory - at;
	memcpy(to, w->memory + at, n);
	return n;
}

static void read_pieces(void *ctx, struct managed_piece *pieces, size_t n)
{
	for (; n; n--, pieces++)
		pieces->got = read_it(ctx, pieces->address, pieces->to, pieces->n);
}

static bool run(void *ctx, struct managed_task *task)
{
	struct world *w = ctx;
	struct managed_memory memory = {.read = read_it, .read_pieces = read_pieces, .ctx = w};

	if (w->hangs)
		task->free(task);
	else
		task->run(task, &memory);
	return !w->hangs;
}

static uint64_t in(unsigned blob, unsigned at)
{
	return HEAP + (uint64_t)blob * BLOB_BYTES + CODE_AT + at;
}

/* What may stand in a register or on a stack. */
static uint64_t value(uint8_t b)
{
	unsigned n = b >> 4;

	switch (b & 15) {
	case 1: return in(COMPILED, RETURN_AT);
	case 2: return in(INTERPRETED, 16 * n);
	case 3: return in(CALL_STUB, RETURN_AT);
	case 4: return in(WRAPPER, RETURN_AT);
	case 5: return SP + WORD * n;
	case 6: return SP + WORD * (16 + n);
	case 7: return METHOD;
	case 8: return BYTECODES + n;
	case 9: return 0x7f0000001000;       /* libjvm */
	case 10: return in(LEFT, 16 * n);
	case 11: return UINT64_MAX;
	default: return n;
	}
}

static bool add_blob(struct hotspot_cache *c, unsigned i, enum hotspot_kind kind, bool is_old)
{
	struct hotspot_blob *b = calloc(1, sizeof(*b));

	if (!b)
		return false;
	*b = (struct hotspot_blob){
		.start = HEAP + i * BLOB_BYTES, .identity.size = BLOB_BYTES, .kind = kind,
		.code = malloc(CODE_BYTES), .ncode = CODE_BYTES, .frame_words = CALLER_WORDS,
		.code_begin = in(i, 0), .code_end = in(i, CODE_BYTES), .checked = !is_old,
		.pcs = i == COMPILED ? calloc(1, sizeof(*b->pcs)) : NULL};
	c->blobs[c->nblobs++] = b;
	if (!b->code || (i == COMPILED && !b->pcs))
		return false;
	memset(b->code, 0xcc, CODE_BYTES);
	if (b->pcs)
		*b->pcs = (struct hotspot_pc){RETURN_AT, 0};
	b->npcs = b->pcs != NULL;
	return true;
}

static bool fill(struct hotspot_cache *c, const uint8_t *data)
{
	static const enum hotspot_kind kinds[BLOBS] = {
		[COMPILED] = BLOB_NMETHOD, [INTERPRETED] = BLOB_INTERPRETER,
		[CALL_STUB] = BLOB_STUBS, [WRAPPER] = BLOB_NATIVE};
	struct hotspot_blob *left;
	unsigned i, at;

	c->blobs = calloc(BLOBS, sizeof(*c->blobs));
	c->dead = calloc(BLOBS, sizeof(*c->dead));
	c->methods = calloc(1, sizeof(*c->methods));
	if (!c->blobs || !c->dead || !c->methods)
		return false;
	c->blobs_room = c->dead_room = BLOBS;
	for (i = 0; i < BLOBS; i++)
		if (!add_blob(c, i, i == LEFT ? data[0] % (BLOB_OTHER + 1) : kinds[i],
			      data[2] & OLD && i != WRAPPER))
			return false;
	c->blobs[WRAPPER]->code[RETURN_AT - 5] = 0xe8;       /* call */
	left = c->blobs[LEFT];
	left->frame_words = data[3] % 16;
	left->frame_complete = data[4];
	left->verified_entry = in(LEFT, 0x20);
	for (i = 0; i < CODE; i++) {
		at = data[1] + i - CODE_AT_PC;
		if (at < CODE_BYTES)
			left->code[at] = data[HEAD + REGISTERS + i];
	}
	if (data[2] & STUB_MAKES_FRAME)
		memcpy(left->code, "\x55\x48\x8b\xec", 4);
	c->methods[0] = (struct hotspot_known){
		.address = METHOD, .valid = true, .checked = !(data[2] & OLD),
		.bytecodes = BYTECODES, .nbytecodes = NBYTECODES};
	c->nmethods = c->methods_room = 1;
	return table_add(&c->by_address, hash_u64(METHOD), 0) == 0;
}

static void step(struct hotspot_cache *c, struct world *w, const uint8_t *data)
{
	const struct managed_host host = {.run = run, .ctx = w};
	struct unwind_frame f = {.known = (1u << EH_REGISTERS) - 1, .word = word, .stack = w,
				 .interrupted = !(data[2] & FROM_CALLER)};
	struct managed *m = (struct managed *)c;
	struct managed_thrown thrown;
	unsigned i;

	for (i = 0; i < REGISTERS; i++)
		f.regs[i] = value(data[HEAD + i]);
	f.regs[EH_RSP] = SP;
	f.regs[EH_RIP] = data[2] & FROM_NATIVE ? c->layout->call_stub_return : in(LEFT, data[1]);
	if (data[2] & UNKNOWN_REGISTERS)
		f.known = REG_BIT(EH_RIP) | REG_BIT(EH_RSP) | REG_BIT(EH_RBP);
	if (hotspot_reader.step(m, &host, &f) == UNWIND_ON && f.regs[EH_RSP] < SP)
		__builtin_trap();
	if (f.nfunctions > UNWIND_INLINED_MAX || !hotspot_reader.bytes(m))
		__builtin_trap();
	if (data[2] & AGAIN)
		hotspot_reader.begin(m, &host, UINT64_MAX);
	if (data[2] & THROWN)
		hotspot_reader.thrown(m, &host, METHOD, 1, &thrown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t versions[] = {8, 17, 21};
	struct hotspot_layout *layout = calloc(1, sizeof(*layout));
	struct managed_names *names = managed_names_new();
	struct hotspot_cache *c = NULL;
	struct world w = {0};
	size_t i, n = HEAD + REGISTERS + CODE;

	if (size >= n && layout && names) {
		*layout = (struct hotspot_layout){
			.refs = 1, .major = versions[data[0] / 13 % 3], .nheaps = 1,
			.heaps = {{.low = HEAP, .high_boundary = HEAP + 0x10000}},
			.call_stub_return = in(CALL_STUB, RETURN_AT)};
		c = hotspot_cache_new(layout, names);
		layout = NULL;
	}
	for (i = 0; i < STACK && n < size; i++)
		w.stack[i] = value(data[n++]);
	w.memory = data + n;
	w.nmemory = size > n ? size - n : 0;
	if (c && fill(c, data)) {
		w.hangs = data[2] & HANGS;
		step(c, &w, data);
	}
	hotspot_cache_free(c);
	managed_names_free(names);
	free(layout);
	return 0;
}
