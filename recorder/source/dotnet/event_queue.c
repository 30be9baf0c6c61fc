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
	free(h);
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
		drop_event(queue, queue->all[--queue->n].queued);
	free(queue->all);
	*queue = (struct dotnet_queue){0};
}

static bool is_older(const struct dotnet_place *a, const struct dotnet_place *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static uint32_t payload_kept(const struct nettrace_event *event)
{
	return event->payload_bytes < DOTNET_PAYLOAD_MAX ? event->payload_bytes
							 : DOTNET_PAYLOAD_MAX;
}

/* One allocation: what is queued, the payload, then the GUIDs, then the stack. NULL = no memory. */
static struct dotnet_queued *copy_event(const struct dotnet_queued *head,
					const struct nettrace_event *event)
{
	uint32_t n = payload_kept(event);
	struct dotnet_queued *h = malloc(sizeof(*h) + n + GUIDS_BYTES + event->stack_bytes);
	uint8_t *bytes = (uint8_t *)(h + 1);

	if (!h)
		return NULL;
	*h = *head;
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
	return h;
}

bool dotnet_queue_put(struct dotnet_queue *queue, uint64_t time_ns, void *owner,
		      struct dotnet_held *held, const struct nettrace_event *event)
{
	struct dotnet_queued head = {.time_ns = time_ns, .owner = owner, .held = held}, *h;
	struct dotnet_place place = {.time_ns = time_ns, .order = queue->order};
	uint64_t cost = DOTNET_QUEUED_BYTES + payload_kept(event) + event->stack_bytes;
	uint32_t i;

	if (queue->n == DOTNET_QUEUE_MAX || queue->nbytes >= DOTNET_QUEUE_MAX_BYTES ||
	    ARRAY_ROOM(queue->all, queue->room, queue->n + 1))
		return false;
	if (queue->shares && !shares_take(queue->shares, &held->share, cost))
		return false;
	h = copy_event(&head, event);
	if (!h) {
		if (queue->shares)
			shares_give_back(queue->shares, &held->share, cost);
		return false;
	}
	queue->order++;
	queue->nbytes += GUIDS_BYTES + h->event.payload_bytes + h->event.stack_bytes;
	held->n++;
	place.queued = h;
	for (i = queue->n++; i && is_older(&place, &queue->all[(i - 1) / 2]); i = (i - 1) / 2)
		queue->all[i] = queue->all[(i - 1) / 2];
	queue->all[i] = place;
	return true;
}

/* Put the place into the heap, whose first one is free. */
static void sift_down(struct dotnet_queue *queue, struct dotnet_place place)
{
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < queue->n) {
		if (child + 1 < queue->n && is_older(&queue->all[child + 1], &queue->all[child]))
			child++;
		if (!is_older(&queue->all[child], &place))
			break;
		queue->all[i] = queue->all[child];
		i = child;
	}
	queue->all[i] = place;
}

void dotnet_queue_release(struct dotnet_queue *queue, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_queued *held), void *ctx)
{
	struct dotnet_queued *oldest;

	while (queue->n && queue->all[0].time_ns <= until_ns) {
		oldest = queue->all[0].queued;
		queue->n--;
		sift_down(queue, queue->all[queue->n]);
		each(ctx, oldest);
		drop_event(queue, oldest);
	}
}
