/* Sealing: the open segment becomes one block of encoded, compressed bytes; drawn in segment.h. */
#include "model/segment_builder_private.h"

#include "base/array.h"
#include "base/os.h"
#include "base/planes.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)

/* ---- encoding -------------------------------------------------------------------------------- */

/* Zeroed room for n bytes, kept for the next sealing; NULL without memory. */
static void *scratch(struct buf *kept, size_t n)
{
	buf_reset(kept);
	return buf_reserve(kept, n);
}

static void *zeroed(struct buf *kept, size_t n)
{
	void *room = scratch(kept, n);

	if (room)
		memset(room, 0, n);
	return room;
}

/* How many callees of this caller are more recent than the frame; false when it is not listed. */
static bool callee_rank(struct callees *c, uint32_t caller, uint32_t frame, uint32_t *rank)
{
	uint32_t *at = &c->first[caller];

	for (*rank = 0; *at && *rank < RECENT_CALLEES; (*rank)++) {
		if (c->items[*at - 1].frame == frame) {
			callees_front(c, caller, at);
			return true;
		}
		at = &c->items[*at - 1].next;
	}
	callees_add(c, caller, frame);
	return false;
}

/* Encode the chains, then the frame of each node by what followed its caller's frame before. */
static bool encode_nodes(struct segment_builder *b)
{
	struct column *frames = &b->columns[COLUMN_NODE_FRAME];
	uint32_t roots = b->frame_list.count, next = 0, rank, i, end;
	struct callees callees = {
		.first = zeroed(&b->callee_first, ((size_t)roots + 1) * sizeof(*callees.first)),
		.items =
			scratch(&b->callee_items, ((size_t)b->nnodes + 1) * sizeof(*callees.items)),
	};

	if (!callees.first || !callees.items)
		return false;
	for (i = 0; i < b->nnodes; i = end + 1) {
		uint32_t parent = b->nodes[i].parent;

		end = chain_end(b->nodes, b->nnodes, i);
		column_plain(&b->columns[COLUMN_NODE_CHAIN], end - i);
		column_plain(&b->columns[COLUMN_NODE_PARENT],
			     parent == STACK_NONE ? 0 : i - 1 - parent);
	}
	for (i = 0; i < b->nnodes; i++) {
		const struct incident_stack *node = &b->nodes[i];
		uint32_t caller = node->parent == STACK_NONE ? roots : b->nodes[node->parent].frame;

		if (callee_rank(&callees, caller, node->frame, &rank))
			column_plain(frames, 2 * (uint64_t)rank);
		else
			column_plain(frames, 2 * (uint64_t)(next - node->frame) + 1);
		if (node->frame >= next)
			next = node->frame + 1;
	}
	return true;
}

/* Mostly the stack of a recent sample, or the newest one. */
static bool encode_sample_stacks(struct segment_builder *b)
{
	struct column *c = &b->columns[COLUMN_SAMPLE_STACK];
	/* of each stack, + 1 */
	uint32_t *last = zeroed(&b->last_samples, ((size_t)b->nnodes + 1) * sizeof(*last));
	struct new_stack new_stack = {0};
	uint32_t i, stack;

	if (!last)
		return false;
	for (i = 0; i < b->nsamples; i++) {
		memcpy(&stack, b->sample_stacks.data + i * sizeof(stack), sizeof(stack));
		if (stack >= b->nnodes) {           /* STACK_NONE */
			column_plain(c, 0);
			continue;
		}
		if (last[stack])
			column_plain(c, 2 * (uint64_t)(i + 1 - last[stack]));
		else
			column_plain(c, zigzag((int64_t)new_stack_expected(&new_stack, b->nodes,
									   b->nnodes) -
					       stack) * 2 +
						1);
		new_stack_seen(&new_stack, stack);
		last[stack] = i + 1;
	}
	return true;
}

static void encode_names(struct segment_builder *b)
{
	uint32_t i;

	for (i = 0; i < b->names.n; i++) {
		column_plain(&b->columns[COLUMN_NAMES], b->names.items[i].len);
		buf_put(&b->columns[COLUMN_NAMES].bytes, b->names.items[i].text,
			b->names.items[i].len);
	}
}

static void encode_head(struct segment_builder *b, enum segment_codec codec)
{
	const uint8_t start[] = {SEGMENT_VERSION, (uint8_t)codec};
	struct buf *out = &b->head;
	unsigned i, nstreams = 0;

	buf_reset(out);
	buf_put(out, start, sizeof(start));
	put_varint(out, b->base_tick);
	put_varint(out, zigzag((int64_t)(b->t0_tick - b->base_tick)));
	put_varint(out, b->t1_tick - b->t0_tick);
	put_varint(out, b->nsamples);
	put_varint(out, b->nnodes);
	put_varint(out, b->nevents);
	put_varint(out, b->names.n);
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

/* Compress each plane with codes of its own, in the way that suits it. */
static void put_planes(struct segment_builder *b, const struct buf *column)
{
	size_t ends[VARINT_MAX_BYTES], at = 0;
	uint8_t *planes;
	unsigned k;

	if (!column->len)
		return;
	buf_reset(&b->planes);
	planes = (uint8_t *)buf_reserve(&b->planes, column->len);
	if (!planes) {
		b->packed.failed = b->planes.failed;
		return;
	}
	planes_split((const uint8_t *)column->data, column->len, planes, ends);
	for (k = 0; k < VARINT_MAX_BYTES && at < column->len; k++) {
		if (k)
			deflater_cut(b->deflater, &b->packed);
		deflater_kind(b->deflater, deflate_kind_of(planes + at, ends[k] - at), &b->packed);
		deflater_put(b->deflater, planes + at, ends[k] - at, &b->packed);
		at = ends[k];
	}
}

/* Put all columns into b->packed, in the codec that takes less. */
static enum segment_codec pack(struct segment_builder *b)
{
	size_t raw_bytes = 0;
	unsigned i;

	buf_reset(&b->packed);
	deflater_start(b->deflater);
	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		const struct buf *column = &b->columns[i].bytes;

		if (segment_is_numbers(i)) {
			put_planes(b, column);
		} else {
			deflater_kind(b->deflater, DEFLATE_TEXT, &b->packed);
			deflater_put(b->deflater, column->data, column->len, &b->packed);
		}
		raw_bytes += column->len;
	}
	deflater_end(b->deflater, &b->packed);
	if (b->packed.failed || b->packed.len < raw_bytes)
		return SEGMENT_CODEC_PLANES;
	buf_reset(&b->packed);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		buf_put(&b->packed, b->columns[i].bytes.data, b->columns[i].bytes.len);
	return SEGMENT_CODEC_RAW;
}

/* ---- lists: the numbers as zigzag differences ------------------------------------------------ */

static void put_list(struct buf *out, const struct id_list *list)
{
	uint32_t previous = 0, i;

	for (i = 0; i < list->count; i++) {
		put_varint(out, zigzag((int64_t)list->numbers[i] - previous));
		previous = list->numbers[i];
	}
}

struct segment_list segment_threads(const struct segment *s)
{
	return (struct segment_list){s->lists, s->lists + s->lists_bytes, s->nthreads, 0};
}

struct segment_list segment_frames(const struct segment *s)
{
	struct segment_list list = segment_threads(s);
	uint32_t skipped;

	while (segment_next(&list, &skipped))
		;
	list.left = s->nframes;
	list.number = 0;
	return list;
}

bool segment_next(struct segment_list *list, uint32_t *number)
{
	uint64_t step = 0;

	if (!list->left || !varint_get(&list->at, list->end, &step))
		return false;
	list->left--;
	list->number += (uint32_t)unzigzag(step);
	*number = list->number;
	return true;
}

/* ---- sealing --------------------------------------------------------------------------------- */

/* One block: the struct, its lists, the encoded bytes. */
static struct segment *segment_new(const struct segment_builder *b)
{
	size_t nbytes = b->head.len + b->packed.len;
	size_t total = sizeof(struct segment) + b->lists.len + nbytes;
	struct segment *s = malloc(total);
	uint8_t *at;

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	at = (uint8_t *)(s + 1);
	s->lists = at;
	s->lists_bytes = (uint32_t)b->lists.len;
	if (b->lists.len)
		memcpy(at, b->lists.data, b->lists.len);
	at += b->lists.len;
	s->bytes = at;
	s->nbytes = nbytes;
	memcpy(at, b->head.data, b->head.len);
	if (b->packed.len)
		memcpy(at + b->head.len, b->packed.data, b->packed.len);
	s->memory_bytes = total + 32;       /* the allocator's overhead, rounded up */
	if (total >= OS_OWN_PAGES_BYTES)
		s->memory_bytes = (s->memory_bytes + PAGE - 1) / PAGE * PAGE;
	return s;
}

static struct segment *encode(struct segment_builder *b)
{
	static const enum segment_column runs[] = {
		COLUMN_SAMPLE_CPU, COLUMN_SAMPLE_WEIGHT, COLUMN_SAMPLE_STREAM,
		COLUMN_SAMPLE_QUALITY, COLUMN_EVENT_KIND, COLUMN_EVENT_FLAGS, COLUMN_EVENT_CPU,
	};
	bool failed = false;
	unsigned i;

	for (i = 0; i < COUNT_OF(runs); i++)
		column_end_run(&b->columns[runs[i]]);
	if (!encode_nodes(b) || !encode_sample_stacks(b))
		return NULL;
	encode_names(b);
	encode_head(b, pack(b));
	buf_reset(&b->lists);
	put_list(&b->lists, &b->threads);
	put_list(&b->lists, &b->frame_list);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		failed |= b->columns[i].bytes.failed != 0;
	if (failed || b->packed.failed || b->head.failed || b->lists.failed)
		return NULL;
	return segment_new(b);
}

int segment_seal(struct segment_builder *b, struct segment **out, struct err *err)
{
	struct segment *s;

	*out = NULL;
	if (segment_is_empty(b))
		return 0;
	s = encode(b);
	if (!s) {
		segment_builder_drop_refs(b);
		segment_builder_reset(b);
		return err_memory(err, "while sealing a segment");
	}
	atomic_store(&s->refs, 1);
	s->number = b->next_number++;
	s->t0_ns = b->t0_tick * SEGMENT_TICK_NS;
	s->t1_ns = b->t1_tick * SEGMENT_TICK_NS;
	s->nsamples = b->nsamples;
	s->ncpu_samples = b->ncpu_samples;
	s->nevents = b->nevents;
	s->nthreads = b->threads.count;
	s->nframes = b->frame_list.count;
	s->frame_table = b->frames;
	s->process_table = b->processes;
	segment_builder_reset(b);
	*out = s;
	return 0;
}

void segment_ref(struct segment *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void segment_unref(struct segment *s)
{
	struct segment_list list;
	uint32_t number;

	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (list = segment_threads(s); segment_next(&list, &number);)
		thread_unref(thread_get(s->process_table, number));
	for (list = segment_frames(s); segment_next(&list, &number);)
		frame_unref(frame_get(s->frame_table, number));
	free(s);
}
