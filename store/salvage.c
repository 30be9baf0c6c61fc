/*
 * What is readable of a damaged store, in a new one. SQLite stops at the first page that makes no
 * sense, so each table is copied row by row, by its row numbers, and the numbers whose pages cannot
 * be read are passed over. Rows keep their numbers, and so do incidents. An incident that lacks
 * some of its segments then is partial, and says so; damage inside a row is found by those who read
 * it, as always.
 *
 * A file of the history becomes an ordinary store, with processes and threads as rows: others may
 * be recorded there.
 *
 * Nothing is written to the damaged files.
 */
#include "store/rows_private.h"

#include "base/array.h"

#include <stdlib.h>

#define ONE_BY_ONE 4096u                     /* row numbers that fail, before steps get longer */

struct salvaging {
	struct store *s;                     /* the new store, with the damaged one as "old" */
	struct store_salvaged *out;
	int64_t has_tasks;                   /* the old one is of the history */
};

#define NUMBERED_AS(table, columns)                                                                \
	{"INSERT OR REPLACE INTO main." table " SELECT " columns " FROM old." table,               \
	 "SELECT rowid FROM old." table " WHERE rowid>=? ORDER BY rowid LIMIT 1",                  \
	 "INSERT OR REPLACE INTO main." table " SELECT " columns " FROM old." table                \
	 " WHERE rowid=?"}
#define NUMBERED(table) NUMBERED_AS(table, "*")

/* In a file of the history modules of one session have no identity, here it is unique. */
#define MODULE_COLUMNS "id, CASE identity WHEN '' THEN 'salvaged:' || id ELSE identity END,"       \
		       " session_id, kind, name, path, build_id"

/* What is referred to comes first. */
static const struct numbered {
	const char *all, *next, *one;
} numbered[] = {
	NUMBERED("session"), NUMBERED("host"), NUMBERED_AS("module", MODULE_COLUMNS),
	NUMBERED("text_page"), NUMBERED("function_page"), NUMBERED("frame_page"),
	NUMBERED("process"), NUMBERED("thread"), NUMBERED("segment"), NUMBERED("incident"),
};

/* Those of a file of the history. */
static const struct numbered task_pages[] = {NUMBERED("process_page"), NUMBERED("thread_page")};

/* Tables without row numbers: the rows of an incident. */
enum { SEGMENTS_OF_INCIDENT };
static const char *const of_incident[] = {
	[SEGMENTS_OF_INCIDENT] =
	("INSERT OR IGNORE INTO main.incident_segment"
	 " SELECT * FROM old.incident_segment WHERE incident_id=?"),
	"INSERT OR IGNORE INTO main.stream SELECT * FROM old.stream WHERE incident_id=?",
	"INSERT OR IGNORE INTO main.loss SELECT * FROM old.loss WHERE incident_id=?",
	"INSERT OR IGNORE INTO main.quality SELECT * FROM old.quality WHERE incident_id=?",
};

static const char *const whole[] = {
	"INSERT OR IGNORE INTO main.meta SELECT * FROM old.meta",
	"INSERT OR IGNORE INTO main.rule_state SELECT * FROM old.rule_state",
};

static bool is_unreadable(int rc)
{
	return rc == ERR_FORMAT || rc == ERR_IO || rc == ERR_LIMIT;
}

/* 0 for what cannot be read, which is counted; other errors end the salvage. */
static int pass_over(struct salvaging *v, int rc)
{
	if (!is_unreadable(rc))
		return rc;
	v->out->unreadable++;
	return 0;
}

static int copy_rows(struct salvaging *v, const struct numbered *t, struct err *err)
{
	uint64_t step = 1, failures = 0;
	int64_t at = 0;
	int rc;

	while (at >= 0) {
		struct query q = db_query(v->s, t->next, ARGS(arg_int(at)), err);

		rc = query_step(&q);
		if (rc == 0)
			return 0;
		if (rc > 0) {
			at = column_int(&q, 0);
			query_reset(&q);
			rc = pass_over(v, db_run(v->s, t->one, ARGS(arg_int(at)), err));
			failures = 0;
			step = 1;
		} else if (failures++) {
			rc = is_unreadable(rc) ? 0 : rc;
			step = failures < ONE_BY_ONE ? 1 : step * 2;
		} else {
			rc = pass_over(v, rc);       /* a page is counted once */
		}
		if (rc)
			return rc;
		at = step > (uint64_t)(INT64_MAX - at) ? -1 : at + (int64_t)step;
	}
	return 0;
}

/* Rows are copied as they are: the new store has the columns and tables of the old one. */
static int fit_columns(struct salvaging *v, struct err *err)
{
	int64_t has_homes = 0, has_pad = 0, says_cpu = 0;
	int rc = db_int(v->s, "SELECT count(*) FROM pragma_table_info('process', 'old')"
			" WHERE name='home_id'", NO_ARGS, &has_homes, err);

	if (!rc && !has_homes)
		rc = db_exec(v->s, "ALTER TABLE main.process DROP COLUMN home_id", err);
	if (!rc)
		rc = db_int(v->s, "SELECT count(*) FROM pragma_table_info('segment', 'old')"
			    " WHERE name='pad'", NO_ARGS, &has_pad, err);
	if (!rc)
		rc = db_int(v->s, "SELECT count(*) FROM pragma_table_info('segment', 'old')"
			    " WHERE name='cpu_samples'", NO_ARGS, &says_cpu, err);
	if (!rc && says_cpu)
		rc = schema_history_segments(v->s, err);
	else if (!rc && has_pad)         /* one of an earlier version */
		rc = db_exec(v->s, "ALTER TABLE main.segment ADD COLUMN pad BLOB", err);
	if (!rc)
		rc = db_int(v->s, "SELECT count(*) FROM pragma_table_info('thread_page', 'old')",
			    NO_ARGS, &v->has_tasks, err);
	return rc || !v->has_tasks ? rc : schema_task_pages(v->s, err);
}

/* A name that cannot be read is left out. */
static int insert_task(struct store *s, struct page_cache *pages, enum task_kind kind, int64_t id,
		       const uint64_t *row, struct err *err)
{
	uint64_t text = row[kind == TASK_PROCESS ? PROCESS_NAME : THREAD_NAME];
	struct stored_process p;
	struct stored_thread t;
	const char *name = NULL;

	if (text)
		page_cache_text(pages, (int64_t)text, &name, NULL);
	if (kind == TASK_PROCESS) {
		process_of_row(row, &p);
		p.name = name;
		return process_row_put(s, ROW_YIELDS, &p, &id, err);
	}
	thread_of_row(row, &t);
	t.name = name;
	return thread_row_put(s, ROW_YIELDS, &t, &id, err);
}

/* Rows that are there hold, as for a reader (intern_tasks.c). */
static int unpack_pages(struct salvaging *v, const char *sql, enum task_kind kind,
			struct page_cache *pages, struct err *err)
{
	unsigned columns = kind == TASK_PROCESS ? PROCESS_COLUMNS : THREAD_COLUMNS;
	struct query q = db_query(v->s, sql, NO_ARGS, err);
	int rc, stepped;

	for (rc = 0; !rc && (stepped = query_step(&q)) != 0;) {
		struct blob blob = column_blob(&q, 1);
		int64_t first = column_int(&q, 0);
		uint64_t *rows = NULL;
		uint32_t n = 0, i;

		if (stepped < 0)
			return stepped;
		rc = pass_over(v, row_page_unpack(&blob, columns, &rows, &n, err));
		for (i = 0; !rc && rows && i < n; i++)
			rc = insert_task(v->s, pages, kind, first + i, rows + (size_t)i * columns,
					 err);
		free(rows);
	}
	if (rc)
		query_reset(&q);
	return rc;
}

static int unpack_tasks(struct salvaging *v, struct err *err)
{
	struct page_cache pages = {.s = v->s};
	int rc = unpack_pages(v, "SELECT first_id, data FROM main.process_page", TASK_PROCESS,
			      &pages, err);

	if (!rc)
		rc = unpack_pages(v, "SELECT first_id, data FROM main.thread_page", TASK_THREAD,
				  &pages, err);
	page_cache_free(&pages);
	return rc ? rc : db_exec(v->s, "DROP TABLE main.process_page;"
				 "DROP TABLE main.thread_page", err);
}

static int copy_table(struct salvaging *v, const struct numbered *t, struct err *err)
{
	return db_run(v->s, t->all, NO_ARGS, err) ? copy_rows(v, t, err) : 0;
}

static int copy_tables(struct salvaging *v, struct err *err)
{
	size_t i;
	int rc = fit_columns(v, err);

	for (i = 0; !rc && i < COUNT_OF(numbered); i++)
		rc = copy_table(v, &numbered[i], err);
	for (i = 0; !rc && v->has_tasks && i < COUNT_OF(task_pages); i++)
		rc = copy_table(v, &task_pages[i], err);
	if (!rc && v->has_tasks)
		rc = unpack_tasks(v, err);
	for (i = 0; !rc && i < COUNT_OF(whole); i++)
		rc = pass_over(v, db_run(v->s, whole[i], NO_ARGS, err));
	return rc;
}

/*
 * Which segments are whose stands in a table and again in its index: of one damaged page in either
 * the other one has what it held.
 */
static int link_segments(struct salvaging *v, int64_t incident, struct err *err)
{
	static const char *const ways[] = {
		("INSERT OR IGNORE INTO main.incident_segment SELECT incident_id, segment_id"
		 " FROM old.incident_segment WHERE incident_id=?1 AND segment_id=?2"),
		("INSERT OR IGNORE INTO main.incident_segment SELECT incident_id, segment_id"
		 " FROM old.incident_segment INDEXED BY incident_segment_segment"
		 " WHERE incident_id=?1 AND segment_id=?2"),
	};
	struct query q = db_query(v->s, "SELECT id FROM main.segment", NO_ARGS, err);
	struct ids ids = {0};
	uint32_t i;
	size_t k;
	int rc = ids_collect(&q, &ids);

	for (i = 0; !rc && i < ids.n; i++) {
		for (k = 0; !rc && k < COUNT_OF(ways); k++) {
			rc = db_run(v->s, ways[k], ARGS(arg_int(incident), arg_int(ids.ids[i])),
				    err);
			rc = is_unreadable(rc) ? 0 : rc;     /* the page was counted */
		}
	}
	free(ids.ids);
	return rc;
}

static int copy_incident(struct salvaging *v, int64_t id, struct err *err)
{
	int rc = 0;
	size_t k;

	for (k = 0; !rc && k < COUNT_OF(of_incident); k++) {
		rc = db_run(v->s, of_incident[k], ARGS(arg_int(id)), err);
		if (k == SEGMENTS_OF_INCIDENT && is_unreadable(rc)) {
			v->out->unreadable++;
			rc = link_segments(v, id, err);
		} else {
			rc = pass_over(v, rc);
		}
	}
	return rc;
}

static int copy_incidents(struct salvaging *v, struct err *err)
{
	struct query q = db_query(v->s, "SELECT id FROM main.incident ORDER BY id", NO_ARGS, err);
	struct ids ids = {0};
	uint32_t i;
	int rc = ids_collect(&q, &ids);

	for (i = 0; !rc && i < ids.n; i++)
		rc = copy_incident(v, ids.ids[i], err);
	v->out->incidents = ids.n;
	free(ids.ids);
	return rc;
}

/* Those that lack segments become open: opening the store to record counts what is there. */
static int settle(struct salvaging *v, struct err *err)
{
	int rc = db_run(v->s,
			"UPDATE main.incident SET state='open',"
			" gap_reason=coalesce(gap_reason || '; ', '') ||"
			"  'some of its segments could not be salvaged from a damaged store'"
			" WHERE EXISTS (SELECT 1 FROM main.incident_segment x"
			"  WHERE x.incident_id=incident.id AND NOT EXISTS"
			"   (SELECT 1 FROM main.segment s WHERE s.id=x.segment_id))"
			" OR samples >"
			" (SELECT total(s.samples) FROM main.incident_segment x"
			"  JOIN main.segment s ON s.id=x.segment_id"
			"  WHERE x.incident_id=incident.id)",
			NO_ARGS, err);

	v->out->partial = rc ? 0 : (uint32_t)sqlite3_changes(v->s->db);
	if (!rc)
		rc = db_run(v->s,
			    "DELETE FROM main.incident_segment WHERE NOT EXISTS"
			    " (SELECT 1 FROM main.segment s WHERE s.id=segment_id)", NO_ARGS, err);
	return rc ? rc : sweep_note(v->s, err);
}

/* Without a log beside it the damaged file is read as one that nobody writes. */
static int attach(struct store *s, const char *path, struct err *err)
{
	const struct store damaged = {.path = (char *)(uintptr_t)path};
	struct buf name = {0};
	struct err why = {0};
	int64_t n;
	int rc = file_uri(path, has_log(&damaged) ? "" : "?immutable=1", &name, err);

	if (!rc)
		rc = db_run(s, "ATTACH ? AS old", ARGS(arg_text(buf_text(&name))), &why);
	if (!rc)
		rc = db_int(s, "SELECT count(*) FROM old.sqlite_schema", NO_ARGS, &n, &why);
	buf_free(&name);
	if (rc && why.code)
		rc = err_set(err, ERR_FORMAT, "nothing of %s can be read, as its first pages are "
			     "damaged: `sqlite3 FILE .recover` may find some of its rows", path);
	return rc;
}

/* Each row is a transaction, which an error may undo. So nothing is synced before the end. */
static int copy_all(const char *path, const char *to, struct store_salvaged *out, struct err *err)
{
	struct store s = {.path = (char *)(uintptr_t)to, .mode = STORE_EDIT};
	struct salvaging v = {.s = &s, .out = out};
	int rc = connect_to(&s, to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, err);

	if (!rc)
		rc = db_exec(&s, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
			     "PRAGMA foreign_keys=OFF", err);
	/* Closing must not write the log into the damaged file. */
	if (!rc)
		sqlite3_db_config(s.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (!rc)
		rc = attach(&s, path, err);
	if (!rc)
		rc = copy_tables(&v, err);
	if (!rc)
		rc = copy_incidents(&v, err);
	if (!rc)
		rc = settle(&v, err);
	disconnect(&s);
	return rc;
}

static int make_durable(const char *path, struct err *err)
{
	struct os_file *file = NULL;
	int rc = os_open(path, OS_APPEND, &file, err);

	if (!rc)
		rc = os_sync(file, err);
	os_close(file);
	return rc;
}

static void remove_beside(const char *path, const char *suffix)
{
	const struct store s = {.path = (char *)(uintptr_t)path};
	struct buf name = {0};

	if (!beside(&s, suffix, &name, NULL))
		os_remove(name.data, NULL);
	buf_free(&name);
}

int store_salvage(const char *path, const char *to, struct store_salvaged *out, struct err *err)
{
	struct store *s = NULL;
	bool damaged = false;
	int rc = store_open_saying(path, STORE_READ, &damaged, &s, err);

	*out = (struct store_salvaged){0};
	store_close(s);
	s = NULL;
	if (rc && !damaged)
		return rc;
	if (os_exists(to))
		return err_set(err, ERR_EXISTS, "%s exists already: name a new file", to);
	rc = store_open(to, STORE_RECORD, &s, err);
	store_close(s);
	if (!rc)
		rc = copy_all(path, to, out, err);
	if (!rc)
		rc = make_durable(to, err);
	/* What lacks segments becomes partial now. */
	s = NULL;
	if (!rc)
		rc = store_open(to, STORE_RECORD, &s, err);
	store_close(s);
	remove_beside(to, ".lock");
	remove_beside(to, ".reserve");
	if (rc)
		remove_beside(to, "");
	return rc;
}
