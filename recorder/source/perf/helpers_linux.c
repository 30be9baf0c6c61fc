#include "source/perf/helpers_linux.h"

struct helper {
	const char *reads;
	struct pool *pool;
};

static void helpers_of(const struct perf_walker *w, struct helper out[HELPERS])
{
	out[0].reads = "/proc";
	out[1].reads = "command lines";
	perf_state_pools(w->state, &out[0].pool, &out[1].pool);
	out[2] = (struct helper){"mapped files", loader_pool(w->loader)};
	out[3] = (struct helper){"memory of processes", proc_reader_pool(w->reader)};
}

void perf_helpers_look(struct perf_helpers *h, const struct perf_walker *walker, struct log *log)
{
	struct helper helpers[HELPERS];
	unsigned i;

	helpers_of(walker, helpers);
	for (i = 0; i < HELPERS; i++) {
		if (h->logged[i] || !helpers[i].pool ||
		    pool_stuck(helpers[i].pool) < POOL_STUCK_MAX)
			continue;
		h->logged[i] = true;
		log_line(log, LOG_WARN,
			 "%u threads that read %s hang: nothing more of this kind is read until "
			 "one comes back",
			 POOL_STUCK_MAX, helpers[i].reads);
	}
}

bool perf_helpers_note(const struct perf_walker *walker, char *out, size_t n)
{
	struct helper helpers[HELPERS];
	bool hangs = false;
	unsigned i;

	helpers_of(walker, helpers);
	for (i = 0; i < HELPERS; i++)
		if (helpers[i].pool && pool_note(helpers[i].pool, helpers[i].reads, out, n))
			hangs = true;
	return hangs;
}
