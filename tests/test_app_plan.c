/* What ten seconds say of a full ring. */
#include "plan.h"

#include "model/ring.h"
#include "tests/support/bench_stream.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

static void segments_get_denser_by_a_power_of_their_size(void **state)
{
	(void)state;
	/* 20 bytes a sample at 100 and 10 at 1,600: half at 16 times, so 10 / sqrt(sqrt(2)) at 3,200. */
	assert_true(fabs(plan_segment_bytes(100, 2000, 1600, 16000, 1600) - 16000) < 0.01);
	assert_true(fabs(plan_segment_bytes(100, 2000, 1600, 16000, 3200) - 3200 * 8.4090) < 1);
	/* As measured: 19.4 at 200, 14.3 at 2,000; 12.3 at 8,192 are met within 5 %. */
	assert_in_range(plan_segment_bytes(200, 200 * 19.4, 2000, 2000 * 14.3, 8192) / 8192 * 100, 1168,
			1292);
}

static void what_cannot_be_is_not_extrapolated(void **state)
{
	(void)state;
	/* The larger one is less dense, the first is missing, or was the larger. */
	assert_true(fabs(plan_segment_bytes(100, 1000, 1000, 20000, 8000) - 160000) < 0.01);
	assert_true(fabs(plan_segment_bytes(0, 0, 1000, 10000, 8000) - 80000) < 0.01);
	assert_true(fabs(plan_segment_bytes(2000, 30000, 1000, 10000, 8000) - 80000) < 0.01);
	assert_true(fabs(plan_segment_bytes(0, 0, 0, 0, 8000) - 0) < 0.01);
	/* No more than by the power of 0.4: a burst at the start is no law. */
	assert_true(fabs(plan_segment_bytes(10, 10000, 1000, 10000, 2000) - 20000 * 0.757858) < 1);
}

/* n samples of the world as one segment: its bytes. */
static double part_bytes(struct world *w, uint64_t from, uint32_t n)
{
	struct segment *s = NULL;
	struct event e;
	double bytes;

	while (n--) {
		world_sample(w, from++, &e);
		e.stack = segment_stack(w->builder, e.stack_frames, e.nstack_frames, NULL, NULL);
		assert_int_equal(segment_add(w->builder, &e), 0);
	}
	assert_int_equal(segment_seal(w->builder, &s, NULL), 0);
	bytes = (double)s->memory_bytes;
	segment_unref(s);
	return bytes;
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
		e.stack = segment_stack(w->builder, e.stack_frames, e.nstack_frames, NULL, NULL);
		assert_int_equal(segment_add(w->builder, &e), 0);
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
 * 1 MB, two CPUs at 99 Hz, of which the plan takes four times as many samples: five times ten seconds, from the
 * second on, say it within a tenth on average, for what is drawn in each of them differs; and none is far off.
 */
static void ten_seconds_say_how_far_a_full_ring_reaches(void **state)
{
	static const uint32_t stacks[] = {4000, 20000};
	unsigned i, ten;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct settings settings = {.samples = 400000, .stacks = stacks[i], .frames = 8000,
					    .threads = 60};
		double said_s, sum_s = 0, is_s, least = 1e9, most = 0;
		struct world w;

		assert_int_equal(world_make(&w, &settings, NULL), 0);
		for (ten = 1; ten < 6; ten++) {
			double halves = part_bytes(&w, ten * 7920, 3960) + part_bytes(&w, ten * 7920 + 3960, 3960);
			double whole = part_bytes(&w, ten * 7920, 7920);
			double full = plan_segment_bytes(3960, halves / 2, 7920, whole, 8192);

			said_s = plan_segments_held(1 << 20, full) * 8192 / (BENCH_CPUS * BENCH_FREQ_HZ);
			least = said_s < least ? said_s : least;
			most = said_s > most ? said_s : most;
			sum_s += said_s;
		}
		is_s = held_s(&w, 1 << 20, settings.samples);
		print_message("%u stacks: %.1f to %.1f s said, %.1f s held\n", stacks[i], least, most, is_s);
		assert_true(sum_s / 5 > 0.9 * is_s && sum_s / 5 < 1.1 * is_s);
		assert_true(least > 0.85 * is_s && most < 1.15 * is_s);
		world_free(&w);
	}
}

/* ---- a source that never rests ----------------------------------------------------------------- */

enum { RESTLESS_FRAMES = 60 };

struct restless {
	struct source base;
	struct queue *queue;
	struct object *object;
	_Atomic bool stopping;
};

extern const struct source_ops restless_source;

static int restless_open(const struct source_config *cfg, const struct needs *needs, struct source **out,
			 struct err *err)
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
	struct event e = {.time_ns = NS_PER_SEC, .kind = EVENT_SAMPLE, .stream = STREAM_CPU, .stack = STACK_NONE,
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

static void a_plan_ends_though_its_source_never_rests(void **state)
{
	const struct source_ops *sources[] = {&restless_source, NULL};
	struct needs needs = {0};
	struct plan_config cfg = {.sources = sources, .source = {.freq_hz = 99}, .needs = &needs,
				  .ring_bytes = 1 << 20, .measure_ns = NS_PER_MS * 100};
	struct plan plan;

	(void)state;
	assert_int_equal(plan_measure(&cfg, &plan, NULL), 0);
	assert_true(plan.samples > 0 && plan.history_s > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_get_denser_by_a_power_of_their_size),
		cmocka_unit_test(what_cannot_be_is_not_extrapolated),
		cmocka_unit_test(ten_seconds_say_how_far_a_full_ring_reaches),
		cmocka_unit_test(a_plan_ends_though_its_source_never_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
