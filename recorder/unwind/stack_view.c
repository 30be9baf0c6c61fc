#include "unwind/stack_view.h"

static bool holds(uint64_t start, uint32_t nbytes, uint64_t address, unsigned n)
{
	return nbytes >= n && address - start <= nbytes - n;
}

static bool find_chunk(struct stack_view *v, uint64_t address, unsigned n, uint64_t *out)
{
	const uint8_t *at;
	uint32_t i;

	for (i = 0; i < v->nchunks; i++) {
		if (!holds(v->chunks[i].start, v->chunks[i].nbytes, address, n))
			continue;
		at = v->room + (size_t)i * VIEW_CHUNK_BYTES;
		*out = le_sized(at + (address - v->chunks[i].start), n);
		v->fetched = true;
		return true;
	}
	return false;
}

/* Fetch a chunk from the address's page on. A failed one stays, empty, because it counts. */
static void fetch_chunk(struct stack_view *v, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(VIEW_ALIGN - 1);
	size_t got;

	if (v->nchunks == v->chunks_max || start > UINT64_MAX - VIEW_CHUNK_BYTES)
		return;
	got = v->fetch(v->ctx, start, v->room + (size_t)v->nchunks * VIEW_CHUNK_BYTES,
		       VIEW_CHUNK_BYTES);
	v->chunks[v->nchunks].start = start;
	v->chunks[v->nchunks].nbytes =
		got < VIEW_CHUNK_BYTES ? (uint32_t)got : VIEW_CHUNK_BYTES;
	v->nchunks++;
}

bool view_read_far(struct stack_view *v, uint64_t address, unsigned n, uint64_t *out)
{
	if (v->bytes && holds(v->start, v->nbytes, address, n)) {
		*out = le_sized(v->bytes + (address - v->start), n);
		if (address - v->start + n > v->used)
			v->used = address - v->start + n;
		return true;
	}
	if (v->fetch) {
		if (find_chunk(v, address, n, out))
			return true;
		fetch_chunk(v, address);
		if (find_chunk(v, address, n, out))
			return true;
	}
	v->missing = address;
	return false;
}
