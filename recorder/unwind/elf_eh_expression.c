/*
 * DWARF expressions, as far as unwind tables may use them: a stack of 64-bit words. For i386 these
 * are cut to 32 bits where they address memory, and in the end.
 *
 * Operations that need more than registers and memory (a location in a register, a type, thread
 * storage, an address in the file, which would need relocation) are refused. Opcodes: DWARF 5,
 * table 7.9.
 */
#include "unwind/elf_eh_private.h"

enum {
	OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S, OP_CONST2U, OP_CONST2S,
	OP_CONST4U, OP_CONST4S, OP_CONST8U, OP_CONST8S, OP_CONSTU, OP_CONSTS, OP_DUP, OP_DROP,
	OP_OVER, OP_PICK, OP_SWAP, OP_ROT, OP_ABS = 0x19, OP_AND, OP_DIV, OP_MINUS, OP_MOD, OP_MUL,
	OP_NEG, OP_NOT, OP_OR, OP_PLUS, OP_PLUS_UCONST, OP_SHL, OP_SHR, OP_SHRA, OP_XOR, OP_BRA,
	OP_EQ, OP_GE, OP_GT, OP_LE, OP_LT, OP_NE, OP_SKIP, OP_LIT0 = 0x30, OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70, OP_BREG31 = 0x8f, OP_BREGX = 0x92, OP_DEREF_SIZE = 0x94, OP_NOP = 0x96,
};

struct run {
	struct eh_cursor c;
	const struct eh_machine *machine;
	enum eh_result result;          /* what went wrong, if not malformed bytes */
	uint64_t stack[EH_EXPRESSION_DEPTH_MAX];
	unsigned n;
};

/* ---- the stack ------------------------------------------------------------------------------- */

static void push(struct run *r, uint64_t v)
{
	if (r->n == EH_EXPRESSION_DEPTH_MAX)
		r->c.bad = true;
	else
		r->stack[r->n++] = v;
}

static uint64_t pop(struct run *r)
{
	if (!r->n) {
		r->c.bad = true;
		return 0;
	}
	return r->stack[--r->n];
}

/* The nth from the top, 0 = the top. */
static uint64_t peek(struct run *r, uint64_t n)
{
	if (n >= r->n) {
		r->c.bad = true;
		return 0;
	}
	return r->stack[r->n - 1 - n];
}

static void push_register(struct run *r, uint64_t number)
{
	int64_t offset = eh_get_sleb(&r->c);
	unsigned reg = eh_register(r->c.is_32_bit, number);

	if (reg == EH_REGISTERS) {
		r->c.bad = true;
	} else if (!(r->machine->known & (uint32_t)1 << reg)) {
		r->result = EH_UNKNOWN_REGISTER;
	} else {
		push(r, r->machine->regs[reg] + (uint64_t)offset);
	}
}

static void push_memory(struct run *r, unsigned n)
{
	uint64_t address = eh_address(r->c.is_32_bit, pop(r)), v = 0;

	if (r->c.bad)
		return;
	if (n != 1 && n != 2 && n != 4 && n != 8)
		r->c.bad = true;
	else if (!r->machine->read(r->machine->ctx, address, n, &v))
		r->result = EH_UNREADABLE;
	else
		push(r, v);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void jump(struct run *r, bool taken)
{
	int64_t distance = eh_get_signed(&r->c, 2);
	int64_t to = (int64_t)r->c.at + distance;

	if (!taken || r->c.bad)
		return;
	if (to < 0 || to > (int64_t)r->c.end)
		r->c.bad = true;
	else
		r->c.at = (size_t)to;
}

static uint64_t shift_right_signed(uint64_t v, uint64_t n)
{
	uint64_t sign = v >> 63 ? UINT64_MAX : 0;

	return n >= 64 ? sign : n ? v >> n | sign << (64 - n) : v;
}

/* a is below b on the stack. Comparisons, division and shra are signed, the rest wraps. */
static uint64_t compute(struct run *r, unsigned op, uint64_t a, uint64_t b)
{
	switch (op) {
	case OP_AND: return a & b;
	case OP_OR: return a | b;
	case OP_XOR: return a ^ b;
	case OP_PLUS: return a + b;
	case OP_MINUS: return a - b;
	case OP_MUL: return a * b;
	case OP_SHL: return b < 64 ? a << b : 0;
	case OP_SHR: return b < 64 ? a >> b : 0;
	case OP_SHRA: return shift_right_signed(a, b);
	case OP_EQ: return a == b;
	case OP_NE: return a != b;
	case OP_GE: return (int64_t)a >= (int64_t)b;
	case OP_GT: return (int64_t)a > (int64_t)b;
	case OP_LE: return (int64_t)a <= (int64_t)b;
	case OP_LT: return (int64_t)a < (int64_t)b;
	case OP_DIV:
		if (b == UINT64_MAX)
			return 0 - a;            /* INT64_MIN / -1 traps */
		if (b)
			return (uint64_t)((int64_t)a / (int64_t)b);
		break;
	case OP_MOD:
		if (b)
			return a % b;
		break;
	}
	r->c.bad = true;
	return 0;
}

static bool step_constant(struct run *r, unsigned op)
{
	struct eh_cursor *c = &r->c;

	if (op >= OP_LIT0 && op <= OP_LIT31) {
		push(r, op - OP_LIT0);
		return true;
	}
	switch (op) {
	case OP_CONST1U: push(r, eh_get(c, 1)); break;
	case OP_CONST1S: push(r, (uint64_t)eh_get_signed(c, 1)); break;
	case OP_CONST2U: push(r, eh_get(c, 2)); break;
	case OP_CONST2S: push(r, (uint64_t)eh_get_signed(c, 2)); break;
	case OP_CONST4U: push(r, eh_get(c, 4)); break;
	case OP_CONST4S: push(r, (uint64_t)eh_get_signed(c, 4)); break;
	case OP_CONST8U:
	case OP_CONST8S: push(r, eh_get(c, 8)); break;
	case OP_CONSTU: push(r, eh_get_uleb(c)); break;
	case OP_CONSTS: push(r, (uint64_t)eh_get_sleb(c)); break;
	default: return false;
	}
	return true;
}

/* Rotate the top three: a b c (c on top) becomes c a b. */
static void rotate(struct run *r)
{
	uint64_t c = pop(r), b = pop(r), a = pop(r);

	push(r, c);
	push(r, a);
	push(r, b);
}

static bool step_stack(struct run *r, unsigned op)
{
	uint64_t a, b;

	switch (op) {
	case OP_DUP: push(r, peek(r, 0)); break;
	case OP_DROP: pop(r); break;
	case OP_OVER: push(r, peek(r, 1)); break;
	case OP_PICK: push(r, peek(r, eh_get(&r->c, 1))); break;
	case OP_ROT: rotate(r); break;
	case OP_SWAP:
		b = pop(r);
		a = pop(r);
		push(r, b);
		push(r, a);
		break;
	case OP_ABS:
		a = pop(r);
		push(r, a >> 63 ? 0 - a : a);
		break;
	case OP_NEG: push(r, 0 - pop(r)); break;
	case OP_NOT: push(r, ~pop(r)); break;
	case OP_PLUS_UCONST: push(r, pop(r) + eh_get_uleb(&r->c)); break;
	case OP_NOP: break;
	default: return false;
	}
	return true;
}

static void step(struct run *r, unsigned op)
{
	uint64_t b;

	if (op >= OP_BREG0 && op <= OP_BREG31) {
		push_register(r, op - OP_BREG0);
	} else if (op == OP_BREGX) {
		push_register(r, eh_get_uleb(&r->c));
	} else if (op == OP_DEREF) {
		push_memory(r, r->c.is_32_bit ? 4 : 8);
	} else if (op == OP_DEREF_SIZE) {
		push_memory(r, (unsigned)eh_get(&r->c, 1));
	} else if (op == OP_SKIP) {
		jump(r, true);
	} else if (op == OP_BRA) {
		jump(r, pop(r) != 0);
	} else if (!step_constant(r, op) && !step_stack(r, op)) {
		b = pop(r);
		push(r, compute(r, op, pop(r), b));
	}
}

enum eh_result eh_evaluate(const uint8_t *bytes, size_t n, const uint64_t *start,
			   const struct eh_machine *machine, uint64_t *out)
{
	struct run r = {.c = {.bytes = bytes, .end = n, .is_32_bit = machine->is_32_bit},
			.machine = machine, .result = EH_OK};
	unsigned steps = 0;
	uint64_t value;

	if (start)
		push(&r, *start);
	while (r.c.at < r.c.end && !r.c.bad && r.result == EH_OK) {
		if (++steps > EH_EXPRESSION_STEPS_MAX || !*machine->budget)
			return EH_BAD;
		(*machine->budget)--;
		step(&r, (unsigned)eh_get(&r.c, 1));
	}
	if (r.result != EH_OK)
		return r.result;
	value = pop(&r);
	if (r.c.bad)
		return EH_BAD;
	*out = eh_address(r.c.is_32_bit, value);
	return EH_OK;
}
