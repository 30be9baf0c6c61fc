/* What ten seconds say of a full ring. */
#include "engine/plan.h"

#include "base/array.h"
#include "engine/engine.h"
#include "model/ring.h"
#include "tests/support/bench_stream.h"
#include "tests/support/test.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

TEST(segments_get_denser_by_a_power_of_their_size)
{
	/* 20 bytes each at 100 samples, 10 at 1,600: so 10 / sqrt(sqrt(2)) at 3,200. */
	assert_true(fabs(plan_segment_bytes(100, 2000, 1600, 16000, 1600) - 16000) < 0.01);
	assert_true(fabs(plan_segment_bytes(100, 2000, 1600, 16000, 3200) - 3200 * 8.4090) < 1);
	/* As measured: 19.4 at 200, 14.3 at 2,000; 12.3 at 8,192 are met within 5 %. */
	assert_in_range(plan_segment_bytes(200, 200 * 19.4, 2000, 2000 * 14.3, 8192) / 8192 * 100,
			1168, 1292);
}

TEST(what_cannot_be_is_not_extrapolated)
{
	/* The larger one is less dense, the first is missing, or was the larger. */
	assert_true(fabs(plan_segment_bytes(100, 1000, 1000, 20000, 8000) - 160000) < 0.01);
	assert_true(fabs(plan_segment_bytes(0, 0, 1000, 10000, 8000) - 80000) < 0.01);
	assert_true(fabs(plan_segment_bytes(2000, 30000, 1000, 10000, 8000) - 80000) < 0.01);
	assert_true(fabs(plan_segment_bytes(0, 0, 0, 0, 8000) - 0) < 0.01);
	/* No more than by the power of 0.4: a burst at the start is no law. */
	assert_true(fabs(plan_segment_bytes(10, 10000, 1000, 10000, 2000) - 20000 * 0.757858) < 1);
}

TEST(processes_that_come_and_go_end_history_too)
{
	/* 65,536 processes, 77.5 % full: 10,000 an hour last 5 hours, 40 a second 21 minutes. */
	assert_true(fabs(engine_processes_reach_s(10000 / 3600.0, 0) - 18284.5) < 0.1);
	assert_true(fabs(engine_processes_reach_s(40, 0) - 1269.8) < 0.1);
	/* However many there are: a little more than five minutes, or than an incident keeps. */
	assert_true(fabs(engine_processes_reach_s(5000, 0) - 310) < 0.1);
	assert_true(fabs(engine_processes_reach_s(5000, 3600 * NS_PER_SEC) - 3720) < 0.1);
	assert_true(engine_processes_reach_s(0, 0) > 1e300);
}

enum { TIMES = 4, TEN = TIMES * 10 * BENCH_CPUS * BENCH_FREQ_HZ, LEAD = TEN / 10 };

static void put(struct segment_builder *b, struct event *e)
{
	e->stack = segment_stack(b, e->stack_frames, e->nstack_frames, NULL, NULL);
	assert_int_equal(segment_add(b, e), 0);
}

static double sealed_bytes(struct segment_builder *b)
{
	struct segment *s = NULL;
	double bytes;

	assert_int_equal(segment_seal(b, &s, NULL), 0);
	bytes = plan_ring_bytes(s);
	segment_unref(s);
	return bytes;
}

/*
 * What a plan says that begins a second before the ten-th ten seconds of the stream, with tables
 * that are empty then, taking four times as many samples: how many seconds a ring holds.
 */
static double said_s(const struct settings *settings, uint32_t ten, size_t ring_bytes)
{
	struct segment_builder *halves[2];
	double halves_bytes = 0, whole_bytes;
	struct world w;
	struct event e;
	uint32_t i;

	assert_int_equal(world_make(&w, settings, NULL), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(segment_builder_new(w.frames, w.processes, &halves[i], NULL), 0);
	for (i = 0; i < LEAD + TEN; i++) {
		if (i == LEAD) {
			sealed_bytes(w.builder);
			sealed_bytes(halves[0]);
		}
		world_sample(&w, (uint64_t)ten * TEN - LEAD + i, &e);
		put(halves[i >= LEAD + TEN / 2], &e);
		put(w.builder, &e);
	}
	whole_bytes = sealed_bytes(w.builder);
	for (i = 0; i < 2; i++) {
		halves_bytes += sealed_bytes(halves[i]);
		segment_builder_free(halves[i]);
	}
	world_free(&w);
	return plan_segments_held((double)ring_bytes, plan_segment_bytes(TEN / 2, halves_bytes / 2,
									 TEN, whole_bytes,
									 SEGMENT_MAX_SAMPLES)) *
	       SEGMENT_MAX_SAMPLES / (BENCH_CPUS * BENCH_FREQ_HZ);
}

/* Seconds from the oldest sample to the newest, as an average over the samples of a full ring. */
static double held_s(struct world *w, size_t ring_bytes, uint64_t nsamples)
{
	struct ring *ring = NULL;
	struct ring_use use = {0};
	struct segment *s = NULL;
	double sum = 0, n = 0;
	struct event e;

	assert_int_equal(ring_new(ring_bytes, &ring, NULL), 0);
	for (w->next = 0; w->next < nsamples; w->next++) {
		world_sample(w, w->next, &e);
		if (segment_is_full(w->builder, e.time_ns)) {
			assert_int_equal(segment_seal(w->builder, &s, NULL), 0);
			ring_put(ring, s);
			ring_use(ring, &use);
		}
		put(w->builder, &e);
		if (use.evicted_segments) {
			sum += (double)(e.time_ns - use.oldest_ns) / 1e9;
			n++;
		}
	}
	ring_free(ring);
	assert_true(n > 0);
	return sum / n;
}

/*
 * 1 MB, two CPUs at 99 Hz: any ten seconds, from the second on, say it within a tenth, of streams
 * that repeat much or little and of ones that do so by chance.
 */
TEST(ten_seconds_say_how_far_a_full_ring_reaches)
{
	static const struct settings streams[] = {
		{.stacks = 4000, .seed = 1}, {.stacks = 20000, .seed = 2},
		{.stacks = 4000, .random = true, .seed = 3},
		{.stacks = 20000, .random = true, .seed = 4},
	};
#ifdef __SANITIZE_ADDRESS__
	enum { EACH = 3, TENS = 2 };         /* slow: the first and the last stream */
#else
	enum { EACH = 1, TENS = 6 };
#endif
	unsigned i, ten;

	if (EACH > 1)
		printf("in part: two streams of four, ten seconds %d times, as it is slow under a "
		       "sanitizer\n", TENS);
	for (i = 0; i < COUNT_OF(streams); i += EACH) {
		struct settings settings = streams[i];
		double is_s, said, least = 1e9, most = 0;
		struct world w;

		settings.samples = 400000;
		settings.frames = 8000;
		settings.threads = 60;
		assert_int_equal(world_make(&w, &settings, NULL), 0);
		is_s = held_s(&w, 1 << 20, settings.samples);
		world_free(&w);
		for (ten = 1; ten < TENS; ten += 2) {
			said = said_s(&settings, ten, 1 << 20);
			least = said < least ? said : least;
			most = said > most ? said : most;
		}
		print_message("%u stacks%s: %.1f to %.1f s said, %.1f s held\n", settings.stacks,
			      settings.random ? " at random" : "", least, most, is_s);
		assert_true(least > 0.9 * is_s && most < 1.1 * is_s);
	}
}

/* ---- a source that never rests --------------------------------------------------------------- */

enum { RESTLESS_FRAMES = 60 };

struct restless {
	struct source base;
	struct queue *queue;
	struct object *object;
	_Atomic bool stopping;
};

extern const struct source_ops restless_source;

static int restless_open(const struct source_config *cfg, const struct needs *needs,
			 struct source **out, struct err *err)
{
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 4, .path = "/test/restless"};
	struct restless *s = calloc(1, sizeof(*s));

	(void)needs;
	(void)err;
	assert_non_null(s);
	s->object = objects_get(cfg->frames, &key, 1);
	assert_non_null(s->object);
	s->base.ops = &restless_source;
	s->queue = cfg->queue;
	*out = &s->base;
	return 0;
}

static int restless_run(struct source *source, struct err *err)
{
	struct restless *s = (struct restless *)source;
	struct event e = {.time_ns = NS_PER_SEC, .kind = EVENT_SAMPLE, .stream = STREAM_CPU,
			  .stack = STACK_NONE,
			  .value = 1e9 / 99, .nstack_frames = RESTLESS_FRAMES};
	struct frame_ref frames[RESTLESS_FRAMES] = {0};
	uint32_t i;

	(void)err;
	e.stack_frames = frames;
	for (i = 0; i < RESTLESS_FRAMES; i++)
		frames[i] = (struct frame_ref){.object = s->object, .offset = 64 * i};
	/* Putting one is copying; taking one is looking each frame up, three times. */
	while (!atomic_load(&s->stopping)) {
		frames[RESTLESS_FRAMES - 1].offset = 64 * (e.time_ns / 1000 % 997);
		e.time_ns += queue_offer(s->queue, &e) ? 1000 : 0;
	}
	return 0;
}

static void restless_stop(struct source *source)
{
	atomic_store(&((struct restless *)source)->stopping, true);
}

static void restless_close(struct source *source)
{
	object_drop(((struct restless *)source)->object, 0);
	free(source);
}

const struct source_ops restless_source = {
	.name = "restless",
	.summary = "samples as fast as they can be taken, and faster",
	.open = restless_open,
	.run = restless_run,
	.stop = restless_stop,
	.close = restless_close,
};

TEST(a_plan_ends_though_its_source_never_rests)
{
	const struct source_ops *sources[] = {&restless_source, NULL};
	struct needs needs = {0};
	struct plan_config cfg = {.sources = sources, .source = {.capture = {.freq_hz = 99}},
				  .needs = &needs,
				  .ring_bytes = 1 << 20, .measure_ns = NS_PER_MS * 100};
	struct plan plan;

	assert_int_equal(plan_measure(&cfg, &plan, NULL), 0);
	assert_true(plan.samples > 0 && plan.history_s > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_get_denser_by_a_power_of_their_size),
		cmocka_unit_test(processes_that_come_and_go_end_history_too),
		cmocka_unit_test(what_cannot_be_is_not_extrapolated),
		cmocka_unit_test(ten_seconds_say_how_far_a_full_ring_reaches),
		cmocka_unit_test(a_plan_ends_though_its_source_never_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
