/* PerfView XML, compact and simple, read back as PerfView reads it. */
#include "base/array.h"
#include "tests/support/export_text.h"
#include "tests/support/incident_samples.h"
#include "tests/support/perfview_reader.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_is_as_in_the_file)
{
	assert_export_is("perfview-xml", NULL, "small.perfView.xml");
	assert_export_is("perfview-simple", NULL, "small-simple.perfView.xml");
}

/* The stacks that PerfView sees, a line a sample. */
static void read_back(const struct incident *in, const char *format,
		      const struct export_options *opt, struct buf *stacks)
{
	struct perfview_totals totals;
	struct buf xml = {0};

	assert_int_equal(export_text(in, format, opt, &xml), 0);
	perfview_read(xml.data, &totals, stacks);
	assert_int_equal(totals.samples, in->head.samples);
	assert_true(totals.metric == (double)in->head.samples);
	buf_free(&xml);
}

TEST(the_viewer_sees_the_stacks_root_first)
{
	struct buf stacks = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	read_back(&in, "perfview-xml", NULL, &stacks);
	assert_string_equal(stacks.data,
		"Process app (100) / Thread (100) app / app!main / app!burn_alpha\n"
		"Process app (100) / Thread (100) app / app!main / app!burn_alpha\n"
		"Process app (100) / Thread (100) app / app!main / app!burn_alpha\n"
		"Process app (100) / Thread (100) app / app!main / app!burn_alpha\n"
		"Process app (100) / Thread (100) app / app!main\n"
		"Process app (100) / Thread (101) worker / libc!start / app!? / [kernel]!read\n"
		"Process app (100) / Thread (101) worker / BROKEN / app!orphan\n"
		"Process app (100) / Thread (101) worker / [truncated] / app!deep\n"
		"Process node (200) / Thread (200) node / node!main / [jit]!run / ?!?\n"
		"Process node (200) / Thread (200) node / node!main / [jit]!run / ?!?\n"
		"Process node (200) / Thread (200) node\n"
		"Process [unknown] (0) / Thread (0) [unknown]\n");
	buf_free(&stacks);
	incident_free(&in);
}

TEST(simple_and_compact_say_the_same)
{
	struct buf compact = {0}, simple = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	read_back(&in, "perfview-xml", NULL, &compact);
	read_back(&in, "perfview-simple", NULL, &simple);
	assert_string_equal(compact.data, simple.data);
	assert_non_null(strstr(compact.data, " / app!main / <script>alert(1)</script>!<script>"));
	assert_non_null(strstr(compact.data, "/ app!main / ]]>!]]>\n"));
	assert_non_null(strstr(compact.data, "/ app!main / &amp;!&amp;\n"));
	buf_free(&compact);
	buf_free(&simple);
	incident_free(&in);
}

TEST(without_ids_a_thread_still_begins_as_the_viewer_wants)
{
	struct export_options opt = {.ids = false};
	struct buf stacks = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	read_back(&in, "perfview-xml", &opt, &stacks);
	assert_non_null(strstr(stacks.data, "Process app / Thread (worker) / libc!start / app!?"));
	buf_free(&stacks);
	incident_free(&in);
}

TEST(module_names_lose_their_suffix)
{
	static const char *const modules[][2] = {
		{"ntdll.dll", "ntdll"}, {"App.EXE", "App"}, {"tcpip.sys", "tcpip"},
		{"libc.so.6", "libc"}, {"libstdc++.so.6", "libstdc++"},
		{"libx.so", "libx"}, {"a.sofa.so.1.2", "a.sofa"}, {"my.dll.txt", "my.dll.txt"},
		{".so", ".so"}, {".dll", ".dll"}, {"[kernel]", "[kernel]"},
	};
	char expected[200];
	size_t i;

	for (i = 0; i < COUNT_OF(modules); i++) {
		struct frame_spec frame = {modules[i][0], "f", 0, 0};
		struct buf stacks = {0};
		struct incident in;
		uint32_t stack;

		assert_int_equal(sample_incident(&in), 0);
		assert_int_equal(sample_frames(&in, &frame, 1, &stack), 0);
		assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_FP, 1), 0);
		read_back(&in, "perfview-xml", NULL, &stacks);
		strcpy(expected, "Process [unknown] (0) / Thread (0) [unknown] / ");
		strcat(strcat(expected, modules[i][1]), "!f\n");
		assert_string_equal(stacks.data, expected);
		buf_free(&stacks);
		incident_free(&in);
	}
}

TEST(times_are_milliseconds_from_the_start_of_the_window)
{
	struct incident_sample s = {.thread = THREAD_NONE, .stack = STACK_NONE};
	struct incident in;
	struct buf xml = {0};

	assert_int_equal(sample_incident(&in), 0);
	s.time_ns = 100000000000ULL;
	assert_int_equal(incident_add_sample(&in, &s), 0);
	s.time_ns = 103456789999ULL;
	assert_int_equal(incident_add_sample(&in, &s), 0);
	s.time_ns = 99999500000ULL;          /* delivered late, before the window */
	assert_int_equal(incident_add_sample(&in, &s), 0);
	assert_int_equal(export_text(&in, "perfview-xml", NULL, &xml), 0);
	assert_non_null(strstr(xml.data, "<Sample ID=\"0\" Time=\"0.000\" StackID=\"1\" />"));
	assert_non_null(strstr(xml.data, "<Sample ID=\"1\" Time=\"3456.789\" StackID=\"1\" />"));
	assert_non_null(strstr(xml.data, "<Sample ID=\"2\" Time=\"-0.500\" StackID=\"1\" />"));
	buf_free(&xml);
	incident_free(&in);
}

TEST(characters_that_xml_does_not_have_are_replaced)
{
	struct frame_spec frame = {"m", "a\xef\xbf\xbf" "b\xef\xbf\xbe\x01", 0, 0};
	struct buf stacks = {0};
	struct incident in;
	uint32_t stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, &frame, 1, &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_FP, 1), 0);
	read_back(&in, "perfview-xml", NULL, &stacks);
	assert_non_null(strstr(stacks.data, "/ m!a\xef\xbf\xbd" "b\xef\xbf\xbd \n"));
	buf_free(&stacks);
	incident_free(&in);
}

TEST(the_metric_is_time_only_at_one_sample_a_millisecond)
{
	struct incident in;
	struct buf xml = {0};

	assert_int_equal(sample_small(&in), 0);
	in.head.period_ns[STREAM_CPU] = 1000000;
	assert_int_equal(export_text(&in, "perfview-xml", NULL, &xml), 0);
	assert_non_null(strstr(xml.data, "<ScalingPolicy>TimeMetric</ScalingPolicy>"));
	buf_free(&xml);
	incident_free(&in);
}

TEST(names_of_other_processes_do_not_get_into_a_filtered_export)
{
	struct incident_filter filter = {.process = "app"};
	struct incident in;
	struct buf xml = {0};

	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(incident_filter(&in, &filter, NULL), 0);
	assert_int_equal(export_text(&in, "perfview-xml", NULL, &xml), 0);
	assert_non_null(strstr(xml.data, "<Samples Count=\"8\">"));
	assert_null(strstr(xml.data, "node"));
	buf_free(&xml);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_file),
		cmocka_unit_test(the_viewer_sees_the_stacks_root_first),
		cmocka_unit_test(simple_and_compact_say_the_same),
		cmocka_unit_test(without_ids_a_thread_still_begins_as_the_viewer_wants),
		cmocka_unit_test(module_names_lose_their_suffix),
		cmocka_unit_test(times_are_milliseconds_from_the_start_of_the_window),
		cmocka_unit_test(characters_that_xml_does_not_have_are_replaced),
		cmocka_unit_test(the_metric_is_time_only_at_one_sample_a_millisecond),
		cmocka_unit_test(names_of_other_processes_do_not_get_into_a_filtered_export),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
