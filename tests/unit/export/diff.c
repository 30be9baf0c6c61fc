/* Two incidents compared. What programs make of it: cli/diff.sh. */
#include "tests/support/alloc_walk.h"
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/perfview_reader.h"

#include "export/diff.h"
#include "export/markup.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	const char *stack;
	uint32_t count;
};

/* An incident of one thread; stacks without a count are left out. */
static void fill(struct incident *in, const char *thread, uint32_t pid, const struct line *lines)
{
	uint32_t who, stack;

	assert_int_equal(sample_incident(in), 0);
	who = sample_thread(in, "app", pid, thread, pid + 1);
	for (; lines->stack; lines++) {
		assert_int_equal(sample_stack(in, lines->stack, &stack), 0);
		assert_int_equal(sample_add(in, who, stack, QUALITY_COMPLETE, lines->count), 0);
	}
	incident_count(in);
}

/* main 100, f 50, g 50, x 25; and main 110, f 60, g 50, x 35: the example of the page. */
static const struct line base_lines[] = {
	{"app!main;app!f", 40}, {"app!main;app!f;app!x", 10}, {"app!main;app!g", 35},
	{"app!main;app!g;app!x", 15}, {NULL, 0},
};
static const struct line test_lines[] = {
	{"app!main;app!f", 40}, {"app!main;app!f;app!x", 20}, {"app!main;app!g", 35},
	{"app!main;app!g;app!x", 15}, {NULL, 0},
};

struct pair {
	struct incident base, test;
	struct diff d;
};

/* Two runs: other numbers of process and thread. */
static void make_pair(struct pair *p, const struct line *base, const struct line *test,
		      enum diff_normalize how)
{
	fill(&p->base, "worker-1", 100, base);
	fill(&p->test, "worker-22", 200, test);
	p->base.head.id = 3;
	assert_int_equal(diff_make(&p->d, &p->base, &p->test, STREAM_CPU, how, NULL), 0);
}

static void free_pair(struct pair *p)
{
	diff_free(&p->d);
	incident_free(&p->base);
	incident_free(&p->test);
}

static int write_diff(const struct diff *d, const char *format, struct buf *text, struct err *err)
{
	struct export_options opt = {.stream = d->stream, .annotate = true};
	struct out *out = NULL;
	int rc = out_to_buf(text, &out, err);

	if (rc)
		return rc;
	rc = exporter_by_name(format)->write_diff(d, &opt, out, err);
	if (!rc)
		return out_close(out, err);
	out_abandon(out);
	return rc;
}

static void assert_diff_is(const struct diff *d, const char *format, struct buf *text)
{
	struct err err = {0};

	if (write_diff(d, format, text, &err))
		fail_msg("%s: %s", format, err.text);
}

TEST(functions_are_counted_once_a_stack_on_either_side)
{
	static const struct line recursive[] = {{"app!main;app!f;app!f;app!f", 7}, {NULL, 0}};
	static const struct {
		const char *name;
		double base, test, own_base, own_test;
	} wanted[] = {
		{"app!main", 100, 110, 0, 0},
		{"app!f", 50, 60, 40, 40},
		{"app!g", 50, 50, 35, 35},
		{"app!x", 25, 35, 25, 35},
	};
	const struct export_options opt = {0};
	struct diff_function *f = NULL;
	struct diff_tree t = {0};
	struct pair p;
	uint32_t n, i, k;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	assert_int_equal(diff_tree_build(&t, &p.d, &opt, &export_tree_plain, NULL), 0);
	assert_int_equal(diff_functions(&t, STACK_TREE_NONE, &f, &n, NULL), 0);
	assert_int_equal(n, 4);
	for (k = 0; k < 4; k++) {
		for (i = 0; strncmp(stack_tree_text(&t.tree, f[i].text), wanted[k].name,
				    strlen(wanted[k].name));
		     i++)
			;
		assert_true(fabs(f[i].base - wanted[k].base * 1e7) < 1);
		assert_true(fabs(f[i].test - wanted[k].test * 1e7) < 1);
		assert_true(fabs(f[i].own_base - wanted[k].own_base * 1e7) < 1);
		assert_true(fabs(f[i].own_test - wanted[k].own_test * 1e7) < 1);
	}
	free(f);
	diff_tree_free(&t);
	free_pair(&p);
	make_pair(&p, recursive, recursive, DIFF_BY_DURATION);
	assert_int_equal(diff_tree_build(&t, &p.d, &opt, &export_tree_plain, NULL), 0);
	assert_int_equal(diff_functions(&t, 0, &f, &n, NULL), 0);
	for (i = 0; i < n; i++)
		assert_true(fabs(f[i].base - 7e7) < 1 && fabs(f[i].test - 7e7) < 1);
	free(f);
	diff_tree_free(&t);
	free_pair(&p);
}

/* Microseconds, sorted; one row for both, although pids and the pool's thread numbers differ. */
TEST(folded_has_two_columns)
{
	struct buf text = {0};
	struct pair p;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	assert_diff_is(&p.d, "folded", &text);
	assert_string_equal(text.data,
			    "app;worker-#;app!main;app!f 400000 400000\n"
			    "app;worker-#;app!main;app!f;app!x 100000 200000\n"
			    "app;worker-#;app!main;app!g 350000 350000\n"
			    "app;worker-#;app!main;app!g;app!x 150000 150000\n");
	buf_free(&text);
	free_pair(&p);
}

TEST(what_is_on_one_side_only_has_a_zero)
{
	static const struct line one[] = {{"app!old", 3}, {"app!same", 1}, {NULL, 0}};
	static const struct line two[] = {{"app!new", 2}, {"app!same", 1}, {NULL, 0}};
	struct buf text = {0};
	struct pair p;

	make_pair(&p, one, two, DIFF_BY_DURATION);
	assert_diff_is(&p.d, "folded", &text);
	assert_string_equal(text.data, "app;worker-#;app!new 0 20000\n"
				       "app;worker-#;app!old 30000 0\n"
				       "app;worker-#;app!same 10000 10000\n");
	buf_free(&text);
	free_pair(&p);
}

/* A window of half the length: all of it counts half. Or shares: 100 samples count as 110. */
TEST(the_base_is_scaled_to_the_test)
{
	struct buf text = {0};
	struct pair p;

	make_pair(&p, base_lines, test_lines, DIFF_BY_WEIGHT);
	assert_true(fabs(p.d.factor - 1.1) < 1e-12);
	assert_diff_is(&p.d, "folded", &text);
	assert_non_null(strstr(text.data, "app!f 440000 400000\n"));
	buf_reset(&text);
	p.test.head.t1_ns = p.test.head.t0_ns + 5000000000;
	diff_free(&p.d);
	assert_int_equal(diff_make(&p.d, &p.base, &p.test, STREAM_CPU, DIFF_BY_DURATION, NULL), 0);
	assert_diff_is(&p.d, "folded", &text);
	assert_non_null(strstr(text.data, "app!f 200000 400000\n"));
	diff_free(&p.d);
	buf_reset(&text);
	assert_int_equal(diff_make(&p.d, &p.base, &p.test, STREAM_CPU, DIFF_AS_RECORDED, NULL), 0);
	assert_diff_is(&p.d, "folded", &text);
	assert_non_null(strstr(text.data, "app!f 400000 400000\n"));
	buf_free(&text);
	free_pair(&p);
}

/* Twice the samples at twice the rate are the same CPU time. */
TEST(another_rate_of_sampling_is_no_difference)
{
	static const struct line once[] = {{"app!main;app!f", 40}, {NULL, 0}};
	static const struct line twice[] = {{"app!main;app!f", 80}, {NULL, 0}};
	struct buf text = {0};
	struct pair p;
	uint32_t i;

	fill(&p.base, "worker", 100, once);
	fill(&p.test, "worker", 100, twice);
	for (i = 0; i < p.test.nsamples; i++)
		p.test.samples[i].weight /= 2;
	assert_int_equal(diff_make(&p.d, &p.base, &p.test, STREAM_CPU, DIFF_BY_DURATION, NULL), 0);
	assert_diff_is(&p.d, "folded", &text);
	assert_string_equal(text.data, "app;worker;app!main;app!f 400000 400000\n");
	buf_free(&text);
	free_pair(&p);
}

/* Test minus base is 10 samples of 10 ms. The later trigger of the base is no later in the file. */
TEST(perfview_sums_are_test_minus_base)
{
	struct perfview_totals totals;
	struct buf text = {0};
	struct pair p;

	fill(&p.base, "worker-1", 100, base_lines);
	fill(&p.test, "worker-2", 200, test_lines);
	p.base.head.trigger_ns += 1000000000;
	assert_int_equal(diff_make(&p.d, &p.base, &p.test, STREAM_CPU, DIFF_BY_DURATION, NULL), 0);
	assert_diff_is(&p.d, "perfview-xml", &text);
	perfview_read(text.data, &totals, NULL);
	assert_int_equal(totals.samples, 210);
	assert_true(fabs(totals.metric - 100) < 1e-6);
	/*
	 * 6 s before the base's trigger at the most, so the test's first sample is at 1 s + 10 ms.
	 */
	assert_non_null(strstr(text.data,
			       "<Sample ID=\"0\" Time=\"10.000\" StackID=\"3\" Metric=\"-10\" />"));
	assert_non_null(strstr(
		text.data, "<Sample ID=\"100\" Time=\"1010.000\" StackID=\"3\" Metric=\"10\" />"));
	assert_non_null(strstr(text.data, "<ScalingPolicy>TimeMetric<"));
	assert_non_null(strstr(text.data, "<Notes>Base: incident 7, "));
	buf_free(&text);
	free_pair(&p);
}

/* A third of 10 ms is not 3.333 ms: what is left goes to the next sample. */
TEST(perfview_sums_are_right_although_samples_are_rounded)
{
	struct perfview_totals totals;
	struct buf text = {0};
	struct pair p;

	fill(&p.base, "worker", 100, base_lines);
	fill(&p.test, "worker", 100, test_lines);
	p.base.head.t1_ns = p.base.head.t0_ns + 30000000000;
	assert_int_equal(diff_make(&p.d, &p.base, &p.test, STREAM_CPU, DIFF_BY_DURATION, NULL), 0);
	assert_diff_is(&p.d, "perfview-xml", &text);
	perfview_read(text.data, &totals, NULL);
	assert_true(fabs(totals.metric - (1100 - 1000.0 / 3)) < 0.001);
	buf_free(&text);
	free_pair(&p);
}

TEST(pprof_has_the_base_negative_and_labelled)
{
	struct pprof_totals totals;
	struct buf packed = {0};
	struct pair p;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	assert_diff_is(&p.d, "pprof", &packed);
	pprof_read(&packed, &totals);
	assert_int_equal(totals.samples, 8);
	assert_int_equal((int64_t)totals.values[0], 10);
	assert_int_equal((int64_t)totals.values[1], 100000000);
	buf_free(&packed);
	free_pair(&p);
}

/* Both have 210 samples; main and all of its callees differ by 10 %, x by 40 %. */
TEST(svg_boxes_have_both_weights_and_a_colour)
{
	static const struct line gone[] = {{"app!gone", 1}, {NULL, 0}};
	static const struct line here[] = {{"app!here", 1}, {NULL, 0}};
	struct buf text = {0};
	struct pair p;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	assert_diff_is(&p.d, "svg", &text);
	assert_non_null(strstr(text.data,
			       "<title>all (base 1000000, test 1100000 us of CPU time, +10.0 %, "
			       "100.0 % of both)</title>"));
	assert_non_null(strstr(text.data,
			       "<title>app!g (base 500000, test 500000 us of CPU time, +0.0 %, "
			       "47.6 % of both)</title>"));
	assert_non_null(strstr(text.data, "fill=\"#eeeeee\""));
	assert_non_null(strstr(text.data, "<title>Incidents 3 and 7</title>"));
	buf_reset(&text);
	free_pair(&p);
	make_pair(&p, gone, here, DIFF_BY_DURATION);
	assert_diff_is(&p.d, "svg", &text);
	assert_non_null(strstr(text.data,
			       "<title>app!gone (base 10000, test 0 us of CPU time, -100.0 %, "));
	assert_non_null(strstr(
		text.data, "<title>app!here (base 0, test 10000 us of CPU time, only in the test"));
	assert_non_null(strstr(text.data, "fill=\"#6e6eff\""));
	assert_non_null(strstr(text.data, "fill=\"#ff6e6e\""));
	buf_free(&text);
	free_pair(&p);
}

TEST(the_notes_say_what_was_compared)
{
	static const char *const facts[] = {
		"Base: incident 3, 2026-01-02T03:04:05.678Z, web-1; % Processor Time was 91.5, "
		"over",
		"Base window: -5.000 s to 5.000 s from its trigger, 10.000 s; 100 samples, 1.000 s "
		"of CPU "
		"time; 3 lost\n",
		"Test window: -5.000 s to 5.000 s from its trigger, 10.000 s; 110 samples, 1.100 s "
		"of CPU "
		"time; 3 lost\n",
		"Base multiplied by: 1, the test's window is that much longer\n",
		"Total: 1.000 s of CPU time -> 1.100 s of CPU time, +10.0 %\n",
	};
	struct buf text = {0};
	struct pair p;
	size_t i;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	diff_notes_put(&text, &p.d);
	for (i = 0; i < COUNT_OF(facts); i++) {
		if (!strstr(text.data, facts[i]))
			fail_msg("no '%s' in:\n%s", facts[i], text.data);
	}
	buf_free(&text);
	free_pair(&p);
}

TEST(an_incident_without_samples_is_refused)
{
	static const struct line none[] = {{NULL, 0}};
	struct incident empty, full;
	struct err err = {0};
	struct diff d = {0};

	fill(&empty, "worker", 100, none);
	fill(&full, "worker", 100, base_lines);
	assert_int_equal(diff_make(&d, &empty, &full, STREAM_CPU, DIFF_BY_DURATION, &err),
			 ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "the base, incident 7, has no CPU samples"));
	assert_int_equal(diff_make(&d, &full, &empty, STREAM_CPU, DIFF_BY_DURATION, &err),
			 ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "the test, incident 7"));
	assert_int_equal(diff_make(&d, &full, &full, STREAM_ALLOC, DIFF_BY_DURATION, &err),
			 ERR_NOT_FOUND);
	assert_int_equal(d.in.nsamples, 0);
	incident_free(&empty);
	incident_free(&full);
}

TEST(other_streams_have_their_unit)
{
	struct buf text = {0};
	struct pair p;

	assert_int_equal(sample_streams(&p.base), 0);
	assert_int_equal(sample_streams(&p.test), 0);
	assert_int_equal(diff_make(&p.d, &p.base, &p.test, STREAM_ALLOC, DIFF_BY_DURATION, NULL),
			 0);
	assert_diff_is(&p.d, "svg", &text);
	assert_non_null(
		strstr(text.data, "<title>all (base 100004096, test 100004096 bytes, +0.0 %, "));
	buf_free(&text);
	free_pair(&p);
}

/*
 * Every line of the one side is a line with a 0 on the other: "stack base test" by the last blanks.
 */
TEST(hostile_names_keep_two_columns)
{
	struct incident hostile, small;
	struct buf text = {0};
	struct diff d = {0};
	uint64_t base = 0, test = 0;
	char *at, *end, *first, *second;

	assert_int_equal(sample_hostile(&hostile), 0);
	assert_int_equal(sample_small(&small), 0);
	assert_int_equal(diff_make(&d, &small, &hostile, STREAM_CPU, DIFF_AS_RECORDED, NULL), 0);
	assert_diff_is(&d, "folded", &text);
	for (at = text.data; *at; at = end + 1) {
		end = strchr(at, '\n');
		assert_non_null(end);
		*end = '\0';
		second = strrchr(at, ' ');
		assert_non_null(second);
		*second++ = '\0';
		first = strrchr(at, ' ');
		assert_non_null(first);
		*first++ = '\0';
		assert_int_equal(strspn(first, "0123456789"), strlen(first));
		assert_int_equal(strspn(second, "0123456789"), strlen(second));
		assert_int_not_equal(strncmp(at, "# ", 2), 0);
		base += strtoull(first, NULL, 10);
		test += strtoull(second, NULL, 10);
	}
	assert_int_equal(base, 120000);
	assert_int_equal(test, hostile.head.samples * 10000);
	buf_reset(&text);
	assert_diff_is(&d, "html", &text);
	assert_null(strstr(text.data, "<script>alert"));
	buf_reset(&text);
	assert_diff_is(&d, "svg", &text);
	assert_non_null(strstr(text.data, "&lt;script&gt;alert(1)&lt;/script&gt;"));
	buf_free(&text);
	diff_free(&d);
	incident_free(&hostile);
	incident_free(&small);
}

TEST(the_same_incidents_give_the_same_bytes)
{
	struct buf first = {0}, second = {0};
	struct pair p;
	unsigned i;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	for (i = 0; exporters[i]; i++) {
		if (!exporters[i]->write_diff)
			continue;
		buf_reset(&first);
		buf_reset(&second);
		assert_diff_is(&p.d, exporters[i]->name, &first);
		assert_diff_is(&p.d, exporters[i]->name, &second);
		assert_int_equal(first.len, second.len);
		assert_memory_equal(first.data, second.data, first.len);
	}
	buf_free(&first);
	buf_free(&second);
	free_pair(&p);
}

struct step {
	struct pair *pair;
	const char *format;
};

static int run_step(void *ctx)
{
	const struct step *s = ctx;
	struct buf text = {0};
	struct err err = {0};
	struct diff d = {0};
	int rc = diff_make(&d, &s->pair->base, &s->pair->test, STREAM_CPU, DIFF_BY_DURATION, &err);

	if (!rc)
		rc = write_diff(&d, s->format, &text, &err);
	if (rc && !*err.text)
		fail_msg("%s failed without a sentence", s->format);
	diff_free(&d);
	buf_free(&text);
	return rc;
}

TEST(every_format_reports_lack_of_memory)
{
	struct pair p;
	unsigned i;

	make_pair(&p, base_lines, test_lines, DIFF_BY_DURATION);
	for (i = 0; exporters[i]; i++) {
		struct step step = {&p, exporters[i]->name};

		if (!exporters[i]->write_diff)
			continue;
		assert_in_range(alloc_walk(run_step, &step), 2, 20000);
	}
	free_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_counted_once_a_stack_on_either_side),
		cmocka_unit_test(folded_has_two_columns),
		cmocka_unit_test(what_is_on_one_side_only_has_a_zero),
		cmocka_unit_test(the_base_is_scaled_to_the_test),
		cmocka_unit_test(another_rate_of_sampling_is_no_difference),
		cmocka_unit_test(perfview_sums_are_test_minus_base),
		cmocka_unit_test(perfview_sums_are_right_although_samples_are_rounded),
		cmocka_unit_test(pprof_has_the_base_negative_and_labelled),
		cmocka_unit_test(svg_boxes_have_both_weights_and_a_colour),
		cmocka_unit_test(the_notes_say_what_was_compared),
		cmocka_unit_test(an_incident_without_samples_is_refused),
		cmocka_unit_test(other_streams_have_their_unit),
		cmocka_unit_test(hostile_names_keep_two_columns),
		cmocka_unit_test(the_same_incidents_give_the_same_bytes),
		cmocka_unit_test(every_format_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
