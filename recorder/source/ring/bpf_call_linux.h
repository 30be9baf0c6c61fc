/*
 * Tables and programs of the kernel's virtual machine (BPF), by bpf(2); no library. Tables have
 * keys of 8 bytes unless they are arrays. Results are descriptors, or -1 with errno.
 *
 * Threads: any.
 */
#pragma once

#include <linux/bpf.h>
#include <stdint.h>

int bpf_call(int command, union bpf_attr *attr);

/* type: BPF_MAP_TYPE_...; flags: BPF_F_... */
int bpf_table_new(int type, unsigned key_bytes, unsigned value_bytes, unsigned max,
		  unsigned flags);
/* BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM. value: NULL where none is used */
int bpf_table_ask(int command, int table, const void *key, void *value);

/* insns: n instructions, each a struct bpf_insn as one number. type: BPF_PROG_TYPE_... */
int bpf_program_load(const uint64_t *insns, unsigned n, int type, const char *name);
/* The same for a tracepoint, by the number of its type: it sees the structures themselves. */
int bpf_program_load_typed(const uint64_t *insns, unsigned n, uint32_t tracepoint,
			   const char *name);
/* Run it at a raw tracepoint; NULL = that of its type. returns  what keeps it there */
int bpf_program_attach(int program, const char *tracepoint);

static inline uint64_t bpf_insn_of(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	return code | (uint64_t)dst << 8 | (uint64_t)src << 12 | (uint64_t)(uint16_t)off << 16 |
	       (uint64_t)(uint32_t)imm << 32;
}
