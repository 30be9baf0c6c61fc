/* HTML report. What a browser makes of it: cli/report_linux.sh. */
#include "base/array.h"
#include "tests/support/export_text.h"
#include "tests/support/incident_samples.h"

#include "export/report_data.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static int base64_value(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* What the browser gets: the text of <script id="data">, unpacked. */
static char *unpacked(const struct buf *html)
{
	static const char tag[] = "<script type=\"text/plain\" id=\"data\">\n";
	const char *at = strstr(html->data, tag);
	unsigned char *packed = malloc(html->len);
	uLongf size = (uLongf)8 << 20;
	char *json = malloc(size + 1);
	uint32_t bits = 0, nbits = 0;
	uLong n = 0;

	assert_non_null(at);
	for (at += sizeof(tag) - 1; *at != '<' && *at != '='; at++) {
		if (*at == '\n')
			continue;
		assert_true(base64_value(*at) >= 0);
		bits = bits << 6 | (uint32_t)base64_value(*at);
		nbits += 6;
		if (nbits >= 8)
			packed[n++] = (unsigned char)(bits >> (nbits -= 8) & 255);
	}
	assert_int_equal(uncompress((Bytef *)json, &size, packed, n), Z_OK);
	json[size] = '\0';
	free(packed);
	return json;
}

/* The sum over all buckets of "weights": n, then n pairs of node and weight. */
static uint64_t weight_of(const char *json)
{
	const char *at = strstr(json, "\"weights\":[");
	uint64_t sum = 0, pairs = 0;
	char *end;

	assert_non_null(at);
	at += strlen("\"weights\":[");
	while (*at != ']') {
		pairs = strtoull(at, &end, 10);
		for (; pairs; pairs--) {
			strtoull(end + 1, &end, 10);
			sum += strtoull(end + 1, &end, 10);
		}
		at = end + (*end == ',');
	}
	return sum;
}

/* What a process had resident is a counter, so that it has a lane. */
TEST(the_size_of_a_process_is_a_counter)
{
	static const struct event_field fields[] = {{"RssKb", FIELD_UINT, {.u = 3072}}};
	struct incident_event e = {.kind = EVENT_GENERIC, .provider = "Memory", .name = "RSS",
				   .stack = STACK_NONE, .nfields = 1};
	struct buf data = {0};
	struct incident in;

	assert_int_equal(sample_streams(&in), 0);
	e.time_ns = in.head.t0_ns + 2000000000;
	e.thread = sample_thread(&in, "shop", 7, "shop", 7);
	assert_int_equal(incident_add_event(&in, &e, fields), 0);
	assert_int_equal(incident_sort(&in), 0);
	assert_int_equal(report_data(&in, &export_defaults, true, &data, NULL), 0);
	assert_non_null(strstr(data.data, "-3000.000,\"shop (7): RSS MB\",3"));
	buf_free(&data);
	incident_free(&in);
}

TEST(the_data_is_what_the_file_holds)
{
	struct buf html = {0}, data = {0};
	struct incident in;
	char *json;

	assert_int_equal(sample_streams(&in), 0);
	assert_int_equal(export_text(&in, "html", NULL, &html), 0);
	assert_int_equal(report_data(&in, &export_defaults, true, &data, NULL), 0);
	json = unpacked(&html);
	assert_string_equal(json, data.data);
	assert_int_equal(weight_of(json), 12);
	assert_non_null(strstr(json,
			       "\"unit_ns\":10000000,\"from_ms\":-5000.000,\"to_ms\":5000.000,"
			       "\"buckets\":2000,\"levels\":2,\"small\":0,\"samples\":12,"));
	assert_non_null(strstr(json,
			       "\"counters\":[-5000.000,\"Process:Working Set:app\",1.5,-4000.000,"
			       "\"Process:Working Set:app\",2e+15,-3000.000,"
			       "\"Process:Working Set:app\",null]"));
	assert_non_null(
		strstr(json, "[0.000,\"event\",\"Microsoft-Windows-DotNETRuntime/GC/Stop\",12.5,"
			     "\"app (100)\",\"Count=18446744073709551615, Reason==1+1, \\\"x\\\" , "
			     "Delta=-5, Ratio=0.25, DurationMSec=12.5\"]"));
	assert_non_null(strstr(json, "\"events_left_out\":0,\"events_from_ms\":-5000.000,"
			       "\"events_to_ms\":5000.000}"));
	free(json);
	buf_free(&html);
	buf_free(&data);
	incident_free(&in);
}

/*
 * 30,000 log lines, a third before the trigger: all those, and as many after it as there is room.
 */
TEST(of_too_many_events_those_around_the_trigger_are_kept)
{
	struct incident_event e = {
		.kind = EVENT_LOG, .thread = THREAD_NONE, .stack = STACK_NONE, .cpu = CPU_NONE,
		.provider = "journal", .name = "line",
	};
	struct buf data = {0};
	struct incident in;
	uint32_t i;

	assert_int_equal(sample_incident(&in), 0);
	for (i = 0; i < 30000; i++) {
		e.time_ns = in.head.trigger_ns + i * 100000ULL - 1000000000;
		assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	}
	e.kind = EVENT_GENERIC;
	e.name = "GC/Stop";
	assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	assert_int_equal(report_data(&in, &export_defaults, true, &data, NULL), 0);
	assert_non_null(strstr(data.data, "\"events_left_out\":10000,\"events_from_ms\":-5000.000,"
			       "\"events_to_ms\":999.900}"));
	assert_non_null(strstr(data.data, "[1999.900,\"event\",\"journal/GC/Stop\""));
	buf_free(&data);
	incident_free(&in);
}

TEST(other_streams_weigh_what_they_weigh)
{
	struct export_options opt = {.stream = STREAM_OFF_CPU};
	struct buf data = {0};
	struct incident in;

	assert_int_equal(sample_streams(&in), 0);
	assert_int_equal(report_data(&in, &opt, true, &data, NULL), 0);
	assert_int_equal(weight_of(data.data), STREAMS_OFF_CPU_NS);
	assert_non_null(strstr(data.data, "\"unit\":\"ns off CPU\",\"unit_ns\":null"));
	buf_free(&data);
	incident_free(&in);
}

/* Most of the 20,000 stacks have fewer than 20 of the 400,000 samples: 0.005 %. */
TEST(of_many_samples_small_nodes_are_summed_and_totals_kept)
{
	struct buf data = {0};
	struct incident in;

	assert_int_equal(sample_large(&in, 400000, 20000, 12, 40), 0);
	assert_int_equal(report_data(&in, &export_defaults, true, &data, NULL), 0);
	assert_int_equal(weight_of(data.data), 400000);
	assert_non_null(strstr(data.data, "\"buckets\":500,"));
	assert_null(strstr(data.data, "\"levels\":2,\"small\":0,"));
	buf_free(&data);
	incident_free(&in);
}

TEST(hostile_names_are_never_markup)
{
	struct buf html = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	in.head.reason[0] = '<';
	assert_int_equal(export_text(&in, "html", NULL, &html), 0);
	assert_null(strstr(html.data, "<script>alert"));
	assert_non_null(strstr(html.data, "<h1>&lt; Processor Time was 91.5"));
	assert_null(strstr(html.data, "\nimport "));
	assert_null(strstr(html.data, "\nexport "));
	buf_free(&html);
	incident_free(&in);
}

TEST(the_header_tells_the_facts)
{
	static const char *const facts[] = {
		("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
		 "img-src data:"),
		"<dt>Host</dt><dd>web-1</dd>",
		"<dt>Rule</dt><dd>Processor:% Processor Time:_Total&gt;80</dd>",
		"<dt>Value</dt><dd>91.5, the limit was 80</dd>",
		"<dt>Window asked for</dt><dd>120.000 s before the trigger, 5.000 s after it</dd>",
		"<dt>Window here</dt><dd>5.000 s before, 5.000 s after</dd>",
		"<dt>Why they differ</dt><dd>the recorder had started 5 s before</dd>",
		"<dt>Lost</dt><dd>3 (kernel 2, queue 1)</dd>",
	};
	struct buf html = {0};
	struct incident in;
	size_t i;

	assert_int_equal(sample_small(&in), 0);
	in.head.value = 91.5;
	in.head.limit = 80;
	assert_int_equal(export_text(&in, "html", NULL, &html), 0);
	for (i = 0; i < COUNT_OF(facts); i++) {
		if (!strstr(html.data, facts[i]))
			fail_msg("no %s", facts[i]);
	}
	buf_free(&html);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_size_of_a_process_is_a_counter),
		cmocka_unit_test(the_data_is_what_the_file_holds),
		cmocka_unit_test(of_too_many_events_those_around_the_trigger_are_kept),
		cmocka_unit_test(other_streams_weigh_what_they_weigh),
		cmocka_unit_test(of_many_samples_small_nodes_are_summed_and_totals_kept),
		cmocka_unit_test(hostile_names_are_never_markup),
		cmocka_unit_test(the_header_tells_the_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
