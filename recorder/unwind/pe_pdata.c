/*
 *  RUNTIME_FUNCTION   0 u32 begin  4 u32 end  8 u32 UNWIND_INFO; bit 0: of another RUNTIME_FUNCTION
 *  UNWIND_INFO        0 version: 3, flags: 5   1 u8 bytes of the prologue   2 u8 number of codes
 *                     3 frame register: 4, its offset / 16: 4   4 codes of 2 bytes, an even number
 *                     with flag 4 a RUNTIME_FUNCTION that it continues
 *  code               0 u8 offset behind the instruction   1 operation: 4, info: 4
 */
#include "unwind/pe_pdata.h"

#include "base/bytes.h"
#include "base/sort.h"

enum {
	FUNCTION_BYTES = 12, INFO_BYTES = 4, CODES_MAX = 255,
	FLAG_CHAINED = 4,
	WHOLE_PROLOGUE = 256,                /* larger than any code's offset */
	EPILOGUE_STEPS = 20, INSTRUCTION_MAX = 8,

	OP_PUSH = 0, OP_ALLOC_LARGE = 1, OP_ALLOC_SMALL = 2, OP_SET_FRAME = 3, OP_SAVE = 4,
	OP_SAVE_FAR = 5, OP_EPILOGUE = 6, OP_SPARE = 7, OP_SAVE_XMM = 8, OP_SAVE_XMM_FAR = 9,
	OP_MACHINE_FRAME = 10,
};

struct function {
	uint32_t begin, end, info;
};

struct info {
	unsigned flags, ncodes, prologue_bytes;
	unsigned frame_register, frame_offset;       /* register 0 = none; bytes */
	uint8_t codes[2 * CODES_MAX];
	struct function chained;
};

/* ---- the image ------------------------------------------------------------------------------- */

/* The bytes from an RVA on, at least n; *left says how many. NULL = they are missing. */
static const uint8_t *image_at(const struct pe_tables *t, uint32_t rva, uint32_t n, uint32_t *left)
{
	uint32_t i, at;

	for (i = 0; i < t->nranges; i++) {
		at = rva - t->ranges[i].rva;
		if (at >= t->ranges[i].nbytes || t->ranges[i].nbytes - at < n)
			continue;
		if (left)
			*left = t->ranges[i].nbytes - at;
		return t->ranges[i].bytes + at;
	}
	return NULL;
}

static struct function get_function(const uint8_t *at)
{
	return (struct function){le32(at), le32(at + 4), le32(at + 8)};
}

/* Find the entry that holds an RVA. */
static bool find_function(const struct pe_tables *t, uint32_t rva, struct function *out)
{
	const uint8_t *table = image_at(t, t->pdata_rva, t->pdata_bytes, NULL);
	uint32_t n = table ? t->pdata_bytes / FUNCTION_BYTES : 0;

	n = sorted_upto(table, n, FUNCTION_BYTES, 4, rva);
	if (!n)
		return false;
	*out = get_function(table + (uint64_t)(n - 1) * FUNCTION_BYTES);
	return rva < out->end;
}

static bool read_info(const struct pe_tables *t, uint32_t rva, struct info *out)
{
	const uint8_t *head = image_at(t, rva, INFO_BYTES, NULL), *more;
	unsigned version, ncodes, i;

	if (!head)
		return false;
	version = head[0] & 7;
	out->flags = head[0] >> 3;
	out->prologue_bytes = head[1];
	out->ncodes = ncodes = head[2];
	out->frame_register = head[3] & 15;
	out->frame_offset = (head[3] >> 4) * 16u;
	if (version < 1 || version > 2)
		return false;
	more = image_at(t, rva + INFO_BYTES, 2 * ncodes, NULL);
	if (ncodes && !more)
		return false;
	for (i = 0; i < 2 * ncodes; i++)
		out->codes[i] = more[i];
	if (!(out->flags & FLAG_CHAINED))
		return true;
	more = image_at(t, rva + INFO_BYTES + 2 * (ncodes + (ncodes & 1)), FUNCTION_BYTES, NULL);
	if (more)
		out->chained = get_function(more);
	return more != NULL;
}

/* ---- undoing the prologue -------------------------------------------------------------------- */

/* The slots of a code, including the numbers after it; 0 = no such code. */
static unsigned slots_of(unsigned op, unsigned info)
{
	static const uint8_t slots[] = {
		[OP_PUSH] = 1, [OP_ALLOC_LARGE] = 2, [OP_ALLOC_SMALL] = 1, [OP_SET_FRAME] = 1,
		[OP_SAVE] = 2, [OP_SAVE_FAR] = 3, [OP_EPILOGUE] = 1, [OP_SPARE] = 3,
		[OP_SAVE_XMM] = 2, [OP_SAVE_XMM_FAR] = 3, [OP_MACHINE_FRAME] = 1};

	if (op >= sizeof(slots) || (op == OP_ALLOC_LARGE && info > 1))
		return 0;
	return slots[op] + (op == OP_ALLOC_LARGE && info ? 1u : 0u);
}

/*
 * The address from which saved registers count: the frame register once it is set, else RSP.
 *
 * reached   how far into the prologue execution has come; WHOLE_PROLOGUE = all of it
 */
static uint64_t frame_of(const struct info *info, unsigned reached, const struct pe_registers *regs)
{
	unsigned i, slots;
	bool set = info->frame_register && reached >= info->prologue_bytes;

	for (i = 0; info->frame_register && !set && i < info->ncodes; i += slots) {
		const uint8_t *code = info->codes + 2 * i;

		slots = slots_of(code[1] & 15, code[1] >> 4);
		if (!slots)
			break;
		set = (code[1] & 15) == OP_SET_FRAME && code[0] <= reached;
	}
	return set ? regs->r[info->frame_register] - info->frame_offset : regs->r[PE_RSP];
}

/* The caller's registers, as far as the prologue is undone. */
struct undoing {
	struct pe_registers regs;
	struct stack_view *stack;
	bool from_interrupt;                 /* regs.rip is known already, and was interrupted */
};

static enum pe_step pop_word(struct undoing *u, uint64_t *to)
{
	if (!view_read(u->stack, u->regs.r[PE_RSP], 8, to))
		return PE_STEP_UNREADABLE;
	u->regs.r[PE_RSP] += 8;
	return PE_STEP_ON;
}

/*
 * What the processor pushed at an interrupt: perhaps an error code, then RIP, CS, flags, RSP, SS.
 */
static enum pe_step pop_machine_frame(struct undoing *u, bool has_error)
{
	uint64_t at = u->regs.r[PE_RSP] + (has_error ? 8 : 0), rip, rsp;

	u->from_interrupt = true;
	if (!view_read(u->stack, at, 8, &rip) || !view_read(u->stack, at + 24, 8, &rsp))
		return PE_STEP_UNREADABLE;
	u->regs.rip = rip;
	u->regs.r[PE_RSP] = rsp;
	u->regs.interrupted = true;
	return PE_STEP_ON;
}

static enum pe_step undo_code(struct undoing *u, const uint8_t *code, unsigned slots,
			      uint64_t frame)
{
	unsigned op = code[1] & 15, info = code[1] >> 4;
	uint64_t number = slots == 3 ? le32(code + 2) : slots == 2 ? le16(code + 2) : 0;
	uint64_t *r = u->regs.r;

	switch (op) {
	case OP_PUSH:
		return pop_word(u, &r[info]);
	case OP_ALLOC_LARGE:
		r[PE_RSP] += info ? number : number * 8;
		return PE_STEP_ON;
	case OP_ALLOC_SMALL:
		r[PE_RSP] += info * 8u + 8;
		return PE_STEP_ON;
	case OP_SET_FRAME:
		r[PE_RSP] = frame;
		return PE_STEP_ON;
	case OP_SAVE:
		number *= 8;
		/* fall through */
	case OP_SAVE_FAR:
		return view_read(u->stack, frame + number, 8, &r[info]) ? PE_STEP_ON
									 : PE_STEP_UNREADABLE;
	case OP_MACHINE_FRAME:
		return pop_machine_frame(u, info == 1);
	default:
		return PE_STEP_ON;
	}
}

static enum pe_step undo_codes(struct undoing *u, const struct info *info, unsigned reached)
{
	uint64_t frame = frame_of(info, reached, &u->regs);
	enum pe_step step = PE_STEP_ON;
	unsigned i, slots;

	for (i = 0; i < info->ncodes && step == PE_STEP_ON; i += slots) {
		const uint8_t *code = info->codes + 2 * i;

		slots = slots_of(code[1] & 15, code[1] >> 4);
		if (!slots || slots > info->ncodes - i)
			return PE_STEP_BROKEN;
		if (code[0] <= reached)
			step = undo_code(u, code, slots, frame);
	}
	return step;
}

/* ---- epilogues ------------------------------------------------------------------------------- */

/* An instruction of an epilogue. */
struct instruction {
	enum { OTHER, POP, ADD_RSP, LEA_RSP, LEAVES } kind;
	unsigned length, reg;
	int32_t number;
};

static int32_t signed_number(const uint8_t *at, unsigned n)
{
	return n == 1 ? (int8_t)at[0] : (int32_t)le32(at);
}

/* A jump leaves when its target lies outside the function: it is a call in place of a return. */
static struct instruction decode_jump(const uint8_t *at, unsigned n, uint32_t rva,
				      const struct function *f)
{
	struct instruction in = {.kind = OTHER, .length = 1 + n};
	uint32_t target = rva + 1 + n + (uint32_t)signed_number(at + 1, n);

	if (target < f->begin || target >= f->end)
		in.kind = LEAVES;
	return in;
}

/*
 * Decode one of the forms that epilogues may have: pop; add rsp, n; lea rsp, [register + n]; ret;
 * jmp elsewhere.
 *
 * at   8 bytes or more
 */
static struct instruction decode_instruction(const uint8_t *at, uint32_t rva,
					     const struct function *f)
{
	struct instruction in = {.kind = OTHER};
	unsigned rex = (at[0] & 0xf0) == 0x40 ? at[0] & 15 : 0, skip = rex || at[0] == 0x40 ? 1 : 0;
	const uint8_t *op = at + skip;

	if ((op[0] & 0xf8) == 0x58)
		return (struct instruction){POP, skip + 1, (op[0] & 7) | (rex & 1) << 3, 0};
	if (rex == 8 && (op[0] == 0x83 || op[0] == 0x81) && op[1] == 0xc4)
		return (struct instruction){ADD_RSP, op[0] == 0x83 ? 4 : 7, PE_RSP,
					    signed_number(op + 2, op[0] == 0x83 ? 1 : 4)};
	/* mod 1 or 2, RSP, a base without SIB byte */
	if ((rex & 0xe) == 8 && op[0] == 0x8d && (op[1] & 0x38) == 0x20 && (op[1] & 7) != 4 &&
	    (op[1] >> 6 == 1 || op[1] >> 6 == 2))
		return (struct instruction){LEA_RSP, op[1] >> 6 == 1 ? 4 : 7,
					    (op[1] & 7) | (rex & 1) << 3,
					    signed_number(op + 2, op[1] >> 6 == 1 ? 1 : 4)};
	if (at[0] == 0xc3 || at[0] == 0xc2 || (at[0] == 0xf3 && at[1] == 0xc3))
		in.kind = LEAVES;
	else if (at[0] == 0xeb)
		return decode_jump(at, 1, rva, f);
	else if (at[0] == 0xe9)
		return decode_jump(at, 4, rva, f);
	else if (op[0] == 0xff && (op[1] == 0x25 || ((op[1] & 0x38) == 0x20 && (rex & 8))))
		in.kind = LEAVES;        /* through a pointer; in functions a switch has no REX.W */
	return in;
}

/*
 * Is execution in an epilogue? Then only its instructions follow until the function is left; the
 * stack pointer is set at most once and first. They are carried out on *u.
 */
static bool follow_epilogue(const struct pe_tables *t, const struct function *f, uint32_t rva,
			    struct undoing *u)
{
	uint32_t left, step;
	const uint8_t *at = image_at(t, rva, INSTRUCTION_MAX, &left);

	for (step = 0; at && step < EPILOGUE_STEPS && left >= INSTRUCTION_MAX; step++) {
		struct instruction in = decode_instruction(at, rva, f);

		switch (in.kind) {
		case POP:
			if (pop_word(u, &u->regs.r[in.reg]) != PE_STEP_ON)
				return false;
			break;
		case ADD_RSP:
		case LEA_RSP:
			if (step)
				return false;
			u->regs.r[PE_RSP] = u->regs.r[in.reg] + (uint64_t)(int64_t)in.number;
			break;
		case LEAVES:
			return true;
		case OTHER:
			return false;
		}
		at += in.length;
		rva += in.length;
		left -= in.length;
	}
	return false;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Step by the function's description and those that it continues. */
static enum pe_step undo_function(const struct pe_tables *t, struct function f, uint32_t rva,
				  struct undoing *u)
{
	bool may_be_partial = u->regs.interrupted, first = true;
	uint32_t into = rva - f.begin, chain;
	unsigned reached = may_be_partial && into < WHOLE_PROLOGUE ? into : WHOLE_PROLOGUE;
	struct undoing epilogue = *u;
	const uint8_t *other;
	enum pe_step step;
	struct info info;

	for (chain = 0; chain < PE_CHAIN_MAX; chain++) {
		if (f.info & 1) {
			other = image_at(t, f.info & ~1u, FUNCTION_BYTES, NULL);
			if (!other)
				return PE_STEP_BROKEN;
			f = get_function(other);
			continue;
		}
		if (!read_info(t, f.info, &info))
			return PE_STEP_BROKEN;
		if (reached >= info.prologue_bytes)
			reached = WHOLE_PROLOGUE;
		if (first && may_be_partial && reached == WHOLE_PROLOGUE &&
		    follow_epilogue(t, &f, rva, &epilogue)) {
			*u = epilogue;
			return PE_STEP_ON;
		}
		step = undo_codes(u, &info, reached);
		if (step != PE_STEP_ON || u->from_interrupt || !(info.flags & FLAG_CHAINED))
			return step;
		f = info.chained;
		first = false;
		reached = WHOLE_PROLOGUE;
	}
	return PE_STEP_BROKEN;
}

enum pe_step pe_step(const struct pe_tables *tables, uint32_t rva, struct pe_registers *regs,
		     struct stack_view *stack)
{
	struct undoing u = {.regs = *regs, .stack = stack};
	enum pe_step step = PE_STEP_ON;
	struct function f;

	if (find_function(tables, rva, &f))
		step = undo_function(tables, f, rva, &u);
	else if (!regs->interrupted)
		return PE_STEP_BROKEN;
	if (step == PE_STEP_ON && !u.from_interrupt) {
		step = pop_word(&u, &u.regs.rip);
		u.regs.interrupted = false;
	}
	if (step != PE_STEP_ON)
		return step;
	/* An interrupt may have come from another stack; calls only ever grow one. */
	if (!u.from_interrupt && u.regs.r[PE_RSP] <= regs->r[PE_RSP])
		return PE_STEP_BROKEN;
	*regs = u.regs;
	return PE_STEP_ON;
}

/* Generated code, outside images: [RBP] is the caller's RBP, the return address is above it. */
static enum pe_step step_frame_pointer(struct pe_registers *regs, struct stack_view *stack)
{
	uint64_t frame = regs->r[PE_RBP], rbp, rip;

	if (frame < regs->r[PE_RSP] || frame & 7)
		return PE_STEP_BROKEN;
	if (!view_read(stack, frame, 8, &rbp) || !view_read(stack, frame + 8, 8, &rip))
		return PE_STEP_UNREADABLE;
	regs->r[PE_RBP] = rbp;
	regs->r[PE_RSP] = frame + 16;
	regs->rip = rip;
	regs->interrupted = false;
	return PE_STEP_ON;
}

/* ---- walks ----------------------------------------------------------------------------------- */

uint32_t pe_walk(struct pe_registers *regs, struct stack_view *stack, pe_find *find, void *ctx,
		 struct pe_frame *frames, uint32_t max, enum pe_step *end)
{
	const struct pe_tables *tables;
	uint32_t n = 0, rva;

	*end = PE_STEP_ON;
	while (n < max && *end == PE_STEP_ON && regs->rip) {
		frames[n++] = (struct pe_frame){regs->rip, !regs->interrupted};
		tables = find(ctx, regs->rip - !regs->interrupted, &rva);
		*end = tables ? pe_step(tables, rva, regs, stack) : step_frame_pointer(regs, stack);
	}
	return n;
}
