/*
 * Sweeping what no segment lists any more.
 *
 * A segment leaves when the last incident that had it is gone. What segments list (frames, threads, and
 * through them functions, modules, processes) is known from their blobs only, so a sweep marks: it
 * reads the lists of every segment left, sets a bit for each id listed, and deletes the rows
 * without one.
 *
 * Of a store of 1 GB that takes seconds, in which a recorder must be able to write. So marking, and finding pages
 * from which something goes, runs outside of transactions, and deleting in steps, each a transaction of its own
 * over a few pages or rows; first in it the segments that a recorder has added meanwhile are marked too
 * (segment ids only grow). What is named by frames and processes is known from all of them, so these are swept
 * only while nobody else writes, else the next time.
 *
 * Pages of frames are swept together: one whose frames are nearly all listed stays as it is, what is left
 * of the others is put together into pages of PAGE_FRAMES. So a frame is written again only when as many
 * as a third of its neighbours are gone, or to make one page of small ones. A frame keeps its id. A page
 * of texts leaves when no process has one of them. A damaged page does not end the sweep: it leaves when
 * none of its ids is listed.
 */
#include "store/sweep_marks_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- steps ---------------------------------------------------------------------------------- */

#define STEP_SEGMENTS 8u
#define STEP_PAGES 8
#define STEP_TEXT_PAGES 64
#define STEP_ROWS 4096

struct step {
	struct marks *m;
	const struct rows *rows;
	struct merging *merging;
	int64_t at, next;                    /* what is behind `at` is still to be done, by this step up to `next` */
	bool done;                           /* that was the last one */
};

/*
 * One transaction after the other; work() may run twice for one of them. skip() goes on, outside of them, over
 * what stays as it is; NULL = work() does. ERR_STOPPED = it was called off.
 */
static int run(struct step *t, int (*skip)(struct step *t), store_work *work)
{
	struct store *s = t->m->s;
	int rc = 0;

	t->at = INT64_MIN;
	for (t->done = false; !rc && !t->done;) {
		rc = sweep_called_off(s) ? ERR_STOPPED : skip ? skip(t) : 0;
		if (rc || t->done)
			break;
		rc = db_transact_and_rest(s, work, t, NULL);
		t->at = t->next;
	}
	return rc;
}

static int look_at_others(struct store *s, int64_t *out, struct err *err)
{
	struct args a;
	int rc = db_statement(s, "PRAGMA data_version", &a, err);

	return rc ? rc : db_int(s, a.st, out, err);
}

/* In a transaction: ERR_BUSY when somebody else has written since m->others was looked at. */
static int check_alone(struct marks *m, struct err *err)
{
	int64_t others = 0;
	int rc = look_at_others(m->s, &others, err);

	return rc || others == m->others ? rc : ERR_BUSY;
}

/* A table, some rows at a time. */
struct rows {
	const char *range, *sweep;
	int limit;
	bool named;                          /* by others: only while nobody else writes */
};

#define RANGE_ROWS(table, id, condition) \
	.range = "SELECT max(" id "), count(*) FROM (SELECT " id " FROM " table " WHERE " id " > ?" \
		 " ORDER BY " id " LIMIT ?)", \
	.sweep = "DELETE FROM " table " WHERE " id " > ? AND " id " <= ? AND " condition
#define ROWS(table, condition) RANGE_ROWS(table, "id", condition), .limit = STEP_ROWS

static int rows_step(struct store *s, void *arg, struct err *err)
{
	struct step *t = arg;
	struct args a;
	int rc = t->rows->named ? check_alone(t->m, err) : mark_segments(t->m);

	if (!rc)
		rc = db_statement(s, t->rows->range, &a, err);
	if (rc)
		return rc;
	arg_int(&a, t->at);
	arg_int(&a, t->rows->limit);
	rc = db_step(s, a.st, err);
	if (rc < 0)
		return rc;
	t->next = sqlite3_column_int64(a.st, 0);
	t->done = sqlite3_column_int64(a.st, 1) < t->rows->limit;
	sqlite3_reset(a.st);
	rc = db_statement(s, t->rows->sweep, &a, err);
	if (rc)
		return rc;
	arg_int(&a, t->at);
	arg_int(&a, t->next);
	return db_run(s, a.st, err);
}

static int sweep_rows(struct marks *m, const struct rows *rows)
{
	struct step t = {.m = m, .rows = rows};

	return run(&t, NULL, rows_step);
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

static uint32_t count_listed(const struct marks *m, const struct page_frame *frames, uint32_t n)
{
	uint32_t i, listed = 0;

	for (i = 0; i < n; i++)
		listed += is_marked(m, MARK_FRAMES, frames[i].id);
	return listed;
}

static bool is_full(uint32_t listed, uint32_t n)
{
	return listed >= PAGE_FRAMES / 4 && listed >= n - n / 3;
}

static int merge_page(struct merging *g, int64_t first, const struct page_frame *frames, uint32_t n,
		      struct err *err)
{
	uint32_t i, listed = count_listed(g->m, frames, n);
	int rc = 0;

	if (is_full(listed, n)) {
		mark_names(g->m, frames, n);
		return merge_end(g, err);
	}
	if (g->n + listed > PAGE_FRAMES)
		rc = merge_end(g, err);
	if (!rc && g->n + listed > g->cap) {
		uint32_t cap = g->n + listed > PAGE_FRAMES ? g->n + listed : PAGE_FRAMES;
		struct page_frame *bigger = realloc(g->frames, cap * sizeof(*bigger));

		if (!bigger)
			return err_memory(err, "while sweeping a store");
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

/* 1 = there was one, 0 = there is no more; ERR_FORMAT = there was one that is damaged. */
static int next_frames(struct store *s, int64_t *after, int64_t *last, struct page_frame **frames, uint32_t *n,
		       struct err *err)
{
	struct page_row page;
	int rc = page_row(s, "SELECT first_id, last_id, data, functions FROM frame_page WHERE first_id > ?"
			  " ORDER BY first_id LIMIT 1", *after, &page, err);

	*frames = NULL;
	*n = 0;
	if (rc <= 0)
		return rc;
	*after = page.first;
	*last = page.last;
	rc = frame_page_unpack(&page.data, &page.more, *after, frames, n, err);
	sqlite3_reset(page.st);
	return rc ? rc : 1;
}

/* 1 = there was one, 0 = there is no more. */
static int sweep_page(struct merging *g, int64_t *after, struct err *err)
{
	struct page_frame *frames;
	int64_t last = 0;
	uint32_t n;
	int rc = next_frames(g->m->s, after, &last, &frames, &n, err);

	if (rc == ERR_FORMAT)
		rc = end_at_damaged(g, *after, last, err);
	else if (rc > 0)
		rc = merge_page(g, *after, frames, n, err);
	else
		return rc;
	free(frames);
	return rc ? rc : 1;
}

static int skip_frames(struct step *t)
{
	struct page_frame *frames;
	int64_t after, last;
	uint32_t n;
	bool full = true;
	int rc = 0;

	while (!rc && full) {
		after = t->at;
		rc = sweep_called_off(t->m->s) ? ERR_STOPPED : next_frames(t->m->s, &after, &last, &frames, &n, NULL);
		if (rc <= 0)
			break;
		rc = 0;
		full = is_full(count_listed(t->m, frames, n), n);
		if (full) {
			mark_names(t->m, frames, n);
			t->at = after;
		}
		free(frames);
	}
	t->done = !rc && full;
	return rc == ERR_FORMAT ? 0 : rc;
}

/*
 * What was put together is behind what is read next: its first id is that of a page read before. Those of one
 * step only: what a step leaves is whole.
 */
static int frames_step(struct store *s, void *arg, struct err *err)
{
	struct step *t = arg;
	struct merging *g = t->merging;
	int rc = mark_segments(t->m), n;

	(void)s;
	g->n = g->pages = 0;
	g->dropped = false;
	t->next = t->at;
	t->done = false;
	for (n = STEP_PAGES; !rc && !t->done && n; n--) {
		rc = sweep_page(g, &t->next, err);
		t->done = rc == 0;
		rc = rc > 0 ? 0 : rc;
	}
	return rc ? rc : merge_end(g, err);
}

/* ---- pages of functions --------------------------------------------------------------------- */

static uint32_t count_marked(const struct marks *m, const struct function_page *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->n; i++)
		n += is_marked(m, MARK_FUNCTIONS, p->functions[i].id);
	return n;
}

static bool is_left(uint32_t n, const struct function_page *p)
{
	return n >= p->n - p->n / 3;
}

static void mark_modules(struct marks *m, const struct function_page *p)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		mark(m, MARK_MODULES, p->functions[i].module_id);
}

/* In its place without what is gone, when that is a third; a page of which nothing is left leaves. */
static int sweep_functions(struct marks *m, int64_t first, struct function_page *p, struct merging *g,
			   struct err *err)
{
	struct args a;
	uint32_t i, n = count_marked(m, p);
	int rc;

	if (!is_left(n, p)) {
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
	mark_modules(m, p);
	return 0;
}

/* 1 = there was one, 0 = there is no more; ERR_FORMAT = there was one that is damaged. */
static int next_functions(struct store *s, int64_t *after, int64_t *last, struct function_page *out, struct err *err)
{
	struct page_row page;
	int rc = page_row(s, "SELECT first_id, last_id, data, names FROM function_page WHERE first_id > ?"
			  " ORDER BY first_id LIMIT 1", *after, &page, err);

	if (rc <= 0)
		return rc;
	*after = page.first;
	*last = page.last;
	rc = function_page_unpack(&page.data, &page.more, *after, out, err);
	sqlite3_reset(page.st);
	return rc ? rc : 1;
}

/* 1 = there was one, 0 = there is no more. */
static int sweep_function_page(struct merging *g, int64_t *after, struct err *err)
{
	struct function_page functions = {0};
	int64_t last = 0;
	int rc = next_functions(g->m->s, after, &last, &functions, err);

	if (rc == ERR_FORMAT)
		rc = sweep_damaged(g->m, MARK_FUNCTIONS, "DELETE FROM function_page WHERE first_id = ?", *after,
				   last, err);
	else if (rc > 0)
		rc = sweep_functions(g->m, *after, &functions, g, err);
	else
		return rc;
	function_page_free(&functions);
	*after = last > *after ? last : *after;
	return rc ? rc : 1;
}

static int skip_functions(struct step *t)
{
	struct function_page page = {0};
	int64_t after, last = 0;
	bool left = true;
	int rc = 0;

	while (!rc && left) {
		after = t->at;
		rc = sweep_called_off(t->m->s) ? ERR_STOPPED : next_functions(t->m->s, &after, &last, &page, NULL);
		if (rc <= 0)
			break;
		rc = 0;
		left = is_left(count_marked(t->m, &page), &page);
		if (left) {
			mark_modules(t->m, &page);
			t->at = last > after ? last : after;
		}
		function_page_free(&page);
	}
	t->done = !rc && left;
	return rc == ERR_FORMAT ? 0 : rc;
}

static int functions_step(struct store *s, void *arg, struct err *err)
{
	struct step *t = arg;
	int rc = check_alone(t->m, err), n;

	(void)s;
	t->next = t->at;
	t->done = false;
	for (n = STEP_PAGES; !rc && !t->done && n; n--) {
		rc = sweep_function_page(t->merging, &t->next, err);
		t->done = rc == 0;
		rc = rc > 0 ? 0 : rc;
	}
	return rc;
}

/* ---- segments ------------------------------------------------------------------------------- */

struct orphans {
	struct ids ids;
	uint32_t at, n;                      /* a step: so many from there */
};

/* A recorder may have given one to another incident meanwhile. */
static int segments_step(struct store *s, void *arg, struct err *err)
{
	const struct orphans *o = arg;
	struct args a;
	uint32_t i;
	int rc = 0;

	for (i = o->at; !rc && i < o->at + o->n; i++) {
		rc = db_statement(s, "DELETE FROM segment WHERE id=?1 AND NOT EXISTS"
				  " (SELECT 1 FROM incident_segment x WHERE x.segment_id=?1)", &a, err);
		if (rc)
			return rc;
		arg_int(&a, o->ids.ids[i]);
		rc = db_run(s, a.st, err);
	}
	return rc;
}

int store_sweep_segments(struct store *s)
{
	struct orphans o = {0};
	struct args a;
	int rc = db_statement(s, "SELECT id FROM segment s WHERE NOT EXISTS"
			      " (SELECT 1 FROM incident_segment x WHERE x.segment_id = s.id)", &a, NULL);

	if (!rc)
		rc = ids_collect(s, a.st, &o.ids, NULL);
	for (; !rc && o.at < o.ids.n; o.at += o.n) {
		o.n = o.ids.n - o.at < STEP_SEGMENTS ? o.ids.n - o.at : STEP_SEGMENTS;
		rc = sweep_called_off(s) ? ERR_STOPPED : db_transact_and_rest(s, segments_step, &o, NULL);
	}
	free(o.ids.ids);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static const struct rows thread_rows = {ROWS("thread", "NOT listed(0, id)")};
static const struct rows process_rows = {
	ROWS("process", "NOT EXISTS (SELECT 1 FROM thread t WHERE t.process_id = process.id)")};
static const struct rows module_rows = {ROWS("module", "NOT listed(3, id)"), .named = true};
static const struct rows text_pages = {RANGE_ROWS("text_page", "first_id", "NOT any_text(first_id, last_id)"),
				       .limit = STEP_TEXT_PAGES, .named = true};

static int sweep_listed(struct marks *m, struct step *pages)
{
	int rc = sweep_rows(m, &thread_rows);

	if (!rc)
		rc = sweep_rows(m, &process_rows);
	if (!rc)
		rc = look_at_others(m->s, &m->others, NULL);
	return rc ? rc : run(pages, skip_frames, frames_step);
}

/* What frames name, unless there are some that cannot be asked. */
static int sweep_functions_and_modules(struct marks *m, struct step *pages)
{
	int rc = m->unread[MARK_FRAMES] ? 0 : run(pages, skip_functions, functions_step);

	if (rc || m->unread[MARK_FRAMES] || m->unread[MARK_FUNCTIONS])
		return rc;
	return sweep_rows(m, &module_rows);
}

static int sweep_texts(struct marks *m)
{
	struct args a;
	int rc = db_statement(m->s, "SELECT cmdline_id FROM process WHERE cmdline_id IS NOT NULL",
			      &a, NULL);

	while (!rc && (rc = db_step(m->s, a.st, NULL)) > 0) {
		mark(m, MARK_TEXTS, sqlite3_column_int64(a.st, 0));
		rc = 0;
	}
	return rc ? rc : sweep_rows(m, &text_pages);
}

/* The newest session stays: it may be that of a recorder that has stored nothing yet. */
static int sessions_step(struct store *s, void *arg, struct err *err)
{
	const struct marks *m = arg;
	struct args a;
	int rc = db_statement(s, "DELETE FROM meta WHERE key='unswept' AND value=?", &a, err);

	if (rc)
		return rc;
	/* Another one: somebody has deleted meanwhile. */
	arg_int(&a, m->note);
	rc = db_run(s, a.st, err);
	return rc ? rc : db_exec(s,
		"DELETE FROM session WHERE NOT EXISTS (SELECT 1 FROM process p WHERE p.session_id = session.id)"
		" AND NOT EXISTS (SELECT 1 FROM module m WHERE m.session_id = session.id)"
		" AND id < (SELECT max(id) FROM session);"
		"DELETE FROM host WHERE id NOT IN (SELECT host_id FROM incident)", err);
}

static int sweep_names(struct marks *m, struct step *pages)
{
	int rc = sweep_functions_and_modules(m, pages);

	if (!rc)
		rc = sweep_texts(m);
	return rc ? rc : db_transact(m->s, TX_NORMAL, sessions_step, m, NULL);
}

static int query_int(struct store *s, const char *sql, int64_t *out)
{
	struct args a;
	int rc = db_statement(s, sql, &a, NULL);

	return rc ? rc : db_int(s, a.st, out, NULL);
}

int sweep_note(struct store *s, struct err *err)
{
	struct args a;
	int rc = db_statement(s, "INSERT OR REPLACE INTO meta VALUES('unswept', random())", &a, err);

	return rc ? rc : db_run(s, a.st, err);
}

/* Older recorders left no note; their segments tell. */
void sweep_look(struct store *s)
{
	int64_t unswept = 0, free_pages = 0;

	query_int(s, "SELECT EXISTS (SELECT 1 FROM meta WHERE key='unswept') OR EXISTS (SELECT 1 FROM segment s"
		  " WHERE NOT EXISTS (SELECT 1 FROM incident_segment x WHERE x.segment_id = s.id))", &unswept);
	query_int(s, "PRAGMA freelist_count", &free_pages);
	s->unswept = unswept != 0;
	s->unshrunk = s->unswept || free_pages;
}

static int begin(struct marks *m)
{
	int rc = store_sweep_segments(m->s);

	query_int(m->s, "SELECT value FROM meta WHERE key='unswept'", &m->note);
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
	struct step pages = {.m = &m, .merging = &merging};
	bool swept;
	int rc = begin(&m);

	if (!rc)
		rc = sweep_listed(&m, &pages);
	swept = !rc;
	if (!rc)
		rc = sweep_names(&m, &pages);
	marks_in_sql(s, NULL);
	/* What is in a page that cannot be read is stored again when it is asked for. */
	if (swept && !m.unread[MARK_FRAMES])
		interner_keep(s->interner, frame_listed, &m);
	else
		interner_forget(s->interner);
	marks_free(&m);
	free(merging.frames);
	columns_free(&merging.columns);
	buf_free(&merging.data);
	buf_free(&merging.functions);
	s->unswept = rc == ERR_STOPPED;
}
