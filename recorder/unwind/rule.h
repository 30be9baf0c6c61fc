/*
 * Unwind rules in 8 bytes, and a cache of them.
 *
 * Nearly every row of compiled code says: the frame begins at RSP or RBP + n, the return address is
 * right below that, RBP is saved there or kept. Such a row is compiled once per address and
 * followed in nanoseconds; any other row is interpreted each time (RULE_GENERAL).
 *
 * Threads: a cache belongs to one.
 */
#pragma once

#include "unwind/elf_eh_frame.h"

enum rule_kind {
	RULE_EMPTY,                     /* nothing is cached in this slot */
	RULE_NONE,                      /* no FDE: follow the frame pointer */
	RULE_PLAIN,                     /* CFA = base + offset */
	RULE_DEREF,                     /* CFA = the word at (base + offset) + addend */
	RULE_ROOT,                      /* the return address is undefined: there is no caller */
	RULE_GENERAL,                   /* interpret the row */
	RULE_BAD,                       /* malformed tables */
};

struct rule {
	uint8_t kind;
	uint8_t base;                   /* enum eh_register */
	int8_t rbp_slot;                /* the caller's RBP is at CFA + words; 0 = RBP is kept */
	uint8_t addend;                 /* RULE_DEREF */
	int32_t offset;
};

/* Compile a row that holds at vaddr. Never RULE_EMPTY. */
struct rule rule_compile(const struct eh_frame *tables, const struct eh_row *row, uint64_t vaddr);

#define RULE_CACHE_ENTRIES 16384u       /* direct-mapped, 256 KiB: hits 88-94 % on six programs */

struct rule_cache {
	struct {
		uint64_t key;           /* tables, and the address relative to their first one */
		struct rule rule;
	} entries[RULE_CACHE_ENTRIES];
};

/*
 * The rule of an address, compiled when it is not cached.
 *
 * budget   of instructions; when it runs out, the missing rule is not cached
 */
struct rule rule_find(struct rule_cache *cache, const struct eh_frame *tables, uint64_t vaddr,
		      uint32_t *budget);
