/*
 * Several incidents at once: which ones --id 3,5-9, --all, --rule, --since and several --store
 * choose; and all of them as one, for report and export.
 */
#include "cli/cmd.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "model/incident_join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cmd_several(const struct options *o)
{
	return o->ids.n > 1 || o->all_incidents || o->rule_text || o->more_stores.n ||
	       o->group_id || (o->host && !o->ids.n);
}

/* ---- which ----------------------------------------------------------------------------------- */

struct choosing {
	const struct options *o;
	const struct id_list *ids;           /* with none, all */
	uint64_t since_wall_ns;              /* 0 = ever */
	struct id_list found;                /* newest first */
	bool failed;
};

static bool is_chosen(const struct choosing *c, const struct incident_head *h)
{
	const char *rule = c->o->rule_text;
	uint32_t i;

	for (i = 0; i < c->ids->n && c->ids->items[i] != h->id; i++)
		;
	return (!c->ids->n || i < c->ids->n) && h->trigger_wall_ns >= c->since_wall_ns &&
	       (!c->o->host || (h->host && text_same_fold(h->host, c->o->host))) &&
	       (!c->o->group_id || incident_is_of_group(h, c->o->group_id)) &&
	       (!rule || (h->rule && text_has_fold(h->rule, rule)) ||
		(h->reason && text_has_fold(h->reason, rule)));
}

static int choose(void *ctx, const struct incident_head *h)
{
	struct choosing *c = ctx;

	if (!is_chosen(c, h))
		return 0;
	c->failed = ARRAY_NEXT(c->found.items, c->found.n) != 0;
	if (!c->failed)
		c->found.items[c->found.n++] = h->id;
	return c->failed;
}

/* An id that was asked for and is not there. */
static void note_missing(const struct choosing *c, const char *store)
{
	uint32_t i, k;

	for (i = 0; i < c->ids->n; i++) {
		for (k = 0; k < c->found.n && c->found.items[k] != c->ids->items[i]; k++)
			;
		if (k == c->found.n && !c->o->rule_text && !c->since_wall_ns)
			cmd_note("incident %" PRId64 " is not in %s: the others are taken",
				 c->ids->items[i], store);
	}
}

static int each_of_store(const struct options *o, const char *path, const struct id_list *ids,
			 cmd_incident *each, void *ctx, struct err *err)
{
	struct choosing c = {.o = o, .ids = ids};
	struct store *store = NULL;
	struct incident in = {0};
	uint32_t i;
	int rc = cmd_store_open_at(o, path, STORE_READ, &store, err);

	if (o->last_ns != OPTION_NO_TIME)
		c.since_wall_ns = os_wall_ns() - (uint64_t)o->last_ns;
	if (!rc)
		rc = store_list(store, choose, &c, err);
	if (!rc && c.failed)
		rc = err_memory(err, "for the numbers of incidents");
	if (!rc)
		note_missing(&c, path);
	for (i = c.found.n; !rc && i-- > 0;) {
		rc = store_load(store, c.found.items[i], &in, err);
		if (!rc)
			rc = each(ctx, path, &in, err);
		incident_free(&in);
	}
	free(c.found.items);
	store_close(store);
	return rc;
}

int cmd_each_incident(const struct options *o, const char *store, const struct id_list *ids,
		      cmd_incident *each, void *ctx, struct err *err)
{
	struct buf path = {0};
	uint32_t i;
	int rc = 0;

	if (store)
		return each_of_store(o, store, ids, each, ctx, err);
	rc = cmd_store_path(o, STORE_READ, &path, err);
	if (!rc)
		rc = each_of_store(o, buf_text(&path), ids, each, ctx, err);
	for (i = 0; !rc && i < o->more_stores.n; i++)
		rc = each_of_store(o, o->more_stores.items[i], ids, each, ctx, err);
	buf_free(&path);
	return rc;
}

/* ---- as one ---------------------------------------------------------------------------------- */

struct gathering {
	const struct options *o;             /* without what chooses incidents */
	cmd_filter_incident *filter;
	struct incident *out;
	uint32_t empty;                      /* incidents of which the filter has left nothing */
	struct err why;                      /* of the last */
	struct buf remarks;                  /* of all, a line each */
};

/* "Incident 3: 2026-11-28T10:00:00Z after the deployment" */
static void put_remarks(struct buf *out, const char *name, const char *at)
{
	size_t n;

	for (; at && *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		buf_printf(out, "%s%s: ", out->len ? "\n" : "", name);
		buf_put(out, at, n);
	}
}

static int gather(void *ctx, const char *store, struct incident *in, struct err *err)
{
	struct gathering *g = ctx;
	struct buf name = {0};
	int rc = g->filter(g->o, in, &g->why);

	/* A process that one of them does not have is no reason to show none. */
	if (rc == ERR_NOT_FOUND) {
		g->empty++;
		return 0;
	}
	if (rc)
		return err_set(err, (enum err_code)rc, "incident %" PRId64 ": %s", in->head.id,
			       g->why.text);
	if (in->damage)
		cmd_note("incident %" PRId64 " is damaged: %s", in->head.id, in->damage);
	buf_printf(&name, "Incident %" PRId64, in->head.id);
	if (in->head.rule && strcmp(in->head.rule, "file") == 0)
		buf_printf(&name, ": %s", in->head.reason ? in->head.reason : "?");
	if (g->o->group_id)
		buf_printf(&name, " of %s", in->head.host ? in->head.host : "?");
	else if (g->o->more_stores.n)
		buf_printf(&name, " of %s", os_base_name(store));
	rc = buf_check(&name, "an incident's name", err);
	if (!rc)
		rc = incident_add_part(g->out, in, buf_text(&name), err);
	put_remarks(&g->remarks, buf_text(&name), in->head.remarks);
	buf_free(&name);
	return rc;
}

/* In place of the first one's reason, for titles and notes. */
static int name_set(struct incident *set, struct err *err)
{
	struct buf text = {0};
	uint32_t i;
	int rc;

	buf_printf(&text, "%" PRIu32 " incidents as one, their triggers at one moment: ",
		   set->nparts);
	for (i = 0; i < set->nparts; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", set->parts[i] + strlen("Incident "));
	rc = buf_check(&text, "the set's name", err);
	if (!rc) {
		free(set->head.reason);
		set->head.reason = text.data;
		return 0;
	}
	buf_free(&text);
	return rc;
}

int cmd_load_several(const struct options *o, cmd_filter_incident *filter, struct incident *out,
		     struct err *err)
{
	struct options part = *o;
	struct incident made = {0};
	struct gathering g = {.o = &part, .filter = filter, .out = &made};
	int rc = incident_init(&made) ? err_memory(err, "for several incidents") : 0;

	part.last_ns = OPTION_NO_TIME;       /* it has chosen incidents, no window */
	if (o->at || o->from.text || o->to.text)
		rc = err_set(err, ERR_USAGE, "--at, and --from and --to with a time choose one "
			     "window of the history; with several incidents give --from and --to "
			     "in seconds from the trigger");
	if (!rc)
		rc = cmd_each_incident(o, NULL, &o->ids, gather, &g, err);
	if (!rc && !made.nparts && g.empty)
		rc = err_set(err, ERR_NOT_FOUND, "none of %" PRIu32 " incidents matches: %s",
			     g.empty, g.why.text);
	else if (!rc && !made.nparts)
		rc = err_set(err, ERR_NOT_FOUND, "no incident matches; 'recorder list' shows "
			     "what there is");
	else if (!rc && g.empty)
		cmd_note("%" PRIu32 " of %" PRIu32 " incidents have no match", g.empty,
			 g.empty + made.nparts);
	if (!rc)
		rc = name_set(&made, err);
	if (!rc)
		rc = buf_check(&g.remarks, "remarks", err);
	if (!rc && g.remarks.len)
		made.head.remarks = g.remarks.data;
	else
		buf_free(&g.remarks);
	if (rc)
		incident_free(&made);
	else
		*out = made;
	return rc;
}
