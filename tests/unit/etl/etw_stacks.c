/*
 * Stacks find their events, by the rules of etw/stacks.h, in hand-made records. Keys,
 * late parts, live sessions and extended items are etw/stacks_keys.c's.
 */
#include "tests/support/alloc_walk.h"
#include "tests/support/etw_stack_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts ----------------------------------------------------------------------------------- */

TEST(kernel_part_and_user_part_make_one_stack)
{
	uint32_t e = sample(1000, 7, 0);

	STACK(1000, 100, 7, K(1), K(2));
	STACK(1000, 100, 7, U(1), U(2));
	run_file();
	STACK_IS(e, K(1), K(2), U(1), U(2));
	assert_int_equal(result.of[e].tid, 7);       /* of the payload: the header has none */
	assert_int_equal(result.count.orphans, 0);
}

TEST(stack_from_kernel_to_user_is_whole)
{
	uint32_t e = sample(1000, 7, 0), later;

	STACK(1000, 100, 7, K(1), U(1));
	later = sample(2000, 7, 0);
	STACK(2000, 100, 7, U(2));
	run_file();
	STACK_IS(e, K(1), U(1));                     /* nothing was pending */
	STACK_IS(later, U(2));
}

TEST(one_user_part_serves_all_events_since_the_thread_entered_the_kernel)
{
	uint32_t first = sample(1000, 7, 0), second = event(1500, 100, 7),
		 other = sample(1600, 8, 0);

	STACK(1000, 100, 7, K(1));
	STACK(1500, 100, 7, K(2));
	STACK(1600, 100, 8, K(3));
	STACK(1000, 100, 7, U(1));
	run_file();
	STACK_IS(first, K(1), U(1));
	STACK_IS(second, K(2), U(1));
	assert_int_equal(result.of[other].state, ETW_STACK_NO_USER);
	assert_int_equal(result.of[other].n, 1);
	assert_int_equal(result.count.no_user, 1);
}

TEST(a_served_thread_is_not_served_again)
{
	uint32_t first = sample(1000, 7, 0), second = sample(2000, 7, 0);

	STACK(1000, 100, 7, K(1));
	STACK(1000, 100, 7, U(1));
	STACK(2000, 100, 7, U(2));
	run_file();
	STACK_IS(first, K(1), U(1));
	STACK_IS(second, U(2));
}

TEST(idle_and_system_process_have_no_user_part)
{
	uint32_t system = sample(1000, 40, 0), idle = sample(1100, 0, 0),
		 user = sample(1200, 40, 0);

	STACK(1000, 4, 40, K(1));
	STACK(1100, 0, 0, K(2));
	STACK(1200, 4, 40, U(1));
	run_file();
	STACK_IS(system, K(1));
	STACK_IS(idle, K(2));
	STACK_IS(user, U(1));
	assert_int_equal(result.count.no_user, 0);
}

TEST(a_kernel_that_calls_back_into_the_program_is_one_part)
{
	uint32_t e = sample(1000, 7, 0);

	STACK(1000, 100, 7, K(1));
	STACK(1000, 100, 7, U(1), K(2), U(2));
	run_file();
	STACK_IS(e, K(1), U(1), K(2), U(2));
}

/* ---- which event ----------------------------------------------------------------------------- */

TEST(part_goes_to_its_own_thread_among_equal_times)
{
	uint32_t other = sample(1000, 8, 0), own = sample(1000, 7, 3);

	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(own, K(1));
	STACK_IS(other, 0);
}

TEST(same_cpu_decides_between_two_events_of_a_thread)
{
	uint32_t there = event(1000, 4, 7), here = event(1000, 4, 7);

	script.record[there].cpu = 5;
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(here, K(1));
	STACK_IS(there, 0);
}

TEST(event_without_a_thread_takes_what_is_left_for_it)
{
	uint32_t there = event(1000, 4, ETW_ID_UNKNOWN), here = event(1000, 4, ETW_ID_UNKNOWN),
		 named;

	script.record[there].cpu = 5;
	STACK(1000, 4, 7, K(1));
	named = event(2000, 4, 7);
	event(2000, 4, ETW_ID_UNKNOWN);
	STACK(2000, 4, 7, K(2));
	run_file();
	STACK_IS(here, K(1));
	STACK_IS(there, 0);
	STACK_IS(named, K(2));
}

TEST(disk_request_takes_the_stack_of_another_thread)
{
	struct etw_bytes *b = next_bytes();
	uint32_t init;

	etw_int(b, K(99), 8);
	etw_int(b, 44, 4);
	init = add(etw_classic(DISK_GUID, 13, 3, b), 1000, 0);
	STACK(1000, 4, 412, K(1));
	run_file();
	STACK_IS(init, K(1));
	assert_int_equal(result.of[init].tid, 44);   /* whose request it is */
}

TEST(context_switch_takes_the_stack_of_the_new_thread)
{
	uint32_t other = event(1000, 100, 8), switched;
	struct etw_bytes *b = next_bytes();

	etw_int(b, 7, 4);                            /* new */
	etw_int(b, 8, 4);                            /* old */
	etw_int(b, 0, 8);
	etw_int(b, 0, 8);
	switched = add(etw_classic(THREAD_GUID, 36, 2, b), 1000, 0);
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(switched, K(1));
	STACK_IS(other, 0);
	assert_int_equal(result.of[switched].tid, 7);
}

TEST(readied_thread_shows_the_stack_of_who_made_it_ready)
{
	struct etw_bytes *b = next_bytes();
	uint32_t ready;

	etw_int(b, 9, 4);                            /* made ready; who did it runs on this CPU */
	etw_int(b, 0, 4);
	ready = add(etw_classic(THREAD_GUID, 50, 2, b), 1000, 3);
	STACK(1000, 4, 7, K(1));
	script.record[1].cpu = 3;
	run_file();
	STACK_IS(ready, K(1));
}

TEST(finished_requests_image_ids_and_stacks_take_no_stack)
{
	struct etw_bytes *b = next_bytes();
	uint32_t read, id;

	etw_int(b, 0, 8);
	read = add(etw_classic(DISK_GUID, 10, 3, b), 1000, 0);
	b = next_bytes();
	etw_int(b, 0, 8);
	id = add(etw_classic(IMAGE_ID_GUID, 32, 2, b), 1000, 0);
	script.record[read].tid = script.record[id].tid = 7;
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(read, 0);
	STACK_IS(id, 0);
	assert_int_equal(result.count.orphans, 1);
}

TEST(part_without_an_event_is_counted)
{
	uint32_t e = sample(1000, 7, 0);

	STACK(999, 100, 7, K(1));
	STACK(1000, 100, 8, U(1));
	key(37, 1001, 100, 7, 5);
	key(38, 1000, 100, 9, 5);
	run_file();
	STACK_IS(e, 0);
	assert_int_equal(result.count.orphans, 4);
}

TEST(second_part_of_a_kind_does_not_replace_the_first)
{
	uint32_t e = sample(1000, 7, 0);

	STACK(1000, 4, 7, K(1));
	STACK(1000, 4, 7, K(2));
	run_file();
	STACK_IS(e, K(1));
}

TEST(thread_number_given_again_gets_no_stack_of_the_old_thread)
{
	uint32_t old = sample(1000, 7, 0), new;
	struct etw_bytes *b;

	STACK(1000, 100, 7, K(1));
	b = next_bytes();
	etw_int(b, 200, 4);
	etw_int(b, 7, 4);
	add(etw_classic(THREAD_GUID, 1, 3, b), 1500, 0);
	new = sample(2000, 7, 0);
	STACK(2000, 200, 7, U(1));
	run_file();
	assert_int_equal(result.of[old].n, 1);
	assert_int_equal(result.of[old].state, ETW_STACK_NO_USER);
	STACK_IS(new, U(1));
}

TEST(short_records_are_counted_and_nothing_else)
{
	uint32_t e = sample(1000, 7, 0);
	uint8_t opcodes[] = {32, 37, 38, 35, 36};
	uint32_t i;

	for (i = 0; i < sizeof(opcodes); i++) {
		etw_int(next_bytes(), 1000, 7);
		add(etw_classic(STACK_GUID, opcodes[i], 2, next_bytes()), 1001, 0);
	}
	run_file();
	STACK_IS(e, 0);
	assert_int_equal(result.count.orphans, 5);
}

/* ---- the CLR's stacks ------------------------------------------------------------------------ */

TEST(runtime_stack_belongs_to_the_record_before_it)
{
	uint32_t first = event_of(ETW_RUNTIME_GUID, 1000, 100, 7);
	uint32_t second = event_of(ETW_RUNTIME_GUID, 1100, 100, 7);
	uint32_t private = event_of(PRIVATE_GUID, 1200, 100, 7);
	uint32_t other = event_of(ETW_RUNTIME_GUID, 1300, 100, 8);

	runtime_stack(ETW_RUNTIME_GUID, 1400, 7, U(1));
	/* The one before has its stack already. */
	runtime_stack(ETW_RUNTIME_GUID, 1500, 7, U(2));
	runtime_stack(ETW_RUNTIME_GUID, 1600, 9, U(3));
	run_file();
	STACK_IS(first, 0);
	STACK_IS(second, U(1));
	STACK_IS(private, 0);
	STACK_IS(other, 0);
	assert_true(result.of[second].from_runtime);
	assert_int_equal(result.count.orphans, 2);
}

TEST(runtime_stack_says_how_long_it_is)
{
	uint32_t e = event_of(ETW_RUNTIME_GUID, 1000, 100, 7);

	runtime_stack(ETW_RUNTIME_GUID, 1100, 7, U(1));
	etw_int(&script.bytes[1], U(9), 8);          /* behind the one that the count tells of */
	script.record[1].payload_bytes = script.bytes[1].n;
	run_file();
	STACK_IS(e, U(1));
}

/* ---- 32-bit systems, ceilings, memory -------------------------------------------------------- */

TEST(system_of_32_bits_has_its_kernel_above_2_gb)
{
	struct etw_bytes *b = next_bytes();
	uint32_t header, e, i;

	for (i = 0; i < 11; i++)
		etw_int(b, 0, 4);
	etw_int(b, 4, 4);                            /* PointerSize at 44 */
	header = add(etw_classic("68fdd900-4a3e-11d1-84f4-0000f80464e3", 0, 2, b), 900, 0);
	e = event(1000, 100, 7);
	b = next_bytes();
	etw_int(b, 1000, 8);
	etw_int(b, 100, 4);
	etw_int(b, 7, 4);
	etw_int(b, 0x80001000, 4);
	add(etw_classic(STACK_GUID, 32, 2, b), 1001, 0);
	b = next_bytes();
	etw_int(b, 1000, 8);
	etw_int(b, 100, 4);
	etw_int(b, 7, 4);
	etw_int(b, 0x401000, 4);
	add(etw_classic(STACK_GUID, 32, 2, b), 1002, 0);
	for (i = 0; i < script.n; i++)
		script.record[i].pointer_bytes = 4;
	run_file();
	STACK_IS(header, 0);
	STACK_IS(e, 0x80001000, 0x401000);
}

TEST(kernel_parts_that_wait_have_a_ceiling)
{
	struct etw_stacks *s = NULL;
	uint32_t i;

	sample(1000, 7, 0);
	STACK(1000, 100, 7, K(1));
	assert_int_equal(etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &s, NULL), 0);
	for (i = 0; i < ETW_STACKS_PENDING_MAX + 3; i++) {
		script.record[0].ticks = script.record[1].ticks = 1000 + i;
		memcpy(script.bytes[1].at, &script.record[0].ticks, 8);
		etw_stacks_put(s, &script.record[0], etw_class_find(&script.record[0]));
		etw_stacks_put(s, &script.record[1], etw_class_find(&script.record[1]));
	}
	result.count = *etw_stacks_counts(s);
	assert_int_equal(result.count.refused, 3);
	assert_int_equal(result.count.orphans, 0);
	etw_stacks_free(s);
}

static int open_and_close(void *ctx)
{
	struct etw_stacks *s = NULL;
	int rc = etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &s, NULL);

	(void)ctx;
	if (!rc)
		rc = etw_stacks_deliver(s, NULL);
	etw_stacks_free(s);
	return rc;
}

TEST(lack_of_memory_is_an_error_at_the_start)
{
	assert_in_range(alloc_walk(open_and_close, NULL), 5, 30);
}

#define IN_LAB(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(kernel_part_and_user_part_make_one_stack),
		IN_LAB(stack_from_kernel_to_user_is_whole),
		IN_LAB(one_user_part_serves_all_events_since_the_thread_entered_the_kernel),
		IN_LAB(a_served_thread_is_not_served_again),
		IN_LAB(idle_and_system_process_have_no_user_part),
		IN_LAB(a_kernel_that_calls_back_into_the_program_is_one_part),
		IN_LAB(part_goes_to_its_own_thread_among_equal_times),
		IN_LAB(same_cpu_decides_between_two_events_of_a_thread),
		IN_LAB(event_without_a_thread_takes_what_is_left_for_it),
		IN_LAB(disk_request_takes_the_stack_of_another_thread),
		IN_LAB(context_switch_takes_the_stack_of_the_new_thread),
		IN_LAB(readied_thread_shows_the_stack_of_who_made_it_ready),
		IN_LAB(finished_requests_image_ids_and_stacks_take_no_stack),
		IN_LAB(part_without_an_event_is_counted),
		IN_LAB(second_part_of_a_kind_does_not_replace_the_first),
		IN_LAB(thread_number_given_again_gets_no_stack_of_the_old_thread),
		IN_LAB(short_records_are_counted_and_nothing_else),
		IN_LAB(runtime_stack_belongs_to_the_record_before_it),
		IN_LAB(runtime_stack_says_how_long_it_is),
		IN_LAB(system_of_32_bits_has_its_kernel_above_2_gb),
		IN_LAB(kernel_parts_that_wait_have_a_ceiling),
		IN_LAB(lack_of_memory_is_an_error_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
