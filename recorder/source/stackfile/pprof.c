/*
 * pprof's profile.proto, unpacked; field numbers as in export/pprof.c. A sample is the sum of all
 * with its stack and labels: with values of the kinds (samples, count) and, say, (cpu,
 * nanoseconds) it is so many samples, which share the time equally. Functions may be named with
 * their module, "libc.so.6!write"; else the module is the mapping's file. Labels process, thread,
 * pid and tid say whose it is.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/varint.h"

#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 16u
#define LINES_MAX 64u                        /* of a location: functions inlined there */

/* One field of a message: a number, or bytes. */
struct field {
	uint32_t number;
	uint64_t v;
	struct cursor bytes;                 /* at NULL = it is a number */
};

struct piece {
	const char *at;
	size_t n;
};

struct named_function {
	uint64_t id, name;
};

struct named_file {
	uint64_t id, file;
};

struct code_place {
	uint64_t id, mapping;
	uint32_t first, nlines;              /* in lines, innermost first */
};

struct reading {
	struct stack_list *l;
	struct piece *strings;
	struct named_function *functions;
	struct named_file *mappings;
	struct code_place *locations;
	uint64_t *lines;                     /* function ids */
	uint32_t nstrings, nfunctions, nmappings, nlocations, nlines;
	uint32_t strings_room, functions_room, mappings_room, locations_room, lines_room;
	struct table functions_by_id, mappings_by_id, locations_by_id;
	struct {
		uint64_t type, unit;
	} kinds[KINDS_MAX];
	uint32_t nkinds;
	uint64_t default_kind;
	uint32_t counted, weighed;           /* which value says what; KINDS_MAX = none */
	double to_unit;
	uint8_t stream;
};

/* ---- protobuf -------------------------------------------------------------------------------- */

/* false: the message ends here, or is damaged */
static bool next_field(struct cursor *c, struct field *f)
{
	uint64_t key, n = 0;

	if (c->at == c->end || !varint_get(&c->at, c->end, &key) || key >> 3 > UINT32_MAX)
		return false;
	*f = (struct field){.number = (uint32_t)(key >> 3)};
	switch (key & 7) {
	case 0:
		return varint_get(&c->at, c->end, &f->v);
	case 1:
		return cursor_number(c, 8, &f->v);
	case 2:
		if (!varint_get(&c->at, c->end, &n) || cursor_left(c) < n)
			return false;
		f->bytes = (struct cursor){c->at, c->at + n};
		c->at += n;
		return true;
	case 5:
		return cursor_number(c, 4, &f->v);
	default:
		return false;
	}
}

/* The next of a repeated number, packed or not. */
static bool next_number(struct field *f, uint64_t *out)
{
	if (f->bytes.at)
		return f->bytes.at < f->bytes.end && varint_get(&f->bytes.at, f->bytes.end, out);
	if (!f->number)
		return false;
	f->number = 0;
	*out = f->v;
	return true;
}

static struct piece string_of(const struct reading *r, uint64_t number)
{
	return number < r->nstrings ? r->strings[number] : (struct piece){"", 0};
}

static bool is_string(const struct reading *r, uint64_t number, const char *text)
{
	struct piece s = string_of(r, number);

	return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool same_function(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct reading *)ctx)->functions[value].id == *(const uint64_t *)key;
}

static bool same_mapping(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct reading *)ctx)->mappings[value].id == *(const uint64_t *)key;
}

static bool same_location(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct reading *)ctx)->locations[value].id == *(const uint64_t *)key;
}

static int take_function(struct reading *r, struct cursor c)
{
	struct named_function out = {0};
	struct field f;

	while (next_field(&c, &f)) {
		if (f.number == 1)
			out.id = f.v;
		if (f.number == 2)
			out.name = f.v;
	}
	if (ARRAY_ROOM(r->functions, r->functions_room, r->nfunctions + 1) ||
	    table_add(&r->functions_by_id, hash_u64(out.id), r->nfunctions))
		return ERR_MEMORY;
	r->functions[r->nfunctions++] = out;
	return 0;
}

static int take_mapping(struct reading *r, struct cursor c)
{
	struct named_file out = {0};
	struct field f;

	while (next_field(&c, &f)) {
		if (f.number == 1)
			out.id = f.v;
		if (f.number == 5)
			out.file = f.v;
	}
	if (ARRAY_ROOM(r->mappings, r->mappings_room, r->nmappings + 1) ||
	    table_add(&r->mappings_by_id, hash_u64(out.id), r->nmappings))
		return ERR_MEMORY;
	r->mappings[r->nmappings++] = out;
	return 0;
}

static int take_location(struct reading *r, struct cursor c)
{
	struct code_place out = {.first = r->nlines};
	struct field f, line;

	while (next_field(&c, &f)) {
		if (f.number == 1)
			out.id = f.v;
		if (f.number == 2)
			out.mapping = f.v;
		if (f.number != 4 || !f.bytes.at || out.nlines >= LINES_MAX)
			continue;
		if (ARRAY_ROOM(r->lines, r->lines_room, r->nlines + 1))
			return ERR_MEMORY;
		r->lines[r->nlines] = 0;
		while (next_field(&f.bytes, &line))
			if (line.number == 1)
				r->lines[r->nlines] = line.v;
		r->nlines++;
		out.nlines++;
	}
	if (ARRAY_ROOM(r->locations, r->locations_room, r->nlocations + 1) ||
	    table_add(&r->locations_by_id, hash_u64(out.id), r->nlocations))
		return ERR_MEMORY;
	r->locations[r->nlocations++] = out;
	return 0;
}

static void take_kind(struct reading *r, struct cursor c)
{
	struct field f;

	if (r->nkinds == KINDS_MAX)
		return;
	r->kinds[r->nkinds].type = r->kinds[r->nkinds].unit = 0;
	while (next_field(&c, &f)) {
		if (f.number == 1)
			r->kinds[r->nkinds].type = f.v;
		if (f.number == 2)
			r->kinds[r->nkinds].unit = f.v;
	}
	r->nkinds++;
}

/* Everything but samples, which need all of it. */
static int take_tables(struct reading *r, struct cursor c)
{
	struct field f;
	int rc = 0;

	while (!rc && next_field(&c, &f)) {
		if (f.number == 14)
			r->default_kind = f.v;
		if (!f.bytes.at)
			continue;
		if (f.number == 1)
			take_kind(r, f.bytes);
		if (f.number == 3)
			rc = take_mapping(r, f.bytes);
		if (f.number == 4)
			rc = take_location(r, f.bytes);
		if (f.number == 5)
			rc = take_function(r, f.bytes);
		if (f.number != 6)
			continue;
		if (ARRAY_ROOM(r->strings, r->strings_room, r->nstrings + 1))
			return ERR_MEMORY;
		r->strings[r->nstrings++] = (struct piece){(const char *)f.bytes.at,
							   cursor_left(&f.bytes)};
	}
	return rc;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Time first, else the default, else the last kind, as pprof itself chooses. */
static void choose_kinds(struct reading *r)
{
	uint32_t i, by_default = KINDS_MAX;

	r->counted = r->weighed = KINDS_MAX;
	r->stream = STREAM_CPU;
	for (i = 0; i < r->nkinds; i++) {
		if (is_string(r, r->kinds[i].unit, "count") &&
		    (is_string(r, r->kinds[i].type, "samples") || r->nkinds == 1))
			r->counted = i;
		if (is_string(r, r->kinds[i].unit, "nanoseconds") && r->weighed == KINDS_MAX)
			r->weighed = i;
		if (r->default_kind && r->kinds[i].type == r->default_kind)
			by_default = i;
	}
	r->to_unit = 1;
	if (r->weighed < KINDS_MAX) {
		if (is_string(r, r->kinds[r->weighed].type, "off-cpu"))
			r->stream = STREAM_OFF_CPU;
		return;
	}
	r->weighed = by_default < KINDS_MAX ? by_default : r->nkinds ? r->nkinds - 1 : KINDS_MAX;
	if (r->weighed == KINDS_MAX || r->weighed == r->counted)
		r->to_unit = (double)STACK_LIST_PERIOD_NS;
	else if (is_string(r, r->kinds[r->weighed].type, "inuse_space"))
		r->stream = STREAM_HEAP_NET;
	else
		r->stream = is_string(r, r->kinds[r->weighed].unit, "bytes") ? STREAM_ALLOC
									     : STREAM_EVENT;
}

static uint32_t add_line(struct reading *r, uint32_t caller, const struct code_place *at,
			 uint32_t line, struct stack_list_sample *s)
{
	uint32_t n = table_find(&r->functions_by_id, hash_u64(r->lines[at->first + line]),
				same_function, r, &r->lines[at->first + line]);
	uint32_t m = table_find(&r->mappings_by_id, hash_u64(at->mapping), same_mapping, r,
				&at->mapping);
	struct piece name = n == TABLE_NONE ? (struct piece){"?", 1}
					    : string_of(r, r->functions[n].name);
	struct piece file = m == TABLE_NONE ? (struct piece){"", 0}
					    : string_of(r, r->mappings[m].file);
	uint32_t flags = line + 1 < at->nlines ? FRAME_INLINED : 0;

	if (stack_list_mark(name.at, name.n, &s->quality))
		return caller;
	if (memchr(name.at, '!', name.n) || !file.n)
		return stack_list_node(r->l, caller, stack_list_text(r->l, name.at, name.n));
	while (memchr(file.at, '/', file.n)) {
		const char *slash = memchr(file.at, '/', file.n);

		file.n -= (size_t)(slash + 1 - file.at);
		file.at = slash + 1;
	}
	return stack_list_node(r->l, caller, stack_list_frame(r->l, file.at, file.n, name.at,
							      name.n, flags));
}

static void add_frames(struct reading *r, const uint64_t *ids, uint32_t n,
		       struct stack_list_sample *s)
{
	s->node = STACK_LIST_NONE;
	while (n--) {
		uint32_t at = table_find(&r->locations_by_id, hash_u64(ids[n]), same_location, r,
					 &ids[n]);
		uint32_t line = at == TABLE_NONE ? 0 : r->locations[at].nlines;

		if (at == TABLE_NONE)
			r->l->skipped++;
		while (line--)
			s->node = add_line(r, s->node, &r->locations[at], line, s);
	}
}

struct who {
	struct piece process, thread;
	uint64_t pid, tid;
};

static void take_label(const struct reading *r, struct cursor c, struct who *who)
{
	uint64_t key = 0, text = 0, number = 0;
	struct field f;

	while (next_field(&c, &f)) {
		key = f.number == 1 ? f.v : key;
		text = f.number == 2 ? f.v : text;
		number = f.number == 3 ? f.v : number;
	}
	if (is_string(r, key, "process"))
		who->process = string_of(r, text);
	else if (is_string(r, key, "thread"))
		who->thread = string_of(r, text);
	else if (is_string(r, key, "pid"))
		who->pid = number;
	else if (is_string(r, key, "tid"))
		who->tid = number;
}

static void take_sample(struct reading *r, struct cursor c)
{
	struct stack_list_sample s = {.cpu = CPU_NONE, .stream = r->stream,
				      .quality = QUALITY_COMPLETE};
	uint64_t ids[STACK_LIST_DEPTH_MAX], values[KINDS_MAX] = {0}, v;
	struct who who = {.process = {"?", 1}};
	uint32_t n = 0, nvalues = 0;
	struct field f;
	int64_t weight;

	while (next_field(&c, &f)) {
		if (f.number == 1)
			while (n < STACK_LIST_DEPTH_MAX && next_number(&f, &v))
				ids[n++] = v;
		else if (f.number == 2)
			while (nvalues < KINDS_MAX && next_number(&f, &v))
				values[nvalues++] = v;
		else if (f.number == 3 && f.bytes.at)
			take_label(r, f.bytes, &who);
	}
	add_frames(r, ids, n, &s);
	if (!who.thread.at)
		who.thread = who.process;
	s.thread = stack_list_thread(r->l, who.process.at, who.process.n, (uint32_t)who.pid,
				     who.thread.at, who.thread.n, (uint32_t)who.tid);
	v = r->counted < KINDS_MAX ? values[r->counted] : 1;
	s.count = v && v < UINT32_MAX ? (uint32_t)v : 1;
	weight = r->weighed < KINDS_MAX ? (int64_t)values[r->weighed] : 1;
	/* Those of a difference may be negative: they are no samples. */
	if (weight <= 0)
		return;
	s.weight = (double)weight * r->to_unit / s.count;
	stack_list_sample(r->l, &s);
}

int stack_list_pprof(struct stack_list *l, const char *bytes, size_t n, struct err *err)
{
	struct reading r = {.l = l};
	struct cursor c = cursor_over(bytes, n);
	struct field f;
	int rc = take_tables(&r, c);

	choose_kinds(&r);
	while (!rc && next_field(&c, &f))
		if (f.number == 2 && f.bytes.at)
			take_sample(&r, f.bytes);
	free(r.strings);
	free(r.functions);
	free(r.mappings);
	free(r.locations);
	free(r.lines);
	table_free(&r.functions_by_id);
	table_free(&r.mappings_by_id);
	table_free(&r.locations_by_id);
	if (rc)
		return err_memory(err, "for a profile of pprof");
	return l->nsamples ? 0 : err_set(err, ERR_FORMAT, "it has no samples of pprof");
}
