/*
 * Any bytes as the performance data of a JVM, and as the answer of the process that reads them: a
 * file of the same bytes with such entries.
 */
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

static void ignore(void *ctx, const char *name, const struct hsperf_number *number)
{
	(void)ctx;
	if (strlen(name) >= sizeof(((struct hsperf_entry *)0)->name) || number->frequency_hz)
		abort();
}

static void use(const struct hsperf_file *file)
{
	struct hsperf_number number;
	struct hsperf h;
	struct err err;
	size_t i, k;

	hsperf_numbers(file, ignore, NULL);
	if (hsperf_number(file, "sun.rt.safepointTime", &number))
		check_place(number.at, file->nbytes);
	if (hsperf_parse(file, &h, &err))
		return;
	if (!h.frequency_hz || !h.safepoints_at != !h.safepoint_time_at ||
	    ((h.by_safepoints || h.ends_late) && !h.safepoints_at) || h.nspaces > HSPERF_SPACES)
		abort();
	check_place(h.safepoints_at, file->nbytes);
	check_place(h.safepoint_time_at, file->nbytes);
	check_place(h.ticks_at, file->nbytes);
	check_place(h.began_at, file->nbytes);
	for (i = 0; i < HSPERF_COLLECTORS; i++)
		for (k = 0; k < HSPERF_VALUES; k++)
			check_place(h.collectors[i].at[k], file->nbytes);
	for (i = 0; i < h.nspaces; i++)
		check_place(h.spaces[i].at, file->nbytes);
}

static void read_file(const uint8_t *data, size_t n)
{
	static struct hsperf_entry entries[HSPERF_ENTRIES_MAX];
	struct hsperf_file file = {data, n, entries, hsperf_entries(data, n, entries)};

	if (!hsperf_is_sound(&file))
		abort();
	use(&file);
	file.nentries = (uint32_t)(n / sizeof(*entries));
	if (file.nentries > HSPERF_ENTRIES_MAX)
		return;
	memcpy(entries, data, file.nentries * sizeof(*entries));
	if (hsperf_is_sound(&file))
		use(&file);
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
	size_t i;

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
	read_file(data, n);
	return 0;
}
