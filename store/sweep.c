/*
 * Sweeping: deleting what no segment lists any more.
 *
 * A segment leaves with the last incident that has it. What segments list (frames, threads, and
 * through them functions, modules, processes) is known from their blobs only. So a sweep marks: it
 * reads the lists of every segment left, sets a bit for each id, and deletes the rows without one.
 *
 * For a store of 1 GB that takes seconds, in which a recorder must be able to write. So marking,
 * and finding pages that lose something, runs outside of transactions. Deleting runs in steps, each
 * a transaction over a few pages or rows, which first marks the segments that a recorder has added
 * meanwhile (segment ids only grow). What frames and processes name is known only after looking at
 * all of them, so functions, modules and texts are swept only while nobody else writes, else the
 * next time.
 *
 * Pages of frames are swept together. One whose frames are nearly all listed stays as it is; the
 * rest of the others is merged into pages of PAGE_FRAMES. So a frame is written again only when a
 * third of its neighbours is gone, or to make one page of small ones. It keeps its id. A page of
 * texts leaves when no process has any of them. A damaged page does not end the sweep: it leaves
 * when none of its ids is listed.
 */
#include "store/sweep_marks_private.h"

#include "store/interner_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* ---- steps ---------------------------------------------------------------------------------- */

#define STEP_SEGMENTS 8u
#define STEP_PAGES 8
#define STEP_TEXT_PAGES 64
#define STEP_ROWS 4096

struct step {
	struct marks *m;
	const struct rows *rows;             /* what is swept: rows, */
	const struct page_kind *pages;       /* or pages */
	struct merging *merging;
	int64_t at, next;                    /* this step sweeps from behind `at` to `next` */
	bool done;                           /* it was the last step */
};

/*
 * Run work() in successive transactions; it may be repeated. skip(), which may be NULL,
 * moves t->at over what stays as it is, outside of transactions. ERR_STOPPED: it was called off.
 */
static int run_steps(struct step *t, int (*skip)(struct step *t), store_work *work)
{
	struct store *s = t->m->s;
	int rc = 0;

	t->at = INT64_MIN;
	for (t->done = false; !rc && !t->done;) {
		rc = sweep_called_off(s) ? ERR_STOPPED : skip ? skip(t) : 0;
		if (rc || t->done)
			break;
		rc = db_transact_and_pause(s, work, t, NULL);
		t->at = t->next;
	}
	return rc;
}

static int read_data_version(struct store *s, int64_t *out, struct err *err)
{
	return db_int(s, "PRAGMA data_version", NO_ARGS, out, err);
}

/* In the transaction of a step. alone: ERR_BUSY when another program has written since. */
static int begin_step(struct marks *m, bool alone, struct err *err)
{
	int64_t version = 0;
	int rc;

	if (!alone)
		return mark_segments(m);
	rc = read_data_version(m->s, &version, err);
	return rc || version == m->data_version ? rc : ERR_BUSY;
}

/* A table, some rows at a time. */
struct rows {
	const char *range, *sweep;
	int limit;
	bool alone;                          /* swept only while no other program writes */
};

#define RANGE_ROWS(table, id, condition) \
	.range = "SELECT max(" id "), count(*) FROM (SELECT " id " FROM " table \
		 " WHERE " id " > ? ORDER BY " id " LIMIT ?)", \
	.sweep = "DELETE FROM " table " WHERE " id " > ? AND " id " <= ? AND " condition
#define ROWS(table, condition) RANGE_ROWS(table, "id", condition), .limit = STEP_ROWS

static int rows_step(struct store *s, void *arg, struct err *err)
{
	struct step *t = arg;
	struct query q;
	int rc = begin_step(t->m, t->rows->alone, err);

	if (rc)
		return rc;
	q = db_query(s, t->rows->range, ARGS(arg_int(t->at), arg_int(t->rows->limit)), err);
	rc = query_step(&q);
	if (rc < 0)
		return rc;
	t->next = column_int(&q, 0);
	t->done = column_int(&q, 1) < t->rows->limit;
	query_reset(&q);
	return db_run(s, t->rows->sweep, ARGS(arg_int(t->at), arg_int(t->next)), err);
}

static int sweep_rows(struct marks *m, const struct rows *rows)
{
	struct step t = {.m = m, .rows = rows};

	return run_steps(&t, NULL, rows_step);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* A page of frames or of functions, and the first and last id of its row. */
struct page {
	int64_t first, last;
	struct page_frame *frames;
	uint32_t nframes;
	struct function_page functions;
};

struct page_kind {
	int mark;                            /* of its ids */
	bool alone;                          /* as in struct rows */
	const char *next, *remove;           /* SQL: the page that begins behind an id; at an id */
	int (*unpack)(const struct page_row *row, struct page *out, struct err *err);
	/* So little of it is gone that it stays as it is. */
	bool (*stays)(const struct marks *m, const struct page *page);
	/* Mark what its listed items name. */
	void (*mark_names)(struct marks *m, const struct page *page);
	/* In a transaction: rewrite the page without what is not marked, or collect it in g. */
	int (*sweep)(struct merging *g, struct page *page, struct err *err);
};

static void page_free(struct page *page)
{
	free(page->frames);
	function_page_free(&page->functions);
}

/* returns 1 = a page, 0 = no more, ERR_FORMAT = it is damaged: only first and last are set. */
static int next_page(struct store *s, const struct page_kind *kind, int64_t after,
		     struct page *out, struct err *err)
{
	struct page_row row;
	int rc = page_row(s, kind->next, after, &row, err);

	memset(out, 0, sizeof(*out));
	if (rc <= 0)
		return rc;
	out->first = row.first;
	out->last = row.last > row.first ? row.last : row.first;
	rc = kind->unpack(&row, out, err);
	query_reset(&row.query);
	return rc ? rc : 1;
}

static int skip_pages(struct step *t)
{
	bool stays = true;
	struct page page;
	int rc = 0;

	while (stays) {
		rc = sweep_called_off(t->m->s) ? ERR_STOPPED
					       : next_page(t->m->s, t->pages, t->at, &page, NULL);
		if (rc <= 0)
			break;
		stays = t->pages->stays(t->m, &page);
		if (stays) {
			t->pages->mark_names(t->m, &page);
			t->at = page.last;
		}
		page_free(&page);
	}
	t->done = rc == 0;
	return rc > 0 || rc == ERR_FORMAT ? 0 : rc;
}

/* What is left of neighbouring pages of frames, until it fills a page. */
struct merging {
	struct marks *m;
	struct page_frame *frames;
	uint32_t n, cap;
	int64_t first, last;                 /* first ids of these pages; pages == 0: none */
	uint32_t pages;
	bool dropped;                        /* some of their frames are not in `frames` */
	struct columns columns;              /* working memory, like the bufs */
	struct buf data, more;
};

static uint32_t count_marked(const struct marks *m, int mark, const void *items, uint32_t n,
			     size_t item_bytes)
{
	const char *at = items;
	uint32_t i, marked = 0;
	int64_t id;

	for (i = 0; i < n; i++, at += item_bytes) {
		memcpy(&id, at, sizeof(id));
		marked += is_marked(m, mark, id);
	}
	return marked;
}

static void mark_frame_names(struct marks *m, const struct page_frame *frames, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		mark(m, MARK_MODULES, frames[i].module_id);
		if (frames[i].function_id)
			mark(m, MARK_FUNCTIONS, frames[i].function_id);
	}
}

static int write_merged(struct merging *g, struct err *err)
{
	struct store *s = g->m->s;
	uint32_t at, n;
	int rc = 0;

	if (g->pages > 1 || g->dropped) {
		rc = db_run(s, "DELETE FROM frame_page WHERE first_id BETWEEN ? AND ?",
			    ARGS(arg_int(g->first), arg_int(g->last)), err);
		for (at = 0; !rc && at < g->n; at += n) {
			n = g->n - at < PAGE_FRAMES ? g->n - at : PAGE_FRAMES;
			rc = frame_page_insert(s, g->frames + at, n, &g->columns, &g->data,
					       &g->more, err);
		}
	}
	mark_frame_names(g->m, g->frames, g->n);
	g->n = g->pages = 0;
	g->dropped = false;
	return rc;
}

/* A damaged page goes when none of its ids is listed, else it stays as it is. */
static int sweep_damaged(struct step *t, const struct page *page, struct err *err)
{
	struct marks *m = t->m;
	int rc = write_merged(t->merging, err);         /* pages merge on one side of it only */

	if (rc)
		return rc;
	if (!any_marked(m, t->pages->mark, page->first, page->last))
		return db_run(m->s, t->pages->remove, ARGS(arg_int(page->first)), err);
	m->unread[t->pages->mark] = true;
	return 0;
}

/* returns 1 = a page, 0 = no more. */
static int sweep_page(struct step *t, struct err *err)
{
	struct page page;
	int rc = next_page(t->m->s, t->pages, t->next, &page, err);

	if (rc == ERR_FORMAT)
		rc = sweep_damaged(t, &page, err);
	else if (rc > 0)
		rc = t->pages->sweep(t->merging, &page, err);
	else
		return rc;
	t->next = page.last;
	page_free(&page);
	return rc ? rc : 1;
}

/* Only pages of the same step are merged, so that each step leaves a whole store. */
static int pages_step(struct store *s, void *arg, struct err *err)
{
	struct step *t = arg;
	struct merging *g = t->merging;
	int rc = begin_step(t->m, t->pages->alone, err), n;

	(void)s;
	g->n = g->pages = 0;
	g->dropped = false;
	t->next = t->at;
	t->done = false;
	for (n = STEP_PAGES; !rc && !t->done && n; n--) {
		rc = sweep_page(t, err);
		t->done = rc == 0;
		rc = rc > 0 ? 0 : rc;
	}
	return rc ? rc : write_merged(g, err);
}

static int sweep_pages(struct marks *m, const struct page_kind *kind, struct merging *g)
{
	struct step t = {.m = m, .pages = kind, .merging = g};

	return run_steps(&t, skip_pages, pages_step);
}

/* ---- pages of frames ------------------------------------------------------------------------ */

static int unpack_frames(const struct page_row *row, struct page *out, struct err *err)
{
	return frame_page_unpack(&row->data, &row->more, row->first, &out->frames, &out->nframes,
				 err);
}

static uint32_t frames_listed(const struct marks *m, const struct page *page)
{
	return count_marked(m, MARK_FRAMES, page->frames, page->nframes, sizeof(*page->frames));
}

static bool frames_stay(const struct marks *m, const struct page *page)
{
	uint32_t listed = frames_listed(m, page);

	return listed >= PAGE_FRAMES / 4 && listed >= page->nframes - page->nframes / 3;
}

static void mark_names_of_frames(struct marks *m, const struct page *page)
{
	mark_frame_names(m, page->frames, page->nframes);
}

static int sweep_frames(struct merging *g, struct page *page, struct err *err)
{
	uint32_t i, listed = frames_listed(g->m, page);
	int rc = 0;

	if (frames_stay(g->m, page)) {
		mark_names_of_frames(g->m, page);
		return write_merged(g, err);
	}
	if (g->n + listed > PAGE_FRAMES)
		rc = write_merged(g, err);
	if (rc)
		return rc;
	if (ARRAY_ROOM(g->frames, g->cap, g->n + listed))
		return err_memory(err, "while sweeping a store");
	g->first = g->pages++ ? g->first : page->first;
	g->last = page->first;
	g->dropped |= listed < page->nframes;
	for (i = 0; i < page->nframes; i++) {
		if (is_marked(g->m, MARK_FRAMES, page->frames[i].id))
			g->frames[g->n++] = page->frames[i];
	}
	return 0;
}

static const struct page_kind frame_pages = {
	.mark = MARK_FRAMES,
	.next = "SELECT first_id, last_id, data, functions FROM frame_page WHERE first_id > ?"
		" ORDER BY first_id LIMIT 1",
	.remove = "DELETE FROM frame_page WHERE first_id = ?",
	.unpack = unpack_frames,
	.stays = frames_stay,
	.mark_names = mark_names_of_frames,
	.sweep = sweep_frames,
};

/* ---- pages of functions --------------------------------------------------------------------- */

static int unpack_functions(const struct page_row *row, struct page *out, struct err *err)
{
	return function_page_unpack(&row->data, &row->more, row->first, &out->functions, err);
}

static bool functions_stay(const struct marks *m, const struct page *page)
{
	const struct function_page *p = &page->functions;

	return count_marked(m, MARK_FUNCTIONS, p->functions, p->n, sizeof(*p->functions)) >=
	       p->n - p->n / 3;
}

static void mark_names_of_functions(struct marks *m, const struct page *page)
{
	uint32_t i;

	for (i = 0; i < page->functions.n; i++)
		mark(m, MARK_MODULES, page->functions.functions[i].module_id);
}

/* Rewrite the page in its place when a third of it is gone; delete it when nothing is left. */
static int sweep_functions(struct merging *g, struct page *page, struct err *err)
{
	struct function_page *p = &page->functions;
	struct marks *m = g->m;
	uint32_t i, n = 0;
	int rc = 0;

	if (!functions_stay(m, page)) {
		for (i = 0; i < p->n; i++) {
			if (is_marked(m, MARK_FUNCTIONS, p->functions[i].id))
				p->functions[n++] = p->functions[i];
		}
		p->n = n;
		rc = db_run(m->s, "DELETE FROM function_page WHERE first_id=?",
			    ARGS(arg_int(page->first)), err);
		if (!rc && n)
			rc = function_page_insert(m->s, p->functions, n, &g->columns, &g->data,
						  &g->more, err);
	}
	if (!rc)
		mark_names_of_functions(m, page);
	return rc;
}

static const struct page_kind function_pages = {
	.mark = MARK_FUNCTIONS,
	.alone = true,
	.next = "SELECT first_id, last_id, data, names FROM function_page WHERE first_id > ?"
		" ORDER BY first_id LIMIT 1",
	.remove = "DELETE FROM function_page WHERE first_id = ?",
	.unpack = unpack_functions,
	.stays = functions_stay,
	.mark_names = mark_names_of_functions,
	.sweep = sweep_functions,
};

/* ---- segments ------------------------------------------------------------------------------- */

struct orphans {
	struct ids ids;
	uint32_t at, n;                      /* a step: n ids from `at` on */
};

/* A recorder may have given one of them to another incident meanwhile. */
static int segments_step(struct store *s, void *arg, struct err *err)
{
	const struct orphans *o = arg;
	uint32_t i;
	int rc = 0;

	for (i = o->at; !rc && i < o->at + o->n; i++)
		rc = db_run(s,
			    "DELETE FROM segment WHERE id=?1 AND NOT EXISTS"
			    " (SELECT 1 FROM incident_segment x WHERE x.segment_id=?1)",
			    ARGS(arg_int(o->ids.ids[i])), err);
	return rc;
}

int store_sweep_segments(struct store *s)
{
	struct query q = db_query(s,
				  "SELECT id FROM segment s WHERE NOT EXISTS"
				  " (SELECT 1 FROM incident_segment x WHERE x.segment_id = s.id)",
				  NO_ARGS, NULL);
	struct orphans o = {0};
	int rc = ids_collect(&q, &o.ids);

	for (; !rc && o.at < o.ids.n; o.at += o.n) {
		o.n = o.ids.n - o.at < STEP_SEGMENTS ? o.ids.n - o.at : STEP_SEGMENTS;
		rc = sweep_called_off(s) ? ERR_STOPPED
					 : db_transact_and_pause(s, segments_step, &o, NULL);
	}
	free(o.ids.ids);
	return rc;
}

/* ---- the whole sweep ------------------------------------------------------------------------ */

static const struct rows thread_rows = {ROWS("thread", "NOT thread_listed(id)")};
static const struct rows process_rows = {
	ROWS("process", "NOT EXISTS (SELECT 1 FROM thread t WHERE t.process_id = process.id)")};
static const struct rows module_rows = {ROWS("module", "NOT module_listed(id)"), .alone = true};
static const struct rows text_pages = {
	RANGE_ROWS("text_page", "first_id", "NOT any_text(first_id, last_id)"),
	.limit = STEP_TEXT_PAGES, .alone = true};

/* What segments list. */
static int sweep_listed(struct marks *m, struct merging *g)
{
	int rc = sweep_rows(m, &thread_rows);

	if (!rc)
		rc = sweep_rows(m, &process_rows);
	if (!rc)
		rc = read_data_version(m->s, &m->data_version, NULL);
	return rc ? rc : sweep_pages(m, &frame_pages, g);
}

static int sweep_texts(struct marks *m)
{
	struct query q = db_query(m->s, m->s->has_homes
				  ? "SELECT cmdline_id FROM process WHERE cmdline_id IS NOT NULL"
				    " UNION ALL"
				    " SELECT home_id FROM process WHERE home_id IS NOT NULL"
				  : "SELECT cmdline_id FROM process WHERE cmdline_id IS NOT NULL",
				  NO_ARGS, NULL);
	int rc;

	while ((rc = query_step(&q)) > 0)
		mark(m, MARK_TEXTS, column_int(&q, 0));
	return rc ? rc : sweep_rows(m, &text_pages);
}

/*
 * The note goes, unless another deletion has replaced it meanwhile. The newest session stays: its
 * recorder may have stored nothing yet.
 */
static int sessions_step(struct store *s, void *arg, struct err *err)
{
	const struct marks *m = arg;
	int rc = db_run(s, "DELETE FROM meta WHERE key='unswept' AND value=?",
			ARGS(arg_int(m->note)), err);

	return rc ? rc : db_exec(s,
		"DELETE FROM session WHERE"
		" NOT EXISTS (SELECT 1 FROM process p WHERE p.session_id = session.id)"
		" AND id NOT IN (SELECT session_id FROM module WHERE session_id IS NOT NULL)"
		" AND id < (SELECT max(id) FROM session);"
		"DELETE FROM host WHERE id NOT IN (SELECT host_id FROM incident)", err);
}

/* What frames and processes name. Pages that cannot be read may name any function, any module. */
static int sweep_named(struct marks *m, struct merging *g)
{
	int rc = 0;

	if (!m->unread[MARK_FRAMES])
		rc = sweep_pages(m, &function_pages, g);
	if (!rc && !m->unread[MARK_FRAMES] && !m->unread[MARK_FUNCTIONS])
		rc = sweep_rows(m, &module_rows);
	if (!rc)
		rc = sweep_texts(m);
	return rc ? rc : db_transact(m->s, TX_NORMAL, sessions_step, m, NULL);
}

int sweep_note(struct store *s, struct err *err)
{
	return db_exec(s, "INSERT OR REPLACE INTO meta VALUES('unswept', random())", err);
}

/* Earlier recorders left no note, but segments without an incident. */
void sweep_look(struct store *s)
{
	int64_t unswept = 0, free_pages = 0;

	db_int(s,
	       "SELECT EXISTS (SELECT 1 FROM meta WHERE key='unswept') OR EXISTS"
	       " (SELECT 1 FROM segment s WHERE NOT EXISTS"
	       "  (SELECT 1 FROM incident_segment x WHERE x.segment_id = s.id))",
	       NO_ARGS, &unswept, NULL);
	db_int(s, "PRAGMA freelist_count", NO_ARGS, &free_pages, NULL);
	s->unswept = unswept != 0;
	s->unshrunk = s->unswept || free_pages;
}

static int begin_sweep(struct marks *m)
{
	int rc = store_sweep_segments(m->s);

	db_int(m->s, "SELECT value FROM meta WHERE key='unswept'", NO_ARGS, &m->note, NULL);
	if (!rc)
		rc = marks_init(m);
	if (!rc)
		rc = mark_segments(m);
	return rc ? rc : marks_in_sql(m->s, m);
}

static bool frame_listed(const void *ctx, int64_t frame)
{
	return is_marked(ctx, MARK_FRAMES, frame);
}

void store_sweep(struct store *s)
{
	struct marks m = {.s = s};
	struct merging merging = {.m = &m};
	bool swept_frames;
	int rc = begin_sweep(&m);

	if (!rc)
		rc = sweep_listed(&m, &merging);
	swept_frames = !rc && !m.unread[MARK_FRAMES];
	if (!rc)
		rc = sweep_named(&m, &merging);
	marks_in_sql(s, NULL);
	/* What is in a page that cannot be read is stored again when it is asked for. */
	if (swept_frames)
		interner_keep(s->interner, frame_listed, &m);
	else
		interner_forget(s->interner);
	marks_free(&m);
	free(merging.frames);
	columns_free(&merging.columns);
	buf_free(&merging.data);
	buf_free(&merging.more);
	s->unswept = rc == ERR_STOPPED;
}
