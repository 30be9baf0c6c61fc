/* Which facts about a process mean incomplete stacks, or missing names. */
#include "source/list/survey.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(cause) (1u << SURVEY_##cause)
#define MB ((uint64_t)1 << 20)

static void check(const struct survey_facts facts, uint32_t bits)
{
	assert_int_equal(survey_judge(&facts), bits);
}

TEST(an_ordinary_program_has_no_cause)
{
	check((struct survey_facts){0}, 0);
}

TEST(a_jvm_has_gaps_only_when_it_is_no_hotspot)
{
	check((struct survey_facts){.is_jvm = true, .has_perf_data = true, .jit_bytes = MB},
	      BIT(JAVA));
	check((struct survey_facts){.is_jvm = true,
				    .is_openj9 = true,
				    .has_perf_data = true,
				    .has_perf_map = true,
				    .jit_bytes = MB},
	      BIT(JVM) | BIT(JAVA));
}

TEST(a_program_whose_runtime_cannot_be_watched_is_told)
{
	check((struct survey_facts){.is_jvm = true},
	      BIT(NO_PERF_DATA));
	check((struct survey_facts){.is_dotnet = true, .has_perf_map = true}, BIT(NO_DIAGNOSTICS));
	check((struct survey_facts){.is_dotnet = true, .has_diagnostics = true}, BIT(DOTNET));
	check((struct survey_facts){.is_python = true, .has_gc_probes = true}, BIT(PYTHON));
	check((struct survey_facts){.is_python = true}, BIT(NO_PYTHON_PROBES));
	check((struct survey_facts){.is_node = true, .has_gc_probes = true}, BIT(NODE));
	check((struct survey_facts){.is_node = true}, BIT(NO_NODE_PROBES));
}

TEST(an_interpreter_that_nothing_reads_is_told)
{
	check((struct survey_facts){.is_unread = true}, BIT(INTERPRETER));
}

TEST(a_jit_without_a_perf_map_lacks_names)
{
	check((struct survey_facts){.runtime = true, .jit_bytes = 4096}, BIT(JIT));
	check((struct survey_facts){.runtime = true, .jit_bytes = 4096, .has_perf_map = true}, 0);
	check((struct survey_facts){.runtime = true}, 0);
}

TEST(a_little_generated_code_is_not_worth_a_word)
{
	check((struct survey_facts){.jit_bytes = MB - 1}, 0);
	check((struct survey_facts){.jit_bytes = MB}, BIT(JIT));
}

TEST(go_is_not_called_broken)
{
	check((struct survey_facts){.is_go = true, .without_tables = true}, BIT(GO));
	check((struct survey_facts){.without_tables = true}, BIT(NO_TABLES));
}

TEST(a_native_image_is_told_apart)
{
	check((struct survey_facts){.is_native_image = true, .without_tables = true},
	      BIT(NATIVE_IMAGE));
}

TEST(what_cannot_be_read_is_not_judged)
{
	check((struct survey_facts){.unreadable = true, .without_tables = true}, BIT(UNREADABLE));
}

TEST(processes_of_one_name_and_cause_are_one_group)
{
	static struct survey s;

	survey_add(&s, SURVEY_JVM, "java", 10);
	survey_add(&s, SURVEY_JIT, "java", 10);
	survey_add(&s, SURVEY_JVM, "java", 20);
	assert_int_equal(s.ngroups, 2);
	assert_int_equal(s.groups[0].n, 2);
	assert_int_equal(s.groups[0].pid, 10);
	assert_int_equal(s.groups[1].cause, SURVEY_JIT);
}

TEST(groups_have_a_ceiling)
{
	static struct survey s;
	char name[SURVEY_NAME_BYTES];
	unsigned i;

	for (i = 0; i < SURVEY_GROUPS_MAX + 10; i++) {
		snprintf(name, sizeof(name), "program-%u", i);
		survey_add(&s, SURVEY_JVM, name, i);
	}
	assert_int_equal(s.ngroups, SURVEY_GROUPS_MAX);
}

TEST(every_cause_has_a_name_and_a_sentence)
{
	unsigned i;

	for (i = 0; i < SURVEY_CAUSES; i++) {
		assert_non_null(survey_cause_name((enum survey_cause)i));
		assert_in_range(strlen(survey_cause_text((enum survey_cause)i, false)), 40, 300);
		assert_in_range(strlen(survey_cause_text((enum survey_cause)i, true)), 40, 300);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_program_has_no_cause),
		cmocka_unit_test(a_jvm_has_gaps_only_when_it_is_no_hotspot),
		cmocka_unit_test(a_program_whose_runtime_cannot_be_watched_is_told),
		cmocka_unit_test(an_interpreter_that_nothing_reads_is_told),
		cmocka_unit_test(a_jit_without_a_perf_map_lacks_names),
		cmocka_unit_test(a_little_generated_code_is_not_worth_a_word),
		cmocka_unit_test(go_is_not_called_broken),
		cmocka_unit_test(a_native_image_is_told_apart),
		cmocka_unit_test(what_cannot_be_read_is_not_judged),
		cmocka_unit_test(processes_of_one_name_and_cause_are_one_group),
		cmocka_unit_test(groups_have_a_ceiling),
		cmocka_unit_test(every_cause_has_a_name_and_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
