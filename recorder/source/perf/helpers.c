#include "source/perf/helpers.h"

void helpers_add(struct helpers *h, const char *reads, struct pool *pool)
{
	if (!pool || h->n == HELPERS_MAX)
		return;
	h->all[h->n].reads = reads;
	h->all[h->n++].pool = pool;
}

void helpers_check(struct helpers *h, struct log *log)
{
	unsigned i;

	for (i = 0; i < h->n; i++) {
		if (h->all[i].hang_logged || pool_stuck(h->all[i].pool) < POOL_STUCK_MAX)
			continue;
		h->all[i].hang_logged = true;
		log_line(log, LOG_WARN,
			 "%u threads that read %s hang: nothing more of this kind is read until "
			 "one comes back", POOL_STUCK_MAX, h->all[i].reads);
	}
}

bool helpers_note(const struct helpers *h, char *out, size_t n)
{
	bool hangs = false;
	unsigned i;

	for (i = 0; i < h->n; i++)
		hangs |= pool_note(h->all[i].pool, h->all[i].reads, out, n);
	return hangs;
}
