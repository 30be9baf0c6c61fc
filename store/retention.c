/*
 * Deleting: one incident by hand, the oldest by limits; and sweeping what nothing refers to then.
 *
 * A segment leaves with the last incident that has it. What segments list (frames, threads, and
 * through them functions, modules, processes) is known from their blobs only, so a sweep marks: it
 * reads the lists of every segment left, sets a bit for each row listed, and deletes the rows
 * without one. Marking runs outside the transaction; inside it only the segments that a recorder
 * has added meanwhile are marked too (segment ids only grow). Measured: deleting 1 M samples of a
 * store that keeps 2 M more takes 0.12 s, sweep and giving the pages back included.
 *
 * Deleting never fails for want of a sweep: what could not be swept now is swept with the next
 * deletion.
 */
#include "store/store_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sweeping ------------------------------------------------------------------------------- */

enum { MARK_THREADS, MARK_FRAMES, MARKS };

struct marks {
	struct store *s;
	uint8_t *bits[MARKS];                /* of the rows from min to max */
	int64_t min[MARKS], max[MARKS];      /* rows above max were added since, and stay */
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

static int mark_lists(struct marks *m, const struct buf *raw)
{
	uint32_t nthreads, nframes, i;
	int64_t *ids;
	int rc = lists_decode(raw->data, raw->len, &nthreads, &nframes, &ids, NULL);

	if (rc)
		return rc;
	for (i = 0; i < nthreads; i++)
		mark(m, MARK_THREADS, ids[i]);
	for (i = 0; i < nframes; i++)
		mark(m, MARK_FRAMES, ids[nthreads + i]);
	free(ids);
	return 0;
}

/* Every segment after the last one marked. A list that cannot be read ends the sweep. */
static int mark_segments(struct marks *m)
{
	struct buf raw = {0};
	struct args a;
	int rc = db_statement(m->s, "SELECT id, lists FROM segment WHERE id > ? ORDER BY id", &a,
			      NULL);
	int step = 0;

	if (!rc) {
		arg_int(&a, m->last_segment);
		while (!rc && (step = db_step(m->s, a.st, NULL)) > 0) {
			rc = blob_unpack(sqlite3_column_blob(a.st, 1),
					 (size_t)sqlite3_column_bytes(a.st, 1), LISTS_MAX_BYTES,
					 &raw, NULL);
			if (!rc)
				rc = mark_lists(m, &raw);
			m->last_segment = sqlite3_column_int64(a.st, 0);
		}
		sqlite3_reset(a.st);
	}
	buf_free(&raw);
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

/* An empty table has the range 0 to 0. */
static int marks_init(struct marks *m)
{
	int rc = marks_init_one(m, MARK_THREADS, "SELECT coalesce(min(id), 0), coalesce(max(id), 0)"
				" FROM thread");

	if (!rc)
		rc = marks_init_one(m, MARK_FRAMES,
				    "SELECT coalesce(min(id), 0), coalesce(max(id), 0)"
				    " FROM frame");
	return rc;
}

/* SQL: listed(kind, id) */
static void sql_listed(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const struct marks *m = sqlite3_user_data(ctx);
	int kind = sqlite3_value_int(argv[0]) == MARK_FRAMES ? MARK_FRAMES : MARK_THREADS;
	int64_t id = sqlite3_value_int64(argv[1]);
	uint64_t at = (uint64_t)id - (uint64_t)m->min[kind];

	(void)argc;
	sqlite3_result_int(ctx, !in_range(m, kind, id) || (m->bits[kind][at / 8] >> (at % 8) & 1));
}

static int sweep_work(struct store *s, void *arg, struct err *err)
{
	int rc = mark_segments(arg);

	if (rc)
		return rc;
	/* The newest session stays: it may be that of a recorder that has stored nothing yet. */
	return db_exec(s,
		"DELETE FROM thread WHERE NOT listed(0, id);"
		"DELETE FROM process WHERE id NOT IN (SELECT process_id FROM thread)"
		" AND id NOT IN (SELECT process_id FROM quality WHERE process_id IS NOT NULL);"
		"DELETE FROM frame WHERE NOT listed(1, id);"
		"DELETE FROM function WHERE id NOT IN"
		" (SELECT function_id FROM frame WHERE function_id IS NOT NULL);"
		"DELETE FROM module WHERE id NOT IN (SELECT module_id FROM frame)"
		" AND id NOT IN (SELECT module_id FROM function);"
		"DELETE FROM session WHERE id NOT IN (SELECT session_id FROM process)"
		" AND id NOT IN (SELECT session_id FROM module WHERE session_id IS NOT NULL)"
		" AND id < (SELECT max(id) FROM session);"
		"DELETE FROM host WHERE id NOT IN (SELECT host_id FROM incident)", err);
}

static void sweep(struct store *s)
{
	struct marks m = {.s = s};
	unsigned kind;

	if (!marks_init(&m) && !mark_segments(&m) &&
	    !sqlite3_create_function_v2(s->db, "listed", 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, &m,
					sql_listed, NULL, NULL, NULL)) {
		db_transact(s, TX_NORMAL, sweep_work, &m, NULL);
		sqlite3_create_function_v2(s->db, "listed", 2, SQLITE_UTF8, NULL, NULL, NULL, NULL,
					   NULL);
	}
	for (kind = 0; kind < MARKS; kind++)
		free(m.bits[kind]);
	interner_forget(s->interner);
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
