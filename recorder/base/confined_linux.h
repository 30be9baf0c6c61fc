/*
 * A process of this same program that can do nothing but compute (os_confine()): what strangers
 * wrote is parsed there. It starts with the first request, works at the priority of the thread that
 * waits for it, and ends with its owner. When it dies, or takes too long, the next request starts
 * another one. What it answers is to be checked like any other bytes from outside.
 *
 * One thread at a time, but for what is said to be for others.
 */
#pragma once

#include "base/os.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

struct confined {
	const char *word;                    /* the program's argument; main() serves it */
	const char *reads, *from;            /* for messages: "symbols", "file" */
	uint64_t max_ns;                     /* for one answer */
	uint64_t max_cpu_ns;                 /* of a CPU, for one answer; 0 = as long as max_ns */
	uint64_t asked_cpu_ns;               /* confined_cpu_ns() when it was asked; with a limit */
	int fd;                              /* -1 = there is no process */
	_Atomic pid_t pid;                   /* 0 likewise */
	_Atomic uint64_t ended_cpu_ns;       /* of those that have ended */
	_Atomic uint64_t rss_bytes, rss_cpu_ns;      /* its memory when they had used so much CPU */
};

/* ---- its owner: word, reads, from and the limits are set, fd is -1 --------------------------- */

/*
 * Ask the process, which is at rest; it is started if need be. The parts fit into a socket's
 * buffer, some 200 KB, so nothing blocks.
 *
 * file     a descriptor that goes with it; -1 = none
 */
int confined_ask(struct confined *c, const struct iovec *parts, unsigned nparts, int file,
		 struct err *err);
/* Its answer. When it fails the process was ended: ERR_LIMIT, too late; ERR_FORMAT, it died. */
int confined_receive(struct confined *c, void *to, size_t n, uint64_t end_ns, struct err *err);
/* At least n bytes, and up to max of what has come with them. */
int confined_receive_some(struct confined *c, void *to, size_t n, size_t max, uint64_t end_ns,
			  size_t *got_bytes, struct err *err);
/* End it: the rest of its answer is not read. One that hangs in a file system is left behind. */
void confined_end(struct confined *c);
/* End it because of its answer, which cannot be: ERR_FORMAT. */
int confined_distrust(struct confined *c, struct err *err);

/* Any thread: os_thread_waits() for it; true without one. */
bool confined_waits(const struct confined *c, uint64_t *progress);
/* Any thread: os_thread_hurry() for it. */
void confined_hurry(const struct confined *c);
/* Any thread: the CPU time of its processes so far. */
uint64_t confined_cpu_ns(const struct confined *c);
/* The same since it was asked. */
uint64_t confined_spent_ns(const struct confined *c);
/*
 * Any thread: add the CPU time of its processes so far, and the memory of the present one, which is
 * not read again while that has done nothing.
 */
void confined_add_usage(struct confined *c, uint64_t *cpu_ns, uint64_t *rss_bytes);

/* ---- the process itself: its owner is descriptor 0 ------------------------------------------- */

#define CONFINED_NOT 3                       /* its exit code when it has kept its rights */

/* Give up everything. false: exit with CONFINED_NOT. */
bool confined_begin(const char *name, uint64_t memory_max_bytes);
/* The next n bytes. file: the descriptor that came with them, or -1; NULL = none comes. */
bool confined_take(void *bytes, size_t n, int *file);
bool confined_answer(const void *bytes, size_t n);
