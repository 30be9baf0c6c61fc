/*
 * Stores stacks that outlive their record: definitions of stack keys, and late parts.
 *
 * With stack caching the kernel writes a key instead of addresses. It defines the key when it
 * leaves the cache, after its uses; then the key may mean another stack. So a use means the first
 * definition after it. Positions are numbers of records in time order. Equal stacks are kept
 * once. One thread at a time. Source: real traces.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define ETW_STORE_BYTES_MAX ((size_t)512 << 20)   /* of all stacks and definitions */
#define ETW_STORE_FRAMES_MAX 8192u                /* of one stack; more do not fit a record */
#define ETW_STACK_NONE UINT32_MAX

struct etw_stack_store;

struct etw_stack_store *etw_stack_store_new(void);            /* NULL = no memory */
void etw_stack_store_free(struct etw_stack_store *s);

/* Keep n addresses of 4 or 8 bytes; the stack's number, or ETW_STACK_NONE at the ceiling. */
uint32_t etw_stack_keep(struct etw_stack_store *s, const uint8_t *addresses, uint32_t n,
			uint32_t pointer_bytes);
const uint64_t *etw_stack_kept(const struct etw_stack_store *s, uint32_t stack, uint32_t *n);

/* Define a key at this position, not before the last one. false at the ceiling. */
bool etw_stack_define(struct etw_stack_store *s, bool kernel, uint64_t key, uint64_t position,
		      uint32_t stack);
/*
 * The stack of a key used at this position, or ETW_STACK_NONE. Positions must not decrease;
 * etw_stack_rewind() starts over.
 */
uint32_t etw_stack_resolve(struct etw_stack_store *s, bool kernel, uint64_t key, uint64_t position);
void etw_stack_rewind(struct etw_stack_store *s);

size_t etw_stack_store_bytes(const struct etw_stack_store *s);
