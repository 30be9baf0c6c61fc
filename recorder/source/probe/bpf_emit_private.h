/*
 * Instructions of the kernel's virtual machine (BPF), one call each, for the programs of this
 * folder. Names are those of Documentation/bpf/standardization/instruction-set.rst.
 */
#pragma once

#include "source/probe/bpf_code_linux.h"
#include "source/ring/bpf_call_linux.h"

#define FIXUPS_MAX 128u

static inline void emit(struct bpf_code *c, uint8_t code, uint8_t dst, uint8_t src, int16_t off,
			int32_t imm)
{
	if (c->n == BPF_CODE_MAX)
		c->too_long = true;
	else
		c->insns[c->n++] = bpf_insn_of(code, dst, src, off, imm);
}

static inline void move(struct bpf_code *c, uint8_t to, uint8_t from)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static inline void set(struct bpf_code *c, uint8_t to, int32_t value)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

/* A 64-bit number, or with BPF_PSEUDO_MAP_FD a table; takes two instructions. */
static inline void set_wide(struct bpf_code *c, uint8_t to, uint8_t kind, uint64_t value)
{
	emit(c, BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, (int32_t)value);
	emit(c, 0, 0, 0, 0, (int32_t)(value >> 32));
}

static inline void alu(struct bpf_code *c, uint8_t op, uint8_t to, int32_t value)
{
	emit(c, BPF_ALU64 | op | BPF_K, to, 0, 0, value);
}

static inline void load(struct bpf_code *c, uint8_t to, uint8_t base, int16_t off)
{
	emit(c, BPF_LDX | BPF_MEM | BPF_DW, to, base, off, 0);
}

static inline void call(struct bpf_code *c, int helper)
{
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

/* r0 = the value that a table has for the key at this place of the program's stack, or NULL. */
static inline void look_up(struct bpf_code *c, int table, int32_t key)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)table);
	move(c, BPF_REG_2, BPF_REG_10);
	alu(c, BPF_ADD, BPF_REG_2, key);
	call(c, BPF_FUNC_map_lookup_elem);
}

static inline void leave(struct bpf_code *c, int32_t result)
{
	set(c, BPF_REG_0, result);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Jumps forward to a place that is not known yet. */
struct label {
	unsigned jumps[FIXUPS_MAX], n;
};

static inline void jump(struct bpf_code *c, struct label *to, uint8_t op, uint8_t dst,
			uint8_t src, int32_t imm)
{
	if (to->n == FIXUPS_MAX)
		c->too_long = true;
	else
		to->jumps[to->n++] = c->n;
	emit(c, BPF_JMP | op, dst, src, 0, imm);
}

static inline void here(struct bpf_code *c, struct label *label)
{
	unsigned i;

	for (i = 0; i < label->n && !c->too_long; i++)
		c->insns[label->jumps[i]] |= (uint64_t)(c->n - label->jumps[i] - 1) << 16;
	label->n = 0;
}
