/* perf script text. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_is_as_in_the_file)
{
	assert_export_is("perf-script", NULL, "small.perf.data.txt");
}

TEST(hostile_names_keep_to_the_grammar)
{
	struct buf text = {0};
	struct incident in;
	uint64_t samples;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "perf-script", NULL, &text), 0);
	assert_int_equal(perf_script_total(buf_text(&text), &samples), in.nsamples * 10000000ULL);
	assert_int_equal(samples, in.nsamples);
	assert_null(strstr(text.data, "\n#"));
	assert_non_null(strstr(text.data, "\n__comment 28/38 [000] "));
	assert_non_null(strstr(text.data, " page 12+0x0 (page_12)\n"));
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_file),
		cmocka_unit_test(hostile_names_keep_to_the_grammar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
