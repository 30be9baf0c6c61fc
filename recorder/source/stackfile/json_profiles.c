/*
 * Two kinds of JSON whose samples have a stack each.
 *
 * PerfView's (.perfView.json): samples at a time in ms, whose metric is ms, with the texts of
 * their frames, leaf first: {"StackSource":{"Samples":[{"Time":1,"Metric":1,"Stack":[...]}]}};
 * StackSource may be missing. Our own exports count samples, and say in Notes what one stands for.
 *
 * V8's CPU profiles (.cpuprofile, `node --cpu-prof`): a tree of nodes, and for each sample its node
 * and the us since the one before. Functions are called as the recorder calls them, "work b.js:2".
 * Source: the Chrome DevTools protocol, Profiler.Profile.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/json_read.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX 9e12                        /* ms and us above that are nobody's */

static double number_of(struct json_value v, double otherwise)
{
	double out;

	return json_number(v, &out) && fabs(out) < TIME_MAX ? out : otherwise;
}

static uint64_t to_ns(double at, double scale)
{
	return at > 0 ? (uint64_t)(at * scale + 0.5) : 0;
}

/* ---- PerfView -------------------------------------------------------------------------------- */

struct texts {
	struct buf bytes;
	size_t ends[STACK_LIST_DEPTH_MAX];
	uint32_t n;
};

static const char *text_at(const struct texts *t, uint32_t i, size_t *n)
{
	size_t from = i ? t->ends[i - 1] : 0;

	*n = t->ends[i] - from;
	return buf_text(&t->bytes) + from;
}

/* The outermost STACK_LIST_DEPTH_MAX frames at most: leaves come first. */
static void read_texts(struct texts *t, struct json_value stack)
{
	struct json_value item = {0};
	uint32_t n = 0, skip;

	buf_reset(&t->bytes);
	t->n = 0;
	while ((item = json_next(stack, item)).at)
		n++;
	skip = n > COUNT_OF(t->ends) ? n - (uint32_t)COUNT_OF(t->ends) : 0;
	while ((item = json_next(stack, item)).at) {
		if (skip) {
			skip--;
			continue;
		}
		json_put_text(item, &t->bytes);
		t->ends[t->n++] = t->bytes.len;
	}
}

static void put_stack(struct stack_list *l, const struct texts *t, struct stack_list_sample *s)
{
	size_t n, nthread = 0;
	const char *process = t->n ? text_at(t, t->n - 1, &n) : "?";
	const char *thread = t->n > 1 ? text_at(t, t->n - 2, &nthread) : NULL;
	unsigned used = 0, above = 0;
	uint32_t i;

	/* A set's node, such as an incident, becomes the outermost frame. */
	if (thread && stack_list_is_process(thread, nthread) &&
	    !stack_list_is_process(process, n)) {
		s->node = stack_list_node(l, s->node, stack_list_text(l, process, n));
		above = 1;
		process = thread;
		n = nthread;
		thread = t->n > 2 ? text_at(t, t->n - 3, &nthread) : NULL;
	}
	if (!t->n || memchr(process, '!', n))
		s->thread = stack_list_thread(l, "?", 1, 0, "?", 1, 0);
	else
		s->thread = stack_list_who(l, process, n, thread, nthread, &used);
	for (i = t->n - above - used; i--;) {
		const char *text = text_at(t, i, &n);

		if (!stack_list_mark(text, n, &s->quality))
			s->node = stack_list_node(l, s->node, stack_list_text(l, text, n));
	}
	stack_list_sample(l, s);
}

int stack_list_perfview_json(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct json_value whole, source, samples, sample = {0};
	double each_ms;
	struct texts *t = calloc(1, sizeof(*t));

	(void)n;
	if (!t)
		return err_memory(err, "for PerfView's stacks");
	if (!json_read(text, &whole)) {
		free(t);
		return err_set(err, ERR_FORMAT, "it is no valid JSON");
	}
	source = json_member(whole, "StackSource");
	samples = json_member(source.at ? source : whole, "Samples");
	json_put_text(json_member(whole, "Notes"), &t->bytes);
	each_ms = stack_list_each_ms(buf_text(&t->bytes));
	while (!t->bytes.failed && (sample = json_next(samples, sample)).at) {
		struct stack_list_sample s = {.cpu = CPU_NONE, .node = STACK_LIST_NONE,
					      .quality = QUALITY_COMPLETE};
		double metric = number_of(json_member(sample, "Metric"), 1);

		s.time_ns = to_ns(number_of(json_member(sample, "Time"), 0), 1e6);
		s.weight = metric > 0 ? metric * each_ms * 1e6 : 0;
		read_texts(t, json_member(sample, "Stack"));
		if (!t->bytes.failed)
			put_stack(l, t, &s);
	}
	l->no_memory |= t->bytes.failed != 0;
	buf_free(&t->bytes);
	free(t);
	l->has_times = l->times_begin = true;
	return 0;
}

/* ---- V8 -------------------------------------------------------------------------------------- */

struct v8_node {
	uint64_t id;
	uint32_t parent, frame;              /* parent: an index */
	uint32_t node;                       /* in the list, once it is resolved */
	bool resolved, idle;
};

struct v8_profile {
	struct stack_list *l;
	struct v8_node *nodes;
	uint32_t n, room;
	struct table by_id;
	struct buf text, name;
};

static bool same_id(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct v8_profile *)ctx)->nodes[value].id == *(const uint64_t *)key;
}

static uint32_t find_node(const struct v8_profile *p, struct json_value id)
{
	double v = number_of(id, -1);
	uint64_t key = (uint64_t)(v >= 0 ? v : 0);

	return v < 0 ? TABLE_NONE : table_find(&p->by_id, hash_u64(key), same_id, p, &key);
}

static bool is_name(const struct v8_profile *p, const char *name)
{
	return strcmp(buf_text(&p->text), name) == 0;
}

/* "work b.js:2"; V8 counts lines from 0. */
static void name_node(struct v8_profile *p, struct v8_node *node, struct json_value call)
{
	double line = number_of(json_member(call, "lineNumber"), -1);

	buf_reset(&p->text);
	buf_reset(&p->name);
	json_put_text(json_member(call, "functionName"), &p->text);
	node->idle = is_name(p, "(idle)");
	if (is_name(p, "(root)"))
		return;
	buf_puts(&p->name, p->text.len ? buf_text(&p->text) : "(anonymous)");
	buf_reset(&p->text);
	json_put_text(json_member(call, "url"), &p->text);
	if (p->text.len)
		buf_printf(&p->name, " %s", text_base_name(buf_text(&p->text)));
	if (p->text.len && line >= 0)
		buf_printf(&p->name, ":%.0f", line + 1);
	if (!p->name.failed)
		node->frame = stack_list_frame(p->l, "[javascript]", 12, buf_text(&p->name),
					       p->name.len, FRAME_JIT);
}

static int read_nodes(struct v8_profile *p, struct json_value nodes)
{
	struct json_value item = {0}, child;
	uint32_t at;

	while ((item = json_next(nodes, item)).at) {
		struct v8_node node = {.parent = TABLE_NONE, .frame = STACK_LIST_NONE};
		double id = number_of(json_member(item, "id"), -1);

		node.id = (uint64_t)(id >= 0 ? id : 0);
		if (id < 0 || find_node(p, json_member(item, "id")) != TABLE_NONE ||
		    p->n >= STACK_LIST_NODES_MAX) {
			p->l->skipped++;
			continue;
		}
		name_node(p, &node, json_member(item, "callFrame"));
		if (ARRAY_ROOM(p->nodes, p->room, p->n + 1) ||
		    table_add(&p->by_id, hash_u64(node.id), p->n))
			return ERR_MEMORY;
		p->nodes[p->n++] = node;
	}
	while ((item = json_next(nodes, item)).at) {
		struct json_value children = json_member(item, "children");
		uint32_t parent = find_node(p, json_member(item, "id"));

		for (child = (struct json_value){0}; (child = json_next(children, child)).at;) {
			at = find_node(p, child);
			if (at != TABLE_NONE)
				p->nodes[at].parent = parent;
		}
	}
	return p->text.failed || p->name.failed ? ERR_MEMORY : 0;
}

/* The node of a stack, whose callers come first; a circle ends at STACK_LIST_DEPTH_MAX. */
static uint32_t resolve(struct v8_profile *p, uint32_t at)
{
	uint32_t chain[STACK_LIST_DEPTH_MAX], n = 0, caller = STACK_LIST_NONE;

	for (; at != TABLE_NONE && n < COUNT_OF(chain); at = p->nodes[at].parent) {
		if (p->nodes[at].resolved) {
			caller = p->nodes[at].node;
			break;
		}
		chain[n++] = at;
	}
	while (n) {
		struct v8_node *node = &p->nodes[chain[--n]];

		node->node = caller = stack_list_node(p->l, caller, node->frame);
		node->resolved = true;
	}
	return caller;
}

/* A sample stands for the time until the next one, the last for that until the profile's end. */
static void read_samples(struct v8_profile *p, struct json_value whole)
{
	struct json_value samples = json_member(whole, "samples"), sample = {0}, delta = {0};
	struct json_value deltas = json_member(whole, "timeDeltas");
	double start_us = number_of(json_member(whole, "startTime"), 0), now_us = start_us, next_us;
	double end_us = number_of(json_member(whole, "endTime"), start_us);
	uint32_t thread = stack_list_thread(p->l, "node", 4, 0, "node", 4, 0);

	if ((delta = json_next(deltas, delta)).at)
		now_us += number_of(delta, 0);
	for (; (sample = json_next(samples, sample)).at; now_us = next_us) {
		uint32_t at = find_node(p, sample);
		struct stack_list_sample s = {.cpu = CPU_NONE, .thread = thread,
					      .quality = QUALITY_COMPLETE};

		delta = delta.at ? json_next(deltas, delta) : delta;
		next_us = delta.at ? now_us + number_of(delta, 0) : end_us;
		if (at == TABLE_NONE || !(next_us > now_us)) {
			p->l->skipped += at == TABLE_NONE;
			continue;
		}
		s.node = resolve(p, at);
		s.time_ns = to_ns(now_us, 1e3);
		s.weight = (next_us - now_us) * 1e3;
		if (!p->nodes[at].idle)
			stack_list_sample(p->l, &s);
	}
}

int stack_list_v8_profile(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct v8_profile p = {.l = l};
	struct json_value whole;
	int rc;

	(void)n;
	if (!json_read(text, &whole))
		return err_set(err, ERR_FORMAT, "it is no valid JSON");
	rc = read_nodes(&p, json_member(whole, "nodes"));
	if (!rc)
		read_samples(&p, whole);
	free(p.nodes);
	table_free(&p.by_id);
	buf_free(&p.text);
	buf_free(&p.name);
	l->has_times = true;
	return rc ? err_memory(err, "for V8's profile") : 0;
}
