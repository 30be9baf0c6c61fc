/* Expanding buffers before a run needs them; etl_private.h has the rules. */
#include "source/etl/etl_private.h"

#include <stdlib.h>

enum { AHEAD_LEAST_BUFFERS = 16 };          /* fewer are not worth a thread */

static struct etl_ahead_slot *free_slot(struct etl_ahead *a)
{
	for (unsigned i = 0; i < a->nslots; i++)
		if (a->slots[i].state == SLOT_FREE)
			return &a->slots[i];
	return NULL;
}

/* The lane whose next buffer comes first in the file: it was full first, so it is due first. */
static struct etl_lane *lane_due(const struct etl_ahead *a)
{
	const struct etl_buffer *buffers = a->file->buffers;
	struct etl_lane *due = NULL;

	for (struct etl_lane *lane = a->lanes; lane < a->lanes + a->nlanes; lane++)
		if (lane->next < lane->end &&
		    (!due || buffers[lane->next].number < buffers[due->next].number))
			due = lane;
	return due;
}

static void fill_slots(struct ahead_job *job)
{
	struct etl_ahead *a = (struct etl_ahead *)job;
	struct etl_payload stored = {0};
	struct etl_ahead_slot *slot;
	struct etl_lane *lane;
	const char *why;
	bool good;

	os_mutex_lock(a->lock);
	while (!a->ending && (slot = free_slot(a)) && (lane = lane_due(a))) {
		slot->buffer = lane->next++;
		slot->state = SLOT_BUSY;
		a->nfree--;
		os_mutex_unlock(a->lock);
		good = etl_buffer_load(a->file, &a->file->buffers[slot->buffer], &stored,
				       &slot->payload, &why, NULL) == 0 && !why;
		os_mutex_lock(a->lock);
		if (good && slot->state == SLOT_BUSY) {
			slot->state = SLOT_READY;
		} else {
			slot->state = SLOT_FREE;
			a->nfree++;
		}
	}
	a->running = false;
	os_mutex_unlock(a->lock);
	free(stored.bytes);
}

bool etl_ahead_take(struct etl_ahead *a, size_t lane, size_t buffer, struct etl_payload *payload)
{
	struct etl_payload before = *payload;
	bool found = false, give;

	if (!a->ahead.thread)
		return false;
	os_mutex_lock(a->lock);
	if (a->lanes[lane].next <= buffer)
		a->lanes[lane].next = buffer + 1;
	for (unsigned i = 0; i < a->nslots; i++) {
		struct etl_ahead_slot *slot = &a->slots[i];

		if (slot->buffer != buffer || slot->state == SLOT_FREE)
			continue;
		found = slot->state == SLOT_READY;
		slot->state = found ? SLOT_FREE : SLOT_UNWANTED;
		if (found) {
			*payload = slot->payload;
			slot->payload = before;
			a->nfree++;
		}
	}
	give = !a->running && 2 * a->nfree >= a->nslots;
	a->running |= give;
	os_mutex_unlock(a->lock);
	if (give) {
		ahead_await(&a->ahead, &a->job);     /* it has ended, but may still be listed */
		ahead_give(&a->ahead, &a->job);
	}
	return found;
}

void etl_ahead_begin(struct etl_ahead *a, const struct etl_file *file, struct etl_lane *lanes,
		     size_t nlanes)
{
	if (file->nbuffers < AHEAD_LEAST_BUFFERS || !(a->lock = os_mutex_new()))
		return;
	a->job.run = fill_slots;
	a->file = file;
	a->lanes = lanes;
	a->nlanes = nlanes;
	a->nslots = ETL_AHEAD_MAX_BYTES / file->payload_max_bytes;
	if (a->nslots > ETL_AHEAD_SLOTS)
		a->nslots = ETL_AHEAD_SLOTS;
	a->nfree = a->nslots;
	ahead_begin(&a->ahead, "expand");
}

void etl_ahead_end(struct etl_ahead *a)
{
	if (!a->lock)
		return;
	os_mutex_lock(a->lock);
	a->ending = true;
	os_mutex_unlock(a->lock);
	ahead_end(&a->ahead);
	os_mutex_free(a->lock);
	for (unsigned i = 0; i < a->nslots; i++)
		free(a->slots[i].payload.bytes);
}
