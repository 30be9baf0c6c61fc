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

_Static_assert(offsetof(struct etw_record, items) % 8 == 0, "a copy's payload is aligned");

static size_t copy_bytes(const struct etw_record *r)
{
	size_t n = etw_record_bytes(r) + ALIGN(r->payload_bytes);
	uint32_t i;

	for (i = 0; i < r->nitems; i++)
		n += ALIGN(r->items[i].nbytes);
	return n;
}

/*
 * A copy is the struct up to its last item, the payload's bytes, and each item's; aligned to 8. The
 * record's pointers then point into it.
 */
static void put_copy(char *at, struct etw_record *r)
{
	char *bytes = at + etw_record_bytes(r);
	uint32_t i;

	if (r->payload_bytes)
		memcpy(bytes, r->payload, r->payload_bytes);
	r->payload = (const uint8_t *)bytes;
	bytes += ALIGN(r->payload_bytes);
	for (i = 0; i < r->nitems; i++) {
		struct etw_item *item = &r->items[i];

		if (item->nbytes)
			memcpy(bytes, item->bytes, item->nbytes);
		item->bytes = (const uint8_t *)bytes;
		bytes += ALIGN(item->nbytes);
	}
	memcpy(at, r, etw_record_bytes(r));
}

bool stack_queue_append(struct stack_queue *q, struct etw_record *r, const struct etw_class *class)
{
	struct queued *h = stack_queue_at(q, q->next);
	struct known *k = stack_queue_known(q, q->next++);
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
	*k = (struct known){r->ticks, binding_tid(r, class), r->cpu,
			    can_have_stack(r, class) ? TARGET : 0};
	*h = (struct queued){.class = class, .bytes = (uint32_t)bytes};
	q->held_bytes += bytes;
	if (q->ring) {
		if (QUEUE_RING_BYTES - q->ring_at < bytes)
			q->ring_at = 0;
		h->at = (uint32_t)q->ring_at;
		q->ring_at += bytes;
		put_copy(q->ring + h->at, r);
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
		memcpy(out, q->ring + h->at,
		       etw_record_bytes((const struct etw_record *)(q->ring + h->at)));
}

/* The first known record at or after these ticks. */
static uint64_t lower_bound(struct stack_queue *q, int64_t ticks)
{
	uint64_t low = q->known, high = q->next;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (stack_queue_known(q, middle)->ticks < ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How well a record fits as the event of a part; 0 = not at all. */
static unsigned fit(const struct known *h, uint32_t tid, uint16_t cpu, int which)
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

	for (i = lower_bound(q, ticks); i < q->next && stack_queue_known(q, i)->ticks == ticks;
	     i++) {
		unsigned n = fit(stack_queue_known(q, i), tid, cpu, which);

		if (n > best) {
			best = n;
			*target = i;
		}
	}
	return best != 0;
}

