/*
 * Where each thread's wall-clock time goes, from context switches: on a CPU, blocked, or ready and
 * waiting for a CPU. Each ns between the first and the last call about a thread is reported exactly
 * once:
 *
 *	switched in ........ sample .... switched out ......... woken ...... switched in
 *	|      CPU, of the    |  CPU, of |       BLOCKED        |   READIED   |
 *	|    sample's stack   |    the stack with which it was switched out   |
 *
 * A preempted thread, which was switched out although it could run, is READIED at once. BLOCKED
 * becomes DISK where the kernel's stack says that the thread waits for a device. Times that are
 * still running are reported at each tick.
 *
 * Calls may be missing. Time whose use they leave open is UNKNOWN and has no stack: a thread is
 * switched out that was not on a CPU, or in that is on one already, or out for an unknown reason;
 * and all time from thread_time_unseen() or thread_time_lost() to the thread's next switch.
 *
 * A thread may be switched 10,000 times a second. So consecutive times with the same stack are
 * summed for up to THREAD_TIME_SUM_NS, and a sum below THREAD_TIME_LEAST_NS is reported with the
 * thread's next time of that kind, as a sampler would: stacks are right in proportion, and the
 * totals of each thread and kind are exact. What is left of a kind at a tick is reported without a
 * stack.
 *
 * With wakers, a wait that is still running at a tick is reported with the leaf NOT_READIED_YET:
 * who ends it is not known yet. The thread's next wait that is reported is the rest of this one,
 * unless a time between them is UNKNOWN. incident_join_waits() gives the stack of the last part to
 * all.
 *
 * A wait for a lock that a whole runtime has (Python's GIL) is TIME_LOCK. Who has the lock is known
 * when that thread releases it or, at a CPU sample, has it: it had it since the last such time of
 * any thread. All of its waiters' time until then is reported with the stack of that thread: the
 * one with which it was blocked while they waited, else that of its last CPU sample, up to
 * THREAD_TIME_RAN_NS before the wait. Waits below THREAD_TIME_SUM_NS that go on at a tick are
 * reported later.
 *
 * Portable; knows threads by number. Calls must come in time order. One thread. Memory: up to
 * THREAD_TIME_MAX threads, each with a stack.
 */
#pragma once

#include "model/event.h"
#include "model/process.h"
#include "symbol/symbol.h"

#define THREAD_TIME_MAX 65536u
#define THREAD_TIME_SUM_NS 100000000ULL
#define THREAD_TIME_LEAST_NS 2000000ULL
#define THREAD_TIME_RAN_NS 1000000000ULL

enum thread_time_kind {
	TIME_CPU, TIME_BLOCKED, TIME_DISK, TIME_READIED, TIME_UNKNOWN, TIME_LOCK, TIME_KINDS
};

/* Time that a thread spent in one way up to end_ns; frames leaf first, none when not known. */
struct thread_time_piece {
	uint32_t tid;
	enum thread_time_kind kind;
	uint64_t end_ns, ns;
	const struct frame_ref *frames;
	uint32_t nframes;
	uint8_t quality;
	/*
	 * TIME_BLOCKED, TIME_DISK: stack of the waker; TIME_LOCK: of who has the lock meanwhile.
	 * NULL = not known
	 */
	const struct frame_ref *waker;
	uint32_t nwaker;
	bool goes_on;                        /* with wakers: a wait that has not ended yet */
};
typedef void thread_time_put(void *ctx, const struct thread_time_piece *piece);

struct thread_time;

/* wakers: thread_time_waker() is called. returns NULL without memory */
struct thread_time *thread_time_new(bool wakers, thread_time_put *put, void *ctx);
void thread_time_free(struct thread_time *t);

/*
 * The stack with which a thread is switched out. Call it around the time of thread_time_out(), or
 * just before thread_time_in() where the stack is known only then.
 */
void thread_time_stack(struct thread_time *t, uint64_t now_ns, uint32_t tid, bool disk,
		       const struct frame_ref *frames, uint32_t nframes, uint8_t quality);

/*
 * Keep the stack that was just given as one that repeats.
 *
 * place    below THREAD_TIME_KEPT; it takes the place of the one kept there
 * sum      of what tells that it is the same: it is kept when it comes there twice
 * returns  its number; 0 = it is not kept, or was kept before
 */
#define THREAD_TIME_KEPT 8u
uint32_t thread_time_keep(struct thread_time *t, uint64_t now_ns, uint32_t tid, unsigned place,
			  uint64_t sum);
/* thread_time_stack() of the one that is kept as this number; nothing if it is not any more. */
void thread_time_repeat(struct thread_time *t, uint64_t now_ns, uint32_t tid, uint32_t number);

/*
 * A thread is created. Its time counts from its first wake-up, which is soon, or from now on where
 * its first switches are lost.
 */
void thread_time_born(struct thread_time *t, uint64_t now_ns, uint32_t tid);
enum thread_time_out { OUT_BLOCKED, OUT_DISK, OUT_PREEMPTED, OUT_DEAD, OUT_UNKNOWN };
void thread_time_out(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		     enum thread_time_out how);
void thread_time_in(struct thread_time *t, uint64_t now_ns, uint32_t tid);
/* The stack of a thread's waker; call it just before thread_time_woken(). */
void thread_time_waker(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		       const struct frame_ref *frames, uint32_t nframes);
void thread_time_woken(struct thread_time *t, uint64_t now_ns, uint32_t tid);
/*
 * The thread whose stack was just given waits for this lock (a number of the caller's; 0 = none),
 * which takes a short sleep again and again.
 */
void thread_time_lock(struct thread_time *t, uint32_t tid, uint64_t lock);
/* The lock that a thread sleeps for; 0 = none. */
uint64_t thread_time_sleeps_for(struct thread_time *t, uint32_t tid);
/*
 * A thread, the holder, has released a lock, or is just about to.
 *
 * who  the frame that names the holder; object NULL = none
 */
void thread_time_released(struct thread_time *t, uint64_t now_ns, uint64_t lock, uint32_t holder,
			  struct frame_ref who);
/* A thread, the holder, has a lock now, and goes on. who: as above */
void thread_time_holds(struct thread_time *t, uint64_t now_ns, uint64_t lock, uint32_t holder,
		       struct frame_ref who);
/*
 * Who has a lock that has not been released for THREAD_TIME_LOOK_NS; 0 = not known. That is told
 * for waits whose end does not say it: a waiter that looks whether the lock is free is not woken.
 *
 * who  as above
 */
#define THREAD_TIME_LOOK_NS 50000000ULL
typedef uint32_t thread_time_holder(void *ctx, uint32_t waiter, struct frame_ref *who);
void thread_time_ask(struct thread_time *t, thread_time_holder *holder);
/* Ask now where it is time; call it often. */
void thread_time_look_at_locks(struct thread_time *t, uint64_t now_ns);
/* Keep the stack of the thread's last CPU sample: it may have a lock. */
void thread_time_ran(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		     const struct frame_ref *frames, uint32_t nframes);
/* A CPU sample. */
void thread_time_sample(struct thread_time *t, uint64_t now_ns, uint32_t tid,
			const struct frame_ref *frames, uint32_t nframes, uint8_t quality);

/*
 * An event of a thread, which may be a boundary: what it did before is reported now, and no later
 * time is reported together with it. So requests get their own times, exactly. It has the stack of
 * the event; none = that is not known. A thread with an event runs: where its last switch says
 * otherwise, one was lost, and the time since then is UNKNOWN.
 */
void thread_time_mark(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		      const struct frame_ref *frames, uint32_t nframes, uint8_t quality);

/* Report the running times of all threads, and forget the threads for which gone() returns true. */
void thread_time_tick(struct thread_time *t, uint64_t now_ns,
		      bool (*gone)(void *ctx, uint32_t tid));
/* The thread has left its CPU at an unknown time. */
void thread_time_unseen(struct thread_time *t, uint32_t tid);
/* Switches were lost: the state of each thread is unknown until its next switch. */
void thread_time_lost(struct thread_time *t, uint64_t now_ns);

uint32_t thread_time_threads(const struct thread_time *t);
/* How many switches were ignored because there was no room or memory for their threads. */
uint64_t thread_time_refused(const struct thread_time *t);

/* The leaves' object (the caller's reference), or NULL. */
struct object *thread_time_leaves(struct frames *frames);
/*
 * The names of its frames: source_ops.name_frame.
 *
 * text  takes the name of a waker, which out->name then is; NULL = no wakers are added
 */
#define THREAD_TIME_NAME_BYTES (PROCESS_LABEL_BYTES + 48)
bool thread_time_name(const struct object *leaves, struct processes *processes,
		      const struct frame *frame, char text[THREAD_TIME_NAME_BYTES],
		      struct symbol *out);
/*
 * Append the frame that says which thread a waker is, as the root of its stack.
 *
 * frames   room for one more than n
 * process  NULL = not known, and nothing is appended
 * returns  the number of frames
 */
uint32_t thread_time_add_waker(struct object *leaves, const struct process *process, uint32_t tid,
			       struct frame_ref *frames, uint32_t n);
/*
 * Write a piece's stack with its leaf, and its waker below READIED_BY, into out[STACK_MAX_FRAMES].
 * returns  the number of frames
 */
uint32_t thread_time_frames(const struct thread_time_piece *piece, struct object *leaves,
			    struct frame_ref *out);
