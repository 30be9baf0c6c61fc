/*
 * A pool of threads for jobs that may hang: to open a file on a mount whose server is gone, or to
 * read from a process that is stuck in the kernel. The caller waits only as long as it wants to.
 *
 * A job that runs for longer than POOL_STUCK_NS, or what its owner has set, is stuck: its thread is
 * left behind and another one takes over. At most POOL_STUCK_MAX threads are left behind at a time;
 * while that many are, jobs wait. A thread that comes back works again, or ends when others do its
 * work.
 *
 * One thread, the owner, calls these functions. What run() uses belongs to the job: a job that is
 * stuck may outlive the pool, its owner and whatever they borrowed.
 */
#pragma once

#include "base/os.h"

#include <stdatomic.h>

#define POOL_STUCK_NS (2 * NS_PER_SEC)
#define POOL_STUCK_MAX 4u
#define POOL_ASKED_MAX 16u                   /* subjects that are left alone at a time */

struct pool;

/* First member of what its owner allocates. */
struct job {
	void (*run)(struct job *job);        /* on a thread of the pool */
	/* Called once neither the owner nor the pool uses the job, on either one's thread. */
	void (*free)(struct job *job);
	const char *what;       /* the job's own, for people: "the mappings of process 12" */

	/* The pool's: */
	_Atomic uint32_t users;
	_Atomic bool done;
	uint64_t ran_ns;        /* how long it took, once it is done */
	struct job *next;
};

/*
 * name      of its threads, at most 15 bytes
 * nthreads  that work at a time, those left behind not counted
 */
int pool_new(const char *name, unsigned nthreads, enum os_priority priority, struct pool **out,
	     struct err *err);
/* For short jobs that others wait for: one is stuck after stuck_ns already. */
void pool_set_stuck(struct pool *p, uint64_t stuck_ns);
/* Each of its threads calls this before its next job, once. */
void pool_set_begin(struct pool *p, void (*begin)(void));
/*
 * For jobs on which much depends and that are late only on a busy machine: who asks next after one
 * that was late (pool_ask()) waits for it first, this long at most, and a tenth of the time.
 */
void pool_set_patience(struct pool *p, uint64_t patience_ns);
/*
 * Ends its threads and drops the jobs that have not begun. Waits at most POOL_STUCK_NS for those
 * that have. NULL allowed.
 */
void pool_free(struct pool *p);

/* The owner's use of a new job; set run and free first. */
void job_init(struct job *job);
void job_drop(struct job *job);              /* the owner's use ends; NULL allowed */
void job_again(struct job *job);             /* new or done: it may be put (again) */

void pool_put(struct pool *p, struct job *job);      /* adds the pool's use */
/* Acquires: what run() wrote can be read once this is true. */
bool job_done(const struct job *job);
/* Wait until the job is done, at most timeout_ns; returns job_done(). */
bool pool_wait(struct pool *p, const struct job *job, uint64_t timeout_ns);

/*
 * Put a job about one subject, by a number of the caller's (a process, a user), and wait for it. A
 * subject that does not answer in time is left alone until it does, at least for 50 ms, doubled up
 * to 2 s when it is late again; but not if the thread had no CPU, and the job, once it ran, took
 * less than the timeout and the pool's patience. While a job that is late has not been left behind,
 * nobody is asked.
 *
 * returns  true: it is done. false: it hangs, or was not begun; the caller's use of it has ended
 */
bool pool_ask(struct pool *p, uint64_t subject, struct job *job, uint64_t timeout_ns);

/*
 * Call about once a second: leaves stuck threads behind and starts others.
 * returns  the job of a thread that was left behind by this call, until it returns NULL. It may be
 *          read, not changed, until the next call of a function of this pool.
 */
const struct job *pool_look(struct pool *p, uint64_t now_ns);

uint32_t pool_queued(struct pool *p);        /* jobs that have not begun; any thread */
uint32_t pool_stuck(struct pool *p);         /* threads that are left behind now; any thread */
/*
 * When threads are left behind, say so for `status`: "N of at most 4 threads that read..."
 * reads: "memory of processes". returns  whether it did. Any thread
 */
bool pool_note(struct pool *p, const char *reads, char *out, size_t n);
