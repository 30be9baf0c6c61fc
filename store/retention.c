/*
 * Deleting: one incident by hand, the oldest by limits; and sweeping what nothing refers to then: segments, and
 * what only they listed (sweep.c).
 *
 * Deleting never fails for want of a sweep: what could not be swept now is swept with the next
 * deletion, or by the next recorder: the file says that it is to be done (sweep_note()).
 */
#include "store/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* What belongs to it alone before it. Its segments are swept, some at a time. */
static int delete_rows(struct store *s, int64_t id, struct err *err)
{
	int rc = run_with_id(s, "DELETE FROM incident_segment WHERE incident_id=?", id, err);

	if (!rc)
		rc = run_with_id(s, "DELETE FROM stream WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM loss WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM quality WHERE incident_id=?", id, err);
	if (!rc)
		rc = run_with_id(s, "DELETE FROM incident WHERE id=?", id, err);
	return rc ? rc : sweep_note(s, err);
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

int store_delete_only(struct store *s, int64_t id, struct err *err)
{
	struct delete_work w = {.id = id};
	int rc = db_transact(s, TX_NORMAL, delete_work, &w, err);

	if (!rc && w.open)
		rc = delete_open(s, &w, err);
	if (!rc)
		s->unswept = s->unshrunk = true;
	return rc;
}

void store_clean(struct store *s)
{
	if (s->unswept)
		store_sweep(s);
	if (s->unshrunk)
		space_give_back(s);
}

int store_delete(struct store *s, int64_t id, struct err *err)
{
	int rc = store_delete_only(s, id, err);

	if (!rc)
		store_clean(s);
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

static bool is_too_old(const struct store_limits *limits, const struct oldest *o, uint64_t wall_now_ns)
{
	return limits->max_age_ns && o->wall_ns < wall_now_ns && wall_now_ns - o->wall_ns > limits->max_age_ns;
}

/* One incident larger than the limit is worth more than none. */
static bool is_one_too_many(const struct store_limits *limits, const struct oldest *o)
{
	return !o->newest && limits->max_incidents && o->count > (int64_t)limits->max_incidents;
}

static bool is_too_large(struct store *s, const struct store_limits *limits, const struct oldest *o)
{
	return !o->newest && limits->max_bytes && store_bytes(s) > limits->max_bytes;
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
		if (rc || !oldest.id)
			break;
		if (!is_too_old(limits, &oldest, wall_now_ns) && !is_one_too_many(limits, &oldest)) {
			if (!is_too_large(s, limits, &oldest))
				break;
			/* Its size when it is swept decides. */
			if (s->unswept) {
				store_sweep(s);
				if (s->unswept)
					return 1;
				continue;
			}
		}
		rc = store_delete_only(s, oldest.id, err);
		if (rc)
			break;
		(*deleted)++;
		/* What they had is most of its size. */
		store_sweep_segments(s);
	}
	if (!rc && s->unswept)
		store_sweep(s);
	if (!s->unswept && s->unshrunk)
		space_give_back(s);
	return rc ? rc : s->unswept;
}

void store_set_call_off(struct store *s, bool (*call_off)(void *ctx), void *ctx)
{
	s->call_off = call_off;
	s->call_off_ctx = ctx;
}
