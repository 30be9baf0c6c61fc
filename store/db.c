#include "store/interner_private.h"

#include "base/array.h"

#include <stdio.h>

/* ---- errors --------------------------------------------------------------------------------- */

/* By primary result code; "%s" is the store's path. */
static const struct db_sentence {
	int sqlite_rc;
	enum err_code code;
	const char *text, *advice;
} sentences[] = {
	{SQLITE_FULL, ERR_FULL, "the disk of %s is full",
	 "free some space there, or choose another place with --store"},
	{SQLITE_BUSY, ERR_BUSY, "%s was locked by another program for 5 s",
	 "end that program (a backup? a database tool?) or its transaction, and try again"},
	{SQLITE_LOCKED, ERR_BUSY, "%s is locked by another part of this program", "try again"},
	{SQLITE_READONLY, ERR_ACCESS, "%s cannot be written",
	 "give this user permission to write to it and its directory"},
	{SQLITE_PERM, ERR_ACCESS, "%s cannot be opened", "check the permissions of the file"},
	{SQLITE_CANTOPEN, ERR_ACCESS, "%s cannot be opened",
	 "check that this user may read and write it and its directory"},
	{SQLITE_CORRUPT, ERR_FORMAT, "%s is damaged",
	 "`recorder salvage` gets out what is readable, `recorder collect` makes a new one"},
	{SQLITE_NOTADB, ERR_FORMAT, "%s is not a store of incidents",
	 "choose another file with --store"},
	{SQLITE_CONSTRAINT, ERR_FORMAT, "the rows of %s contradict each other",
	 "move it away; a new one is made"},
	{SQLITE_NOMEM, ERR_MEMORY, "out of memory while using %s", NULL},
	{SQLITE_TOOBIG, ERR_LIMIT, "a value is too large for %s", NULL},
	{SQLITE_ERROR, ERR_FORMAT, "%s does not have the tables of a store of incidents",
	 "choose another file with --store"},
};

static const struct db_sentence *sentence_of(int primary)
{
	size_t i;

	for (i = 0; i < COUNT_OF(sentences); i++) {
		if (sentences[i].sqlite_rc == primary)
			return &sentences[i];
	}
	return NULL;
}

/*
 * SQLite says "I/O error" or "cannot open" when the disk is full where it does not expect that (the
 * -shm and -wal files): errno knows better. NULL: errno says it all.
 */
static const struct db_sentence *choose_sentence(int sqlite_rc, int os_error)
{
	int primary = sqlite_rc & 0xff;

	if (sqlite_rc == SQLITE_IOERR_NOMEM)
		return sentence_of(SQLITE_NOMEM);
	if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && os_error &&
	    os_error_code(os_error) == ERR_FULL)
		return sentence_of(SQLITE_FULL);
	if (primary == SQLITE_CANTOPEN && os_error && os_error_code(os_error) == ERR_LIMIT)
		return NULL;                 /* no descriptor is free: no file's fault */
	return sentence_of(primary);
}

int db_error(const char *path, sqlite3 *db, int sqlite_rc, struct err *err)
{
	int os_error = db ? sqlite3_system_errno(db) : 0;
	const struct db_sentence *sentence = choose_sentence(sqlite_rc, os_error);
	char what[400];

	if (!sentence && os_error)
		return err_os_code(err, os_error, "cannot use %s", path);
	if (!sentence)
		return err_set(err, ERR_IO, "cannot use %s: %s", path, sqlite3_errstr(sqlite_rc));
	snprintf(what, sizeof(what), sentence->text, path);
	return err_set(err, sentence->code, "%s (%.120s)%s%s", what,
		       db ? sqlite3_errmsg(db) : sqlite3_errstr(sqlite_rc),
		       sentence->advice ? ": " : "", sentence->advice ? sentence->advice : "");
}

int db_fail(struct store *s, struct err *err)
{
	int primary = sqlite3_errcode(s->db) & 0xff;

	s->damaged |= primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
	return db_error(s->path, s->db, sqlite3_extended_errcode(s->db), err);
}

/* ---- queries -------------------------------------------------------------------------------- */

/* Each place in the program has a literal of its own, so there are no more than those. */
static int find_statement(struct store *s, const char *sql, sqlite3_stmt **out, struct err *err)
{
	struct kept_statement *kept;
	uint32_t i;

	for (i = 0; i < s->nstatements; i++) {
		kept = &s->statements[i];
		if (kept->sql == sql) {
			sqlite3_reset(kept->st);
			sqlite3_clear_bindings(kept->st);
			*out = kept->st;
			return 0;
		}
	}
	if (ARRAY_ROOM(s->statements, s->statements_cap, s->nstatements + 1))
		return err_memory(err, "while using %s", s->path);
	kept = &s->statements[s->nstatements];
	if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &kept->st, NULL))
		return db_fail(s, err);
	kept->sql = sql;
	s->nstatements++;
	*out = kept->st;
	return 0;
}

static void bind(sqlite3_stmt *st, int at, const struct argument *a)
{
	if (a->type == ARG_INT)
		sqlite3_bind_int64(st, at, a->number);
	else if (a->type == ARG_NUM && a->num == a->num)   /* mingw's isnan() goes through float */
		sqlite3_bind_double(st, at, a->num);
	else if (a->type == ARG_TEXT)
		sqlite3_bind_text(st, at, a->bytes, -1, SQLITE_STATIC);
	else if (a->type == ARG_BLOB)
		sqlite3_bind_blob64(st, at, a->n ? a->bytes : NULL, a->n, SQLITE_STATIC);
}

/* Without a statement SQLite refuses to bind, and the query stays failed. */
struct query db_query(struct store *s, const char *sql, const struct argument *args,
		      struct err *err)
{
	struct query q = {.s = s, .err = err};
	int i;

	if (s->progress)
		atomic_fetch_add(s->progress, 1);
	q.rc = find_statement(s, sql, &q.st, err);
	for (i = 0; args && args[i].type != ARG_END; i++)
		bind(q.st, i + 1, &args[i]);
	return q;
}

int query_step(struct query *q)
{
	int rc = q->rc;

	if (rc)
		return rc;
	rc = sqlite3_step(q->st);
	if (rc == SQLITE_ROW)
		return 1;
	rc = rc == SQLITE_DONE ? 0 : db_fail(q->s, q->err);
	sqlite3_reset(q->st);
	return rc;
}

int db_run(struct store *s, const char *sql, const struct argument *args, struct err *err)
{
	struct query q = db_query(s, sql, args, err);
	int rc;

	do {
		rc = query_step(&q);
	} while (rc > 0);
	return rc;
}

int db_insert(struct store *s, const char *sql, const struct argument *args, int64_t *id,
	      struct err *err)
{
	int rc = db_run(s, sql, args, err);

	*id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

int db_int(struct store *s, const char *sql, const struct argument *args, int64_t *out,
	   struct err *err)
{
	struct query q = db_query(s, sql, args, err);
	int rc = query_step(&q);

	if (rc <= 0)
		return rc ? rc : ERR_NOT_FOUND;
	*out = column_int(&q, 0);
	query_reset(&q);
	return 0;
}

void query_reset(struct query *q)
{
	sqlite3_reset(q->st);
}

int64_t column_int(const struct query *q, int column)
{
	return sqlite3_column_int64(q->st, column);
}

uint64_t column_u64(const struct query *q, int column)
{
	return (uint64_t)sqlite3_column_int64(q->st, column);
}

bool column_is_null(const struct query *q, int column)
{
	return sqlite3_column_type(q->st, column) == SQLITE_NULL;
}

const char *column_text(const struct query *q, int column)
{
	return (const char *)sqlite3_column_text(q->st, column);
}

struct blob column_blob(const struct query *q, int column)
{
	struct blob blob = {.bytes = sqlite3_column_blob(q->st, column)};

	blob.n = (size_t)sqlite3_column_bytes(q->st, column);
	return blob;
}

int db_exec(struct store *s, const char *sql, struct err *err)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL))
		return db_fail(s, err);
	return 0;
}

/* ---- transactions --------------------------------------------------------------------------- */

#define PAUSE_MAX_NS (25 * NS_PER_MS)

static int run_transaction(struct store *s, store_work *work, void *arg, struct err *err)
{
	int rc = db_exec(s, "BEGIN IMMEDIATE", err);

	if (rc)
		return rc;
	rc = work(s, arg, err);
	if (!rc)
		rc = db_exec(s, "COMMIT", err);
	if (!rc)
		return 0;
	/* Some errors, a full disk among them, have rolled back already. */
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	interner_forget(s->interner);
	return rc;
}

int db_transact(struct store *s, enum tx durable, store_work *work, void *arg, struct err *err)
{
	int rc = 0;

	/* In WAL mode NORMAL keeps the file consistent; FULL also waits for the disk at the end. */
	if (durable == TX_DURABLE)
		rc = db_exec(s, "PRAGMA synchronous=FULL", err);
	if (!rc)
		rc = run_transaction(s, work, arg, err);
	if (rc == ERR_FULL && space_drop_reserve(s)) {
		space_checkpoint(s);
		rc = run_transaction(s, work, arg, err);
	}
	if (durable == TX_DURABLE)
		sqlite3_exec(s->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
	return rc;
}

int db_transact_and_pause(struct store *s, store_work *work, void *arg, struct err *err)
{
	uint64_t start_ns = os_now_ns(), took_ns;
	int rc = db_transact(s, TX_NORMAL, work, arg, err);

	took_ns = os_now_ns() - start_ns;
	os_sleep_ns(took_ns < PAUSE_MAX_NS ? took_ns : PAUSE_MAX_NS);
	return rc;
}
