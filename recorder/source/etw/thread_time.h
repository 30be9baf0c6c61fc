/*
 * Thread time from ETW: passes context switches and wake-ups to source/thread_time.h. A part of
 * etw/events.h.
 *
 * A CSwitch comes with the stack of the thread that is switched in, which is the stack with which
 * it was switched out. So a wait has no stack before it ends. DISK_TIME is a wait for a page to
 * be read in; ETW does not say which other waits are for a device. Idle threads (tid 0) have no
 * times.
 */
#pragma once

#include "source/etw/stacks.h"
#include "source/thread_time.h"

#define ETW_THREAD_TIME_CPUS 2048u
/* In a live session, a wait is reported after this time even if it continues, without a stack. */
#define ETW_THREAD_TIME_TICK_NS (10 * NS_PER_SEC)

struct etw_thread_time {
	struct thread_time *threads;         /* NULL = not requested */
	struct object *leaves;
	bool wakers;                         /* the stacks of wakers are kept */
	uint64_t switches, tick_ns, now_ns;  /* tick_ns: of the last thread_time_tick() */
	int64_t now_ticks;                   /* of the current record */
	int64_t lost_ticks;                  /* records were lost up to here */
	bool lost;
	uint32_t running[ETW_THREAD_TIME_CPUS];     /* tids; 0 = idle or unknown */
	struct frame_ref scratch[STACK_MAX_FRAMES];
	char name[THREAD_TIME_NAME_BYTES];   /* of the thread that names frames */
};

/* 0 or ERR_MEMORY; close it also after a failure. */
int etw_thread_time_open(struct etw_thread_time *t, bool wakers, struct frames *frames,
			 thread_time_put *put, void *ctx, struct err *err);
void etw_thread_time_close(struct etw_thread_time *t);

/* The thread last switched in on this CPU, or ETW_ID_UNKNOWN. */
uint32_t etw_thread_time_running(const struct etw_thread_time *t, uint16_t cpu);
/* Take an event. false = neither a switch nor a wake-up. */
bool etw_thread_time_take(struct etw_thread_time *t, const struct etw_whole *w,
			  const struct event *e);
/* Take a CPU sample, after it was delivered. */
void etw_thread_time_sample(struct etw_thread_time *t, uint32_t tid, const struct event *e);
