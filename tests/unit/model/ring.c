/* The ring: eviction, freezing, what is held, and threads that freeze while another puts. */
#include "base/os.h"
#include "model/ring.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/segment_lab.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct seglab lab;

static int open_lab(void **state)
{
	(void)state;
	return seglab_open(&lab);
}

static int close_lab(void **state)
{
	(void)state;
	seglab_close(&lab);
	return 0;
}

static struct ring *open_ring(size_t max_bytes)
{
	struct ring *ring = NULL;

	assert_int_equal(ring_new(max_bytes, &ring, NULL), 0);
	return ring;
}

static struct ring_use use_of(struct ring *ring)
{
	struct ring_use use;

	ring_use(ring, &use);
	return use;
}

/* Segment i holds samples at i x 10,000 ns and 1,000 ns later. */
static struct segment *segment_at(unsigned i)
{
	struct segment *s = seglab_segment(&lab, i * 10000ull, 2);

	assert_non_null(s);
	return s;
}

/* What such a segment takes. Those of later times may take a byte or two more. */
static size_t segment_bytes(void)
{
	struct segment *s = segment_at(100);
	size_t n = s->memory_bytes;

	segment_unref(s);
	return n;
}

static struct frozen freeze(struct ring *ring, uint64_t t0_ns, uint64_t t1_ns)
{
	struct frozen f;

	assert_int_equal(ring_freeze(ring, t0_ns, t1_ns, &f, NULL), 0);
	return f;
}

TEST(ring_evicts_oldest_when_full)
{
	size_t one = segment_bytes();
	struct ring *ring = open_ring(3 * one);
	struct frozen f;
	unsigned i;

	for (i = 100; i < 103; i++)
		ring_put(ring, segment_at(i));
	assert_int_equal(use_of(ring).segments, 3);
	assert_int_equal(use_of(ring).evicted_segments, 0);
	ring_put(ring, segment_at(103));
	assert_int_equal(use_of(ring).segments, 3);
	assert_int_equal(use_of(ring).samples, 6);
	assert_int_equal(use_of(ring).bytes, 3 * one);
	assert_int_equal(use_of(ring).evicted_segments, 1);
	assert_int_equal(use_of(ring).evicted_samples, 2);
	assert_int_equal(use_of(ring).evicted_until_ns, 1001000);
	assert_int_equal(use_of(ring).given_up_until_ns, 0);
	assert_int_equal(use_of(ring).oldest_ns, 1010000);
	assert_int_equal(use_of(ring).newest_ns, 1031000);
	f = freeze(ring, 0, UINT64_MAX);
	assert_int_equal(f.nsegments, 3);
	assert_int_equal(f.segments[0]->t0_ns, 1010000);
	assert_int_equal(f.segments[2]->t0_ns, 1030000);
	frozen_free(&f);
	ring_free(ring);
}

TEST(what_the_ring_gives_up_is_told_from_what_had_no_room)
{
	struct ring *ring = open_ring(2 * segment_bytes());
	unsigned i;

	assert_false(ring_give_up_oldest(ring));
	for (i = 100; i < 103; i++)
		ring_put(ring, segment_at(i));
	assert_int_equal(use_of(ring).given_up_until_ns, 0);
	assert_true(ring_give_up_oldest(ring));
	assert_int_equal(use_of(ring).evicted_until_ns, 1011000);
	assert_int_equal(use_of(ring).given_up_until_ns, 1011000);
	assert_true(ring_give_up_oldest(ring));
	ring_put(ring, segment_at(103));
	ring_set_max(ring, 1);
	ring_put(ring, segment_at(104));
	assert_int_equal(use_of(ring).evicted_until_ns, 1031000);
	assert_int_equal(use_of(ring).given_up_until_ns, 1021000);
	assert_true(ring_give_up_oldest(ring));
	assert_false(ring_give_up_oldest(ring));
	assert_int_equal(use_of(ring).given_up_until_ns, 1041000);
	ring_free(ring);
}

TEST(ring_keeps_one_segment_however_large)
{
	struct ring *ring = open_ring(1);

	ring_put(ring, segment_at(100));
	assert_int_equal(use_of(ring).segments, 1);
	ring_put(ring, segment_at(101));
	assert_int_equal(use_of(ring).segments, 1);
	assert_int_equal(use_of(ring).oldest_ns, 1010000);
	ring_free(ring);
}

TEST(ring_evicts_several_small_ones_for_a_large_one)
{
	struct ring *ring = open_ring(4 * segment_bytes());
	unsigned i;

	for (i = 100; i < 104; i++)
		ring_put(ring, segment_at(i));
	ring_put(ring, seglab_segment(&lab, 2000000, 100));
	assert_true(use_of(ring).bytes <= use_of(ring).max_bytes);
	assert_int_equal(use_of(ring).samples, 100 + 2 * (use_of(ring).segments - 1));
	assert_int_equal(use_of(ring).segments + use_of(ring).evicted_segments, 5);
	ring_free(ring);
}

/* The array of 64 grows when it is full, also when its first is in the middle. */
TEST(ring_of_many_segments_keeps_their_order)
{
	size_t one = segment_bytes();
	struct ring *ring = open_ring(200 * (one + 8));
	struct frozen f;
	unsigned i;

	for (i = 100; i < 1000; i++)
		ring_put(ring, segment_at(i));
	f = freeze(ring, 0, UINT64_MAX);
	assert_int_equal(f.nsegments, use_of(ring).segments);
	assert_in_range(f.nsegments, 200, 210);
	for (i = 0; i < f.nsegments; i++)
		assert_int_equal(f.segments[i]->t0_ns, (1000 - f.nsegments + i) * 10000);
	frozen_free(&f);
	ring_free(ring);
}

TEST(frozen_segments_survive_their_eviction)
{
	struct ring *ring = open_ring(1);
	struct segment_content c = {0};
	struct frozen f;

	ring_put(ring, segment_at(100));
	f = freeze(ring, 1000000, 1000000);
	ring_put(ring, segment_at(101));
	ring_free(ring);
	assert_int_equal(f.nsegments, 1);
	assert_int_equal(atomic_load(&f.segments[0]->refs), 1);
	assert_int_equal(segment_decode(f.segments[0]->bytes, f.segments[0]->nbytes, &c, NULL), 0);
	assert_int_equal(c.samples[0].time_ns, 1000000);
	assert_int_equal(seglab_frame(&lab, f.segments[0], 0)->offset, 10);
	segment_content_free(&c);
	frozen_free(&f);
}

static uint32_t frozen_between(struct ring *ring, uint64_t t0_ns, uint64_t t1_ns)
{
	struct frozen f = freeze(ring, t0_ns, t1_ns);
	uint32_t n = f.nsegments;

	frozen_free(&f);
	assert_null(f.segments);
	return n;
}

/* Two segments: [1,000,000 .. 1,001,000] and [1,010,000 .. 1,011,000]. */
TEST(freeze_takes_exactly_what_overlaps)
{
	struct ring *ring = open_ring(1 << 20);

	assert_int_equal(frozen_between(ring, 0, UINT64_MAX), 0);
	ring_put(ring, segment_at(100));
	ring_put(ring, segment_at(101));
	assert_int_equal(frozen_between(ring, 0, 999999), 0);
	assert_int_equal(frozen_between(ring, 0, 1000000), 1);
	assert_int_equal(frozen_between(ring, 1000500, 1000600), 1);
	assert_int_equal(frozen_between(ring, 1001000, 1009999), 1);
	assert_int_equal(frozen_between(ring, 1001001, 1009999), 0);
	assert_int_equal(frozen_between(ring, 1001000, 1010000), 2);
	assert_int_equal(frozen_between(ring, 1011000, UINT64_MAX), 1);
	assert_int_equal(frozen_between(ring, 1011001, UINT64_MAX), 0);
	ring_free(ring);
}

TEST(incidents_share_segments)
{
	struct ring *ring = open_ring(1 << 20);
	struct frozen a, b;

	ring_put(ring, segment_at(100));
	a = freeze(ring, 0, UINT64_MAX);
	b = freeze(ring, 0, UINT64_MAX);
	assert_ptr_equal(a.segments[0], b.segments[0]);
	assert_int_equal(atomic_load(&a.segments[0]->refs), 3);
	frozen_free(&a);
	assert_int_equal(atomic_load(&b.segments[0]->refs), 2);
	frozen_free(&b);
	ring_free(ring);
}

TEST(segments_sealed_later_are_added_to_what_is_frozen)
{
	struct segment *s = segment_at(100);
	struct frozen f = {0};
	unsigned i;

	for (i = 0; i < 9; i++)
		assert_int_equal(frozen_add(&f, s), 0);
	assert_int_equal(f.nsegments, 9);
	assert_int_equal(atomic_load(&s->refs), 10);
	frozen_free(&f);
	assert_int_equal(atomic_load(&s->refs), 1);
	segment_unref(s);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define PUTS 3000u

struct race {
	struct ring *ring;
	atomic_bool ended;
	atomic_uint freezes, held;
};

/* As the writer does: freeze, read it all, let go, while segments are evicted underneath. */
static void freeze_and_read(void *ctx)
{
	struct race *race = ctx;
	bool last;

	do {
		struct frozen f;
		uint32_t i;

		last = atomic_load(&race->ended);
		if (ring_freeze(race->ring, 0, UINT64_MAX, &f, NULL))
			continue;
		for (i = 0; i < f.nsegments; i++) {
			struct segment_content c = {0};

			if (segment_decode(f.segments[i]->bytes, f.segments[i]->nbytes, &c, NULL))
				continue;
			atomic_fetch_add(&race->held, c.nsamples == 2 && c.nthreads == 1);
			segment_content_free(&c);
		}
		atomic_fetch_add(&race->freezes, 1);
		frozen_free(&f);
	} while (!last);
}

TEST(ring_is_frozen_by_three_threads_while_a_writer_puts)
{
	struct race race = {.ring = open_ring(8 * segment_bytes())};
	struct os_thread *threads[3];
	struct frames_use use;
	unsigned i;

	for (i = 0; i < 3; i++)
		assert_int_equal(
			os_thread_start("freezer", freeze_and_read, &race, &threads[i], NULL), 0);
	for (i = 0; i < PUTS; i++) {
		ring_put(race.ring, segment_at(100 + i));
		if (i % 64 == 0)
			frames_sweep(lab.frames, 1);
	}
	atomic_store(&race.ended, true);
	for (i = 0; i < 3; i++)
		os_thread_join(threads[i]);
	print_message("%u freezes of %u segments\n", atomic_load(&race.freezes),
		      atomic_load(&race.held));
	assert_true(race.freezes >= 3);
	assert_int_equal(use_of(race.ring).segments + use_of(race.ring).evicted_segments, PUTS);
	ring_free(race.ring);
	/* Every reference came back: nothing keeps the two frames. */
	frames_sweep(lab.frames, 1);
	frames_use(lab.frames, &use);
	assert_int_equal(use.frames, 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int new_step(void *ctx)
{
	struct ring *ring = NULL;
	int rc = ring_new(1000, &ring, NULL);

	(void)ctx;
	ring_free(ring);
	return rc;
}

static int freeze_step(void *ctx)
{
	struct frozen f = {0};
	struct err err = {0};
	int rc = ring_freeze(ctx, 0, UINT64_MAX, &f, &err);

	if (rc) {
		assert_int_equal(rc, ERR_MEMORY);
		assert_null(f.segments);
	}
	frozen_free(&f);
	return rc;
}

TEST(ring_without_memory_refuses_and_keeps_what_it_has)
{
	struct ring *ring = open_ring(1 << 20);
	unsigned i;

	assert_in_range(alloc_walk(new_step, NULL), 3, 6);
	for (i = 0; i < 10; i++)
		ring_put(ring, segment_at(i));
	assert_int_equal(alloc_walk(freeze_step, ring), 2);      /* room for all ten at once */
	assert_int_equal(use_of(ring).segments, 10);
	ring_free(ring);
}

TEST(ring_takes_a_segment_without_memory)
{
	struct ring *ring = open_ring(1 << 20);
	struct segment *first = segment_at(100), *second = segment_at(101);

	alloc_walk_fail_at(1);
	ring_put(ring, first);
	ring_put(ring, second);
	alloc_walk_fail_at(0);
	assert_int_equal(use_of(ring).segments, 2);
	assert_int_equal(use_of(ring).oldest_ns, 1000000);
	ring_free(ring);
}

#define WITH_LAB(test) cmocka_unit_test_setup_teardown(test, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LAB(ring_evicts_oldest_when_full),
		WITH_LAB(what_the_ring_gives_up_is_told_from_what_had_no_room),
		WITH_LAB(ring_keeps_one_segment_however_large),
		WITH_LAB(ring_evicts_several_small_ones_for_a_large_one),
		WITH_LAB(ring_of_many_segments_keeps_their_order),
		WITH_LAB(frozen_segments_survive_their_eviction),
		WITH_LAB(freeze_takes_exactly_what_overlaps),
		WITH_LAB(incidents_share_segments),
		WITH_LAB(segments_sealed_later_are_added_to_what_is_frozen),
		WITH_LAB(ring_is_frozen_by_three_threads_while_a_writer_puts),
		WITH_LAB(ring_without_memory_refuses_and_keeps_what_it_has),
		WITH_LAB(ring_takes_a_segment_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
