/* Statements, transactions, and SQLite's errors as sentences. */
#include "store/store_private.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors --------------------------------------------------------------------------------- */

/* Keyed by primary result code; "%s" is the store's path. */
static const struct db_sentence {
	int sqlite_rc;
	enum err_code code;
	const char *text, *advice;
} sentences[] = {
	{SQLITE_FULL, ERR_FULL, "the disk of %s is full",
	 "free some space there, or choose another place with --store"},
	{SQLITE_BUSY, ERR_BUSY, "%s was held by another program for 5 s",
	 "end that program (a backup? a database tool?) or its transaction, and try again"},
	{SQLITE_LOCKED, ERR_BUSY, "%s is held by another part of this program", "try again"},
	{SQLITE_READONLY, ERR_ACCESS, "%s cannot be written",
	 "give this user the right to write to it and its directory"},
	{SQLITE_PERM, ERR_ACCESS, "%s cannot be opened", "check the rights of the file"},
	{SQLITE_CANTOPEN, ERR_ACCESS, "%s cannot be opened",
	 "check that this user may read and write it and its directory"},
	{SQLITE_CORRUPT, ERR_FORMAT, "%s is damaged",
	 "move it away (a new one is made; `sqlite3 FILE .recover` may still read it)"},
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
 * SQLite says "I/O error" or "cannot open" for a full disk where it does not expect one (the -shm
 * and -wal files): errno knows better.
 */
static const struct db_sentence *choose(int sqlite_rc, int os_error)
{
	int primary = sqlite_rc & 0xff;

	if (sqlite_rc == SQLITE_IOERR_NOMEM)
		return sentence_of(SQLITE_NOMEM);
	if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && os_error &&
	    os_error_code(os_error) == ERR_FULL)
		return sentence_of(SQLITE_FULL);
	return sentence_of(primary);
}

int db_error(const char *path, sqlite3 *db, int sqlite_rc, struct err *err)
{
	int os_error = db ? sqlite3_system_errno(db) : 0;
	const struct db_sentence *sentence = choose(sqlite_rc, os_error);
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
	return db_error(s->path, s->db, sqlite3_extended_errcode(s->db), err);
}

/* ---- statements ----------------------------------------------------------------------------- */

/* At most one for each place in the program, as each has a literal of its own. */
static int reserve_statement(struct store *s, struct err *err)
{
	uint32_t cap = s->statements_cap + 64;
	struct kept_statement *bigger;

	if (s->nstatements < s->statements_cap)
		return 0;
	bigger = realloc(s->statements, cap * sizeof(*bigger));
	if (!bigger)
		return err_memory(err, "while using %s", s->path);
	s->statements = bigger;
	s->statements_cap = cap;
	return 0;
}

int db_statement(struct store *s, const char *sql, struct args *out, struct err *err)
{
	struct kept_statement *kept = s->statements;
	uint32_t i;
	int rc;

	out->n = 0;
	for (i = 0; i < s->nstatements; i++) {
		if (kept[i].sql == sql) {
			sqlite3_reset(kept[i].st);
			sqlite3_clear_bindings(kept[i].st);
			out->st = kept[i].st;
			return 0;
		}
	}
	rc = reserve_statement(s, err);
	if (rc)
		return rc;
	kept = s->statements;
	if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &kept[i].st, NULL))
		return db_fail(s, err);
	kept[i].sql = sql;
	s->nstatements++;
	out->st = kept[i].st;
	return 0;
}

void arg_int(struct args *a, int64_t v)
{
	sqlite3_bind_int64(a->st, ++a->n, v);
}

void arg_u64(struct args *a, uint64_t v)
{
	sqlite3_bind_int64(a->st, ++a->n, (int64_t)v);
}

void arg_num(struct args *a, double v)
{
	/* isnan() of mingw goes through float. */
	if (v != v)
		arg_null(a);
	else
		sqlite3_bind_double(a->st, ++a->n, v);
}

void arg_text(struct args *a, const char *text)
{
	sqlite3_bind_text(a->st, ++a->n, text, -1, SQLITE_STATIC);
}

void arg_blob(struct args *a, const void *bytes, size_t n)
{
	sqlite3_bind_blob64(a->st, ++a->n, n ? bytes : NULL, n, SQLITE_STATIC);
}

void arg_null(struct args *a)
{
	sqlite3_bind_null(a->st, ++a->n);
}

struct blob column_blob(sqlite3_stmt *st, int column)
{
	struct blob blob = {.bytes = sqlite3_column_blob(st, column)};

	blob.n = (size_t)sqlite3_column_bytes(st, column);
	return blob;
}

int db_step(struct store *s, sqlite3_stmt *st, struct err *err)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		rc = db_fail(s, err);
	else
		rc = 0;
	sqlite3_reset(st);
	return rc;
}

int db_run(struct store *s, sqlite3_stmt *st, struct err *err)
{
	int rc;

	do {
		rc = db_step(s, st, err);
	} while (rc > 0);
	return rc;
}

int db_exec(struct store *s, const char *sql, struct err *err)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL))
		return db_fail(s, err);
	return 0;
}

int db_int(struct store *s, sqlite3_stmt *st, int64_t *out, struct err *err)
{
	int rc = db_step(s, st, err);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return ERR_NOT_FOUND;
	*out = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return 0;
}

#define REST_MAX_NS (25 * NS_PER_MS)

/* ---- transactions --------------------------------------------------------------------------- */

static int attempt(struct store *s, store_work *work, void *arg, struct err *err)
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

	/* In WAL mode NORMAL keeps the file consistent, FULL also waits for the disk at the end. */
	if (durable == TX_DURABLE)
		rc = db_exec(s, "PRAGMA synchronous=FULL", err);
	if (!rc)
		rc = attempt(s, work, arg, err);
	if (rc == ERR_FULL && space_drop_reserve(s)) {
		space_checkpoint(s);
		rc = attempt(s, work, arg, err);
	}
	if (durable == TX_DURABLE)
		sqlite3_exec(s->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
	return rc;
}

int db_transact_and_rest(struct store *s, store_work *work, void *arg, struct err *err)
{
	uint64_t start_ns = os_now_ns(), took_ns;
	int rc = db_transact(s, TX_NORMAL, work, arg, err);

	took_ns = os_now_ns() - start_ns;
	os_sleep_ns(took_ns < REST_MAX_NS ? took_ns : REST_MAX_NS);
	return rc;
}
