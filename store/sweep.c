/*
 * Sweeping what no segment lists any more.
 *
 * A segment leaves with the last incident that has it. What segments list (frames, threads, and
 * through them functions, modules, processes) is known from their blobs only, so a sweep marks: it
 * reads the lists of every segment left, sets a bit for each id listed, and deletes the rows
 * without one. Marking runs outside the transaction; inside it only the segments that a recorder
 * has added meanwhile are marked too (segment ids only grow).
 *
 * Pages of frames are swept together: one whose frames are nearly all listed stays as it is, what is left
 * of the others is put together into pages of PAGE_FRAMES. So a frame is written again only when as many
 * as a third of its neighbours are gone, or to make one page of small ones. A frame keeps its id. A page
 * of texts leaves when no process has one of them. A damaged page does not end the sweep: it leaves when
 * none of its ids is listed.
 */
#include "store/store_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- marks ---------------------------------------------------------------------------------- */

enum { MARK_THREADS, MARK_FRAMES, MARK_FUNCTIONS, MARK_MODULES, MARK_TEXTS, MARKS };

struct marks {
	struct store *s;
	uint8_t *bits[MARKS];                /* of the ids from min to max */
	int64_t min[MARKS], max[MARKS];      /* ids above max were added since, and stay */
	int64_t last_segment;                /* marked up to and with this one */
	bool unread[MARKS];                  /* some stay though they cannot be read: what these name is not marked */
};

/* 64 MB of bits. Ids grow for ever, but old rows leave: the range is months of new frames. */
#define MARK_RANGE_MAX ((uint64_t)1 << 29)

static bool in_range(const struct marks *m, int kind, int64_t id)
{
	return id >= m->min[kind] && id <= m->max[kind];
}

static void mark(struct marks *m, int kind, int64_t id)
{
	uint64_t at = (uint64_t)id - (uint64_t)m->min[kind];

	if (in_range(m, kind, id))
		m->bits[kind][at / 8] |= (uint8_t)(1u << (at % 8));
}

static bool is_marked(const struct marks *m, int kind, int64_t id)
{
	uint64_t at = (uint64_t)id - (uint64_t)m->min[kind];

	return !in_range(m, kind, id) || (m->bits[kind][at / 8] >> (at % 8) & 1);
}

/* One of the ids from `id` to `last`. */
static bool any_marked(const struct marks *m, int kind, int64_t id, int64_t last)
{
	uint64_t at;

	while (id < last && !is_marked(m, kind, id)) {
		at = (uint64_t)id - (uint64_t)m->min[kind];
		id += at % 8 || m->bits[kind][at / 8] || (uint64_t)last - (uint64_t)id < 8 ? 1 : 8;
	}
	return is_marked(m, kind, id);
}

static int mark_lists(struct marks *m, const struct blob *blob)
{
	struct lists lists;
	uint32_t i;
	int rc = lists_unpack(blob->bytes, blob->n, &lists, NULL);

	if (rc)
		return rc;
	for (i = 0; i < lists.nthreads; i++)
		mark(m, MARK_THREADS, lists.ids[i]);
	for (; i < lists.nthreads + lists.nframes; i++)
		mark(m, MARK_FRAMES, lists.ids[i]);
	free(lists.ids);
	return 0;
}

/* Every segment after the last one marked. A list that cannot be read ends the sweep. */
static int mark_segments(struct marks *m)
{
	struct blob blob;
	struct args a;
	int rc = db_statement(m->s, "SELECT id, lists FROM segment WHERE id > ? ORDER BY id", &a,
			      NULL);
	int step = 0;

	if (!rc) {
		arg_int(&a, m->last_segment);
		while (!rc && (step = db_step(m->s, a.st, NULL)) > 0) {
			blob = column_blob(a.st, 1);
			rc = mark_lists(m, &blob);
			m->last_segment = sqlite3_column_int64(a.st, 0);
		}
		sqlite3_reset(a.st);
	}
	return rc ? rc : step;
}

static int marks_init_one(struct marks *m, int kind, const char *sql)
{
	uint64_t range;
	struct args a;
	int rc = db_statement(m->s, sql, &a, NULL);

	if (!rc)
		rc = db_step(m->s, a.st, NULL);
	if (rc <= 0)
		return ERR_FORMAT;
	m->min[kind] = sqlite3_column_int64(a.st, 0);
	m->max[kind] = sqlite3_column_int64(a.st, 1);
	sqlite3_reset(a.st);
	range = (uint64_t)m->max[kind] - (uint64_t)m->min[kind];
	if (range > MARK_RANGE_MAX) {
		/* An empty range, outside of which everything stays: the other kinds are swept. */
		m->min[kind] = 0;
		m->max[kind] = -1;
		return 0;
	}
	m->bits[kind] = calloc((size_t)range / 8 + 1, 1);
	return m->bits[kind] ? 0 : ERR_MEMORY;
}

#define RANGE_OF(table) "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM " table
#define RANGE_OF_PAGES(table, pages) \
	RANGE_OF("(SELECT min(id) AS id FROM " table " UNION ALL SELECT max(id) FROM " table \
		 " UNION ALL SELECT min(first_id) FROM " pages " UNION ALL SELECT" \
		 " (SELECT last_id FROM " pages " ORDER BY first_id DESC LIMIT 1))")

/* An empty table has the range 0 to 0. Rows of frames and functions are those of a store of version 2. */
static int marks_init(struct marks *m)
{
	int64_t version;
	int rc = schema_version(m->s, &version, NULL);

	if (!rc)
		rc = marks_init_one(m, MARK_THREADS, RANGE_OF("thread"));
	if (!rc)
		rc = marks_init_one(m, MARK_MODULES, RANGE_OF("module"));
	if (!rc)
		rc = marks_init_one(m, MARK_FUNCTIONS, version < 3 ? RANGE_OF("function")
				    : RANGE_OF_PAGES("function", "function_page"));
	if (!rc)
		rc = marks_init_one(m, MARK_FRAMES, version < 3 ? RANGE_OF("frame")
				    : RANGE_OF_PAGES("frame", "frame_page"));
	if (!rc && version >= 3)
		rc = marks_init_one(m, MARK_TEXTS, "SELECT coalesce(min(first_id), 0), coalesce(max(last_id), 0)"
				    " FROM text_page");
	return rc;
}

/* SQL: listed(kind, id) */
static void sql_listed(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const struct marks *m = sqlite3_user_data(ctx);
	unsigned kind = (unsigned)sqlite3_value_int(argv[0]) % MARKS;

	(void)argc;
	sqlite3_result_int(ctx, is_marked(m, (int)kind, sqlite3_value_int64(argv[1])));
}

static bool frame_listed(const void *ctx, int64_t frame)
{
	return is_marked(ctx, MARK_FRAMES, frame);
}

/* ---- pages that cannot be read ------------------------------------------------------------------ */

/* One goes when nothing can list what is in it, else it stays as it is; sql deletes it by its first id. */
static int sweep_damaged(struct marks *m, int kind, const char *sql, int64_t first, int64_t last, struct err *err)
{
	struct args a;
	int rc;

	if (any_marked(m, kind, first, last)) {
		m->unread[kind] = true;
		return 0;
	}
	rc = db_statement(m->s, sql, &a, err);
	if (rc)
		return rc;
	arg_int(&a, first);
	return db_run(m->s, a.st, err);
}

/* ---- pages of frames ------------------------------------------------------------------------ */

/* What is left of some pages, one after the other: one page, when it is enough. */
struct merging {
	struct marks *m;
	struct page_frame *frames;
	uint32_t n, cap;
	int64_t first, last;                 /* rows from .. to; pages == 0: none */
	uint32_t pages;
	bool dropped;                        /* some of their frames are not in `frames` */
	struct columns columns;
	struct buf data, functions;
};

static void mark_names(struct marks *m, const struct page_frame *frames, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		mark(m, MARK_MODULES, frames[i].module_id);
		if (frames[i].function_id)
			mark(m, MARK_FUNCTIONS, frames[i].function_id);
	}
}

static int merge_end(struct merging *g, struct err *err)
{
	struct store *s = g->m->s;
	struct args a;
	uint32_t at, n;
	int rc = 0;

	if (g->pages > 1 || g->dropped) {
		rc = db_statement(s, "DELETE FROM frame_page WHERE first_id BETWEEN ? AND ?", &a, err);
		if (!rc) {
			arg_int(&a, g->first);
			arg_int(&a, g->last);
			rc = db_run(s, a.st, err);
		}
		for (at = 0; !rc && at < g->n; at += n) {
			n = g->n - at < PAGE_FRAMES ? g->n - at : PAGE_FRAMES;
			rc = frame_page_insert(s, g->frames + at, n, &g->columns, &g->data,
					       &g->functions, err);
		}
	}
	mark_names(g->m, g->frames, g->n);
	g->n = g->pages = 0;
	g->dropped = false;
	return rc;
}

static int merge_page(struct merging *g, int64_t first, const struct page_frame *frames, uint32_t n,
		      struct err *err)
{
	uint32_t i, listed = 0;
	int rc = 0;

	for (i = 0; i < n; i++)
		listed += is_marked(g->m, MARK_FRAMES, frames[i].id);
	if (listed >= PAGE_FRAMES / 4 && listed >= n - n / 3) {
		mark_names(g->m, frames, n);
		return merge_end(g, err);
	}
	if (g->n + listed > PAGE_FRAMES)
		rc = merge_end(g, err);
	if (!rc && g->n + listed > g->cap) {
		uint32_t cap = g->n + listed > PAGE_FRAMES ? g->n + listed : PAGE_FRAMES;
		struct page_frame *bigger = realloc(g->frames, cap * sizeof(*bigger));

		if (!bigger)
			return err_set(err, ERR_MEMORY, "out of memory while sweeping a store");
		g->frames = bigger;
		g->cap = cap;
	}
	if (rc)
		return rc;
	g->first = g->pages++ ? g->first : first;
	g->last = first;
	g->dropped |= listed < n;
	for (i = 0; i < n; i++) {
		if (is_marked(g->m, MARK_FRAMES, frames[i].id))
			g->frames[g->n++] = frames[i];
	}
	return 0;
}

/* Pages beside one that cannot be read are not put together: it may be between them. */
static int end_at_damaged(struct merging *g, int64_t first, int64_t last, struct err *err)
{
	int rc = merge_end(g, err);

	return rc ? rc : sweep_damaged(g->m, MARK_FRAMES, "DELETE FROM frame_page WHERE first_id = ?", first, last,
				       err);
}

/* 1 = there was one, 0 = there is no more. */
static int sweep_page(struct merging *g, int64_t *after, struct err *err)
{
	struct page_frame *frames = NULL;
	struct page_row page;
	uint32_t n = 0;
	int rc = page_row(g->m->s, "SELECT first_id, last_id, data, functions FROM frame_page WHERE first_id > ?"
			  " ORDER BY first_id LIMIT 1", *after, &page, err);

	if (rc <= 0)
		return rc;
	*after = page.first;
	rc = frame_page_unpack(&page.data, &page.more, *after, &frames, &n, err);
	sqlite3_reset(page.st);
	if (!rc)
		rc = merge_page(g, *after, frames, n, err);
	else if (rc == ERR_FORMAT)
		rc = end_at_damaged(g, *after, page.last, err);
	free(frames);
	return rc ? rc : 1;
}

/* ---- pages of functions --------------------------------------------------------------------- */

/* What frames of pages have is marked; here what their rows have, in a store that was of version 2. */
static int mark_functions_of_rows(struct marks *m, struct err *err)
{
	struct args a;
	int rc = db_statement(m->s, "SELECT DISTINCT function_id FROM frame WHERE function_id IS NOT NULL", &a,
			      err);

	while (!rc && (rc = db_step(m->s, a.st, err)) > 0) {
		mark(m, MARK_FUNCTIONS, sqlite3_column_int64(a.st, 0));
		rc = 0;
	}
	return rc;
}

/* In its place without what is gone, when that is a third; a page of which nothing is left leaves. */
static int sweep_functions(struct marks *m, int64_t first, struct function_page *p, struct merging *g,
			   struct err *err)
{
	struct args a;
	uint32_t i, n = 0;
	int rc;

	for (i = 0; i < p->n; i++)
		n += is_marked(m, MARK_FUNCTIONS, p->functions[i].id);
	if (n < p->n - p->n / 3) {
		for (i = n = 0; i < p->n; i++) {
			if (is_marked(m, MARK_FUNCTIONS, p->functions[i].id))
				p->functions[n++] = p->functions[i];
		}
		p->n = n;
		rc = db_statement(m->s, "DELETE FROM function_page WHERE first_id=?", &a, err);
		if (!rc) {
			arg_int(&a, first);
			rc = db_run(m->s, a.st, err);
		}
		if (!rc && n)
			rc = function_page_insert(m->s, p->functions, n, &g->columns, &g->data, &g->functions,
						  err);
		if (rc)
			return rc;
	}
	for (i = 0; i < p->n; i++)
		mark(m, MARK_MODULES, p->functions[i].module_id);
	return 0;
}

/* 1 = there was one, 0 = there is no more. */
static int sweep_function_page(struct merging *g, int64_t *after, struct err *err)
{
	struct function_page functions;
	struct page_row page;
	int rc = page_row(g->m->s, "SELECT first_id, last_id, data, names FROM function_page WHERE first_id > ?"
			  " ORDER BY first_id LIMIT 1", *after, &page, err);

	if (rc <= 0)
		return rc;
	*after = page.first;
	rc = function_page_unpack(&page.data, &page.more, *after, &functions, err);
	sqlite3_reset(page.st);
	if (!rc)
		rc = sweep_functions(g->m, *after, &functions, g, err);
	else if (rc == ERR_FORMAT)
		rc = sweep_damaged(g->m, MARK_FUNCTIONS, "DELETE FROM function_page WHERE first_id = ?", *after,
				   page.last, err);
	function_page_free(&functions);
	*after = page.last > *after ? page.last : *after;
	return rc ? rc : 1;
}

/*
 * Frames, then their functions. What was put together is behind what is read next: its first id is that of
 * a page read before.
 */
static int sweep_pages(struct marks *m, struct err *err)
{
	struct merging g = {.m = m};
	int64_t after = INT64_MIN;
	int rc;

	while ((rc = sweep_page(&g, &after, err)) > 0)
		;
	if (!rc)
		rc = merge_end(&g, err);
	if (!rc)
		rc = mark_functions_of_rows(m, err);
	after = INT64_MIN;
	while (!rc && !m->unread[MARK_FRAMES] && (rc = sweep_function_page(&g, &after, err)) > 0)
		rc = 0;
	free(g.frames);
	columns_free(&g.columns);
	buf_free(&g.data);
	buf_free(&g.functions);
	return rc;
}

/* ---- pages of texts ------------------------------------------------------------------------- */

/* SQL: any_text(first, last): whether a process has one of them */
static void sql_any_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const struct marks *m = sqlite3_user_data(ctx);

	(void)argc;
	sqlite3_result_int(ctx, any_marked(m, MARK_TEXTS, sqlite3_value_int64(argv[0]),
					   sqlite3_value_int64(argv[1])));
}

static int sweep_texts(struct marks *m, struct err *err)
{
	struct args a;
	int rc = db_statement(m->s, "SELECT cmdline_id FROM process WHERE cmdline_id IS NOT NULL", &a, err);

	while (!rc && (rc = db_step(m->s, a.st, err)) > 0) {
		mark(m, MARK_TEXTS, sqlite3_column_int64(a.st, 0));
		rc = 0;
	}
	return rc ? rc : db_exec(m->s, "DELETE FROM text_page WHERE NOT any_text(first_id, last_id)", err);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* What frames name, unless there are some that cannot be asked. */
static int sweep_named(struct store *s, const struct marks *m, struct err *err)
{
	int rc = 0;

	if (!m->unread[MARK_FRAMES])
		rc = db_exec(s, "DELETE FROM function WHERE NOT listed(2, id) AND id NOT IN"
			     " (SELECT function_id FROM frame WHERE function_id IS NOT NULL)", err);
	if (!rc && !m->unread[MARK_FRAMES] && !m->unread[MARK_FUNCTIONS])
		rc = db_exec(s, "DELETE FROM module WHERE NOT listed(3, id) AND id NOT IN"
			     " (SELECT module_id FROM frame) AND id NOT IN (SELECT module_id FROM function)", err);
	return rc;
}

static int sweep_work(struct store *s, void *arg, struct err *err)
{
	struct marks *m = arg;
	int64_t version = 0;
	int rc = mark_segments(m);

	memset(m->unread, 0, sizeof(m->unread));

	if (!rc)
		rc = schema_version(s, &version, err);
	if (!rc)
		rc = db_exec(s, "DELETE FROM thread WHERE NOT listed(0, id);"
			     "DELETE FROM process WHERE id NOT IN (SELECT process_id FROM thread);"
			     "DELETE FROM frame WHERE NOT listed(1, id)", err);
	if (!rc && version >= 3)
		rc = sweep_pages(m, err);
	if (!rc && version >= 3)
		rc = sweep_texts(m, err);
	if (!rc)
		rc = sweep_named(s, m, err);
	if (rc)
		return rc;
	/* The newest session stays: it may be that of a recorder that has stored nothing yet. */
	return db_exec(s,
		"DELETE FROM session WHERE id NOT IN (SELECT session_id FROM process)"
		" AND id NOT IN (SELECT session_id FROM module WHERE session_id IS NOT NULL)"
		" AND id < (SELECT max(id) FROM session);"
		"DELETE FROM host WHERE id NOT IN (SELECT host_id FROM incident)", err);
}

/* The functions of SQL that sweep_work() uses; m NULL takes them away. */
static int set_functions(struct store *s, struct marks *m)
{
	int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
	int rc = sqlite3_create_function_v2(s->db, "listed", 2, flags, m, m ? sql_listed : NULL, NULL, NULL,
					    NULL);

	if (!rc)
		rc = sqlite3_create_function_v2(s->db, "any_text", 2, flags, m, m ? sql_any_text : NULL,
						NULL, NULL, NULL);
	return rc;
}

void store_sweep(struct store *s)
{
	struct marks m = {.s = s};
	unsigned kind;
	bool swept = false;

	if (!marks_init(&m) && !mark_segments(&m) && !set_functions(s, &m))
		swept = !db_transact(s, TX_NORMAL, sweep_work, &m, NULL);
	set_functions(s, NULL);
	/* What is in a page that cannot be read is stored again when it is asked for. */
	if (swept && !m.unread[MARK_FRAMES])
		interner_keep(s->interner, frame_listed, &m);
	else
		interner_forget(s->interner);
	for (kind = 0; kind < MARKS; kind++)
		free(m.bits[kind]);
}
