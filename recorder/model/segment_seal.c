/* Sealing: the open segment becomes one block of encoded, compressed bytes; drawn in segment.h. */
#include "model/segment_builder_private.h"

#include "base/array.h"
#include "base/os.h"
#include "base/planes.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)

/* ---- encoding -------------------------------------------------------------------------------- */

void put_varint_late(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buf_put(b, bytes, varint_put(bytes, v));
}

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
	uint32_t *at = &c->first[caller].next;

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

/* The codec is known when all is packed. */
static void encode_head(struct segment_builder *b)
{
	const uint8_t start[] = {SEGMENT_VERSION, 0};
	struct buf *out = &b->sealing.head;
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
static void put_planes(struct sealing *s, const struct buf *column)
{
	size_t ends[VARINT_MAX_BYTES], at = 0;
	uint8_t *planes;
	unsigned k;

	if (!column->len)
		return;
	buf_reset(&s->planes);
	planes = (uint8_t *)buf_reserve(&s->planes, column->len);
	if (!planes) {
		s->packed.failed = s->planes.failed;
		return;
	}
	planes_split((const uint8_t *)column->data, column->len, planes, ends);
	for (k = 0; k < VARINT_MAX_BYTES && at < column->len; k++) {
		if (k)
			deflater_cut(s->deflater, &s->packed);
		deflater_kind(s->deflater, deflate_kind_of(planes + at, ends[k] - at), &s->packed);
		deflater_put(s->deflater, planes + at, ends[k] - at, &s->packed);
		at = ends[k];
	}
}

/* Put all columns into s->packed, in the codec that takes less. */
static enum segment_codec pack(struct sealing *s)
{
	size_t raw_bytes = 0;
	unsigned i;

	buf_reset(&s->packed);
	deflater_start(s->deflater);
	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		const struct buf *column = &s->columns[i];

		if (segment_is_numbers(i)) {
			put_planes(s, column);
		} else {
			deflater_kind(s->deflater, DEFLATE_TEXT, &s->packed);
			deflater_put(s->deflater, column->data, column->len, &s->packed);
		}
		raw_bytes += column->len;
	}
	deflater_end(s->deflater, &s->packed);
	if (s->packed.failed || s->packed.len < raw_bytes)
		return SEGMENT_CODEC_PLANES;
	buf_reset(&s->packed);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		buf_put(&s->packed, s->columns[i].data, s->columns[i].len);
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
static struct segment *segment_new(const struct sealing *of)
{
	size_t nbytes = of->head.len + of->packed.len;
	size_t total = sizeof(struct segment) + of->lists.len + nbytes;
	struct segment *s = malloc(total);
	uint8_t *at;

	if (!s)
		return NULL;
	memcpy(s, &of->is, sizeof(*s));
	at = (uint8_t *)(s + 1);
	s->lists = at;
	if (of->lists.len)
		memcpy(at, of->lists.data, of->lists.len);
	at += of->lists.len;
	s->bytes = at;
	s->nbytes = nbytes;
	memcpy(at, of->head.data, of->head.len);
	if (of->packed.len)
		memcpy(at + of->head.len, of->packed.data, of->packed.len);
	s->memory_bytes = total + 32;       /* the allocator's overhead, rounded up */
	if (total >= OS_OWN_PAGES_BYTES)
		s->memory_bytes = (s->memory_bytes + PAGE - 1) / PAGE * PAGE;
	return s;
}

static bool encode(struct segment_builder *b)
{
	static const enum segment_column runs[] = {
		COLUMN_SAMPLE_CPU, COLUMN_SAMPLE_WEIGHT, COLUMN_SAMPLE_STREAM,
		COLUMN_SAMPLE_QUALITY, COLUMN_EVENT_KIND, COLUMN_EVENT_FLAGS, COLUMN_EVENT_CPU,
	};
	struct sealing *s = &b->sealing;
	bool failed = false;
	unsigned i;

	for (i = 0; i < COUNT_OF(runs); i++)
		column_end_run(&b->columns[runs[i]]);
	if (!encode_nodes(b) || !encode_sample_stacks(b))
		return false;
	encode_names(b);
	encode_head(b);
	buf_reset(&s->lists);
	put_list(&s->lists, &b->threads);
	put_list(&s->lists, &b->frame_list);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		failed |= b->columns[i].bytes.failed != 0;
	return !failed && !s->head.failed && !s->lists.failed;
}

void segment_builder_drop_refs(struct segment_builder *b)
{
	uint32_t i;

	for (i = 0; i < b->frame_list.count; i++)
		frame_unref(frame_get(b->frames, b->frame_list.numbers[i]));
	for (i = 0; i < b->threads.count; i++)
		thread_unref(thread_get(b->processes, b->threads.numbers[i]));
}

static void drop_lists(struct segment *s)
{
	struct segment_list list;
	uint32_t number;

	for (list = segment_threads(s); segment_next(&list, &number);)
		thread_unref(thread_get(s->process_table, number));
	for (list = segment_frames(s); segment_next(&list, &number);)
		frame_unref(frame_get(s->frame_table, number));
}

static void swap_columns(struct segment_builder *b)
{
	unsigned i;

	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		struct buf other = b->sealing.columns[i];

		b->sealing.columns[i] = b->columns[i].bytes;
		b->columns[i].bytes = other;
		buf_reset(&b->columns[i].bytes);
	}
}

int segment_seal_begin(struct segment_builder *b, struct err *err)
{
	struct sealing *s = &b->sealing;

	if (segment_is_empty(b))
		return 0;
	s->begun = encode(b);
	if (!s->begun) {
		segment_builder_drop_refs(b);
		segment_builder_reset(b);
		return err_memory(err, "while sealing a segment");
	}
	s->is = (struct segment){
		.number = b->next_number++, .nsamples = b->nsamples, .nevents = b->nevents,
		.ncpu_samples = b->ncpu_samples, .nlosses = b->nlosses,
		.nthreads = b->threads.count,
		.nframes = b->frame_list.count, .frame_table = b->frames,
		.process_table = b->processes, .t0_ns = b->t0_tick * SEGMENT_TICK_NS,
		.t1_ns = b->t1_tick * SEGMENT_TICK_NS, .lists = (const uint8_t *)s->lists.data,
		.lists_bytes = (uint32_t)s->lists.len, .refs = 1,
	};
	memcpy(s->is.quality, b->quality, sizeof(b->quality));
	swap_columns(b);
	segment_builder_reset(b);
	return 0;
}

int segment_seal_end(struct segment_builder *b, struct segment **out, struct err *err)
{
	struct sealing *s = &b->sealing;

	*out = NULL;
	if (!s->begun)
		return 0;
	s->begun = false;
	s->head.data[1] = (char)pack(s);
	*out = s->packed.failed ? NULL : segment_new(s);
	if (*out)
		return 0;
	drop_lists(&s->is);
	return err_memory(err, "while sealing a segment");
}

int segment_seal(struct segment_builder *b, struct segment **out, struct err *err)
{
	int rc = segment_seal_begin(b, err);

	*out = NULL;
	if (!rc && b->sealing.begun) {
		rc = segment_seal_end(b, out, err);
		swap_columns(b);             /* one set of them is enough */
	}
	return rc;
}

void sealing_free(struct sealing *s)
{
	unsigned i;

	if (s->begun)
		drop_lists(&s->is);
	for (i = 0; i < SEGMENT_COLUMNS; i++)
		buf_free(&s->columns[i]);
	buf_free(&s->head);
	buf_free(&s->lists);
	buf_free(&s->packed);
	buf_free(&s->planes);
	deflater_free(s->deflater);
}

void segment_ref(struct segment *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void segment_unref(struct segment *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	drop_lists(s);
	free(s);
}
