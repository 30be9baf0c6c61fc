/*
 * Conf files: grammar, errors with file and line, and which setting wins.
 */
#include "options/config.h"
#include "tests/support/alloc_walk.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_error(const char *text, const char *says)
{
	struct options o;
	struct err err = {0};

	options_init(&o);
	assert_int_equal(config_parse("a.conf", text, strlen(text), &o, &err), ERR_USAGE);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	options_free(&o);
}

static void expect_good(struct options *o, const char *text)
{
	struct err err = {0};

	if (config_parse("a.conf", text, strlen(text), o, &err))
		fail_msg("refused: %s", err.text);
}

TEST(a_line_is_split_at_its_first_equals_sign_and_trimmed)
{
	struct options o;

	options_init(&o);
	expect_good(&o, "# a comment\n"
			"\n"
			"  buffer-mb =  128 \r\n"
			"\tstop-on-perf-counter = A:B # 1:C>=80\n"
			"stop-on-perf-counter=D:E:F>1\n"
			"CollectMultiple = 3\n"
			"pre-sec = 1m");
	assert_int_equal(o.buffer_mb, 128);
	assert_int_equal(o.rules.n, 2);
	assert_string_equal(o.rules.items[0].spec, "A:B # 1:C>=80");
	assert_string_equal(o.rules.items[1].spec, "D:E:F>1");
	assert_int_equal(o.capture.incidents, 3);
	assert_true(o.capture.pre_ns == 60000000000);
	options_free(&o);
}

TEST(a_mark_of_utf8_at_the_start_is_skipped)
{
	struct options o;

	options_init(&o);
	expect_good(&o, "\xef\xbb\xbf" "freq = 49\n");
	assert_int_equal(o.capture.freq_hz, 49);
	options_free(&o);
}

TEST(what_is_found_wrong_later_names_file_and_line)
{
	struct err err = {0};
	struct options o;

	options_init(&o);
	expect_good(&o, "source = x\n"
			"stop-on-perf-counter = A:B:C>1\n"
			"monitor-perf-counter = A:B:\n"
			"monitor-perf-counter = C:D:\n");
	assert_int_equal(o.rules.items[0].line, 2);
	assert_int_equal(o.monitors.lines[1], 4);
	err_set(&err, ERR_USAGE, "--source: no");
	assert_int_equal(options_at_option(&o, &err), ERR_USAGE);
	assert_string_equal(err.text, "a.conf:1: --source: no");
	err_set(&err, ERR_USAGE, "--freq 3 is too low");
	options_at_option(&o, &err);
	assert_string_equal(err.text, "--freq 3 is too low");
	options_free(&o);
}

TEST(errors_say_file_line_and_the_nearest_key)
{
	expect_error("freq = 99\n\nbufer-mb = 3\n",
		     "a.conf:3: unknown key 'bufer-mb'; did you mean buffer-mb?");
	expect_error("freq = fast\n", "a.conf:1: freq: 'fast' is not a whole number");
	expect_error("freq 99\n", "a.conf:1: no '=' in the line");
	expect_error("= 99\n", "a.conf:1: no name before");
	expect_error("freq = 99\nfreq = 99\n", "a.conf:2: freq is already set on line 1");
	expect_error("freq = 99\ncpu-sample-msec = 10\n",
		     "a.conf:2: cpu-sample-msec is already set on line 1");
	expect_error("format = folded\n", "a.conf:1: 'format' belongs on the command line");
	expect_error("config = x\n", "belongs on the command line");
	expect_error("store =\n", "a.conf:1: store: the value is empty");
}

TEST(a_nul_is_refused)
{
	static const char text[] = "store = a\0b\n";
	struct options o;
	struct err err = {0};

	options_init(&o);
	assert_int_equal(config_parse("a.conf", text, sizeof(text) - 1, &o, &err), ERR_USAGE);
	options_free(&o);
}

TEST(the_command_line_wins_lists_included)
{
	char *argv[] = {"collect", "--freq=49", "/StopOnPerfCounter:A:B:C>1"};
	struct options o;

	options_init(&o);
	assert_int_equal(options_parse(&o, 3, argv, NULL), 0);
	expect_good(&o, "freq = 199\nstop-on-perf-counter = D:E:F>2\nbuffer-mb = 8\n");
	assert_int_equal(o.capture.freq_hz, 49);
	assert_int_equal(o.rules.n, 1);
	assert_string_equal(o.rules.items[0].spec, "A:B:C>1");
	assert_int_equal(o.buffer_mb, 8);
	assert_int_equal(options_origin(&o, "freq"), FROM_ARGS);
	assert_int_equal(options_origin(&o, "buffer-mb"), FROM_CONF);
	assert_int_equal(options_origin(&o, "pre-sec"), FROM_DEFAULT);
	options_free(&o);
}

TEST(what_the_command_line_overrides_is_checked_all_the_same)
{
	char *argv[] = {"collect", "--freq=49"};
	struct options o;
	struct err err;

	options_init(&o);
	assert_int_equal(options_parse(&o, 2, argv, NULL), 0);
	assert_int_equal(config_parse("a.conf", "freq = x\n", 9, &o, &err), ERR_USAGE);
	options_free(&o);
}

TEST(a_missing_file_is_wrong_usage)
{
	struct options o;
	struct err err = {0};

	options_init(&o);
	assert_int_equal(config_load("tests/no-such-file.conf", &o, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "no-such-file.conf"));
	options_free(&o);
}

/* The shipped files: every key is known, every default is the program's. */
TEST(the_shipped_files_are_good)
{
	static const char *const paths[] = {
		"conf/recorder.conf", "conf/examples/cpu.conf", "conf/examples/memory.conf",
		"conf/examples/always-on.conf",
	};
	struct options o;
	struct err err = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(paths); i++) {
		options_init(&o);
		if (config_load(paths[i], &o, &err))
			fail_msg("%s", err.text);
		options_free(&o);
	}
}

/* In conf/recorder.conf every setting stands as a comment with its default: "#freq = 99". */
TEST(the_shipped_file_documents_every_key_with_its_default)
{
	const struct option_info *info;
	struct options defaults, set;
	struct buf text = {0};
	struct err err = {0};
	char *at;

	assert_int_equal(os_load("conf/recorder.conf", CONFIG_MAX_BYTES, &text, &err), 0);
	for (info = option_table; info->name; info++) {
		char line[80];

		snprintf(line, sizeof(line), "\n#%s = ", info->name);
		if (info->conf && !strstr(buf_text(&text), line))
			fail_msg("conf/recorder.conf has no line '#%s = ...'", info->name);
	}
	/* Uncommented, numbers equal the program's defaults. */
	for (at = text.data; (at = strstr(at, "\n#")); at++) {
		char *eol = strchr(at + 2, '\n');
		size_t name = strcspn(at + 2, " =\n");

		info = option_by_name(at + 2, name);
		if (!info || !info->conf || !info->unit || info->same_as ||
		    strncmp(at + 2 + name, " = ", 3))
			continue;
		options_init(&defaults);
		options_init(&set);
		*eol = '\0';
		assert_int_equal(options_set_conf(&set, info->name, at + 2 + name + 3, 1, &err), 0);
		*eol = '\n';
		if (memcmp((char *)&defaults + info->offset, (char *)&set + info->offset, 4) != 0)
			fail_msg("conf/recorder.conf: another default of %s", info->name);
		options_free(&set);
	}
	buf_free(&text);
}

static int parse_some(void *ctx)
{
	static const char text[] = "store = x\nlog-file = y\nstop-on-perf-counter = A:B:C>1\n"
				   "monitor-perf-counter = A:B:C, D:E:F\n";
	struct options o;
	int rc;
	(void)ctx;

	options_init(&o);
	rc = config_parse("a.conf", text, sizeof(text) - 1, &o, NULL);
	options_free(&o);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	assert_in_range(alloc_walk(parse_some, NULL), 5, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_split_at_its_first_equals_sign_and_trimmed),
		cmocka_unit_test(a_mark_of_utf8_at_the_start_is_skipped),
		cmocka_unit_test(errors_say_file_line_and_the_nearest_key),
		cmocka_unit_test(what_is_found_wrong_later_names_file_and_line),
		cmocka_unit_test(a_nul_is_refused),
		cmocka_unit_test(the_command_line_wins_lists_included),
		cmocka_unit_test(what_the_command_line_overrides_is_checked_all_the_same),
		cmocka_unit_test(a_missing_file_is_wrong_usage),
		cmocka_unit_test(the_shipped_files_are_good),
		cmocka_unit_test(the_shipped_file_documents_every_key_with_its_default),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
