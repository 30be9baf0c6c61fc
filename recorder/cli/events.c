/*
 * events: list the events that rules can name; or print events, live, from a trace file, an
 * incident or a window of the history, one per line or counted by name.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"
#include "base/text_table.h"
#include "engine/trace.h"
#include "listing/histogram.h"
#include "listing/lines.h"
#include "triggers/trigger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 65536u                     /* distinct names that are counted */
#define OTHER_NAMES "(others)"

struct event_name {
	const char *provider, *name;         /* set by set_names() */
	uint32_t number;                     /* before they are sorted */
	/* in the file; of these, passed by the options */
	uint64_t seen, shown;
};

struct listing {
	const struct options *o;
	struct out *out;                     /* NULL = only counted */
	struct sheet sheet;                  /* one line at a time */
	struct event_select select;
	struct event_lines lines;
	struct event_histogram times;
	uint64_t first_ns, last_ns;          /* of all events */
	struct text_table texts;             /* provider, NUL, name */
	struct buf key;
	struct event_name *names;            /* by their text's number */
	uint32_t nnames;
	uint64_t shown;
	uint64_t most;                       /* --rows; 0 = all */
	bool watches;                        /* --live */
	struct err *err;
};

/* ---- how many -------------------------------------------------------------------------------- */

static bool counts(const struct listing *l)
{
	return l->o->count || l->o->histogram;
}

static int no_memory(struct listing *l)
{
	return err_memory(l->err, "for the names of events");
}

/* Milliseconds since the file's start; negative for earlier events of a damaged file. */
static double ms_of(uint64_t time_ns, const struct source_origin *origin)
{
	return (double)(int64_t)(time_ns - origin->start_ns) / 1e6;
}

static int count_name(struct listing *l, const struct event *e, bool wanted)
{
	bool full = l->nnames >= NAMES_MAX;
	uint32_t at;

	buf_reset(&l->key);
	buf_puts(&l->key, full ? "" : event_provider(e));
	buf_putc(&l->key, '\0');
	buf_puts(&l->key, full ? OTHER_NAMES : event_name(e));
	at = l->key.failed ? TABLE_NONE : text_table_add(&l->texts, l->key.data, l->key.len);
	if (at == TABLE_NONE)
		return no_memory(l);
	if (at == l->nnames) {
		if (ARRAY_NEXT(l->names, l->nnames))
			return no_memory(l);
		l->names[l->nnames] = (struct event_name){.number = l->nnames};
		l->nnames++;
	}
	l->names[at].seen++;
	l->names[at].shown += wanted;
	if (!l->last_ns || e->time_ns < l->first_ns)
		l->first_ns = e->time_ns;
	l->last_ns = e->time_ns > l->last_ns ? e->time_ns : l->last_ns;
	if (wanted && l->o->histogram)
		return event_histogram_add(&l->times, e->time_ns, at, l->err);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct event_name *x = a, *y = b;
	int order = strcmp(x->provider, y->provider);

	return order ? order : strcmp(x->name, y->name);
}

/* Once all events are counted, and before the names are sorted: from here, texts stay in place. */
static void set_names(struct listing *l)
{
	uint32_t i;

	for (i = 0; i < l->nnames; i++) {
		l->names[i].provider = text_table_get(&l->texts, i);
		l->names[i].name = l->names[i].provider + strlen(l->names[i].provider) + 1;
	}
}

static void put_count(struct listing *l, const struct event_name *n)
{
	char when[EVENT_BUCKETS + 1];
	struct sheet *p = &l->sheet;
	const struct buf *line;

	if (l->o->histogram)
		event_histogram_text(&l->times, n->number, when);
	buf_reset(&p->out);
	if (p->json) {
		sheet_open(p);
		json_key_str(&p->j, "provider", n->provider);
		json_key_str(&p->j, "name", n->name);
		json_key_uint(&p->j, "count", n->shown);
		if (l->o->histogram)
			json_key_str(&p->j, "when", when);
		sheet_close(p);
	} else {
		buf_printf(&p->out, "%10" PRIu64 "  ", n->shown);   /* for sort -n */
		if (l->o->histogram)
			buf_printf(&p->out, "%s  ", when);
		event_name_put(&p->out, n->provider, n->name);
		buf_putc(&p->out, '\n');
	}
	line = sheet_text(p);
	out_put(l->out, buf_text(line), line->len);
}

/* From the first event to the last, or those that were asked for. */
static int sum_times(struct listing *l, const struct source_origin *origin)
{
	double t0_ms = ms_of(l->first_ns, origin), t1_ms = ms_of(l->last_ns, origin);
	const struct options *o = l->o;

	t0_ms = o->start_ms > t0_ms ? o->start_ms : t0_ms;
	t1_ms = o->end_ms < t1_ms ? o->end_ms : t1_ms;
	if (t1_ms < t0_ms)
		t1_ms = t0_ms;
	if (!l->sheet.json)
		cmd_note("a letter is %.3f ms, from %.3f to %.3f ms; A is the row's most",
			 (t1_ms - t0_ms) / EVENT_BUCKETS, t0_ms, t1_ms);
	return event_histogram_sum(&l->times, origin->start_ns + (uint64_t)(int64_t)(t0_ms * 1e6),
				   origin->start_ns + (uint64_t)(int64_t)(t1_ms * 1e6), l->nnames,
				   l->err);
}

static int put_counts(struct listing *l, const struct source_origin *origin)
{
	struct event_name all = {.provider = "", .name = "(all)", .number = l->nnames};
	uint32_t i;
	int rc;

	set_names(l);
	rc = l->o->histogram && l->shown ? sum_times(l, origin) : 0;
	if (rc || !l->nnames)
		return rc;
	qsort(l->names, l->nnames, sizeof(*l->names), by_name);
	for (i = 0; i < l->nnames; i++) {
		all.shown += l->names[i].shown;
		if (l->names[i].shown)
			put_count(l, &l->names[i]);
	}
	if (l->o->histogram && l->shown)
		put_count(l, &all);
	return 0;
}

/* ---- each ------------------------------------------------------------------------------------ */

static int put_line(struct listing *l)
{
	bool fits = l->lines.format == EVENTS_TEXT;
	const struct buf *line = fits ? sheet_text(&l->sheet) : &l->sheet.out;

	if (line->failed)
		return no_memory(l);
	if (l->watches)                      /* at once */
		return os_write(os_stdout(), line->data, line->len, l->err);
	out_put(l->out, buf_text(line), line->len);
	return out_failed(l->out) ? ERR_STOPPED : 0;
}

static int put_event(void *ctx, const struct event *e, const struct source_origin *origin)
{
	struct listing *l = ctx;
	double ms = ms_of(e->time_ns, origin);
	bool wanted = event_select_takes(&l->select, e, ms);
	int rc;

	if (l->select.no_number)
		return err_set(l->err, ERR_USAGE, "--columns: the field '%s' of %s is a number, "
			       "and '%s' is none", l->select.no_number->field, event_name(e),
			       l->select.no_number->condition.value);
	buf_reset(&l->sheet.out);
	if (wanted && (l->select.text || !counts(l)))
		wanted = event_lines_put(&l->lines, e, origin, ms);
	if (wanted && l->lines.format == EVENTS_TEXT && !counts(l))
		sheet_style_part(&l->sheet, l->lines.name_at, l->lines.name_end, SHEET_HEAD);
	l->shown += wanted;
	rc = count_name(l, e, wanted);
	if (rc || !wanted || counts(l))
		return rc;
	rc = put_line(l);
	return rc ? rc : l->most && l->shown >= l->most ? ERR_STOPPED : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int report_nothing(struct listing *l, const char *path, struct err *err)
{
	struct nearest nearest = {.wanted = l->o->event_name ? l->o->event_name : l->o->provider};
	struct buf near = {0};
	bool conditions = false;
	uint32_t i;

	if (!l->nnames)
		return err_set(err, ERR_NOT_FOUND, "%s holds no events", path);
	if (l->o->process && !l->select.process_seen)
		return err_set(err, ERR_NOT_FOUND, "no event of %s is of a process '%s': a whole "
			       "name, a pid, or a regular expression such as '^%s'", path,
			       l->o->process, l->o->process);
	for (i = 0; i < l->select.ncolumns; i++) {
		const struct event_column *c = &l->select.columns[i];

		if (c->has_condition && !c->field_seen)
			return err_set(err, ERR_NOT_FOUND, "no event of %s that the other options "
				       "take has a field '%s'; without --columns, --rows 1 shows "
				       "one with its fields", path, c->field);
		conditions |= c->has_condition;
	}
	set_names(l);
	for (i = 0; i < l->nnames && nearest.wanted && !conditions; i++)
		nearest_offer(&nearest, l->o->event_name ? l->names[i].name : l->names[i].provider);
	if (nearest.n) {
		buf_puts(&near, "; the nearest are ");
		nearest_put(&nearest, "", "", &near);
	}
	err_set(err, ERR_NOT_FOUND, "no event of %s matches%s; --count lists what there is",
		path, buf_text(&near));
	buf_free(&near);
	return ERR_NOT_FOUND;
}

static int listing_open(struct listing *l, struct err *err)
{
	int rc;

	sheet_init(&l->sheet, l->o);
	rc = event_lines_format(l->o, &l->lines.format, err);
	if (!rc && counts(l) && l->lines.format > EVENTS_JSON)
		rc = err_set(err, ERR_USAGE, "events: counts are text or --json");
	if (!rc)
		rc = event_select_open(&l->select, l->o, err);
	l->sheet.json = l->lines.format == EVENTS_JSON;
	l->lines.select = &l->select;
	l->lines.out = &l->sheet.out;
	if (options_origin(l->o, "rows") != FROM_DEFAULT)
		l->most = l->o->rows;
	return rc;
}

/* What stands around all events. */
static void put_frame(struct listing *l, void (*put)(struct event_lines *l))
{
	buf_reset(&l->sheet.out);
	put(&l->lines);
	out_put(l->out, buf_text(&l->sheet.out), l->sheet.out.len);
}

static void listing_free(struct listing *l)
{
	event_select_close(&l->select);
	event_lines_free(&l->lines);
	event_histogram_free(&l->times);
	free(l->names);
	text_table_free(&l->texts);
	buf_free(&l->key);
	sheet_free(&l->sheet);
}

/* ---- what there is --------------------------------------------------------------------------- */

/* lines: "provider/name  fields", those of a provider together. */
static void put_providers(struct sheet *p, const char *lines)
{
	const char *next;
	char provider[PROVIDER_NAME_MAX];
	uint64_t n = 0;

	for (; *lines; lines = next) {
		size_t length = strcspn(lines, "/:\n"), rest = strcspn(lines, "\n");

		next = lines + rest + (lines[rest] != '\0');
		n++;
		if (strncmp(lines, next, length) == 0 && strcspn(next, "/:\n") == length)
			continue;
		snprintf(provider, sizeof(provider), "%.*s", (int)length, lines);
		if (p->json) {
			sheet_open(p);
			json_key_str(&p->j, "provider", provider);
			json_key_uint(&p->j, "count", n);
			sheet_close(p);
		} else {
			buf_printf(&p->out, "%10" PRIu64 "  %s\n", n, provider);
		}
		n = 0;
	}
}

static int list_events(const struct options *o, struct err *err)
{
	struct out *out = NULL;
	struct err first = {0}, why;
	struct buf lines = {0};
	struct sheet sheet;
	struct buf *to = o->count ? &lines : &sheet.out;
	unsigned i, nlists = 0;
	int rc, one;

	sheet_init(&sheet, o);
	rc = out_to_buf(to, &out, err);
	/* Where one source fails, another may have events; keep the first error. */
	for (i = 0; !rc && live_sources[i]; i++) {
		if (!live_sources[i]->list_events)
			continue;
		nlists++;
		one = live_sources[i]->list_events(o->pattern, o->json && !o->count, out,
						    &why);
		if (one && !first.code)
			first = why;
	}
	if (!rc)
		rc = out_close(out, err);
	if (!rc && !to->len && first.code) {
		rc = (int)first.code;
		if (err)
			*err = first;
	}
	if (!rc && !nlists)
		rc = err_set(err, ERR_USAGE, "events: this system's own events cannot be listed; "
			     "name a trace with --from FILE.etl");
	if (!rc && o->count)
		put_providers(&sheet, buf_text(&lines));
	if (!rc)
		rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	buf_free(&lines);
	return rc;
}

/* ---- as they come ---------------------------------------------------------------------------- */

/* Warn before somebody waits for events that cannot come. */
static void note_rule_doubts(const struct trigger *rule)
{
	struct buf doubts = {0};

	cmd_rule_doubts(rule, &doubts);
	if (doubts.len)
		cmd_note("%s", buf_text(&doubts));
	buf_free(&doubts);
}

static int watch(struct listing *l, struct trace *live, struct needs *needs, struct err *err)
{
	struct cmd_sources sources;
	const struct rule_spec spec = {.kind = "stop-on-etw-event", .spec = l->o->live};
	char lost[NUMBER_BYTES];
	int rc = cmd_rule_open(l->o, &spec, needs, &l->select.rule, err);

	live->sources = sources.all;
	if (!rc)
		note_rule_doubts(l->select.rule);
	if (!rc)
		rc = cmd_sources(l->o, &sources, err);
	if (!rc)
		rc = cmd_check_live(&sources, needs, err);
	if (!rc)
		rc = log_open(NULL, &live->log, err);
	if (!rc && counts(l))
		rc = out_open("-", true, &l->out, err);
	if (!rc)
		rc = trace_read(live, err);
	if (!rc && l->out)
		rc = put_counts(l, &live->origin);
	rc = l->out ? out_close(l->out, rc ? NULL : err) | rc : rc;
	log_close(live->log);
	if (live->note[0])
		cmd_note("%s", live->note);
	if (live->lost)
		cmd_note("%s events were lost: they arrived faster than they could be read",
			 text_count(live->lost, lost));
	return rc;
}

static int watch_events(const struct options *o, struct err *err)
{
	struct listing l = {.o = o, .err = err, .watches = true};
	struct needs *needs = calloc(1, sizeof(*needs));
	struct trace live = {.needs = needs, .for_ns = (uint64_t)o->seconds_ns,
			     .stack_kb = 32, .each = put_event, .ctx = &l};
	int rc = needs ? 0 : err_memory(err, "for the list of events");

	if (!rc)
		rc = listing_open(&l, err);
	if (!rc && l.lines.format > EVENTS_JSON)
		rc = err_set(err, ERR_USAGE, "events: --live prints text or --json");
	if (!rc)
		rc = watch(&l, &live, needs, err);
	if (!rc && !l.shown)
		rc = err_set(err, ERR_NOT_FOUND, "no event of %s in %.1f s", o->live,
			     (double)o->seconds_ns / 1e9);
	if (l.select.rule)
		trigger_close(l.select.rule);
	listing_free(&l);
	free(needs);
	return rc;
}

static int recorded_events(const struct options *o, struct err *err)
{
	bool kept = o->ids.n || cmd_window_asked(o);
	struct listing l = {.o = o, .err = err};
	struct trace t = {.sources = file_sources(o->capture.file),
			  .path = o->capture.file,
			  .each = put_event,
			  .ctx = &l};
	const char *what = kept ? o->ids.n ? "the incident" : "the window" : o->capture.file;
	char number[NUMBER_BYTES], of[NUMBER_BYTES];
	int rc = listing_open(&l, err), closed;

	if (!rc && (o->live != NULL) + (o->capture.file != NULL) + (o->ids.n > 0) +
	    cmd_window_asked(o) > 1)
		rc = err_set(err, ERR_USAGE, "events: --live watches this machine, --from reads a "
			     "file, --id, --last, --at and times the store; give one of them");
	if (!rc && !kept)
		rc = cmd_file_there(o->capture.file, err);
	if (!rc)
		rc = out_open("-", true, &l.out, err);
	if (!rc) {
		put_frame(&l, event_lines_begin);
		rc = kept ? cmd_kept_events(o, &t, err) : trace_read(&t, err);
		put_frame(&l, event_lines_end);
		/* Show what came before a file's damage. */
		if (counts(&l) && rc != ERR_STOPPED && put_counts(&l, &t.origin) && !rc)
			rc = ERR_MEMORY;
		closed = out_close(l.out, rc && rc != ERR_STOPPED ? NULL : err);
		rc = rc && rc != ERR_STOPPED ? rc : closed;
	}
	if (!rc && t.origin.note[0])
		cmd_note("%s: %s", what, t.origin.note);
	if (!rc && !l.shown)
		rc = report_nothing(&l, what, err);
	else if (!rc && counts(&l) && !l.sheet.json)
		cmd_note("%s of %s events", text_count(l.shown, number), text_count(t.events, of));
	listing_free(&l);
	return rc;
}

int cmd_events(const struct options *o, struct err *err)
{
	struct options mine = cmd_from_time(o);

	if (mine.capture.file || mine.ids.n || cmd_window_asked(&mine))
		return recorded_events(&mine, err);
	return o->live ? watch_events(o, err) : list_events(o, err);
}
