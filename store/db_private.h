/*
 * SQLite as the store uses it: queries, transactions, and errors as sentences.
 *
 * A statement that is done at once is one call:
 *
 *	return db_run(s, "UPDATE incident SET pinned=? WHERE id=?",
 *		      ARGS(arg_int(pinned), arg_int(id)), err);
 *
 * Rows are stepped through. A query remembers its first error, so a caller looks at the result of
 * query_step() only. Statements are prepared once for each handle and kept until it is closed.
 */
#pragma once

#include "store/blob_private.h"

#include <sqlite3.h>

struct store;

/* ---- arguments ------------------------------------------------------------------------------ */

/*
 * What a question mark stands for. Texts and blobs are borrowed until the statement is reset, so
 * binding allocates nothing and cannot fail.
 */
struct argument {
	enum { ARG_END, ARG_INT, ARG_NUM, ARG_TEXT, ARG_BLOB } type;
	int64_t number;
	double num;
	const void *bytes;
	size_t n;
};

/* All of a statement's arguments, from left to right. */
#define ARGS(...) ((const struct argument[]){__VA_ARGS__, {0}})
#define NO_ARGS NULL

static inline struct argument arg_int(int64_t v)
{
	return (struct argument){.type = ARG_INT, .number = v};
}

/* As the int64_t of the same bits. */
static inline struct argument arg_u64(uint64_t v)
{
	return arg_int((int64_t)v);
}

/* NaN = NULL */
static inline struct argument arg_num(double v)
{
	return (struct argument){.type = ARG_NUM, .num = v};
}

/* NULL = NULL */
static inline struct argument arg_text(const char *text)
{
	return (struct argument){.type = ARG_TEXT, .bytes = text};
}

/* n 0 = NULL */
static inline struct argument arg_blob(const void *bytes, size_t n)
{
	return (struct argument){.type = ARG_BLOB, .bytes = bytes, .n = n};
}

static inline struct argument arg_buf(const struct buf *b)
{
	return arg_blob(b->data, b->len);
}

/* ---- statements ----------------------------------------------------------------------------- */

/*
 * A statement is found again by the address of its text, so sql must be a literal, or one of a
 * constant table. args: ARGS(...) or NO_ARGS.
 */

/* Run to the end: 0 or an error. */
int db_run(struct store *s, const char *sql, const struct argument *args, struct err *err);
/* Run an INSERT; *id is that of the new row. */
int db_insert(struct store *s, const char *sql, const struct argument *args, int64_t *id,
	      struct err *err);
/* The first column of the first row: 0; ERR_NOT_FOUND, without a sentence, when there is none. */
int db_int(struct store *s, const char *sql, const struct argument *args, int64_t *out,
	   struct err *err);
/* SQL without arguments, not kept. Several statements are allowed; their rows are passed over. */
int db_exec(struct store *s, const char *sql, struct err *err);

struct query {
	struct store *s;
	sqlite3_stmt *st;                    /* NULL: rc says why */
	struct err *err;                     /* gets the sentence; may be NULL */
	int rc;                              /* of preparing it */
};

/* The statement, reset, with these arguments. */
struct query db_query(struct store *s, const char *sql, const struct argument *args,
		      struct err *err);
/* 1 there is a row; 0 there is none left; or an error. The statement is reset but for a row. */
int query_step(struct query *q);
void query_reset(struct query *q);

/* Columns of the row at hand; texts and blobs are borrowed until the statement moves. */
int64_t column_int(const struct query *q, int column);
uint64_t column_u64(const struct query *q, int column);
bool column_is_null(const struct query *q, int column);
const char *column_text(const struct query *q, int column);      /* NULL = NULL, or no memory */
struct blob column_blob(const struct query *q, int column);

/* ---- errors and transactions ---------------------------------------------------------------- */

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
