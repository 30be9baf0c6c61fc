/*
 * The table of options, and the command lines that it reads.
 */
#include "base/array.h"
#include "base/os.h"
#include "options/options.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 12 };

struct fixture {
	struct options o;
	struct err err;
	int rc;
};

/* Parse arguments, given up to NULL. */
static void parse(struct fixture *f, ...)
{
	char *argv[MOST_ARGUMENTS];
	va_list args;
	int argc = 0;

	va_start(args, f);
	while ((argv[argc] = va_arg(args, char *)))
		assert_true(++argc < MOST_ARGUMENTS);
	va_end(args);
	memset(f, 0, sizeof(*f));
	options_init(&f->o);
	f->rc = options_parse(&f->o, argc, argv, &f->err);
}

/* The arguments are wrong, and the sentence says this. */
static void expect_refusal(struct fixture *f, const char *part)
{
	assert_int_equal(f->rc, ERR_USAGE);
	if (!strstr(f->err.text, part))
		fail_msg("'%s' does not say '%s'", f->err.text, part);
	options_free(&f->o);
}

static void expect_good(struct fixture *f)
{
	if (f->rc)
		fail_msg("refused: %s", f->err.text);
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_kebab(const char *name)
{
	return *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

TEST(every_option_has_a_name_a_command_and_help)
{
	const struct option_info *info;

	for (info = option_table; info->name; info++) {
		assert_true(info - option_table < OPTIONS_MAX);
		assert_true(is_kebab(info->name));
		assert_int_not_equal(info->commands, 0);
		assert_int_equal(info->no_effect & ~info->commands, 0);
		if (info->group != GROUP_PERFVIEW)
			assert_non_null(info->help);
		assert_int_equal(info->type == OPTION_BOOL || info->type == OPTION_RULE_FLAG,
				 info->value == NULL);
	}
}

TEST(every_name_finds_its_own_option)
{
	const struct option_info *info, *other;

	for (info = option_table; info->name; info++) {
		other = option_by_name(info->name, strlen(info->name));
		/* Another row that has this name, or has it too, must be for other commands. */
		assert_true(other == info || !(other->commands & info->commands));
		if (!info->same_as)
			continue;
		other = option_by_name(info->same_as, strlen(info->same_as));
		assert_non_null(other);
		assert_int_equal(other->offset, info->offset);
	}
}

TEST(every_default_is_within_its_bounds)
{
	const struct option_info *info;
	struct options o;

	options_init(&o);
	for (info = option_table; info->name; info++) {
		assert_true(info->min <= info->max);
		/*
		 * max-cpu-percent's depends on the machine: out of every bound unless it is given.
		 */
		if (info->unit && !info->same_as && info->group != GROUP_SELECT &&
		    info->def > -1e300)
			assert_true(info->def >= info->min && info->def <= info->max);
	}
	assert_int_equal(o.capture.freq_hz, 99);
	assert_int_equal(o.buffer_mb, 64);
	assert_int_equal(o.store_mb, 1024);
	assert_int_equal(o.keep_days, 30);
	assert_true(o.capture.pre_ns == 120000000000);
	assert_true(o.capture.post_ns == 5000000000);
	assert_true(o.min_sec == 3);
	assert_true(o.from.ns == OPTION_NO_TIME && o.to.ns == OPTION_NO_TIME);
	options_free(&o);
}

TEST(help_of_a_command_names_each_of_its_options)
{
	unsigned c;

	for (c = CMD_NONE + 1; c < COMMANDS; c++) {
		const struct option_info *info;
		struct buf text = {0};
		char name[80];

		options_help((enum command)c, &text);
		for (info = option_table; info->name; info++) {
			snprintf(name, sizeof(name), "--%s", info->name);
			if ((info->commands >> c) & 1 && !strstr(buf_text(&text), name))
				fail_msg("help %s lacks %s", command_table[c].name, name);
		}
		buf_free(&text);
	}
}

/* ---- ways to write an option ----------------------------------------------------------------- */

TEST(every_spelling_of_a_name_is_one_option)
{
	static const char *const ways[] = {
		"--max-collect-sec=60", "/MaxCollectSec:60", "/maxcollectsec=60",
		"-MaxCollectSec:60", "-max-collect-sec=60", "--MaxCollectSec:60",
		"\xe2\x80\x93MaxCollectSec:60", "\xe2\x80\x94MAXCOLLECTSEC:0x3c",
	};
	size_t i;

	for (i = 0; i < COUNT_OF(ways); i++) {
		struct fixture f;

		parse(&f, "collect", ways[i], NULL);
		if (strstr(ways[i], "0x")) {
			/* Seconds are decimal: hexadecimal is for whole numbers. */
			expect_refusal(&f, "not a number of seconds");
			continue;
		}
		expect_good(&f);
		assert_true(f.o.capture.max_collect_ns == 60000000000);
		options_free(&f.o);
	}
}

TEST(a_value_may_follow_a_long_name_and_begin_with_a_dash)
{
	struct fixture f;

	parse(&f, "export", "--from", "-10", "--to", "2.5", "--format", "folded", NULL);
	expect_good(&f);
	assert_true(f.o.from.ns == -10000000000);
	assert_true(f.o.to.ns == 2500000000);
	assert_string_equal(f.o.format, "folded");
	options_free(&f.o);
}

TEST(start_and_end_are_from_and_to_of_a_window)
{
	struct fixture f;

	parse(&f, "report", "--start", "-10", "--end", "2.5", NULL);
	expect_good(&f);
	assert_true(f.o.from.ns == -10000000000);
	assert_true(f.o.to.ns == 2500000000);
	options_free(&f.o);
	parse(&f, "--start", "2", "diff", NULL);
	expect_good(&f);
	assert_true(f.o.from.ns == 2000000000);
	options_free(&f.o);
	parse(&f, "collect", "--start", "2", NULL);
	expect_refusal(&f, "--from is an option of");
}

TEST(perfview_names_map_onto_ours)
{
	struct fixture f;

	parse(&f, "/CircularMB:128", "/CpuSampleMSec:2", "/CollectMultiple:0x3",
	      "/DelayAfterTriggerSec:7", "/AcceptEULA", "/NoGui", "/BufferSizeMB:512",
	      "/DataFile:x.etl", "/Zip:false", "collect", NULL);
	expect_good(&f);
	assert_int_equal(f.o.command, CMD_COLLECT);
	assert_int_equal(f.o.buffer_mb, 128);
	assert_int_equal(f.o.capture.freq_hz, 500);
	assert_int_equal(f.o.capture.incidents, 3);
	assert_true(f.o.capture.post_ns == 7000000000);
	options_free(&f.o);
}

TEST(options_without_effect_are_named)
{
	struct buf text = {0};
	struct fixture f;

	parse(&f, "collect", "/AcceptEULA", "/Merge:true", "/Process:java", "/CircularMB:8", NULL);
	expect_good(&f);
	options_no_effect(&f.o, &text);
	assert_string_equal(buf_text(&text), "--accept-eula, --merge: accepted, without "
			    "effect here");
	buf_free(&text);
	options_free(&f.o);
}

TEST(short_options_take_values_attached_or_next)
{
	struct fixture f;

	parse(&f, "export", "-f", "-o", "a.folded", "-pjava", NULL);
	expect_good(&f);
	assert_string_equal(f.o.format, "folded");
	assert_string_equal(f.o.output, "a.folded");
	assert_string_equal(f.o.process, "java");
	options_free(&f.o);
	parse(&f, "list", "-h", NULL);
	expect_good(&f);
	assert_true(f.o.help);
	options_free(&f.o);
}

TEST(seconds_may_have_a_unit)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"90", 90000000000},   {"1.5m", 90000000000},  {"250ms", 250000000},
		{"2h", 7200000000000}, {"1d", 86400000000000}, {"3s", 3000000000},
		{".5", 500000000},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(cases); i++) {
		struct fixture f;

		parse(&f, "collect", "--pre-sec", cases[i].text, NULL);
		expect_good(&f);
		assert_true(f.o.capture.pre_ns == cases[i].ns);
		options_free(&f.o);
	}
}

TEST(yes_no_options_are_true_bare_and_false_when_empty)
{
	struct fixture f;

	parse(&f, "list", "--json", NULL);
	expect_good(&f);
	assert_true(f.o.json);
	options_free(&f.o);
	parse(&f, "list", "/json:", NULL);
	expect_good(&f);
	assert_false(f.o.json);
	options_free(&f.o);
	parse(&f, "list", "--json=yes", NULL);
	expect_refusal(&f, "--json: 'yes' is neither true nor false");
}

TEST(from_is_a_file_or_a_moment_as_the_command_has_it)
{
	struct fixture f;

	parse(&f, "collect", "--from", "a.etl", NULL);
	expect_good(&f);
	assert_string_equal(f.o.capture.file, "a.etl");
	assert_true(f.o.from.ns == OPTION_NO_TIME);
	options_free(&f.o);
	parse(&f, "--from", "2", "export", NULL);
	expect_good(&f);
	assert_null(f.o.capture.file);
	assert_true(f.o.from.ns == 2000000000);
	options_free(&f.o);
	parse(&f, "show", "--from", "-22m", "--to=-21m", NULL);
	expect_good(&f);
	assert_string_equal(f.o.from.text, "-22m");
	assert_string_equal(f.o.to.text, "-21m");
	options_free(&f.o);
	parse(&f, "show", "--from", "-22", "--to", "1m", NULL);
	expect_good(&f);
	assert_true(f.o.from.ns == -22000000000 && f.o.to.ns == 60000000000);
	options_free(&f.o);
	parse(&f, "show", "--from", "README.md", NULL);
	expect_refusal(&f, "--from: 'README.md' is a file, and this is a moment: make an incident "
		       "of the file first, by 'recorder collect --from FILE'");
	parse(&f, "/From:b.etl.zip", "--count", "events", NULL);
	expect_good(&f);
	assert_string_equal(f.o.capture.file, "b.etl.zip");
	options_free(&f.o);
	parse(&f, "list", "--from", "a.etl", NULL);
	expect_refusal(&f, "--from is an option of collect, snapshot, show, report, export, diff, "
		       "events and backtest, not of list");
}

TEST(incident_numbers_come_by_option_and_as_operands)
{
	struct fixture f;

	parse(&f, "delete", "--id", "3,4", "7", "--id=9", NULL);
	expect_good(&f);
	assert_int_equal(f.o.ids.n, 4);
	assert_int_equal(f.o.ids.items[0], 3);
	assert_int_equal(f.o.ids.items[1], 4);
	assert_int_equal(f.o.ids.items[2], 7);
	assert_int_equal(f.o.ids.items[3], 9);
	options_free(&f.o);
	parse(&f, "show", "--id", "x", NULL);
	expect_refusal(&f, "'x' is not the number of an incident");
	parse(&f, "backtest", "--id", "1", "GC/Start", NULL);
	expect_refusal(&f, "; a rule is an option: '/StopOnPerfCounter:...'");
	parse(&f, "show", "--id", "99999999999999999999", NULL);
	expect_refusal(&f, "is not the number of an incident");
}

TEST(the_two_incidents_of_a_diff_come_by_option_and_as_operands)
{
	struct fixture f;

	parse(&f, "diff", "3", "7", NULL);
	expect_good(&f);
	assert_int_equal(f.o.base_ids.items[0], 3);
	assert_int_equal(f.o.test_ids.items[0], 7);
	options_free(&f.o);
	parse(&f, "diff", "--test", "7", "3", NULL);
	expect_good(&f);
	assert_int_equal(f.o.base_ids.items[0], 3);
	assert_int_equal(f.o.test_ids.items[0], 7);
	options_free(&f.o);
	parse(&f, "diff", "3", "7", "9", NULL);
	expect_refusal(&f, "unexpected argument '9'");
	parse(&f, "diff", "3", "x", NULL);
	expect_refusal(&f, "the test: 'x' is not the number of an incident");
}

TEST(an_existing_path_with_a_slash_is_an_operand)
{
	const char *tmp = os_env("TEST_TMP");
	struct fixture f;
	char path[600];

	snprintf(path, sizeof(path), "%s", tmp ? tmp : "/");
	if (*path != '/') {
		print_message("paths begin with '/' on Linux only\n");
		skip();
	}
	parse(&f, "collect", path, NULL);
	expect_good(&f);
	assert_string_equal(f.o.capture.data_file, path);
	options_free(&f.o);
	parse(&f, "collect", "/no/such/path", NULL);
	expect_refusal(&f, "unknown option");
}

/* ---- lists of specs -------------------------------------------------------------------------- */

static void expect_specs(const char *value, uint32_t n, const char *last)
{
	struct fixture f;

	parse(&f, "collect", "--stop-on-perf-counter", value, NULL);
	expect_good(&f);
	assert_int_equal(f.o.rules.n, n);
	assert_string_equal(f.o.rules.items[n - 1].spec, last);
	assert_string_equal(f.o.rules.items[n - 1].kind, "stop-on-perf-counter");
	options_free(&f.o);
}

TEST(a_comma_separates_only_specs)
{
	expect_specs("A:B:C>1", 1, "A:B:C>1");
	expect_specs("A:B:C>1,D:E:F<2.5K", 2, "D:E:F<2.5K");
	expect_specs("A:B:x,y>1", 1, "A:B:x,y>1");
	expect_specs("A:B:x,y>1,D:E:z,w >= 2", 2, "D:E:z,w >= 2");
	expect_specs("A:B:C>1,rubbish", 1, "A:B:C>1,rubbish");
	expect_specs("rubbish", 1, "rubbish");
	expect_specs("A:B:C>1,A:B:C>2,A:B:>3", 3, "A:B:>3");
}

TEST(monitored_counters_need_no_limit)
{
	struct fixture f;

	parse(&f, "collect", "/MonitorPerfCounter:A:B:C@2,D:E:F", "/MonitorPerfCounter:G:H:i,j",
	      NULL);
	expect_good(&f);
	assert_int_equal(f.o.monitors.n, 3);
	assert_string_equal(f.o.monitors.items[0], "A:B:C@2");
	assert_string_equal(f.o.monitors.items[2], "G:H:i,j");
	options_free(&f.o);
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(what_is_wrong_is_said)
{
	static const struct {
		const char *arguments[4];
		const char *says;
	} cases[] = {
		{{"collect", "--bufer-mb", "3"},
		 "unknown option 'bufer-mb'; did you mean --buffer-mb"},
		{{"collect", "/StopOnPerfCountr:x"}, "did you mean --stop-on-perf-counter"},
		{{"collect", "-Proces:java"}, "did you mean --process"},
		{{"collect", "--zzzzzz"}, "'recorder help collect' lists them"},
		{{"--zzzzzz"}, "'recorder help' lists them"},
		{{"list", "--freqq"}, "unknown option 'freqq'; 'recorder help list' lists them"},
		{{"show", "--freqq"}, "unknown option 'freqq'; 'recorder help show' lists them"},
		{{"lsit"}, "unknown command 'lsit'; did you mean list?"},
		{{"collect", "--freq", "fast"},
		 "--freq: 'fast' is not a whole number; allowed: 1 to 10000 Hz (default 99)"},
		{{"collect", "--freq", "0"}, "is out of range; allowed: 1 to 10000 Hz"},
		{{"collect", "--freq", "1.5"}, "is not a whole number"},
		{{"collect", "--freq", "99999999999999999999"}, "is out of range"},
		{{"collect", "--freq", "-1"}, "is not a whole number"},
		{{"collect", "--freq", ""}, "is not a whole number"},
		{{"collect", "--freq"}, "--freq needs a value: HZ"},
		{{"export", "--all", "--store", "x.db"}, "--all needs a value: DIR"},
		{{"report", "--inc", "--tree"}, "--inc needs a value: PATTERNS"},
		{{"collect", "/CircularMB:0"}, "/CircularMB: '0' is out of range"},
		{{"collect", "/MaxCollectSec", "60"}, "/MaxCollectSec needs a value after a colon"},
		{{"collect", "--min-sec-for-trigger=nan"}, "is not a number"},
		{{"collect", "--min-sec-for-trigger=1,5"}, "is not a number"},
		{{"collect", "--pre-sec=5 apples"}, "is not a number of seconds"},
		{{"collect", "--freq=99", "/CpuSampleMSec:1"}, "--freq was already given"},
		{{"collect", "--freq=99", "--freq=99"}, "--freq was already given"},
		{{"collect", "--log-file="}, "--log-file: the value is empty; expected FILE"},
		{{"collect", "/StopOnGCOverMsec"}, "needs a value after a colon"},
		{{"list", "--format", "folded"},
		 "--format is an option of run, top, export, diff, events and stacks, not of list"},
		{{"list", "3"}, "unexpected argument '3'"},
		{{"counters", "a", "b"}, "unexpected argument 'b'"},
		{{"export", "-fx"}, "unknown option"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(cases); i++) {
		const char *const *a = cases[i].arguments;
		struct fixture f;

		parse(&f, a[0], a[1], a[2], a[3], NULL);
		expect_refusal(&f, cases[i].says);
	}
}

TEST(after_two_dashes_everything_is_an_operand)
{
	struct fixture f;

	parse(&f, "counters", "--", "--json", NULL);
	expect_good(&f);
	assert_string_equal(f.o.pattern, "--json");
	assert_false(f.o.json);
	options_free(&f.o);
}

TEST(a_value_has_a_ceiling)
{
	char value[OPTION_VALUE_MAX + 20] = "--log-file=";
	struct fixture f;

	memset(value + 11, 'x', OPTION_VALUE_MAX + 1);
	value[11 + OPTION_VALUE_MAX + 1] = '\0';
	parse(&f, "collect", value, NULL);
	expect_refusal(&f, "the value is longer than 4096 bytes");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int parse_much(void *ctx)
{
	char *argv[] = {"collect", "--store", "x", "--stop-on-perf-counter", "A:B:C>1,D:E:F>2",
			"--monitor-perf-counter", "A:B:C", "--log-file", "y", "/DataFile:z"};
	struct options o;
	int rc;
	(void)ctx;

	options_init(&o);
	rc = options_parse(&o, COUNT_OF(argv), argv, NULL);
	options_free(&o);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	assert_in_range(alloc_walk(parse_much, NULL), 8, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_has_a_name_a_command_and_help),
		cmocka_unit_test(every_name_finds_its_own_option),
		cmocka_unit_test(every_default_is_within_its_bounds),
		cmocka_unit_test(help_of_a_command_names_each_of_its_options),
		cmocka_unit_test(every_spelling_of_a_name_is_one_option),
		cmocka_unit_test(a_value_may_follow_a_long_name_and_begin_with_a_dash),
		cmocka_unit_test(start_and_end_are_from_and_to_of_a_window),
		cmocka_unit_test(perfview_names_map_onto_ours),
		cmocka_unit_test(options_without_effect_are_named),
		cmocka_unit_test(short_options_take_values_attached_or_next),
		cmocka_unit_test(seconds_may_have_a_unit),
		cmocka_unit_test(yes_no_options_are_true_bare_and_false_when_empty),
		cmocka_unit_test(from_is_a_file_or_a_moment_as_the_command_has_it),
		cmocka_unit_test(incident_numbers_come_by_option_and_as_operands),
		cmocka_unit_test(the_two_incidents_of_a_diff_come_by_option_and_as_operands),
		cmocka_unit_test(an_existing_path_with_a_slash_is_an_operand),
		cmocka_unit_test(a_comma_separates_only_specs),
		cmocka_unit_test(monitored_counters_need_no_limit),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(after_two_dashes_everything_is_an_operand),
		cmocka_unit_test(a_value_has_a_ceiling),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
