/*
 * Pauses of Java programs on Linux, from the performance data that each HotSpot JVM keeps in
 * /tmp/hsperfdata_USER/PID. Nothing has to be prepared, and nothing runs in the JVM. Open only when
 * a rule on collections needs it.
 *
 * Every 50 ms the entry and exit times of each collector's last pause are read. They are exact by
 * the JVM's own clock, however late the reading is. Together with the sum of pause times they give
 * two pauses exactly, however close those are (hsperf.h). A JVM whose pauses follow each other
 * within a second is read every 10 ms, which finds every pause over 5 ms; after more than 5 ms of
 * pauses were missed, it is read even more often for a while.
 *
 * For a JVM that was already running: a pause that is open at the first look has its exact start.
 * One that had ended is reported if it ended, or the program resumed, after recording began.
 * Earlier pauses of that time are not known.
 *
 * The JVM's clock begins when the JVM starts. Up to JDK 21 the JVM writes it every 50 ms, so
 * reading every millisecond after the JVM was found gives its start to 2 ms. For later ones the
 * start comes from the wall-clock time that they state, to 1 ms, and from their pauses, to one
 * look. Durations do not depend on it.
 */
#include "base/array.h"
#include "base/os.h"
#include "base/turns.h"
#include "source/jvm/values.h"
#include "source/runtime/gc_counters.h"
#include "source/jvm/pauses_linux.h"
#include "source/jvm/table_linux.h"
#include "source/runtime/pause_list.h"
#include "source/host/proc_pid_linux.h"
#include "source/source.h"
#include "source/host/tmp_wait_linux.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FAST_LOOK_NS (2500 * NS_PER_MS / 1000) /* for FAST_LOOKS_FOR_NS after missed pauses */
#define FAST_LOOKS_FOR_NS (10 * NS_PER_SEC)
#define NO_JVM_WAIT_NS NS_PER_SEC            /* when there is no JVM and none is starting */
#define WAIT_NS (100 * NS_PER_MS)            /* of one whose user has used up his time */
#define ANSWER_NS NS_PER_MS                  /* for what a file is asked; others wait meanwhile */
#define CLOCK_POLL_NS NS_PER_MS              /* for CLOCK_FOR_NS after a JVM is found */
#define CLOCK_FOR_NS (300 * NS_PER_MS)
#define FALSE_CLOCK_NS NS_PER_SEC            /* that the clock of a pause may be wrong */
/* while a safepoint of Shenandoah is open, for SAFEPOINT_LOOKS_FOR_NS */
#define SAFEPOINT_LOOK_NS NS_PER_MS
#define SAFEPOINT_LOOKS_FOR_NS (200 * NS_PER_MS)
#define SETTLE_NS (NS_PER_MS / 10)           /* by then a collector has written all of a pause */
#define SAFEPOINT_END_WAIT_NS (200 * NS_PER_MS)  /* for the end of a pause's safepoint */
#define OTHER_SAFEPOINTS 8u   /* further safepoints, of microseconds each or of other collections */
#define ALL_COUNTERS_NS (200 * NS_PER_MS)    /* all counters are read at least this often */
#define HEAP_BYTES_MAX (UINT64_C(1) << 50)   /* of one heap space; a larger value is not a JVM's */

struct jvm_source {
	struct source base;
	struct jvm_pauses pauses;
	struct log *log;
	bool wanted, maps;
	struct jvm_table table;
	struct jvm_counters now;             /* the last reading of the current JVM */
	struct tmp_wait wait;
	uint64_t fast_until_ns;
	struct jvm_values *values;           /* NULL = none is wanted */
	struct turns turns;
	_Atomic bool stopping;
};

extern const struct source_ops jvm_source;

static bool wants_gc(const struct needs *needs)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++)
		if (strcasecmp(needs->providers[i].name, "Microsoft-Windows-DotNETRuntime") == 0)
			return true;
	return gc_counters_wanted(needs, GC_JVM) || pause_wanted(needs, PAUSES_OF_JVM);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_counters(struct jvm_source *s, const struct jvm *j)
{
	const struct hsperf *data = &j->data;
	bool ok = true;
	uint32_t i, k;

	/* Safepoints first: a pause that begins now then counts as later than this reading. */
	s->now = (struct jvm_counters){0};
	if (data->safepoints_at)
		ok = mapped_read(&j->map, &s->now.safepoints, data->safepoints_at, 8) &&
		     mapped_read(&j->map, &s->now.safepoint_time, data->safepoint_time_at, 8);
	for (i = 0; i < HSPERF_COLLECTORS; i++)
		for (k = 0; ok && k < HSPERF_VALUES && data->collectors[i].at[k]; k++)
			ok = mapped_read(&j->map, &s->now.collectors[i][k],
					 data->collectors[i].at[k], 8);
	return ok;
}

/*
 * Whether some collector had several pauses since the last look: then the sum of times matters,
 * which a collector writes last.
 */
static bool several_pauses_since(const struct jvm_source *s, const struct jvm *j)
{
	uint32_t i;

	for (i = 0; i < HSPERF_COLLECTORS; i++)
		if (j->tracks[i].begun && s->now.collectors[i][HSPERF_INVOCATIONS] >
						  j->tracks[i].v[HSPERF_INVOCATIONS] + 1)
			return true;
	return false;
}

/* Read until two readings in a row are equal: then nothing changed during the reading. */
static bool read_steadily(struct jvm_source *s, const struct jvm *j)
{
	struct jvm_counters before;
	int i;

	for (i = 0; i < 3; i++) {
		if (several_pauses_since(s, j))
			os_sleep_ns(SETTLE_NS);
		before = s->now;
		if (!read_counters(s, j))
			return false;
		if (memcmp(&s->now, &before, sizeof(before)) == 0)
			return true;
	}
	return false;
}

/* Most looks see no change. */
static bool has_changed(const struct jvm_source *s, const struct jvm *j)
{
	uint32_t i;

	for (i = 0; i < HSPERF_COLLECTORS; i++)
		if (j->data.collectors[i].at[0] &&
		    (!j->tracks[i].begun || memcmp(s->now.collectors[i], j->tracks[i].v,
						   sizeof(s->now.collectors[i])) != 0))
			return true;
	return false;
}

/* The number of collections of all collectors. */
static uint64_t count_collections(const struct jvm_source *s)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < HSPERF_COLLECTORS; i++)
		n += s->now.collectors[i][HSPERF_INVOCATIONS];
	return n;
}

static bool clock_is_exact(const struct jvm *j, uint64_t now_ns)
{
	if (now_ns - j->found_ns > CLOCK_FOR_NS)
		return true;
	if (!j->data.ticks_at)
		return j->zero_wall_ns || !j->data.began_at;
	return j->zero_low_ns && j->zero_high_ns - j->zero_low_ns < JVM_CLOCK_EXACT_NS;
}

static void read_clock(struct jvm *j)
{
	uint64_t ticks, began_ms, before_ns = os_now_ns(), wall_ns = os_wall_ns(),
				  now_ns = os_now_ns();

	/* Not if this thread had to wait for a CPU between reading the two clocks. */
	if (j->data.began_at && !j->zero_wall_ns && now_ns - before_ns < NS_PER_MS / 4 &&
	    mapped_read(&j->map, &began_ms, j->data.began_at, sizeof(began_ms)))
		jvm_clock_note_wall(j, began_ms, wall_ns, now_ns);
	if (!j->data.ticks_at)
		return;
	if (!mapped_read(&j->map, &ticks, j->data.ticks_at, sizeof(ticks)) || !ticks)
		return;
	jvm_clock_note(j, jvm_ticks_to_ns(j, ticks), ticks != j->ticks ? j->read_ns : 0,
		       os_now_ns());
	j->ticks = ticks;
}

/* The start and end of a pause are time stamps of the JVM's clock too. */
static void note_stamps(struct jvm *j, const struct hsperf_edge *edges, uint32_t n,
			uint64_t done_ns)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		jvm_clock_note(j, jvm_ticks_to_ns(j, edges[i].ticks), j->taken_ns, done_ns);
}

/*
 * Sum the times of the other collectors since no pause was open. returns  false when one of them
 * began or ended after `exit`
 */
static bool is_last(const struct jvm_source *s, const struct jvm *j, uint32_t collector,
		    uint64_t exit, uint64_t *others)
{
	bool last = true;
	uint32_t i;

	*others = 0;
	for (i = 0; i < HSPERF_COLLECTORS; i++) {
		const uint64_t *now = s->now.collectors[i], *calm = j->calm.collectors[i];

		if (i == collector || now[HSPERF_INVOCATIONS] == calm[HSPERF_INVOCATIONS])
			continue;
		last &= now[HSPERF_EXIT] <= exit && now[HSPERF_ENTRY] <= exit;
		*others += now[HSPERF_TIME] - calm[HSPERF_TIME];
	}
	return last;
}

/*
 * The program is stopped for longer than its collection: until the end of the safepoint. Serial's
 * full collection resizes the generations after its exit, which takes a millisecond or more, and
 * any JVM may then have to wait for a CPU or for the disk of its log. The safepoint time since no
 * pause was open, less that of other collections, tells when the program resumed. *end 0 = at the
 * exit, as far as can be known. returns  false when the safepoint is not over yet
 */
static bool end_of_pause(const struct jvm_source *s, struct jvm *j, uint32_t i, uint64_t now_ns,
			 uint64_t *end)
{
	const uint64_t *now = s->now.collectors[i];
	uint64_t time = s->now.safepoint_time - j->calm.safepoint_time, others;
	bool ended;

	*end = 0;
	if (now[HSPERF_ENTRY] == j->tracks[i].v[HSPERF_ENTRY] && !j->tracks[i].open)
		/* no time of this collector; another one's safepoint may still be open */
		return true;
	/*
	 * If several pauses are seen at once, the last one is the longer; for Serial it is the full
	 * one.
	 */
	ended = j->calm.safepoints && now[HSPERF_EXIT] >= now[HSPERF_ENTRY] &&
		(is_last(s, j, i, now[HSPERF_EXIT], &others) || (j->data.ends_late && i == 1));
	if (ended && time < others + (now[HSPERF_EXIT] - now[HSPERF_ENTRY])) {
		if (!j->exit_seen_ns)
			j->exit_seen_ns = now_ns;
		if (now_ns - j->exit_seen_ns < SAFEPOINT_END_WAIT_NS)
			return false;
	}
	j->exit_seen_ns = 0;
	if (!ended || time < others ||
	    now[HSPERF_INVOCATIONS] - j->calm.collectors[i][HSPERF_INVOCATIONS] != 1 ||
	    s->now.safepoints - j->calm.safepoints > OTHER_SAFEPOINTS)
		return true;
	time += now[HSPERF_ENTRY] - others;
	*end = time > now[HSPERF_EXIT] ? time : 0;
	return true;
}

static void note_calm(const struct jvm_source *s, struct jvm *j)
{
	if (j->data.safepoints_at && !j->zero_ns && !j->exit_seen_ns)
		j->calm = s->now;
}

/*
 * Report the first pause if it ended after recording began: once that is known, and before all that
 * came after it.
 */
static void report_first(struct jvm_source *s, struct jvm *j, uint32_t i)
{
	struct hsperf_first *first = &j->firsts[i];
	uint64_t zero_ns = jvm_clock_zero(j), stop = j->data.ends_late ? first->end : first->exit;
	const struct hsperf_edge edges[2] = {
		{true, first->entry, first->count, 1, 0, 0},
		{false, stop, first->count, 1, stop - first->entry, first->end},
	};

	if (!first->pending)
		return;
	s->pauses.least_ns = 0;
	if (zero_ns + jvm_ticks_to_ns(j, first->end) >= s->table.opened_ns)
		jvm_pauses_put(&s->pauses, j, i, edges, 2, zero_ns);
	first->pending = false;
	j->nfirsts--;
}

/* If there are several collectors, the safepoint belongs to the one with the last pause. */
static void look_at_firsts(struct jvm_source *s, struct jvm *j, uint64_t now_ns)
{
	uint32_t i, last = 0;

	for (i = 1; i < HSPERF_COLLECTORS; i++)
		if (j->firsts[i].exit > j->firsts[last].exit)
			last = i;
	if (j->data.safepoints_at)
		hsperf_first_step(&j->firsts[last], s->now.safepoints, s->now.safepoint_time);
	for (i = 0; i < HSPERF_COLLECTORS && now_ns - j->found_ns > CLOCK_FOR_NS; i++)
		report_first(s, j, i);
}

/*
 * After much was missed, the JVM is read more often for a while. What it did long before it was
 * last read had been seen then.
 */
static void put(struct jvm_source *s, struct jvm *j, uint32_t collector,
		const struct hsperf_edge *edges, uint32_t n, uint64_t zero_ns,
		const struct hsperf_missed *missed)
{
	s->pauses.missed_much = false;
	s->pauses.least_ns = j->taken_ns > FALSE_CLOCK_NS ? j->taken_ns - FALSE_CLOCK_NS : 0;
	jvm_pauses_put(&s->pauses, j, collector, edges, n, zero_ns);
	jvm_pauses_missed(&s->pauses, j, collector, missed);
	if (s->pauses.missed_much)
		s->fast_until_ns = os_now_ns() + FAST_LOOKS_FOR_NS;
}

/*
 * Look at one collector; *zero_ns is found once for all of them. returns  false when a later look
 * will report what happened
 */
static bool look_at_collector(struct jvm_source *s, struct jvm *j, uint32_t i, uint64_t done_ns,
			      uint64_t *zero_ns)
{
	const uint64_t *now = s->now.collectors[i];
	struct hsperf_edge edges[HSPERF_EDGES];
	struct hsperf_missed missed = {0};
	uint64_t end = 0;
	uint32_t n;

	if (j->data.safepoints_at && !end_of_pause(s, j, i, done_ns, &end))
		return false;
	if (!j->tracks[i].begun) {
		hsperf_first_note(&j->firsts[i], now, s->now.safepoints, s->now.safepoint_time);
		j->nfirsts += j->firsts[i].pending;
	} else if (now[HSPERF_INVOCATIONS] != j->tracks[i].v[HSPERF_INVOCATIONS]) {
		report_first(s, j, i);
	}
	n = hsperf_step(&j->tracks[i], now, edges, &missed);
	note_stamps(j, edges, n, done_ns);
	if (end && n && !edges[n - 1].start) {
		edges[n - 1].restart = end;
		if (j->data.ends_late) {
			edges[n - 1].length += end - edges[n - 1].ticks;
			edges[n - 1].ticks = end;
		}
	}
	if (!*zero_ns)
		*zero_ns = jvm_clock_zero(j);
	put(s, j, i, edges, n, *zero_ns, &missed);
	return !j->tracks[i].nskipped;
}

/* returns  false when one of them must be read again */
static bool look_at_collectors(struct jvm_source *s, struct jvm *j)
{
	uint64_t done_ns = os_now_ns(), zero_ns = j->zero_ns;
	bool taken = true;
	uint32_t i;

	s->pauses.gap_ns = done_ns - j->taken_ns;
	for (i = 0; i < HSPERF_COLLECTORS; i++)
		if (j->data.collectors[i].at[0])
			taken &= look_at_collector(s, j, i, done_ns, &zero_ns);
	/* An open pause ends by the same zero of the clock as it began. */
	j->zero_ns = 0;
	for (i = 0; i < HSPERF_COLLECTORS; i++)
		if (j->tracks[i].open)
			j->zero_ns = zero_ns;
	note_calm(s, j);
	return taken;
}

static void look_at_safepoints(struct jvm_source *s, struct jvm *j)
{
	uint64_t zero_ns = jvm_clock_zero(j), now_ns = os_now_ns(), ns = now_ns - zero_ns;
	struct hsperf_missed missed = {0};
	struct hsperf_edge edges[HSPERF_EDGES];
	uint32_t n;

	if (j->data.frequency_hz != NS_PER_SEC)
		ns = (uint64_t)((double)ns * (double)j->data.frequency_hz / 1e9);
	n = hsperf_safepoint_step(&j->tracks[JVM_SAFEPOINTS], s->now.safepoints,
				  s->now.safepoint_time, ns, edges, &missed);
	s->pauses.gap_ns = now_ns - j->taken_ns;
	if (!j->tracks[JVM_SAFEPOINTS].open)
		j->open_ns = 0;
	else if (!j->open_ns)
		j->open_ns = now_ns;
	put(s, j, JVM_SAFEPOINTS, edges, n, zero_ns, &missed);
}

/*
 * Whether the number of safepoints, which rises when a pause begins, and their time, which rises
 * when it ends, are unchanged.
 */
static bool nothing_happened(const struct jvm *j)
{
	uint64_t count, time;

	return j->calm.safepoints &&
	       mapped_read(&j->map, &count, j->data.safepoints_at, sizeof(count)) &&
	       mapped_read(&j->map, &time, j->data.safepoint_time_at, sizeof(time)) &&
	       count == j->calm.safepoints && time == j->calm.safepoint_time;
}

static bool read_heap(const struct jvm *j, struct jvm_heap *out)
{
	uint64_t used;
	uint32_t i;

	*out = (struct jvm_heap){0};
	for (i = 0; i < j->data.nspaces; i++) {
		const struct hsperf_space *space = &j->data.spaces[i];

		if (!mapped_read(&j->map, &used, space->at, sizeof(used)) || used > HEAP_BYTES_MAX)
			return false;
		*(space->eden ? &out->eden : space->old ? &out->old : &out->survivors) += used;
	}
	return j->data.nspaces;
}

/* For a counter, which exists before the first collection too. */
static void note_heap(struct jvm_source *s, struct jvm *j)
{
	struct process *process;
	struct jvm_heap heap;

	if (!gc_counters_want_bytes(s->pauses.counters) || !read_heap(j, &heap))
		return;
	process = jvm_pauses_process(&s->pauses, j);
	if (process)
		process_unref(process);
	gc_counters_bytes(s->pauses.counters, j->pid, heap.eden + heap.survivors + heap.old);
}

/* Whether the safepoints since `calm` have ended in which the collections since then took place. */
static bool safepoints_have_ended(const struct jvm_source *s, const struct jvm_counters *calm)
{
	uint64_t left = s->now.safepoint_time - calm->safepoint_time;
	uint32_t i;

	for (i = 0; i < HSPERF_COLLECTORS; i++) {
		uint64_t took = s->now.collectors[i][HSPERF_TIME] -
				calm->collectors[i][HSPERF_TIME];

		if (took > left)
			return false;
		left -= took;
	}
	return calm->safepoints;
}

/*
 * What a collection left, once its pause is over: a collector counts that after its exit. A JVM up
 * to JDK 21 also writes what eden holds every 50 ms, with its clock. After that eden counts as
 * empty, as a young collection leaves it; what a full one left there is not known any more.
 */
static void put_heap(struct jvm_source *s, struct jvm *j, const struct jvm_counters *calm)
{
	bool full = s->now.collectors[1][HSPERF_EXIT] > s->now.collectors[0][HSPERF_EXIT];
	const uint64_t *now = s->now.collectors[full];
	uint64_t exit = now[HSPERF_EXIT], ticks = 0;
	struct jvm_heap heap;

	if (!j->data.has_sizes || exit == j->sized_exit)
		return;
	j->sized_exit = exit;
	if (!safepoints_have_ended(s, calm) || !read_heap(j, &heap) ||
	    (j->data.ticks_at && !mapped_read(&j->map, &ticks, j->data.ticks_at, sizeof(ticks))) ||
	    !nothing_happened(j))
		return;
	if (!full || j->data.empties_eden)
		heap.eden = 0;
	else if (ticks > exit)
		return;
	jvm_pauses_heap(&s->pauses, j, full, now[HSPERF_INVOCATIONS], &heap);
}

static void look(void *ctx, struct jvm *j)
{
	struct jvm_source *s = ctx;
	uint64_t began_ns = os_now_ns();
	bool taken = true;

	if (!j->ready)
		return;
	if (began_ns - j->all_read_ns < ALL_COUNTERS_NS && clock_is_exact(j, began_ns) &&
	    !j->zero_ns && !j->exit_seen_ns && !j->open_ns && !j->nfirsts && nothing_happened(j)) {
		j->read_ns = j->taken_ns = began_ns;
		return;
	}
	if (!read_counters(s, j))
		return;
	j->all_read_ns = began_ns;
	note_heap(s, j);
	if (!clock_is_exact(j, began_ns))
		read_clock(j);
	if (j->nfirsts)
		look_at_firsts(s, j, began_ns);
	if (j->data.by_safepoints) {
		taken = read_steadily(s, j);
		if (taken)
			look_at_safepoints(s, j);
	} else if (has_changed(s, j)) {
		struct jvm_counters calm = j->calm;

		jvm_pace_note(&j->pace, count_collections(s), began_ns);
		taken = read_steadily(s, j) && look_at_collectors(s, j);
		if (taken && !j->zero_ns && !j->exit_seen_ns)
			put_heap(s, j, &calm);
	} else {
		note_calm(s, j);
	}
	j->read_ns = began_ns;
	if (taken)
		j->taken_ns = began_ns;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* When to look at it next: at the same time as at all others, if possible. */
static uint64_t next_look(const struct jvm_source *s, struct jvm *j, uint64_t now_ns)
{
	uint64_t every_ns = jvm_pace_look_every_ns(&j->pace, j->zero_ns || j->exit_seen_ns, now_ns);

	if (!clock_is_exact(j, now_ns))
		every_ns = CLOCK_POLL_NS;
	else if (j->open_ns && now_ns - j->open_ns < SAFEPOINT_LOOKS_FOR_NS)
		every_ns = SAFEPOINT_LOOK_NS;
	else if (now_ns < s->fast_until_ns)
		every_ns = FAST_LOOK_NS;
	return (now_ns / every_ns + 1) * every_ns;
}

/* Unless its user has used up his time. */
static void look_in_turn(struct jvm_source *s, struct jvm *j, uint64_t now_ns)
{
	uint64_t begun_ns = turns_begin(&s->turns, j->uid);

	j->waits = !turns_may(&s->turns, j->uid, now_ns);
	if (!j->waits)
		look(s, j);
	j->due_ns = j->waits ? now_ns + WAIT_NS : next_look(s, j, now_ns);
	turns_end(&s->turns, j->uid, begun_ns);
}

/*
 * Look at all JVMs that are due. *seen_ns: all that happened before it is known. returns  when the
 * next one is due
 */
static uint64_t look_at_all(struct jvm_source *s, uint64_t now_ns, uint64_t *seen_ns)
{
	uint64_t next_ns = now_ns + NO_JVM_WAIT_NS;
	uint32_t i;

	*seen_ns = now_ns;
	for (i = 0; i < s->table.n; i++) {
		struct jvm *j = &s->table.all[i];

		if (j->ready && now_ns >= j->due_ns)
			look_in_turn(s, j, now_ns);
		if (j->ready && !j->waits && j->taken_ns && j->taken_ns < *seen_ns)
			*seen_ns = j->taken_ns;
		if (s->maps && j->ready)
			jvm_table_ask_for_map(&s->table, j, now_ns);
		if (j->ready && j->due_ns < next_ns)
			next_ns = j->due_ns;
		else if (!j->ready && j->next_try_ns < next_ns)
			next_ns = j->next_try_ns;
	}
	return next_ns;
}

/* Without a JVM, wait at most until there may be one. */
static void wait_until(struct jvm_source *s, uint64_t until_ns)
{
	struct pollfd p[TMP_POLLED];

	if (!s->table.nready)
		queue_rest(s->pauses.queue, JVM_CLOCK_EXACT_NS);
	tmp_wait(&s->wait, until_ns, s->table.nready ? -1 : s->table.watch, p, 0);
	if (!s->table.nready)
		queue_resume(s->pauses.queue, os_now_ns());
	if (s->wait.replaced)
		s->table.next_scan_ns = 0;
	s->wait.replaced = false;
}

/* returns  when they are due again, or next_ns if that is earlier */
static uint64_t poll_counters(struct jvm_source *s, uint64_t time_ns, uint64_t next_ns)
{
	struct jvm_pauses *p = &s->pauses;
	uint64_t due_ns = gc_counters_poll(p->counters, time_ns, jvm_pauses_deliver, p);
	uint64_t values_ns = jvm_values_poll(s->values, &s->table, time_ns, jvm_pauses_deliver, p);

	due_ns = values_ns < due_ns ? values_ns : due_ns;
	return due_ns < next_ns - JVM_CLOCK_EXACT_NS ? due_ns + JVM_CLOCK_EXACT_NS : next_ns;
}

static int jvm_run(struct source *source, struct err *err)
{
	struct jvm_source *s = (struct jvm_source *)source;
	uint64_t now_ns, next_ns, seen_ns;

	(void)err;
	os_thread_priority(OS_PRIORITY_HIGH);  /* a late look may miss a pause */
	s->table.last_look = look;
	s->table.last_look_ctx = s;
	while (s->wanted && !atomic_load(&s->stopping)) {
		now_ns = os_now_ns();
		jvm_table_look(&s->table, now_ns);
		next_ns = look_at_all(s, now_ns, &seen_ns);
		next_ns = poll_counters(s, now_ns - JVM_CLOCK_EXACT_NS, next_ns);
		next_ns = jvm_table_due_ns(&s->table, now_ns, next_ns);
		/* The next look sees what begins from here on; its clock may be off by a little. */
		queue_watermark(s->pauses.queue, seen_ns - JVM_CLOCK_EXACT_NS);
		wait_until(s, next_ns);
	}
	s->table.last_look = NULL;
	queue_finish(s->pauses.queue);
	return 0;
}

static void jvm_close(struct source *source)
{
	struct jvm_source *s = (struct jvm_source *)source;

	if (!s)
		return;
	jvm_table_close(&s->table);
	os_wake_free(s->wait.wake);
	tmp_wait_close(&s->wait);
	gc_counters_free(s->pauses.counters);
	jvm_values_free(s->values);
	free(s);
}

static int jvm_open(const struct source_config *cfg, const struct needs *needs, struct source **out,
		    struct err *err)
{
	struct jvm_source *s = malloc(sizeof(*s));
	int rc = 0;

	if (s) {
		*s = (struct jvm_source){.base.ops = &jvm_source, .log = cfg->log,
					 .pauses.processes = cfg->processes,
					 .pauses.queue = cfg->queue,
					 .maps = needs->perf_maps, .wait.wake = os_wake_new()};
		turns_init(&s->turns, cfg->max_cpu_pct, os_uid());
		s->wanted = s->maps || wants_gc(needs);
		tmp_wait_open(&s->wait);
	}
	if (!s || !s->wait.wake)
		rc = err_memory(err, "for the source of Java programs");
	rc = rc ? rc : gc_counters_new(needs, GC_JVM, &s->pauses.counters, err);
	rc = rc ? rc : jvm_values_new(needs, &s->values, err);
	if (!rc && (s->wanted |= s->values != NULL))
		rc = jvm_table_open(&s->table, s->pauses.processes, s->pauses.counters,
				    s->wait.wake, s->log, err);
	s->table.wait_ns = ANSWER_NS;
	s->table.turns = &s->turns;
	s->table.take = s->values ? jvm_values_take : NULL;
	s->table.take_ctx = s->values;
	if (rc) {
		jvm_close((struct source *)s);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static void jvm_stop(struct source *source)
{
	struct jvm_source *s = (struct jvm_source *)source;

	atomic_store(&s->stopping, true);
	os_wake(s->wait.wake);
}

static void jvm_status(struct source *source, struct source_status *out)
{
	struct jvm_source *s = (struct jvm_source *)source;
	uint64_t missed = atomic_load_explicit(&s->pauses.missed, memory_order_relaxed);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->pauses.events, memory_order_relaxed);
	out->lost = queue_lost(s->pauses.queue);
	out->degraded = jvm_table_note(&s->table, out->note, sizeof(out->note));
	turns_note(&s->turns, "Java", out->note, sizeof(out->note));
	if (missed && !out->note[0])
		snprintf(out->note, sizeof(out->note),
			 "%llu pauses of Java programs, %.1f ms in all, followed each "
			 "other so quickly that they are reported together (GC/Pauses)",
			 (unsigned long long)missed,
			 (double)atomic_load(&s->pauses.missed_ns) / 1e6);
}

static void jvm_add_usage(struct source *source, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	const struct jvm_source *s = (struct jvm_source *)source;

	if (s->table.reader)
		jvm_reader_add_usage(s->table.reader, cpu_ns, rss_bytes);
}

static int jvm_part(unsigned i, struct source_part *out, struct err *err)
{
	if (i)
		return 0;
	out->name = "java-of-others";
	out->summary = "pauses of Java programs of other users, and in containers";
	return ns_tmp_others(&ns_tmp_jvm, err);
}

const struct source_ops jvm_source = {
	.name = "java",
	.summary = "pauses and numbers of Java programs (HotSpot, from /tmp/hsperfdata_*)",
	.events = true,
	.optional = true,
	.check = jvm_values_check,
	.list = jvm_values_list,
	.part = jvm_part,
	.looks_at_others = true,
	.open = jvm_open,
	.run = jvm_run,
	.stop = jvm_stop,
	.status = jvm_status,
	.add_usage = jvm_add_usage,
	.close = jvm_close,
};
