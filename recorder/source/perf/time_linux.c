#include "source/perf/time_linux.h"

#include "base/table.h"
#include "managed/python/layout.h"
#include "source/perf/managed_linux.h"
#include "source/thread_time.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 1024u
enum { REG_DI = 5, REG_BP, REG_SP, REG_IP }; /* of PERF_REGS_MASK; DI: the address in futex(2) */
#define LOCKS_NS (10 * NS_PER_SEC)           /* threads may sleep for a lock again */
#define NOBODY UINT32_MAX                    /* a tid that is not known, or of a released task */

struct perf_time {
	struct thread_time *threads;
	struct queue *queue;
	struct processes *processes;
	struct log *log;
	struct perf_state *state;
	struct perf_managed *managed;
	struct probes *probes;
	bool wakers;
	uint64_t slept_ns;                   /* a thread slept for a lock last; 0 = long ago */
	struct object *object;               /* of the leaves */
	uint64_t locks_ns;                   /* when waits for locks were looked at last */
	uint64_t stacks, every;              /* of this second; one in `every` has a stack */
	_Atomic uint64_t thinned;            /* seconds in which some had no stack */
	uint32_t on[CPUS_MAX];               /* the running thread of each CPU */
	struct frame_ref scratch[STACK_MAX_FRAMES];
	char name[THREAD_TIME_NAME_BYTES];   /* the merge thread's */
};

bool perf_time_name(struct perf_time *t, const struct frame *frame, struct symbol *out)
{
	return thread_time_name(t->object, t->processes, frame, t->name, out);
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void put_piece(void *ctx, const struct thread_time_piece *piece)
{
	struct perf_time *t = ctx;
	struct perf_thread *thread = perf_state_find_thread(t->state, piece->tid);
	struct event e = {.time_ns = piece->end_ns, .kind = EVENT_SAMPLE, .cpu = CPU_NONE,
			  .stream = STREAM_OFF_CPU, .stack = STACK_NONE, .value = (double)piece->ns,
			  .quality = piece->quality};

	if (!thread || thread->process->skipped)
		return;
	e.process = thread->process->process;
	e.thread = thread->thread;
	e.stack_frames = t->scratch;
	e.nstack_frames = thread_time_frames(piece, t->object, t->scratch);
	queue_put(t->queue, &e);
}

/* ---- what goes in ---------------------------------------------------------------------------- */

void perf_time_born(struct perf_time *t, const struct perf_record *r)
{
	thread_time_born(t->threads, r->time_ns, r->tid);
}

/*
 * What tells the program of switches that a thread has this stack again. false: nothing does. Code
 * made at run time may be replaced by other code; a runtime has frames beside those of its stack.
 */
static bool describe(const struct perf_record *r, const struct unwind_stack *stack,
		     struct switch_stack *out)
{
	const uint64_t *regs = r->u.sample.regs;
	uint32_t i;

	if (stack->quality != QUALITY_COMPLETE || !stack->npairs ||
	    stack->npairs > SWITCH_WORDS_MAX || r->u.sample.regs_abi != 2 ||
	    stack->nuser_at + stack->npairs + 1 != stack->nframes)
		return false;
	*out = (struct switch_stack){.ip = regs[REG_IP], .sp = regs[REG_SP],
				     .di = regs[REG_DI], .state = switches_state(r),
				     .nwords = stack->npairs};
	if (!switches_kernel(r, out))
		return false;
	/* What is no place on the stack led to no frame: then it is a number. */
	out->bp_mask = regs[REG_BP] - out->sp < r->u.sample.stack_bytes ? UINT64_MAX : 0;
	out->bp = regs[REG_BP] & out->bp_mask;
	for (i = 0; i < stack->npairs; i++) {
		uint64_t at = stack->pairs[i].cfa - 8 - out->sp, word;

		if (stack->pairs[i].interrupted || stack->frames[stack->nuser_at + i].flags &
		    FRAME_JIT || at > r->u.sample.stack_bytes ||
		    r->u.sample.stack_bytes - at < sizeof(word))
			return false;
		memcpy(&word, r->u.sample.stack + at, sizeof(word));
		if (word != stack->pairs[i].ip)
			return false;
		out->words[i].address = out->sp + at;
		out->words[i].value = word;
	}
	return true;
}

/* Let the program leave out the stack of a thread that has it again and again. */
static void learn_stack(struct perf_time *t, const struct perf_record *r,
			const struct unwind_stack *stack)
{
	const struct switches *switches = probes_switches(t->probes);
	struct switch_stack same;
	uint64_t sum;
	uint32_t i;

	if (!switches_know(switches) || !describe(r, stack, &same))
		return;
	sum = hash_pair(hash_pair(same.ip, same.sp), hash_pair(same.bp, same.di)) ^ same.state;
	for (i = 0; i < SWITCH_KERNEL_MAX; i++)
		sum = hash_pair(sum, hash_pair(same.kernel[i].distance, same.kernel[i].value));
	for (i = 0; i < same.nwords; i++)
		sum = hash_pair(sum, hash_pair(same.words[i].address, same.words[i].value));
	same.number = thread_time_keep(t->threads, r->time_ns, r->tid, switches_place(&same), sum);
	if (same.number)
		switches_tell(switches, r->tid, &same);
}

static enum thread_time_out how_out(struct perf_time *t, const struct perf_record *r, uint32_t tid)
{
	const struct perf_thread *thread;

	if (!r->u.change.out)
		return OUT_UNKNOWN;
	if (r->tid == NOBODY)
		return OUT_DEAD;
	if (r->u.change.preempted)
		return OUT_PREEMPTED;
	thread = perf_state_find_thread(t->state, tid);
	return thread && thread->exited_ns ? OUT_DEAD : OUT_BLOCKED;
}

/*
 * The kernel writes one record for the thread that leaves and one for the thread that comes. The
 * first has both threads. A thread that is hidden from us (process 1 of some sandboxes) has no
 * records of its own and is seen only in the record of the other thread of each pair.
 */
void perf_time_switch(struct perf_time *t, const struct perf_record *r)
{
	uint32_t nobody = NOBODY, *on = r->cpu < CPUS_MAX ? &t->on[r->cpu] : &nobody;
	uint32_t leaves = r->u.change.out ? r->tid : r->u.change.other_tid;
	uint32_t comes = r->u.change.out ? r->u.change.other_tid : r->tid;

	if (!r->u.change.out && comes == *on)
		return;
	if (leaves == NOBODY || (*on == NOBODY && !r->u.change.out))
		leaves = *on;
	if (*on != leaves && *on != NOBODY)
		thread_time_unseen(t->threads, *on);
	if (r->u.change.repeats)
		thread_time_repeat(t->threads, r->time_ns, leaves, r->u.change.repeats);
	if (leaves && leaves != NOBODY)
		thread_time_out(t->threads, r->time_ns, leaves, how_out(t, r, leaves));
	if (comes && comes != NOBODY)
		thread_time_in(t->threads, r->time_ns, comes);
	*on = comes;
	if (r->time_ns < t->locks_ns + THREAD_TIME_LOOK_NS / 2)
		return;
	t->locks_ns = r->time_ns;
	thread_time_look_at_locks(t->threads, r->time_ns);
}

void perf_time_woken(struct perf_time *t, const struct perf_record *r)
{
	thread_time_woken(t->threads, r->time_ns, r->u.change.other_tid);
}

/* ---- the lock of a Python process ------------------------------------------------------------ */

static uint64_t lock_of(const struct perf_process *process)
{
	uint64_t gil = perf_managed_gil(process);

	return gil ? hash_pair(process->pid, gil) | 1 : 0;
}

/* Who wakes whom is recorded while threads sleep for a lock: it costs as much as all else. */
static void want_wakers(struct perf_time *t, uint64_t slept_ns)
{
	if (!t->wakers && t->probes && !t->slept_ns != !slept_ns)
		probes_want(t->probes, PROBE_WAKER, slept_ns != 0);
	t->slept_ns = slept_ns;
}

static struct frame_ref name_of(struct perf_time *t, const struct perf_thread *thread)
{
	struct frame_ref who[1] = {{.object = NULL}};

	thread_time_add_waker(t->object, thread->process->process, thread->tid, who, 0);
	return who[0];
}

/*
 * Of a thread that leaves its CPU. Who waits for the lock sleeps in futex(2) for one of its fields;
 * who has released it on demand sleeps until another thread has taken it.
 *
 * returns  the lock that it sleeps for; 0 = none
 */
static uint64_t take_sleep(struct perf_time *t, const struct perf_record *r)
{
	struct perf_thread *thread = perf_state_find_thread(t->state, r->tid);
	uint64_t lock = thread ? lock_of(thread->process) : 0, field;

	if (!lock || !r->u.sample.regs_abi)
		return 0;
	field = r->u.sample.regs[REG_DI] - perf_managed_gil(thread->process);
	if (field < PYTHON_GIL_BYTES)
		want_wakers(t, r->time_ns);
	if (field >= PYTHON_GIL_SWITCH && field < PYTHON_GIL_BYTES)
		thread_time_released(t->threads, r->time_ns, lock, r->tid, name_of(t, thread));
	return field < PYTHON_GIL_BYTES ? lock : 0;
}

/* Who releases the lock wakes one that waits for it. */
static void take_lock(struct perf_time *t, const struct perf_record *r, uint32_t woken)
{
	uint64_t lock = thread_time_sleeps_for(t->threads, woken);
	struct perf_thread *waker = lock ? perf_state_find_thread(t->state, r->tid) : NULL;

	if (waker && lock == lock_of(waker->process))
		thread_time_released(t->threads, r->time_ns, lock, r->tid, name_of(t, waker));
}

static uint32_t find_holder(void *ctx, uint32_t waiter, struct frame_ref *who)
{
	struct perf_time *t = ctx;
	struct perf_thread *thread = perf_state_find_thread(t->state, waiter);
	uint32_t tid = thread ? perf_managed_gil_holder(t->managed, thread->process) : 0;

	thread = tid ? perf_state_find_thread(t->state, tid) : NULL;
	if (thread)
		*who = name_of(t, thread);
	return thread ? tid : 0;
}

static bool in_interrupt(const struct perf_record *r)
{
	/* common_flags, include/linux/trace_events.h: 8 in a hard, 0x10 in a soft interrupt */
	return r->u.sample.raw_bytes >= 3 && r->u.sample.raw[2] & 0x18;
}

/* A wake-up from an interrupt has nothing to do with the interrupted thread or its stack. */
static void take_waker(struct perf_time *t, const struct perf_record *r,
		       const struct unwind_stack *stack, uint32_t woken)
{
	uint32_t n = stack->nframes < STACK_MAX_FRAMES ? stack->nframes : STACK_MAX_FRAMES - 1;
	struct perf_thread *waker;
	uint32_t i;

	for (i = 0; i < n; i++)
		t->scratch[i] = stack->frames[i];
	if (in_interrupt(r)) {
		for (i = 0; i < n && t->scratch[i].flags & FRAME_KERNEL; i++)
			;
		n = i;
	} else {
		waker = perf_state_find_thread(t->state, r->tid);
		n = thread_time_add_waker(t->object, waker ? waker->process->process : NULL, r->tid,
					  t->scratch, n);
	}
	thread_time_waker(t->threads, r->time_ns, woken, t->scratch, n);
}

void perf_time_take(struct perf_time *t, const struct probe *probe, const struct perf_record *r,
		    const struct unwind_stack *stack)
{
	uint64_t lock;
	uint32_t woken;
	bool in_io;

	if (probe_role(probe) == PROBE_SWITCH_STACK) {
		t->stacks++;
		if (!r->tid || r->tid == UINT32_MAX)
			return;
		lock = take_sleep(t, r);     /* before its stack is another one */
		in_io = perf_state_in(t->state, KERNEL_IO, r->u.sample.kernel, r->u.sample.nkernel);
		thread_time_stack(t->threads, r->time_ns, r->tid, in_io, stack->frames,
				  stack->nframes, (uint8_t)stack->quality);
		thread_time_lock(t->threads, r->tid, lock);
		if (!lock)
			learn_stack(t, r, stack);
	} else if (!probe_pid(probe, r, &woken)) {
		return;
	} else if (probe_role(probe) == PROBE_WAKER) {
		if (!in_interrupt(r))
			take_lock(t, r, woken);
		if (!probe_has_stack(probe))
			return;
		t->stacks++;
		take_waker(t, r, stack, woken);
	} else {
		thread_time_woken(t->threads, r->time_ns, woken);
	}
}

void perf_time_sample(struct perf_time *t, const struct perf_record *r,
		      const struct unwind_stack *stack, bool has_gil)
{
	struct perf_thread *thread = perf_state_find_thread(t->state, r->tid);
	uint64_t lock = thread ? lock_of(thread->process) : 0;

	if (!r->tid || r->pid == UINT32_MAX)
		return;
	thread_time_sample(t->threads, r->time_ns, r->tid, stack->frames, stack->nframes,
			   (uint8_t)stack->quality);
	if (!lock)
		return;
	thread_time_ran(t->threads, r->time_ns, r->tid, stack->frames, stack->nframes);
	if (has_gil)
		thread_time_holds(t->threads, r->time_ns, lock, r->tid, name_of(t, thread));
}

void perf_time_event(struct perf_time *t, const struct perf_record *r,
		     const struct unwind_stack *stack)
{
	if (t)
		thread_time_mark(t->threads, r->time_ns, r->tid, stack ? stack->frames : NULL,
				 stack ? stack->nframes : 0,
				 stack ? (uint8_t)stack->quality : QUALITY_NONE);
}

void perf_time_lost(struct perf_time *t, uint64_t now_ns)
{
	memset(t->on, 0xff, sizeof(t->on));
	thread_time_lost(t->threads, now_ns);
}

static bool has_gone(void *ctx, uint32_t tid)
{
	struct perf_time *t = ctx;

	return !perf_state_find_thread(t->state, tid);
}

void perf_time_look(struct perf_time *t, uint64_t now_ns, unsigned ncpus)
{
	uint64_t limit = (uint64_t)PERF_TIME_STACKS * (ncpus ? ncpus : 1);
	uint64_t switches = t->stacks * t->every;
	uint64_t every = switches / limit + 1;

	thread_time_tick(t->threads, now_ns, has_gone);
	t->stacks = 0;
	if (t->slept_ns && t->slept_ns + LOCKS_NS < now_ns)
		want_wakers(t, 0);
	if (t->every > 1)
		atomic_fetch_add(&t->thinned, 1);
	if (every == t->every)
		return;
	if (every > 1 && !atomic_load(&t->thinned))
		log_line(t->log, LOG_INFO,
			 "%llu context switches a second: one in %llu has a stack, the times of "
			 "the others are recorded without one",
			 (unsigned long long)switches, (unsigned long long)every);
	probes_every(t->probes, PROBE_SWITCH_STACK, every);
	if (t->wakers)
		probes_every(t->probes, PROBE_WAKER, every);
	t->every = every;
}

void perf_time_note(const struct perf_time *t, char *out, size_t n)
{
	uint64_t seconds = t ? atomic_load(&t->thinned) : 0;

	if (seconds)
		snprintf(out, n,
			 "in %llu seconds a CPU had more than %u context switches; some of them "
			 "have no stack",
			 (unsigned long long)seconds, PERF_TIME_STACKS);
}

/* ---- life ------------------------------------------------------------------------------------ */

int perf_time_new(const struct source_config *cfg, struct perf_state *state,
		  struct perf_managed *managed, struct probes *probes, struct perf_time **out,
		  struct err *err)
{
	struct perf_time *t = calloc(1, sizeof(*t));

	if (t) {
		t->queue = cfg->queue;
		t->processes = cfg->processes;
		t->log = cfg->log;
		t->state = state;
		t->managed = managed;
		t->probes = probes;
		t->wakers = cfg->capture.wakers;
		t->every = 1;
		memset(t->on, 0xff, sizeof(t->on));
		t->threads = thread_time_new(cfg->capture.wakers, put_piece, t);
		t->object = thread_time_leaves(cfg->frames);
	}
	if (!t || !t->threads || !t->object) {
		perf_time_free(t);
		return err_memory(err, "for the times of threads");
	}
	thread_time_ask(t->threads, find_holder);
	*out = t;
	return 0;
}

void perf_time_free(struct perf_time *t)
{
	if (!t)
		return;
	thread_time_free(t->threads);
	if (t->object)
		object_drop(t->object, UINT64_MAX - 1);
	free(t);
}
