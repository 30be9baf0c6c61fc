/* StopCommand: cut without a shell, values put in afterwards. */
#include "base/array.h"
#include "engine/command_line.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static const struct command_values values = {
	.store = "/var/lib/recorder/incidents.db", .rule = "cpu>80",
	.reason = "was 90; rm -rf 'x' && \"y\"",
	.host = "web1", .incident = 12,
};

/* The arguments, each in < >. */
static void expect(const char *text, const char *wanted)
{
	struct command_line c = {0}, full = {0};
	struct buf got = {0};
	struct err err = {0};
	unsigned i;

	if (command_line_parse(text, &c, &err) || command_line_expand(&c, &values, &full, &err))
		fail_msg("%s: %s", text, err.text);
	for (i = 0; i < full.nargs; i++)
		buf_printf(&got, "<%s>", full.args[i]);
	assert_null(full.args[full.nargs]);
	assert_string_equal(buf_text(&got), wanted);
	buf_free(&got);
	command_line_free(&c);
	command_line_free(&full);
}

TEST(blanks_separate_and_quotes_keep_together)
{
	expect("a  b\tc", "<a><b><c>");
	expect("'/opt/my prog' \"x 'y' z\" a''b \"\"", "</opt/my prog><x 'y' z><ab><>");
	expect("C:\\tools\\n.exe a\\b", "<C:\\tools\\n.exe><a\\b>");
}

TEST(values_stay_within_their_argument)
{
	expect("n %REASON%", "<n><was 90; rm -rf 'x' && \"y\">");
	expect("n --id=%INCIDENT% %RULE%@%HOST%", "<n><--id=12><cpu>80@web1>");
	expect("n %OUTPUTDIR%/%OUTPUTBASENAME%.zip %STORE%",
	       "<n></var/lib/recorder/incidents.12.zip></var/lib/recorder/incidents.db>");
	expect("n 100% %PATH% %reason%", "<n><100%><%PATH%><%reason%>");
	expect("n %OUTPUTFILE%", "<n><>");
}

TEST(with_a_data_file_the_output_is_that)
{
	struct command_values with = values;
	struct command_line c = {0}, full = {0};
	struct err err = {0};

	with.data_file = "/out/slow.1.perfView.xml.zip";
	assert_int_equal(command_line_parse("n %OUTPUTFILE% %OUTPUTDIR% %OUTPUTBASENAME%.zip", &c,
					    &err), 0);
	assert_int_equal(command_line_expand(&c, &with, &full, &err), 0);
	assert_string_equal(full.args[1], with.data_file);
	assert_string_equal(full.args[2], "/out");
	assert_string_equal(full.args[3], "slow.1.perfView.xml.zip");
	command_line_free(&c);
	command_line_free(&full);
}

TEST(wrong_lines_are_refused)
{
	static const struct { const char *text, *says; } bad[] = {
		{"", "no program is named"}, {"  ", "no program is named"},
		{"''", "no program is named"},
		{"a 'b", "a quote is not closed"},
		{"n.bat %REASON%", "a batch file would run"},
		{"n.CMD x%RULE%", "a batch file would run"},
	};
	struct command_line c;
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		struct err err = {0};

		assert_int_equal(command_line_parse(bad[i].text, &c, &err), ERR_USAGE);
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s': %s", bad[i].text, err.text);
	}
	expect("n.bat %INCIDENT%", "<n.bat><12>");
}

TEST(text_of_events_is_refused_where_it_would_be_code)
{
	static const char *const bad[] = {
		"sh -c 'logger %REASON%'", "/bin/bash -lc \"echo %RULE%\"", "sh -c -e %REASON%",
		"sudo -u ops sh -c 'logger %REASON%'", "env A=1 dash -c %REASON%",
		"busybox sh -c %REASON%", "python3.11 -c 'print(\"%REASON%\")'",
		"perl -we 'print q(%REASON%)'", "perl -e'print q(%REASON%)'",
		"node --eval '//%REASON%'", "node --eval=%REASON%", "ruby -e %RULE%",
		"ssh host logger %REASON%", "ssh host \"logger '%REASON%'\"", "su ops -c %REASON%",
		"awk 'BEGIN { print \"%REASON%\" }'", "sqlite3 a.db \"insert '%REASON%'\"",
		"C:\\Windows\\System32\\CMD.EXE /c echo %REASON%",
		"powershell -Command Write-Host %REASON%", "flock /tmp/l -c 'echo %REASON%'",
		"env -S 'sh %REASON%'", "timeout 5 sh -c 'echo %REASON%' sh",
		/* the shell on the other side reads what seems to be an argument of sh */
		"ssh host sh notify.sh %REASON%", "watch bash notify.sh %RULE%",
		"xargs sh notify.sh %REASON%", "cmd /c python notify.py %REASON%",
		"env -S 'sh -c' %REASON%", "env --split-string 'bash -c' %REASON%",
		"env '-Ssh -c' %REASON%", "bash -c -o errexit %REASON%",
		"sh -c +o nounset -- %RULE%",
		"find / -name x -exec sh -c %REASON% ;", "find / -exec perl -e %REASON% ;",
		"make WHY=%REASON%", "nawk %REASON%", "socat - EXEC:%REASON%", "tclsh %RULE%",
		"Rscript -e %REASON%", "deno eval %REASON%", "gdb -ex %REASON%", "%REASON%",
		"rbash -c %REASON%", "emacs --eval %REASON%", "tmux new-window %REASON%",
	};
	struct command_line c;
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		struct err err = {0};

#ifndef _WIN32
		if (strchr(bad[i], '\\'))          /* no separator here */
			continue;
#endif
		if (command_line_parse(bad[i], &c, &err) != ERR_USAGE)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(err.text, "RECORDER_REASON"));
	}
}

TEST(text_of_events_is_an_argument_of_scripts)
{
	expect("sh -c 'echo \"$1\"' sh %RULE%", "<sh><-c><echo \"$1\"><sh><cpu>80>");
	expect("sh notify.sh %RULE%", "<sh><notify.sh><cpu>80>");
	expect("python3 -u notify.py --why %RULE%", "<python3><-u><notify.py><--why><cpu>80>");
	expect("bash -c -o errexit 'echo \"$1\"' sh %RULE%",
	       "<bash><-c><-o><errexit><echo \"$1\"><sh><cpu>80>");
	expect("env WHY=%RULE% notify %RULE%", "<env><WHY=cpu>80><notify><cpu>80>");
	expect("mail -s \"web1: %RULE%\" ops", "<mail><-s><web1: cpu>80><ops>");
	expect("sh -c 'logger \"$RECORDER_REASON\" %INCIDENT%'",
	       "<sh><-c><logger \"$RECORDER_REASON\" 12>");
}

TEST(the_environment_holds_every_value)
{
	struct command_line c = {0};

	assert_int_equal(command_line_environment(&values, &c, NULL), 0);
	assert_int_equal(c.nargs, 8);
	assert_string_equal(c.args[3], "RECORDER_INCIDENT=12");
	assert_string_equal(c.args[6], "RECORDER_REASON=was 90; rm -rf 'x' && \"y\"");
	assert_null(c.args[8]);
	command_line_free(&c);
}

static int parse_step(void *ctx)
{
	struct command_line c = {0}, full = {0};
	int rc = command_line_parse(ctx, &c, NULL);

	if (!rc)
		rc = command_line_expand(&c, &values, &full, NULL);
	command_line_free(&c);
	command_line_free(&full);
	return rc;
}

TEST(lack_of_memory_is_reported)
{
	assert_true(alloc_walk(parse_step, "a %REASON%") > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blanks_separate_and_quotes_keep_together),
		cmocka_unit_test(values_stay_within_their_argument),
		cmocka_unit_test(with_a_data_file_the_output_is_that),
		cmocka_unit_test(wrong_lines_are_refused),
		cmocka_unit_test(text_of_events_is_refused_where_it_would_be_code),
		cmocka_unit_test(text_of_events_is_an_argument_of_scripts),
		cmocka_unit_test(the_environment_holds_every_value),
		cmocka_unit_test(lack_of_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
