/*
 * Where each thread's wall clock goes, from context switches: on a CPU, blocked, ready and waiting for a
 * CPU. Each ns between the first and the last that is known of a thread is told exactly once:
 *
 *	switched in ........ sample .... switched out ......... woken ...... switched in
 *	|      CPU, of the    |  CPU, of |       BLOCKED        |   READIED   |
 *	|    sample's stack   |    the stack with which it was switched out   |
 *
 * A thread that was switched out although it could run (preempted) is READIED at once. BLOCKED is DISK
 * where the kernel's stack says that it waits for a device. What is still going on is told at each tick.
 *
 * Calls may be missing. Time of which they leave open how it was spent is UNKNOWN, and has no stack: that of
 * a thread that is switched out and was not on a CPU, or in and is on one already, or out and it is not known
 * why; and from thread_time_unseen() or thread_time_lost() on until its next switch.
 *
 * A thread may be switched 10,000 times a second. So times of one stack in a row are summed up for up to
 * THREAD_TIME_SUM_NS, and sums below THREAD_TIME_LEAST_NS are told with the thread's next of their kind,
 * as a sampler would: stacks are right in proportion, totals of a thread and kind exact. What is left of a
 * kind at a tick is told without a stack.
 *
 * Portable; knows threads by number. Calls must come in time order. One thread. Memory: up to
 * THREAD_TIME_MAX threads, with a stack each.
 */
#ifndef SOURCE_THREAD_TIME_H
#define SOURCE_THREAD_TIME_H

#include "model/event.h"
#include "symbol/symbol.h"

#define THREAD_TIME_MAX 65536u
#define THREAD_TIME_SUM_NS 100000000ULL
#define THREAD_TIME_LEAST_NS 2000000ULL

enum thread_time_kind { TIME_CPU, TIME_BLOCKED, TIME_DISK, TIME_READIED, TIME_UNKNOWN, TIME_KINDS };

/* Until end_ns a thread spent so much in that way; frames leaf first, none where its stack is not known. */
struct thread_time_piece {
	uint32_t tid;
	enum thread_time_kind kind;
	uint64_t end_ns, ns;
	const struct frame_ref *frames;
	uint32_t nframes;
	uint8_t quality;
	const struct frame_ref *waker;       /* TIME_BLOCKED, TIME_DISK: the stack of who ended it; none = not known */
	uint32_t nwaker;
};
typedef void thread_time_put(void *ctx, const struct thread_time_piece *piece);

struct thread_time;

struct thread_time *thread_time_new(thread_time_put *put, void *ctx);    /* NULL = no memory */
void thread_time_free(struct thread_time *t);

/*
 * The stack with which a thread is being switched out, around the time of thread_time_out(); or, where it
 * is told only then, just before thread_time_in().
 */
void thread_time_stack(struct thread_time *t, uint64_t now_ns, uint32_t tid, bool disk,
		       const struct frame_ref *frames, uint32_t nframes, uint8_t quality);

/*
 * A thread comes to be. Its time counts from then on also where its first switches are lost; else from when it is
 * first woken, which is soon.
 */
void thread_time_born(struct thread_time *t, uint64_t now_ns, uint32_t tid);
enum thread_time_out { OUT_BLOCKED, OUT_DISK, OUT_PREEMPTED, OUT_DEAD, OUT_UNKNOWN };
void thread_time_out(struct thread_time *t, uint64_t now_ns, uint32_t tid, enum thread_time_out how);
void thread_time_in(struct thread_time *t, uint64_t now_ns, uint32_t tid);
/* Somebody wakes a thread, just before thread_time_woken(): with which stack. */
void thread_time_waker(struct thread_time *t, uint64_t now_ns, uint32_t tid, const struct frame_ref *frames,
		       uint32_t nframes);
void thread_time_woken(struct thread_time *t, uint64_t now_ns, uint32_t tid);
/* A CPU sample. */
void thread_time_sample(struct thread_time *t, uint64_t now_ns, uint32_t tid,
			const struct frame_ref *frames, uint32_t nframes, uint8_t quality);

/* Tell what goes on, of all threads; those that gone() knows to be no more are forgotten. */
void thread_time_tick(struct thread_time *t, uint64_t now_ns, bool (*gone)(void *ctx, uint32_t tid));
/* It is on its CPU no longer, and it was not seen when it left. */
void thread_time_unseen(struct thread_time *t, uint32_t tid);
/* Switches were lost: nothing is known of anybody until its next one. */
void thread_time_lost(struct thread_time *t, uint64_t now_ns);

uint32_t thread_time_threads(const struct thread_time *t);
/* Switches of threads without room or memory for them. */
uint64_t thread_time_refused(const struct thread_time *t);

/* The object of the leaves, or NULL: the caller's reference. Its frames' names, as source_ops.name_frame. */
struct object *thread_time_leaves(struct frames *frames);
bool thread_time_name(const struct object *leaves, const struct frame *frame, struct symbol *out);
/* The piece's stack with its leaf, and below that READIED_BY and its waker; out[STACK_MAX_FRAMES]; how many. */
uint32_t thread_time_frames(const struct thread_time_piece *piece, struct object *leaves, struct frame_ref *out);

#endif
