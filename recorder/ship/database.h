/*
 * The databases that incidents of many machines are sent to, and asked in: ClickHouse, by HTTP, and
 * PostgreSQL, by libpq. Their tables are those of ship/fleet.h. One thread each.
 */
#pragma once

#include "net/postgresql.h"
#include "ship/target.h"

struct database {
	const struct target *target;
	bool clickhouse;
	struct net *net;                     /* of ClickHouse: the caller's */
	struct pg *pg;                       /* opened when it is needed */
	struct buf url;                      /* "http://host:8123/?..." */
};

/* Starts as {0}; closed or failed, it may be opened again. target and net must outlive it. */
int database_open(struct database *d, const struct target *t, struct net *net, struct err *err);
void database_close(struct database *d);

/*
 * Ask; each row goes to `row`, if that is not NULL.
 *
 * a        200, or what kind of refusal it is, and what the database says
 * returns  0: there is an answer; ERR_IO: there is none; an error of row()
 */
int database_ask(struct database *d, const char *sql, table_row *row, void *ctx,
		 struct net_answer *a, struct err *err);
/* Put rows into "TABLE (COLUMN, ...)". The same. */
int database_put(struct database *d, const char *into, const struct buf *rows,
		 struct net_answer *a, struct err *err);
