/*
 * The source of files of `perf record` (perf.data, and what it writes to a pipe): samples, other
 * events with stacks, processes and losses.
 *
 * A file is read twice. The first reading learns what the second one needs from the beginning: in
 * a pipe's stream build ids come at the end, and what a cycle was worth follows from all of them.
 *
 * One kind of event is the CPU's time: cpu-clock, else task-clock, else cycles. Its samples weigh
 * what perf says that they do, in ns. Cycles recorded at a rate are counted as the time that the
 * rate stands for, in proportion to their number. All other events are events with stacks.
 *
 * Stacks are call chains as perf recorded them, or unwound from registers and a copy of the stack
 * (--call-graph dwarf) by the unwinder that serves live recordings. Unwind tables are read by the
 * same loader.
 */
#include "base/os.h"
#include "source/perf/loader.h"
#include "source/perfdata/perf_world.h"
#include "source/source.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_NS NS_PER_MS                    /* between watermarks */
#define TABLES_NS (10 * NS_PER_SEC)          /* waiting for unwind tables, of all files together */
#define PAUSE_NS (NS_PER_MS / 10)
#define SWEEP_RECORDS 65536u
#define CLOCK_RECORDS 256u                   /* between looks at our own clock */
#define EVENT_OBJECT "event"

enum { CLOCK_CPU, CLOCK_TASK, CYCLES, NO_TIME };

struct perfdata {
	struct source base;
	struct source_config cfg;
	struct os_file *input;
	struct bytes bytes;
	struct perf_file *file;
	struct perf_world *world;
	struct loader *loader;
	struct unwinder *unwinder;
	struct unwind_stack stack;
	struct frame_ref frames[STACK_MAX_FRAMES];   /* of an event: its name and the stack */
	struct trace_values values;
	struct object *event_object;
	const struct world_process *sampled;
	uint64_t now_ns;                     /* by our own clock, some records ago */
	uint64_t until_ns, marked_ns, start_ns, idle, nrecords;
	int time_kind;
	double ns_per_cycle;
	bool kernel_frames;                  /* there are some */
	bool unwinding;                      /* this sample, so tables are needed */
	bool unwinds;                        /* registers are x86-64's */
	uint64_t wall_ns, modified_ns;
	uint64_t period_ns;
	struct os_mutex *lock;               /* guards the note */
	char note[400];
	_Atomic bool stopping;
	atomic_uint_fast64_t delivered, lost;
};

extern const struct source_ops perfdata_source;

static void put_event(void *ctx, const struct event *e)
{
	struct perfdata *s = ctx;

	while (!queue_offer(s->cfg.queue, e)) {
		if (atomic_load(&s->stopping))
			return;
		os_sleep_ns(NS_PER_MS / 4);
	}
	atomic_fetch_add_explicit(&s->delivered, 1, memory_order_relaxed);
	if (e->time_ns > s->marked_ns && e->time_ns - s->marked_ns >= MARK_NS) {
		s->marked_ns = e->time_ns;
		queue_watermark(s->cfg.queue, s->marked_ns);
	}
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	struct perfdata *s = ctx;
	struct loaded loaded;

	perf_world_locate(s->world, s->sampled, address, kernel, &out->ref);
	if (kernel)
		return;
	out->jit = (out->ref.flags & FRAME_JIT) != 0;
	if (!s->unwinding || out->jit || out->ref.object->key.kind != OBJECT_ELF)
		return;
	loader_get(s->loader, out->ref.object, 0, s->now_ns, &loaded);
	while (loaded.pending && s->now_ns < s->until_ns && !atomic_load(&s->stopping)) {
		os_sleep_ns(PAUSE_NS);
		s->now_ns = os_now_ns();
		loader_get(s->loader, out->ref.object, 0, s->now_ns, &loaded);
	}
	loader_place(&loaded, out);
}

/* 3 KiB for a thread that is sampled for the first time; without memory nothing is stitched. */
static struct unwind_memory *memory_of(struct world_thread *t, bool unwound)
{
	if (t && unwound && !t->memory)
		t->memory = calloc(1, sizeof(*t->memory));
	return t && unwound ? t->memory : NULL;
}

static void walk(struct perfdata *s, const struct perf_record *r,
		 const struct perf_layout *layout, struct world_thread *t)
{
	const struct unwind_caller caller = {.find = find, .ctx = s};
	bool no_chain = !r->u.sample.nkernel && !r->u.sample.nuser;
	struct unwind_input in = {
		.kernel_chain = r->u.sample.kernel, .nkernel = r->u.sample.nkernel,
		.user_chain = r->u.sample.user, .nuser = r->u.sample.nuser,
		.regs_abi = r->u.sample.regs_abi, .regs = r->u.sample.regs,
		.regs_mask = layout->regs_mask,
		.stack = r->u.sample.stack, .stack_bytes = r->u.sample.stack_bytes};

	/* In the middle of execve the registers are the old program's, whose stack has gone. */
	if (!s->unwinds || !in.stack_bytes) {
		in.regs_abi = 0;
		in.regs = NULL;
		in.regs_mask = 0;
	}
	if (no_chain && r->u.sample.kernel_mode) {
		in.kernel_chain = &r->u.sample.ip;
		in.nkernel = 1;
	} else if (no_chain && !in.regs) {
		in.user_chain = &r->u.sample.ip;
		in.nuser = 1;
	}
	s->sampled = t ? t->of : NULL;
	s->unwinding = in.regs != NULL;
	s->kernel_frames |= in.nkernel != 0;
	in.user_expected = r->pid != 0 && s->sampled && (in.nuser || in.regs) &&
			   maps_count(s->sampled->maps);
	unwinder_walk(s->unwinder, &in, &caller, memory_of(t, in.regs != NULL), &s->stack);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int kind_of_time(const struct perf_attr *a)
{
	if (a->type == 1 && a->config <= 1)
		return a->config ? CLOCK_TASK : CLOCK_CPU;
	/* The upper half says which kind of core. */
	return a->type == 0 && (uint32_t)a->config == 0 ? CYCLES : NO_TIME;
}

static bool is_time(const struct perfdata *s, const struct perf_file_event *e)
{
	return s->time_kind != NO_TIME && kind_of_time(&e->attr) == s->time_kind;
}

/* A sample without a period stands for one of the fixed number. */
static double count_of(const struct perf_file_event *e, const struct perf_record *r)
{
	if (r->u.sample.period)
		return (double)r->u.sample.period;
	if (!e->attr.is_rate)
		return e->attr.period ? (double)e->attr.period : 1;
	return kind_of_time(&e->attr) < CYCLES && e->attr.period
		       ? (double)NS_PER_SEC / (double)e->attr.period : 1;
}

static void put_time(struct perfdata *s, const struct perf_file_event *named,
		     const struct perf_record *r, struct event *e)
{
	e->kind = EVENT_SAMPLE;
	e->stream = STREAM_CPU;
	e->value = count_of(named, r) * (s->time_kind == CYCLES ? s->ns_per_cycle : 1);
	if (s->cfg.every_event) {
		e->provider = "perf";
		e->name = named->name;
	}
	put_event(s, e);
}

/* "sched:sched_switch" is of provider sched; the processor's counters have one of their own. */
static void put_other(struct perfdata *s, const struct perf_file_event *named, uint32_t number,
		      const struct perf_record *r, struct event *e)
{
	bool traced = named->attr.type == PERF_ATTR_TRACEPOINT;
	const char *colon = traced ? strchr(named->name, ':') : NULL;
	uint32_t n = s->stack.nframes < STACK_MAX_FRAMES ? s->stack.nframes : STACK_MAX_FRAMES - 1;
	char provider[sizeof(named->name)];

	snprintf(provider, sizeof(provider), "%.*s",
		 colon ? (int)(colon - named->name) : (int)sizeof(provider) - 1,
		 colon ? named->name : CPU_COUNTER_PROVIDER);
	e->kind = EVENT_GENERIC;
	e->stream = STREAM_EVENT;
	e->provider = provider;
	e->name = colon ? colon + 1 : named->name;
	e->value = count_of(named, r);
	if (named->tracepoint && r->u.sample.raw) {
		trace_format_read(&named->tracepoint->format, r->u.sample.raw,
				  r->u.sample.raw_bytes, &s->values);
		e->fields = s->values.fields;
		e->nfields = s->values.nfields;
		e->hex_fields = s->values.hex_fields;
	}
	put_event(s, e);
	e->nfields = 0;
	if (s->cfg.every_event || !s->event_object)
		return;
	s->frames[0] = (struct frame_ref){.object = s->event_object, .offset = number};
	memcpy(s->frames + 1, s->stack.frames, n * sizeof(*s->frames));
	e->kind = EVENT_SAMPLE;
	e->stack_frames = s->frames;
	e->nstack_frames = n + 1;
	put_event(s, e);
}

static bool is_wanted(const struct perfdata *s, const struct process *process)
{
	const char *only = s->cfg.capture.only_process;

	return !only || (process && process_is_meant(process, only));
}

static void on_sample(struct perfdata *s, const struct perf_record *r, uint32_t number)
{
	const struct perf_file_event *named = perf_file_event(s->file, number);
	struct event e = {.time_ns = r->time_ns, .stack = STACK_NONE,
			  .cpu = r->cpu < CPU_NONE ? (uint16_t)r->cpu : CPU_NONE};
	struct world_thread *t;

	/* What a CPU's clock says of its idle time is no work. */
	if (!r->pid && !r->tid && is_time(s, named) && s->time_kind != CYCLES &&
	    !s->cfg.every_event) {
		s->idle++;
		return;
	}
	t = perf_world_thread(s->world, r->pid, r->tid, r->time_ns);
	if (!is_wanted(s, t ? t->process : NULL))
		return;
	walk(s, r, &named->attr.layout, t);
	e.process = t ? t->process : NULL;
	e.thread = t ? t->thread : NULL;
	e.quality = (uint8_t)s->stack.quality;
	e.stack_frames = s->stack.frames;
	e.nstack_frames = s->stack.nframes;
	if (is_time(s, named))
		put_time(s, named, r, &e);
	else
		put_other(s, named, number, r, &e);
}

static void put_lost(struct perfdata *s, enum loss_kind kind, uint64_t n,
		     const struct perf_record *r)
{
	const struct event e = {.time_ns = r->time_ns ? r->time_ns : s->start_ns,
				.kind = EVENT_LOST, .stack = STACK_NONE,
				.cpu = r->cpu < CPU_NONE ? (uint16_t)r->cpu : CPU_NONE,
				.name = loss_kind_text(kind), .value = (double)n};

	put_event(s, &e);
	atomic_fetch_add_explicit(&s->lost, n, memory_order_relaxed);
}

static int each_record(void *ctx, const struct perf_record *r, uint32_t event)
{
	struct perfdata *s = ctx;

	if (atomic_load_explicit(&s->stopping, memory_order_relaxed))
		return ERR_STOPPED;
	if (s->nrecords++ % CLOCK_RECORDS == 0)
		s->now_ns = os_now_ns();
	if (s->nrecords % SWEEP_RECORDS == 0)
		loader_sweep(s->loader, s->now_ns);
	if (r->kind == PERF_KIND_SAMPLE)
		on_sample(s, r, event);
	else if (r->kind == PERF_KIND_LOST)
		put_lost(s, LOSS_KERNEL, r->u.lost, r);
	else if (r->kind == PERF_KIND_THROTTLE)
		put_lost(s, LOSS_THROTTLED, 1, r);
	else
		perf_world_feed(s->world, r);
	return 0;
}

/* ---- between the two readings ---------------------------------------------------------------- */

static void choose_time(struct perfdata *s)
{
	uint32_t i;

	s->time_kind = NO_TIME;
	for (i = 0; i < perf_file_events(s->file); i++) {
		const struct perf_file_event *e = perf_file_event(s->file, i);
		int kind = kind_of_time(&e->attr);

		if (kind >= s->time_kind)
			continue;
		s->time_kind = kind;
		s->ns_per_cycle = 1;
		s->period_ns = 0;
		if (e->attr.period && e->attr.period <= NS_PER_SEC)
			s->period_ns = e->attr.is_rate ? NS_PER_SEC / e->attr.period
				       : kind == CYCLES ? 0 : e->attr.period;
		if (kind == CYCLES && e->attr.is_rate && e->attr.period && e->period_sum)
			s->ns_per_cycle = (double)e->nsamples * 1e9 / (double)e->attr.period /
					  (double)e->period_sum;
	}
}

/* When it began by the clock on the wall: told, or from when perf finished it. */
static void date(struct perfdata *s)
{
	const struct perf_file_facts *f = perf_file_facts(s->file);
	uint64_t length_ns = f->last_ns - f->first_ns;

	if (f->clock_ns && f->clock_wall_ns + f->first_ns > f->clock_ns)
		s->wall_ns = f->clock_wall_ns + f->first_ns - f->clock_ns;
	else if (s->modified_ns > length_ns)
		s->wall_ns = s->modified_ns - length_ns;
}

static void say(struct buf *b, const char *text)
{
	buf_printf(b, "%s%s", b->len ? "; " : "", text);
}

static void say_count(struct buf *b, uint64_t n, const char *what)
{
	if (n)
		buf_printf(b, "%s%" PRIu64 " %s", b->len ? "; " : "", n, what);
}

static void say_missing(const struct perfdata *s, struct buf *b)
{
	const struct perf_file_facts *f = perf_file_facts(s->file);

	if (f->cut)
		say(b, "perf did not finish it, or its end is missing: no build ids, so few names");
	say_count(b, f->damaged, "records are damaged");
	say_count(b, f->late, "records stand out of order");
}

static void warn(const struct perfdata *s)
{
	struct buf b = {0};

	say_missing(s, &b);
	if (b.len)
		log_line(s->cfg.log, LOG_WARN, "%s is incomplete: %s", s->cfg.capture.file,
			 buf_text(&b));
	buf_free(&b);
}

/* What is missing, and what is worth knowing. */
static void note(struct perfdata *s)
{
	const struct perf_file_facts *f = perf_file_facts(s->file);
	struct buf b = {0};

	say_missing(s, &b);
	say_count(&b, s->idle, "samples of idle CPUs are left out");
	if (s->time_kind == CYCLES && s->ns_per_cycle == 1)
		say(&b, "a cycle counts as 1 ns: the file does not say how fast they went");
	if (!s->unwinds)
		say(&b, "stacks follow perf's call chains: only those of x86-64 are unwound");
	if (s->kernel_frames && !perf_world_kernel_is_ours(s->world))
		say(&b, "functions of the kernel have no names: it is not the one that runs here, "
		    "or its build id was not recorded");
	if (!f->clock_ns)
		say(&b, "the time of day is that of the file's last change");
	os_mutex_lock(s->lock);
	snprintf(s->note, sizeof(s->note), "%s", buf_text(&b));
	os_mutex_unlock(s->lock);
	buf_free(&b);
}

static int prepare(struct perfdata *s, struct err *err)
{
	const struct perf_file_facts *f = perf_file_facts(s->file);
	const struct object_key event = {.kind = OBJECT_JIT, .path = EVENT_OBJECT, .epoch = 1};
	const struct perf_world_config world = {
		.frames = s->cfg.frames, .processes = s->cfg.processes, .log = s->cfg.log,
		.file = s->file, .start_ns = f->first_ns, .put = put_event, .ctx = s};

	if (!f->nrecords || !perf_file_events(s->file))
		return err_set(err, ERR_FORMAT, "%s holds no records", s->cfg.capture.file);
	if (!f->first_ns)
		return err_set(err, ERR_UNSUPPORTED, "%s has no times: record with 'perf record "
			       "--timestamp'", s->cfg.capture.file);
	s->start_ns = f->first_ns;
	s->unwinds = !f->arch[0] || strcmp(f->arch, "x86_64") == 0 || strcmp(f->arch, "i686") == 0;
	choose_time(s);
	date(s);
	s->event_object = objects_get(s->cfg.frames, &event, 0);
	s->until_ns = os_now_ns() + TABLES_NS;
	return perf_world_new(&world, &s->world, err);
}

static int perfdata_run(struct source *source, struct err *err)
{
	struct perfdata *s = (struct perfdata *)source;
	int rc = perf_file_survey(s->file, &s->stopping, err);

	if (!rc)
		rc = prepare(s, err);
	if (!rc) {
		note(s);
		rc = perf_file_run(s->file, each_record, s, err);
		note(s);
		warn(s);
	}
	queue_finish(s->cfg.queue);
	return rc == ERR_STOPPED ? 0 : rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void perfdata_close(struct source *source)
{
	struct perfdata *s = (struct perfdata *)source;

	perf_world_free(s->world);
	if (s->event_object)
		object_drop(s->event_object, 0);
	unwinder_free(s->unwinder);
	loader_free(s->loader);
	perf_file_close(s->file);
	os_close(s->input);
	os_mutex_free(s->lock);
	free(s);
}

static int open_input(struct perfdata *s, struct err *err)
{
	struct os_file_info info;
	int rc = os_open(s->cfg.capture.file, OS_READ, &s->input, err);

	if (!rc)
		rc = os_file_info(s->input, &info, err);
	if (rc)
		return rc;
	s->bytes = bytes_of_file(s->input, info.size_bytes);
	s->modified_ns = info.mtime_ns;
	return perf_file_open(&s->bytes, s->cfg.capture.file, &s->file, err);
}

static int perfdata_open(const struct source_config *cfg, const struct needs *needs,
			 struct source **out, struct err *err)
{
	struct perfdata *s = calloc(1, sizeof(*s));
	struct hung_devices *hung = hung_devices_new();
	int rc = 0;

	(void)needs;
	if (s)
		s->lock = os_mutex_new();
	if (!s || !s->lock || !hung) {
		free(s);
		hung_devices_drop(hung);
		return err_memory(err, "for reading %s", cfg->capture.file);
	}
	s->base.ops = &perfdata_source;
	s->cfg = *cfg;
	rc = open_input(s, err);
	if (!rc)
		rc = loader_new(cfg->log, hung, &s->loader, err);
	if (!rc)
		rc = unwinder_new(UNWIND_REMOTE_BYTES, &s->unwinder, err);
	hung_devices_drop(hung);
	if (rc)
		perfdata_close(&s->base);
	else
		*out = &s->base;
	return rc;
}

static int perfdata_check(const struct needs *needs, struct err *err)
{
	if (needs->ncounters || needs->nlogs)
		return err_set(err, ERR_NOT_FOUND,
			       "a file of perf holds no counters and no logs");
	return 0;
}

static void perfdata_stop(struct source *source)
{
	atomic_store(&((struct perfdata *)source)->stopping, true);
}

static void copy_note(struct perfdata *s, char *out, size_t n)
{
	os_mutex_lock(s->lock);
	snprintf(out, n, "%.*s", (int)n - 1, s->note);
	os_mutex_unlock(s->lock);
}

static void perfdata_status(struct source *source, struct source_status *out)
{
	struct perfdata *s = (struct perfdata *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->delivered, memory_order_relaxed);
	out->lost = atomic_load_explicit(&s->lost, memory_order_relaxed);
	copy_note(s, out->note, sizeof(out->note));
}

static void perfdata_origin(struct source *source, struct source_origin *out)
{
	struct perfdata *s = (struct perfdata *)source;
	const struct perf_file_facts *f = perf_file_facts(s->file);

	memset(out, 0, sizeof(*out));
	out->start_ns = f->first_ns;
	out->start_wall_ns = s->wall_ns;
	out->period_ns = s->period_ns;
	out->bytes = s->bytes.size;
	snprintf(out->host, sizeof(out->host), "%s", f->host);
	snprintf(out->host_text, sizeof(out->host_text), "%s%s%s%s",
		 f->release[0] ? "Linux " : "", f->release, f->arch[0] ? " " : "", f->arch);
	copy_note(s, out->note, sizeof(out->note));
}

static bool perfdata_name_frame(struct source *source, const struct frame *frame,
				struct symbol *out)
{
	struct perfdata *s = (struct perfdata *)source;
	uint32_t event = (uint32_t)frame->offset;

	if (!s->event_object || frame->object != s->event_object ||
	    event >= perf_file_events(s->file))
		return false;
	*out = (struct symbol){.offset = frame->offset,
			       .name = perf_file_event(s->file, event)->name};
	return true;
}

/* Not at once: the thread that takes the events would wait for the list of the kernel's names. */
static bool perfdata_name_late(struct source *source, const struct object *object, uint64_t offset,
			       struct symbol *out)
{
	const struct perfdata *s = (struct perfdata *)source;

	return s->world && perf_world_name(s->world, object, offset, out);
}

const struct source_ops perfdata_source = {
	.name = "perf.data",
	.summary = "samples and events in files of perf record (perf.data)",
	.events = true,
	.check = perfdata_check,
	.open = perfdata_open,
	.run = perfdata_run,
	.stop = perfdata_stop,
	.status = perfdata_status,
	.origin = perfdata_origin,
	.name_frame = perfdata_name_frame,
	.name_late = perfdata_name_late,
	.close = perfdata_close,
};
