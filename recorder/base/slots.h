/*
 * Numbered slots: fixed-size items with stable addresses, small numbers and a ceiling.
 *
 * Items live in chunks that never move, so a pointer stays good until its slot is freed, and a
 * number (u32) can stand for it in compact lists. slots_add() and slots_free_one() need the owner's
 * lock or thread; slots_get() may be called by any thread for a number it holds a reference to.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS_NONE UINT32_MAX
#define SLOTS_CHUNK 1024u

struct slots {
	size_t item_bytes;
	uint32_t max;                        /* ceiling, rounded up to whole chunks */
	uint32_t end;                        /* slots ever used: lower numbers may be live */
	uint32_t used;
	uint32_t free_first;                 /* chain of freed slots, through their first 4 bytes */
	_Atomic(char *) *chunks;
};

int slots_init(struct slots *s, size_t item_bytes, uint32_t max);   /* 0 or ERR_MEMORY */
void slots_free(struct slots *s);
/* A zeroed item; returns its number, or SLOTS_NONE at the ceiling or without memory. */
uint32_t slots_add(struct slots *s);
void slots_free_one(struct slots *s, uint32_t number);
size_t slots_bytes(const struct slots *s);

static inline void *slots_get(const struct slots *s, uint32_t number)
{
	char *chunk = atomic_load_explicit(&s->chunks[number / SLOTS_CHUNK], memory_order_acquire);

	return chunk + (number % SLOTS_CHUNK) * s->item_bytes;
}
