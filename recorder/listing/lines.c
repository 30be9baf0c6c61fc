#include "listing/lines.h"

#include "base/array.h"
#include "base/moment.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"
#include "export/event_json.h"
#include "export/markup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int event_lines_format(const struct options *o, enum event_format *out, struct err *err)
{
	static const char *const names[] = {"text", "json", "csv", "xml"};
	unsigned i;

	*out = o->json ? EVENTS_JSON : EVENTS_TEXT;
	if (!o->format)
		return 0;
	for (i = 0; i < COUNT_OF(names); i++) {
		if (strcmp(o->format, names[i]) != 0)
			continue;
		*out = (enum event_format)i;
		return 0;
	}
	return err_set(err, ERR_USAGE, "events: --format %.40s is none of text, json, csv, xml",
		       o->format);
}

void event_lines_free(struct event_lines *l)
{
	buf_free(&l->plain);
}

/* ---- which fields ---------------------------------------------------------------------------- */

static void choose(struct event_lines *l, const struct event *e, const struct event_field *f)
{
	uint64_t at = (uint64_t)(f - e->fields);

	if (l->nfields == EVENT_MAX_FIELDS)
		return;
	if (at < 64 && (e->hex_fields >> at & 1))
		l->hex_fields |= UINT64_C(1) << l->nfields;
	l->chosen[l->nfields++] = *f;
}

static void choose_rest(struct event_lines *l, const struct event *e)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++)
		if (event_select_is_rest(l->select, e->fields[i].name))
			choose(l, e, &e->fields[i]);
}

static void choose_fields(struct event_lines *l, const struct event *e)
{
	const struct event_select *s = l->select;
	const struct event_field *f;
	uint32_t i;

	l->fields = e->fields;
	l->nfields = e->nfields;
	l->hex_fields = e->hex_fields;
	if (!s->ncolumns)
		return;
	l->fields = l->chosen;
	l->nfields = 0;
	l->hex_fields = 0;
	for (i = 0; i < s->ncolumns; i++) {
		f = event_field(e, s->columns[i].field);
		if (f)
			choose(l, e, f);
		else if (strcmp(s->columns[i].field, "*") == 0)
			choose_rest(l, e);
	}
}

static bool is_hex(const struct event_lines *l, uint32_t i)
{
	return i < 64 && (l->hex_fields >> i & 1);
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_plain(const char *text)
{
	return *text && !text[strcspn(text, " \t\r\n\"=")];
}

static void put_value(struct buf *out, const struct event_field *f, bool as_hex)
{
	char number[40];

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
		utf8_put_clean(out, f->v.text, strlen(f->v.text), SIZE_MAX);
		break;
	}
}

static void put_text_field(struct buf *out, const struct event_field *f, bool as_hex)
{
	struct json j = {.out = out};

	buf_putc(out, ' ');
	utf8_put_clean(out, f->name, strlen(f->name), SIZE_MAX);
	buf_putc(out, '=');
	if (f->type == FIELD_TEXT && !is_plain(f->v.text))
		json_str(&j, f->v.text);
	else
		put_value(out, f, as_hex);
}

void event_name_put(struct buf *out, const char *provider, const char *name)
{
	if (*provider) {
		utf8_put_clean(out, provider, strlen(provider), SIZE_MAX);
		buf_putc(out, name[0] == '/' ? ':' : '/');
	}
	utf8_put_clean(out, name, strlen(name), SIZE_MAX);
}

/* The line but for its time. */
static void put_plain(struct event_lines *l, const struct event *e)
{
	struct buf *out = &l->plain;
	uint32_t i;

	buf_reset(out);
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
	l->name_at = out->len;
	event_name_put(out, event_provider(e), event_name(e));
	l->name_end = out->len;
	for (i = 0; i < l->nfields; i++)
		put_text_field(out, &l->fields[i], is_hex(l, i));
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

static void put_text(struct event_lines *l, const struct event *e,
		     const struct source_origin *origin, double ms)
{
	size_t from = l->out->len;

	if (is_history(origin))
		put_local_time(l->out, e->time_ns);
	else
		buf_printf(l->out, "%12.3f  ", ms);
	l->name_at += l->out->len - from;
	l->name_end += l->out->len - from;
	buf_put(l->out, buf_text(&l->plain), l->plain.len);
	buf_putc(l->out, '\n');
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_json(struct event_lines *l, const struct event *e,
		     const struct source_origin *origin, double ms)
{
	struct json json = {.out = l->out}, *j = &json;

	json_open(j, '{');
	json_key_num(j, "t_ms", ms);
	if (is_history(origin)) {
		char utc[OS_TIME_TEXT_BYTES];

		os_time_text(e->time_ns, utc);
		json_key_str(j, "time_utc", utc);
	}
	json_key_str(j, "provider", event_provider(e));
	json_key_str(j, "name", event_name(e));
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
	event_json_fields(j, l->fields, l->nfields, l->hex_fields);
	json_close(j, '}');
	buf_putc(l->out, '\n');
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void begin_csv(struct event_lines *l)
{
	const struct event_select *s = l->select;
	struct buf *out = l->out;
	uint32_t i;

	buf_puts(out, "ms,process,pid,tid,cpu,provider,name");
	for (i = 0; i < s->ncolumns; i++) {
		if (strcmp(s->columns[i].field, "*") == 0)
			continue;
		buf_putc(out, ',');
		markup_put_csv(out, s->columns[i].field, false);
	}
	buf_puts(out, event_select_has_rest(s) ? ",fields\n" : "\n");
}

/* A cell from the scratch text; `after` follows. */
static void end_cell(struct event_lines *l, char after)
{
	markup_put_csv(l->out, buf_text(&l->plain), false);
	buf_putc(l->out, after);
	buf_reset(&l->plain);
}

static void put_clean_cell(struct event_lines *l, const char *text)
{
	utf8_put_clean(&l->plain, text, strlen(text), SIZE_MAX);
	end_cell(l, ',');
}

static void put_csv_fields(struct event_lines *l, const struct event *e)
{
	const struct event_select *s = l->select;
	struct buf *out = l->out;
	uint32_t i;

	for (i = 0; i < s->ncolumns; i++) {
		const struct event_field *f = event_field(e, s->columns[i].field);
		uint64_t at = f ? (uint64_t)(f - e->fields) : 0;

		if (strcmp(s->columns[i].field, "*") == 0)
			continue;
		buf_putc(out, ',');
		if (f)
			put_value(&l->plain, f, at < 64 && (e->hex_fields >> at & 1));
		markup_put_csv(out, buf_text(&l->plain), false);
		buf_reset(&l->plain);
	}
	if (!event_select_has_rest(s))
		return;
	l->nfields = 0;
	l->hex_fields = 0;
	l->fields = l->chosen;
	choose_rest(l, e);
	for (i = 0; i < l->nfields; i++)
		put_text_field(&l->plain, &l->fields[i], is_hex(l, i));
	buf_putc(out, ',');
	markup_put_csv(out, buf_text(&l->plain) + (l->plain.len > 0), false);
}

static void put_csv(struct event_lines *l, const struct event *e, double ms)
{
	struct buf *out = l->out;

	buf_reset(&l->plain);
	buf_printf(out, "%.4f,", ms);
	put_clean_cell(l, e->process ? process_name(e->process) : "");
	if (e->process)
		buf_printf(out, "%" PRIu32, e->process->pid);
	buf_putc(out, ',');
	if (e->thread)
		buf_printf(out, "%" PRIu32, e->thread->tid);
	buf_putc(out, ',');
	if (e->cpu != CPU_NONE)
		buf_printf(out, "%u", (unsigned)e->cpu);
	buf_putc(out, ',');
	put_clean_cell(l, event_provider(e));
	utf8_put_clean(&l->plain, event_name(e), strlen(event_name(e)), SIZE_MAX);
	markup_put_csv(out, buf_text(&l->plain), false);
	buf_reset(&l->plain);
	put_csv_fields(l, e);
	buf_putc(out, '\n');
}

/* ---- XML ------------------------------------------------------------------------------------- */

static void put_padded(struct buf *out, const char *name, const char *value, unsigned width)
{
	size_t n = strlen(value) + 2;

	buf_printf(out, " %s=", name);
	for (; n < width; n++)
		buf_putc(out, ' ');
	buf_putc(out, '"');
	markup_put(out, value, strlen(value));
	buf_putc(out, '"');
}

/* -1 = nobody's. */
static void put_padded_number(struct buf *out, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	put_padded(out, name, text, 6);
}

static void put_with_commas(struct buf *out, uint64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, value), i;

	for (i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			buf_putc(out, ',');
		buf_putc(out, digits[i]);
	}
}

/* Names of attributes are letters, digits and '_'. */
static char attribute_char(char c)
{
	return isalnum((unsigned char)c) ? c : '_';
}

static bool same_attribute(const char *a, const char *b)
{
	while (*a && *b && attribute_char(*a) == attribute_char(*b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static bool is_given_before(const struct event_lines *l, uint32_t i)
{
	static const char *const taken[] = {"MSec", "PID", "PName", "TID", "EventName",
					    "ProviderName"};
	const char *name = l->fields[i].name;
	uint32_t k;

	for (k = 0; k < COUNT_OF(taken); k++)
		if (same_attribute(taken[k], name))
			return true;
	for (k = 0; k < i; k++)
		if (same_attribute(l->fields[k].name, name))
			return true;
	return false;
}

/* One that the event has already gets the field's number, after a character that no field has. */
static void put_attribute_name(struct event_lines *l, struct buf *out, uint32_t i)
{
	const char *at = l->fields[i].name;

	buf_putc(out, ' ');
	if (!isalpha((unsigned char)*at))
		buf_putc(out, '_');
	for (; *at; at++)
		buf_putc(out, attribute_char(*at));
	if (is_given_before(l, i))
		buf_printf(out, ".%" PRIu32, i);
	buf_putc(out, '=');
}

static void put_xml_field(struct event_lines *l, struct buf *out, uint32_t i)
{
	const struct event_field *f = &l->fields[i];

	put_attribute_name(l, out, i);
	buf_putc(out, '"');
	if (f->type == FIELD_UINT && is_hex(l, i)) {
		buf_printf(out, "0x%08" PRIX64, f->v.u);
	} else if (f->type == FIELD_UINT) {
		put_with_commas(out, f->v.u);
	} else if (f->type == FIELD_INT) {
		if (f->v.i < 0)
			buf_putc(out, '-');
		put_with_commas(out, f->v.i < 0 ? 0 - (uint64_t)f->v.i : (uint64_t)f->v.i);
	} else {
		buf_reset(&l->plain);
		put_value(&l->plain, f, false);
		markup_put(out, buf_text(&l->plain), l->plain.len);
	}
	buf_putc(out, '"');
}

static void put_name_attribute(struct event_lines *l, const char *attribute, const char *name)
{
	struct buf *out = l->out;

	buf_reset(&l->plain);
	utf8_put_clean(&l->plain, name, strlen(name), SIZE_MAX);
	put_padded(out, attribute, buf_text(&l->plain), 0);
}

static void put_xml(struct event_lines *l, const struct event *e, double ms)
{
	struct buf *out = l->out;
	char text[32];
	uint32_t i;

	snprintf(text, sizeof(text), "%.4f", ms);
	buf_puts(out, "<Event");
	put_padded(out, "MSec", text, 13);
	put_padded_number(out, "PID", e->process ? (int64_t)e->process->pid : -1);
	buf_reset(&l->plain);
	if (e->process)
		utf8_put_clean(&l->plain, process_name(e->process),
			       strlen(process_name(e->process)), SIZE_MAX);
	put_padded(out, "PName", buf_text(&l->plain), 10);
	put_padded_number(out, "TID", e->thread ? (int64_t)e->thread->tid : -1);
	put_name_attribute(l, "EventName", event_name(e));
	put_name_attribute(l, "ProviderName", event_provider(e));
	for (i = 0; i < l->nfields; i++)
		put_xml_field(l, out, i);
	buf_puts(out, "/>\n");
}

/* ---- all ------------------------------------------------------------------------------------- */

void event_lines_begin(struct event_lines *l)
{
	if (l->format == EVENTS_CSV)
		begin_csv(l);
	else if (l->format == EVENTS_XML)
		buf_puts(l->out, "<Events>\n");
}

void event_lines_end(struct event_lines *l)
{
	if (l->format == EVENTS_XML)
		buf_puts(l->out, "</Events>\n");
}

bool event_lines_put(struct event_lines *l, const struct event *e,
		     const struct source_origin *origin, double ms)
{
	choose_fields(l, e);
	if (l->select->text || l->format == EVENTS_TEXT) {
		put_plain(l, e);
		if (!event_select_takes_text(l->select, buf_text(&l->plain), l->plain.len))
			return false;
	}
	switch (l->format) {
	case EVENTS_TEXT:
		put_text(l, e, origin, ms);
		break;
	case EVENTS_JSON:
		put_json(l, e, origin, ms);
		break;
	case EVENTS_CSV:
		put_csv(l, e, ms);
		break;
	case EVENTS_XML:
		put_xml(l, e, ms);
		break;
	}
	l->out->failed |= l->plain.failed;
	return true;
}
