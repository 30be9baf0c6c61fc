#include "export/report_data.h"

#include "export/event_list.h"
#include "export/export_tree.h"
#include "export/markup.h"
#include "export/names.h"

#include "base/array.h"
#include "base/json.h"
#include "base/os.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS = 2000,                      /* of the window; more than a screen's columns */
	BUCKETS_OF_MANY = 500,
	MANY_SAMPLES = 300000,               /* with more: fewer buckets, small nodes summed */
	SMALL_PER_MILLION = 50,
	EVENTS_MAX = 20000,                  /* around the trigger; collections not counted */
};

struct data {
	const struct incident *in;
	const struct export_options *opt;
	struct stack_tree tree;
	uint32_t buckets;
	uint32_t *to;                        /* number in the file: its own, or of a "(small)" */
	/* While nodes are numbered: of each its weight with its callees; the "(small)" below it. */
	uint64_t *weight;
	uint32_t *small;
	struct stack_tree_node *nodes;       /* those of the file */
	uint32_t nkept, nsmall, nsummed;
	uint64_t *sums;                      /* of each node of the file, in a bucket */
	uint32_t *last_bucket, *touched;     /* of each node its latest bucket; a bucket's nodes */
	struct json json;
	struct buf scratch;
};

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Processes and threads stay, whatever they weigh: a reader may select them. */
static bool is_kept(const struct data *d, uint32_t node, double least)
{
	return !stack_tree_is_frame(&d->tree, node) || (double)d->weight[node] >= least;
}

/* Number the nodes that stay, in their order; then a "(small)" below each that lost callees. */
static void number_nodes(struct data *d, double least)
{
	uint32_t n = d->tree.nnodes, i;

	for (i = 0; i < n; i++) {
		uint32_t caller = d->tree.nodes[i].caller;

		d->small[i] = STACK_TREE_NONE;
		d->to[i] = STACK_TREE_NONE;
		if (caller != STACK_TREE_NONE && d->to[caller] == STACK_TREE_NONE)
			continue;
		if (!is_kept(d, i, least))
			continue;
		d->to[i] = d->nkept;
		d->nodes[d->nkept++] = (struct stack_tree_node){
			.caller = caller == STACK_TREE_NONE ? STACK_TREE_NONE : d->to[caller],
			.text = d->tree.nodes[i].text,
		};
	}
	for (i = 0; i < n; i++) {
		uint32_t caller = d->tree.nodes[i].caller;

		if (d->to[i] != STACK_TREE_NONE)
			continue;
		d->nsummed++;
		if (d->small[caller] == STACK_TREE_NONE) {
			uint32_t number = d->nkept + d->nsmall++;

			d->small[caller] = number;
			d->nodes[number].caller = d->to[caller];
			d->nodes[number].text = d->tree.texts.n;
		}
		d->small[i] = d->small[caller];   /* for its callees */
	}
	for (i = 0; i < n; i++) {
		if (d->to[i] == STACK_TREE_NONE)
			d->to[i] = d->small[i];
	}
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint32_t bucket_of(const struct data *d, uint64_t time_ns)
{
	uint64_t t0 = d->in->head.t0_ns, t1 = d->in->head.t1_ns;
	double at;

	if (time_ns <= t0 || t1 <= t0)
		return 0;
	at = (double)(time_ns - t0) / (double)(t1 - t0) * d->buckets;
	return at >= d->buckets ? d->buckets - 1 : (uint32_t)at;
}

static int prepare(struct data *d, struct err *err)
{
	uint64_t whole = 0;
	uint32_t i;
	size_t n;
	int rc = export_tree_build(&d->tree, d->in, d->opt, &export_tree_plain, err);

	if (rc)
		return rc;
	n = (size_t)d->tree.nnodes + 1;
	d->buckets = d->tree.nsamples > MANY_SAMPLES ? BUCKETS_OF_MANY : BUCKETS;
	d->weight = export_tree_own(&d->tree, d->in);
	d->to = calloc(n, sizeof(*d->to));
	d->small = calloc(n, sizeof(*d->small));
	d->nodes = calloc(2 * n, sizeof(*d->nodes));
	if (!d->weight || !d->to || !d->small || !d->nodes)
		return err_memory(err, "while summing samples for the report");
	for (i = 0; i < d->tree.nnodes; i++)
		whole += d->weight[i];
	stack_tree_add_up(&d->tree, d->weight);
	number_nodes(d, d->tree.nsamples > MANY_SAMPLES ? (double)whole * SMALL_PER_MILLION / 1e6
							: 0);
	free(d->weight);
	free(d->small);
	d->weight = NULL;
	d->small = NULL;
	n = (size_t)d->nkept + d->nsmall;
	d->sums = calloc(n + 1, sizeof(*d->sums));
	d->last_bucket = array_of_none(n);
	d->touched = malloc((n + 1) * sizeof(*d->touched));
	return d->sums && d->last_bucket && d->touched
		       ? 0
		       : err_memory(err, "while summing samples for the report");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A time relative to the trigger, as a value. */
static void put_ms(struct data *d, uint64_t time_ns)
{
	ms_put(json_value(&d->json), (int64_t)(time_ns - d->in->head.trigger_ns));
}

void report_data_put_texts(struct json *j, const struct stack_tree *t, const char *more)
{
	struct buf codes = {0};
	uint32_t i;

	json_key_open(j, "texts", '[');
	for (i = 0; i < t->texts.n; i++)
		json_str(j, stack_tree_text(t, i));
	if (more)
		json_str(j, more);
	json_close(j, ']');
	for (i = 0; i < t->ncodes; i++)
		buf_putc(&codes, (char)('0' + stack_tree_code(t, i)));
	json_key_str(j, "codes", buf_text(&codes));
	j->out->failed |= codes.failed;
	buf_free(&codes);
}

void report_data_put_nodes(struct json *j, const struct stack_tree_node *nodes, uint32_t n)
{
	uint32_t i;

	json_key_open(j, "callers", '[');
	for (i = 0; i < n; i++)
		json_uint(j, nodes[i].caller == STACK_TREE_NONE ? 0 : i - nodes[i].caller);
	json_close(j, ']');
	json_key_open(j, "names", '[');
	for (i = 0; i < n; i++)
		json_uint(j, nodes[i].text);
	json_close(j, ']');
}

static int by_number(const void *a, const void *b)
{
	return compare_u64(*(const uint32_t *)a, *(const uint32_t *)b);
}

/*
 * Add up the bucket's samples by node: those from *at on, as samples are in order of time. Returns
 * how many nodes have some.
 */
static uint32_t sum_bucket(struct data *d, uint32_t bucket, uint32_t *at)
{
	const struct incident *in = d->in;
	uint32_t n = 0;

	for (; *at < in->nsamples && bucket_of(d, in->samples[*at].time_ns) <= bucket; ++*at) {
		uint32_t node = d->tree.of_sample[*at];

		if (node == STACK_TREE_NONE)
			continue;
		node = d->to[node];
		if (d->last_bucket[node] != bucket) {
			d->last_bucket[node] = bucket;
			d->touched[n++] = node;
			d->sums[node] = 0;
		}
		d->sums[node] += export_weight(in, &in->samples[*at]);
	}
	return n;
}

/* Sort the bucket's nodes; where they are many of all, looking at each of all is quicker. */
static void order_touched(struct data *d, uint32_t bucket, uint32_t n)
{
	uint32_t all = d->nkept + d->nsmall, i, put = 0;

	if (n < all / 16) {
		qsort(d->touched, n, sizeof(*d->touched), by_number);
		return;
	}
	for (i = 0; i < all; i++) {
		d->touched[put] = i;
		put += d->last_bucket[i] == bucket;
	}
}

/* Of each bucket: how many nodes it has, then each with the weight of its samples. */
static void put_weights(struct data *d)
{
	struct json *j = &d->json;
	uint32_t at = 0, b, i, n;

	json_key_open(j, "weights", '[');
	for (b = 0; b < d->buckets; b++) {
		n = sum_bucket(d, b, &at);
		order_touched(d, b, n);
		json_uint(j, n);
		for (i = 0; i < n; i++) {
			json_uint(j, d->touched[i] - (i ? d->touched[i - 1] : 0));
			json_uint(j, d->sums[d->touched[i]]);
		}
	}
	json_close(j, ']');
}

/* ---- counters and events --------------------------------------------------------------------- */

/* How much a process had, as a counter, so that its growth is a lane of the timeline. */
static void put_rss(struct data *d, const struct incident_event *e)
{
	uint32_t process = incident_process_of(d->in, e->thread);
	char label[PROCESS_LABEL_BYTES];

	if (process == UINT32_MAX || strcmp(e->provider, "Memory") != 0 ||
	    strcmp(e->name, "RSS") != 0)
		return;
	incident_process_label(d->in, process, label);
	buf_reset(&d->scratch);
	buf_printf(&d->scratch, "%s (%u): RSS MB", label, (unsigned)d->in->processes[process].pid);
	put_ms(d, e->time_ns);
	json_str(&d->json, buf_text(&d->scratch));
	json_num(&d->json, (double)incident_field_uint(d->in, e, "RssKb") / 1024);
}

static void put_counters(struct data *d)
{
	uint32_t i;

	json_key_open(&d->json, "counters", '[');
	for (i = 0; i < d->in->nevents; i++) {
		const struct incident_event *e = &d->in->events[i];

		if (e->kind == EVENT_GENERIC)
			put_rss(d, e);
		if (e->kind != EVENT_COUNTER)
			continue;
		put_ms(d, e->time_ns);
		json_str(&d->json, e->name);
		json_num(&d->json, e->flags & EVENT_FLAG_ABSENT ? (double)NAN : e->value);
	}
	json_close(&d->json, ']');
}

static void put_event(struct data *d, const struct incident_event *e)
{
	json_open(&d->json, '[');
	put_ms(d, e->time_ns);
	json_str(&d->json, event_kind_text(e->kind));
	buf_reset(&d->scratch);
	event_put_name(e, &d->scratch);
	json_str(&d->json, buf_text(&d->scratch));
	json_num(&d->json, e->value);
	buf_reset(&d->scratch);
	event_put_who(d->in, d->opt, e, &d->scratch);
	json_str(&d->json, buf_text(&d->scratch));
	buf_reset(&d->scratch);
	event_put_fields(d->in, e, &d->scratch);
	json_str(&d->json, buf_text(&d->scratch));
	d->json.out->failed |= d->scratch.failed;
	json_close(&d->json, ']');
}

/* Whether it is about a garbage collection or its pause; the timeline shows all of these. */
static bool is_collection(const struct incident_event *e)
{
	static const char *const names[] = {
		"GC/Start", "GC/Stop", "GC/SuspendEEStart", "GC/RestartEEStop",
	};
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++) {
		if (e->kind == EVENT_GENERIC && strcmp(e->name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Count listed events. skip: how many to leave out first, so that half of the most are older. */
static uint32_t count_events(const struct incident *in, uint32_t most, bool collections,
			     uint32_t *skip)
{
	uint32_t n = 0, before = 0, i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (!event_is_listed(e) || (!collections && is_collection(e)))
			continue;
		n++;
		before += e->time_ns < in->head.trigger_ns;
	}
	*skip = 0;
	if (n > most && before > most / 2)
		*skip = before - most / 2 < n - most ? before - most / 2 : n - most;
	return n;
}

static void put_events(struct data *d)
{
	const struct incident *in = d->in;
	uint64_t from_ns = in->head.t0_ns, to_ns = in->head.t1_ns;
	uint32_t skip, n = count_events(in, EVENTS_MAX, false, &skip), i, at = 0;

	json_key_open(&d->json, "events", '[');
	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (is_collection(e)) {
			put_event(d, e);
			continue;
		}
		if (!event_is_listed(e))
			continue;
		if (at >= skip && at - skip < EVENTS_MAX) {
			put_event(d, e);
			if (at == skip && skip)
				from_ns = e->time_ns;
			if (at - skip == EVENTS_MAX - 1 && at + 1 < n)
				to_ns = e->time_ns;
		}
		at++;
	}
	json_close(&d->json, ']');
	json_key_uint(&d->json, "events_left_out", n > EVENTS_MAX ? n - EVENTS_MAX : 0);
	json_key(&d->json, "events_from_ms");
	put_ms(d, from_ns);
	json_key(&d->json, "events_to_ms");
	put_ms(d, to_ns);
}

/* What belongs to one stream. */
static void put_stream(struct data *d)
{
	const struct incident_head *h = &d->in->head;
	enum stream stream = d->opt->stream;
	struct json *j = &d->json;
	char unit[UNIT_TEXT_MAX];

	json_key_str(j, "metric", stream_text(stream));
	json_key_str(j, "unit", markup_unit(d->in, stream, unit));
	json_key(j, "unit_ns");
	if (stream == STREAM_CPU && (d->in->several_periods || h->period_ns[STREAM_CPU]))
		json_uint(j, d->in->several_periods ? 1000 : h->period_ns[STREAM_CPU]);
	else
		json_null(j);
	json_key(j, "from_ms");
	put_ms(d, h->t0_ns);
	json_key(j, "to_ms");
	put_ms(d, h->t1_ns);
	json_key_uint(j, "buckets", d->buckets);
	json_key_uint(j, "levels", d->in->nparts ? 3 : 2);
	json_key_uint(j, "small", d->nsummed);
	json_key_uint(j, "samples", d->tree.nsamples);
	report_data_put_texts(j, &d->tree, "(small)");
	report_data_put_nodes(j, d->nodes, d->nkept + d->nsmall);
	put_weights(d);
}

/* The streams that the incident has samples of. */
static void put_metrics(struct data *d)
{
	uint64_t n[STREAMS_MAX];
	unsigned i;

	incident_count_streams(d->in, n);
	json_key_open(&d->json, "metrics", '[');
	for (i = 0; i < STREAMS_MAX; i++)
		if (n[i] && !stream_is_mark(i))
			json_str(&d->json, stream_text(i));
	json_close(&d->json, ']');
}

static void put_all(struct data *d)
{
	struct json *j = &d->json;

	json_key_int(j, "incident", d->in->head.id);
	put_metrics(d);
	put_counters(d);
	put_events(d);
	if (d->opt->runtimes) {
		json_key(j, "runtimes");
		buf_puts(json_value(j), d->opt->runtimes);
	}
}

uint32_t report_data_left_out(const struct incident *in, uint32_t *skip, uint32_t *n)
{
	uint32_t ignored, listed = count_events(in, EVENTS_MAX, false, &ignored);

	*n = count_events(in, EVENT_LIST_MAX, true, skip);
	if (*n > EVENT_LIST_MAX)
		*n = EVENT_LIST_MAX;
	return listed > EVENTS_MAX ? listed - EVENTS_MAX : 0;
}

int report_data(const struct incident *in, const struct export_options *opt, bool whole,
		struct buf *out, struct err *err)
{
	struct data d = {.in = in, .opt = opt, .json = {.out = out, .for_people = true}};
	int rc = prepare(&d, err);

	if (!rc) {
		json_open(&d.json, '{');
		put_stream(&d);
		if (whole)
			put_all(&d);
		json_close(&d.json, '}');
		rc = buf_check(out, "the report's data", err);
	}
	stack_tree_free(&d.tree);
	free(d.weight);
	free(d.to);
	free(d.small);
	free(d.nodes);
	free(d.sums);
	free(d.last_bucket);
	free(d.touched);
	buf_free(&d.scratch);
	return rc;
}
