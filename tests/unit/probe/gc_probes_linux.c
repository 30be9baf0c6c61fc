/* Collections of CPython, V8 and HotSpot, from what their probes say. */
#include "source/probe/gc_probes_linux.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gc_generations generations;

/*
 * What a probe's hit becomes: "CPython GC/SuspendEEStart GC/Start 2", provider, both names, depth
 * or ?.
 */
static const char *hit_on(uint32_t tid, enum gc_program program, enum gc_edge edge,
			  const char *argument, uint64_t value)
{
	const struct gc_probe probe = {.edge = edge, .program = program};
	const struct event_field argument_of = {.name = argument, .type = FIELD_UINT, .v.u = value};
	static struct event_field fields[GC_PROBE_FIELDS];
	static char text[200];
	struct event e = {.hex_fields = 1};

	gc_probe_event(&probe, &argument_of, 1, tid, &generations, fields, &e);
	assert_int_equal(e.hex_fields, 0);
	snprintf(text, sizeof(text), "%s %s %s %c", e.provider, e.name,
		 gc_probe_second_name(&probe),
		 event_field(&e, "Depth") ? (char)('0' + event_field(&e, "Depth")->v.u) : '?');
	return text;
}

static const char *hit(enum gc_program program, enum gc_edge edge, const char *argument,
		       uint64_t value)
{
	return hit_on(7, program, edge, argument, value);
}

TEST(a_collection_of_python_has_its_generation)
{
	assert_string_equal(hit(GC_CPYTHON, GC_BEGINS, "Arg1", 2),
			    "CPython GC/SuspendEEStart GC/Start 2");
	assert_string_equal(hit(GC_CPYTHON, GC_ENDS, "Arg1", 7),
			    "CPython GC/Stop GC/RestartEEStop 2");
}

/* The probe at the end does not tell; "generation 0" of a full collection was said of all. */
TEST(an_end_has_the_generation_that_began_on_its_thread_or_none)
{
	hit_on(7, GC_CPYTHON, GC_BEGINS, "Arg1", 2);
	hit_on(8, GC_V8, GC_BEGINS, "Arg2", 0);
	assert_string_equal(hit_on(7, GC_CPYTHON, GC_ENDS, "Arg1", 0),
			    "CPython GC/Stop GC/RestartEEStop 2");
	assert_string_equal(hit_on(8, GC_V8, GC_ENDS, "Arg1", 0), "V8 GC/Stop GC/RestartEEStop 0");
	assert_string_equal(hit_on(7, GC_CPYTHON, GC_ENDS, "Arg1", 0),
			    "CPython GC/Stop GC/RestartEEStop ?");
	hit_on(9, GC_HOTSPOT, GC_BEGINS, "Arg1", 1);
	assert_string_equal(hit_on(9 + GC_THREADS, GC_HOTSPOT, GC_ENDS, "", 0),
			    "JVM GC/Stop GC/RestartEEStop ?");
}

TEST(mark_compact_of_v8_is_generation_2_and_a_scavenge_0)
{
	assert_string_equal(hit(GC_V8, GC_BEGINS, "Arg2", 1), "V8 GC/SuspendEEStart GC/Start 2");
	assert_string_equal(hit(GC_V8, GC_BEGINS, "Arg2", 0), "V8 GC/SuspendEEStart GC/Start 0");
	assert_string_equal(hit(GC_V8, GC_BEGINS, "Arg1", 1), "V8 GC/SuspendEEStart GC/Start 0");
}

TEST(a_full_collection_of_hotspot_is_generation_2)
{
	assert_string_equal(hit(GC_HOTSPOT, GC_BEGINS, "Arg1", 1),
			    "JVM GC/SuspendEEStart GC/Start 2");
	assert_string_equal(hit(GC_HOTSPOT, GC_BEGINS, "Arg1", 0),
			    "JVM GC/SuspendEEStart GC/Start 0");
}

TEST(only_rules_on_collections_want_these_probes)
{
	struct needs *needs = calloc(1, sizeof(*needs));

	assert_non_null(needs);
	assert_false(gc_probes_wanted(NULL));
	assert_false(gc_probes_wanted(needs));
	assert_int_equal(needs_provider(needs, "Microsoft-Windows-DotNETRuntime", 0x8000, 4, NULL),
			 0);
	assert_false(gc_probes_wanted(needs));           /* exceptions */
	assert_int_equal(needs_provider(needs, "microsoft-windows-dotnetruntime", 1, 4, NULL), 0);
	assert_true(gc_probes_wanted(needs));
	free(needs);
}

TEST(each_program_has_a_beginning_and_an_end)
{
	struct need_event *events = calloc(2 * GC_PROGRAMS_MAX, sizeof(*events));
	struct gc_probe probes[2 * GC_PROGRAMS_MAX] = {{0}};
	struct programs *programs = NULL;
	unsigned i, n;

	assert_non_null(events);
	assert_int_equal(programs_new(NULL, &programs, NULL), 0);
	/* of what runs here, and of python3 and node if they are there */
	n = gc_probes_find(programs, events, probes);
	programs_free(programs);
	assert_int_equal(n % 2, 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(probes[i].edge, i % 2 ? GC_ENDS : GC_BEGINS);
		assert_int_equal(probes[i].program, probes[i / 2 * 2].program);
		assert_int_equal(events[i].name[0], '/');
	}
	free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collection_of_python_has_its_generation),
		cmocka_unit_test(an_end_has_the_generation_that_began_on_its_thread_or_none),
		cmocka_unit_test(mark_compact_of_v8_is_generation_2_and_a_scavenge_0),
		cmocka_unit_test(a_full_collection_of_hotspot_is_generation_2),
		cmocka_unit_test(only_rules_on_collections_want_these_probes),
		cmocka_unit_test(each_program_has_a_beginning_and_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
