#include "managed/hotspot/cache.h"

#include "base/array.h"
#include "base/os.h"
#include "managed/hotspot/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECKED_TOGETHER 100u                /* moments: what was used since is checked in one go */
#define IDLE_NS NS_PER_SEC                 /* without a sample: it has collected nothing */
/*
 * Where no class came or went for so long, no method can have become another one. A redefinition
 * reads its new class, which is counted, and puts it in the old one's place some time later.
 */
#define QUIET_NS (10 * NS_PER_SEC)
#define KEPT_FIRST 100u                      /* moments: what was used since goes last */

/* ---- life ------------------------------------------------------------------------------------ */

struct hotspot_cache *hotspot_cache_new(struct hotspot_layout *layout, struct managed_names *names)
{
	struct hotspot_cache *c = calloc(1, sizeof(*c));

	if (!c) {
		hotspot_layout_drop(layout);
		return NULL;
	}
	c->layout = layout;
	c->names = names;
	c->moment = 1;
	return c;
}

static void free_dead(struct hotspot_cache *c)
{
	while (c->ndead)
		hotspot_blob_free(c->dead[--c->ndead]);
}

void hotspot_cache_free(struct hotspot_cache *c)
{
	if (!c)
		return;
	free_dead(c);
	while (c->nblobs)
		hotspot_blob_free(c->blobs[--c->nblobs]);
	free(c->blobs);
	free(c->dead);
	free(c->methods);
	table_free(&c->by_address);
	hotspot_layout_drop(c->layout);
	free(c);
}

static struct hotspot_task *new_task(struct hotspot_cache *c)
{
	struct hotspot_task *t = hotspot_task_new(c->layout);

	if (t) {
		t->unloads_at = c->unloads_at;
		t->loads_at = c->loads_at;
		t->heap = c->heap;
	}
	return t;
}

/* Run a task; false: it is gone, and nothing more is read for this sample. */
static bool run_task(struct hotspot_cache *c, const struct managed_host *host,
		     struct hotspot_task *t)
{
	if (t && host->run(host->ctx, &t->base))
		return true;
	c->missed = true;
	c->hangs |= t != NULL;
	return false;
}

/* ---- blobs ----------------------------------------------------------------------------------- */

/* The first blob that ends above an address. */
static uint32_t first_above(const struct hotspot_cache *c, uint64_t pc)
{
	uint32_t low = 0, high = c->nblobs;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct hotspot_blob *b = c->blobs[middle];

		if (b->start + b->identity.size <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A blob that is removed stays valid until the next moment: somebody may be using it. */
static void remove_blob(struct hotspot_cache *c, uint32_t i)
{
	struct hotspot_blob *b = c->blobs[i];

	c->bytes -= b->bytes;
	memmove(c->blobs + i, c->blobs + i + 1, (--c->nblobs - i) * sizeof(*c->blobs));
	c->dead[c->ndead++] = b;             /* insert_blob() made room */
}

static bool is_room(const struct hotspot_cache *c, size_t bytes, unsigned quarters)
{
	return c->bytes + bytes <= HOTSPOT_BYTES_MAX / 4 * quarters &&
	       c->nblobs < HOTSPOT_BLOBS_MAX / 4 * quarters;
}

/* Drop what was not used of late, until a quarter is free; what this moment uses stays. */
static bool make_room(struct hotspot_cache *c, size_t bytes)
{
	uint32_t age, i;

	if (is_room(c, bytes, 4))
		return true;
	for (age = KEPT_FIRST; !is_room(c, bytes, 3); age /= 4) {
		for (i = c->nblobs; i-- > 0;)
			if (c->blobs[i]->used + age < c->moment)
				remove_blob(c, i);
		if (!age)
			break;
	}
	return is_room(c, bytes, 4);
}

/* Whether classes were unloaded between the sample and what a task has read. */
static bool is_doubtful(const struct hotspot_cache *c, const struct hotspot_task *t)
{
	unsigned i = 0;

	if (c->counted && !c->unloads_at)
		return false;                /* it keeps no count */
	while (i < HOTSPOT_UNLOADS && c->unloads[i].known_ns > c->sample_ns)
		i++;
	if (i == HOTSPOT_UNLOADS)
		return true;                 /* it is older than all that is known */
	/* Before the first moment nobody knows, unless it has never unloaded any: that is 0. */
	return t->unloads != c->unloads[i].n;
}

static void note_unloads(struct hotspot_cache *c, const struct hotspot_task *t)
{
	c->counted = true;
	c->unloads_at = t->unloads_at;
	c->loads_at = t->loads_at;
	c->heap = t->heap;
	if (c->unloads[0].known_ns && c->unloads[0].n == t->unloads)
		return;
	memmove(c->unloads + 1, c->unloads, sizeof(c->unloads) - sizeof(c->unloads[0]));
	c->unloads[0].known_ns = os_now_ns();
	c->unloads[0].n = t->unloads;
}

/* takes b; false: there is no room */
static bool insert_blob(struct hotspot_cache *c, struct hotspot_blob *b)
{
	uint32_t i;

	if (ARRAY_ROOM(c->blobs, c->blobs_room, c->nblobs + 1) ||
	    ARRAY_ROOM(c->dead, c->dead_room, c->ndead + c->nblobs + 1) ||
	    !make_room(c, b->bytes)) {
		hotspot_blob_free(b);
		return false;
	}
	i = first_above(c, b->start);
	while (i < c->nblobs && c->blobs[i]->start < b->start + b->identity.size) {
		remove_blob(c, i);
		c->blobs_changed = true;
	}
	memmove(c->blobs + i + 1, c->blobs + i, (c->nblobs - i) * sizeof(*c->blobs));
	c->blobs[i] = b;
	c->nblobs++;
	c->bytes += b->bytes;
	b->read = b->checked = b->used = c->moment;
	return true;
}

/* ---- methods --------------------------------------------------------------------------------- */

static bool same_address(const void *ctx, uint32_t value, const void *key)
{
	const struct hotspot_cache *c = ctx;

	return c->methods[value].address == *(const uint64_t *)key;
}

static struct hotspot_known *find_method(struct hotspot_cache *c, uint64_t address)
{
	uint32_t i = table_find(&c->by_address, hash_u64(address), same_address, c, &address);

	return i == TABLE_NONE ? NULL : &c->methods[i];
}

/* Keep what was read at an address; function NULL: there is no method. */
static void keep_method(struct hotspot_cache *c, uint64_t address, const struct hotspot_method *m,
			bool doubtful, uint64_t changes)
{
	struct hotspot_known *k = find_method(c, address);

	if (!k && c->nmethods == HOTSPOT_METHODS_MAX) {
		table_clear(&c->by_address);
		c->nmethods = 0;
	}
	if (!k) {
		if (ARRAY_ROOM(c->methods, c->methods_room, c->nmethods + 1) ||
		    table_add(&c->by_address, hash_u64(address), c->nmethods))
			return;
		k = &c->methods[c->nmethods++];
	}
	*k = (struct hotspot_known){.address = address, .read = c->moment, .checked = c->moment,
				    .used = c->moment, .doubtful = doubtful,
				    .read_ns = os_now_ns(), .changes = changes};
	if (!m->function)
		return;
	k->valid = true;
	k->const_method = m->const_method;
	k->pool = m->pool;
	k->class_hash = m->class_hash;
	k->symbols_hash = m->symbols_hash;
	k->name_index = m->name_index;
	k->signature_index = m->signature_index;
	k->bytecodes = m->bytecodes;
	k->nbytecodes = m->nbytecodes;
	snprintf(c->detail, sizeof(c->detail), "%s%s", m->signature, m->lines ? m->lines : "");
	k->number = managed_names_add(c->names, m->function, c->detail);
}

static void keep_methods(struct hotspot_cache *c, const struct hotspot_task *t)
{
	uint32_t i;

	for (i = 0; i < t->nmethods; i++)
		keep_method(c, t->wanted[i], &t->methods[i], is_doubtful(c, t), t->changes);
}

/* ---- once for each moment -------------------------------------------------------------------- */

static void list_blobs(struct hotspot_cache *c, struct hotspot_task *t)
{
	uint32_t i;

	t->check_blobs = malloc(c->nblobs * sizeof(*t->check_blobs) + 1);
	for (i = 0; t->check_blobs && i < c->nblobs; i++) {
		const struct hotspot_blob *b = c->blobs[i];

		if (b->used + CHECKED_TOGETHER >= c->moment)
			t->check_blobs[t->ncheck_blobs++] = (struct hotspot_check_blob){
				.start = b->start, .identity = b->identity};
	}
}

static void list_methods(struct hotspot_cache *c, struct hotspot_task *t)
{
	uint32_t i;

	t->check_methods = malloc(c->nmethods * sizeof(*t->check_methods) + 1);
	for (i = 0; t->check_methods && i < c->nmethods; i++) {
		const struct hotspot_known *k = &c->methods[i];

		if (k->valid && k->used + CHECKED_TOGETHER >= c->moment)
			t->check_methods[t->ncheck_methods++] = (struct hotspot_check_method){
				.method = {.address = k->address, .const_method = k->const_method,
					   .pool = k->pool, .class_hash = k->class_hash,
					   .symbols_hash = k->symbols_hash,
					   .name_index = k->name_index,
					   .signature_index = k->signature_index},
				.changes = k->changes};
	}
}

/* All that was known of methods when so many classes had come and gone still holds. */
static void take_unchanged(struct hotspot_cache *c)
{
	uint32_t i;

	for (i = 0; i < c->nmethods; i++)
		if (c->methods[i].valid && c->methods[i].changes == c->changes)
			c->methods[i].checked = c->moment;
}

static void note_changes(struct hotspot_cache *c, uint64_t changes)
{
	if (c->changes != changes || !c->changed_ns)
		c->changed_ns = os_now_ns();
	c->changes = changes;
}

static bool is_quiet(const struct hotspot_cache *c)
{
	return c->changed_ns && c->changes != CHANGES_UNKNOWN &&
	       os_now_ns() - c->changed_ns >= QUIET_NS;
}

/* What cannot be read is kept: the process has ended, and with it all changes. */
static void take_checks(struct hotspot_cache *c, const struct hotspot_task *t)
{
	bool ended = t->ncheck_blobs && t->check_blobs[0].now == NOW_UNREADABLE;
	struct hotspot_known *k;
	uint32_t i, at;

	for (i = 0; i < t->ncheck_blobs; i++) {
		at = first_above(c, t->check_blobs[i].start);
		if (at == c->nblobs || c->blobs[at]->start != t->check_blobs[i].start)
			continue;
		c->blobs[at]->checked = c->moment;
		if (t->check_blobs[i].now == NOW_OTHER) {
			remove_blob(c, at);
			c->blobs_changed = true;
		}
	}
	for (i = 0; i < t->ncheck_methods; i++) {
		k = find_method(c, t->check_methods[i].method.address);
		if (k && (ended || t->check_methods[i].now == NOW_SAME)) {
			k->checked = c->moment;
			k->changes = t->check_methods[i].changes;
		} else {
			c->methods_changed = true;
			if (k)
				k->valid = false;    /* not found to be another one again */
		}
	}
}

/*
 * A collection moves objects. One that began before time_ns is of no interest to whoever asks
 * about an object of that time; of a JVM without samples nobody knows when its collections were.
 */
static void note_collections(struct hotspot_cache *c, uint64_t collections)
{
	uint64_t now_ns = os_now_ns();

	if (collections != c->collections && now_ns - c->collections_ns < IDLE_NS)
		c->moved_ns = now_ns;
	c->collections = collections;
	c->collections_ns = now_ns;
}

/* methods: look at each, not only whether any class came or went. false: it does not answer */
static bool check_all(struct hotspot_cache *c, const struct managed_host *host, bool methods)
{
	struct hotspot_task *t = new_task(c);

	if (!t)
		return false;
	list_blobs(c, t);
	if (methods)
		list_methods(c, t);
	t->counts = true;
	if (!run_task(c, host, t))
		return false;
	take_checks(c, t);
	if (!methods && t->changes == c->changes) {
		take_unchanged(c);
		methods = true;
	}
	note_changes(c, t->changes);
	note_collections(c, t->collections);
	note_unloads(c, t);
	hotspot_task_free(t);
	return methods || check_all(c, host, true);
}

void hotspot_cache_begin(struct hotspot_cache *c, const struct managed_host *host,
			 uint64_t sample_ns)
{
	free_dead(c);
	c->hangs = c->missed = false;
	c->nwords = 0;
	c->sample_ns = sample_ns;
	if (sample_ns <= c->checked_ns)
		return;
	c->checked_ns = os_now_ns();
	c->moment++;
	c->nnew = 0;
	c->new_bytes = 0;
	c->methods_changed = c->blobs_changed = false;
	if (ARRAY_ROOM(c->dead, c->dead_room, c->nblobs))
		return;
	if (!check_all(c, host, !is_quiet(c)))
		c->checked_ns = 0;           /* the next sample tries again */
}

bool hotspot_cache_thrown(struct hotspot_cache *c, const struct managed_host *host,
			  uint64_t object, uint64_t time_ns, struct managed_thrown *out)
{
	struct hotspot_task *t = c->hangs ? NULL : new_task(c);

	if (t)
		t->thrown = calloc(1, sizeof(*t->thrown));
	if (!t || !t->thrown) {
		hotspot_task_free(t);
		return false;
	}
	t->exception = object;
	t->exceptions = c->exceptions;
	if (!run_task(c, host, t))
		return false;
	c->exceptions = t->exceptions;
	note_collections(c, t->collections);
	*out = *t->thrown;
	hotspot_task_free(t);
	out->moved = c->moved_ns > time_ns;
	if (out->moved)
		out->message[0] = '\0';
	return out->type[0] != '\0';
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool may_read(struct hotspot_cache *c)
{
	if (!c->hangs && c->nnew < HOTSPOT_NEW_MAX && c->new_bytes < HOTSPOT_BYTES_MAX)
		return true;
	c->missed = true;
	return false;
}

/* A blob that was not used of late: look whether it is still there. */
static bool check_one(struct hotspot_cache *c, const struct managed_host *host,
		      struct hotspot_blob *b)
{
	struct hotspot_task *t;
	bool same;

	if (!may_read(c))
		return false;
	t = new_task(c);
	if (t)
		t->check_blobs = calloc(1, sizeof(*t->check_blobs));
	if (!t || !t->check_blobs) {
		hotspot_task_free(t);
		return false;
	}
	t->ncheck_blobs = 1;
	t->check_blobs[0] = (struct hotspot_check_blob){.start = b->start,
							.identity = b->identity};
	if (!run_task(c, host, t))
		return false;
	same = t->check_blobs[0].now != NOW_OTHER;
	hotspot_task_free(t);
	if (same)
		b->checked = c->moment;
	return same;
}

static struct hotspot_blob *read_blob(struct hotspot_cache *c, const struct managed_host *host,
				      uint64_t pc)
{
	struct hotspot_task *t = new_task(c);
	struct hotspot_blob *b;

	c->nnew++;
	if (t)
		t->pc = pc;
	if (!run_task(c, host, t))
		return NULL;
	keep_methods(c, t);
	b = t->blob;
	t->blob = NULL;
	if (b) {
		b->doubtful = is_doubtful(c, t);
		b->read_ns = os_now_ns();
		c->new_bytes += b->bytes;
	}
	hotspot_task_free(t);
	if (b && !insert_blob(c, b)) {
		c->missed = true;
		return NULL;
	}
	return b;
}

struct hotspot_blob *hotspot_cache_blob(struct hotspot_cache *c, const struct managed_host *host,
					uint64_t pc)
{
	unsigned miss = (unsigned)(hash_u64(pc) % HOTSPOT_MISSES);
	uint32_t i = first_above(c, pc);
	struct hotspot_blob *b;
	bool missed;

	if (i < c->nblobs && c->blobs[i]->start <= pc) {
		b = c->blobs[i];
		if (b->checked == c->moment || check_one(c, host, b)) {
			b->used = c->moment;
			return b;
		}
	}
	if (!hotspot_heap_of(c->layout, pc) ||
	    (c->misses[miss].pc == pc && c->misses[miss].moment == c->moment) || !may_read(c))
		return NULL;
	missed = c->missed;
	c->missed = false;
	b = read_blob(c, host, pc);
	if (!b && !c->missed) {
		c->misses[miss].pc = pc;
		c->misses[miss].moment = c->moment;
	}
	c->missed |= missed;
	return b;
}

/* Have the methods at these addresses read. */
static void read_methods(struct hotspot_cache *c, const struct managed_host *host,
			 const uint64_t *addresses, uint32_t n)
{
	struct hotspot_task *t;

	if (!n || !may_read(c))
		return;
	t = new_task(c);
	if (!t)
		return;
	c->nnew++;
	t->nmethods = n < TASK_METHODS_MAX ? n : TASK_METHODS_MAX;
	memcpy(t->wanted, addresses, t->nmethods * sizeof(*addresses));
	if (!run_task(c, host, t))
		return;
	keep_methods(c, t);
	hotspot_task_free(t);
}

static struct hotspot_known *known_now(struct hotspot_cache *c, uint64_t address)
{
	struct hotspot_known *k = find_method(c, address);

	if (!k || k->checked != c->moment)
		return NULL;
	k->used = c->moment;
	return k;
}

bool hotspot_cache_method(struct hotspot_cache *c, const struct managed_host *host,
			  uint64_t address, struct hotspot_known *out)
{
	const struct hotspot_known *k;

	if (address < 4096 || address % 8 || address >> 47)
		return false;
	k = known_now(c, address);
	if (!k) {
		read_methods(c, host, &address, 1);
		k = known_now(c, address);
	}
	if (!k || !k->valid)
		return false;
	if (out)
		*out = *k;
	return true;
}

/* Whether they may have come to their addresses after the sample was taken. */
static bool method_may_be_another(const struct hotspot_cache *c, const struct hotspot_known *k)
{
	return (c->methods_changed && k->read == c->moment) ||
	       (k->doubtful && k->read_ns >= c->sample_ns);
}

static bool blob_may_be_another(const struct hotspot_cache *c, const struct hotspot_blob *b)
{
	return ((c->methods_changed || c->blobs_changed) && b->read == c->moment) ||
	       (b->doubtful && b->read_ns >= c->sample_ns);
}

static uint32_t *number_at(struct hotspot_blob *b, uint32_t metadata)
{
	return metadata == UINT32_MAX ? &b->method_number : &b->numbers[metadata];
}

static uint64_t method_at(const struct hotspot_blob *b, uint32_t metadata)
{
	return metadata == UINT32_MAX ? b->identity.method : b->metadata[metadata];
}

void hotspot_cache_numbers(struct hotspot_cache *c, const struct managed_host *host,
			   struct hotspot_blob *b, const struct hotspot_scope *scopes, uint32_t n,
			   uint32_t *numbers)
{
	uint64_t unknown[HOTSPOT_INLINE_MAX];
	uint32_t nunknown = 0, i;

	for (i = 0; i < n && nunknown < HOTSPOT_INLINE_MAX; i++) {
		uint64_t method = method_at(b, scopes[i].metadata);

		if (*number_at(b, scopes[i].metadata) == NUMBER_UNKNOWN && !known_now(c, method))
			unknown[nunknown++] = method;
	}
	read_methods(c, host, unknown, nunknown);
	for (i = 0; i < n; i++) {
		uint32_t *number = number_at(b, scopes[i].metadata);
		const struct hotspot_known *k;

		if (*number == NUMBER_UNKNOWN) {
			k = known_now(c, method_at(b, scopes[i].metadata));
			if (k && k->valid && !method_may_be_another(c, k))
				*number = k->number;
		}
		numbers[i] = *number == NUMBER_UNKNOWN || blob_may_be_another(c, b) ? 0 : *number;
	}
}

uint32_t hotspot_cache_number(const struct hotspot_cache *c, const struct hotspot_known *k)
{
	return method_may_be_another(c, k) ? 0 : k->number;
}
