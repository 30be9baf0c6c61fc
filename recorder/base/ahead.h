/*
 * Jobs that another thread does ahead, in the order in which they are given: to inflate and decode
 * the next piece of a file while its reader works on the one before.
 *
 * The owner's thread calls these functions. A job lies in the owner's memory, and until it has been
 * awaited only run() may touch what it works on. A wake-up costs some 10 us, so a job should take
 * longer. Jobs do not hang: pool.h is for those that may.
 */
#pragma once

#include "base/os.h"

struct ahead_job {
	void (*run)(struct ahead_job *job);  /* on the other thread; the owner's if there is none */
	struct ahead_job *next;
	bool waits;                          /* given, and not done yet */
};

struct ahead {                               /* {0} has no thread */
	struct os_thread *thread;
	struct os_mutex *lock;               /* guards the rest, and of jobs what is above */
	struct os_cond *changed;
	struct ahead_job *first, *last;      /* not begun */
	bool ending;
	/* Set after ahead_begin(): jobs are independent, and the owner does some while it waits. */
	bool owner_helps;
};

/* When no thread can be started, jobs are done at once when they are given. */
void ahead_begin(struct ahead *a, const char *name);
void ahead_give(struct ahead *a, struct ahead_job *job);
/* Return when it is done; at once if it was not given. */
void ahead_await(struct ahead *a, struct ahead_job *job);
/* All jobs are done when it returns. */
void ahead_end(struct ahead *a);
