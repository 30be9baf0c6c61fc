/* DTrace text. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_is_as_in_the_file)
{
	assert_export_is("dtrace", NULL, "small.stacks");
}

TEST(hostile_names_keep_to_the_grammar)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "dtrace", NULL, &text), 0);
	assert_int_equal(dtrace_total(buf_text(&text)), in.nsamples);
	assert_non_null(strstr(text.data, "`operator++0x0\n"));
	assert_non_null(strstr(text.data, "`std::map<int, int>::operator- >+0x0\n"));
	assert_null(strstr(text.data, "->"));
	buf_free(&text);
	incident_free(&in);
}

TEST(inlined_functions_stand_on_the_line_of_their_caller)
{
	static const struct frame_spec frames[] = {
		{"m", "main", 0x10, 0},
		{"m", "outer", 0x20, 0},
		{"m", "inner", 0x20, FRAME_INLINED},
		{"m", "inmost->", 0x20, FRAME_INLINED},
	};
	struct buf text = {0};
	struct incident in;
	uint32_t stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, frames, 4, &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_FP, 2), 0);
	assert_int_equal(export_text(&in, "dtrace", NULL, &text), 0);
	assert_non_null(strstr(text.data, "\n\n"
			       "              m`outer->inner->inmost- >+0x20\n"
			       "              m`main+0x10\n"
			       "              process`[unknown] (0)+0x0\n"
			       "               2\n\n"));
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_file),
		cmocka_unit_test(hostile_names_keep_to_the_grammar),
		cmocka_unit_test(inlined_functions_stand_on_the_line_of_their_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
