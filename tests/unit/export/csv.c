/* Events and counters as CSV. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(events_have_time_thread_stack_and_payload)
{
	assert_export_has(
		"events-csv", false,
		"2026-01-02T03:04:05.678Z,5000.000,Microsoft-Windows-DotNETRuntime,GC/"
		"Stop,event,100,app,101,"
		"worker,3,12500.000,app!main;app!burn_alpha,\"{\"\"Count\"\":"
		"\"\"18446744073709551615\"\","
		"\"\"Reason\"\":\"\"=1+1, \\\"\"x\\\"\"\\n\"\",\"\"Delta\"\":-5,\"\"Ratio\"\":0.25,"
		"\"\"DurationMSec\"\":12.5}\"\n");
}

TEST(counters_have_an_instance_and_a_value_or_none)
{
	assert_export_has("counters-csv", false,
			  "time_utc,t_ms,counter,instance,unit,value\n"
			  "2026-01-02T03:04:00.678Z,0.000,Process:Working Set,app,,1.5\n");
	assert_export_has("counters-csv", false,
			  "2026-01-02T03:04:02.678Z,2000.000,Process:Working Set,app,,\n");
}

TEST(no_cell_is_a_formula_when_asked)
{
	struct incident_event e = {.kind = EVENT_GENERIC,
				   .thread = THREAD_NONE,
				   .stack = STACK_NONE,
				   .cpu = CPU_NONE,
				   .provider = "=cmd|' /C calc'!A0",
				   .name = "@SUM"};
	struct export_options opt = {.excel = true};
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	e.time_ns = in.head.trigger_ns;
	assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	assert_int_equal(export_text(&in, "events-csv", &opt, &text), 0);
	assert_non_null(strstr(text.data, ",\"'=cmd|' /C calc'!A0\",\"'@SUM\",event,,,,,,,,{}\n"));
	buf_free(&text);
	incident_free(&in);
}

TEST(the_start_and_the_exit_of_a_process_are_told_apart)
{
	struct incident_event e = {.kind = EVENT_PROCESS_START, .thread = THREAD_NONE,
				   .stack = STACK_NONE, .cpu = CPU_NONE, .provider = "",
				   .name = "bash"};
	struct buf csv = {0}, lines = {0};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	e.time_ns = in.head.trigger_ns;
	assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	e.kind = EVENT_PROCESS_EXIT;
	assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	assert_int_equal(export_text(&in, "events-csv", NULL, &csv), 0);
	assert_non_null(strstr(csv.data, ",bash,process-start,"));
	assert_non_null(strstr(csv.data, ",bash,process-exit,"));
	assert_int_equal(export_text(&in, "jsonl", NULL, &lines), 0);
	assert_non_null(strstr(lines.data, "\"name\":\"bash\",\"kind\":\"process-start\""));
	assert_non_null(strstr(lines.data, "\"name\":\"bash\",\"kind\":\"process-exit\""));
	buf_free(&csv);
	buf_free(&lines);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_have_time_thread_stack_and_payload),
		cmocka_unit_test(counters_have_an_instance_and_a_value_or_none),
		cmocka_unit_test(no_cell_is_a_formula_when_asked),
		cmocka_unit_test(the_start_and_the_exit_of_a_process_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
