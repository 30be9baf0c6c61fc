/* Names of kinds, losses and qualities; fields by name; what rules need. */
#include "base/array.h"
#include "model/event.h"
#include "model/needs.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(every_loss_kind_is_read_back_from_its_text)
{
	unsigned kind;

	for (kind = 0; kind < LOSS_KINDS; kind++)
		assert_int_equal(loss_kind_from_text(loss_kind_text(kind)), kind);
	assert_int_equal(loss_kind_from_text("no such loss"), LOSS_KINDS);
	assert_int_equal(loss_kind_from_text(""), LOSS_KINDS);
}

TEST(every_kind_quality_and_stream_has_a_text_of_its_own)
{
	unsigned i, j;

	for (i = 0; i < EVENT_KINDS; i++) {
		for (j = 0; j < i; j++)
			assert_string_not_equal(event_kind_text(i),
						event_kind_text(j));
	}
	for (i = 0; i < QUALITIES; i++)
		assert_true(strlen(stack_quality_text(i)) > 1);
	for (i = 0; i < STREAMS_MAX; i++)
		assert_true(strlen(stream_text(i)) > 1);
}

TEST(a_stream_is_read_back_from_its_text_and_from_names_of_PerfView)
{
	unsigned i;

	for (i = 0; i < STREAMS_MAX; i++)
		assert_int_equal(stream_from_text(stream_text(i)), i);
	assert_int_equal(stream_from_text("GC Heap Alloc Ignore Free (Coarse Sampling) Stacks"),
			 STREAM_ALLOC);
	assert_int_equal(stream_from_text("gc heap net mem"), STREAM_HEAP_NET);
	assert_int_equal(stream_from_text("GC Heap Net Mem (Coarse)"), STREAM_HEAP_NET);
	assert_int_equal(stream_from_text("OS Heap Alloc Stacks"), STREAM_HEAP_NET);
	assert_int_equal(stream_from_text("Net Virtual Alloc Stacks"), STREAM_VM_NET);
	assert_int_equal(stream_from_text("CPU Stacks"), STREAM_CPU);
	assert_int_equal(stream_from_text("GC Heap"), STREAMS_MAX);
	assert_int_equal(stream_from_text("Stacks"), STREAMS_MAX);
	assert_int_equal(stream_from_text("(Coarse)"), STREAMS_MAX);
	assert_int_equal(stream_from_text(""), STREAMS_MAX);
}

TEST(numbers_beyond_the_last_have_a_text_too)
{
	assert_string_equal(loss_kind_text(LOSS_KINDS), "?");
	assert_string_equal(event_kind_text(99), "?");
	assert_string_equal(stack_quality_text(99), "?");
	assert_string_equal(stream_text(99), "?");
}

TEST(fields_are_found_by_name_whatever_the_case)
{
	struct event_field fields[] = {{"Count", FIELD_UINT, {.u = 1}},
				       {"CountMax", FIELD_UINT, {.u = 2}},
				       {"", FIELD_UINT, {.u = 3}}};
	struct event e = {.fields = fields, .nfields = 3};

	assert_int_equal(event_field(&e, "count")->v.u, 1);
	assert_int_equal(event_field(&e, "COUNTMAX")->v.u, 2);
	assert_int_equal(event_field(&e, "")->v.u, 3);
	assert_null(event_field(&e, "Coun"));
	e.nfields = 0;
	e.fields = NULL;
	assert_null(event_field(&e, "Count"));
}

TEST(a_name_is_the_one_that_a_rule_means)
{
	static const struct { const char *wanted, *name; bool same;
	} rows[] = {
		{"GC/Stop", "GC/Stop", true},
		{"gc/stop", "GC/Stop", true},
		{"GCStop", "GC/Stop", true},
		{"gcstart", "GC/Start", true},
		{"GC/Pauses", "GC/Pauses/Info", true},
		{"Task/Info", "Task", true},
		{"GCStop", "GC/Start", false},
		{"GC", "GC/Start", false},
		{"GCPauses", "GC/Pauses", false},
		{"GC/Start", "GCStart", false},
		{"", "GC/Start", false},
		{"GC/Start", "", false},
		{"", "/Info", true},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(rows); i++)
		assert_int_equal(event_name_is(rows[i].wanted, rows[i].name), rows[i].same);
}

TEST(a_need_asked_twice_has_the_shorter_period)
{
	static struct needs n;

	memset(&n, 0, sizeof(n));
	assert_int_equal(needs_counter(&n, "Memory:Available MBytes:", 1000, false, NULL), 0);
	assert_int_equal(needs_counter(&n, "Memory:Available MBytes:", 500, true, NULL), 0);
	assert_int_equal(needs_counter(&n, "Memory:Available MBytes:", 2000, false, NULL), 0);
	assert_int_equal(n.ncounters, 1);
	assert_int_equal(n.counters[0].period_ns, 500);
	assert_true(n.counters[0].monitor);
}

TEST(needs_have_a_ceiling_and_so_do_their_names)
{
	static struct needs n;
	char name[COUNTER_NAME_MAX + 1];
	struct err err;
	unsigned i;

	memset(&n, 0, sizeof(n));
	for (i = 0; i < NEEDS_MAX_COUNTERS; i++) {
		snprintf(name, sizeof(name), "A:B:%u", i);
		assert_int_equal(needs_counter(&n, name, 1, false, &err), 0);
	}
	assert_int_equal(needs_counter(&n, "A:B:7", 1, false, &err), 0);
	assert_int_equal(needs_counter(&n, "one more", 1, false, &err), ERR_LIMIT);
	n.ncounters = 0;
	memset(name, 'x', sizeof(name));
	name[COUNTER_NAME_MAX] = '\0';
	assert_int_equal(needs_counter(&n, name, 1, false, &err), ERR_LIMIT);
	name[COUNTER_NAME_MAX - 1] = '\0';
	assert_int_equal(needs_counter(&n, name, 1, false, &err), 0);
	assert_string_equal(n.counters[0].name, name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_loss_kind_is_read_back_from_its_text),
		cmocka_unit_test(every_kind_quality_and_stream_has_a_text_of_its_own),
		cmocka_unit_test(a_stream_is_read_back_from_its_text_and_from_names_of_PerfView),
		cmocka_unit_test(numbers_beyond_the_last_have_a_text_too),
		cmocka_unit_test(fields_are_found_by_name_whatever_the_case),
		cmocka_unit_test(a_name_is_the_one_that_a_rule_means),
		cmocka_unit_test(a_need_asked_twice_has_the_shorter_period),
		cmocka_unit_test(needs_have_a_ceiling_and_so_do_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
