/*
 * Pages that processes touched, found by address: which of them does an unmapping take away?
 *
 * Each process has a list. Pages of 2 MB of it are a chunk, found by a hash, so an unmapping looks
 * at the chunks that it covers, or at the whole list when that is shorter. One thread.
 */
#pragma once

#include "base/table.h"

#include <stdbool.h>

struct page {
	uint32_t next_in_chunk;              /* numbers of pages; SLOTS_NONE = the last */
	uint32_t next, before;               /* in its list, the newest first */
	uint32_t owner;                      /* of the list */
	uint64_t number, time_ns;            /* address / 4096; when it was touched */
	uint32_t weight;                     /* in pages: how many it stands for */
	uint16_t cpu;
	bool fresh;                          /* it is not known yet whether it is huge */
	bool huge;
};

struct pages {
	struct slots all;
	struct table by_chunk;               /* the first page of each chunk */
};

struct page_list {
	uint32_t owner;                      /* another number for each list */
	uint32_t first, n;                   /* the newest; SLOTS_NONE = none */
};

int pages_init(struct pages *p, uint32_t max);       /* 0 or ERR_MEMORY */
void pages_free(struct pages *p);

/* Takes the number, time, weight, CPU and marks of *page. false: no room; pages_remove() some */
bool pages_add(struct pages *p, struct page_list *l, const struct page *page);
/* By its place in the table. Its time becomes 0, so that an old place is not taken for it. */
void pages_remove(struct pages *p, struct page_list *l, uint32_t at);
/* Remove those with numbers in [from, to] that were touched until then; gone() hears of each. */
void pages_unmap(struct pages *p, struct page_list *l, uint64_t from, uint64_t to, uint64_t time_ns,
		 void (*gone)(void *ctx, const struct page *page, uint64_t time_ns), void *ctx);

static inline struct page *pages_get(const struct pages *p, uint32_t at)
{
	return slots_get(&p->all, at);
}
