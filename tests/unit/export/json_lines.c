/* JSON Lines and PerfView JSON. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(each_line_of_jsonl_is_an_object_with_a_type)
{
	assert_export_has("jsonl", false, "{\"type\":\"incident\",\"id\":7,");
	assert_export_has(
		"jsonl", false,
		"\n{\"type\":\"counter\",\"time_utc\":\"2026-01-02T03:04:02.678Z\","
		"\"t_ms\":2000.000,\"name\":\"Process:Working Set:app\",\"value\":null}\n");
	assert_export_has("jsonl", false,
			  "\n{\"type\":\"sample\",\"t_ms\":10.000,\"stream\":\"cpu\","
			  "\"weight\":10000000,\"pid\":100,\"process\":\"app\",\"tid\":100,"
			  "\"thread\":\"app\",\"cpu\":0,\"quality\":\"complete\","
			  "\"stack\":[\"app!burn_alpha\",\"app!main\"]}\n");
	assert_export_has("jsonl", false,
			  "\"quality\":\"broken\",\"stack\":[\"app!orphan\",\"BROKEN\"]}\n");
}

TEST(an_event_has_its_stack_leaf_first)
{
	struct buf text = {0};
	struct incident in;
	uint32_t stack;

	assert_int_equal(sample_streams(&in), 0);
	assert_int_equal(sample_stack(&in, "app!main;app!\"run\"", &stack), 0);
	assert_int_equal(export_text(&in, "jsonl", NULL, &text), 0);
	assert_null(strstr(buf_text(&text), "\\\"run"));
	assert_true(in.nevents > 0);
	in.events[in.nevents - 1].stack = stack;
	buf_reset(&text);
	assert_int_equal(export_text(&in, "jsonl", NULL, &text), 0);
	assert_non_null(strstr(buf_text(&text),
			       ",\"stack\":[\"app!\\\"run\\\"\",\"app!main\"]}\n"));
	buf_free(&text);
	incident_free(&in);
}

TEST(what_floods_left_out_is_told_beside_what_was_lost)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_streams(&in), 0);
	in.head.lost_by_kind[LOSS_FLOOD] = 17;
	assert_int_equal(export_text(&in, "jsonl", NULL, &text), 0);
	assert_non_null(strstr(buf_text(&text), "\"lost\":3,\"flooded\":17}\n"));
	buf_free(&text);
	incident_free(&in);
}

TEST(perfview_json_is_leaf_first_up_to_the_process)
{
	assert_export_has("perfview-json", false,
			  "{\"StackSource\":{\"Samples\":[\n{\"Time\":10.000,\"Metric\":1,"
			  "\"Stack\":[\"app!burn_alpha\",\"app!main\",\"Thread (100) "
			  "app\",\"Process app (100)\"]},\n");
	assert_export_has("perfview-json", false,
			  "\"Stack\":[\"app!orphan\",\"BROKEN\",\"Thread (101) worker\",");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_of_jsonl_is_an_object_with_a_type),
		cmocka_unit_test(an_event_has_its_stack_leaf_first),
		cmocka_unit_test(what_floods_left_out_is_told_beside_what_was_lost),
		cmocka_unit_test(perfview_json_is_leaf_first_up_to_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
