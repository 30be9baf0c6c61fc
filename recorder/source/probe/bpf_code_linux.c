#include "source/probe/bpf_code_linux.h"

#include "base/array.h"
#include "base/text.h"
#include "source/probe/bpf_emit_private.h"
#include "source/probe/trace_format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY (-8)                             /* on the stack: the pid; a time behind it */
#define TIME (-16)
#define COMM_BYTES 16
#define COMM (-16 - COMM_BYTES)
#define COMMS_MAX 32u

/* ---- tables ---------------------------------------------------------------------------------- */

static void delete(struct bpf_code *c, int table)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)table);
	move(c, BPF_REG_2, BPF_REG_10);
	alu(c, BPF_ADD, BPF_REG_2, KEY);
	call(c, BPF_FUNC_map_delete_elem);
}

/* Set a table's value for the pid on the stack to that behind it. */
static void update(struct bpf_code *c, int table)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)table);
	move(c, BPF_REG_2, BPF_REG_10);
	alu(c, BPF_ADD, BPF_REG_2, KEY);
	move(c, BPF_REG_3, BPF_REG_10);
	alu(c, BPF_ADD, BPF_REG_3, TIME);
	set(c, BPF_REG_4, BPF_ANY);
	call(c, BPF_FUNC_map_update_elem);
}

/* ---- processes ------------------------------------------------------------------------------- */

/*
 * r7 = the pid; r8 = for which wants it is left out; r9 = whether nobody has looked at it. A
 * process that has executed a program since somebody looked is another one.
 */
static void read_process(struct bpf_code *c, const struct bpf_tables *tables)
{
	struct label done = {.n = 0}, known = {.n = 0};

	set(c, BPF_REG_8, 0);
	set(c, BPF_REG_9, 1);
	call(c, BPF_FUNC_get_current_pid_tgid);
	move(c, BPF_REG_7, BPF_REG_0);
	alu(c, BPF_RSH, BPF_REG_7, 32);
	emit(c, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_7, KEY, 0);
	look_up(c, tables->known, KEY);
	jump(c, &done, BPF_JEQ | BPF_K, BPF_REG_0, 0, 0);
	load(c, BPF_REG_9, BPF_REG_0, 0);
	load(c, BPF_REG_8, BPF_REG_0, 8);
	look_up(c, tables->execs, KEY);
	jump(c, &known, BPF_JEQ | BPF_K, BPF_REG_0, 0, 0);
	load(c, BPF_REG_1, BPF_REG_0, 0);
	jump(c, &known, BPF_JLE | BPF_X, BPF_REG_1, BPF_REG_9, 0);
	set(c, BPF_REG_8, 0);
	set(c, BPF_REG_9, 1);
	jump(c, &done, BPF_JA, 0, 0, 0);
	here(c, &known);
	set(c, BPF_REG_9, 0);
	here(c, &done);
}

static void check_process(struct bpf_code *c, const struct bpf_want *want, struct label *next)
{
	struct label passes = {.n = 0};
	unsigned i;

	if (want->left_out_bit)
		jump(c, next, BPF_JSET | BPF_K, BPF_REG_8, 0, (int32_t)want->left_out_bit);
	for (i = 0; i < want->npids; i++)
		jump(c, &passes, BPF_JEQ | BPF_K, BPF_REG_7, 0, (int32_t)want->pids[i]);
	if (want->npids)
		jump(c, next, BPF_JA, 0, 0, 0);
	here(c, &passes);
}

/* Jump if the thread's short name is one that a want means. */
static void check_comm(struct bpf_code *c, const struct bpf_want *wants, unsigned nwants,
		       struct label *passes)
{
	unsigned i, k, nnames = 0;
	uint64_t halves[2];

	move(c, BPF_REG_1, BPF_REG_10);
	alu(c, BPF_ADD, BPF_REG_1, COMM);
	set(c, BPF_REG_2, COMM_BYTES);
	call(c, BPF_FUNC_get_current_comm);
	load(c, BPF_REG_1, BPF_REG_10, COMM);
	load(c, BPF_REG_2, BPF_REG_10, COMM + 8);
	for (i = 0; i < nwants; i++)
		for (k = 0; k < wants[i].names->n && nnames < COMMS_MAX; k++) {
			struct label other = {.n = 0};
			char name[COMM_BYTES] = "";

			if (wants[i].names->items[k].pid)
				continue;
			nnames++;
			snprintf(name, sizeof(name), "%.15s", wants[i].names->items[k].name);
			memcpy(halves, name, sizeof(halves));
			set_wide(c, BPF_REG_3, 0, halves[0]);
			jump(c, &other, BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_3, 0);
			set_wide(c, BPF_REG_3, 0, halves[1]);
			jump(c, passes, BPF_JEQ | BPF_X, BPF_REG_2, BPF_REG_3, 0);
			here(c, &other);
		}
}

/* A process that nobody knows passes so many times; the others are counted. */
static void limit_news(struct bpf_code *c, const struct bpf_want *wants, unsigned nwants,
		       const struct bpf_tables *tables)
{
	struct label known = {.n = 0}, counted = {.n = 0};

	jump(c, &known, BPF_JEQ | BPF_K, BPF_REG_9, 0, 0);
	check_comm(c, wants, nwants, &known);
	look_up(c, tables->news, KEY);
	jump(c, &counted, BPF_JNE | BPF_K, BPF_REG_0, 0, 0);
	emit(c, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, TIME, 1);
	update(c, tables->news);
	leave(c, 1);
	here(c, &counted);
	set(c, BPF_REG_1, 1);
	emit(c, BPF_STX | BPF_XADD | BPF_DW, BPF_REG_0, BPF_REG_1, 0, 0);
	load(c, BPF_REG_1, BPF_REG_0, 0);
	jump(c, &known, BPF_JLE | BPF_K, BPF_REG_1, 0, BPF_NEWS_MAX);
	leave(c, 0);
	here(c, &known);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Where struct pt_regs has perf's register (asm/perf_regs.h), x86-64; -1 = nowhere. */
static int16_t place_of(unsigned reg)
{
	static const int16_t low[] = {80, 40, 88, 96, 104, 112, 32, 152, 128};
	static const int16_t high[] = {72, 64, 56, 48, 24, 16, 8, 0};

	if (reg < COUNT_OF(low))
		return low[reg];
	return reg >= 16 && reg < 16 + COUNT_OF(high) ? high[reg - 16] : -1;
}

/* The argument that a field of this probe is; false = none that stands in a register. */
static bool find_argument(const struct uprobe *probe, unsigned place, const char *field,
			  struct stapsdt_argument *out)
{
	const struct uprobe_place *at = &probe->places[place];
	unsigned number;

	*out = (struct stapsdt_argument){.place = STAPSDT_REGISTER, .bytes = 8};
	if (!probe->is_usdt && probe->is_return) {
		out->is_signed = true;
		return text_same_fold(field, "Ret");         /* AX is 0 */
	}
	if (!probe->is_usdt)
		return uprobe_register(probe, field, &out->reg);
	if (strncmp(field, "Arg", 3) != 0 && strncmp(field, "arg", 3) != 0)
		return false;
	number = (unsigned)strtoul(field + 3, NULL, 10) - 1;
	if (number >= at->narguments)
		return false;
	*out = at->arguments[number];
	return out->place == STAPSDT_REGISTER;
}

/* A whole number that the field can have, as FieldFilter reads it. */
static bool read_number(const struct trace_condition *c, bool is_signed, uint64_t *out)
{
	char text[24] = "", *end;
	bool negative, hex;

	if (!c->value_len || c->value_len > 18)
		return false;
	memcpy(text, c->value, c->value_len);
	negative = *text == '-';
	hex = text[0] == '0' && (text[1] | 32) == 'x';
	if (!isdigit((unsigned char)text[negative]) || (negative && !is_signed))
		return false;
	*out = strtoull(text + negative, &end, hex ? 16 : 10);
	if (*end || (is_signed && *out >> 63))
		return false;
	if (negative)
		*out = 0 - *out;
	return true;
}

/* The jump that is taken when the condition does not hold; 0 = no such operator. */
static uint8_t jump_unless(const char *op, bool is_signed)
{
	static const struct {
		const char *op;
		uint8_t plain, with_sign;
	} jumps[] = {
		{"=", BPF_JNE, BPF_JNE}, {"!=", BPF_JEQ, BPF_JEQ}, {"<", BPF_JGE, BPF_JSGE},
		{">", BPF_JLE, BPF_JSLE}, {"<=", BPF_JGT, BPF_JSGT}, {">=", BPF_JLT, BPF_JSLT},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(jumps); i++)
		if (strcmp(op, jumps[i].op) == 0)
			return is_signed ? jumps[i].with_sign : jumps[i].plain;
	return 0;
}

/* returns  whether it can be judged here */
static bool check_condition(struct bpf_code *c, const struct uprobe *probe, unsigned place,
			    const char *text, size_t n, struct label *next)
{
	struct stapsdt_argument argument;
	struct trace_condition condition;
	unsigned unused;
	uint64_t value;
	uint8_t op;

	if (!trace_condition_read(text, n, &condition) ||
	    !find_argument(probe, place, condition.field, &argument) ||
	    place_of(argument.reg) < 0 ||
	    !read_number(&condition, argument.is_signed, &value) ||
	    !(op = jump_unless(condition.op, argument.is_signed)))
		return false;
	unused = 64 - 8u * argument.bytes;
	load(c, BPF_REG_1, BPF_REG_6, place_of(argument.reg));
	if (unused) {
		alu(c, BPF_LSH, BPF_REG_1, (int32_t)unused);
		alu(c, argument.is_signed ? BPF_ARSH : BPF_RSH, BPF_REG_1, (int32_t)unused);
	}
	set_wide(c, BPF_REG_2, 0, value);
	jump(c, next, op | BPF_X, BPF_REG_1, BPF_REG_2, 0);
	return true;
}

/* returns  whether any can be judged */
static bool check_conditions(struct bpf_code *c, const struct uprobe *probe, unsigned place,
			     const char *text, struct label *next)
{
	bool any = false;
	size_t n;

	for (; text && *text; text += n + (text[n] == ';')) {
		n = strcspn(text, ";");
		any |= check_condition(c, probe, place, text, n, next);
	}
	return any;
}

/* ---- programs -------------------------------------------------------------------------------- */

bool bpf_code_filter(const struct uprobe *probe, unsigned place, const struct bpf_want *wants,
		     unsigned nwants, const struct bpf_tables *tables, struct bpf_code *out)
{
	struct label next = {.n = 0}, passes = {.n = 0};
	bool by_process = false, by_names = true, filters = true;
	unsigned i;

	out->n = 0;
	out->too_long = false;
	for (i = 0; i < nwants; i++) {
		by_process |= wants[i].left_out_bit || wants[i].npids;
		by_names &= wants[i].left_out_bit != 0;
	}
	move(out, BPF_REG_6, BPF_REG_1);
	if (by_process)
		read_process(out, tables);
	for (i = 0; i < nwants; i++) {
		bool processes = wants[i].left_out_bit || wants[i].npids;

		check_process(out, &wants[i], &next);
		filters &= check_conditions(out, probe, place, wants[i].conditions, &next) ||
			   processes;
		jump(out, &passes, BPF_JA, 0, 0, 0);
		here(out, &next);
	}
	leave(out, 0);
	here(out, &passes);
	if (by_names)
		limit_news(out, wants, nwants, tables);
	leave(out, 1);
	return filters && nwants && !out->too_long;
}

void bpf_code_exec(const struct bpf_tables *tables, struct bpf_code *out)
{
	out->n = 0;
	out->too_long = false;
	call(out, BPF_FUNC_get_current_pid_tgid);
	alu(out, BPF_RSH, BPF_REG_0, 32);
	emit(out, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, KEY, 0);
	call(out, BPF_FUNC_ktime_get_ns);
	emit(out, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, TIME, 0);
	update(out, tables->execs);
	delete(out, tables->known);
	delete(out, tables->news);
	leave(out, 0);
}

void bpf_code_exit(const struct bpf_tables *tables, struct bpf_code *out)
{
	struct label thread = {.n = 0};

	out->n = 0;
	out->too_long = false;
	call(out, BPF_FUNC_get_current_pid_tgid);
	move(out, BPF_REG_1, BPF_REG_0);
	alu(out, BPF_RSH, BPF_REG_1, 32);
	alu(out, BPF_LSH, BPF_REG_0, 32);
	alu(out, BPF_RSH, BPF_REG_0, 32);
	jump(out, &thread, BPF_JNE | BPF_X, BPF_REG_0, BPF_REG_1, 0);
	emit(out, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_1, KEY, 0);
	delete(out, tables->known);
	delete(out, tables->news);
	here(out, &thread);
	leave(out, 0);
}
