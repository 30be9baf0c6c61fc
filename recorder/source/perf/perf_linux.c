/*
 * The live source of Linux: per CPU a cpu-clock sampler and a side-band ring (perf/cpus_linux.h),
 * merged by time.
 *
 * Each ring is in time order by itself, but the rings are not ordered among each other. So: note
 * the clock T0, read all rings, release what is older than T0 - 1 ms in time order, and keep the
 * rest.
 */
#include "source/perf/perf_private.h"

#include "base/os.h"
#include "source/host/busy.h"
#include "source/host/proc_reader_linux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_BACK_NS NS_PER_MS           /* another CPU's record may arrive this late */
#define TABLES_POLL_NS (4 * NS_PER_MS)
#define COALESCE_NS (2 * NS_PER_MS)      /* side-band records of a burst share a wake-up */

/* ---- draining -------------------------------------------------------------------------------- */

/* Warn about damaged records, once. */
static void note_damage(struct perf_source *s)
{
	uint64_t damaged = perf_cpus_damaged(&s->cpus);

	if (damaged && !atomic_load(&s->damaged))
		log_line(s->cfg.log, LOG_WARN,
			 "a perf record of the kernel or of librecorder-heap.so could not be read; "
			 "such records are counted as lost");
	atomic_store(&s->damaged, damaged);
}

/* Behind the record of a side-band ring that was just put. */
static void note_gap(struct perf_source *s, struct perf_ring *ring)
{
	uint64_t until_ns = perf_ring_gap(ring);

	if (!until_ns)
		return;
	perf_state_lose(s->state, until_ns);
	s->rescan = true;
}

/*
 * Put everything before until_ns into the queue, in time order. A sample whose unwind tables are
 * being loaded stays in its ring for up to TABLES_WAIT_NS, where the copy of its stack is, and so
 * do all newer records; not while a ring is half full. s->delivered_ns says how far this came; it
 * never goes back, because this source puts events of its own at that time.
 *
 * now_ns   the time now; UINT64_MAX = no sample may wait
 */
static void deliver(struct perf_source *s, uint64_t until_ns, uint64_t now_ns)
{
	uint64_t done_ns = until_ns;
	struct perf_ring *ring;

	s->filling = perf_cpus_refresh(&s->cpus);
	while ((ring = perf_cpus_oldest(&s->cpus)) != NULL && ring->record.time_ns < until_ns) {
		if (!perf_put_record(s, ring, now_ns)) {
			done_ns = ring->record.time_ns;
			break;
		}
		perf_ring_next(ring);
		if (ring->sideband)
			note_gap(s, ring);
	}
	s->delivered_ns = done_ns > s->delivered_ns ? done_ns : s->delivered_ns;
}

static void put_expected(void *ctx, unsigned cpu, uint64_t busy_ns)
{
	struct perf_source *s = ctx;
	struct event e = {.time_ns = s->delivered_ns, .kind = EVENT_EXPECTED, .cpu = (uint16_t)cpu,
			  .stack = STACK_NONE, .value = (double)busy_ns / (double)s->period_ns};

	queue_put(s->cfg.queue, &e);
}

/* ---- another level --------------------------------------------------------------------------- */

static void put_rate(struct perf_source *s)
{
	const struct event_field field = {.name = "StackKb", .type = FIELD_UINT,
					  .v.u = s->cpus.ask.stack_kb};
	struct event e = {.time_ns = s->switched_ns, .kind = EVENT_RATE, .cpu = CPU_NONE,
			  .stack = STACK_NONE, .value = (double)s->period_ns, .fields = &field,
			  .nfields = 1};

	queue_put(s->cfg.queue, &e);
}

/* Deliver all that the ended samplers hold, in order; samples wait for their tables as always. */
static void empty_samplers(struct perf_source *s)
{
	uint64_t now_ns;

	do {
		os_sleep_ns(HOLD_BACK_NS);
		now_ns = os_now_ns();
		deliver(s, s->switched_ns, now_ns);
	} while (s->delivered_ns < s->switched_ns && now_ns < s->switched_ns + TABLES_WAIT_NS);
	deliver(s, s->switched_ns, UINT64_MAX);
}

/* Old samplers are emptied before they are closed; new records wait in the new ones meanwhile. */
static bool change_stack(struct perf_source *s, const struct perf_ask *ask)
{
	struct err err;

	if (perf_cpus_open_samplers(&s->cpus, ask, &err)) {
		log_line(s->cfg.log, LOG_WARN, "sampling continues with %u KB of stack: %s",
			 s->cpus.ask.stack_kb, err.text);
		return false;
	}
	s->switched_ns = perf_cpus_start_samplers(&s->cpus);
	empty_samplers(s);
	perf_cpus_take_samplers(&s->cpus, ask);
	return true;
}

static bool change_period(struct perf_source *s, uint64_t period_ns)
{
	int os_error = perf_cpus_set_period(&s->cpus, period_ns);

	s->switched_ns = os_now_ns();
	if (!os_error)
		return true;
	log_line(s->cfg.log, LOG_WARN,
		 "sampling continues at %u Hz: the kernel refused another rate (%s)",
		 s->cpus.ask.freq_hz, strerror(os_error));
	perf_cpus_set_period(&s->cpus, s->period_ns);
	return false;
}

/* The source's thread. Until now the CPUs' busy time is expected at the old rate. */
static void change_level(struct perf_source *s, uint64_t wanted)
{
	struct perf_ask ask = s->cpus.ask;
	uint64_t period_ns, until_ns;
	bool done;

	ask.freq_hz = (unsigned)(wanted >> 32);
	ask.stack_kb = (unsigned)(wanted & UINT32_MAX);
	period_ns = NS_PER_SEC / ask.freq_hz;
	until_ns = os_now_ns() - HOLD_BACK_NS;
	deliver(s, until_ns, until_ns);
	if (s->busy)
		busy_read(s->busy, put_expected, s);
	s->old_period_ns = s->period_ns;
	done = ask.stack_kb == s->cpus.ask.stack_kb ? change_period(s, period_ns)
						    : change_stack(s, &ask);
	if (!done) {
		s->switched_ns = 0;
		return;
	}
	s->cpus.ask = ask;
	s->period_ns = period_ns;
	s->rate_due = true;
}

/* Put EVENT_RATE once all older samples are delivered; then apply the next request, if any. */
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

/* Peekers run only while there is something to peek at. */
static void follow_python(struct perf_source *s, uint64_t now_ns)
{
	struct perf_ask ask = s->cpus.ask;
	uint64_t until_ns;

	if (!s->python || s->rate_due || !ask.stack_kb)
		return;
	ask.peeked = perf_python_wants(s->python, &s->cpus, now_ns);
	if (ask.peeked == s->cpus.ask.peeked)
		return;
	until_ns = os_now_ns() - HOLD_BACK_NS;
	deliver(s, until_ns, until_ns);
	s->old_period_ns = s->period_ns;
	change_stack(s, &ask);
	perf_python_look(s->python, &s->cpus, now_ns);
}

static void perf_set_level(struct source *source, const struct source_level *level)
{
	struct perf_source *s = (struct perf_source *)source;

	if (level->freq_hz)                  /* its thread sees this within SOURCE_TURN_NS */
		atomic_store(&s->wanted, (uint64_t)level->freq_hz << 32 | level->stack_kb);
}

static void perf_set_memory(struct source *source, size_t table_bytes)
{
	loader_set_max(((struct perf_source *)source)->walker.loader, table_bytes);
}

static void list_helpers(struct perf_source *s)
{
	struct pool *proc, *names;

	perf_state_pools(s->state, &proc, &names);
	helpers_add(&s->helpers, "/proc", proc);
	helpers_add(&s->helpers, "command lines", names);
	helpers_add(&s->helpers, "mapped files", loader_pool(s->walker.loader));
	helpers_add(&s->helpers, "memory of processes", proc_reader_pool(s->walker.reader));
	helpers_add(&s->helpers, "pages of processes", perf_memory_pool(s->memory));
	helpers_add(&s->helpers, "names of open files", perf_files_pool(s->files));
}

/* Also at the end, for what was left out in the last second. */
static void look_at_probes(struct perf_source *s, uint64_t now_ns)
{
	if (!s->cpus.probes)
		return;
	/* A program may write no record after its noise that would tell of it. */
	perf_put_lost(s, LOSS_EVENTS, s->cpus.heap.unreported, CPU_NONE,
		      s->delivered_ns < now_ns ? s->delivered_ns : now_ns);
	s->cpus.heap.unreported = 0;
	probes_look(s->cpus.probes, now_ns);
	perf_put_lost(s, LOSS_EVENTS,
		 probes_left_out(s->cpus.probes) + probes_missed(s->cpus.probes), CPU_NONE,
		 s->delivered_ns < now_ns ? s->delivered_ns : now_ns);
}

static void check_each_second(struct perf_source *s, uint64_t now_ns)
{
	if (now_ns < s->next_check_ns)
		return;
	s->next_check_ns = now_ns + NS_PER_SEC;
	loader_sweep(s->walker.loader, now_ns);
	proc_reader_look(s->walker.reader, now_ns);
	perf_managed_look(s->walker.managed, now_ns);
	if (s->python)
		perf_python_look(s->python, &s->cpus, now_ns);
	if (s->busy)
		busy_read(s->busy, put_expected, s);
	s->rescan |= perf_cpus_follow(&s->cpus, s->cfg.log);
	note_damage(s);
	helpers_check(&s->helpers, s->cfg.log);
	if (s->time)
		perf_time_look(s->time, s->delivered_ns, os_cpu_count());
	look_at_probes(s, now_ns);
	if (s->rescan) {
		s->rescan = false;
		perf_state_rescan(s->state, s->delivered_ns);
	}
}

static int perf_run(struct source *source, struct err *err)
{
	struct perf_source *s = (struct perf_source *)source;
	struct source_pace pace = {.at_ns = os_now_ns()};
	uint64_t wait_ns = 0;
	uint64_t turn_ns;
	int rc;

	os_thread_priority(OS_PRIORITY_HIGH);
	perf_cpus_enable(&s->cpus, true, true);
	rc = perf_state_scan(s->state, 0, err);
	if (rc)
		return rc;
	perf_cpus_enable(&s->cpus, false, true);
	s->block_ns = os_now_ns();
	/*
	 * The first watermark says that it records. A program that waits for that is seen from its
	 * first instruction on.
	 */
	if (!s->cfg.capture.root_pid)
		queue_watermark(s->cfg.queue, pace.at_ns);
	perf_state_await_kernel(s->state);
	queue_watermark(s->cfg.queue, pace.at_ns);
	while (!atomic_load(&s->stopping)) {
		uint64_t now, until_ns;

		/*
		 * COALESCE_NS of 6 ms would save 6 % of the cost, but programs whose files are gone
		 * 10 ms later would have 10 % of their names, not 43 % (cli/names_linux.sh).
		 */
		if (perf_cpus_wait(&s->cpus, wait_ns))
			os_sleep_ns(COALESCE_NS + s->cfg.capture.batch_ns);
		now = os_now_ns();
		until_ns = now - HOLD_BACK_NS;
		if (s->rate_due && until_ns > s->switched_ns)
			until_ns = s->switched_ns;
		deliver(s, until_ns, now);
		turn_ns = source_turn_ns(&pace, atomic_load(&s->events), now);
		wait_ns = s->delivered_ns < until_ns ? TABLES_POLL_NS : turn_ns - now % turn_ns;
		follow_level(s);
		follow_python(s, now);
		perf_state_look(s->state, s->delivered_ns);
		perf_state_expire(s->state, s->delivered_ns);
		perf_memory_look(s->memory, s->delivered_ns);
		perf_files_look(s->files, s->delivered_ns);
		check_each_second(s, now);   /* puts events, so it comes before the watermark */
		queue_watermark(s->cfg.queue, s->delivered_ns);
	}
	perf_cpus_enable(&s->cpus, false, false);
	deliver(s, UINT64_MAX, UINT64_MAX);
	perf_memory_finish(s->memory, os_now_ns());
	look_at_probes(s, os_now_ns());
	note_damage(s);
	queue_finish(s->cfg.queue);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void perf_close(struct source *source)
{
	struct perf_source *s = (struct perf_source *)source;

	if (!s)
		return;
	perf_time_free(s->time);
	perf_python_free(s->python);
	perf_memory_free(s->memory);
	perf_files_free(s->files);
	if (s->event_object)
		object_drop(s->event_object, UINT64_MAX - 1);
	perf_cpus_close(&s->cpus);
	perf_state_free(s->state);
	loader_free(s->walker.loader);
	busy_close(s->busy);
	unwinder_free(s->walker.unwinder);
	perf_managed_free(s->walker.managed);
	proc_reader_free(s->walker.reader);
	free(s);
}

/*
 * A program and what it starts: all CPUs are sampled, too, and the others are left out. A user
 * without that right gets events of the program's tasks. Each task begins with a whole period
 * there, so tasks that are shorter leave no sample.
 */
static int open_cpus(struct perf_source *s, const struct probes_config *probes, struct err *err)
{
	struct perf_ask ask = perf_cpus_ask(&s->cfg.capture, os_cpu_count());
	uint32_t faults = ask.no_samples ? 0 : s->cfg.capture.memory_period;
	uint32_t unmaps = faults ? perf_memory_tracepoint(&s->unmaps) : 0;
	int rc = perf_cpus_open(&s->cpus, &ask, probes, faults, unmaps, err);

	if (rc != ERR_ACCESS || !s->cfg.capture.root_pid)
		return rc;
	ask.pid = s->cfg.capture.root_pid;
	rc = perf_cpus_open(&s->cpus, &ask, probes, faults, unmaps, err);
	if (!rc)
		log_line(s->cfg.log, LOG_WARN, "this user may not sample the whole machine: what "
			 "runs for less than %.0f ms is not seen%s", (double)s->period_ns / 1e6,
			 s->cpus.ask.user_only ? ", nor is time in the kernel" : "");
	return rc;
}

/* What is known of it is from then. */
static void look_at_process(void *ctx, const struct process *process)
{
	struct perf_source *s = ctx;

	probes_look_at(s->cpus.probes, process, s->delivered_ns);
}

static int open_state(struct perf_source *s, const struct needs *needs, struct err *err)
{
	const struct source_config *cfg = &s->cfg;
	const struct capture *capture = &cfg->capture;
	const struct perf_state_config state = {
		.frames = cfg->frames, .processes = cfg->processes, .queue = cfg->queue,
		.log = cfg->log, .managed = s->walker.managed,
		.program = s->cpus.program,
		.only_process = capture->only_process, .only_its_events = capture->only_its_events,
		.root_pid = capture->root_pid, .root_only = s->cpus.ask.pid != 0,
		.build_ids = s->cpus.ask.build_ids,
		.ksymbols = s->cpus.ask.ksymbols && !s->cpus.ask.user_only,
		.switches = capture_switches(capture), .kallsyms = cfg->kallsyms,
		.command_lines = capture->only_process || (needs && needs->command_lines),
		.named = {s->cpus.probes ? look_at_process : NULL, s},
		.java = {s->cpus.probes ? probes_saw_java : NULL, s->cpus.probes},
	};
	int rc = perf_state_new(&state, &s->state, err);

	s->walker.state = s->state;
	s->walker.kernel_stacks = !capture->no_kernel_stacks;
	if (!rc && capture_switches(capture))
		rc = perf_time_new(cfg, s->state, s->walker.managed, s->cpus.probes, &s->time, err);
	return rc;
}

static int perf_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	const struct capture *capture = &cfg->capture;
	const struct object_key events = {.kind = OBJECT_JIT, .path = "event"};
	struct probes_config probes = {.needs = needs, .log = cfg->log, .capture = capture};
	struct perf_source *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_memory(err, "for the perf source");
	s->base.ops = &perf_source;
	s->cfg = *cfg;
	s->period_ns = NS_PER_SEC / capture->freq_hz;
	/* Busy time is known per CPU, not per process. */
	if (!capture->only_process && !capture->root_pid && !capture->only_providers)
		s->busy = busy_open();
	rc = proc_reader_new(cfg->log, &s->walker.reader, err);
	probes.reader = s->walker.reader;
	if (!rc)
		rc = open_cpus(s, &probes, err);
	if (!rc)
		rc = unwinder_new(UNWIND_REMOTE_BYTES, &s->walker.unwinder, err);
	if (!rc)
		rc = perf_managed_new(cfg->frames, s->walker.reader, cfg->log, perf_managed_readers(
				      capture->no_node), &s->walker.managed, err);
	if (!rc && !capture->no_python && capture->stack_kb)
		rc = perf_python_new(s->walker.managed, &s->cpus, cfg->log, &s->python, err);
	if (!rc)
		rc = open_state(s, needs, err);
	if (!rc && s->cpus.probes && !(s->event_object = objects_get(cfg->frames, &events, 0)))
		rc = err_memory(err, "for the events of rules");
	if (!rc && s->cpus.fault_period)
		rc = perf_memory_new(s->state, cfg->queue, &s->cpus, &s->unmaps, &s->memory, err);
	if (!rc)
		rc = perf_files_new(needs, cfg->queue, &s->files, err);
	if (!rc)
		rc = loader_new(cfg->log, perf_state_hung(s->state), &s->walker.loader, err);
	if (rc) {
		perf_close(&s->base);
		return rc;
	}
	list_helpers(s);
	*out = &s->base;
	return 0;
}

static void perf_stop(struct source *source)
{
	struct perf_source *s = (struct perf_source *)source;

	atomic_store(&s->stopping, true);
	perf_cpus_wake(&s->cpus);
}

static void perf_fired(struct source *source)
{
	perf_memory_fired(((struct perf_source *)source)->memory);
}

static void perf_catch_up(struct source *source)
{
	perf_cpus_wake(&((struct perf_source *)source)->cpus);
}

static void perf_status(struct source *source, struct source_status *out)
{
	struct perf_source *s = (struct perf_source *)source;
	uint64_t throttled = atomic_load(&s->throttled), damaged = atomic_load(&s->damaged);
	uint32_t pid = 0;
	uint64_t skipped = perf_state_skipped(s->state, &pid);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load(&s->events);
	out->lost = atomic_load(&s->lost);
	out->table_bytes = loader_bytes(s->walker.loader, &out->table_max_bytes);
	perf_memory_note(s->memory, out->note, sizeof(out->note));
	perf_time_note(s->time, out->note, sizeof(out->note));
	if (s->cpus.probes && !out->note[0])
		probes_note(s->cpus.probes, out->note, sizeof(out->note));
	if (perf_managed_forgotten(s->walker.managed) && !out->note[0])
		snprintf(out->note, sizeof(out->note),
			 "no room for the code of all managed programs: %llu times one without "
			 "samples was forgotten for another",
			 (unsigned long long)perf_managed_forgotten(s->walker.managed));
	if (s->python && !out->note[0])
		perf_python_note(s->python, out->note, sizeof(out->note));
	if (skipped)
		snprintf(out->note, sizeof(out->note),
			 "%llu changes of executable mappings were skipped, the last of process "
			 "%u: more than %u a second",
			 (unsigned long long)skipped, pid, MAPPINGS_PER_SEC_MAX);
	if (throttled)
		snprintf(out->note, sizeof(out->note),
			 "the kernel throttled sampling %llu times "
			 "(kernel.perf_cpu_time_max_percent)",
			 (unsigned long long)throttled);
	if (damaged)
		snprintf(out->note, sizeof(out->note),
			 "%llu perf records from the kernel could not be read: counted as lost",
			 (unsigned long long)damaged);
	out->degraded = helpers_note(&s->helpers, out->note, sizeof(out->note));
}

static int perf_source_probe(const struct source_config *cfg, struct err *err)
{
	struct perf_ask ask = perf_cpus_ask(&cfg->capture, os_cpu_count());
	int rc = perf_probe(&ask, err);

	if (rc != ERR_ACCESS || !cfg->capture.root_pid)
		return rc;
	ask.pid = cfg->capture.root_pid;
	return perf_probe(&ask, err);
}

static bool perf_name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	struct perf_source *s = (struct perf_source *)source;

	if (s->event_object && frame->object == s->event_object) {
		*out = (struct symbol){.offset = frame->offset, .name = s->event_name};
		return probes_name(s->cpus.probes, frame->offset, s->event_name,
				   sizeof(s->event_name));
	}
	return (s->time && perf_time_name(s->time, frame, out)) ||
	       perf_managed_name(s->walker.managed, frame, out);
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
	.looks_at_others = true,
	.open = perf_open,
	.run = perf_run,
	.stop = perf_stop,
	.catch_up = perf_catch_up,
	.fired = perf_fired,
	.set_level = perf_set_level,
	.set_memory = perf_set_memory,
	.status = perf_status,
	.name_frame = perf_name_frame,
	.close = perf_close,
};
