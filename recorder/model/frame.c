#include "model/frame.h"

#include "base/os.h"
#include "base/shares.h"
#include "base/slots.h"
#include "base/table.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_SLICE 8192u               /* slots of frames looked at in one frames_sweep() */
#define NOBODY UINT32_MAX               /* the user of a process that has gone */

struct frames {
	/* Used by the merge thread only. */
	struct table by_frame;               /* (object, offset, flags) -> number */
	uint32_t sweep_at;
	_Atomic uint64_t refused;
	_Atomic uint64_t nstack_ids;

	struct os_mutex *lock;               /* guards everything below; slots are added under it */
	struct slots frame_slots;
	struct slots object_slots;
	struct table by_object;              /* key -> number */
	struct shares shares;                /* of the objects; programs are not told apart */
	uint64_t over_share;
	uint32_t over_share_uid;
	struct slots function_slots;
	struct table by_function;            /* (object, offset, raw name) -> number */
	uint32_t named;
	struct object *unknown;
};

/* ---- objects --------------------------------------------------------------------------------- */

static uint64_t object_hash(const struct object_key *key)
{
	uint64_t h = hash_pair(key->kind, ((uint64_t)key->pid << 32) | key->epoch);

	if (key->build_id_bytes)
		h = hash_pair(h, hash_bytes(key->build_id, key->build_id_bytes));
	else
		h = hash_pair(h, hash_pair(key->dev, key->ino));
	return hash_pair(h, hash_bytes(key->path, strlen(key->path)));
}

/*
 * An object's identity is its build id and path; without a build id device, inode, generation and
 * path. The path always counts: a copy of a program under another name keeps that name.
 */
static bool object_same(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct frames *f = ctx;
	const struct object *object = slots_get(&f->object_slots, value);
	const struct object_key *a = &object->key;
	const struct object_key *b = key_arg;

	if (a->kind != b->kind || a->pid != b->pid || a->epoch != b->epoch ||
	    a->build_id_bytes != b->build_id_bytes || strcmp(a->path, b->path) != 0)
		return false;
	if (a->build_id_bytes)
		return memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
	return a->dev == b->dev && a->ino == b->ino && a->ino_generation == b->ino_generation;
}

static struct object *object_new(struct frames *f, const struct object_key *key, uint32_t pid)
{
	char *path = text_dup(key->path, SIZE_MAX);
	struct object *object;
	uint32_t number;

	if (!path)
		return NULL;
	number = table_add_slot(&f->by_object, object_hash(key), &f->object_slots, SLOTS_NONE);
	if (number == SLOTS_NONE) {
		free(path);
		return NULL;
	}
	object = slots_get(&f->object_slots, number);
	object->number = number;
	object->key = *key;
	object->key.path = path;
	object->name = text_base_name(path);
	object->pid = pid;
	return object;
}

/* A new object in the share of a user. */
static struct object *object_new_of_user(struct frames *f, const struct object_key *key,
					 uint32_t pid, bool (*user_of)(uint32_t, uint32_t *))
{
	struct share share = {.uid = NOBODY};
	struct object *object;

	user_of(pid, &share.uid);
	if (!shares_take(&f->shares, &share, 1)) {
		f->over_share++;
		f->over_share_uid = share.uid;
		return NULL;
	}
	object = object_new(f, key, pid);
	if (!object) {
		shares_give_back(&f->shares, &share, 1);
		return NULL;
	}
	object->shared = true;
	object->uid = share.uid;
	return object;
}

static void give_back_share(struct frames *f, const struct object *object)
{
	struct share share = {.uid = object->uid, .used = 1};

	if (object->shared)
		shares_give_back(&f->shares, &share, 1);
}

struct object *objects_get_for(struct frames *f, const struct object_key *key, uint32_t pid,
				   bool (*user_of)(uint32_t pid, uint32_t *uid))
{
	struct object *object = NULL;
	uint32_t number;

	os_mutex_lock(f->lock);
	number = table_find(&f->by_object, object_hash(key), object_same, f, key);
	if (number != TABLE_NONE)
		object = slots_get(&f->object_slots, number);
	else
		object = user_of ? object_new_of_user(f, key, pid, user_of)
				 : object_new(f, key, pid);
	if (object) {
		atomic_fetch_add(&object->refs, 1);
		object->dropped_ns = 0;
	} else {
		f->refused++;
	}
	os_mutex_unlock(f->lock);
	return object;
}

struct object *objects_get(struct frames *f, const struct object_key *key, uint32_t pid)
{
	return objects_get_for(f, key, pid, NULL);
}

void object_ref(struct object *object)
{
	atomic_fetch_add(&object->refs, 1);
}

void object_drop(struct object *object, uint64_t now_ns)
{
	uint64_t dropped_ns = atomic_load(&object->dropped_ns);

	/*
	 * The latest drop decides: events queued before it may still arrive. Store the time before
	 * the count can be seen as zero.
	 */
	now_ns = now_ns ? now_ns : 1;
	while (dropped_ns < now_ns &&
	       !atomic_compare_exchange_weak(&object->dropped_ns, &dropped_ns, now_ns))
		;
	atomic_fetch_sub(&object->refs, 1);
}

struct object *objects_unknown(struct frames *f)
{
	return f->unknown;
}

/* ---- life ------------------------------------------------------------------------------------ */

int frames_new(struct frames **out, struct err *err)
{
	static const struct object_key unknown = {.kind = OBJECT_UNKNOWN, .path = "?"};
	struct frames *f = calloc(1, sizeof(*f));

	if (f) {
		f->lock = os_mutex_new();
		shares_init(&f->shares, OBJECTS_MAX, os_uid());
	}
	if (!f || !f->lock || slots_init(&f->frame_slots, sizeof(struct frame), FRAMES_MAX) ||
	    slots_init(&f->object_slots, sizeof(struct object), OBJECTS_MAX) ||
	    slots_init(&f->function_slots, sizeof(struct function), FRAMES_MAX) ||
	    !(f->unknown = objects_get(f, &unknown, 0))) {
		frames_free(f);
		return err_memory(err, "for the frame table");
	}
	*out = f;
	return 0;
}

static void function_clear(struct function *function)
{
	free(function->name);
	free(function->raw_name);
	free(function->module);
}

void frames_free(struct frames *f)
{
	struct object *object;
	uint32_t number, at;

	if (!f)
		return;
	for (at = 0; (number = table_next(&f->by_function, &at)) != TABLE_NONE;)
		function_clear(slots_get(&f->function_slots, number));
	for (at = 0; (number = table_next(&f->by_object, &at)) != TABLE_NONE;) {
		object = slots_get(&f->object_slots, number);
		free((char *)object->key.path);
	}
	slots_free(&f->frame_slots);
	slots_free(&f->object_slots);
	slots_free(&f->function_slots);
	table_free(&f->by_frame);
	table_free(&f->by_object);
	table_free(&f->by_function);
	os_mutex_free(f->lock);
	free(f);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint64_t frame_hash(const struct frame_ref *ref)
{
	return hash_pair(((uint64_t)ref->object->number << 32) | ref->flags, ref->offset);
}

static bool frame_same(const void *ctx, uint32_t value, const void *key)
{
	const struct frames *f = ctx;
	const struct frame *frame = slots_get(&f->frame_slots, value);
	const struct frame_ref *ref = key;

	return frame->object == ref->object && frame->offset == ref->offset &&
	       frame->flags == ref->flags;
}

uint64_t frames_stack_id(struct frames *f)
{
	return atomic_fetch_add_explicit(&f->nstack_ids, 1, memory_order_relaxed) + 1;
}

uint32_t frames_intern(struct frames *f, const struct frame_ref *ref, bool *fresh)
{
	uint64_t hash = frame_hash(ref);
	uint32_t number = table_find(&f->by_frame, hash, frame_same, f, ref);
	struct frame *frame;

	*fresh = false;
	if (number != TABLE_NONE)
		return number;
	os_mutex_lock(f->lock);
	number = table_add_slot(&f->by_frame, hash, &f->frame_slots, SLOTS_NONE);
	os_mutex_unlock(f->lock);
	if (number == SLOTS_NONE) {
		f->refused++;
		return FRAME_NONE;
	}
	frame = slots_get(&f->frame_slots, number);
	frame->number = number;
	frame->flags = (uint32_t)ref->flags;
	frame->object = ref->object;
	frame->offset = ref->offset;
	object_ref(ref->object);
	*fresh = true;
	return number;
}

uint32_t frames_find(const struct frames *f, const struct frame_ref *ref)
{
	return table_find(&f->by_frame, frame_hash(ref), frame_same, f, ref);
}

struct frame *frame_get(const struct frames *f, uint32_t number)
{
	return slots_get(&f->frame_slots, number);
}

void frame_ref(struct frame *frame)
{
	atomic_fetch_add_explicit(&frame->refs, 1, memory_order_relaxed);
}

void frame_unref(struct frame *frame)
{
	atomic_fetch_sub_explicit(&frame->refs, 1, memory_order_acq_rel);
}

/* ---- functions ------------------------------------------------------------------------------- */

struct function_key {
	struct object *object;
	uint64_t offset;
	const char *raw_name;        /* its first FUNCTION_NAME_MAX bytes count; NULL = any */
};

/* A file has one function at a place; code made at run time may have many, one after another. */
static uint64_t function_hash(const struct function_key *key)
{
	uint64_t h = hash_pair(key->object->number, key->offset);
	size_t n;

	if (key->object->key.kind == OBJECT_ELF)
		return h;
	n = strnlen(key->raw_name, FUNCTION_NAME_MAX);
	return hash_pair(h, hash_bytes(key->raw_name, n));
}

static bool function_same(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct frames *f = ctx;
	const struct function *function = slots_get(&f->function_slots, value);
	const struct function_key *key = key_arg;
	const char *raw = function->raw_name ? function->raw_name : function->name;

	return function->object == key->object && function->offset == key->offset &&
	       (!key->raw_name || strncmp(raw, key->raw_name, FUNCTION_NAME_MAX) == 0);
}

/* Copy an optional text; false without memory. */
static bool copy_text(const char *text, char **out)
{
	*out = text ? text_dup(text, FUNCTION_NAME_MAX) : NULL;
	return *out || !text;
}

static struct function *function_new(struct frames *f, const struct function_key *key,
				     const char *name, const char *raw_name, const char *module)
{
	struct function made = {.object = key->object, .offset = key->offset,
				.hash = function_hash(key)}, *function;

	made.number = SLOTS_NONE;
	if (raw_name && strcmp(raw_name, name) == 0)
		raw_name = NULL;
	if (copy_text(name, &made.name) && copy_text(raw_name, &made.raw_name) &&
	    copy_text(module, &made.module))
		made.number = table_add_slot(&f->by_function, made.hash, &f->function_slots,
					     SLOTS_NONE);
	if (made.number == SLOTS_NONE) {
		function_clear(&made);
		return NULL;
	}
	function = slots_get(&f->function_slots, made.number);
	*function = made;
	return function;
}

static struct function *function_find(struct frames *f, const struct function_key *key)
{
	uint32_t number = table_find(&f->by_function, function_hash(key), function_same, f, key);

	return number != TABLE_NONE ? slots_get(&f->function_slots, number) : NULL;
}

static void take_function(struct frames *f, struct frame *frame, struct function *function)
{
	function->refs++;
	f->named++;
	atomic_store(&frame->function, function);
}

bool frame_take_function(struct frames *f, struct frame *frame, uint64_t offset)
{
	struct function_key key = {.object = frame->object, .offset = offset};
	struct function *function;

	if (frame->object->key.kind != OBJECT_ELF)
		return false;
	os_mutex_lock(f->lock);
	function = function_find(f, &key);
	if (function && !atomic_load(&frame->function))
		take_function(f, frame, function);
	os_mutex_unlock(f->lock);
	return function != NULL;
}

int frame_set_function(struct frames *f, struct frame *frame, uint64_t offset, const char *name,
		       const char *raw_name, const char *module)
{
	struct function_key key = {frame->object, offset, raw_name ? raw_name : name};
	struct function *function;
	int rc = 0;

	os_mutex_lock(f->lock);
	if (!atomic_load(&frame->function)) {
		function = function_find(f, &key);
		if (!function)
			function = function_new(f, &key, name, raw_name, module);
		if (function)
			take_function(f, frame, function);
		else
			rc = ERR_MEMORY;
	}
	os_mutex_unlock(f->lock);
	return rc;
}

/* ---- sweeping -------------------------------------------------------------------------------- */

static void function_unref(struct frames *f, struct function *function)
{
	if (--function->refs)
		return;
	table_remove(&f->by_function, function->hash, function->number);
	function_clear(function);
	slots_free_one(&f->function_slots, function->number);
}

static void free_frame(struct frames *f, struct frame *frame, uint64_t now_ns)
{
	const struct frame_ref ref = {frame->object, frame->offset, frame->flags};
	struct function *function = atomic_load(&frame->function);

	table_remove(&f->by_frame, frame_hash(&ref), frame->number);
	if (function) {
		f->named--;
		function_unref(f, function);
	}
	object_drop(frame->object, now_ns);
	slots_free_one(&f->frame_slots, frame->number);
}

static void sweep_objects(struct frames *f, uint64_t released_ns)
{
	uint32_t number, at = 0;

	os_mutex_lock(f->lock);
	while ((number = table_next(&f->by_object, &at)) != TABLE_NONE) {
		struct object *object = slots_get(&f->object_slots, number);

		if (atomic_load(&object->refs) || !object->dropped_ns ||
		    object->dropped_ns >= released_ns)
			continue;
		table_remove(&f->by_object, object_hash(&object->key), number);
		at--;
		give_back_share(f, object);
		free((char *)object->key.path);
		slots_free_one(&f->object_slots, number);
	}
	os_mutex_unlock(f->lock);
}

/* Sweep a slice of the frames in the order of their slots in memory; true when it was the last. */
static bool sweep_slice(struct frames *f, uint64_t released_ns)
{
	uint32_t end, i;
	bool last;

	os_mutex_lock(f->lock);
	end = f->frame_slots.end - f->sweep_at;
	last = end <= SWEEP_SLICE;
	end = f->sweep_at + (last ? end : SWEEP_SLICE);
	for (i = f->sweep_at; i < end; i++) {
		struct frame *frame = slots_get(&f->frame_slots, i);

		/* A free slot has no object. */
		if (frame->object && atomic_load(&frame->refs) == 0)
			free_frame(f, frame, released_ns);
	}
	f->sweep_at = last ? 0 : end;
	os_mutex_unlock(f->lock);
	return last;
}

void frames_sweep(struct frames *f, uint64_t released_ns)
{
	sweep_slice(f, released_ns);
	sweep_objects(f, released_ns);
}

void frames_sweep_more(struct frames *f, uint64_t released_ns)
{
	if (f->sweep_at)
		sweep_slice(f, released_ns);
}

void frames_sweep_all(struct frames *f, uint64_t released_ns)
{
	f->sweep_at = 0;
	while (!sweep_slice(f, released_ns))
		;
	sweep_objects(f, released_ns);
}

void frames_use(struct frames *f, struct frames_use *out)
{
	os_mutex_lock(f->lock);
	out->frames = f->frame_slots.used;
	out->objects = f->object_slots.used;
	out->functions = f->function_slots.used;
	out->named = f->named;
	out->bytes = slots_bytes(&f->frame_slots) + slots_bytes(&f->object_slots) +
		     slots_bytes(&f->function_slots) + table_bytes(&f->by_object) +
		     table_bytes(&f->by_function);
	out->refused = f->refused;
	out->over_share = f->over_share;
	out->over_share_uid = f->over_share_uid;
	os_mutex_unlock(f->lock);
}
