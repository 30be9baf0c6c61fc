/*
 * The source of stacks of chosen processes without ETW and administrator rights. It takes the
 * stacks of their threads in rounds (thread_stacks.h): at --freq for threads that have used CPU
 * time since their last stack, and once a second for all.
 *
 * Windows counts a thread's CPU time in ticks of its clock (10 to 16 ms). The time counted since
 * a thread's last stack is the weight of its stack in the stream cpu. Sums are right, and in the
 * long run shares of functions are; but the time of a thread that ran briefly and waits again
 * goes to the wait. The stream off-cpu has the same times below CPU_TIME and, once a second, a
 * thread's waits below BLOCKED_TIME.
 *
 * Rounds take at most a tenth of the time: with many threads they come less often than requested.
 */
#include "source/source.h"

#include "base/array.h"
#include "base/os.h"
#include "source/stopped/thread_stacks.h"
#include "source/thread_time.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 16u
#define REFRESH_NS NS_PER_SEC                   /* of processes, threads, images, idle stacks */
#define WATERMARK_NS (100 * NS_PER_MS)
#define TIME_SHARE 10u                            /* rounds take 1/10 of the time at most */
#define FORGET_NS (5 * NS_PER_SEC)           /* a thread without a stack for so long has ended */

struct sampled_thread {
	uint32_t tid;
	struct thread *thread;
	uint64_t seen_ns;
};

struct sampler;

struct target {
	struct sampler *sampler;
	uint32_t pid;                        /* 0 = free */
	struct thread_stacks *stacks;
	struct process *process;             /* with a reference */
	bool own;                            /* added by this source */
	struct sampled_thread *threads;      /* by tid, ascending */
	uint32_t n, room, next;              /* next: stacks come by tid */
};

struct sampler {
	struct source base;
	struct source_config cfg;
	struct target targets[TARGETS_MAX];
	uint32_t logged_pid;                 /* whose refusal was logged */
	struct object *times;                /* of the leaves CPU_TIME and BLOCKED_TIME */
	struct frame_ref scratch[STACK_MAX_FRAMES];
	struct os_mutex *lock;
	struct os_cond *wake;
	bool stopping;                       /* under lock */
	_Atomic unsigned wanted_hz;
	unsigned hz;
	uint64_t rounds, rounds_from_ns, stacks, longest_ns;
	_Atomic uint64_t events, refused;
	_Atomic uint32_t round_mhz;          /* rounds a second / 1000, measured; 0 = not yet */
};

extern const struct source_ops sampler_source;

static struct sampler *sampler_of(struct source *s)
{
	return (struct sampler *)s;
}

/* ---- one stack ------------------------------------------------------------------------------- */

/* Find or add the thread of a stack. */
static struct thread *thread_of(struct target *t, const struct thread_stack *stack)
{
	struct sampled_thread *at;

	while (t->next < t->n && t->threads[t->next].tid < stack->tid)
		t->next++;
	if (t->next == t->n || t->threads[t->next].tid != stack->tid) {
		if (ARRAY_ROOM(t->threads, t->room, t->n + 1))
			return NULL;
		at = &t->threads[t->next];
		memmove(at + 1, at, (t->n++ - t->next) * sizeof(*at));
		at->tid = stack->tid;
		at->thread = thread_add(t->sampler->cfg.processes, t->process, stack->tid);
	}
	at = &t->threads[t->next];
	at->seen_ns = stack->time_ns;
	if (at->thread && *stack->name)
		thread_set_name(at->thread, stack->name);
	return at->thread;
}

static void put(struct sampler *s, const struct event *e)
{
	if (queue_put(s->cfg.queue, e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
}

/* Put the same stack with a leaf that says how the time was spent. */
static void put_time(struct sampler *s, const struct event *sample, enum thread_time_kind kind,
		     uint64_t ns)
{
	const struct thread_time_piece piece = {
		.kind = kind, .frames = sample->stack_frames, .nframes = sample->nstack_frames};
	struct event e = *sample;

	e.stream = STREAM_OFF_CPU;
	e.value = (double)ns;
	e.stack_frames = s->scratch;
	e.nstack_frames = thread_time_frames(&piece, s->times, s->scratch);
	put(s, &e);
}

static void on_stack(void *ctx, const struct thread_stack *stack)
{
	struct target *t = ctx;
	struct sampler *s = t->sampler;
	struct event e = {.time_ns = stack->time_ns, .kind = EVENT_SAMPLE, .cpu = CPU_NONE,
			  .stream = STREAM_CPU, .stack = STACK_NONE,
			  .quality = (uint8_t)stack->quality, .process = t->process,
			  .value = (double)stack->cpu_ns, .stack_frames = stack->frames,
			  .nstack_frames = stack->nframes};

	e.thread = thread_of(t, stack);
	s->stacks++;
	if (stack->cpu_ns) {
		put(s, &e);
		put_time(s, &e, TIME_CPU, stack->cpu_ns);
	}
	if (stack->waited_ns)
		put_time(s, &e, TIME_BLOCKED, stack->waited_ns);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Drop threads without a stack for long. now_ns UINT64_MAX: all of them. */
static void forget_threads(struct target *t, uint64_t now_ns)
{
	uint32_t i, kept = 0;

	for (i = 0; i < t->n; i++) {
		if (t->threads[i].seen_ns + FORGET_NS >= now_ns)
			t->threads[kept++] = t->threads[i];
		else if (t->threads[i].thread)
			thread_drop(t->sampler->cfg.processes, t->threads[i].thread, os_now_ns());
	}
	t->n = kept;
}

static void drop_target(struct target *t)
{
	struct sampler *s = t->sampler;

	thread_stacks_close(t->stacks);
	forget_threads(t, UINT64_MAX);
	free(t->threads);
	if (t->process && t->own)
		process_drop(s->cfg.processes, t->process, os_now_ns());
	if (t->process)
		process_unref(t->process);
	*t = (struct target){.sampler = s};
}

/* Find the process, or add it where no other source does. */
static bool add_process(struct target *t)
{
	struct sampler *s = t->sampler;
	uint64_t now_ns = os_now_ns();

	t->process = process_find(s->cfg.processes, t->pid, now_ns);
	if (t->process)
		return true;
	t->process = process_add(s->cfg.processes, t->pid, now_ns, 0, 0, NULL);
	if (!t->process)
		return false;
	process_ref(t->process);
	t->own = true;
	if (*thread_stacks_path(t->stacks))
		process_set_exe(t->process, thread_stacks_path(t->stacks));
	return true;
}

static void add_target(struct sampler *s, struct target *t, uint32_t pid)
{
	struct err err = {0};

	t->pid = pid;
	if (thread_stacks_open(pid, s->cfg.frames, &t->stacks, &err) == 0 && add_process(t)) {
		log_line(s->cfg.log, LOG_INFO, "sampling the threads of process %" PRIu32 " (%s)",
			 pid, process_name(t->process));
		return;
	}
	if (s->logged_pid != pid && *err.text)
		log_line(s->cfg.log, LOG_WARN, "%s", err.text);
	s->logged_pid = pid;
	drop_target(t);
}

static void refresh(struct sampler *s)
{
	uint32_t pids[TARGETS_MAX], n, i, k;
	struct target *room;

	for (i = 0; i < TARGETS_MAX; i++) {
		if (!s->targets[i].pid)
			continue;
		forget_threads(&s->targets[i], os_now_ns());
		if (thread_stacks_refresh(s->targets[i].stacks, NULL) == ERR_NOT_FOUND)
			drop_target(&s->targets[i]);
	}
	n = thread_stacks_find(s->cfg.capture.only_process, pids, TARGETS_MAX);
	for (i = 0; i < n; i++) {
		room = NULL;
		for (k = 0; k < TARGETS_MAX && s->targets[k].pid != pids[i]; k++)
			if (!s->targets[k].pid && !room)
				room = &s->targets[k];
		if (k == TARGETS_MAX && room)
			add_target(s, room, pids[i]);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void take_round(struct sampler *s)
{
	struct thread_stacks_use use;
	uint64_t refused = 0;
	uint32_t i;

	for (i = 0; i < TARGETS_MAX; i++) {
		struct target *t = &s->targets[i];

		if (!t->pid)
			continue;
		t->next = 0;
		thread_stacks_take(t->stacks, REFRESH_NS, on_stack, t, NULL);
		thread_stacks_use(t->stacks, &use);
		refused += use.refused;
		if (use.longest_ns > s->longest_ns)
			s->longest_ns = use.longest_ns;
	}
	atomic_store(&s->refused, refused);
	s->rounds++;
}

static void measure_rate(struct sampler *s, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - s->rounds_from_ns;

	if (s->rounds_from_ns && since_ns)
		atomic_store(&s->round_mhz, (uint32_t)(s->rounds * 1000 * NS_PER_SEC / since_ns));
	s->rounds = 0;
	s->rounds_from_ns = now_ns;
}

static void follow_level(struct sampler *s)
{
	const struct event_field field = {
		.name = "StackKb", .type = FIELD_UINT, .v.u = s->cfg.capture.stack_kb};
	unsigned hz = atomic_load(&s->wanted_hz);
	struct event e = {.time_ns = os_now_ns(), .kind = EVENT_RATE, .cpu = CPU_NONE,
			  .stream = STREAM_EVENT, .stack = STACK_NONE, .fields = &field,
			  .nfields = 1};

	if (hz == s->hz || !hz)
		return;
	s->hz = hz;
	e.value = (double)(NS_PER_SEC / hz);
	queue_put(s->cfg.queue, &e);
}

/* Wait until then, with regular watermarks; false = the source should stop. */
static bool wait_until(struct sampler *s, uint64_t until_ns)
{
	uint64_t now_ns = os_now_ns(), next_ns;
	bool stopping;

	do {
		next_ns = until_ns < now_ns + WATERMARK_NS ? until_ns : now_ns + WATERMARK_NS;
		os_mutex_lock(s->lock);
		if (!s->stopping && next_ns > now_ns)
			os_cond_wait(s->wake, s->lock, next_ns - now_ns);
		stopping = s->stopping;
		os_mutex_unlock(s->lock);
		now_ns = os_now_ns();
		queue_watermark(s->cfg.queue, now_ns);
	} while (!stopping && now_ns < until_ns);
	return !stopping;
}

static int run(struct source *source, struct err *err)
{
	struct sampler *s = sampler_of(source);
	uint64_t start_ns, took_ns, next_refresh_ns = 0, period_ns;

	(void)err;
	os_thread_priority(OS_PRIORITY_HIGH);
	do {
		start_ns = os_now_ns();
		if (start_ns >= next_refresh_ns) {
			refresh(s);
			measure_rate(s, start_ns);
			took_ns = os_now_ns() - start_ns;
			next_refresh_ns =
				start_ns + (took_ns * TIME_SHARE > REFRESH_NS ? took_ns * TIME_SHARE
									      : REFRESH_NS);
		}
		follow_level(s);
		start_ns = os_now_ns();
		take_round(s);
		took_ns = os_now_ns() - start_ns;
		period_ns = NS_PER_SEC / s->hz;
		if (period_ns < took_ns * TIME_SHARE)
			period_ns = took_ns * TIME_SHARE;
		queue_watermark(s->cfg.queue, os_now_ns());
	} while (wait_until(s, start_ns + period_ns));
	log_line(s->cfg.log, LOG_INFO,
		 "%" PRIu64 " stacks were taken; the longest suspension of a thread was %.3f ms",
		 s->stacks, (double)s->longest_ns / 1e6);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int need_process(const struct source_config *cfg, struct err *err)
{
	return cfg->capture.only_process
		       ? 0
		       : err_set(err, ERR_USAGE,
				 "--source sampler suspends the threads that it samples, so name "
				 "their process: --record-process NAME or PID");
}

static void close_source(struct source *source)
{
	struct sampler *s = sampler_of(source);
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < TARGETS_MAX; i++)
		if (s->targets[i].pid)
			drop_target(&s->targets[i]);
	if (s->times)
		object_drop(s->times, os_now_ns());
	os_cond_free(s->wake);
	os_mutex_free(s->lock);
	free(s);
}

static int open_source(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	struct sampler *s;
	uint32_t i;
	int rc = need_process(cfg, err);

	(void)needs;
	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (s) {
		s->base.ops = &sampler_source;
		s->cfg = *cfg;
		s->hz = cfg->capture.freq_hz ? cfg->capture.freq_hz : 1;
		atomic_store(&s->wanted_hz, s->hz);
		s->times = thread_time_leaves(cfg->frames);
		s->lock = os_mutex_new();
		s->wake = os_cond_new();
		for (i = 0; i < TARGETS_MAX; i++)
			s->targets[i].sampler = s;
	}
	if (!s || !s->times || !s->lock || !s->wake) {
		close_source(s ? &s->base : NULL);
		return err_memory(err, "for the sampler of threads");
	}
	*out = &s->base;
	return 0;
}

static void stop(struct source *source)
{
	struct sampler *s = sampler_of(source);

	os_mutex_lock(s->lock);
	s->stopping = true;
	os_cond_broadcast(s->wake);
	os_mutex_unlock(s->lock);
}

static void set_level(struct source *source, const struct source_level *level)
{
	atomic_store(&sampler_of(source)->wanted_hz, level->freq_hz);
}

static void status(struct source *source, struct source_status *out)
{
	struct sampler *s = sampler_of(source);
	uint64_t refused = atomic_load(&s->refused);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->cfg.queue);
	out->rate_hz = atomic_load(&s->round_mhz) / 1000.0;
	if (refused)
		snprintf(out->note, sizeof(out->note),
			 "%" PRIu64 " threads may not be suspended or read", refused);
}

static bool name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	return thread_time_name(sampler_of(source)->times, NULL, frame, NULL, out);
}

const struct source_ops sampler_source = {
	.name = "sampler",
	.summary = "stacks of chosen processes, by suspending their threads briefly",
	.stacks = true,
	.probe = need_process,
	.open = open_source,
	.run = run,
	.stop = stop,
	.set_level = set_level,
	.status = status,
	.name_frame = name_frame,
	.close = close_source,
};
