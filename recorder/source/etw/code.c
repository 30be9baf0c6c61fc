#include "source/etw/code.h"

#include "base/text.h"
#include "model/event.h"
#include "source/etw/stacks.h"

#include <stdlib.h>
#include <string.h>

#define NONE SLOTS_NONE
#define CACHE_SHIFT 49                       /* the highest 15 bits of a hash */
#define CACHE (1u << (64 - CACHE_SHIFT))     /* places of addresses */
#define KNOWN_SHIFT 55
#define KNOWN_STACKS (1u << (64 - KNOWN_SHIFT))
#define KNOWN_DEPTH 64u                      /* most stacks are less deep */
#define NAME_MAX_BYTES 4000u
#define PDB_ID_BYTES 20u

struct image {
	uint64_t base, size;
	int64_t ticks;                       /* of the first record about it */
	uint32_t pid, timestamp;             /* timestamp of the PE header; 0 = unknown */
	const char *path;                    /* as the kernel writes it */
	struct object *object;               /* NULL until a frame needs it */
};

struct pdb {
	uint32_t pid, older;
	uint64_t base;
	int64_t ticks;
	uint8_t id[PDB_ID_BYTES];            /* GUID and age, as the record has them */
};

struct method {
	const char *name;                    /* Namespace.Type.Method; NULL = unknown */
	const char *detail;                  /* "=(class System.String,int32)"; NULL = unknown */
	uint64_t id, module;
	uint32_t range;
};

struct module {
	uint32_t pid, older;
	uint64_t id;
	int64_t from, until;
	const char *name;                    /* base name of its path */
};

struct jit {
	uint32_t pid, layer;
	struct object *object;
};

struct place {
	uint64_t address;
	int64_t from, until;                 /* empty when from > until */
	uint32_t pid;
	uint32_t generation;                 /* see struct etw_code */
	struct frame_ref ref;
};

/*
 * A stack that was located, as most come again: what holds for all of its addresses. {0}: none.
 */
struct known_stack {
	int64_t from, until;
	uint32_t generation, pid, naddresses, nframes;
	uint64_t id, addresses[KNOWN_DEPTH];
	struct frame_ref frames[KNOWN_DEPTH];
};

struct etw_code {
	struct etw_state *state;
	struct frames *frames;
	struct etw_ranges image_ranges, method_ranges;
	struct slots images, pdbs, methods, modules, jits;
	struct table by_pdb, by_module, by_jit;
	uint32_t generation;                 /* grows with what is learned; 0 = empty place */
	uint32_t epoch;                      /* of the first layer */
	uint64_t refused;
	struct place cache[CACHE];
	struct known_stack known[KNOWN_STACKS];
	struct frame_ref located[STACK_MAX_FRAMES];  /* the latest stack */
};

/* Add an item that this hash finds, in place of the older one. */
static void add_item(struct etw_code *c, struct table *table, uint64_t hash, struct slots *items,
		     uint32_t older, const void *item)
{
	uint32_t number = table_add_slot(table, hash, items, older);

	if (number == NONE)
		c->refused++;
	else
		memcpy(slots_get(items, number), item, items->item_bytes);
}

/* ---- images ---------------------------------------------------------------------------------- */

static struct image *image_at(const struct etw_code *c, uint32_t number)
{
	return slots_get(&c->images, number);
}

/* The start of the process that had already mapped or generated something before its record. */
static int64_t since(const struct etw_code *c, uint32_t pid, int64_t ticks)
{
	const struct etw_process *p = etw_state_process(c->state, pid, ticks);

	return p ? p->life.from : ETW_ALWAYS;
}

static void add_image(struct etw_code *c, const struct image *image, int64_t from, int64_t until)
{
	struct etw_range range = {image->base, image->base + image->size, from, until, image->pid,
				  NONE, NONE, 0};
	uint32_t number = slots_add(&c->images);

	if (number == NONE) {
		c->refused++;
		return;
	}
	*image_at(c, number) = *image;
	range.value = number;
	if (etw_ranges_add(&c->image_ranges, &range) == ETW_RANGE_NONE)
		slots_free_one(&c->images, number);
}

/* Paths are not compared: a snapshot may use another path than the load. */
static bool same_file(const struct image *a, const struct image *b)
{
	return a->size == b->size &&
	       (a->timestamp == b->timestamp || !a->timestamp || !b->timestamp);
}

/* The range that begins there and has not ended; NULL = none. */
static struct etw_range *open_range(const struct etw_ranges *ranges, uint32_t pid, uint64_t start)
{
	uint32_t number = etw_ranges_at(ranges, pid, start);
	struct etw_range *range = number == ETW_RANGE_NONE ? NULL : etw_range(ranges, number);

	return range && range->until == ETW_EVER ? range : NULL;
}

static void learn_image(struct etw_code *c, const struct etw_record *r,
			const struct etw_class *class)
{
	struct etw_texts *texts = etw_state_texts(c->state);
	struct etw_value v[AT_IMAGE_FIELDS];
	struct image image = {.ticks = r->ticks};
	struct etw_range *open;

	etw_class_read(class, r, v, AT_IMAGE_FIELDS);
	image.path = etw_keep_text(texts, &v[AT_IMAGE_PATH], true);
	image.base = v[AT_IMAGE_BASE].u;
	image.size = v[AT_IMAGE_BYTES].u;
	image.pid = (uint32_t)v[AT_IMAGE_PID].u;
	image.timestamp = (uint32_t)v[AT_IMAGE_TIMESTAMP].u;
	if (!image.path || !image.size || image.base + image.size < image.base)
		return;
	open = open_range(&c->image_ranges, image.pid, image.base);
	if (class->id == ETW_IMAGE_UNLOAD && open) {
		open->until = r->ticks;
	} else if (class->id == ETW_IMAGE_UNLOAD) {
		add_image(c, &image, since(c, image.pid, r->ticks), r->ticks);
	} else if (class->id == ETW_IMAGE_LOAD) {
		if (open)
			open->until = r->ticks;
		add_image(c, &image, r->ticks, ETW_EVER);
	} else if (!open || !same_file(image_at(c, open->value), &image)) {
		if (open)
			open->until = r->ticks;
		add_image(c, &image, open ? r->ticks : since(c, image.pid, r->ticks), ETW_EVER);
	}
}

/* ---- identity: PDB GUID and age, of the image with that base --------------------------------- */

static struct pdb *pdb_at(const struct etw_code *c, uint32_t number)
{
	return number == NONE ? NULL : slots_get(&c->pdbs, number);
}

static bool same_pdb(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct pdb *a = pdb_at(ctx, value), *b = key_arg;

	return a->pid == b->pid && a->base == b->base;
}

static uint32_t latest_pdb(const struct etw_code *c, uint32_t pid, uint64_t base)
{
	struct pdb key = {.pid = pid, .base = base};

	return table_find(&c->by_pdb, hash_pair(base, pid), same_pdb, c, &key);
}

static void learn_pdb(struct etw_code *c, const struct etw_record *r, const struct etw_class *class)
{
	struct etw_value v[AT_RSDS_FIELDS];
	struct pdb pdb = {.ticks = r->ticks};

	etw_class_read(class, r, v, AT_RSDS_FIELDS);
	if (!etw_value_is(&v[AT_RSDS_AGE]))
		return;
	pdb.base = v[AT_RSDS_BASE].u;
	pdb.pid = (uint32_t)v[AT_RSDS_PID].u;
	memcpy(pdb.id, v[AT_RSDS_GUID].bytes, sizeof(pdb.id));
	pdb.older = latest_pdb(c, pdb.pid, pdb.base);
	add_item(c, &c->by_pdb, hash_pair(pdb.base, pdb.pid), &c->pdbs, pdb.older, &pdb);
}

/* Merging writes it with the ticks of the image's record; otherwise the nearest one counts. */
static const struct pdb *pdb_of(const struct etw_code *c, const struct image *image)
{
	const struct pdb *p = pdb_at(c, latest_pdb(c, image->pid, image->base)), *best = NULL;
	uint64_t distance, least = UINT64_MAX;

	for (; p; p = pdb_at(c, p->older)) {
		distance = p->ticks > image->ticks ? (uint64_t)p->ticks - (uint64_t)image->ticks
						   : (uint64_t)image->ticks - (uint64_t)p->ticks;
		if (!best || distance < least) {
			best = p;
			least = distance;
		}
	}
	return best;
}

static struct object *object_of(struct etw_code *c, uint32_t number)
{
	struct image *image = image_at(c, number);
	struct object_key key = {.kind = OBJECT_PE};
	const struct pdb *pdb;
	char path[ETW_TEXT_MAX];

	if (image->object)
		return image->object;
	pdb = pdb_of(c, image);
	etw_state_path(c->state, image->path, path, sizeof(path));
	key.path = path;
	if (pdb) {
		memcpy(key.build_id, pdb->id, sizeof(pdb->id));
		key.build_id_bytes = sizeof(pdb->id);
	} else {
		/* Without a PDB, symbol servers identify an image by timestamp and size. */
		key.dev = image->timestamp;
		key.ino = image->size;
	}
	image->object = objects_get(c->frames, &key, 0);
	return image->object;
}

/* ---- managed modules and methods ------------------------------------------------------------- */

static struct module *module_at(const struct etw_code *c, uint32_t number)
{
	return number == NONE ? NULL : slots_get(&c->modules, number);
}

static bool same_module(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct module *a = module_at(ctx, value), *b = key_arg;

	return a->pid == b->pid && a->id == b->id;
}

static uint32_t latest_module(const struct etw_code *c, uint32_t pid, uint64_t id)
{
	struct module key = {.pid = pid, .id = id};

	return table_find(&c->by_module, hash_pair(id, pid), same_module, c, &key);
}

static void learn_module(struct etw_code *c, const struct etw_record *r,
			 const struct etw_class *class)
{
	struct etw_value v[AT_MODULE_FIELDS];
	struct module added = {.pid = r->pid, .from = r->ticks, .until = ETW_EVER};
	struct module *open;
	const char *path;

	etw_class_read(class, r, v, AT_MODULE_FIELDS);
	path = etw_keep_text(etw_state_texts(c->state), &v[AT_MODULE_IL_PATH], true);
	if (!path)
		return;
	added.id = v[AT_MODULE_ID].u;
	added.name = text_base_name(path);
	added.older = latest_module(c, r->pid, added.id);
	open = module_at(c, added.older);
	if (open && open->until != ETW_EVER)
		open = NULL;
	if (open && open->name == added.name && class->id != ETW_MODULE_LOAD) {
		if (class->id == ETW_MODULE_UNLOAD)
			open->until = r->ticks;
		return;
	}
	if (open)
		open->until = r->ticks;
	if (class->id != ETW_MODULE_LOAD)
		added.from = since(c, r->pid, r->ticks);
	if (class->id == ETW_MODULE_UNLOAD)
		added.until = r->ticks;
	add_item(c, &c->by_module, hash_pair(added.id, added.pid), &c->modules, added.older,
		 &added);
}

/* The name of the module with this id during the range, else at any time. */
static const char *module_name(const struct etw_code *c, uint64_t id, const struct etw_range *range)
{
	const struct module *m = module_at(c, latest_module(c, range->pid, id)), *any = m;

	while (m && (m->from > range->until || m->until < range->from))
		m = module_at(c, m->older);
	return m ? m->name : any ? any->name : NULL;
}

static struct method *method_at(const struct etw_code *c, uint32_t number)
{
	return slots_get(&c->methods, number);
}

static const char *name_of(struct etw_code *c, const struct etw_value *v)
{
	char name[NAME_MAX_BYTES + 2];
	size_t n = etw_utf16(v[AT_METHOD_NAMESPACE].bytes, v[AT_METHOD_NAMESPACE].nbytes / 2, name,
			     NAME_MAX_BYTES);

	if (n)
		name[n++] = '.';
	n += etw_utf16(v[AT_METHOD_NAME].bytes, v[AT_METHOD_NAME].nbytes / 2, name + n,
		       sizeof(name) - n);
	return n ? etw_texts_keep(etw_state_texts(c->state), name, n) : NULL;
}

/* Its parameters; what it returns is before them. */
static const char *detail_of(struct etw_code *c, const struct etw_value *signature)
{
	char text[NAME_MAX_BYTES + 2], *parameters;

	etw_utf16(signature->bytes, signature->nbytes / 2, text + 1, NAME_MAX_BYTES);
	parameters = strchr(text + 1, '(');
	if (!parameters)
		return NULL;
	*--parameters = '=';
	return etw_texts_keep(etw_state_texts(c->state), parameters, strlen(parameters));
}

/* They stay NULL in the events that are not verbose. */
static void read_names(struct etw_code *c, const struct etw_record *r,
		       const struct etw_class *class, struct method *method)
{
	struct etw_value v[AT_METHOD_ALL];
	uint32_t n = etw_class_read(class, r, v, AT_METHOD_ALL);

	if (n >= AT_METHOD_FIELDS && etw_value_is(&v[AT_METHOD_NAME]))
		method->name = name_of(c, v);
	if (n >= AT_METHOD_ALL && etw_value_is(&v[AT_METHOD_SIGNATURE]))
		method->detail = detail_of(c, &v[AT_METHOD_SIGNATURE]);
}

static void add_method(struct etw_code *c, const struct method *method,
		       const struct etw_range *where)
{
	struct etw_range range = *where;
	uint32_t number = slots_add(&c->methods);

	if (number == NONE) {
		c->refused++;
		return;
	}
	range.value = number;
	*method_at(c, number) = *method;
	method_at(c, number)->range = etw_ranges_add(&c->method_ranges, &range);
	if (method_at(c, number)->range == ETW_RANGE_NONE)
		slots_free_one(&c->methods, number);
}

static void learn_method(struct etw_code *c, const struct etw_record *r,
			 const struct etw_class *class)
{
	struct etw_value v[AT_METHOD_CODE_FIELDS];
	struct etw_range range = {.pid = r->pid, .from = r->ticks, .until = ETW_EVER};
	struct method method = {0};
	struct etw_range *open;

	/* Names are read only when they are needed: that takes time. */
	etw_class_read(class, r, v, AT_METHOD_CODE_FIELDS);
	if (!etw_value_is(&v[AT_METHOD_BYTES]))
		return;
	range.start = v[AT_METHOD_START].u;
	range.end = range.start + v[AT_METHOD_BYTES].u;
	method.id = v[AT_METHOD_ID].u;
	method.module = v[AT_METHOD_MODULE].u;
	open = open_range(&c->method_ranges, r->pid, range.start);
	if (open && method_at(c, open->value)->id == method.id && class->id != ETW_METHOD_LOAD) {
		if (class->id == ETW_METHOD_UNLOAD)
			open->until = r->ticks;
		if (!method_at(c, open->value)->name)
			read_names(c, r, class, method_at(c, open->value));
		return;
	}
	if (open && class->id == ETW_METHOD_LOAD)
		open->until = r->ticks;
	if (class->id != ETW_METHOD_LOAD)
		range.from = since(c, r->pid, r->ticks);
	if (class->id == ETW_METHOD_UNLOAD)
		range.until = r->ticks;
	read_names(c, r, class, &method);
	add_method(c, &method, &range);
}

/* ---- records --------------------------------------------------------------------------------- */

void etw_code_learn(struct etw_code *c, const struct etw_record *r, const struct etw_class *class)
{
	uint32_t pid;

	if (!class)
		return;
	if (class->topic == ETW_TOPIC_IMAGE) {
		learn_image(c, r, class);
	} else if (class->topic == ETW_TOPIC_MODULE) {
		learn_module(c, r, class);
	} else if (class->topic == ETW_TOPIC_METHOD) {
		learn_method(c, r, class);
	} else if (class->id == ETW_IMAGE_RSDS) {
		learn_pdb(c, r, class);
	} else if (class->id == ETW_PROCESS_STOP) {
		pid = etw_payload_u32(r, r->pointer_bytes);
		etw_ranges_close(&c->image_ranges, pid, r->ticks);
		etw_ranges_close(&c->method_ranges, pid, r->ticks);
	} else {
		return;
	}
	c->generation++;
}

void etw_code_settle(struct etw_code *c)
{
	etw_ranges_settle(&c->image_ranges);
	etw_ranges_settle(&c->method_ranges);
	c->generation++;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool same_jit(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct etw_code *c = ctx;
	const struct jit *a = slots_get(&c->jits, value), *b = key_arg;

	return a->pid == b->pid && a->layer == b->layer;
}

static struct object *jit_object(struct etw_code *c, uint32_t pid, uint32_t layer)
{
	struct object_key key = {
		.kind = OBJECT_JIT, .pid = pid, .epoch = c->epoch + layer, .path = "[jit]"};
	struct jit wanted = {.pid = pid, .layer = layer};
	uint64_t hash = hash_pair(pid, layer);
	uint32_t number = table_find(&c->by_jit, hash, same_jit, c, &wanted);

	if (number != TABLE_NONE)
		return ((struct jit *)slots_get(&c->jits, number))->object;
	wanted.object = objects_get(c->frames, &key, pid);
	number = wanted.object ? table_add_slot(&c->by_jit, hash, &c->jits, NONE) : NONE;
	if (number != NONE)
		*(struct jit *)slots_get(&c->jits, number) = wanted;
	else if (wanted.object)
		object_drop(wanted.object, 1);
	return number == NONE ? NULL : wanted.object;
}

static bool in_method(struct etw_code *c, struct place *p, int64_t ticks)
{
	uint32_t number = etw_ranges_find(&c->method_ranges, p->pid, p->address, ticks, &p->from,
					  &p->until);
	struct object *object;
	uint32_t layer;

	if (number == ETW_RANGE_NONE)
		return false;
	layer = etw_range_layer(&c->method_ranges, number);
	object = layer < ETW_LAYERS_MAX ? jit_object(c, p->pid, layer) : NULL;
	if (!object)
		return false;
	p->ref = (struct frame_ref){object, p->address, FRAME_JIT};
	return true;
}

static bool in_image(struct etw_code *c, struct place *p, int64_t ticks)
{
	uint32_t number = etw_ranges_find(&c->image_ranges, p->pid, p->address, ticks, &p->from,
					  &p->until);
	const struct etw_range *range;
	struct object *object;

	if (number == ETW_RANGE_NONE)
		return false;
	range = etw_range(&c->image_ranges, number);
	object = object_of(c, range->value);
	if (!object)
		return false;
	p->ref = (struct frame_ref){object, p->address - range->start, 0};
	return true;
}

static const struct place *locate(struct etw_code *c, uint32_t pid, uint64_t address,
				  int64_t ticks, bool kernel)
{
	struct place *p;

	if (kernel)
		pid = 0;
	p = &c->cache[(address ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15u >> CACHE_SHIFT];
	if (p->address != address || p->pid != pid || ticks < p->from || ticks > p->until ||
	    p->generation != c->generation) {
		*p = (struct place){.address = address, .pid = pid, .from = ETW_ALWAYS,
				    .until = ETW_EVER, .generation = c->generation};
		if ((kernel || !in_method(c, p, ticks)) && !in_image(c, p, ticks))
			p->ref = (struct frame_ref){objects_unknown(c->frames), address, 0};
		p->ref.flags |= kernel ? FRAME_KERNEL : 0;
	}
	return p;
}

void etw_code_locate(struct etw_code *c, uint32_t pid, uint64_t address, int64_t ticks, bool kernel,
		     struct frame_ref *out)
{
	*out = locate(c, pid, address, ticks, kernel)->ref;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct known_stack *known_of(struct etw_code *c, const struct etw_located *stack)
{
	uint64_t hash = stack->pid;
	uint32_t i;

	for (i = 0; i < stack->naddresses; i++)      /* factors are odd, and do not wait in turn */
		hash += stack->addresses[i] * (0x9e3779b97f4a7c15u + 2 * i);
	return &c->known[hash * 0x9e3779b97f4a7c15u >> KNOWN_SHIFT];
}

static bool is_known(const struct etw_code *c, const struct known_stack *k,
		     const struct etw_located *stack)
{
	return k->generation == c->generation && k->pid == stack->pid &&
	       k->naddresses == stack->naddresses && stack->ticks >= k->from &&
	       stack->ticks <= k->until &&
	       memcmp(k->addresses, stack->addresses,
		      stack->naddresses * sizeof(*k->addresses)) == 0;
}

/* Locate all of its addresses. *from, *until: when these are the same code. */
static void locate_all(struct etw_code *c, struct etw_located *stack, int64_t *from, int64_t *until)
{
	bool kernel, below = true;
	uint32_t i, n = 0;

	for (i = 0; i < stack->naddresses && n < STACK_MAX_FRAMES; i++, below = kernel) {
		uint64_t address = stack->addresses[i];
		const struct place *p;
		bool returns;

		kernel = etw_is_kernel_address(address, stack->os_pointer_bytes);
		returns = i > 0 && address && !(below && !kernel);
		if (kernel && stack->no_kernel)
			continue;
		p = locate(c, stack->pid, address - returns, stack->ticks, kernel);
		*from = p->from > *from ? p->from : *from;
		*until = p->until < *until ? p->until : *until;
		c->located[n] = p->ref;
		c->located[n++].flags |= returns ? FRAME_RETURN_ADDRESS : 0;
	}
	stack->frames = c->located;
	stack->nframes = n;
}

void etw_code_stack(struct etw_code *c, struct etw_located *stack)
{
	bool fits = stack->naddresses && stack->naddresses <= KNOWN_DEPTH;
	struct known_stack *k = fits ? known_of(c, stack) : NULL;
	int64_t from = ETW_ALWAYS, until = ETW_EVER;

	stack->id = 0;
	if (k && is_known(c, k, stack)) {
		stack->frames = k->frames;
		stack->nframes = k->nframes;
		stack->id = k->id;
		return;
	}
	locate_all(c, stack, &from, &until);
	if (!k)
		return;
	k->generation = c->generation;
	k->pid = stack->pid;
	k->from = from;
	k->until = until;
	k->naddresses = stack->naddresses;
	k->nframes = stack->nframes;
	k->id = stack->id = frames_stack_id(c->frames);
	memcpy(k->addresses, stack->addresses, k->naddresses * sizeof(*k->addresses));
	memcpy(k->frames, stack->frames, k->nframes * sizeof(*k->frames));
}

bool etw_code_name(const struct etw_code *c, const struct object *object, uint64_t offset,
		   struct symbol *out)
{
	const struct method *method;
	const struct etw_range *range;
	uint32_t number;

	if (object->key.kind != OBJECT_JIT || object->key.epoch < c->epoch ||
	    object->key.epoch - c->epoch >= ETW_LAYERS_MAX)
		return false;
	number = etw_ranges_layer(&c->method_ranges, object->key.pid, offset,
				  object->key.epoch - c->epoch);
	if (number == ETW_RANGE_NONE)
		return false;
	range = etw_range(&c->method_ranges, number);
	method = method_at(c, range->value);
	if (!method->name)
		return false;
	out->offset = range->start;
	out->name = method->name;
	out->raw_name = method->detail;
	out->module = module_name(c, method->module, range);
	return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

int etw_code_new(struct etw_state *state, struct frames *frames, struct etw_code **out,
		 struct err *err)
{
	struct etw_code *c = calloc(1, sizeof(*c));

	if (!c || etw_ranges_init(&c->image_ranges) || etw_ranges_init(&c->method_ranges) ||
	    slots_init(&c->images, sizeof(struct image), ETW_IMAGES_MAX) ||
	    slots_init(&c->pdbs, sizeof(struct pdb), ETW_IMAGES_MAX) ||
	    slots_init(&c->methods, sizeof(struct method), ETW_METHODS_MAX) ||
	    slots_init(&c->modules, sizeof(struct module), ETW_MODULES_MAX) ||
	    slots_init(&c->jits, sizeof(struct jit), OBJECTS_MAX)) {
		etw_code_free(c, 1);
		return err_memory(err, "for the images of a trace");
	}
	c->state = state;
	c->frames = frames;
	c->generation = 1;
	*out = c;
	return 0;
}

struct renewal {
	struct etw_code *to;
	const struct etw_code *from;
	int64_t since;
};

static void renew_image(void *ctx, const struct etw_range *range)
{
	struct renewal *r = ctx;
	struct image *old = image_at(r->from, range->value), image = *old;

	if (range->until < r->since)
		return;
	image.path = etw_texts_copy(etw_state_texts(r->to->state), old->path);
	image.object = NULL;                 /* made again when a frame needs it */
	if (image.path)
		add_image(r->to, &image, range->from, range->until);
}

static void renew_method(void *ctx, const struct etw_range *range)
{
	struct renewal *r = ctx;
	struct method method = *method_at(r->from, range->value);

	if (range->until < r->since)
		return;
	method.name = etw_texts_copy(etw_state_texts(r->to->state), method.name);
	method.detail = etw_texts_copy(etw_state_texts(r->to->state), method.detail);
	add_method(r->to, &method, range);
}

static void renew_module(struct renewal *r, const struct module *latest)
{
	struct module added = *latest;

	if (latest->until < r->since)
		return;
	added.older = NONE;
	added.name = etw_texts_copy(etw_state_texts(r->to->state), latest->name);
	if (added.name)
		add_item(r->to, &r->to->by_module, hash_pair(added.id, added.pid),
			 &r->to->modules, NONE, &added);
}

int etw_code_renew(struct etw_code *old, struct etw_state *state, int64_t since,
		   struct etw_code **out, struct err *err)
{
	struct renewal r = {.from = old, .since = since};
	uint32_t i;
	int rc = etw_code_new(state, old->frames, &r.to, err);

	if (rc)
		return rc;
	r.to->epoch = old->epoch + ETW_LAYERS_MAX;
	etw_ranges_each(&old->image_ranges, renew_image, &r);
	etw_ranges_each(&old->method_ranges, renew_method, &r);
	for (i = 0; i < old->by_module.nslots; i++)
		if (old->by_module.slots[i].value != TABLE_NONE)
			renew_module(&r, module_at(old, old->by_module.slots[i].value));
	etw_code_settle(r.to);
	*out = r.to;
	return 0;
}

void etw_code_free(struct etw_code *c, uint64_t now_ns)
{
	uint32_t i;

	if (!c)
		return;
	for (i = 0; i < c->images.end; i++)
		if (image_at(c, i)->object)
			object_drop(image_at(c, i)->object, now_ns);
	for (i = 0; i < c->jits.end; i++)
		if (((struct jit *)slots_get(&c->jits, i))->object)
			object_drop(((struct jit *)slots_get(&c->jits, i))->object, now_ns);
	etw_ranges_free(&c->image_ranges);
	etw_ranges_free(&c->method_ranges);
	slots_free(&c->images);
	slots_free(&c->pdbs);
	slots_free(&c->methods);
	slots_free(&c->modules);
	slots_free(&c->jits);
	table_free(&c->by_pdb);
	table_free(&c->by_module);
	table_free(&c->by_jit);
	free(c);
}

uint64_t etw_code_refused(const struct etw_code *c, size_t *bytes)
{
	*bytes += sizeof(*c) + etw_ranges_bytes(&c->image_ranges) +
		  etw_ranges_bytes(&c->method_ranges) + slots_bytes(&c->images) +
		  slots_bytes(&c->pdbs) + slots_bytes(&c->methods) + slots_bytes(&c->modules) +
		  slots_bytes(&c->jits) + table_bytes(&c->by_pdb) + table_bytes(&c->by_module) +
		  table_bytes(&c->by_jit);
	return c->refused + c->image_ranges.refused + c->method_ranges.refused;
}
