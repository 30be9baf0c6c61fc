#include "source/dotnet/event_queue.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define GUIDS_BYTES 32u                      /* activity and related activity, before the payload */

/* ---- memory ---------------------------------------------------------------------------------- */

#define SIZE_BYTES ((size_t)64)

/* Of an event with so many bytes; DOTNET_SPARES = it is not used again. */
static uint32_t size_of(size_t nbytes)
{
	size_t size = (nbytes + SIZE_BYTES - 1) / SIZE_BYTES - 1;

	return size < DOTNET_SPARES ? (uint32_t)size : DOTNET_SPARES;
}

static size_t queued_bytes(uint32_t payload_bytes, uint32_t stack_bytes)
{
	return sizeof(struct dotnet_queued) + payload_bytes + GUIDS_BYTES + stack_bytes;
}

static struct dotnet_queued *take_memory(struct dotnet_queue *queue, size_t nbytes)
{
	uint32_t size = size_of(nbytes);
	struct dotnet_queued *h;

	if (size == DOTNET_SPARES)
		return malloc(nbytes);
	h = queue->spare[size];
	if (!h)
		return malloc(SIZE_BYTES * (size + 1));
	queue->spare[size] = h->next;
	queue->spare_bytes -= SIZE_BYTES * (size + 1);
	return h;
}

static void drop_event(struct dotnet_queue *queue, struct dotnet_queued *h)
{
	uint32_t nbytes = h->event.payload_bytes + h->event.stack_bytes;
	uint32_t size = size_of(queued_bytes(h->event.payload_bytes, h->event.stack_bytes));

	queue->nbytes -= GUIDS_BYTES + nbytes;
	h->held->n--;
	if (queue->shares)
		shares_give_back(queue->shares, &h->held->share, DOTNET_QUEUED_BYTES + nbytes);
	if (size == DOTNET_SPARES || queue->spare_bytes >= DOTNET_SPARES_MAX_BYTES) {
		free(h);
		return;
	}
	h->next = queue->spare[size];
	queue->spare[size] = h;
	queue->spare_bytes += SIZE_BYTES * (size + 1);
}

static void free_spares(struct dotnet_queue *queue)
{
	struct dotnet_queued *h;
	uint32_t i;

	for (i = 0; i < DOTNET_SPARES; i++)
		while ((h = queue->spare[i]) != NULL) {
			queue->spare[i] = h->next;
			free(h);
		}
	queue->spare_bytes = 0;
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
	while (queue->first < queue->nrow)
		drop_event(queue, queue->row[queue->first++].queued);
	free_spares(queue);
	free(queue->all);
	free(queue->row);
	*queue = (struct dotnet_queue){0};
}

/* ---- order ----------------------------------------------------------------------------------- */

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
static struct dotnet_queued *copy_event(struct dotnet_queue *queue,
					const struct nettrace_event *event)
{
	uint32_t n = payload_kept(event);
	struct dotnet_queued *h = take_memory(queue, queued_bytes(n, event->stack_bytes));
	uint8_t *bytes = (uint8_t *)(h + 1);

	if (!h)
		return NULL;
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

static void add_to_heap(struct dotnet_queue *queue, struct dotnet_place place)
{
	uint32_t i;

	for (i = queue->n++; i && is_older(&place, &queue->all[(i - 1) / 2]); i = (i - 1) / 2)
		queue->all[i] = queue->all[(i - 1) / 2];
	queue->all[i] = place;
}

/* Whether an event of this time goes to the row, behind all that are there. */
static bool fits_row(const struct dotnet_queue *queue, uint64_t time_ns)
{
	return queue->first == queue->nrow || time_ns >= queue->row[queue->nrow - 1].time_ns;
}

/* Room in both, as an event may go to either. What has left the row makes place for others. */
static bool make_room(struct dotnet_queue *queue)
{
	if (queue->first && queue->nrow == queue->row_room && queue->first >= queue->nrow / 2) {
		queue->nrow -= queue->first;
		memmove(queue->row, queue->row + queue->first, queue->nrow * sizeof(*queue->row));
		queue->first = 0;
	}
	return !ARRAY_ROOM(queue->row, queue->row_room, queue->nrow + 1) &&
	       !ARRAY_ROOM(queue->all, queue->room, queue->n + 1);
}

bool dotnet_queue_put(struct dotnet_queue *queue, uint64_t time_ns, void *owner,
		      struct dotnet_held *held, const struct nettrace_event *event)
{
	struct dotnet_queued *h;
	struct dotnet_place place = {.time_ns = time_ns, .order = queue->order};
	uint64_t cost = DOTNET_QUEUED_BYTES + payload_kept(event) + event->stack_bytes;

	if (dotnet_queue_count(queue) == DOTNET_QUEUE_MAX ||
	    queue->nbytes >= DOTNET_QUEUE_MAX_BYTES || !make_room(queue))
		return false;
	if (queue->shares && !shares_take(queue->shares, &held->share, cost))
		return false;
	h = copy_event(queue, event);
	if (!h) {
		if (queue->shares)
			shares_give_back(queue->shares, &held->share, cost);
		return false;
	}
	h->time_ns = time_ns;
	h->owner = owner;
	h->held = held;
	queue->order++;
	queue->nbytes += GUIDS_BYTES + h->event.payload_bytes + h->event.stack_bytes;
	held->n++;
	place.queued = h;
	if (fits_row(queue, time_ns))
		queue->row[queue->nrow++] = place;
	else
		add_to_heap(queue, place);
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

/* Take out the oldest; NULL = it is younger, or there is none. */
static struct dotnet_queued *take_oldest(struct dotnet_queue *queue, uint64_t until_ns)
{
	const struct dotnet_place *row =
		queue->first < queue->nrow ? &queue->row[queue->first] : NULL;
	struct dotnet_queued *oldest;

	if (row && (!queue->n || is_older(row, &queue->all[0]))) {
		oldest = row->time_ns <= until_ns ? row->queued : NULL;
		queue->first += oldest != NULL;
		return oldest;
	}
	if (!queue->n || queue->all[0].time_ns > until_ns)
		return NULL;
	oldest = queue->all[0].queued;
	queue->n--;
	sift_down(queue, queue->all[queue->n]);
	return oldest;
}

void dotnet_queue_release(struct dotnet_queue *queue, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_queued *held), void *ctx)
{
	struct dotnet_queued *oldest;

	while ((oldest = take_oldest(queue, until_ns)) != NULL) {
		each(ctx, oldest);
		drop_event(queue, oldest);
	}
	if (!dotnet_queue_count(queue)) {
		queue->first = queue->nrow = 0;
		free_spares(queue);
	}
}
