#include "analysis/memory.h"

#include "base/array.h"
#include "base/text_table.h"

#include <stdlib.h>
#include <string.h>

#define STACK_SHOWN 8u                       /* callers in a pool's name */
#define SUSPECT_SAMPLES 3u

/* ---- processes ------------------------------------------------------------------------------- */

static void add_size(const struct incident *in, const struct incident_event *e,
		     struct memory_process *p)
{
	double rss = (double)incident_field_uint(in, e, "RssKb");
	double anon = (double)incident_field_uint(in, e, "AnonKb");
	double grew = anon - (double)incident_field_uint(in, e, "BeforeKb");

	if (!p->sized)
		p->start_kb = rss > grew ? rss - grew : 0;
	if (!p->sized || e->time_ns <= in->head.trigger_ns)
		p->trigger_kb = rss;
	p->peak_kb = rss > p->peak_kb ? rss : p->peak_kb;
	p->peak_kb = p->start_kb > p->peak_kb ? p->start_kb : p->peak_kb;
	p->grew_kb += grew;
	p->killed |= incident_field_uint(in, e, "Killed") > 0;
	p->sized = true;
}

static void add_events(const struct incident *in, struct memory_process *all)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->thread == THREAD_NONE)
			continue;
		if (e->kind == EVENT_PROCESS_EXIT)
			all[in->threads[e->thread].process].ended = true;
		if (e->kind == EVENT_GENERIC && strcmp(e->provider, "Memory") == 0 &&
		    strcmp(e->name, "RSS") == 0)
			add_size(in, e, &all[in->threads[e->thread].process]);
	}
}

static int by_growth(const void *a, const void *b)
{
	const struct memory_process *pa = a, *pb = b;
	double x = pa->sized ? pa->grew_kb * 1024 : pa->net + pa->in_use;
	double y = pb->sized ? pb->grew_kb * 1024 : pb->net + pb->in_use;

	if (pa->killed != pb->killed)
		return pb->killed - pa->killed;
	return x != y ? (x < y) - (x > y) : compare_u64(pa->process, pb->process);
}

int memory_processes(const struct incident *in, struct memory_process **out, uint32_t *n,
		     struct err *err)
{
	struct memory_process *all = calloc((size_t)in->nprocesses + 1, sizeof(*all));
	uint32_t i, kept = 0;
	double others = 0;

	if (!all)
		return err_memory(err, "for the memory of processes");
	for (i = 0; i < in->nprocesses; i++) {
		all[i].process = i;
		all[i].allocated_by = STREAM_ALLOC;
		all[i].factor = in->memory_factors ? in->memory_factors[i] : 0;
	}
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		struct memory_process *p;

		if (s->thread == THREAD_NONE)
			continue;
		p = &all[in->threads[s->thread].process];
		if (s->stream == STREAM_HEAP && p->allocated_by != STREAM_HEAP) {
			p->allocated_by = STREAM_HEAP;
			p->allocated = 0;
		}
		*(s->stream == p->allocated_by    ? &p->allocated
		  : s->stream == STREAM_HEAP_NET  ? &p->in_use
		  : s->stream == STREAM_RSS       ? &p->touched
		  : s->stream == STREAM_RSS_NET   ? &p->net : &others) += (double)s->weight;
	}
	add_events(in, all);
	for (i = 0; i < in->nprocesses; i++)
		if (all[i].sized || all[i].touched > 0 || all[i].allocated > 0 ||
		    all[i].in_use > 0)
			all[kept++] = all[i];
	qsort(all, kept, sizeof(*all), by_growth);
	*out = all;
	*n = kept;
	return 0;
}

/* ---- in whose name --------------------------------------------------------------------------- */

static bool is_allocator(const struct incident *in, uint32_t frame)
{
	static const char *const modules[] = {
		"libc.so", "libc-2", "ld-linux", "libstdc++", "libc++", "libjemalloc",
		"libtcmalloc", "libmimalloc", "librecorder-heap", "libpthread", "[vdso]",
		"libcoreclr.so", "coreclr.dll", "clr.dll",
	};
	const char *name = incident_frame_module(in, frame);
	size_t i;

	for (i = 0; i < COUNT_OF(modules); i++)
		if (strncmp(name, modules[i], strlen(modules[i])) == 0)
			return true;
	/* "event!GC/AllocationTick System.String" is what, and not who. */
	return (in->frames[frame].flags & FRAME_KERNEL) != 0 || strcmp(name, "event") == 0;
}

/* The first caller outside the allocator; the leaf where there is none. */
static uint32_t owner_of(const struct incident *in, uint32_t stack)
{
	uint32_t at = stack;

	while (at != STACK_NONE && is_allocator(in, in->stacks[at].frame))
		at = in->stacks[at].parent;
	return at == STACK_NONE ? stack : at;
}

static void put_name(const struct incident *in, uint32_t stack, enum memory_by by, struct buf *out)
{
	uint32_t at = owner_of(in, stack), i;

	if (by == MEMORY_BY_MODULE) {
		buf_puts(out, incident_frame_module(in, in->stacks[at].frame));
		return;
	}
	incident_frame_text(in, in->stacks[at].frame, false, out);
	for (i = 1; by == MEMORY_BY_STACK && i < STACK_SHOWN; i++) {
		at = in->stacks[at].parent;
		if (at == STACK_NONE)
			break;
		buf_puts(out, " < ");
		incident_frame_text(in, in->stacks[at].frame, false, out);
	}
}

void memory_stack_text(const struct incident *in, uint32_t stack, struct buf *out)
{
	if (stack == STACK_NONE)
		buf_puts(out, "?");
	else
		put_name(in, stack, MEMORY_BY_STACK, out);
}

static int by_bytes(const void *a, const void *b)
{
	const struct memory_pool *pa = a, *pb = b;

	return pa->bytes != pb->bytes ? (pa->bytes < pb->bytes) - (pa->bytes > pb->bytes)
				      : strcmp(pa->name, pb->name);
}

/* The pool of a stack; NULL without memory. */
static struct memory_pool *pool_of(const struct incident *in, uint32_t stack, enum memory_by by,
				   struct buf *name, uint32_t *capacity, struct memory_pools *out)
{
	uint32_t at;

	buf_reset(name);
	if (stack == STACK_NONE)
		buf_puts(name, "?");
	else
		put_name(in, stack, by, name);
	at = text_table_add(out->names, buf_text(name), name->len);
	if (name->failed || at == TABLE_NONE || ARRAY_ROOM(out->all, *capacity, at + 1))
		return NULL;
	if (at == out->n) {
		out->n++;
		out->all[at] = (struct memory_pool){.name = text_table_get(out->names, at)};
	}
	return &out->all[at];
}

static void add_sample(const struct incident_sample *s, struct memory_pool *p)
{
	if (!p->samples++)
		p->first_ns = s->time_ns;
	p->bytes += (double)s->weight;
	p->last_ns = s->time_ns;
}

static void add_freed(const struct incident_freed *f, struct memory_pool *p)
{
	double life_ns = (double)(f->freed_ns - f->time_ns), bytes = (double)f->weight;

	p->life_ns = (p->life_ns * p->freed + life_ns * bytes) / (p->freed + bytes);
	p->freed += bytes;
}

int memory_pools_new(const struct incident *in, uint32_t process, enum stream stream,
		     enum memory_by by, struct memory_pools *out, struct err *err)
{
	struct buf name = {0};
	struct memory_pool *p;
	uint32_t i, capacity = 0;
	bool failed;

	*out = (struct memory_pools){.names = calloc(1, sizeof(*out->names))};
	failed = !out->names;
	for (i = 0; i < in->nsamples && !failed; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream != stream || incident_process_of(in, s->thread) != process)
			continue;
		p = pool_of(in, s->stack, by, &name, &capacity, out);
		failed = !p;
		if (p)
			add_sample(s, p);
	}
	for (i = 0; stream == STREAM_HEAP && i < in->nfreed && !failed; i++) {
		const struct incident_freed *f = &in->freed[i];

		if (!f->weight || incident_process_of(in, f->thread) != process)
			continue;
		p = pool_of(in, f->stack, by, &name, &capacity, out);
		failed = !p;
		if (p)
			add_freed(f, p);
	}
	buf_free(&name);
	if (failed) {
		memory_pools_free(out);
		return err_memory(err, "for who asked for memory");
	}
	if (out->n)
		qsort(out->all, out->n, sizeof(*out->all), by_bytes);
	return 0;
}

void memory_pools_free(struct memory_pools *p)
{
	if (p->names)
		text_table_free(p->names);
	free(p->names);
	free(p->all);
	*p = (struct memory_pools){0};
}

bool memory_passes(const struct incident *in, uint32_t process, const char *module)
{
	uint32_t i, at;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream != STREAM_RSS_NET || incident_process_of(in, s->thread) != process)
			continue;
		for (at = s->stack; at != STACK_NONE; at = in->stacks[at].parent)
			if (strstr(incident_frame_module(in, in->stacks[at].frame), module))
				return true;
	}
	return false;
}

bool memory_is_suspect(const struct incident *in, const struct memory_pool *p)
{
	uint64_t span_ns = in->head.t1_ns - in->head.t0_ns;

	return p->samples >= SUSPECT_SAMPLES && p->first_ns - in->head.t0_ns < span_ns / 2 &&
	       in->head.t1_ns - p->last_ns < span_ns / 4;
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void find_first(const struct incident *in, const struct incident_event *e,
		       struct memory_mistake *out)
{
	uint64_t now = e->time_ns / FAULT_TICK_NS, cpu = incident_field_uint(in, e, "AllocatedCpu");
	uint64_t allocated = now - incident_field_uint(in, e, "AllocatedTicksAgo");
	uint64_t freed = now - incident_field_uint(in, e, "FreedTicksAgo");
	uint32_t i;

	if (!incident_field(in, e, "AllocatedTicksAgo") || allocated > now || freed > now)
		return;
	out->allocated_ns = allocated * FAULT_TICK_NS;
	out->freed_first_ns = freed * FAULT_TICK_NS;
	for (i = 0; i < in->nfreed; i++) {
		const struct incident_freed *f = &in->freed[i];

		if (f->cpu != cpu || f->time_ns / FAULT_TICK_NS != allocated ||
		    f->freed_ns / FAULT_TICK_NS != freed)
			continue;
		out->allocated_by = f->stack;
		out->freed_first_by = f->freed_by;
		return;
	}
}

bool memory_mistake_next(const struct incident *in, uint32_t *at, struct memory_mistake *out)
{
	for (; *at < in->nevents; (*at)++) {
		const struct incident_event *e = &in->events[*at];
		bool twice = strcmp(e->name, "DoubleFree") == 0;

		if (e->kind != EVENT_GENERIC || strcmp(e->provider, "Heap") != 0 ||
		    (!twice && strcmp(e->name, "UnknownFree") != 0))
			continue;
		*out = (struct memory_mistake){
			.twice = twice, .process = incident_process_of(in, e->thread),
			.time_ns = e->time_ns, .address = incident_field_uint(in, e, "Address"),
			.freed_by = e->stack, .freed_first_by = STACK_NONE,
			.allocated_by = STACK_NONE};
		if (twice)
			find_first(in, e, out);
		(*at)++;
		return true;
	}
	return false;
}
