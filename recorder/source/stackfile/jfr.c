/*
 * Recordings of JDK Flight Recorder (.jfr), version 2, of OpenJDK 9 and later, and of
 * async-profiler. A file is a row of chunks; numbers are big-endian or compressed:
 *
 *	 0  "FLR\0", u16 major, u16 minor       8  u64 size of the chunk
 *	16  u64 offset of the last constants    24  u64 offset of the metadata
 *	32  u64 start in ns, u64 duration       48  u64 start in ticks, u64 ticks per second
 *	64  u32 features: 1 = numbers are compressed (7 bits a byte, the ninth byte has 8)
 *	68  events: size, type, fields; type 0 = metadata, 1 = constants
 *
 * The metadata are a tree of elements that describes each class with its fields. A field is inline,
 * an array of such, or the key of a constant. Everything is read by these descriptions, so fields
 * that come or go with a version do no harm. Samples are jdk.ExecutionSample, which is a thread in
 * Java code and counts as the period that jdk.ActiveSetting tells, jdk.CPUTimeSample, which tells
 * its own, and jdk.ObjectAllocationSample in bytes. jdk.OldObjectSample is an object that has
 * outlived a collection, of STREAM_HEAP_NET. The JVM samples these by bytes
 * allocated, so each has the same part of the heap that the last collection left, whatever the
 * object's own size: shares are right, and the sum is the heap. jdk.GCHeapSummary tells it, else
 * the youngest of the objects does (lastKnownHeapUsage).
 * Source: OpenJDK, jdk.jfr.internal.consumer and hotspot's jfr/leakprofiler.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
	HEAD_BYTES = 68, FEATURE_COMPRESSED = 1,
	TYPE_METADATA = 0, TYPE_CONSTANTS = 1,
	CLASSES_MAX = 10000, FIELDS_MAX = 200000, STRINGS_MAX = 1000000,
	NESTING_MAX = 16,
};

#define PERIOD_NS 20e6                       /* of default.jfc */
#define NO_CLASS UINT32_MAX
#define NO_TEXT (struct piece){"", 0, TEXT_UTF8}

/* A text as it is in the file: of ASCII, each character is one byte in every encoding. */
struct piece {
	const char *at;
	size_t n;
	enum {TEXT_UTF8, TEXT_UTF16, TEXT_LATIN1} encoding;
};

enum kind {KIND_STRUCT, KIND_BYTE, KIND_NUMBER, KIND_FLOAT, KIND_DOUBLE, KIND_STRING};

struct jfr_class {
	uint64_t id;
	struct piece name;
	uint32_t first_field, nfields;
	enum kind kind;
	double period_ns;                    /* by jdk.ActiveSetting; 0 = not told */
};

struct jfr_field {
	struct piece name;
	uint64_t class_id;
	uint32_t class;                      /* index, once all are known */
	bool pool, array;
};

struct constant {
	uint32_t class;
	uint64_t key;
	const uint8_t *at;
};

/* Where a value is, and of which class; at NULL = there is none. */
struct value {
	struct cursor c;
	uint32_t class;
	bool array;
};

struct reading {
	struct stack_list *l;
	const uint8_t *chunk, *end;
	uint64_t start_ns, start_ticks, ticks_per_s;
	struct piece *strings;
	struct jfr_class *classes;
	struct jfr_field *fields;
	struct constant *constants;
	uint32_t nstrings, nclasses, nfields, nconstants;
	uint32_t strings_room, classes_room, fields_room, constants_room;
	struct table by_key;
	uint64_t steps;                      /* values that may still be read; ends circles */
	uint64_t left_bytes, left_ticks;     /* by the last collection; 0 = not told */
	uint64_t heap_bytes;                 /* the largest that an old object tells */
	uint32_t nold, pid;                  /* nold: objects that were still there */
	bool no_memory;
	struct buf text;
};

static bool is_text(struct piece p, const char *text)
{
	return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

/* ---- numbers and texts ----------------------------------------------------------------------- */

static bool get_number(struct cursor *c, uint64_t *out)
{
	uint64_t v = 0;
	unsigned i;

	for (i = 0; i < 9; i++) {
		uint8_t byte;

		if (!cursor_get(c, &byte, 1))
			return false;
		v |= (uint64_t)(i < 8 ? byte & 0x7f : byte) << 7 * i;
		if (i < 8 && !(byte & 0x80))
			break;
	}
	*out = v;
	return true;
}

static uint64_t be_number(const uint8_t *at, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *at++;
	return v;
}

static const struct constant *find_constant(const struct reading *r, uint32_t class, uint64_t key);
static uint32_t class_named(const struct reading *r, const char *name);

/* null, "", a constant, UTF-8, UTF-16 as numbers, or Latin-1 */
static bool get_text(struct reading *r, struct cursor *c, struct piece *out)
{
	const struct constant *constant;
	uint64_t n, unit;
	uint8_t how;

	*out = NO_TEXT;
	if (!cursor_get(c, &how, 1))
		return false;
	if (how < 2)
		return true;
	if (how > 5 || !get_number(c, &n))
		return false;
	if (how == 2) {
		struct cursor at;

		constant = find_constant(r, class_named(r, "java.lang.String"), n);
		if (constant && *constant->at > 2) {
			at = (struct cursor){constant->at, r->end};
			get_text(r, &at, out);
		}
		return true;
	}
	out->at = (const char *)c->at;
	out->encoding = how == 3 ? TEXT_UTF8 : how == 4 ? TEXT_UTF16 : TEXT_LATIN1;
	if (how != 4 && !cursor_skip(c, n))
		return false;
	for (; how == 4 && n; n--)
		if (!get_number(c, &unit))
			return false;
	out->n = (size_t)((const char *)c->at - out->at);
	return true;
}

static void put_text(struct buf *to, struct piece p)
{
	struct cursor c = cursor_over(p.at, p.n);
	uint64_t v, low;
	char bytes[4];

	if (p.encoding == TEXT_UTF8) {
		buf_put(to, p.at, p.n);
		return;
	}
	while (cursor_left(&c)) {
		v = *c.at;
		if (p.encoding == TEXT_LATIN1)
			c.at++;
		else if (!get_number(&c, &v))
			return;
		if (v >= 0xd800 && v < 0xdc00 && get_number(&c, &low))
			v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
		buf_put(to, bytes, utf8_encode(v && v < 0x110000 ? (uint32_t)v : 0xfffd, bytes));
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool skip_field(struct reading *r, const struct jfr_field *f, struct cursor *c,
		       unsigned depth);

static bool skip_value(struct reading *r, uint32_t class, struct cursor *c, unsigned depth)
{
	const struct jfr_class *k = class < r->nclasses ? &r->classes[class] : NULL;
	struct piece text;
	uint64_t number;
	uint32_t i;

	if (!k || !depth || !r->steps)
		return false;
	r->steps--;
	switch (k->kind) {
	case KIND_BYTE:
		return cursor_skip(c, 1);
	case KIND_NUMBER:
		return get_number(c, &number);
	case KIND_FLOAT:
		return cursor_skip(c, 4);
	case KIND_DOUBLE:
		return cursor_skip(c, 8);
	case KIND_STRING:
		return get_text(r, c, &text);
	case KIND_STRUCT:
		break;
	}
	for (i = 0; i < k->nfields; i++)
		if (!skip_field(r, &r->fields[k->first_field + i], c, depth - 1))
			return false;
	return true;
}

static bool skip_field(struct reading *r, const struct jfr_field *f, struct cursor *c,
		       unsigned depth)
{
	uint64_t n = 1, key;

	if (f->array && !get_number(c, &n))
		return false;
	for (; n; n--)
		if (!(f->pool ? get_number(c, &key) : skip_value(r, f->class, c, depth)))
			return false;
	return true;
}

static uint64_t hash_constant(uint32_t class, uint64_t key)
{
	return hash_pair(class, key);
}

static bool same_constant(const void *ctx, uint32_t value, const void *key)
{
	const struct constant *a = &((const struct reading *)ctx)->constants[value], *b = key;

	return a->class == b->class && a->key == b->key;
}

static const struct constant *find_constant(const struct reading *r, uint32_t class, uint64_t key)
{
	struct constant wanted = {.class = class, .key = key};
	uint32_t at = table_find(&r->by_key, hash_constant(class, key), same_constant, r, &wanted);

	return at == TABLE_NONE ? NULL : &r->constants[at];
}

/* A field by its name; a constant's value in place of its key. */
static struct value member(struct reading *r, struct value of, const char *name)
{
	const struct jfr_class *k = of.class < r->nclasses ? &r->classes[of.class] : NULL;
	const struct constant *constant;
	uint64_t key;
	uint32_t i;

	for (i = 0; of.c.at && k && i < k->nfields; i++) {
		const struct jfr_field *f = &r->fields[k->first_field + i];

		if (is_text(f->name, name)) {
			if (!f->pool || f->array)
				return (struct value){of.c, f->class, f->array};
			constant = get_number(&of.c, &key) ? find_constant(r, f->class, key) : NULL;
			if (constant)
				return (struct value){{constant->at, r->end}, f->class, false};
			break;
		}
		if (!skip_field(r, f, &of.c, NESTING_MAX))
			break;
	}
	return (struct value){.class = NO_CLASS};
}

static uint64_t number_of(struct reading *r, struct value v)
{
	uint64_t out = 0;

	if (v.c.at && v.class < r->nclasses && r->classes[v.class].kind == KIND_BYTE)
		return v.c.at < v.c.end ? *v.c.at : 0;
	if (v.c.at)
		get_number(&v.c, &out);
	return out;
}

static struct piece text_of(struct reading *r, struct value v)
{
	struct piece out = NO_TEXT;

	if (v.c.at && v.class < r->nclasses && r->classes[v.class].kind == KIND_STRING)
		get_text(r, &v.c, &out);
	return out;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static struct piece string_at(const struct reading *r, uint64_t at)
{
	return at < r->nstrings ? r->strings[at] : NO_TEXT;
}

static uint64_t digits(struct piece p)
{
	uint64_t v = 0;

	for (; p.n && *p.at >= '0' && *p.at <= '9' && v < UINT64_MAX / 20; p.at++, p.n--)
		v = v * 10 + (uint64_t)(*p.at - '0');
	return v;
}

static enum kind kind_of(struct piece name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {{"boolean", KIND_BYTE}, {"byte", KIND_BYTE}, {"short", KIND_NUMBER},
		     {"char", KIND_NUMBER}, {"int", KIND_NUMBER}, {"long", KIND_NUMBER},
		     {"float", KIND_FLOAT}, {"double", KIND_DOUBLE},
		     {"java.lang.String", KIND_STRING}};
	size_t i;

	for (i = 0; i < COUNT_OF(kinds); i++)
		if (is_text(name, kinds[i].name))
			return kinds[i].kind;
	return KIND_STRUCT;
}

static uint32_t class_named(const struct reading *r, const char *name)
{
	uint32_t i;

	for (i = 0; i < r->nclasses; i++)
		if (is_text(r->classes[i].name, name))
			return i;
	return NO_CLASS;
}

static uint32_t class_by_id(const struct reading *r, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < r->nclasses; i++)
		if (r->classes[i].id == id)
			return i;
	return NO_CLASS;
}

/* An element: its name, attributes and elements in it; a class is the elements in it. */
static bool read_element(struct reading *r, struct cursor *c, bool in_class, unsigned depth)
{
	struct piece name, id = NO_TEXT, called = NO_TEXT, class = NO_TEXT, pool = NO_TEXT;
	struct piece dimension = NO_TEXT;
	uint64_t v, n, key;
	bool is_class;

	if (!depth || !get_number(c, &v) || !get_number(c, &n))
		return false;
	name = string_at(r, v);
	for (; n; n--) {
		struct piece what, is;

		if (!get_number(c, &key) || !get_number(c, &v))
			return false;
		what = string_at(r, key);
		is = string_at(r, v);
		if (is_text(what, "id"))
			id = is;
		else if (is_text(what, "name"))
			called = is;
		else if (is_text(what, "class"))
			class = is;
		else if (is_text(what, "constantPool"))
			pool = is;
		else if (is_text(what, "dimension"))
			dimension = is;
	}
	is_class = is_text(name, "class");
	if (is_class) {
		if (r->nclasses >= CLASSES_MAX ||
		    ARRAY_ROOM(r->classes, r->classes_room, r->nclasses + 1))
			return false;
		r->classes[r->nclasses++] = (struct jfr_class){
			.id = digits(id), .name = called, .first_field = r->nfields,
			.kind = kind_of(called)};
	} else if (in_class && is_text(name, "field")) {
		if (r->nfields >= FIELDS_MAX ||
		    ARRAY_ROOM(r->fields, r->fields_room, r->nfields + 1))
			return false;
		r->fields[r->nfields++] = (struct jfr_field){
			.name = called, .class_id = digits(class), .pool = is_text(pool, "true"),
			.array = digits(dimension) > 0};
		r->classes[r->nclasses - 1].nfields++;
	}
	if (!get_number(c, &n))
		return false;
	/* Annotations of a field are elements of it, and have nothing to say here. */
	for (; n; n--)
		if (!read_element(r, c, is_class, depth - 1))
			return false;
	return true;
}

/* The head of an event: its type; c then covers its fields. */
static bool open_event(struct cursor *c, uint64_t *type)
{
	const uint8_t *at = c->at;
	uint64_t size;

	if (!get_number(c, &size) || size > (uint64_t)(c->end - at) ||
	    size < (uint64_t)(c->at - at))
		return false;
	c->end = at + size;
	return get_number(c, type);
}

static bool read_metadata(struct reading *r, uint64_t offset)
{
	struct cursor c = {r->chunk, r->end};
	uint64_t type, v, n;
	uint32_t i;

	/* start, duration, number of the metadata */
	if (!cursor_skip(&c, offset) || !open_event(&c, &type) || type != TYPE_METADATA ||
	    !get_number(&c, &v) || !get_number(&c, &v) || !get_number(&c, &v) ||
	    !get_number(&c, &n) || n > STRINGS_MAX)
		return false;
	for (; n; n--) {
		if (ARRAY_ROOM(r->strings, r->strings_room, r->nstrings + 1))
			return false;
		if (!get_text(r, &c, &r->strings[r->nstrings]))
			return false;
		r->nstrings++;
	}
	if (!read_element(r, &c, false, NESTING_MAX))
		return false;
	for (i = 0; i < r->nfields; i++)
		r->fields[i].class = class_by_id(r, r->fields[i].class_id);
	return true;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* The first value of a key stays: later ones are the same, written again. */
static bool add_constant(struct reading *r, uint32_t class, uint64_t key, const uint8_t *at)
{
	if (find_constant(r, class, key))
		return true;
	if (ARRAY_ROOM(r->constants, r->constants_room, r->nconstants + 1) ||
	    table_add(&r->by_key, hash_constant(class, key), r->nconstants)) {
		r->no_memory = true;
		return false;
	}
	r->constants[r->nconstants++] = (struct constant){class, key, at};
	return true;
}

static bool read_constants(struct reading *r, struct cursor c)
{
	uint64_t v, npools, id, n, key;
	uint8_t flush;

	if (!get_number(&c, &v) || !get_number(&c, &v) || !get_number(&c, &v) ||
	    !cursor_get(&c, &flush, 1) || !get_number(&c, &npools))
		return false;
	for (; npools; npools--) {
		uint32_t class;

		if (!get_number(&c, &id) || !get_number(&c, &n))
			return false;
		class = class_by_id(r, id);
		for (; n; n--) {
			const uint8_t *at;

			if (!get_number(&c, &key))
				return false;
			at = c.at;
			if (!skip_value(r, class, &c, NESTING_MAX) ||
			    !add_constant(r, class, key, at))
				return false;
		}
	}
	return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* "10 ms", "1 s", "20 us" */
static double period_of(struct piece p)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{" ms", 1e6}, {" us", 1e3}, {" ns", 1}, {" s", 1e9}};
	size_t i, n;

	for (i = 0; i < COUNT_OF(units); i++) {
		n = strlen(units[i].name);
		if (p.n > n && memcmp(p.at + p.n - n, units[i].name, n) == 0)
			return (double)digits(p) * units[i].ns;
	}
	return 0;
}

static void read_setting(struct reading *r, struct value event)
{
	uint32_t class = class_by_id(r, number_of(r, member(r, event, "id")));

	if (class != NO_CLASS && is_text(text_of(r, member(r, event, "name")), "period"))
		r->classes[class].period_ns = period_of(text_of(r, member(r, event, "value")));
}

/* "java.lang.String.length", as the recorder calls it */
static uint32_t frame_of(struct reading *r, struct value frame)
{
	struct value method = member(r, frame, "method");
	struct piece type = text_of(r, member(r, member(r, member(r, method, "type"), "name"),
					      "string"));
	struct piece name = text_of(r, member(r, member(r, method, "name"), "string"));
	size_t i;

	buf_reset(&r->text);
	put_text(&r->text, type);
	for (i = 0; i < r->text.len; i++)
		if (r->text.data[i] == '/')
			r->text.data[i] = '.';
	if (type.n && name.n)
		buf_putc(&r->text, '.');
	put_text(&r->text, name);
	r->no_memory |= r->text.failed != 0;
	return stack_list_frame(r->l, "[java]", 6, buf_text(&r->text), r->text.len, FRAME_JIT);
}

static void read_stack(struct reading *r, struct value trace, struct stack_list_sample *s)
{
	struct value frames = member(r, trace, "frames");
	uint32_t found[STACK_LIST_DEPTH_MAX], depth = 0;
	uint64_t n = 0;

	if (number_of(r, member(r, trace, "truncated")))
		s->quality = QUALITY_TRUNCATED;
	if (!frames.c.at || !frames.array || !get_number(&frames.c, &n))
		return;
	for (frames.array = false; n && depth < COUNT_OF(found); n--) {
		found[depth++] = frame_of(r, frames);
		if (!skip_value(r, frames.class, &frames.c, NESTING_MAX))
			break;
	}
	while (depth)
		s->node = stack_list_node(r->l, s->node, found[--depth]);
}

static void read_sample(struct reading *r, struct value event, double weight, uint8_t stream)
{
	struct value thread = member(r, event, "sampledThread");
	struct stack_list_sample s = {.cpu = CPU_NONE, .node = STACK_LIST_NONE, .stream = stream,
				      .quality = QUALITY_COMPLETE, .weight = weight};
	uint64_t ticks = number_of(r, member(r, event, stream == STREAM_HEAP_NET ? "allocationTime"
									      : "startTime"));
	struct piece name;

	if (!thread.c.at)
		thread = member(r, event, "eventThread");
	name = text_of(r, member(r, thread, "javaName"));
	if (!name.n)
		name = text_of(r, member(r, thread, "osName"));
	buf_reset(&r->text);
	put_text(&r->text, name);
	s.thread = stack_list_thread(r->l, "java", 4, r->pid, buf_text(&r->text), r->text.len,
				     (uint32_t)number_of(r, member(r, thread, "osThreadId")));
	if (ticks > r->start_ticks && r->ticks_per_s)
		s.time_ns = (uint64_t)((double)(ticks - r->start_ticks) * 1e9 /
				       (double)r->ticks_per_s);
	s.time_ns += r->start_ns;
	read_stack(r, member(r, event, "stackTrace"), &s);
	stack_list_sample(r->l, &s);
}

/* What the last collection left. An old object tells it of when it was allocated. */
static void read_heap(struct reading *r, struct value event)
{
	struct piece when = text_of(r, member(r, member(r, event, "when"), "when"));
	uint64_t ticks = number_of(r, member(r, event, "startTime"));
	uint64_t bytes = number_of(r, member(r, event, "heapUsed"));

	if (is_text(when, "After GC") && ticks >= r->left_ticks && bytes < INT64_MAX) {
		r->left_ticks = ticks;
		r->left_bytes = bytes;
	}
}

static void read_event(struct reading *r, uint32_t class, struct cursor c, bool settings)
{
	const struct jfr_class *k = &r->classes[class];
	struct value event = {c, class, false};

	if (settings) {
		if (is_text(k->name, "jdk.ActiveSetting"))
			read_setting(r, event);
		if (is_text(k->name, "jdk.JVMInformation"))
			r->pid = (uint32_t)number_of(r, member(r, event, "pid"));
	} else if (is_text(k->name, "jdk.ExecutionSample")) {
		read_sample(r, event, k->period_ns > 0 ? k->period_ns : PERIOD_NS, STREAM_CPU);
	} else if (is_text(k->name, "jdk.CPUTimeSample")) {
		double ns = (double)number_of(r, member(r, event, "samplingPeriod"));

		read_sample(r, event, r->ticks_per_s ? ns * 1e9 / (double)r->ticks_per_s : ns,
			    STREAM_CPU);
	} else if (is_text(k->name, "jdk.ObjectAllocationSample")) {
		read_sample(r, event, (double)number_of(r, member(r, event, "weight")),
			    STREAM_ALLOC);
	} else if (is_text(k->name, "jdk.OldObjectSample")) {
		uint64_t bytes = number_of(r, member(r, event, "lastKnownHeapUsage"));

		if (bytes > r->heap_bytes && bytes < INT64_MAX)
			r->heap_bytes = bytes;
		r->nold++;
		read_sample(r, event, 1, STREAM_HEAP_NET);
	} else if (is_text(k->name, "jdk.GCHeapSummary")) {
		read_heap(r, event);
	}
}

static void share_heap(struct reading *r)
{
	uint64_t bytes = r->left_bytes ? r->left_bytes : r->heap_bytes;
	uint32_t i;

	for (i = 0; bytes && i < r->l->nsamples; i++)
		if (r->l->samples[i].stream == STREAM_HEAP_NET)
			r->l->samples[i].weight = (double)bytes / (double)r->nold;
}

enum pass {PASS_CONSTANTS, PASS_SETTINGS, PASS_SAMPLES};

static bool walk_events(struct reading *r, enum pass pass)
{
	struct cursor c = {r->chunk + HEAD_BYTES, r->end};

	while (cursor_left(&c) && !r->no_memory) {
		struct cursor event = c;
		uint32_t class;
		uint64_t type;

		if (!open_event(&event, &type))
			return false;
		c.at = event.end;
		class = type == TYPE_METADATA || type == TYPE_CONSTANTS ? NO_CLASS
									: class_by_id(r, type);
		r->steps = 16 * (uint64_t)(r->end - r->chunk);
		if (pass == PASS_CONSTANTS && type == TYPE_CONSTANTS)
			r->l->skipped += !read_constants(r, event);
		if (pass != PASS_CONSTANTS && class != NO_CLASS)
			read_event(r, class, event, pass == PASS_SETTINGS);
	}
	return true;
}

static bool read_chunk(struct reading *r)
{
	const uint8_t *head = r->chunk;

	r->nstrings = r->nclasses = r->nfields = r->nconstants = 0;
	table_clear(&r->by_key);
	r->start_ns = be_number(head + 32, 8) & INT64_MAX;
	r->start_ticks = be_number(head + 48, 8);
	r->ticks_per_s = be_number(head + 56, 8);
	r->steps = 16 * (uint64_t)(r->end - r->chunk);
	return read_metadata(r, be_number(head + 24, 8)) && walk_events(r, PASS_CONSTANTS) &&
	       walk_events(r, PASS_SETTINGS) && walk_events(r, PASS_SAMPLES);
}

int stack_list_jfr(struct stack_list *l, const char *bytes, size_t n, struct err *err)
{
	struct reading r = {.l = l};
	struct cursor c = cursor_over(bytes, n);
	int rc = 0;

	while (cursor_left(&c) && !rc && !r.no_memory) {
		uint64_t size = cursor_left(&c) < HEAD_BYTES ? 0 : be_number(c.at + 8, 8);

		if (size < HEAD_BYTES || size > cursor_left(&c) || memcmp(c.at, "FLR", 4) != 0) {
			rc = err_set(err, ERR_FORMAT, "a chunk in it is cut or was never finished: "
				     "`jfr repair` or `jcmd PID JFR.dump` makes it whole");
		} else if (be_number(c.at + 4, 2) != 2 ||
			   !(be_number(c.at + 64, 4) & FEATURE_COMPRESSED)) {
			rc = err_set(err, ERR_UNSUPPORTED, "it is a recording of version %u.%u; "
				     "version 2 with compressed numbers is read, of OpenJDK 9 and "
				     "later", (unsigned)be_number(c.at + 4, 2),
				     (unsigned)be_number(c.at + 6, 2));
		} else {
			r.chunk = c.at;
			r.end = c.at + size;
			l->skipped += !read_chunk(&r);
			c.at += size;
		}
	}
	if (rc && l->nsamples) {
		l->skipped++;                /* what came before the damage is kept */
		rc = 0;
	}
	share_heap(&r);
	free(r.strings);
	free(r.classes);
	free(r.fields);
	free(r.constants);
	table_free(&r.by_key);
	buf_free(&r.text);
	l->has_times = true;
	l->no_memory |= r.no_memory;
	return rc;
}
