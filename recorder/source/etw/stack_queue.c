#include "source/etw/stack_queue.h"

#include "source/etw/guids.h"
#include "source/etw/stacks.h"

/* ---- what a record is ------------------------------------------------------------------------ */

uint32_t etw_effective_tid(const struct etw_record *r, const struct etw_class *class)
{
	uint32_t pointers = class ? (uint32_t)class->tid_pointers * r->pointer_bytes : 0;

	return class && class->has_tid && r->version >= class->tid_version
		       ? etw_payload_u32(r, class->tid_bytes + pointers) : r->tid;
}

/*
 * The thread whose stack a record takes. The start of a disk request has the tid to which it is
 * charged, but its stack has the tid that issued it: any thread fits.
 */
static uint32_t binding_tid(const struct etw_record *r, const struct etw_class *class)
{
	return class && class->topic == ETW_TOPIC_DISK_START ? r->tid : etw_effective_tid(r, class);
}

/* A disk request has its stack when it starts, not when it ends. */
static bool can_have_stack(const struct etw_record *r, const struct etw_class *class)
{
	static const struct etw_guid image_ids = IMAGE_ID_GUID;

	if (class && (class->topic == ETW_TOPIC_STACK || class->topic == ETW_TOPIC_FILE ||
		      class->id == ETW_DISK_READ || class->id == ETW_DISK_WRITE))
		return false;
	return !guid_same(&r->guid, &image_ids);
}

/* ---- copies ---------------------------------------------------------------------------------- */

#define ALIGN(n) (((n) + 7) & ~(size_t)7)
#define HEAD_BYTES ALIGN(offsetof(struct etw_record, items))

static size_t copy_bytes(const struct etw_record *r)
{
	size_t n = HEAD_BYTES + r->nitems * sizeof(r->items[0]) + ALIGN(r->payload_bytes);
	uint32_t i;

	for (i = 0; i < r->nitems; i++)
		n += ALIGN(r->items[i].nbytes);
	return n;
}

/* A copy is the struct up to its last item, the payload's bytes, and each item's; aligned to 8. */
static void put_copy(char *at, const struct etw_record *r)
{
	struct etw_item *items = (struct etw_item *)(at + HEAD_BYTES);
	char *bytes = (char *)(items + r->nitems);
	uint32_t i;

	memcpy(at, r, offsetof(struct etw_record, items));
	memcpy(at + offsetof(struct etw_record, payload), &bytes, sizeof(bytes));
	if (r->payload_bytes)
		memcpy(bytes, r->payload, r->payload_bytes);
	bytes += ALIGN(r->payload_bytes);
	for (i = 0; i < r->nitems; i++) {
		items[i] = r->items[i];
		items[i].bytes = (const uint8_t *)bytes;
		if (items[i].nbytes)
			memcpy(bytes, r->items[i].bytes, items[i].nbytes);
		bytes += ALIGN(items[i].nbytes);
	}
}

static void get_copy(const char *at, struct etw_record *r)
{
	memcpy(r, at, offsetof(struct etw_record, items));
	memcpy(r->items, at + HEAD_BYTES, r->nitems * sizeof(r->items[0]));
}

bool stack_queue_append(struct stack_queue *q, struct etw_record *r, const struct etw_class *class)
{
	struct queued *h = stack_queue_at(q, q->next++);
	size_t bytes = copy_bytes(r);
	bool fits = bytes <= QUEUE_COPY_MAX;

	if (!fits) {
		r->nitems = r->payload_bytes = 0;
		bytes = copy_bytes(r);
	}
	if (!q->survey)
		q->known = q->first;
	else if (q->next > QUEUE_KNOWN)
		q->known = q->next - QUEUE_KNOWN;
	*h = (struct queued){.ticks = r->ticks, .tid = binding_tid(r, class), .cpu = r->cpu,
			   .class = class, .flags = can_have_stack(r, class) ? TARGET : 0,
			   .bytes = (uint32_t)bytes};
	q->held_bytes += bytes;
	if (q->ring) {
		if (QUEUE_RING_BYTES - q->ring_at < bytes)
			q->ring_at = 0;
		h->at = (uint32_t)q->ring_at;
		q->ring_at += bytes;
		put_copy(q->ring + h->at, r);
		get_copy(q->ring + h->at, r);
	}
	return fits;
}

bool stack_queue_is_full(const struct stack_queue *q)
{
	return q->next - q->first > ETW_STACKS_HELD_RECORDS ||
	       q->held_bytes > ETW_STACKS_HELD_BYTES;
}

void stack_queue_pop(struct stack_queue *q, struct etw_record *out)
{
	const struct queued *h = stack_queue_at(q, q->first++);

	q->held_bytes -= h->bytes;
	if (!q->survey)
		q->known = q->first;
	if (out)
		get_copy(q->ring + h->at, out);
}

/* The first known record at or after these ticks. */
static uint64_t lower_bound(struct stack_queue *q, int64_t ticks)
{
	uint64_t low = q->known, high = q->next;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (stack_queue_at(q, middle)->ticks < ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How well a record fits as the event of a part; 0 = not at all. */
static unsigned fit(const struct queued *h, uint32_t tid, uint16_t cpu, int which)
{
	if (!(h->flags & TARGET) || (h->tid != tid && h->tid != ETW_ID_UNKNOWN))
		return 0;
	return 1 + (h->tid == tid) * 4u + (h->cpu == cpu) * 2u + !(h->flags & (HAS << which));
}

bool stack_queue_find(struct stack_queue *q, int64_t ticks, uint32_t tid, uint16_t cpu, int which,
	       uint64_t *target)
{
	uint64_t i;
	unsigned best = 0;

	for (i = lower_bound(q, ticks); i < q->next && stack_queue_at(q, i)->ticks == ticks; i++) {
		unsigned n = fit(stack_queue_at(q, i), tid, cpu, which);

		if (n > best) {
			best = n;
			*target = i;
		}
	}
	return best != 0;
}

