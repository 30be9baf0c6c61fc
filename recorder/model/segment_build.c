/* The open segment: appending. segment_seal.c encodes what is not a column yet. */
#include "model/segment_builder_private.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPEN_BYTES ((size_t)4 << 20)    /* encoded bytes that make it full */
#define MAX_OPEN_NODES (SEGMENT_MAX_NODES / 4)
#define PUT_BYTES 24u                       /* the most that one value adds to a column */
#define ROOM_APPENDS 32u                    /* for which room is reserved at once */

/* ---- columns --------------------------------------------------------------------------------- */

static void column_delta(struct column *c, uint64_t v)
{
	put_varint(&c->bytes, zigzag((int64_t)(v - c->previous)));
	c->previous = v;
}

/* 0 stays 0; n more than the highest so far is 2n; n less is 2n + 1. */
static void column_newest(struct column *c, uint64_t v)
{
	if (!v) {
		put_varint(&c->bytes, 0);
	} else if (v > c->previous) {
		put_varint(&c->bytes, 2 * (v - c->previous));
		c->previous = v;
	} else {
		put_varint(&c->bytes, 2 * (c->previous - v) + 1);
	}
}

/*
 * 0 = none; n + 1: the thread seen n others ago; beyond: 65 + 2n, n above the next higher than the
 * highest so far, or 65 + 2n + 1, n below the highest.
 */
static void column_thread(struct column *c, struct recent *recent, uint32_t thread)
{
	uint64_t v = (uint64_t)thread + 1;
	uint32_t at = 0;

	if (thread == THREAD_NONE) {
		put_varint(&c->bytes, 0);
		return;
	}
	while (at < recent->n && recent->values[at] != thread)
		at++;
	if (at < recent->n) {
		put_varint(&c->bytes, at + 1);
	} else if (v > c->previous) {
		put_varint(&c->bytes, RECENT_THREADS + 1 + 2 * (v - c->previous - 1));
		c->previous = v;
	} else {
		put_varint(&c->bytes, RECENT_THREADS + 1 + 2 * (c->previous - v) + 1);
	}
	recent_front(recent, at, thread);
}

static void column_run(struct column *c, uint64_t v)
{
	if (c->run_length && c->previous != v)
		column_end_run(c);
	c->previous = v;
	c->run_length++;
}

static bool room_for(struct buf *bytes, size_t n)
{
	if (buf_reserve(bytes, n))
		return true;
	bytes->failed = 0;
	return false;
}

/*
 * Reserve room in every column first, so that an append cannot fail half way, and for a row of
 * appends at once; fields may need more. Each run column keeps room for the run that sealing will
 * end.
 */
static bool columns_room(struct segment_builder *b, size_t field_bytes)
{
	const size_t row = ROOM_APPENDS * PUT_BYTES;
	unsigned i;

	if (!b->appends_left) {
		for (i = 0; i < SEGMENT_COLUMNS; i++)
			if (!room_for(&b->columns[i].bytes, row + PUT_BYTES))
				return false;
		if (!room_for(&b->sample_stacks, ROOM_APPENDS * sizeof(uint32_t)))
			return false;
		b->appends_left = ROOM_APPENDS;
	}
	if (field_bytes > PUT_BYTES &&
	    !room_for(&b->columns[COLUMN_EVENT_FIELDS].bytes, row + field_bytes))
		return false;
	b->appends_left--;
	return true;
}

static size_t columns_bytes(const struct segment_builder *b)
{
	size_t n = 0;
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++)
		n += b->columns[i].bytes.len;
	return n;
}

/* Counting them for each event would cost more than the event's own columns. */
static void note_most_bytes(struct segment_builder *b, size_t field_bytes)
{
	if (b->columns_most >= MAX_OPEN_BYTES / 2)
		b->columns_most = columns_bytes(b);
	b->columns_most += SEGMENT_COLUMNS * PUT_BYTES + field_bytes;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static uint32_t find_thread(struct segment_builder *b, const struct thread *thread)
{
	uint32_t *at = &b->at_thread[thread->number % SEGMENT_THREADS];

	if (*at >= b->threads.count || b->threads.numbers[*at] != thread->number)
		*at = id_list_find(&b->threads, thread->number);
	return *at;
}

static uint32_t local_thread(struct segment_builder *b, struct thread *thread)
{
	uint32_t local = find_thread(b, thread);

	if (local != TABLE_NONE)
		return local;
	local = id_list_add(&b->threads, thread->number);
	if (local != UINT32_MAX) {
		thread_ref(thread);
		atomic_store_explicit(&thread->process->was_listed, true, memory_order_relaxed);
	}
	return local;
}

static uint32_t add_name(struct segment_builder *b, const char *name, uint32_t *at)
{
	uint32_t local;

	if (*at < b->names.n && strcmp(text_table_get(&b->names, *at), name) == 0)
		return *at;
	local = text_table_add(&b->names, name, strlen(name));
	if (local != TABLE_NONE)
		*at = local;
	return local;
}

/* known: where to note it; NULL = nowhere */
static uint32_t find_name(struct segment_builder *b, const char *name, uint32_t before,
			  struct known_name *known)
{
	uint32_t local;

	if (!name || !name[0])
		return 0;
	local = add_name(b, name, &b->next_name[before % SEGMENT_MAX_NAMES]);
	if (local == TABLE_NONE)
		return UINT32_MAX;
	if (known)
		*known = (struct known_name){name, local};
	return local + 1;
}

/*
 * Index + 1 of a name, 0 for none, UINT32_MAX when it cannot be kept. before: of the one before it,
 * which it mostly follows. stays: see event.names_stay.
 */
static inline uint32_t local_name(struct segment_builder *b, const char *name, uint32_t before,
				  bool stays)
{
	struct known_name *known = &b->stayed[(uintptr_t)name / 4 % SEGMENT_POINTERS];

	if (stays && name && known->at == name)
		return known->local + 1;
	return find_name(b, name, before, stays ? known : NULL);
}

/* ---- life ------------------------------------------------------------------------------------ */

int segment_builder_new(struct frames *frames, struct processes *processes,
			struct segment_builder **out, struct err *err)
{
	struct segment_builder *b = calloc(1, sizeof(*b));

	if (b)
		b->sealing.deflater = deflater_new(false);
	if (!b || !b->sealing.deflater) {
		free(b);
		return err_memory(err, "for the open segment");
	}
	b->frames = frames;
	b->processes = processes;
	b->next_number = 1;
	*out = b;
	return 0;
}

void segment_builder_reset(struct segment_builder *b)
{
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		buf_reset(&b->columns[i].bytes);
		b->columns[i].previous = 0;
		b->columns[i].run_length = 0;
	}
	b->recent_threads.n = 0;
	b->columns_most = 0;
	buf_reset(&b->sample_stacks);
	b->appends_left = 0;
	b->threads.count = b->frame_list.count = 0;
	table_clear(&b->threads.index);
	table_clear(&b->frame_list.index);
	table_clear(&b->node_index);
	text_table_free(&b->names);
	for (i = 0; i < SEGMENT_LAST_STACKS; i++)
		b->last[i].n = 0;
	memset(b->steps, 0, sizeof(b->steps));
	memset(b->known, 0, sizeof(b->known));
	memset(b->stayed, 0, sizeof(b->stayed));
	b->nnodes = b->nsamples = b->ncpu_samples = b->nevents = b->nlosses = b->twins.count = 0;
	memset(b->quality, 0, sizeof(b->quality));
	b->nresets++;
	quota_reset(&b->quota);
}

void segment_builder_free(struct segment_builder *b)
{
	unsigned i;

	if (!b)
		return;
	segment_builder_drop_refs(b);
	if (b->more_frame)
		frame_unref(frame_get(b->frames, b->more_frame - 1));
	if (b->more_thread)
		thread_unref(b->more_thread);
	quota_free(&b->quota);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		buf_free(&b->columns[i].bytes);
	free(b->threads.numbers);
	free(b->frame_list.numbers);
	free(b->nodes);
	free(b->twins.nodes);
	text_table_free(&b->names);
	sealing_free(&b->sealing);
	buf_free(&b->sample_stacks);
	buf_free(&b->callee_first);
	buf_free(&b->callee_items);
	buf_free(&b->last_samples);
	table_free(&b->threads.index);
	table_free(&b->frame_list.index);
	table_free(&b->node_index);
	free(b);
}

/* ---- appending ------------------------------------------------------------------------------- */

static void note_time(struct segment_builder *b, uint64_t tick)
{
	if (segment_is_empty(b)) {
		b->base_tick = b->t0_tick = b->t1_tick = tick;
		clock_start(&b->clock, tick);
		b->columns[COLUMN_EVENT_TIME].previous = tick;
	}
	if (tick < b->t0_tick)
		b->t0_tick = tick;
	if (tick > b->t1_tick)
		b->t1_tick = tick;
}

/* Keep out what the decoder would refuse, whatever its source. */
static uint64_t weight_of(double value)
{
	if (!(value > 0))
		return 0;                    /* NaN too */
	return value < (double)INT64_MAX ? (uint64_t)value : INT64_MAX;
}

static void add_sample(struct segment_builder *b, const struct event *e, uint32_t thread)
{
	struct column *c = b->columns;
	uint64_t tick = e->time_ns / SEGMENT_TICK_NS, weight = weight_of(e->value);
	uint64_t stream = e->stream < STREAMS_MAX ? e->stream : STREAM_EVENT;
	uint64_t quality = e->quality < QUALITIES ? e->quality : QUALITY_NONE;
	uint64_t *last = clock_of(&b->clock, e->cpu);

	note_time(b, tick);
	column_run(&c[COLUMN_SAMPLE_WEIGHT], weight);
	column_run(&c[COLUMN_SAMPLE_STREAM], stream);
	column_run(&c[COLUMN_SAMPLE_CPU], e->cpu);
	column_plain(&c[COLUMN_SAMPLE_TIME],
		     zigzag((int64_t)(tick - *last - clock_step(stream, weight))));
	*last = tick;
	column_thread(&c[COLUMN_SAMPLE_THREAD], &b->recent_threads, thread);
	buf_put(&b->sample_stacks, &e->stack, sizeof(e->stack));
	column_run(&c[COLUMN_SAMPLE_QUALITY], quality);
	b->quality[quality] += stream_is_counted((unsigned)stream);
	b->nsamples++;
	b->ncpu_samples += e->stream == STREAM_CPU;
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
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	buf_put_le(b, bits, 8);
}

/* There is room: fields_bytes(). */
static uint8_t *put_field(uint8_t *at, const struct event_field *field, uint32_t name)
{
	uint64_t bits;
	size_t n;

	at += varint_put(at, name);
	*at++ = (uint8_t)field->type;
	switch (field->type) {
	case FIELD_INT:
		return at + varint_put(at, zigzag(field->v.i));
	case FIELD_UINT:
		return at + varint_put(at, field->v.u);
	case FIELD_DOUBLE:
		memcpy(&bits, &field->v.d, sizeof(bits));
		put_le64(at, bits);
		return at + 8;
	case FIELD_TEXT:
		n = strnlen(field->v.text, EVENT_MAX_TEXT);
		at += varint_put(at, n);
		memcpy(at, field->v.text, n);
		return at + n;
	}
	return at;
}

static void put_fields(struct buf *b, const struct event *e, uint32_t nfields,
		       const uint32_t *names)
{
	uint8_t *begin = (uint8_t *)b->data + b->len, *at = begin + varint_put(begin, nfields);
	uint32_t i;

	for (i = 0; i < nfields; i++)
		at = put_field(at, &e->fields[i], names[i] - 1);
	buf_advance(b, (size_t)(at - begin));
}

static int add_event(struct segment_builder *b, const struct event *e, uint32_t thread)
{
	uint32_t nfields = e->nfields < EVENT_MAX_FIELDS ? e->nfields : EVENT_MAX_FIELDS;
	uint32_t field_names[EVENT_MAX_FIELDS];
	uint32_t provider = local_name(b, e->provider, 0, e->names_stay);
	uint32_t name = local_name(b, e->name, provider, e->names_stay), field_name = name;
	struct column *c = b->columns;
	size_t before = c[COLUMN_EVENT_FIELDS].bytes.len;
	uint32_t i;

	if (provider == UINT32_MAX || name == UINT32_MAX)
		return ERR_MEMORY;
	for (i = 0; i < nfields; i++) {
		field_name = local_name(b, e->fields[i].name[0] ? e->fields[i].name : "?",
					field_name, e->names_stay);
		if (field_name == UINT32_MAX)
			return ERR_MEMORY;
		field_names[i] = field_name;
	}
	note_time(b, e->time_ns / SEGMENT_TICK_NS);
	column_delta(&c[COLUMN_EVENT_TIME], e->time_ns / SEGMENT_TICK_NS);
	column_run(&c[COLUMN_EVENT_KIND], e->kind < EVENT_KINDS ? e->kind : EVENT_NONE);
	column_run(&c[COLUMN_EVENT_FLAGS], e->flags);
	column_run(&c[COLUMN_EVENT_CPU], e->cpu);
	column_newest(&c[COLUMN_EVENT_THREAD], thread == THREAD_NONE ? 0 : (uint64_t)thread + 1);
	column_newest(&c[COLUMN_EVENT_STACK], e->stack == STACK_NONE ? 0 : (uint64_t)e->stack + 1);
	column_plain(&c[COLUMN_EVENT_PROVIDER], provider);
	column_plain(&c[COLUMN_EVENT_NAME], name);
	put_double(&c[COLUMN_EVENT_VALUE].bytes, e->value);
	put_fields(&c[COLUMN_EVENT_FIELDS].bytes, e, nfields, field_names);
	quota_event_took(&b->quota, e, c[COLUMN_EVENT_FIELDS].bytes.len - before);
	b->nlosses += e->kind == EVENT_LOST;
	b->nevents++;
	return 0;
}

/* The thread "[more]" of no process. Without memory the sample has none. */
static struct thread *more_thread(struct segment_builder *b)
{
	struct process *process;

	if (b->more_thread)
		return b->more_thread;
	process = process_add(b->processes, UINT32_MAX, 1, 0, 0, "[more]");
	if (process)
		b->more_thread = thread_add(b->processes, process, 0);
	if (!b->more_thread)
		return NULL;
	thread_ref(b->more_thread);
	thread_set_name(b->more_thread, "[more]");
	return b->more_thread;
}

/* Starts that no source gives a thread: */
#define MORE_NS UINT64_MAX                   /* of those over the quota */
#define NONE_NS (UINT64_MAX - 1)             /* of what belongs to a process, but to no thread */

/*
 * A thread of a process for what has no thread to be listed under. No source has it, or drops it:
 * it lives as long as segments list it.
 */
static struct thread *stand_in(struct segment_builder *b, struct process *process,
			       uint64_t start_ns)
{
	struct thread *thread = thread_add_started(b->processes, process, 0, start_ns);

	if (thread)
		thread_drop(b->processes, thread, 1);
	return thread;
}

/* The thread to list: its own, or over the quota "[more]" of its process or of none. */
static struct thread *thread_within(struct segment_builder *b, struct thread *thread,
				    const struct event *e)
{
	struct quota_use *use;
	struct thread *more;

	if (find_thread(b, thread) != TABLE_NONE || quota_is_sideband(e->kind))
		return thread;
	use = quota_of(&b->quota, thread->process, e->time_ns);
	if (!use)
		return b->quota.limit.processes ? more_thread(b) : thread;
	if (!quota_over(use->threads, b->quota.limit.threads)) {
		use->threads++;
		return thread;
	}
	more = stand_in(b, thread->process, MORE_NS);
	if (!more)
		return more_thread(b);
	thread_set_name(more, "[more]");
	return more;
}

/* An event of a process, not of a thread of it, is listed under the process's thread 0. */
static struct thread *thread_of(struct segment_builder *b, const struct event *e)
{
	if (e->thread || !e->process || e->kind == EVENT_SAMPLE)
		return e->thread;
	return stand_in(b, e->process, NONE_NS);
}

/* thread: what it is listed under; NULL = none. */
static int append(struct segment_builder *b, const struct event *e, struct thread *thread)
{
	size_t field_bytes = fields_bytes(e);
	uint32_t local = THREAD_NONE;

	if (!columns_room(b, field_bytes))
		return ERR_MEMORY;
	note_most_bytes(b, field_bytes);
	if (thread) {
		local = local_thread(b, thread);
		if (local == UINT32_MAX)
			return ERR_MEMORY;
	}
	if (e->kind != EVENT_SAMPLE)
		return add_event(b, e, local);
	add_sample(b, e, local);
	return 0;
}

int segment_add(struct segment_builder *b, const struct event *e)
{
	struct thread *thread;

	if (e->kind != EVENT_SAMPLE && !quota_event(&b->quota, e))
		return ERR_LIMIT;
	thread = thread_of(b, e);
	return append(b, e, thread ? thread_within(b, thread, e) : NULL);
}

int segment_add_wanted(struct segment_builder *b, const struct event *e)
{
	return append(b, e, thread_of(b, e));
}

void segment_set_period(struct segment_builder *b, enum stream stream, uint64_t period_ns)
{
	b->period_ns[stream] = period_ns;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Names become a column at sealing; a length takes at most two bytes, the NUL one. */
static size_t open_bytes(const struct segment_builder *b, size_t columns)
{
	return columns + b->sample_stacks.len + b->names.bytes + b->names.n;
}

size_t segment_open_bytes(const struct segment_builder *b)
{
	return open_bytes(b, columns_bytes(b));
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

/* Its age counts from what came first: one late event does not make it old. */
bool segment_is_full(const struct segment_builder *b, uint64_t now_ns)
{
	uint64_t begun_ns = b->base_tick * SEGMENT_TICK_NS;

	if (segment_is_empty(b))
		return false;
	return b->nsamples >= SEGMENT_MAX_SAMPLES || b->nevents >= SEGMENT_MAX_EVENTS ||
	       b->nnodes >= MAX_OPEN_NODES || b->names.n >= SEGMENT_MAX_NAMES ||
	       (now_ns > begun_ns && now_ns - begun_ns >= SEGMENT_MAX_NS) ||
	       (open_bytes(b, b->columns_most) >= MAX_OPEN_BYTES &&
		segment_open_bytes(b) >= MAX_OPEN_BYTES);
}
