/*
 * Write a store with one incident of all streams and names that could break a format, for
 * tests/cli/formats.sh: `store_streams FILE`. Everything in it but uuids is constant. Prints a line
 * a stream: its name, its samples, and what they weigh together.
 *
 * Each name is a process, a thread, a module and a function; below it, in the kernel and jitted, it
 * is a function again. Sample k (from 1) of a stream weighs 10,000,000 ns of CPU, 1,000,001 * k ns
 * off CPU, 700,000 * k bytes (over 2^24 in the end), or 1 event.
 */
#include "store/store.h"
#include "tests/support/incident_samples.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ULL
#define WALL_NS (1767323030 * SEC)           /* of the recorder clock's 0: 2026-01-02T03:03:50Z */
#define LONG_BYTES 10000

struct world {
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct object *kernel, *jit;
	uint64_t samples[STREAMS_MAX], weight[STREAMS_MAX];
	uint64_t now_ns;
};

static uint64_t weight_of(enum stream stream, uint64_t k)
{
	switch (stream) {
	case STREAM_CPU: return 10000000;
	case STREAM_OFF_CPU: return 1000001 * k;
	case STREAM_ALLOC:
	case STREAM_RSS: return 700000 * k;
	default: return 1;
	}
}

static int name_frame(struct world *w, const struct frame_ref *ref, const char *name)
{
	bool fresh;
	uint32_t number = frames_intern(w->frames, ref, &fresh);

	if (number == FRAME_NONE)
		return ERR_MEMORY;
	return frame_set_function(w->frames, frame_get(w->frames, number), ref->offset, name, NULL,
				  NULL);
}

static int add_sample(struct world *w, struct thread *thread, const struct frame_ref *refs,
		      uint32_t n, enum stream stream)
{
	uint64_t k = ++w->samples[stream], weight = weight_of(stream, k);
	struct event e = {
		.time_ns = w->now_ns += 10000000, .kind = EVENT_SAMPLE, .process = thread->process,
		.thread = thread, .cpu = (uint16_t)(k % 2), .stream = (uint8_t)stream,
		.quality = k % 7 ? QUALITY_COMPLETE : QUALITY_BROKEN, .value = (double)weight,
	};

	w->weight[stream] += weight;
	e.stack = segment_stack(w->builder, refs, n, NULL, NULL);
	return segment_add(w->builder, &e);
}

/* All that a name can be, in every stream; CPU samples thrice. */
static int add_name(struct world *w, const char *name, uint32_t number)
{
	struct object_key key = {.kind = OBJECT_ELF,
				 .path = *name ? name : "/",
				 .build_id_bytes = 20,
				 .build_id = {(uint8_t)number, 1}};
	struct object *object = objects_get(w->frames, &key, 100);
	struct process *process = process_add(w->processes, 1000 + number, SEC, 0, 1, name);
	struct thread *thread = process ? thread_add(w->processes, process, 1000 + number) : NULL;
	const struct frame_ref refs[] = {
		{w->kernel, 0x1000 + 0x10 * number, FRAME_KERNEL},
		{w->jit, 0x2000 + 0x10 * number, FRAME_JIT},
		{object, 0x3000, 0},
	};
	unsigned stream, i;
	int rc = object && thread ? 0 : ERR_MEMORY;

	if (!rc)
		thread_set_name(thread, name);
	for (i = 0; i < 3 && !rc; i++)
		rc = name_frame(w, &refs[i], name);
	for (stream = 0; stream <= STREAM_RSS && !rc; stream++)
		rc = add_sample(w, thread, refs, 3, (enum stream)stream);
	for (i = 1; i < 3 && !rc; i++)
		rc = add_sample(w, thread, refs + i, 3 - i, STREAM_CPU);
	return rc;
}

static int make_segment(struct world *w, struct segment **out, struct err *err)
{
	struct object_key kernel = {.kind = OBJECT_KERNEL, .path = "[kernel]"};
	struct object_key jit = {.kind = OBJECT_JIT, .path = "[jit]", .pid = 200};
	char *longest = malloc(LONG_BYTES + 1);
	uint32_t i;
	int rc = frames_new(&w->frames, err);

	if (!rc)
		rc = processes_new(&w->processes, err);
	if (!rc)
		rc = segment_builder_new(w->frames, w->processes, &w->builder, err);
	if (!rc) {
		w->kernel = objects_get(w->frames, &kernel, 100);
		w->jit = objects_get(w->frames, &jit, 100);
		rc = w->kernel && w->jit && longest ? 0 : ERR_MEMORY;
	}
	if (!rc) {
		memset(longest, 'n', LONG_BYTES);
		longest[LONG_BYTES] = '\0';
	}
	w->now_ns = 3 * SEC;
	for (i = 0; !rc && (!i || sample_hostile_names[i - 1]); i++)
		rc = add_name(w, sample_hostile_names[i] ? sample_hostile_names[i] : longest, i);
	segment_set_period(w->builder, STREAM_CPU, weight_of(STREAM_CPU, 1));
	if (!rc)
		rc = segment_seal(w->builder, out, err);
	free(longest);
	return rc && !*err->text ? err_memory(err, "for this program") : rc;
}

static int write_store(const char *path, struct segment *segment, struct err *err)
{
	static char text[] = "manual", host[] = "web-1";
	struct incident_head h = {
		.rule = text,
		.reason = text,
		.host = host,
		.host_text = host,
		.recorder_version = text,
		.value = NAN,
		.limit = NAN,
		.trigger_ns = 4 * SEC,
		.trigger_wall_ns = WALL_NS,
		.asked_pre_ns = SEC,
		.asked_post_ns = 2 * SEC,
		.t0_ns = 3 * SEC,
		.t1_ns = 6 * SEC,
	};
	struct store *s = NULL;
	int rc = store_open(path, STORE_RECORD, &s, err);

	if (!rc) {
		store_set_floor(s, 0);
		rc = store_begin(s, &h, err);
	}
	if (!rc)
		rc = store_put_segment(s, h.id, segment, err);
	if (!rc)
		rc = store_finish(s, &h, &segment, 1, err);
	store_close(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct segment *segment = NULL;
	struct world w = {0};
	struct err err = {0};
	unsigned i;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: store_streams FILE\n");
		return 2;
	}
	rc = make_segment(&w, &segment, &err);
	if (!rc)
		rc = write_store(argv[1], segment, &err);
	if (rc)
		fprintf(stderr, "store_streams: %s\n", err.text);
	/* Readers make it: all that was touched is still there. */
	w.samples[STREAM_RSS_NET] = w.samples[STREAM_RSS];
	w.weight[STREAM_RSS_NET] = w.weight[STREAM_RSS];
	for (i = 0; !rc && i <= STREAM_RSS_NET; i++)
		printf("%s %" PRIu64 " %" PRIu64 "\n", stream_text(i), w.samples[i],
		       w.weight[i]);
	segment_unref(segment);
	segment_builder_free(w.builder);
	frames_free(w.frames);
	processes_free(w.processes);
	return rc ? 1 : 0;
}
