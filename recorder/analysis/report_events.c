#include "analysis/report_events.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NaN if the event has no such number. */
static double field_number(const struct incident *in, const struct incident_event *e,
			   const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &in->fields[e->first_field + i];

		if (strcmp(f->name, name) != 0)
			continue;
		if (f->type == FIELD_UINT)
			return (double)f->v.u;
		return f->type == FIELD_INT ? (double)f->v.i : (double)NAN;
	}
	return NAN;
}

static uint32_t process_of(const struct incident *in, const struct incident_event *e)
{
	return e->thread == THREAD_NONE ? UINT32_MAX : in->threads[e->thread].process;
}

/*
 * The process's latest collection with this count that has not ended; where collections are not
 * counted, the thread's.
 */
static struct collection *find_open(const struct incident *in, struct collection *all, uint32_t n,
				    const struct incident_event *e, double count)
{
	while (n--) {
		const struct collection *c = &all[n];

		if (c->ended || c->end_lost)
			continue;
		if (count == count ? c->count == count &&
				     process_of(in, c->start) == process_of(in, e)
				   : c->count != c->count && c->start->thread == e->thread)
			return &all[n];
	}
	return NULL;
}

static uint32_t find_collections(const struct incident *in, struct collection *all)
{
	uint32_t i, n = 0;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		bool start = !strcmp(e->name, "GC/Start");
		struct collection *c;
		double count;

		if (e->kind != EVENT_GENERIC || (!start && strcmp(e->name, "GC/Stop") != 0))
			continue;
		count = field_number(in, e, "Count");
		c = find_open(in, all, n, e, count);
		if (start && c && count != count) {
			c->end_lost = true;  /* it may not be the same one again */
			c = NULL;
		}
		if (start && !c) {
			all[n++] = (struct collection){.start = e, .count = count,
						       .generation = field_number(in, e, "Depth"),
						       .reason = field_number(in, e, "Reason")};
		} else if (!start && c) {
			c->duration_ns = e->time_ns - c->start->time_ns;
			c->ended = true;
		}
	}
	return n;
}

static int longest_first(const void *a, const void *b)
{
	const struct collection *x = a, *y = b;
	int order = compare_u64(y->duration_ns, x->duration_ns);

	return order ? order : (x->start > y->start) - (x->start < y->start);
}

int collections_find(const struct incident *in, struct collection **out, uint32_t *n,
		     struct err *err)
{
	struct collection *all = calloc((size_t)in->nevents + 1, sizeof(*all));

	if (!all)
		return err_memory(err, "for garbage collections");
	*n = find_collections(in, all);
	if (*n)
		qsort(all, *n, sizeof(*all), longest_first);
	*out = all;
	return 0;
}

void counter_course(const struct incident *in, const struct summary_counter *c,
		    char out[COUNTER_COURSE + 1])
{
	double span_ns = (double)(in->head.t1_ns - in->head.t0_ns), last[COUNTER_COURSE];
	bool seen[COUNTER_COURSE] = {false};
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		uint32_t part;

		if (e->kind != EVENT_COUNTER || (e->flags & EVENT_FLAG_ABSENT) || span_ns <= 0 ||
		    strcmp(e->name, c->name) != 0)
			continue;
		part = (uint32_t)((double)(e->time_ns - in->head.t0_ns) / span_ns * COUNTER_COURSE);
		part = part < COUNTER_COURSE ? part : COUNTER_COURSE - 1;
		last[part] = e->value;
		seen[part] = true;
	}
	for (i = 0; i < COUNTER_COURSE; i++) {
		double share = c->max > c->min && seen[i] ?
			       (last[i] - c->min) / (c->max - c->min) : 0;

		out[i] = !seen[i] ? '_' : share >= 1 ? '9' : (char)('0' + (int)(share * 10));
	}
	out[COUNTER_COURSE] = '\0';
}
