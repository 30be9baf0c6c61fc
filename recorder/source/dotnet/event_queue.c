#include "source/dotnet/event_queue.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define GUIDS_BYTES 32u                      /* activity and related activity, before the payload */

static void drop_event(struct dotnet_queue *queue, struct dotnet_queued *h)
{
	uint32_t nbytes = h->event.payload_bytes + h->event.stack_bytes;

	queue->nbytes -= GUIDS_BYTES + nbytes;
	h->held->n--;
	if (queue->shares)
		shares_give_back(queue->shares, &h->held->share, DOTNET_QUEUED_BYTES + nbytes);
	free((void *)(uintptr_t)h->event.payload);
}

void dotnet_queue_share(struct dotnet_queue *queue, struct shares *shares, uint32_t own_uid)
{
	shares_init(shares, DOTNET_QUEUE_MAX_BYTES, own_uid);
	shares->program_max = shares->total / 4;
	queue->shares = shares;
}

void dotnet_queue_free(struct dotnet_queue *queue)
{
	while (queue->n)
		drop_event(queue, &queue->all[--queue->n]);
	free(queue->all);
	*queue = (struct dotnet_queue){0};
}

static bool is_older(const struct dotnet_queued *a, const struct dotnet_queued *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void swap(struct dotnet_queued *a, struct dotnet_queued *b)
{
	struct dotnet_queued c = *a;

	*a = *b;
	*b = c;
}

static uint32_t payload_kept(const struct nettrace_event *event)
{
	return event->payload_bytes < DOTNET_PAYLOAD_MAX ? event->payload_bytes
							 : DOTNET_PAYLOAD_MAX;
}

/* One allocation: the payload, then the GUIDs, then the stack. */
static bool copy_event(struct dotnet_queued *h, const struct nettrace_event *event)
{
	uint32_t n = payload_kept(event);
	uint8_t *bytes = malloc(n + GUIDS_BYTES + event->stack_bytes);

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
	if (event->stack)
		h->event.stack = memcpy(bytes + n + GUIDS_BYTES, event->stack, event->stack_bytes);
	return true;
}

bool dotnet_queue_put(struct dotnet_queue *queue, uint64_t time_ns, void *owner,
		      struct dotnet_held *held, const struct nettrace_event *event)
{
	struct dotnet_queued h = {
		.time_ns = time_ns, .order = queue->order, .owner = owner, .held = held};
	uint64_t cost = DOTNET_QUEUED_BYTES + payload_kept(event) + event->stack_bytes;
	uint32_t i;

	if (queue->n == DOTNET_QUEUE_MAX || queue->nbytes >= DOTNET_QUEUE_MAX_BYTES ||
	    ARRAY_ROOM(queue->all, queue->room, queue->n + 1))
		return false;
	if (queue->shares && !shares_take(queue->shares, &held->share, cost))
		return false;
	if (!copy_event(&h, event)) {
		if (queue->shares)
			shares_give_back(queue->shares, &held->share, cost);
		return false;
	}
	queue->order++;
	queue->nbytes += GUIDS_BYTES + h.event.payload_bytes + h.event.stack_bytes;
	held->n++;
	queue->all[i = queue->n++] = h;
	for (; i && is_older(&queue->all[i], &queue->all[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&queue->all[i], &queue->all[(i - 1) / 2]);
	return true;
}

static void sift_down(struct dotnet_queue *queue)
{
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < queue->n) {
		if (child + 1 < queue->n && is_older(&queue->all[child + 1], &queue->all[child]))
			child++;
		if (!is_older(&queue->all[child], &queue->all[i]))
			return;
		swap(&queue->all[child], &queue->all[i]);
		i = child;
	}
}

void dotnet_queue_release(struct dotnet_queue *queue, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_queued *held), void *ctx)
{
	struct dotnet_queued oldest;

	while (queue->n && queue->all[0].time_ns <= until_ns) {
		oldest = queue->all[0];
		queue->all[0] = queue->all[--queue->n];
		sift_down(queue);
		each(ctx, &oldest);
		drop_event(queue, &oldest);
	}
}
