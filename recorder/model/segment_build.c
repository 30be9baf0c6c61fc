/* Building and sealing segments; the encoded form is drawn in segment.h. */
#include "model/segment_columns.h"

#include "base/table.h"
#include "base/varint.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPEN_BYTES ((size_t)4 << 20)    /* encoded so far: then it is full */
#define MAX_OPEN_NODES (SEGMENT_MAX_NODES / 4)
#define MAX_NAMES 4096u
#define PUT_BYTES 24u                       /* room for what one value adds to a column, at most */

struct column {
	struct buf bytes;
	uint64_t previous;
	uint64_t run_length;                /* of `previous`, not written yet */
};

struct id_list {                            /* local index -> number, and back */
	uint32_t *numbers;
	uint32_t count, room;
	struct table index;
};

struct segment_builder {
	struct frames *frames;
	struct processes *processes;
	uint64_t next_number;
	uint64_t period_ns[STREAMS_MAX];

	uint64_t base_tick, t0_tick, t1_tick;
	uint32_t nsamples, nevents;
	struct column columns[SEGMENT_COLUMNS];
	struct id_list threads, frame_list;

	struct segment_node *nodes;         /* frame: local index */
	uint32_t nnodes, nodes_room;
	struct table node_index;

	uint32_t *name_at;                  /* start of each name in name_text */
	uint32_t nnames, names_room;
	struct buf name_text;               /* NUL-terminated names */
	struct table name_index;
};

/* ---- columns ---------------------------------------------------------------------------------- */

static void put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buf_put(b, bytes, varint_put(bytes, v));
}

static void column_plain(struct column *c, uint64_t v)
{
	put_varint(&c->bytes, v);
}

static void column_delta(struct column *c, uint64_t v)
{
	put_varint(&c->bytes, zigzag((int64_t)(v - c->previous)));
	c->previous = v;
}

static void column_end_run(struct column *c)
{
	if (!c->run_length)
		return;
	put_varint(&c->bytes, c->run_length);
	put_varint(&c->bytes, c->previous);
	c->run_length = 0;
}

static void column_run(struct column *c, uint64_t v)
{
	if (c->run_length && c->previous != v)
		column_end_run(c);
	c->previous = v;
	c->run_length++;
}

/*
 * Room in every column first, so that an append cannot fail half way. Each run column keeps room
 * for the run that sealing will end.
 */
static bool columns_room(struct segment_builder *b, size_t field_bytes)
{
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		size_t need = 2 * PUT_BYTES + (i == COLUMN_EVENT_FIELDS ? field_bytes : 0);

		if (!buf_reserve(&b->columns[i].bytes, need)) {
			b->columns[i].bytes.failed = 0;
			return false;
		}
	}
	return true;
}

/* ---- lists ------------------------------------------------------------------------------------ */

static bool number_same(const void *ctx, uint32_t value, const void *key)
{
	const struct id_list *list = ctx;

	return list->numbers[value] == *(const uint32_t *)key;
}

static uint32_t list_find(const struct id_list *list, uint32_t number)
{
	return table_find(&list->index, hash_u64(number), number_same, list, &number);
}

static uint32_t list_add(struct id_list *list, uint32_t number)
{
	if (list->count == list->room) {
		uint32_t room = list->room ? list->room * 2 : 256;
		uint32_t *bigger = realloc(list->numbers, room * sizeof(*bigger));

		if (!bigger)
			return UINT32_MAX;
		list->numbers = bigger;
		list->room = room;
	}
	if (table_add(&list->index, hash_u64(number), list->count))
		return UINT32_MAX;
	list->numbers[list->count] = number;
	return list->count++;
}

static uint32_t local_thread(struct segment_builder *b, struct thread *thread)
{
	uint32_t local = list_find(&b->threads, thread->number);

	if (local != TABLE_NONE)
		return local;
	local = list_add(&b->threads, thread->number);
	if (local != UINT32_MAX)
		thread_ref(thread);
	return local;
}

static uint32_t local_frame(struct segment_builder *b, uint32_t number)
{
	uint32_t local = list_find(&b->frame_list, number);

	if (local != TABLE_NONE)
		return local;
	local = list_add(&b->frame_list, number);
	if (local != UINT32_MAX)
		frame_ref(frame_get(b->frames, number));
	return local;
}

static bool name_same(const void *ctx, uint32_t value, const void *key)
{
	const struct segment_builder *b = ctx;

	return strcmp(b->name_text.data + b->name_at[value], key) == 0;
}

/* Index + 1 of a name, 0 for none, UINT32_MAX when it cannot be kept. */
static uint32_t local_name(struct segment_builder *b, const char *name)
{
	uint64_t hash;
	uint32_t local;

	if (!name || !name[0])
		return 0;
	hash = hash_bytes(name, strlen(name));
	local = table_find(&b->name_index, hash, name_same, b, name);
	if (local != TABLE_NONE)
		return local + 1;
	if (b->nnames == b->names_room) {
		uint32_t room = b->names_room ? b->names_room * 2 : 64;
		uint32_t *bigger = realloc(b->name_at, room * sizeof(*bigger));

		if (!bigger)
			return UINT32_MAX;
		b->name_at = bigger;
		b->names_room = room;
	}
	b->name_at[b->nnames] = (uint32_t)b->name_text.len;
	buf_put(&b->name_text, name, strlen(name) + 1);
	if (b->name_text.failed || table_add(&b->name_index, hash, b->nnames)) {
		b->name_text.failed = 0;
		return UINT32_MAX;
	}
	return ++b->nnames;
}

/* ---- stacks ----------------------------------------------------------------------------------- */

static bool node_same(const void *ctx, uint32_t value, const void *key)
{
	const struct segment_builder *b = ctx;
	const struct segment_node *k = key;

	return b->nodes[value].parent == k->parent && b->nodes[value].frame == k->frame;
}

static uint32_t node_get(struct segment_builder *b, uint32_t parent, uint32_t frame)
{
	struct segment_node key = {parent, frame};
	uint64_t hash = hash_u64(((uint64_t)parent << 32) | frame);
	uint32_t node = table_find(&b->node_index, hash, node_same, b, &key);

	if (node != TABLE_NONE)
		return node;
	if (b->nnodes == SEGMENT_MAX_NODES)
		return STACK_NONE;
	if (b->nnodes == b->nodes_room) {
		uint32_t room = b->nodes_room ? b->nodes_room * 2 : 1024;
		struct segment_node *bigger = realloc(b->nodes, room * sizeof(*bigger));

		if (!bigger)
			return STACK_NONE;
		b->nodes = bigger;
		b->nodes_room = room;
	}
	if (table_add(&b->node_index, hash, b->nnodes))
		return STACK_NONE;
	b->nodes[b->nnodes] = key;
	return b->nnodes++;
}

uint32_t segment_stack(struct segment_builder *b, const struct frame_ref *leaf_first, uint32_t n,
		       void (*fresh)(void *ctx, struct frame *frame), void *ctx)
{
	uint32_t node = STACK_NONE;

	while (n--) {
		bool is_fresh;
		uint32_t number = frames_intern(b->frames, &leaf_first[n], &is_fresh);
		uint32_t local = number == FRAME_NONE ? UINT32_MAX : local_frame(b, number);

		if (is_fresh && fresh)
			fresh(ctx, frame_get(b->frames, number));
		if (local == UINT32_MAX)
			return STACK_NONE;
		node = node_get(b, node, local);
		if (node == STACK_NONE)
			return STACK_NONE;
	}
	return node;
}

/* ---- life ------------------------------------------------------------------------------------- */

int segment_builder_new(struct frames *frames, struct processes *processes,
			struct segment_builder **out, struct err *err)
{
	struct segment_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return err_set(err, ERR_MEMORY, "out of memory for the open segment");
	b->frames = frames;
	b->processes = processes;
	b->next_number = 1;
	*out = b;
	return 0;
}

/* Empty it; the references of the lists belong to somebody else by now. */
static void reset(struct segment_builder *b)
{
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		buf_reset(&b->columns[i].bytes);
		b->columns[i].previous = 0;
		b->columns[i].run_length = 0;
	}
	b->threads.count = b->frame_list.count = 0;
	table_clear(&b->threads.index);
	table_clear(&b->frame_list.index);
	table_clear(&b->node_index);
	table_clear(&b->name_index);
	buf_reset(&b->name_text);
	b->nnodes = b->nnames = b->nsamples = b->nevents = 0;
}

static void drop_refs(struct frames *frames, struct processes *processes, const uint32_t *frame_list,
		      uint32_t nframes, const uint32_t *threads, uint32_t nthreads)
{
	uint32_t i;

	for (i = 0; i < nframes; i++)
		frame_unref(frame_get(frames, frame_list[i]));
	for (i = 0; i < nthreads; i++)
		thread_unref(thread_get(processes, threads[i]));
}

void segment_builder_free(struct segment_builder *b)
{
	unsigned i;

	if (!b)
		return;
	drop_refs(b->frames, b->processes, b->frame_list.numbers, b->frame_list.count,
		  b->threads.numbers, b->threads.count);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		buf_free(&b->columns[i].bytes);
	free(b->threads.numbers);
	free(b->frame_list.numbers);
	free(b->nodes);
	free(b->name_at);
	buf_free(&b->name_text);
	table_free(&b->threads.index);
	table_free(&b->frame_list.index);
	table_free(&b->node_index);
	table_free(&b->name_index);
	free(b);
}

/* ---- appending -------------------------------------------------------------------------------- */

static void note_time(struct segment_builder *b, uint64_t tick)
{
	if (segment_is_empty(b)) {
		b->base_tick = b->t0_tick = b->t1_tick = tick;
		b->columns[COLUMN_SAMPLE_TIME].previous = tick;
		b->columns[COLUMN_EVENT_TIME].previous = tick;
	}
	if (tick < b->t0_tick)
		b->t0_tick = tick;
	if (tick > b->t1_tick)
		b->t1_tick = tick;
}

/* What the decoder refuses must not get in, wherever it comes from. */
static uint64_t weight_of(double value)
{
	if (!(value > 0))
		return 0;                    /* NaN too */
	return value < (double)INT64_MAX ? (uint64_t)value : INT64_MAX;
}

static void add_sample(struct segment_builder *b, const struct event *e, uint32_t thread)
{
	struct column *c = b->columns;

	note_time(b, e->time_ns / SEGMENT_TICK_NS);
	column_delta(&c[COLUMN_SAMPLE_TIME], e->time_ns / SEGMENT_TICK_NS);
	column_run(&c[COLUMN_SAMPLE_CPU], e->cpu);
	column_plain(&c[COLUMN_SAMPLE_THREAD], thread == THREAD_NONE ? 0 : (uint64_t)thread + 1);
	column_delta(&c[COLUMN_SAMPLE_STACK], e->stack == STACK_NONE ? 0 : (uint64_t)e->stack + 1);
	column_run(&c[COLUMN_SAMPLE_WEIGHT], weight_of(e->value));
	column_run(&c[COLUMN_SAMPLE_STREAM], e->stream < STREAMS_MAX ? e->stream : STREAM_EVENT);
	column_run(&c[COLUMN_SAMPLE_QUALITY], e->quality < QUALITIES ? e->quality : QUALITY_NONE);
	b->nsamples++;
}

static size_t fields_bytes(const struct event *e)
{
	size_t n = VARINT_MAX_BYTES;
	uint32_t i;

	for (i = 0; i < e->nfields && i < EVENT_MAX_FIELDS; i++) {
		n += 2 * VARINT_MAX_BYTES + 9;
		if (e->fields[i].type == FIELD_TEXT)
			n += strnlen(e->fields[i].v.text, EVENT_MAX_TEXT);
	}
	return n;
}

static void put_double(struct buf *b, double v)
{
	uint8_t bytes[8];
	uint64_t bits;
	unsigned i;

	memcpy(&bits, &v, sizeof(bits));
	for (i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(bits >> (8 * i));
	buf_put(b, bytes, 8);
}

static void put_field(struct buf *b, const struct event_field *field, uint32_t name)
{
	uint8_t type = (uint8_t)field->type;
	size_t n;

	put_varint(b, name);
	buf_put(b, &type, 1);
	switch (field->type) {
	case FIELD_INT:
		put_varint(b, zigzag(field->v.i));
		break;
	case FIELD_UINT:
		put_varint(b, field->v.u);
		break;
	case FIELD_DOUBLE:
		put_double(b, field->v.d);
		break;
	case FIELD_TEXT:
		n = strnlen(field->v.text, EVENT_MAX_TEXT);
		put_varint(b, n);
		buf_put(b, field->v.text, n);
		break;
	}
}

static int add_event(struct segment_builder *b, const struct event *e, uint32_t thread)
{
	uint32_t nfields = e->nfields < EVENT_MAX_FIELDS ? e->nfields : EVENT_MAX_FIELDS;
	uint32_t field_names[EVENT_MAX_FIELDS];
	uint32_t provider = local_name(b, e->provider);
	uint32_t name = local_name(b, e->name);
	struct column *c = b->columns;
	uint32_t i;

	if (provider == UINT32_MAX || name == UINT32_MAX)
		return ERR_MEMORY;
	for (i = 0; i < nfields; i++) {
		field_names[i] = local_name(b, e->fields[i].name[0] ? e->fields[i].name : "?");
		if (field_names[i] == UINT32_MAX)
			return ERR_MEMORY;
	}
	note_time(b, e->time_ns / SEGMENT_TICK_NS);
	column_delta(&c[COLUMN_EVENT_TIME], e->time_ns / SEGMENT_TICK_NS);
	column_run(&c[COLUMN_EVENT_KIND], e->kind < EVENT_KINDS ? e->kind : EVENT_NONE);
	column_run(&c[COLUMN_EVENT_FLAGS], e->flags);
	column_run(&c[COLUMN_EVENT_CPU], e->cpu);
	column_plain(&c[COLUMN_EVENT_THREAD], thread == THREAD_NONE ? 0 : (uint64_t)thread + 1);
	column_plain(&c[COLUMN_EVENT_STACK], e->stack == STACK_NONE ? 0 : (uint64_t)e->stack + 1);
	column_plain(&c[COLUMN_EVENT_PROVIDER], provider);
	column_plain(&c[COLUMN_EVENT_NAME], name);
	put_double(&c[COLUMN_EVENT_VALUE].bytes, e->value);
	column_plain(&c[COLUMN_EVENT_FIELDS], nfields);
	for (i = 0; i < nfields; i++)
		put_field(&c[COLUMN_EVENT_FIELDS].bytes, &e->fields[i], field_names[i] - 1);
	b->nevents++;
	return 0;
}

int segment_add(struct segment_builder *b, const struct event *e)
{
	uint32_t thread = THREAD_NONE;

	if (!columns_room(b, fields_bytes(e)))
		return ERR_MEMORY;
	if (e->thread) {
		thread = local_thread(b, e->thread);
		if (thread == UINT32_MAX)
			return ERR_MEMORY;
	}
	if (e->kind != EVENT_SAMPLE)
		return add_event(b, e, thread);
	add_sample(b, e, thread);
	return 0;
}

void segment_set_period(struct segment_builder *b, enum stream stream, uint64_t period_ns)
{
	b->period_ns[stream] = period_ns;
}

/* ---- asking ----------------------------------------------------------------------------------- */

static size_t columns_bytes(const struct segment_builder *b)
{
	size_t n = 0;
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++)
		n += b->columns[i].bytes.len;
	return n;
}

/* Names become a column at sealing; a length takes two bytes at most, the NUL is one. */
size_t segment_open_bytes(const struct segment_builder *b)
{
	return columns_bytes(b) + b->name_text.len + b->nnames;
}

bool segment_is_empty(const struct segment_builder *b)
{
	return !b->nsamples && !b->nevents;
}

uint64_t segment_first_ns(const struct segment_builder *b)
{
	return segment_is_empty(b) ? 0 : b->t0_tick * SEGMENT_TICK_NS;
}

uint32_t segment_open_samples(const struct segment_builder *b)
{
	return b->nsamples;
}

bool segment_is_full(const struct segment_builder *b, uint64_t now_ns)
{
	uint64_t first_ns = segment_first_ns(b);

	if (segment_is_empty(b))
		return false;
	return b->nsamples >= SEGMENT_MAX_SAMPLES || b->nevents >= SEGMENT_MAX_EVENTS ||
	       b->nnodes >= MAX_OPEN_NODES || b->nnames >= MAX_NAMES ||
	       (now_ns > first_ns && now_ns - first_ns >= SEGMENT_MAX_NS) ||
	       segment_open_bytes(b) >= MAX_OPEN_BYTES;
}

/* ---- sealing ---------------------------------------------------------------------------------- */

static void encode_nodes(struct segment_builder *b)
{
	uint32_t i;

	for (i = 0; i < b->nnodes; i++) {
		const struct segment_node *node = &b->nodes[i];

		column_plain(&b->columns[COLUMN_NODE_PARENT],
			     node->parent == STACK_NONE ? 0 : i - node->parent);
		column_delta(&b->columns[COLUMN_NODE_FRAME], node->frame);
	}
}

static void encode_names(struct segment_builder *b)
{
	uint32_t i;

	for (i = 0; i < b->nnames; i++) {
		const char *name = b->name_text.data + b->name_at[i];
		size_t n = strlen(name);

		column_plain(&b->columns[COLUMN_NAMES], n);
		buf_put(&b->columns[COLUMN_NAMES].bytes, name, n);
	}
}

static void encode_header(struct segment_builder *b, struct buf *out)
{
	const uint8_t version = SEGMENT_VERSION;
	unsigned i, nstreams = 0;

	buf_put(out, &version, 1);
	put_varint(out, b->base_tick);
	put_varint(out, zigzag((int64_t)(b->t0_tick - b->base_tick)));
	put_varint(out, b->t1_tick - b->t0_tick);
	put_varint(out, b->nsamples);
	put_varint(out, b->nnodes);
	put_varint(out, b->nevents);
	put_varint(out, b->nnames);
	put_varint(out, b->threads.count);
	put_varint(out, b->frame_list.count);
	for (i = 0; i < STREAMS_MAX; i++)
		nstreams += b->period_ns[i] != 0;
	put_varint(out, nstreams);
	for (i = 0; i < STREAMS_MAX; i++) {
		if (!b->period_ns[i])
			continue;
		put_varint(out, i);
		put_varint(out, b->period_ns[i]);
	}
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		put_varint(out, b->columns[i].bytes.len);
}

/* One block: the struct, its two lists, the encoded bytes. */
static struct segment *segment_new(struct segment_builder *b, const struct buf *header)
{
	size_t threads_bytes = b->threads.count * sizeof(uint32_t);
	size_t frames_bytes = b->frame_list.count * sizeof(uint32_t);
	size_t nbytes = header->len + columns_bytes(b);
	size_t total = sizeof(struct segment) + threads_bytes + frames_bytes + nbytes;
	struct segment *s = malloc(total);
	uint32_t *numbers;
	uint8_t *at;
	unsigned i;

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	numbers = (uint32_t *)(s + 1);
	if (threads_bytes)
		memcpy(numbers, b->threads.numbers, threads_bytes);
	if (frames_bytes)
		memcpy(numbers + b->threads.count, b->frame_list.numbers, frames_bytes);
	at = (uint8_t *)(numbers + b->threads.count + b->frame_list.count);
	s->threads = numbers;
	s->frames = numbers + b->threads.count;
	s->bytes = at;
	memcpy(at, header->data, header->len);
	at += header->len;
	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		if (b->columns[i].bytes.len)
			memcpy(at, b->columns[i].bytes.data, b->columns[i].bytes.len);
		at += b->columns[i].bytes.len;
	}
	s->nbytes = nbytes;
	s->memory_bytes = total + 32;       /* the allocator's own, rounded up */
	return s;
}

int segment_seal(struct segment_builder *b, struct segment **out, struct err *err)
{
	static const enum segment_column runs[] = {
		COLUMN_SAMPLE_CPU, COLUMN_SAMPLE_WEIGHT, COLUMN_SAMPLE_STREAM,
		COLUMN_SAMPLE_QUALITY, COLUMN_EVENT_KIND, COLUMN_EVENT_FLAGS, COLUMN_EVENT_CPU,
	};
	struct buf header = {0};
	struct segment *s = NULL;
	bool failed = false;
	unsigned i;

	*out = NULL;
	if (segment_is_empty(b))
		return 0;
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		column_end_run(&b->columns[runs[i]]);
	encode_nodes(b);
	encode_names(b);
	encode_header(b, &header);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		failed |= b->columns[i].bytes.failed != 0;
	if (!failed && !header.failed)
		s = segment_new(b, &header);
	buf_free(&header);
	if (!s) {
		drop_refs(b->frames, b->processes, b->frame_list.numbers, b->frame_list.count,
			  b->threads.numbers, b->threads.count);
		reset(b);
		return err_set(err, ERR_MEMORY, "out of memory while sealing a segment");
	}
	atomic_store(&s->refs, 1);
	s->number = b->next_number++;
	s->t0_ns = b->t0_tick * SEGMENT_TICK_NS;
	s->t1_ns = b->t1_tick * SEGMENT_TICK_NS;
	s->nsamples = b->nsamples;
	s->nevents = b->nevents;
	s->nthreads = b->threads.count;
	s->nframes = b->frame_list.count;
	s->frame_table = b->frames;
	s->process_table = b->processes;
	reset(b);
	*out = s;
	return 0;
}

void segment_ref(struct segment *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void segment_unref(struct segment *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	drop_refs(s->frame_table, s->process_table, s->frames, s->nframes, s->threads, s->nthreads);
	free(s);
}
