/*
 * The reply of a child that read an object's lines. v = varint (base/varint.h).
 *
 *	state   1 byte       enum lines_state
 *	why     text
 *	then, when state is LINES_FOUND, for each known offset, ascending:
 *	index   v            of the offset, + 1
 *	n       v            1 .. LINES_DEPTH_MAX
 *	n times: function text, file text, line v, function offset v; outermost first
 *	0       v            the end
 *
 *	text    v            0 = NULL, else its bytes + 1; then the bytes, none of them 0, and a 0
 */
#include "symbol/lines.h"

#include "base/array.h"
#include "base/varint.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

static void put_varint(struct buf *out, uint64_t v)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buf_put(out, bytes, varint_put(bytes, v));
}

static void put_text(struct buf *out, const char *text)
{
	put_varint(out, text ? strlen(text) + 1 : 0);
	if (text)
		buf_put(out, text, strlen(text) + 1);
}

void lines_put_state(struct buf *out, enum lines_state state, const char *why)
{
	buf_putc(out, (char)state);
	put_text(out, why);
}

void lines_put(struct buf *out, uint32_t index, const struct incident_line *lines, uint32_t n)
{
	uint32_t i;

	put_varint(out, (uint64_t)index + 1);
	put_varint(out, n);
	for (i = 0; i < n; i++) {
		put_text(out, lines[i].function);
		put_text(out, lines[i].file);
		put_varint(out, lines[i].line);
		put_varint(out, lines[i].function_offset);
	}
}

void lines_put_end(struct buf *out)
{
	put_varint(out, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reply {
	const uint8_t *at, *end;
	struct lines *out;
	uint32_t room;
	bool no_memory;
};

static bool get_text(struct reply *r, const char **text)
{
	uint64_t n;

	*text = NULL;
	if (!varint_get(&r->at, r->end, &n))
		return false;
	if (!n)
		return true;
	if (n > (uint64_t)(r->end - r->at) || memchr(r->at, '\0', (size_t)n) != r->at + n - 1)
		return false;
	*text = (const char *)r->at;
	r->at += n;
	return true;
}

static bool get_line(struct reply *r, struct incident_line *line)
{
	uint64_t number;

	if (!get_text(r, &line->function) || !get_text(r, &line->file) ||
	    !varint_get(&r->at, r->end, &number) || number > UINT32_MAX ||
	    !varint_get(&r->at, r->end, &line->function_offset))
		return false;
	line->line = (uint32_t)number;
	return true;
}

static bool make_room(struct reply *r, uint32_t n)
{
	r->no_memory = ARRAY_ROOM(r->out->lines, r->room, r->out->nlines + n) != 0;
	return !r->no_memory;
}

/* Read one offset's lines. */
static bool get_offset(struct reply *r, uint64_t index)
{
	struct lines *out = r->out;
	uint64_t n, i;

	if (!varint_get(&r->at, r->end, &n) || !n || n > LINES_DEPTH_MAX ||
	    out->nlines > UINT32_MAX / 4 || !make_room(r, (uint32_t)n))
		return false;
	for (i = 0; i < n; i++) {
		if (!get_line(r, &out->lines[out->nlines + i]))
			return false;
	}
	out->of_offset[index].first = out->nlines;
	out->of_offset[index].n = (uint32_t)n;
	out->nlines += (uint32_t)n;
	return true;
}

static bool get_all(struct reply *r)
{
	uint64_t index, next = 1;
	const char *why;

	if (r->at == r->end || *r->at >= LINES_STATES)
		return false;
	r->out->state = (enum lines_state)*r->at++;
	if (!get_text(r, &why))
		return false;
	r->out->why = why ? why : "";
	while (r->out->state == LINES_FOUND) {
		if (!varint_get(&r->at, r->end, &index))
			return false;
		if (!index)
			break;
		if (index < next || index > r->out->noffsets || !get_offset(r, index - 1))
			return false;
		next = index + 1;
	}
	return r->at == r->end;
}

int lines_parse(struct buf *reply, uint32_t noffsets, struct lines *out, struct err *err)
{
	struct lines l = {.noffsets = noffsets, .reply = *reply};
	struct reply r = {.out = &l};
	bool good;

	*reply = (struct buf){0};
	r.at = (const uint8_t *)buf_text(&l.reply);
	r.end = r.at + l.reply.len;
	l.of_offset = calloc((size_t)noffsets + 1, sizeof(*l.of_offset));
	r.no_memory = !l.of_offset;
	good = l.of_offset && get_all(&r);
	if (good) {
		*out = l;
		return 0;
	}
	lines_free(&l);
	return r.no_memory ? err_memory(err, "for source lines")
			   : err_set(err, ERR_FORMAT, "its reader's reply is cut off or damaged");
}

void lines_free(struct lines *l)
{
	free(l->of_offset);
	free(l->lines);
	buf_free(&l->reply);
	memset(l, 0, sizeof(*l));
}
