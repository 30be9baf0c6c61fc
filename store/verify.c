/* Looking for damage: the pages of the file, and everything that each incident needs. */
#include "store/store_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verifying {
	struct store *s;
	store_finding *each;
	void *ctx;
	struct store_verified *out;
};

static void find_damage(struct verifying *v, const char *what)
{
	v->out->findings++;
	v->each(v->ctx, what);
}

/* 0 for damage, which is reported; other errors end the search. */
static int take_error(struct verifying *v, int rc, const struct err *why, struct err *err)
{
	if (rc == ERR_FORMAT || rc == ERR_IO)
		find_damage(v, why->text);
	else if (rc)
		return err_set(err, (enum err_code)rc, "%s", why->text);
	return 0;
}

static int verify_pages(struct verifying *v, struct err *err)
{
	struct err why = {0};
	struct query q = db_query(v->s, "PRAGMA integrity_check(20)", NO_ARGS, &why);
	int rc;

	while ((rc = query_step(&q)) > 0) {
		const char *text = column_text(&q, 0);

		if (text && strcmp(text, "ok") != 0)
			find_damage(v, text);
	}
	return take_error(v, rc, &why, err);
}

static int count_missing(struct verifying *v, int64_t id, int64_t *n, struct err *err)
{
	return db_int(v->s,
		      "SELECT count(*) FROM incident_segment x WHERE x.incident_id=? AND NOT EXISTS"
		      " (SELECT 1 FROM segment s WHERE s.id=x.segment_id)", ARGS(arg_int(id)), n,
		      err);
}

static int verify_incident(struct verifying *v, int64_t id, struct err *err)
{
	uint32_t before = v->out->findings;
	struct incident in = {0};
	struct err why = {0};
	char text[700];
	int64_t missing = 0;
	int rc = count_missing(v, id, &missing, &why);

	if (!rc && missing) {
		snprintf(text, sizeof(text), "incident %" PRId64 ": %" PRId64 " of its segments "
			 "are missing", id, missing);
		find_damage(v, text);
	}
	if (!rc)
		rc = store_load(v->s, id, &in, &why);
	if (rc == ERR_NOT_FOUND)
		return 0;                    /* deleted meanwhile */
	if (!rc && in.damage) {
		snprintf(text, sizeof(text), "incident %" PRId64 ": %.600s", id, in.damage);
		find_damage(v, text);
	}
	incident_free(&in);
	rc = take_error(v, rc, &why, err);
	v->out->incidents++;
	v->out->damaged += v->out->findings > before;
	return rc;
}

int store_verify(struct store *s, store_finding *each, void *ctx, struct store_verified *out,
		 struct err *err)
{
	struct verifying v = {s, each, ctx, out};
	struct ids ids = {0};
	struct err why = {0};
	struct query q;
	uint32_t i;
	int rc;

	*out = (struct store_verified){0};
	rc = verify_pages(&v, err);
	if (rc)
		return rc;
	q = db_query(s, "SELECT id FROM incident ORDER BY id", NO_ARGS, &why);
	rc = take_error(&v, ids_collect(&q, &ids), &why, err);
	for (i = 0; !rc && i < ids.n; i++)
		rc = verify_incident(&v, ids.ids[i], err);
	free(ids.ids);
	return rc;
}
