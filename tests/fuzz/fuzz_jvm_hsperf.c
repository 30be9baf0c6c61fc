/* Any bytes as the performance data of a JVM. */
#include "source/jvm/hsperf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct hsperf_edge edges[HSPERF_EDGES];
	struct hsperf_track track = {0}, safepoints = {0};
	struct hsperf_together together = {0};
	struct hsperf_first first = {0};
	uint64_t v[HSPERF_VALUES];
	const char *text;
	size_t text_bytes;
	struct hsperf h;
	struct err err;
	size_t i, k;

	for (i = 0; i + sizeof(v) <= n && i < 4096; i += 8) {
		memcpy(v, data + i, sizeof(v));
		hsperf_first_step(&first, v[0], v[1]);
		hsperf_first_note(&first, v, v[0] / 2, v[1] / 2);
		if (first.pending && first.exit < first.entry)
			abort();
		if (hsperf_step(&track, v, edges, &together) > HSPERF_EDGES)
			abort();
		if (hsperf_safepoint_step(&safepoints, v[0], v[1], v[2], edges, &together) >
		    HSPERF_EDGES)
			abort();
	}
	if (hsperf_text(data, n, "java.rt.vmArgs", &text, &text_bytes) &&
	    (text < (const char *)data || text_bytes > n - (size_t)(text - (const char *)data)))
		abort();
	if (hsperf_parse(data, n, &h, &err))
		return 0;
	if (!h.frequency_hz || h.low >= h.high || h.high > n ||
	    !h.safepoints_at != !h.safepoint_time_at ||
	    ((h.by_safepoints || h.ends_late) && !h.safepoints_at))
		abort();
	if (h.safepoints_at && (h.safepoints_at < h.low || h.safepoint_time_at < h.low ||
				h.safepoints_at + 8 > h.high || h.safepoint_time_at + 8 > h.high))
		abort();
	if ((h.ticks_at && h.ticks_at + 8 > n) || (h.began_at && h.began_at + 8 > n))
		abort();
	for (i = 0; i < HSPERF_COLLECTORS; i++)
		for (k = 0; k < HSPERF_VALUES; k++)
			if (h.collectors[i].at[k] && (h.collectors[i].at[k] < h.low ||
						      h.collectors[i].at[k] + 8 > h.high))
				abort();
	return 0;
}
