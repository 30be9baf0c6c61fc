#include "base/moment.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOW_S 1795230600ULL                  /* 2026-11-21T03:10:00Z, a Saturday */

static uint64_t at(const char *text)
{
	uint64_t out = 0;
	struct err err = {0};

	if (moment_parse(text, NOW_S * NS_PER_SEC, 0, &out, &err))
		fail_msg("%s", err.text);
	return out;
}

static void a_date_in_utc_is_the_same_everywhere(void **state)
{
	(void)state;
	assert_int_equal(at("2026-11-21T03:10Z"), NOW_S * NS_PER_SEC);
	assert_int_equal(at("2026-11-21 03:10:00.5Z"), NOW_S * NS_PER_SEC + NS_PER_SEC / 2);
	assert_int_equal(at("2026-11-21T04:10+01:00"), NOW_S * NS_PER_SEC);
	assert_int_equal(at("@1795230600"), NOW_S * NS_PER_SEC);
}

static void a_time_before_now_is_counted_back(void **state)
{
	(void)state;
	assert_int_equal(at("now"), NOW_S * NS_PER_SEC);
	assert_int_equal(at("-30m"), (NOW_S - 1800) * NS_PER_SEC);
	assert_int_equal(at("now-24h"), (NOW_S - 86400) * NS_PER_SEC);
	assert_int_equal(at("-2h"), (NOW_S - 7200) * NS_PER_SEC);
}

/* Whatever the time zone of this machine is, its text read again is the same second. */
static void local_text_reads_back(void **state)
{
	char text[MOMENT_TEXT_BYTES];
	uint64_t ns;

	(void)state;
	for (ns = NOW_S * NS_PER_SEC; ns < (NOW_S + 86400) * NS_PER_SEC; ns += 5000 * NS_PER_SEC) {
		moment_local_text(ns, text);
		assert_int_equal(at(text), ns);
	}
}

static void a_time_alone_was_the_last_one(void **state)
{
	char text[MOMENT_TEXT_BYTES];

	(void)state;
	moment_local_text((NOW_S - 3600) * NS_PER_SEC, text);
	assert_int_equal(at(text + 11), (NOW_S - 3600) * NS_PER_SEC);
	moment_local_text((NOW_S + 3600) * NS_PER_SEC, text);
	assert_int_equal(at(text + 11), (NOW_S + 3600 - 86400) * NS_PER_SEC);
}

static void the_end_of_a_window_comes_after_its_beginning(void **state)
{
	uint64_t from = (NOW_S - 5 * 86400) * NS_PER_SEC, to = 0;
	char text[MOMENT_TEXT_BYTES];

	(void)state;
	moment_local_text(from + 300 * NS_PER_SEC, text);
	assert_int_equal(moment_parse(text + 11, NOW_S * NS_PER_SEC, from, &to, NULL), 0);
	assert_int_equal(to, from + 300 * NS_PER_SEC);
}

static void yesterday_is_the_local_day_before(void **state)
{
	uint64_t noon;

	(void)state;
	noon = at("today 12:00");
	assert_int_equal(moment_days_before(noon, 1), at("yesterday 12:00"));
}

static void what_is_no_moment_is_refused(void **state)
{
	static const char *const bad[] = {"", "x", "25:00", "12:60", "2026-13-01", "2026-11-21T",
					  "2026-11-21T03:10Zulu", "-", "-5x", "@", "03:1", "5",
					  "yesterdays 03:10", "2026-11-21T03:10+1", "nowadays"};
	uint64_t out = 7;
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (moment_parse(bad[i], NOW_S * NS_PER_SEC, 0, &out, &err) != ERR_USAGE)
			fail_msg("'%s' was accepted", bad[i]);
	}
	assert_int_equal(out, 7);
}

static uint64_t found(const char *line)
{
	uint64_t out = 0;

	return moment_find(line, NOW_S * NS_PER_SEC, &out) ? out : 0;
}

static void a_line_of_a_log_has_its_time(void **state)
{
	const uint64_t ms = NS_PER_SEC / 1000;

	(void)state;
	assert_int_equal(found("2026-11-21T03:10:00.250Z ERROR slow"),
			 NOW_S * NS_PER_SEC + 250 * ms);
	assert_int_equal(found("{\"ts\":\"2026-11-21T04:10:00+01:00\"}"), NOW_S * NS_PER_SEC);
	assert_int_equal(found("10.0.0.7 - - [21/Nov/2026:02:10:00 -0100] \"GET / HTTP/1.1\" 200"),
			 NOW_S * NS_PER_SEC);
	assert_int_equal(found("host-1 2026-11-21 03:09:58Z x"), (NOW_S - 2) * NS_PER_SEC);
}

/* Local times, in whatever zone this machine is, and what follows a time is no offset. */
static void local_times_of_logs_are_known(void **state)
{
	const uint64_t then = (NOW_S - 40 * 86400) * NS_PER_SEC;     /* "2026-10-12" */
	char text[MOMENT_TEXT_BYTES], line[100];
	static const char *const months[] = {"Oct", "Nov"};

	(void)state;
	moment_local_text(then, text);
	snprintf(line, sizeof(line), "%s,500 [main] WARN", text);
	assert_int_equal(found(line), then + NS_PER_SEC / 2);
	snprintf(line, sizeof(line), "%s -1 items", text);
	assert_int_equal(found(line), then);
	snprintf(line, sizeof(line), "%.4s/%.2s/%.11s [error] 7#7: *1", text, text + 5, text + 8);
	assert_int_equal(found(line), then);
	snprintf(line, sizeof(line), "<3>%s %.11s web app[7]: x", months[text[6] != '0'], text + 8);
	assert_int_equal(found(line), then);
}

/* In January, December was last year. */
static void a_date_without_a_year_is_the_last(void **state)
{
	const uint64_t new_year = 1798804800ULL;     /* 2027-01-01T12:00Z */
	uint64_t out = 0;

	(void)state;
	assert_true(moment_find("Dec 31 12:00:00 web x", new_year * NS_PER_SEC, &out));
	assert_true(out < new_year * NS_PER_SEC && out > (new_year - 2 * 86400) * NS_PER_SEC);
}

static void a_line_without_a_date_has_no_time(void **state)
{
	(void)state;
	assert_int_equal(found("at 03:10:00 it was slow"), 0);
	assert_int_equal(found("version 2026-11-21"), 0);
	assert_int_equal(found("x2026-11-21T03:10:00Z"), 0);
	assert_int_equal(found("2026-13-21T03:10:00Z"), 0);
	assert_int_equal(found("May be 3 12:00:00"), 0);
	assert_int_equal(found("202"), 0);
	assert_int_equal(found(""), 0);
}

static void a_duration_is_a_number_with_a_unit(void **state)
{
	static const char *const wrong[] = {"", "d", "7x", "7d ", " 7d", "0x7", "inf",
					  "7 d", "1h30m"};
	double s = 0;
	unsigned i;

	(void)state;
	assert_true(duration_parse("7d", &s) && s == 7 * 86400);
	assert_true(duration_parse("2w", &s) && s == 14 * 86400);
	assert_true(duration_parse("1.5h", &s) && s == 5400);
	assert_true(duration_parse("500ms", &s) && s == 0.5);
	assert_true(duration_parse("-90", &s) && s == -90);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(duration_parse(wrong[i], &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_date_in_utc_is_the_same_everywhere),
		cmocka_unit_test(a_time_before_now_is_counted_back),
		cmocka_unit_test(local_text_reads_back),
		cmocka_unit_test(a_time_alone_was_the_last_one),
		cmocka_unit_test(the_end_of_a_window_comes_after_its_beginning),
		cmocka_unit_test(yesterday_is_the_local_day_before),
		cmocka_unit_test(what_is_no_moment_is_refused),
		cmocka_unit_test(a_line_of_a_log_has_its_time),
		cmocka_unit_test(local_times_of_logs_are_known),
		cmocka_unit_test(a_date_without_a_year_is_the_last),
		cmocka_unit_test(a_line_without_a_date_has_no_time),
		cmocka_unit_test(a_duration_is_a_number_with_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
