/*
 * Trace events, the JSON of Chrome's tracing: {"traceEvents":[...]}, or the list alone. The self
 * time of each slice becomes samples with the slices around it as their stack, outermost first:
 *
 *	{"ph":"X","name":"f","pid":1,"tid":2,"ts":10,"dur":5}       a slice, in us
 *	{"ph":"B","name":"f",...}  {"ph":"E",...}                    its beginning and end
 *	{"ph":"M","name":"thread_name","args":{"name":"..."},...}    names, of processes too
 *
 * Where a slice has a weight in its args, as in our own exports (otherData.weights says of what),
 * it is one sample of that weight. A file with "stackFrames" has its stacks in "samples" instead:
 *
 *	"stackFrames":{"7":{"name":"f","category":"module","parent":"5"}},
 *	"samples":[{"pid":1,"tid":2,"ts":10,"sf":7,"weight":1}]
 *
 * A sample's weight counts the usual distance of a thread's samples, which is their median.
 * Counters, marks, flows and asynchronous events have no stack and are passed over. Source: the
 * document "Trace Event Format". JSON is found by its members, so numbers may be texts.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/json_read.h"
#include "base/sort.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_US 4e15                     /* in ns below 2^62 */
#define TIME_ZERO (UINT64_C(1) << 62)        /* times may be negative */
#define SLICE_OPEN UINT64_MAX                /* its end is not told */
#define NO_PARENT UINT32_MAX

/* A thread of the file: its slices nest. */
struct lane {
	uint32_t pid, tid;
	uint32_t process, name, thread;      /* texts in r->names, at + 1; thread in the list */
	uint32_t first_open;                 /* begun slices, innermost first */
	uint64_t last_ns;
};

struct slice {
	uint64_t start_ns, end_ns;
	double weight;                       /* below 0 = none */
	uint32_t lane, frame, next_open;
	char phase;
	uint8_t mark;                        /* quality, where it is no frame; else 0 */
};

/* An item of "stackFrames". */
struct shared_frame {
	size_t id_at, id_n;
	uint32_t parent, frame, node;
	bool resolved;
};

struct reading {
	struct stack_list *l;
	struct buf text, names;
	struct lane *lanes;
	struct slice *slices;
	struct shared_frame *frames;
	uint32_t nlanes, nslices, nframes, lanes_room, slices_room, frames_room;
	struct table by_ids, frames_by_id;
	bool weighed, no_memory;
	uint8_t stream;
};

static const char *text_of(struct reading *r, struct json_value v)
{
	buf_reset(&r->text);
	json_put_text(v, &r->text);
	r->no_memory |= r->text.failed != 0;
	return buf_text(&r->text);
}

static bool is_text(struct reading *r, struct json_value v, const char *text)
{
	return strcmp(text_of(r, v), text) == 0;
}

/* A number, or a text that is one. */
static double number_of(struct reading *r, struct json_value v, double otherwise)
{
	const char *text;
	char *end;
	double out;

	if (!v.at)
		return otherwise;
	text = text_of(r, v);
	out = strtod(text, &end);
	return end != text && fabs(out) < TIME_MAX_US ? out : otherwise;
}

static uint32_t id_of(struct reading *r, struct json_value v)
{
	double number = number_of(r, v, 0);

	return number > 0 && number < UINT32_MAX ? (uint32_t)number : 0;
}

static uint64_t time_of(struct reading *r, struct json_value v, double otherwise_us)
{
	return TIME_ZERO + (uint64_t)llround(number_of(r, v, otherwise_us) * 1e3);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool same_ids(const void *ctx, uint32_t value, const void *key)
{
	const struct lane *a = &((const struct reading *)ctx)->lanes[value], *b = key;

	return a->pid == b->pid && a->tid == b->tid;
}

static struct lane *lane_of(struct reading *r, uint32_t pid, uint32_t tid)
{
	struct lane key = {.pid = pid, .tid = tid, .thread = STACK_LIST_NONE,
			   .first_open = STACK_LIST_NONE};
	uint64_t hash = hash_pair(pid, tid);
	uint32_t at = table_find(&r->by_ids, hash, same_ids, r, &key);

	if (at != TABLE_NONE)
		return &r->lanes[at];
	if (ARRAY_ROOM(r->lanes, r->lanes_room, r->nlanes + 1) ||
	    table_add(&r->by_ids, hash, r->nlanes)) {
		r->no_memory = true;
		return NULL;
	}
	r->lanes[r->nlanes] = key;
	return &r->lanes[r->nlanes++];
}

/* Names of processes are kept with the thread 0 of each. */
static void read_name(struct reading *r, struct json_value event)
{
	bool process = is_text(r, json_member(event, "name"), "process_name");
	uint32_t pid = id_of(r, json_member(event, "pid"));
	uint32_t tid = process ? 0 : id_of(r, json_member(event, "tid"));
	struct lane *lane;

	if (!process && !is_text(r, json_member(event, "name"), "thread_name"))
		return;
	lane = lane_of(r, pid, tid);
	text_of(r, json_member(json_member(event, "args"), "name"));
	if (!lane || !r->text.len || r->names.len > UINT32_MAX / 2)
		return;
	*(process ? &lane->process : &lane->name) = (uint32_t)r->names.len + 1;
	buf_put(&r->names, buf_text(&r->text), strlen(buf_text(&r->text)) + 1);
}

static uint32_t thread_of(struct reading *r, uint32_t pid, uint32_t tid)
{
	struct lane *lane = lane_of(r, pid, tid);
	uint32_t at = table_find(&r->by_ids, hash_pair(pid, 0), same_ids, r,
				 &(struct lane){.pid = pid});
	const char *process, *name, *texts = buf_text(&r->names);

	if (!lane || lane->thread != STACK_LIST_NONE)
		return lane ? lane->thread : STACK_LIST_NONE;
	process = at != TABLE_NONE && r->lanes[at].process ? texts + r->lanes[at].process - 1 : "?";
	name = lane->name ? texts + lane->name - 1 : process;
	lane->thread = stack_list_thread(r->l, process, strlen(process), pid, name, strlen(name),
					 tid);
	return lane->thread;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void read_event(struct reading *r, struct json_value event)
{
	struct json_value phase = json_member(event, "ph");
	char what = phase.at && phase.end - phase.at == 3 ? phase.at[1] : '\0';
	struct slice s = {.phase = what, .weight = -1, .frame = STACK_LIST_NONE};
	struct lane *lane;
	double us;

	if (what == 'M')
		read_name(r, event);
	if (!what || !strchr("XBE", what))
		return;
	/* In our own exports what has a category is an event, no function. */
	if (r->weighed && json_member(event, "cat").at)
		return;
	if (!json_member(event, "ts").at || (what == 'X' && !json_member(event, "dur").at)) {
		r->l->skipped++;
		return;
	}
	lane = lane_of(r, id_of(r, json_member(event, "pid")), id_of(r, json_member(event, "tid")));
	s.start_ns = time_of(r, json_member(event, "ts"), 0);
	us = number_of(r, json_member(event, "dur"), 0);
	s.end_ns = what == 'X' ? s.start_ns + (us > 0 ? (uint64_t)llround(us * 1e3) : 0)
			       : SLICE_OPEN;
	if (r->weighed)
		s.weight = number_of(r, json_member(json_member(event, "args"), "weight"), -1);
	if (what != 'E') {
		text_of(r, json_member(event, "name"));
		if (!stack_list_mark(buf_text(&r->text), r->text.len, &s.mark))
			s.frame = stack_list_text(r->l, buf_text(&r->text), r->text.len);
	}
	if (!lane || r->nslices >= STACK_LIST_SAMPLES_MAX ||
	    ARRAY_ROOM(r->slices, r->slices_room, r->nslices + 1)) {
		r->no_memory |= r->nslices < STACK_LIST_SAMPLES_MAX;
		r->l->full |= r->nslices >= STACK_LIST_SAMPLES_MAX;
		return;
	}
	s.lane = (uint32_t)(lane - r->lanes);
	r->slices[r->nslices++] = s;
}

/* Ends go to the slices that they end; a slice without one ends with its thread. */
static void close_slices(struct reading *r, const struct sort_item *by_time)
{
	uint32_t i;

	for (i = 0; i < r->nslices; i++) {
		struct slice *s = &r->slices[by_time[i].value[0]];
		struct lane *lane = &r->lanes[s->lane];
		uint64_t last_ns = s->end_ns == SLICE_OPEN ? s->start_ns : s->end_ns;

		if (lane->last_ns < last_ns)
			lane->last_ns = last_ns;
		if (s->phase == 'B') {
			s->next_open = lane->first_open;
			lane->first_open = by_time[i].value[0];
		} else if (s->phase == 'E' && lane->first_open != STACK_LIST_NONE) {
			struct slice *begun = &r->slices[lane->first_open];

			lane->first_open = begun->next_open;
			begun->end_ns = s->start_ns;
		} else if (s->phase == 'E') {
			r->l->skipped++;
		}
	}
	for (i = 0; i < r->nslices; i++)
		if (r->slices[i].end_ns == SLICE_OPEN)
			r->slices[i].end_ns = r->lanes[r->slices[i].lane].last_ns;
}

struct walk {
	struct reading *r;
	struct open_slice {
		uint64_t end_ns;
		uint32_t node;
		uint8_t quality;
	} open[STACK_LIST_DEPTH_MAX];
	uint32_t depth, lane;
	uint64_t now_ns;
};

static void put(struct walk *w, uint64_t at_ns, double weight)
{
	const struct open_slice *top = &w->open[w->depth - 1];
	const struct lane *lane = &w->r->lanes[w->lane];

	stack_list_sample(w->r->l, &(struct stack_list_sample){
		.time_ns = at_ns, .weight = weight, .cpu = CPU_NONE, .node = top->node,
		.quality = top->quality, .stream = w->r->stream,
		.thread = thread_of(w->r, lane->pid, lane->tid)});
}

/* What is open until then takes its time; slices that end by then are closed. */
static void advance(struct walk *w, uint64_t to_ns)
{
	while (w->depth && w->now_ns < to_ns) {
		uint64_t end_ns = w->open[w->depth - 1].end_ns;
		uint64_t until_ns = end_ns < to_ns ? end_ns : to_ns;

		if (until_ns > w->now_ns && !w->r->weighed)
			put(w, w->now_ns, (double)(until_ns - w->now_ns));
		if (until_ns > w->now_ns)
			w->now_ns = until_ns;
		w->depth -= end_ns <= to_ns;
	}
	while (w->depth && w->open[w->depth - 1].end_ns <= to_ns)
		w->depth--;
	w->now_ns = to_ns;
}

static void enter(struct walk *w, const struct slice *s)
{
	struct open_slice top = {s->end_ns, STACK_LIST_NONE, QUALITY_COMPLETE};

	if (w->depth == COUNT_OF(w->open))
		return;                      /* its time is its caller's */
	if (w->depth) {
		top = w->open[w->depth - 1];
		/* Clocks of a nested slice may be rounded up. */
		if (s->end_ns < top.end_ns)
			top.end_ns = s->end_ns;
	}
	if (s->mark)
		top.quality = s->mark;
	else
		top.node = stack_list_node(w->r->l, top.node, s->frame);
	w->open[w->depth++] = top;
	if (s->weight > 0)
		put(w, s->end_ns, s->weight);
}

/* By thread, start, and the longest first: the order in which slices open. */
static int sort_slices(struct reading *r, struct sort_item *items)
{
	struct sort_item *scratch = calloc((size_t)r->nslices + 1, sizeof(*scratch));
	uint32_t i;

	if (!scratch)
		return ERR_MEMORY;
	for (i = 0; i < r->nslices; i++)
		items[i] = (struct sort_item){.key = r->slices[i].start_ns, .value = {i, 0}};
	sort_items(items, scratch, r->nslices);
	close_slices(r, items);
	for (i = 0; i < r->nslices; i++)
		items[i] = (struct sort_item){.key = ~r->slices[i].end_ns, .value = {i, 0}};
	sort_items(items, scratch, r->nslices);
	for (i = 0; i < r->nslices; i++)
		items[i].key = r->slices[items[i].value[0]].start_ns;
	sort_items(items, scratch, r->nslices);
	for (i = 0; i < r->nslices; i++)
		items[i].key = r->slices[items[i].value[0]].lane;
	sort_items(items, scratch, r->nslices);
	free(scratch);
	return 0;
}

static int read_slices(struct reading *r, struct json_value events)
{
	struct json_value event = {0};
	struct walk *w = calloc(1, sizeof(*w));
	struct sort_item *items = NULL;
	uint32_t i;
	int rc = w ? 0 : ERR_MEMORY;

	while (w && !r->no_memory && (event = json_next(events, event)).at)
		read_event(r, event);
	items = rc ? NULL : calloc((size_t)r->nslices + 1, sizeof(*items));
	rc = items ? sort_slices(r, items) : ERR_MEMORY;
	for (i = 0; !rc && i < r->nslices; i++) {
		const struct slice *s = &r->slices[items[i].value[0]];

		if (!i || w->lane != s->lane) {
			advance(w, SLICE_OPEN);
			*w = (struct walk){.r = r, .lane = s->lane};
		}
		advance(w, s->start_ns);
		if (s->phase != 'E')
			enter(w, s);
	}
	if (!rc)
		advance(w, SLICE_OPEN);
	free(items);
	free(w);
	return rc;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct frame_id {
	const struct reading *r;
	const char *at;
	size_t n;
};

static bool same_id(const void *ctx, uint32_t value, const void *key)
{
	const struct reading *r = ctx;
	const struct shared_frame *f = &r->frames[value];
	const struct frame_id *id = key;

	return f->id_n == id->n && memcmp(buf_text(&r->names) + f->id_at, id->at, id->n) == 0;
}

static uint32_t find_frame(struct reading *r, struct json_value id)
{
	const char *text = text_of(r, id);
	struct frame_id key = {r, text, r->text.len};

	return r->text.len ? table_find(&r->frames_by_id, hash_bytes(text, r->text.len), same_id,
					r, &key)
			   : NO_PARENT;
}

/* "module!function" where the category has no blank and is no list. */
static uint32_t frame_of(struct reading *r, struct json_value item)
{
	struct buf module = {0};
	uint32_t frame;

	json_put_text(json_member(item, "category"), &module);
	text_of(r, json_member(item, "name"));
	if (!module.len || strpbrk(buf_text(&module), " ,!") || strchr(buf_text(&r->text), '!'))
		frame = stack_list_text(r->l, buf_text(&r->text), r->text.len);
	else
		frame = stack_list_frame(r->l, buf_text(&module), module.len, buf_text(&r->text),
					 r->text.len, 0);
	r->no_memory |= module.failed != 0;
	buf_free(&module);
	return frame;
}

static void read_frames(struct reading *r, struct json_value list)
{
	struct json_value item = {0}, id;

	while (!r->no_memory && (item = json_next_member(list, item, &id)).at) {
		struct shared_frame f = {.parent = NO_PARENT, .frame = frame_of(r, item)};

		if (find_frame(r, id) != TABLE_NONE || !r->text.len) {
			r->l->skipped++;
			continue;
		}
		f.id_at = r->names.len;
		f.id_n = r->text.len;
		buf_put(&r->names, buf_text(&r->text), r->text.len);
		if (r->names.failed || ARRAY_ROOM(r->frames, r->frames_room, r->nframes + 1) ||
		    table_add(&r->frames_by_id, hash_bytes(buf_text(&r->text), f.id_n), r->nframes))
			r->no_memory = true;
		else
			r->frames[r->nframes++] = f;
	}
	while (!r->no_memory && (item = json_next_member(list, item, &id)).at) {
		uint32_t at = find_frame(r, id);

		if (at != NO_PARENT)
			r->frames[at].parent = find_frame(r, json_member(item, "parent"));
	}
}

/* Callers come first; a circle ends at STACK_LIST_DEPTH_MAX. */
static uint32_t resolve(struct reading *r, uint32_t at)
{
	uint32_t chain[STACK_LIST_DEPTH_MAX], n = 0, caller = STACK_LIST_NONE;

	for (; at != NO_PARENT && n < COUNT_OF(chain); at = r->frames[at].parent) {
		if (r->frames[at].resolved) {
			caller = r->frames[at].node;
			break;
		}
		chain[n++] = at;
	}
	while (n) {
		struct shared_frame *f = &r->frames[chain[--n]];

		f->node = caller = stack_list_node(r->l, caller, f->frame);
		f->resolved = true;
	}
	return caller;
}

/* The median distance of samples of one thread. */
static double usual_distance_ns(const struct stack_list *l)
{
	struct sort_item *items = calloc((size_t)l->nsamples + 1, 2 * sizeof(*items));
	uint32_t i, n = 0;
	double out = STACK_LIST_PERIOD_NS;

	for (i = 0; items && i < l->nsamples; i++)
		items[i] = (struct sort_item){.key = l->samples[i].time_ns, .value = {i, 0}};
	if (items)
		sort_items(items, items + l->nsamples, l->nsamples);
	for (i = 0; items && i < l->nsamples; i++)
		items[i].key = l->samples[items[i].value[0]].thread;
	if (items)
		sort_items(items, items + l->nsamples, l->nsamples);
	for (i = 1; items && i < l->nsamples; i++) {
		const struct stack_list_sample *a = &l->samples[items[i - 1].value[0]];
		const struct stack_list_sample *b = &l->samples[items[i].value[0]];

		if (a->thread == b->thread && a->time_ns < b->time_ns)
			items[n++].key = b->time_ns - a->time_ns;
	}
	if (n) {
		sort_items(items, items + l->nsamples, n);
		out = (double)items[n / 2].key;
	}
	free(items);
	return out;
}

static void read_samples(struct reading *r, struct json_value samples)
{
	struct json_value item = {0};
	double distance_ns;
	uint32_t i;

	while (!r->no_memory && (item = json_next(samples, item)).at) {
		uint32_t tid = id_of(r, json_member(item, "tid"));
		uint32_t pid = json_member(item, "pid").at ? id_of(r, json_member(item, "pid")) : 0;
		uint32_t at = find_frame(r, json_member(item, "sf"));
		double weight = number_of(r, json_member(item, "weight"), 1);
		double cpu = number_of(r, json_member(item, "cpu"), CPU_NONE);
		struct stack_list_sample s = {
			.time_ns = time_of(r, json_member(item, "ts"), 0),
			.weight = weight >= 0 ? weight : 0,
			.node = STACK_LIST_NONE, .quality = QUALITY_COMPLETE, .stream = STREAM_CPU,
			.cpu = cpu >= 0 && cpu < CPU_NONE ? (uint16_t)cpu : CPU_NONE,
			.thread = thread_of(r, pid, tid)};

		if (at == NO_PARENT)
			r->l->skipped++;
		else
			s.node = resolve(r, at);
		stack_list_sample(r->l, &s);
	}
	distance_ns = usual_distance_ns(r->l);
	for (i = 0; i < r->l->nsamples; i++)
		r->l->samples[i].weight *= distance_ns;
}

static void read_names(struct reading *r, struct json_value events)
{
	struct json_value event = {0};

	while (!r->no_memory && (event = json_next(events, event)).at)
		if (is_text(r, json_member(event, "ph"), "M"))
			read_name(r, event);
}

int stack_list_trace_events(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct reading r = {.l = l, .stream = STREAM_CPU};
	struct json_value whole, events, shared, weights;

	(void)n;
	if (!json_read(text, &whole))
		return err_set(err, ERR_FORMAT, "it is no valid JSON: is it cut? Chrome may leave "
			       "out the ] at its end, add it");
	events = *whole.at == '[' ? whole : json_member(whole, "traceEvents");
	weights = json_member(json_member(whole, "otherData"), "weights");
	shared = json_member(whole, "stackFrames");
	r.weighed = weights.at != NULL;
	if (is_text(&r, weights, "bytes"))
		r.stream = STREAM_ALLOC;
	else if (is_text(&r, weights, "count"))
		r.stream = STREAM_EVENT;
	if (shared.at) {
		read_names(&r, events);
		read_frames(&r, shared);
		read_samples(&r, json_member(whole, "samples"));
	} else if (read_slices(&r, events)) {
		r.no_memory = true;
	}
	buf_free(&r.text);
	buf_free(&r.names);
	free(r.lanes);
	free(r.slices);
	free(r.frames);
	table_free(&r.by_ids);
	table_free(&r.frames_by_id);
	l->has_times = true;
	l->no_memory |= r.no_memory;
	return 0;
}
