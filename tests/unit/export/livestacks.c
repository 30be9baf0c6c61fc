/* LiveStacks text and folded text. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <string.h>

static const struct export_options offsets = {.annotate = true, .ids = true, .offsets = true};

TEST(the_small_incident_is_as_in_the_files)
{
	assert_export_is("livestacks", NULL, "small.txt");
	assert_export_is("folded", &offsets, "small-offsets.folded");
}

TEST(hostile_names_keep_to_the_grammar)
{
	struct buf text = {0}, folded = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "livestacks", NULL, &text), 0);
	assert_int_equal(livestacks_total(buf_text(&text)), in.nsamples);
	assert_int_equal(export_text(&in, "folded", &offsets, &folded), 0);
	assert_int_equal(folded_total(buf_text(&folded)), in.nsamples);
	assert_non_null(strstr(folded.data, "a:b:c (11);app!main+0x0;a:b:c!a:b:c+0x0 1\n"));
	assert_non_null(strstr(folded.data, "#_comment (28);"));
	buf_free(&text);
	buf_free(&folded);
	incident_free(&in);
}

TEST(only_the_top_is_written_when_asked)
{
	struct export_options opt = export_defaults;
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	opt.top = 1;
	assert_int_equal(export_text(&in, "livestacks", &opt, &text), 0);
	assert_string_equal(text.data, "           3 [app 100]\n    app!burn_alpha+0x1000\n"
				       "    app!main+0x1000\n\n");
	buf_reset(&text);
	opt.top = 0;
	opt.min_weight = 2;
	assert_int_equal(export_text(&in, "livestacks", &opt, &text), 0);
	assert_int_equal(livestacks_total(buf_text(&text)), 5);
	buf_free(&text);
	incident_free(&in);
}

TEST(a_caller_shows_its_return_address_from_its_functions_start)
{
	struct incident_frame f = {.flags = FRAME_RETURN_ADDRESS, .offset = 0x10ff,
				   .function_offset = 0x1000, .function = "f"};
	struct incident_module m = {.kind = OBJECT_ELF, .name = "m", .path = "/m"};
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	f.module = incident_add_module(&in, &m);
	assert_int_equal(
		sample_add(&in, THREAD_NONE,
			   incident_add_stack(&in, STACK_NONE, incident_add_frame(&in, &f)),
			   QUALITY_FP, 1),
		0);
	assert_int_equal(export_text(&in, "livestacks", NULL, &text), 0);
	assert_string_equal(text.data, "           1 [UNKNOWN 0]\n    m!f+0x100\n\n");
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_files),
		cmocka_unit_test(hostile_names_keep_to_the_grammar),
		cmocka_unit_test(only_the_top_is_written_when_asked),
		cmocka_unit_test(a_caller_shows_its_return_address_from_its_functions_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
