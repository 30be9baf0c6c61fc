/* Trace events. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_is_as_in_the_file)
{
	assert_export_is("trace", NULL, "small.trace.json");
}

TEST(events_have_their_durations_and_fields)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_streams(&in), 0);
	assert_int_equal(export_text(&in, "trace", NULL, &text), 0);
	assert_non_null(strstr(
		text.data, "{\"ph\":\"X\",\"name\":\"GC/Stop\",\"cat\":"
			   "\"Microsoft-Windows-DotNETRuntime\",\"pid\":100,\"tid\":101,"
			   "\"ts\":4987500.000,\"dur\":12500.000,\"args\":"
			   "{\"Count\":\"18446744073709551615\",\"Reason\":\"=1+1, \\\"x\\\"\\n\","
			   "\"Delta\":-5,\"Ratio\":0.25,\"DurationMSec\":12.5}}"));
	assert_non_null(strstr(text.data, "{\"ph\":\"C\",\"name\":\"Process:Working Set:app\","
			       "\"pid\":0,\"ts\":0.000,\"args\":{\"value\":1.5}}"));
	assert_null(strstr(text.data, "\"samples\""));
	buf_free(&text);
	incident_free(&in);
}

TEST(hostile_names_change_no_total)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "trace", NULL, &text), 0);
	assert_int_equal(trace_total(text.data), in.nsamples * 10000000ULL);
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_file),
		cmocka_unit_test(events_have_their_durations_and_fields),
		cmocka_unit_test(hostile_names_change_no_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
