/*
 * Call frame programs: the instructions of a CIE, then those of an FDE, up to an address.
 *
 * They build up a row of rules; advance_loc moves to the next address, and the row that holds when
 * the wanted address is passed is the answer. Opcodes: DWARF 5, table 7.29; GNU's from GCC's
 * dwarf2.def.
 */
#include "unwind/elf_eh_private.h"

enum {
	CFA_ADVANCE = 0x40,             /* high two bits; the low six are the operand */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_OPERAND = 0x3f,

	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_ADVANCE8 = 0x1d,            /* from MIPS, used by others too */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
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
static void put_rule(struct program *p, uint64_t reg, enum eh_how how, int64_t value,
		     uint64_t other)
{
	if (reg >= EH_REGISTERS)
		return;
	if (other >= EH_REGISTERS)
		how = EH_UNDEFINED;      /* kept in a register that we do not follow */
	if (value != (int32_t)value) {
		p->c.bad = true;
		return;
	}
	p->row.regs[reg] = (struct eh_rule){.how = (uint8_t)how,
					    .reg = (uint8_t)(other & 31),
					    .value = (int32_t)value};
}

/* An offset in units of the CIE. The multiplication is unsigned: hostile numbers may wrap. */
static int64_t factored(const struct program *p, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)p->fde->cie.data_align);
}

static void put_cfa(struct program *p, uint64_t reg, int64_t offset)
{
	if (reg >= EH_REGISTERS || offset != (int32_t)offset) {
		p->c.bad = true;
		return;
	}
	p->row.cfa = (struct eh_rule){.how = EH_VALUE, .reg = (uint8_t)reg,
				      .value = (int32_t)offset};
}

static void put_cfa_offset(struct program *p, int64_t offset)
{
	if (p->row.cfa.how != EH_VALUE)
		p->c.bad = true;
	put_cfa(p, p->row.cfa.reg, offset);
}

static void put_cfa_register(struct program *p, uint64_t reg)
{
	if (p->row.cfa.how != EH_VALUE)
		p->c.bad = true;
	put_cfa(p, reg, p->row.cfa.value);
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

static void restore(struct program *p, uint64_t reg)
{
	if (reg < EH_REGISTERS)
		p->row.regs[reg] = p->initial ? p->initial->regs[reg] : (struct eh_rule){0};
}

static void remember(struct program *p)
{
	if (p->nremembered == EH_REMEMBERED_MAX)
		p->c.bad = true;
	else
		p->remembered[p->nremembered++] = p->row;
}

/* Restores the rules, but not the address. */
static void recall(struct program *p)
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

static void step_cfa(struct program *p, unsigned op)
{
	struct eh_cursor *c = &p->c;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = eh_get_uleb(c);
		put_cfa(p, reg, (int64_t)eh_get_uleb(c));
		break;
	case CFA_DEF_CFA_SF:
		reg = eh_get_uleb(c);
		put_cfa(p, reg, factored(p, eh_get_sleb(c)));
		break;
	case CFA_DEF_CFA_REGISTER:
		put_cfa_register(p, eh_get_uleb(c));
		break;
	case CFA_DEF_CFA_OFFSET:
		put_cfa_offset(p, (int64_t)eh_get_uleb(c));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		put_cfa_offset(p, factored(p, eh_get_sleb(c)));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		p->row.cfa = (struct eh_rule){.how = EH_EXPRESSION,
					      .value = (int32_t)skip_expression(p)};
		break;
	default:
		c->bad = true;
	}
}

static void step_rule(struct program *p, unsigned op)
{
	struct eh_cursor *c = &p->c;
	uint64_t reg = eh_get_uleb(c);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		put_rule(p, reg, EH_AT, factored(p, (int64_t)eh_get_uleb(c)), 0);
		break;
	case CFA_OFFSET_EXTENDED_SF:
		put_rule(p, reg, EH_AT, factored(p, eh_get_sleb(c)), 0);
		break;
	case CFA_GNU_NEGATIVE_OFFSET:
		put_rule(p, reg, EH_AT, factored(p, (int64_t)(0 - eh_get_uleb(c))), 0);
		break;
	case CFA_VAL_OFFSET:
		put_rule(p, reg, EH_VALUE, factored(p, (int64_t)eh_get_uleb(c)), 0);
		break;
	case CFA_VAL_OFFSET_SF:
		put_rule(p, reg, EH_VALUE, factored(p, eh_get_sleb(c)), 0);
		break;
	case CFA_RESTORE_EXTENDED:
		restore(p, reg);
		break;
	case CFA_UNDEFINED:
		put_rule(p, reg, EH_UNDEFINED, 0, 0);
		break;
	case CFA_SAME_VALUE:
		put_rule(p, reg, EH_SAME, 0, 0);
		break;
	case CFA_REGISTER:
		put_rule(p, reg, EH_IN_REGISTER, 0, eh_get_uleb(c));
		break;
	case CFA_EXPRESSION:
		put_rule(p, reg, EH_AT_EXPRESSION, skip_expression(p), 0);
		break;
	case CFA_VAL_EXPRESSION:
		put_rule(p, reg, EH_EXPRESSION, skip_expression(p), 0);
		break;
	default:
		c->bad = true;
	}
}

static void step_extended(struct program *p, unsigned op)
{
	struct eh_cursor *c = &p->c;

	switch (op) {
	case CFA_NOP:
		break;
	case CFA_SET_LOC:
		move_to(p, eh_get_pointer(c, p->fde->cie.pointers, p->tables->in.header_vaddr));
		break;
	case CFA_ADVANCE1:
		advance(p, eh_get(c, 1));
		break;
	case CFA_ADVANCE2:
		advance(p, eh_get(c, 2));
		break;
	case CFA_ADVANCE4:
		advance(p, eh_get(c, 4));
		break;
	case CFA_ADVANCE8:
		advance(p, eh_get(c, 8));
		break;
	case CFA_REMEMBER_STATE:
		remember(p);
		break;
	case CFA_RESTORE_STATE:
		recall(p);
		break;
	case CFA_GNU_ARGS_SIZE:
		eh_get_uleb(c);
		break;
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_SF:
	case CFA_DEF_CFA_REGISTER:
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_OFFSET_SF:
	case CFA_DEF_CFA_EXPRESSION:
		step_cfa(p, op);
		break;
	default:
		step_rule(p, op);
	}
}

/* Run the instructions of [at, end) until the wanted address is reached; false when malformed. */
static bool run(struct program *p, size_t at, size_t end)
{
	p->c.at = at;
	p->c.end = end;
	while (p->c.at < p->c.end && !p->c.bad && !p->done) {
		unsigned op = (unsigned)eh_get(&p->c, 1);
		unsigned operand = op & CFA_OPERAND;

		if (!*p->budget)
			return false;
		(*p->budget)--;
		switch (op & ~(unsigned)CFA_OPERAND) {
		case CFA_ADVANCE:
			advance(p, operand);
			break;
		case CFA_OFFSET:
			put_rule(p, operand, EH_AT, factored(p, (int64_t)eh_get_uleb(&p->c)), 0);
			break;
		case CFA_RESTORE:
			restore(p, operand);
			break;
		default:
			step_extended(p, op);
		}
	}
	return !p->c.bad;
}

enum eh_result eh_program_run(const struct eh_frame *tables, const struct eh_fde *fde,
			      uint64_t vaddr, uint32_t *budget, struct eh_row *out)
{
	struct program p;
	struct eh_row initial;

	p.tables = tables;
	p.fde = fde;
	p.c = (struct eh_cursor){.bytes = tables->in.frames, .vaddr = tables->in.frames_vaddr};
	p.wanted = vaddr;
	p.budget = budget;
	p.done = false;
	p.row = (struct eh_row){.start = fde->start, .end = fde->end, .signal = fde->cie.signal,
				.return_column = fde->cie.return_column};
	p.initial = NULL;
	p.nremembered = 0;
	if (!run(&p, fde->cie.program, fde->cie.end))
		return EH_BAD;
	initial = p.row;
	p.initial = &initial;
	p.nremembered = 0;
	if (!run(&p, fde->program, fde->program_end))
		return EH_BAD;
	if (p.row.cfa.how == EH_UNSET)
		return EH_BAD;
	*out = p.row;
	return EH_OK;
}
