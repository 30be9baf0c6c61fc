/* Records of the perf source's rings become events; see perf_private.h. */
#include "source/perf/perf_private.h"

#include "base/os.h"

#include <string.h>

#define STACK_ENDS_MAX 64u               /* changes of a thread's, then it has none */
#define STACK_END_NEAR 4096u             /* some bytes too many do no harm */
#define CONSTRUCTED_NS (4 * NS_PER_MS)   /* a Java exception gets its message after its stack */

void perf_put_lost(struct perf_source *s, enum loss_kind kind, uint64_t n, unsigned cpu,
		   uint64_t time_ns)
{
	struct event e = {.time_ns = time_ns, .kind = EVENT_LOST, .cpu = (uint16_t)cpu,
			  .stack = STACK_NONE, .value = (double)n};

	if (!n)
		return;
	e.name = loss_kind_text(kind);
	queue_put(s->cfg.queue, &e);
	if (kind != LOSS_PYTHON)             /* those are recorded */
		atomic_fetch_add(kind == LOSS_THROTTLED ? &s->throttled : &s->lost, n);
}

static struct perf_thread *thread_of(struct perf_source *s, const struct perf_record *r)
{
	/*
	 * The kernel writes -1 for a task that it has released. The pid of an ended thread may
	 * still be valid; a thread -1 of that process would then keep the process alive for ever.
	 */
	if (r->pid == UINT32_MAX || r->tid == UINT32_MAX)
		return NULL;
	return perf_state_thread(s->state, r->pid, r->tid, r->time_ns);
}

static void put_with_stack(struct perf_source *s, struct event *e)
{
	e->quality = (uint8_t)s->walker.stack.quality;
	e->stack_frames = s->walker.stack.frames;
	e->nstack_frames = s->walker.stack.nframes;
	queue_put(s->cfg.queue, e);
}

static bool is_reading(struct perf_source *s, const struct perf_record *r)
{
	return r->tid != UINT32_MAX && perf_state_reading(s->state, r->pid, r->tid, r->time_ns);
}

/* One record that waits makes all newer ones wait: not where these would be lost. */
static bool may_wait(const struct perf_source *s, const struct perf_record *r, uint64_t now_ns)
{
	return !s->filling && now_ns < r->time_ns + TABLES_WAIT_NS;
}

/*
 * Where the stack of a thread ends is known from its walks to the root. A thread that runs on many
 * stacks (coroutines) has no such place.
 */
static void tell_stack_end(struct perf_source *s, const struct perf_ring *ring,
			   struct perf_thread *t)
{
	const struct unwind_stack *stack = &s->walker.stack;
	uint64_t end = stack->end;
	bool too_short = ring->record.u.sample.id == ring->format.short_id &&
			 (stack->quality == QUALITY_TRUNCATED ||
			  stack->quality == QUALITY_STITCHED || stack->quality == QUALITY_REMOTE);

	if (t->stack_ends == STACK_ENDS_MAX || (!end && !too_short) ||
	    (end <= t->stack_end && end + STACK_END_NEAR > t->stack_end))
		return;
	t->stack_end = end;
	t->stack_ends++;
	perf_program_stack_end(s->cpus.program, t->tid, t->stack_ends < STACK_ENDS_MAX ? end : 0);
}

/*
 * Of the sampler, or a page fault. It waits for its process to be read, for the unwind tables of
 * its stack, and for its peeker.
 *
 * now_ns   as in deliver()
 * returns  false = not put, because it waits
 */
static bool put_sample(struct perf_source *s, const struct perf_ring *ring, uint64_t now_ns)
{
	const struct perf_record *r = &ring->record;
	bool waits = may_wait(s, r, now_ns), peeked;
	struct perf_thread *thread;
	struct event e = {.time_ns = r->time_ns, .kind = EVENT_SAMPLE, .cpu = (uint16_t)r->cpu,
			  .stream = ring->faults ? STREAM_RSS : STREAM_CPU, .stack = STACK_NONE};

	if (waits && is_reading(s, r))
		return false;
	thread = thread_of(s, r);
	if (thread && thread->process->outside)
		perf_state_leave_out(s->state, thread->process);
	/* A task that the kernel has released may be anybody's. */
	if (thread ? thread->process->skipped
		   : s->cfg.capture.root_pid != 0 || s->cfg.capture.only_process)
		return true;
	peeked = thread && s->python && !ring->faults;
	if (waits && peeked && !perf_python_ready(s->python, thread->process, ring, now_ns))
		return false;
	perf_walk(&s->walker, ring, thread);
	if (s->walker.stack.pending && waits)
		return false;
	if (thread && ring->format.short_id)
		tell_stack_end(s, ring, thread);
	if (thread && !ring->faults)
		process_saw_cgroup(thread->process->process, r->u.sample.cgroup, r->time_ns);
	if (peeked &&
	    !perf_python_place(s->python, thread->process, ring, &s->walker.stack))
		perf_put_lost(s, LOSS_PYTHON, 1, r->cpu, r->time_ns);
	e.process = thread ? thread->process->process : NULL;
	e.thread = thread ? thread->thread : NULL;
	e.value = ring->faults ? perf_memory_weight(s->memory, r->time_ns) :
		  (double)(r->time_ns < s->switched_ns ? s->old_period_ns : s->period_ns);
	put_with_stack(s, &e);
	if (ring->faults) {
		perf_memory_fault(s->memory, r, e.process);
		return true;
	}
	if (s->time)
		perf_time_sample(s->time, r, &s->walker.stack, perf_python_has_gil(s->python));
	atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
	return true;
}

/* An event with a stack is a sample too: --metric event. Its leaf says what happened. */
static void put_event_sample(struct perf_source *s, const struct probe *probe, struct event *e)
{
	const struct unwind_stack *stack = &s->walker.stack;
	uint32_t n = stack->nframes < STACK_MAX_FRAMES ? stack->nframes : STACK_MAX_FRAMES - 1;
	uint64_t period = probe_period(probe, e->time_ns);

	s->event_frames[0] = (struct frame_ref){
		.object = s->event_object, .offset = probes_number(s->cpus.probes, probe)};
	memcpy(s->event_frames + 1, stack->frames, n * sizeof(*stack->frames));
	e->kind = EVENT_SAMPLE;
	e->nfields = 0;
	e->value = period ? (double)period : 1;
	e->quality = (uint8_t)stack->quality;
	e->stack_frames = s->event_frames;
	e->nstack_frames = n + 1;
	queue_put(s->cfg.queue, e);
}

/* Add to the event of a Java exception what its object says. */
static void add_thrown(struct perf_source *s, const struct perf_thread *thread, uint64_t object,
		       struct event *e)
{
	const struct unwind_stack *stack = &s->walker.stack;

	if (!thread || !perf_managed_thrown(s->walker.managed, thread->process, object, e->time_ns,
					    stack->frames, stack->nframes, &s->thrown))
		return;
	e->fields = s->thrown_fields;
	e->nfields = throw_fields(s->thrown.type, s->thrown.message, s->thrown_fields);
}

/*
 * An event that a rule asked for.
 *
 * now_ns   as in deliver()
 * returns  as put_sample()
 */
static bool put_probe(struct perf_source *s, const struct perf_ring *ring, uint64_t now_ns)
{
	const struct perf_record *r = &ring->record;
	bool waits = may_wait(s, r, now_ns);
	struct probe *probe = probes_find(s->cpus.probes, r->u.sample.id);
	struct event e = {.time_ns = r->time_ns, .cpu = (uint16_t)r->cpu, .stack = STACK_NONE};
	struct perf_thread *thread;
	uint64_t object;
	bool is_java = probe && probe_java_object(probe, r, &object);

	if ((waits && probe && probe_role(probe) == PROBE_EVENT && is_reading(s, r)) ||
	    (is_java && now_ns < r->time_ns + CONSTRUCTED_NS))
		return false;
	thread = thread_of(s, r);
	if (!probe ||
	    (thread && thread->process->skipped &&
	     (probe_role(probe) == PROBE_SWITCH_STACK || probe_is_sampled(probe))))
		return true;
	if (!probe_wants(probe, thread ? thread->process->process : NULL) ||
	    (thread && thread->process->outside &&
	     probe_leaves_out(s->cpus.probes, probe, r->time_ns)))
		return true;
	if (probe_has_stack(probe)) {
		perf_walk(&s->walker, ring, thread);
		/* Switches are too frequent: all other records would wait for one of them. */
		if (s->walker.stack.pending && waits && probe_role(probe) == PROBE_EVENT)
			return false;
	}
	if (probe_role(probe) != PROBE_EVENT) {
		perf_time_take(s->time, probe, r, &s->walker.stack);
		return true;
	}
	e.process = thread ? thread->process->process : NULL;
	e.thread = thread ? thread->thread : NULL;
	if (!probes_take(s->cpus.probes, probe, r, &e))
		return true;
	perf_memory_event(s->memory, &e);
	perf_files_event(s->files, thread ? thread->process : NULL, &e);
	perf_time_event(s->time, r, probe_has_stack(probe) ? &s->walker.stack : NULL);
	if (is_java)
		add_thrown(s, thread, object, &e);
	if (!probe_has_stack(probe)) {
		do
			queue_put(s->cfg.queue, &e);
		while (probes_again(probe, &e));
		return true;
	}
	if (!probe_period(probe, r->time_ns))
		put_with_stack(s, &e);
	if (e.stream == STREAM_EVENT)
		put_event_sample(s, probe, &e);
	return true;
}

/*
 * A block of a heap, as the program itself tells it: only of a thread that is recorded, and in
 * order of time.
 *
 * now_ns   as in deliver()
 * returns  as put_sample()
 */
static bool put_block(struct perf_source *s, const struct perf_ring *ring, uint64_t now_ns)
{
	const struct perf_record *r = &ring->record;
	bool waits = may_wait(s, r, now_ns);
	struct event e = {.time_ns = r->time_ns, .cpu = (uint16_t)r->cpu, .stack = STACK_NONE};
	struct perf_thread *thread;

	if (waits && is_reading(s, r))
		return false;
	thread = perf_state_find_thread(s->state, r->tid);
	if (!thread || thread->process->pid != r->pid || thread->process->skipped ||
	    r->cpu >= s->cpus.n || r->time_ns < s->block_ns || r->time_ns > os_now_ns()) {
		perf_put_lost(s, LOSS_EVENTS, 1, CPU_NONE, s->delivered_ns);
		return true;
	}
	perf_walk(&s->walker, ring, thread);
	if (s->walker.stack.pending && waits)
		return false;
	s->block_ns = r->time_ns;
	e.process = thread->process->process;
	e.thread = thread->thread;
	if (probes_take_block(s->cpus.probes, r, &e))
		put_with_stack(s, &e);
	return true;
}

static enum loss_kind loss_of(const struct perf_ring *ring)
{
	return ring->sideband ? LOSS_SIDEBAND :
	       ring->probes || ring->heap || ring->faults || ring->unmaps ? LOSS_EVENTS
									     : LOSS_KERNEL;
}

bool perf_put_record(struct perf_source *s, const struct perf_ring *ring, uint64_t now_ns)
{
	const struct perf_record *r = &ring->record;

	switch (r->kind) {
	case PERF_KIND_SAMPLE:
		if (ring->unmaps) {
			perf_memory_unmapped(s->memory, r);
			return true;
		}
		return ring->heap     ? put_block(s, ring, now_ns)
		       : ring->probes ? put_probe(s, ring, now_ns)
				      : put_sample(s, ring, now_ns);
	case PERF_KIND_LOST:
		perf_put_lost(s, loss_of(ring), r->u.lost, ring->cpu, r->time_ns);
		if (ring->sideband && !s->rescan)
			log_line(s->cfg.log, LOG_WARN,
				 "process and mapping records were lost; reading /proc again");
		s->rescan |= ring->sideband;
		if (s->time && ring->probes && probe_ring_has_switches(ring->probes_at))
			perf_time_lost(s->time, r->time_ns);
		break;
	case PERF_KIND_SWITCH:
		if (s->time && r->u.change.out)
			thread_of(s, r);             /* so that the thread is known */
		if (s->time)
			perf_time_switch(s->time, r);
		break;
	case PERF_KIND_WAKE:
		if (s->time)
			perf_time_woken(s->time, r);
		break;
	case PERF_KIND_THROTTLE:
		perf_put_lost(s, LOSS_THROTTLED, 1, ring->cpu, r->time_ns);
		break;
	default:
		perf_state_feed(s->state, r);
		if (s->time && r->kind == PERF_KIND_FORK)
			perf_time_born(s->time, r);
	}
	return true;
}
