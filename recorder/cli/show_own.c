#include "cli/show_own.h"

#include "cli/cmd.h"

#include "model/own_event.h"

#include <string.h>

static const struct event_field *field(const struct incident *in, const struct incident_event *e,
				       const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		if (strcmp(in->fields[e->first_field + i].name, name) == 0)
			return &in->fields[e->first_field + i];
	}
	return NULL;
}

/* 0 if the field is missing or of another type. */
static double number(const struct incident *in, const struct incident_event *e, const char *name)
{
	const struct event_field *f = field(in, e, name);

	if (f && f->type == FIELD_UINT)
		return (double)f->v.u;
	return f && f->type == FIELD_DOUBLE && f->v.d >= 0 && f->v.d < 1e18 ? f->v.d : 0;
}

static bool is_own(const struct incident_event *e, const char *name)
{
	return e->kind == EVENT_GENERIC && strcmp(e->provider, OWN_PROVIDER) == 0 &&
	       strcmp(e->name, name) == 0;
}

/* The event of this incident's own firing; others may lie in the same window. */
static const struct incident_event *ring_event(const struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		uint64_t trigger_ns = in->head.trigger_ns;

		/* Segments count in ticks of 100 ns. */
		if (is_own(e, OWN_RING) && e->time_ns / 100 == trigger_ns / 100)
			return e;
	}
	return NULL;
}

/* Where the rate of sampling changed, and why. */
static void put_rates(const struct incident *in, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind != EVENT_RATE || !(e->value >= 1 && e->value < 1e18))
			continue;
		buf_printf(out, "%-10sat %+.1f s changed to %.0f Hz", "Rate",
			   ((double)e->time_ns - (double)in->head.trigger_ns) / 1e9,
			   1e9 / e->value);
		if (field(in, e, "StackKb"))
			buf_printf(out, " with %.0f KB of stack", number(in, e, "StackKb"));
		buf_puts(out, ": ");
		put_cut(out, e->name, 400);
		buf_putc(out, '\n');
	}
}

/* What was given up to stay below --max-rss-mb. */
static void put_memory(const struct incident *in, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		const struct event_field *text =
			is_own(e, OWN_MEMORY) ? field(in, e, OWN_MEMORY_TEXT) : NULL;

		if (!text || text->type != FIELD_TEXT)
			continue;
		buf_printf(out, "%-10sat %+.1f s: ", "Memory",
			   ((double)e->time_ns - (double)in->head.trigger_ns) / 1e9);
		put_cut(out, text->v.text, 400);
		buf_putc(out, '\n');
	}
}

static void json_memory(const struct incident *in, struct json *j)
{
	uint32_t i;

	json_key(j, "memory_steps");
	json_open(j, '[');
	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		const struct event_field *text =
			is_own(e, OWN_MEMORY) ? field(in, e, OWN_MEMORY_TEXT) : NULL;

		if (!text || text->type != FIELD_TEXT)
			continue;
		json_open(j, '{');
		json_key_num(j, "at_s", ((double)e->time_ns - (double)in->head.trigger_ns) / 1e9);
		json_key_str(j, "text", text->v.text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_rates(const struct incident *in, struct json *j)
{
	uint32_t i;

	json_key(j, "rates");
	json_open(j, '[');
	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind != EVENT_RATE)
			continue;
		json_open(j, '{');
		json_key_num(j, "from_s",
			     ((double)e->time_ns - (double)in->head.trigger_ns) / 1e9);
		json_key_num(j, "period_ns", e->value);
		json_key_num(j, "stack_kb", number(in, e, "StackKb"));
		json_key_str(j, "reason", e->name);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void own_put(const struct incident *in, struct buf *out)
{
	const struct incident_event *ring = ring_event(in);
	char a[CMD_NUMBER_BYTES], b[CMD_NUMBER_BYTES];
	double per_sample;

	put_rates(in, out);
	put_memory(in, out);
	if (!ring)
		return;
	per_sample = number(in, ring, OWN_RING_BYTES_PER_SAMPLE);
	buf_printf(out, "%-10sholds %s in %s", "Ring",
		   text_seconds(number(in, ring, OWN_RING_SECONDS), a),
		   text_bytes((uint64_t)number(in, ring, OWN_RING_BYTES), b));
	if (per_sample > 0)
		buf_printf(out, ", %.1f bytes per sample", per_sample);
	buf_putc(out, '\n');
}

void own_json(const struct incident *in, struct json *j)
{
	const struct incident_event *ring = ring_event(in);

	json_rates(in, j);
	json_memory(in, j);
	json_key(j, "ring");
	if (!ring) {
		json_null(j);
		return;
	}
	json_open(j, '{');
	json_key_num(j, "held_s", number(in, ring, OWN_RING_SECONDS));
	json_key_uint(j, "bytes", (uint64_t)number(in, ring, OWN_RING_BYTES));
	json_key_uint(j, "samples", (uint64_t)number(in, ring, OWN_RING_SAMPLES));
	json_key_num(j, "bytes_per_sample", number(in, ring, OWN_RING_BYTES_PER_SAMPLE));
	json_close(j, '}');
}
