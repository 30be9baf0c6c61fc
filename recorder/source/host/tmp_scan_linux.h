/*
 * Searches for files that programs leave in /tmp, again and again, for a thread that must not hang:
 * a directory there, or the path of a socket, may lie on a mount whose server is gone. Each search
 * is a job of a pool, one at a time. One that hangs is left behind, and what it was looking at is
 * left alone until it comes back.
 *
 * A search rests 50 times the CPU time that it took, at most half a minute: whoever fills /tmp gets
 * 2 % of a CPU. One thread, the owner, calls these functions except where it says so.
 */
#pragma once

#include "base/log.h"
#include "base/pool.h"

#define TMP_SCAN_HUNG_OF_OWNER 2u            /* POOL_STUCK_MAX of all */

struct tmp_search {                          /* first member of what its owner allocates */
	struct job job;
	void (*run)(struct tmp_search *search);      /* on a thread of the pool */
	uint64_t skipped[POOL_STUCK_MAX];
	uint32_t nskipped;
	_Atomic uint64_t at;                 /* what it looks at; 0 = nothing that may hang alone */
	uint64_t cpu_ns;
};

struct tmp_scan {
	struct pool *pool;                   /* borrowed, as what follows */
	struct log *log;
	const char *programs;                /* "Java" */
	struct tmp_search *now;              /* NULL = none */
	struct tmp_search *hung[POOL_STUCK_MAX];
	uint32_t nhung;
	uint64_t rest_until_ns;
};

/*
 * For run(): it begins to look at a place (tmp_place()), which ends with the next one or 0. false:
 * that one hangs, or TMP_SCAN_HUNG_OF_OWNER of its owner do, and it must not be looked at.
 */
bool tmp_search_at(struct tmp_search *search, uint64_t place);

/* A place by the hash of its path, which is not 0, and the number of its owner. */
static inline uint64_t tmp_place(uint64_t hash, uint32_t owner)
{
	return (hash | 1) << 32 | owner;
}

/* Whether a new search may begin: none runs, the last one has rested, and a thread works. */
bool tmp_scan_is_free(const struct tmp_scan *s, uint64_t now_ns);
/* Takes the search, of which run and job.free are set; waits for it, for 20 ms at most. */
void tmp_scan_begin(struct tmp_scan *s, struct tmp_search *search);
/* A search that is done, which the caller drops (job_drop()); NULL = none. */
struct tmp_search *tmp_scan_done(struct tmp_scan *s, uint64_t now_ns);
/* When to call again for what is due at due_ns. */
uint64_t tmp_scan_due_ns(const struct tmp_scan *s, uint64_t now_ns, uint64_t due_ns);
void tmp_scan_close(struct tmp_scan *s);     /* before pool_free() */
