#include "source/etw/stack_queue.h"

#include "source/etw/stacks.h"

/* ---- what a record is ------------------------------------------------------------------------ */

static const struct etw_guid image_id_guid = {{0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83,
					       0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde}};

uint32_t etw_effective_tid(const struct etw_record *r, const struct etw_class *class)
{
	uint32_t p = r->pointer_bytes;

	switch (class ? class->id : ETW_OTHER) {
	case ETW_SAMPLE:
	case ETW_DISK_READ_INIT:
	case ETW_DISK_WRITE_INIT:
	case ETW_DISK_FLUSH_INIT:
		return etw_payload_u32(r, p);
	case ETW_HARD_FAULT:
		return etw_payload_u32(r, 16 + 2 * p);
	case ETW_CSWITCH:
		return etw_payload_u32(r, 0);
	case ETW_DISK_READ:
	case ETW_DISK_WRITE:
		return etw_payload_u32(r, 32 + 2 * p);
	case ETW_DISK_FLUSH:
		return etw_payload_u32(r, 16 + p);
	default:
		return r->tid;
	}
}

/*
 * The thread whose stack a record takes. The start of a disk request has the tid to which it is
 * charged, but its stack has the tid that issued it: any thread fits.
 */
static uint32_t binding_tid(const struct etw_record *r, const struct etw_class *class)
{
	switch (class ? class->id : ETW_OTHER) {
	case ETW_DISK_READ_INIT:
	case ETW_DISK_WRITE_INIT:
	case ETW_DISK_FLUSH_INIT:
		return r->tid;
	default:
		return etw_effective_tid(r, class);
	}
}

static bool can_have_stack(const struct etw_record *r, const struct etw_class *class)
{
	switch (class ? class->id : ETW_OTHER) {
	case ETW_DISK_READ:
	case ETW_DISK_WRITE:
	case ETW_STACK:
	case ETW_STACK_KEY_KERNEL:
	case ETW_STACK_KEY_USER:
	case ETW_STACK_KEY_DELETE:
	case ETW_STACK_KEY_RUNDOWN:
	case ETW_FILE_NAME:
	case ETW_FILE_CREATE:
	case ETW_FILE_DELETE:
	case ETW_FILE_RUNDOWN:
		return false;
	default:
		return memcmp(&r->guid, &image_id_guid, sizeof(r->guid)) != 0;
	}
}

/* ---- copies ---------------------------------------------------------------------------------- */

#define ALIGN(n) (((n) + 7) & ~(size_t)7)
#define HEAD_BYTES ALIGN(offsetof(struct etw_record, items) + sizeof(uint8_t *) + sizeof(uint32_t))

static size_t copy_bytes(const struct etw_record *r)
{
	size_t n = HEAD_BYTES + r->nitems * sizeof(r->items[0]) + ALIGN(r->payload_bytes);
	uint32_t i;

	for (i = 0; i < r->nitems; i++)
		n += ALIGN(r->items[i].nbytes);
	return n;
}

/*
 *	the record up to its items; payload; payload_bytes (padded); its items;
 *	the payload's bytes; each item's bytes (all aligned to 8)
 *
 * The copy is not the struct, because two thirds of the struct are items, and most records have
 * none.
 */
static void put_copy(char *at, const struct etw_record *r)
{
	size_t head = offsetof(struct etw_record, items);
	struct etw_item *items;
	char *bytes;
	uint32_t i;

	memcpy(at, r, head);
	memcpy(at + head + sizeof(r->payload), &r->payload_bytes, sizeof(r->payload_bytes));
	items = (struct etw_item *)(at + HEAD_BYTES);
	bytes = (char *)(items + r->nitems);
	memcpy(at + head, &bytes, sizeof(bytes));
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
	size_t head = offsetof(struct etw_record, items);

	memcpy(r, at, head);
	memcpy(&r->payload, at + head, sizeof(r->payload));
	memcpy(&r->payload_bytes, at + head + sizeof(r->payload), sizeof(r->payload_bytes));
	memcpy(r->items, at + HEAD_BYTES, r->nitems * sizeof(r->items[0]));
}

/* A record that is too large is queued without payload and items. */
static void cut_record(const struct etw_record *from, struct etw_record *out)
{
	*out = *from;
	out->nitems = 0;
	out->payload_bytes = 0;
}

bool stack_queue_append(struct stack_queue *q, const struct etw_record *r,
			const struct etw_class *class)
{
	struct queued *h = stack_queue_at(q, q->next++);
	size_t bytes = copy_bytes(r);
	bool fits = bytes <= QUEUE_COPY_MAX;
	struct etw_record cut;

	if (!fits) {
		cut_record(r, &cut);
		r = &cut;
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
	}
	return fits;
}

uint32_t stack_queue_place(struct stack_queue *q, const struct etw_record *r, const uint8_t *bytes)
{
	size_t at =
		stack_queue_at(q, q->next - 1)->at + HEAD_BYTES + r->nitems * sizeof(r->items[0]);
	uint32_t i;

	if (r->payload_bytes && bytes >= r->payload && bytes < r->payload + r->payload_bytes)
		return (uint32_t)(at + (size_t)(bytes - r->payload));
	at += ALIGN(r->payload_bytes);
	for (i = 0; bytes < r->items[i].bytes || bytes >= r->items[i].bytes + r->items[i].nbytes;
	     i++)
		at += ALIGN(r->items[i].nbytes);
	return (uint32_t)(at + (size_t)(bytes - r->items[i].bytes));
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

