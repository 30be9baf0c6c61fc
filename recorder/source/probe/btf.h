/*
 * The kernel's types, as /sys/kernel/btf/vmlinux has them (BTF): numbers of types by name, and
 * where members of structures are. Programs of switches_linux.h read structures by them.
 *
 * Source: Documentation/bpf/btf.rst. Pure functions of bytes, which may be any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BTF_MAX_BYTES ((size_t)64 << 20)     /* that of a kernel with all modules built in has 10 */

enum btf_kind { BTF_STRUCT = 4, BTF_TYPEDEF = 8, BTF_FUNCTION = 12 };

struct btf {
	const uint8_t *types, *strings;      /* strings: the last one ends in a NUL */
	uint32_t types_bytes, strings_bytes;
};

struct btf_type {
	enum btf_kind kind;
	const char *name;
	uint32_t id;                         /* 0 = there is none */
	uint32_t at;                         /* its place among the types */
};

/* Borrows bytes. false: they are no BTF of this byte order */
bool btf_open(const uint8_t *bytes, size_t n, struct btf *out);
/* Find all that are wanted, by kind and name, in one pass. */
void btf_find(const struct btf *b, struct btf_type *wanted, unsigned n);
/* Where a member of a structure is, in bytes. false: it is not there, or is a bit field */
bool btf_member(const struct btf *b, const struct btf_type *structure, const char *name,
		uint32_t *offset);
