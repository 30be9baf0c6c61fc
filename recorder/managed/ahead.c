#include "managed/ahead.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_AHEAD 4u                        /* places that a reader may leave out in a row */

void managed_ahead_add(struct managed_ahead *a, uint64_t address, size_t n)
{
	uint32_t i;

	for (i = 0; a->keeps && i < a->npieces; i++)
		if (a->pieces[i].address == address && a->pieces[i].n == n)
			return;
	if (ARRAY_ROOM(a->pieces, a->room, a->npieces + 1))
		return;
	a->pieces[a->npieces++] = (struct managed_piece){.address = address, .n = n};
	a->nbytes += n;
}

static size_t read_copy(void *ctx, uint64_t address, void *to, size_t n)
{
	struct managed_ahead *a = ctx;
	uint32_t i;

	for (i = a->next; i < a->npieces && i < a->next + LOOK_AHEAD; i++) {
		const struct managed_piece *p = &a->pieces[i];

		if (p->address != address || p->n != n)
			continue;
		memcpy(to, p->to, p->got);
		a->next = i + 1;
		return p->got;
	}
	return a->target->read(a->target->ctx, address, to, n);
}

static bool is_in(uint64_t address, size_t n, uint64_t from, size_t nfrom)
{
	return address >= from && n <= nfrom && address - from <= nfrom - n;
}

static size_t read_picture(void *ctx, uint64_t address, void *to, size_t n)
{
	struct managed_ahead *a = ctx;
	size_t got;
	uint32_t i;

	/* The next is most often in the same place, or in one soon after it. */
	for (i = 0; i < a->npieces; i++, a->next = (a->next + 1) % a->npieces) {
		const struct managed_piece *p = &a->pieces[a->next];

		if (!is_in(address, n, p->address, p->got))
			continue;
		memcpy(to, (uint8_t *)p->to + (address - p->address), n);
		return n;
	}
	for (i = 0; i < a->nkept; i++)
		if (is_in(address, n, a->kept[i].address, a->kept[i].n)) {
			memcpy(to, a->kept[i].bytes + (address - a->kept[i].address), n);
			return n;
		}
	got = a->target->read(a->target->ctx, address, to, n);
	if (got == n && n <= AHEAD_KEPT_BYTES && a->nkept < AHEAD_KEPT) {
		a->kept[a->nkept].address = address;
		a->kept[a->nkept].n = (uint8_t)n;
		memcpy(a->kept[a->nkept++].bytes, to, n);
	}
	return got;
}

static void read_pieces_of_target(void *ctx, struct managed_piece *pieces, size_t n)
{
	const struct managed_memory *target = ((struct managed_ahead *)ctx)->target;

	target->read_pieces(target->ctx, pieces, n);
}

void managed_ahead_fetch(struct managed_ahead *a, const struct managed_memory *target)
{
	uint8_t *at;
	uint32_t i;

	a->target = target;
	a->memory = (struct managed_memory){.read = a->keeps ? read_picture : read_copy,
					    .ctx = a};
	if (a->keeps && target->read_pieces)
		a->memory.read_pieces = read_pieces_of_target;
	a->bytes = target->read_pieces && a->npieces ? malloc(a->nbytes + 1) : NULL;
	if (!a->bytes) {
		a->npieces = 0;
		return;
	}
	for (i = 0, at = a->bytes; i < a->npieces; at += a->pieces[i++].n)
		a->pieces[i].to = at;
	target->read_pieces(target->ctx, a->pieces, a->npieces);
}

void managed_ahead_free(struct managed_ahead *a)
{
	free(a->pieces);
	free(a->bytes);
}
