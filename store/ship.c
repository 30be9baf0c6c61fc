/*
 * What was sent where: a row for each incident and target, which stays when the incident has left
 * the store, and a row without uuid for the target itself. ship_past has a row for each target that
 * the history is sent to. The tables are made when somebody sends something for the first time;
 * others than `recorder ship` do not look at them.
 */
#include "store/store_private.h"

#include <stdio.h>

/* More rows of incidents that are gone are forgotten, the oldest first. */
#define GONE_ROWS_MAX "10000"

static const char *const state_texts[] = {
	[SHIP_WAITING] = "waiting", [SHIP_SENT] = "sent", [SHIP_REFUSED] = "refused",
	[SHIP_LOST] = "lost", [SHIP_LEFT] = "left",
};

static int make_table(struct store *s, struct err *err)
{
	int64_t has_parts = 0;
	int rc = db_exec(s, "CREATE TABLE IF NOT EXISTS ship("
		       " target TEXT NOT NULL, uuid TEXT NOT NULL, state TEXT NOT NULL,"
		       " tries INTEGER NOT NULL DEFAULT 0, wall_ns INTEGER NOT NULL DEFAULT 0,"
		       " due_wall_ns INTEGER NOT NULL DEFAULT 0, sha256 TEXT, answer TEXT,"
		       " parts INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(target, uuid))"
		       " WITHOUT ROWID", err);

	/* Older stores have a table without. */
	if (!rc)
		rc = db_int(s, "SELECT count(*) FROM pragma_table_info('ship') WHERE name='parts'",
			    NO_ARGS, &has_parts, err);
	return rc || has_parts ? rc
		: db_exec(s, "ALTER TABLE ship ADD COLUMN parts INTEGER NOT NULL DEFAULT 0", err);
}

struct ship_work {
	const char *target;
	const struct ship_note *note;
	const struct ship_past *past;
	uint64_t wall_ns;
	uint32_t *lost;
};

static int look(struct store *s, void *arg, struct err *err)
{
	const struct ship_work *w = arg;
	int rc = make_table(s, err);

	if (!rc)
		rc = db_run(s, "INSERT OR IGNORE INTO ship(target, uuid, state, wall_ns)"
			    " SELECT ?, uuid, 'waiting', ? FROM incident WHERE state != 'open'",
			    ARGS(arg_text(w->target), arg_u64(w->wall_ns)), err);
	if (!rc)
		rc = db_run(s, "UPDATE ship SET state='lost' WHERE target=? AND state='waiting'"
			    " AND uuid != '' AND uuid NOT IN (SELECT uuid FROM incident)",
			    ARGS(arg_text(w->target)), err);
	*w->lost = rc ? 0 : (uint32_t)sqlite3_changes(s->db);
	if (!rc)
		rc = db_run(s, "DELETE FROM ship WHERE target=?1 AND uuid IN"
			    " (SELECT uuid FROM ship WHERE target=?1 AND uuid != ''"
			    "  AND uuid NOT IN (SELECT uuid FROM incident)"
			    "  ORDER BY wall_ns DESC LIMIT -1 OFFSET " GONE_ROWS_MAX ")",
			    ARGS(arg_text(w->target)), err);
	return rc;
}

int store_ship_look(struct store *s, const char *target, uint64_t wall_ns, uint32_t *lost,
		    struct err *err)
{
	struct ship_work w = {.target = target, .wall_ns = wall_ns, .lost = lost};
	int64_t news = 1, table = 0;
	int rc = db_int(s, "SELECT count(*) FROM sqlite_schema WHERE name='ship'", NO_ARGS, &table,
			err);

	*lost = 0;
	/* Nothing is written when nothing is new: a recorder notices each change. */
	if (!rc && table)
		rc = make_table(s, err);
	if (!rc && table)
		rc = db_int(s, "SELECT EXISTS (SELECT 1 FROM incident i WHERE state != 'open'"
			    " AND NOT EXISTS (SELECT 1 FROM ship WHERE target=?1 AND uuid=i.uuid))"
			    " OR EXISTS (SELECT 1 FROM ship WHERE target=?1 AND state='waiting'"
			    "  AND uuid != '' AND uuid NOT IN (SELECT uuid FROM incident))",
			    ARGS(arg_text(target)), &news, err);
	return rc || !news ? rc : db_transact(s, TX_NORMAL, look, &w, err);
}

int store_ship_next(struct store *s, const char *target, int64_t *id, struct err *err)
{
	struct query q = db_query(s, "SELECT i.id FROM ship p"
				  " JOIN incident i ON i.uuid=p.uuid"
				  " WHERE p.target=? AND p.state='waiting'"
				  " ORDER BY p.tries / 8, i.id LIMIT 1", ARGS(arg_text(target)),
				  err);
	int rc = query_step(&q);

	if (rc <= 0)
		return rc ? rc : ERR_NOT_FOUND;
	*id = column_int(&q, 0);
	query_reset(&q);
	return 0;
}

int store_ship_parts(struct store *s, const char *target, const char *uuid, uint32_t *parts,
		     struct err *err)
{
	int64_t n = 0;
	int rc = db_int(s, "SELECT coalesce(max(parts), 0) FROM ship WHERE target=? AND uuid=?",
			ARGS(arg_text(target), arg_text(uuid)), &n, err);

	*parts = (uint32_t)n;
	return rc;
}

struct keep_work {
	const char *target, *uuid;
	uint32_t parts;
};

static int keep(struct store *s, void *arg, struct err *err)
{
	const struct keep_work *w = arg;

	return db_run(s, "UPDATE ship SET parts=? WHERE target=? AND uuid=?",
		      ARGS(arg_int(w->parts), arg_text(w->target), arg_text(w->uuid)), err);
}

int store_ship_keep(struct store *s, const char *target, const char *uuid, uint32_t parts,
		    struct err *err)
{
	struct keep_work w = {.target = target, .uuid = uuid, .parts = parts};

	return db_transact(s, TX_DURABLE, keep, &w, err);
}

/* The target's own row counts the failures in a row. */
static int note_target(struct store *s, const struct ship_work *w, struct err *err)
{
	const struct ship_note *n = w->note;
	bool failed = n->state == SHIP_WAITING;

	return db_run(s, "INSERT INTO ship(target, uuid, state, tries, wall_ns, due_wall_ns,"
		      " answer) VALUES(?1, '', 'target', ?2, ?3, ?4, ?5)"
		      " ON CONFLICT(target, uuid) DO UPDATE SET tries=(tries + 1) * ?2, wall_ns=?3,"
		      " due_wall_ns=?4, answer=coalesce(?5, CASE WHEN ?2 THEN answer END)",
		      ARGS(arg_text(w->target), arg_int(failed), arg_u64(w->wall_ns),
			   arg_u64(failed ? n->due_wall_ns : 0),
			   arg_text(n->state == SHIP_SENT ? NULL : n->answer)), err);
}

static int note(struct store *s, void *arg, struct err *err)
{
	const struct ship_work *w = arg;
	const struct ship_note *n = w->note;
	bool failed = n->state == SHIP_WAITING;
	int rc = db_run(s, "INSERT INTO ship(target, uuid, state, tries, wall_ns, sha256, answer,"
			" parts) VALUES(?1, ?2, ?3, 1, ?4, ?5, ?6, ?7)"
			" ON CONFLICT(target, uuid) DO UPDATE SET state=?3, tries=tries + 1,"
			" wall_ns=?4, sha256=?5, answer=?6, parts=?7",
			ARGS(arg_text(w->target), arg_text(n->uuid),
			     arg_text(state_texts[n->state]), arg_u64(w->wall_ns),
			     arg_text(n->sha256), arg_text(n->answer),
			     arg_int(failed ? n->parts : 0)), err);

	return rc ? rc : note_target(s, w, err);
}

int store_ship_note(struct store *s, const char *target, const struct ship_note *n,
		    uint64_t wall_ns, struct err *err)
{
	struct ship_work w = {.target = target, .note = n, .wall_ns = wall_ns};

	return db_transact(s, TX_DURABLE, note, &w, err);
}

int store_ship_state(struct store *s, const char *target, struct ship_state *out, struct err *err)
{
	struct query q = db_query(s, "SELECT coalesce(sum(state='waiting'), 0),"
				  " coalesce(sum(state='sent'), 0),"
				  " coalesce(sum(state='refused'), 0),"
				  " coalesce(sum(state='lost'), 0),"
				  " coalesce(sum(state='left'), 0), max(iif(uuid='', tries, 0)),"
				  " max(iif(uuid='', due_wall_ns, 0)),"
				  " max(iif(uuid='', answer, NULL)) FROM ship WHERE target=?",
				  ARGS(arg_text(target)), err);
	const char *answer;
	int i, rc = query_step(&q);

	*out = (struct ship_state){0};
	if (rc <= 0)
		return rc;
	for (i = 0; i < SHIP_STATES; i++)
		out->n[i] = column_u64(&q, i);
	out->failures = (uint32_t)column_int(&q, SHIP_STATES);
	out->due_wall_ns = column_u64(&q, SHIP_STATES + 1);
	answer = column_text(&q, SHIP_STATES + 2);
	snprintf(out->answer, sizeof(out->answer), "%s", answer ? answer : "");
	query_reset(&q);
	return 0;
}

/* ---- the history ----------------------------------------------------------------------------- */

static int make_past_table(struct store *s, struct err *err)
{
	return db_exec(s, "CREATE TABLE IF NOT EXISTS ship_past(target TEXT PRIMARY KEY,"
		       " series TEXT NOT NULL, next_wall_ns INTEGER NOT NULL,"
		       " file INTEGER NOT NULL, parts INTEGER NOT NULL, sent INTEGER NOT NULL,"
		       " refused INTEGER NOT NULL, lost INTEGER NOT NULL) WITHOUT ROWID", err);
}

int store_ship_past(struct store *s, const char *target, struct ship_past *out, struct err *err)
{
	int64_t there = 0;
	int rc = db_int(s, "SELECT count(*) FROM sqlite_schema WHERE name='ship_past'", NO_ARGS,
			&there, err);
	struct query q;
	const char *series;

	*out = (struct ship_past){0};
	if (rc || !there)
		return rc;
	q = db_query(s, "SELECT series, next_wall_ns, file, parts, sent, refused, lost"
		     " FROM ship_past WHERE target=?", ARGS(arg_text(target)), err);
	rc = query_step(&q);
	if (rc <= 0)
		return rc;
	series = column_text(&q, 0);
	snprintf(out->series, sizeof(out->series), "%s", series ? series : "");
	out->next_wall_ns = column_u64(&q, 1);
	out->file = (uint32_t)column_int(&q, 2);
	out->parts = (uint32_t)column_int(&q, 3);
	out->sent = column_u64(&q, 4);
	out->refused = column_u64(&q, 5);
	out->lost = column_u64(&q, 6);
	query_reset(&q);
	return 0;
}

static int note_past(struct store *s, void *arg, struct err *err)
{
	const struct ship_work *w = arg;
	const struct ship_past *p = w->past;
	int rc = make_past_table(s, err);

	if (!rc)
		rc = db_run(s, "INSERT OR REPLACE INTO ship_past(target, series, next_wall_ns,"
			    " file, parts, sent, refused, lost) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
			    ARGS(arg_text(w->target), arg_text(p->series),
				 arg_u64(p->next_wall_ns), arg_int(p->file), arg_int(p->parts),
				 arg_u64(p->sent), arg_u64(p->refused), arg_u64(p->lost)), err);
	return rc || !w->note ? rc : note_target(s, w, err);
}

int store_ship_note_past(struct store *s, const char *target, const struct ship_past *past,
			 const struct ship_note *n, uint64_t wall_ns, struct err *err)
{
	struct ship_work w = {.target = target, .past = past, .note = n, .wall_ns = wall_ns};

	return db_transact(s, TX_DURABLE, note_past, &w, err);
}
