/*
 * Thread time of ETW: context switches and who was readied, for thread_time.h. With a CSwitch comes the stack
 * of the thread that is switched in: it is the one with which it was switched out, and only now known, so a
 * wait that goes on has none. DISK_TIME is a wait for a page to be read in: of others ETW does not say that
 * they wait for a device. The idle threads, tid 0, are none. See etw/events.h, whose part it is.
 */
#ifndef SOURCE_ETW_THREAD_TIME_H
#define SOURCE_ETW_THREAD_TIME_H

#include "source/etw/stacks.h"
#include "source/thread_time.h"

#define ETW_THREAD_TIME_CPUS 2048u
/* Of a live session: by then a wait that goes on is told, without a stack. */
#define ETW_THREAD_TIME_TICK_NS (10 * NS_PER_SEC)

struct etw_thread_time {
	struct thread_time *threads;         /* NULL = not asked for */
	struct object *leaves;
	uint64_t switches, told_ns, now_ns;
	int64_t now_ticks, lost_ticks;       /* of the record that is delivered; so late something was lost */
	bool lost;
	uint32_t running[ETW_THREAD_TIME_CPUS];     /* tids; 0 = idle, or not known */
	struct frame_ref scratch[STACK_MAX_FRAMES];
};

/* 0 or ERR_MEMORY; close it also then. */
int etw_thread_time_open(struct etw_thread_time *t, struct frames *frames, thread_time_put *put, void *ctx, struct err *err);
void etw_thread_time_close(struct etw_thread_time *t);

/* The thread that was last switched in there, or ETW_ID_UNKNOWN. */
uint32_t etw_thread_time_running(const struct etw_thread_time *t, uint16_t cpu);
/* An event with its stack. false = it is no switch, and readies nobody. wakers: stacks of who does are taken. */
bool etw_thread_time_take(struct etw_thread_time *t, const struct etw_whole *w, const struct event *e, bool wakers);
/* A CPU sample, after it was delivered. */
void etw_thread_time_sample(struct etw_thread_time *t, uint32_t tid, const struct event *e);

#endif
