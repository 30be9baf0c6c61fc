#include "listing/deadlocks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

static const struct waiting *thread_of(const struct waiting *threads, uint32_t n, uint32_t tid)
{
	uint32_t i;

	for (i = 0; tid && i < n; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	return NULL;
}

/*
 * Whether a walk along for_tid comes back to this thread, which has the lowest number of that
 * circle.
 */
static bool leads_a_circle(const struct waiting *threads, uint32_t n, const struct waiting *first)
{
	const struct waiting *t = thread_of(threads, n, first->for_tid);
	uint32_t steps;

	for (steps = 0; t && t != first && steps < n; steps++) {
		if (t->tid < first->tid)
			return false;
		t = thread_of(threads, n, t->for_tid);
	}
	return t == first;
}

void deadlocks_put(const struct waiting *threads, uint32_t n, struct sheet *p)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct waiting *first = &threads[i], *t = first;

		if (!leads_a_circle(threads, n, first))
			continue;
		sheet_put(p, SHEET_LOSS, "\ndeadlock: thread");
		do {
			buf_printf(&p->out, "%s %" PRIu32 " waits for %" PRIu32,
				   t == first ? "" : ",", t->tid, t->for_tid);
			t = thread_of(threads, n, t->for_tid);
		} while (t != first);
		buf_putc(&p->out, '\n');
	}
}
