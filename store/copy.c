/*
 * One incident in another store: its rows as they are, with the same uuid and the same sums, and
 * its segments as adopt.c copies them.
 */
#include "store/store_private.h"

#include <stdlib.h>

#define COLUMNS_MAX 24

static struct argument argument_of(const struct query *q, int column)
{
	struct blob blob;

	switch (sqlite3_column_type(q->st, column)) {
	case SQLITE_INTEGER:
		return arg_int(column_int(q, column));
	case SQLITE_FLOAT:
		return arg_num(sqlite3_column_double(q->st, column));
	case SQLITE_BLOB:
		blob = column_blob(q, column);
		return arg_blob(blob.bytes, blob.n);
	default:
		return arg_text(column_text(q, column));
	}
}

/* insert's first argument is `first`, the others are the columns of select, whose argument is id */
static int copy_rows(struct store *to, const char *insert, int64_t first, struct store *from,
		     const char *select, int64_t id, struct err *err)
{
	struct query q = db_query(from, select, ARGS(arg_int(id)), err);
	int rc;

	while ((rc = query_step(&q)) > 0) {
		struct argument args[COLUMNS_MAX + 2] = {arg_int(first)};
		int i, n = sqlite3_column_count(q.st);

		for (i = 0; i < n && i < COLUMNS_MAX; i++)
			args[i + 1] = argument_of(&q, i);
		rc = db_run(to, insert, args, err);
		if (rc) {
			query_reset(&q);
			return rc;
		}
	}
	return rc;
}

#define HEAD_COLUMNS \
	"uuid, state, pinned, rule, reason, value, threshold, trigger_ns, trigger_wall_ns," \
	" asked_pre_ns, asked_post_ns, t0_ns, t1_ns, gap_reason, samples, lost, recorder_cpu_ns," \
	" recorder_rss_bytes, recorder_version, note, kept_wall_ns"

/* A table of sums of an incident. */
static const struct sums {
	const char *insert, *select;
} sums[] = {
	{"INSERT INTO stream(incident_id, kind, period_ns) VALUES(?, ?, ?)",
	 "SELECT kind, period_ns FROM stream WHERE incident_id=?"},
	{"INSERT INTO loss(incident_id, kind, second, cpu, n) VALUES(?, ?, ?, ?, ?)",
	 "SELECT kind, second, cpu, n FROM loss WHERE incident_id=?"},
	{"INSERT INTO quality(incident_id, kind, n) VALUES(?, ?, ?)",
	 "SELECT kind, n FROM quality WHERE incident_id=?"},
};

struct copying {
	struct store *from;
	int64_t id, copy;
};

static int copy_head(struct store *to, struct copying *c, struct err *err)
{
	int64_t host = 0;
	int rc = copy_rows(to, "INSERT OR IGNORE INTO host(id, name, text)"
			   " VALUES(nullif(?, 0), ?, ?)", 0, c->from,
			   "SELECT h.name, h.text FROM incident i JOIN host h ON h.id=i.host_id"
			   " WHERE i.id=?", c->id, err);
	struct query q = db_query(c->from, "SELECT h.name, h.text FROM incident i"
				  " JOIN host h ON h.id=i.host_id WHERE i.id=?",
				  ARGS(arg_int(c->id)), err);

	if (rc)
		return rc;
	rc = query_step(&q);
	if (rc <= 0)
		return rc ? rc : not_found(c->from, c->id, err);
	rc = db_int(to, "SELECT id FROM host WHERE name=? AND text=?",
		    ARGS(argument_of(&q, 0), argument_of(&q, 1)), &host, err);
	query_reset(&q);
	if (!rc)
		rc = copy_rows(to, "INSERT INTO incident(host_id, " HEAD_COLUMNS ") VALUES(?,"
			       " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			       host, c->from, "SELECT " HEAD_COLUMNS " FROM incident WHERE id=?",
			       c->id, err);
	c->copy = sqlite3_last_insert_rowid(to->db);
	return rc;
}

/* It says so when segments could not be read. */
static int copy_segments(struct store *to, struct copying *c, struct err *err)
{
	struct query q = db_query(c->from, "SELECT segment_id FROM incident_segment"
				  " WHERE incident_id=? ORDER BY segment_id", ARGS(arg_int(c->id)),
				  err);
	struct ids segments = {0};
	int64_t n = 0;
	int rc = ids_collect(&q, &segments);

	if (!rc)
		rc = adopt_segments(to, c->copy, c->from, &segments, err);
	if (!rc)
		rc = db_int(to, "SELECT count(*) FROM incident_segment WHERE incident_id=?",
			    ARGS(arg_int(c->copy)), &n, err);
	if (!rc && n < (int64_t)segments.n)
		rc = db_run(to, "UPDATE incident SET state='partial', gap_reason="
			    "coalesce(gap_reason || '; ', '') ||"
			    " 'some of its segments could not be read when it was copied'"
			    " WHERE id=?", ARGS(arg_int(c->copy)), err);
	free(segments.ids);
	return rc;
}

static int copy_incident(struct store *to, void *arg, struct err *err)
{
	struct copying *c = arg;
	size_t i;
	int rc = copy_head(to, c, err);

	for (i = 0; !rc && i < sizeof(sums) / sizeof(sums[0]); i++)
		rc = copy_rows(to, sums[i].insert, c->copy, c->from, sums[i].select, c->id, err);
	return rc ? rc : copy_segments(to, c, err);
}

int store_find(struct store *s, const char *uuid, int64_t *id, struct err *err)
{
	return db_int(s, "SELECT id FROM incident WHERE uuid=?", ARGS(arg_text(uuid)), id, err);
}

int store_copy(struct store *to, struct store *from, int64_t id, int64_t *copy, struct err *err)
{
	struct copying c = {.from = from, .id = id};
	struct incident_head head = {0};
	int64_t there;
	int rc = store_head(from, id, &head, err);

	if (!rc && head.state == INCIDENT_OPEN)
		rc = err_set(err, ERR_BUSY, "incident %lld is still being written", (long long)id);
	if (!rc && !store_find(to, head.uuid, &there, NULL))
		rc = err_set(err, ERR_EXISTS, "incident %s is in %s already", head.uuid, to->path);
	incident_head_free(&head);
	if (!rc)
		rc = db_transact(to, TX_NORMAL, copy_incident, &c, err);
	if (!rc && copy)
		*copy = c.copy;
	return rc;
}

int store_copy_to_file(struct store *from, int64_t id, const char *path, struct err *err)
{
	struct store s = {.path = (char *)(uintptr_t)path, .mode = STORE_EDIT};
	struct os_file *file = NULL;
	int rc = os_open(path, OS_CREATE, &file, err);

	os_close(file);
	if (rc)
		return rc;
	s.deflater = deflater_new(false);
	rc = s.deflater ? connect_to(&s, path, SQLITE_OPEN_READWRITE, err)
			: err_memory(err, "while copying an incident");
	if (!rc)
		rc = db_exec(&s, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
			     "PRAGMA foreign_keys=OFF", err);
	if (!rc)
		rc = schema_create(&s, err);
	if (!rc)
		rc = store_copy(&s, from, id, NULL, err);
	disconnect(&s);
	deflater_free(s.deflater);
	if (rc)
		os_remove(path, NULL);
	return rc;
}
