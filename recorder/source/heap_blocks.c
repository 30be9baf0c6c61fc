#include "source/heap_blocks.h"

#include "base/text.h"
#include "model/process.h"

#include <stdlib.h>
#include <string.h>

struct heap_freed {
	uint64_t address, process, allocated_ns, freed_ns;
	uint16_t cpu;                        /* where it was allocated */
};

struct block {
	uint64_t address, process, time_ns;
	uint64_t heap;                       /* 0 = not known */
	uint32_t slot;
	uint16_t cpu;
	bool used;
};

struct block_key {
	uint64_t address;
	uint64_t process;                    /* a hash: numbers are used again */
};

enum heap_probe heap_probe_of(const char *provider, const char *name)
{
	if (!text_same_fold(provider, "usdt"))
		return HEAP_NONE;
	return text_ends_fold(name, ":otel_memory:alloc")	     ? HEAP_ALLOC
	       : text_ends_fold(name, ":otel_memory:free")	     ? HEAP_FREE
	       : text_ends_fold(name, ":recorder_heap:double_free")  ? HEAP_DOUBLE_FREE
	       : text_ends_fold(name, ":recorder_heap:unknown_free") ? HEAP_UNKNOWN_FREE
								     : HEAP_NONE;
}

int heap_blocks_init(struct heap_blocks *h, uint32_t max)
{
	h->freed = calloc(HEAP_FREED_MAX, sizeof(*h->freed));
	return h->freed ? slots_init(&h->all, sizeof(struct block), max) : ERR_MEMORY;
}

void heap_blocks_free(struct heap_blocks *h)
{
	slots_free(&h->all);
	table_free(&h->by_address);
	free(h->freed);
}

static bool is_block(const void *ctx, uint32_t value, const void *key)
{
	const struct block *b = slots_get(&((const struct heap_blocks *)ctx)->all, value);
	const struct block_key *k = key;

	return b->address == k->address && b->process == k->process;
}

static uint64_t hash_of(const struct block_key *key)
{
	return hash_pair(key->address, key->process);
}

static void remove_block(struct heap_blocks *h, struct block *b)
{
	const struct block_key key = {b->address, b->process};

	b->used = false;
	table_remove(&h->by_address, hash_of(&key), b->slot);
	slots_free_one(&h->all, b->slot);
}

/* Any one, in turn: which of them will be freed, nobody knows. */
static void forget_one(struct heap_blocks *h)
{
	uint32_t i;

	for (i = 0; i < h->all.end; i++) {
		struct block *b = slots_get(&h->all, h->hand++ % h->all.end);

		if (!b->used)
			continue;
		remove_block(h, b);
		atomic_fetch_add(&h->forgotten, 1);
		return;
	}
}

static void add_block(struct heap_blocks *h, const struct block_key *key, const struct event *e)
{
	const struct event_field *heap = event_field(e, "Heap");
	struct block *b;
	uint32_t at;

	if (h->all.used >= h->all.max)
		forget_one(h);
	at = table_add_slot(&h->by_address, hash_of(key), &h->all, SLOTS_NONE);
	if (at == SLOTS_NONE) {
		atomic_fetch_add(&h->forgotten, 1);
		return;
	}
	b = slots_get(&h->all, at);
	*b = (struct block){key->address, key->process, e->time_ns, heap ? heap->v.u : 0, at,
			    e->cpu, true};
}

/* The sample is the event of now, at the CPU of then. */
static void make_mark(struct heap_blocks *h, const struct block *b, struct event *e)
{
	h->freed[h->freed_hand++ % HEAP_FREED_MAX] =
		(struct heap_freed){b->address, b->process, b->time_ns, e->time_ns, b->cpu};
	e->kind = EVENT_SAMPLE;
	e->stream = STREAM_HEAP_MARK;
	e->value = memory_mark_weight(b->time_ns, e->time_ns, MARK_GONE);
	e->cpu = b->cpu;
	e->nfields = 0;
}

static const struct heap_freed *find_freed(const struct heap_blocks *h, const struct block_key *key)
{
	uint32_t i;

	for (i = 1; i <= HEAP_FREED_MAX; i++) {
		const struct heap_freed *f = &h->freed[(h->freed_hand - i) % HEAP_FREED_MAX];

		if (f->freed_ns && f->address == key->address && f->process == key->process)
			return f;
	}
	return NULL;
}

static void make_mistake(struct heap_blocks *h, bool twice, const struct block_key *key,
			 struct event *e)
{
	const struct heap_freed *f = twice ? find_freed(h, key) : NULL;
	uint64_t now = e->time_ns / FAULT_TICK_NS;

	e->kind = EVENT_GENERIC;
	e->stream = STREAM_EVENT;
	e->provider = "Heap";
	e->name = twice ? "DoubleFree" : "UnknownFree";
	h->fields[0] = (struct event_field){.name = "Address", .type = FIELD_UINT,
					    .v.u = key->address};
	e->fields = h->fields;
	e->hex_fields = 1;
	e->nfields = 1;
	if (!f || f->freed_ns > e->time_ns)
		return;
	h->fields[1] = (struct event_field){.name = "AllocatedTicksAgo", .type = FIELD_UINT,
					    .v.u = now - f->allocated_ns / FAULT_TICK_NS};
	h->fields[2] = (struct event_field){.name = "FreedTicksAgo", .type = FIELD_UINT,
					    .v.u = now - f->freed_ns / FAULT_TICK_NS};
	h->fields[3] = (struct event_field){.name = "AllocatedCpu", .type = FIELD_UINT,
					    .v.u = f->cpu};
	e->nfields = HEAP_FIELDS;
}

static uint64_t process_key(const struct event *e)
{
	return hash_pair(hash_pair(e->process->pid, e->process->start_ns), e->process->exec);
}

bool heap_blocks_take(struct heap_blocks *h, enum heap_probe what, struct event *e)
{
	const struct event_field *address = event_field(e, "Arg1"), *weight;
	struct block_key key;
	uint32_t at;

	if (!address || !e->process)
		return false;
	key = (struct block_key){address->v.u, process_key(e)};
	if (what == HEAP_DOUBLE_FREE || what == HEAP_UNKNOWN_FREE) {
		make_mistake(h, what == HEAP_DOUBLE_FREE, &key, e);
		return true;
	}
	at = table_find(&h->by_address, hash_of(&key), is_block, h, &key);
	if (what == HEAP_FREE) {
		struct block *b = at == TABLE_NONE ? NULL : slots_get(&h->all, at);

		if (!b || e->time_ns < b->time_ns)
			return false;
		make_mark(h, b, e);
		remove_block(h, b);
		return true;
	}
	weight = event_field(e, "Arg3");
	if (!weight || !weight->v.u || weight->v.u > INT64_MAX)
		return false;
	/* Its end was lost: the sample before counts as in use. */
	if (at != TABLE_NONE)
		remove_block(h, slots_get(&h->all, at));
	add_block(h, &key, e);
	e->kind = EVENT_SAMPLE;
	e->stream = STREAM_HEAP;
	e->value = (double)weight->v.u;
	e->nfields = 0;
	return true;
}

bool heap_blocks_destroy(struct heap_blocks *h, uint64_t heap, uint32_t *at, struct event *e)
{
	uint64_t process = e->process ? process_key(e) : 0;

	while (e->process && heap && *at < h->all.end) {
		struct block *b = slots_get(&h->all, (*at)++);

		if (!b->used || b->heap != heap || b->process != process || e->time_ns < b->time_ns)
			continue;
		make_mark(h, b, e);
		remove_block(h, b);
		return true;
	}
	return false;
}
