/* Folded stacks. */
#include "tests/support/export_text.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct export_options plain = {.annotate = false, .ids = false};

TEST(the_small_incident_is_as_in_the_file)
{
	assert_export_is("folded", NULL, "small.folded");
}

TEST(without_ids_and_suffixes_only_names_remain)
{
	assert_export_is("folded", &plain, "small-plain.folded");
}

/* One sample each of stacks in thread "t" 2 of process "p" 1; text NULL ends the list. */
static void check_lines(const char *const *stacks, const struct export_options *opt,
			const char *expected)
{
	struct incident in;
	struct buf text = {0};
	uint32_t stack, thread;

	assert_int_equal(sample_incident(&in), 0);
	thread = sample_thread(&in, "p", 1, "t", 2);
	for (; *stacks; stacks++) {
		assert_int_equal(sample_stack(&in, *stacks, &stack), 0);
		assert_int_equal(sample_add(&in, thread, stack, QUALITY_FP, 1), 0);
	}
	assert_int_equal(export_text(&in, "folded", opt, &text), 0);
	assert_string_equal(buf_text(&text), expected);
	buf_free(&text);
	incident_free(&in);
}

TEST(where_the_rate_changed_counts_are_microseconds)
{
	struct incident in;
	struct buf text = {0};
	uint32_t stack, thread;

	assert_int_equal(sample_incident(&in), 0);
	thread = sample_thread(&in, "p", 1, "t", 2);
	assert_int_equal(sample_stack(&in, "m!f", &stack), 0);
	assert_int_equal(sample_add(&in, thread, stack, QUALITY_FP, 3), 0);
	in.samples[0].weight = 10101010;     /* 99 Hz */
	in.samples[1].weight = 10101010;
	in.samples[2].weight = 52631578;     /* 19 Hz */
	in.several_periods = true;
	assert_int_equal(export_text(&in, "folded", &plain, &text), 0);
	assert_string_equal(buf_text(&text), "p;t;m!f 72834\n");
	buf_reset(&text);
	assert_int_equal(export_text(&in, "perfview-xml", &plain, &text), 0);
	assert_non_null(strstr(buf_text(&text), "StackID=\"2\" Metric=\"52.632\" />"));
	assert_non_null(strstr(buf_text(&text), "<ScalingPolicy>TimeMetric<"));
	buf_free(&text);
	incident_free(&in);
}

TEST(lines_are_sorted_as_bytes_to_their_ends)
{
	static const char *const stacks[] = {"m!b", "m!a;m!z", "m!a", "m!a b", "m!a!", "m!a b;m!c",
					     "m!B", "m!a 1x", NULL};

	check_lines(stacks, &plain,
		    "p;t;m!B 1\n"
		    "p;t;m!a 1\n"
		    "p;t;m!a 1x 1\n"
		    "p;t;m!a b 1\n"
		    "p;t;m!a b;m!c 1\n"
		    "p;t;m!a! 1\n"
		    "p;t;m!a;m!z 1\n"
		    "p;t;m!b 1\n");
}

TEST(a_leaf_that_ends_in_a_number_has_no_blank_before_it)
{
	static const char *const stacks[] = {"m!page 12", "m!page_12", "m!page 12;m!f",
					     "m!half 1.5", "m!two 1 2", "m!dot .5", "m!v2", NULL};

	check_lines(stacks, &plain,
		    "p;t;m!dot .5 1\n"
		    "p;t;m!half_1.5 1\n"
		    "p;t;m!page 12;m!f 1\n"
		    "p;t;m!page_12 2\n"
		    "p;t;m!two 1_2 1\n"
		    "p;t;m!v2 1\n");
}

TEST(a_suffix_says_what_kind_of_frame_it_is)
{
	static const struct frame_spec frames[] = {
		{"m", "inlined", 1, FRAME_INLINED},
		{"[jit]", "both", 2, FRAME_INLINED},
		{"[jit]", "jit", 3, 0},
		{"[kernel]", "all", 4, FRAME_INLINED | FRAME_JIT},
		{"m", "page 12", 5, FRAME_JIT},
	};
	struct incident in;
	struct buf text = {0};
	uint32_t stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, frames, 5, &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_FP, 1), 0);
	assert_int_equal(export_text(&in, "folded", NULL, &text), 0);
	assert_string_equal(buf_text(&text),
			    "[unknown] (0);[unknown]-0;m!inlined_[i];[jit]!both_[i];[jit]!jit_[j];"
			    "[kernel]!all_[k];m!page 12_[j] 1\n");
	buf_free(&text);
	incident_free(&in);
}

/* The folded text of one sample without a stack. */
static void check_roots(const char *process, const char *thread, const struct export_options *opt,
			const char *expected)
{
	struct incident in;
	struct buf text = {0};

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_add(&in, sample_thread(&in, process, 1, thread, 2), STACK_NONE,
				    QUALITY_NONE, 1), 0);
	assert_int_equal(export_text(&in, "folded", opt, &text), 0);
	assert_string_equal(buf_text(&text), expected);
	buf_free(&text);
	incident_free(&in);
}

TEST(names_of_processes_and_threads_keep_to_the_grammar)
{
	check_roots("a;b", "c;d", NULL, "a:b (1);c:d-2 1\n");
	check_roots("# x", "t", NULL, "#_x (1);t-2 1\n");
	check_roots("#", "t", NULL, "#_(1);t-2 1\n");
	check_roots("p", "pool 7", &plain, "p;pool_7 1\n");
	check_roots("p", "", NULL, "p (1);p-2 1\n");
	check_roots("", "", NULL, "[unknown] (1);[unknown]-2 1\n");
	check_roots("a\nb", "c\xff", NULL, "a b (1);c\xef\xbf\xbd-2 1\n");
}

TEST(threads_of_one_name_merge_without_ids)
{
	struct incident in;
	struct buf text = {0};
	uint32_t stack, tid;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_stack(&in, "m!f", &stack), 0);
	for (tid = 1; tid <= 5; tid++)
		assert_int_equal(sample_add(&in, sample_thread(&in, "p", tid, "t", tid), stack,
					    QUALITY_FP, tid), 0);
	assert_int_equal(export_text(&in, "folded", &plain, &text), 0);
	assert_string_equal(buf_text(&text), "p;t;m!f 15\n");
	buf_free(&text);
	incident_free(&in);
}

TEST(missing_names_become_numbers_when_asked)
{
	static const char *const stacks[] = {"app!?", "!?", NULL};
	struct export_options opt = {.addresses = true};

	check_lines(stacks, &opt, "p;t;0x1000 1\np;t;app!+0x1000 1\n");
}

TEST(samples_of_other_streams_are_left_out)
{
	struct incident_sample s = {.thread = THREAD_NONE, .stack = STACK_NONE,
				    .stream = STREAM_ALLOC};
	struct incident in;
	struct buf text = {0};

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(incident_add_sample(&in, &s), 0);
	assert_int_equal(export_text(&in, "folded", NULL, &text), 0);
	assert_string_equal(buf_text(&text), "");
	buf_free(&text);
	incident_free(&in);
}

TEST(hostile_names_stay_one_line_each)
{
	struct incident in;
	struct buf text = {0};
	const char *at;
	uint32_t lines = 0;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "folded", NULL, &text), 0);
	assert_int_equal(folded_total(text.data), in.head.samples);
	for (at = text.data; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, in.head.samples);
	assert_non_null(strstr(text.data, ";app!main;operator+!operator+ 1\n"));
	assert_non_null(strstr(text.data, ";app!main;a:b:c!a:b:c 1\n"));
	assert_non_null(strstr(text.data, "\n#_comment (28);"));
	buf_free(&text);
	incident_free(&in);
}

TEST(a_very_deep_stack_is_written_whole)
{
	struct frame_spec frame = {"m", "f", 0, 0};
	struct incident in;
	struct buf text = {0};
	uint32_t node = STACK_NONE, i;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, &frame, 1, &node), 0);
	for (i = 1; i < 100000; i++)
		node = incident_add_stack(&in, node, 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, node, QUALITY_FP, 1), 0);
	assert_int_equal(export_text(&in, "folded", &plain, &text), 0);
	assert_int_equal(text.len, strlen("[unknown];[unknown]") + 100000 * strlen(";m!f") + 3);
	buf_free(&text);
	incident_free(&in);
}

TEST(a_million_samples_are_summed)
{
	struct incident in;
	struct buf text = {0};

	assert_int_equal(sample_large(&in, 1000000, 2000, 24, 50), 0);
	assert_int_equal(export_text(&in, "folded", NULL, &text), 0);
	assert_int_equal(folded_total(text.data), 1000000);
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_file),
		cmocka_unit_test(without_ids_and_suffixes_only_names_remain),
		cmocka_unit_test(where_the_rate_changed_counts_are_microseconds),
		cmocka_unit_test(lines_are_sorted_as_bytes_to_their_ends),
		cmocka_unit_test(a_leaf_that_ends_in_a_number_has_no_blank_before_it),
		cmocka_unit_test(a_suffix_says_what_kind_of_frame_it_is),
		cmocka_unit_test(names_of_processes_and_threads_keep_to_the_grammar),
		cmocka_unit_test(threads_of_one_name_merge_without_ids),
		cmocka_unit_test(missing_names_become_numbers_when_asked),
		cmocka_unit_test(samples_of_other_streams_are_left_out),
		cmocka_unit_test(hostile_names_stay_one_line_each),
		cmocka_unit_test(a_very_deep_stack_is_written_whole),
		cmocka_unit_test(a_million_samples_are_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
