#include "tests/support/segment_lab.h"

#include "model/segment_columns_private.h"

#include "base/deflate.h"
#include "base/planes.h"

#include <math.h>
#include <string.h>

int seglab_open(struct seglab *lab)
{
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 4, .build_id = {1, 2, 3, 4},
				 .path = "/opt/app"};
	unsigned i;

	memset(lab, 0, sizeof(*lab));
	if (frames_new(&lab->frames, NULL) || processes_new(&lab->processes, NULL) ||
	    segment_builder_new(lab->frames, lab->processes, &lab->builder, NULL))
		return ERR_MEMORY;
	lab->object = objects_get(lab->frames, &key, 100);
	lab->app = process_add(lab->processes, 100, 1, 0, 1, NULL);
	for (i = 0; i < 2 && lab->app; i++)
		lab->threads[i] = thread_add(lab->processes, lab->app, 100 + i);
	return lab->object && lab->threads[0] && lab->threads[1] ? 0 : ERR_MEMORY;
}

void seglab_close(struct seglab *lab)
{
	segment_builder_free(lab->builder);
	frames_free(lab->frames);
	processes_free(lab->processes);
}

uint32_t seglab_stack(struct seglab *lab, const char *root_first)
{
	struct frame_ref leaf_first[64];
	uint32_t n = (uint32_t)strlen(root_first), i;

	for (i = 0; i < n; i++)
		leaf_first[i] = (struct frame_ref){lab->object,
						   (uint64_t)(root_first[n - 1 - i] - 'a' + 10), 0};
	return segment_stack(lab->builder, leaf_first, n, NULL, NULL);
}

int seglab_sample(struct seglab *lab, uint64_t time_ns, unsigned thread, const char *root_first)
{
	struct event e = {.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = lab->app,
			  .thread = lab->threads[thread], .cpu = (uint16_t)thread,
			  .quality = QUALITY_FP, .value = 1e6};

	e.stack = seglab_stack(lab, root_first);
	if (root_first[0] && e.stack == STACK_NONE)
		return ERR_MEMORY;
	return segment_add(lab->builder, &e);
}

struct segment *seglab_seal(struct seglab *lab)
{
	struct segment *s = NULL;

	return segment_seal(lab->builder, &s, NULL) ? NULL : s;
}

struct segment *seglab_segment(struct seglab *lab, uint64_t start_ns, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (seglab_sample(lab, start_ns + i * 1000ull, 0, "ab"))
			return NULL;
	}
	return seglab_seal(lab);
}

int seglab_rich(struct seglab *lab)
{
	struct event_field fields[] = {
		{"Least", FIELD_INT, {.i = INT64_MIN}},
		{"Most", FIELD_UINT, {.u = UINT64_MAX}},
		{"NotANumber", FIELD_DOUBLE, {.d = NAN}},
		{"Message", FIELD_TEXT, {.text = "h\xc3\xa9!"}},
		{"", FIELD_TEXT, {.text = ""}},
	};
	struct event e = {.time_ns = 5000, .kind = EVENT_GENERIC, .thread = lab->threads[1],
			  .cpu = 3, .provider = "prov", .name = "prov", .value = -INFINITY,
			  .fields = fields, .nfields = 5};
	int rc = seglab_sample(lab, 4000, 0, "abc");

	segment_set_period(lab->builder, STREAM_CPU, 1000000);
	if (!rc)
		rc = seglab_sample(lab, 4100, 1, "abd");
	e.stack = seglab_stack(lab, "ab");
	if (!rc && e.stack == STACK_NONE)
		rc = ERR_MEMORY;
	if (!rc)
		rc = segment_add(lab->builder, &e);
	e = (struct event){.time_ns = 3000, .kind = EVENT_LOST, .flags = EVENT_FLAG_LATE,
			   .cpu = CPU_NONE, .name = "kernel", .value = 7, .stack = STACK_NONE};
	return rc ? rc : segment_add(lab->builder, &e);
}

static uint32_t number_at(struct segment_list list, uint32_t local)
{
	uint32_t number = UINT32_MAX;

	do
		segment_next(&list, &number);
	while (local--);
	return number;
}

struct frame *seglab_frame(struct seglab *lab, const struct segment *s, uint32_t local)
{
	return frame_get(lab->frames, number_at(segment_frames(s), local));
}

struct thread *seglab_thread(struct seglab *lab, const struct segment *s, uint32_t local)
{
	return thread_get(lab->processes, number_at(segment_threads(s), local));
}

size_t seglab_head_bytes(const struct segment *s)
{
	const uint8_t *at = s->bytes + 2, *end = s->bytes + s->nbytes;
	uint64_t v = 0, skipped;
	unsigned i;

	for (i = 0; i < 9 + 1; i++)                  /* three times, six counts, streams */
		varint_get(&at, end, &v);
	for (i = 0; i < 2 * v + SEGMENT_COLUMNS; i++)
		varint_get(&at, end, &skipped);
	return (size_t)(at - s->bytes);
}

size_t seglab_unpack(const struct segment *s, uint8_t *out, size_t room)
{
	const uint8_t *at = s->bytes + 2, *end = s->bytes + s->nbytes;
	uint64_t v = 0, skipped, columns_bytes = 0, lengths[SEGMENT_COLUMNS];
	uint8_t columns[4096];
	struct planes_rest rest;
	struct planes planes;
	size_t head, to;
	unsigned i;

	for (i = 0; i < 9 + 1; i++)                  /* three times, six counts, streams */
		varint_get(&at, end, &v);
	for (i = 0; i < 2 * v; i++)
		varint_get(&at, end, &skipped);
	for (i = 0; i < SEGMENT_COLUMNS; i++) {
		varint_get(&at, end, &lengths[i]);
		columns_bytes += lengths[i];
	}
	head = (size_t)(at - s->bytes);
	if (head + columns_bytes > room || columns_bytes > sizeof(columns))
		return 0;
	memcpy(out, s->bytes, head);
	out[1] = 0;
	if (s->bytes[1] == SEGMENT_CODEC_RAW) {
		memcpy(out + head, at, columns_bytes);
		return head + columns_bytes;
	}
	if (inflate_bytes(at, (size_t)(end - at), columns, columns_bytes))
		return 0;
	for (i = 0, to = head, at = columns; i < SEGMENT_COLUMNS; at += lengths[i++]) {
		if (!segment_is_numbers(i)) {
			memcpy(out + to, at, lengths[i]);
			to += lengths[i];
		} else {
			if (!planes_open(&planes, &rest, at, lengths[i]))
				return 0;
			while (planes_next(&planes, &v))
				to += varint_put(out + to, v);
		}
	}
	return head + columns_bytes;
}
