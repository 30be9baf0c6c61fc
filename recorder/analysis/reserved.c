#include "analysis/reserved.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define MEM_COMMIT 0x1000u                   /* winnt.h; also of VirtualFree: */
#define MEM_DECOMMIT 0x4000u
#define MEM_RELEASE 0x8000u
#define PROT_WRITE_BIT 2u                    /* mman.h of Linux */
#define MAP_ANONYMOUS_BIT 0x20u

/* Memory that an event gave. */
struct span {
	uint64_t from, to;
	uint32_t event;
};

struct space {                               /* of a process */
	struct span *spans;                  /* by address */
	uint32_t n, capacity;
	uint64_t brk;                        /* 0 = not known */
	uint64_t bytes, most;
	uint32_t most_at;                    /* the event after which there was most */
};

struct replay {
	struct incident *in;
	struct space *spaces;
	uint32_t *entered;                   /* of each thread: its call, an event; UINT32_MAX */
	uint64_t *gave;                      /* of each event: bytes; the first time counts */
	bool again;
	uint64_t *left;                      /* of each event: what is there of it, or was */
};

/* ---- spans ----------------------------------------------------------------------------------- */

/* The first span that ends behind an address. */
static uint32_t find(const struct space *s, uint64_t address)
{
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->spans[middle].to > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int insert(struct space *s, uint32_t at, const struct span *span)
{
	if (ARRAY_ROOM(s->spans, s->capacity, s->n + 1))
		return ERR_MEMORY;
	memmove(&s->spans[at + 1], &s->spans[at], (s->n - at) * sizeof(*s->spans));
	s->spans[at] = *span;
	s->n++;
	s->bytes += span->to - span->from;
	return 0;
}

static int take_back(struct space *s, uint64_t from, uint64_t to)
{
	uint32_t at = find(s, from), last;
	struct span rest;

	if (at < s->n && s->spans[at].from < from && s->spans[at].to > to) {
		rest = s->spans[at];
		rest.from = to;
		s->bytes -= s->spans[at].to - from;
		s->spans[at].to = from;
		return insert(s, at + 1, &rest);
	}
	if (at < s->n && s->spans[at].from < from) {
		s->bytes -= s->spans[at].to - from;
		s->spans[at++].to = from;
	}
	for (last = at; last < s->n && s->spans[last].to <= to; last++)
		s->bytes -= s->spans[last].to - s->spans[last].from;
	if (last < s->n && s->spans[last].from < to) {
		s->bytes -= to - s->spans[last].from;
		s->spans[last].from = to;
	}
	if (s->n)
		memmove(&s->spans[at], &s->spans[last], (s->n - last) * sizeof(*s->spans));
	s->n -= last - at;
	return 0;
}

static void clear(struct space *s)
{
	take_back(s, 0, UINT64_MAX);
	s->brk = 0;
}

/* The parts of a range that nobody has yet are given by an event. */
static int give(struct replay *r, struct space *s, uint64_t from, uint64_t to, uint32_t event)
{
	uint32_t at = find(s, from);
	int rc = 0;

	while (!rc && from < to) {
		uint64_t end = at < s->n && s->spans[at].from < to ? s->spans[at].from : to;
		struct span span = {from, end, event};

		if (from < end) {
			if (!r->again)
				r->gave[event] += end - from;
			rc = insert(s, at++, &span);
		}
		from = at < s->n && end < to ? s->spans[at++].to : to;
	}
	return rc;
}

static int replace(struct replay *r, struct space *s, uint64_t from, uint64_t bytes,
		   uint32_t event)
{
	int rc = from + bytes < from ? 0 : take_back(s, from, from + bytes);

	return rc || from + bytes < from ? rc : give(r, s, from, from + bytes, event);
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint64_t number(const struct replay *r, uint32_t event, const char *name)
{
	const struct event_field *f = incident_field(r->in, &r->in->events[event], name);

	return f && f->type == FIELD_UINT  ? f->v.u
	       : f && f->type == FIELD_INT ? (uint64_t)f->v.i : 0;
}

static int windows(struct replay *r, struct space *s, uint32_t event, bool alloc)
{
	uint64_t from = number(r, event, "BaseAddr"), bytes = number(r, event, "Length");
	uint64_t flags = number(r, event, "Flags");

	if (from + bytes < from)
		return 0;
	if (alloc)
		return flags & MEM_COMMIT ? give(r, s, from, from + bytes, event) : 0;
	return flags & (MEM_DECOMMIT | MEM_RELEASE) ? take_back(s, from, from + bytes) : 0;
}

static int moved_break(struct replay *r, struct space *s, uint64_t to, uint32_t event)
{
	uint64_t from = s->brk;

	s->brk = to;
	if (!from || !to)
		return 0;
	return to >= from ? give(r, s, from, to, event) : take_back(s, to, from);
}

/* A call that came back: event is where it began, with its arguments. */
static int linux_call(struct replay *r, struct space *s, const char *call, uint32_t event,
		      int64_t result)
{
	uint64_t len = number(r, event, "len"), start = number(r, event, "start");
	int rc;

	if (result < 0 && result > -4096)
		return 0;
	if (strcmp(call, "brk") == 0)
		return moved_break(r, s, (uint64_t)result, event);
	if (strcmp(call, "munmap") == 0) {
		start = number(r, event, "addr");
		return start + len < start ? 0 : take_back(s, start, start + len);
	}
	if (strcmp(call, "mmap") == 0) {
		if (number(r, event, "prot") && number(r, event, "flags") & MAP_ANONYMOUS_BIT)
			return replace(r, s, (uint64_t)result, len, event);
		return (uint64_t)result + len < len ? 0
		       : take_back(s, (uint64_t)result, (uint64_t)result + len);
	}
	if (strcmp(call, "mprotect") == 0)
		return !(number(r, event, "prot") & PROT_WRITE_BIT) || start + len < start
			       ? 0 : give(r, s, start, start + len, event);
	if (strcmp(call, "mremap") != 0)
		return 0;
	start = number(r, event, "addr");
	len = number(r, event, "old_len");
	rc = start + len < start ? 0 : take_back(s, start, start + len);
	return rc ? rc : replace(r, s, (uint64_t)result, number(r, event, "new_len"), event);
}

/* What a process was before exec has no memory any more. */
static void clear_earlier(struct replay *r, uint32_t process)
{
	const struct incident_process *all = r->in->processes, *p = &all[process];
	uint32_t i;

	for (i = 0; i < r->in->nprocesses; i++)
		if (r->spaces[i].n && all[i].pid == p->pid && all[i].start_ns == p->start_ns &&
		    all[i].exec < p->exec)
			clear(&r->spaces[i]);
}

static int take(struct replay *r, uint32_t event)
{
	static const char enter[] = "sys_enter_", leave[] = "sys_exit_";
	const struct incident_event *e = &r->in->events[event];
	uint32_t process = incident_process_of(r->in, e->thread), begun;
	struct space *s = process == UINT32_MAX ? NULL : &r->spaces[process];

	if (!s)
		return 0;
	if (e->kind == EVENT_PROCESS_EXIT)
		clear(s);
	if (e->kind == EVENT_PROCESS_START)
		clear_earlier(r, process);
	if (strcmp(e->name, "VirtualMem/Alloc") == 0 || strcmp(e->name, "VirtualMem/Free") == 0)
		return windows(r, s, event, e->name[11] == 'A');
	if (strcmp(e->provider, "syscalls") != 0)
		return 0;
	if (strncmp(e->name, enter, sizeof(enter) - 1) == 0)
		r->entered[e->thread] = event;
	if (strncmp(e->name, leave, sizeof(leave) - 1) != 0)
		return 0;
	begun = r->entered[e->thread];
	r->entered[e->thread] = UINT32_MAX;
	if (begun == UINT32_MAX || strcmp(r->in->events[begun].name + sizeof(enter) - 1,
					  e->name + sizeof(leave) - 1) != 0)
		return 0;
	return linux_call(r, s, e->name + sizeof(leave) - 1, begun,
			  (int64_t)number(r, event, "ret"));
}

/* ---- replaying ------------------------------------------------------------------------------- */

static void empty(struct replay *r)
{
	uint32_t i;

	for (i = 0; i < r->in->nprocesses; i++)
		r->spaces[i].n = 0, r->spaces[i].brk = r->spaces[i].bytes = 0;
	for (i = 0; i < r->in->nthreads; i++)
		r->entered[i] = UINT32_MAX;
}

static void put_left(struct replay *r, const struct space *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		r->left[s->spans[i].event] += s->spans[i].to - s->spans[i].from;
}

/* All events; again: put into r->left what each process had when it had most. */
static int replay(struct replay *r)
{
	uint32_t i, process;
	struct space *s;
	int rc = 0;

	empty(r);
	for (i = 0; !rc && i < r->in->nevents; i++) {
		rc = take(r, i);
		process = incident_process_of(r->in, r->in->events[i].thread);
		if (rc || process == UINT32_MAX)
			continue;
		s = &r->spaces[process];
		if (r->again && s->most && i == s->most_at)
			put_left(r, s);
		if (!r->again && s->bytes > s->most) {
			s->most = s->bytes;
			s->most_at = i;
		}
	}
	return rc;
}

static int add_sample(struct replay *r, uint32_t event, enum stream stream, uint64_t bytes)
{
	const struct incident_event *e = &r->in->events[event];

	return !bytes ? 0 : incident_add_sample(r->in, &(struct incident_sample){
		.time_ns = e->time_ns, .weight = bytes, .thread = e->thread, .cpu = e->cpu,
		.stream = (uint8_t)stream, .quality = QUALITY_NONE, .stack = e->stack});
}

static int add_left(struct replay *r, enum stream stream)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < r->in->nevents; i++)
		rc = add_sample(r, i, stream, r->left[i]);
	memset(r->left, 0, ((size_t)r->in->nevents + 1) * sizeof(*r->left));
	return rc;
}

static bool is_told(const struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++)
		if (strncmp(in->events[i].name, "VirtualMem/", 11) == 0 ||
		    strcmp(in->events[i].provider, "syscalls") == 0)
			return true;
	return false;
}

/* ---- heaps ----------------------------------------------------------------------------------- */

struct heap_peak {
	struct incident *in;
	struct table freed;                  /* of the blocks: indices in in->freed */
	struct heap_most {
		uint64_t bytes, most, most_ns;
	} *of;                               /* of each process */
};

static bool same_block(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_freed *f = &((const struct incident *)ctx)->freed[value];
	const struct incident_sample *s = key;

	return f->time_ns == s->time_ns && f->cpu == s->cpu;
}

static struct heap_most *most_of(const struct heap_peak *p, uint32_t thread)
{
	uint32_t process = incident_process_of(p->in, thread);

	return process == UINT32_MAX ? NULL : &p->of[process];
}

/* Blocks come and go in the order of time. */
static int replay_heap(struct heap_peak *p)
{
	const struct incident *in = p->in;
	uint32_t i, gone = 0;
	struct heap_most *m;
	int rc = 0;

	for (i = 0; !rc && i < in->nfreed; i++)
		rc = table_add(&p->freed, hash_pair(in->freed[i].time_ns, in->freed[i].cpu), i);
	for (i = 0; !rc && i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream != STREAM_HEAP)
			continue;
		for (; gone < in->nfreed && in->freed[gone].freed_ns <= s->time_ns; gone++) {
			m = most_of(p, in->freed[gone].thread);
			if (m)
				m->bytes -= in->freed[gone].weight;
		}
		m = most_of(p, s->thread);
		if (!m)
			continue;
		m->bytes += s->weight;
		if (m->bytes > m->most) {
			m->most = m->bytes;
			m->most_ns = s->time_ns;
		}
	}
	return rc;
}

static int add_heap_peak(struct incident *in)
{
	struct heap_peak p = {.in = in};
	uint32_t i, n = in->nsamples;
	int rc;

	for (i = 0; i < n && in->samples[i].stream != STREAM_HEAP; i++)
		;
	if (i == n)
		return 0;
	p.of = calloc((size_t)in->nprocesses + 1, sizeof(*p.of));
	rc = p.of ? replay_heap(&p) : ERR_MEMORY;
	for (; !rc && i < n; i++) {
		struct incident_sample s = in->samples[i];
		const struct heap_most *m = s.stream == STREAM_HEAP ? most_of(&p, s.thread) : NULL;
		uint32_t at;

		if (!m || s.time_ns > m->most_ns)
			continue;
		at = table_find(&p.freed, hash_pair(s.time_ns, s.cpu), same_block, in, &s);
		if (at != TABLE_NONE && in->freed[at].freed_ns <= m->most_ns)
			continue;
		s.stream = STREAM_HEAP_PEAK;
		rc = incident_add_sample(in, &s);
	}
	free(p.of);
	table_free(&p.freed);
	return rc;
}

/* ---- all ------------------------------------------------------------------------------------- */

int reserved_samples_add(struct incident *in)
{
	struct replay r = {.in = in};
	uint32_t i;
	int rc = 0;

	rc = add_heap_peak(in);
	if (rc || !is_told(in))
		return rc;
	r.spaces = calloc((size_t)in->nprocesses + 1, sizeof(*r.spaces));
	r.entered = calloc((size_t)in->nthreads + 1, sizeof(*r.entered));
	r.gave = calloc((size_t)in->nevents + 1, sizeof(*r.gave));
	r.left = calloc((size_t)in->nevents + 1, sizeof(*r.left));
	rc = r.spaces && r.entered && r.gave && r.left ? replay(&r) : ERR_MEMORY;
	for (i = 0; !rc && i < in->nevents; i++)
		rc = add_sample(&r, i, STREAM_VM, r.gave[i]);
	for (i = 0; !rc && i < in->nprocesses; i++)
		put_left(&r, &r.spaces[i]);
	if (!rc)
		rc = add_left(&r, STREAM_VM_NET);
	r.again = true;
	if (!rc)
		rc = replay(&r);
	if (!rc)
		rc = add_left(&r, STREAM_VM_PEAK);
	free(r.gave);
	free(r.left);
	for (i = 0; r.spaces && i < in->nprocesses; i++)
		free(r.spaces[i].spans);
	free(r.spaces);
	free(r.entered);
	return rc;
}
