/*
 * A thread's memory as the unwinder sees it: the bytes that were copied with the sample and, once
 * the caller allows it, further ones fetched from the live process in a few big reads.
 *
 * Fetched bytes are newer than the sample and may have changed since; `fetched` says that some were
 * used. One thread; the buffer for fetched bytes is allocated once.
 */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIEW_CHUNK_BYTES 16384u     /* fetched at once: the system call costs more than the bytes */
#define VIEW_CHUNKS_MAX 64u
#define VIEW_ALIGN 4096u

/* See unwind_read in unwind.h. */
typedef size_t view_fetch(void *ctx, uint64_t address, void *to, size_t n);

struct stack_view {
	const uint8_t *bytes;           /* the copy; NULL = none */
	uint64_t start;                 /* its address: the stack pointer */
	uint32_t nbytes;
	uint64_t used;                  /* so many of the copy, from its start on, were needed */

	view_fetch *fetch;              /* NULL = only the copy is available (for now) */
	void *ctx;
	uint8_t *room;
	uint32_t nchunks, chunks_max;
	struct { uint64_t start; uint32_t nbytes; } chunks[VIEW_CHUNKS_MAX];

	bool fetched;                   /* a value came from a chunk */
	uint64_t missing;               /* the address of the last read that failed */
};

bool view_read_far(struct stack_view *v, uint64_t address, unsigned n, uint64_t *out);

/* Read n (1, 2, 4 or 8) bytes, little-endian; false leaves the address in missing. */
static inline bool view_read(struct stack_view *v, uint64_t address, unsigned n, uint64_t *out)
{
	uint64_t at = address - v->start;

	if (n == 8 && v->nbytes >= 8 && at <= v->nbytes - 8) {
		*out = le64(v->bytes + at);
		v->used = at + 8 > v->used ? at + 8 : v->used;
		return true;
	}
	return view_read_far(v, address, n, out);
}
