/*
 * Decoding segments. The bytes may come from a damaged or hostile file: every count is bounded by
 * the bytes that must hold it before anything is allocated, every index by its count.
 */
#include "model/segment_columns.h"

#include "base/deflate.h"
#include "base/varint.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 65536u                /* samples, events or names of one segment */

struct cursor {
	const uint8_t *at, *end;
};

struct reader {
	struct segment_content *c;
	struct cursor columns[SEGMENT_COLUMNS];
	uint8_t *unpacked;              /* owned: the columns, when they were compressed */
	uint64_t base_tick;
	struct err *err;
};

static int bad(struct reader *r, const char *what)
{
	return err_set(r->err, ERR_FORMAT, "a segment is damaged: %s", what);
}

static bool get(struct cursor *c, uint64_t *v)
{
	return varint_get(&c->at, c->end, v);
}

static bool get_u32(struct cursor *c, uint32_t *v)
{
	uint64_t wide;

	if (!get(c, &wide) || wide > UINT32_MAX)
		return false;
	*v = (uint32_t)wide;
	return true;
}

/* ---- header ----------------------------------------------------------------------------------- */

static bool tick_to_ns(uint64_t tick, uint64_t *ns)
{
	if (tick > UINT64_MAX / SEGMENT_TICK_NS)
		return false;
	*ns = tick * SEGMENT_TICK_NS;
	return true;
}

static bool read_times(struct reader *r, struct cursor *h)
{
	uint64_t to_t0, length, t0;

	if (!get(h, &r->base_tick) || !get(h, &to_t0) || !get(h, &length))
		return false;
	t0 = r->base_tick + (uint64_t)unzigzag(to_t0);
	if (t0 + length < t0)
		return false;
	return tick_to_ns(t0, &r->c->t0_ns) && tick_to_ns(t0 + length, &r->c->t1_ns);
}

static bool read_streams(struct reader *r, struct cursor *h)
{
	uint64_t n, stream, period;

	if (!get(h, &n) || n > STREAMS_MAX)
		return false;
	while (n--) {
		if (!get(h, &stream) || !get(h, &period) || stream >= STREAMS_MAX)
			return false;
		r->c->period_ns[stream] = period;
	}
	return true;
}

static bool read_column_lengths(struct cursor *h, uint64_t lengths[])
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		if (!get(h, &lengths[i]) || lengths[i] > SEGMENT_MAX_BYTES)
			return false;
		sum += lengths[i];
	}
	return sum <= SEGMENT_MAX_BYTES;
}

/* Where each column is, unpacked where that is needed; the columns end where the bytes end. */
static int find_columns(struct reader *r, struct cursor *h, uint8_t codec, const uint64_t lengths[])
{
	const uint8_t *at = h->at;
	size_t nraw = 0;
	unsigned i;
	int rc = 0;

	for (i = 0; i < SEGMENT_COLUMNS; i++)
		nraw += lengths[i];
	if (codec == SEGMENT_CODEC_ZLIB) {
		r->unpacked = malloc(nraw ? nraw : 1);
		rc = r->unpacked ? inflate_bytes(at, (size_t)(h->end - at), r->unpacked, nraw)
				 : ERR_MEMORY;
		at = r->unpacked;
	} else if (codec != SEGMENT_CODEC_RAW || (size_t)(h->end - at) != nraw) {
		rc = ERR_FORMAT;
	}
	if (rc == ERR_MEMORY)
		return err_set(r->err, rc, "out of memory while reading a segment");
	if (rc)
		return bad(r, "its columns cannot be unpacked");
	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		r->columns[i].at = at;
		at += lengths[i];
		r->columns[i].end = at;
	}
	return 0;
}

static size_t column_bytes(const struct reader *r, enum segment_column column)
{
	return (size_t)(r->columns[column].end - r->columns[column].at);
}

static int read_header(struct reader *r, const uint8_t *bytes, size_t n)
{
	struct cursor h = {bytes, bytes + n};
	struct segment_content *c = r->c;
	uint64_t lengths[SEGMENT_COLUMNS];
	uint8_t codec;
	int rc;

	if (n > SEGMENT_MAX_BYTES)
		return bad(r, "it is larger than 16 MB");
	if (n < 2)
		return bad(r, "it ends at once");
	if (h.at[0] != SEGMENT_VERSION)
		return err_set(r->err, ERR_FORMAT,
			       "a segment is in format %u, which this version does not read (it reads "
			       "%u): use the recorder that wrote it", h.at[0], SEGMENT_VERSION);
	codec = h.at[1];
	h.at += 2;
	if (!read_times(r, &h))
		return bad(r, "its times");
	if (!get_u32(&h, &c->nsamples) || !get_u32(&h, &c->nnodes) || !get_u32(&h, &c->nevents) ||
	    !get_u32(&h, &c->nnames) || !get_u32(&h, &c->nthreads) || !get_u32(&h, &c->nframes) ||
	    !read_streams(r, &h))
		return bad(r, "its counts");
	if (!read_column_lengths(&h, lengths))
		return bad(r, "the lengths of its columns");
	rc = find_columns(r, &h, codec, lengths);
	if (rc)
		return rc;
	/* Each of these takes a byte at least in the column named. */
	if (c->nsamples > MAX_COUNT || c->nsamples > column_bytes(r, COLUMN_SAMPLE_TIME) ||
	    c->nevents > MAX_COUNT || c->nevents > column_bytes(r, COLUMN_EVENT_TIME) ||
	    c->nnodes > SEGMENT_MAX_NODES || c->nnodes > column_bytes(r, COLUMN_NODE_PARENT) ||
	    c->nframes > SEGMENT_MAX_NODES || c->nnames > MAX_COUNT || c->nnames > column_bytes(r, COLUMN_NAMES))
		return bad(r, "it counts more than it holds");
	return 0;
}

/* ---- columns ---------------------------------------------------------------------------------- */

struct run {
	uint64_t left, value;
};

static bool get_run(struct cursor *c, struct run *run, uint64_t max, uint64_t *v)
{
	if (!run->left && (!get(c, &run->left) || !run->left || !get(c, &run->value)))
		return false;
	run->left--;
	*v = run->value;
	return run->value <= max;
}

static bool get_delta(struct cursor *c, uint64_t *previous)
{
	uint64_t z;

	if (!get(c, &z))
		return false;
	*previous += (uint64_t)unzigzag(z);
	return true;
}

/* 0, or 2n: n more than the highest so far, or 2n + 1: n less; at most max. */
static bool get_newest(struct cursor *c, uint64_t *highest, uint64_t max, uint64_t *v)
{
	uint64_t code;

	if (!get(c, &code))
		return false;
	if (!code)
		*v = 0;
	else if (code & 1)
		*v = *highest - code / 2;            /* below zero becomes too large */
	else
		*v = *highest += code / 2;
	return *v <= max && (*v || !code);
}

/* index + 1, 0 = none */
static bool get_index(struct cursor *c, uint32_t count, uint32_t none, uint32_t *out)
{
	uint64_t v;

	if (!get(c, &v) || v > count)
		return false;
	*out = v ? (uint32_t)(v - 1) : none;
	return true;
}

static bool get_sample_time(struct reader *r, struct sample_clock *clock, struct segment_sample *s)
{
	uint64_t *last = clock_of(clock, s->cpu), off;

	if (!get(&r->columns[COLUMN_SAMPLE_TIME], &off))
		return false;
	*last += clock_step(s->stream, s->weight) + (uint64_t)unzigzag(off);
	return tick_to_ns(*last, &s->time_ns);
}

static int read_samples(struct reader *r)
{
	struct segment_content *c = r->c;
	struct run cpu = {0}, weight = {0}, stream = {0}, quality = {0};
	struct sample_clock clock;
	uint64_t newest = 0, v;
	uint32_t i;

	clock_start(&clock, r->base_tick);
	for (i = 0; i < c->nsamples; i++) {
		struct segment_sample *s = &c->samples[i];

		if (!get_run(&r->columns[COLUMN_SAMPLE_WEIGHT], &weight, INT64_MAX, &s->weight))
			return bad(r, "the weight of a sample");
		if (!get_run(&r->columns[COLUMN_SAMPLE_STREAM], &stream, STREAMS_MAX - 1, &v))
			return bad(r, "the stream of a sample");
		s->stream = (uint8_t)v;
		if (!get_run(&r->columns[COLUMN_SAMPLE_CPU], &cpu, UINT16_MAX, &v))
			return bad(r, "the CPU of a sample");
		s->cpu = (uint16_t)v;
		if (!get_sample_time(r, &clock, s))
			return bad(r, "the time of a sample");
		if (!get_index(&r->columns[COLUMN_SAMPLE_THREAD], c->nthreads, THREAD_NONE, &s->thread))
			return bad(r, "the thread of a sample");
		if (!get_newest(&r->columns[COLUMN_SAMPLE_STACK], &newest, c->nnodes, &v))
			return bad(r, "the stack of a sample");
		s->stack = v ? (uint32_t)(v - 1) : STACK_NONE;
		if (!get_run(&r->columns[COLUMN_SAMPLE_QUALITY], &quality, QUALITIES - 1, &v))
			return bad(r, "the quality of a sample");
		s->quality = (uint8_t)v;
	}
	return 0;
}

/* The frame of a node whose parent's frame has this slot; see encode_nodes() in segment_seal.c. */
static bool get_frame(struct reader *r, uint32_t *slot, uint64_t *highest, uint32_t *frame)
{
	uint64_t code, v;                            /* v: frame + 1 */

	if (!get(&r->columns[COLUMN_NODE_FRAME], &code))
		return false;
	if (!code)
		v = *slot;
	else if (code & 1)
		v = *highest += code / 2 + 1;
	else
		v = *highest - (code / 2 - 1);
	if (!v || v > r->c->nframes)
		return false;
	*slot = (uint32_t)v;
	*frame = (uint32_t)(v - 1);
	return true;
}

static int read_nodes(struct reader *r)
{
	struct segment_content *c = r->c;
	uint32_t *last = calloc((size_t)c->nframes + 1, sizeof(*last));
	uint64_t highest = 0, up;
	uint32_t i;
	int rc = 0;

	if (!last)
		return err_set(r->err, ERR_MEMORY, "out of memory while reading a segment");
	for (i = 0; i < c->nnodes && !rc; i++) {
		struct segment_node *node = &c->nodes[i];

		if (!get(&r->columns[COLUMN_NODE_PARENT], &up) || up > i) {
			rc = bad(r, "the caller of a stack node");
			break;
		}
		node->parent = up ? i - (uint32_t)up : STACK_NONE;
		if (!get_frame(r, &last[up ? c->nodes[node->parent].frame : c->nframes], &highest,
			       &node->frame))
			rc = bad(r, "the frame of a stack node");
	}
	free(last);
	return rc;
}

static bool get_double(struct cursor *c, double *v)
{
	uint64_t bits = 0;
	unsigned i;

	if (c->end - c->at < 8)
		return false;
	for (i = 0; i < 8; i++)
		bits |= (uint64_t)*c->at++ << (8 * i);
	memcpy(v, &bits, sizeof(*v));
	return true;
}

static int read_events(struct reader *r)
{
	struct segment_content *c = r->c;
	struct run kind = {0}, flags = {0}, cpu = {0};
	uint64_t tick = r->base_tick, thread = 0, stack = 0, v;
	uint32_t i;

	for (i = 0; i < c->nevents; i++) {
		struct segment_event *e = &c->events[i];

		if (!get_delta(&r->columns[COLUMN_EVENT_TIME], &tick) ||
		    !tick_to_ns(tick, &e->time_ns))
			return bad(r, "the time of an event");
		if (!get_run(&r->columns[COLUMN_EVENT_KIND], &kind, EVENT_KINDS - 1, &v))
			return bad(r, "the kind of an event");
		e->kind = (uint32_t)v;
		if (!get_run(&r->columns[COLUMN_EVENT_FLAGS], &flags, UINT32_MAX, &v))
			return bad(r, "the flags of an event");
		e->flags = (uint32_t)v;
		if (!get_run(&r->columns[COLUMN_EVENT_CPU], &cpu, UINT16_MAX, &v))
			return bad(r, "the CPU of an event");
		e->cpu = (uint16_t)v;
		if (!get_newest(&r->columns[COLUMN_EVENT_THREAD], &thread, c->nthreads, &v))
			return bad(r, "the thread of an event");
		e->thread = v ? (uint32_t)(v - 1) : THREAD_NONE;
		if (!get_newest(&r->columns[COLUMN_EVENT_STACK], &stack, c->nnodes, &v))
			return bad(r, "the stack of an event");
		e->stack = v ? (uint32_t)(v - 1) : STACK_NONE;
		if (!get_index(&r->columns[COLUMN_EVENT_PROVIDER], c->nnames, UINT32_MAX,
			       &e->provider) ||
		    !get_index(&r->columns[COLUMN_EVENT_NAME], c->nnames, UINT32_MAX, &e->name))
			return bad(r, "the name of an event");
		if (!get_double(&r->columns[COLUMN_EVENT_VALUE], &e->value))
			return bad(r, "the value of an event");
	}
	return 0;
}

/* ---- texts: names first, then text fields, each NUL-terminated in one block --------------------- */

struct text_block {
	char *at, *end;
};

static char *put_text(struct text_block *t, struct cursor *c)
{
	char *start = t->at;
	uint64_t n;

	if (!get(c, &n) || n > (uint64_t)(c->end - c->at) || n >= (uint64_t)(t->end - t->at))
		return NULL;
	memcpy(start, c->at, n);
	start[n] = '\0';
	t->at += n + 1;
	c->at += n;
	return start;
}

static int read_names(struct reader *r, struct text_block *texts)
{
	uint32_t i;

	for (i = 0; i < r->c->nnames; i++) {
		r->c->names[i] = put_text(texts, &r->columns[COLUMN_NAMES]);
		if (!r->c->names[i])
			return bad(r, "a name");
	}
	return 0;
}

static bool read_field(struct reader *r, struct cursor *at, struct text_block *texts,
		       struct segment_field *f)
{
	uint64_t v;

	if (!get_u32(at, &f->name) || f->name >= r->c->nnames || at->at >= at->end)
		return false;
	f->value.name = r->c->names[f->name];
	f->value.type = (enum field_type)*at->at++;
	switch (f->value.type) {
	case FIELD_INT:
		if (!get(at, &v))
			return false;
		f->value.v.i = unzigzag(v);
		return true;
	case FIELD_UINT:
		return get(at, &f->value.v.u);
	case FIELD_DOUBLE:
		return get_double(at, &f->value.v.d);
	case FIELD_TEXT:
		f->value.v.text = put_text(texts, at);
		return f->value.v.text != NULL;
	}
	return false;
}

static int read_fields(struct reader *r, struct text_block *texts, uint32_t room)
{
	struct cursor *at = &r->columns[COLUMN_EVENT_FIELDS];
	struct segment_content *c = r->c;
	uint32_t i, j;

	for (i = 0; i < c->nevents; i++) {
		struct segment_event *e = &c->events[i];

		if (!get_u32(at, &e->nfields) || e->nfields > EVENT_MAX_FIELDS ||
		    e->nfields > room - c->nfields)
			return bad(r, "the number of an event's fields");
		e->first_field = c->nfields;
		for (j = 0; j < e->nfields; j++) {
			if (!read_field(r, at, texts, &c->fields[c->nfields++]))
				return bad(r, "a field of an event");
		}
	}
	return 0;
}

static void *array(uint32_t n, size_t item_bytes)
{
	return calloc(n ? n : 1, item_bytes);
}

int segment_decode(const uint8_t *bytes, size_t n, struct segment_content *out, struct err *err)
{
	struct segment_content c = {0};
	struct reader r = {.c = &c, .err = err};
	struct text_block texts;
	uint32_t field_room;
	size_t text_room;
	int rc = read_header(&r, bytes, n);

	if (rc) {
		free(r.unpacked);
		return rc;
	}
	/* A field takes 3 bytes at least; a text its bytes and a length, which is the room for NUL. */
	field_room = (uint32_t)(column_bytes(&r, COLUMN_EVENT_FIELDS) / 3 + 1);
	text_room = column_bytes(&r, COLUMN_NAMES) + column_bytes(&r, COLUMN_EVENT_FIELDS) + 1;
	c.samples = array(c.nsamples, sizeof(*c.samples));
	c.nodes = array(c.nnodes, sizeof(*c.nodes));
	c.events = array(c.nevents, sizeof(*c.events));
	c.names = array(c.nnames, sizeof(*c.names));
	c.fields = array(field_room, sizeof(*c.fields));
	c.text = malloc(text_room);
	if (!c.samples || !c.nodes || !c.events || !c.names || !c.fields || !c.text) {
		free(r.unpacked);
		segment_content_free(&c);
		return err_set(err, ERR_MEMORY, "out of memory while reading a segment");
	}
	texts.at = c.text;
	texts.end = c.text + text_room;
	rc = read_samples(&r);
	if (!rc)
		rc = read_nodes(&r);
	if (!rc)
		rc = read_events(&r);
	if (!rc)
		rc = read_names(&r, &texts);
	if (!rc)
		rc = read_fields(&r, &texts, field_room);
	free(r.unpacked);
	if (rc)
		segment_content_free(&c);
	else
		*out = c;
	return rc;
}

void segment_content_free(struct segment_content *c)
{
	free(c->samples);
	free(c->nodes);
	free(c->events);
	free(c->names);
	free(c->fields);
	free(c->text);
	memset(c, 0, sizeof(*c));
}
