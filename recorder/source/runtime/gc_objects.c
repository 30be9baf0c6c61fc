#include "source/runtime/gc_objects.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/table.h"
#include "model/process.h"

#include <stdlib.h>
#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define BACKGROUND 1u                        /* GC/Start: its field Type */
#define OLDEST 2u                            /* generation; large and pinned objects: the same */
#define RANGES_HEAD_BYTES 10u                /* Index, Count, ClrInstanceID */
#define SAME_TIME_TICKS 10000u               /* 1 ms */

enum {                                       /* event ids */
	GC_START = 1, GC_STOP, RESTART_EE_STOP, BULK_SURVIVING = 21, BULK_MOVED, GENERATION_RANGE
};
enum { FOREGROUND_GC, BACKGROUND_GC, GCS };
enum { LIVES = 1, LIVES_IN_BACKGROUND = 2, MOVES = 4, IS_TOLD = 8 };         /* flags */

struct followed {
	uint64_t address, moved_to, time_ns;
	uint64_t seen_ns;                    /* when it was certainly there */
	uint64_t aged_ns;                    /* since when it is of the oldest generation */
	uint16_t cpu;
	uint8_t generation, flags;
};

struct collection {
	bool open, told, concurrent;         /* concurrent: threads have run since its start */
	uint32_t count, generation;
	uint64_t start_ns;
};

struct gc_program {
	uint64_t key, used_ns, lost_ns;
	uint32_t pid;
	struct followed *objects;              /* the first nsorted by address */
	uint32_t n, room, nsorted;
	bool tells_restarts;                   /* of its threads */
	struct collection gcs[GCS];
};

static void forget(struct gc_objects *g, uint32_t n)
{
	if (g->log && !g->forgotten && n)
		log_line(g->log, LOG_WARN, "some objects of .NET programs are no longer followed, "
			 "because there are too many or events were lost: in heap-net they count "
			 "as still there");
	g->forgotten += n;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void drop_program(struct gc_objects *g, struct gc_program *p)
{
	g->nobjects -= p->n;
	free(p->objects);
	*p = g->programs[--g->nprograms];
}

/* The program of an event, which becomes a new one where none is known; NULL = no memory. */
static struct gc_program *program_of(struct gc_objects *g, const struct event *e)
{
	const struct process *is = e->process;
	uint64_t key = hash_pair(hash_pair(is->pid, is->start_ns), is->exec);
	struct gc_program *p, *oldest = g->programs;

	if (!g->programs)
		g->programs = calloc(GC_OBJECTS_PROGRAMS_MAX, sizeof(*g->programs));
	for (p = g->programs; p && p < g->programs + g->nprograms; p++) {
		if (p->key == key) {
			p->used_ns = e->time_ns;
			return p;
		}
		oldest = p->used_ns < oldest->used_ns ? p : oldest;
	}
	if (g->nprograms == GC_OBJECTS_PROGRAMS_MAX) {
		forget(g, oldest->n);
		drop_program(g, oldest);
	}
	if (!g->programs)
		return NULL;
	p = &g->programs[g->nprograms++];
	*p = (struct gc_program){.key = key, .pid = is->pid, .used_ns = e->time_ns};
	return p;
}

void gc_objects_gone(struct gc_objects *g, uint32_t pid)
{
	uint32_t i = 0;

	while (i < g->nprograms)
		if (g->programs[i].pid == pid)
			drop_program(g, &g->programs[i]);
		else
			i++;
}

void gc_objects_lost(struct gc_objects *g, uint64_t now_ns)
{
	g->lost_ns = now_ns > g->lost_ns ? now_ns : g->lost_ns;
}

void gc_objects_free(struct gc_objects *g)
{
	while (g->nprograms)
		drop_program(g, g->programs);
	free(g->programs);
	g->programs = NULL;
}

/* ---- objects by address ---------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	return compare_u64(((const struct followed *)a)->address,
			   ((const struct followed *)b)->address);
}

/* Sort what is new, and merge it with what was there. false = no memory */
static bool sort_objects(struct gc_program *p)
{
	uint32_t old = p->nsorted, new = p->n - old, at = p->n;
	struct followed *late = new ? malloc(new * sizeof(*late)) : NULL;

	if (!late)
		return !new;
	memcpy(late, p->objects + old, new * sizeof(*late));
	qsort(late, new, sizeof(*late), by_address);
	while (new)
		p->objects[--at] = old && p->objects[old - 1].address > late[new - 1].address
					   ? p->objects[--old] : late[--new];
	free(late);
	p->nsorted = p->n;
	return true;
}

/* The first object from this address on. */
static uint32_t find_object(const struct gc_program *p, uint64_t address)
{
	uint32_t low = 0, high = p->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->objects[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Half of them, any: which of them will die, nobody knows. */
static void thin(struct gc_objects *g, struct gc_program *p)
{
	uint32_t i, kept = p->n / 2;

	if (!sort_objects(p))
		p->nsorted = 0;
	for (i = 0; i < kept; i++)
		p->objects[i] = p->objects[2 * i];
	forget(g, p->n - kept);
	g->nobjects -= p->n - kept;
	p->nsorted = p->nsorted ? kept : 0;
	p->n = kept;
}

/* ---- allocations ----------------------------------------------------------------------------- */

static uint64_t number_of(const struct event *e, const char *name, uint64_t otherwise)
{
	const struct event_field *f = event_field(e, name);

	return f && f->type == FIELD_UINT ? f->v.u : otherwise;
}

/* A mark names its sample by CPU and tick: of two with the same, the second comes a bit later. */
static uint64_t own_time_ns(struct gc_objects *g, const struct event *e)
{
	uint64_t *last = &g->ticks[e->cpu % GC_OBJECTS_CPUS], tick = e->time_ns / FAULT_TICK_NS;

	if (tick > *last || *last - tick > SAME_TIME_TICKS) {
		*last = tick;
		return e->time_ns;
	}
	return ++*last * FAULT_TICK_NS;
}

void gc_objects_alloc(struct gc_objects *g, const struct event *e, gc_objects_put *put, void *ctx)
{
	struct event sample = *e;
	struct gc_program *p;
	uint64_t address, bytes;

	if (!g->on || !e->process || !e->nstack_frames || !e->name || !e->provider ||
	    strcmp(e->name, "GC/AllocationTick") != 0 || strcmp(e->provider, CLR) != 0)
		return;
	address = number_of(e, "Address", 0);
	bytes = number_of(e, "AllocationAmount64", number_of(e, "AllocationAmount", 0));
	p = address && bytes && bytes <= INT64_MAX ? program_of(g, e) : NULL;
	if (!p)
		return;
	if (p->n == GC_OBJECTS_MAX || g->nobjects == GC_OBJECTS_ALL_MAX)
		thin(g, p);
	sample.kind = EVENT_SAMPLE;
	sample.stream = STREAM_HEAP;
	sample.value = (double)bytes;
	sample.nfields = 0;
	sample.time_ns = own_time_ns(g, e);
	if (g->nobjects < GC_OBJECTS_ALL_MAX && !ARRAY_ROOM(p->objects, p->room, p->n + 1)) {
		p->objects[p->n++] = (struct followed){
			.address = address, .time_ns = sample.time_ns, .seen_ns = sample.time_ns,
			.cpu = e->cpu,
			.aged_ns = sample.time_ns,
			.generation = number_of(e, "AllocationKind", 0) ? OLDEST : 0};
		g->nobjects++;
	} else {
		forget(g, 1);
	}
	put(ctx, &sample);
}

/* ---- collections ----------------------------------------------------------------------------- */

/* Real ranges have no object in common: so all of a collection take as long as its objects. */
static void survive(struct gc_program *p, uint8_t flags, uint64_t from, uint64_t length,
		    uint64_t to)
{
	uint64_t end = length < UINT64_MAX - from ? from + length : UINT64_MAX;
	uint32_t i;

	for (i = find_object(p, from); i < p->n && p->objects[i].address < end; i++) {
		struct followed *o = &p->objects[i];

		if ((o->flags & flags) == flags)
			return;
		o->flags |= flags;
		if (to != from) {
			o->moved_to = to + (o->address - from);
			o->flags |= MOVES;
		}
	}
}

static void read_ranges(struct gc_program *p, uint8_t flags, bool moved, const uint8_t *payload,
			uint32_t nbytes, uint32_t pointer_bytes, uint64_t now_ns)
{
	uint32_t each = pointer_bytes * (moved ? 2 : 1) + 8, i, n, fits;

	if ((pointer_bytes != 4 && pointer_bytes != 8) || nbytes < RANGES_HEAD_BYTES) {
		p->lost_ns = now_ns;
		return;
	}
	n = le32(payload + 4);
	fits = (nbytes - RANGES_HEAD_BYTES) / each;
	if (n > fits || !sort_objects(p))
		p->lost_ns = now_ns;
	for (i = 0; i < n && i < fits && p->nsorted == p->n; i++) {
		const uint8_t *at = payload + RANGES_HEAD_BYTES + i * each;
		uint64_t from = le_sized(at, pointer_bytes);

		survive(p, flags, from, le64(at + each - 8),
			moved ? le_sized(at + pointer_bytes, pointer_bytes) : from);
	}
}

static void set_generation(struct followed *o, uint8_t generation, uint64_t now_ns)
{
	if (generation == OLDEST && o->generation != OLDEST)
		o->aged_ns = now_ns;
	o->generation = generation;
}

/* Told when a collection begins, and again at its end, for objects that have moved by then. */
static void read_generation(struct gc_program *p, const struct event *e)
{
	uint64_t generation = number_of(e, "Generation", OLDEST);
	uint64_t from = number_of(e, "RangeStart", 0), length = number_of(e, "RangeUsedLength", 0);
	uint64_t end = length < UINT64_MAX - from ? from + length : UINT64_MAX;
	uint32_t i;

	if (!sort_objects(p))
		return;
	for (i = find_object(p, from); i < p->n && p->objects[i].address < end; i++) {
		if (p->objects[i].flags & IS_TOLD)
			return;
		p->objects[i].flags |= IS_TOLD;
		set_generation(&p->objects[i], generation < OLDEST ? (uint8_t)generation : OLDEST,
			       e->time_ns);
	}
}

static void put_mark(const struct followed *o, const struct event *e, gc_objects_put *put,
		     void *ctx)
{
	struct event mark = *e;

	mark.kind = EVENT_SAMPLE;
	mark.stream = STREAM_HEAP_MARK;
	mark.value = memory_mark_weight(o->time_ns, e->time_ns, MARK_GONE);
	mark.cpu = o->cpu;
	mark.nfields = 0;
	put(ctx, &mark);
}

/*
 * Whether the collection would have told of it if it lived. One in the background does not tell of
 * what younger ones have made old meanwhile. One that begins as such and never lets a thread run is
 * none: the runtime could not start it, and collects all generations at once.
 */
static bool is_collected(const struct followed *o, const struct collection *c)
{
	if (!c->told || o->time_ns >= c->start_ns)
		return false;
	return c->concurrent ? o->generation == OLDEST && o->aged_ns < c->start_ns
			     : o->generation <= c->generation;
}

static bool is_certain(const struct gc_objects *g, const struct gc_program *p,
		       const struct followed *o)
{
	return o->seen_ns > g->lost_ns && o->seen_ns > p->lost_ns;
}

/* Of one that was found: where it is now, and which generation's it is at most. */
static void settle(struct followed *o, bool concurrent, uint64_t now_ns)
{
	o->address = o->flags & MOVES ? o->moved_to : o->address;
	if (!concurrent && o->generation < OLDEST)
		set_generation(o, o->generation + 1, now_ns);
	o->seen_ns = now_ns;
}

static void forget_all(struct gc_objects *g, struct gc_program *p)
{
	forget(g, p->n);
	g->nobjects -= p->n;
	p->n = p->nsorted = 0;
}

/* The end of a collection: those that have moved go behind the others, which stay sorted. */
static void finish(struct gc_objects *g, struct gc_program *p, bool background,
		   const struct event *e, gc_objects_put *put, void *ctx)
{
	const uint8_t lives = background ? LIVES_IN_BACKGROUND : LIVES;
	struct collection *c = &p->gcs[background];
	struct followed *to = malloc((p->n + 1) * sizeof(*to));
	uint32_t i, front = 0, back = p->n, nsorted = 0;

	c->open = false;
	if (!to) {
		forget_all(g, p);
		return;
	}
	for (i = 0; i < p->n; i++) {
		struct followed o = p->objects[i];
		bool moved = o.flags & MOVES, found = o.flags & lives;

		if (!found && is_collected(&o, c)) {
			if (is_certain(g, p, &o))
				put_mark(&o, e, put, ctx);
			else
				forget(g, 1);
			continue;
		}
		if (found)
			settle(&o, c->concurrent, e->time_ns);
		o.flags &= (uint8_t)~(lives | (found ? MOVES : 0));
		to[moved ? --back : front++] = o;
		nsorted = i < p->nsorted ? front : nsorted;
	}
	memmove(to + front, to + back, (p->n - back) * sizeof(*to));
	g->nobjects -= back - front;
	free(p->objects);
	p->objects = to;
	p->room = p->n + 1;
	p->n -= back - front;
	p->nsorted = nsorted;
}

static void start(struct gc_objects *g, struct gc_program *p, const struct event *e,
		  gc_objects_put *put, void *ctx)
{
	bool background = number_of(e, "Type", 0) == BACKGROUND;
	struct collection *c = &p->gcs[background];
	uint32_t i;

	c->told = false;
	if (c->open)                         /* its end was lost */
		finish(g, p, background, e, put, ctx);
	*c = (struct collection){.open = event_field(e, "Depth") != NULL, .start_ns = e->time_ns,
				 .concurrent = background && !p->tells_restarts,
				 .count = (uint32_t)number_of(e, "Count", 0),
				 .generation = (uint32_t)number_of(e, "Depth", 0)};
	for (i = 0; i < p->n; i++)
		p->objects[i].flags &= (uint8_t)~IS_TOLD;
}

static void stop(struct gc_objects *g, struct gc_program *p, const struct event *e,
		 gc_objects_put *put, void *ctx)
{
	uint32_t i;

	for (i = 0; i < GCS; i++)
		if (p->gcs[i].open && p->gcs[i].count == number_of(e, "Count", 0)) {
			finish(g, p, i == BACKGROUND_GC, e, put, ctx);
			return;
		}
}

bool gc_objects_tells(const char *provider, uint32_t event_id)
{
	return event_id >= BULK_SURVIVING && event_id <= GENERATION_RANGE &&
	       strcmp(provider, CLR) == 0;
}

bool gc_objects_collect(struct gc_objects *g, const struct event *e, const uint8_t *payload,
			uint32_t nbytes, uint32_t pointer_bytes, gc_objects_put *put, void *ctx)
{
	uint32_t id = e->flags & EVENT_FLAG_ID ? e->flags >> EVENT_ID_SHIFT : 0;
	bool tells = g->on && e->provider && gc_objects_tells(e->provider, id);
	struct gc_program *p;
	uint8_t lives = 0;
	uint32_t i;

	if (!g->on || !e->process || !e->provider || strcmp(e->provider, CLR) != 0 ||
	    (!tells && (id < GC_START || id > RESTART_EE_STOP)))
		return tells;
	p = program_of(g, e);
	if (!p)
		return tells;
	if (id == GC_START)
		start(g, p, e, put, ctx);
	if (id == GC_STOP)
		stop(g, p, e, put, ctx);
	if (id == RESTART_EE_STOP)
		p->tells_restarts = p->gcs[BACKGROUND_GC].concurrent = true;
	/* Of two that are open either may tell, as one begins while it waits for the other. */
	for (i = 0; tells && i < GCS; i++) {
		if (!p->gcs[i].open)
			continue;
		p->gcs[i].told = true;
		lives |= i == BACKGROUND_GC ? LIVES_IN_BACKGROUND : LIVES;
	}
	if (lives && id == GENERATION_RANGE)
		read_generation(p, e);
	else if (lives)
		read_ranges(p, lives, id == BULK_MOVED, payload, nbytes, pointer_bytes, e->time_ns);
	return tells;
}
