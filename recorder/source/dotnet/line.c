#include "source/dotnet/line.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define GUIDS_BYTES 32u                      /* activity and related activity, before the payload */

/* A heap: all[0] is the oldest; children of i are 2i+1 and 2i+2. */
struct dotnet_line {
	struct dotnet_held *all;
	uint32_t n, room;
	uint64_t order;
	size_t nbytes;
};

int dotnet_line_new(struct dotnet_line **out, struct err *err)
{
	struct dotnet_line *line = calloc(1, sizeof(*line));

	if (!line)
		return err_memory(err, "for events of .NET programs");
	*out = line;
	return 0;
}

static void drop(struct dotnet_line *line, struct dotnet_held *h)
{
	line->nbytes -= GUIDS_BYTES + h->event.payload_bytes;
	--*h->nheld;
	free((void *)(uintptr_t)h->event.payload);
}

void dotnet_line_free(struct dotnet_line *line)
{
	if (!line)
		return;
	while (line->n)
		drop(line, &line->all[--line->n]);
	free(line->all);
	free(line);
}

static bool older(const struct dotnet_held *a, const struct dotnet_held *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void swap(struct dotnet_held *a, struct dotnet_held *b)
{
	struct dotnet_held c = *a;

	*a = *b;
	*b = c;
}

/* Payload first, as that is what is freed; then the GUIDs. */
static bool copy(struct dotnet_held *h, const struct nettrace_event *event)
{
	uint32_t n = event->payload_bytes < DOTNET_PAYLOAD_MAX ? event->payload_bytes : DOTNET_PAYLOAD_MAX;
	uint8_t *bytes = malloc(n + GUIDS_BYTES);

	if (!bytes)
		return false;
	h->event = *event;
	if (n)
		memcpy(bytes, event->payload, n);
	h->event.payload = bytes;
	h->event.payload_bytes = n;
	if (event->activity)
		h->event.activity = memcpy(bytes + n, event->activity, 16);
	if (event->related)
		h->event.related = memcpy(bytes + n + 16, event->related, 16);
	return true;
}

bool dotnet_line_put(struct dotnet_line *line, uint64_t time_ns, void *owner, uint32_t *nheld,
		     const struct nettrace_event *event)
{
	struct dotnet_held h = {.time_ns = time_ns, .order = line->order, .owner = owner, .nheld = nheld};
	uint32_t i;

	if (line->n == DOTNET_LINE_MAX || line->nbytes >= DOTNET_LINE_MAX_BYTES ||
	    ARRAY_ROOM(line->all, line->room, line->n + 1) || !copy(&h, event))
		return false;
	line->order++;
	line->nbytes += GUIDS_BYTES + h.event.payload_bytes;
	++*nheld;
	line->all[i = line->n++] = h;
	for (; i && older(&line->all[i], &line->all[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&line->all[i], &line->all[(i - 1) / 2]);
	return true;
}

static void sink(struct dotnet_line *line)
{
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < line->n) {
		if (child + 1 < line->n && older(&line->all[child + 1], &line->all[child]))
			child++;
		if (!older(&line->all[child], &line->all[i]))
			return;
		swap(&line->all[child], &line->all[i]);
		i = child;
	}
}

void dotnet_line_release(struct dotnet_line *line, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_held *held), void *ctx)
{
	struct dotnet_held oldest;

	while (line->n && line->all[0].time_ns <= until_ns) {
		oldest = line->all[0];
		line->all[0] = line->all[--line->n];
		sink(line);
		each(ctx, &oldest);
		drop(line, &oldest);
	}
}

bool dotnet_line_is_empty(const struct dotnet_line *line)
{
	return line->n == 0;
}
