#include "unwind/pe_x86.h"

#include "base/bytes.h"
#include "unwind/step.h"

#include <string.h>

enum {
	WORD = 4,
	INT3 = 0xcc, RET = 0xc3, RET_N = 0xc2, PUSH = 0x50, PUSH_EBP = 0x55, POP = 0x58,
	LEAVE = 0xc9, CALL_NEAR = 0xe8, JMP_NEAR = 0xe9, GROUP5 = 0xff,
	CALL_BYTES_MAX = 7,                  /* call [register + register + 4 bytes] */
	CODE_BYTES = 32,
	PROLOGUE_BYTES = 24,                 /* within these EBP is set, if at all */
	EPILOGUE_STEPS = 8, EPILOGUE_MAX = 6,        /* instructions; bytes of the longest */
	THUNKS_MAX = 2,                      /* jumps that a call goes through */
	ARGUMENT_BYTES = 16 * WORD,          /* of the next call */
	ROOT_BYTES = 4 * WORD,               /* arguments of a thread's first function */
};

#define BIT(reg) ((uint32_t)1 << (reg))
#define CALLEE_SAVED (BIT(EH_RBX) | BIT(EH_RSI) | BIT(EH_RDI))

#define LOWEST_CODE 0x10000u                 /* Windows keeps the first 64 KiB free */

/* DWARF's names in the order of x86. */
static const uint8_t order[] = {EH_RAX, EH_RCX, EH_RDX, EH_RBX, EH_RSP, EH_RBP, EH_RSI, EH_RDI};

struct walk {
	struct stepper s;
	const struct pe_x86_process *process;
	uint32_t nreads;
	bool guided;
};

/* ---- code ------------------------------------------------------------------------------------ */

static bool read_code(struct walk *w, uint64_t address, uint8_t *to, size_t n)
{
	return address <= UINT32_MAX && n <= UINT32_MAX - address &&
	       w->nreads++ < PE_X86_READS_MAX && w->process->code(w->process->ctx, address, to, n);
}

static uint32_t jump_target(uint64_t next, const uint8_t *distance)
{
	return (uint32_t)next + le32(distance);
}

/* Is this a call through a register or memory of n bytes? Its ModRM byte says how long it is. */
static bool is_indirect_call(const uint8_t *at, unsigned n)
{
	unsigned mod = at[1] >> 6, base = at[1] & 7, length = 2;

	if (at[0] != GROUP5 || (at[1] >> 3 & 7) != 2)
		return false;
	if (mod != 3 && base == 4) {
		length++;
		base = n > 2 && mod == 0 ? at[2] & 7 : 0;
	}
	if (mod == 1)
		length += 1;
	else if (mod == 2 || (mod == 0 && base == 5))
		length += 4;
	return length == n;
}

/* Does a call return there? *target: of a direct call; 0 = known when it is executed. */
static bool returns_from_call(struct walk *w, uint64_t address, uint32_t *target)
{
	uint8_t code[CALL_BYTES_MAX];
	const uint8_t *end = code + sizeof(code);
	unsigned n;

	*target = 0;
	if (address < LOWEST_CODE || !read_code(w, address - sizeof(code), code, sizeof(code)))
		return false;
	if (end[-5] == CALL_NEAR) {
		*target = jump_target(address, end - 4);
		return true;
	}
	for (n = 2; n <= sizeof(code); n++)
		if (is_indirect_call(end - n, n))
			return true;
	return false;
}

/* Follow the jumps of import tables and incremental linking that may stand before a function. */
static uint32_t follow_thunks(struct walk *w, uint32_t target)
{
	uint8_t code[5];
	unsigned i;

	for (i = 0; i < THUNKS_MAX && read_code(w, target, code, sizeof(code)) &&
		    code[0] == JMP_NEAR; i++)
		target = jump_target((uint64_t)target + 5, code + 1);
	return target;
}

static bool ends_function(const uint8_t *end)
{
	return end[-1] == INT3 && (end[-2] == INT3 || end[-2] == RET || end[-4] == RET_N);
}

/* Where the function that holds an address begins: behind int3 bytes, at a multiple of 16. */
static bool find_start(struct walk *w, uint64_t address, uint32_t *start)
{
	uint8_t code[52];                    /* before four of these places */
	uint64_t at = address & ~(uint64_t)15, left;
	unsigned i;

	for (left = PE_X86_FUNCTION_BYTES; left && at > sizeof(code); left -= 64, at -= 64) {
		if (!read_code(w, at - sizeof(code), code, sizeof(code)))
			return false;
		for (i = 0; i < 4; i++) {
			if (ends_function(code + sizeof(code) - 16 * i)) {
				*start = (uint32_t)at - 16 * i;
				return true;
			}
		}
	}
	return false;
}

static bool sets_ebp(const uint8_t *at)
{
	return (at[0] == 0x8b && at[1] == 0xec) || (at[0] == 0x89 && at[1] == 0xe5);
}

/* mov ebp, esp near the start, or a call there of the C library's helper that does it. */
static bool has_frame_pointer(struct walk *w, uint32_t start)
{
	uint8_t code[PROLOGUE_BYTES + 1];
	unsigned i;

	if (!read_code(w, start, code, sizeof(code)))
		return true;
	for (i = 0; i < PROLOGUE_BYTES; i++)
		if (sets_ebp(code + i))
			return true;
	/* push n; push table; call __SEH_prolog4 */
	i = code[0] == 0x6a ? 2 : 5;
	return (code[0] == 0x6a || code[0] == 0x68) && code[i] == 0x68 &&
	       code[i + 5] == CALL_NEAR;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool read_word(struct walk *w, uint64_t address, uint64_t *out)
{
	return view_read(&w->s.view, address, WORD, out);
}

/*
 * Go to the caller whose return address is at a place. False: there is none.
 *
 * kept   the registers besides ESP and EBP that have the caller's values already
 */
static bool leave(struct walk *w, uint64_t at, uint64_t ebp, uint32_t kept)
{
	struct stepper *s = &w->s;
	uint32_t target;
	uint64_t eip;

	if (!read_word(w, at, &eip) || (eip && !returns_from_call(w, eip, &target)))
		return false;
	s->regs[EH_RIP] = eip;
	s->regs[EH_RSP] = at + WORD;
	s->regs[EH_RBP] = ebp;
	s->known = BIT(EH_RIP) | BIT(EH_RSP) | BIT(EH_RBP) | (s->known & kept);
	s->interrupted = false;
	return true;
}

/* Carry out an instruction of an epilogue. Returns its length; 0 = it is another one. */
static unsigned carry_out(struct walk *w, const uint8_t *at, uint64_t regs[EH_REGISTERS])
{
	uint64_t *esp = &regs[EH_RSP], *ebp = &regs[EH_RBP];
	bool pops = (*at & 0xf8) == POP && *at != POP + 4;

	if (pops || *at == LEAVE) {
		if (*at == LEAVE)
			*esp = *ebp;
		*esp += WORD;
		return read_word(w, *esp - WORD, *at == LEAVE ? ebp : &regs[order[*at & 7]]);
	}
	if (at[0] == 0x83 && at[1] == 0xc4) {                      /* add esp, n */
		*esp += (uint64_t)(int64_t)(int8_t)at[2];
		return 3;
	}
	if (at[0] == 0x81 && at[1] == 0xc4) {
		*esp += (uint64_t)(int64_t)(int32_t)le32(at + 2);
		return 6;
	}
	if ((at[0] == 0x8b && at[1] == 0xe5) || (at[0] == 0x89 && at[1] == 0xec)) {
		*esp = *ebp;                                       /* mov esp, ebp */
		return 2;
	}
	return 0;
}

/* Execution is in front of ret, or of pop, leave, add esp and mov esp, ebp and then ret. */
static bool step_epilogue(struct walk *w, const uint8_t code[CODE_BYTES])
{
	uint64_t regs[EH_REGISTERS];
	unsigned i, at = 0, length;

	memcpy(regs, w->s.regs, sizeof(regs));
	for (i = 0; i < EPILOGUE_STEPS && at <= CODE_BYTES - EPILOGUE_MAX; i++, at += length) {
		if (code[at] == RET || code[at] == RET_N) {
			if (!leave(w, regs[EH_RSP], regs[EH_RBP], CALLEE_SAVED))
				return false;
			w->s.regs[EH_RBX] = regs[EH_RBX];
			w->s.regs[EH_RSI] = regs[EH_RSI];
			w->s.regs[EH_RDI] = regs[EH_RDI];
			return true;
		}
		length = carry_out(w, code + at, regs);
		if (!length || regs[EH_RSP] < w->s.regs[EH_RSP] || regs[EH_RSP] > UINT32_MAX)
			return false;
	}
	return false;
}

/* Execution is in front of [mov edi, edi;] push ebp; mov ebp, esp or between these. */
static bool step_prologue(struct walk *w, const uint8_t *code)
{
	uint64_t esp = w->s.regs[EH_RSP], ebp;
	uint8_t before;

	if (code[0] == 0x8b && code[1] == 0xff)
		code += 2;
	if (code[0] == PUSH_EBP && sets_ebp(code + 1))
		return leave(w, esp, w->s.regs[EH_RBP], CALLEE_SAVED);
	if (!sets_ebp(code) || !read_code(w, w->s.regs[EH_RIP] - 1, &before, 1))
		return false;
	return before == PUSH_EBP && read_word(w, esp, &ebp) &&
	       leave(w, esp + WORD, ebp, CALLEE_SAVED);
}

/*
 * What a function has put on the stack at least: the pushes and the sub esp that it begins with, as
 * far as they were executed.
 */
static uint32_t frame_bytes(struct walk *w, uint32_t start)
{
	uint64_t executed = w->s.regs[EH_RIP] - start;
	uint8_t code[CODE_BYTES];
	uint32_t nbytes = 0;
	unsigned at = 0;

	if (!read_code(w, start, code, sizeof(code)))
		return 0;
	while (at < executed && at < CODE_BYTES - EPILOGUE_MAX) {
		if ((code[at] & 0xf8) == PUSH) {
			nbytes += WORD;
			at++;
		} else if (code[at] == 0x83 && code[at + 1] == 0xec && code[at + 2] < 0x80) {
			return nbytes + code[at + 2];
		} else if (code[at] == 0x81 && code[at + 1] == 0xec) {
			return nbytes + (le32(code + at + 2) & 0xffffff);
		} else {
			break;
		}
	}
	return nbytes;
}

/*
 * Find the return address of the function that begins at start and leaves EBP alone. Arguments of
 * the next call may be in front of it. If there it is behind no call of this function, but one
 * through a pointer, that one is taken; else the nearest behind a call of this function.
 */
static bool step_scan(struct walk *w, uint32_t start)
{
	uint64_t from = w->s.regs[EH_RSP] + frame_bytes(w, start), at, eip, near = 0;
	uint32_t target;

	for (at = from; at < from + PE_X86_SCAN_BYTES && read_word(w, at, &eip); at += WORD) {
		if (near && at >= from + ARGUMENT_BYTES)
			break;
		if (!returns_from_call(w, eip, &target))
			continue;
		if (target && follow_thunks(w, target) == start)
			return leave(w, at, w->s.regs[EH_RBP], 0);
		if (!target && !near && at - from < ARGUMENT_BYTES)
			near = at;
	}
	return near && leave(w, near, w->s.regs[EH_RBP], 0);
}

static enum pe_step step_frame_pointer_x86(struct walk *w)
{
	struct stepper *s = &w->s;
	uint64_t frame = s->regs[EH_RBP], ebp, eip;

	if (!(s->known & BIT(EH_RBP)))
		return PE_STEP_BROKEN;
	if (!frame) {
		s->regs[EH_RIP] = 0;
		return PE_STEP_ON;
	}
	if (frame < s->regs[EH_RSP] || frame % WORD)
		return PE_STEP_BROKEN;
	if (!read_word(w, frame, &ebp) || !read_word(w, frame + WORD, &eip))
		return PE_STEP_UNREADABLE;
	return leave(w, frame + WORD, ebp, 0) ? PE_STEP_ON : PE_STEP_BROKEN;
}

/* Code without tables. */
static enum pe_step step_code(struct walk *w)
{
	struct stepper *s = &w->s;
	uint64_t address = s->regs[EH_RIP];
	uint8_t code[CODE_BYTES];
	uint32_t start;

	if (!read_code(w, address - !s->interrupted, code, 1))
		return PE_STEP_BROKEN;
	if (s->interrupted && read_code(w, address, code, sizeof(code)) &&
	    (step_epilogue(w, code) || step_prologue(w, code)))
		return PE_STEP_ON;
	w->guided = false;
	if (find_start(w, address - !s->interrupted, &start) && !has_frame_pointer(w, start) &&
	    step_scan(w, start))
		return PE_STEP_ON;
	return step_frame_pointer_x86(w);
}

/* Nothing called a thread's first function: no return address is above its arguments. */
static bool is_root(const struct walk *w)
{
	uint64_t base = w->process->stack_base;

	return w->s.regs[EH_RIP] < LOWEST_CODE && base && w->s.regs[EH_RSP] < base &&
	       base - w->s.regs[EH_RSP] < ROOT_BYTES;
}

static enum pe_step step(struct walk *w)
{
	struct stepper *s = &w->s;
	uint64_t address = s->regs[EH_RIP] - !s->interrupted;
	const struct eh_frame *tables = w->process->tables(w->process->ctx, address);
	const struct stepper before = *s;
	uint32_t budget = s->budget;
	bool by_pointer = false;
	struct eh_row row;

	if (!tables || eh_frame_row(tables, address, &budget, &row) == EH_NONE)
		return step_code(w);
	switch (step_tables(s, NULL, tables, address, &by_pointer)) {
	case STEP_ON:
		if (s->switched) {           /* Windows has no signals: these tables lie */
			*s = before;
			return PE_STEP_BROKEN;
		}
		if (!is_root(w))
			return PE_STEP_ON;
		/* fall through */
	case STEP_ROOT:
		s->regs[EH_RIP] = 0;
		return PE_STEP_ON;
	case STEP_UNREADABLE:
		return PE_STEP_UNREADABLE;
	default:
		return PE_STEP_BROKEN;
	}
}

/* ---- walks ----------------------------------------------------------------------------------- */

uint32_t pe_x86_walk(struct pe_registers *regs, struct stack_view *stack,
		     const struct pe_x86_process *process, struct pe_frame *frames, uint32_t max,
		     enum pe_step *end, bool *guided)
{
	struct walk w = {.process = process, .guided = true};
	struct stepper *s = &w.s;
	uint32_t n = 0, i;

	for (i = 0; i < sizeof(order); i++) {
		s->regs[order[i]] = regs->r[i];
		s->known |= BIT(order[i]);
	}
	s->regs[EH_RIP] = regs->rip;
	s->known |= BIT(EH_RIP);
	s->interrupted = regs->interrupted;
	s->all = true;
	s->word = WORD;
	s->budget = EH_BUDGET;
	s->view = *stack;
	*end = PE_STEP_ON;
	while (n < max && *end == PE_STEP_ON && s->regs[EH_RIP]) {
		frames[n++] = (struct pe_frame){s->regs[EH_RIP], !s->interrupted};
		*end = step(&w);
	}
	for (i = 0; i < sizeof(order); i++)
		regs->r[i] = s->regs[order[i]];
	regs->rip = s->regs[EH_RIP];
	regs->interrupted = s->interrupted;
	stack->missing = s->view.missing;
	*guided = w.guided;
	return n;
}
