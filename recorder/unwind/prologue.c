/* Source: Intel's manual, volume 2, chapter 2 (instruction format) and appendix A (opcodes). */
#include "unwind/prologue.h"

#include "base/bytes.h"

enum { RSP = 4, RBP = 5, REX_B = 1, REX_R = 4, REX_W = 8 };

/* One instruction, without its prefixes. */
struct instruction {
	const uint8_t *at;
	size_t n;                            /* that can be read */
	size_t length;
	unsigned op, modrm, rex;             /* op: 0x0f00 + the second byte of two */
};

struct prologue {
	bool pushed, made;                   /* RBP was pushed, was set to RSP */
	uint32_t depth;
};

enum step { FOLLOWED, ENDED, REFUSED };

/* ---- decoding -------------------------------------------------------------------------------- */

/* Bytes of a ModRM byte with what belongs to it. */
static size_t modrm_bytes(const struct instruction *i)
{
	unsigned mode = i->modrm >> 6, rm = i->modrm & 7;
	size_t n = 1;

	if (mode == 3)
		return n;
	if (rm == 4) {
		n++;
		if (mode == 0 && i->length + 1 < i->n && (i->at[i->length + 1] & 7) == 5)
			n += 4;
	}
	if (mode == 1)
		n += 1;
	else if (mode == 2 || (mode == 0 && rm == 5))
		n += 4;
	return n;
}

/* How a known opcode goes on: -1 = it is not known; else bytes of its constant, MODRM set. */
enum { UNKNOWN = -1, MODRM = 0x100 };

static int form_of_two(unsigned second)
{
	if (second >= 0x80 && second <= 0x8f)
		return 4;                                   /* jcc */
	if (second >= 0x40 && second <= 0x4f)
		return MODRM;                               /* cmov */
	switch (second) {
	case 0x10: case 0x11: case 0x12: case 0x13: case 0x16: case 0x17: case 0x1e: case 0x1f:
	case 0x28: case 0x29: case 0x57: case 0x6c: case 0x6e: case 0x6f: case 0x7e: case 0x7f:
	case 0xaf: case 0xb6: case 0xb7: case 0xbe: case 0xbf: case 0xd6: case 0xef:
		return MODRM;
	}
	return UNKNOWN;
}

static int form_of(const struct instruction *i)
{
	unsigned op = i->op;

	if (op >> 8 == 0x0f)
		return form_of_two(op & 0xff);
	if (op < 0x40 && (op & 7) < 4)
		return MODRM;                               /* add, or, and, sub, xor, cmp */
	if (op >= 0x50 && op <= 0x57)
		return 0;                                   /* push */
	if (op >= 0x70 && op <= 0x7f)
		return 1;                                   /* jcc */
	if (op >= 0xb8 && op <= 0xbf)
		return i->rex & REX_W ? 8 : 4;              /* mov */
	switch (op) {
	case 0x90:
		return 0;
	case 0x63: case 0x84: case 0x85: case 0x88: case 0x89: case 0x8a: case 0x8b: case 0x8d:
		return MODRM;
	case 0x80: case 0x83: case 0xc1: case 0xc6:
		return MODRM + 1;
	case 0x81: case 0xc7:
		return MODRM + 4;
	}
	return UNKNOWN;
}

static bool decode(const uint8_t *code, size_t n, struct instruction *out)
{
	size_t at = 0;
	bool short_constant = false;
	int form;

	*out = (struct instruction){.at = code, .n = n};
	for (; at < n && (code[at] == 0x66 || code[at] == 0x64 || code[at] == 0xf3 ||
			  code[at] == 0xf2); at++)
		short_constant |= code[at] == 0x66;
	if (at < n && code[at] >> 4 == 4)
		out->rex = code[at++];
	if (at + 2 > n)
		return at < n && code[at] >> 3 == 10 &&        /* a push may be the last byte */
		       (out->op = code[at], out->length = at + 1, true);
	out->op = code[at++];
	if (out->op == 0x0f)
		out->op = 0x0f00 | code[at++];
	form = form_of(out);
	if (form == UNKNOWN || (short_constant && (form & 0xff) == 4))
		return false;
	out->length = at;
	if (form & MODRM) {
		if (at >= n)
			return false;
		out->modrm = code[at];
		out->length += modrm_bytes(out);
	}
	out->length += (size_t)(form & 0xff);
	return out->length <= n;
}

/* ---- effects --------------------------------------------------------------------------------- */

/* The general register that it writes to; -1 = none of the lower eight. */
static int written(const struct instruction *i)
{
	unsigned op = i->op, reg = i->modrm >> 3 & 7, rm = i->modrm & 7;
	bool to_reg, to_rm;

	if (op >= 0xb8 && op <= 0xbf)
		return i->rex & REX_B ? -1 : (int)(op & 7);
	to_reg = (op < 0x38 && (op & 6) == 2) || op == 0x63 || op == 0x8a || op == 0x8b ||
		 op == 0x8d || (op >= 0x0f40 && op <= 0x0f4f) || op == 0x0faf || op == 0x0fb6 ||
		 op == 0x0fb7 || op == 0x0fbe || op == 0x0fbf;
	to_rm = (op < 0x38 && (op & 6) == 0) || op == 0x88 || op == 0x89 || op == 0xc1 ||
		op == 0xc6 || op == 0xc7 || op == 0x0f7e ||
		((op == 0x80 || op == 0x81 || op == 0x83) && reg != 7);
	if (to_reg)
		return i->rex & REX_R ? -1 : (int)reg;
	if (to_rm && i->modrm >> 6 == 3)
		return i->rex & REX_B ? -1 : (int)rm;
	return -1;
}

static bool is_rsp_to_rbp(const struct instruction *i)
{
	return (i->rex & (REX_W | REX_R | REX_B)) == REX_W &&
	       ((i->op == 0x89 && i->modrm == 0xe5) || (i->op == 0x8b && i->modrm == 0xec));
}

static enum step push(const struct instruction *i, struct prologue *p)
{
	if (p->made) {
		p->depth += 8;
		return FOLLOWED;
	}
	if (p->pushed)
		return REFUSED;
	p->pushed = i->op == 0x50 + RBP && !(i->rex & REX_B);
	return p->pushed ? FOLLOWED : REFUSED;
}

/* sub or add of a constant */
static enum step move_rsp(const struct instruction *i, struct prologue *p)
{
	unsigned what = i->modrm >> 3 & 7;
	int64_t by;

	if ((i->op != 0x83 && i->op != 0x81) || (what != 5 && what != 0) || !(i->rex & REX_W))
		return REFUSED;
	by = i->op == 0x83 ? (int8_t)i->at[i->length - 1]
			   : (int32_t)le32(i->at + i->length - 4);
	by = what == 5 ? by : -by;
	if (!p->made || by < 0 || by % 8)
		return REFUSED;
	p->depth += (uint32_t)by;
	return FOLLOWED;
}

static enum step follow(const struct instruction *i, struct prologue *p)
{
	bool jump = (i->op >= 0x70 && i->op <= 0x7f) || (i->op >= 0x0f80 && i->op <= 0x0f8f);
	int to;

	if (jump)
		return p->made ? ENDED : FOLLOWED;
	if (i->op >= 0x50 && i->op <= 0x57)
		return push(i, p);
	if (is_rsp_to_rbp(i)) {
		p->made = p->pushed && !p->made;
		return p->made ? FOLLOWED : REFUSED;
	}
	to = written(i);
	if (to == RSP)
		return move_rsp(i, p);
	return to == RBP ? REFUSED : FOLLOWED;
}

bool prologue_depth(const uint8_t *code, size_t n, uint32_t *depth)
{
	struct prologue p = {0};
	struct instruction i;
	enum step step = FOLLOWED;

	while (step == FOLLOWED && decode(code, n, &i)) {
		step = follow(&i, &p);
		code += i.length;
		n -= i.length;
	}
	*depth = p.depth;
	return step != REFUSED && p.made;
}

/* ---- calls ----------------------------------------------------------------------------------- */

bool prologue_is_call(const uint8_t *before, bool *direct, int32_t *by)
{
	/* FF /2: ModRM, SIB and displacement make 2, 3, 4, 6 or 7 bytes. */
	static const uint8_t lengths[] = {2, 3, 4, 6, 7};
	unsigned k;

	*direct = before[2] == 0xe8;
	*by = *direct ? (int32_t)le32(before + 3) : 0;
	for (k = 0; !*direct && k < sizeof(lengths); k++) {
		const uint8_t *at = before + PROLOGUE_CALL_BYTES - lengths[k];
		struct instruction i = {.at = at, .n = lengths[k], .length = 1, .modrm = at[1]};

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2 && 1 + modrm_bytes(&i) == lengths[k])
			return true;
	}
	return *direct;
}

enum prologue_call prologue_call_before(const uint8_t *before, uint64_t distance)
{
	bool direct;
	int32_t by;

	if (!prologue_is_call(before, &direct, &by))
		return PROLOGUE_NO_CALL;
	return direct && (uint64_t)(int64_t)by == distance ? PROLOGUE_CALLS_IT
							   : PROLOGUE_CALLS_ELSEWHERE;
}
