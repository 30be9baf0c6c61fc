/*
 * PostgreSQL, by libpq, which is loaded when somebody wants it: the program does not need it. Linux
 * only. What no answer comes to for stall_s is given up, also by a server that is stopped. One
 * thread each.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_place {
	const char *url;                     /* "postgresql://user@host:5432/db?sslmode=..." */
	bool local;                          /* this machine's: TLS is not asked for */
	/* libpq's files, or NULL: HOST:PORT:DB:USER:PASSWORD of mode 0600; whom to trust. */
	const char *pass_file, *ca_file;
	uint32_t stall_s;                    /* 0 = 60 */
};

/* A row of a table that a database has answered: its fields as texts. Returns 0 to go on. */
typedef int table_row(void *ctx, const char *const *fields, unsigned n, struct err *err);
#define TABLE_FIELDS_MAX 16u

struct pg;
/* Whether libpq is there. ERR_UNSUPPORTED: the sentence says what to install. */
int pg_check(struct err *err);
/* ERR_IO: the server's sentence; ERR_UNSUPPORTED */
int pg_open(const struct pg_place *place, struct pg **out, struct err *err);
void pg_close(struct pg *p);                 /* NULL allowed */
/* Run one statement; row NULL = its rows do not matter. ERR_IO: what the server says of it. */
int pg_ask(struct pg *p, const char *sql, table_row *row, void *ctx, struct err *err);
/* Run "COPY ... FROM STDIN" with this text. */
int pg_copy(struct pg *p, const char *sql, const struct buf *text, struct err *err);
/* The SQLSTATE of the last error of both; "" = the connection is lost. */
const char *pg_state(const struct pg *p);
