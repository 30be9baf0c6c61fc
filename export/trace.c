/*
 * Trace events, the JSON of Chrome's tracing, which Perfetto and speedscope read: samples become
 * nested slices for each thread. Keys and phases are those of the document "Trace Event Format".
 * There is no "samples" or "stackFrames": Perfetto ignores them, and speedscope would then ignore
 * the slices.
 *
 * A sample stands for the time before it, as long as its weight. Slices of one function join over a
 * gap of half a period. A slice in which samples end has their weight in its args: these weights
 * add up to the incident's, whereas durations follow a sampling clock that may be late or early.
 */
#include "export/event_json.h"
#include "export/names.h"
#include "export/export_tree.h"
#include "model/lists.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLICES_MAX 2000000u
#define LEAST_NS 1000u                       /* viewers do not show less than 1 us */

struct slice {
	uint64_t start_ns, end_ns, weight;   /* of samples that end in it */
	uint32_t text, thread;
};

struct trace {
	const struct incident *in;
	const struct export_options *opt;
	struct stack_tree tree;
	struct out *out;
	struct buf text;                     /* on its way to the file; failed = no memory */
	struct json json;
	struct slice *slices;                /* since none was open: not written yet */
	uint32_t nslices, slices_capacity, nall;
	bool writing;                        /* or just counting: nall */
	struct lists samples;                /* of each thread */
	struct stack_tree_path path;         /* of the sample at hand */
	uint32_t *open;                      /* slices that are open, root first */
	uint32_t open_capacity, nopen;
	uint64_t tolerance_ns;
	uint32_t depth_max;                  /* deeper frames count for their caller */
};

/* ---- slices ---------------------------------------------------------------------------------- */

/* The index of a sample's thread; nthreads when it is not known. For lists_make(). */
static uint32_t slot_of(const void *ctx, uint32_t sample)
{
	const struct incident *in = ctx;
	uint32_t thread = in->samples[sample].thread;

	return thread == THREAD_NONE ? in->nthreads : thread;
}

static void who_at(const struct trace *t, uint32_t slot, struct who *out)
{
	who_of(t->in, slot == t->in->nthreads ? THREAD_NONE : slot, out);
}

/* The frames of a node, root first; its thread when there are none. */
static int make_path(struct trace *t, uint32_t node)
{
	if (stack_tree_path(&t->tree, node, t->tree.nlevels, &t->path) ||
	    ARRAY_ROOM(t->open, t->open_capacity, t->path.n))
		return ERR_MEMORY;
	if (t->path.n > t->depth_max)
		t->path.n = t->depth_max;
	return 0;
}

static int add_slice(struct trace *t, uint32_t text, uint32_t thread, uint64_t start_ns)
{
	if (t->nall++ == SLICES_MAX)
		return ERR_LIMIT;
	if (ARRAY_ROOM(t->slices, t->slices_capacity, t->nslices + 1))
		return ERR_MEMORY;
	t->slices[t->nslices++] = (struct slice){
		.start_ns = start_ns, .end_ns = start_ns, .text = text, .thread = thread,
	};
	return 0;
}

static uint64_t width_of(const struct trace *t, const struct incident_sample *s)
{
	bool time = stream_is_time(t->opt->stream);

	return time && s->weight > LEAST_NS ? s->weight : LEAST_NS;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_time(struct trace *t, const char *key, int64_t ns)
{
	json_key(&t->json, key);
	us_put(json_value(&t->json), ns);
}

static int64_t since_start(const struct trace *t, uint64_t time_ns)
{
	return (int64_t)(time_ns - t->in->head.t0_ns);
}

static void open_event(struct trace *t, const char *phase, const char *name)
{
	json_open(&t->json, '{');
	json_key_str(&t->json, "ph", phase);
	json_key_str(&t->json, "name", name);
}

static void close_event(struct trace *t)
{
	json_close(&t->json, '}');
	out_drain(t->out, &t->text, false);
}

static void put_ids(struct trace *t, uint32_t thread)
{
	struct who who;

	who_at(t, thread, &who);
	json_key_uint(&t->json, "pid", who.pid);
	json_key_uint(&t->json, "tid", who.tid);
}

static void put_name_of(struct trace *t, uint32_t thread, const char *what, const char *name)
{
	struct buf clean = {0};

	name_put(&clean, name);
	if (clean.failed)
		t->text.failed = clean.failed;
	open_event(t, "M", what);
	put_ids(t, thread);
	json_key_open(&t->json, "args", '{');
	json_key_str(&t->json, "name", buf_text(&clean));
	json_close(&t->json, '}');
	close_event(t);
	buf_free(&clean);
}

static void put_metadata(struct trace *t)
{
	struct list list;
	struct who who;
	uint32_t slot;

	for (slot = 0; slot <= t->in->nthreads && !t->text.failed; slot++) {
		list = lists_get(&t->samples, slot);
		if (list_is_empty(&list))
			continue;
		who_at(t, slot, &who);
		put_name_of(t, slot, "process_name", who.process);
		put_name_of(t, slot, "thread_name", who.thread);
		open_event(t, "M", "thread_sort_index");
		put_ids(t, slot);
		json_key_open(&t->json, "args", '{');
		json_key_uint(&t->json, "sort_index", slot);
		json_close(&t->json, '}');
		close_event(t);
	}
}

/* Written by hand, for there are millions. Texts of the tree are strings of JSON. */
static void put_slice(struct trace *t, const struct slice *s)
{
	struct buf *to = &t->text;
	struct who who;

	who_at(t, s->thread, &who);
	buf_puts(to, t->json.comma ? ",{\"ph\":\"X\",\"name\":" : "{\"ph\":\"X\",\"name\":");
	export_tree_put(to, &t->tree, s->text);
	buf_puts(to, ",\"pid\":");
	buf_put_uint(to, who.pid);
	buf_puts(to, ",\"tid\":");
	buf_put_uint(to, who.tid);
	buf_puts(to, ",\"ts\":");
	us_put(to, since_start(t, s->start_ns));
	buf_puts(to, ",\"dur\":");
	us_put(to, (int64_t)(s->end_ns - s->start_ns));
	if (s->weight) {
		buf_puts(to, ",\"args\":{\"weight\":");
		buf_put_uint(to, s->weight);
		buf_putc(to, '}');
	}
	buf_putc(to, '}');
	t->json.comma = true;
	out_drain(t->out, &t->text, false);
}

/* Those at hand are complete: none of them is open. */
static void put_slices(struct trace *t)
{
	uint32_t i;

	for (i = 0; t->writing && i < t->nslices; i++)
		put_slice(t, &t->slices[i]);
	t->nslices = 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Add a sample to a thread whose slices reach to *cursor. */
static int add_sample(struct trace *t, uint32_t sample, uint64_t *cursor)
{
	const struct incident_sample *s = &t->in->samples[sample];
	uint64_t width = width_of(t, s), start = s->time_ns > width ? s->time_ns - width : 0;
	uint32_t same = 0, i;
	int rc = make_path(t, t->tree.of_sample[sample]);

	if (rc)
		return rc;
	if (start <= *cursor || start - *cursor <= t->tolerance_ns)
		start = *cursor > s->time_ns ? s->time_ns : *cursor;
	else
		t->nopen = 0;
	if (start < *cursor)
		start = *cursor;
	while (same < t->nopen && same < t->path.n &&
	       t->slices[t->open[same]].text == t->path.texts[same])
		same++;
	t->nopen = same;
	if (!same)
		put_slices(t);
	for (; t->nopen < t->path.n && !rc; t->nopen++) {
		rc = add_slice(t, t->path.texts[t->nopen], slot_of(t->in, sample), start);
		if (!rc)
			t->open[t->nopen] = t->nslices - 1;
	}
	if (rc)
		return rc;
	*cursor = s->time_ns > start + LEAST_NS ? s->time_ns : start + LEAST_NS;
	for (i = 0; i < t->nopen; i++)
		t->slices[t->open[i]].end_ns = *cursor;
	t->slices[t->open[t->nopen - 1]].weight += s->weight;
	return 0;
}

/* Make the slices of all samples; they are written, too, once it is known that they are few. */
static int make_slices(struct trace *t)
{
	uint64_t cursor;
	uint32_t slot, sample;
	struct list list;
	int rc = 0;

	t->nall = 0;
	for (slot = 0; slot <= t->in->nthreads && !rc; slot++) {
		put_slices(t);
		t->nopen = 0;
		cursor = 0;
		list = lists_get(&t->samples, slot);
		while (!rc && !t->text.failed && !out_failed(t->out) && list_next(&list, &sample))
			if (t->tree.of_sample[sample] != STACK_TREE_NONE)
				rc = add_sample(t, sample, &cursor);
	}
	put_slices(t);
	return rc;
}

/* Join over longer gaps and leave out innermost frames, until slices are few enough. */
static int choose_detail(struct trace *t)
{
	int rc;

	t->tolerance_ns = t->in->head.period_ns[t->opt->stream] / 2;
	t->depth_max = UINT32_MAX;
	while ((rc = make_slices(t)) == ERR_LIMIT && t->depth_max > 1) {
		t->tolerance_ns *= 2;
		t->depth_max = t->depth_max == UINT32_MAX ? 64 : t->depth_max / 2;
	}
	return rc;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_counter(struct trace *t, const struct incident_event *e)
{
	if (e->flags & EVENT_FLAG_ABSENT)
		return;
	open_event(t, "C", e->name);
	json_key_uint(&t->json, "pid", 0);
	put_time(t, "ts", since_start(t, e->time_ns));
	json_key_open(&t->json, "args", '{');
	json_key_num(&t->json, "value", e->value);
	json_close(&t->json, '}');
	close_event(t);
}

static void put_event(struct trace *t, const struct incident_event *e)
{
	uint64_t length = event_duration_ns(t->in, e);

	open_event(t, length ? "X" : "i", *e->name ? e->name : event_kind_text(e->kind));
	if (!length)
		json_key_str(&t->json, "s", "t");
	json_key_str(&t->json, "cat", *e->provider ? e->provider : event_kind_text(e->kind));
	put_ids(t, e->thread == THREAD_NONE ? t->in->nthreads : e->thread);
	put_time(t, "ts", since_start(t, e->time_ns) - (int64_t)length);
	if (length)
		put_time(t, "dur", (int64_t)length);
	json_key(&t->json, "args");
	event_json_fields(&t->json, t->in->fields + e->first_field, e->nfields, 0);
	close_event(t);
}

static void put_events(struct trace *t)
{
	uint32_t i;

	for (i = 0; i < t->in->nevents && !t->text.failed; i++) {
		if (t->in->events[i].kind == EVENT_COUNTER)
			put_counter(t, &t->in->events[i]);
		else
			put_event(t, &t->in->events[i]);
	}
	open_event(t, "i", "trigger");
	json_key_str(&t->json, "s", "g");
	json_key_uint(&t->json, "pid", 0);
	json_key_uint(&t->json, "tid", 0);
	put_time(t, "ts", since_start(t, t->in->head.trigger_ns));
	json_key_open(&t->json, "args", '{');
	json_key_str(&t->json, "reason", t->in->head.reason);
	json_close(&t->json, '}');
	close_event(t);
}

static void put_head(struct trace *t)
{
	static const char *const units[METRIC_UNITS] = {"ns", "bytes", "count"};
	struct buf notes = {0};

	notes_put(&notes, t->in);
	if (t->depth_max != UINT32_MAX) {
		buf_puts(&notes, "Slices: too many for a viewer; joined over gaps of ");
		ms_put(&notes, (int64_t)t->tolerance_ns);
		buf_printf(&notes, " ms, and frames deeper than %" PRIu32 " left out\n",
			   t->depth_max);
	}
	if (notes.failed)
		t->text.failed = notes.failed;
	json_open(&t->json, '{');
	json_key_str(&t->json, "displayTimeUnit", "ms");
	json_key_open(&t->json, "otherData", '{');
	json_key_str(&t->json, "notes", buf_text(&notes));
	json_key_str(&t->json, "weights", units[stream_metrics[t->opt->stream].unit]);
	json_close(&t->json, '}');
	json_key_open(&t->json, "traceEvents", '[');
	buf_free(&notes);
}

static int write_trace(struct trace *t, struct err *err)
{
	int rc = lists_make(&t->samples, t->in->nthreads + 1, t->in->nsamples, slot_of, t->in);

	if (!rc)
		rc = choose_detail(t);
	if (!rc) {
		put_head(t);
		put_metadata(t);
		t->writing = true;
		rc = make_slices(t);
		put_events(t);
		json_close(&t->json, ']');
		json_close(&t->json, '}');
		buf_putc(&t->text, '\n');
		out_drain(t->out, &t->text, true);
		rc = rc ? rc : t->text.failed;
	}
	if (rc == ERR_LIMIT)
		return err_set(err, ERR_LIMIT, "too many slices for a trace, even one level deep; "
			       "select less with --process, --from and --to");
	return rc ? err_memory(err, "while writing a trace") : 0;
}

static int trace_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err)
{
	struct trace t = {.in = in, .opt = opt, .out = out};
	int rc = export_tree_build(&t.tree, in, opt, &export_tree_json, err);

	t.json.out = &t.text;
	if (!rc)
		rc = write_trace(&t, err);
	stack_tree_free(&t.tree);
	buf_free(&t.text);
	free(t.slices);
	lists_free(&t.samples);
	free(t.path.texts);
	free(t.open);
	return rc;
}

const struct exporter trace_exporter = {
	.name = "trace",
	.suffix = ".trace.json",
	.summary = "Perfetto, chrome://tracing: a timeline",
	.usual = true,
	.write = trace_write,
};
