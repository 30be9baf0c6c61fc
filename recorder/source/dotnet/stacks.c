#include "source/dotnet/stacks.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/os.h"
#include "base/table.h"
#include "managed/names.h"
#include "source/etw/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define PROGRAMS_MAX 512u                    /* with those whose names are kept for a while */
#define KEEP_NS (60 * NS_PER_SEC)
#define UNSORTED_MAX 256u                    /* methods that are searched one by one */
#define MODULES_MAX 4096u
#define TEXT_BYTES 512u                      /* of a method with its class; a module's path */
#define WHAT_BYTES 400u
#define METHOD_ID 143                        /* also of the rundown: MethodDCStartVerbose */
#define METHOD_ID_2 144                      /* the rundown's MethodDCEndVerbose; else unload */
#define MODULE_ID 152                        /* 153, 154: the rundown's */

struct method {
	uint64_t start, module;
	uint32_t bytes;
	uint32_t number;                     /* of its name; 0 = not used yet */
	char *text;                          /* "Namespace.Class.Method"; NULL = unloaded */
};

struct module {
	uint64_t id;
	char name[64];                       /* without ".dll" */
};

struct dotnet_program {
	struct dotnet_stacks *all;
	struct share share;
	struct method *methods;              /* sorted by start, but for the last ones */
	uint32_t nsorted, n, room;
	struct module *modules;
	uint32_t nmodules, modules_room;
	struct object *object;
	struct managed_names *names;         /* freed by dotnet_stacks_look() */
	size_t names_bytes;                  /* what the share has of them */
	bool names_full;
	unsigned refs;
	bool rundown_asked;
};

struct named {
	struct object *object;
	struct managed_names *names;
	uint64_t dropped_ns;                 /* 0 = the program runs */
	struct share share;                  /* then: what the names hold */
};

struct dotnet_stacks {
	struct frames *frames;
	struct shares shares;
	struct os_mutex *lock;               /* guards named */
	struct named *named;
	uint32_t nnamed, room;
	char text[MANAGED_TEXT_MAX + 1];     /* the merge thread's */
	struct frame_ref put[DOTNET_FRAMES_MAX + 1];         /* of the event that is delivered */
};

/* ---- what a program's code is called --------------------------------------------------------- */

bool dotnet_tells_code(const struct nettrace_event *event)
{
	uint32_t id = event->meta->event_id;
	const char *provider = event->meta->provider;

	return strncmp(provider, CLR, sizeof(CLR) - 1) == 0 &&
	       (!provider[sizeof(CLR) - 1] || strcmp(provider + sizeof(CLR) - 1, "Rundown") == 0) &&
	       id >= 141 && id <= 156;
}

/* The UTF-16 text at *at, which moves behind its NUL; "" at the end. Returns its length. */
static size_t take_text(const uint8_t **at, const uint8_t *end, char *out, size_t size)
{
	const uint8_t *from = *at;
	size_t units = 0, n;

	while (end - *at >= 2 && ((*at)[0] || (*at)[1])) {
		*at += 2;
		units++;
	}
	*at += end - *at >= 2 ? 2 : 0;
	n = etw_utf16(from, units, out, size - 1);
	out[n] = '\0';
	return n;
}

static int by_start(const void *a, const void *b)
{
	const struct method *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void forget_method(struct dotnet_program *p, struct method *m)
{
	if (m->text)
		shares_give_back(&p->all->shares, &p->share, strlen(m->text) + 1);
	free(m->text);
	m->text = NULL;
}

/* Sort the last ones in; of methods with one start the newest is kept, and no unloaded ones. */
static void sort_methods(struct dotnet_program *p)
{
	uint32_t i, n = 0;

	qsort(p->methods, p->n, sizeof(*p->methods), by_start);
	for (i = 0; i < p->n; i++)
		if (p->methods[i].text)
			p->methods[n++] = p->methods[i];
	p->n = p->nsorted = n;
}

static struct method *find_method(struct dotnet_program *p, uint64_t address)
{
	uint32_t low = 0, high = p->nsorted, i;

	for (i = p->n; i > p->nsorted; i--) {
		struct method *m = &p->methods[i - 1];

		if (m->text && address >= m->start && address - m->start < m->bytes)
			return m;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->methods[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !p->methods[low - 1].text ||
	    address - p->methods[low - 1].start >= p->methods[low - 1].bytes)
		return NULL;
	return &p->methods[low - 1];
}

static void add_method(struct dotnet_program *p, const struct method *wanted, const char *text,
		       size_t n)
{
	struct method *there = find_method(p, wanted->start);
	uint32_t room = p->room;

	if (there && there->start == wanted->start && there->bytes == wanted->bytes &&
	    strcmp(there->text, text) == 0)
		return;                      /* the rundown tells what is known already */
	if (there)
		forget_method(p, there);
	if (p->n == DOTNET_METHODS_MAX || !shares_take(&p->all->shares, &p->share, n + 1))
		return;
	if (p->n == room &&
	    (!shares_take(&p->all->shares, &p->share, (room ? room : 64) * sizeof(*p->methods)) ||
	     ARRAY_ROOM(p->methods, p->room, p->n + 1))) {
		shares_give_back(&p->all->shares, &p->share, n + 1);
		return;
	}
	p->methods[p->n] = *wanted;
	p->methods[p->n].text = malloc(n + 1);
	if (!p->methods[p->n].text) {
		shares_give_back(&p->all->shares, &p->share, n + 1);
		return;
	}
	memcpy(p->methods[p->n++].text, text, n + 1);
	if (p->n - p->nsorted > UNSORTED_MAX && p->n - p->nsorted > p->nsorted / 16)
		sort_methods(p);
}

/* u64 method, u64 module, u64 start, u32 bytes, u32 token, u32 flags, namespace, name, signature */
static void learn_method(struct dotnet_program *p, const struct nettrace_event *e, bool unload)
{
	const uint8_t *at = e->payload, *end = at + e->payload_bytes;
	struct method m = {0}, *there;
	char text[TEXT_BYTES];
	size_t n;

	if (e->payload_bytes < 36)
		return;
	m.module = le64(at + 8);
	m.start = le64(at + 16);
	m.bytes = le32(at + 24);
	if (!m.bytes || m.start > UINT64_MAX - m.bytes)
		return;
	if (unload) {
		there = find_method(p, m.start);
		if (there && there->start == m.start)
			forget_method(p, there);
		return;
	}
	at += 36;
	n = take_text(&at, end, text, sizeof(text) / 2);
	if (n)
		text[n++] = '.';
	n += take_text(&at, end, text + n, sizeof(text) - n);
	if (n)
		add_method(p, &m, text, n);
}

static void set_module_name(struct module *m, const char *path)
{
	const char *base = path + strlen(path);
	size_t n;

	while (base > path && base[-1] != '/' && base[-1] != '\\')
		base--;
	n = strlen(base);
	if (n > 4 && strcmp(base + n - 4, ".dll") == 0)
		n -= 4;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)n, base);
}

static struct module *find_module(const struct dotnet_program *p, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < p->nmodules; i++)
		if (p->modules[i].id == id)
			return &p->modules[i];
	return NULL;
}

/* u64 module, u64 assembly, u32 flags, u32 reserved, path, native path */
static void learn_module(struct dotnet_program *p, const struct nettrace_event *e)
{
	const uint8_t *at = e->payload, *end = at + e->payload_bytes;
	struct module *m;
	char path[TEXT_BYTES * 2];

	if (e->payload_bytes < 24)
		return;
	m = find_module(p, le64(at));
	if (!m && (p->nmodules == MODULES_MAX ||
		   !shares_take(&p->all->shares, &p->share, sizeof(*m)) ||
		   ARRAY_ROOM(p->modules, p->modules_room, p->nmodules + 1)))
		return;
	if (!m) {
		m = &p->modules[p->nmodules++];
		*m = (struct module){.id = le64(at)};
	}
	at += 24;
	take_text(&at, end, path, sizeof(path));
	set_module_name(m, path);
}

void dotnet_program_learn(struct dotnet_program *p, const struct nettrace_event *e)
{
	bool rundown = e->meta->provider[sizeof(CLR) - 1] != '\0';
	uint32_t id = e->meta->event_id;

	if (id == METHOD_ID || (id == METHOD_ID_2 && rundown))
		learn_method(p, e, false);
	else if (id == METHOD_ID_2)
		learn_method(p, e, true);
	else if (rundown ? id == MODULE_ID + 1 || id == MODULE_ID + 2 : id == MODULE_ID)
		learn_module(p, e);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint32_t add_name(struct dotnet_program *p, const char *text)
{
	uint32_t number = p->names_full ? 0 : managed_names_add(p->names, text, NULL);
	size_t bytes = managed_names_bytes(p->names);

	if (bytes > p->names_bytes) {
		p->names_full = !shares_take(&p->all->shares, &p->share, bytes - p->names_bytes);
		p->names_bytes = p->names_full ? p->names_bytes : bytes;
	}
	return number;
}

static uint32_t name_of(struct dotnet_program *p, struct method *m)
{
	const struct module *module;
	char text[TEXT_BYTES + 80];
	uint32_t number;

	if (m->number)
		return m->number;
	module = find_module(p, m->module);
	snprintf(text, sizeof(text), "%s!%s", module ? module->name : "", m->text);
	number = add_name(p, text);
	/* The rundown may still tell the module. */
	m->number = module ? number : 0;
	return number;
}

/* Each address is where a call returns to. */
static void put_frame(struct dotnet_program *p, uint64_t address, struct frame_ref *out)
{
	struct method *m = find_method(p, address - 1);
	uint32_t number = m ? name_of(p, m) : 0;

	if (number)
		*out = (struct frame_ref){.object = p->object, .flags = FRAME_JIT,
					  .offset = managed_offset(number, MANAGED_OTHER, -1)};
	else
		*out = (struct frame_ref){.object = objects_unknown(p->all->frames),
					  .offset = address - 1, .flags = FRAME_RETURN_ADDRESS};
}

uint32_t dotnet_program_frames(struct dotnet_program *p, const uint8_t *stack, uint32_t nbytes,
			       uint32_t pointer_bytes, const char *what, struct frame_ref *out)
{
	char text[TEXT_BYTES];
	uint32_t at, n = 0, number;

	if (what) {
		snprintf(text, sizeof(text), "event!%s", what);
		number = add_name(p, text);
		if (number)
			out[n++] = (struct frame_ref){.object = p->object, .flags = FRAME_JIT,
				.offset = managed_offset(number, MANAGED_STUB, -1)};
	}
	for (at = 0; at + pointer_bytes <= nbytes && at / pointer_bytes < DOTNET_FRAMES_MAX;
	     at += pointer_bytes)
		put_frame(p, le_sized(stack + at, pointer_bytes), &out[n++]);
	return n;
}

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

static void put_samples(struct dotnet_program *p, const struct nettrace_event *raw,
			uint32_t pointer_bytes, struct event *e, dotnet_put *put, void *ctx)
{
	const struct event_field *type = event_field(e, "ExceptionType"), *bytes;
	char what[WHAT_BYTES];

	type = type ? type : event_field(e, "TypeName");
	snprintf(what, sizeof(what), "%s%s%s", e->name ? e->name : "?", type ? " " : "",
		 type && type->type == FIELD_TEXT ? type->v.text : "");
	e->nstack_frames = dotnet_program_frames(p, raw->stack, raw->stack_bytes, pointer_bytes,
						 what, p->all->put);
	put_sample(e, STREAM_EVENT, 1, put, ctx);
	if (!e->name || strcmp(e->name, "GC/AllocationTick") != 0)
		return;
	bytes = event_field(e, "AllocationAmount64");
	bytes = bytes ? bytes : event_field(e, "AllocationAmount");
	if (bytes && bytes->type == FIELD_UINT)
		put_sample(e, STREAM_ALLOC, (double)bytes->v.u, put, ctx);
}

void dotnet_program_deliver(struct dotnet_program *p, const struct nettrace_event *raw,
			    uint32_t pointer_bytes, struct event *e, dotnet_put *put, void *ctx)
{
	if (p && raw->stack) {
		e->stack_frames = p->all->put;
		e->nstack_frames = dotnet_program_frames(p, raw->stack, raw->stack_bytes,
							 pointer_bytes, NULL, p->all->put);
	}
	e->quality = e->nstack_frames ? QUALITY_COMPLETE : QUALITY_NONE;
	put(ctx, e);
	if (e->nstack_frames)
		put_samples(p, raw, pointer_bytes, e, put, ctx);
	e->stack_frames = NULL;
	e->nstack_frames = 0;
}

bool dotnet_stacks_name(struct dotnet_stacks *s, const struct frame *frame, struct symbol *out)
{
	uint32_t number = managed_number(frame->offset), i;
	bool found = false;
	char *mark;

	if (frame->object->key.kind != OBJECT_JIT)
		return false;
	os_mutex_lock(s->lock);
	for (i = 0; i < s->nnamed && !found; i++)
		found = s->named[i].object == frame->object &&
			managed_names_get(s->named[i].names, number, s->text,
					  sizeof(s->text), NULL);
	os_mutex_unlock(s->lock);
	mark = found ? strchr(s->text, '!') : NULL;
	if (!mark)
		return false;
	*mark = '\0';
	*out = (struct symbol){.offset = (uint64_t)number << MANAGED_NUMBER_SHIFT,
			       .name = mark + 1, .module = mark == s->text ? NULL : s->text};
	return true;
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
}

void dotnet_stacks_free(struct dotnet_stacks *s)
{
	if (!s)
		return;
	while (s->nnamed)
		free_named(s, &s->named[--s->nnamed], 0);
	os_mutex_free(s->lock);
	free(s->named);
	free(s);
}

void dotnet_stacks_look(struct dotnet_stacks *s, uint64_t now_ns)
{
	uint32_t i;

	os_mutex_lock(s->lock);
	for (i = s->nnamed; i-- > 0;) {
		if (!s->named[i].dropped_ns || s->named[i].dropped_ns + KEEP_NS > now_ns)
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
		s->named[s->nnamed++] = (struct named){.object = p->object, .names = p->names};
	os_mutex_unlock(s->lock);
	return done;
}

struct dotnet_program *dotnet_program_new(struct dotnet_stacks *s, uint32_t pid, uint64_t key,
					  uint32_t uid)
{
	const struct object_key object = {.kind = OBJECT_JIT, .pid = pid, .path = "[.net]",
					  .epoch = (uint32_t)hash_pair(key, pid)};
	struct dotnet_program *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->all = s;
	p->refs = 1;
	p->share.uid = uid;
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
	bool needs = p && !p->rundown_asked;

	if (p)
		p->rundown_asked = true;
	return needs;
}

void dotnet_program_free(struct dotnet_program *p, uint64_t now_ns)
{
	struct dotnet_stacks *s;
	uint32_t i;

	if (!p || --p->refs)
		return;
	s = p->all;
	shares_hold(&s->shares, &p->share, p->names_bytes);
	os_mutex_lock(s->lock);
	for (i = 0; i < s->nnamed; i++) {
		if (s->named[i].names != p->names)
			continue;
		s->named[i].dropped_ns = now_ns ? now_ns : 1;
		s->named[i].share = p->share;
	}
	os_mutex_unlock(s->lock);
	for (i = 0; i < p->n; i++)
		free(p->methods[i].text);
	free(p->methods);
	free(p->modules);
	free(p);
}
