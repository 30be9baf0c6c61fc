#include "store/store_private.h"

#include <inttypes.h>

#define PAGE_ID_MAX ((int64_t)1 << 62)       /* a thousand times what a store uses in its life */

int page_row(struct store *s, const char *sql, int64_t id, struct page_row *out, struct err *err)
{
	int rc;

	out->query = db_query(s, sql, ARGS(arg_int(id)), err);
	rc = query_step(&out->query);
	if (rc <= 0)
		return rc;
	out->first = column_int(&out->query, 0);
	out->last = column_int(&out->query, 1);
	out->data = column_blob(&out->query, 2);
	out->more = column_blob(&out->query, 3);
	return 1;
}

int page_next_id(struct store *s, const char *sql, const char *what, int64_t *id, struct err *err)
{
	int64_t last = 0;
	int rc = db_int(s, sql, NO_ARGS, &last, err);

	if (rc)
		return rc;
	if (last < 0 || last > PAGE_ID_MAX)
		return err_set(err, ERR_FORMAT,
			       "%s is damaged (its %s have ids up to %" PRId64 "): move it away (a "
			       "new one is made; its incidents can still be read)",
			       s->path, what, last);
	*id = last + 1;
	return 0;
}

int page_learn(struct store *s, const struct page_learner *l, int64_t *next, struct err *err)
{
	struct page_row row = {.first = INT64_MAX};
	int64_t id = 0;
	int rc = page_next_id(s, l->last_id, l->what, &id, err);

	while (!rc && !l->knows_enough(s->interner)) {
		rc = page_row(s, l->newest, row.first, &row, err);
		if (rc <= 0)
			break;
		rc = l->learn(s->interner, &row, err);
		query_reset(&row.query);
		/* What a damaged page holds stays unknown, and is stored again. */
		rc = rc == ERR_FORMAT ? 0 : rc;
		row.first--;
	}
	if (!rc)
		*next = id;
	return rc;
}
