/*
 * Several incidents at once: which ones --id 3,5-9, --all, --rule, --since and several --store
 * choose; and all of them as one, for report and export. Groups, one window that the recorders of
 * several machines keep: snapshot --peers makes one, show --group-id puts its hosts side by side.
 */
#include "cli/cmd.h"

#include "analysis/summary.h"
#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "base/text_table.h"
#include "listing/sheet.h"
#include "model/incident_join.h"
#include "ship/ship.h"
#include "ship/target.h"

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
	struct text_table *seen;             /* uuids of a group, which several stores may have */
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
	uint32_t known = c->seen->n, number = known;

	if (!is_chosen(c, h))
		return 0;
	if (c->o->group_id)
		number = text_table_add(c->seen, h->uuid, strlen(h->uuid));
	if (number != known && number != TABLE_NONE)
		return 0;
	c->failed = number == TABLE_NONE || ARRAY_NEXT(c->found.items, c->found.n) != 0;
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
			 struct text_table *seen, cmd_incident *each, void *ctx, struct err *err)
{
	struct choosing c = {.o = o, .ids = ids, .seen = seen};
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
	struct text_table seen = {0};
	struct buf path = {0};
	uint32_t i;
	int rc = store ? 0 : cmd_store_path(o, STORE_READ, &path, err);

	if (!rc)
		rc = each_of_store(o, store ? store : buf_text(&path), ids, &seen, each, ctx, err);
	for (i = 0; !rc && !store && i < o->more_stores.n; i++)
		rc = each_of_store(o, o->more_stores.items[i], ids, &seen, each, ctx, err);
	text_table_free(&seen);
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

enum { HOSTS_SHOWN = 8, FUNCTIONS_SHOWN = 15 };

/* ---- snapshot --peers ------------------------------------------------------------------------ */

#define PEERS_MAX 64u

static void tell(void *ctx, bool bad, const char *text)
{
	(void)ctx;
	(void)bad;
	cmd_note("%s", text);
}

static int read_peers(const char *at, char **out, uint32_t *n, struct err *err)
{
	struct buf target = {0};

	for (*n = 0; *n < PEERS_MAX && target_next_peer(&at, &target); ++*n) {
		if (buf_check(&target, "a peer", err))
			return ERR_MEMORY;
		out[*n] = target.data;
		target = (struct buf){0};
	}
	if (!*n || (*at && *at != ';'))
		return err_set(err, ERR_USAGE, "--peers: expected 1 to %u names, as in web1:9427,"
			       "web2:9427;Auth=FILE", PEERS_MAX);
	return 0;
}

/* To all of them, or only whether they can be asked: id 0. */
int cmd_ask_peers(const struct options *o, const char *store, int64_t id, struct err *err)
{
	char *peers[PEERS_MAX] = {NULL};
	struct ship_config cfg = {.store_path = store, .targets = peers, .again = true,
				  .ids = &id, .nids = 1, .tell = tell};
	struct buf status = {0};
	int rc = read_peers(o->peers, peers, &cfg.ntargets, err);
	uint32_t i;

	if (!rc)
		rc = id ? ship_run(&cfg, &status, err) : ship_check(peers, cfg.ntargets, err);
	if (rc == ERR_IO && id)
		rc = err_set(err, ERR_IO, "incident %" PRId64 " is kept here, but not by every "
			     "peer: see above; ask again: recorder ship %" PRId64 " --to "
			     "peer+https://HOST", id, id);
	for (i = 0; i < cfg.ntargets; i++)
		free(peers[i]);
	buf_free(&status);
	return rc;
}

/* ---- show --group-id ------------------------------------------------------------------------- */

struct host {
	struct incident_head head;
	uint64_t whole;                      /* samples */
};

struct group {
	const struct options *o;
	struct host *hosts;
	uint32_t n;
	uint32_t left_out;                   /* beyond HOSTS_SHOWN */
	struct text_table names;             /* of functions */
	double *shares;                      /* [name * HOSTS_SHOWN + host], in % of its samples */
	uint32_t capacity;
};

static int add_share(struct group *g, const char *name, double share, struct err *err)
{
	uint32_t had = g->names.n, at = text_table_add(&g->names, name, strlen(name));
	size_t row = (size_t)at * HOSTS_SHOWN;

	if (at == TABLE_NONE || ARRAY_ROOM(g->shares, g->capacity, row + HOSTS_SHOWN))
		return err_memory(err, "for functions");
	if (at == had)
		memset(g->shares + row, 0, HOSTS_SHOWN * sizeof(*g->shares));
	g->shares[row + g->n - 1] = share;
	return 0;
}

static int add_host(void *ctx, const char *store, struct incident *in, struct err *err)
{
	const struct incident_filter no_kernel = {.no_kernel = true};
	struct group *g = ctx;
	struct summary s = {0};
	uint32_t i;
	int rc = 0;

	(void)store;
	if (g->n == HOSTS_SHOWN) {
		g->left_out++;
		return 0;
	}
	if (in->damage)
		cmd_note("incident %" PRId64 " is damaged: %s", in->head.id, in->damage);
	if (!g->o->kernel || g->o->no_kernel)
		rc = incident_filter(in, &no_kernel, err);
	if (!rc)
		rc = summary_make(in, false, &s, err);
	if (!rc && ARRAY_NEXT(g->hosts, g->n))
		rc = err_memory(err, "for hosts");
	if (!rc)
		rc = incident_head_copy(&in->head, &g->hosts[g->n].head)
			     ? err_memory(err, "for hosts") : 0;
	if (!rc)
		g->hosts[g->n++].whole = s.whole;
	for (i = 0; !rc && i < s.nfunctions; i++)
		if (s.functions[i].self)
			rc = add_share(g, s.functions[i].name,
				       100.0 * (double)s.functions[i].self / (double)s.whole, err);
	summary_free(&s);
	return rc;
}

static bool has_fired(const struct group *g, const struct incident_head *h)
{
	return strncmp(h->uuid, g->o->group_id, strlen(g->o->group_id)) == 0;
}

static void put_hosts(const struct group *g, struct sheet *p)
{
	uint32_t i;

	for (i = 0; i <= g->n; i++) {
		const struct incident_head *h = &g->hosts[i ? i - 1 : 0].head;
		char time[OS_TIME_TEXT_BYTES];
		const struct sheet_cell cells[] = {
			{"row", .text = "host"},
			{"host", "HOST", -20, .text = h->host ? h->host : "?"},
			{"id", "ID", 6, SHEET_COUNT, .n = (uint64_t)h->id},
			{"uuid", .text = h->uuid},
			{"fired", .kind = SHEET_BOOL, .n = has_fired(g, h)},
			{"time", "TIME (UTC)", -23, .text = time},
			{"window_s", "WINDOW", 10, SHEET_SECONDS,
			 .v = (double)(h->t1_ns - h->t0_ns) / 1e9},
			{"samples", "SAMPLES", 10, SHEET_COUNT, .n = h->samples},
			{"lost", "LOST", 8, SHEET_COUNT, .n = h->lost, .is_loss = true},
			{"reason", "WHAT FIRED", .kind = SHEET_NAME,
			 .text = h->reason ? h->reason : ""},
		};

		os_time_text(h->trigger_wall_ns, time);
		if (!p->json)
			time[23] = '\0';     /* milliseconds are what clocks differ by */
		(i ? sheet_row : sheet_heading)(p, cells, COUNT_OF(cells));
	}
}

/* A line each: they tell the clocks. */
static void put_remark_lines(struct sheet *p, const char *at)
{
	struct buf line = {0};
	size_t n;

	if (at)
		sheet_put(p, SHEET_PLAIN, "\n");
	for (; at && *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		buf_reset(&line);
		buf_put(&line, at, n);
		sheet_text_line(p, "Remark", buf_text(&line));
	}
	buf_free(&line);
}

static double largest_share(const struct group *g, uint32_t name)
{
	double most = -1;
	uint32_t i;

	for (i = 0; i < g->n; i++)
		if (g->shares[(size_t)name * HOSTS_SHOWN + i] > most)
			most = g->shares[(size_t)name * HOSTS_SHOWN + i];
	return most;
}

/* A row of shares; name NULL = the heading. */
static void put_shares(const struct group *g, struct sheet *p, const char *name,
		       const double *shares)
{
	struct sheet_cell cells[HOSTS_SHOWN + 1] = {
		{.head = "FUNCTION, BY ITS OWN SHARE OF EACH HOST'S SAMPLES", .kind = SHEET_NAME,
		 .text = name},
	};
	uint32_t i;

	if (p->json) {
		for (i = 0; name && i < g->n; i++) {
			const struct sheet_cell one[] = {
				{"row", .text = "function"}, {"name", .text = name},
				{"host", .text = g->hosts[i].head.host},
				{"self_pct", .kind = SHEET_NUMBER, .v = shares[i], .digits = 2},
			};

			sheet_row(p, one, COUNT_OF(one));
		}
		return;
	}
	for (i = 0; i < g->n; i++) {
		const char *host = g->hosts[i].head.host ? g->hosts[i].head.host : "?";
		int width = (int)strlen(host) + 2;

		cells[i + 1] = (struct sheet_cell){
			.head = host, .width = width < 10 ? 10 : width, .kind = SHEET_SHARE,
			.v = name ? shares[i] : 0};
	}
	(name ? sheet_row : sheet_heading)(p, cells, g->n + 1);
}

/* Those with the largest share on any host. */
static void put_functions(struct group *g, struct sheet *p)
{
	uint32_t i, k, best;

	put_shares(g, p, NULL, NULL);
	for (k = 0; k < FUNCTIONS_SHOWN && k < g->names.n; k++) {
		double most = 0;

		for (i = 0, best = UINT32_MAX; i < g->names.n; i++) {
			double share = largest_share(g, i);

			if (share > most) {
				most = share;
				best = i;
			}
		}
		if (best == UINT32_MAX)
			break;
		put_shares(g, p, text_table_get(&g->names, best),
			   g->shares + (size_t)best * HOSTS_SHOWN);
		for (i = 0; i < g->n; i++)   /* it is shown */
			g->shares[(size_t)best * HOSTS_SHOWN + i] = -1;
	}
}

int cmd_show_group(const struct options *o, struct err *err)
{
	struct group g = {.o = o};
	struct sheet sheet;
	uint32_t i;
	int rc = 0;

	sheet_init(&sheet, o);
	if (strlen(o->group_id) < GROUP_DIGITS_MIN)
		rc = err_set(err, ERR_USAGE, "--group-id: give %u digits of the uuid, or more",
			     GROUP_DIGITS_MIN);
	if (!rc)
		rc = cmd_each_incident(o, NULL, &o->ids, add_host, &g, err);
	if (!rc && !g.n)
		rc = err_set(err, ERR_NOT_FOUND, "no incident of the group %.40s is here; name the "
			     "stores of its machines: --store A --store B", o->group_id);
	if (!rc) {
		put_hosts(&g, &sheet);
		for (i = 0; !o->json && i < g.n; i++)
			put_remark_lines(&sheet, g.hosts[i].head.remarks);
		put_functions(&g, &sheet);
		if (g.left_out)
			cmd_note("%u more incidents of the group are left out", g.left_out);
		rc = sheet_print(&sheet, err);
	}
	for (i = 0; i < g.n; i++)
		incident_head_free(&g.hosts[i].head);
	free(g.hosts);
	free(g.shares);
	text_table_free(&g.names);
	sheet_free(&sheet);
	return rc;
}
