/*
 * How much memory the recorder may have resident (--max-rss-mb): what that is shared out to at the
 * start, and what is given back when it is nearly reached.
 *
 * Resident is what the system counts for the process: Linux VmRSS, Windows the working set. The
 * kernel's rings of perf events are not in it: 4.5 MB for each CPU, with a higher --freq up to
 * 16.5.
 *
 * Readings come once a second or so; time is theirs, nothing here reads a clock. Over 7/8 of the
 * limit a step is taken, and the next one not before two seconds later, when that one shows, or at
 * once over the limit itself: memory that the heap keeps is returned; caches (unwind tables,
 * symbols), which can be read again, go to half of what they hold down to their least; then, over
 * 15/16, the ring gives up as much as is over, and in any case keeps a quarter. After a minute
 * below 3/4 a step is taken back: an eighth of what was shared out. No memory, no locks: a value.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct memory_share {
	uint64_t ring_bytes;                 /* sealed segments */
	uint64_t pinned_bytes;               /* those that left the ring but incidents still hold */
	uint64_t table_bytes;                /* unwind tables */
	uint64_t symbol_bytes;               /* indexes of symbols */
};

/*
 * What a limit has room for: `wanted` as it is without one (0); else, of what MEMORY_BASE_BYTES and
 * the least of the caches leave, at most 5/8 for the ring and 1/8 for what incidents hold. A cache
 * may take all of it: the ring takes hours to fill, and until then there is room. Then they go back
 * to what is left for them.
 *
 * returns  0; ERR_USAGE when the limit is under MEMORY_LEAST_BYTES, with the sentence
 */
int memory_share(uint64_t max_bytes, const struct memory_share *wanted, struct memory_share *out,
		 struct err *err);

/*
 * What is resident beside those four: 15 MB under six busy programs; after a flood of 19,000
 * processes and 40,000 threads 31, and 38 where other programs came and went meanwhile
 * (tests/cli/memory_linux.sh has such a flood). The program and its libraries are 5 of it, the rest
 * tables of frames, processes and names, queues, threads, the store.
 */
#define MEMORY_BASE_BYTES (40ULL << 20)
#define MEMORY_LEAST_BYTES (56ULL << 20)
#define MEMORY_LEAST_TABLE_BYTES (4ULL << 20)
#define MEMORY_LEAST_SYMBOL_BYTES (8ULL << 20)       /* the kernel's take 5 */

enum memory_move { MEMORY_STAYS, MEMORY_TRIM, MEMORY_CACHES, MEMORY_RING, MEMORY_UP };

struct memory_budget {
	uint64_t max_bytes;                  /* 0 = no limit */
	struct memory_share asked, now;      /* as shared out; what is in force */
	uint64_t rss_bytes;                  /* of the last reading */
	uint64_t last_ns, calm_ns, next_ns;
	uint64_t trimmed_ns;                 /* 0 = not since it was last below */
};

void memory_budget_init(struct memory_budget *m, uint64_t max_bytes,
			const struct memory_share *asked);

/*
 * held: now, of the ring and the caches. A move is in m->now on return; the caller must do
 * MEMORY_TRIM.
 */
enum memory_move memory_budget_feed(struct memory_budget *m, uint64_t now_ns, uint64_t rss_bytes,
				    const struct memory_share *held);

/* History had to go: what fills the tables is to get less of the ring, see struct segment_quota. */
static inline bool memory_budget_is_tight(const struct memory_budget *m)
{
	return m->now.ring_bytes < m->asked.ring_bytes;
}
