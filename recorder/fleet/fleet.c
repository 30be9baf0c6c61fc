#include "fleet/answer_private.h"

#include "base/fit.h"
#include "base/os.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_MIN 4u                         /* fewer have no spread to differ from */
#define SHARE_MIN_PCT 2.0                    /* of a host's time, to differ at all */

/* ---- list ------------------------------------------------------------------------------------ */

enum { LIST_COLUMNS = 7 };

static void put_incident(struct fleet *f, const struct grid *g, uint32_t i, int *widths,
			 bool measures)
{
	char time[OS_TIME_TEXT_BYTES], second[OS_TIME_TEXT_BYTES], id[9];
	const char *reason = text_at(g, i, 3), *rule = text_at(g, i, 2);
	struct sheet_cell cells[LIST_COLUMNS] = {
		{.head = "UUID", .text = id},
		{.head = "TIME (UTC)         ", .text = second},
		{.head = "WINDOW", .kind = SHEET_SECONDS,
		 .v = (number_at(g, i, 7) - number_at(g, i, 6)) / 1e9},
		{.head = "SAMPLES", .kind = SHEET_COUNT, .n = count_at(g, i, 8)},
		{.head = "LOST", .kind = SHEET_COUNT, .n = count_at(g, i, 9), .is_loss = true},
		{.head = "HOST", .text = text_at(g, i, 1)},
		{.head = "WHAT FIRED", .kind = SHEET_NAME, .text = *reason ? reason : rule},
	};
	unsigned k;

	os_time_text(count_at(g, i, 5), time);
	snprintf(second, sizeof(second), "%.10s %.8s", time, time + 11);
	snprintf(id, sizeof(id), "%.8s", text_at(g, i, 0));
	if (measures) {
		sheet_measure(cells, LIST_COLUMNS, widths);
		return;
	}
	for (k = 0; k < LIST_COLUMNS; k++)
		cells[k].width = widths[k];
	if (!i)
		sheet_heading(&f->sheet, cells, LIST_COLUMNS);
	sheet_row(&f->sheet, cells, LIST_COLUMNS);
}

static void put_incident_json(struct fleet *f, const struct grid *g, uint32_t i)
{
	static const char *const keys[] = {"uuid", "host", "rule", "reason", "signature"};
	struct json *j = &f->sheet.j;
	char time[OS_TIME_TEXT_BYTES];
	unsigned k;

	sheet_open(&f->sheet);
	for (k = 0; k < COUNT_OF(keys); k++)
		json_key_str(j, keys[k], text_at(g, i, k));
	os_time_text(count_at(g, i, 5), time);
	json_key_str(j, "time", time);
	json_key_num(j, "window_s", (number_at(g, i, 7) - number_at(g, i, 6)) / 1e9);
	json_key_uint(j, "samples", count_at(g, i, 8));
	json_key_uint(j, "lost", count_at(g, i, 9));
	sheet_close(&f->sheet);
}

static int list(struct fleet *f, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	int widths[LIST_COLUMNS] = {0};
	struct grid g = {0};
	uint32_t i;
	int rc;

	fleet_incidents(&q);
	rc = fleet_ask(f, &q, 10, &g, err);
	for (i = 0; !rc && !f->sheet.json && i < grid_rows(&g); i++)
		put_incident(f, &g, i, widths, true);
	for (i = 0; !rc && i < grid_rows(&g); i++) {
		if (f->sheet.json)
			put_incident_json(f, &g, i);
		else
			put_incident(f, &g, i, widths, false);
	}
	if (!rc && !f->sheet.json && grid_rows(&g) == f->o->rows)
		sheet_put(&f->sheet, SHEET_PLAIN, "  there may be more; --rows shows more\n");
	grid_free(&g);
	return rc;
}

/* ---- top ------------------------------------------------------------------------------------- */

/* How the weights of a metric are shown: as report shows them. */
static const struct unit {
	const char *self_key, *self, *all_key, *all, *sort;
	double scale;
} units[METRIC_UNITS] = {
	[UNIT_NS] = {"self_ms", "SELF MS", "inclusive_ms", "INCL MS", " TIME", 1e6},
	[UNIT_BYTES] = {"self_kb", "SELF KB", "inclusive_kb", "INCL KB", " BYTES", 1024},
	[UNIT_EVENTS] = {"self", "SELF", "inclusive", "INCL", " COUNT", 1},
};

static const struct unit *unit_of(const struct fleet *f)
{
	return &units[stream_metrics[f->stream].unit];
}

static void put_function(struct fleet *f, const char *name, double self, double all, double whole,
			 uint64_t hosts, bool is_heading)
{
	const struct unit *unit = unit_of(f);
	const struct sheet_cell cells[] = {
		{"row", .text = "function"},
		{"name", name, .kind = SHEET_NAME, .text = name},
		{unit->self_key, unit->self, 12, SHEET_NUMBER, .v = self / unit->scale,
		 .digits = 1},
		{"self_pct", "SELF %", 8, SHEET_SHARE, .v = whole > 0 ? 100 * self / whole : 0},
		{unit->all_key, unit->all, 13, SHEET_NUMBER, .v = all / unit->scale, .digits = 1},
		{"inclusive_pct", "INCL %", 8, SHEET_SHARE, .v = whole > 0 ? 100 * all / whole : 0},
		{"hosts", "HOSTS", 7, SHEET_COUNT, .n = hosts},
	};

	(is_heading ? sheet_heading : sheet_row)(&f->sheet, cells, COUNT_OF(cells));
}

static double whole_of(const struct spread *s)
{
	double whole = 0;
	uint32_t i;

	for (i = 0; i < s->nhosts; i++)
		whole += number_at(&s->hosts, i, 2);
	return whole;
}

static void put_totals(struct fleet *f, const struct grid *g, double whole)
{
	struct sheet *p = &f->sheet;
	char text[4][NUMBER_BYTES];

	if (p->json) {
		sheet_open(p);
		json_key_str(&p->j, "row", "fleet");
		json_key_uint(&p->j, "incidents", count_at(g, 0, 0));
		json_key_uint(&p->j, "hosts", count_at(g, 0, 1));
		json_key_num(&p->j, "recorded_s", number_at(g, 0, 2) / 1e9);
		json_key_uint(&p->j, "samples", count_at(g, 0, 3));
		json_key_uint(&p->j, "lost", count_at(g, 0, 4));
		json_key_str(&p->j, "metric", stream_metrics[f->stream].name);
		json_key_num(&p->j, "weight", whole);
		sheet_close(p);
		return;
	}
	sheet_line(p, "Fleet", SHEET_PLAIN, "%s %s of %s hosts, windows of %s in all",
		   text_count(count_at(g, 0, 0), text[0]),
		   f->filter.history ? "intervals of the history" : "incidents",
		   text_count(count_at(g, 0, 1), text[1]),
		   text_seconds(number_at(g, 0, 2) / 1e9, text[2]));
	sheet_line(p, "Samples", count_at(g, 0, 4) ? SHEET_LOSS : SHEET_PLAIN, "%s, %s lost",
		   text_count(count_at(g, 0, 3), text[0]), text_count(count_at(g, 0, 4), text[1]));
}

/* Those with most time of their own, and what each host has of them. */
static int ask_functions(struct fleet *f, struct grid *functions, struct spread *s, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	int rc;

	fleet_functions(&q, 1, 1);
	rc = fleet_ask(f, &q, 6, functions, err);
	return rc ? rc : spread_make(f, functions, s, NULL, err);
}

static void put_functions(struct fleet *f, const struct grid *functions, const struct spread *s)
{
	const double whole = whole_of(s);
	char title[40];
	uint32_t i;

	snprintf(title, sizeof(title), "FUNCTION, BY SELF%s", unit_of(f)->sort);
	put_function(f, title, 0, 0, 0, 0, true);
	for (i = 0; i < grid_rows(functions); i++)
		if (number_at(functions, i, 1) > 0)
			put_function(f, text_at(functions, i, 0), number_at(functions, i, 1),
				     number_at(functions, i, 2), whole, hosts_with(s, i), false);
}

static int top(struct fleet *f, struct err *err)
{
	struct grid totals = {0}, functions = {0};
	struct spread s = {0};
	int rc = fleet_ask_totals(f, &totals, err);

	if (!rc)
		rc = ask_functions(f, &functions, &s, err);
	if (!rc)
		put_functions(f, &functions, &s);
	grid_free(&functions);
	grid_free(&totals);
	spread_free(&s);
	return rc;
}

/* ---- report ---------------------------------------------------------------------------------- */

static int put_signatures(struct fleet *f, struct err *err)
{
	char first[OS_TIME_TEXT_BYTES] = "", last[OS_TIME_TEXT_BYTES] = "";
	struct fleet_query q = fleet_question(f);
	struct buf name = {0};
	struct grid g = {0};
	uint32_t i, n;
	int rc;

	fleet_signatures(&q);
	rc = fleet_ask(f, &q, 6, &g, err);
	for (i = 0, n = rc ? 0 : grid_rows(&g) + 1; i < n; i++) {
		const struct sheet_cell cells[] = {
			{"row", .text = "signature"},
			{"rule", .text = i ? text_at(&g, i - 1, 0) : ""},
			{"signature", .text = i ? text_at(&g, i - 1, 1) : ""},
			{NULL, "SIGNATURE: RULE, SERVICE, HOTTEST FUNCTION", .kind = SHEET_NAME,
			 .text = buf_text(&name)},
			{"hosts", "HOSTS", 7, SHEET_COUNT, .n = i ? count_at(&g, i - 1, 3) : 0},
			{"incidents", "INCIDENTS", 11, SHEET_COUNT,
			 .n = i ? count_at(&g, i - 1, 2) : 0},
			{"first", "FIRST (UTC)", -19, .text = first},
			{"last", "LAST (UTC)", -19, .text = last},
		};

		if (!i) {
			sheet_heading(&f->sheet, cells, COUNT_OF(cells));
			continue;
		}
		os_time_text(count_at(&g, i - 1, 4), first);
		os_time_text(count_at(&g, i - 1, 5), last);
		if (!f->sheet.json)
			first[19] = last[19] = '\0';
		buf_reset(&name);
		buf_printf(&name, "%s: %s", text_at(&g, i - 1, 0), text_at(&g, i - 1, 1));
		sheet_row(&f->sheet, (struct sheet_cell[]){cells[0], cells[1], cells[2],
			  {NULL, NULL, .kind = SHEET_NAME, .text = buf_text(&name)}, cells[4],
			  cells[5], cells[6], cells[7]}, COUNT_OF(cells));
	}
	buf_free(&name);
	grid_free(&g);
	return rc;
}

static int put_services(struct fleet *f, double whole, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	struct grid g = {0};
	uint32_t i, n;
	int rc;

	fleet_services(&q);
	rc = fleet_ask(f, &q, 5, &g, err);
	for (i = 0, n = rc ? 0 : grid_rows(&g) + 1; i < n; i++) {
		double weight = i ? number_at(&g, i - 1, 3) : 0;
		const char *version = i ? text_at(&g, i - 1, 1) : "";
		const struct sheet_cell cells[] = {
			{"row", .text = "service"},
			{"service", "SERVICE", .kind = SHEET_NAME,
			 .text = i ? text_at(&g, i - 1, 0) : ""},
			{unit_of(f)->self_key, unit_of(f)->self, 12, SHEET_NUMBER,
			 .v = weight / unit_of(f)->scale, .digits = 1},
			{"self_pct", "SELF %", 8, SHEET_SHARE,
			 .v = whole > 0 ? 100 * weight / whole : 0},
			{"hosts", "HOSTS", 7, SHEET_COUNT, .n = i ? count_at(&g, i - 1, 2) : 0},
			{"version", "VERSION", -16, .text = *version ? version : "-"},
		};

		(i ? sheet_row : sheet_heading)(&f->sheet, cells, COUNT_OF(cells));
	}
	grid_free(&g);
	return rc;
}

static void put_outlier(struct fleet *f, const char *host, const char *name, double value,
			double middle, double spread, bool is_heading)
{
	const struct sheet_cell cells[] = {
		{"row", .text = "outlier"},
		{"host", "HOST", -20, .text = host},
		{"self_pct", "SELF %", 8, SHEET_SHARE, .v = value},
		{"median_pct", "MEDIAN %", 10, SHEET_SHARE, .v = middle},
		{"spread_pct", "SPREAD", 8, SHEET_NUMBER, .v = spread, .digits = 2},
		{"name", "HOSTS THAT DIFFER, IN", .kind = SHEET_NAME, .text = name},
	};

	(is_heading ? sheet_heading : sheet_row)(&f->sheet, cells, COUNT_OF(cells));
}

/* Hosts whose share of a function, of their own time, is far from that of the others. */
static int put_outliers(struct fleet *f, const struct grid *functions, struct spread *s,
			struct err *err)
{
	double *shares = calloc((size_t)s->nhosts + 1, sizeof(*shares)), middle, spread, far;
	bool any = false;
	uint32_t i, k;

	if (!shares)
		return err_memory(err, "for hosts");
	for (k = 0; s->nhosts >= HOSTS_MIN && k < s->nnames; k++) {
		for (i = 0; i < s->nhosts; i++) {
			double all = number_at(&s->hosts, i, 2);

			shares[i] = all > 0 ? 100 * s->values[(size_t)k * s->nhosts + i] / all : 0;
		}
		middle = median_and_spread(s, shares, &spread);
		far = fmax(SPREADS * spread, SHARE_MIN_PCT);
		for (i = 0; i < s->nhosts; i++) {
			if (!(fabs(shares[i] - middle) > far))
				continue;
			if (!any)
				put_outlier(f, "", "", 0, 0, 0, true);
			put_outlier(f, text_at(&s->hosts, i, 0), text_at(functions, k, 0),
				    shares[i], middle, spread, false);
			any = true;
		}
	}
	if (!any && !f->sheet.json)
		sheet_put(&f->sheet, SHEET_PLAIN, s->nhosts < HOSTS_MIN
			? "\n%u hosts are too few to say which one differs\n"
			: "\nNone of %u hosts differs from the rest\n", s->nhosts);
	free(shares);
	return 0;
}

static int report(struct fleet *f, struct err *err)
{
	struct grid totals = {0}, functions = {0};
	struct spread s = {0};
	int rc = fleet_ask_totals(f, &totals, err);

	if (!rc)
		rc = ask_functions(f, &functions, &s, err);
	if (!rc) {
		put_totals(f, &totals, whole_of(&s));
		rc = put_signatures(f, err);
	}
	if (!rc)
		rc = put_services(f, whole_of(&s), err);
	if (!rc) {
		put_functions(f, &functions, &s);
		rc = put_outliers(f, &functions, &s, err);
	}
	if (!rc && f->o->output)
		rc = fleet_put_page(f, &totals, err);
	grid_free(&totals);
	grid_free(&functions);
	spread_free(&s);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int schema(const struct options *o, struct err *err)
{
	const struct fleet_schema s = {.clickhouse = o->clickhouse, .cluster = o->cluster,
				       .ttl_days = o->ttl_days};
	struct buf text = {0};
	int rc;

	if (o->clickhouse == o->postgresql)
		return err_set(err, ERR_USAGE, "fleet schema: --clickhouse or --postgresql?");
	if (o->cluster && (o->postgresql || strpbrk(o->cluster, "'\\/")))
		return err_set(err, ERR_USAGE, "--cluster needs --clickhouse and a plain name");
	fleet_put_schema(&s, &text);
	rc = buf_check(&text, "a schema", err);
	if (!rc)
		rc = print_text(&text, err);
	buf_free(&text);
	return rc;
}

static int refuse_metric(const char *metric, struct err *err)
{
	struct buf known = {0};
	unsigned i;
	int rc;

	for (i = 0; i < STREAMS_MAX; i++)
		if (target_takes_stream(i))
			buf_printf(&known, "%s%s", known.len ? ", " : "", stream_metrics[i].name);
	rc = err_set(err, ERR_USAGE, "--metric %.60s is not sent to databases; these are: %s",
		     metric, buf_text(&known));
	buf_free(&known);
	return rc;
}

static int open_fleet(struct fleet *f, struct err *err)
{
	const struct options *o = f->o;
	int rc;

	f->stream = o->metric ? stream_from_text(o->metric) : STREAM_CPU;
	if (f->stream == STREAMS_MAX || !target_takes_stream(f->stream))
		return refuse_metric(o->metric, err);
	f->filter = (struct fleet_filter){
		.host = o->host, .service = o->home[HOME_SERVICE], .release = o->release,
		.rule = o->rule_text, .metric = stream_metrics[f->stream].name,
		.history = o->history,
	};
	if (o->last_ns != OPTION_NO_TIME)
		f->filter.from_wall_ns = os_wall_ns() - (uint64_t)o->last_ns;
	if (!o->at)
		return err_set(err, ERR_USAGE, "fleet: which database? --at clickhouse://HOST/DB "
			       "or --at postgresql://USER@HOST/DB");
	if (strncmp(o->at, "s3://", 5) == 0)
		return err_set(err, ERR_USAGE, "a bucket is no database: list, show, report, "
			       "export, diff and events read it: --store %.200s", o->at);
	rc = target_parse(o->at, &f->target, err);
	if (!rc && !f->target.kind->database)
		rc = err_set(err, ERR_USAGE, "%.200s is no database; there are clickhouse:// and "
			     "postgresql://", o->at);
	if (!rc)
		rc = target_load_secrets(&f->target, err);
	if (!rc && f->target.kind->database == DATABASE_CLICKHOUSE)
		rc = net_open(&f->net, err);
	if (!rc && database_open(&f->db, &f->target, f->net, err)) {
		err_prefix(err, "%s", buf_text(&f->target.name));
		rc = err ? err->code : ERR_IO;
	}
	return rc;
}

int fleet_run(const struct options *o, struct err *err)
{
	static const struct {
		const char *name;
		int (*run)(struct fleet *f, struct err *err);
	} verbs[] = {{"list", list}, {"top", top}, {"report", report}, {"diff", fleet_diff},
		     {"fold", fleet_fold_days}};
	struct fleet f = {.o = o};
	unsigned i;
	int rc;

	if (o->pattern && strcmp(o->pattern, "schema") == 0)
		return schema(o, err);
	for (i = 0; i < COUNT_OF(verbs) && (!o->pattern || strcmp(o->pattern, verbs[i].name)); i++)
		;
	if (i == COUNT_OF(verbs))
		return err_set(err, ERR_USAGE, "fleet: list, top, report, diff, fold or schema?");
	if (o->output && (verbs[i].run != report || o->json))
		return err_set(err, ERR_USAGE, "fleet: --output is for the page of `fleet report`");
	sheet_init(&f.sheet, o);
	f.sheet.color &= !o->output;
	if (o->output)
		f.sheet.columns = FIT_ALL;
	rc = open_fleet(&f, err);
	if (!rc)
		fleet_find_folds(&f);
	if (!rc)
		rc = verbs[i].run(&f, err);
	if (!rc && !f.sheet.out.len)
		rc = err_set(err, ERR_NOT_FOUND, "no incident in %s matches",
			     buf_text(&f.target.name));
	if (!rc && !o->output)
		rc = sheet_print(&f.sheet, err);
	sheet_free(&f.sheet);
	buf_free(&f.folds);
	buf_free(&f.fold_days);
	database_close(&f.db);
	net_close(f.net);
	target_free(&f.target);
	return rc;
}
