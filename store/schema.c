/*
 * The tables of a store, format 3.
 *
 *	                 incident ──< stream, loss, quality       what list and show need
 *	                    │
 *	             incident_segment                             many to many
 *	                    │
 *	                 segment                                  data   the ring's columns
 *	                    :                                     lists  ids of threads and frames
 *	        ┌───────────┴───────────┐
 *	     thread                  (frame) >── (function)       ( ) in a page, not a row
 *	        │                       │          │
 *	     process ──>(text)       module ───────┘
 *	        │                       │
 *	        └────── session ────────┘
 *
 * Incidents whose windows overlap share segments, which are stored once and removed with the last
 * of them. So what segments list cannot belong to an incident either: the tables below `segment`
 * are global, deduplicated by content, and swept when no segment lists what is in them any more.
 *
 * lists    ids of threads and frames; local index i of the columns is the ith id (page.c).
 * data     segment->bytes (layout: model/segment.h). Both are blobs (blob.c).
 *
 * Only the blobs say which segment lists a frame. A row for each segment and frame would be as
 * large as the segment itself, and a count in each frame would rewrite 200 KB of pages per segment.
 * A sweep reads every list instead, when there is time (sweep.c).
 *
 * Measured (bench_pipeline --no-exports --keep): 1 M samples in 123 segments with 24,842 frames
 * take 8.0 bytes a sample: 5.7 of columns, 1.8 of lists, 0.2 of pages. 1.04 M samples of 525 s of
 * compilers and six other programs (32,481 processes, 233,152 frames; columns not yet by planes,
 * which cost 0.4 more) take 12.6: 5.3 of columns, 2.5 of lists, 2.0 of pages, 2.6 of processes and
 * threads with their indices.
 *
 * meta     `unswept`: incidents were deleted, and what only they had must still be swept.
 *          `age_wall_ns`, `age_clock_ns`: the time by which incidents age (age.c), and the recorder
 *          clock then.
 * session  One run of a recorder. The recorder clock, process numbers and exec counts have a
 *          meaning within one run only, so a process is (session, pid, start, exec). Ids are never
 *          used twice. The pid of the newest row is the recorder that holds the lock, if anyone
 *          does.
 * A file of the history leaves whole, and is written by one recorder, which knows by heart what is
 * in it (intern.c). So it has no indices: those of processes, threads and modules were a quarter of
 * the bytes written where processes come and go. Its segments have a column `pad` (write.c), they
 * say before their blobs how many of their samples are of CPU time (how busy the machine was), and
 * its modules that belong to one session no identity, and no path where it is their name. Its
 * processes and threads are in pages, process_page and thread_page; a row of `process` or `thread`
 * with the same id holds instead (intern_tasks.c).
 *
 * module   Found by `identity`: kind and build id where there is one, so that all runs share its
 *          frames and names. Anything else (a file without a build id, jitted code, the kernel with
 *          its modules at addresses of this boot) is trusted within its session only.
 * frame_page  Frames (module, offset, flags) with ids from first_id to last_id; some of them may
 *          have been swept. `functions` gives each its function: once, perhaps later than the
 *          frame, and never replaced. As rows with a unique index frames took 41 bytes each, in
 *          pages 5. There is no index: what a writer does not have in memory is stored again
 *          (intern_frames.c).
 * function_page  Functions with ids from first_id to last_id; some of them may have been swept.
 * text_page  Texts with ids from first_id to last_id.
 * process  The name follows while its recorder lives (short name, then executable). The command
 *          line, cmdline_id, is a text and given once. cmdline is always NULL. home_id is the text
 *          of model/home.h; a process that moves gets another row, as a thread does. The column is
 *          younger than the format: stores without it are read, and get it from a recorder.
 * thread   A thread that changes its name gets another row: lists that are stored keep what was
 *          true.
 * incident Ids are never used twice; uuid is the same in every copy. While it is open, t0_ns,
 *          t1_ns, samples and lost are NULL: readers take them from its segments. kept_wall_ns is
 *          when it was stored, by the time of age.c, where that is not when it happened (a trace
 *          file's, or when the wall clock was wrong): its age counts from there.
 * rule_state  What a rule carries over a restart (decay, steering), as its trigger wrote it.
 * loss     `second` counts from the trigger, rounded down; cpu -1 = no cpu.
 * quality  Samples by how far their stacks can be trusted. By process: sample.quality of the export
 *          sqlite-flat.
 * frame, function  Views without rows, earlier empty tables. Formats 1 and 2 kept there what pages
 *          hold now, and whoever opens a store looks whether it is one of those.
 *
 * Times *_ns are of the recorder clock, *_wall_ns since 1970. SQLite has no unsigned integers:
 * 64-bit values with the highest bit set (addresses) read as negative ones. Blobs are last in their
 * rows, so that reading the rest of a row does not touch their pages. Texts of the enums `state`
 * and `kind` are part of the format.
 *
 * Foreign keys are declared for readers and for `PRAGMA foreign_key_check`, which the tests run.
 * SQLite does not check them while we write: that took a fifth of the time to store an incident,
 * and we only refer to rows that we have just found or added.
 */
#include "store/store_private.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>

static const char *const tables[] = {
	"CREATE TABLE meta("
	" key TEXT PRIMARY KEY, value"
	") WITHOUT ROWID",

	"CREATE TABLE session("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" pid INTEGER NOT NULL, started_wall_ns INTEGER NOT NULL)",

	"CREATE TABLE host("
	" id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, UNIQUE(name, text))",

	"CREATE TABLE module("
	" id INTEGER PRIMARY KEY, identity TEXT NOT NULL,"
	" session_id INTEGER REFERENCES session(id),"
	" kind TEXT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL, build_id BLOB)",

	"CREATE TABLE frame_page("
	" first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, frames INTEGER NOT NULL,"
	" data BLOB NOT NULL, functions BLOB NOT NULL)",

	"CREATE TABLE function_page("
	" first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, functions INTEGER NOT NULL,"
	" data BLOB NOT NULL, names BLOB NOT NULL)",

	"CREATE TABLE text_page("
	" first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, data BLOB NOT NULL)",

	"CREATE TABLE process("
	" id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL REFERENCES session(id),"
	" pid INTEGER NOT NULL, start_ns INTEGER NOT NULL, exec INTEGER NOT NULL,"
	" parent_pid INTEGER NOT NULL, name TEXT NOT NULL, cmdline TEXT, cmdline_id INTEGER,"
	" home_id INTEGER)",

	"CREATE TABLE thread("
	" id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),"
	" tid INTEGER NOT NULL, name TEXT NOT NULL)",

	"CREATE TABLE segment("
	" id INTEGER PRIMARY KEY AUTOINCREMENT, t0_ns INTEGER NOT NULL, t1_ns INTEGER NOT NULL,"
	" samples INTEGER NOT NULL, bytes INTEGER NOT NULL, crc INTEGER NOT NULL,"
	" lists BLOB NOT NULL, data BLOB NOT NULL)",

	"CREATE TABLE incident("
	" id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE,"
	" host_id INTEGER NOT NULL REFERENCES host(id),"
	" state TEXT NOT NULL, pinned INTEGER NOT NULL DEFAULT 0,"
	" rule TEXT NOT NULL, reason TEXT NOT NULL, value REAL, threshold REAL,"
	" trigger_ns INTEGER NOT NULL, trigger_wall_ns INTEGER NOT NULL,"
	" asked_pre_ns INTEGER NOT NULL, asked_post_ns INTEGER NOT NULL,"
	" t0_ns INTEGER, t1_ns INTEGER, gap_reason TEXT, samples INTEGER, lost INTEGER,"
	" recorder_cpu_ns INTEGER NOT NULL, recorder_rss_bytes INTEGER NOT NULL,"
	" recorder_version TEXT NOT NULL, note TEXT, kept_wall_ns INTEGER)",

	"CREATE TABLE incident_segment("
	" incident_id INTEGER NOT NULL REFERENCES incident(id) ON DELETE CASCADE,"
	" segment_id INTEGER NOT NULL REFERENCES segment(id) DEFERRABLE INITIALLY DEFERRED,"
	" PRIMARY KEY(incident_id, segment_id)"
	") WITHOUT ROWID",

	"CREATE TABLE stream("
	" incident_id INTEGER NOT NULL REFERENCES incident(id) ON DELETE CASCADE,"
	" kind TEXT NOT NULL, period_ns INTEGER NOT NULL, PRIMARY KEY(incident_id, kind)"
	") WITHOUT ROWID",

	"CREATE TABLE loss("
	" incident_id INTEGER NOT NULL REFERENCES incident(id) ON DELETE CASCADE,"
	" kind TEXT NOT NULL, second INTEGER NOT NULL, cpu INTEGER NOT NULL, n INTEGER NOT NULL,"
	" PRIMARY KEY(incident_id, kind, second, cpu)"
	") WITHOUT ROWID",

	"CREATE TABLE quality("
	" incident_id INTEGER NOT NULL REFERENCES incident(id) ON DELETE CASCADE,"
	" kind TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(incident_id, kind)"
	") WITHOUT ROWID",

	"CREATE TABLE rule_state("
	" rule_key TEXT PRIMARY KEY, saved_wall_ns INTEGER NOT NULL, state BLOB NOT NULL"
	") WITHOUT ROWID",
};

/* Of a file of the history. */
static const char *const task_pages[] = {
	"CREATE TABLE process_page("
	" first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, data BLOB NOT NULL)",
	"CREATE TABLE thread_page("
	" first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, data BLOB NOT NULL)",
};

/* How rows are found by their contents. */
static const char *const indices[] = {
	"CREATE UNIQUE INDEX module_identity ON module(identity)",
	"CREATE INDEX process_pid ON process(session_id, pid)",
	"CREATE INDEX thread_tid ON thread(process_id, tid)",
	"CREATE INDEX incident_segment_segment ON incident_segment(segment_id)",
};

/* For people with sqlite3; the program itself uses the first one only. */
static const char *const views[] = {
	"CREATE VIEW frame AS SELECT 0 AS id, 0 AS module_id, 0 AS offset, 0 AS flags,"
	" 0 AS function_id WHERE 0",
	"CREATE VIEW function AS SELECT 0 AS id, 0 AS module_id, 0 AS offset, '' AS name,"
	" '' AS raw_name, '' AS module WHERE 0",

	"CREATE VIEW v_incident AS SELECT i.id, i.uuid, i.state, i.pinned, i.rule, i.reason,"
	" strftime('%Y-%m-%dT%H:%M:%fZ', i.trigger_wall_ns / 1e9, 'unixepoch') AS time_utc,"
	" (i.t1_ns - i.t0_ns) / 1e9 AS window_s, (i.trigger_ns - i.t0_ns) / 1e9 AS pre_s,"
	" (i.t1_ns - i.trigger_ns) / 1e9 AS post_s, i.samples, i.lost,"
	" (SELECT total(s.bytes) FROM incident_segment x JOIN segment s ON s.id = x.segment_id"
	"  WHERE x.incident_id = i.id) AS bytes,"
	" h.name AS host FROM incident i JOIN host h ON h.id = i.host_id",

	"CREATE VIEW v_module AS SELECT m.id, m.kind, m.name, m.path, hex(m.build_id) AS build_id"
	" FROM module m",

	"CREATE VIEW v_thread AS SELECT t.id, p.session_id, p.pid, p.exec, p.name AS process,"
	" t.tid, t.name AS thread FROM thread t JOIN process p ON p.id = t.process_id",

	/* Which incidents keep a segment in the file. */
	"CREATE VIEW v_segment AS SELECT s.id, s.samples, s.bytes,"
	" (s.t1_ns - s.t0_ns) / 1e9 AS seconds,"
	" (SELECT group_concat(x.incident_id) FROM incident_segment x WHERE x.segment_id = s.id)"
	" AS incidents FROM segment s",
};

static int run_all(struct store *s, const char *const *sql, size_t n, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < n; i++)
		rc = db_exec(s, sql[i], err);
	return rc;
}

/* What programs look at first. Same transaction as the tables: all is there, or nothing. */
static int put_versions(struct store *s, struct err *err)
{
	char sql[200];

	snprintf(sql, sizeof(sql),
		 "PRAGMA application_id=%d; PRAGMA user_version=%d;"
		 "INSERT INTO meta VALUES('creator', 'recorder'), ('min_reader', %d)",
		 STORE_APPLICATION_ID, STORE_VERSION, STORE_MIN_READER);
	return db_exec(s, sql, err);
}

int schema_task_pages(struct store *s, struct err *err)
{
	return run_all(s, task_pages, COUNT_OF(task_pages), err);
}

int schema_history_segments(struct store *s, struct err *err)
{
	return db_exec(s, "DROP TABLE main.segment;"
		       "CREATE TABLE main.segment("
		       " id INTEGER PRIMARY KEY AUTOINCREMENT, t0_ns INTEGER NOT NULL,"
		       " t1_ns INTEGER NOT NULL, samples INTEGER NOT NULL, bytes INTEGER NOT NULL,"
		       " crc INTEGER NOT NULL, cpu_samples INTEGER NOT NULL DEFAULT 0,"
		       " lists BLOB NOT NULL, data BLOB NOT NULL, pad BLOB)", err);
}

/*
 * auto_vacuum must come before the first table, and writes page 1 itself, so it is inside the
 * transaction, which BEGIN alone does not start. WAL mode comes later, in use_log(): with a
 * rollback journal a kill on the way leaves an empty file, never a log beside one.
 */
int schema_create(struct store *s, struct err *err)
{
	int rc = db_exec(s, "PRAGMA page_size=4096; BEGIN", err);    /* REDO_PAGE_BYTES */

	if (rc)
		return rc;
	/* A file of the history leaves whole: it needs no map of its pages. */
	if (!s->history)
		rc = db_exec(s, "PRAGMA auto_vacuum=INCREMENTAL", err);
	if (!rc)
		rc = run_all(s, tables, COUNT_OF(tables), err);
	if (!rc && s->history)
		rc = schema_task_pages(s, err);
	if (!rc && s->history)
		rc = schema_history_segments(s, err);
	else if (!rc)
		rc = run_all(s, indices, COUNT_OF(indices), err);
	if (!rc)
		rc = run_all(s, views, COUNT_OF(views), err);
	if (!rc)
		rc = put_versions(s, err);
	if (!rc)
		rc = db_exec(s, "COMMIT", err);
	s->has_homes = !rc;
	s->has_tasks = !rc && s->history;
	if (rc && !sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

int schema_look(struct store *s, struct err *err)
{
	int64_t n = 0;
	int rc = db_int(s, "SELECT count(*) FROM pragma_table_info('process')"
			" WHERE name='home_id'", NO_ARGS, &n, err);

	s->has_homes = n != 0;
	if (!rc)
		rc = db_int(s, "SELECT count(*) FROM pragma_table_info('thread_page')", NO_ARGS, &n,
			    err);
	s->has_tasks = n != 0;
	return rc;
}

int schema_extend(struct store *s, struct err *err)
{
	int rc = s->has_homes ? 0 : db_exec(s, "ALTER TABLE process ADD COLUMN home_id INTEGER",
					    err);

	s->has_homes = !rc;
	return rc;
}

/* ---- enums ---------------------------------------------------------------------------------- */

static const char *const state_texts[] = {
	[INCIDENT_OPEN] = "open",
	[INCIDENT_COMPLETE] = "complete",
	[INCIDENT_PARTIAL] = "partial",
};

const char *state_to_text(enum incident_state state)
{
	return state_texts[state];
}

enum incident_state state_from_text(const char *text)
{
	if (text && strcmp(text, state_texts[INCIDENT_OPEN]) == 0)
		return INCIDENT_OPEN;
	if (text && strcmp(text, state_texts[INCIDENT_COMPLETE]) == 0)
		return INCIDENT_COMPLETE;
	return INCIDENT_PARTIAL;
}

static const char *const object_texts[] = {
	[OBJECT_UNKNOWN] = "unknown",
	[OBJECT_ELF] = "elf",
	[OBJECT_PE] = "pe",
	[OBJECT_KERNEL] = "kernel",
	[OBJECT_JIT] = "jit",
};

#define OBJECT_TEXTS COUNT_OF(object_texts)

const char *object_kind_to_text(enum object_kind kind)
{
	return object_texts[kind < OBJECT_TEXTS ? kind : OBJECT_UNKNOWN];
}

enum object_kind object_kind_from_text(const char *text)
{
	unsigned kind = OBJECT_TEXTS;

	while (--kind > OBJECT_UNKNOWN) {
		if (text && strcmp(text, object_texts[kind]) == 0)
			break;
	}
	return (enum object_kind)kind;
}
