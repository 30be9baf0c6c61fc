#include "listing/histogram.h"

#include "analysis/call_tree.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int event_histogram_add(struct event_histogram *h, uint64_t time_ns, uint32_t name, struct err *err)
{
	if (h->n == UINT32_MAX)
		return err_set(err, ERR_LIMIT, "--histogram: over %u events", h->n);
	if (ARRAY_ROOM(h->times_ns, h->times_room, h->n + 1) ||
	    ARRAY_ROOM(h->names, h->names_room, h->n + 1))
		return err_memory(err, "for the histogram of %u events", h->n);
	h->times_ns[h->n] = time_ns;
	h->names[h->n++] = name;
	return 0;
}

int event_histogram_sum(struct event_histogram *h, uint64_t t0_ns, uint64_t t1_ns, uint32_t nnames,
			struct err *err)
{
	double whole_ns = (double)(t1_ns - t0_ns) + 1;
	uint32_t i, at;

	h->nnames = nnames;
	h->buckets = calloc((size_t)nnames + 1, sizeof(*h->buckets));
	if (!h->buckets)
		return err_memory(err, "for the histogram of %u names", nnames);
	for (i = 0; i < h->n; i++) {
		if (h->times_ns[i] < t0_ns || h->times_ns[i] > t1_ns)
			continue;
		at = (uint32_t)((double)(h->times_ns[i] - t0_ns) / whole_ns * EVENT_BUCKETS);
		h->buckets[h->names[i]][at]++;
		h->buckets[nnames][at]++;
	}
	return 0;
}

void event_histogram_text(const struct event_histogram *h, uint32_t name,
			  char out[EVENT_BUCKETS + 1])
{
	const uint32_t *buckets = h->buckets[name];
	uint32_t most = 1, i;

	for (i = 0; i < EVENT_BUCKETS; i++)
		most = buckets[i] > most ? buckets[i] : most;
	for (i = 0; i < EVENT_BUCKETS; i++)
		out[i] = call_share_letter((double)buckets[i] / most);
	out[EVENT_BUCKETS] = '\0';
}

void event_histogram_free(struct event_histogram *h)
{
	free(h->times_ns);
	free(h->names);
	free(h->buckets);
	memset(h, 0, sizeof(*h));
}
