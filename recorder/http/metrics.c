#include "http/metrics.h"

#include "base/array.h"
#include "base/json.h"
#include "base/version.h"
#include "model/event.h"
#include "model/home.h"

#include <math.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_family(const char *name, const char *help, bool open_metrics, struct buf *out)
{
	static const char total[] = "_total";
	size_t n = strlen(name), end = sizeof(total) - 1;
	bool counter = n > end && strcmp(name + n - end, total) == 0;
	int shown = (int)(counter && open_metrics ? n - end : n);

	buf_printf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", shown, name, help, shown, name,
		   counter ? "counter" : "gauge");
}

static void put_label_value(const char *text, struct buf *out)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			buf_putc(out, '\\');
		if (*text == '\n')
			buf_puts(out, "\\n");
		else
			buf_putc(out, *text);
	}
}

/* label NULL = none */
static void put_value(const char *name, const char *label, const char *of, double value,
		      struct buf *out)
{
	char text[40];

	if (value != value)
		return;                      /* the recorder does not know it */
	num_text(value, text, sizeof(text));
	buf_puts(out, name);
	if (label) {
		buf_printf(out, "{%s=\"", label);
		put_label_value(of, out);
		buf_puts(out, "\"}");
	}
	buf_printf(out, " %s\n", text);
}

void metrics_put_one(const char *name, const char *help, double value, bool open_metrics,
		     struct buf *out)
{
	if (value != value)              /* none: not a number */
		return;
	put_family(name, help, open_metrics, out);
	put_value(name, NULL, NULL, value, out);
}

/* ---- what status has ------------------------------------------------------------------------- */

static double number(struct json_value object, const char *key)
{
	double v;

	return json_number(json_member(object, key), &v) ? v : NAN;
}

static bool is_text(struct json_value object, const char *key, const char *text)
{
	struct buf value = {0};
	bool same;

	json_put_text(json_member(object, key), &value);
	same = strcmp(buf_text(&value), text) == 0;
	buf_free(&value);
	return same;
}

struct plain {
	const char *name, *help, *key;
	double unit;                         /* of the key, in that of the metric */
};

static const struct plain plains[] = {
	{"recorder_uptime_seconds", "Since recording began.", "elapsed_s", 1},
	{"recorder_samples_total", "Samples that were recorded.", "samples", 1},
	{"recorder_late_events_total", "Events that came out of order, and were kept.", "late", 1},
	{"recorder_ring_seconds", "How far back the buffer in memory reaches.", "history_s", 1},
	{"recorder_ring_samples", "Samples in the buffer.", "history_samples", 1},
	{"recorder_ring_bytes", "Memory of the buffer.", "ring_bytes", 1},
	{"recorder_ring_max_bytes", "The most that it may take.", "ring_max_bytes", 1},
	{"recorder_evicted_samples_total", "Samples that left the buffer.", "evicted_samples", 1},
	{"recorder_held_bytes", "Memory held for incidents that are not stored yet.",
	 "held_bytes", 1},
	{"recorder_held_max_bytes", "The most that it may take.", "held_max_bytes", 1},
	{"recorder_incidents_total", "Incidents stored since the start, also out of the history.",
	 "incidents", 1},
	{"recorder_store_bytes", "Size of the store.", "store_bytes", 1},
	{"recorder_store_max_bytes", "The most that it may take.", "store_max_bytes", 1},
	{"recorder_disk_history_seconds", "How far back the history on disk reaches.",
	 "disk_history_s", 1},
	{"recorder_disk_history_bytes", "Size of the history on disk.", "disk_history_bytes", 1},
	{"recorder_disk_history_max_bytes", "The most that it may take.",
	 "disk_history_max_bytes", 1},
	{"recorder_disk_history_waiting_bytes", "Memory of what waits for the history's disk.",
	 "disk_history_waiting_bytes", 1},
	{"recorder_disk_history_lost_samples_total", "Samples that the history lacks.",
	 "disk_history_lost_samples", 1},
	{"recorder_cpu_seconds_total", "CPU time that the recorder used.", "cpu_ms", 1e-3},
	{"recorder_resident_memory_bytes", "Memory that the recorder has.", "rss_kb", 1024},
};

static void put_plains(struct json_value status, bool open_metrics, struct buf *out)
{
	size_t i;

	for (i = 0; i < COUNT_OF(plains); i++) {
		const struct plain *p = &plains[i];
		double v = number(status, p->key);

		/* 1 ms is 0.001 s, not 0.0010000000000000002 */
		v = p->unit < 1 ? v / (1 / p->unit) : v * p->unit;
		metrics_put_one(p->name, p->help, v, open_metrics, out);
	}
}

static void put_health(struct json_value status, bool open_metrics, struct buf *out)
{
	double health = is_text(status, "health", "failing")    ? 2
			: is_text(status, "health", "degraded") ? 1
								: 0;
	struct json_value budget = json_member(status, "budget");

	put_family("recorder_build_info", "The program.", open_metrics, out);
	put_value("recorder_build_info", "version", RECORDER_VERSION, 1, out);
	metrics_put_one("recorder_recording", "1 while it records, 0 while it ends.",
			is_text(status, "state", "recording"), open_metrics, out);
	metrics_put_one("recorder_health", "0 ok, 1 degraded, 2 failing.", health, open_metrics,
			out);
	metrics_put_one("recorder_cpu_ratio", "Of one CPU, over the last seconds.",
			number(budget, "cpu_pct") / 100, open_metrics, out);
	metrics_put_one("recorder_cpu_max_ratio", "The most that it may use.",
			number(budget, "max_cpu_pct") / 100, open_metrics, out);
	metrics_put_one("recorder_sampling_hertz", "Samples a second of each busy CPU.",
			number(budget, "freq_hz"), open_metrics, out);
}

/* Losses by reason: the names are those of `recorder show --json`. */
static void put_losses(struct json_value status, bool open_metrics, struct buf *out)
{
	struct json_value lost = json_member(status, "lost_by_kind");
	unsigned i;

	if (!lost.at)
		return;
	put_family("recorder_lost_total", "What was lost or left out, by reason.", open_metrics,
		   out);
	for (i = 0; i < LOSS_KINDS; i++) {
		double v = number(lost, loss_kind_text(i));

		if (v == v)
			put_value("recorder_lost_total", "reason", loss_kind_text(i), v, out);
	}
}

/* Whether an earlier item of the array has the same text: two series of one name are an error. */
static bool is_repeated(struct json_value array, struct json_value item, const char *label_key)
{
	struct buf mine = {0};
	struct json_value at = {0};
	bool found = false;

	json_put_text(json_member(item, label_key), &mine);
	while (!found && (at = json_next(array, at)).at && at.at != item.at)
		found = is_text(at, label_key, buf_text(&mine));
	buf_free(&mine);
	return found;
}

/* One metric for each item of an array; none where no item has the value. */
static void put_each(struct json_value array, const char *name, const char *help,
		     const char *label, const char *label_key, const char *key, bool open_metrics,
		     struct buf *out)
{
	struct json_value item = {0};
	struct buf of = {0};
	bool begun = false;

	while ((item = json_next(array, item)).at) {
		double v = number(item, key);

		if (v != v || is_repeated(array, item, label_key))
			continue;
		if (!begun)
			put_family(name, help, open_metrics, out);
		begun = true;
		buf_reset(&of);
		json_put_text(json_member(item, label_key), &of);
		put_value(name, label, buf_text(&of), v, out);
	}
	buf_free(&of);
}

/* CPU time of programs by where they live; the recorder bounds how many of them there are. */
static void put_homes(struct json_value homes, bool open_metrics, struct buf *out)
{
	static const char name[] = "recorder_sampled_cpu_seconds_total";
	struct json_value item = {0}, member;
	struct buf of = {0};
	char value[40], sign;
	unsigned key;

	if (!json_next(homes, item).at)
		return;
	put_family(name, "CPU time of programs, by their samples.", open_metrics, out);
	while ((item = json_next(homes, item)).at) {
		buf_puts(out, name);
		for (key = HOME_CONTAINER, sign = '{'; key < HOME_KEYS; key++) {
			member = json_member(item, home_key_text((enum home_key)key));
			if (!member.at)
				continue;
			buf_reset(&of);
			json_put_text(member, &of);
			buf_printf(out, "%c%s=\"", sign, home_key_text((enum home_key)key));
			put_label_value(buf_text(&of), out);
			buf_putc(out, '"');
			sign = ',';
		}
		num_text(number(item, "cpu_s"), value, sizeof(value));
		buf_printf(out, "%s %s\n", sign == ',' ? "}" : "", value);
	}
	buf_free(&of);
}

void metrics_put(struct json_value status, bool open_metrics, struct buf *out)
{
	struct json_value rules = json_member(status, "rules");
	struct json_value sources = json_member(status, "sources");
	struct json_value tables = json_member(status, "tables");
	struct json_value ship = json_member(status, "ship");

	put_health(status, open_metrics, out);
	put_plains(status, open_metrics, out);
	put_losses(status, open_metrics, out);
	put_homes(json_member(status, "homes"), open_metrics, out);
	put_each(ship, "recorder_ship_queued", "Incidents that wait to be sent.", "target",
		 "target", "queued", open_metrics, out);
	put_each(ship, "recorder_ship_sent_total", "Incidents that were sent.", "target", "target",
		 "sent", open_metrics, out);
	put_each(ship, "recorder_ship_refused_total", "Incidents that a server refused for good.",
		 "target", "target", "refused", open_metrics, out);
	put_each(ship, "recorder_ship_lost_total", "Incidents that were deleted before.", "target",
		 "target", "lost", open_metrics, out);
	put_each(ship, "recorder_ship_history_sent_total", "Intervals of the history sent.",
		 "target", "target", "history_sent", open_metrics, out);
	put_each(ship, "recorder_ship_history_lost_total", "Those that were deleted before.",
		 "target", "target", "history_lost", open_metrics, out);
	put_each(ship, "recorder_ship_failures", "Failures in a row.", "target", "target",
		 "failures", open_metrics, out);
	put_each(rules, "recorder_rule_value", "What the rule sees now.", "rule", "rule", "value",
		 open_metrics, out);
	put_each(rules, "recorder_rule_limit", "Its limit now.", "rule", "rule", "limit",
		 open_metrics, out);
	put_each(rules, "recorder_rule_incidents_total", "How often the rule made an incident.",
		 "rule", "rule", "fired", open_metrics, out);
	put_each(rules, "recorder_rule_held_back_total",
		 "Firings beyond the limits of an hour and a day.", "rule", "rule", "held_back",
		 open_metrics, out);
	put_each(sources, "recorder_source_events_total", "Events that a source delivered.",
		 "source", "name", "events", open_metrics, out);
	put_each(sources, "recorder_source_lost_total", "Events that it lost.", "source", "name",
		 "lost", open_metrics, out);
	put_each(tables, "recorder_table_used", "Queues and tables: what is in them.", "table",
		 "table", "used", open_metrics, out);
	put_each(tables, "recorder_table_max", "Queues and tables: what fits into them.", "table",
		 "table", "max", open_metrics, out);
}

void metrics_end(bool open_metrics, struct buf *out)
{
	if (open_metrics)
		buf_puts(out, "# EOF\n");
}
