#include "listing/deadlocks.h"

#include <inttypes.h>

/* n = there is none. */
static uint32_t find(const struct waiting *threads, uint32_t n, uint32_t tid)
{
	uint32_t i = 0;

	while (i < n && (!tid || threads[i].tid != tid))
		i++;
	return i;
}

uint32_t deadlocks_owner(const struct waiting *threads, uint32_t n, uint32_t i)
{
	return find(threads, n, threads[i].for_tid);
}

/* Walk along for_tid: is that a way back? */
bool deadlocks_lead(const struct waiting *threads, uint32_t n, uint32_t i)
{
	uint32_t at = deadlocks_owner(threads, n, i), steps;

	for (steps = 0; at < n && at != i && steps < n; steps++) {
		if (threads[at].tid < threads[i].tid)
			return false;
		at = deadlocks_owner(threads, n, at);
	}
	return at == i;
}

void deadlocks_put(const struct waiting *threads, uint32_t n, struct sheet *p)
{
	uint32_t first, i;

	for (first = 0; first < n; first++) {
		if (!deadlocks_lead(threads, n, first))
			continue;
		sheet_put(p, SHEET_LOSS, "\ndeadlock: thread");
		i = first;
		do {
			buf_printf(&p->out, "%s %" PRIu32 " waits for %" PRIu32,
				   i == first ? "" : ",", threads[i].tid, threads[i].for_tid);
			i = deadlocks_owner(threads, n, i);
		} while (i != first);
		buf_putc(&p->out, '\n');
	}
}
