#include "analysis/report_events.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NaN if the event has no such number. */
static double field_number(const struct incident *in, const struct incident_event *e,
			   const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

	if (f && f->type == FIELD_UINT)
		return (double)f->v.u;
	return f && f->type == FIELD_INT ? (double)f->v.i : (double)NAN;
}

static double field_double(const struct incident *in, const struct incident_event *e,
			   const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

	return f && f->type == FIELD_DOUBLE ? f->v.d : (double)NAN;
}

/*
 * The process's latest collection with this count that has not ended; where collections are not
 * counted, the thread's.
 */
static struct collection *find_open(const struct incident *in, struct collection *all, uint32_t n,
				    const struct incident_event *e, double count)
{
	uint32_t process = incident_process_of(in, e->thread);

	while (n--) {
		const struct collection *c = &all[n];

		if (c->ended || c->end_lost)
			continue;
		if (count == count ? c->count == count &&
				     incident_process_of(in, c->start->thread) == process
				   : c->count != c->count && c->start->thread == e->thread)
			return &all[n];
	}
	return NULL;
}

/* What a walk over the events knows of a process. */
struct gc_state {
	const struct incident_event *suspended;  /* the pause that is open; NULL = none */
	uint32_t in_pause;                   /* the collection that began in it */
	uint32_t background;                 /* the concurrent one that goes on */
	uint32_t last;                       /* the latest one */
	double allocated_bytes;              /* since that */
};

#define TYPE_BACKGROUND 1                    /* GC/Start's Type */
#define SUSPEND_FOR_GC 1                     /* GC/SuspendEEStart's Reason */
#define SUSPEND_FOR_GC_PREP 6
#define NO_COLLECTION UINT32_MAX

static bool is_for_collection(double reason)
{
	return reason != reason || reason == SUSPEND_FOR_GC || reason == SUSPEND_FOR_GC_PREP;
}

static void end_pause(struct gc_state *s, struct collection *all, const struct incident_event *e)
{
	uint32_t of = s->in_pause != NO_COLLECTION ? s->in_pause : s->background;

	if (s->suspended && of != NO_COLLECTION) {
		uint64_t ns = e->time_ns - s->suspended->time_ns;

		all[of].pause_ns += ns;
		all[of].npauses++;
		if (ns > all[of].longest_pause_ns)
			all[of].longest_pause_ns = ns;
	}
	s->suspended = NULL;
	s->in_pause = NO_COLLECTION;
}

#define SIZES 5

/* NaN if it has none of them. */
static double sum_of(const struct incident *in, const struct incident_event *e,
		     const char *const names[SIZES])
{
	double v, sum = NAN;
	unsigned i;

	for (i = 0; i < SIZES && names[i]; i++) {
		v = field_number(in, e, names[i]);
		if (v == v)
			sum = (sum == sum ? sum : 0) + v;
	}
	return sum;
}

/*
 * Sizes of the generations before a collection, in one event for each heap of its process; it comes
 * before GC/Stop.
 */
static void take_heap(const struct incident *in, const struct incident_event *e,
		      struct collection *all, const struct gc_state *s)
{
	static const char *const sizes[SIZES] = {
		"SizeBefore0", "SizeBefore1", "SizeBefore2", "SizeBefore3"};
	struct collection *c = &all[all[s->last].ended && s->background != NO_COLLECTION
					    ? s->background : s->last];
	double bytes = sum_of(in, e, sizes), fifth = field_number(in, e, "SizeBefore4");

	if (!(bytes == bytes))
		return;
	c->before_bytes = (c->before_bytes == c->before_bytes ? c->before_bytes : 0) + bytes;
	c->fifth_before_bytes += fifth == fifth ? fifth : 0;
}

/* Sizes of the generations after a collection, and what it kept in each. */
static void take_sizes(const struct incident *in, const struct incident_event *e,
		       struct collection *c)
{
	static const char *const sizes[SIZES] = {
		"GenerationSize0", "GenerationSize1", "GenerationSize2", "GenerationSize3",
		"GenerationSize4"};
	static const char *const promoted[SIZES] = {
		"TotalPromotedSize0", "TotalPromotedSize1", "TotalPromotedSize2",
		"TotalPromotedSize3", "TotalPromotedSize4"};

	c->after_bytes = sum_of(in, e, sizes);
	c->promoted_bytes = sum_of(in, e, promoted);
	/* Only runtimes with a heap of pinned objects have a generation 4. */
	if (incident_field(in, e, sizes[4]))
		c->before_bytes += c->fifth_before_bytes;
	c->fifth_before_bytes = 0;
}

static void begin(const struct incident *in, struct collection *all, uint32_t *n,
		  const struct incident_event *e, struct gc_state *s)
{
	double count = field_number(in, e, "Count");
	struct collection *c = find_open(in, all, *n, e, count);

	if (c && count != count) {
		c->end_lost = true;          /* it may not be the same one again */
		c = NULL;
	}
	if (c)
		return;
	all[*n] = (struct collection){
		.start = e, .count = count, .generation = field_number(in, e, "Depth"),
		.reason = field_number(in, e, "Reason"), .type = field_number(in, e, "Type"),
		.before_bytes = NAN, .after_bytes = NAN, .promoted_bytes = NAN,
		.allocated_bytes = s->allocated_bytes > 0 ? s->allocated_bytes : (double)NAN};
	s->allocated_bytes = 0;
	s->last = *n;
	if (s->suspended)
		s->in_pause = *n;
	if (all[*n].type == TYPE_BACKGROUND)
		s->background = *n;
	(*n)++;
}

static void end(const struct incident *in, struct collection *all, uint32_t n,
		const struct incident_event *e, struct gc_state *s)
{
	struct collection *c = find_open(in, all, n, e, field_number(in, e, "Count"));

	if (!c)
		return;
	c->duration_ns = e->time_ns - c->start->time_ns;
	c->ended = true;
	s->last = (uint32_t)(c - all);
	/* The pause at its end goes on for a while. */
	if (s->suspended && s->in_pause == NO_COLLECTION)
		s->in_pause = s->last;
	if (s->background == s->last)
		s->background = NO_COLLECTION;
}

static double allocated(const struct incident *in, const struct incident_event *e)
{
	double bytes = field_number(in, e, "AllocationAmount64");

	bytes = bytes == bytes ? bytes : field_number(in, e, "AllocationAmount");
	return bytes == bytes ? bytes : 0;
}

static void take_event(const struct incident *in, struct collection *all, uint32_t *n,
		       const struct incident_event *e, struct gc_state *s)
{
	const char *what = e->name + strlen("GC/");

	if (!strcmp(what, "Start"))
		begin(in, all, n, e, s);
	else if (!strcmp(what, "Stop"))
		end(in, all, *n, e, s);
	else if (!strcmp(what, "SuspendEEStart"))
		s->suspended = is_for_collection(field_number(in, e, "Reason")) ? e : NULL;
	else if (!strcmp(what, "RestartEEStop"))
		end_pause(s, all, e);
	else if (!strcmp(what, "HeapStats") && s->last != NO_COLLECTION)
		take_sizes(in, e, &all[s->last]);
	else if (!strcmp(what, "PerHeapHistory") && s->last != NO_COLLECTION)
		take_heap(in, e, all, s);
	else if (!strcmp(what, "AllocationTick"))
		s->allocated_bytes += allocated(in, e);
}

static uint32_t find_collections(const struct incident *in, struct collection *all,
				 struct gc_state *states)
{
	uint32_t i, n = 0;

	for (i = 0; i <= in->nprocesses; i++)
		states[i].in_pause = states[i].background = states[i].last = NO_COLLECTION;
	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		uint32_t process = incident_process_of(in, e->thread);

		if (e->kind == EVENT_GENERIC && strncmp(e->name, "GC/", 3) == 0)
			take_event(in, all, &n, e,
				   &states[process < in->nprocesses ? process : in->nprocesses]);
	}
	return n;
}

static int longest_first(const void *a, const void *b)
{
	const struct collection *x = a, *y = b;
	int order = compare_u64(y->duration_ns, x->duration_ns);

	return order ? order : (x->start > y->start) - (x->start < y->start);
}

static uint32_t count_starts(const struct incident *in)
{
	uint32_t i, n = 0;

	for (i = 0; i < in->nevents; i++)
		n += strcmp(in->events[i].name, "GC/Start") == 0;
	return n;
}

int collections_find(const struct incident *in, struct collection **out, uint32_t *n,
		     struct err *err)
{
	struct collection *all = calloc((size_t)count_starts(in) + 1, sizeof(*all));
	struct gc_state *states = calloc((size_t)in->nprocesses + 1, sizeof(*states));

	if (!all || !states) {
		free(all);
		free(states);
		return err_memory(err, "for garbage collections");
	}
	*n = find_collections(in, all, states);
	free(states);
	if (*n)
		qsort(all, *n, sizeof(*all), longest_first);
	*out = all;
	return 0;
}

/* ---- sums of a process ----------------------------------------------------------------------- */

/* Source: CoreCLR's gc_reason (gc.h), which the events count alike since .NET 4. */
static const char *const reasons[] = {
	"AllocSmall", "Induced", "LowMemory", "Empty", "AllocLarge", "OutOfSpaceSOH",
	"OutOfSpaceLOH", "InducedNotForced", "Internal", "InducedLowMemory", "InducedCompacting",
	"LowMemoryHost", "PMFullGC", "LowMemoryHostBlocking", "BgcTuningSOH", "BgcTuningLOH",
	"BgcStepping", "InducedAggressive",
};

const char *collection_reason(const struct collection *c)
{
	if (!strstr(c->start->provider, "DotNETRuntime") || !(c->reason >= 0) ||
	    c->reason >= COUNT_OF(reasons))
		return "";
	return reasons[(unsigned)c->reason];
}

bool collection_is_induced(const struct collection *c)
{
	return strncmp(collection_reason(c), "Induced", 7) == 0;
}

static struct gc_process *process_at(struct gc_process *all, uint32_t *n, uint32_t process,
				     const char *runtime)
{
	uint32_t i;

	for (i = 0; i < *n && all[i].process != process; i++)
		;
	if (i == *n) {
		all[(*n)++] = (struct gc_process){.process = process, .runtime = runtime,
						  .peak_bytes = NAN, .last_bytes = NAN,
						  .allocated_bytes = NAN};
		all[i].all.promoted_bytes = NAN;
		for (uint32_t g = 0; g < GENERATIONS; g++)
			all[i].generations[g].promoted_bytes = NAN;
	}
	return &all[i];
}

static void add_collection(struct gc_stats *s, const struct collection *c)
{
	s->collections++;
	s->induced += collection_is_induced(c);
	s->pauses += c->npauses;
	s->pause_ns += c->pause_ns;
	if (c->longest_pause_ns > s->longest_pause_ns)
		s->longest_pause_ns = c->longest_pause_ns;
	if (c->promoted_bytes == c->promoted_bytes)
		s->promoted_bytes = (s->promoted_bytes > 0 ? s->promoted_bytes : 0) +
				    c->promoted_bytes;
}

static void take_collection(struct gc_process *p, const struct collection *c,
			    const struct collection **latest)
{
	uint32_t generation = c->generation >= 0 && c->generation < GENERATIONS - 1
				      ? (uint32_t)c->generation : GENERATIONS - 1;

	add_collection(&p->all, c);
	add_collection(&p->generations[generation], c);
	if (!(c->after_bytes == c->after_bytes))
		return;
	if (!(p->peak_bytes >= c->after_bytes))
		p->peak_bytes = c->after_bytes;
	if (!*latest || c->start->time_ns > (*latest)->start->time_ns) {
		*latest = c;
		p->last_bytes = c->after_bytes;
	}
}

/* What is told of a process beside its collections: sums of pauses, and allocations. */
static void take_sums(const struct incident *in, struct gc_process *all, uint32_t *n)
{
	struct gc_process *p;
	uint32_t i, k;
	double v;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		uint32_t process = incident_process_of(in, e->thread);

		if (e->kind != EVENT_GENERIC)
			continue;
		if (strcmp(e->name, "GC/Pauses") == 0) {
			p = process_at(all, n, process, e->provider);
			v = field_number(in, e, "Pauses");
			p->all.pauses += v > 0 ? (uint64_t)v : 0;
			v = field_double(in, e, "PauseMSec");
			p->all.pause_ns += v > 0 ? (uint64_t)(v * 1e6) : 0;
		}
		if (strcmp(e->name, "GC/AllocationTick") != 0)
			continue;
		for (k = 0; k < *n && all[k].process != process; k++)
			;
		if (k < *n)
			all[k].allocated_bytes =
				allocated(in, e) + (all[k].allocated_bytes > 0
							    ? all[k].allocated_bytes : 0);
	}
}

static int longest_paused_first(const void *a, const void *b)
{
	const struct gc_process *x = a, *y = b;
	int order = compare_u64(y->all.pause_ns, x->all.pause_ns);

	return order ? order : compare_u64(x->process, y->process);
}

int gc_processes(const struct incident *in, const struct collection *collections, uint32_t n,
		 struct gc_process **out, uint32_t *nout, struct err *err)
{
	struct gc_process *all = calloc((size_t)in->nprocesses + 2, sizeof(*all));
	const struct collection **latest = calloc((size_t)in->nprocesses + 2, sizeof(*latest));
	uint32_t i, nall = 0;

	for (i = 0; all && latest && i < n; i++) {
		const struct incident_event *start = collections[i].start;
		struct gc_process *p = process_at(all, &nall,
						  incident_process_of(in, start->thread),
						  start->provider);

		take_collection(p, &collections[i], &latest[p - all]);
	}
	if (all && latest)
		take_sums(in, all, &nall);
	free(latest);
	if (!all || !latest) {
		free(all);
		return err_memory(err, "for the sums of collections");
	}
	if (nall)
		qsort(all, nall, sizeof(*all), longest_paused_first);
	*out = all;
	*nout = nall;
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

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
