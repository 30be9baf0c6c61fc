/* The stacks of a nettrace stream; see nettrace_private.h. */
#include "source/dotnet/nettrace_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void nettrace_stacks_forget(struct nettrace_stacks *s)
{
	s->n = 0;
}

void nettrace_stacks_free(struct nettrace_stacks *s)
{
	if (s->shares)
		shares_hold(s->shares, &s->share, 0);
	free(s->all);
	free(s->bytes);
	s->all = NULL;
	s->bytes = NULL;
	s->n = s->room = 0;
	s->bytes_room = 0;
}

uint32_t nettrace_stack_hash(const uint8_t *stack, uint32_t nbytes)
{
	uint64_t mixed = nbytes;
	uint32_t at;

	for (at = 0; at + 8 <= nbytes; at += 8)      /* factors are odd, and do not wait in turn */
		mixed += le64(stack + at) * (0x9e3779b97f4a7c15u + 2 * at);
	return (uint32_t)(mixed * 0x9e3779b97f4a7c15u >> 32);
}

static size_t used_bytes(const struct nettrace_stacks *s)
{
	return s->n ? s->all[s->n - 1].end : 0;
}

/* Make room for one more stack; false = a ceiling, a share or the memory is exhausted. */
static bool make_room(struct nettrace_stacks *s, uint32_t nbytes)
{
	const size_t each = sizeof(*s->all);
	size_t need = used_bytes(s) + nbytes, room = s->bytes_room ? s->bytes_room : 4096;
	uint8_t *bytes;

	if (s->n == NETTRACE_STACKS_MAX || need > NETTRACE_STACKS_MAX_BYTES)
		return false;
	while (room < need)
		room *= 2;
	if (room > s->bytes_room) {
		if (s->shares && !shares_hold(s->shares, &s->share, room + s->room * each))
			return false;
		bytes = realloc(s->bytes, room);
		if (!bytes)
			return false;
		s->bytes = bytes;
		s->bytes_room = room;
	}
	return !ARRAY_ROOM(s->all, s->room, s->n + 1);
}

int nettrace_stacks_take(struct nettrace_stacks *s, struct nettrace_in *in)
{
	uint32_t first = (uint32_t)in_number(in, 4), n = (uint32_t)in_number(in, 4), size, kept;
	const uint8_t *bytes;
	bool full = false;
	size_t used;

	if (!s->n || first != s->first + s->n) {
		s->first = first;
		s->n = 0;
	}
	for (; n && !in->bad; n--) {
		size = (uint32_t)in_number(in, 4);
		bytes = in_bytes(in, size);
		if (!bytes)
			break;
		kept = size < NETTRACE_STACK_MAX_BYTES ? size : NETTRACE_STACK_MAX_BYTES;
		full = full || s->skipped || !make_room(s, kept);
		if (full)
			continue;
		used = used_bytes(s);
		memcpy(s->bytes + used, bytes, kept);
		s->all[s->n++] = (struct nettrace_stack){(uint32_t)(used + kept),
							 nettrace_stack_hash(bytes, kept)};
	}
	return in->bad ? ERR_FORMAT : 0;
}

const uint8_t *nettrace_stacks_get(const struct nettrace_stacks *s, uint32_t number,
				   uint32_t *nbytes, uint32_t *hash)
{
	uint32_t i = number - s->first, begin;

	*nbytes = 0;
	if (number < s->first || i >= s->n)
		return NULL;
	begin = i ? s->all[i - 1].end : 0;
	*nbytes = s->all[i].end - begin;
	*hash = s->all[i].hash;
	return *nbytes ? s->bytes + begin : NULL;
}
