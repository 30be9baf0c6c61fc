/* Opening a store: what the file is, which format it has, who may use it, the lock. */
#include "store/interner_private.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *store_path(const struct store *s)
{
	return s->path;
}

void store_set_floor(struct store *s, uint64_t bytes)
{
	s->floor_bytes = bytes;
}

void store_set_progress(struct store *s, _Atomic uint64_t *count)
{
	s->progress = count;
}

/* ---- the file ------------------------------------------------------------------------------- */

int beside(const struct store *s, const char *suffix, struct buf *out, struct err *err)
{
	buf_puts(out, s->path);
	buf_puts(out, suffix);
	return buf_check(out, "a file name", err);
}

/*
 * SQLite may have the file open elsewhere in this process, and POSIX drops its locks when the
 * process closes any descriptor of the file. So we look at it by name, and only SQLite opens it.
 */
static int check_file(const char *path, bool *missing, struct err *err)
{
	struct os_file_info info;
	int rc;

	*missing = !os_exists(path);
	if (*missing)
		return 0;
	rc = os_path_info(path, &info, err);
	if (rc)
		return rc;
	if (info.directory)
		return err_set(
			err, ERR_FORMAT,
			"%s is a directory: --store takes a file, for example %s/incidents.db",
			path, path);
	if (!info.regular)
		return err_set(err, ERR_FORMAT,
			       "%s is not a regular file: choose another one with --store", path);
	return 0;
}

/* With mode 0600, before SQLite sees it: its -wal and -shm copy the mode of the file. */
static int make_file(const char *path, struct err *err)
{
	struct os_file *file = NULL;
	struct buf dir = {0};
	int rc;

	os_dirname(path, &dir);
	rc = buf_check(&dir, "a directory name", err);
	if (!rc)
		rc = os_mkdirs(buf_text(&dir), err);
	if (!rc)
		rc = os_open(path, OS_CREATE, &file, err);
	os_close(file);
	buf_free(&dir);
	return rc;
}

static int take_lock(struct store *s, struct err *err)
{
	struct buf path = {0};
	struct err why = {0};
	unsigned tries;
	int rc = beside(s, ".lock", &path, err);

	/* store_delete() may hold it for a moment (see retention.c). */
	for (tries = 0; !rc && !s->lock; tries++) {
		rc = os_lock(path.data, &s->lock, &why);
		if (rc != ERR_BUSY || tries >= 10)
			break;
		os_sleep_ns(20 * NS_PER_MS);
		rc = 0;
	}
	if (rc == ERR_BUSY)
		err_set(err, rc,
			"another recorder is writing to %s (%s): end it with `recorder stop "
			"--store %s`, or choose another file with --store",
			s->path, why.text, s->path);
	else if (rc && why.code)
		err_set(err, rc, "%s", why.text);
	buf_free(&path);
	return rc;
}

/* ---- what kind of database ------------------------------------------------------------------ */

static int check_min_reader(struct store *s, struct err *err)
{
	int64_t version = 0;
	int rc = db_int(s, "SELECT value FROM meta WHERE key='min_reader'", NO_ARGS, &version,
			err);

	if (rc == ERR_NOT_FOUND)
		return err_set(err, ERR_FORMAT,
			       "%s does not say which format it needs: it is not a store of "
			       "incidents, or it is damaged",
			       s->path);
	if (!rc && version > STORE_VERSION)
		return err_set(err, ERR_FORMAT,
			       "%s was written by a newer recorder (format %lld, this one reads "
			       "format %d): read it with that version",
			       s->path, (long long)version, STORE_VERSION);
	return rc;
}

/* Formats before 3 were never released. */
static int too_old(struct store *s, int64_t version, struct err *err)
{
	return err_set(err, ERR_FORMAT,
		       "%s has format %lld, but this recorder reads and writes format %d: move "
		       "it away (a new one is made; the recorder that wrote it can still read it)",
		       s->path, (long long)version, STORE_VERSION);
}

/* A store that began in format 2 and was turned into format 3 has frames as rows. */
static int check_origin(struct store *s, struct err *err)
{
	int64_t has_rows;
	int rc = db_int(s, "SELECT EXISTS (SELECT 1 FROM frame)", NO_ARGS, &has_rows, err);

	return rc || !has_rows ? rc : too_old(s, 2, err);
}

static int check_version(struct store *s, bool *empty, struct err *err)
{
	int64_t pages, application, version;
	int rc = db_int(s, "PRAGMA page_count", NO_ARGS, &pages, err);

	if (!rc)
		rc = db_int(s, "PRAGMA application_id", NO_ARGS, &application, err);
	if (!rc)
		rc = db_int(s, "PRAGMA user_version", NO_ARGS, &version, err);
	if (rc)
		return rc;
	*empty = pages == 0;
	if (*empty && s->mode != STORE_RECORD)
		return err_set(err, ERR_NOT_FOUND,
			       "%s is empty: nothing has been recorded there yet", s->path);
	if (*empty)
		return 0;
	if (application != STORE_APPLICATION_ID)
		return err_set(err, ERR_FORMAT,
			       "%s is a SQLite database of another program, not a store of "
			       "incidents: choose another file with --store",
			       s->path);
	if (version < STORE_VERSION)
		return too_old(s, version, err);
	if (version > STORE_VERSION && s->mode != STORE_READ)
		return err_set(
			err, ERR_FORMAT,
			"%s was written by a newer recorder (format %lld, this one writes "
			"format %d): change it with that version, or choose another file with "
			"--store",
			s->path, (long long)version, STORE_VERSION);
	rc = check_min_reader(s, err);
	if (!rc && version == STORE_VERSION)
		rc = check_origin(s, err);
	return rc ? rc : schema_look(s, err);
}

/* ---- connecting ----------------------------------------------------------------------------- */

int connect_to(struct store *s, const char *name, int flags, struct err *err)
{
	bool write = s->mode == STORE_RECORD;
	int rc;

	flags |= SQLITE_OPEN_NOMUTEX;
	rc = s->uses_redo ? redo_open(name, flags, write, &s->redo, &s->db)
			  : sqlite3_open_v2(name, &s->db, flags, NULL);

	if (!rc)
		rc = sqlite3_busy_timeout(s->db, 5000);
	if (!rc)
		rc = sqlite3_extended_result_codes(s->db, 1);
	if (rc)
		return db_error(s->path, s->db, rc, err);
	/* A store's own schema needs neither functions nor writable schemas: take no chances. */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, 64 << 20);
	return 0;
}

void disconnect(struct store *s)
{
	uint32_t i;

	for (i = 0; i < s->nstatements; i++)
		sqlite3_finalize(s->statements[i].st);
	free(s->statements);
	s->statements = NULL;
	s->nstatements = s->statements_cap = 0;
	sqlite3_close(s->db);
	s->db = NULL;
	redo_free(s->redo);
	s->redo = NULL;
}

/* Every byte that is not plain is written as %XX. */
int file_uri(const char *path, const char *query, struct buf *out, struct err *err)
{
	const char *c;

	buf_puts(out, *path == '/' ? "file://" : "file:");
	for (c = path; *c; c++) {
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		    strchr("0123456789/\\:._-", *c))
			buf_putc(out, *c);
		else
			buf_printf(out, "%%%02X", (unsigned char)*c);
	}
	buf_puts(out, query);
	return buf_check(out, "a file name", err);
}

static bool has_beside(const struct store *s, const char *suffix, uint64_t least_bytes)
{
	struct os_file_info info;
	struct buf name = {0};
	bool there = !beside(s, suffix, &name, NULL) && !os_path_info(name.data, &info, NULL) &&
		     info.size_bytes >= least_bytes;

	buf_free(&name);
	return there;
}

bool has_log(const struct store *s)
{
	return s->uses_redo || has_beside(s, "-wal", 1);
}

/*
 * A reader, too, must write the log's index (-shm). Where it may not (read-only media, somebody
 * else's directory) it reads the file as one that nobody writes, unless there is a log beside it:
 * then somebody may be writing, or the last changes are only in the log.
 */
static int connect_reader(struct store *s, bool *empty, struct err *err)
{
	struct buf name = {0};
	struct err why = {0};
	int rc = connect_to(s, s->path, SQLITE_OPEN_READWRITE, &why);

	if (!rc)
		rc = check_version(s, empty, &why);
	if (!rc)
		return db_exec(s, "PRAGMA query_only=1", err);
	if (rc != ERR_ACCESS && rc != ERR_IO)
		return err_set(err, rc, "%s", why.text);
	disconnect(s);
	if (has_log(s))
		return err_set(err, rc,
			       "%s: its newest incidents are in a log beside it (-wal), which "
			       "only a user who may write there can read",
			       why.text);
	rc = file_uri(s->path, "?immutable=1", &name, err);
	if (!rc)
		rc = connect_to(s, name.data, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
	if (!rc)
		rc = check_version(s, empty, err);
	buf_free(&name);
	return rc;
}

/* Run a pragma whose answer is a text, and compare it. *same false: `answer` has the text. */
static int pragma_says(struct store *s, const char *sql, const char *wanted, char answer[200],
		       bool *same, struct err *err)
{
	struct query q = db_query(s, sql, NO_ARGS, err);
	int rc = query_step(&q);
	const char *text;

	if (rc < 0)
		return rc;
	text = rc ? column_text(&q, 0) : NULL;
	snprintf(answer, 200, "%s", text ? text : "no answer");
	*same = strcmp(answer, wanted) == 0;
	for (; *answer; answer++) {
		if ((unsigned char)*answer < ' ')
			*answer = ' ';
	}
	query_reset(&q);
	return 0;
}

/*
 * Once at each start of a recorder: 24 ms for 60 MB. Damage is believed the second time only,
 * because a moment's lack of memory is reported as damage, too.
 */
static int quick_check(struct store *s, struct err *err)
{
	char answer[200];
	bool same;
	int rc = pragma_says(s, "PRAGMA quick_check(1)", "ok", answer, &same, err);

	if (!rc && !same)
		rc = pragma_says(s, "PRAGMA quick_check(1)", "ok", answer, &same, err);
	if (!rc && !same) {
		s->damaged = true;
		rc = err_set(err, ERR_FORMAT,
			     "%s is damaged (%s): `recorder salvage` gets out what is "
			     "readable, `recorder collect` makes a new one",
			     s->path, answer);
	}
	return rc;
}

static int use_log(struct store *s, struct err *err)
{
	char answer[200];
	bool same;
	int rc = pragma_says(s, "PRAGMA journal_mode=WAL", "wal", answer, &same, err);

	if (!rc && !same)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "%s cannot have a write-ahead log: a store must be on "
			     "a local disk",
			     s->path);
	if (!rc)
		rc = db_exec(s, "PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=OFF;"
			     "PRAGMA journal_size_limit=16777216", err);
	return rc;
}

static int add_session(struct store *s, void *arg, struct err *err)
{
	(void)arg;
	return db_insert(s, "INSERT INTO session(pid, started_wall_ns) VALUES(?, ?)",
			 ARGS(arg_u64(os_pid()), arg_u64(os_wall_ns())), &s->session_id, err);
}

/* The lock comes after the first look: nothing is made beside a file that is not ours. */
static int connect_writer(struct store *s, struct err *err)
{
	bool empty = false;
	int rc = connect_to(s, s->path, SQLITE_OPEN_READWRITE, err);

	if (!rc)
		rc = check_version(s, &empty, err);
	if (!rc && s->mode == STORE_RECORD) {
		rc = take_lock(s, err);
		if (!rc)
			rc = check_version(s, &empty, err);
	}
	if (!rc && sqlite3_db_readonly(s->db, "main"))
		rc = db_error(s->path, NULL, SQLITE_READONLY, err);
	if (!rc && s->uses_redo)
		rc = db_exec(s, "PRAGMA journal_mode=MEMORY; PRAGMA foreign_keys=OFF", err);
	if (!rc && empty)
		rc = schema_create(s, err);
	return rc || s->uses_redo ? rc : use_log(s, err);
}

static int start_recording(struct store *s, struct err *err)
{
	int rc = interner_new(s->history ? KNOWN_FRAMES_HISTORY : KNOWN_FRAMES_MAX, &s->interner,
			      err);

	if (!rc)
		rc = quick_check(s, err);
	if (!rc)
		rc = schema_extend(s, err);
	if (rc)
		return rc;
	space_make_reserve(s);
	rc = db_transact(s, TX_NORMAL, add_session, NULL, err);
	if (!rc)
		rc = partial_convert(s, err);
	if (!rc)
		sweep_look(s);
	place_note(s);
	return rc;
}

static int open_file(struct store *s, struct err *err)
{
	bool missing = false, empty = false;
	int rc = check_file(s->path, &missing, err);

	if (rc)
		return rc;
	if (missing && s->mode != STORE_RECORD)
		return err_set(
			err, ERR_NOT_FOUND,
			"there is no store %s: `recorder collect` makes one, --store names another",
			s->path);
	if (missing)
		rc = make_file(s->path, err);
	/* Another recorder may have made it since we looked: the lock will decide between us. */
	if (rc == ERR_EXISTS)
		rc = 0;
	s->uses_redo = (missing && s->history) || has_beside(s, REDO_SUFFIX, 0);
	if (!rc && s->uses_redo && s->mode == STORE_EDIT)
		return err_set(err, ERR_BUSY, "%s is still being written: change it when it is "
			       "complete", s->path);
	if (!rc && s->mode == STORE_READ)
		return connect_reader(s, &empty, err);
	if (!rc)
		rc = connect_writer(s, err);
	s->deflater = deflater_new(false);
	if (!rc && !s->deflater)
		rc = err_memory(err, "while opening %s", s->path);
	if (!rc && s->mode == STORE_RECORD)
		rc = start_recording(s, err);
	return rc;
}

static int open_as(const char *path, enum store_mode mode, bool history, bool *damaged,
		   struct store **out, struct err *err)
{
	struct store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s || !(s->path = text_dup(path, SIZE_MAX))) {
		free(s);
		return err_memory(err, "while opening %s", path);
	}
	s->mode = mode;
	s->history = history;
	s->floor_bytes = history ? 0 : UINT64_MAX;
	rc = open_file(s, err);
	if (rc) {
		*damaged = s->damaged;
		store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

int store_open_saying(const char *path, enum store_mode mode, bool *damaged, struct store **out,
		      struct err *err)
{
	return open_as(path, mode, false, damaged, out, err);
}

int store_open_history(const char *path, struct store **out, struct err *err)
{
	struct store *s = NULL;
	bool damaged;
	int rc = open_as(path, STORE_RECORD, true, &damaged, &s, err);

	if (!rc)
		rc = db_exec(s, "PRAGMA synchronous=FULL", err);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

int store_open(const char *path, enum store_mode mode, struct store **out, struct err *err)
{
	bool damaged;

	return store_open_saying(path, mode, &damaged, out, err);
}

void store_close(struct store *s)
{
	if (!s)
		return;
	place_disconnect(s);
	sums_end(s);
	free(s->put);
	interner_free(s->interner);
	deflater_free(s->deflater);
	os_close(s->lock);
	free(s->path);
	free(s);
}
