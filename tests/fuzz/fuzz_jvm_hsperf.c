/* Any bytes as the performance data of a JVM. */
#include "source/jvm/hsperf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Of 8 bytes in a file of n; 0 = absent. */
static void check_place(uint32_t at, size_t n)
{
	if (at % 8 || (at && (at > n || n - at < 8)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct hsperf_edge edges[HSPERF_EDGES];
	struct hsperf_track track = {0}, safepoints = {0};
	struct hsperf_missed missed = {0};
	struct hsperf_first first = {0};
	uint64_t v[HSPERF_VALUES];
	const char *text;
	size_t text_bytes;
	struct hsperf_number number;
	struct hsperf h;
	struct err err;
	size_t i, k;

	for (i = 0; i + sizeof(v) <= n && i < 4096; i += 8) {
		memcpy(v, data + i, sizeof(v));
		hsperf_first_step(&first, v[0], v[1]);
		hsperf_first_note(&first, v, v[0] / 2, v[1] / 2);
		if (first.pending && first.exit < first.entry)
			abort();
		if (hsperf_step(&track, v, edges, &missed) > HSPERF_EDGES)
			abort();
		if (hsperf_safepoint_step(&safepoints, v[0], v[1], v[2], edges, &missed) >
		    HSPERF_EDGES)
			abort();
	}
	if (hsperf_text(data, n, "java.rt.vmArgs", &text, &text_bytes) &&
	    (text < (const char *)data || text_bytes > n - (size_t)(text - (const char *)data)))
		abort();
	hsperf_number(data, n, "sun.rt.safepointTime", &number);
	if (hsperf_parse(data, n, &h, &err))
		return 0;
	if (!h.frequency_hz || !h.safepoints_at != !h.safepoint_time_at ||
	    ((h.by_safepoints || h.ends_late) && !h.safepoints_at) || h.nspaces > HSPERF_SPACES)
		abort();
	check_place(h.safepoints_at, n);
	check_place(h.safepoint_time_at, n);
	check_place(h.ticks_at, n);
	check_place(h.began_at, n);
	for (i = 0; i < HSPERF_COLLECTORS; i++)
		for (k = 0; k < HSPERF_VALUES; k++)
			check_place(h.collectors[i].at[k], n);
	for (i = 0; i < h.nspaces; i++)
		check_place(h.spaces[i].at, n);
	return 0;
}
