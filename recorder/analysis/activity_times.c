/* The thread time of activities, and incidents grouped by them: see activities.h. */
#include "analysis/activities.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const time_names[SPENT_KINDS] = {
	[SPENT_CPU] = "CPU_TIME",             [SPENT_BLOCKED] = "BLOCKED_TIME",
	[SPENT_DISK] = "DISK_TIME",           [SPENT_HARD_FAULT] = "HARD_FAULT",
	[SPENT_NETWORK] = "NETWORK_TIME",     [SPENT_READIED] = "READIED_TIME",
	[SPENT_UNKNOWN] = "UNKNOWN_TIME",     [SPENT_ASYNC] = "UNKNOWN_ASYNC",
};

const char *activity_time_text(enum activity_time kind)
{
	return time_names[kind];
}

/* The leaf, but for the waker's frames below it. */
enum activity_time activity_time_of(const struct incident *in, uint32_t stack)
{
	unsigned kind;

	for (; stack != STACK_NONE; stack = in->stacks[stack].parent) {
		const struct incident_frame *f = &in->frames[in->stacks[stack].frame];

		if (!f->function || strcmp(in->modules[f->module].path, "[thread]") != 0)
			continue;
		/* The lock of Python's interpreter. */
		if (strcmp(f->function, "GIL") == 0)
			return SPENT_BLOCKED;
		for (kind = 0; kind < SPENT_KINDS; kind++)
			if (strcmp(f->function, time_names[kind]) == 0)
				return (enum activity_time)kind;
	}
	return SPENT_UNKNOWN;
}

static bool is_wait(enum activity_time kind)
{
	return kind != SPENT_CPU && kind != SPENT_READIED && kind != SPENT_UNKNOWN;
}

/* ---- parts of samples ------------------------------------------------------------------------ */

/* The first span of a thread that ends at this time or later. */
static uint32_t span_at(const struct activities *a, uint32_t thread, uint64_t time_ns)
{
	uint32_t low = a->first[thread], high = a->first[thread + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (a->spans[middle].t1_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A moment where one ends and the next begins belongs to the later, which is nested in it. */
static uint32_t activity_at(const struct activities *a, uint32_t thread, uint64_t time_ns)
{
	uint32_t i = span_at(a, thread, time_ns), found = ACTIVITY_NONE;

	for (; i < a->first[thread + 1] && a->spans[i].t0_ns <= time_ns; i++)
		found = a->spans[i].activity;
	return found;
}

int activity_parts(const struct activities *a, const struct incident_sample *s, activity_part *put,
		   void *ctx)
{
	uint64_t at_ns = s->time_ns > s->weight ? s->time_ns - s->weight : 0, end_ns;
	uint32_t i;
	int rc = 0;

	if (s->thread == THREAD_NONE || s->thread >= a->nthreads)
		return put(ctx, s, ACTIVITY_NONE, s->time_ns, s->weight);
	if (s->stream != STREAM_OFF_CPU)
		return put(ctx, s, activity_at(a, s->thread, s->time_ns), s->time_ns, 0);
	for (i = span_at(a, s->thread, at_ns); !rc && i < a->first[s->thread + 1]; i++) {
		const struct activity_span *span = &a->spans[i];

		if (span->t0_ns >= s->time_ns)
			break;
		if (span->t0_ns > at_ns) {
			rc = put(ctx, s, ACTIVITY_NONE, span->t0_ns, span->t0_ns - at_ns);
			at_ns = span->t0_ns;
		}
		end_ns = span->t1_ns < s->time_ns ? span->t1_ns : s->time_ns;
		if (!rc && end_ns > at_ns)
			rc = put(ctx, s, span->activity, end_ns, end_ns - at_ns);
		if (end_ns > at_ns)
			at_ns = end_ns;
	}
	if (!rc && at_ns < s->time_ns)
		rc = put(ctx, s, ACTIVITY_NONE, s->time_ns, s->time_ns - at_ns);
	return rc;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct measuring {
	const struct incident *in;
	struct activities *a;
	bool *timed;                         /* of each process: it has thread time */
};

static void spend(struct activities *a, uint32_t activity, enum activity_time kind, uint64_t ns)
{
	for (; activity != ACTIVITY_NONE; activity = a->items[activity].parent)
		a->items[activity].spent_ns[kind] += ns;
}

static int add_part(void *ctx, const struct incident_sample *s, uint32_t activity, uint64_t end_ns,
		    uint64_t ns)
{
	struct measuring *m = ctx;

	(void)end_ns;
	if (s->stream == STREAM_OFF_CPU)
		spend(m->a, activity, activity_time_of(m->in, s->stack), ns);
	else
		spend(m->a, activity, SPENT_CPU, s->weight);
	return 0;
}

/* Who gave an activity away is in it until its first wait. */
static void cut_at_waits(struct measuring *m)
{
	struct activities *a = m->a;
	uint32_t i, k;

	for (i = 0; i < m->in->nsamples; i++) {
		const struct incident_sample *s = &m->in->samples[i];
		uint64_t from_ns = s->time_ns > s->weight ? s->time_ns - s->weight : 0;

		if (s->stream != STREAM_OFF_CPU || s->thread == THREAD_NONE)
			continue;
		m->timed[m->in->threads[s->thread].process] = true;
		if (s->thread >= a->nthreads || !is_wait(activity_time_of(m->in, s->stack)))
			continue;
		for (k = span_at(a, s->thread, from_ns);
		     k < a->first[s->thread + 1] && a->spans[k].t0_ns < s->time_ns; k++) {
			struct activity_span *span = &a->spans[k];

			if (!span->to_first_wait)
				continue;
			if (span->t1_ns > from_ns)
				span->t1_ns = from_ns > span->t0_ns ? from_ns : span->t0_ns;
			span->to_first_wait = false;
		}
	}
}

/* Where somebody is in an activity, or a nested one goes on. */
static struct sort_item *list_covered(const struct activities *a, struct activity_span **of,
				      uint32_t *n)
{
	struct sort_item *items = NULL;
	uint32_t room = 0, i, at;
	bool failed = false;

	*of = NULL;
	*n = 0;
	for (i = 0; !failed && i < a->n + a->nspans; i++) {
		struct activity_span span = {0};

		if (i < a->nspans) {
			span = a->spans[i];
		} else {
			span.t0_ns = a->items[i - a->nspans].t0_ns;
			span.t1_ns = a->items[i - a->nspans].t1_ns;
			span.activity = a->items[i - a->nspans].parent;
		}
		for (at = span.activity; at != ACTIVITY_NONE; at = a->items[at].parent) {
			failed = ARRAY_ROOM(*of, room, *n + 1) != 0;
			if (failed)
				break;
			(*of)[*n] = span;
			(*of)[(*n)++].activity = at;
		}
	}
	if (!failed)
		items = malloc(((size_t)*n * 2 + 1) * sizeof(*items));
	for (i = 0; items && i < *n; i++)
		items[i] = (struct sort_item){.key = (*of)[i].t0_ns, .value = {i}};
	if (!items)
		return NULL;
	sort_items(items, items + *n, *n);
	for (i = 0; i < *n; i++)
		items[i].key = (*of)[items[i].value[0]].activity;
	sort_items(items, items + *n, *n);
	return items;
}

static int add_gap(struct measuring *m, uint32_t *room, uint32_t activity, uint64_t t0_ns,
		   uint64_t t1_ns)
{
	struct activities *a = m->a;

	if (t1_ns <= t0_ns || !m->timed[a->items[activity].process])
		return 0;
	if (ARRAY_ROOM(a->gaps, *room, a->ngaps + 1))
		return ERR_MEMORY;
	a->gaps[a->ngaps++] = (struct activity_span){.t0_ns = t0_ns, .t1_ns = t1_ns,
						     .thread = THREAD_NONE, .activity = activity};
	spend(a, activity, SPENT_ASYNC, t1_ns - t0_ns);
	return 0;
}

static int find_gaps(struct measuring *m)
{
	struct activities *a = m->a;
	struct activity_span *of;
	uint32_t n, i, k = 0, room = 0;
	struct sort_item *items = list_covered(a, &of, &n);
	int rc = items ? 0 : ERR_MEMORY;

	for (i = 0; !rc && i < a->n; i++) {
		const struct activity *activity = &a->items[i];
		uint64_t at_ns = activity->t0_ns > m->in->head.t0_ns ? activity->t0_ns
								     : m->in->head.t0_ns;
		uint64_t end_ns = activity->t1_ns < m->in->head.t1_ns ? activity->t1_ns
								      : m->in->head.t1_ns;

		for (; !rc && k < n && items[k].key == i; k++) {
			const struct activity_span *span = &of[items[k].value[0]];

			if (span->t0_ns > at_ns)
				rc = add_gap(m, &room, i, at_ns,
					     span->t0_ns < end_ns ? span->t0_ns : end_ns);
			if (span->t1_ns > at_ns)
				at_ns = span->t1_ns;
		}
		if (!rc)
			rc = add_gap(m, &room, i, at_ns, end_ns);
	}
	free(items);
	free(of);
	return rc;
}

int activities_measure(const struct incident *in, struct activities *a, struct err *err)
{
	struct measuring m = {in, a, NULL};
	uint32_t i;
	int rc;

	free(a->gaps);
	a->gaps = NULL;
	a->ngaps = 0;
	if (!a->n)
		return 0;
	m.timed = calloc((size_t)in->nprocesses + 1, sizeof(*m.timed));
	rc = m.timed ? 0 : ERR_MEMORY;
	if (!rc)
		cut_at_waits(&m);
	for (i = 0; !rc && i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_OFF_CPU ||
		    (s->stream == STREAM_CPU && s->thread != THREAD_NONE &&
		     !m.timed[in->threads[s->thread].process]))
			activity_parts(a, s, add_part, &m);
	}
	if (!rc)
		rc = find_gaps(&m);
	free(m.timed);
	return rc ? err_memory(err, "for the times of activities") : 0;
}

/* ---- grouping -------------------------------------------------------------------------------- */

struct moved {
	uint32_t stack, on, to;
};

struct grouping {
	struct incident *in;
	const struct activities *a;
	uint32_t module;
	bool *has;                           /* of each process: it has activities */
	uint32_t *nodes;                     /* of each activity; STACK_NONE = not made yet */
	struct moved *moved;
	uint32_t nmoved;
	struct table by_stack;
	uint32_t before;                     /* samples when it began */
	struct incident_sample *now;
	bool first;                          /* the next part takes the sample's place */
};

static uint32_t add_text(struct grouping *g, uint32_t parent, const char *text)
{
	const struct incident_frame frame = {.module = g->module, .flags = FRAME_TEXT,
					     .function = text,
					     .offset = hash_bytes(text, strlen(text))};
	uint32_t number = incident_add_frame(g->in, &frame);

	return number == UINT32_MAX ? STACK_NONE : incident_add_stack(g->in, parent, number);
}

static uint32_t node_of(struct grouping *g, uint32_t activity)
{
	const struct activity *a = &g->a->items[activity];
	char text[320];
	uint32_t on = STACK_NONE;

	if (g->nodes[activity] != STACK_NONE)
		return g->nodes[activity];
	if (a->parent != ACTIVITY_NONE) {
		on = node_of(g, a->parent);
		if (on == STACK_NONE)
			return on;
	}
	snprintf(text, sizeof(text), "Activity %s(%" PRIu32 ")%s%s", a->name, activity + 1,
		 *a->text ? " " : "", a->text);
	return g->nodes[activity] = add_text(g, on, text);
}

static bool same_move(const void *ctx, uint32_t value, const void *wanted)
{
	const struct moved *m = &((const struct grouping *)ctx)->moved[value], *w = wanted;

	return m->stack == w->stack && m->on == w->on;
}

/* A whole stack on top of a node; STACK_NONE = no memory. */
static uint32_t move_stack(struct grouping *g, uint32_t stack, uint32_t on)
{
	struct moved m = {stack, on, STACK_NONE};
	uint32_t found = table_find(&g->by_stack, hash_pair(stack, on), same_move, g, &m);
	uint32_t parent;

	if (found != TABLE_NONE)
		return g->moved[found].to;
	if (stack == STACK_NONE)
		return on;
	parent = g->in->stacks[stack].parent;
	m.to = move_stack(g, parent, on);
	if (m.to != STACK_NONE)
		m.to = incident_add_stack(g->in, m.to, g->in->stacks[stack].frame);
	if (m.to == STACK_NONE || ARRAY_NEXT(g->moved, g->nmoved) ||
	    table_add(&g->by_stack, hash_pair(stack, on), g->nmoved))
		return STACK_NONE;
	g->moved[g->nmoved++] = m;
	return m.to;
}

/* The thread of an incident that stands for a process's part. */
static uint32_t part_of(struct grouping *g, uint32_t process, bool in_activity)
{
	const struct incident_thread t = {.process = process, .tid = 0, .name = in_activity ?
					  "(Activities)" : "(Non-Activities)"};

	return incident_add_thread(g->in, &t);
}

/* A thread's node on top of an activity's. */
static uint32_t add_thread(struct grouping *g, uint32_t on, uint32_t thread)
{
	const struct incident_thread *t = &g->in->threads[thread];
	char text[96];

	snprintf(text, sizeof(text), "Thread (%" PRIu32 ")%s%.60s", t->tid, *t->name ? " " : "",
		 t->name);
	return add_text(g, on, text);
}

static int put_part(void *ctx, const struct incident_sample *from, uint32_t activity,
		    uint64_t end_ns, uint64_t ns)
{
	struct grouping *g = ctx;
	struct incident_sample s = *from;
	uint32_t on = STACK_NONE, process;
	bool first = g->first;

	g->first = false;
	if (s.thread == THREAD_NONE || !g->has[g->in->threads[s.thread].process])
		return 0;
	process = g->in->threads[s.thread].process;
	if (s.stream == STREAM_OFF_CPU) {
		s.time_ns = end_ns;
		s.weight = ns;
	}
	if (activity != ACTIVITY_NONE) {
		on = node_of(g, activity);
		if (on == STACK_NONE)
			return ERR_MEMORY;
	}
	on = add_thread(g, on, s.thread);
	if (on != STACK_NONE)
		s.stack = move_stack(g, s.stack, on);
	s.thread = part_of(g, process, activity != ACTIVITY_NONE);
	if (on == STACK_NONE || s.stack == STACK_NONE || s.thread == UINT32_MAX)
		return ERR_MEMORY;
	if (!first)
		return incident_add_sample(g->in, &s);
	*g->now = s;
	return 0;
}

static int add_gaps(struct grouping *g)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < g->a->ngaps; i++) {
		const struct activity_span *gap = &g->a->gaps[i];
		struct incident_sample s = {.time_ns = gap->t1_ns, .cpu = CPU_NONE,
					    .weight = gap->t1_ns - gap->t0_ns,
					    .stream = STREAM_OFF_CPU, .quality = QUALITY_NONE};

		s.stack = node_of(g, gap->activity);
		if (s.stack != STACK_NONE)
			s.stack = add_text(g, s.stack, time_names[SPENT_ASYNC]);
		s.thread = part_of(g, g->a->items[gap->activity].process, true);
		if (s.stack == STACK_NONE || s.thread == UINT32_MAX)
			return ERR_MEMORY;
		rc = incident_add_sample(g->in, &s);
	}
	return rc;
}

static int group_all(struct grouping *g)
{
	const struct incident_module module = {.kind = OBJECT_JIT, .name = "[activity]",
					       .path = "[activity]"};
	struct incident_sample now, from;
	uint32_t i;
	int rc = 0;

	g->module = incident_add_module(g->in, &module);
	if (g->module == UINT32_MAX)
		return ERR_MEMORY;
	for (i = 0; i < g->a->n; i++)
		g->has[g->a->items[i].process] = true;
	for (i = 0; !rc && i < g->before; i++) {
		/* Adding samples moves them. */
		now = from = g->in->samples[i];
		g->now = &now;
		g->first = true;
		rc = activity_parts(g->a, &from, put_part, g);
		g->in->samples[i] = now;
	}
	return rc ? rc : add_gaps(g);
}

int activities_group(struct incident *in, const struct activities *a, struct err *err)
{
	struct grouping g = {.in = in, .a = a, .before = in->nsamples};
	int rc = 0;

	if (!a->n)
		return 0;
	g.has = calloc((size_t)in->nprocesses + 1, sizeof(*g.has));
	g.nodes = array_of_none((size_t)a->n + 1);
	rc = g.has && g.nodes ? group_all(&g) : ERR_MEMORY;
	if (!rc && in->nsamples > g.before)
		rc = incident_sort(in);
	table_free(&g.by_stack);
	free(g.moved);
	free(g.nodes);
	free(g.has);
	return rc ? err_memory(err, "for samples by activity") : 0;
}
