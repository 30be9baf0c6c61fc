/*
 * Sources that do not deliver. A live source moves its watermark at least every 180 ms; one that
 * stands still for over 2 s hangs, in a file system whose server is gone or in a process that the
 * kernel holds. What others deliver is recorded meanwhile. The log, `recorder status` and incidents
 * say that it hangs, what it waits for, and how long it took; so do they of a thread that reads
 * names (symbols_look()). Merge thread.
 */
#include "engine/engine_private.h"

#include "model/own_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STALL_NS (2 * NS_PER_SEC)
#define LOOK_NS NS_PER_SEC
#define END_WAIT_NS (5 * NS_PER_SEC)         /* how long the end of the run waits for a source */

static void put_stall(const struct feed_source *s, uint64_t now_ns, char *out, size_t n)
{
	char waits[OS_THREAD_WAITS_BYTES];

	os_thread_state_text(s->thread, waits);
	snprintf(out, n, "the %s source has delivered nothing for %.1f s: its thread %s",
		 s->ops->name, (double)(now_ns - s->stalled_since_ns) / 1e9, waits);
}

static void begin_stall(struct engine *e, struct feed_source *s, uint64_t since_ns,
			uint64_t now_ns)
{
	char text[300];

	s->stalled_since_ns = since_ns;
	put_stall(s, now_ns, text, sizeof(text));
	own_event_say(e, LOG_WARN, OWN_STALL, text);
}

static void end_stall(struct engine *e, struct feed_source *s, uint64_t now_ns)
{
	char text[200];

	snprintf(text, sizeof(text), "the %s source delivers again, after %.1f s", s->ops->name,
		 (double)(now_ns - s->stalled_since_ns) / 1e9);
	s->stalled_since_ns = 0;
	own_event_say(e, LOG_INFO, OWN_STALL, text);
}

static void look_at_names(struct engine *e, uint64_t now_ns)
{
	char text[SYMBOLS_NEWS_BYTES];
	enum symbols_news news;

	while ((news = symbols_look(e->symbols, now_ns, text, sizeof(text))) != SYMBOLS_NO_NEWS)
		own_event_say(e, news == SYMBOLS_HANG ? LOG_WARN : LOG_INFO, OWN_STALL, text);
}

/*
 * For how long this thread had work and no CPU: the 2nd of the numbers there, in ns (Linux,
 * Documentation/scheduler/sched-stats.rst); 0 on Windows.
 */
static uint64_t cpu_wait_ns(struct merge *m)
{
	char text[100] = "";
	const char *blank = NULL;
	size_t n = 0;

	if (!m->schedstat)
		os_open("/proc/thread-self/schedstat", OS_READ, &m->schedstat, NULL);
	if (m->schedstat && !os_pread(m->schedstat, text, sizeof(text) - 1, 0, &n, NULL))
		blank = strchr(text, ' ');
	return blank ? strtoull(blank, NULL, 10) : 0;
}

/* The machine's or the recorder's own fault, not that of a source. */
static void say_absent(struct engine *e, uint64_t absent_ns, uint64_t cpu_ns, uint64_t wait_ns)
{
	char text[300];

	snprintf(text, sizeof(text), "the recorder's merge thread did not come round for %.1f s: "
		 "it waited %.1f s for a CPU and computed for %.1f s; else it was stopped or "
		 "frozen, waited for a lock, or the machine slept", (double)absent_ns / 1e9,
		 (double)wait_ns / 1e9, (double)cpu_ns / 1e9);
	own_event_say(e, LOG_WARN, OWN_STALL, text);
}

void stalls_look(struct engine *e)
{
	uint64_t now_ns = os_now_ns(), before_ns = e->merge.looked_ns;
	uint64_t cpu_ns = os_thread_cpu_ns() - e->merge.looked_cpu_ns;
	uint64_t wait_ns = cpu_wait_ns(&e->merge) - e->merge.looked_wait_ns;
	uint32_t i;

	if (!e->policy->by_clock)
		return;
	e->merge.looked_ns = now_ns;
	e->merge.looked_cpu_ns += cpu_ns;
	e->merge.looked_wait_ns += wait_ns;
	if (before_ns && now_ns - before_ns > LOOK_NS + STALL_NS) {
		say_absent(e, now_ns - before_ns - LOOK_NS, cpu_ns, wait_ns);
		return;                      /* its sources catch up until the next look */
	}
	look_at_names(e, now_ns);
	for (i = 0; i < e->feed.n; i++) {
		struct feed_source *s = &e->feed.sources[i];
		uint64_t released_ns = queue_released(s->queue, now_ns);
		bool stalls;

		if (released_ns < s->started_ns)
			released_ns = s->started_ns;
		stalls = released_ns < now_ns &&
			 now_ns - released_ns > STALL_NS + s->ops->behind_ns;

		if (stalls && !s->stalled_since_ns)
			begin_stall(e, s, released_ns, now_ns);
		else if (!stalls && s->stalled_since_ns)
			end_stall(e, s, now_ns);
	}
}

bool stalls_text(const struct engine *e, char *out, size_t n)
{
	uint64_t now_ns = os_now_ns();
	bool source = false;
	uint32_t i;

	if (!symbols_hang(e->symbols, now_ns, out, n))
		out[0] = '\0';
	for (i = 0; i < e->feed.n; i++) {
		const struct feed_source *s = &e->feed.sources[i];

		if (!s->stalled_since_ns || atomic_load(&s->ended))
			continue;
		put_stall(s, now_ns, out, n);
		source = true;
	}
	return source;
}

void stalls_leave_behind(struct engine *e)
{
	uint64_t now_ns = os_now_ns();
	char waits[OS_THREAD_WAITS_BYTES], text[300];
	uint32_t i;

	if (!e->policy->by_clock || now_ns < e->merge.stopping_since_ns + END_WAIT_NS)
		return;
	for (i = 0; i < e->feed.n; i++) {
		struct feed_source *s = &e->feed.sources[i];

		if (atomic_load(&s->ended) || s->left_behind)
			continue;
		s->left_behind = true;
		os_thread_state_text(s->thread, waits);
		snprintf(text, sizeof(text), "the %s source did not end within %.0f s, and what it "
			 "had not delivered is missing: its thread %s", s->ops->name,
			 (double)END_WAIT_NS / 1e9, waits);
		own_event_say(e, LOG_ERROR, OWN_STALL, text);
	}
}
