/*
 * SQLite as the store uses it: queries, transactions, and errors as sentences.
 *
 * A query remembers its first error, so a caller prepares it, binds all its arguments and looks at
 * the result once:
 *
 *	struct query q = db_query(s, "UPDATE incident SET pinned=? WHERE id=?", err);
 *
 *	bind_int(&q, pinned);
 *	bind_int(&q, id);
 *	return query_run(&q);
 *
 * Statements are prepared once for each handle and kept until it is closed.
 */
#pragma once

#include "store/blob_private.h"

#include <sqlite3.h>

struct store;

struct query {
	struct store *s;
	sqlite3_stmt *st;                    /* NULL: rc says why */
	struct err *err;                     /* gets the sentence; may be NULL */
	int rc;                              /* of preparing it */
	int nbound;
};

/*
 * The statement for this text, reset and without bindings. It is found again by the text's address,
 * so sql must be a literal, or one of a constant table.
 */
struct query db_query(struct store *s, const char *sql, struct err *err);

/*
 * Bind the next question mark. Texts and blobs are borrowed until the statement is reset, so
 * binding allocates nothing and cannot fail.
 */
void bind_int(struct query *q, int64_t v);
void bind_u64(struct query *q, uint64_t v);              /* as the int64_t of the same bits */
void bind_num(struct query *q, double v);                /* NaN = NULL */
void bind_text(struct query *q, const char *text);       /* NULL = NULL */
void bind_blob(struct query *q, const void *bytes, size_t n);    /* n 0 = NULL */
void bind_null(struct query *q);

/* 1 there is a row; 0 there is none left; or an error. The statement is reset but for a row. */
int query_step(struct query *q);
/* Step to the end: 0 or an error. */
int query_run(struct query *q);
/* Run an INSERT; *id is that of the new row. */
int query_insert(struct query *q, int64_t *id);
/* The first column of the first row: 0; ERR_NOT_FOUND, without a sentence, when there is none. */
int query_int(struct query *q, int64_t *out);
void query_reset(struct query *q);

/* Columns of the row at hand; texts and blobs are borrowed until the statement moves. */
int64_t column_int(const struct query *q, int column);
uint64_t column_u64(const struct query *q, int column);
const char *column_text(const struct query *q, int column);      /* NULL = NULL, or no memory */
struct blob column_blob(const struct query *q, int column);

/* A statement whose only argument is an integer, run to its end. */
int db_run_int(struct store *s, const char *sql, int64_t v, struct err *err);
/* query_int() of a statement without arguments. */
int db_int(struct store *s, const char *sql, int64_t *out, struct err *err);
/* SQL without arguments, not kept. Several statements are allowed; their rows are passed over. */
int db_exec(struct store *s, const char *sql, struct err *err);

/* The sentence for SQLite's last error on this handle; returns the code. */
int db_fail(struct store *s, struct err *err);
/* The same for an error code of SQLite; db may be NULL. */
int db_error(const char *path, sqlite3 *db, int sqlite_rc, struct err *err);

enum tx { TX_NORMAL, TX_DURABLE };           /* durable: on the disk when it returns */

/*
 * One write transaction: work() runs inside it, and is undone when it returns an error. On a full
 * disk the reserve file is given up and work() runs a second time, so it must start from its
 * arguments again.
 */
typedef int store_work(struct store *s, void *arg, struct err *err);
int db_transact(struct store *s, enum tx durable, store_work *work, void *arg, struct err *err);
/*
 * One transaction of many, followed by a pause as long as it took, 25 ms at most. SQLite polls for
 * the lock, and would rarely find it free in the moment between two transactions.
 */
int db_transact_and_pause(struct store *s, store_work *work, void *arg, struct err *err);
