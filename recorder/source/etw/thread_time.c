#include "source/etw/thread_time.h"

/* KTHREAD_STATE and KWAIT_REASON of wdm.h, as Thread/CSwitch has them. */
enum {
	STATE_TERMINATED = 4,
	STATE_WAITING = 5,
	STATE_TRANSITION = 6,
	STATE_GATE_WAIT = 8,
	STATE_SWAPPED_OUT = 9
};
enum { REASON_PAGE_IN = 2, REASON_WR_PAGE_IN = 9 };
#define READY_IN_DPC 1u

int etw_thread_time_open(struct etw_thread_time *t, bool wakers, struct frames *frames,
			 thread_time_put *put, void *ctx, struct err *err)
{
	t->wakers = wakers;
	t->threads = thread_time_new(wakers, put, ctx);
	t->leaves = thread_time_leaves(frames);
	return t->threads && t->leaves ? 0 : err_memory(err, "for the times of threads");
}

void etw_thread_time_close(struct etw_thread_time *t)
{
	thread_time_free(t->threads);
	if (t->leaves)
		object_drop(t->leaves, UINT64_MAX - 1);
}

uint32_t etw_thread_time_running(const struct etw_thread_time *t, uint16_t cpu)
{
	return cpu < ETW_THREAD_TIME_CPUS && t->running[cpu] ? t->running[cpu] : ETW_ID_UNKNOWN;
}

static enum thread_time_out how_out(uint8_t state, uint8_t reason)
{
	switch (state) {
	case STATE_TERMINATED:
		return OUT_DEAD;
	case STATE_WAITING:
	case STATE_TRANSITION:
	case STATE_GATE_WAIT:
	case STATE_SWAPPED_OUT:
		return reason == REASON_PAGE_IN || reason == REASON_WR_PAGE_IN ? OUT_DISK
									       : OUT_BLOCKED;
	default:
		return OUT_PREEMPTED;
	}
}

static void take_switch(struct etw_thread_time *t, const struct etw_whole *w, const struct event *e)
{
	struct etw_value v[AT_CSWITCH_FIELDS];
	uint32_t old, new;

	etw_class_read(w->class, w->record, v, AT_CSWITCH_FIELDS);
	if (!etw_value_is(&v[AT_CSWITCH_OLD_STATE]))
		return;
	t->switches++;
	old = (uint32_t)v[AT_CSWITCH_OLD_TID].u;
	new = (uint32_t)v[AT_CSWITCH_NEW_TID].u;
	if (w->record->cpu < ETW_THREAD_TIME_CPUS)
		t->running[w->record->cpu] = new;
	if (old)
		thread_time_out(t->threads, e->time_ns, old,
				how_out((uint8_t)v[AT_CSWITCH_OLD_STATE].u,
					(uint8_t)v[AT_CSWITCH_OLD_WAIT_REASON].u));
	if (!new)
		return;
	if (e->nstack_frames)
		thread_time_stack(t->threads, e->time_ns, new, false, e->stack_frames,
				  e->nstack_frames, e->quality);
	thread_time_in(t->threads, e->time_ns, new);
}

/* In a deferred procedure call the stack is that of an unrelated, interrupted thread. */
static void take_waker(struct etw_thread_time *t, const struct event *e, bool interrupted,
		       uint32_t woken)
{
	uint32_t n = e->nstack_frames < STACK_MAX_FRAMES ? e->nstack_frames : STACK_MAX_FRAMES - 1;
	uint32_t i;

	for (i = 0; i < n && !(interrupted && !(e->stack_frames[i].flags & FRAME_KERNEL)); i++)
		t->scratch[i] = e->stack_frames[i];
	n = i;
	if (!interrupted && e->thread)
		n = thread_time_add_waker(t->leaves, e->process, e->thread->tid, t->scratch, n);
	thread_time_waker(t->threads, e->time_ns, woken, t->scratch, n);
}

static void take_ready(struct etw_thread_time *t, const struct etw_whole *w, const struct event *e)
{
	struct etw_value v[AT_READY_FIELDS];
	uint32_t tid;

	etw_class_read(w->class, w->record, v, AT_READY_FIELDS);
	tid = (uint32_t)v[AT_READY_TID].u;
	if (!etw_value_is(&v[AT_READY_TID]) || !tid)
		return;
	if (t->wakers)
		take_waker(t, e, v[AT_READY_FLAGS].u & READY_IN_DPC, tid);
	thread_time_woken(t->threads, e->time_ns, tid);
}

bool etw_thread_time_take(struct etw_thread_time *t, const struct etw_whole *w,
			  const struct event *e)
{
	uint32_t id = w->class ? w->class->id : ETW_OTHER;

	if (id == ETW_CSWITCH)
		take_switch(t, w, e);
	else if (id == ETW_READY_THREAD)
		take_ready(t, w, e);
	return id == ETW_CSWITCH || id == ETW_READY_THREAD;
}

void etw_thread_time_sample(struct etw_thread_time *t, uint32_t tid, const struct event *e)
{
	/* Without switches, the time between two samples is unknown. */
	if (t->switches && tid && tid != ETW_ID_UNKNOWN)
		thread_time_sample(t->threads, e->time_ns, tid, e->stack_frames, e->nstack_frames,
				   e->quality);
}
