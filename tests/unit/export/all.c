/* What holds for every format: found by name, equal totals, equal bytes, failure reported. */
#include "base/array.h"
#include "base/text.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/perfview_reader.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(formats_are_found_by_name_in_either_case)
{
	size_t i;

	for (i = 0; exporters[i]; i++)
		assert_ptr_equal(exporter_by_name(exporters[i]->name), exporters[i]);
	assert_string_equal(exporter_by_name("FOLDED")->name, "folded");
	assert_string_equal(exporter_by_name("PerfView-XML")->name, "perfview-xml");
	assert_null(exporter_by_name("perfview"));
	assert_null(exporter_by_name("perfview-xml-"));
	assert_null(exporter_by_name(""));
}

TEST(formats_are_found_by_the_longest_suffix_of_a_path)
{
	assert_string_equal(exporter_by_path("a/b.c/cpu.folded")->name, "folded");
	assert_string_equal(exporter_by_path("cpu.perfView.xml")->name, "perfview-xml");
	assert_string_equal(exporter_by_path("CPU.PERFVIEW.XML")->name, "perfview-xml");
	assert_string_equal(exporter_by_path("cpu.perfView.xml.zip")->name, "perfview-xml-zip");
	assert_string_equal(exporter_by_path("cpu.trace.json.gz")->name, "trace");
	assert_string_equal(exporter_by_path("cpu.pb.gz")->name, "pprof");
	assert_null(exporter_by_path("cpu.perfView.xml.zip.gz"));
	assert_true(exporter_packs(exporter_by_name("trace"), "cpu.trace.json.GZ"));
	assert_false(exporter_packs(exporter_by_name("trace"), "cpu.trace.json"));
	assert_false(exporter_packs(exporter_by_name("pprof"), "cpu.pb.gz"));
	assert_null(exporter_by_path("cpu.gz"));
	assert_null(exporter_by_path("cpu.xml"));
	assert_null(exporter_by_path("-"));
	assert_null(exporter_by_path(""));
}

static void check_totals(int (*make)(struct incident *in), uint64_t expected)
{
	static const char *const xml[] = {"perfview-xml", "perfview-simple"};
	struct perfview_totals totals;
	struct buf text = {0};
	struct incident in;
	size_t i;

	assert_int_equal(make(&in), 0);
	assert_int_equal(in.head.samples, expected);
	assert_int_equal(export_text(&in, "folded", NULL, &text), 0);
	assert_int_equal(folded_total(buf_text(&text)), expected);
	for (i = 0; i < 2; i++) {
		buf_reset(&text);
		assert_int_equal(export_text(&in, xml[i], NULL, &text), 0);
		perfview_read(text.data, &totals, NULL);
		assert_int_equal(totals.samples, expected);
	}
	buf_free(&text);
	incident_free(&in);
}

struct total {
	const char *format;
	uint64_t (*read)(const char *text);
};

static uint64_t perf_script_weight(const char *text)
{
	uint64_t samples;

	return perf_script_total(text, &samples);
}

static const struct total totals_by_weight[] = {
	{"folded", folded_total},
	{"livestacks", livestacks_total},
	{"dtrace", dtrace_total},
	{"perf-script", perf_script_weight},
	{"speedscope", speedscope_total},
	{"trace", trace_total},
};

#define FIRST_IN_NS 3                        /* these weigh CPU samples by their time */

/* Every format of one stream; for CPU, `expected` are samples of 10 ms. */
static void check_stream(struct incident *in, enum stream stream, uint64_t expected)
{
	struct export_options opt = export_defaults;
	static const double perfview_unit[STREAMS_MAX] = {1, 1e6, 1024, 1};
	struct perfview_totals totals;
	struct pprof_totals pprof;
	struct buf text = {0};
	uint64_t weight;
	size_t i;

	opt.stream = stream;
	for (i = 0; i < COUNT_OF(totals_by_weight); i++) {
		const struct total *t = &totals_by_weight[i];

		weight = expected;
		if (stream == STREAM_CPU && i >= FIRST_IN_NS)
			weight *= 10000000;
		buf_reset(&text);
		assert_int_equal(export_text(in, t->format, &opt, &text), 0);
		assert_int_equal(t->read(buf_text(&text)), weight);
	}
	buf_reset(&text);
	assert_int_equal(export_text(in, "pprof", &opt, &text), 0);
	pprof_read(&text, &pprof);
	assert_int_equal(pprof.values[1], stream == STREAM_CPU ? expected * 10000000 : expected);
	buf_reset(&text);
	assert_int_equal(export_text(in, "perfview-xml", &opt, &text), 0);
	perfview_read(text.data, &totals, NULL);
	assert_true(totals.metric > (double)expected / perfview_unit[stream] - 0.01);
	assert_true(totals.metric < (double)expected / perfview_unit[stream] + 0.01);
	buf_free(&text);
}

TEST(every_format_has_the_weight_of_each_stream)
{
	struct incident in;

	assert_int_equal(sample_streams(&in), 0);
	check_stream(&in, STREAM_CPU, 12);
	check_stream(&in, STREAM_OFF_CPU, STREAMS_OFF_CPU_NS);
	check_stream(&in, STREAM_ALLOC, STREAMS_ALLOC_BYTES);
	check_stream(&in, STREAM_EVENT, 0);
	incident_free(&in);
}

static int medium(struct incident *in)
{
	return sample_large(in, 20000, 300, 20, 7);
}

TEST(every_format_has_the_same_total)
{
	check_totals(sample_small, 12);
	check_totals(sample_hostile, 27);
	check_totals(medium, 20000);
}

TEST(an_incident_without_samples_is_a_valid_file)
{
	struct buf text = {0};
	struct incident in;

	check_totals(sample_incident, 0);
	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(export_text(&in, "folded", NULL, &text), 0);
	assert_int_equal(text.len, 0);
	assert_int_equal(export_text(&in, "perfview-xml", NULL, &text), 0);
	assert_non_null(strstr(text.data, "<Frames Count=\"0\">\n</Frames>\n<Stacks Count=\"0\">\n"
					  "</Stacks>\n<Samples Count=\"0\">\n</Samples>\n"));
	buf_free(&text);
	incident_free(&in);
}

TEST(an_incident_of_nothing_known_is_a_valid_file)
{
	struct perfview_totals totals;
	struct buf text = {0};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(export_text(&in, "perfview-xml", NULL, &text), 0);
	perfview_read(text.data, &totals, NULL);
	buf_free(&text);
	incident_free(&in);
}

TEST(the_same_incident_gives_the_same_bytes)
{
	struct buf first = {0}, second = {0};
	struct incident a, b;
	size_t i;

	assert_int_equal(medium(&a), 0);
	assert_int_equal(medium(&b), 0);
	for (i = 0; exporters[i]; i++) {
		buf_reset(&first);
		buf_reset(&second);
		assert_int_equal(export_text(&a, exporters[i]->name, NULL, &first), 0);
		assert_int_equal(export_text(&b, exporters[i]->name, NULL, &second), 0);
		assert_int_equal(first.len, second.len);
		assert_memory_equal(first.data, second.data, first.len);
	}
	buf_free(&first);
	buf_free(&second);
	incident_free(&a);
	incident_free(&b);
}

TEST(text_is_utf8_with_line_feeds_only)
{
	struct buf text = {0};
	struct incident in;
	size_t i;

	assert_int_equal(sample_hostile(&in), 0);
	for (i = 0; exporters[i]; i++) {
		if (exporters[i]->binary)
			continue;
		buf_reset(&text);
		assert_int_equal(export_text(&in, exporters[i]->name, NULL, &text), 0);
		assert_null(memchr(text.data, '\r', text.len));
		assert_int_equal(strlen(text.data), text.len);
		assert_int_equal(text.data[text.len - 1], '\n');
		assert_memory_not_equal(text.data, "\xef\xbb\xbf", 3);
	}
	buf_free(&text);
	incident_free(&in);
}

#define BACKWARDS "\xe2\x80\xae"           /* U+202E: what follows is read from right to left */

static void add_backwards(struct incident *in)
{
	struct frame_spec frame = {.module = "a" BACKWARDS, .function = "f" BACKWARDS "g"};
	struct event_field field = {.name = "x" BACKWARDS, .type = FIELD_TEXT,
				    .v.text = "t" BACKWARDS "u\033"};
	struct incident_event e = {
		.kind = EVENT_GENERIC, .stack = STACK_NONE, .cpu = CPU_NONE,
		.provider = "p" BACKWARDS, .name = "e" BACKWARDS, .time_ns = in->head.t0_ns,
		.nfields = 1,
	};
	uint32_t stack;

	e.thread = sample_thread(in, "n" BACKWARDS "m\033", 10, "o" BACKWARDS "p", 20);
	assert_int_equal(sample_frames(in, &frame, 1, &stack), 0);
	assert_int_equal(sample_add(in, e.thread, stack, QUALITY_COMPLETE, 1), 0);
	assert_int_equal(incident_add_event(in, &e, &field), 0);
	free(in->head.reason);
	free(in->head.rule);
	in->head.reason = text_dup("r" BACKWARDS "s\033", SIZE_MAX);
	in->head.rule = text_dup("q" BACKWARDS, SIZE_MAX);
}

static bool contains(const struct buf *text, const char *what)
{
	size_t n = strlen(what), i;

	for (i = 0; i + n <= text->len; i++)
		if (memcmp(text->data + i, what, n) == 0)
			return true;
	return false;
}

TEST(nothing_turns_the_direction_of_a_text_and_names_stay_readable)
{
	struct buf text = {0};
	struct incident in;
	size_t i;

	assert_int_equal(sample_incident(&in), 0);
	add_backwards(&in);
	for (i = 0; exporters[i]; i++) {
		const char *name = exporters[i]->name;

		buf_reset(&text);
		assert_int_equal(export_text(&in, name, NULL, &text), 0);
		if (contains(&text, BACKWARDS) ||
		    (!exporters[i]->binary && contains(&text, "\033")))
			fail_msg("%s has the character itself", name);
		/* The data of a report are packed. */
		if (!exporters[i]->binary && strcmp(name, "html") != 0 &&
		    !contains(&text, "f\\u{202e}g") &&
		    !contains(&text, "f\\\\u{202e}g") && !strstr(name, "csv"))
			fail_msg("%s lacks the name", name);
	}
	buf_free(&text);
	incident_free(&in);
}

struct export_step {
	const struct incident *in;
	const char *format;
};

static int run_export(void *ctx)
{
	const struct export_step *step = ctx;
	struct buf text = {0};
	int rc = export_text(step->in, step->format, NULL, &text);

	buf_free(&text);
	return rc;
}

/*
 * SQLite does without some of what it asks for, where it is linked in: only a crash would be wrong.
 */
static void survive_lack_of_memory(struct export_step *step)
{
	unsigned long n;
	int rc, failures = 0;

	for (n = 1; n <= 300; n++) {
		alloc_walk_fail_at(n);
		rc = run_export(step);
		alloc_walk_fail_at(0);
		failures += rc != 0;
	}
	assert_true(failures > 0);
}

TEST(every_format_reports_lack_of_memory)
{
	struct export_step step;
	struct incident in;
	size_t i;

	assert_int_equal(sample_small(&in), 0);
	for (i = 0; exporters[i]; i++) {
		step.in = &in;
		step.format = exporters[i]->name;
		if (strcmp(exporters[i]->name, "sqlite-flat") == 0)
			survive_lack_of_memory(&step);
		else
			assert_in_range(alloc_walk(run_export, &step), 2, 20000);
	}
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_found_by_name_in_either_case),
		cmocka_unit_test(formats_are_found_by_the_longest_suffix_of_a_path),
		cmocka_unit_test(every_format_has_the_same_total),
		cmocka_unit_test(every_format_has_the_weight_of_each_stream),
		cmocka_unit_test(an_incident_without_samples_is_a_valid_file),
		cmocka_unit_test(an_incident_of_nothing_known_is_a_valid_file),
		cmocka_unit_test(the_same_incident_gives_the_same_bytes),
		cmocka_unit_test(text_is_utf8_with_line_feeds_only),
		cmocka_unit_test(nothing_turns_the_direction_of_a_text_and_names_stay_readable),
		cmocka_unit_test(every_format_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
