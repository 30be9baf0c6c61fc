#include "unwind/step.h"

#include "unwind/prologue.h"

#define BIT(reg) ((uint32_t)1 << (reg))
#define POINTERS (BIT(EH_RSP) | BIT(EH_RBP) | BIT(EH_RIP))
/* By the calling conventions of x86-64 and i386. */
#define CALLEE_SAVED                                                                               \
	(BIT(EH_RBX) | BIT(EH_RBP) | BIT(EH_R12) | BIT(EH_R13) | BIT(EH_R14) | BIT(EH_R15))
#define CALLEE_SAVED_32 (BIT(EH_RBX) | BIT(EH_RBP) | BIT(EH_RSI) | BIT(EH_RDI))

enum {
	FRAME_POINTER_REACH = 64 << 20, /* a larger frame cannot be real */
	/*
	 * struct ucontext at RSP when a handler returns to its restorer (Linux, arch/x86/include/
	 * uapi/asm/{ucontext,sigcontext}.h): R8..R15 from 40 on, RDI 104, RSI 112, RBP 120, RBX
	 * 128, RDX 136, RAX 144, RCX 152, RSP 160, RIP 168, flags 176, then u16 cs, gs, fs, ss.
	 */
	UCONTEXT_REGS = 40,
	UCONTEXT_SEGMENTS = 184,
	USER_CS = 0x33,
	USER_DS = 0x2b,
};

/* ---- what every way ends in ------------------------------------------------------------------ */

/* The stack grows down: a caller's frame is higher, and slots are words. */
static bool is_sane(const struct stepper *s, uint64_t cfa)
{
	return cfa > s->regs[EH_RSP] && cfa % s->word == 0;
}

/*
 * The same for a row. When the return address was popped into a register (vfork(), whose child must
 * not overwrite it), the frame is empty; only an interrupted frame may be.
 */
static bool is_sane_row(const struct stepper *s, const struct eh_row *row, uint64_t cfa)
{
	if (s->interrupted && row->regs[row->return_column].how == EH_IN_REGISTER)
		return cfa >= s->regs[EH_RSP] && cfa % s->word == 0;
	return row->signal || is_sane(s, cfa);
}

static enum step_result move_to_caller(struct stepper *s, uint64_t cfa, uint64_t rip, uint64_t rbp,
				       uint32_t rbp_known)
{
	s->cfa = cfa;
	s->regs[EH_RSP] = cfa;
	s->regs[EH_RIP] = rip;
	s->regs[EH_RBP] = rbp;
	s->known = BIT(EH_RSP) | BIT(EH_RIP) | rbp_known;
	s->interrupted = false;
	return rip ? STEP_ON : STEP_ROOT;
}

/*
 * Leave a frame whose return address is right below its CFA.
 *
 * rbp_at  where the caller's RBP is saved; 0 = RBP was kept
 */
static inline enum step_result leave_frame(struct stepper *s, unsigned word, uint64_t cfa,
					   uint64_t rbp_at)
{
	uint64_t rip, rbp = s->regs[EH_RBP];

	if (!is_sane(s, cfa))
		return STEP_BROKEN;
	s->cfa = cfa;
	if (!view_read(&s->view, cfa - word, word, &rip) ||
	    (rbp_at && !view_read(&s->view, rbp_at, word, &rbp)))
		return STEP_UNREADABLE;
	return move_to_caller(s, cfa, rip, rbp, rbp_at ? BIT(EH_RBP) : s->known & BIT(EH_RBP));
}

/* ---- without tables -------------------------------------------------------------------------- */

enum step_result step_frame_pointer(struct stepper *s)
{
	uint64_t rbp = s->regs[EH_RBP], rip, next;
	unsigned word = s->word;

	s->cfa = 0;
	if (!(s->known & BIT(EH_RBP)))
		return STEP_BROKEN;
	if (!rbp)
		return STEP_END;
	if (rbp < s->regs[EH_RSP] || rbp - s->regs[EH_RSP] > FRAME_POINTER_REACH || rbp % word)
		return STEP_BROKEN;
	s->cfa = rbp + 2 * word;
	if (!view_read(&s->view, rbp + word, word, &rip) || !view_read(&s->view, rbp, word, &next))
		return STEP_UNREADABLE;
	if (!rip)
		return STEP_END;
	return move_to_caller(s, s->cfa, rip, next, BIT(EH_RBP));
}

enum step_result step_wild(struct stepper *s)
{
	return leave_frame(s, s->word, s->regs[EH_RSP] + s->word, 0);
}

/* Is there a ucontext at RSP? Nothing else has user mode's segments at these places. */
static bool read_ucontext(struct stepper *s, uint64_t regs[EH_REGISTERS])
{
	static const uint8_t order[] = {
		EH_R8, EH_R9, EH_R10, EH_R11, EH_R12, EH_R13, EH_R14, EH_R15, EH_RDI,
		EH_RSI, EH_RBP, EH_RBX, EH_RDX, EH_RAX, EH_RCX, EH_RSP, EH_RIP};
	uint64_t at = s->regs[EH_RSP], segments;
	unsigned i;

	if (!view_read(&s->view, at + UCONTEXT_SEGMENTS, 8, &segments) ||
	    (segments & 0xffff) != USER_CS || (segments >> 48 != USER_DS && segments >> 48 != 0))
		return false;
	for (i = 0; i < sizeof(order); i++) {
		if (!view_read(&s->view, at + UCONTEXT_REGS + 8 * i, 8, &regs[order[i]]))
			return false;
	}
	return true;
}

static enum step_result move_to_interrupted(struct stepper *s, uint32_t known)
{
	if (++s->nsignals > STEP_SIGNALS_MAX)
		return STEP_BROKEN;
	s->cfa = s->regs[EH_RSP];
	s->known = known;
	s->interrupted = true;
	s->switched = true;
	return STEP_ON;
}

enum step_result step_undescribed(struct stepper *s, bool *by_pointer)
{
	uint64_t regs[EH_REGISTERS];
	unsigned i;

	if (!s->interrupted && s->word == 8 && read_ucontext(s, regs)) {
		for (i = 0; i < EH_REGISTERS; i++)
			s->regs[i] = regs[i];
		return move_to_interrupted(s, BIT(EH_REGISTERS) - 1);
	}
	*by_pointer = true;
	return step_frame_pointer(s);
}

/* ---- by a rule in 8 bytes -------------------------------------------------------------------- */

static enum step_result step_rule(struct stepper *s, struct rule rule)
{
	uint64_t cfa, slot;

	if (!(s->known & BIT(rule.base)))
		return STEP_UNKNOWN;
	cfa = s->regs[rule.base] + (uint64_t)(int64_t)rule.offset;
	if (rule.kind == RULE_DEREF) {
		if (!view_read(&s->view, cfa, s->word, &cfa))
			return STEP_UNREADABLE;
		cfa += rule.addend;
	}
	slot = cfa + (uint64_t)((int64_t)s->word * rule.rbp_slot);
	/*
	 * GCC leaves the save rule in place after `pop %rbp`. A slot below the stack pointer has
	 * been popped: the register already has its value. Without this, 1-3 % of stacks break.
	 */
	slot = rule.rbp_slot && slot >= s->regs[EH_RSP] ? slot : 0;
	/* A constant, so that the compiler makes one load of each read. */
	return s->word == 8 ? leave_frame(s, 8, cfa, slot) : leave_frame(s, 4, cfa, slot);
}

/* ---- by a row -------------------------------------------------------------------------------- */

static bool read_view(void *ctx, uint64_t address, unsigned n, uint64_t *out)
{
	return view_read(ctx, address, n, out);
}

static enum eh_result evaluate(struct stepper *s, const struct eh_frame *tables, int32_t at,
			       const uint64_t *start, uint64_t *out)
{
	const struct eh_machine machine = {.regs = s->regs, .known = s->known, .read = read_view,
					   .ctx = &s->view, .budget = &s->budget,
					   .is_32_bit = s->word == 4};
	const uint8_t *bytes;
	size_t n;

	if (!eh_frame_expression(tables, at, &bytes, &n))
		return EH_BAD;
	return eh_evaluate(bytes, n, start, &machine, out);
}

static enum eh_result find_cfa(struct stepper *s, const struct eh_frame *tables,
			       const struct eh_row *row, uint64_t *out)
{
	if (row->cfa.how == EH_EXPRESSION)
		return evaluate(s, tables, row->cfa.value, NULL, out);
	if (!(s->known & BIT(row->cfa.reg)))
		return EH_UNKNOWN_REGISTER;
	*out = s->regs[row->cfa.reg] + (uint64_t)(int64_t)row->cfa.value;
	return EH_OK;
}

static enum eh_result keep_register(const struct stepper *s, unsigned reg, uint64_t *out)
{
	*out = s->regs[reg];
	return s->known & BIT(reg) ? EH_OK : EH_UNKNOWN_REGISTER;
}

static bool is_callee_saved(const struct stepper *s, unsigned reg)
{
	return (s->word == 8 ? CALLEE_SAVED : CALLEE_SAVED_32) & BIT(reg);
}

static enum eh_result load_register(struct stepper *s, unsigned reg, bool signal,
				    uint64_t address, uint64_t *out)
{
	/* Popped already: see step_rule(). */
	if (!signal && address < s->regs[EH_RSP] && is_callee_saved(s, reg))
		return keep_register(s, reg, out);
	return view_read(&s->view, address, s->word, out) ? EH_OK : EH_UNREADABLE;
}

static enum eh_result find_register(struct stepper *s, const struct eh_frame *tables,
				    const struct eh_row *row, unsigned reg, uint64_t cfa,
				    uint64_t *out)
{
	const struct eh_rule *rule = &row->regs[reg];
	uint64_t offset = (uint64_t)(int64_t)rule->value;
	enum eh_result result;

	switch (rule->how) {
	case EH_UNSET:
		if (reg == EH_RSP) {
			*out = cfa;
			return EH_OK;
		}
		return is_callee_saved(s, reg) ? keep_register(s, reg, out) : EH_UNKNOWN_REGISTER;
	case EH_SAME:
		return keep_register(s, reg, out);
	case EH_AT:
		return load_register(s, reg, row->signal, cfa + offset, out);
	case EH_VALUE:
		*out = cfa + offset;
		return EH_OK;
	case EH_IN_REGISTER:
		return keep_register(s, rule->reg, out);
	case EH_AT_EXPRESSION:
		result = evaluate(s, tables, rule->value, &cfa, out);
		return result == EH_OK ? load_register(s, reg, row->signal, *out, out) : result;
	case EH_EXPRESSION:
		return evaluate(s, tables, rule->value, &cfa, out);
	}
	return EH_UNKNOWN_REGISTER;
}

static enum step_result step_failed(enum eh_result result)
{
	switch (result) {
	case EH_UNREADABLE:
		return STEP_UNREADABLE;
	case EH_UNKNOWN_REGISTER:
		return STEP_UNKNOWN;
	default:
		return STEP_BROKEN;
	}
}

/*
 * Recover all wanted registers of the caller. Without RSP and RIP there is no step. Others may stay
 * unknown, but if a place could not be read, the step asks for more memory.
 */
static enum step_result find_registers(struct stepper *s, const struct eh_frame *tables,
				       const struct eh_row *row, uint64_t cfa,
				       uint64_t regs[EH_REGISTERS], uint32_t *known)
{
	uint32_t wanted = s->all || row->signal ? BIT(EH_REGISTERS) - 1 : POINTERS;
	unsigned reg;

	*known = 0;
	for (reg = 0; reg < EH_REGISTERS; reg++) {
		unsigned column = reg == EH_RIP ? row->return_column : reg;
		enum eh_result result;

		if (!(wanted & BIT(reg)))
			continue;
		result = find_register(s, tables, row, column, cfa, &regs[reg]);
		if (result == EH_OK)
			*known |= BIT(reg);
		else if (reg == EH_RSP || reg == EH_RIP ||
			 (reg == EH_RBP && result == EH_UNREADABLE))
			return step_failed(result);
	}
	return STEP_ON;
}

/* The usual frame: RBP was pushed right below the return address, and points there. */
static bool is_pointer_row(const struct eh_row *row)
{
	const struct eh_rule *rbp = &row->regs[EH_RBP], *ra = &row->regs[row->return_column];

	return row->cfa.how == EH_VALUE && row->cfa.reg == EH_RBP && row->cfa.value == 16 &&
	       rbp->how == EH_AT && rbp->value == -16 && ra->how == EH_AT && ra->value == -8;
}

/*
 * RBP of a frame whose RSP is exact, by the function's code. It is believed where it leads to the
 * return address of a call: of this function, or, where the call does not say of which, while the
 * caller's RBP is higher or 0.
 */
static bool work_out_rbp(struct stepper *s, const struct eh_frame *tables, uint64_t vaddr)
{
	uint8_t code[PROLOGUE_MAX_BYTES], before[PROLOGUE_CALL_BYTES];
	uint64_t start, function, rbp, saved, ra;
	enum prologue_call call;
	uint32_t depth;
	size_t n;

	if (!s->code || s->word != 8 || !eh_frame_start(tables, vaddr, &start))
		return false;
	function = s->regs[EH_RIP] - !s->interrupted - (vaddr - start);
	n = vaddr - start < sizeof(code) ? (size_t)(vaddr - start) : sizeof(code);
	n = s->code(s->view.ctx, function, code, n);
	if (!prologue_depth(code, n, &depth))
		return false;
	rbp = s->regs[EH_RSP] + depth;
	if (!view_read(&s->view, rbp, 8, &saved) || !view_read(&s->view, rbp + 8, 8, &ra) ||
	    s->code(s->view.ctx, ra - sizeof(before), before, sizeof(before)) != sizeof(before))
		return false;
	call = prologue_call_before(before, function - ra);
	if (call != PROLOGUE_CALLS_IT &&
	    (call != PROLOGUE_CALLS_ELSEWHERE || (saved && saved <= rbp)))
		return false;
	s->regs[EH_RBP] = rbp;
	s->known |= BIT(EH_RBP);
	s->worked_out = true;
	return true;
}

static enum step_result step_row(struct stepper *s, const struct eh_frame *tables, uint64_t vaddr,
				 const struct eh_row *row)
{
	uint64_t regs[EH_REGISTERS], cfa = 0;
	enum step_result result;
	enum eh_result found;
	uint32_t known;
	unsigned i;

	if (row->regs[row->return_column].how == EH_UNDEFINED)
		return STEP_ROOT;
	found = find_cfa(s, tables, row, &cfa);
	if (found == EH_UNKNOWN_REGISTER && is_pointer_row(row) && work_out_rbp(s, tables, vaddr))
		found = find_cfa(s, tables, row, &cfa);
	if (found != EH_OK)
		return step_failed(found);
	if (!is_sane_row(s, row, cfa))
		return STEP_BROKEN;
	s->cfa = cfa;
	result = find_registers(s, tables, row, cfa, regs, &known);
	if (result != STEP_ON)
		return result;
	if (!regs[EH_RIP])
		return STEP_ROOT;
	if (!is_sane_row(s, row, regs[EH_RSP]))
		return STEP_BROKEN;
	for (i = 0; i < EH_REGISTERS; i++) {
		if (known & BIT(i))
			s->regs[i] = regs[i];
	}
	if (row->signal)
		return move_to_interrupted(s, known);
	s->known = known;
	s->interrupted = false;
	return STEP_ON;
}

/* Nothing describes the function, but its code is known (eh_frame_add_code()). */
static enum step_result step_code(struct stepper *s, const struct eh_code *code)
{
	uint64_t cfa = s->regs[EH_RSP] + code->depth + 8;

	return leave_frame(s, 8, cfa, code->rbp_saved ? cfa - 16 : 0);
}

/*
 * Interrupted in the system call that ends a signal's restorer: use the row of its last byte,
 * because the kernel has not removed the frame from the stack yet (or RIP would be elsewhere).
 */
static bool is_in_sigreturn(struct stepper *s, const struct eh_frame *tables, uint64_t vaddr,
			    struct eh_row *row)
{
	return s->interrupted && vaddr &&
	       eh_frame_row(tables, vaddr - 1, &s->budget, row) == EH_OK && row->signal;
}

/*
 * Where no function is described: one of those that begin and end a program, the end of a signal's
 * restorer, or perhaps a new thread's first instructions (eh_frame_clone_row()).
 */
static enum step_result step_gap(struct stepper *s, const struct eh_frame *tables, uint64_t vaddr,
				 bool *by_pointer)
{
	const struct eh_code *code = eh_frame_find_code(tables, vaddr);
	struct eh_row row;

	if (code)
		return step_code(s, code);
	if (is_in_sigreturn(s, tables, vaddr, &row))
		return step_row(s, tables, vaddr, &row);
	if (!s->interrupted || !(s->known & BIT(EH_RAX)) ||
	    eh_frame_clone_row(tables, vaddr, &s->budget, &row) != EH_OK)
		return step_undescribed(s, by_pointer);
	/*
	 * The result of the call: 0 in the child; the child's number, or an error, in the parent.
	 */
	return s->regs[EH_RAX] ? step_row(s, tables, vaddr, &row) : STEP_ROOT;
}

/* Where the CFA of a row is that adds to RSP; 0 = it is another kind, or there is no row. */
static uint64_t find_plain_cfa(struct stepper *s, const struct eh_frame *tables, uint64_t vaddr)
{
	struct eh_row row;

	if (eh_frame_row(tables, vaddr, &s->budget, &row) != EH_OK || row.cfa.how != EH_VALUE ||
	    row.cfa.reg != EH_RSP)
		return 0;
	return s->regs[EH_RSP] + (uint64_t)(int64_t)row.cfa.value;
}

/*
 * Go's functions save RBP 16 bytes below the CFA, once their frame is made, and its tables do not
 * say when. An interrupted function may not have got there, or have no frame: its row says where it
 * returns to, and RBP itself whether it is saved. Its callers follow frame pointers. Where these
 * end, a function that returns to 0 is the last; other addresses there are left over from before
 * (runtime.mcall, at the top of a scheduler's stack).
 */
static enum step_result step_cfa_only(struct stepper *s, const struct eh_frame *tables,
				      uint64_t vaddr, bool *by_pointer)
{
	bool has_rbp = s->known & BIT(EH_RBP);
	uint64_t cfa = s->interrupted || !has_rbp ? find_plain_cfa(s, tables, vaddr) : 0, rip;
	enum step_result result;

	if (cfa) {
		*by_pointer = true;
		return leave_frame(s, 8, cfa,
				   has_rbp && s->regs[EH_RBP] == cfa - 16 ? cfa - 16 : 0);
	}
	result = step_undescribed(s, by_pointer);
	if (result != STEP_BROKEN && result != STEP_END)
		return result;
	cfa = find_plain_cfa(s, tables, vaddr);
	return cfa && view_read(&s->view, cfa - 8, 8, &rip) && !rip ? STEP_END : result;
}

enum step_result step_tables(struct stepper *s, struct rule_cache *cache,
			     const struct eh_frame *tables, uint64_t vaddr, bool *by_pointer)
{
	struct rule rule = {.kind = RULE_GENERAL};
	struct eh_row row;

	s->cfa = 0;
	if (eh_frame_cfa_only(tables))
		return step_cfa_only(s, tables, vaddr, by_pointer);
	if (!s->all)
		rule = rule_find(cache, tables, vaddr, &s->budget);
	switch (rule.kind) {
	case RULE_PLAIN:
	case RULE_DEREF:
		return step_rule(s, rule);
	case RULE_ROOT:
		return STEP_ROOT;
	case RULE_NONE:
		return step_gap(s, tables, vaddr, by_pointer);
	case RULE_BAD:
		return STEP_BROKEN;
	}
	switch (eh_frame_row(tables, vaddr, &s->budget, &row)) {
	case EH_OK:
		return step_row(s, tables, vaddr, &row);
	case EH_NONE:
		return step_gap(s, tables, vaddr, by_pointer);
	default:
		return STEP_BROKEN;
	}
}
