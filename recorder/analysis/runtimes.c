#include "analysis/runtimes.h"

#include "analysis/event_samples.h"
#include "base/array.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Source: CoreCLR's JitOptimizationTier (method.hpp); bits 7 to 9 of a method's flags. */
const char *const jit_tiers[JIT_TIERS] = {
	"Unknown", "MinOptJitted", "Optimized", "QuickJitted", "OptimizedTier1",
	"OptimizedTier1OSR", "InstrumentedTier", "InstrumentedTierOptimized",
};
#define TIER_SHIFT 7
#define FLAG_JITTED 8u

static const char *text_of(const struct incident *in, const struct incident_event *e,
			   const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

	return f && f->type == FIELD_TEXT ? f->v.text : "";
}

/* ---- compiled methods ------------------------------------------------------------------------ */

/* The latest beginning of each method of a process, by its MethodID. */
struct begun {
	const struct incident *in;
	struct table at;                     /* indices of events */
};

struct method_key {
	uint32_t process;
	uint64_t method;
};

static uint64_t method_hash(const struct method_key *k)
{
	return hash_pair(k->method, k->process);
}

static bool same_method(const void *ctx, uint32_t value, const void *key)
{
	const struct incident *in = ctx;
	const struct method_key *k = key;

	return incident_process_of(in, in->events[value].thread) == k->process &&
	       incident_field_uint(in, &in->events[value], "MethodID") == k->method;
}

static struct method_key key_of(const struct incident *in, const struct incident_event *e)
{
	return (struct method_key){incident_process_of(in, e->thread),
				   incident_field_uint(in, e, "MethodID")};
}

static int note_begin(struct begun *b, uint32_t event)
{
	struct method_key k = key_of(b->in, &b->in->events[event]);
	uint64_t hash = method_hash(&k);
	uint32_t old = table_find(&b->at, hash, same_method, b->in, &k);

	if (old != TABLE_NONE)
		table_remove(&b->at, hash, old);
	return table_add(&b->at, hash, event);
}

static void take_end(struct begun *b, const struct incident_event *e, struct jit_method *out)
{
	const struct incident *in = b->in;
	struct method_key k = key_of(in, e);
	uint64_t hash = method_hash(&k);
	uint32_t begin = table_find(&b->at, hash, same_method, in, &k);
	uint32_t flags = (uint32_t)incident_field_uint(in, e, "MethodFlags");

	*out = (struct jit_method){
		.process = k.process, .class = text_of(in, e, "MethodNamespace"),
		.name = text_of(in, e, "MethodName"), .il_bytes = NAN, .ms = NAN,
		.native_bytes = incident_field_uint(in, e, "MethodSize"), .time_ns = e->time_ns,
		.tier = (flags >> TIER_SHIFT) % JIT_TIERS};
	if (begin == TABLE_NONE)
		return;
	out->il_bytes = (double)incident_field_uint(in, &in->events[begin], "MethodILSize");
	out->ms = (double)(e->time_ns - in->events[begin].time_ns) / 1e6;
	table_remove(&b->at, hash, begin);
}

static int longest_compiled_first(const void *a, const void *b)
{
	const struct jit_method *x = a, *y = b;
	double p = x->ms == x->ms ? x->ms : -1, q = y->ms == y->ms ? y->ms : -1;

	return p != q ? (p < q) - (p > q) : compare_u64(x->time_ns, y->time_ns);
}

int jit_methods(const struct incident *in, struct jit_method **out, uint32_t *n, struct err *err)
{
	struct begun begun = {.in = in};
	struct jit_method *all = NULL;
	uint32_t i, nall = 0, room = 0;
	int rc = 0;

	for (i = 0; !rc && i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind != EVENT_GENERIC || strncmp(e->name, "Method/", 7) != 0)
			continue;
		if (strcmp(e->name, "Method/JittingStarted") == 0)
			rc = note_begin(&begun, i);
		else if (strcmp(e->name, "Method/LoadVerbose") == 0 &&
			 incident_field_uint(in, e, "MethodFlags") & FLAG_JITTED &&
			 !(rc = ARRAY_ROOM(all, room, nall + 1)))
			take_end(&begun, e, &all[nall++]);
	}
	table_free(&begun.at);
	if (rc) {
		free(all);
		return err_memory(err, "for compiled methods");
	}
	if (nall)
		qsort(all, nall, sizeof(*all), longest_compiled_first);
	*out = all;
	*n = nall;
	return 0;
}

/* ---- events by where they happen ------------------------------------------------------------- */

struct sites {
	struct incident *in;
	struct table samples;                /* event_samples_list() */
	struct table by_key;
	struct event_site *all;
	uint32_t n, room;
};

static bool is_of_event(const struct incident *in, uint32_t stack)
{
	uint32_t module = in->frames[in->stacks[stack].frame].module;

	return module < in->nmodules && strcmp(in->modules[module].name, "event") == 0;
}

/* The stack of an event without the frame that names the event. */
static uint32_t stack_of(const struct sites *s, const struct incident_event *e)
{
	uint32_t sample, stack = e->stack;

	if (stack == STACK_NONE) {
		sample = event_sample_of(s->in, &s->samples, e);
		stack = sample == TABLE_NONE ? STACK_NONE : s->in->samples[sample].stack;
	}
	while (stack != STACK_NONE && is_of_event(s->in, stack))
		stack = s->in->stacks[stack].parent;
	return stack;
}

static bool same_site(const void *ctx, uint32_t value, const void *key)
{
	const struct event_site *a = &((const struct event_site *)ctx)[value], *b = key;

	return a->process == b->process && a->stack == b->stack && strcmp(a->what, b->what) == 0;
}

/* The site of an event, new or known; NULL without memory. */
static struct event_site *site_of(struct sites *s, const struct incident_event *e,
				  const char *what, uint32_t stack)
{
	struct event_site key = {.process = incident_process_of(s->in, e->thread), .what = what,
				 .stack = stack, .first_ns = e->time_ns};
	uint64_t hash = hash_pair(hash_bytes(what, strlen(what)),
				  (uint64_t)key.process << 32 | stack);
	uint32_t found = table_find(&s->by_key, hash, same_site, s->all, &key);

	if (found == TABLE_NONE) {
		if (ARRAY_ROOM(s->all, s->room, s->n + 1) || table_add(&s->by_key, hash, s->n))
			return NULL;
		found = s->n;
		s->all[s->n++] = key;
	}
	s->all[found].count++;
	s->all[found].last_ns = e->time_ns;
	return &s->all[found];
}

static int finish(struct sites *s, int rc, int (*order)(const void *, const void *),
		  struct event_site **out, uint32_t *n, struct err *err)
{
	table_free(&s->samples);
	table_free(&s->by_key);
	if (rc) {
		free(s->all);
		return err_memory(err, "for events by their stacks");
	}
	if (s->n)
		qsort(s->all, s->n, sizeof(*s->all), order);
	*out = s->all;
	*n = s->n;
	return 0;
}

static int most_first(const void *a, const void *b)
{
	const struct event_site *x = a, *y = b;
	int order = compare_u64(y->count, x->count);

	return order ? order : compare_u64(x->first_ns, y->first_ns);
}

int exception_sites(struct incident *in, struct event_site **out, uint32_t *n, struct err *err)
{
	struct sites s = {.in = in};
	uint32_t i;
	int rc = event_samples_list(in, &s.samples);

	for (i = 0; !rc && i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind == EVENT_GENERIC && strcmp(e->name, "Exception/Start") == 0 &&
		    !site_of(&s, e, text_of(in, e, "ExceptionType"), stack_of(&s, e)))
			rc = ERR_MEMORY;
	}
	return finish(&s, rc, most_first, out, n, err);
}

/* ---- waits for locks ------------------------------------------------------------------------- */

/* Whether a frame is how a runtime waits, not who does. */
static bool is_lock(const struct incident *in, uint32_t frame)
{
	static const char *const modules[] = {"clr", "coreclr", "libcoreclr.so", "ntdll.dll",
					      "KERNELBASE.dll", "ntoskrnl.exe", "[kernel]"};
	static const char *const functions[] = {"Monitor.", "JIT_Mon", "AwareLock", "Lock."};
	const struct incident_frame *f = &in->frames[frame];
	const char *module = f->module < in->nmodules ? in->modules[f->module].name : "";
	size_t i;

	for (i = 0; i < COUNT_OF(modules); i++)
		if (strncmp(module, modules[i], strlen(modules[i])) == 0)
			return true;
	for (i = 0; i < COUNT_OF(functions); i++)
		if (f->function && strstr(f->function, functions[i]))
			return true;
	return f->module < in->nmodules && in->modules[f->module].kind == OBJECT_KERNEL;
}

static int name_site(struct incident *in, uint32_t stack, const char **out)
{
	uint32_t at = stack;
	struct buf text = {0};

	while (at != STACK_NONE && is_lock(in, in->stacks[at].frame))
		at = in->stacks[at].parent;
	at = at == STACK_NONE ? stack : at;
	*out = "?";
	if (at == STACK_NONE)
		return 0;
	incident_frame_text(in, in->stacks[at].frame, false, &text);
	*out = text.failed ? NULL : incident_text(in, buf_text(&text));
	buf_free(&text);
	return *out ? 0 : ERR_MEMORY;
}

static int longest_waited_first(const void *a, const void *b)
{
	const struct event_site *x = a, *y = b;
	int order = compare_u64(y->waited_ns, x->waited_ns);

	return order ? order : most_first(a, b);
}

/* The start that each thread waits since: its index and site. */
struct waiting {
	uint64_t since_ns;
	uint32_t site;                       /* TABLE_NONE = it does not wait */
};

static int begin_wait(struct sites *s, struct waiting *w, const struct incident_event *e)
{
	uint32_t stack = stack_of(s, e);
	struct event_site *site;
	const char *what;

	if (name_site(s->in, stack, &what))
		return ERR_MEMORY;
	site = site_of(s, e, what, stack);
	if (!site)
		return ERR_MEMORY;
	site->open++;
	*w = (struct waiting){e->time_ns, (uint32_t)(site - s->all)};
	return 0;
}

static void end_wait(struct sites *s, struct waiting *w, const struct incident_event *e)
{
	uint64_t ns = e->time_ns - w->since_ns;
	struct event_site *site;

	if (w->site == TABLE_NONE)
		return;
	site = &s->all[w->site];
	site->waited_ns += ns;
	site->longest_ns = ns > site->longest_ns ? ns : site->longest_ns;
	site->open--;
	w->site = TABLE_NONE;
}

int contention_sites(struct incident *in, struct event_site **out, uint32_t *n, struct err *err)
{
	struct waiting *waits = calloc((size_t)in->nthreads + 1, sizeof(*waits));
	struct sites s = {.in = in};
	uint32_t i;
	int rc = waits ? event_samples_list(in, &s.samples) : ERR_MEMORY;

	for (i = 0; waits && i < in->nthreads; i++)
		waits[i].site = TABLE_NONE;
	for (i = 0; !rc && i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind != EVENT_GENERIC || e->thread == THREAD_NONE)
			continue;
		if (strcmp(e->name, "Contention/Start") == 0)
			rc = begin_wait(&s, &waits[e->thread], e);
		else if (strcmp(e->name, "Contention/Stop") == 0)
			end_wait(&s, &waits[e->thread], e);
	}
	free(waits);
	return finish(&s, rc, longest_waited_first, out, n, err);
}
