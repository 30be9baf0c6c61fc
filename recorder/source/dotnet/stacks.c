#include "source/dotnet/stacks.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/os.h"
#include "base/table.h"
#include "base/text.h"
#include "managed/names.h"
#include "source/dotnet/untold.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS_MAX 512u                    /* with those whose names are kept for a while */
#define KEEP_NS (60 * NS_PER_SEC)
#define SETTLE_KEEP_NS (5 * NS_PER_SEC)      /* what its code is called, for queued samples */
#define RUNDOWNS_MAX 5u                      /* that one program is asked for, if none comes */
#define IMAGES_MAX 4096u                     /* mappings of one program */
#define OBJECTS_CACHED 64u
#define NO_IMAGE UINT32_MAX
#define LEAF_BYTES 406u                      /* "event!GC/AllocationTick System.String" */
#define LEAF "event!"
#define LEAVES 16u
#define KNOWN_BITS 7                         /* 7 KB each, as far as stacks are deep */

struct dotnet_program {
	struct dotnet_stacks *all;
	struct share share;
	uint32_t pid;
	struct dotnet_code code;
	struct object *object;
	struct managed_names *names;         /* freed by dotnet_stacks_look() */
	struct dotnet_untold *untold;        /* the same; NULL = all was told so far */
	size_t names_bytes;                  /* what the share has of both */
	bool names_full;
	unsigned refs;
	unsigned nrundowns;                  /* asked for */
	bool needs_no_rundown;
	/* Mappings of files that may have precompiled methods; which of them an object is. */
	struct dotnet_image *images;
	uint32_t nimages;
	struct { uint32_t object, first; } of_object[OBJECTS_CACHED];
	bool wants_images;
};

struct named {
	struct dotnet_program *program;      /* NULL = its code is forgotten */
	struct object *object;
	struct managed_names *names;
	struct dotnet_untold *untold;
	uint64_t dropped_ns;                 /* 0 = the program runs */
	struct share share;                  /* then: what the names hold */
};

/*
 * The frames of a stack, of its program from a time on, until that tells of other code. What one
 * thread does again and again has the same stack.
 */
struct known_stack {
	struct dotnet_program *program;      /* NULL = none */
	uint64_t since_ns;
	uint32_t nlearned, pointer_bytes, nbytes, nframes, turn;
	/* event.stack_id of the frames, and of the same below one and two leaves of these names */
	uint64_t id, leaf_ids[2];
	uint32_t leaves[2];
	uint8_t bytes[NETTRACE_STACK_MAX_BYTES];
	/* From [2] on the frames, before them the leaves of an event's samples. */
	struct frame_ref frames[2 + DOTNET_FRAMES_MAX];
};

/* A leaf that put_leaf() made, and its name's number. */
struct known_leaf {
	const struct dotnet_program *program;        /* NULL = none */
	uint32_t number;
	size_t nwhat, ntype;                 /* ntype: with its blank; 0 = there is no type */
	char text[LEAF_BYTES];
};

struct dotnet_stacks {
	struct frames *frames;
	struct shares shares;
	struct os_mutex *lock;               /* guards named, the programs and the shares */
	struct named *named;
	uint32_t nnamed, room;
	_Atomic uint32_t nprograms;          /* whose code is known */
	_Atomic uint32_t nobjects;           /* so far: numbers of names begin anew in each */
	/* the merge thread's: */
	char text[MANAGED_TEXT_MAX + 1], detail[MANAGED_TEXT_MAX + 1];
	struct frame_ref *settled;
	uint32_t settled_room;
	/* the symbol worker's: */
	char late[MANAGED_TEXT_MAX + 1], late_detail[MANAGED_TEXT_MAX + 1], late_module[80];
	/* the source's: */
	struct known_stack known[1u << KNOWN_BITS];
	struct known_leaf leaves[LEAVES];
};

/* ---- frames ---------------------------------------------------------------------------------- */

static uint32_t add_name(struct dotnet_program *p, const char *text, const char *detail)
{
	uint32_t number = p->names_full ? 0 : managed_names_add(p->names, text, detail);
	size_t bytes = managed_names_bytes(p->names) + (p->untold ? dotnet_untold_bytes() : 0);

	if (bytes > p->names_bytes) {
		p->names_full = !shares_take(&p->all->shares, &p->share, bytes - p->names_bytes);
		p->names_bytes = p->names_full ? p->names_bytes : bytes;
	}
	return number;
}

static uint32_t name_of(struct dotnet_program *p, struct dotnet_method *m)
{
	const struct dotnet_module *module;
	char text[DOTNET_TEXT_BYTES + 80];
	uint32_t number;

	if (m->number)
		return m->number;
	/* That of a dynamic method is no part of its name: it would have two, before and after. */
	module = m->dynamic ? NULL : dotnet_code_module(&p->code, m->module);
	snprintf(text, sizeof(text), "%s!%s", module ? module->name : "", m->text);
	number = add_name(p, text, dotnet_method_detail(m));
	/* The rundown may still tell the module. */
	m->number = module || m->dynamic ? number : 0;
	return number;
}

/* Each address is where a call returns to. since_ns: as of dotnet_code_find_since() */
static void put_frame(struct dotnet_program *p, uint64_t address, uint64_t time_ns,
		      struct frame_ref *out, uint64_t *since_ns)
{
	struct dotnet_method *m =
		dotnet_code_find_since(&p->code, address - 1, time_ns, since_ns);
	uint32_t number = m ? name_of(p, m) : 0;

	if (m && !number)
		*since_ns = UINT64_MAX;      /* without room for its name: ask again */
	if (number)
		*out = (struct frame_ref){.object = p->object, .flags = FRAME_JIT,
					  .offset = managed_offset(number, MANAGED_OTHER, -1)};
	else
		*out = (struct frame_ref){.object = objects_unknown(p->all->frames),
					  .offset = address - 1, .flags = FRAME_RETURN_ADDRESS};
}

static void find_frames(struct known_stack *to, uint64_t time_ns)
{
	const uint32_t step = to->pointer_bytes;
	struct dotnet_program *p = to->program;
	uint64_t since_ns;
	uint32_t at;

	to->since_ns = 0;
	to->nframes = 0;
	os_mutex_lock(p->all->lock);
	for (at = 0; at + step <= to->nbytes && to->nframes < DOTNET_FRAMES_MAX; at += step) {
		put_frame(p, le_sized(to->bytes + at, step), time_ns,
			  &to->frames[2 + to->nframes++], &since_ns);
		to->since_ns = since_ns > to->since_ns ? since_ns : to->since_ns;
	}
	os_mutex_unlock(p->all->lock);
	to->id = frames_stack_id(p->all->frames);
	to->leaves[0] = to->leaves[1] = 0;
}

static bool is_stack(const struct known_stack *known, const struct dotnet_program *p,
		     const struct nettrace_event *raw, uint32_t nbytes)
{
	return known->program == p && known->nbytes == nbytes &&
	       memcmp(known->bytes, raw->stack, nbytes) == 0;
}

/* The frames of an event, leaf first; their objects live as long as the program. */
static struct known_stack *put_frames(struct dotnet_program *p, const struct nettrace_event *raw,
				      uint32_t pointer_bytes, struct event *e)
{
	uint32_t nbytes = raw->stack_bytes < NETTRACE_STACK_MAX_BYTES ? raw->stack_bytes
								      : NETTRACE_STACK_MAX_BYTES;
	uint32_t place = raw->stack_hash >> (32 - KNOWN_BITS);
	struct known_stack *known = &p->all->known[place];
	bool same = is_stack(known, p, raw, nbytes);

	/* Stacks that differ may have the same two places: then more than two take turns. */
	if (!same) {
		known = &p->all->known[place ^ 1];
		same = is_stack(known, p, raw, nbytes);
		if (!same && p->all->known[place].turn++ % 2)
			known = &p->all->known[place];
	}
	if (!same || known->nlearned != p->code.nlearned || e->time_ns < known->since_ns ||
	    known->pointer_bytes != pointer_bytes) {
		known->program = p;
		known->nlearned = p->code.nlearned;
		known->pointer_bytes = pointer_bytes;
		known->nbytes = nbytes;
		memcpy(known->bytes, raw->stack, nbytes);
		find_frames(known, e->time_ns);
	}
	e->stack_frames = known->frames + 2;
	e->nstack_frames = known->nframes;
	e->stack_id = known->id;
	return known;
}

static bool is_leaf(const struct known_leaf *known, const struct dotnet_program *p,
		    const char *what, size_t nwhat, const char *type, size_t ntype)
{
	return known->program == p && known->nwhat == nwhat && known->ntype == ntype &&
	       memcmp(known->text + strlen(LEAF), what, nwhat) == 0 &&
	       (!ntype ||
		memcmp(known->text + strlen(LEAF) + nwhat + 1, type, ntype - 1) == 0);
}

static void name_leaf(struct known_leaf *known, struct dotnet_program *p, const char *what,
		      size_t nwhat, const char *type, size_t ntype)
{
	const int n = snprintf(known->text, sizeof(known->text), LEAF "%s%s%s", what,
			       ntype ? " " : "", ntype ? type : "");

	os_mutex_lock(p->all->lock);
	known->number = add_name(p, known->text, NULL);
	os_mutex_unlock(p->all->lock);
	known->nwhat = nwhat;
	known->ntype = ntype;
	/* One that was cut is asked for again. */
	known->program = known->number && (size_t)n < sizeof(known->text) ? p : NULL;
}

/*
 * Put a frame that is no code before those of an event, which put_frames() gave it: what happened,
 * and to what type of object (NULL = to none): "event!GC/AllocationTick System.String". Without
 * room for its name it is left out.
 */
static void put_leaf(struct dotnet_program *p, struct known_stack *stack, const char *what,
		     const char *type, struct event *e)
{
	const uint32_t depth = e->nstack_frames - stack->nframes;
	const size_t nwhat = strlen(what), ntype = type ? strlen(type) + 1 : 0;
	struct frame_ref *first = stack->frames + 1 - depth;
	struct known_leaf *known = &p->all->leaves[
		(nwhat + 3 * ntype + (unsigned char)what[nwhat / 2]) % LEAVES];

	if (!is_leaf(known, p, what, nwhat, type, ntype))
		name_leaf(known, p, what, nwhat, type, ntype);
	if (!known->number)
		return;
	*first = (struct frame_ref){
		.object = p->object, .flags = FRAME_JIT,
		.offset = managed_offset(known->number, MANAGED_STUB, -1)};
	e->stack_frames = first;
	e->nstack_frames++;
	if (stack->leaves[depth] != known->number) {
		stack->leaves[depth] = known->number;
		stack->leaf_ids[depth] = frames_stack_id(p->all->frames);
		if (!depth)
			stack->leaves[1] = 0;
	}
	e->stack_id = stack->leaf_ids[depth];
}

void dotnet_program_tells(struct dotnet_program *p, uint64_t time_ns)
{
	os_mutex_lock(p->all->lock);
	p->code.since_ns = time_ns;
	p->code.nlearned++;
	os_mutex_unlock(p->all->lock);
}

void dotnet_program_learn(struct dotnet_program *p, const struct nettrace_event *event,
			  uint64_t time_ns)
{
	os_mutex_lock(p->all->lock);
	if (dotnet_code_learn(&p->code, event, time_ns))
		p->wants_images = true;
	os_mutex_unlock(p->all->lock);
}

/* ---- frames of samples ----------------------------------------------------------------------- */

/* The first mapping of an object; NO_IMAGE = it is none of them. */
static uint32_t first_image(struct dotnet_program *p, const struct object *object)
{
	uint32_t i, at = object->number % OBJECTS_CACHED;

	if (p->of_object[at].object == object->number + 1)
		return p->of_object[at].first;
	for (i = 0; i < p->nimages && strcmp(p->images[i].path, object->key.path) != 0; i++)
		;
	p->of_object[at].object = object->number + 1;
	p->of_object[at].first = i < p->nimages ? i : NO_IMAGE;
	return p->of_object[at].first;
}

/*
 * Whether a method has all of its name. Its module is told by the rundown: until then it would have
 * another one.
 */
static bool is_told(const struct dotnet_program *p, const struct dotnet_method *m)
{
	return m && (m->dynamic || dotnet_code_module(&p->code, m->module));
}

/* The address of a frame in a file that the program maps; 0 = it is in none of them. */
static uint64_t address_in_image(struct dotnet_program *p, const struct object *object,
				 uint64_t offset)
{
	uint32_t i = first_image(p, object);

	for (; i < p->nimages; i++) {
		const struct dotnet_image *image = &p->images[i];

		if (offset >= image->pgoff && offset - image->pgoff < image->bytes &&
		    strcmp(image->path, object->key.path) == 0)
			return image->start + (offset - image->pgoff);
	}
	return 0;
}

static struct named *named_of(const struct dotnet_stacks *s, const struct object *object)
{
	uint32_t i;

	for (i = 0; i < s->nnamed; i++)
		if (s->named[i].object == object)
			return &s->named[i];
	return NULL;
}

/* The number of a place whose code is not told yet; 0 = it never is, or there is no room. */
static uint32_t untold(struct dotnet_program *p, uint64_t address, uint64_t time_ns)
{
	struct named *n = p->untold ? NULL : named_of(p->all, p->object);

	if (n && shares_take(&p->all->shares, &p->share, dotnet_untold_bytes())) {
		n->untold = p->untold = dotnet_untold_new();
		p->names_bytes += dotnet_untold_bytes();
	}
	return p->untold ? dotnet_untold_put(p->untold, address, time_ns) : 0;
}

static bool settle_frame(struct dotnet_program *p, const struct frame_ref *from, uint64_t time_ns,
			 struct frame_ref *to)
{
	const struct object_key *key = &from->object->key;
	struct dotnet_method *m;
	uint64_t address = 0;
	uint32_t number;

	if (key->kind == OBJECT_JIT && key->pid == p->pid && from->object != p->object)
		address = from->offset;
	if (key->kind == OBJECT_ELF && p->nimages)
		address = address_in_image(p, from->object, from->offset);
	m = address ? dotnet_code_find(&p->code, address, time_ns) : NULL;
	number = is_told(p, m) ? name_of(p, m) : 0;
	if (!number && address && key->kind == OBJECT_JIT)
		number = untold(p, address, time_ns);
	if (!number)
		return false;
	*to = (struct frame_ref){.object = p->object, .flags = FRAME_JIT,
				 .offset = managed_offset(number, MANAGED_OTHER, -1)};
	return true;
}

static struct dotnet_program *program_of(const struct dotnet_stacks *s, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < s->nnamed; i++)
		if (s->named[i].program && s->named[i].program->pid == pid)
			return s->named[i].program;
	return NULL;
}

bool dotnet_stacks_knows(struct dotnet_stacks *s, uint32_t pid)
{
	bool knows;

	os_mutex_lock(s->lock);
	knows = program_of(s, pid) != NULL;
	os_mutex_unlock(s->lock);
	return knows;
}

void dotnet_stacks_settle(struct dotnet_stacks *s, struct event *e)
{
	struct dotnet_program *p;
	uint32_t i;

	if (!atomic_load_explicit(&s->nprograms, memory_order_relaxed) || !e->process ||
	    !e->nstack_frames || ARRAY_ROOM(s->settled, s->settled_room, e->nstack_frames))
		return;
	os_mutex_lock(s->lock);
	p = program_of(s, e->process->pid);
	for (i = 0; p && i < e->nstack_frames; i++)
		if (!settle_frame(p, &e->stack_frames[i], e->time_ns, &s->settled[i]))
			s->settled[i] = e->stack_frames[i];
	os_mutex_unlock(s->lock);
	if (p) {
		e->stack_frames = s->settled;
		e->stack_id = 0;
	}
}

/* The address of a precompiled frame that was seen in a sample of the program; 0 = it was not. */
static uint64_t address_seen(struct dotnet_program *p, const struct object *object,
			     uint64_t offset)
{
	uint32_t at = object->number % OBJECTS_CACHED;

	return object->key.kind == OBJECT_ELF && p->of_object[at].object == object->number + 1
		       ? address_in_image(p, object, offset) : 0;
}

/* The name of a frame of a program's object; text: with its module. */
static bool find_name(struct dotnet_stacks *s, const struct object *object, uint64_t offset,
		      char text[MANAGED_TEXT_MAX + 1], char detail[MANAGED_TEXT_MAX + 1],
		      struct symbol *out)
{
	uint32_t number = managed_number(offset);
	const struct named *n;
	bool found = false;
	char *mark;

	os_mutex_lock(s->lock);
	n = named_of(s, object);
	if (n && number & DOTNET_UNTOLD_MARK)
		number = n->untold ? dotnet_untold_name(n->untold, number) : 0;
	if (n)
		found = managed_names_get(n->names, number, text, MANAGED_TEXT_MAX + 1, detail);
	os_mutex_unlock(s->lock);
	mark = found ? strchr(text, '!') : NULL;
	if (!mark)
		return false;
	*mark = '\0';
	*out = (struct symbol){.offset = (uint64_t)number << MANAGED_NUMBER_SHIFT,
			       .name = mark + 1, .module = mark == text ? NULL : text,
			       .raw_name = detail[0] ? detail : NULL};
	return true;
}

bool dotnet_stacks_late(struct dotnet_stacks *s, const struct object *object, uint64_t offset,
			struct symbol *out)
{
	const struct dotnet_module *module;
	struct dotnet_method *m = NULL;
	const char *detail;
	uint64_t address = 0;
	uint32_t i;

	if (object->key.kind == OBJECT_JIT)
		return find_name(s, object, offset, s->late, s->late_detail, out);
	if (!atomic_load_explicit(&s->nprograms, memory_order_relaxed))
		return false;
	os_mutex_lock(s->lock);
	for (i = 0; i < s->nnamed && !address; i++) {
		struct dotnet_program *p = s->named[i].program;

		address = p ? address_seen(p, object, offset) : 0;
		m = address ? dotnet_code_find_only(&p->code, address) : NULL;
		if (!is_told(p, m)) {
			m = NULL;
			continue;
		}
		module = m->dynamic ? NULL : dotnet_code_module(&p->code, m->module);
		detail = dotnet_method_detail(m);
		snprintf(s->late, sizeof(s->late), "%s", m->text);
		snprintf(s->late_detail, sizeof(s->late_detail), "%s", detail ? detail : "");
		snprintf(s->late_module, sizeof(s->late_module), "%s", module ? module->name : "");
		*out = (struct symbol){.offset = offset - (address - m->start), .name = s->late,
				       .module = module ? s->late_module : NULL,
				       .raw_name = detail ? s->late_detail : NULL};
	}
	os_mutex_unlock(s->lock);
	return m != NULL;
}

bool dotnet_program_wants_images(struct dotnet_program *p)
{
	bool wants = p->wants_images;

	p->wants_images = false;
	return wants;
}

void dotnet_program_want_images(struct dotnet_program *p)
{
	p->wants_images = true;
}

void dotnet_images_free(struct dotnet_image *images, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		free(images[i].path);
	free(images);
}

void dotnet_program_images(struct dotnet_program *p, struct dotnet_image *images, uint32_t n)
{
	uint32_t kept = n < IMAGES_MAX ? n : IMAGES_MAX;

	while (n > kept)
		free(images[--n].path);
	os_mutex_lock(p->all->lock);
	dotnet_images_free(p->images, p->nimages);
	p->images = images;
	p->nimages = n;
	memset(p->of_object, 0, sizeof(p->of_object));
	os_mutex_unlock(p->all->lock);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_sample(const struct event *e, enum stream stream, double value, dotnet_put *put,
		       void *ctx)
{
	struct event sample = *e;

	sample.kind = EVENT_SAMPLE;
	sample.stream = (uint8_t)stream;
	sample.value = value;
	sample.nfields = 0;
	put(ctx, &sample);
}

/* Of what type an exception or object is. Most events have neither field: they are passed once. */
static const struct event_field *type_of(const struct event *e)
{
	const struct event_field *type = NULL;
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		const char *name = e->fields[i].name;

		if ((name[0] | 0x20) == 'e' && text_same_fold(name, "ExceptionType"))
			return &e->fields[i];
		if (!type && (name[0] | 0x20) == 't' && text_same_fold(name, "TypeName"))
			type = &e->fields[i];
	}
	return type;
}

/* Put an event whose frames now have its sample's leaf, if there was room for that. */
static void put_with_sample(const struct known_stack *stack, struct event *e, dotnet_put *put,
			    void *ctx)
{
	const uint64_t id = e->stack_id;

	if (e->nstack_frames == stack->nframes) {
		put(ctx, e);
		put_sample(e, STREAM_EVENT, 1, put, ctx);
		return;
	}
	e->stack_frames++;
	e->nstack_frames--;
	e->stack_id = stack->id;
	e->sample_id = id;
	put(ctx, e);
	e->stack_frames--;
	e->nstack_frames++;
	e->stack_id = id;
	e->sample_id = 0;
}

static void put_samples(struct dotnet_program *p, struct known_stack *stack,
			struct gc_objects *objects, struct event *e, dotnet_put *put, void *ctx)
{
	const struct event_field *type = type_of(e), *bytes, *kind;

	put_leaf(p, stack, e->name ? e->name : "?",
		 !type ? NULL : type->type == FIELD_TEXT ? type->v.text : "", e);
	put_with_sample(stack, e, put, ctx);
	if (!e->name || strcmp(e->name, "GC/AllocationTick") != 0)
		return;
	bytes = event_field(e, "AllocationAmount64");
	bytes = bytes ? bytes : event_field(e, "AllocationAmount");
	if (!bytes || bytes->type != FIELD_UINT)
		return;
	kind = event_field(e, "AllocationKind");
	if (kind && kind->type == FIELD_UINT && kind->v.u == GC_LARGE_OBJECT)
		put_leaf(p, stack, GC_LARGE_OBJECT_NAME, NULL, e);
	put_sample(e, STREAM_ALLOC, (double)bytes->v.u, put, ctx);
	gc_objects_alloc(objects, e, put, ctx);
}

void dotnet_program_deliver(struct dotnet_program *p, struct gc_objects *objects,
			    const struct nettrace_event *raw, uint32_t pointer_bytes,
			    struct event *e, dotnet_put *put, void *ctx)
{
	struct known_stack *stack =
		p && raw->stack ? put_frames(p, raw, pointer_bytes, e) : NULL;

	e->quality = e->nstack_frames ? QUALITY_COMPLETE : QUALITY_NONE;
	if (e->nstack_frames && objects)
		put_samples(p, stack, objects, e, put, ctx);
	else
		put(ctx, e);
	e->stack_frames = NULL;
	e->nstack_frames = 0;
	e->stack_id = 0;
}

bool dotnet_stacks_name(struct dotnet_stacks *s, const struct frame *frame, struct symbol *out)
{
	return frame->object->key.kind == OBJECT_JIT &&
	       find_name(s, frame->object, frame->offset, s->text, s->detail, out);
}

/* ---- life ------------------------------------------------------------------------------------ */

int dotnet_stacks_new(struct frames *frames, uint32_t own_uid, struct dotnet_stacks **out,
		      struct err *err)
{
	struct dotnet_stacks *s = calloc(1, sizeof(*s));

	if (s)
		s->lock = os_mutex_new();
	if (!s || !s->lock) {
		free(s);
		return err_memory(err, "for stacks of .NET programs");
	}
	s->frames = frames;
	shares_init(&s->shares, DOTNET_STACKS_MAX_BYTES, own_uid);
	/* A large program has 100,000 methods. */
	s->shares.program_max = s->shares.total / 2;
	*out = s;
	return 0;
}

static void free_named(struct dotnet_stacks *s, struct named *n, uint64_t now_ns)
{
	shares_give_back(&s->shares, &n->share, n->share.used);
	object_drop(n->object, now_ns);
	managed_names_free(n->names);
	dotnet_untold_free(n->untold);
}

static uint32_t name_told(void *ctx, struct dotnet_method *m)
{
	return is_told(ctx, m) ? name_of(ctx, m) : 0;
}

static void look_at_untold(struct dotnet_program *p, uint64_t now_ns)
{
	if (p && p->untold)
		dotnet_untold_look(p->untold, &p->code, now_ns, name_told, p);
}

/* What its code is called; its names stay. */
static void forget_code(struct dotnet_stacks *s, struct named *n)
{
	struct dotnet_program *p = n->program;
	uint32_t i;

	if (!p)
		return;
	n->program = NULL;
	atomic_fetch_sub(&s->nprograms, 1);
	shares_hold(&s->shares, &p->share, p->names_bytes);
	n->share = p->share;
	dotnet_code_free(&p->code);
	dotnet_images_free(p->images, p->nimages);
	for (i = 0; i < 1u << KNOWN_BITS; i++)
		if (s->known[i].program == p)
			s->known[i].program = NULL;
	for (i = 0; i < LEAVES; i++)
		if (s->leaves[i].program == p)
			s->leaves[i].program = NULL;
	free(p);
}

void dotnet_stacks_free(struct dotnet_stacks *s)
{
	if (!s)
		return;
	while (s->nnamed) {
		forget_code(s, &s->named[--s->nnamed]);
		free_named(s, &s->named[s->nnamed], 0);
	}
	free(s->settled);
	os_mutex_free(s->lock);
	free(s->named);
	free(s);
}

void dotnet_stacks_look(struct dotnet_stacks *s, uint64_t now_ns)
{
	uint32_t i;

	os_mutex_lock(s->lock);
	for (i = s->nnamed; i-- > 0;) {
		look_at_untold(s->named[i].program, now_ns);
		if (!s->named[i].dropped_ns || s->named[i].dropped_ns + SETTLE_KEEP_NS > now_ns)
			continue;
		forget_code(s, &s->named[i]);
		if (s->named[i].dropped_ns + KEEP_NS > now_ns)
			continue;
		free_named(s, &s->named[i], now_ns);
		s->named[i] = s->named[--s->nnamed];
	}
	os_mutex_unlock(s->lock);
}

static bool add_named(struct dotnet_program *p)
{
	struct dotnet_stacks *s = p->all;
	bool done;

	os_mutex_lock(s->lock);
	done = s->nnamed < PROGRAMS_MAX && !ARRAY_ROOM(s->named, s->room, s->nnamed + 1);
	if (done)
		s->named[s->nnamed++] = (struct named){.program = p, .object = p->object,
						       .names = p->names};
	os_mutex_unlock(s->lock);
	if (done)
		atomic_fetch_add(&s->nprograms, 1);
	return done;
}

struct dotnet_program *dotnet_program_new(struct dotnet_stacks *s, uint32_t pid, uint64_t key,
					  uint32_t uid)
{
	const struct object_key object = {.kind = OBJECT_JIT, .pid = pid, .path = "[.net]",
					  .epoch = (uint32_t)hash_pair(key, ++s->nobjects)};
	struct dotnet_program *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->all = s;
	p->refs = 1;
	p->pid = pid;
	p->share.uid = uid;
	p->code = (struct dotnet_code){.shares = &s->shares, .share = &p->share};
	p->object = objects_get(s->frames, &object, pid);
	p->names = p->object ? managed_names_new() : NULL;
	if (p->names && add_named(p))
		return p;
	managed_names_free(p->names);
	if (p->object)
		object_drop(p->object, 0);
	free(p);
	return NULL;
}

struct dotnet_program *dotnet_program_ref(struct dotnet_program *p)
{
	if (p)
		p->refs++;
	return p;
}

bool dotnet_program_needs_rundown(struct dotnet_program *p)
{
	bool needs = p && !p->needs_no_rundown;

	if (needs) {
		p->nrundowns++;
		p->needs_no_rundown = true;
	}
	return needs;
}

void dotnet_program_no_rundown(struct dotnet_program *p)
{
	if (p)
		p->needs_no_rundown = p->nrundowns >= RUNDOWNS_MAX;
}

void dotnet_program_free(struct dotnet_program *p, uint64_t now_ns)
{
	struct dotnet_stacks *s;
	uint32_t i;

	if (!p || --p->refs)
		return;
	s = p->all;
	os_mutex_lock(s->lock);
	for (i = 0; i < s->nnamed; i++)
		if (s->named[i].program == p)
			s->named[i].dropped_ns = now_ns ? now_ns : 1;
	os_mutex_unlock(s->lock);
}
