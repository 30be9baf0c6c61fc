/*
 * Deleting: one incident by hand, or the oldest by limits. What nothing refers to then (segments,
 * and what only they listed) is swept afterwards (sweep.c).
 *
 * Deleting never fails for want of a sweep. What cannot be swept now is swept with the next
 * deletion, or by the next recorder: the file notes that it must be (sweep_note()).
 */
#include "store/store_private.h"

#include <inttypes.h>
#include <string.h>

/* ---- one incident --------------------------------------------------------------------------- */

struct delete_work {
	int64_t id;
	bool is_open;                        /* out: it is being written, nothing was deleted */
	bool may_be_open;
};

/* The incident's own rows. Its segments are swept later, some at a time. */
static int delete_rows(struct store *s, int64_t id, struct err *err)
{
	int rc = db_run(s, "DELETE FROM incident_segment WHERE incident_id=?", ARGS(arg_int(id)),
			err);

	if (!rc)
		rc = rollup_delete(s, id, err);
	if (!rc)
		rc = db_run(s, "DELETE FROM incident WHERE id=?", ARGS(arg_int(id)), err);
	return rc ? rc : sweep_note(s, err);
}

static int delete_work(struct store *s, void *arg, struct err *err)
{
	struct delete_work *w = arg;
	int64_t is_open = 0;
	int rc = db_int(s, "SELECT state='open' FROM incident WHERE id=?", ARGS(arg_int(w->id)),
			&is_open, err);

	if (rc == ERR_NOT_FOUND)
		return not_found(s, w->id, err);
	w->is_open = is_open && !w->may_be_open;
	return rc || w->is_open ? rc : delete_rows(s, w->id, err);
}

/*
 * An open incident belongs to the recorder that holds the lock. When nobody holds it, the incident
 * was left behind; we hold the lock while we delete it, so that no recorder begins to convert it.
 */
static int delete_open(struct store *s, struct delete_work *w, struct err *err)
{
	struct os_file *lock = NULL;
	struct buf path = {0};
	int rc = beside(s, ".lock", &path, err);

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
	os_close(lock);
	return rc;
}

int store_delete(struct store *s, int64_t id, struct err *err)
{
	struct delete_work w = {.id = id};
	int rc = db_transact(s, TX_NORMAL, delete_work, &w, err);

	if (!rc && w.is_open)
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

/* ---- pin and note --------------------------------------------------------------------------- */

/* An UPDATE of one incident: its first argument is the new value, its second the id. */
struct edit {
	const char *sql;
	int64_t id;
	struct argument value;
};

static int edit_incident(struct store *s, void *arg, struct err *err)
{
	const struct edit *e = arg;
	int rc = db_run(s, e->sql, ARGS(e->value, arg_int(e->id)), err);

	return rc || sqlite3_changes(s->db) ? rc : not_found(s, e->id, err);
}

int store_pin(struct store *s, int64_t id, bool pinned, struct err *err)
{
	struct edit e = {"UPDATE incident SET pinned=? WHERE id=?", id, arg_int(pinned)};

	return db_transact(s, TX_NORMAL, edit_incident, &e, err);
}

int store_set_note(struct store *s, int64_t id, const char *note, struct err *err)
{
	struct edit e = {"UPDATE incident SET note=" STORE_SQL_NOTE " WHERE id=?", id,
			 arg_text(note)};

	return db_transact(s, TX_NORMAL, edit_incident, &e, err);
}

int store_add_remark(struct store *s, int64_t id, const char *text, struct err *err)
{
	struct edit e = {.sql = "UPDATE incident SET note=coalesce(note, '') || char(10) || ?"
			 " WHERE id=? AND length(coalesce(note, '')) < 65536", .id = id};
	struct incident_head head = {0};
	struct buf line = {.max_bytes = STORE_REMARK_MAX + 1};
	char *at;
	int rc = store_head(s, id, &head, err);

	incident_head_free(&head);
	if (rc)
		return rc;
	buf_puts(&line, text);
	if (line.failed || line.len > STORE_REMARK_MAX) {
		buf_free(&line);
		return err_set(err, ERR_LIMIT, "a remark has %u bytes at most", STORE_REMARK_MAX);
	}
	for (at = line.data; at && *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	e.value = arg_text(buf_text(&line));
	rc = db_transact(s, TX_NORMAL, edit_incident, &e, err);
	buf_free(&line);
	return rc == ERR_NOT_FOUND ? err_set(err, ERR_LIMIT, "incident %lld has 64 KB of remarks",
					     (long long)id) : rc;
}

/* ---- limits --------------------------------------------------------------------------------- */

/* The oldest incident that may be deleted: never the newest, which is worth more than none. */
struct oldest {
	int64_t id;                          /* 0 = there is none */
	int64_t count;                       /* incidents that count against the limit */
	uint64_t kept_ns;
};

static int find_oldest(struct store *s, struct oldest *out, struct err *err)
{
	struct query q = db_query(
		s,
		"SELECT id, coalesce(kept_wall_ns, trigger_wall_ns) AS kept,"
		" (SELECT count(*) FROM incident WHERE NOT pinned AND state <> 'open')"
		" FROM incident WHERE NOT pinned AND state <> 'open'"
		" AND id < (SELECT max(id) FROM incident) ORDER BY kept, id LIMIT 1", NO_ARGS, err);
	int rc = query_step(&q);

	memset(out, 0, sizeof(*out));
	if (rc <= 0)
		return rc;
	out->id = column_int(&q, 0);
	out->kept_ns = column_u64(&q, 1);
	out->count = column_int(&q, 2);
	query_reset(&q);
	return 0;
}

static bool is_too_old(const struct store_limits *limits, const struct oldest *o, uint64_t now_ns)
{
	return limits->max_age_ns && o->kept_ns < now_ns &&
	       now_ns - o->kept_ns > limits->max_age_ns;
}

static bool is_one_too_many(const struct store_limits *limits, const struct oldest *o)
{
	return limits->max_incidents && o->count > (int64_t)limits->max_incidents;
}

static bool is_too_large(struct store *s, const struct store_limits *limits)
{
	return limits->max_bytes && store_bytes(s) > limits->max_bytes;
}

int store_retain(struct store *s, const struct store_limits *limits, uint64_t now_ns,
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
		if (!is_too_old(limits, &oldest, now_ns) &&
		    !is_one_too_many(limits, &oldest)) {
			if (!is_too_large(s, limits))
				break;
			/* The size after sweeping decides. */
			if (s->unswept) {
				store_sweep(s);
				if (s->unswept)
					return 1;
				continue;
			}
		}
		rc = store_delete(s, oldest.id, err);
		if (rc)
			break;
		(*deleted)++;
		/* Its segments are most of its size. */
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
