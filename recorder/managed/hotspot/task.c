#include "managed/hotspot/task.h"

#include <stdlib.h>

#define REDEFINES_TOLD_UNTIL 21u

static void want(struct hotspot_task *t, uint64_t method)
{
	uint32_t i;

	for (i = 0; i < t->nmethods; i++)
		if (t->wanted[i] == method)
			return;
	if (t->nmethods < TASK_METHODS_MAX)
		t->wanted[t->nmethods++] = method;
}

/* The methods of the record that whoever asked for the blob will name. */
static void want_methods_at(struct hotspot_task *t, const struct hotspot_pc *pc)
{
	struct hotspot_scope scopes[HOTSPOT_INLINE_MAX];
	uint32_t n = hotspot_scopes(t->layout, t->blob, pc, scopes), i;

	for (i = 0; i < n; i++)
		if (scopes[i].metadata != UINT32_MAX)
			want(t, t->blob->metadata[scopes[i].metadata]);
}

static void read_blob(struct hotspot_task *t, const struct managed_memory *memory)
{
	t->blob = hotspot_blob_read(t->layout, memory, t->pc);
	if (!t->blob || !t->blob->identity.method)
		return;
	want(t, t->blob->identity.method);
	if (!blob_is_compiled(t->blob))
		return;
	want_methods_at(t, hotspot_pc_exact(t->blob, t->pc));
	want_methods_at(t, hotspot_pc_exact(t->blob, t->pc + 1));
	want_methods_at(t, hotspot_pc_next(t->blob, t->pc));
}

/* How many classes were loaded and unloaded so far. */
static uint64_t read_changes(const struct hotspot_task *t, const struct managed_memory *target)
{
	struct managed_ahead ahead = {0};
	uint64_t loads, unloads;
	bool known;

	if (!t->loads_at || !t->unloads_at)
		return CHANGES_UNKNOWN;
	managed_ahead_add(&ahead, t->loads_at, sizeof(loads));
	managed_ahead_add(&ahead, t->unloads_at, sizeof(unloads));
	managed_ahead_fetch(&ahead, target);
	known = hotspot_counter_read(&ahead.memory, t->loads_at, &loads) &&
		hotspot_counter_read(&ahead.memory, t->unloads_at, &unloads);
	managed_ahead_free(&ahead);
	return known ? loads + unloads : CHANGES_UNKNOWN;
}

static bool looked_at(const struct hotspot_check_method *c, uint64_t changes)
{
	return c->changes == changes && changes != CHANGES_UNKNOWN;
}

/*
 * Only where classes came or went can another one be in the place of a method's class. The counts
 * are read first: what changes later is seen by the next check.
 */
static void check(struct hotspot_task *t, const struct managed_memory *target)
{
	struct hotspot_classes classes = {0};
	struct managed_ahead ahead = {0};
	const struct managed_memory *memory = &ahead.memory;
	uint32_t i;

	for (i = 0; i < t->ncheck_blobs; i++)
		hotspot_identity_ahead(t->layout, &ahead, t->check_blobs[i].start);
	for (i = 0; i < t->ncheck_methods; i++)
		hotspot_method_ahead(t->layout, &ahead, &t->check_methods[i].method,
				     !looked_at(&t->check_methods[i], t->changes));
	managed_ahead_fetch(&ahead, target);
	for (i = 0; i < t->ncheck_blobs; i++) {
		struct hotspot_check_blob *c = &t->check_blobs[i];
		struct hotspot_identity now;

		if (!hotspot_identity_read(t->layout, memory, c->start, c->identity.method != 0,
					   &now))
			c->now = NOW_UNREADABLE;
		else
			c->now = hotspot_identity_same(&now, &c->identity) ? NOW_SAME : NOW_OTHER;
	}
	for (i = 0; i < t->ncheck_methods; i++) {
		struct hotspot_check_method *c = &t->check_methods[i];
		bool same = hotspot_method_same(t->layout, memory, &c->method,
						looked_at(c, t->changes) ? NULL : &classes);

		c->now = same ? NOW_SAME : NOW_OTHER;
		c->changes = t->changes;
	}
	managed_ahead_free(&ahead);
}

/*
 * How often what is at an address may have become another method's. A redefinition frees methods
 * without unloading a class; those of a class that is loaded later come in their place. Later JVMs
 * than 21 say that it may happen although nobody asked for it, and have a name rather than a doubt.
 */
static uint64_t read_unloads(const struct hotspot_task *t, const struct managed_memory *memory)
{
	uint64_t unloads, loads, redefines;

	if (!t->unloads_at || !hotspot_counter_read(memory, t->unloads_at, &unloads))
		return 0;
	if (t->loads_at && t->layout->major <= REDEFINES_TOLD_UNTIL &&
	    hotspot_read_static(t->layout, memory, F_MAY_REDEFINE, &redefines) &&
	    redefines && hotspot_counter_read(memory, t->loads_at, &loads))
		unloads += loads;
	return unloads;
}

static void ahead_static(const struct hotspot_task *t, struct managed_ahead *ahead,
			 enum hotspot_field_id id)
{
	if (hotspot_has(t->layout, id))
		managed_ahead_add(ahead, t->layout->fields[id].at, t->layout->fields[id].bytes);
}

/* After all else: what changed while it was read is counted. */
static void read_counts(struct hotspot_task *t, const struct managed_memory *target)
{
	struct managed_ahead ahead = {0};

	if (!t->unloads_at && t->counts) {
		t->unloads_at = hotspot_counter_find(t->layout, target, COUNTER_UNLOADED);
		t->loads_at = hotspot_counter_find(t->layout, target, COUNTER_LOADED);
	}
	if (t->unloads_at)
		managed_ahead_add(&ahead, t->unloads_at, sizeof(t->unloads));
	ahead_static(t, &ahead, F_MAY_REDEFINE);
	if (t->loads_at)
		managed_ahead_add(&ahead, t->loads_at, sizeof(t->unloads));
	ahead_static(t, &ahead, F_HEAP_OF_OBJECTS);
	/* It is where it was: else this piece serves nothing. */
	if (t->heap && hotspot_has(t->layout, F_COLLECTIONS))
		managed_ahead_add(&ahead, t->heap + t->layout->fields[F_COLLECTIONS].at,
				  t->layout->fields[F_COLLECTIONS].bytes);
	managed_ahead_fetch(&ahead, target);
	t->unloads = read_unloads(t, &ahead.memory);
	if (t->exception || t->counts)
		t->collections = hotspot_collections(t->layout, &ahead.memory, &t->heap);
	managed_ahead_free(&ahead);
}

static void run(struct managed_task *task, const struct managed_memory *memory)
{
	struct hotspot_task *t = (struct hotspot_task *)task;
	uint32_t i;

	if (!t->layout) {
		t->rc = hotspot_layout_read(memory, t->image_base, &t->layout, &t->err);
		return;
	}
	t->changes = read_changes(t, memory);
	if (t->pc)
		read_blob(t, memory);
	for (i = 0; i < t->nmethods; i++)
		hotspot_method_read(t->layout, memory, t->wanted[i], &t->methods[i]);
	check(t, memory);
	if (t->exception)
		hotspot_exception_read(t->layout, memory, t->exception, &t->exceptions, t->thrown);
	read_counts(t, memory);
}

static void free_task(struct managed_task *task)
{
	hotspot_task_free((struct hotspot_task *)task);
}

struct hotspot_task *hotspot_task_new(struct hotspot_layout *layout)
{
	struct hotspot_task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->base = (struct managed_task){.run = run, .free = free_task};
	t->layout = layout ? hotspot_layout_ref(layout) : NULL;
	return t;
}

void hotspot_task_free(struct hotspot_task *t)
{
	uint32_t i;

	if (!t)
		return;
	for (i = 0; i < t->nmethods; i++)
		hotspot_method_clear(&t->methods[i]);
	hotspot_blob_free(t->blob);
	hotspot_layout_drop(t->layout);
	free(t->check_blobs);
	free(t->check_methods);
	free(t->thrown);
	free(t);
}
