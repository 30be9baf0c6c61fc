/*
 * Decoding segments. The bytes may come from a damaged or hostile file: every count is bounded by
 * the bytes that must hold it before anything is allocated, every index by its count.
 */
#include "model/segment_columns_private.h"

#include "base/bytes.h"
#include "base/deflate.h"
#include "base/planes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 65536u                /* samples, events or names of one segment */

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

/* Not inlined, so that get() is. */
__attribute__((noinline)) static bool get_long(struct cursor *c, uint64_t *v)
{
	return varint_get(&c->at, c->end, v);
}

/* Nearly all values take one byte or two. */
static inline bool get(struct cursor *c, uint64_t *v)
{
	const uint8_t *at = c->at;

	if (c->end - at < 2 || (at[0] & at[1] & 0x80))
		return get_long(c, v);
	*v = at[0] < 0x80 ? at[0] : (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
	c->at += at[0] < 0x80 ? 1 : 2;
	return true;
}

static bool get_u32(struct cursor *c, uint32_t *v)
{
	uint64_t wide;

	if (!get(c, &wide) || wide > UINT32_MAX)
		return false;
	*v = (uint32_t)wide;
	return true;
}

/* ---- header ---------------------------------------------------------------------------------- */

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

static int unpack(struct reader *r, struct cursor *h, size_t nraw)
{
	r->unpacked = malloc(nraw ? nraw : 1);
	return r->unpacked ? inflate_bytes(h->at, cursor_left(h), r->unpacked, nraw) : ERR_MEMORY;
}

/* Convert columns of numbers from planes to varints. */
static int join_planes(struct reader *r, const uint64_t lengths[], size_t nraw)
{
	uint8_t *joined = malloc(nraw ? nraw : 1);
	size_t at = 0;
	unsigned i;
	int rc = joined ? 0 : ERR_MEMORY;

	for (i = 0; !rc && i < SEGMENT_COLUMNS; i++) {
		if (!segment_is_numbers(i))
			memcpy(joined + at, r->unpacked + at, lengths[i]);
		else if (!planes_join(r->unpacked + at, lengths[i], joined + at))
			rc = ERR_FORMAT;
		at += lengths[i];
	}
	if (rc) {
		free(joined);
		return rc;
	}
	free(r->unpacked);
	r->unpacked = joined;
	return 0;
}

/* Locate each column, unpacking where needed; the columns end where the bytes end. */
static int find_columns(struct reader *r, struct cursor *h, uint8_t codec, const uint64_t lengths[])
{
	const uint8_t *at = h->at;
	size_t nraw = 0;
	unsigned i;
	int rc = 0;

	for (i = 0; i < SEGMENT_COLUMNS; i++)
		nraw += lengths[i];
	if (codec == SEGMENT_CODEC_ZLIB || codec == SEGMENT_CODEC_PLANES) {
		rc = unpack(r, h, nraw);
		if (!rc && codec == SEGMENT_CODEC_PLANES)
			rc = join_planes(r, lengths, nraw);
		at = r->unpacked;
	} else if (codec != SEGMENT_CODEC_RAW || (size_t)(h->end - at) != nraw) {
		rc = ERR_FORMAT;
	}
	if (rc == ERR_MEMORY)
		return err_memory(r->err, "while reading a segment");
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
	return cursor_left(&r->columns[column]);
}

static int read_header(struct reader *r, const uint8_t *bytes, size_t n)
{
	struct cursor h = cursor_over(bytes, n);
	struct segment_content *c = r->c;
	uint64_t lengths[SEGMENT_COLUMNS];
	uint8_t codec;
	int rc;

	if (n > SEGMENT_MAX_BYTES)
		return bad(r, "it is larger than 16 MB");
	if (n < 2)
		return bad(r, "it ends at once");
	if (h.at[0] != SEGMENT_VERSION)
		return err_set(r->err, ERR_FORMAT, "a segment has format %u, and this program "
			       "reads format %u only: use the recorder that wrote it", h.at[0],
			       SEGMENT_VERSION);
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
	/* Each of these takes at least a byte in the column named. */
	if (c->nsamples > MAX_COUNT || c->nsamples > column_bytes(r, COLUMN_SAMPLE_TIME) ||
	    c->nevents > MAX_COUNT || c->nevents > column_bytes(r, COLUMN_EVENT_TIME) ||
	    c->nnodes > SEGMENT_MAX_NODES || c->nnodes > column_bytes(r, COLUMN_NODE_FRAME) ||
	    c->nframes > SEGMENT_MAX_NODES || c->nnames > MAX_COUNT ||
	    c->nnames > column_bytes(r, COLUMN_NAMES))
		return bad(r, "it counts more than it holds");
	return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

struct run {
	uint64_t left, value;
};

static bool next_run(struct cursor *c, struct run *run, uint64_t max)
{
	return get(c, &run->left) && run->left && get(c, &run->value) && run->value <= max;
}

static inline bool get_run(struct cursor *c, struct run *run, uint64_t max, uint64_t *v)
{
	if (!run->left && !next_run(c, run, max))
		return false;
	run->left--;
	*v = run->value;
	return true;
}

static bool get_delta(struct cursor *c, uint64_t *previous)
{
	uint64_t z;

	if (!get(c, &z))
		return false;
	*previous += (uint64_t)unzigzag(z);
	return true;
}

/* 0; or 2n: n more than the highest so far; or 2n + 1: n less. At most max. */
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

/* ---- samples --------------------------------------------------------------------------------- */

/* Read the run columns, and the times, which depend on some of them. */
static int read_runs_and_times(struct reader *r)
{
	struct segment_sample *s = r->c->samples, *end = s + r->c->nsamples;
	struct cursor *columns = r->columns;
	struct run weight = {0}, stream = {0}, cpu = {0}, quality = {0};
	struct sample_clock clock;
	uint64_t *last, off, v;

	clock_start(&clock, r->base_tick);
	for (; s < end; s++) {
		if (!get_run(&columns[COLUMN_SAMPLE_WEIGHT], &weight, INT64_MAX, &s->weight))
			return bad(r, "the weight of a sample");
		if (!get_run(&columns[COLUMN_SAMPLE_STREAM], &stream, STREAMS_MAX - 1, &v))
			return bad(r, "the stream of a sample");
		s->stream = (uint8_t)v;
		if (!get_run(&columns[COLUMN_SAMPLE_QUALITY], &quality, QUALITIES - 1, &v))
			return bad(r, "the quality of a sample");
		s->quality = (uint8_t)v;
		if (!get_run(&columns[COLUMN_SAMPLE_CPU], &cpu, UINT16_MAX, &v))
			return bad(r, "the CPU of a sample");
		s->cpu = (uint16_t)v;
		last = clock_of(&clock, s->cpu);
		if (!get(&columns[COLUMN_SAMPLE_TIME], &off))
			return bad(r, "the time of a sample");
		*last += clock_step(s->stream, s->weight) + (uint64_t)unzigzag(off);
		if (!tick_to_ns(*last, &s->time_ns))
			return bad(r, "the time of a sample");
	}
	return 0;
}

/* See column_thread() in segment_build.c. */
static bool get_thread(struct cursor *c, struct recent *recent, uint64_t *highest, uint32_t count,
		       uint32_t *out)
{
	uint64_t code, v;

	if (!get(c, &code))
		return false;
	if (!code) {
		*out = THREAD_NONE;
		return true;
	}
	if (code <= RECENT_THREADS) {
		if (code > recent->n)
			return false;
		*out = recent->values[code - 1];
		recent_front(recent, (uint32_t)code - 1, *out);
		return true;
	}
	code -= RECENT_THREADS + 1;
	v = code & 1 ? *highest - code / 2 : *highest + code / 2 + 1;    /* index + 1 */
	if (!v || v > count)
		return false;
	*highest = v > *highest ? v : *highest;
	*out = (uint32_t)v - 1;
	recent_front(recent, recent->n, *out);
	return true;
}

static int read_threads(struct reader *r)
{
	struct segment_sample *s = r->c->samples, *end = s + r->c->nsamples;
	struct cursor *c = &r->columns[COLUMN_SAMPLE_THREAD];
	struct recent recent = {0};
	uint64_t highest = 0;

	for (; s < end; s++) {
		if (!get_thread(c, &recent, &highest, r->c->nthreads, &s->thread))
			return bad(r, "the thread of a sample");
	}
	return 0;
}

/* See encode_sample_stacks() in segment_seal.c. The nodes must be decoded. */
static bool get_stack(struct reader *r, uint32_t i, struct new_stack *new_stack)
{
	struct segment_content *c = r->c;
	uint64_t code, v;

	if (!get(&r->columns[COLUMN_SAMPLE_STACK], &code))
		return false;
	if (code & 1) {
		v = new_stack_expected(new_stack, c->nodes, c->nnodes) -
		    (uint64_t)unzigzag(code / 2);
		if (v >= c->nnodes)
			return false;
		c->samples[i].stack = (uint32_t)v;
		new_stack_seen(new_stack, (uint32_t)v);
		return true;
	}
	if (code / 2 > i)
		return false;
	c->samples[i].stack = code ? c->samples[i - code / 2].stack : STACK_NONE;
	return true;
}

static int read_stacks(struct reader *r)
{
	struct new_stack new_stack = {0};
	uint32_t i;

	for (i = 0; i < r->c->nsamples; i++) {
		if (!get_stack(r, i, &new_stack))
			return bad(r, "the stack of a sample");
	}
	return 0;
}

/* The nodes must be decoded. */
static int read_samples(struct reader *r)
{
	int rc = read_runs_and_times(r);

	if (!rc)
		rc = read_threads(r);
	if (rc)
		return rc;
	return read_stacks(r);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int read_parents(struct reader *r)
{
	struct segment_content *c = r->c;
	uint64_t up, more;
	uint32_t i;

	for (i = 0; i < c->nnodes;) {
		if (!get(&r->columns[COLUMN_NODE_CHAIN], &more) || more >= c->nnodes - i)
			return bad(r, "the length of a chain of stack nodes");
		if (!get(&r->columns[COLUMN_NODE_PARENT], &up) || (up && up >= i))
			return bad(r, "the caller of a stack node");
		c->nodes[i].parent = up ? i - 1 - (uint32_t)up : STACK_NONE;
		for (i++; more; more--, i++)
			c->nodes[i].parent = i - 1;
	}
	return 0;
}

/* The link to the callee of that rank; NULL when there is none. */
static uint32_t *callee_at(const struct callees *c, uint32_t caller, uint64_t rank)
{
	uint32_t *at = &c->first[caller];

	if (rank >= RECENT_CALLEES)
		return NULL;
	while (*at && rank--)
		at = &c->items[*at - 1].next;
	return *at ? at : NULL;
}

static int read_frames(struct reader *r, struct callees *callees)
{
	struct segment_content *c = r->c;
	uint32_t next = 0, caller, i, *at;
	uint64_t code;

	for (i = 0; i < c->nnodes; i++) {
		struct segment_node *node = &c->nodes[i];

		if (!get(&r->columns[COLUMN_NODE_FRAME], &code))
			return bad(r, "the frame of a stack node");
		caller = node->parent == STACK_NONE ? c->nframes : c->nodes[node->parent].frame;
		if (code & 1) {
			node->frame = next - (uint32_t)(code / 2);
			if (code / 2 > UINT32_MAX || node->frame >= c->nframes)
				return bad(r, "the frame of a stack node");
			callees_add(callees, caller, node->frame);
		} else if (!code && callees->first[caller]) {   /* the usual case: it stays first */
			node->frame = callees->items[callees->first[caller] - 1].frame;
		} else {
			at = callee_at(callees, caller, code / 2);
			if (!at)
				return bad(r, "the frame of a stack node");
			node->frame = callees_front(callees, caller, at);
		}
		if (node->frame >= next)
			next = node->frame + 1;
	}
	return 0;
}

static int read_nodes(struct reader *r)
{
	struct callees callees = {
		.first = calloc((size_t)r->c->nframes + 1, sizeof(*callees.first)),
		.items = malloc(((size_t)r->c->nnodes + 1) * sizeof(*callees.items)),
	};
	int rc;

	if (!callees.first || !callees.items)
		rc = err_memory(r->err, "while reading a segment");
	else
		rc = read_parents(r);
	if (!rc)
		rc = read_frames(r, &callees);
	free(callees.first);
	free(callees.items);
	return rc;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool get_double(struct cursor *c, double *v)
{
	uint64_t bits;

	if (!cursor_number(c, 8, &bits))
		return false;
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

/* ---- texts: names first, then text fields, each NUL-terminated in one block ------------------ */

struct text_block {
	char *at, *end;
};

static char *put_text(struct text_block *t, struct cursor *c)
{
	char *start = t->at;
	uint64_t n;

	if (!get(c, &n) || n > cursor_left(c) || n >= (uint64_t)(t->end - t->at))
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
	/*
	 * A field takes at least 3 bytes; a text its bytes and a length, whose room the NUL takes.
	 */
	field_room = (uint32_t)(column_bytes(&r, COLUMN_EVENT_FIELDS) / 3 + 1);
	text_room = column_bytes(&r, COLUMN_NAMES) + column_bytes(&r, COLUMN_EVENT_FIELDS) + 1;
	c.samples = malloc(((size_t)c.nsamples + 1) * sizeof(*c.samples));
	c.nodes = malloc(((size_t)c.nnodes + 1) * sizeof(*c.nodes));
	c.events = array(c.nevents, sizeof(*c.events));
	c.names = array(c.nnames, sizeof(*c.names));
	c.fields = array(field_room, sizeof(*c.fields));
	c.text = malloc(text_room);
	if (!c.samples || !c.nodes || !c.events || !c.names || !c.fields || !c.text) {
		free(r.unpacked);
		segment_content_free(&c);
		return err_memory(err, "while reading a segment");
	}
	texts.at = c.text;
	texts.end = c.text + text_room;
	rc = read_nodes(&r);
	if (!rc)
		rc = read_samples(&r);
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
