#include "unwind/rule.h"

#include "unwind/elf_eh_private.h"

#include <string.h>

enum { LEB_MAX = 3 };                    /* bytes of an offset that fits a rule */

/* ---- from row to rule ------------------------------------------------------------------------ */

/* Rules that need nothing, or only what always holds. */
static bool is_kept(const struct eh_rule *rule)
{
	return rule->how == EH_UNSET || rule->how == EH_SAME;
}

/*
 * DW_OP_bregN: its register and offset. Returns its length in bytes, 0 when it is another opcode.
 */
static size_t read_breg(bool is_32_bit, const uint8_t *at, size_t n, struct rule *out)
{
	int32_t v = 0;
	unsigned reg;
	size_t i;

	if (n < 2 || at[0] < 0x70)
		return 0;
	reg = eh_register(is_32_bit, at[0] - 0x70u);
	if (reg == EH_REGISTERS)
		return 0;
	for (i = 1; i < n && i <= LEB_MAX; i++) {
		v |= (at[i] & 0x7f) << (7 * (i - 1));
		if (at[i] & 0x80)
			continue;
		if (at[i] & 0x40)
			v -= 1 << (7 * i);
		out->base = (uint8_t)reg;
		out->offset = v;
		return i + 1;
	}
	return 0;
}

/*
 * The two forms that tools and assembly writers use:
 *
 *   bregN n, deref [, plus_uconst m]
 *   rsp + 8 + ((rip & 15 >= k) << 3)     a PLT's: 8 more once its entry has pushed a number; k is
 *                                        11, or another if the entry begins with endbr64
 */
static bool compile_expression(const struct eh_frame *tables, int32_t at, uint64_t vaddr,
			       struct rule *out)
{
	static const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
	bool is_32_bit = eh_frame_is_32_bit(tables);
	const uint8_t *e;
	size_t n, i;

	if (!eh_frame_expression(tables, at, &e, &n))
		return false;
	if (!is_32_bit && n == sizeof(plt) && !memcmp(e, plt, 6) && !memcmp(e + 7, plt + 7, 4) &&
	    e[6] >= 0x30 && e[6] <= 0x3f) {
		out->kind = RULE_PLAIN;
		out->base = EH_RSP;
		out->offset = (vaddr & 15) >= (uint64_t)(e[6] - 0x30) ? 16 : 8;
		return true;
	}
	i = read_breg(is_32_bit, e, n, out);
	if (!i || n == i || e[i] != 0x06)
		return false;
	out->kind = RULE_DEREF;
	if (n == i + 1)
		return true;
	out->addend = e[n - 1];
	return n == i + 3 && e[i + 1] == 0x23 && out->addend < 0x80;
}

static bool compile_rbp(const struct eh_rule *rbp, int word, struct rule *out)
{
	if (is_kept(rbp))
		return true;
	if (rbp->how != EH_AT || rbp->value % word || rbp->value < -128 * word || rbp->value >= 0)
		return false;
	out->rbp_slot = (int8_t)(rbp->value / word);
	return true;
}

struct rule rule_compile(const struct eh_frame *tables, const struct eh_row *row, uint64_t vaddr)
{
	const struct eh_rule *ra = &row->regs[row->return_column];
	struct rule general = {.kind = RULE_GENERAL}, rule = {0};
	int word = eh_frame_is_32_bit(tables) ? 4 : 8;

	if (row->signal || row->return_column != EH_RIP)
		return general;
	if (ra->how == EH_UNDEFINED)
		return (struct rule){.kind = RULE_ROOT};
	if (ra->how != EH_AT || ra->value != -word || !is_kept(&row->regs[EH_RSP]) ||
	    !compile_rbp(&row->regs[EH_RBP], word, &rule))
		return general;
	if (row->cfa.how == EH_VALUE) {
		rule.kind = RULE_PLAIN;
		rule.base = row->cfa.reg;
		rule.offset = row->cfa.value;
		return rule;
	}
	return compile_expression(tables, row->cfa.value, vaddr, &rule) ? rule : general;
}

/* ---- cache ----------------------------------------------------------------------------------- */

static struct rule make_rule(const struct eh_frame *tables, uint64_t vaddr, uint32_t *budget)
{
	struct eh_row row;

	switch (eh_frame_row(tables, vaddr, budget, &row)) {
	case EH_OK:
		return rule_compile(tables, &row, vaddr);
	case EH_NONE:
		return (struct rule){.kind = RULE_NONE};
	default:
		return (struct rule){.kind = RULE_BAD};
	}
}

struct rule rule_find(struct rule_cache *cache, const struct eh_frame *tables, uint64_t vaddr,
		      uint32_t *budget)
{
	uint64_t distance = vaddr - eh_frame_first(tables);
	uint64_t key = (uint64_t)eh_frame_id(tables) << 32 | distance;
	/* Fibonacci hashing: the high bits of the product, for 2^14 entries. */
	size_t slot = (size_t)((key * 0x9e3779b97f4a7c15u) >> 50);
	struct rule rule = cache->entries[slot].rule;

	if (distance > UINT32_MAX)
		return make_rule(tables, vaddr, budget);
	if (rule.kind != RULE_EMPTY && cache->entries[slot].key == key)
		return rule;
	rule = make_rule(tables, vaddr, budget);
	if (*budget) {
		cache->entries[slot].key = key;
		cache->entries[slot].rule = rule;
	}
	return rule;
}
