#include "ship/database.h"

#include "base/text.h"
#include "net/tsv.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX ((size_t)96 << 20)

/* "https://host:8443/?database=NAME" */
static void put_clickhouse_url(struct database *d)
{
	const char *url = d->target->url, *host = strstr(url, "://") + 3, *end, *name, *port;
	bool plain = text_starts_fold(url, "http://");

	end = host + strcspn(host, "/?#");
	port = memchr(host, ']', (size_t)(end - host));
	port = memchr(port ? port : host, ':', (size_t)(end - (port ? port : host)));
	buf_printf(&d->url, "%s%.*s%s/?wait_end_of_query=1", plain ? "http://" : "https://",
		   (int)(end - host), host, port ? "" : plain ? ":8123" : ":8443");
	name = *end == '/' ? end + 1 : end;
	if (strcspn(name, "/?#"))
		buf_printf(&d->url, "&database=%.*s", (int)strcspn(name, "/?#"), name);
}

int database_open(struct database *d, const struct target *t, struct net *net, struct err *err)
{
	const struct pg_place place = {
		.url = t->url, .local = target_is_local(t), .pass_file = t->auth_file,
		.ca_file = t->ca_file, .stall_s = t->stall_s,
	};

	database_close(d);
	d->target = t;
	d->net = net;
	d->clickhouse = t->kind->database == DATABASE_CLICKHOUSE;
	if (!d->clickhouse)
		return pg_open(&place, &d->pg, err);
	put_clickhouse_url(d);
	return buf_check(&d->url, "a URL", err);
}

void database_close(struct database *d)
{
	pg_close(d->pg);
	buf_free(&d->url);
	*d = (struct database){0};
}

/* ---- ClickHouse ------------------------------------------------------------------------------ */

static int take_rows(struct net_answer *a, table_row *row, void *ctx, struct err *err)
{
	const char *fields[TABLE_FIELDS_MAX];
	char *at = a->body.data;
	unsigned n;
	int rc = 0;

	while (!rc && at && (n = tsv_next(&at, fields, TABLE_FIELDS_MAX)) != 0)
		rc = row(ctx, fields, n, err);
	return rc;
}

/* insert: "INSERT ..." of the rows in text; or NULL: text is a statement. */
static int post(struct database *d, const char *insert, const char *text, size_t n,
		struct net_answer *a, struct err *err)
{
	struct net_request r = {.method = "POST", .text = text, .nbytes = n,
				.answer_max = ANSWER_MAX};
	struct buf url = {0};
	int rc;

	buf_puts(&url, buf_text(&d->url));
	if (insert) {
		buf_puts(&url, "&query=");
		url_put_encoded(&url, insert, false);
	}
	r.url = buf_text(&url);
	target_prepare(d->target, &r);
	rc = buf_check(&url, "a URL", err);
	if (!rc)
		rc = net_ask(d->net, &r, a, err);
	net_request_free(&r);
	buf_free(&url);
	return rc;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

/* What kind of answer an SQLSTATE is (Appendix A of its manual), in HTTP's words. */
static int status_of(const char *state)
{
	if (!strcmp(state, "23505"))
		return 503;                  /* another sender was quicker: look again */
	if (!strncmp(state, "22", 2) || !strncmp(state, "23", 2))
		return 400;                  /* these rows */
	if (!strncmp(state, "42", 2) || !strncmp(state, "28", 2) || !strncmp(state, "3", 1))
		return 404;                  /* no such table, nobody who may use it... */
	return 503;
}

/* rc of asking: a refusal of the server's is an answer, and a lost connection is closed. */
static int judge(struct database *d, int rc, const struct err *why, struct net_answer *a,
		 struct err *err)
{
	const char *state = pg_state(d->pg);

	a->status = 200;
	buf_reset(&a->body);
	if (!rc)
		return 0;
	if (rc == ERR_IO && *state) {
		a->status = status_of(state);
		buf_puts(&a->body, why->text);
		return buf_check(&a->body, "an answer", err);
	}
	pg_close(d->pg);
	d->pg = NULL;
	return err_set(err, (enum err_code)rc, "%s", why->text);
}

/* ---- both ------------------------------------------------------------------------------------ */

int database_ask(struct database *d, const char *sql, table_row *row, void *ctx,
		 struct net_answer *a, struct err *err)
{
	struct err why = {0};
	int rc;

	if (!d->clickhouse)
		return judge(d, pg_ask(d->pg, sql, row, ctx, &why), &why, a, err);
	rc = post(d, NULL, sql, strlen(sql), a, err);
	return rc || a->status != 200 || !row ? rc : take_rows(a, row, ctx, err);
}

int database_put(struct database *d, const char *into, const struct buf *rows,
		 struct net_answer *a, struct err *err)
{
	struct buf sql = {0};
	struct err why = {0};
	int rc;

	buf_printf(&sql, d->clickhouse ? "INSERT INTO %s FORMAT TabSeparated"
				       : "COPY %s FROM STDIN", into);
	rc = buf_check(&sql, "a statement", err);
	if (!rc && !d->clickhouse)
		rc = judge(d, pg_copy(d->pg, sql.data, rows, &why), &why, a, err);
	else if (!rc)
		rc = post(d, sql.data, buf_text(rows), rows->len, a, err);
	buf_free(&sql);
	return rc;
}
