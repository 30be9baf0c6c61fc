#include "cli/show_own.h"

#include "cli/cmd.h"
#include "listing/deadlocks.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/utf8.h"
#include "model/own_event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_COLUMNS = 400 };

/* 0 if the field is missing or of another type. */
static double number(const struct incident *in, const struct incident_event *e, const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

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

/* The text of an own event of this name; NULL = it is another event. */
static const char *own_text(const struct incident *in, const struct incident_event *e,
			    const char *name)
{
	const struct event_field *f = is_own(e, name) ? incident_field(in, e, OWN_TEXT) : NULL;

	return f && f->type == FIELD_TEXT ? f->v.text : NULL;
}

/* Where the rate of sampling changed, and why. */
static void put_rates(const struct incident *in, struct sheet *p)
{
	const struct incident_event *e;

	if (p->json)
		json_key_open(&p->j, "rates", '[');
	for (e = in->events; e < in->events + in->nevents; e++) {
		if (e->kind != EVENT_RATE)
			continue;
		if (p->json) {
			json_open(&p->j, '{');
			json_key_num(&p->j, "from_s", incident_seconds(&in->head, e->time_ns));
			json_key_num(&p->j, "period_ns", e->value);
			json_key_num(&p->j, "stack_kb", number(in, e, "StackKb"));
			json_key_str(&p->j, "reason", e->name);
			json_close(&p->j, '}');
		} else if (e->value >= 1 && e->value < 1e18) {
			sheet_label(p, "Rate");
			buf_printf(&p->out, "at %+.1f s changed to %.0f Hz",
				   incident_seconds(&in->head, e->time_ns), 1e9 / e->value);
			if (incident_field(in, e, "StackKb"))
				buf_printf(&p->out, " with %.0f KB of stack",
					   number(in, e, "StackKb"));
			buf_puts(&p->out, ": ");
			fit_cut(&p->out, e->name, TEXT_COLUMNS);
			buf_putc(&p->out, '\n');
		}
	}
	if (p->json)
		json_close(&p->j, ']');
}

/* The texts of the own events of this name; key: of their array. */
static void put_texts(const struct incident *in, const char *name, const char *key, struct sheet *p)
{
	const struct incident_event *e;

	if (p->json)
		json_key_open(&p->j, key, '[');
	for (e = in->events; e < in->events + in->nevents; e++) {
		const char *text = own_text(in, e, name);

		if (text && p->json) {
			json_open(&p->j, '{');
			json_key_num(&p->j, "at_s", incident_seconds(&in->head, e->time_ns));
			json_key_str(&p->j, "text", text);
			json_close(&p->j, '}');
		} else if (text) {
			sheet_label(p, name);
			buf_printf(&p->out, "at %+.1f s: ",
				   incident_seconds(&in->head, e->time_ns));
			fit_cut(&p->out, text, TEXT_COLUMNS);
			buf_putc(&p->out, '\n');
		}
	}
	if (p->json)
		json_close(&p->j, ']');
}

/* ring: NULL = nothing was noted. */
static void put_ring(const struct incident *in, const struct incident_event *ring, struct sheet *p)
{
	double seconds = ring ? number(in, ring, OWN_RING_SECONDS) : 0;
	double bytes = ring ? number(in, ring, OWN_RING_BYTES) : 0;
	double per_sample = ring ? number(in, ring, OWN_RING_BYTES_PER_SAMPLE) : 0;
	char a[NUMBER_BYTES], b[NUMBER_BYTES];

	if (p->json)
		json_key(&p->j, "ring");
	if (!ring && p->json)
		json_null(&p->j);
	if (!ring)
		return;
	if (p->json) {
		json_open(&p->j, '{');
		json_key_num(&p->j, "held_s", seconds);
		json_key_uint(&p->j, "bytes", (uint64_t)bytes);
		json_key_uint(&p->j, "samples", (uint64_t)number(in, ring, OWN_RING_SAMPLES));
		json_key_num(&p->j, "bytes_per_sample", per_sample);
		json_close(&p->j, '}');
		return;
	}
	sheet_label(p, "Ring");
	buf_printf(&p->out, "holds %s in %s", text_seconds(seconds, a),
		   text_bytes((uint64_t)bytes, b));
	if (per_sample > 0)
		buf_printf(&p->out, ", %.1f bytes per sample", per_sample);
	buf_putc(&p->out, '\n');
}

void own_put(const struct incident *in, struct sheet *p)
{
	put_rates(in, p);
	put_texts(in, OWN_STALL, "stalls", p);
	put_texts(in, OWN_CLOCK, "clock", p);
	put_texts(in, OWN_MEMORY, "memory_steps", p);
	put_texts(in, OWN_MARK, "marks", p);
	put_ring(in, ring_event(in), p);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* An event of source/stopped/threads.c. */
static bool is_thread(const struct incident *in, const struct incident_event *e)
{
	return strcmp(e->provider, "Recorder") == 0 && strcmp(e->name, "Thread") == 0 &&
	       e->thread != THREAD_NONE && e->thread < in->nthreads;
}

static const char *text_of(const struct incident *in, const struct incident_event *e,
			   const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

	return f && f->type == FIELD_TEXT ? f->v.text : "";
}

static double relative_s(const struct incident *in, const struct incident_event *e)
{
	return (double)(int64_t)(e->time_ns - in->head.trigger_ns) / 1e9;
}

static void put_thread(const struct incident *in, const struct incident_event *e, struct sheet *p)
{
	const char *name = text_of(in, e, "Name"), *state = text_of(in, e, "State");
	size_t from;
	uint32_t node;

	buf_putc(&p->out, '\n');
	from = p->out.len;
	buf_printf(&p->out, "thread %" PRIu32, in->threads[e->thread].tid);
	if (*name) {
		buf_puts(&p->out, "  ");
		utf8_put_clean(&p->out, name, strlen(name), 64);
	}
	sheet_style(p, from, SHEET_HEAD);
	if (*state) {
		buf_puts(&p->out, "  ");
		utf8_put_clean(&p->out, state, strlen(state), 400);
	}
	buf_putc(&p->out, '\n');
	for (node = e->stack; node != STACK_NONE; node = in->stacks[node].parent) {
		buf_puts(&p->out, "    ");
		incident_frame_text(in, in->stacks[node].frame, true, &p->out);
		buf_putc(&p->out, '\n');
	}
}

static void put_thread_json(const struct incident *in, const struct incident_event *e,
			    struct sheet *p)
{
	const struct incident_thread *t = &in->threads[e->thread];
	struct buf text = {0};
	uint32_t node;

	sheet_open(p);
	json_key_num(&p->j, "s", relative_s(in, e));
	json_key_uint(&p->j, "pid", in->processes[t->process].pid);
	json_key_uint(&p->j, "tid", t->tid);
	json_key_str(&p->j, "name", text_of(in, e, "Name"));
	json_key_str(&p->j, "state", text_of(in, e, "State"));
	json_key_open(&p->j, "frames", '[');
	for (node = e->stack; node != STACK_NONE; node = in->stacks[node].parent) {
		buf_reset(&text);
		incident_frame_text(in, in->stacks[node].frame, true, &text);
		json_str(&p->j, buf_text(&text));
	}
	json_close(&p->j, ']');
	sheet_close(p);
	buf_free(&text);
}

static void put_process(const struct incident *in, const struct incident_event *e, struct sheet *p)
{
	const struct incident_thread *t = &in->threads[e->thread];
	char label[PROCESS_LABEL_BYTES];

	buf_printf(&p->out, "%sprocess %" PRIu32 "  ", p->out.len ? "\n" : "",
		   in->processes[t->process].pid);
	incident_process_label(in, t->process, label);
	utf8_put_clean(&p->out, label, strlen(label), sizeof(label));
	buf_printf(&p->out, "  %+.3f s from the trigger\n", relative_s(in, e));
}

/* A picture of one process: its threads come in the order of their numbers. */
struct picture {
	uint32_t process, n, room;           /* process: UINT32_MAX = none yet */
	struct waiting *threads;
};

static void end_picture(struct picture *of, struct sheet *p)
{
	deadlocks_put(of->threads, of->n, p);
	of->n = 0;
}

static void put_in_picture(const struct incident *in, const struct incident_event *e,
			   struct picture *of, struct sheet *p)
{
	const struct incident_thread *t = &in->threads[e->thread];

	if (t->process != of->process || (of->n && t->tid <= of->threads[of->n - 1].tid))
		end_picture(of, p);
	if (t->process != of->process)
		put_process(in, e, p);
	of->process = t->process;
	if (ARRAY_ROOM(of->threads, of->room, of->n + 1))
		p->out.failed = true;
	else
		of->threads[of->n++] = (struct waiting){
			t->tid, (uint32_t)incident_field_uint(in, e, "WaitsForThread")};
	put_thread(in, e, p);
}

int threads_put(const struct incident *in, struct sheet *p, struct err *err)
{
	struct picture picture = {.process = UINT32_MAX};
	uint32_t i, n = 0;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (!is_thread(in, e))
			continue;
		n++;
		if (p->json)
			put_thread_json(in, e, p);
		else
			put_in_picture(in, e, &picture, p);
	}
	end_picture(&picture, p);
	free(picture.threads);
	if (n)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "incident %" PRId64 " has no threads: a rule that ends "
		       "in ;Stacks takes the stacks of all threads when it fires", in->head.id);
}
