/* What the text of a target means, and what is refused. */
#include "ship/target.h"
#include "tests/support/test.h"

static void refused(const char *text, const char *why)
{
	struct err err = {0};
	struct target t;

	assert_int_equal(target_parse(text, &t, &err), ERR_USAGE);
	if (!strstr(err.text, why))
		fail_msg("%s: no '%s' in: %s", text, why, err.text);
}

/* Its scheme, the URL it is asked at, its name. */
static void is(const char *text, const char *scheme, const char *url, const char *name)
{
	struct err err = {0};
	struct target t;

	if (target_parse(text, &t, &err))
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(t.kind->scheme, scheme);
	assert_string_equal(t.url, url);
	assert_string_equal(buf_text(&t.name), name);
	target_free(&t);
}

TEST(a_target_is_chosen_by_its_scheme)
{
	is("https://h/in/", "https://", "https://h/in/", "https://h/in/");
	is("pyroscope+https://h;History=60s", "pyroscope+https://", "https://h",
	   "pyroscope+https://h");
	is("clickhouse+http://127.0.0.1/db;Auth=f", "clickhouse+http://", "http://127.0.0.1/db",
	   "clickhouse+http://127.0.0.1/db");
	is("postgresql://me@h/db", "postgresql://", "postgresql://me@h/db", "postgresql://me@h/db");
	is("peer+https://[::1]:9427;Auth=f", "peer+https://", "https://[::1]:9427",
	   "peer+https://[::1]:9427");
	is("datadog+unix:///run/d.sock", "datadog+unix://", "unix:///run/d.sock",
	   "datadog+unix:///run/d.sock");
	refused("ftp://h", "is no target; it begins with one of s3://");
	refused("", "is no target");
}

TEST(keys_are_read)
{
	struct target t;

	assert_int_equal(target_parse("s3://bucket/p;endpoint=http://127.0.0.1:1;Region=r;KBps=7;"
				      "StallSec=8;RetrySec=9;PartKB=1048576;Format=folded;"
				      "History=10m", &t, NULL), 0);
	assert_int_equal(t.kb_per_s, 7);
	assert_int_equal(t.stall_s, 8);
	assert_int_equal(t.retry_s, 9);
	assert_int_equal(t.part_kb, 1048576);
	assert_int_equal(t.history_s, 600);
	assert_string_equal(t.region, "r");
	assert_non_null(t.exporter);
	target_free(&t);
	refused("https://h;KBps=0", "KBps=0: expected 1 to 1048576");
	refused("https://h;KBps=1048577", "expected 1 to");
	refused("https://h;KBps=-1", "expected 1 to");
	refused("https://h;KBps", "expected Key=Value");
	refused("https://h;Nonsense=1", "Nonsense");
	refused("https://h;Format=nonsense", "nonsense");
}

TEST(intervals_of_the_history_have_bounds)
{
	refused("pyroscope+https://h;History=9s", "10s to 600s");
	refused("pyroscope+https://h;History=601s", "10s to 600s");
	refused("pyroscope+https://h;History=10.5s", "10s to 600s");
	refused("pyroscope+https://h;History=soon", "10s to 600s");
	refused("https://h;History=60s", "History= needs ;Format=");
	refused("peer+https://h;History=60s", "a peer has a history of its own");
}

TEST(no_secret_is_in_a_url_or_goes_over_the_net_in_the_clear)
{
	refused("https://me:secret@h/", "must hold no password");
	refused("postgresql://me:secret@h/db", "must hold no password");
	refused("postgresql://h/db?password=secret", "must hold no password");
	refused("http://h/;Auth=f", "would be readable on the way");
	refused("peer+http://10.0.0.1;Auth=f", "would be readable on the way");
	is("http://127.0.0.1:5/;Auth=f", "http://", "http://127.0.0.1:5/", "http://127.0.0.1:5/");
	is("http://localhost/;Auth=f", "http://", "http://localhost/", "http://localhost/");
}

TEST(a_query_is_not_shown_but_tells_two_targets_apart)
{
	struct target a, b;

	assert_int_equal(target_parse("https://h/in/?t=1", &a, NULL), 0);
	assert_int_equal(target_parse("https://h/in/?t=2", &b, NULL), 0);
	assert_null(strstr(buf_text(&a.name), "t=1"));
	assert_string_not_equal(buf_text(&a.name), buf_text(&b.name));
	target_free(&a);
	target_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_is_chosen_by_its_scheme),
		cmocka_unit_test(keys_are_read),
		cmocka_unit_test(intervals_of_the_history_have_bounds),
		cmocka_unit_test(no_secret_is_in_a_url_or_goes_over_the_net_in_the_clear),
		cmocka_unit_test(a_query_is_not_shown_but_tells_two_targets_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
