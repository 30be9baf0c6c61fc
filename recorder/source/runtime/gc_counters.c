#include "source/runtime/gc_counters.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"
#include "source/counter_due.h"
#include "source/counter_name.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS_MAX 1024u
#define PAUSES_MAX 256u                      /* kept for each program; older ones are merged */
#define SUSPEND_FOR_GC 1u
#define SUSPEND_FOR_GC_PREP 6u
#define GLOBAL "_Global_"

static const char *const categories[] = {[GC_DOTNET] = ".NET CLR Memory", [GC_JVM] = "JVM Memory"};

enum which { TIME_IN_GC, GEN_0, GEN_1, GEN_2, ALL_BYTES, COUNTERS };
static const struct {
	const char *name, *unit, *meaning;
} counters[COUNTERS] = {
	[TIME_IN_GC] = {"% Time in GC", "%",
			"share of the period in which the program was paused for collections"},
	[GEN_0] = {"# Gen 0 Collections", "", "collections of generation 0 alone"},
	[GEN_1] = {"# Gen 1 Collections", "", "collections of generation 1 (.NET)"},
	[GEN_2] = {"# Gen 2 Collections", "", "full collections"},
	[ALL_BYTES] = {"# Bytes in all Heaps", "bytes",
		       "what the last collection left; in Java what the heap holds"},
};

struct pause {
	uint64_t end_ns, length_ns;
};

struct program {
	uint32_t pid;
	struct process *process;             /* referenced */
	bool is_open, has_bytes;
	uint64_t open_ns;
	struct pause pauses[PAUSES_MAX];     /* oldest first */
	uint32_t npauses;
	double collections[3], bytes;
};

struct wanted {
	struct need_counter need;
	enum which which;
	char instance[COUNTER_NAME_MAX];
	uint64_t next_ns;
};

struct gc_counters {
	enum gc_runtime runtime;
	struct wanted *wanted;
	uint32_t nwanted;
	struct program **programs;
	uint32_t n, room;
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool category_of(const char *name, enum gc_runtime *out)
{
	struct counter_name parts;

	if (counter_name_split(name, &parts, NULL))
		return false;
	*out = text_same_fold(parts.category, categories[GC_DOTNET]) ? GC_DOTNET : GC_JVM;
	return text_same_fold(parts.category, categories[*out]);
}

bool gc_counter_is(const char *name)
{
	enum gc_runtime runtime;

	return category_of(name, &runtime) || jvm_counter_is(name) || event_counter_is(name);
}

static enum which which_of(const struct counter_name *parts)
{
	unsigned i;

	for (i = 0; i < COUNTERS && !text_same_fold(parts->counter, counters[i].name); i++)
		;
	return (enum which)i;
}

int gc_counter_check(const char *name, struct err *err)
{
	struct counter_name parts;
	struct nearest nearest = {.wanted = parts.counter};
	struct buf text = {0};
	unsigned i;
	int rc = counter_name_split(name, &parts, err);

	if (rc || jvm_counter_is(name) || event_counter_is(name) || which_of(&parts) < COUNTERS)
		return rc;
	for (i = 0; i < COUNTERS; i++)
		nearest_offer(&nearest, counters[i].name);
	nearest_put(&nearest, "'", "'", &text);
	for (i = 0; !nearest.n && i < COUNTERS; i++)
		buf_printf(&text, "%s'%s'", i ? ", " : "", counters[i].name);
	rc = err_set(err, ERR_USAGE, "'%.200s': '%s' has no counter '%.100s'; %s%s", name,
		     parts.category, parts.counter, nearest.n ? "did you mean " : "it has ",
		     buf_text(&text));
	buf_free(&text);
	return rc;
}

bool gc_counters_wanted(const struct needs *needs, enum gc_runtime runtime)
{
	enum gc_runtime its;
	uint32_t i;

	for (i = 0; i < needs->ncounters; i++)
		if (category_of(needs->counters[i].name, &its) && its == runtime)
			return true;
	return false;
}

int gc_counters_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct counter_row row;
	struct buf line = {0};
	char name[100];
	unsigned i, k;
	int rc;

	for (i = 0; i < 2; i++)
		for (k = 0; k < COUNTERS; k++) {
			snprintf(name, sizeof(name), "%s:%s:%s", categories[i], counters[k].name,
				 GLOBAL);
			if (!name_matches(pattern, name))
				continue;
			row = (struct counter_row){name, categories[i], counters[k].name, GLOBAL,
						   NAN, counters[k].unit, counters[k].meaning,
						   NULL};
			if (json)
				counter_put_json(&row, &line);
			else
				buf_printf(&line, "%-48s  %s; while a recorder runs\n", name,
					   counters[k].meaning);
		}
	rc = line.len ? 0 : err_set(err, ERR_NOT_FOUND, "no such counter");
	if (!rc)
		out_put(out, line.data, line.len);
	buf_free(&line);
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void program_free(struct program *p)
{
	process_unref(p->process);
	free(p);
}

void gc_counters_free(struct gc_counters *c)
{
	if (!c)
		return;
	while (c->n)
		program_free(c->programs[--c->n]);
	free(c->programs);
	free(c->wanted);
	free(c);
}

static void add_wanted(struct gc_counters *c, const struct need_counter *need)
{
	struct wanted *w = &c->wanted[c->nwanted];
	enum gc_runtime runtime;
	struct counter_name parts;

	if (!category_of(need->name, &runtime) || runtime != c->runtime ||
	    counter_name_split(need->name, &parts, NULL) || which_of(&parts) == COUNTERS)
		return;
	*w = (struct wanted){.need = counter_need(need), .which = which_of(&parts)};
	snprintf(w->instance, sizeof(w->instance), "%s", *parts.instance ? parts.instance : GLOBAL);
	c->nwanted++;
}

int gc_counters_new(const struct needs *needs, enum gc_runtime runtime, struct gc_counters **out,
		    struct err *err)
{
	struct gc_counters *c = calloc(1, sizeof(*c));
	uint32_t i;

	if (c)
		c->wanted = calloc(needs->ncounters ? needs->ncounters : 1, sizeof(*c->wanted));
	if (!c || !c->wanted) {
		gc_counters_free(c);
		return err_memory(err, "for counters of collections");
	}
	c->runtime = runtime;
	for (i = 0; i < needs->ncounters; i++)
		add_wanted(c, &needs->counters[i]);
	*out = c;
	return 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

static struct program *find_program(struct gc_counters *c, uint32_t pid)
{
	uint32_t i;

	for (i = 0; c && i < c->n; i++)
		if (c->programs[i]->pid == pid)
			return c->programs[i];
	return NULL;
}

void gc_counters_program(struct gc_counters *c, struct process *process)
{
	struct program *p = find_program(c, process->pid);

	if (!c || !c->nwanted)
		return;
	if (!p) {
		if (c->n == PROGRAMS_MAX || ARRAY_ROOM(c->programs, c->room, c->n + 1))
			return;
		p = calloc(1, sizeof(*p));
		if (!p)
			return;
		p->pid = process->pid;
		c->programs[c->n++] = p;
	}
	if (p->process != process) {
		process_ref(process);
		if (p->process)
			process_unref(p->process);
		p->process = process;
	}
}

void gc_counters_gone(struct gc_counters *c, uint32_t pid)
{
	uint32_t i;

	for (i = 0; c && i < c->n; i++)
		if (c->programs[i]->pid == pid) {
			program_free(c->programs[i]);
			c->programs[i] = c->programs[--c->n];
			return;
		}
}

static uint64_t number_of(const struct event *e, const char *field)
{
	const struct event_field *f = event_field(e, field);

	if (!f || f->type == FIELD_TEXT || f->type == FIELD_DOUBLE)
		return 0;
	return f->type == FIELD_INT ? (uint64_t)f->v.i : f->v.u;
}

static void add_pause(struct program *p, uint64_t end_ns, uint64_t length)
{
	if (p->npauses == PAUSES_MAX) {
		p->pauses[1].length_ns += p->pauses[0].length_ns;
		memmove(p->pauses, p->pauses + 1, --p->npauses * sizeof(p->pauses[0]));
	}
	p->pauses[p->npauses++] = (struct pause){end_ns, length};
}

static void end_pause(struct program *p, uint64_t end_ns)
{
	if (!p->is_open)
		return;
	p->is_open = false;
	add_pause(p, end_ns, end_ns > p->open_ns ? end_ns - p->open_ns : 0);
}

/* Several pauses of a JVM count as one pause of their total length: only the share matters. */
static void add_pauses(struct program *p, const struct event *e)
{
	const struct event_field *f = event_field(e, "PauseMSec");

	if (f && f->type == FIELD_DOUBLE && f->v.d > 0 && f->v.d < 1e9)
		add_pause(p, e->time_ns, (uint64_t)(f->v.d * 1e6));
}

/* A JVM counts its own collections; .NET collections are counted here, by generation. */
static void count_collection(const struct gc_counters *c, struct program *p, const struct event *e)
{
	uint64_t depth = number_of(e, "Depth");

	if (depth > 2)
		return;
	if (c->runtime == GC_DOTNET)
		p->collections[depth]++;
	else if (number_of(e, "ClrInstanceID") < 2)
		p->collections[depth] = (double)number_of(e, "Count");
}

void gc_counters_event(struct gc_counters *c, uint32_t pid, const struct event *e)
{
	static const char *const sizes[] = {"GenerationSize0", "GenerationSize1", "GenerationSize2",
					    "GenerationSize3", "GenerationSize4"};
	struct program *p = c && strncmp(e->name, "GC/", 3) == 0 ? find_program(c, pid) : NULL;
	uint64_t reason;
	unsigned i;

	if (!p)
		return;
	if (strcmp(e->name, "GC/SuspendEEStart") == 0) {
		reason = number_of(e, "Reason");
		if (!p->is_open && (reason == SUSPEND_FOR_GC || reason == SUSPEND_FOR_GC_PREP)) {
			p->is_open = true;
			p->open_ns = e->time_ns;
		}
	} else if (strcmp(e->name, "GC/RestartEEStop") == 0) {
		end_pause(p, e->time_ns);
	} else if (strcmp(e->name, "GC/Start") == 0) {
		count_collection(c, p, e);
	} else if (strcmp(e->name, "GC/Pauses") == 0) {
		add_pauses(p, e);
	} else if (strcmp(e->name, "GC/HeapStats") == 0) {
		p->bytes = 0;
		p->has_bytes = true;
		for (i = 0; i < COUNT_OF(sizes); i++)
			p->bytes += (double)number_of(e, sizes[i]);
	}
}

bool gc_counters_want_bytes(const struct gc_counters *c)
{
	uint32_t i;

	for (i = 0; c && i < c->nwanted; i++)
		if (c->wanted[i].which == ALL_BYTES)
			return true;
	return false;
}

void gc_counters_bytes(struct gc_counters *c, uint32_t pid, uint64_t bytes)
{
	struct program *p = find_program(c, pid);

	if (!p)
		return;
	p->bytes = (double)bytes;
	p->has_bytes = true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static double paused_pct(const struct program *p, uint64_t period_ns, uint64_t now_ns)
{
	uint64_t from_ns = now_ns > period_ns ? now_ns - period_ns : 0, sum = 0, end, begin;
	uint32_t i;

	for (i = p->npauses; i-- && p->pauses[i].end_ns > from_ns;) {
		end = p->pauses[i].end_ns < now_ns ? p->pauses[i].end_ns : now_ns;
		begin = p->pauses[i].end_ns - p->pauses[i].length_ns;
		if (begin < from_ns)
			begin = from_ns;
		sum += end > begin ? end - begin : 0;
	}
	if (p->is_open && p->open_ns < now_ns)
		sum += now_ns - (p->open_ns > from_ns ? p->open_ns : from_ns);
	return sum < period_ns ? (double)sum * 100 / (double)period_ns : 100;
}

bool gc_counter_means(const char *instance, const struct process *process)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "pid=%u", process->pid);
	return !*instance || text_same_fold(instance, GLOBAL) || text_same_fold(instance, pid) ||
	       process_is_called(process, instance);
}

/* returns  false when there is no value now */
static bool value_of(const struct gc_counters *c, const struct wanted *w, uint64_t now_ns,
		     double *out)
{
	bool any = text_same_fold(w->instance, GLOBAL) && w->which != ALL_BYTES;
	double sum = 0, pct;
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		const struct program *p = c->programs[i];

		if (!gc_counter_means(w->instance, p->process) ||
		    (w->which == ALL_BYTES && !p->has_bytes))
			continue;
		any = true;
		if (w->which == TIME_IN_GC) {
			pct = paused_pct(p, w->need.period_ns, now_ns);
			sum = pct > sum ? pct : sum;
		} else {
			sum += w->which == ALL_BYTES ? p->bytes : p->collections[w->which - GEN_0];
		}
	}
	*out = sum;
	return any;
}

uint64_t gc_counters_poll(struct gc_counters *c, uint64_t now_ns,
			  void (*deliver)(void *ctx, const struct event *e), void *ctx)
{
	uint64_t next_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; c && i < c->nwanted; i++) {
		struct wanted *w = &c->wanted[i];
		struct event e = counter_event(&w->need, now_ns);

		/* The first reading only begins the period. */
		if (!w->next_ns)
			w->next_ns = now_ns + w->need.period_ns;
		if (counter_due(&w->next_ns, w->need.period_ns, now_ns)) {
			if (!value_of(c, w, now_ns, &e.value))
				e.flags |= EVENT_FLAG_ABSENT;
			deliver(ctx, &e);
		}
		next_ns = w->next_ns < next_ns ? w->next_ns : next_ns;
	}
	return next_ns;
}
