/*
 * status, snapshot, mark, reload, stop, abort: one line to the running recorder, one line back; see
 * engine/control.h.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"
#include "engine/control.h"
#include "engine/engine.h"
#include "base/moment.h"
#include "base/fit.h"
#include "base/json_read.h"

#include "base/json.h"
#include "base/os.h"
#include "store/history.h"

#include <inttypes.h>

#include <stdio.h>
#include <string.h>

#define ANSWER_WAIT_NS (10 * NS_PER_SEC)

static void put_question(const struct options *o, struct buf *line)
{
	struct json j = {.out = line};

	json_open(&j, '{');
	json_key_str(&j, "cmd", command_table[o->command].name);
	if (o->reason)
		json_key_str(&j, "reason", o->reason);
	if (o->command == CMD_MARK)
		json_key_str(&j, "message", o->pattern);
	json_close(&j, '}');
}

/* ---- asking ---------------------------------------------------------------------------------- */

int cmd_ask_at(const char *store, const char *question, struct buf *answer, struct err *err)
{
	struct buf path = {0};
	int rc;

	buf_puts(&path, store);
	buf_puts(&path, CONTROL_SUFFIX);
	rc = buf_check(&path, "the control socket's name", err);
	if (!rc)
		rc = os_ipc_ask(buf_text(&path), question, ANSWER_WAIT_NS, answer, err);
	buf_free(&path);
	return rc;
}

/* A store left over from an earlier recording does not hide the system's recorder. */
int cmd_ask(const struct options *o, const char *question, struct buf *answer, struct buf *asked,
	    struct err *err)
{
	struct buf store = {0}, other = {0};
	int rc;

	rc = cmd_store_path(o, STORE_RECORD, &store, err);
	if (!rc)
		rc = cmd_ask_at(buf_text(&store), question, answer, err);
	if (rc == ERR_NOT_FOUND && !cmd_named_store(o)) {
		os_system_store(&other);
		if (strcmp(buf_text(&other), buf_text(&store)) != 0)
			rc = cmd_ask_at(buf_text(&other), question, answer, err);
	}
	if (rc == ERR_ACCESS && !os_is_admin())
		rc = cmd_not_ours(o, buf_text(other.len ? &other : &store), err);
	else if (rc == ERR_NOT_FOUND)
		rc = err_set(err, ERR_NOT_FOUND, "no recorder is running on %s; start one with "
			     "'recorder collect%s%s'%s", buf_text(&store),
			     cmd_named_store(o) ? " --store " : "",
			     cmd_named_store(o) ? buf_text(&store) : "",
			     cmd_named_store(o) ? "" : ", or name its store with --store");
	if (!rc && asked)
		buf_puts(asked, buf_text(other.len ? &other : &store));
	buf_free(&other);
	buf_free(&store);
	return rc;
}

/* ---- status for people ----------------------------------------------------------------------- */

/* 0, CMD_DEGRADED or CMD_FAILING. */
static int health_rc(struct json_value status)
{
	struct buf word = {0};
	int rc = 0;

	json_put_text(json_member(status, "health"), &word);
	if (strcmp(buf_text(&word), "degraded") == 0)
		rc = CMD_DEGRADED;
	else if (strcmp(buf_text(&word), "failing") == 0)
		rc = CMD_FAILING;
	buf_free(&word);
	return rc;
}

static double number(struct json_value status, const char *key)
{
	double v = -1;

	json_number(json_member(status, key), &v);
	return v;
}

/* A line with the text of a member; nothing where it has none. */
static void put_text(struct sheet *p, const char *label, struct json_value v)
{
	struct buf text = {0};

	json_put_text(v, &text);
	sheet_text_line(p, label, buf_text(&text));
	buf_free(&text);
}

/* The word, and a line for each reason. */
static void put_health(struct sheet *p, struct json_value status)
{
	struct json_value r = {0};
	struct buf text = {0};
	int rc = health_rc(status);

	json_put_text(json_member(status, "health"), &text);
	if (text.len)
		sheet_line(p, "Health", !rc ? SHEET_GOOD
				      : rc == CMD_FAILING ? SHEET_BAD : SHEET_LOSS, "%s",
			   buf_text(&text));
	while ((r = json_next(json_member(status, "reasons"), r)).at) {
		buf_reset(&text);
		json_put_text(json_member(r, "reason"), &text);
		buf_puts(&text, ": ");
		json_put_text(json_member(r, "text"), &text);
		sheet_text_line(p, "", buf_text(&text));
	}
	buf_free(&text);
}

/* "s3://evidence/prod: 3 queued, 12 sent", with what it said, if it was no success. */
static void put_targets(struct sheet *p, struct json_value ship)
{
	struct json_value t = {0};
	struct buf text = {0};

	while ((t = json_next(ship, t)).at) {
		buf_reset(&text);
		json_put_text(json_member(t, "target"), &text);
		buf_printf(&text, ": %.0f queued, %.0f sent", number(t, "queued"),
			   number(t, "sent"));
		if (number(t, "refused") > 0)
			buf_printf(&text, ", %.0f refused", number(t, "refused"));
		if (number(t, "lost") > 0)
			buf_printf(&text, ", %.0f deleted before they were sent",
				   number(t, "lost"));
		if (number(t, "history_lost") > 0)
			buf_printf(&text, ", %.0f intervals of the history deleted before",
				   number(t, "history_lost"));
		if (json_member(t, "history_until").at) {
			buf_puts(&text, ", the history until ");
			json_put_text(json_member(t, "history_until"), &text);
		}
		if (number(t, "failures") > 0 || number(t, "refused") > 0) {
			buf_puts(&text, "; ");
			json_put_text(json_member(t, "said"), &text);
		}
		sheet_text_line(p, "Ship", buf_text(&text));
	}
	buf_free(&text);
}

/* "12 MB of 64 MB", or nothing when the recorder did not say. */
static void put_use(struct sheet *p, const char *label, double used, double max)
{
	char a[NUMBER_BYTES], b[NUMBER_BYTES];

	if (used < 0)
		return;
	sheet_label(p, label);
	buf_puts(&p->out, text_bytes((uint64_t)used, a));
	if (max >= 0)
		buf_printf(&p->out, " of %s", text_bytes((uint64_t)max, b));
	buf_putc(&p->out, '\n');
}

/* How far back the history reaches, at what density, and how much was evicted. */
static void put_history(struct sheet *p, struct json_value status)
{
	double seconds = number(status, "history_s"), samples = number(status, "history_samples");
	double bytes = number(status, "bytes_per_sample");
	double gone = number(status, "evicted_samples");
	char a[NUMBER_BYTES];

	if (seconds < 0)
		return;
	sheet_label(p, "History");
	buf_printf(&p->out, "%s", text_seconds(seconds, a));
	if (samples >= 0)
		buf_printf(&p->out, ", %s samples", text_count((uint64_t)samples, a));
	if (bytes > 0)
		buf_printf(&p->out, ", %.1f bytes per sample", bytes);
	if (gone > 0)
		buf_printf(&p->out, "; %s older ones were evicted", text_count((uint64_t)gone, a));
	buf_putc(&p->out, '\n');
}

/* The budget, the current cost, and the steps down that were taken. */
static void put_budget(struct sheet *p, struct json_value budget)
{
	double cpu = number(budget, "cpu_pct"), max_cpu = number(budget, "max_cpu_pct");
	double max_mb = number(budget, "max_rss_mb"), steps = number(budget, "steps_down");

	if (cpu < 0)
		return;
	sheet_label(p, "Budget");
	if (cpu > 0)
		buf_printf(&p->out, "%.2f %% of one CPU now", cpu);
	else
		buf_puts(&p->out, "not measured yet, the first 30 s do not count");
	if (max_cpu > 0)
		buf_printf(&p->out, ", %.4g %% at most", max_cpu);
	if (max_mb > 0)
		buf_printf(&p->out, "; %.0f MB of memory at most", max_mb);
	buf_printf(&p->out, "; sampling at %.0f Hz", number(budget, "freq_hz"));
	if (number(budget, "stack_kb") > 0)
		buf_printf(&p->out, " with %.0f KB of stack", number(budget, "stack_kb"));
	if (steps > 0)
		buf_printf(&p->out, ", %.0f of %.0f steps down", steps, number(budget, "steps"));
	buf_putc(&p->out, '\n');
}

static void put_samples(struct sheet *p, struct json_value status)
{
	double samples = number(status, "samples"), lost = number(status, "lost");
	double flooded = number(status, "flooded");
	char n[NUMBER_BYTES], text[ENGINE_FLOODED_BYTES];

	sheet_label(p, "Samples");
	buf_printf(&p->out, "%s, ", samples < 0 ? "?" : text_count((uint64_t)samples, n));
	sheet_put(p, lost != 0 ? SHEET_LOSS : SHEET_PLAIN, "lost %s%s",
		 lost < 0 ? "?" : text_count((uint64_t)lost, n),
		 engine_flooded_text(flooded > 0 ? (uint64_t)flooded : 0, text));
	buf_putc(&p->out, '\n');
}

static void put_cost(struct sheet *p, struct json_value status)
{
	double cpu = number(status, "cpu_ms"), elapsed = number(status, "elapsed_s");
	double rss = number(status, "rss_kb"), sandbox = number(status, "sandbox_rss_kb");
	char n[NUMBER_BYTES];

	if (cpu < 0)
		return;
	sheet_label(p, "Recorder");
	buf_printf(&p->out, "%s of CPU time", text_seconds(cpu / 1e3, n));
	if (elapsed > 0)
		buf_printf(&p->out, " (%.2f %% of one CPU)", cpu / elapsed / 10);
	if (rss >= 0)
		buf_printf(&p->out, ", %s of memory", text_bytes((uint64_t)(rss * 1024), n));
	if (sandbox > 0)
		buf_printf(&p->out, ", and %s of the processes that read symbols and .NET",
			   text_bytes((uint64_t)(sandbox * 1024), n));
	buf_putc(&p->out, '\n');
}

/* The sources with events or losses: "Events    perf: 1,234, lost 5". */
static void put_sources(struct sheet *p, struct json_value sources)
{
	char a[NUMBER_BYTES], b[NUMBER_BYTES];
	struct json_value s = {0};
	const char *label = "Events";
	struct buf name = {0};

	while ((s = json_next(sources, s)).at) {
		double events = number(s, "events"), lost = number(s, "lost");

		if (events <= 0 && lost <= 0)
			continue;
		buf_reset(&name);
		json_put_text(json_member(s, "name"), &name);
		sheet_label(p, label);
		buf_printf(&p->out, "%s: %s", buf_text(&name), text_count((uint64_t)events, a));
		if (lost > 0)
			buf_printf(&p->out, ", lost %s", text_count((uint64_t)lost, b));
		buf_putc(&p->out, '\n');
		label = "";
	}
	buf_free(&name);
}

static void put_tables(struct sheet *p, struct json_value tables)
{
	char a[NUMBER_BYTES], b[NUMBER_BYTES];
	struct json_value t = {0};
	const char *label = "Tables";
	struct buf name = {0};

	for (; (t = json_next(tables, t)).at; label = "") {
		double used = number(t, "used"), max = number(t, "max");

		buf_reset(&name);
		json_put_text(json_member(t, "table"), &name);
		sheet_line(p, label, SHEET_PLAIN, "%s: %s of %s", buf_text(&name),
			  used < 0 ? "?" : text_count((uint64_t)used, a),
			  max < 0 ? "?" : text_count((uint64_t)max, b));
	}
	buf_free(&name);
}

static void put_limits(struct sheet *p, struct json_value limits)
{
	double hour = number(limits, "incidents_per_rule_and_hour");
	double dropped = number(limits, "symbol_requests_dropped");
	char n[NUMBER_BYTES];

	if (hour < 0)
		return;
	sheet_line(p, "Limits", SHEET_PLAIN,
		  "per rule: %.0f incidents an hour, %.0f a day, %s open starts; incidents are "
		  "deleted after %.0f days",
		  hour, number(limits, "incidents_per_rule_and_day"),
		  text_count((uint64_t)number(limits, "open_starts_per_rule"), n),
		  number(limits, "keep_days"));
	if (dropped > 0)
		sheet_line(p, "", SHEET_PLAIN,
			  "%s frames were not looked up because the symbol queue was full",
			  text_count((uint64_t)dropped, n));
}

/* Why a rule has not fired: how near it came, and where the events went. */
static void put_why(struct sheet *p, struct json_value rule)
{
	double ago = number(rule, "nearest_ago_s"), counts[RULE_COUNTS];
	struct buf line = {0};
	char n[NUMBER_BYTES];
	unsigned i;

	if (ago >= 0) {
		buf_puts(&line, "nearest ");
		json_put_text(json_member(rule, "nearest"), &line);
		buf_printf(&line, ", %s ago; ", text_seconds(ago, n));
	}
	for (i = 0; i < RULE_COUNTS; i++)
		counts[i] = number(rule, rule_count_keys[i]);
	put_rule_counts(&line, counts);
	sheet_text_line(p, "", buf_text(&line));
	buf_free(&line);
}

static void put_rules(struct sheet *p, struct json_value rules)
{
	struct json_value r = {0};

	while ((r = json_next(rules, r)).at) {
		put_text(p, "Rule", json_member(r, "rule"));
		put_text(p, "", json_member(r, "text"));
		put_why(p, r);
	}
}

/* The history on disk. */
static void put_disk_history(struct sheet *p, struct json_value status)
{
	double max = number(status, "disk_history_max_bytes");
	double lost = number(status, "disk_history_lost_samples");
	char a[NUMBER_BYTES], b[NUMBER_BYTES], c[NUMBER_BYTES];

	if (max <= 0)
		return;
	sheet_line(p, "On disk", SHEET_PLAIN, "%s of history in %s of %s, %s to be written",
		   text_seconds(number(status, "disk_history_s"), a),
		   text_bytes((uint64_t)number(status, "disk_history_bytes"), b),
		   text_bytes((uint64_t)max, c), number(status, "disk_history_waiting_bytes") > 0
							 ? "some seconds" : "nothing");
	if (lost > 0)
		sheet_line(p, "", SHEET_LOSS, "%s samples are missing in it: its disk was slow, "
			   "full or gone", text_count((uint64_t)lost, a));
}

static void put_status(struct sheet *p, struct json_value status)
{
	double incidents = number(status, "incidents"), elapsed = number(status, "elapsed_s");
	struct buf state = {0};
	char n[NUMBER_BYTES];

	json_put_text(json_member(status, "state"), &state);
	sheet_label(p, "State");
	buf_printf(&p->out, "%s", state.len ? buf_text(&state) : "?");
	if (elapsed >= 0)
		buf_printf(&p->out, "%s %s", strcmp(buf_text(&state), "stopping") ? " for"
			   : ", after", text_seconds(elapsed, n));
	if (number(status, "pid") >= 0)
		buf_printf(&p->out, ", process %.0f", number(status, "pid"));
	buf_putc(&p->out, '\n');
	put_health(p, status);
	put_text(p, "Note", json_member(status, "note"));
	put_text(p, "Pending", json_member(status, "pending"));
	put_samples(p, status);
	put_history(p, status);
	if (incidents >= 0)
		sheet_line(p, "Incidents", SHEET_PLAIN, "%s", text_count((uint64_t)incidents, n));
	put_cost(p, status);
	put_budget(p, json_member(status, "budget"));
	put_use(p, "Ring", number(status, "ring_bytes"), number(status, "ring_max_bytes"));
	put_use(p, "Held", number(status, "held_bytes"), number(status, "held_max_bytes"));
	put_sources(p, json_member(status, "sources"));
	put_tables(p, json_member(status, "tables"));
	put_limits(p, json_member(status, "limits"));
	put_text(p, "Store", json_member(status, "store"));
	put_use(p, "", number(status, "store_bytes"), number(status, "store_max_bytes"));
	put_disk_history(p, status);
	put_targets(p, json_member(status, "ship"));
	put_rules(p, json_member(status, "rules"));
	buf_free(&state);
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int print_answer(const struct options *o, const struct buf *answer, struct err *err)
{
	struct json_value all, error;
	struct buf text = {0};
	struct sheet sheet;
	int rc = 0;

	if (!json_read(buf_text(answer), &all))
		return err_set(err, ERR_FORMAT, "the recorder's answer is not JSON: %.200s",
			       buf_text(answer));
	sheet_init(&sheet, o);
	sheet.columns = FIT_ALL;
	error = json_member(all, "error");
	json_put_text(error.at ? error : json_member(all, "text"), &text);
	if (error.at) {
		rc = o->command == CMD_RELOAD
			     ? err_set(err, ERR_USAGE, "%s", buf_text(&text))
			     : err_set(err, ERR_IO, "the recorder refused: %s", buf_text(&text));
	} else if (o->json || o->command == CMD_STATUS) {
		if (o->json)
			buf_printf(&sheet.out, "%s\n", buf_text(answer));
		else
			put_status(&sheet, all);
		rc = sheet_print(&sheet, err);
		if (!rc && o->command == CMD_STATUS)
			rc = health_rc(all);
	} else if (text.len) {
		cmd_note("%s", buf_text(&text));
	}
	buf_free(&text);
	sheet_free(&sheet);
	return rc;
}

/* Clear what a killed recorder left in the system; true if there was something. */
static bool clear_left(void)
{
	uint32_t n, all = 0;
	unsigned i;

	for (i = 0; live_sources[i]; i++)
		if (live_sources[i]->clear && !live_sources[i]->clear(&n, NULL))
			all += n;
	if (all)
		cmd_note("no recorder is running; stopped %u %s that a killed recorder had left "
			 "behind", all,
			 all == 1 ? "session" : "sessions");
	return all > 0;
}

#define FLUSH_NS (3 * NS_PER_SEC)
#define FLUSH_STEP_NS (50 * NS_PER_MS)
#define FLUSHED_NS (90 * NS_PER_SEC)         /* what is older is on the disk: history-sync-sec */
#define PEERS_LAST_NS (120 * (int64_t)NS_PER_SEC)

static double answer_number(const struct buf *answer, const char *key)
{
	struct json_value all;

	return json_read(buf_text(answer), &all) ? number(all, key) : -1;
}

/* Have the recorder of this store, if one runs, bring its history to the disk, up to now. */
static void flush_history(const char *store)
{
	uint64_t end_ns = os_now_ns() + FLUSH_NS;
	struct buf answer = {0};
	double want = cmd_ask_at(store, "{\"cmd\":\"flush\"}", &answer, NULL)
			      ? 0 : answer_number(&answer, "flush");

	while (want > 0 && os_now_ns() < end_ns) {
		os_sleep_ns(FLUSH_STEP_NS);
		buf_reset(&answer);
		if (cmd_ask_at(store, "{\"cmd\":\"status\"}", &answer, NULL) ||
		    answer_number(&answer, "flushed") >= want)
			break;
	}
	buf_free(&answer);
}

/* A window of the past becomes an incident, whether a recorder runs or not. */
static int snapshot_window(const struct options *o, struct err *err)
{
	struct history_keep keep = {.rule = "manual", .reason = o->reason, .tell_system = true};
	struct options window = *o;
	struct cmd_window w = {0};
	struct buf path = {0}, answer = {0}, line = {0};
	int64_t id = 0;
	int rc;

	if (o->to.text)
		window.at = NULL;            /* it is the incident's time, then */
	if (!cmd_window_asked(o))
		window.last_ns = PEERS_LAST_NS;
	rc = cmd_window(&window, &w, err);
	keep.from_ns = w.from_ns;
	keep.to_ns = keep.trigger_ns = w.to_ns;
	if (!rc && o->at && !window.at)
		rc = moment_parse(o->at, os_wall_ns(), 0, &keep.trigger_ns, err);
	if (!rc && (keep.trigger_ns < w.from_ns || keep.trigger_ns > w.to_ns))
		rc = err_set(err, ERR_USAGE, "--at is not between --from and --to");
	if (!keep.reason)
		keep.reason = "kept from the history by `recorder snapshot`";
	if (!rc)
		rc = cmd_store_path(o, STORE_EDIT, &path, err);
	if (!rc && o->peers)
		rc = cmd_ask_peers(o, buf_text(&path), 0, err);
	if (!rc && w.to_ns + FLUSHED_NS > os_wall_ns())
		flush_history(buf_text(&path));
	if (!rc)
		rc = history_keep(buf_text(&path), &keep, &id, err);
	if (!rc) {
		cmd_ask_at(buf_text(&path), "{\"cmd\":\"kept\"}", &answer, NULL);  /* if it runs */
		cmd_note("incident %" PRId64 " is stored", id);
	}
	if (!rc && o->json) {
		buf_printf(&line, "{\"incident\":%" PRId64 "}\n", id);
		rc = print_text(&line, err);
	}
	if (!rc && o->peers)
		rc = cmd_ask_peers(o, buf_text(&path), id, err);
	buf_free(&line);
	buf_free(&answer);
	buf_free(&path);
	return rc;
}

int cmd_control(const struct options *o, struct err *err)
{
	struct buf question = {0}, answer = {0};
	int rc;

	if (o->command == CMD_SNAPSHOT && (cmd_window_asked(o) || o->peers))
		return snapshot_window(o, err);

	if (o->command == CMD_MARK && (!o->pattern || !*o->pattern))
		return err_set(err, ERR_USAGE, "mark: the message is missing: recorder mark "
			       "'load test begins'");
	put_question(o, &question);
	rc = buf_check(&question, "the question", err);
	if (!rc)
		rc = cmd_ask(o, buf_text(&question), &answer, NULL, err);
	if (!rc)
		rc = print_answer(o, &answer, err);
	else if (rc == ERR_NOT_FOUND && o->command == CMD_ABORT && clear_left())
		rc = 0;
	buf_free(&answer);
	buf_free(&question);
	return rc;
}
