/*
 * Call frame programs: the instructions of a CIE, then those of an FDE, up to an address.
 *
 * They build up a row of rules; advance_loc moves to the next address, and the row that holds when
 * the wanted address is passed is the answer. Opcodes: DWARF 5, table 7.29; GNU's from GCC's
 * dwarf2.def.
 */
#include "unwind/elf_eh_private.h"

/* The high two bits of a byte; the low six are the operand. If both are 0, it is in extended[]. */
enum { ADVANCE_LOC = 0x40, OFFSET = 0x80, RESTORE_REGISTER = 0xc0, OPERAND = 0x3f };

enum action {
	REFUSE, IGNORE, MOVE, ADVANCE, REMEMBER, RECALL, RESTORE, PUT_RULE,
	PUT_CFA, PUT_CFA_REGISTER, PUT_CFA_OFFSET, PUT_CFA_EXPRESSION,
};

/* An operand; 1 to 8 is one of so many bytes. Factored: in units of the CIE's data alignment. */
enum operand {
	NONE, UNSIGNED = 16, FACTORED, FACTORED_SIGNED, FACTORED_NEGATED, ADDRESS, EXPRESSION,
};

static const struct instruction {
	uint8_t action;
	bool has_register;              /* comes first */
	uint8_t operand;
	uint8_t how;                    /* of PUT_RULE */
} extended[OPERAND + 1] = {
	[0x00] = {IGNORE, false, NONE, 0},                              /* nop */
	[0x01] = {MOVE, false, ADDRESS, 0},                             /* set_loc */
	[0x02] = {ADVANCE, false, 1, 0},                                /* advance_loc1 */
	[0x03] = {ADVANCE, false, 2, 0},                                /* advance_loc2 */
	[0x04] = {ADVANCE, false, 4, 0},                                /* advance_loc4 */
	[0x05] = {PUT_RULE, true, FACTORED, EH_AT},                     /* offset_extended */
	[0x06] = {RESTORE, true, NONE, 0},                              /* restore_extended */
	[0x07] = {PUT_RULE, true, NONE, EH_UNDEFINED},                  /* undefined */
	[0x08] = {PUT_RULE, true, NONE, EH_SAME},                       /* same_value */
	[0x09] = {PUT_RULE, true, UNSIGNED, EH_IN_REGISTER},            /* register */
	[0x0a] = {REMEMBER, false, NONE, 0},                            /* remember_state */
	[0x0b] = {RECALL, false, NONE, 0},                              /* restore_state */
	[0x0c] = {PUT_CFA, true, UNSIGNED, 0},                          /* def_cfa */
	[0x0d] = {PUT_CFA_REGISTER, true, NONE, 0},                     /* def_cfa_register */
	[0x0e] = {PUT_CFA_OFFSET, false, UNSIGNED, 0},                  /* def_cfa_offset */
	[0x0f] = {PUT_CFA_EXPRESSION, false, EXPRESSION, 0},            /* def_cfa_expression */
	[0x10] = {PUT_RULE, true, EXPRESSION, EH_AT_EXPRESSION},        /* expression */
	[0x11] = {PUT_RULE, true, FACTORED_SIGNED, EH_AT},              /* offset_extended_sf */
	[0x12] = {PUT_CFA, true, FACTORED_SIGNED, 0},                   /* def_cfa_sf */
	[0x13] = {PUT_CFA_OFFSET, false, FACTORED_SIGNED, 0},           /* def_cfa_offset_sf */
	[0x14] = {PUT_RULE, true, FACTORED, EH_VALUE},                  /* val_offset */
	[0x15] = {PUT_RULE, true, FACTORED_SIGNED, EH_VALUE},           /* val_offset_sf */
	[0x16] = {PUT_RULE, true, EXPRESSION, EH_EXPRESSION},           /* val_expression */
	[0x1d] = {ADVANCE, false, 8, 0},                 /* MIPS_advance_loc8, used by others too */
	[0x2e] = {IGNORE, false, UNSIGNED, 0},                          /* GNU_args_size */
	[0x2f] = {PUT_RULE, true, FACTORED_NEGATED, EH_AT},  /* GNU_negative_offset_extended */
};

struct program {
	const struct eh_frame *tables;
	const struct eh_fde *fde;
	struct eh_cursor c;
	uint64_t wanted;
	uint32_t *budget;
	bool done;                      /* the row holds at the wanted address */
	struct eh_row row;
	const struct eh_row *initial;   /* what restore returns to; NULL in the CIE */
	struct eh_row remembered[EH_REMEMBERED_MAX];
	unsigned nremembered;
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* Registers that we do not follow (vector registers...) have rules too, which are dropped. */
static void put_rule(struct program *p, uint64_t number, unsigned how, int64_t value)
{
	unsigned reg = eh_register(p->c.is_32_bit, number);
	struct eh_rule rule = {.how = (uint8_t)how};

	if (reg == EH_REGISTERS)
		return;
	if (how == EH_IN_REGISTER) {
		rule.reg = (uint8_t)eh_register(p->c.is_32_bit, (uint64_t)value);
		if (rule.reg == EH_REGISTERS)
			rule.how = EH_UNDEFINED;     /* kept in a register that we do not follow */
	} else {
		rule.value = (int32_t)value;
		p->c.bad |= value != rule.value;
	}
	p->row.regs[reg] = rule;
}

/* An offset in units of the CIE. The multiplication is unsigned: hostile numbers may wrap. */
static int64_t factor_offset(const struct program *p, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)p->fde->cie.data_align);
}

static void put_cfa(struct program *p, unsigned reg, int64_t offset)
{
	if (reg == EH_REGISTERS || offset != (int32_t)offset) {
		p->c.bad = true;
		return;
	}
	p->row.cfa = (struct eh_rule){.how = EH_VALUE, .reg = (uint8_t)reg,
				      .value = (int32_t)offset};
}

/* Note the place of an expression (its length field) and skip it. */
static int64_t skip_expression(struct program *p)
{
	size_t at = p->c.at;
	uint64_t n = eh_get_uleb(&p->c);

	if (p->c.bad || n > p->c.end - p->c.at)
		p->c.bad = true;
	else
		p->c.at += (size_t)n;
	return (int64_t)at;
}

static void restore_rule(struct program *p, uint64_t number)
{
	unsigned reg = eh_register(p->c.is_32_bit, number);

	if (reg < EH_REGISTERS)
		p->row.regs[reg] = p->initial ? p->initial->regs[reg] : (struct eh_rule){0};
}

static void remember_row(struct program *p)
{
	if (p->nremembered == EH_REMEMBERED_MAX)
		p->c.bad = true;
	else
		p->remembered[p->nremembered++] = p->row;
}

/* Restores the rules, but not the address. */
static void recall_row(struct program *p)
{
	uint64_t start = p->row.start;

	if (!p->nremembered) {
		p->c.bad = true;
		return;
	}
	p->row = p->remembered[--p->nremembered];
	p->row.start = start;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void move_to(struct program *p, uint64_t address)
{
	if (!p->initial)                 /* a CIE's program has no addresses */
		return;
	if (address < p->row.start) {
		p->c.bad = true;
	} else if (address > p->wanted) {
		p->row.end = address < p->fde->end ? address : p->fde->end;
		p->done = true;
	} else {
		p->row.start = address;
	}
}

static void advance(struct program *p, uint64_t delta)
{
	uint64_t bytes = delta * p->fde->cie.code_align;

	if (p->row.start + bytes < p->row.start)
		p->c.bad = true;
	else
		move_to(p, p->row.start + bytes);
}

static int64_t read_operand(struct program *p, unsigned operand)
{
	struct eh_cursor *c = &p->c;

	switch (operand) {
	case NONE:
		return 0;
	case UNSIGNED:
		return (int64_t)eh_get_uleb(c);
	case FACTORED:
		return factor_offset(p, (int64_t)eh_get_uleb(c));
	case FACTORED_SIGNED:
		return factor_offset(p, eh_get_sleb(c));
	case FACTORED_NEGATED:
		return factor_offset(p, (int64_t)(0 - eh_get_uleb(c)));
	case ADDRESS:
		return (int64_t)eh_get_pointer(c, p->fde->cie.pointers, p->tables->in.header_vaddr);
	case EXPRESSION:
		return skip_expression(p);
	}
	return (int64_t)eh_get(c, operand);
}

static void execute(struct program *p, const struct instruction *in)
{
	uint64_t reg = in->has_register ? eh_get_uleb(&p->c) : 0;
	int64_t operand = read_operand(p, in->operand);

	/* These two change one half of a CFA that is a register and an offset. */
	if ((in->action == PUT_CFA_REGISTER || in->action == PUT_CFA_OFFSET) &&
	    p->row.cfa.how != EH_VALUE)
		p->c.bad = true;
	switch (in->action) {
	case IGNORE:
		break;
	case MOVE:
		move_to(p, (uint64_t)operand);
		break;
	case ADVANCE:
		advance(p, (uint64_t)operand);
		break;
	case REMEMBER:
		remember_row(p);
		break;
	case RECALL:
		recall_row(p);
		break;
	case RESTORE:
		restore_rule(p, reg);
		break;
	case PUT_RULE:
		put_rule(p, reg, in->how, operand);
		break;
	case PUT_CFA:
		put_cfa(p, eh_register(p->c.is_32_bit, reg), operand);
		break;
	case PUT_CFA_REGISTER:
		put_cfa(p, eh_register(p->c.is_32_bit, reg), p->row.cfa.value);
		break;
	case PUT_CFA_OFFSET:
		put_cfa(p, p->row.cfa.reg, operand);
		break;
	case PUT_CFA_EXPRESSION:
		p->row.cfa = (struct eh_rule){.how = EH_EXPRESSION, .value = (int32_t)operand};
		break;
	default:
		p->c.bad = true;
	}
}

/* Run the instructions of [at, end) until the wanted address is reached; false when malformed. */
static bool run_instructions(struct program *p, size_t at, size_t end)
{
	p->c.at = at;
	p->c.end = end;
	while (p->c.at < p->c.end && !p->c.bad && !p->done) {
		unsigned op = (unsigned)eh_get(&p->c, 1);
		unsigned operand = op & OPERAND;

		if (!*p->budget)
			return false;
		(*p->budget)--;
		switch (op & ~(unsigned)OPERAND) {
		case ADVANCE_LOC:
			advance(p, operand);
			break;
		case OFFSET:
			put_rule(p, operand, EH_AT, factor_offset(p, (int64_t)eh_get_uleb(&p->c)));
			break;
		case RESTORE_REGISTER:
			restore_rule(p, operand);
			break;
		default:
			execute(p, &extended[op]);
		}
	}
	return !p->c.bad;
}

enum eh_result eh_program_run(const struct eh_frame *tables, const struct eh_fde *fde,
			      uint64_t vaddr, uint32_t *budget, struct eh_row *out)
{
	struct program p;
	struct eh_row initial;

	/* Not initialized as a whole: the remembered rows are 1 KB. */
	p.tables = tables;
	p.fde = fde;
	p.c = (struct eh_cursor){.bytes = tables->in.frames, .vaddr = tables->in.frames_vaddr,
				 .is_32_bit = tables->in.is_32_bit};
	p.wanted = vaddr;
	p.budget = budget;
	p.done = false;
	p.row = (struct eh_row){.start = fde->start, .end = fde->end, .signal = fde->cie.signal,
				.return_column = fde->cie.return_column};
	p.initial = NULL;
	p.nremembered = 0;
	if (!run_instructions(&p, fde->cie.program, fde->cie.end))
		return EH_BAD;
	initial = p.row;
	p.initial = &initial;
	p.nremembered = 0;
	if (!run_instructions(&p, fde->program, fde->program_end) || p.row.cfa.how == EH_UNSET)
		return EH_BAD;
	*out = p.row;
	return EH_OK;
}
