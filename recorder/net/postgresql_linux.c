#include "net/postgresql.h"

#include "base/library_linux.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* What is used of libpq 9.2 and later (libpq-fe.h, postgres_ext.h), without its headers. */
enum {CONNECTION_OK = 0, CONNECTION_BAD = 1};
enum {PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2, PGRES_COPY_IN = 4};
enum {PGRES_POLLING_FAILED, PGRES_POLLING_READING, PGRES_POLLING_WRITING, PGRES_POLLING_OK};
#define PG_DIAG_SQLSTATE 'C'
#define COPY_BYTES ((size_t)1 << 20)

struct library {
	void *(*start)(const char *const *keys, const char *const *values, int expand);
	int (*poll)(void *c);
	int (*status)(const void *c);
	int (*socket)(const void *c);
	int (*set_nonblocking)(void *c, int on);
	int (*send)(void *c, const char *sql);
	int (*flush)(void *c);
	int (*consume)(void *c);
	int (*is_busy)(void *c);
	void *(*result)(void *c);
	int (*copy_data)(void *c, const char *bytes, int n);
	int (*copy_end)(void *c, const char *error);
	int (*result_status)(const void *r);
	char *(*result_field)(const void *r, int which);
	char *(*error)(const void *c);
	int (*nrows)(const void *r);
	int (*nfields)(const void *r);
	char *(*value)(const void *r, int row, int field);
	void (*clear)(void *r);
	void (*finish)(void *c);
	void *(*on_notice)(void *c, void (*notice)(void *ctx, const char *text), void *ctx);
};
static const char *const names[] = {
	"PQconnectStartParams", "PQconnectPoll", "PQstatus", "PQsocket", "PQsetnonblocking",
	"PQsendQuery", "PQflush", "PQconsumeInput", "PQisBusy", "PQgetResult", "PQputCopyData",
	"PQputCopyEnd", "PQresultStatus", "PQresultErrorField", "PQerrorMessage", "PQntuples",
	"PQnfields", "PQgetvalue", "PQclear", "PQfinish", "PQsetNoticeProcessor", NULL,
};

struct pg {
	struct library lib;
	void *c;
	uint32_t stall_s;
	char state[6];
};

static int load(struct library *lib, struct err *err)
{
	const char *missing = library_load("libpq.so.5", names, lib);

	return !missing ? 0 : err_set(err, ERR_UNSUPPORTED, "libpq is needed, and %s is missing: "
				      "install libpq5 (Debian), libpq (Fedora) or postgresql-libs "
				      "(others)", missing);
}

int pg_check(struct err *err)
{
	struct library lib;

	return load(&lib, err);
}

/* The first line of what libpq says. */
static int fail(struct pg *p, struct err *err)
{
	char text[500];
	char *at;

	snprintf(text, sizeof(text), "%s", p->lib.error(p->c));
	text[strcspn(text, "\r\n")] = '\0';
	for (at = text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	return err_set(err, ERR_IO, "%s", *text ? text : "the connection to PostgreSQL is lost");
}

/* Until the server takes bytes or has some for us. */
static int wait_for(struct pg *p, short events, struct err *err)
{
	struct pollfd fd = {.fd = p->lib.socket(p->c), .events = events};

	if (poll(&fd, 1, (int)p->stall_s * 1000) != 0)
		return 0;
	p->state[0] = '\0';
	return err_set(err, ERR_IO, "PostgreSQL has not answered for %u s", p->stall_s);
}

static int connect(struct pg *p, struct err *err)
{
	int state = PGRES_POLLING_WRITING, rc = 0;

	while (!rc && state != PGRES_POLLING_OK) {
		if (state == PGRES_POLLING_FAILED || p->lib.status(p->c) == CONNECTION_BAD)
			return fail(p, err);
		rc = wait_for(p, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, err);
		if (!rc)
			state = p->lib.poll(p->c);
	}
	return rc;
}

static void no_notice(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}

int pg_open(const struct pg_place *place, struct pg **out, struct err *err)
{
	/* What stands before the URL is a default, what follows it counts. */
	const char *keys[8] = {"application_name", "client_encoding"}, *values[8] = {"recorder",
										     "UTF8"};
	struct pg *p = calloc(1, sizeof(*p));
	unsigned n = 2;
	int rc;

	if (!p)
		return err_memory(err, "for a database");
	rc = load(&p->lib, err);
	if (rc) {
		free(p);
		return rc;
	}
	p->stall_s = place->stall_s && place->stall_s < 100000 ? place->stall_s : 60;
	if (!place->local) {
		keys[n] = "sslmode";
		values[n++] = "verify-full";
	}
	keys[n] = "dbname";
	values[n++] = place->url;
	if (place->pass_file) {
		keys[n] = "passfile";
		values[n++] = place->pass_file;
	}
	if (place->ca_file) {
		keys[n] = "sslrootcert";
		values[n++] = place->ca_file;
	}
	p->c = p->lib.start(keys, values, 1);
	rc = p->c ? connect(p, err) : err_memory(err, "for a database");
	if (!rc) {
		p->lib.set_nonblocking(p->c, 1);
		p->lib.on_notice(p->c, no_notice, NULL);
		*out = p;
		return 0;
	}
	pg_close(p);
	return rc;
}

void pg_close(struct pg *p)
{
	if (!p)
		return;
	if (p->c)
		p->lib.finish(p->c);
	free(p);
}

static int flush(struct pg *p, struct err *err)
{
	int left, rc = 0;

	while (!rc && (left = p->lib.flush(p->c)) != 0) {
		if (left < 0)
			return fail(p, err);
		rc = wait_for(p, POLLIN | POLLOUT, err);
		if (!rc && !p->lib.consume(p->c))
			rc = fail(p, err);
	}
	return rc;
}

/* The next result, which is NULL after the last one. */
static int next_result(struct pg *p, void **result, struct err *err)
{
	int rc = flush(p, err);

	while (!rc && p->lib.is_busy(p->c)) {
		rc = wait_for(p, POLLIN, err);
		if (!rc && !p->lib.consume(p->c))
			rc = fail(p, err);
	}
	*result = rc ? NULL : p->lib.result(p->c);
	return rc;
}

static int take_rows(struct pg *p, const void *r, table_row *row, void *ctx, struct err *err)
{
	const char *fields[TABLE_FIELDS_MAX];
	int n = p->lib.nfields(r), rows = p->lib.nrows(r), i, k, rc = 0;

	n = n < (int)TABLE_FIELDS_MAX ? n : (int)TABLE_FIELDS_MAX;
	for (i = 0; !rc && i < rows; i++) {
		for (k = 0; k < n; k++)
			fields[k] = p->lib.value(r, i, k);
		rc = row(ctx, fields, (unsigned)n, err);
	}
	return rc;
}

/* All results of a statement. copies: stop where the server waits for rows of a COPY. */
static int take_results(struct pg *p, bool copies, table_row *row, void *ctx, struct err *err)
{
	const char *state;
	void *r = NULL;
	int rc, first = 0, status;

	for (;;) {
		rc = next_result(p, &r, err);
		if (rc || !r)
			return rc ? rc : first;
		status = p->lib.result_status(r);
		if (!first && status == PGRES_TUPLES_OK && row) {
			first = take_rows(p, r, row, ctx, err);
		} else if (!first && status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK &&
			   status != PGRES_COPY_IN) {
			state = p->lib.result_field(r, PG_DIAG_SQLSTATE);
			snprintf(p->state, sizeof(p->state), "%s", state ? state : "");
			first = fail(p, err);
		}
		p->lib.clear(r);
		if (copies && status == PGRES_COPY_IN)
			return first;
	}
}

static int send(struct pg *p, const char *sql, struct err *err)
{
	p->state[0] = '\0';
	return p->lib.send(p->c, sql) ? 0 : fail(p, err);
}

int pg_ask(struct pg *p, const char *sql, table_row *row, void *ctx, struct err *err)
{
	int rc = send(p, sql, err);

	return rc ? rc : take_results(p, false, row, ctx, err);
}

int pg_copy(struct pg *p, const char *sql, const struct buf *text, struct err *err)
{
	size_t at = 0, n;
	int put, rc = send(p, sql, err);

	if (!rc)
		rc = take_results(p, true, NULL, NULL, err);
	while (!rc && at < text->len) {
		n = text->len - at < COPY_BYTES ? text->len - at : COPY_BYTES;
		put = p->lib.copy_data(p->c, text->data + at, (int)n);
		if (put < 0)
			rc = fail(p, err);
		if (put > 0)
			at += n;
		if (!rc)
			rc = flush(p, err);
	}
	if (!rc && p->lib.copy_end(p->c, NULL) < 0)
		rc = fail(p, err);
	return rc ? rc : take_results(p, false, NULL, NULL, err);
}

const char *pg_state(const struct pg *p)
{
	return p->state;
}
