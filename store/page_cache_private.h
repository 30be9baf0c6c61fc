/*
 * The pages of a store that were read while an incident is loaded: frames, functions, texts,
 * processes and threads by their ids.
 *
 * Segments list frames in the order in which they were stored, so the page asked for last is likely
 * the next one, too. What is found belongs to the cache. All calls are made in the transaction that
 * loads, on one thread. {.s = store} is empty and valid.
 */
#pragma once

#include "store/store_private.h"

enum task_kind { TASK_PROCESS, TASK_THREAD, TASK_KINDS };

struct cached_pages {
	struct cached_page *items;           /* in order of their ids */
	uint32_t n, cap, at;
};

struct page_cache {
	struct store *s;
	struct cached_pages frames, functions, texts, tasks[TASK_KINDS];
	size_t bytes;                        /* of all of them, in memory */
};

/*
 * *out: NULL when no page has this id.
 * returns  0; ERR_FORMAT when its page is damaged, or all pages take over 256 MB; ERR_MEMORY...
 */
int page_cache_frame(struct page_cache *c, int64_t id, const struct page_frame **out,
		     struct err *err);
int page_cache_function(struct page_cache *c, int64_t id, const struct page_function **out,
			struct err *err);
int page_cache_text(struct page_cache *c, int64_t id, const char **out, struct err *err);
/* Of a store that has_tasks: a row of PROCESS_COLUMNS, of THREAD_COLUMNS. */
int page_cache_task(struct page_cache *c, enum task_kind kind, int64_t id, const uint64_t **out,
		    struct err *err);
void page_cache_free(struct page_cache *c);
