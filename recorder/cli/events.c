/*
 * events: list the events that rules can name; or print events, live, from a trace file, an
 * incident or a window of the history, one per line or counted by name.
 */
#include "cli/cmd.h"
#include "cli/sheet.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/moment.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "engine/trace.h"
#include "export/event_json.h"
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
	/* in the file; of these, passed by the options */
	uint64_t seen, shown;
};

struct listing {
	const struct options *o;
	struct out *out;                     /* NULL = only counted */
	struct sheet sheet;                    /* one line at a time */
	struct text_table texts;             /* provider, NUL, name */
	struct buf key;
	struct event_name *names;            /* by their text's number */
	uint32_t nnames;
	uint64_t shown;
	/* --live: the rule that selects events; NULL = a file */
	struct trigger *rule;
	uint64_t most;                       /* --rows; 0 = all */
	struct err *err;
};

/* ---- which ----------------------------------------------------------------------------------- */

static const char *provider_of(const struct event *e)
{
	return e->provider ? e->provider : "";
}

static const char *name_of(const struct event *e)
{
	return e->name && *e->name ? e->name : event_kind_text(e->kind);
}

static bool is_process(const struct listing *l, const struct event *e)
{
	return e->process && process_is_meant(e->process, l->o->process);
}

static bool is_wanted(struct listing *l, const struct event *e)
{
	const struct options *o = l->o;
	struct sense sense = {0};
	struct buf why = {0};

	if (l->rule) {
		l->rule->ops->sense(l->rule, e, &why, &sense);
		buf_free(&why);
		return sense.hit && (!o->process || is_process(l, e));
	}
	return (!o->provider || text_same_fold(o->provider, provider_of(e))) &&
	       (!o->event_name || text_same_fold(o->event_name, name_of(e))) &&
	       (!o->process || is_process(l, e));
}

/* ---- how many -------------------------------------------------------------------------------- */

static int no_memory(struct listing *l)
{
	return err_memory(l->err, "for the names of events");
}

static int count_name(struct listing *l, const struct event *e, bool wanted)
{
	bool full = l->nnames >= NAMES_MAX;
	uint32_t at;

	buf_reset(&l->key);
	buf_puts(&l->key, full ? "" : provider_of(e));
	buf_putc(&l->key, '\0');
	buf_puts(&l->key, full ? OTHER_NAMES : name_of(e));
	at = l->key.failed ? TABLE_NONE : text_table_add(&l->texts, l->key.data, l->key.len);
	if (at == TABLE_NONE)
		return no_memory(l);
	if (at == l->nnames) {
		if (ARRAY_NEXT(l->names, l->nnames))
			return no_memory(l);
		l->names[l->nnames++] = (struct event_name){0};
	}
	l->names[at].seen++;
	l->names[at].shown += wanted;
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

/* uprobe:/path:function, PROVIDER/NAME */
static void put_name(struct buf *out, const char *provider, const char *name)
{
	if (*provider) {
		utf8_put_clean(out, provider, strlen(provider), SIZE_MAX);
		buf_putc(out, name[0] == '/' ? ':' : '/');
	}
	utf8_put_clean(out, name, strlen(name), SIZE_MAX);
}

static void put_counts(struct listing *l)
{
	struct sheet *p = &l->sheet;
	const struct buf *line;
	uint32_t i;

	if (l->nnames)
		qsort(l->names, l->nnames, sizeof(*l->names), by_name);
	for (i = 0; i < l->nnames; i++) {
		const struct event_name *n = &l->names[i];

		if (!n->shown)
			continue;
		buf_reset(&p->out);
		if (p->json) {
			sheet_open(p);
			json_key_str(&p->j, "provider", n->provider);
			json_key_str(&p->j, "name", n->name);
			json_key_uint(&p->j, "count", n->shown);
			sheet_close(p);
		} else {
			buf_printf(&p->out, "%10" PRIu64 "  ", n->shown);   /* for sort -n */
			put_name(&p->out, n->provider, n->name);
			buf_putc(&p->out, '\n');
		}
		line = sheet_text(p);
		out_put(l->out, buf_text(line), line->len);
	}
}

/* ---- each ------------------------------------------------------------------------------------ */

/* Milliseconds since the file's start; negative for earlier events of a damaged file. */
static double ms_of(const struct event *e, const struct source_origin *origin)
{
	return (double)(int64_t)(e->time_ns - origin->start_ns) / 1e6;
}

static bool is_plain(const char *text)
{
	return *text && !text[strcspn(text, " \t\r\n\"=")];
}

static void put_field_text(struct buf *out, const struct event_field *f, bool as_hex)
{
	struct json j = {.out = out};
	char number[40];

	buf_putc(out, ' ');
	utf8_put_clean(out, f->name, strlen(f->name), SIZE_MAX);
	buf_putc(out, '=');
	switch (f->type) {
	case FIELD_INT:
		buf_printf(out, "%" PRId64, f->v.i);
		break;
	case FIELD_UINT:
		buf_printf(out, as_hex ? "0x%" PRIx64 : "%" PRIu64, f->v.u);
		break;
	case FIELD_DOUBLE:
		num_text(f->v.d, number, sizeof(number));
		buf_puts(out, number);
		break;
	case FIELD_TEXT:
		if (is_plain(f->v.text))
			utf8_put_clean(out, f->v.text, strlen(f->v.text), SIZE_MAX);
		else
			json_str(&j, f->v.text);
		break;
	}
}

/* "2026-11-21 03:10:05.123", local. */
static void put_local_time(struct buf *out, uint64_t wall_ns)
{
	char text[MOMENT_TEXT_BYTES];

	moment_local_text(wall_ns, text);
	buf_printf(out, "%s.%03u  ", text, (unsigned)(wall_ns / NS_PER_MS % 1000));
}

/* A window of the history: its recorder clock is the wall clock. */
static bool is_history(const struct source_origin *origin)
{
	return origin->start_wall_ns && origin->start_wall_ns == origin->start_ns;
}

static void put_text_event(struct sheet *p, const struct event *e,
			   const struct source_origin *origin)
{
	struct buf *out = &p->out;
	size_t name_at;
	uint32_t i;

	if (is_history(origin))
		put_local_time(out, e->time_ns);
	else
		buf_printf(out, "%12.3f  ", ms_of(e, origin));
	if (e->process) {
		char label[PROCESS_LABEL_BYTES];

		process_label(e->process, label);
		utf8_put_clean(out, label, strlen(label), SIZE_MAX);
		buf_printf(out, "(%" PRIu32 ")", e->process->pid);
	} else {
		buf_putc(out, '-');
	}
	if (e->thread)
		buf_printf(out, " %" PRIu32, e->thread->tid);
	if (e->cpu != CPU_NONE)
		buf_printf(out, " cpu %u", (unsigned)e->cpu);
	buf_puts(out, "  ");
	name_at = out->len;
	put_name(out, provider_of(e), name_of(e));
	sheet_style(p, name_at, SHEET_HEAD);
	for (i = 0; i < e->nfields; i++)
		put_field_text(out, &e->fields[i], e->hex_fields >> i & 1);
	buf_putc(out, '\n');
}

static void put_json_event(struct sheet *p, const struct event *e,
			   const struct source_origin *origin)
{
	struct json *j = &p->j;

	sheet_open(p);
	json_key_num(j, "t_ms", ms_of(e, origin));
	if (is_history(origin)) {
		char utc[OS_TIME_TEXT_BYTES];

		os_time_text(e->time_ns, utc);
		json_key_str(j, "time_utc", utc);
	}
	json_key_str(j, "provider", provider_of(e));
	json_key_str(j, "name", name_of(e));
	if (e->process) {
		json_key_str(j, "process", process_name(e->process));
		json_key_uint(j, "pid", e->process->pid);
	}
	if (e->thread)
		json_key_uint(j, "tid", e->thread->tid);
	if (e->cpu != CPU_NONE)
		json_key_uint(j, "cpu", e->cpu);
	json_key_uint(j, "payload_bytes", e->payload_bytes);
	json_key_uint(j, "stack_frames", e->kind == EVENT_IMAGE ? 0 : e->nstack_frames);
	json_key(j, "fields");
	event_json_fields(j, e->fields, e->nfields, e->hex_fields);
	sheet_close(p);
}

static int put_event(void *ctx, const struct event *e, const struct source_origin *origin)
{
	struct listing *l = ctx;
	const struct buf *line;
	bool wanted = is_wanted(l, e);
	int rc = count_name(l, e, wanted);

	l->shown += wanted;
	if (rc || !wanted || l->o->count)
		return rc;
	buf_reset(&l->sheet.out);
	(l->sheet.json ? put_json_event : put_text_event)(&l->sheet, e, origin);
	line = sheet_text(&l->sheet);
	if (line->failed)
		return no_memory(l);
	if (l->rule) {                       /* somebody watches: at once */
		rc = os_write(os_stdout(), line->data, line->len, l->err);
		return rc ? rc : l->most && l->shown >= l->most ? ERR_STOPPED : 0;
	}
	out_put(l->out, line->data, line->len);
	return out_failed(l->out) ? ERR_STOPPED : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int report_nothing(struct listing *l, const char *path, struct err *err)
{
	struct nearest nearest = {.wanted = l->o->event_name ? l->o->event_name : l->o->provider};
	struct buf near = {0};
	uint32_t i;

	if (!l->nnames)
		return err_set(err, ERR_NOT_FOUND, "%s holds no events", path);
	for (i = 0; i < l->nnames && nearest.wanted; i++)
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

static void listing_free(struct listing *l)
{
	free(l->names);
	text_table_free(&l->texts);
	buf_free(&l->key);
	sheet_free(&l->sheet);
}

/* ---- what there is --------------------------------------------------------------------------- */

static int list_events(const struct options *o, struct err *err)
{
	struct out *out = NULL;
	struct err first = {0}, why;
	struct sheet sheet;
	unsigned i, nlists = 0;
	int rc, one;

	sheet_init(&sheet, o);
	rc = out_to_buf(&sheet.out, &out, err);
	/* Where one source fails, another may have events; keep the first error. */
	for (i = 0; !rc && live_sources[i]; i++) {
		if (!live_sources[i]->list_events)
			continue;
		nlists++;
		one = live_sources[i]->list_events(o->pattern, o->json, out, &why);
		if (one && !first.code)
			first = why;
	}
	if (!rc)
		rc = out_close(out, err);
	if (!rc && !sheet.out.len && first.code) {
		rc = (int)first.code;
		if (err)
			*err = first;
	}
	if (!rc && !nlists)
		rc = err_set(err, ERR_USAGE, "events: this system's own events cannot be listed; "
			     "name a trace with --from FILE.etl");
	if (!rc)
		rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
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
	char lost[CMD_NUMBER_BYTES];
	int rc = cmd_rule_open(l->o, &spec, needs, &l->rule, err);

	live->sources = sources.all;
	if (!rc)
		note_rule_doubts(l->rule);
	if (!rc)
		rc = cmd_sources(l->o, &sources, err);
	if (!rc)
		rc = cmd_check_live(&sources, needs, err);
	if (!rc)
		rc = log_open(NULL, &live->log, err);
	if (!rc && l->o->count)
		rc = out_open("-", true, &l->out, err);
	if (!rc)
		rc = trace_read(live, err);
	set_names(l);
	if (!rc && l->out)
		put_counts(l);
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
	struct listing l = {.o = o, .err = err};
	struct needs *needs = calloc(1, sizeof(*needs));
	struct trace live = {.needs = needs, .for_ns = (uint64_t)o->seconds_ns,
			     .stack_kb = 32, .each = put_event, .ctx = &l};
	int rc = needs ? 0 : err_memory(err, "for the list of events");

	sheet_init(&l.sheet, o);
	if (options_origin(o, "rows") != FROM_DEFAULT)
		l.most = o->rows;
	if (!rc)
		rc = watch(&l, &live, needs, err);
	if (!rc && !l.shown)
		rc = err_set(err, ERR_NOT_FOUND, "no event of %s in %.1f s", o->live,
			     (double)o->seconds_ns / 1e9);
	if (l.rule)
		trigger_close(l.rule);
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
	char number[CMD_NUMBER_BYTES], of[CMD_NUMBER_BYTES];
	int rc = 0, closed;

	sheet_init(&l.sheet, o);
	if ((o->live != NULL) + (o->capture.file != NULL) + (o->ids.n > 0) +
	    cmd_window_asked(o) > 1)
		rc = err_set(err, ERR_USAGE, "events: --live watches this machine, --from reads a "
			     "file, --id, --last, --at and times the store; give one of them");
	if (!rc && !kept)
		rc = cmd_file_there(o->capture.file, err);
	if (!rc)
		rc = out_open("-", true, &l.out, err);
	if (!rc) {
		rc = kept ? cmd_kept_events(o, &t, err) : trace_read(&t, err);
		set_names(&l);
		/* Show what came before a file's damage. */
		if (o->count && rc != ERR_STOPPED)
			put_counts(&l);
		closed = out_close(l.out, rc && rc != ERR_STOPPED ? NULL : err);
		rc = rc && rc != ERR_STOPPED ? rc : closed;
	}
	if (!rc && t.origin.note[0])
		cmd_note("%s: %s", what, t.origin.note);
	if (!rc && !l.shown)
		rc = report_nothing(&l, what, err);
	else if (!rc && o->count && !o->json)
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
