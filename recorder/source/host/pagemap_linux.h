/*
 * What /proc/PID/pagemap, statm and smaps_rollup say of a process's memory (proc(5),
 * Documentation/admin-guide/mm/pagemap.rst). For jobs of a pool: these files may take long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_page {
	uint64_t number;                     /* address / 4096 */
	uint64_t time_ns;                    /* when it was touched */
	uint32_t weight;                     /* in pages: how many it stands for */
	uint32_t at;                         /* the caller's */
	bool fresh;                          /* it is not known yet whether the page is huge */
	bool huge;                           /* in: known; out, if fresh: found */
	bool gone;                           /* out */
};

struct seen_memory {
	bool read;                           /* false: no such process any more, or no right */
	uint64_t anon_kb, rss_kb;            /* 0 = unknown */
	uint64_t took_ns;
};

/*
 * Look at pages of a process, which are sorted by number here. Gone are those that are neither
 * resident nor swapped out, that a file or shared memory backs, and that were touched again later.
 * Of the pages of a stretch of memory, those touched last keep what is resident in it; further ones
 * are gone, too: the stretch was unmapped and used again.
 */
void pagemap_look(uint32_t pid, struct seen_page *pages, uint32_t n, struct seen_memory *out);

/* /proc/PID/statm. false: no such process, or a kernel thread. */
bool pagemap_sizes(uint32_t pid, uint64_t *anon_kb, uint64_t *rss_kb);
