/*
 * The live source of Linux: a cpu-clock sampler and a side-band ring per CPU, merged by time.
 *
 * Rings are ordered each, not among each other: note the clock T0, look at all rings, release in time
 * order what is older than T0 - 1 ms, keep the rest. Facts and measurements: linux-capture.md 1-2.
 */
#include "base/os.h"
#include "source/busy.h"
#include "source/loader.h"
#include "source/perf_ring_linux.h"
#include "source/perf_state_linux.h"
#include "source/perf_time_linux.h"
#include "source/perf_walk_linux.h"
#include "source/probes_linux.h"
#include "source/source.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HOLD_BACK_NS NS_PER_MS           /* a record of another CPU may still come within this */
#define POLL_MS 90                       /* a watermark at least every 100 ms */
#define TABLES_WAIT_NS (150 * NS_PER_MS) /* a sample waits this long for unwind tables to be loaded */
#define TABLES_POLL_MS 4
#define COALESCE_NS (2 * NS_PER_MS)      /* one wake-up for a burst of side-band records; see perf_run() */
#define CPUS_MAX 1024u

struct cpu_rings {
	bool online;
	bool told;                           /* that it cannot be opened */
	struct perf_ring sampler, sideband;
	struct perf_ring probes[PROBE_RINGS];
};

#define POLLED_PER_CPU (2 + PROBE_RINGS)

struct perf_source {
	struct source base;
	struct source_config cfg;
	struct perf_ask ask;
	struct perf_format format;
	struct perf_state *state;
	uint64_t period_ns;
	uint64_t switched_ns, old_period_ns; /* samples before that moment weigh old_period_ns */
	bool rate_due;                       /* what was switched is to be said, behind those samples */
	_Atomic uint64_t wanted;             /* freq_hz << 32 | stack_kb; 0 = as it is */

	struct cpu_rings *cpus;              /* by CPU number */
	unsigned ncpus;
	struct pollfd *polled;               /* the wake event, then POLLED_PER_CPU each */
	struct probes *probes;               /* NULL = no rule asks for any */
	struct perf_time *time;              /* NULL = context switches are not recorded */
	int wake_fd;
	_Atomic bool stopping;
	bool rescan;                         /* side-band records were lost */
	uint64_t next_check_ns, delivered_ns;
	struct busy *busy;                   /* NULL: what is expected is not known */

	struct perf_walker walker;           /* loader and unwinder are ours to free */

	_Atomic uint64_t events, lost, throttled, damaged;
};

/* ---- which CPUs ------------------------------------------------------------------------------- */

/* /sys/devices/system/cpu/NAME, "0-3,5" -> flags; returns the highest number + 1. */
static unsigned read_cpus(const char *name, bool online[CPUS_MAX])
{
	struct buf text = {0};
	unsigned count = 0, first, last;
	const char *at;
	char path[64], *end;

	memset(online, 0, CPUS_MAX * sizeof(*online));
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", name);
	if (os_load(path, 4096, &text, NULL) != 0)
		buf_printf(&text, "0-%u", os_cpu_count() - 1);
	for (at = buf_text(&text); *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
		first = last = (unsigned)strtoul(at, &end, 10);
		if (*end == '-')
			last = (unsigned)strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			online[first] = true;
			count = first + 1 > count ? first + 1 : count;
		}
	}
	buf_free(&text);
	return count;
}

static int open_cpu(struct perf_source *s, unsigned cpu, struct err *err)
{
	struct cpu_rings *c = &s->cpus[cpu];
	int rc = perf_ring_open(&c->sideband, cpu, true, &s->ask, err);

	if (rc)
		return rc;
	rc = perf_ring_open(&c->sampler, cpu, false, &s->ask, err);
	if (rc) {
		perf_ring_close(&c->sideband);
		return rc;
	}
	if (s->probes)
		rc = probes_open_cpu(s->probes, cpu, c->probes, err);
	if (rc) {
		perf_ring_close(&c->sampler);
		perf_ring_close(&c->sideband);
		return rc;
	}
	c->online = true;
	return 0;
}

static void close_cpu(struct perf_source *s, unsigned cpu)
{
	struct cpu_rings *c = &s->cpus[cpu];

	if (c->online && s->probes)
		probes_close_cpu(s->probes, cpu, c->probes);
	if (c->online) {
		perf_ring_close(&c->sampler);
		perf_ring_close(&c->sideband);
	}
	c->online = false;
}

/* ---- events ----------------------------------------------------------------------------------- */

static void put_lost(struct perf_source *s, enum loss_kind kind, uint64_t n, unsigned cpu,
		     uint64_t time_ns)
{
	struct event e = {.time_ns = time_ns, .kind = EVENT_LOST, .cpu = (uint16_t)cpu,
			  .stack = STACK_NONE, .value = (double)n};

	e.name = loss_kind_text(kind);
	queue_put(s->cfg.queue, &e);
	atomic_fetch_add(kind == LOSS_THROTTLED ? &s->throttled : &s->lost, n);
}

static struct perf_thread *thread_of(struct perf_source *s, const struct perf_record *r)
{
	/*
	 * The kernel says -1 for what it has let go of already; of a thread that ended, the process may still
	 * have its number: as one of its threads -1 would keep it alive for ever.
	 */
	return r->pid == UINT32_MAX || r->tid == UINT32_MAX ? NULL : perf_state_thread(s->state, r->pid, r->tid, r->time_ns);
}

static void put_with_stack(struct perf_source *s, struct event *e)
{
	e->quality = (uint8_t)s->walker.stack.quality;
	e->stack_frames = s->walker.stack.frames;
	e->nstack_frames = s->walker.stack.nframes;
	queue_put(s->cfg.queue, e);
}

/* false: tables for it are being loaded, and it may wait. */
static bool put_sample(struct perf_source *s, const struct perf_record *r, bool may_wait)
{
	struct perf_thread *thread = thread_of(s, r);
	struct event e = {.time_ns = r->time_ns, .kind = EVENT_SAMPLE, .cpu = (uint16_t)r->cpu,
			  .stream = STREAM_CPU, .stack = STACK_NONE};

	if (thread && thread->process->skipped)
		return true;
	perf_walk(&s->walker, r, &s->format, thread);
	if (s->walker.stack.pending && may_wait)
		return false;
	e.process = thread ? thread->process->process : NULL;
	e.thread = thread ? thread->thread : NULL;
	e.value = (double)(r->time_ns < s->switched_ns ? s->old_period_ns : s->period_ns);
	put_with_stack(s, &e);
	if (s->time)
		perf_time_sample(s->time, r, &s->walker.stack);
	atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
	return true;
}

/* An event that a rule asked for; the same. */
static bool put_probe(struct perf_source *s, const struct perf_ring *ring, const struct perf_record *r,
		      bool may_wait)
{
	struct perf_thread *thread = thread_of(s, r);
	struct probe *probe = probes_find(s->probes, r->u.sample.id);
	const struct perf_format *format = probes_format(s->probes, ring->probes_at);
	struct event e = {.time_ns = r->time_ns, .cpu = (uint16_t)r->cpu, .stack = STACK_NONE};

	if (!probe || (thread && thread->process->skipped && probe_role(probe) == PROBE_SWITCH_STACK))
		return true;
	if (probe_has_stack(probe)) {
		perf_walk(&s->walker, r, format, thread);
		/* Of switches there are too many to let all others wait for one. */
		if (s->walker.stack.pending && may_wait && probe_role(probe) == PROBE_EVENT)
			return false;
	}
	if (probe_role(probe) != PROBE_EVENT) {
		perf_time_take(s->time, probe, r, &s->walker.stack);
		return true;
	}
	e.process = thread ? thread->process->process : NULL;
	e.thread = thread ? thread->thread : NULL;
	if (!probes_take(s->probes, probe, r, &e))
		return true;
	if (!probe_has_stack(probe)) {
		do
			queue_put(s->cfg.queue, &e);
		while (probes_again(probe, &e));
		return true;
	}
	put_with_stack(s, &e);
	/* And as a sample, for what is made of these: --metric event. */
	e.kind = EVENT_SAMPLE;
	e.nfields = 0;
	e.value = 1;
	put_with_stack(s, &e);
	return true;
}

/* false: it stays in its ring for now. */
static bool take_record(struct perf_source *s, const struct perf_ring *ring,
			const struct perf_record *r, uint64_t until_ns)
{
	switch (r->kind) {
	case PERF_KIND_SAMPLE:
		if (ring->probes)
			return put_probe(s, ring, r, until_ns < r->time_ns + TABLES_WAIT_NS);
		return put_sample(s, r, until_ns < r->time_ns + TABLES_WAIT_NS);
	case PERF_KIND_LOST:
		put_lost(s, ring->sideband ? LOSS_SIDEBAND : LOSS_KERNEL, r->u.lost, ring->cpu,
			 r->time_ns);
		if (ring->sideband && !s->rescan)
			log_line(s->cfg.log, LOG_WARN,
				 "process and mapping records were lost; reading /proc again");
		s->rescan |= ring->sideband;
		if (s->time && ring->probes && ring->probes_at == PROBE_RING_OF_SWITCHES)
			perf_time_lost(s->time, r->time_ns);
		break;
	case PERF_KIND_SWITCH:
		if (s->time && r->u.change.out)
			thread_of(s, r);             /* that it is known */
		if (s->time)
			perf_time_switch(s->time, r);
		break;
	case PERF_KIND_THROTTLE:
		put_lost(s, LOSS_THROTTLED, 1, ring->cpu, r->time_ns);
		break;
	default:
		perf_state_feed(s->state, r);
		if (s->time && r->kind == PERF_KIND_FORK)
			perf_time_born(s->time, r);
	}
	return true;
}

/* ---- draining --------------------------------------------------------------------------------- */

/* The ring with the oldest record; at the same time side-band goes first: a map before its use. */
static struct perf_ring *oldest_ring(struct perf_source *s)
{
	struct perf_ring *oldest = NULL;
	uint64_t oldest_ns = UINT64_MAX;
	unsigned i;

	for (i = 0; i < s->ncpus; i++) {
		struct perf_ring *rings[2] = {&s->cpus[i].sideband, &s->cpus[i].sampler};
		unsigned j;

		for (j = 0; s->probes && s->cpus[i].online && j < PROBE_RINGS; j++) {
			struct perf_ring *ring = &s->cpus[i].probes[j];
			const struct perf_record *r = perf_ring_peek(ring, probes_format(s->probes, j));

			if (!r || r->time_ns > oldest_ns)
				continue;
			oldest = ring;
			oldest_ns = r->time_ns;
		}
		for (j = 0; s->cpus[i].online && j < 2; j++) {
			const struct perf_record *r = perf_ring_peek(rings[j], &s->format);

			if (!r || r->time_ns > oldest_ns ||
			    (r->time_ns == oldest_ns && !rings[j]->sideband))
				continue;
			oldest = rings[j];
			oldest_ns = r->time_ns;
		}
	}
	return oldest;
}

/* Said once; they are counted where they were lost, see perf_ring_peek(). */
static void note_damage(struct perf_source *s)
{
	uint64_t damaged = 0;
	unsigned i, j;

	for (i = 0; i < s->ncpus; i++) {
		damaged += s->cpus[i].sideband.damaged + s->cpus[i].sampler.damaged;
		for (j = 0; s->probes && j < PROBE_RINGS; j++)
			damaged += s->cpus[i].probes[j].damaged;
	}
	if (damaged && !atomic_load(&s->damaged))
		log_line(s->cfg.log, LOG_WARN, "a record of the kernel's (perf events) could not be read; such records "
			 "are counted as lost");
	atomic_store(&s->damaged, damaged);
}

/*
 * Put everything before until_ns into the queue, in time order. A sample whose unwind tables are just
 * being loaded, and all that is newer, stays in its ring for a moment: the copy of its stack is there.
 * returns  up to where all is delivered
 */
static uint64_t drain(struct perf_source *s, uint64_t until_ns)
{
	struct perf_ring *ring;
	unsigned i, j;

	for (i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].online) {
			perf_ring_refresh(&s->cpus[i].sideband);
			perf_ring_refresh(&s->cpus[i].sampler);
			for (j = 0; s->probes && j < PROBE_RINGS; j++)
				perf_ring_refresh(&s->cpus[i].probes[j]);
		}
	}
	while ((ring = oldest_ring(s)) != NULL && ring->record.time_ns < until_ns) {
		if (!take_record(s, ring, &ring->record, until_ns))
			return ring->record.time_ns;
		perf_ring_next(ring);
	}
	return until_ns;
}

/* poll() skips negative descriptors. */
static void rebuild_polled(struct perf_source *s)
{
	unsigned i, j;

	s->polled[0] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
	for (i = 0; i < s->ncpus; i++) {
		struct pollfd *at = &s->polled[1 + POLLED_PER_CPU * i];
		const struct cpu_rings *c = &s->cpus[i];

		at[0] = (struct pollfd){.fd = c->online ? c->sideband.fd : -1, .events = POLLIN};
		at[1] = (struct pollfd){.fd = c->online ? c->sampler.fd : -1, .events = POLLIN};
		for (j = 0; j < PROBE_RINGS; j++)
			at[2 + j] = (struct pollfd){.fd = c->online && s->probes ? c->probes[j].fd : -1,
						    .events = POLLIN};
	}
}

/* Events of a CPU that goes offline stay off when it returns: close and reopen them. */
static void check_hotplug(struct perf_source *s)
{
	bool online[CPUS_MAX];
	bool changed = false;
	struct err err;
	unsigned i;

	read_cpus("online", online);
	for (i = 0; i < s->ncpus; i++) {
		if (online[i] == s->cpus[i].online)
			continue;
		changed = true;
		if (!online[i]) {
			close_cpu(s, i);
			log_line(s->cfg.log, LOG_INFO, "CPU %u went offline", i);
		} else if (open_cpu(s, i, &err) == 0) {
			perf_ring_enable(&s->cpus[i].sideband, true);
			perf_ring_enable(&s->cpus[i].sampler, true);
			if (s->probes)
				probes_enable(s->probes, i, s->cpus[i].probes, true);
			s->rescan = true;    /* what started on it before now was not seen */
			log_line(s->cfg.log, LOG_INFO, "CPU %u came online and is recorded", i);
		} else if (!s->cpus[i].told) {
			s->cpus[i].told = true;
			log_line(s->cfg.log, LOG_WARN, "CPU %u came online and is not recorded: %s", i,
				 err.text);
		}
	}
	if (changed)
		rebuild_polled(s);
}

static void enable(struct perf_source *s, bool sideband, bool on)
{
	unsigned i;

	for (i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].online)
			perf_ring_enable(sideband ? &s->cpus[i].sideband : &s->cpus[i].sampler, on);
		if (s->cpus[i].online && s->probes && !sideband)
			probes_enable(s->probes, i, s->cpus[i].probes, on);
	}
}

static void put_expected(void *ctx, unsigned cpu, uint64_t busy_ns)
{
	struct perf_source *s = ctx;
	struct event e = {.time_ns = s->delivered_ns, .kind = EVENT_EXPECTED, .cpu = (uint16_t)cpu,
			  .stack = STACK_NONE, .value = (double)busy_ns / (double)s->period_ns};

	queue_put(s->cfg.queue, &e);
}

/* ---- another level ---------------------------------------------------------------------------- */

static void put_rate(struct perf_source *s)
{
	const struct event_field field = {.name = "StackKb", .type = FIELD_UINT, .v.u = s->ask.stack_kb};
	struct event e = {.time_ns = s->switched_ns, .kind = EVENT_RATE, .cpu = CPU_NONE,
			  .stack = STACK_NONE, .value = (double)s->period_ns, .fields = &field,
			  .nfields = 1};

	queue_put(s->cfg.queue, &e);
}

/* Samplers with another copy of the stack, opened beside the old ones; all of them, or none. */
static bool reopen(struct perf_source *s, const struct perf_ask *ask, struct perf_ring *fresh)
{
	struct perf_ask asked = *ask;
	struct err err;
	unsigned i;
	int rc = 0;

	for (i = 0; i < s->ncpus; i++)
		fresh[i].fd = -1;
	for (i = 0; i < s->ncpus && !rc; i++) {
		if (s->cpus[i].online)
			rc = perf_ring_open(&fresh[i], i, false, &asked, &err);
	}
	if (!rc)
		return true;
	while (i--)
		perf_ring_close(&fresh[i]);
	log_line(s->cfg.log, LOG_WARN, "sampling goes on with %u KB of stack: %s", s->ask.stack_kb,
		 err.text);
	return false;
}

/* They have ended: all that they hold, in order; for tables that are being loaded no longer than ever. */
static void empty_samplers(struct perf_source *s)
{
	do {
		os_sleep_ns(HOLD_BACK_NS);
		if (drain(s, s->switched_ns) >= s->switched_ns)
			return;
	} while (os_now_ns() < s->switched_ns + TABLES_WAIT_NS);
	drain(s, s->switched_ns + TABLES_WAIT_NS);   /* none waits any more */
}

/* What the old samplers hold is delivered before they go; what comes meanwhile waits in the new ones. */
static bool change_stack(struct perf_source *s, const struct perf_ask *ask)
{
	struct perf_ring *fresh = calloc(s->ncpus, sizeof(*fresh));
	unsigned i;

	if (!fresh || !reopen(s, ask, fresh)) {
		free(fresh);
		return false;
	}
	for (i = 0; i < s->ncpus; i++) {
		if (!s->cpus[i].online)
			continue;
		perf_ring_enable(&s->cpus[i].sampler, false);
		perf_ring_enable(&fresh[i], true);
	}
	s->switched_ns = os_now_ns();
	empty_samplers(s);
	for (i = 0; i < s->ncpus; i++) {
		if (!s->cpus[i].online)
			continue;
		perf_ring_close(&s->cpus[i].sampler);
		s->cpus[i].sampler = fresh[i];
	}
	free(fresh);
	s->format.nregs = ask->stack_kb ? PERF_REGS_COUNT : 0;
	s->format.stack = ask->stack_kb != 0;
	rebuild_polled(s);
	return true;
}

static bool change_period(struct perf_source *s, uint64_t period_ns)
{
	unsigned i;
	int os_error = 0;

	for (i = 0; i < s->ncpus && !os_error; i++) {
		if (s->cpus[i].online)
			os_error = perf_ring_set_period(&s->cpus[i].sampler, period_ns);
	}
	s->switched_ns = os_now_ns();
	if (!os_error)
		return true;
	log_line(s->cfg.log, LOG_WARN, "sampling goes on at %u Hz: the kernel refused another rate (%s)",
		 s->ask.freq_hz, strerror(os_error));
	for (i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].online)
			perf_ring_set_period(&s->cpus[i].sampler, s->period_ns);
	}
	return false;
}

/* On its own thread. What the CPUs did until now is expected at the old rate. */
static void change_level(struct perf_source *s, uint64_t wanted)
{
	struct perf_ask ask = s->ask;
	uint64_t period_ns;
	bool done;

	ask.freq_hz = (unsigned)(wanted >> 32);
	ask.stack_kb = (unsigned)(wanted & UINT32_MAX);
	period_ns = NS_PER_SEC / ask.freq_hz;
	s->delivered_ns = drain(s, os_now_ns() - HOLD_BACK_NS);
	if (s->busy)
		busy_read(s->busy, put_expected, s);
	s->old_period_ns = s->period_ns;
	done = ask.stack_kb == s->ask.stack_kb ? change_period(s, period_ns) : change_stack(s, &ask);
	if (!done) {
		s->switched_ns = 0;
		return;
	}
	s->ask = ask;
	s->period_ns = period_ns;
	s->rate_due = true;
}

/* Say what was switched once all before it is delivered; then the next wish, if there is one. */
static void follow_level(struct perf_source *s)
{
	uint64_t wanted;

	if (s->rate_due && s->delivered_ns < s->switched_ns)
		return;
	if (s->rate_due)
		put_rate(s);
	s->rate_due = false;
	wanted = atomic_exchange(&s->wanted, 0);
	if (wanted)
		change_level(s, wanted);
}

static void perf_set_level(struct source *source, const struct source_level *level)
{
	struct perf_source *s = (struct perf_source *)source;

	if (level->freq_hz)                  /* it looks within POLL_MS */
		atomic_store(&s->wanted, (uint64_t)level->freq_hz << 32 | level->stack_kb);
}

static void perf_set_memory(struct source *source, size_t table_bytes)
{
	loader_set_max(((struct perf_source *)source)->walker.loader, table_bytes);
}

static void check_each_second(struct perf_source *s, uint64_t now_ns)
{
	if (now_ns < s->next_check_ns)
		return;
	s->next_check_ns = now_ns + NS_PER_SEC;
	loader_sweep(s->walker.loader, now_ns);
	if (s->busy)
		busy_read(s->busy, put_expected, s);
	check_hotplug(s);
	note_damage(s);
	if (s->time)
		perf_time_look(s->time, s->delivered_ns, os_cpu_count());
	if (s->probes)
		probes_look(s->probes, now_ns);
	if (s->rescan) {
		s->rescan = false;
		perf_state_scan(s->state, NULL);
	}
}

static void wake(struct perf_source *s)
{
	uint64_t one = 1;

	if (write(s->wake_fd, &one, sizeof(one)) != sizeof(one))
		return;                      /* it wakes up within POLL_MS all the same */
}

/* By somebody who waits: then a burst is not waited for. */
static bool was_woken(struct perf_source *s)
{
	uint64_t wakes;

	return s->polled[0].revents && read(s->wake_fd, &wakes, sizeof(wakes)) == sizeof(wakes);
}

static int perf_run(struct source *source, struct err *err)
{
	struct perf_source *s = (struct perf_source *)source;
	bool waits = false;
	int rc;

	os_thread_priority(OS_PRIORITY_HIGH);
	enable(s, true, true);
	rc = perf_state_scan(s->state, err);
	if (rc)
		return rc;
	enable(s, false, true);
	while (!atomic_load(&s->stopping)) {
		uint64_t now, done_ns, until_ns;

		/*
		 * With 6 ms between two bursts it costs 6 % less, but of programs that are removed 10 ms after
		 * their start 10 % of the samples have names, not 43 % (tests/cli/names_linux.sh).
		 */
		if (poll(s->polled, 1 + POLLED_PER_CPU * (nfds_t)s->ncpus, waits ? TABLES_POLL_MS : POLL_MS) > 0 &&
		    !was_woken(s))
			os_sleep_ns(COALESCE_NS);
		now = os_now_ns();
		until_ns = now - HOLD_BACK_NS;
		if (s->rate_due && until_ns > s->switched_ns)
			until_ns = s->switched_ns;
		done_ns = drain(s, until_ns);
		waits = done_ns < until_ns;
		s->delivered_ns = done_ns;
		follow_level(s);
		perf_state_expire(s->state, done_ns);
		check_each_second(s, now);   /* may put events: before the watermark */
		queue_watermark(s->cfg.queue, done_ns);
	}
	enable(s, false, false);
	drain(s, UINT64_MAX);
	note_damage(s);
	queue_finish(s->cfg.queue);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------- */

static void perf_close(struct source *source)
{
	struct perf_source *s = (struct perf_source *)source;
	unsigned i;

	if (!s)
		return;
	for (i = 0; s->cpus && i < s->ncpus; i++)
		close_cpu(s, i);
	perf_time_free(s->time);
	probes_free(s->probes);
	perf_state_free(s->state);
	loader_free(s->walker.loader);
	busy_close(s->busy);
	unwinder_free(s->walker.unwinder);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	free(s->cpus);
	free(s->polled);
	free(s);
}

static int open_cpus(struct perf_source *s, const struct needs *needs, struct err *err)
{
	struct probes_config asked = {
		.needs = needs, .log = s->cfg.log, .stack_kb = s->cfg.stack_kb,
		.kernel_stacks = s->cfg.kernel_stacks, .thread_time = s->cfg.thread_time, .wakers = s->cfg.wakers,
	};
	bool online[CPUS_MAX];
	unsigned i, opened = 0;
	int rc;

	s->ncpus = read_cpus("possible", online);
	read_cpus("online", online);
	s->cpus = calloc(s->ncpus, sizeof(*s->cpus));
	s->polled = calloc(1 + POLLED_PER_CPU * (size_t)s->ncpus, sizeof(*s->polled));
	if (!s->cpus || !s->polled)
		return err_set(err, ERR_MEMORY, "out of memory for perf rings");
	asked.ncpus = s->ncpus;
	rc = probes_new(&asked, &s->probes, err);
	if (rc)
		return rc;
	for (i = 0; i < s->ncpus; i++) {
		if (!online[i])
			continue;
		rc = open_cpu(s, i, err);
		if (rc && rc != ERR_NOT_FOUND)
			return rc;
		opened += rc == 0;
	}
	if (!opened)
		return err_set(err, ERR_UNSUPPORTED, "no CPU could be opened for sampling");
	rebuild_polled(s);
	return 0;
}

static struct perf_ask ask_for(const struct source_config *cfg)
{
	return (struct perf_ask){
		.freq_hz = cfg->freq_hz, .kernel_stacks = cfg->kernel_stacks, .stack_kb = cfg->stack_kb,
		.stack_ring_bytes = perf_stack_ring_bytes(cfg->freq_hz, cfg->stack_kb),
		.build_ids = true, .ksymbols = cfg->kernel_stacks,
	};
}

static int perf_open(const struct source_config *cfg, const struct needs *needs, struct source **out,
		     struct err *err)
{
	struct perf_source *s = calloc(1, sizeof(*s));
	struct perf_state_config state = {0};
	int rc = 0;

	if (!s)
		return err_set(err, ERR_MEMORY, "out of memory for the perf source");
	s->base.ops = &perf_source;
	s->cfg = *cfg;
	s->ask = ask_for(cfg);
	s->format.callchain = true;
	s->format.nregs = cfg->stack_kb ? PERF_REGS_COUNT : 0;
	s->format.stack = cfg->stack_kb != 0;
	s->period_ns = NS_PER_SEC / cfg->freq_hz;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		rc = err_os(err, "cannot open the perf source");
	if (!cfg->only_process)              /* of one process alone it is not known */
		s->busy = busy_open();
	if (!rc)
		rc = open_cpus(s, needs, err);
	if (!rc)
		rc = loader_new(cfg->log, &s->walker.loader, err);
	if (!rc)
		rc = unwinder_new(UNWIND_REMOTE_BYTES, &s->walker.unwinder, err);
	if (!rc) {
		state.frames = cfg->frames;
		state.processes = cfg->processes;
		state.queue = cfg->queue;
		state.log = cfg->log;
		state.only_process = cfg->only_process;
		state.build_ids = s->ask.build_ids;
		state.ksymbols = s->ask.ksymbols;
		rc = perf_state_new(&state, &s->state, err);
		s->walker.state = s->state;
		s->walker.kernel_stacks = cfg->kernel_stacks;
	}
	if (!rc && cfg->thread_time)
		rc = perf_time_new(cfg->frames, cfg->queue, cfg->log, s->state, s->probes, &s->time, err);
	if (!rc && s->time)
		perf_time_read_kernel(s->time);
	if (rc) {
		perf_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static void perf_stop(struct source *source)
{
	struct perf_source *s = (struct perf_source *)source;

	atomic_store(&s->stopping, true);
	wake(s);
}

static void perf_catch_up(struct source *source)
{
	wake((struct perf_source *)source);
}

static void perf_status(struct source *source, struct source_status *out)
{
	struct perf_source *s = (struct perf_source *)source;
	uint64_t throttled = atomic_load(&s->throttled), damaged = atomic_load(&s->damaged);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load(&s->events);
	out->lost = atomic_load(&s->lost);
	out->table_bytes = loader_bytes(s->walker.loader, &out->table_max_bytes);
	if (s->time)
		perf_time_note(s->time, out->note, sizeof(out->note));
	if (s->probes && !out->note[0])
		probes_note(s->probes, out->note, sizeof(out->note));
	if (throttled)
		snprintf(out->note, sizeof(out->note),
			 "the kernel throttled sampling %llu times (kernel.perf_cpu_time_max_percent)",
			 (unsigned long long)throttled);
	if (damaged)
		snprintf(out->note, sizeof(out->note), "%llu records of the kernel's could not be read: they are counted as "
			 "lost", (unsigned long long)damaged);
}

static int perf_source_probe(const struct source_config *cfg, struct err *err)
{
	struct perf_ask ask = ask_for(cfg);

	return perf_probe(&ask, err);
}

static bool perf_name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	struct perf_source *s = (struct perf_source *)source;

	return s->time && perf_time_name(s->time, frame, out);
}

const struct source_ops perf_source = {
	.name = "perf",
	.summary = "CPU samples with stacks, processes and mappings, tracepoints (perf events)",
	.events = true,
	.check = probes_check,
	.list_events = probes_list,
	.stacks = true,
	.copies_stack = true,
	.probe = perf_source_probe,
	.part = probes_part,
	.open = perf_open,
	.run = perf_run,
	.stop = perf_stop,
	.catch_up = perf_catch_up,
	.set_level = perf_set_level,
	.set_memory = perf_set_memory,
	.status = perf_status,
	.name_frame = perf_name_frame,
	.close = perf_close,
};
