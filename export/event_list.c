#include "export/event_list.h"

#include "export/names.h"

#include "base/text_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool event_is_listed(const struct incident_event *e)
{
	switch (e->kind) {
	case EVENT_GENERIC: case EVENT_LOG: case EVENT_LOST: case EVENT_RATE:
	case EVENT_PROCESS_START: case EVENT_PROCESS_EXIT:
		return true;
	default:
		return false;
	}
}

void event_put_name(const struct incident_event *e, struct buf *out)
{
	name_put(out, *e->provider ? e->provider : "");
	if (*e->provider && *e->name)
		buf_putc(out, '/');
	name_put(out, e->name);
}

void event_put_who(const struct incident *in, const struct export_options *opt,
		   const struct incident_event *e, struct buf *out)
{
	struct who who;

	if (e->thread == THREAD_NONE)
		return;
	who_of(in, e->thread, &who);
	name_put(out, who.process);
	if (opt->ids)
		buf_printf(out, " (%" PRIu32 ")", who.pid);
}

static void put_double(struct buf *out, double v)
{
	char number[40];

	num_text(v, number, sizeof(number));
	buf_puts(out, number);
}

void event_put_fields(const struct incident *in, const struct incident_event *e, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &in->fields[e->first_field + i];

		if (i)
			buf_puts(out, ", ");
		name_put(out, f->name);
		buf_putc(out, '=');
		if (f->type == FIELD_TEXT)
			name_put(out, f->v.text ? f->v.text : "");
		else if (f->type == FIELD_UINT)
			buf_printf(out, "%" PRIu64, f->v.u);
		else if (f->type == FIELD_INT)
			buf_printf(out, "%" PRId64, f->v.i);
		else
			put_double(out, f->v.d);
	}
}

/* ---- columns --------------------------------------------------------------------------------- */

struct list {
	const struct incident *in;
	const struct export_options *opt;
	struct packer *p;
	uint32_t *events;                    /* indices of those that are taken */
	uint32_t n;
	uint64_t tick_ns;
	struct text_table names, whos;
	uint32_t *name, *who;                /* of each event */
	struct buf scratch;
};

static int intern(struct text_table *t, struct buf *text, uint32_t *out)
{
	if (!text->failed)
		*out = text_table_add(t, buf_text(text), text->len);
	return text->failed || *out == TABLE_NONE ? ERR_MEMORY : 0;
}

static int prepare(struct list *l, uint32_t first)
{
	uint32_t i, at = 0;
	uint64_t most = 0, last = l->in->head.t0_ns;

	for (i = 0; i < l->in->nevents && at < first + l->n; i++) {
		const struct incident_event *e = &l->in->events[i];
		uint32_t k = at - first;

		if (!event_is_listed(e) || at++ < first)
			continue;
		l->events[k] = i;
		buf_reset(&l->scratch);
		buf_printf(&l->scratch, "%s ", event_kind_text(e->kind));
		event_put_name(e, &l->scratch);
		if (intern(&l->names, &l->scratch, &l->name[k]))
			return ERR_MEMORY;
		buf_reset(&l->scratch);
		event_put_who(l->in, l->opt, e, &l->scratch);
		if (intern(&l->whos, &l->scratch, &l->who[k]))
			return ERR_MEMORY;
		if (e->time_ns > last && e->time_ns - last > most)
			most = e->time_ns - last;
		last = e->time_ns;
	}
	l->tick_ns = (most / 1000 / UINT32_MAX + 1) * 1000;
	return 0;
}

static void put_texts(struct json *j, const char *key, const struct text_table *t)
{
	uint32_t i;

	json_key_open(j, key, '[');
	for (i = 0; i < t->n; i++)
		json_str(j, text_table_get(t, i));
	json_close(j, ']');
}

static int put_head(struct list *l)
{
	struct buf text = {0};
	struct json j = {.out = &text};
	int rc;

	json_open(&j, '{');
	json_key_uint(&j, "n", l->n);
	json_key_uint(&j, "tick_us", l->tick_ns / 1000);
	json_key_uint(&j, "page", EVENT_PAGE_LINES);
	json_key_num(&j, "from_ms",
		     (double)(int64_t)(l->in->head.t0_ns - l->in->head.trigger_ns) / 1e6);
	put_texts(&j, "names", &l->names);
	put_texts(&j, "whos", &l->whos);
	json_close(&j, '}');
	while ((text.len + 1) % 8)
		buf_putc(&text, ' ');
	buf_putc(&text, '\n');
	rc = text.failed ? ERR_MEMORY : 0;
	if (!rc)
		packer_put(l->p, text.data, text.len);
	buf_free(&text);
	return rc;
}

static void put_le(struct packer *p, uint64_t v, unsigned bytes)
{
	unsigned char b[8];
	unsigned i;

	for (i = 0; i < bytes; i++)
		b[i] = (unsigned char)(v >> 8 * i);
	packer_put(p, b, bytes);
}

static void put_columns(struct list *l)
{
	uint64_t last = 0, at, bits;
	uint32_t i;

	for (i = 0; i < l->n; i++) {
		memcpy(&bits, &l->in->events[l->events[i]].value, sizeof(bits));
		put_le(l->p, bits, 8);
	}
	/* From rounded times, so that nothing adds up. */
	for (i = 0; i < l->n; i++) {
		uint64_t time_ns = l->in->events[l->events[i]].time_ns, t0 = l->in->head.t0_ns;

		at = time_ns > t0 ? (time_ns - t0) / l->tick_ns : 0;
		at = at < last ? last : at;
		put_le(l->p, at - last, 4);
		last = at;
	}
	for (i = 0; i < l->n; i++)
		put_le(l->p, l->name[i], 4);
	for (i = 0; i < l->n; i++)
		put_le(l->p, l->who[i], 4);
}

int event_list_pack(const struct incident *in, const struct export_options *opt, uint32_t first,
		    uint32_t n, struct packer *p, struct err *err)
{
	struct list l = {.in = in, .opt = opt, .p = p, .n = n};
	int rc = ERR_MEMORY;

	l.events = calloc((size_t)n + 1, sizeof(*l.events));
	l.name = calloc((size_t)n + 1, sizeof(*l.name));
	l.who = calloc((size_t)n + 1, sizeof(*l.who));
	if (l.events && l.name && l.who)
		rc = prepare(&l, first);
	if (!rc)
		rc = put_head(&l);
	if (!rc)
		put_columns(&l);
	text_table_free(&l.names);
	text_table_free(&l.whos);
	buf_free(&l.scratch);
	free(l.events);
	free(l.name);
	free(l.who);
	return rc ? err_memory(err, "while listing events") : 0;
}

int event_list_pack_lines(const struct incident *in, uint32_t first, uint32_t n, struct out *out,
			  struct err *err)
{
	struct packer *p = NULL;
	struct buf line = {0};
	char id[40];
	uint32_t i, at = 0, put = 0;
	int rc = 0;

	for (i = 0; !rc && i < in->nevents && put < n; i++) {
		if (!event_is_listed(&in->events[i]) || at++ < first)
			continue;
		if (put % EVENT_PAGE_LINES == 0) {
			packer_close(p);
			snprintf(id, sizeof(id), "events-%" PRIu32, put / EVENT_PAGE_LINES);
			rc = packer_open(out, id, &p, err);
		}
		if (rc)
			break;
		buf_reset(&line);
		event_put_fields(in, &in->events[i], &line);
		buf_putc(&line, '\n');
		rc = buf_check(&line, "the events", err);
		if (!rc)
			packer_put(p, line.data, line.len);
		put++;
	}
	packer_close(p);
	buf_free(&line);
	return rc;
}
