#include "managed/node/object.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 12u                        /* of strings made of strings */
#define PIECE_UNITS 4096u
#define LOCALS_MAX 100000u
#define LOCALS_INLINE 75u                    /* more are in a table of their own */

bool v8_word(const struct managed_memory *m, uint64_t object, unsigned offset, uint64_t *out)
{
	uint8_t bytes[8];

	if (!v8_is_object(object) || !managed_read(m, object - 1 + offset, bytes, sizeof(bytes)))
		return false;
	*out = le64(bytes);
	return true;
}

int v8_type(const struct managed_memory *m, uint64_t object)
{
	uint8_t bytes[2];
	uint64_t map;

	if (!v8_word(m, object, 0, &map) || !v8_is_object(map) ||
	    !managed_read(m, map - 1 + V8_MAP_TYPE, bytes, sizeof(bytes)))
		return -1;
	return le16(bytes);
}

/* ---- strings --------------------------------------------------------------------------------- */

struct text_walk {
	const struct v8_layout *l;
	const struct managed_memory *m;
	/* Units of 1 byte (Latin-1) or 2 (UTF-16). returns  false: enough */
	bool (*take)(void *ctx, const uint8_t *units, size_t n, unsigned width);
	void *ctx;
};

static bool take_units(const struct text_walk *w, uint64_t at, uint32_t n, unsigned width)
{
	uint8_t units[PIECE_UNITS];
	uint32_t piece, most = PIECE_UNITS / width;

	for (; n; n -= piece, at += (uint64_t)piece * width) {
		piece = n < most ? n : most;
		if (!managed_read(w->m, at, units, (size_t)piece * width))
			return false;
		if (!w->take(w->ctx, units, piece, width))
			return true;
	}
	return true;
}

static bool walk_text(const struct text_walk *w, uint64_t s, uint32_t from, uint32_t n,
		      unsigned depth);

/* The two halves of a string that was put together. */
static bool walk_halves(const struct text_walk *w, uint64_t first, uint64_t second, uint32_t from,
			uint32_t n, unsigned depth)
{
	uint64_t word;
	uint32_t length;

	if (!v8_word(w->m, first, 8, &word))
		return false;
	length = (uint32_t)(word >> 32);
	if (from < length) {
		uint32_t part = n < length - from ? n : length - from;

		if (!walk_text(w, first, from, part, depth))
			return false;
		n -= part;
		from = length;
	}
	return !n || walk_text(w, second, from - length, n, depth);
}

/* n characters from `from` on, or all that there are. */
static bool walk_text(const struct text_walk *w, uint64_t s, uint32_t from, uint32_t n,
		      unsigned depth)
{
	int type = v8_type(w->m, s);
	uint8_t head[32];
	uint64_t first, second;
	uint32_t length;
	unsigned width;

	if (type < 0 || type & w->l->not_string_mask || depth > DEPTH_MAX ||
	    !managed_read(w->m, s - 1, head, 16))
		return false;
	length = le32(head + 12);
	if (from > length || length > V8_SOURCE_MAX)
		return false;
	n = n < length - from ? n : length - from;
	width = type & 8 ? 1 : 2;
	if (!n)
		return true;
	if ((type & 7) == 0)
		return take_units(w, s - 1 + 16 + (uint64_t)from * width, n, width);
	if (!managed_read(w->m, s - 1, head, sizeof(head)))
		return false;
	first = le64(head + 16);
	second = le64(head + 24);
	switch (type & 7) {
	case 1:
		return walk_halves(w, first, second, from, n, depth + 1);
	case 2:
		return take_units(w, second + (uint64_t)from * width, n, width);
	case 3:
		return v8_is_count(second) &&
		       walk_text(w, first, (uint32_t)(second >> 32) + from, n, depth + 1);
	case 5:
		return walk_text(w, first, from, n, depth + 1);
	default:
		return false;
	}
}

struct utf8_text {
	char *out;
	size_t room, n;
};

/* A character that does not print would break lines and lists. */
static bool take_utf8(void *ctx, const uint8_t *units, size_t n, unsigned width)
{
	struct utf8_text *t = ctx;
	size_t i = 0;

	while (i < n) {
		uint32_t c = width == 1 ? units[i++] : utf16_next(units, n, &i);

		if (t->n + 5 > t->room)
			return false;
		t->n += utf8_encode(c < 0x20 || c == 0x7f ? ' ' : c, t->out + t->n);
	}
	return true;
}

static bool read_text(const struct v8_layout *l, const struct managed_memory *m, uint64_t s,
		      char *out, size_t room)
{
	struct utf8_text t = {.out = out, .room = room};
	const struct text_walk w = {.l = l, .m = m, .take = take_utf8, .ctx = &t};
	bool ok = walk_text(&w, s, 0, UINT32_MAX, 0);

	out[ok ? t.n : 0] = '\0';
	return ok;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* What a ScopeInfo says of names and positions, by its flags. */
static void read_scope(const struct v8_layout *l, const struct managed_memory *m, uint64_t scope,
		       struct v8_function *out)
{
	uint64_t flags, locals, word;
	unsigned at = 8u * (1u + l->row.scope_first);

	if (!v8_word(m, scope, 8, &flags) || !v8_word(m, scope, 24, &locals) ||
	    !v8_is_count(locals) || locals >> 32 > LOCALS_MAX)
		return;
	/* A small integer up to 12.4, then a u32. */
	flags = flags & UINT32_MAX ? flags & UINT32_MAX : flags >> 32;
	locals >>= 32;
	if (l->row.scope_first > 3 && v8_word(m, scope, 32, &word) && v8_is_count(word))
		out->position = (int32_t)(word >> 32);
	at += (flags & 15) == 5 ? 8 : 0;
	at += 8u * (unsigned)(locals < LOCALS_INLINE ? 2 * locals : 1 + locals);
	at += flags >> 10 & 1 ? 8 : 0;
	if (flags >> 12 & 3) {
		if (v8_word(m, scope, at, &word) && v8_is_object(word))
			read_text(l, m, word, out->name, sizeof(out->name));
		at += 16;
	}
	if (flags >> 14 & 1) {
		if (!out->name[0] && v8_word(m, scope, at, &word) && v8_is_object(word))
			read_text(l, m, word, out->name, sizeof(out->name));
		at += 8;
	}
	if (l->row.scope_first == 3 && v8_word(m, scope, at, &word) && v8_is_count(word))
		out->position = (int32_t)(word >> 32);
}

/* Its script; a function that was debugged has its script in a DebugInfo. */
static uint64_t script_of(const struct v8_layout *l, const struct managed_memory *m,
			  uint64_t shared)
{
	uint64_t word, inner;
	unsigned at;

	if (!v8_word(m, shared, l->row.shared_script, &word) || !v8_is_object(word) || !l->script)
		return 0;
	if (v8_type(m, word) == l->script)
		return word;
	for (at = 8; at <= 64; at += 8)
		if (v8_word(m, word, at, &inner) && v8_is_object(inner) &&
		    v8_type(m, inner) == l->script)
			return inner;
	return 0;
}

static bool read_mark(const struct v8_layout *l, const struct managed_memory *m, uint64_t shared,
		      struct v8_mark *out)
{
	uint8_t bytes[V8_SHARED_BYTES];

	*out = (struct v8_mark){.shared = shared};
	if (v8_type(m, shared) != l->shared || !managed_read(m, shared - 1, bytes, sizeof(bytes)))
		return false;
	out->data[0] = le64(bytes + l->row.shared_data[0]);
	out->data[1] = l->row.shared_data[1] ? le64(bytes + l->row.shared_data[1]) : 0;
	out->name = le64(bytes + l->row.shared_name);
	out->script_word = le64(bytes + l->row.shared_script);
	v8_word(m, out->script_word, V8_SCRIPT_ID, &out->script_id);
	return true;
}

bool v8_mark_is(const struct v8_layout *l, const struct managed_memory *m,
		const struct v8_mark *mark)
{
	struct v8_mark now;

	return read_mark(l, m, mark->shared, &now) && memcmp(&now, mark, sizeof(now)) == 0;
}

bool v8_function_read(const struct v8_layout *l, const struct managed_memory *m, uint64_t shared,
		      struct v8_function *out)
{
	*out = (struct v8_function){.position = -1};
	if (!read_mark(l, m, shared, &out->mark))
		return false;
	if (v8_is_object(out->mark.name)) {
		if (v8_type(m, out->mark.name) == l->scope_info)
			read_scope(l, m, out->mark.name, out);
		else
			read_text(l, m, out->mark.name, out->name, sizeof(out->name));
	}
	out->script = script_of(l, m, shared);
	/* What was read in between is of one function. */
	return v8_mark_is(l, m, &out->mark);
}

/* Does what a function's data is lead to this bytecode? */
static bool leads_to(const struct v8_layout *l, const struct managed_memory *m, uint64_t data,
		     uint64_t bytecode)
{
	unsigned depth;
	int type;

	for (depth = 0; depth < 3 && v8_is_object(data); depth++) {
		if (data == bytecode)
			return true;
		type = v8_type(m, data);
		if (type == l->interpreter_data) {
			if (!v8_word(m, data, 8, &data))
				return false;
		} else if (type != l->code || !v8_word(m, data, l->row.code_deopt, &data)) {
			return false;
		}
	}
	return false;
}

uint64_t v8_shared(const struct v8_layout *l, const struct managed_memory *m, uint64_t function)
{
	uint64_t word, shared;
	int type;

	if (!v8_word(m, function, 0, &word))
		return 0;
	/* A collection has moved it: its first word is its new address. */
	if (!(word & 1))
		function = word + 1;
	type = v8_type(m, function);
	if (type < l->function_first || type > l->function_last ||
	    !v8_word(m, function, l->row.function_shared, &shared) || !v8_is_object(shared))
		return 0;
	return shared;
}

bool v8_mark_has(const struct v8_layout *l, const struct managed_memory *m,
		 const struct v8_mark *mark, uint64_t bytecode)
{
	return leads_to(l, m, mark->data[0], bytecode) ||
	       (l->row.shared_data[1] && leads_to(l, m, mark->data[1], bytecode));
}

bool v8_mark_still(const struct v8_layout *l, const struct managed_memory *m, struct v8_mark *mark)
{
	struct v8_mark now;

	if (!read_mark(l, m, mark->shared, &now) || now.name != mark->name ||
	    now.script_word != mark->script_word || now.script_id != mark->script_id)
		return false;
	*mark = now;
	return true;
}

uint64_t v8_shared_of(const struct v8_layout *l, const struct managed_memory *m, uint64_t function,
		      uint64_t bytecode)
{
	struct v8_mark mark;

	return read_mark(l, m, v8_shared(l, m, function), &mark) &&
	       v8_mark_has(l, m, &mark, bytecode) ? mark.shared : 0;
}

/* ---- scripts --------------------------------------------------------------------------------- */

struct line_ends {
	uint32_t *ends;
	uint32_t n, room, at;
	uint32_t last;                       /* the character before */
	bool failed;
};

/* The ends of lines, as V8 counts them: the last character of \n, \r, \r\n, U+2028 and U+2029. */
static bool take_lines(void *ctx, const uint8_t *units, size_t n, unsigned width)
{
	struct line_ends *e = ctx;
	size_t i;

	for (i = 0; i < n; i++, e->at++) {
		uint32_t c = width == 1 ? units[i] : le16(units + 2 * i);

		if (c == '\n' && e->last == '\r' && e->n)
			e->ends[e->n - 1] = e->at;
		e->failed |= e->n >= V8_LINES_MAX;
		if (!e->failed && (c == '\r' || c == 0x2028 || c == 0x2029 ||
				   (c == '\n' && e->last != '\r'))) {
			if (ARRAY_ROOM(e->ends, e->room, e->n + 1))
				e->failed = true;
			else
				e->ends[e->n++] = e->at;
		}
		e->last = c;
		if (e->failed)
			return false;
	}
	return true;
}

bool v8_script_read(const struct v8_layout *l, const struct managed_memory *m, uint64_t script,
		    struct v8_script *out)
{
	struct line_ends e = {0};
	const struct text_walk w = {.l = l, .m = m, .take = take_lines, .ctx = &e};
	uint64_t name, source;

	memset(out, 0, sizeof(*out));
	if (v8_type(m, script) != l->script || !v8_word(m, script, 16, &name) ||
	    !v8_word(m, script, 8, &source))
		return false;
	if (v8_is_object(name))
		read_text(l, m, name, out->name, sizeof(out->name));
	if (!v8_is_object(source) || !walk_text(&w, source, 0, UINT32_MAX, 0) || e.failed) {
		free(e.ends);
		return true;
	}
	out->ends = e.ends;
	out->nends = e.n;
	return true;
}

uint32_t v8_line(const struct v8_script *s, int32_t position)
{
	uint32_t low = 0, high = s->nends;

	if (position < 0 || !s->ends)
		return 0;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (s->ends[middle] < (uint32_t)position)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 1;
}
