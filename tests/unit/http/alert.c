#include "http/alert.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define NOW_NS UINT64_C(1795230600000000000)         /* 2026-11-21T03:10:00Z */

static struct alerts all;

static void parse(const char *text)
{
	struct buf body = {0};
	struct err err = {0};

	buf_puts(&body, text);
	if (alerts_parse(&body, NOW_NS, &all, &err))
		fail_msg("%s", err.text);
	buf_free(&body);
}

static void alertmanagers_have_name_beginning_and_fingerprint(void **state)
{
	(void)state;
	parse("{\"version\":\"4\",\"alerts\":[{\"status\":\"firing\","
	      "\"labels\":{\"alertname\":\"A\",\"for\":\"5m\"},\"annotations\":{\"summary\":\"S\"},"
	      "\"startsAt\":\"2026-11-21T03:00:00.25Z\",\"fingerprint\":\"f1\"},"
	      "{\"status\":\"resolved\",\"labels\":{\"alertname\":\"B\"}}]}");
	assert_int_equal(all.n, 2);
	assert_string_equal(all.items[0].name, "A");
	assert_string_equal(all.items[0].summary, "S");
	assert_string_equal(all.items[0].key, "f1 since 2026-11-21T03:00:00.250Z");
	assert_string_equal(all.items[0].labels, "{\"alertname\":\"A\",\"for\":\"5m\"}");
	assert_int_equal(all.items[0].starts_ns, NOW_NS - 600 * NS_PER_SEC + NS_PER_SEC / 4);
	assert_int_equal(all.items[0].for_ns, 300 * NS_PER_SEC);
	assert_false(all.items[0].resolved);
	assert_true(all.items[1].resolved);
	assert_true(all.items[1].for_ns == ALERT_NO_FOR);
	assert_int_equal(all.items[1].starts_ns, NOW_NS);
	assert_true(all.items[0].dated);
	assert_false(all.items[1].dated);
}

static void pagerduty_incidents_begin_and_end(void **state)
{
	(void)state;
	parse("{\"event\":{\"event_type\":\"incident.triggered\",\"data\":{\"id\":\"P1\","
	      "\"title\":\"T\",\"created_at\":\"2026-11-21T03:09:00Z\"}}}");
	assert_int_equal(all.n, 1);
	assert_string_equal(all.items[0].name, "T");
	assert_string_equal(all.items[0].key, "P1 since 2026-11-21T03:09:00.000Z");
	parse("{\"event\":{\"event_type\":\"incident.resolved\",\"data\":{\"id\":\"P1\"}}}");
	assert_true(all.items[0].resolved);
	parse("{\"event\":{\"event_type\":\"incident.acknowledged\",\"data\":{\"id\":\"P1\"}}}");
	assert_int_equal(all.n, 0);
}

static void an_identity_that_is_no_word_is_hashed(void **state)
{
	char first[sizeof(all.items[0].key)];

	(void)state;
	parse("{\"name\":\"n\",\"fingerprint\":\"a] [b\"}");
	strcpy(first, all.items[0].key);
	assert_null(strpbrk(first, "[]"));
	parse("{\"name\":\"n\",\"fingerprint\":\"a] [c\"}");
	assert_string_not_equal(first, all.items[0].key);
}

static void a_beginning_in_the_future_or_in_1970_is_now(void **state)
{
	(void)state;
	parse("{\"startsAt\":\"2026-11-21T04:00Z\"}");
	assert_int_equal(all.items[0].starts_ns, NOW_NS);
	parse("{\"startsAt\":\"0001-01-01T00:00:00Z\"}");
	assert_int_equal(all.items[0].starts_ns, NOW_NS);
	parse("{\"startsAt\":1795230000.5}");
	assert_int_equal(all.items[0].starts_ns, NOW_NS - 600 * NS_PER_SEC + NS_PER_SEC / 2);
}

static void what_has_no_name_says_so(void **state)
{
	static const char *const texts[] = {
		"{}", "{\"name\":\"  \"}", "{\"alerts\":[{\"labels\":{}}]}",
		"{\"event\":{\"event_type\":\"incident.triggered\"}}"};
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		parse(texts[i]);
		assert_string_equal(all.items[0].name, "without a name");
	}
}

static void a_beginning_that_cannot_be_read_is_refused(void **state)
{
	static const char *const texts[] = {
		"{\"startsAt\":\"banana\"}", "{\"startsAt\":true}", "{\"startsAt\":{}}",
		"{\"alerts\":[{},{\"startsAt\":\"2026-13-01T00:00Z\"}]}",
		"{\"event\":{\"event_type\":\"incident.triggered\",\"occurred_at\":\"x\"}}"};
	struct buf body = {0};
	struct err err = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++) {
		buf_reset(&body);
		buf_puts(&body, texts[i]);
		assert_int_equal(alerts_parse(&body, NOW_NS, &all, &err), ERR_FORMAT);
	}
	assert_non_null(strstr(err.text, "occurred_at of an alert: 'x'"));
	buf_free(&body);
}

static void a_beginning_may_be_empty(void **state)
{
	(void)state;
	parse("{\"startsAt\":null}");
	assert_false(all.items[0].dated);
	parse("{\"startsAt\":\"\",\"time\":1795230000}");
	assert_int_equal(all.items[0].starts_ns, NOW_NS - 600 * NS_PER_SEC);
}

static void a_body_without_an_alert_is_refused(void **state)
{
	static const char *const texts[] = {"{\"alerts\":\"x\"}", "{\"alerts\":[]}",
					    "{\"alerts\":[1,2]}", "{\"alerts\":{}}"};
	struct buf body = {0};
	struct err err = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		buf_reset(&body);
		buf_puts(&body, texts[i]);
		assert_int_equal(alerts_parse(&body, NOW_NS, &all, &err), ERR_FORMAT);
		assert_non_null(strstr(err.text, "no alert"));
	}
	buf_free(&body);
}

static void more_than_64_are_counted(void **state)
{
	struct buf body = {0};
	unsigned i;

	(void)state;
	buf_puts(&body, "{\"alerts\":[{}");
	for (i = 1; i < 100; i++)
		buf_puts(&body, ",{}");
	buf_puts(&body, "]}");
	parse(body.data);
	assert_int_equal(all.n, 64);
	assert_int_equal(all.left_out, 36);
	buf_free(&body);
}

static void what_is_no_object_is_refused(void **state)
{
	static const char *const texts[] = {"", "[]", "{", "alert", "{}{}"};
	struct buf body = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++) {
		buf_reset(&body);
		buf_puts(&body, texts[i]);
		assert_int_equal(alerts_parse(&body, NOW_NS, &all, NULL), ERR_FORMAT);
	}
	buf_reset(&body);
	buf_put(&body, "{}\0{}", 5);
	assert_int_equal(alerts_parse(&body, NOW_NS, &all, NULL), ERR_FORMAT);
	buf_free(&body);
}

static void durations_are_those_of_prometheus(void **state)
{
	static const char *const wrong[] = {"", "m", "5x", "-5m", "5m ", "1e9y", "inf", "8d"};
	uint64_t ns;
	unsigned i;

	(void)state;
	assert_true(alert_duration("1h30m", &ns));
	assert_int_equal(ns, 5400 * NS_PER_SEC);
	assert_true(alert_duration("90", &ns));
	assert_int_equal(ns, 90 * NS_PER_SEC);
	assert_true(alert_duration("500ms", &ns));
	assert_int_equal(ns, NS_PER_SEC / 2);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(alert_duration(wrong[i], &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alertmanagers_have_name_beginning_and_fingerprint),
		cmocka_unit_test(pagerduty_incidents_begin_and_end),
		cmocka_unit_test(an_identity_that_is_no_word_is_hashed),
		cmocka_unit_test(a_beginning_in_the_future_or_in_1970_is_now),
		cmocka_unit_test(what_has_no_name_says_so),
		cmocka_unit_test(a_beginning_that_cannot_be_read_is_refused),
		cmocka_unit_test(a_beginning_may_be_empty),
		cmocka_unit_test(a_body_without_an_alert_is_refused),
		cmocka_unit_test(more_than_64_are_counted),
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(durations_are_those_of_prometheus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
