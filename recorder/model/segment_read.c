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

/* What memory is kept for: what the content consists of, then what decoding needs. */
enum piece { SAMPLES, NODES, EVENTS, FIELDS, TEXTS, NAMES, UNPACKED, SPLIT, CALLERS, CALLEES };
_Static_assert(CALLEES + 1 == SEGMENT_PIECES, "segment.h counts the pieces");

enum part { ALL, EVENTS_ALONE, TIMES_ALONE, SUMS, HEAD_ALONE };

struct reader {
	struct segment_content *c;
	uint32_t nnames, fields_room;
	const char **names;             /* their texts are the content's */
	char *text_at, *text_end;       /* room left for texts */
	struct cursor columns[SEGMENT_COLUMNS];
	struct planes numbers[SEGMENT_COLUMNS];   /* the same of columns of numbers */
	struct planes_rest rest[SEGMENT_COLUMNS];
	uint64_t base_tick;
	enum part part;
	bool has_losses;                /* SUMS: an event says that something was lost */
	struct err *err;
};

static bool is_wanted(const struct reader *r, unsigned column)
{
	if (r->part == ALL || (r->part == SUMS && column == COLUMN_EVENT_KIND))
		return true;
	return r->part == EVENTS_ALONE ? segment_is_of_events(column)
				       : column <= COLUMN_SAMPLE_QUALITY;
}

static int report_damage(struct reader *r, const char *what)
{
	return err_set(r->err, ERR_FORMAT, "a segment is damaged: %s", what);
}

/* Memory for n items, not zeroed: that of the content before, if it is large enough. */
static void *room_for(struct reader *r, enum piece piece, size_t n, size_t item_bytes)
{
	struct segment_memory *m = &r->c->memory[piece];

	if (!m->at || m->bytes < n * item_bytes) {
		free(m->at);
		m->bytes = n * item_bytes;
		m->at = malloc(m->bytes ? m->bytes : 1);
	}
	return m->at;
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

/* Open the columns of numbers that somebody looks into, putting them in planes where needed. */
static int open_numbers(struct reader *r, bool in_planes, size_t nraw)
{
	size_t ends[VARINT_MAX_BYTES], n;
	const uint8_t *at;
	uint8_t *split;
	unsigned i;

	split = in_planes ? NULL : room_for(r, SPLIT, nraw, 1);
	if (!in_planes && !split)
		return ERR_MEMORY;
	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		if (!segment_is_numbers(i) || !is_wanted(r, i))
			continue;
		at = r->columns[i].at;
		n = cursor_left(&r->columns[i]);
		if (split) {
			planes_split(at, n, split, ends);
			at = split;
			split += n;
		}
		if (!planes_open(&r->numbers[i], &r->rest[i], at, n))
			return ERR_FORMAT;
	}
	return 0;
}

/* Locate each column, unpacking where needed; the columns end where the bytes end. */
static int find_columns(struct reader *r, struct cursor *h, uint8_t codec, const uint64_t lengths[])
{
	uint8_t *unpacked;
	const uint8_t *at = h->at;
	size_t nraw = 0;
	unsigned i;
	int rc = 0;

	for (i = 0; i < SEGMENT_COLUMNS; i++)
		nraw += lengths[i];
	if (codec == SEGMENT_CODEC_ZLIB || codec == SEGMENT_CODEC_PLANES) {
		at = unpacked = room_for(r, UNPACKED, nraw, 1);
		rc = unpacked ? inflate_unchecked(h->at, cursor_left(h), unpacked, nraw)
			      : ERR_MEMORY;
	} else if (codec != SEGMENT_CODEC_RAW || (size_t)(h->end - at) != nraw) {
		rc = ERR_FORMAT;
	}
	for (i = 0; !rc && i < SEGMENT_COLUMNS; i++) {
		r->columns[i] = cursor_over(at, lengths[i]);
		at += lengths[i];
	}
	if (!rc)
		rc = open_numbers(r, codec == SEGMENT_CODEC_PLANES, nraw);
	if (rc == ERR_MEMORY)
		return err_memory(r->err, "while reading a segment");
	return rc ? report_damage(r, "its columns cannot be unpacked") : 0;
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
		return report_damage(r, "it is larger than 16 MB");
	if (n < 2)
		return report_damage(r, "it ends at once");
	if (h.at[0] != SEGMENT_VERSION)
		return err_set(r->err, ERR_FORMAT, "a segment has format %u, and this program "
			       "reads format %u only: use the recorder that wrote it", h.at[0],
			       SEGMENT_VERSION);
	codec = h.at[1];
	h.at += 2;
	if (!read_times(r, &h))
		return report_damage(r, "its times");
	if (!get_u32(&h, &c->nsamples) || !get_u32(&h, &c->nnodes) || !get_u32(&h, &c->nevents) ||
	    !get_u32(&h, &r->nnames) || !get_u32(&h, &c->nthreads) || !get_u32(&h, &c->nframes) ||
	    !read_streams(r, &h))
		return report_damage(r, "its counts");
	if (!read_column_lengths(&h, lengths))
		return report_damage(r, "the lengths of its columns");
	rc = r->part == HEAD_ALONE ? 0 : find_columns(r, &h, codec, lengths);
	if (rc || r->part == HEAD_ALONE)
		return rc;
	/* Each of these takes at least a byte in the column named. */
	if (c->nsamples > MAX_COUNT || c->nsamples > column_bytes(r, COLUMN_SAMPLE_TIME) ||
	    c->nevents > MAX_COUNT || c->nevents > column_bytes(r, COLUMN_EVENT_TIME) ||
	    c->nnodes > SEGMENT_MAX_NODES || c->nnodes > column_bytes(r, COLUMN_NODE_FRAME) ||
	    c->nframes > SEGMENT_MAX_NODES || r->nnames > MAX_COUNT ||
	    r->nnames > column_bytes(r, COLUMN_NAMES))
		return report_damage(r, "it counts more than it holds");
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

/* See column_newest() in segment_build.c. An index below count; UINT32_MAX = none. */
static bool get_newest(struct cursor *c, uint64_t *highest, uint32_t count, uint32_t *out)
{
	uint64_t code, v = 0;                /* v: index + 1, 0 = none */

	if (!get(c, &code))
		return false;
	if (code & 1)
		v = *highest - code / 2;             /* below zero becomes too large */
	else if (code)
		v = *highest += code / 2;
	*out = (uint32_t)v - 1;
	return v <= count && (v || !code);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Read the run columns, and the times, which depend on some of them. */
static int read_runs_and_times(struct reader *r)
{
	struct incident_sample *s = r->c->samples, *end = s + r->c->nsamples;
	struct cursor *columns = r->columns;
	struct run weight = {0}, stream = {0}, cpu = {0}, quality = {0};
	struct planes times = r->numbers[COLUMN_SAMPLE_TIME];
	struct sample_clock clock;
	uint64_t *last, off, v;

	clock_start(&clock, r->base_tick);
	for (; s < end; s++) {
		if (!get_run(&columns[COLUMN_SAMPLE_WEIGHT], &weight, INT64_MAX, &v))
			return report_damage(r, "the weight of a sample");
		s->weight = v;
		if (!get_run(&columns[COLUMN_SAMPLE_STREAM], &stream, STREAMS_MAX - 1, &v))
			return report_damage(r, "the stream of a sample");
		s->stream = (uint8_t)v;
		if (!get_run(&columns[COLUMN_SAMPLE_QUALITY], &quality, QUALITIES - 1, &v))
			return report_damage(r, "the quality of a sample");
		s->quality = (uint8_t)v;
		if (!get_run(&columns[COLUMN_SAMPLE_CPU], &cpu, UINT16_MAX, &v))
			return report_damage(r, "the CPU of a sample");
		s->cpu = (uint16_t)v;
		last = clock_of(&clock, s->cpu);
		if (!planes_next(&times, &off))
			return report_damage(r, "the time of a sample");
		*last += clock_step(s->stream, s->weight) + (uint64_t)unzigzag(off);
		if (!tick_to_ns(*last, &v))
			return report_damage(r, "the time of a sample");
		s->time_ns = v;
	}
	return 0;
}

/* See column_thread() in segment_build.c. */
static inline bool get_thread(struct planes *p, struct recent *recent, uint64_t *highest,
			      uint32_t count, uint32_t *out)
{
	uint64_t code, v;

	if (!planes_next(p, &code))
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

/* See encode_sample_stacks() in segment_seal.c. The nodes must be decoded. */
static inline bool get_stack(struct reader *r, struct planes *p, uint32_t i,
			     struct new_stack *new_stack)
{
	struct segment_content *c = r->c;
	uint64_t code, v;

	if (!planes_next(p, &code))
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

static int read_samples(struct reader *r)
{
	struct segment_content *c = r->c;
	struct planes threads = r->numbers[COLUMN_SAMPLE_THREAD];
	struct planes stacks = r->numbers[COLUMN_SAMPLE_STACK];
	struct recent recent = {0};
	struct new_stack new_stack = {0};
	uint64_t highest = 0;
	uint32_t i;
	int rc = read_runs_and_times(r);

	for (i = 0; !rc && i < c->nsamples; i++) {
		if (!get_thread(&threads, &recent, &highest, c->nthreads, &c->samples[i].thread))
			rc = report_damage(r, "the thread of a sample");
		else if (!get_stack(r, &stacks, i, &new_stack))
			rc = report_damage(r, "the stack of a sample");
	}
	return rc;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The link to the callee of that rank; NULL when there is none. */
static uint32_t *callee_at(const struct callees *c, uint32_t caller, uint64_t rank)
{
	uint32_t *at = &c->first[caller].next;

	if (rank >= RECENT_CALLEES)
		return NULL;
	while (*at && rank--)
		at = &c->items[*at - 1].next;
	return *at ? at : NULL;
}

/* A frame that followed its caller's before, but was not the last one. */
static bool get_callee(struct callees *callees, uint32_t caller, uint64_t rank, uint32_t *frame)
{
	uint32_t *at = callee_at(callees, caller, rank);

	if (at)
		*frame = callees_front(callees, caller, at);
	return at != NULL;
}

/* See encode_nodes() in segment_seal.c. next: the number after the highest frame so far. */
static inline bool get_frame(struct planes *p, struct callees *callees, uint32_t nframes,
			     uint32_t caller, uint32_t *next, uint32_t *frame)
{
	uint64_t code;

	if (!planes_next(p, &code))
		return false;
	if (code & 1) {
		*frame = *next - (uint32_t)(code / 2);
		if (code / 2 > UINT32_MAX || *frame >= nframes)
			return false;
		callees_add(callees, caller, *frame);
		if (*frame >= *next)
			*next = *frame + 1;
		return true;
	}
	if (code || !callees->first[caller].next)
		return get_callee(callees, caller, code / 2, frame);
	*frame = callees->first[caller].frame;       /* the usual case: it stays first */
	return true;
}

/* Chain by chain; callees come after their callers. */
static int read_chains(struct reader *r, struct callees *callees)
{
	struct planes chains = r->numbers[COLUMN_NODE_CHAIN];
	struct planes parents = r->numbers[COLUMN_NODE_PARENT];
	struct planes frames = r->numbers[COLUMN_NODE_FRAME];
	struct incident_stack *nodes = r->c->nodes;
	uint32_t nnodes = r->c->nnodes, nframes = r->c->nframes, next = 0, i, parent, caller, frame;
	uint64_t up, more;

	for (i = 0; i < nnodes;) {
		if (!planes_next(&chains, &more) || more >= nnodes - i)
			return report_damage(r, "the length of a chain of stack nodes");
		if (!planes_next(&parents, &up) || (up && up >= i))
			return report_damage(r, "the caller of a stack node");
		parent = up ? i - 1 - (uint32_t)up : STACK_NONE;
		caller = up ? nodes[parent].frame : nframes;
		for (more += i; i <= more; parent = i++, caller = frame) {
			if (!get_frame(&frames, callees, nframes, caller, &next, &frame))
				return report_damage(r, "the frame of a stack node");
			nodes[i] = (struct incident_stack){.parent = parent, .frame = frame};
		}
	}
	return 0;
}

static int read_nodes(struct reader *r)
{
	size_t ncallers = (size_t)r->c->nframes + 1;
	struct callees callees = {
		.first = room_for(r, CALLERS, ncallers, sizeof(*callees.first)),
		.items = room_for(r, CALLEES, r->c->nnodes, sizeof(*callees.items)),
	};

	if (!callees.first || !callees.items)
		return err_memory(r->err, "while reading a segment");
	memset(callees.first, 0, ncallers * sizeof(*callees.first));
	return read_chains(r, &callees);
}

/* ---- names, events and their fields; texts are copied into one block, each with a NUL -------- */

static const char *get_text(struct reader *r, struct cursor *c)
{
	char *start = r->text_at;
	uint64_t n;

	if (!get(c, &n) || n > cursor_left(c) || n >= (uint64_t)(r->text_end - start))
		return NULL;
	memcpy(start, c->at, n);
	start[n] = '\0';
	r->text_at += n + 1;
	c->at += n;
	return start;
}

static int read_names(struct reader *r)
{
	uint32_t i;

	for (i = 0; i < r->nnames; i++) {
		r->names[i] = get_text(r, &r->columns[COLUMN_NAMES]);
		if (!r->names[i])
			return report_damage(r, "a name");
	}
	return 0;
}

/* A name by its index + 1; 0 = none. */
static bool get_name(struct reader *r, enum segment_column column, const char **out)
{
	uint64_t v;

	if (!get(&r->columns[column], &v) || v > r->nnames)
		return false;
	*out = v ? r->names[v - 1] : "";
	return true;
}

static bool get_double(struct cursor *c, double *v)
{
	uint64_t bits;

	if (!cursor_number(c, 8, &bits))
		return false;
	memcpy(v, &bits, sizeof(*v));
	return true;
}

static bool get_field(struct reader *r, struct cursor *at, struct event_field *f)
{
	uint64_t v;

	if (!get(at, &v) || v >= r->nnames || at->at >= at->end)
		return false;
	f->name = r->names[v];
	f->type = (enum field_type)*at->at++;
	switch (f->type) {
	case FIELD_INT:
		if (!get(at, &v))
			return false;
		f->v.i = unzigzag(v);
		return true;
	case FIELD_UINT:
		return get(at, &f->v.u);
	case FIELD_DOUBLE:
		return get_double(at, &f->v.d);
	case FIELD_TEXT:
		f->v.text = get_text(r, at);
		return f->v.text != NULL;
	}
	return false;
}

static int read_fields(struct reader *r, struct incident_event *e)
{
	struct cursor *at = &r->columns[COLUMN_EVENT_FIELDS];
	struct segment_content *c = r->c;
	uint32_t i;

	if (!get_u32(at, &e->nfields) || e->nfields > EVENT_MAX_FIELDS ||
	    e->nfields > r->fields_room - c->nfields)
		return report_damage(r, "the number of an event's fields");
	e->first_field = c->nfields;
	memset(&c->fields[c->nfields], 0, e->nfields * sizeof(*c->fields));
	for (i = 0; i < e->nfields; i++) {
		if (!get_field(r, at, &c->fields[c->nfields++]))
			return report_damage(r, "a field of an event");
	}
	return 0;
}

/* The names must be decoded. */
static int read_events(struct reader *r)
{
	struct segment_content *c = r->c;
	struct cursor *columns = r->columns;
	struct run kind = {0}, flags = {0}, cpu = {0};
	uint64_t tick = r->base_tick, thread = 0, stack = 0, v;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < c->nevents; i++) {
		struct incident_event *e = &c->events[i];

		if (!planes_next(&r->numbers[COLUMN_EVENT_TIME], &v) ||
		    !tick_to_ns(tick += (uint64_t)unzigzag(v), &e->time_ns))
			return report_damage(r, "the time of an event");
		if (!get_run(&columns[COLUMN_EVENT_KIND], &kind, EVENT_KINDS - 1, &v))
			return report_damage(r, "the kind of an event");
		e->kind = (enum event_kind)v;
		if (!get_run(&columns[COLUMN_EVENT_FLAGS], &flags, UINT32_MAX, &v))
			return report_damage(r, "the flags of an event");
		e->flags = (uint32_t)v;
		if (!get_run(&columns[COLUMN_EVENT_CPU], &cpu, UINT16_MAX, &v))
			return report_damage(r, "the CPU of an event");
		e->cpu = (uint16_t)v;
		if (!get_newest(&columns[COLUMN_EVENT_THREAD], &thread, c->nthreads, &e->thread))
			return report_damage(r, "the thread of an event");
		if (!get_newest(&columns[COLUMN_EVENT_STACK], &stack, c->nnodes, &e->stack))
			return report_damage(r, "the stack of an event");
		if (!get_name(r, COLUMN_EVENT_PROVIDER, &e->provider) ||
		    !get_name(r, COLUMN_EVENT_NAME, &e->name))
			return report_damage(r, "the name of an event");
		if (!get_double(&columns[COLUMN_EVENT_VALUE], &e->value))
			return report_damage(r, "the value of an event");
		rc = read_fields(r, e);
	}
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* In place of nodes and samples, which are not read. */
static int read_events_alone(struct reader *r)
{
	struct segment_content *c = r->c;
	uint32_t i;
	int rc = read_names(r);

	if (!rc)
		rc = read_events(r);
	for (i = 0; i < c->nevents; i++)
		c->events[i].stack = STACK_NONE;
	c->nsamples = c->nnodes = 0;
	return rc;
}

/* In place of their threads and stacks, and of nodes and events. */
static int read_times_alone(struct reader *r)
{
	struct segment_content *c = r->c;
	uint32_t i;
	int rc;

	c->samples = room_for(r, SAMPLES, c->nsamples, sizeof(*c->samples));
	if (!c->samples)
		return err_memory(r->err, "while reading a segment");
	rc = read_runs_and_times(r);
	for (i = 0; i < c->nsamples; i++) {
		c->samples[i].thread = THREAD_NONE;
		c->samples[i].stack = STACK_NONE;
	}
	c->nnodes = c->nevents = 0;
	return rc;
}

static int find_losses(struct reader *r)
{
	struct run kind = {0};
	uint32_t i;
	uint64_t v;

	for (i = 0; i < r->c->nevents; i++) {
		if (!get_run(&r->columns[COLUMN_EVENT_KIND], &kind, EVENT_KINDS - 1, &v))
			return report_damage(r, "the kind of an event");
		r->has_losses |= v == EVENT_LOST;
	}
	return 0;
}

static int read_content(struct reader *r)
{
	struct segment_content *c = r->c;
	/* A text takes its bytes and a length, whose room the NUL takes. */
	size_t text_room = column_bytes(r, COLUMN_NAMES) + column_bytes(r, COLUMN_EVENT_FIELDS) + 1;
	bool alone = r->part == EVENTS_ALONE;
	int rc;

	/* A field takes at least 3 bytes. */
	r->fields_room = (uint32_t)(column_bytes(r, COLUMN_EVENT_FIELDS) / 3 + 1);
	r->names = room_for(r, NAMES, r->nnames, sizeof(*r->names));
	c->samples = room_for(r, SAMPLES, alone ? 0 : c->nsamples, sizeof(*c->samples));
	c->nodes = room_for(r, NODES, alone ? 0 : c->nnodes, sizeof(*c->nodes));
	c->events = room_for(r, EVENTS, c->nevents, sizeof(*c->events));
	c->fields = room_for(r, FIELDS, r->fields_room, sizeof(*c->fields));
	r->text_at = room_for(r, TEXTS, text_room, 1);
	if (!r->names || !c->samples || !c->nodes || !c->events || !c->fields || !r->text_at)
		return err_memory(r->err, "while reading a segment");
	memset(c->events, 0, c->nevents * sizeof(*c->events));
	r->text_end = r->text_at + text_room;
	if (alone)
		return read_events_alone(r);
	rc = read_nodes(r);
	if (!rc)
		rc = read_samples(r);
	if (!rc)
		rc = read_names(r);
	return rc ? rc : read_events(r);
}

static int decode(const uint8_t *bytes, size_t n, enum part part, struct segment_content *out,
		  struct err *err)
{
	struct segment_content c = {0};
	struct reader r = {.c = &c, .part = part, .err = err};
	int rc;

	memcpy(c.memory, out->memory, sizeof(c.memory));
	rc = read_header(&r, bytes, n);
	if (!rc && part == SUMS)
		rc = find_losses(&r);
	if (part == HEAD_ALONE)
		c.nsamples = c.nnodes = c.nevents = 0;
	else if (!rc)
		rc = part == TIMES_ALONE || part == SUMS ? read_times_alone(&r) : read_content(&r);
	if (rc)
		segment_content_free(&c);
	*out = c;
	return !rc && r.has_losses ? decode(bytes, n, ALL, out, err) : rc;
}

int segment_decode(const uint8_t *bytes, size_t n, struct segment_content *out, struct err *err)
{
	return decode(bytes, n, ALL, out, err);
}

int segment_decode_events(const uint8_t *bytes, size_t n, struct segment_content *out,
			  struct err *err)
{
	return decode(bytes, n, EVENTS_ALONE, out, err);
}

int segment_decode_times(const uint8_t *bytes, size_t n, struct segment_content *out,
			 struct err *err)
{
	return decode(bytes, n, TIMES_ALONE, out, err);
}

int segment_decode_sums(const uint8_t *bytes, size_t n, struct segment_content *out,
			struct err *err)
{
	return decode(bytes, n, SUMS, out, err);
}

int segment_decode_head(const uint8_t *bytes, size_t n, struct segment_content *out,
			struct err *err)
{
	return decode(bytes, n, HEAD_ALONE, out, err);
}

void segment_content_free(struct segment_content *c)
{
	unsigned i;

	for (i = 0; i < SEGMENT_PIECES; i++)
		free(c->memory[i].at);
	memset(c, 0, sizeof(*c));
}
