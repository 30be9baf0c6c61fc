/* Samples and marks of the heap, from the events of otel_memory's probes. */
#include "base/os.h"
#include "model/process.h"
#include "source/heap_blocks.h"
#include "tests/support/test.h"

#include <string.h>

static bool take(struct heap_blocks *h, enum heap_probe what, struct process *process,
		 uint64_t address, uint64_t at_ns, struct event *out)
{
	const struct event_field fields[] = {
		{.name = "Arg1", .type = FIELD_UINT, .v.u = address},
		{.name = "Arg2", .type = FIELD_UINT, .v.u = 100},
		{.name = "Arg3", .type = FIELD_UINT, .v.u = 524288},
	};

	*out = (struct event){.kind = EVENT_GENERIC, .time_ns = at_ns, .cpu = (uint16_t)(at_ns % 4),
			      .process = process, .fields = fields,
			      .nfields = what == HEAP_ALLOC ? 3 : 1};
	return heap_blocks_take(h, what, out);
}

TEST(the_probes_are_known_by_their_names)
{
	assert_int_equal(heap_probe_of("usdt", "/a:b.so:otel_memory:alloc"), HEAP_ALLOC);
	assert_int_equal(heap_probe_of("usdt", "/a.so:otel_memory:free"), HEAP_FREE);
	assert_int_equal(heap_probe_of("usdt", "/a.so:recorder_heap:double_free"),
			 HEAP_DOUBLE_FREE);
	assert_int_equal(heap_probe_of("usdt", "/a.so:recorder_heap:unknown_free"),
			 HEAP_UNKNOWN_FREE);
	assert_int_equal(heap_probe_of("usdt", "/a.so:python:gc__start"), HEAP_NONE);
	assert_int_equal(heap_probe_of("uprobe", "/a.so:otel_memory:alloc"), HEAP_NONE);
}

TEST(a_free_marks_the_allocation_by_its_cpu_and_time)
{
	struct process a = {.pid = 1, .start_ns = 5}, b = {.pid = 1, .start_ns = 6};
	struct heap_blocks h = {0};
	struct event e;

	assert_int_equal(heap_blocks_init(&h, HEAP_BLOCKS_MAX), 0);
	assert_true(take(&h, HEAP_ALLOC, &a, 0x1000, 3000003, &e));
	assert_int_equal(e.kind, EVENT_SAMPLE);
	assert_int_equal(e.stream, STREAM_HEAP);
	assert_true(e.value == 524288);
	assert_ptr_equal(e.process, &a);
	/* Of another process with that pid, of another block. */
	assert_false(take(&h, HEAP_FREE, &b, 0x1000, 4000001, &e));
	assert_false(take(&h, HEAP_FREE, &a, 0x2000, 4000001, &e));
	assert_true(take(&h, HEAP_FREE, &a, 0x1000, 5000001, &e));
	assert_int_equal(e.stream, STREAM_HEAP_MARK);
	assert_int_equal(e.cpu, 3);
	assert_true(e.value == memory_mark_weight(3000003, 5000001, MARK_GONE));
	assert_ptr_equal(e.process, &a);     /* who freed it */
	assert_false(take(&h, HEAP_FREE, &a, 0x1000, 6000001, &e));
	heap_blocks_free(&h);
}

/* An address that is used again without a free that we saw: the free is of the later one. */
TEST(a_lost_free_leaves_the_first_sample_in_use)
{
	struct process a = {.pid = 1};
	struct heap_blocks h = {0};
	struct event e;

	assert_int_equal(heap_blocks_init(&h, HEAP_BLOCKS_MAX), 0);
	assert_true(take(&h, HEAP_ALLOC, &a, 0x1000, 1000, &e));
	assert_true(take(&h, HEAP_ALLOC, &a, 0x1000, 3000, &e));
	assert_true(take(&h, HEAP_FREE, &a, 0x1000, 5000, &e));
	assert_true(e.value == memory_mark_weight(3000, 5000, MARK_GONE));
	assert_int_equal(h.all.used, 0);
	heap_blocks_free(&h);
}

static uint64_t field(const struct event *e, const char *name)
{
	const struct event_field *f = event_field(e, name);

	return f ? f->v.u : UINT64_MAX;
}

TEST(a_second_free_says_when_it_was_allocated_and_freed_first)
{
	struct process a = {.pid = 1}, b = {.pid = 2};
	struct heap_blocks h = {0};
	struct event e;

	assert_int_equal(heap_blocks_init(&h, HEAP_BLOCKS_MAX), 0);
	assert_true(take(&h, HEAP_ALLOC, &a, 0x1000, 3000003, &e));
	assert_true(take(&h, HEAP_FREE, &a, 0x1000, 5000000, &e));
	assert_true(take(&h, HEAP_DOUBLE_FREE, &a, 0x1000, 9000000, &e));
	assert_int_equal(e.kind, EVENT_GENERIC);
	assert_string_equal(e.provider, "Heap");
	assert_string_equal(e.name, "DoubleFree");
	assert_true(field(&e, "Address") == 0x1000);
	assert_true(field(&e, "AllocatedTicksAgo") == 60000);
	assert_true(field(&e, "FreedTicksAgo") == 40000);
	assert_true(field(&e, "AllocatedCpu") == 3);
	/* The first free was lost, or is another process's. */
	assert_true(take(&h, HEAP_DOUBLE_FREE, &b, 0x1000, 9000000, &e));
	assert_true(field(&e, "FreedTicksAgo") == UINT64_MAX);
	assert_true(take(&h, HEAP_UNKNOWN_FREE, &a, 0x2000, 9000000, &e));
	assert_string_equal(e.name, "UnknownFree");
	heap_blocks_free(&h);
}

TEST(memory_is_bounded_and_what_is_forgotten_is_counted)
{
	struct process a = {.pid = 1};
	struct heap_blocks h = {0};
	struct event e;
	uint64_t i;

	assert_int_equal(heap_blocks_init(&h, HEAP_BLOCKS_MAX), 0);
	for (i = 0; i < HEAP_BLOCKS_MAX + 1000; i++)
		assert_true(take(&h, HEAP_ALLOC, &a, 16 * (i + 1), 1000 * i, &e));
	assert_int_equal(h.all.used, HEAP_BLOCKS_MAX);
	assert_int_equal(atomic_load(&h.forgotten), 1000);
	assert_true(take(&h, HEAP_FREE, &a, 16 * i, 1000 * i, &e));
	heap_blocks_free(&h);
}

/* A program writes what it likes. */
TEST(events_that_make_no_sense_are_left_out)
{
	struct process a = {.pid = 1};
	const struct event_field heavy[] = {
		{.name = "Arg1", .type = FIELD_UINT, .v.u = 16},
		{.name = "Arg3", .type = FIELD_UINT, .v.u = UINT64_MAX},
	};
	struct event e = {.process = &a, .fields = heavy, .nfields = 2};
	struct heap_blocks h = {0};

	assert_int_equal(heap_blocks_init(&h, HEAP_BLOCKS_MAX), 0);
	assert_false(heap_blocks_take(&h, HEAP_ALLOC, &e));
	e.nfields = 1;
	assert_false(heap_blocks_take(&h, HEAP_ALLOC, &e));
	e.nfields = 0;
	assert_false(heap_blocks_take(&h, HEAP_FREE, &e));
	assert_false(take(&h, HEAP_ALLOC, NULL, 16, 1, &e));
	assert_int_equal(h.all.used, 0);
	heap_blocks_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_probes_are_known_by_their_names),
		cmocka_unit_test(a_free_marks_the_allocation_by_its_cpu_and_time),
		cmocka_unit_test(a_lost_free_leaves_the_first_sample_in_use),
		cmocka_unit_test(a_second_free_says_when_it_was_allocated_and_freed_first),
		cmocka_unit_test(memory_is_bounded_and_what_is_forgotten_is_counted),
		cmocka_unit_test(events_that_make_no_sense_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
