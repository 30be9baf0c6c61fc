#include "model/segment_builder_private.h"

#include "base/array.h"
#include "model/own_event.h"

#include <stdlib.h>
#include <string.h>

void segment_set_quota(struct segment_builder *b, const struct segment_quota *quota)
{
	b->quota.limit = *quota;
}

void quota_free(struct quota_book *q)
{
	free(q->uses);
	table_free(&q->index);
}

void quota_reset(struct quota_book *q)
{
	q->nuses = q->fresh.taken = q->eventful.taken = q->sideband.taken = 0;
	table_clear(&q->index);
}

static bool same_use(const void *ctx, uint32_t value, const void *key)
{
	const struct quota_book *q = ctx;

	return q->uses[value].process == *(const uint32_t *)key;
}

/* Take one more new thing, if allowed. */
static bool take_one(struct quota_count *c, uint32_t limit, uint32_t limit_s, uint64_t now_ns)
{
	double most = (double)limit_s * QUOTA_SAVED_S;

	if (quota_over(c->taken, limit))
		return false;
	if (limit_s) {
		c->saved = c->filled_ns ? c->saved : most;
		if (now_ns > c->filled_ns && c->filled_ns)
			c->saved += (double)(now_ns - c->filled_ns) / 1e9 * limit_s;
		c->saved = c->saved < most ? c->saved : most;
		c->filled_ns = now_ns > c->filled_ns ? now_ns : c->filled_ns;
		if (c->saved < 1)
			return false;
		c->saved--;
	}
	c->taken++;
	return true;
}

/*
 * count: what a process that no segment has listed counts against. NULL process: always has a use.
 */
static struct quota_use *use_of(struct quota_book *q, const struct process *process,
				uint64_t now_ns, struct quota_count *count, uint32_t limit,
				uint32_t limit_s)
{
	bool fresh = process && !atomic_load_explicit(&process->was_listed, memory_order_relaxed);
	uint32_t number = process ? process->number : UINT32_MAX;
	uint64_t hash;
	uint32_t at;

	if (!q->limit.processes)
		return NULL;
	hash = hash_u64(number);
	at = table_find(&q->index, hash, same_use, q, &number);
	if (at != TABLE_NONE)
		return &q->uses[at];
	if (ARRAY_ROOM(q->uses, q->room, q->nuses + 1))
		return NULL;
	if ((fresh && !take_one(count, limit, limit_s, now_ns)) ||
	    table_add(&q->index, hash, q->nuses))
		return NULL;
	q->uses[q->nuses] = (struct quota_use){.process = number};
	return &q->uses[q->nuses++];
}

struct quota_use *quota_of(struct quota_book *q, const struct process *process, uint64_t now_ns)
{
	return use_of(q, process, now_ns, &q->fresh, q->limit.processes, q->limit.processes_s);
}

static enum quota_sort sort_of(const struct event *e)
{
	if (!e->name || strncmp(e->name, "GC/", 3) != 0)
		return QUOTA_OTHERS;
	return strcmp(e->name, "GC/AllocationTick") == 0 ? QUOTA_ALLOCATIONS : QUOTA_COLLECTIONS;
}

static bool takes_event(const struct quota_book *q, const struct quota_use *use,
			enum quota_sort sort)
{
	uint32_t share = sort == QUOTA_COLLECTIONS ? QUOTA_GC_SHARE : 1;

	return !quota_over(use->events[sort], q->limit.events * share) &&
	       !quota_over(use->event_bytes[sort], q->limit.event_bytes * share);
}

bool quota_is_sideband(enum event_kind kind)
{
	return kind == EVENT_PROCESS_START || kind == EVENT_PROCESS_EXIT ||
	       kind == EVENT_THREAD_START || kind == EVENT_THREAD_EXIT;
}

static bool is_counted(const struct event *e)
{
	return (e->kind == EVENT_GENERIC || e->kind == EVENT_LOG) &&
	       (!e->provider || strcmp(e->provider, OWN_PROVIDER) != 0);
}

bool quota_event(struct quota_book *q, const struct event *e)
{
	struct quota_use *use;

	if (!q->limit.processes)
		return true;
	if (quota_is_sideband(e->kind)) {
		return take_one(&q->sideband, q->limit.sideband, q->limit.sideband_s, e->time_ns);
	} else if (is_counted(e)) {
		use = use_of(q, e->process, e->time_ns, &q->eventful, q->limit.sideband,
			     q->limit.sideband_s);
		if (!use || !takes_event(q, use, sort_of(e)))
			return false;
		use->events[sort_of(e)]++;
	}
	return true;
}

void quota_event_took(struct quota_book *q, const struct event *e, size_t bytes)
{
	struct quota_use *use =
		q->limit.processes && is_counted(e) ? quota_of(q, e->process, e->time_ns) : NULL;

	if (use)
		use->event_bytes[sort_of(e)] +=
			bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2;
}
