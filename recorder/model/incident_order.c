/*
 * Samples and events of an incident in order of time. Nearly always they are in order already;
 * events that came late and segments sealed in a hurry are the exception.
 */
#include "model/incident.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Both kinds of item begin with their time. */
_Static_assert(offsetof(struct incident_sample, time_ns) == 0, "time first");
_Static_assert(offsetof(struct incident_event, time_ns) == 0, "time first");

enum {
	LARGEST_ITEM_BYTES = sizeof(struct incident_event) > sizeof(struct incident_sample)
				     ? sizeof(struct incident_event)
				     : sizeof(struct incident_sample)
};

static uint64_t time_at(const char *items, size_t item_bytes, size_t i)
{
	uint64_t time_ns;

	memcpy(&time_ns, items + i * item_bytes, sizeof(time_ns));
	return time_ns;
}

/* Merge the sorted runs [lo, mid) and [mid, hi) of `from` into `to`; of equal times, left first. */
static void merge_runs(const char *from, char *to, size_t item_bytes, size_t lo, size_t mid,
		       size_t hi)
{
	size_t a = lo, b = mid, at;

	for (at = lo; at < hi; at++) {
		bool left = a < mid && (b >= hi || time_at(from, item_bytes, a) <=
						   time_at(from, item_bytes, b));

		memcpy(to + at * item_bytes, from + (left ? a++ : b++) * item_bytes, item_bytes);
	}
}

/* Move each late item to its place; false = they are too many, or too far from it. */
static bool move_late(char *items, uint32_t n, size_t item_bytes)
{
	char late[LARGEST_ITEM_BYTES];
	size_t left = n, i, to;

	for (i = 1; i < n; i++) {
		uint64_t time_ns = time_at(items, item_bytes, i);

		for (to = i; to && time_at(items, item_bytes, to - 1) > time_ns; to--) {
			if (!left--)
				return false;
		}
		if (to == i)
			continue;
		memcpy(late, items + i * item_bytes, item_bytes);
		memmove(items + (to + 1) * item_bytes, items + to * item_bytes,
			(i - to) * item_bytes);
		memcpy(items + to * item_bytes, late, item_bytes);
	}
	return true;
}

static int sort_by_time(void *items, uint32_t n, size_t item_bytes)
{
	char *from = items, *to, *other, *swap;
	size_t i, width;

	if (move_late(items, n, item_bytes))
		return 0;
	other = to = malloc(n * item_bytes);
	if (!to)
		return ERR_MEMORY;
	for (width = 1; width < n; width *= 2) {
		for (i = 0; i < n; i += 2 * width)
			merge_runs(from, to, item_bytes, i, i + width < n ? i + width : n,
				   i + 2 * width < n ? i + 2 * width : n);
		swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * item_bytes);
	free(other);
	return 0;
}

int incident_sort(struct incident *in)
{
	int rc = sort_by_time(in->samples, in->nsamples, sizeof(*in->samples));

	return rc ? rc : sort_by_time(in->events, in->nevents, sizeof(*in->events));
}
