/*
 * Deleting: one incident by hand, the oldest by limits; and sweeping what nothing refers to then.
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
 * of texts leaves when no process has one of them.
 *
 * Deleting never fails for want of a sweep: what could not be swept now is swept with the next
 * deletion.
 */
#include "store/store_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sweeping ------------------------------------------------------------------------------- */

enum { MARK_THREADS, MARK_FRAMES, MARK_FUNCTIONS, MARK_MODULES, MARK_TEXTS, MARKS };

struct marks {
	struct store *s;
	uint8_t *bits[MARKS];                /* of the ids from min to max */
	int64_t min[MARKS], max[MARKS];      /* ids above max were added since, and stay */
	int64_t last_segment;                /* marked up to and with this one */
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
	if (range > MARK_RANGE_MAX)
		return ERR_LIMIT;
	m->bits[kind] = calloc((size_t)range / 8 + 1, 1);
	return m->bits[kind] ? 0 : ERR_MEMORY;
}

#define RANGE_OF(table) "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM " table

/* An empty table has the range 0 to 0. Frames: ids of rows are those of a store of version 2. */
static int marks_init(struct marks *m)
{
	int64_t version;
	int rc = schema_version(m->s, &version, NULL);

	if (!rc)
		rc = marks_init_one(m, MARK_THREADS, RANGE_OF("thread"));
	if (!rc)
		rc = marks_init_one(m, MARK_FUNCTIONS, RANGE_OF("function"));
	if (!rc)
		rc = marks_init_one(m, MARK_MODULES, RANGE_OF("module"));
	if (rc || version < 3)
		return rc ? rc : marks_init_one(m, MARK_FRAMES, RANGE_OF("frame"));
	rc = marks_init_one(m, MARK_TEXTS, "SELECT coalesce(min(first_id), 0), coalesce(max(last_id), 0)"
			    " FROM text_page");
	if (!rc)
		rc = marks_init_one(m, MARK_FRAMES,
				    RANGE_OF("(SELECT min(id) AS id FROM frame UNION ALL SELECT max(id) FROM frame"
					     " UNION ALL SELECT min(first_id) FROM frame_page UNION ALL SELECT"
					     " (SELECT last_id FROM frame_page ORDER BY first_id DESC LIMIT 1))"));
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

/* A page that cannot be read ends the sweep. 1 = there was one, 0 = there is no more. */
static int sweep_page(struct merging *g, int64_t *after, struct err *err)
{
	struct blob data, functions;
	struct page_frame *frames = NULL;
	struct args a;
	uint32_t n = 0;
	int rc = db_statement(g->m->s, "SELECT first_id, data, functions FROM frame_page WHERE first_id > ?"
			      " ORDER BY first_id LIMIT 1", &a, err);

	if (rc)
		return rc;
	arg_int(&a, *after);
	rc = db_step(g->m->s, a.st, err);
	if (rc <= 0)
		return rc;
	*after = sqlite3_column_int64(a.st, 0);
	data = column_blob(a.st, 1);
	functions = column_blob(a.st, 2);
	rc = frame_page_unpack(&data, &functions, *after, &frames, &n, err);
	sqlite3_reset(a.st);
	if (!rc)
		rc = merge_page(g, *after, frames, n, err);
	free(frames);
	return rc ? rc : 1;
}

/* What was put together is behind what is read next: its first id is that of a page read before. */
static int sweep_pages(struct marks *m, struct err *err)
{
	struct merging g = {.m = m};
	int64_t after = INT64_MIN;
	int rc;

	while ((rc = sweep_page(&g, &after, err)) > 0)
		;
	if (!rc)
		rc = merge_end(&g, err);
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
	int64_t id = sqlite3_value_int64(argv[0]), last = sqlite3_value_int64(argv[1]);

	(void)argc;
	while (id < last && !is_marked(m, MARK_TEXTS, id))
		id++;
	sqlite3_result_int(ctx, is_marked(m, MARK_TEXTS, id));
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

static int sweep_work(struct store *s, void *arg, struct err *err)
{
	int64_t version = 0;
	int rc = mark_segments(arg);

	if (!rc)
		rc = schema_version(s, &version, err);
	if (!rc)
		rc = db_exec(s, "DELETE FROM thread WHERE NOT listed(0, id);"
			     "DELETE FROM process WHERE id NOT IN (SELECT process_id FROM thread);"
			     "DELETE FROM frame WHERE NOT listed(1, id)", err);
	if (!rc && version >= 3)
		rc = sweep_pages(arg, err);
	if (!rc && version >= 3)
		rc = sweep_texts(arg, err);
	if (rc)
		return rc;
	/* The newest session stays: it may be that of a recorder that has stored nothing yet. */
	return db_exec(s,
		"DELETE FROM function WHERE NOT listed(2, id) AND id NOT IN"
		" (SELECT function_id FROM frame WHERE function_id IS NOT NULL);"
		"DELETE FROM module WHERE NOT listed(3, id) AND id NOT IN (SELECT module_id FROM frame)"
		" AND id NOT IN (SELECT module_id FROM function);"
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

static void sweep(struct store *s)
{
	struct marks m = {.s = s};
	unsigned kind;
	bool swept = false;

	if (!marks_init(&m) && !mark_segments(&m) && !set_functions(s, &m))
		swept = !db_transact(s, TX_NORMAL, sweep_work, &m, NULL);
	set_functions(s, NULL);
	if (swept)
		interner_keep(s->interner, frame_listed, &m);
	else
		interner_forget(s->interner);
	for (kind = 0; kind < MARKS; kind++)
		free(m.bits[kind]);
}

/* ---- one incident --------------------------------------------------------------------------- */

struct delete_work {
	int64_t id;
	bool open;                           /* out: it is being written, nothing was deleted */
	bool may_be_open;
};

static int run_with_id(struct store *s, const char *sql, int64_t id, struct err *err)
{
	struct args a;
	int rc = db_statement(s, sql, &a, err);

	if (rc)
		return rc;
	arg_int(&a, id);
	return db_run(s, a.st, err);
}

/* Segments first, while it is known which the incident had; what belongs to it alone before it. */
static int delete_rows(struct store *s, int64_t id, struct err *err)
{
	int rc = run_with_id(
		s,
		"DELETE FROM segment WHERE id IN (SELECT x.segment_id FROM incident_segment x"
		" WHERE x.incident_id=?1 AND NOT EXISTS (SELECT 1 FROM incident_segment y"
		" WHERE y.segment_id=x.segment_id AND y.incident_id<>?1))",
		id, err);

	if (!rc)
		rc = run_with_id(s, "DELETE FROM incident_segment WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM stream WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM loss WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM quality WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM incident WHERE id=?", id, err);
	return rc;
}

static int delete_work(struct store *s, void *arg, struct err *err)
{
	struct delete_work *w = arg;
	int64_t open = 0;
	struct args a;
	int rc = db_statement(s, "SELECT state='open' FROM incident WHERE id=?", &a, err);

	if (rc)
		return rc;
	arg_int(&a, w->id);
	rc = db_int(s, a.st, &open, err);
	if (rc == ERR_NOT_FOUND)
		return not_found(s, w->id, err);
	w->open = open && !w->may_be_open;
	if (rc || w->open)
		return rc;
	return delete_rows(s, w->id, err);
}

/*
 * An open incident belongs to the recorder that holds the lock. When nobody does, it was left
 * behind, and we hold the lock for the moment of deleting it, so that no recorder starts to convert
 * it.
 */
static int delete_open(struct store *s, struct delete_work *w, struct err *err)
{
	struct os_file *lock = NULL;
	struct buf path = {0};
	int rc;

	buf_printf(&path, "%s.lock", s->path);
	rc = buf_check(&path, "a file name", err);
	if (!rc)
		rc = s->mode == STORE_RECORD ? ERR_BUSY : os_lock(path.data, &lock, err);
	buf_free(&path);
	if (rc == ERR_BUSY)
		return err_set(err, rc,
			       "incident %" PRId64
			       " is being recorded: try again when it is complete",
			       w->id);
	w->may_be_open = true;
	if (!rc)
		rc = db_transact(s, TX_NORMAL, delete_work, w, err);
	os_unlock(lock);
	return rc;
}

static int delete_and_sweep(struct store *s, int64_t id, struct err *err)
{
	struct delete_work w = {.id = id};
	int rc = db_transact(s, TX_NORMAL, delete_work, &w, err);

	if (!rc && w.open)
		rc = delete_open(s, &w, err);
	if (!rc)
		sweep(s);
	return rc;
}

int store_delete(struct store *s, int64_t id, struct err *err)
{
	int rc = delete_and_sweep(s, id, err);

	if (!rc)
		space_give_back(s);
	return rc;
}

struct pin_work {
	int64_t id;
	bool pinned;
};

static int pin_work(struct store *s, void *arg, struct err *err)
{
	const struct pin_work *w = arg;
	struct args a;
	int rc = db_statement(s, "UPDATE incident SET pinned=? WHERE id=?", &a, err);

	if (rc)
		return rc;
	arg_int(&a, w->pinned);
	arg_int(&a, w->id);
	rc = db_run(s, a.st, err);
	if (!rc && !sqlite3_changes(s->db))
		rc = not_found(s, w->id, err);
	return rc;
}

int store_pin(struct store *s, int64_t id, bool pinned, struct err *err)
{
	struct pin_work w = {.id = id, .pinned = pinned};

	return db_transact(s, TX_NORMAL, pin_work, &w, err);
}

struct note_work {
	int64_t id;
	const char *note;
};

static int note_work(struct store *s, void *arg, struct err *err)
{
	const struct note_work *w = arg;
	struct args a;
	int rc = db_statement(s, "UPDATE incident SET note=? WHERE id=?", &a, err);

	if (rc)
		return rc;
	arg_text(&a, w->note);
	arg_int(&a, w->id);
	rc = db_run(s, a.st, err);
	if (!rc && !sqlite3_changes(s->db))
		rc = not_found(s, w->id, err);
	return rc;
}

int store_set_note(struct store *s, int64_t id, const char *note, struct err *err)
{
	struct note_work w = {.id = id, .note = note};

	return db_transact(s, TX_NORMAL, note_work, &w, err);
}

/* ---- limits --------------------------------------------------------------------------------- */

/* The oldest incident that may go, how many there are, and whether it is also the newest of all. */
struct oldest {
	int64_t id, count;
	uint64_t wall_ns;
	bool newest;
};

static int find_oldest(struct store *s, struct oldest *out, struct err *err)
{
	struct args a;
	int rc = db_statement(
		s,
		"SELECT id, coalesce(kept_wall_ns, trigger_wall_ns) AS kept, count(*) OVER (),"
		" id = (SELECT max(id) FROM incident) FROM incident"
		" WHERE NOT pinned AND state <> 'open' ORDER BY kept, id LIMIT 1",
		&a, err);

	memset(out, 0, sizeof(*out));
	if (!rc)
		rc = db_step(s, a.st, err);
	if (rc <= 0)
		return rc;
	out->id = sqlite3_column_int64(a.st, 0);
	out->wall_ns = (uint64_t)sqlite3_column_int64(a.st, 1);
	out->count = sqlite3_column_int64(a.st, 2);
	out->newest = sqlite3_column_int(a.st, 3) != 0;
	sqlite3_reset(a.st);
	return 0;
}

static bool is_beyond(struct store *s, const struct store_limits *limits, const struct oldest *o,
		      uint64_t wall_now_ns)
{
	if (limits->max_age_ns && o->wall_ns < wall_now_ns &&
	    wall_now_ns - o->wall_ns > limits->max_age_ns)
		return true;
	/* One incident larger than the limit is worth more than none. */
	if (o->newest)
		return false;
	if (limits->max_incidents && o->count > (int64_t)limits->max_incidents)
		return true;
	return limits->max_bytes && store_bytes(s) > limits->max_bytes;
}

int store_retain(struct store *s, const struct store_limits *limits, uint64_t wall_now_ns,
		 uint32_t *deleted, struct err *err)
{
	struct oldest oldest;
	int rc = 0;

	*deleted = 0;
	while (!rc) {
		/* The log counts as size, and deleting writes to it: shrink it before measuring. */
		space_checkpoint(s);
		rc = find_oldest(s, &oldest, err);
		if (rc || !oldest.id || !is_beyond(s, limits, &oldest, wall_now_ns))
			break;
		rc = delete_and_sweep(s, oldest.id, err);
		if (!rc)
			(*deleted)++;
	}
	if (*deleted)
		space_give_back(s);
	return rc;
}
