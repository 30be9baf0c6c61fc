#include "ship/fleet.h"

#include "base/array.h"
#include "base/os.h"
#include "store/history.h"

#include <inttypes.h>

/* ---- the schema ------------------------------------------------------------------------------ */

/* Types are ClickHouse's; order is its sorting key, shard what rows are divided by. */
static const struct table {
	const char *name, *columns, *engine, *order, *shard;
	bool by_day;
} tables[] = {
	{"recorder_incidents",
	 "day Date, uuid String, batch Int64, host String, rule String, reason String, "
	 "signature String, recorder_version String, trigger_ns Int64, from_ns Int64, "
	 "until_ns Int64, samples Int64, lost Int64",
	 "MergeTree", "(day, uuid)", "batch", true},
	{"recorder_series",
	 "day Date, series Int64, host String, service String, version String, metric String",
	 "ReplacingMergeTree", "series", "series", false},
	{"recorder_stacks", "day Date, stack Int64, frames Array(String)",
	 "ReplacingMergeTree", "stack", "stack", false},
	{"recorder_samples",
	 "day Date, batch Int64, series Int64, minute Int32, stack Int64, samples Int64, "
	 "weight Int64",
	 "MergeTree", "(series, minute, stack)", "batch", true},
	{"recorder_batches", "day Date, batch Int64, series Int64, samples Int64, weight Int64",
	 "MergeTree", "(series, batch)", "batch", true},
	{"recorder_days", "day Date, fold Int64, series Int64, stack Int64, samples Int64, "
	 "weight Int64", "MergeTree", "(series, stack)", "series", true},
	{"recorder_folds", "day Date, fold Int64, history UInt8, incidents Int64", "MergeTree",
	 "(day, fold)", "fold", true},
};

static void put_clickhouse(const struct fleet_schema *s, const struct table *t, struct buf *out)
{
	bool replaces = strcmp(t->engine, "MergeTree") != 0;

	buf_printf(out, "CREATE TABLE IF NOT EXISTS %s%s", t->name, s->cluster ? "_local" : "");
	if (s->cluster)
		buf_printf(out, " ON CLUSTER '%s'", s->cluster);
	buf_printf(out, "\n(%s)\nENGINE = ", t->columns);
	if (s->cluster)
		buf_printf(out, "Replicated%s('/clickhouse/tables/{shard}/%s', '{replica}'%s)",
			   t->engine, t->name, replaces ? ", day" : "");
	else
		buf_printf(out, "%s(%s)", t->engine, replaces ? "day" : "");
	if (t->by_day)
		buf_puts(out, " PARTITION BY day");
	buf_printf(out, " ORDER BY %s", t->order);
	if (s->ttl_days)
		buf_printf(out, " TTL day + INTERVAL %" PRIu32 " DAY", s->ttl_days);
	buf_puts(out, ";\n\n");
	if (s->cluster)
		buf_printf(out, "CREATE TABLE IF NOT EXISTS %s ON CLUSTER '%s' AS %s_local\n"
			   "ENGINE = Distributed('%s', currentDatabase(), %s_local, %s);\n\n",
			   t->name, s->cluster, t->name, s->cluster, t->name, t->shard);
}

/*
 * A partition a day, made when its first incident comes, by whoever sends it: he needs no rights
 * on the tables but to call this. The same call removes what is too old.
 */
static const char postgresql_schema[] =
"CREATE TABLE IF NOT EXISTS recorder_incidents (\n"
"  day date NOT NULL, uuid text PRIMARY KEY, batch bigint NOT NULL, host text NOT NULL,\n"
"  rule text NOT NULL, reason text NOT NULL, signature text NOT NULL,\n"
"  recorder_version text NOT NULL, trigger_ns bigint NOT NULL, from_ns bigint NOT NULL,\n"
"  until_ns bigint NOT NULL, samples bigint NOT NULL, lost bigint NOT NULL);\n"
"CREATE INDEX IF NOT EXISTS recorder_incidents_trigger ON recorder_incidents (trigger_ns);\n\n"
"CREATE TABLE IF NOT EXISTS recorder_series (\n"
"  day date NOT NULL, series bigint PRIMARY KEY, host text NOT NULL, service text NOT NULL,\n"
"  version text NOT NULL, metric text NOT NULL);\n\n"
"CREATE TABLE IF NOT EXISTS recorder_stacks (\n"
"  day date NOT NULL, stack bigint PRIMARY KEY, frames text[] NOT NULL);\n\n"
"CREATE TABLE IF NOT EXISTS recorder_samples (\n"
"  day date NOT NULL, batch bigint NOT NULL, series bigint NOT NULL, minute integer NOT NULL,\n"
"  stack bigint NOT NULL, samples bigint NOT NULL, weight bigint NOT NULL)\n"
"PARTITION BY RANGE (day);\n"
"CREATE INDEX IF NOT EXISTS recorder_samples_batch ON recorder_samples (batch);\n\n"
"CREATE OR REPLACE FUNCTION recorder_day(wanted date) RETURNS void LANGUAGE plpgsql\n"
"SECURITY DEFINER SET search_path FROM CURRENT AS $$\n"
"DECLARE\n"
"  part text := 'recorder_samples_' || to_char(wanted, 'YYYYMMDD');\n"
"  old record;\n"
"BEGIN\n"
"  IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;\n"
"  PERFORM pg_advisory_xact_lock(hashtext('recorder_day'));\n";
static const char make_partition[] =
"  IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;\n"
"  EXECUTE format('CREATE TABLE %I (LIKE recorder_samples INCLUDING DEFAULTS)', part);\n"
"  EXECUTE format('ALTER TABLE recorder_samples ATTACH PARTITION %I '\n"
"                 'FOR VALUES FROM (%L) TO (%L)', part, wanted, wanted + 1);\n";

static void put_postgresql(const struct fleet_schema *s, struct buf *out)
{
	buf_puts(out, postgresql_schema);
	if (s->ttl_days)
		buf_printf(out, "  IF wanted < current_date - %" PRIu32 " THEN\n"
			   "    RAISE EXCEPTION 'older than the %" PRIu32 " days that are kept' "
			   "USING ERRCODE = '22008';\n  END IF;\n", s->ttl_days, s->ttl_days);
	buf_puts(out, make_partition);
	if (s->ttl_days) {
		buf_printf(out, "  FOR old IN SELECT c.relname FROM pg_inherits i JOIN pg_class c "
			   "ON c.oid = i.inhrelid\n"
			   "      WHERE i.inhparent = 'recorder_samples'::regclass AND c.relname < "
			   "'recorder_samples_' ||\n"
			   "            to_char(current_date - %" PRIu32 ", 'YYYYMMDD') LOOP\n"
			   "    EXECUTE format('DROP TABLE %%I', old.relname);\n"
			   "  END LOOP;\n", s->ttl_days);
		buf_printf(out, "  DELETE FROM recorder_incidents WHERE day < current_date - %"
			   PRIu32 ";\n"
			   "  DELETE FROM recorder_series WHERE day < current_date - %" PRIu32 ";\n"
			   "  DELETE FROM recorder_stacks WHERE day < current_date - %" PRIu32
			   ";\n", s->ttl_days, s->ttl_days, s->ttl_days);
	}
	buf_puts(out, "END $$;\n");
}

/* recorder_batches gets what recorder_samples gets; and once what that has from before. */
static void put_view(const struct fleet_schema *s, struct buf *out)
{
	static const char sums[] = "SELECT day, batch, series, sum(samples) AS samples, "
				   "sum(weight) AS weight FROM recorder_samples";
	static const char by[] = "GROUP BY day, batch, series;\n";
	const char *local = s->cluster ? "_local" : "";

	buf_puts(out, "CREATE MATERIALIZED VIEW IF NOT EXISTS recorder_batches_view");
	if (s->cluster)
		buf_printf(out, " ON CLUSTER '%s'", s->cluster);
	buf_printf(out, " TO recorder_batches%s\nAS %s%s %s\n", local, sums, local, by);
	buf_printf(out, "INSERT INTO recorder_batches (day, batch, series, samples, weight)\n%s "
		   "WHERE batch GLOBAL NOT IN (SELECT batch FROM recorder_batches) %s", sums, by);
}

void fleet_put_schema(const struct fleet_schema *s, struct buf *out)
{
	unsigned i;

	if (!s->clickhouse) {
		put_postgresql(s, out);
		return;
	}
	for (i = 0; i < COUNT_OF(tables); i++)
		put_clickhouse(s, &tables[i], out);
	put_view(s, out);
}

/* ---- parts of questions ---------------------------------------------------------------------- */

/* A text in quotes, whatever is in it. */
static void put_literal(struct fleet_query *q, const char *text)
{
	buf_putc(&q->out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_puts(&q->out, q->clickhouse ? "\\'" : "''");
		else if (*text == '\\' && q->clickhouse)
			buf_puts(&q->out, "\\\\");
		else
			buf_putc(&q->out, *text);
	}
	buf_putc(&q->out, '\'');
}

static void put_equal(struct fleet_query *q, const char *column, const char *value)
{
	if (!value)
		return;
	buf_printf(&q->out, " AND %s = ", column);
	put_literal(q, value);
}

/* On a cluster a set is made once, not on each server from what this one has; no index knows it. */
static const char *in(const struct fleet_query *q)
{
	return q->clustered ? "GLOBAL IN" : "IN";
}

static void put_day(struct fleet_query *q, const struct fleet_filter *f)
{
	char time[OS_TIME_TEXT_BYTES];

	if (f->from_wall_ns) {
		os_time_text(f->from_wall_ns, time);
		buf_printf(&q->out, " AND day >= '%.10s'", time);
	}
	if (f->until_wall_ns) {
		os_time_text(f->until_wall_ns, time);
		buf_printf(&q->out, " AND day <= '%.10s'", time);
	}
}

static void put_position(struct fleet_query *q, const char *column, const char *part)
{
	buf_puts(&q->out, q->clickhouse ? "positionCaseInsensitive(" : "strpos(lower(");
	buf_printf(&q->out, q->clickhouse ? "%s, " : "%s), lower(", column);
	put_literal(q, part);
	buf_puts(&q->out, q->clickhouse ? ") > 0" : ")) > 0");
}

static const char *is_history(const struct fleet_filter *f)
{
	return f->history ? "rule = '" HISTORY_RULE "'" : "rule <> '" HISTORY_RULE "'";
}

/* " AND ..." of recorder_incidents. */
static void put_incident_filter(struct fleet_query *q, const struct fleet_filter *f)
{
	put_day(q, f);
	if (f->from_wall_ns)
		buf_printf(&q->out, " AND trigger_ns >= %" PRIu64, f->from_wall_ns);
	if (f->until_wall_ns)
		buf_printf(&q->out, " AND trigger_ns < %" PRIu64, f->until_wall_ns);
	put_equal(q, "host", f->host);
	buf_printf(&q->out, " AND %s", is_history(f));
	if (!f->rule)
		return;
	buf_puts(&q->out, " AND (");
	put_position(q, "rule", f->rule);
	buf_puts(&q->out, " OR ");
	put_position(q, "reason", f->rule);
	buf_puts(&q->out, ")");
}

/* The attempts that count. */
static void put_batches(struct fleet_query *q, const struct fleet_filter *f)
{
	buf_printf(&q->out, " AND batch %s (SELECT min(batch) FROM recorder_incidents WHERE 1 = 1",
		   in(q));
	put_incident_filter(q, f);
	buf_puts(&q->out, " GROUP BY uuid)");
}

static void put_series(struct fleet_query *q, const struct fleet_filter *f)
{
	buf_printf(&q->out, " AND series %s (SELECT series FROM recorder_series WHERE 1 = 1",
		   in(q));
	put_equal(q, "metric", f->metric);
	put_equal(q, "host", f->host);
	put_equal(q, "service", f->service);
	put_equal(q, "version", f->release);
	buf_puts(&q->out, ")");
}

/* FROM and WHERE of samples. */
static void put_samples(struct fleet_query *q, const char *table, const struct fleet_filter *f)
{
	buf_printf(&q->out, " FROM %s WHERE 1 = 1", table);
	put_day(q, f);
	put_batches(q, f);
	put_series(q, f);
}

/* Samples without their stacks and minutes: far fewer rows. */
static void put_batch_sums(struct fleet_query *q, const struct fleet_filter *f)
{
	put_samples(q, q->clickhouse ? "recorder_batches" : "recorder_samples", f);
}

/*
 * The same as put_samples() for series, stack, samples and weight: of days that a filter takes
 * whole their sums. Days are left out one by one: only such conditions spare reading them.
 */
static void put_sums(struct fleet_query *q, const struct fleet_filter *f)
{
	char from[OS_TIME_TEXT_BYTES] = "", until[OS_TIME_TEXT_BYTES] = "9";
	const char *day;

	if (!q->fold_days || f->rule) {
		put_samples(q, "recorder_samples", f);
		return;
	}
	if (f->from_wall_ns)
		os_time_text(f->from_wall_ns, from);
	if (f->until_wall_ns)
		os_time_text(f->until_wall_ns, until);
	buf_puts(&q->out, " FROM (SELECT series, stack, samples, weight");
	put_samples(q, "recorder_samples", f);
	for (day = q->fold_days; *day; day += FLEET_DAY_CHARS)
		if (strncmp(day, from, 10) > 0 && strncmp(day, until, 10) < 0)
			buf_printf(&q->out, " AND day <> '%.10s'", day);
	buf_printf(&q->out, " UNION ALL SELECT series, stack, samples, weight FROM recorder_days "
		   "WHERE fold IN (%s)", q->folds);
	if (f->from_wall_ns)
		buf_printf(&q->out, " AND day > '%.10s'", from);
	if (f->until_wall_ns)
		buf_printf(&q->out, " AND day < '%.10s'", until);
	put_series(q, f);
	buf_puts(&q->out, ") WHERE 1 = 1");
}

/* The weight of samples by these columns, as test, and what the base has, as base. */
static void put_sides(struct fleet_query *q, const char *columns, const char *of_stacks)
{
	buf_printf(&q->out, "SELECT %s, sum(weight) AS test, sum(weight) - sum(weight) AS base",
		   columns);
	put_sums(q, q->filter);
	buf_printf(&q->out, "%s GROUP BY %s", of_stacks, columns);
	if (!q->base)
		return;
	buf_printf(&q->out, " UNION ALL SELECT %s, sum(weight) - sum(weight) AS test, "
		   "sum(weight) AS base", columns);
	put_sums(q, q->base);
	buf_printf(&q->out, "%s GROUP BY %s", of_stacks, columns);
}

/* FROM and WHERE of incidents; of a service or release those that sampled it. */
static void put_incidents(struct fleet_query *q, const struct fleet_filter *f)
{
	buf_puts(&q->out, " FROM recorder_incidents WHERE 1 = 1");
	put_incident_filter(q, f);
	put_batches(q, f);
	if (!f->service && !f->release)
		return;
	buf_printf(&q->out, " AND batch %s (SELECT batch", in(q));
	put_batch_sums(q, f);
	buf_puts(&q->out, ")");
}

/* Tables that join by number: ClickHouse may have a row several times until it merges them. */
static void join_stacks(struct fleet_query *q, const char *list, const char *overlap)
{
	buf_puts(&q->out, " AS a INNER JOIN (SELECT stack, ");
	if (!q->clickhouse)
		buf_puts(&q->out, "frames[1] AS leaf, ARRAY(SELECT DISTINCT f FROM unnest(frames) "
			 "AS u(f)");
	else
		buf_printf(&q->out, "any(frames)[1] AS leaf, arrayDistinct(%s", list
			   ? "arrayFilter(f -> f IN (" : "any(frames)");
	if (list)
		buf_printf(&q->out, q->clickhouse ? "%s), any(frames))" : " WHERE f IN (%s)", list);
	buf_printf(&q->out, ") AS names FROM recorder_stacks%s%s%s) AS s USING (stack)",
		   list ? " WHERE " : "", list ? overlap : "",
		   q->clickhouse ? " GROUP BY stack" : "");
}

static const char *series(const struct fleet_query *q)
{
	return q->clickhouse ? " AS g INNER JOIN (SELECT series, any(host) AS host, any(service) "
			       "AS service, any(version) AS version FROM recorder_series "
			       "GROUP BY series) AS h USING (series)"
			     : " AS g INNER JOIN recorder_series AS h USING (series)";
}

static const char *each_name(const struct fleet_query *q)
{
	return q->clickhouse ? "leaf, arrayJoin(names) AS name" : "leaf, unnest(names) AS name";
}

/* ---- questions ------------------------------------------------------------------------------- */

void fleet_incidents(struct fleet_query *q)
{
	buf_puts(&q->out, "SELECT uuid, host, rule, reason, signature, trigger_ns, from_ns, "
		 "until_ns, samples, lost");
	put_incidents(q, q->filter);
	buf_printf(&q->out, " ORDER BY trigger_ns DESC, uuid LIMIT %" PRIu32, q->rows);
}

void fleet_totals(struct fleet_query *q)
{
	buf_puts(&q->out, "SELECT count(*), count(DISTINCT host), sum(until_ns - from_ns), "
		 "sum(samples), sum(lost), min(from_ns), max(until_ns)");
	put_incidents(q, q->filter);
}

void fleet_signatures(struct fleet_query *q)
{
	buf_puts(&q->out, "SELECT rule, signature, count(*) AS incidents, count(DISTINCT host) AS "
		 "hosts, min(trigger_ns), max(trigger_ns)");
	put_incidents(q, q->filter);
	buf_printf(&q->out, " GROUP BY rule, signature ORDER BY hosts DESC, incidents DESC, "
		   "signature, rule LIMIT %" PRIu32, q->rows);
}

void fleet_services(struct fleet_query *q)
{
	buf_puts(&q->out, "SELECT service, version, count(DISTINCT host) AS hosts, sum(weight) AS "
		 "all_weight, sum(samples) FROM (SELECT series, sum(weight) AS weight, "
		 "sum(samples) AS samples");
	put_batch_sums(q, q->filter);
	buf_printf(&q->out, " GROUP BY series)%s GROUP BY service, version ORDER BY all_weight "
		   "DESC, service, version LIMIT %" PRIu32, series(q), q->rows);
}

/* Own and inclusive weight, of what is compared too, each under the name of its side. */
static const char sums_of_names[] =
	"sum(CASE WHEN name = leaf THEN test ELSE 0 END) AS test_self, sum(test) AS test_all, "
	"sum(CASE WHEN name = leaf THEN base ELSE 0 END) AS base_self, sum(base) AS base_all";

void fleet_functions(struct fleet_query *q, double per, double base_per)
{
	struct fleet_query g = *q;
	struct buf change = {0};

	g.out = (struct buf){0};
	buf_printf(&g.out, "(SELECT name, %s FROM (SELECT %s, test, base FROM (SELECT stack, "
		   "sum(test) AS test, sum(base) AS base FROM (", sums_of_names, each_name(q));
	put_sides(&g, "stack", "");
	buf_puts(&g.out, ") AS both_sides GROUP BY stack)");
	join_stacks(&g, NULL, NULL);
	buf_puts(&g.out, ") AS f GROUP BY name) AS g");
	buf_printf(&change, "abs(CASE WHEN own = 1 THEN test_self / %.3f - base_self / %.3f ELSE "
		   "test_all / %.3f - base_all / %.3f END) DESC, name", per, base_per, per,
		   base_per);
	buf_puts(&q->out, "SELECT name, test_self, test_all, base_self, base_all, ");
	if (!q->base)
		buf_printf(&q->out, "1 FROM %s ORDER BY test_self DESC, name LIMIT %" PRIu32,
			   buf_text(&g.out), q->rows);
	else if (q->clickhouse)
		buf_printf(&q->out, "arrayJoin([0, 1]) AS own FROM %s ORDER BY own, %s LIMIT %"
			   PRIu32 " BY own", buf_text(&g.out), buf_text(&change), q->rows);
	else
		buf_printf(&q->out, "own FROM (SELECT g.*, own, row_number() OVER (PARTITION BY "
			   "own ORDER BY %s) AS place FROM %s, (VALUES (0), (1)) AS o(own)) AS h "
			   "WHERE place <= %" PRIu32 " ORDER BY own, place", buf_text(&change),
			   buf_text(&g.out), q->rows);
	q->out.failed |= g.out.failed || change.failed;
	buf_free(&g.out);
	buf_free(&change);
}

void fleet_hosts_of(struct fleet_query *q, const char *const *names, uint32_t n)
{
	struct fleet_query list = {.clickhouse = q->clickhouse};
	struct buf overlap = {0}, of_stacks = {0};
	uint32_t i;

	for (i = 0; i < n; i++) {
		buf_puts(&list.out, i ? ", " : "");
		put_literal(&list, names[i]);
	}
	buf_printf(&overlap, q->clickhouse ? "hasAny(frames, [%s])" : "frames && ARRAY[%s]::text[]",
		   buf_text(&list.out));
	buf_printf(&of_stacks, " AND stack %s (SELECT stack FROM recorder_stacks WHERE %s)", in(q),
		   buf_text(&overlap));
	buf_printf(&q->out, "SELECT name, host, sum(test_self), sum(test_all), sum(base_self), "
		   "sum(base_all) FROM (SELECT name, series, %s FROM (SELECT %s, series, test, "
		   "base FROM (", sums_of_names, each_name(q));
	put_sides(q, "stack, series", buf_text(&of_stacks));
	buf_puts(&q->out, ")");
	join_stacks(q, buf_text(&list.out), buf_text(&overlap));
	buf_printf(&q->out, ") AS f GROUP BY name, series)%s GROUP BY name, host", series(q));
	q->out.failed |= list.out.failed || overlap.failed || of_stacks.failed;
	buf_free(&list.out);
	buf_free(&overlap);
	buf_free(&of_stacks);
}

void fleet_hosts(struct fleet_query *q)
{
	buf_puts(&q->out, "SELECT host, sum(ns), sum(weight) FROM (SELECT host, until_ns - from_ns "
		 "AS ns, weight - weight AS weight FROM (SELECT host, until_ns, from_ns, "
		 "lost AS weight");
	put_incidents(q, q->filter);
	buf_puts(&q->out, ") AS i UNION ALL SELECT host, weight - weight AS ns, weight FROM "
		 "(SELECT series, sum(weight) AS weight");
	put_batch_sums(q, q->filter);
	buf_printf(&q->out, " GROUP BY series)%s) AS u GROUP BY host ORDER BY host", series(q));
}

void fleet_lanes(struct fleet_query *q, uint32_t bucket_minutes)
{
	buf_printf(&q->out, "SELECT host, bucket, sum(weight) FROM (SELECT series, "
		   "%s(minute, %" PRIu32 ") AS bucket, sum(weight) AS weight",
		   q->clickhouse ? "intDiv" : "div", bucket_minutes);
	put_samples(q, "recorder_samples", q->filter);
	buf_printf(&q->out, " GROUP BY series, bucket)%s GROUP BY host, bucket", series(q));
}

/* ---- days that are summed up ----------------------------------------------------------------- */

void fleet_ask_engine(struct fleet_query *q)
{
	buf_puts(&q->out, "SELECT count(*) FROM system.tables WHERE database = currentDatabase() "
		 "AND name = 'recorder_samples' AND engine LIKE '%MergeTree'");
}

void fleet_ask_folds(struct fleet_query *q)
{
	buf_printf(&q->out, "SELECT day, max(fold) FROM recorder_folds ALL INNER JOIN (SELECT day, "
		   "count(DISTINCT uuid) AS now FROM recorder_incidents WHERE %s GROUP BY day) "
		   "USING (day) WHERE history = %d AND incidents = now GROUP BY day ORDER BY day",
		   is_history(q->filter), q->filter->history);
}

void fleet_ask_days(struct fleet_query *q)
{
	buf_printf(&q->out, "SELECT day, count(DISTINCT uuid) FROM recorder_incidents WHERE %s "
		   "AND day < today() GROUP BY day ORDER BY day", is_history(q->filter));
}

void fleet_fold(struct fleet_query *q, const char *day, int64_t fold)
{
	buf_printf(&q->out, "INSERT INTO recorder_days (day, fold, series, stack, samples, weight) "
		   "SELECT toDate('%.10s'), toInt64(%" PRId64 "), series, stack, sum(samples), "
		   "sum(weight) FROM recorder_samples WHERE day = '%.10s' AND batch GLOBAL IN "
		   "(SELECT min(batch) FROM recorder_incidents WHERE day = '%.10s' AND %s GROUP "
		   "BY uuid) GROUP BY series, stack", day, fold, day, day,
		   is_history(q->filter));
}

void fleet_fold_counts(struct fleet_query *q, const char *day, int64_t fold, uint64_t incidents)
{
	buf_printf(&q->out, "INSERT INTO recorder_folds (day, fold, history, incidents) VALUES "
		   "('%.10s', %" PRId64 ", %d, %" PRIu64 ")", day, fold, q->filter->history,
		   incidents);
}
