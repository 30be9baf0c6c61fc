/* The rows of pages: one by an id, what the newest of them hold, the id that comes behind them. */
#include "store/store_private.h"

#include <inttypes.h>

#define PAGE_ID_MAX ((int64_t)1 << 62)       /* a thousand times all that a store can hold in its life */

int page_row(struct store *s, const char *sql, int64_t id, struct page_row *out, struct err *err)
{
	struct args a;
	int rc = db_statement(s, sql, &a, err);

	if (rc)
		return rc;
	arg_int(&a, id);
	rc = db_step(s, a.st, err);
	if (rc <= 0)
		return rc;
	out->st = a.st;
	out->first = sqlite3_column_int64(a.st, 0);
	out->last = sqlite3_column_int64(a.st, 1);
	out->data = column_blob(a.st, 2);
	out->more = column_blob(a.st, 3);
	return 1;
}

int page_next_id(struct store *s, const char *sql, const char *what, int64_t *id, struct err *err)
{
	struct args a;
	int64_t last = 0;
	int rc = db_statement(s, sql, &a, err);

	if (!rc)
		rc = db_int(s, a.st, &last, err);
	if (rc)
		return rc;
	if (last < 0 || last > PAGE_ID_MAX)
		return err_set(err, ERR_FORMAT, "%s is damaged (its %s have ids up to %" PRId64 "): move it away (a new one "
			       "is made; what is in it can be read still)", s->path, what, last);
	*id = last + 1;
	return 0;
}

int page_learn(struct store *s, const struct page_learner *l, int64_t *next, struct err *err)
{
	struct page_row row = {.first = INT64_MAX};
	int64_t id = 0;
	int rc = page_next_id(s, l->last_id, l->what, &id, err);

	while (!rc && !l->enough(s->interner)) {
		rc = page_row(s, l->newest, row.first, &row, err);
		if (rc <= 0)
			break;
		rc = l->learn(s->interner, &row, err);
		sqlite3_reset(row.st);
		rc = rc == ERR_FORMAT ? 0 : rc;
		row.first--;
	}
	if (!rc)
		*next = id;
	return rc;
}
