/*
 * JSON Lines, an object a line: the incident, its events and counters, its samples. Integers over
 * 2^53 are strings, because most readers of JSON have doubles only.
 */
#include "export/event_json.h"
#include "export/names.h"
#include "export/export_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_ms(struct json *j, const char *key, uint64_t ns)
{
	json_key(j, key);
	ms_put(json_value(j), (int64_t)ns);
}

static void put_wall(struct json *j, const struct incident *in, uint64_t time_ns)
{
	struct buf *out;

	json_key(j, "time_utc");
	out = json_value(j);
	buf_putc(out, '"');
	row_put_time(out, in, time_ns);
	buf_putc(out, '"');
}

static void put_clean(struct json *j, const char *key, const char *text)
{
	struct buf clean = {0};

	name_put(&clean, text);
	if (clean.failed)
		j->out->failed = clean.failed;
	json_key_str(j, key, buf_text(&clean));
	buf_free(&clean);
}

static void put_head(struct json *j, const struct incident *in, const struct export_options *opt)
{
	const struct incident_head *h = &in->head;

	json_open(j, '{');
	json_key_str(j, "type", "incident");
	json_key_int(j, "id", h->id);
	json_key_str(j, "uuid", h->uuid);
	json_key_str(j, "state", incident_state_text(h->state));
	json_key_str(j, "host", h->host);
	json_key_str(j, "system", h->host_text);
	json_key_str(j, "recorder", h->recorder_version);
	json_key_str(j, "rule", h->rule);
	json_key_str(j, "reason", h->reason);
	json_key_str(j, "remarks", h->remarks);
	put_wall(j, in, h->trigger_ns);
	put_ms(j, "trigger_t_ms", h->trigger_ns - h->t0_ns);
	put_ms(j, "window_ms", h->t1_ns - h->t0_ns);
	json_key_str(j, "gap_reason", h->gap_reason);
	json_key_str(j, "stream", stream_text(opt->stream));
	json_key_uint(j, "period_ns", h->period_ns[opt->stream]);
	json_key_uint(j, "lost", h->lost);
	json_key_uint(j, "flooded", h->lost_by_kind[LOSS_FLOOD]);
	json_close(j, '}');
}

static void put_who(struct json *j, const struct incident *in, uint32_t thread)
{
	struct home home;
	struct who who;
	unsigned key;

	if (thread == THREAD_NONE)
		return;
	who_of(in, thread, &who);
	json_key_uint(j, "pid", who.pid);
	put_clean(j, "process", who.process);
	json_key_uint(j, "tid", who.tid);
	put_clean(j, "thread", who.thread);
	home_read(who.home, &home);
	for (key = 0; key < HOME_KEYS; key++)
		if (*home.of[key])
			put_clean(j, home_key_text(key), home.of[key]);
}

/* Frames leaf first, as in samples. */
static void put_event_stack(struct json *j, const struct incident *in, uint32_t stack,
			    bool addresses)
{
	struct buf name = {0};

	if (stack == STACK_NONE)
		return;
	json_key_open(j, "stack", '[');
	for (; stack != STACK_NONE; stack = in->stacks[stack].parent) {
		buf_reset(&name);
		incident_frame_text(in, in->stacks[stack].frame, addresses, &name);
		json_str(j, buf_text(&name));
	}
	json_close(j, ']');
	if (name.failed)
		j->out->failed = name.failed;
	buf_free(&name);
}

static void put_event(struct json *j, const struct incident *in, const struct incident_event *e,
		      bool addresses)
{
	bool counter = e->kind == EVENT_COUNTER;

	json_open(j, '{');
	json_key_str(j, "type", counter ? "counter" : "event");
	put_wall(j, in, e->time_ns);
	put_ms(j, "t_ms", e->time_ns - in->head.t0_ns);
	if (!counter)
		put_clean(j, "provider", e->provider);
	put_clean(j, "name", *e->name ? e->name : event_kind_text(e->kind));
	if (!counter)
		json_key_str(j, "kind", event_kind_text(e->kind));
	put_who(j, in, e->thread);
	if (e->cpu != CPU_NONE)
		json_key_uint(j, "cpu", e->cpu);
	json_key(j, counter ? "value" : "payload");
	if (counter && (e->flags & EVENT_FLAG_ABSENT))
		json_null(j);
	else if (counter)
		json_num(j, e->value);
	else
		row_put_payload(json_value(j), in, e);
	put_event_stack(j, in, e->stack, addresses);
	json_close(j, '}');
}

/* "pid":1,"process":"app","tid":2,"thread":"worker" of each thread, made at its first sample. */
struct whos {
	struct {
		size_t at, n;
	} *of;
	struct buf text;
};

static void put_known_who(struct json *j, const struct incident *in, uint32_t thread,
			  struct whos *whos)
{
	struct json to = {.out = &whos->text};

	if (!whos->of[thread].n) {
		whos->of[thread].at = whos->text.len;
		put_who(&to, in, thread);
		whos->of[thread].n = whos->text.len - whos->of[thread].at;
	}
	if (whos->text.failed)
		j->out->failed = whos->text.failed;
	else
		buf_put(j->out, whos->text.data + whos->of[thread].at, whos->of[thread].n);
}

/* Frames leaf first; process and thread have keys of their own. */
static void put_sample(struct json *j, const struct incident *in, const struct stack_tree *t,
		       uint32_t i, struct whos *whos)
{
	const struct incident_sample *s = &in->samples[i];
	struct buf *to = j->out;
	uint32_t node, caller;
	const char *comma = "";

	buf_puts(to, "{\"type\":\"sample\",\"t_ms\":");
	ms_put(to, (int64_t)(s->time_ns - in->head.t0_ns));
	buf_puts(to, ",\"stream\":\"");
	buf_puts(to, stream_text(s->stream));
	buf_puts(to, "\",\"weight\":");
	buf_put_uint(to, s->weight);
	buf_putc(to, ',');
	if (s->thread != THREAD_NONE) {
		put_known_who(j, in, s->thread, whos);
		buf_putc(to, ',');
	}
	if (s->cpu != CPU_NONE) {
		buf_puts(to, "\"cpu\":");
		buf_put_uint(to, s->cpu);
		buf_putc(to, ',');
	}
	buf_puts(to, "\"quality\":\"");
	buf_puts(to, stack_quality_text(s->quality));
	buf_puts(to, "\",\"stack\":[");
	for (node = t->of_sample[i]; ; node = caller) {
		caller = t->nodes[node].caller;
		if (caller == STACK_TREE_NONE || t->nodes[caller].caller == STACK_TREE_NONE)
			break;
		buf_puts(to, comma);
		export_tree_put(to, t, t->nodes[node].text);
		comma = ",";
	}
	buf_puts(to, "]}");
}

static int end_line(struct json *j, struct out *out, struct err *err)
{
	int rc = buf_check(j->out, "a line of JSON", err);

	buf_putc(j->out, '\n');
	out_drain(out, j->out, false);
	j->comma = false;
	return rc;
}

static int jsonl_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err)
{
	struct whos whos = {.of = calloc((size_t)in->nthreads + 1, sizeof(*whos.of))};
	struct stack_tree tree = {0};
	struct buf line = {0};
	struct json j = {.out = &line};
	uint32_t i;
	int rc;

	if (!whos.of)
		return err_memory(err, "while writing samples");
	rc = export_tree_build(&tree, in, opt, &export_tree_json, err);
	if (!rc) {
		put_head(&j, in, opt);
		rc = end_line(&j, out, err);
	}
	for (i = 0; i < in->nevents && !rc && !out_failed(out); i++) {
		put_event(&j, in, &in->events[i], opt->addresses);
		rc = end_line(&j, out, err);
	}
	for (i = 0; i < in->nsamples && !rc && !out_failed(out); i++) {
		if (tree.of_sample[i] == STACK_TREE_NONE)
			continue;
		put_sample(&j, in, &tree, i, &whos);
		rc = end_line(&j, out, err);
	}
	out_drain(out, &line, true);
	stack_tree_free(&tree);
	buf_free(&line);
	buf_free(&whos.text);
	free(whos.of);
	return rc;
}

const struct exporter jsonl_exporter = {
	.name = "jsonl",
	.suffix = ".jsonl",
	.summary = "an object per event, counter and sample",
	.usual = true,
	.write = jsonl_write,
};
