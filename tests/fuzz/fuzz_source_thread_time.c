/*
 * Any order of switches, wake-ups, stacks, samples, locks, ticks and losses of eight threads. No
 * time is told twice: what is told of a thread is at most the time since its first call, and it
 * ends no later than the newest call. Each step is
 *
 *	u8 call, u8 thread (0..7) and details, u8 time since the step before, in 0.1 or 40 ms
 */
#include "source/thread_time.h"

#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define CALLS 19

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct thread_time *time;
	uint64_t now_ns;
	uint64_t first_ns[THREADS], told_ns[THREADS];
	uint32_t seen, gone;                 /* a bit for each thread */
};

static void put(void *ctx, const struct thread_time_piece *p)
{
	struct run *run = ctx;

	if (p->tid >= THREADS || !p->ns || p->end_ns > run->now_ns || p->kind >= TIME_KINDS)
		abort();
	run->told_ns[p->tid] += p->ns;
	if (!(run->seen >> p->tid & 1) ||
	    run->told_ns[p->tid] > run->now_ns - run->first_ns[p->tid])
		abort();
}

static bool is_gone(void *ctx, uint32_t tid)
{
	const struct run *run = ctx;

	return run->gone >> tid & 1;
}

static uint32_t holder_of(void *ctx, uint32_t waiter, struct frame_ref *who)
{
	(void)ctx;
	(void)who;
	return (waiter + 1) % THREADS;
}

static void take(struct run *run, unsigned call, uint32_t tid, unsigned detail)
{
	static struct object object;
	static const struct frame_ref stack[] = {{&object, 1, 0}, {&object, 2, 0}, {&object, 3, 0}};
	uint64_t now_ns = run->now_ns;
	uint32_t n = detail % 4;

	switch (call) {
	case 0: thread_time_in(run->time, now_ns, tid); break;
	case 1:
	case 2: thread_time_out(run->time, now_ns, tid, detail % (OUT_UNKNOWN + 1)); break;
	case 3: thread_time_woken(run->time, now_ns, tid); break;
	case 4: thread_time_stack(run->time, now_ns, tid, detail & 4, stack, n, 1); break;
	case 5: thread_time_waker(run->time, now_ns, tid, stack, n); break;
	case 6: thread_time_sample(run->time, now_ns, tid, stack, n, 1); break;
	case 7: thread_time_born(run->time, now_ns, tid); break;
	case 8: thread_time_unseen(run->time, tid); break;
	case 9: thread_time_lost(run->time, now_ns); break;
	case 10:
		run->gone = detail & 1 ? 1u << tid : 0;
		thread_time_tick(run->time, now_ns, is_gone);
		run->seen &= ~run->gone;     /* its number is another thread's from here on */
		break;
	case 11: thread_time_lock(run->time, tid, detail % 3); break;
	case 12:
		thread_time_released(run->time, now_ns, 1 + detail % 2, tid,
				     (struct frame_ref){.object = detail & 4 ? &object : NULL});
		break;
	case 13: thread_time_ran(run->time, now_ns, tid, stack, n); break;
	case 14: thread_time_look_at_locks(run->time, now_ns); break;
	case 15: thread_time_mark(run->time, now_ns, tid, stack, n, 1); break;
	case 17: thread_time_keep(run->time, now_ns, tid, detail % THREAD_TIME_KEPT, n); break;
	case 18: thread_time_repeat(run->time, now_ns, tid, detail); break;
	default: break;                      /* only time passes */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = {.now_ns = NS_PER_SEC};
	size_t i;

	run.time = thread_time_new(size % 2, put, &run);
	if (!run.time)
		abort();
	thread_time_ask(run.time, holder_of);
	for (i = 0; i + 3 <= size; i += 3) {
		uint32_t tid = data[i + 1] % THREADS;

		run.now_ns += (data[i + 2] >> 1) * (data[i + 2] & 1 ? 40 * NS_PER_MS : 100000u);
		if (!(run.seen >> tid & 1)) {
			run.first_ns[tid] = run.now_ns;
			run.told_ns[tid] = 0;
			run.seen |= 1u << tid;
		}
		take(&run, data[i] % CALLS, tid, data[i + 1] / THREADS);
		if (thread_time_threads(run.time) > THREADS)
			abort();
	}
	thread_time_free(run.time);
	return 0;
}
