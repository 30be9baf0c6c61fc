#include "store/page_cache_private.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_MAX_BYTES ((size_t)256 << 20)  /* 262,144 functions take 40 MB */

/* A row with its frames, its functions, its texts, or its rows of processes or threads. */
struct cached_page {
	int64_t first, last;
	struct page_frame *frames;
	uint64_t *rows;
	uint32_t n;                          /* of frames or rows */
	struct text_page texts;
	struct function_page functions;
};

/* ---- pages in memory ------------------------------------------------------------------------ */

/* Where the page with this id is, or would be. */
static uint32_t page_at(const struct cached_pages *p, int64_t id)
{
	uint32_t lo = 0, hi = p->n, mid;

	if (p->at < p->n && id >= p->items[p->at].first && id <= p->items[p->at].last)
		return p->at;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->items[mid].last < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct cached_page *page_find(struct cached_pages *p, int64_t id)
{
	uint32_t at = page_at(p, id);

	if (at == p->n || id < p->items[at].first)
		return NULL;
	p->at = at;
	return &p->items[at];
}

static void pages_free(struct cached_pages *p)
{
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		free(p->items[i].frames);
		free(p->items[i].rows);
		text_page_free(&p->items[i].texts);
		function_page_free(&p->items[i].functions);
	}
	free(p->items);
}

void page_cache_free(struct page_cache *c)
{
	pages_free(&c->frames);
	pages_free(&c->functions);
	pages_free(&c->texts);
	pages_free(&c->tasks[TASK_PROCESS]);
	pages_free(&c->tasks[TASK_THREAD]);
	memset(c, 0, sizeof(*c));
}

/* ---- pages in the store --------------------------------------------------------------------- */

/* 1: *row is the page with this id; 0: there is none; or an error. */
static int find_row(struct page_cache *c, const char *sql, int64_t id, struct page_row *row,
		    struct err *err)
{
	int rc = page_row(c->s, sql, id, row, err);

	if (rc > 0 && row->first < 1)
		rc = err_set(err, ERR_FORMAT, "a page of %s has the impossible id %" PRId64,
			     c->s->path, row->first);
	else if (rc > 0 && row->last < id)
		rc = 0;
	else
		return rc;
	query_reset(&row->query);
	return rc;
}

/* *out is empty but for its ids. */
static int add_page(struct page_cache *c, struct cached_pages *p, const struct page_row *row,
		    struct cached_page **out, struct err *err)
{
	uint32_t at = page_at(p, row->first);

	if (c->bytes > CACHE_MAX_BYTES)
		return err_set(err, ERR_FORMAT, "its pages in %s take over 256 MB", c->s->path);
	if (at < p->n && row->last >= p->items[at].first)
		return err_set(err, ERR_FORMAT, "two pages of %s have the same ids", c->s->path);
	if (ARRAY_ROOM(p->items, p->cap, p->n + 1))
		return err_memory(err, "for the pages of %s", c->s->path);
	memmove(&p->items[at + 1], &p->items[at], (p->n - at) * sizeof(*p->items));
	p->n++;
	p->at = at;
	p->items[at] = (struct cached_page){.first = row->first, .last = row->last};
	*out = &p->items[at];
	return 0;
}

static size_t text_page_bytes(const struct text_page *p)
{
	return p->memory.len + p->n * sizeof(*p->texts);
}

static size_t page_bytes(const struct cached_page *p)
{
	size_t item_bytes = p->rows ? PAGE_COLUMNS_MAX * sizeof(*p->rows) : sizeof(*p->frames);

	return p->n * item_bytes + p->functions.n * sizeof(*p->functions.functions) +
	       text_page_bytes(&p->functions.texts) + text_page_bytes(&p->texts);
}

typedef int page_filler(struct cached_page *page, const struct page_row *row, struct err *err);

/*
 * The page that has this id, read if it is not in memory; *out NULL: there is none. sql: for
 * page_row(), the last page that begins at the id or before.
 */
static int get_page(struct page_cache *c, struct cached_pages *p, const char *sql,
		    page_filler *fill, int64_t id, struct cached_page **out, struct err *err)
{
	struct page_row row;
	int rc;

	*out = page_find(p, id);
	if (*out)
		return 0;
	rc = find_row(c, sql, id, &row, err);
	if (rc <= 0)
		return rc;
	rc = add_page(c, p, &row, out, err);
	if (!rc)
		rc = fill(*out, &row, err);
	if (!rc)
		c->bytes += page_bytes(*out);
	query_reset(&row.query);
	return rc;
}

static int fill_frames(struct cached_page *page, const struct page_row *row, struct err *err)
{
	return frame_page_unpack(&row->data, &row->more, page->first, &page->frames, &page->n, err);
}

int page_cache_frame(struct page_cache *c, int64_t id, const struct page_frame **out,
		     struct err *err)
{
	struct cached_page *page;
	uint32_t at = UINT32_MAX;
	int rc = get_page(c, &c->frames,
			  "SELECT first_id, last_id, data, functions FROM frame_page"
			  " WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1",
			  fill_frames, id, &page, err);

	if (!rc && page)
		at = frame_page_find(page->frames, page->n, id);
	*out = at != UINT32_MAX ? &page->frames[at] : NULL;
	return rc;
}

static int fill_functions(struct cached_page *page, const struct page_row *row, struct err *err)
{
	return function_page_unpack(&row->data, &row->more, page->first, &page->functions, err);
}

int page_cache_function(struct page_cache *c, int64_t id, const struct page_function **out,
			struct err *err)
{
	struct cached_page *page;
	int rc = get_page(c, &c->functions,
			  "SELECT first_id, last_id, data, names FROM function_page"
			  " WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1",
			  fill_functions, id, &page, err);

	*out = !rc && page ? function_page_find(&page->functions, id) : NULL;
	return rc;
}

static int fill_texts(struct cached_page *page, const struct page_row *row, struct err *err)
{
	return text_page_unpack(&row->data, PAGE_TEXTS_MAX, &page->texts, err);
}

int page_cache_text(struct page_cache *c, int64_t id, const char **out, struct err *err)
{
	struct cached_page *page;
	int rc = get_page(c, &c->texts,
			  "SELECT first_id, last_id, data, NULL FROM text_page"
			  " WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1",
			  fill_texts, id, &page, err);
	bool has = !rc && page && (uint64_t)id - (uint64_t)page->first < page->texts.n;

	*out = has ? page->texts.texts[id - page->first] : NULL;
	return rc;
}

static int fill_processes(struct cached_page *page, const struct page_row *row, struct err *err)
{
	return row_page_unpack(&row->data, PROCESS_COLUMNS, &page->rows, &page->n, err);
}

static int fill_threads(struct cached_page *page, const struct page_row *row, struct err *err)
{
	return row_page_unpack(&row->data, THREAD_COLUMNS, &page->rows, &page->n, err);
}

/* By enum task_kind. */
static const struct {
	const char *sql;
	page_filler *fill;
	unsigned columns;
} tasks[] = {
	{"SELECT first_id, last_id, data, NULL FROM process_page"
	 " WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1", fill_processes, PROCESS_COLUMNS},
	{"SELECT first_id, last_id, data, NULL FROM thread_page"
	 " WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1", fill_threads, THREAD_COLUMNS},
};

int page_cache_task(struct page_cache *c, enum task_kind kind, int64_t id, const uint64_t **out,
		    struct err *err)
{
	struct cached_page *page = NULL;
	int rc = get_page(c, &c->tasks[kind], tasks[kind].sql, tasks[kind].fill, id, &page, err);
	uint64_t at = page ? (uint64_t)id - (uint64_t)page->first : 0;

	*out = !rc && page && at < page->n ? page->rows + at * tasks[kind].columns : NULL;
	return rc;
}
