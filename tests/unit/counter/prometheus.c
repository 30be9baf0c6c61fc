/* What services tell of themselves, and the names by which rules ask for it. */
#include "base/array.h"
#include "source/counter/prometheus.h"
#include "source/counter_name.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* The series of a text as "name{labels}=value" and '+' for one that grows, with blanks between. */
static const char *series_of(const char *text)
{
	static char out[1000];
	struct prometheus_text t = {.text = text, .end = text + strlen(text)};
	struct prometheus_series s;
	size_t n = 0;

	out[0] = '\0';
	while (prometheus_next(&t, &s))
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s{%.*s}=%g%s", n ? " " : "",
				      (int)s.name_len, s.name, (int)s.labels_len, s.labels, s.value,
				      s.grows ? "+" : "");
	return out;
}

TEST(series_have_names_labels_and_values)
{
	assert_string_equal(series_of("a 1\n b{x=\"1\"} 2.5 1700000000\n"
				      "c{x=\"a}b\",y=\"\\\"\",} -3e2"),
			    "a{}=1 b{x=\"1\"}=2.5 c{x=\"a}b\",y=\"\\\"\",}=-300");
	assert_string_equal(series_of("a 1\r\nb 2\r\n"), "a{}=1 b{}=2");
}

TEST(lines_that_are_none_are_passed_over)
{
	static const char *const texts[] = {
		"", "\n\n", "# a 1", "#", "# TYPE", "# TYPE ", "a", "a ", "a x", "a{ 1", "a{x} 1",
		"a{x=} 1", "a{x=\"} 1", "a{x=\"1\"", "1a 2", " {} 1", "a NaN", "a +Inf", "a{x=\"\\",
		"<html>", "a\n1",
	};
	size_t i;

	for (i = 0; i < COUNT_OF(texts); i++)
		if (*series_of(texts[i]))
			fail_msg("'%s' gave %s", texts[i], series_of(texts[i]));
	assert_string_equal(series_of("a{x=\"} 1\nb 2"), "b{}=2");
}

TEST(what_only_grows_is_known_by_its_type)
{
	assert_string_equal(series_of("# TYPE a counter\na 1\n# TYPE b gauge\nb 2\nb_total 2\n"),
			    "a{}=1+ b{}=2 b_total{}=2");
	assert_string_equal(series_of("# TYPE h histogram\nh_bucket{le=\"1\"} 1\n"
				      "h_sum 2\nh_count 3\n# TYPE s summary\n"
				      "s{quantile=\"0.5\"} 4\ns_sum 5\ns_count 6\n"),
			    "h_bucket{le=\"1\"}=1+ h_sum{}=2+ h_count{}=3+ s{quantile=\"0.5\"}=4 "
			    "s_sum{}=5+ s_count{}=6+");
	/* OpenMetrics; without a type, and of another family than the last. */
	assert_string_equal(series_of("# TYPE r counter\nr_total 1\n"
				      "# TYPE g gauge\nq_total 2\nq 3"),
			    "r_total{}=1+ q_total{}=2+ q{}=3");
	assert_string_equal(series_of("# TYPE s stateset\ns 1\n# TYPE u unknown\nu_total 2\n"),
			    "s{}=1 u_total{}=2+");
}

TEST(help_belongs_to_its_metric)
{
	const char *text = "# HELP a What it is.\n# TYPE a counter\na 1\nb 2\n";
	struct prometheus_text t = {.text = text, .end = text + strlen(text)};
	struct prometheus_series s;

	assert_true(prometheus_next(&t, &s));
	assert_int_equal(s.help_len, strlen("What it is."));
	assert_memory_equal(s.help, "What it is.", s.help_len);
	assert_true(prometheus_next(&t, &s));
	assert_null(s.help);
}

/* "METRIC|URL", or the error. */
static const char *parsed(const char *name)
{
	static char out[700];
	struct prometheus_name n;
	struct err err = {0};

	if (prometheus_parse(name, &n, &err))
		snprintf(out, sizeof(out), "%s", err.text);
	else
		snprintf(out, sizeof(out), "%.*s|%s|%s", (int)n.metric_len, n.metric,
			 n.metric + n.metric_len, n.url);
	return out;
}

TEST(a_name_is_a_metric_and_an_address)
{
	assert_true(prometheus_counter_is("prometheus:a:http://b"));
	assert_false(prometheus_counter_is("Process:a:http"));
	assert_false(prometheus_counter_is("Prom"));
	assert_string_equal(parsed("Prometheus:up:http://h:9/m"), "up||http://h:9/m");
	assert_string_equal(parsed("Prometheus:job:up:rate5m:https://h/m"),
			    "job:up:rate5m||https://h/m");
	assert_string_equal(parsed("Prometheus:a{x=\"b:http://c\"}:http://h/m"),
			    "a|{x=\"b:http://c\"}|http://h/m");
	assert_non_null(strstr(parsed("Prometheus:up:"), "is not Prometheus:METRIC:URL"));
	assert_non_null(strstr(parsed("Prometheus::http://h"), "is not Prometheus:METRIC:URL"));
	assert_non_null(strstr(parsed("Prometheus:a-b:http://h"), "is not Prometheus:METRIC:URL"));
	assert_non_null(strstr(parsed("Prometheus:a:file:///etc"), "is not Prometheus:METRIC"));
	assert_non_null(strstr(parsed("Prometheus:a{x=1}:http://h"), "labels are not well"));
	assert_non_null(strstr(parsed("Prometheus:a{x=\"1\":http://h"), "labels are not well"));
}

/* How many series of the text the name takes. */
static unsigned takes(const char *name, const char *text)
{
	struct prometheus_text t = {.text = text, .end = text + strlen(text)};
	struct prometheus_series s;
	struct prometheus_name n;
	unsigned found = 0;

	assert_int_equal(prometheus_parse(name, &n, NULL), 0);
	while (prometheus_next(&t, &s))
		found += prometheus_takes(&n, &s);
	return found;
}

TEST(a_name_takes_the_series_that_have_its_labels)
{
	const char *text = "a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"3\"} 1\na 1\nab{x=\"1\"} 1\n";

	assert_int_equal(takes("Prometheus:a:http://h", text), 3);
	assert_int_equal(takes("Prometheus:a{}:http://h", text), 3);
	assert_int_equal(takes("Prometheus:a{y=\"2\"}:http://h", text), 2);
	assert_int_equal(takes("Prometheus:a{ y = \"2\", x=\"1\" }:http://h", text), 1);
	assert_int_equal(takes("Prometheus:a{z=\"2\"}:http://h", text), 0);
	assert_int_equal(takes("Prometheus:b:http://h", text), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_have_names_labels_and_values),
		cmocka_unit_test(lines_that_are_none_are_passed_over),
		cmocka_unit_test(what_only_grows_is_known_by_its_type),
		cmocka_unit_test(help_belongs_to_its_metric),
		cmocka_unit_test(a_name_is_a_metric_and_an_address),
		cmocka_unit_test(a_name_takes_the_series_that_have_its_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
