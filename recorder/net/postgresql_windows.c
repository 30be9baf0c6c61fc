#include "net/postgresql.h"

int pg_check(struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "databases are reached on Linux only");
}

int pg_open(const struct pg_place *place, struct pg **out, struct err *err)
{
	(void)place;
	(void)out;
	return pg_check(err);
}

void pg_close(struct pg *p)
{
	(void)p;
}

int pg_ask(struct pg *p, const char *sql, table_row *row, void *ctx, struct err *err)
{
	(void)p;
	(void)sql;
	(void)row;
	(void)ctx;
	return pg_check(err);
}

int pg_copy(struct pg *p, const char *sql, const struct buf *text, struct err *err)
{
	(void)p;
	(void)sql;
	(void)text;
	return pg_check(err);
}

const char *pg_state(const struct pg *p)
{
	(void)p;
	return "";
}
