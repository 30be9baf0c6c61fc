/* Objects of .NET and their collections: synthetic events, with the ids and layouts of the CLR. */
#include "base/bytes.h"
#include "base/os.h"
#include "model/process.h"
#include "source/runtime/gc_objects.h"
#include "tests/support/test.h"

#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define SIZE 100000u
#define MARKS 8u

static struct gc_objects g;
static struct process process = {.pid = 7, .start_ns = 1};
static uint64_t now_ns;
static struct { uint64_t allocated_ns; uint16_t cpu; } dead[MARKS];
static unsigned nsamples, ndead;
static uint64_t sample_ns;                   /* of the last sample */

static void put(void *ctx, const struct event *e)
{
	(void)ctx;
	assert_int_equal(e->kind, EVENT_SAMPLE);
	assert_ptr_equal(e->process, &process);
	if (e->stream == STREAM_HEAP) {
		assert_true(e->value == SIZE);
		sample_ns = e->time_ns;
		nsamples++;
		return;
	}
	assert_int_equal(e->stream, STREAM_HEAP_MARK);
	assert_true(ndead < MARKS);
	dead[ndead].cpu = e->cpu;
	dead[ndead++].allocated_ns = e->time_ns - (uint64_t)e->value / 2 * FAULT_TICK_NS;
}

static struct event event_of(uint32_t id, const struct event_field *fields, uint32_t n)
{
	return (struct event){.kind = EVENT_GENERIC, .time_ns = now_ns, .process = &process,
			      .provider = CLR, .name = "", .fields = fields, .nfields = n,
			      .flags = EVENT_FLAG_ID | id << EVENT_ID_SHIFT, .cpu = 9};
}

static bool tell(uint32_t id, const struct event_field *fields, uint32_t n, const uint8_t *payload,
		 uint32_t nbytes)
{
	struct event e;

	now_ns += 1000;
	e = event_of(id, fields, n);
	return gc_objects_collect(&g, &e, payload, nbytes, 8, put, NULL);
}

static void allocate_at(uint64_t address, uint16_t cpu, uint64_t kind)
{
	const struct event_field fields[] = {
		{.name = "AllocationAmount64", .type = FIELD_UINT, .v.u = SIZE},
		{.name = "AllocationKind", .type = FIELD_UINT, .v.u = kind},
		{.name = "Address", .type = FIELD_UINT, .v.u = address}};
	struct event e = event_of(10, fields, 3);

	e.name = "GC/AllocationTick";
	e.cpu = cpu;
	e.nstack_frames = 1;
	gc_objects_alloc(&g, &e, put, NULL);
}

/* Returns when. */
static uint64_t allocate(uint64_t address)
{
	now_ns += 1000;
	allocate_at(address, 3, 0);
	return now_ns;
}

static void begin(uint32_t count, uint32_t depth, uint32_t type)
{
	const struct event_field fields[] = {
		{.name = "Count", .type = FIELD_UINT, .v.u = count},
		{.name = "Depth", .type = FIELD_UINT, .v.u = depth},
		{.name = "Type", .type = FIELD_UINT, .v.u = type}};

	assert_false(tell(1, fields, 3, NULL, 0));
}

static void end(uint32_t count)
{
	const struct event_field field = {.name = "Count", .type = FIELD_UINT, .v.u = count};

	ndead = 0;
	assert_false(tell(2, &field, 1, NULL, 0));
}

/* [from, from + length) is of this generation. */
static void generation(uint32_t number, uint64_t from, uint64_t length)
{
	const struct event_field fields[] = {
		{.name = "Generation", .type = FIELD_UINT, .v.u = number},
		{.name = "RangeStart", .type = FIELD_UINT, .v.u = from},
		{.name = "RangeUsedLength", .type = FIELD_UINT, .v.u = length}};

	assert_true(tell(23, fields, 3, NULL, 0));
}

static void lives(uint64_t from, uint64_t length)
{
	uint8_t payload[26] = {[4] = 1};

	memcpy(payload + 10, &from, 8);
	memcpy(payload + 18, &length, 8);
	assert_true(tell(21, NULL, 0, payload, sizeof(payload)));
}

static void moves(uint64_t from, uint64_t to, uint64_t length)
{
	uint8_t payload[34] = {[4] = 1};

	memcpy(payload + 10, &from, 8);
	memcpy(payload + 18, &to, 8);
	memcpy(payload + 26, &length, 8);
	assert_true(tell(22, NULL, 0, payload, sizeof(payload)));
}

static int set_up(void **state)
{
	(void)state;
	g = (struct gc_objects){.on = true};
	now_ns = 1000000;
	nsamples = ndead = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	gc_objects_free(&g);
	assert_int_equal(g.nobjects, 0);
	return 0;
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* The first dies; the second moves and dies later; the third lives on, of generation 1 by then. */
TEST(three_objects_and_three_collections)
{
	uint64_t first = allocate(0x1000), second = allocate(0x2000);

	allocate(0x3000);
	assert_int_equal(nsamples, 3);
	begin(1, 0, 0);
	generation(0, 0x1000, 0x3000);
	moves(0x2000, 0x1000, 0x100);
	moves(0x3000, 0x1100, 0x100);
	end(1);
	assert_int_equal(ndead, 1);
	assert_true(dead[0].allocated_ns == first);
	assert_int_equal(dead[0].cpu, 3);
	/* Both are of generation 1 now, of which this collection tells nothing. */
	begin(2, 0, 0);
	generation(1, 0x1000, 0x200);
	end(2);
	assert_int_equal(ndead, 0);
	begin(3, 1, 0);
	generation(1, 0x1000, 0x200);
	lives(0x1100, 0x100);
	end(3);
	assert_int_equal(ndead, 1);
	assert_true(dead[0].allocated_ns == second);
	assert_int_equal(g.nobjects, 1);
	assert_int_equal(g.forgotten, 0);
}

/* One that takes the place of another, which moves away in the same collection. */
TEST(an_object_may_move_to_where_another_one_was)
{
	allocate(0x1000);
	allocate(0x2000);
	begin(1, 0, 0);
	generation(0, 0x1000, 0x2000);
	moves(0x2000, 0x1000, 0x100);
	moves(0x1000, 0x9000, 0x100);
	end(1);
	assert_int_equal(ndead, 0);
	begin(2, 1, 0);
	generation(1, 0x1000, 0x9000);
	lives(0x1000, 0x100);
	end(2);
	assert_int_equal(ndead, 1);
	assert_true(dead[0].allocated_ns == 1001000);
}

/* Where the keyword is off, a collection without ranges says nothing of who lives. */
TEST(a_collection_that_tells_no_survivals_kills_nobody)
{
	allocate(0x1000);
	begin(1, 2, 0);
	end(1);
	assert_int_equal(ndead, 0);
	assert_int_equal(g.nobjects, 1);
	g.on = false;
	allocate(0x2000);
	assert_int_equal(nsamples, 1);
	assert_int_equal(g.nobjects, 1);
}

TEST(large_objects_die_with_the_oldest_generation)
{
	now_ns += 1000;
	allocate_at(0x100000, 3, GC_LARGE_OBJECT);
	begin(1, 1, 0);
	generation(3, 0x100000, 0x10000);
	end(1);
	assert_int_equal(ndead, 0);
	begin(2, 2, 0);
	generation(3, 0x100000, 0x10000);
	end(2);
	assert_int_equal(ndead, 1);
}

/* It was demoted, or not promoted: the bounds are certain, our guess is not. */
TEST(the_bounds_of_generations_say_whose_an_object_is)
{
	allocate(0x1000);
	begin(1, 0, 0);
	generation(0, 0x1000, 0x1000);
	lives(0x1000, 0x100);
	end(1);
	begin(2, 0, 0);
	generation(0, 0x1000, 0x1000);
	generation(1, 0x1000, 0x1000);       /* of the end: no more of interest */
	end(2);
	assert_int_equal(ndead, 1);
}

/* A young collection comes and goes while the oldest generation is collected. */
TEST(a_background_collection_waits_for_a_younger_one)
{
	uint64_t old = allocate(0x1000), young;

	allocate(0x2000);
	begin(1, 1, 0);
	generation(1, 0x1000, 0x2000);
	lives(0x1000, 0x2000);
	end(1);
	begin(2, 2, 1);
	generation(2, 0x1000, 0x2000);
	young = allocate(0x8000);
	begin(3, 0, 2);
	generation(0, 0x8000, 0x1000);
	generation(2, 0x1000, 0x2000);
	end(3);
	assert_int_equal(ndead, 1);
	assert_true(dead[0].allocated_ns == young);
	allocate(0x8000);                    /* after its beginning: it says nothing of this one */
	lives(0x2000, 0x100);
	end(2);
	assert_int_equal(ndead, 1);
	assert_true(dead[0].allocated_ns == old);
	assert_int_equal(g.nobjects, 2);
}

TEST(what_is_told_while_two_are_open_lives_for_both)
{
	allocate(0x1000);
	begin(1, 1, 0);
	generation(1, 0x1000, 0x1000);
	lives(0x1000, 0x100);
	end(1);
	begin(2, 2, 1);
	begin(3, 2, 0);                      /* it waits for the one in the background, */
	lives(0x1000, 0x100);                /* which tells of its objects now */
	end(2);
	assert_int_equal(ndead, 0);
	lives(0x1000, 0x100);
	end(3);
	assert_int_equal(ndead, 0);
	assert_int_equal(g.nobjects, 1);
}

TEST(what_grows_old_during_a_background_collection_is_not_its)
{
	allocate(0x1000);
	begin(1, 2, 1);
	generation(1, 0x1000, 0x1000);
	begin(2, 1, 0);
	lives(0x1000, 0x100);
	end(2);
	begin(3, 1, 0);
	end(3);
	end(1);
	assert_int_equal(ndead, 0);
	assert_int_equal(g.nobjects, 1);
}

/* .NET Core 3.1: told as one in the background, but no thread runs until it has moved all. */
TEST(a_background_collection_that_could_not_be_started_collects_all_generations)
{
	begin(1, 0, 0);
	end(1);
	assert_false(tell(3, NULL, 0, NULL, 0));
	allocate(0x1000);
	allocate(0x2000);
	begin(2, 2, 1);
	generation(0, 0x1000, 0x2000);
	moves(0x2000, 0x1000, 0x100);
	generation(2, 0x1000, 0x1000);
	end(2);
	assert_int_equal(ndead, 1);
	assert_false(tell(3, NULL, 0, NULL, 0));
	allocate(0x8000);
	begin(3, 2, 1);
	assert_false(tell(3, NULL, 0, NULL, 0));
	generation(0, 0x8000, 0x1000);
	lives(0x1000, 0x100);
	end(3);
	assert_int_equal(ndead, 0);          /* this one was: it says nothing of young objects */
	assert_int_equal(g.nobjects, 2);
}

/* What was not seen since the loss may live at an address that was not told. */
TEST(after_a_loss_objects_are_forgotten_and_not_dead)
{
	allocate(0x1000);
	gc_objects_lost(&g, now_ns);
	allocate(0x2000);
	begin(1, 0, 0);
	generation(0, 0x1000, 0x2000);
	end(1);
	assert_int_equal(ndead, 1);
	assert_int_equal(g.forgotten, 1);
	assert_int_equal(g.nobjects, 0);
}

/* Half a range of the two, or a range that does not fit, is a loss, too. */
TEST(ranges_that_are_cut_kill_nobody)
{
	const uint8_t payload[30] = {[4] = 2};

	allocate(0x1000);
	begin(1, 0, 0);
	assert_true(tell(21, NULL, 0, payload, sizeof(payload)));
	end(1);
	assert_int_equal(ndead, 0);
	assert_int_equal(g.forgotten, 1);
	allocate(0x1000);
	begin(2, 0, 0);
	assert_true(tell(22, NULL, 0, payload, 3));
	end(2);
	assert_int_equal(ndead, 0);
	assert_int_equal(g.forgotten, 2);
}

TEST(a_stop_that_is_lost_kills_nobody_and_moves_are_kept)
{
	allocate(0x1000);
	allocate(0x2000);
	begin(1, 0, 0);
	generation(0, 0x1000, 0x2000);
	moves(0x2000, 0x5000, 0x100);
	begin(2, 1, 0);
	assert_int_equal(ndead, 0);
	generation(0, 0x1000, 0x5000);
	lives(0x5000, 0x100);
	end(7);                              /* of another one */
	assert_int_equal(ndead, 0);
	end(2);
	assert_int_equal(ndead, 1);
	assert_true(dead[0].allocated_ns == 1001000);
}

/* Marks name samples by CPU and 100 ns, and clocks of programs may be coarser. */
TEST(two_samples_of_a_cpu_never_have_the_same_time)
{
	allocate(0x1000);
	allocate_at(0x2000, 3, 0);
	assert_true(sample_ns == now_ns + FAULT_TICK_NS);
	allocate_at(0x3000, 4, 0);
	assert_true(sample_ns == now_ns);
	begin(1, 0, 0);
	generation(0, 0, UINT64_MAX);
	lives(0x3000, UINT64_MAX);
	end(1);
	assert_int_equal(ndead, 2);
	assert_true(dead[1].allocated_ns == dead[0].allocated_ns + FAULT_TICK_NS);
}

/* 100,000 objects, in no order; all above the first half live, and then of these the even ones. */
TEST(many_objects_are_bounded_and_counted)
{
	uint32_t i, n = GC_OBJECTS_MAX + 1000;

	for (i = 0; i < n; i++)
		allocate(0x100000 + (uint64_t)(i * 7919u % n) * 0x100);
	assert_int_equal(nsamples, n);
	assert_int_equal(g.forgotten, GC_OBJECTS_MAX / 2);
	assert_int_equal(g.nobjects, GC_OBJECTS_MAX / 2 + 1000);
	begin(1, 0, 0);
	generation(0, 0, UINT64_MAX);
	moves(0, 0x10, 0x100000 + (uint64_t)n * 0x100);
	end(1);
	assert_int_equal(ndead, 0);
	gc_objects_gone(&g, 8);
	assert_int_equal(g.nobjects, GC_OBJECTS_MAX / 2 + 1000);
	gc_objects_gone(&g, 7);
	assert_int_equal(g.nobjects, 0);
}

TEST(programs_are_bounded_and_the_longest_quiet_is_forgotten)
{
	uint32_t i;

	for (i = 0; i <= GC_OBJECTS_PROGRAMS_MAX; i++) {
		process.start_ns = i + 1;
		allocate(0x1000);
	}
	process.start_ns = 1;
	assert_int_equal(g.nobjects, GC_OBJECTS_PROGRAMS_MAX);
	assert_int_equal(g.forgotten, 1);
}

TEST(only_events_of_survivals_are_told_apart)
{
	assert_true(gc_objects_tells(CLR, 21));
	assert_true(gc_objects_tells(CLR, 23));
	assert_false(gc_objects_tells(CLR, 20));
	assert_false(gc_objects_tells(CLR, 25));
	assert_false(gc_objects_tells(CLR "Rundown", 22));
}

#define OBJECTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OBJECTS_TEST(three_objects_and_three_collections),
		OBJECTS_TEST(an_object_may_move_to_where_another_one_was),
		OBJECTS_TEST(a_collection_that_tells_no_survivals_kills_nobody),
		OBJECTS_TEST(large_objects_die_with_the_oldest_generation),
		OBJECTS_TEST(the_bounds_of_generations_say_whose_an_object_is),
		OBJECTS_TEST(a_background_collection_waits_for_a_younger_one),
		OBJECTS_TEST(what_is_told_while_two_are_open_lives_for_both),
		OBJECTS_TEST(what_grows_old_during_a_background_collection_is_not_its),
		OBJECTS_TEST(
			a_background_collection_that_could_not_be_started_collects_all_generations),
		OBJECTS_TEST(after_a_loss_objects_are_forgotten_and_not_dead),
		OBJECTS_TEST(ranges_that_are_cut_kill_nobody),
		OBJECTS_TEST(a_stop_that_is_lost_kills_nobody_and_moves_are_kept),
		OBJECTS_TEST(two_samples_of_a_cpu_never_have_the_same_time),
		OBJECTS_TEST(many_objects_are_bounded_and_counted),
		OBJECTS_TEST(programs_are_bounded_and_the_longest_quiet_is_forgotten),
		OBJECTS_TEST(only_events_of_survivals_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
