/* Arguments of dtrace(1) become those of run. */
#include "base/array.h"
#include "cli/cmd.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define SCRIPT "profile-997 /pid == $target/ { @[ustack(100)] = count(); }"

/* The words, with '|' between them; or the error's sentence. */
static const char *words_of(int n, const char *const *arguments)
{
	static char text[600];
	struct cmd_words w;
	struct err err = {0};
	int i;

	*text = '\0';
	if (cmd_dtrace_words(n, (char *const *)arguments, &w, &err))
		snprintf(text, sizeof(text), "%s", err.text);
	for (i = 0; i < w.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "|" : "",
			 w.words[i]);
	cmd_words_free(&w);
	return text;
}
#define WORDS(...)                                                                                 \
	words_of(COUNT_OF(((const char *const[]){__VA_ARGS__})),                                   \
		 (const char *const[]){__VA_ARGS__})

TEST(a_command_is_split_at_spaces_without_a_backslash)
{
	assert_string_equal(WORDS("-x", "ustackframes=100", "-n", SCRIPT, "-o", "a.stacks", "-c",
				  " ./my\\ app  --size 3 a\\\\b "),
			    "run|--freq|997|--format|dtrace|-o|a.stacks|--force|"
			    "--no-kernel-stacks|--|./my app|--size|3|a\\b");
}

TEST(a_running_process_has_a_number)
{
	assert_string_equal(WORDS("-n" SCRIPT, "-p", "4711"),
			    "run|--freq|997|--format|dtrace|-o|-|--force|"
			    "--no-kernel-stacks|--process|4711");
}

TEST(several_processes_are_a_list)
{
	assert_string_equal(WORDS("-n" SCRIPT, "-p", "4711", "-p12"),
			    "run|--freq|997|--format|dtrace|-o|-|--force|"
			    "--no-kernel-stacks|--process|4711,12");
}

TEST(a_backslash_at_the_end_is_a_character)
{
	assert_non_null(strstr(WORDS("-n", SCRIPT, "-c", "a\\"), "--|a\\"));
}

TEST(short_words_all_have_room)
{
	assert_non_null(strstr(WORDS("-n", SCRIPT, "-c", "a b c d e f"), "--|a|b|c|d|e|f"));
	assert_non_null(strstr(WORDS("-n", SCRIPT, "-c", ""), "--force|--no-kernel-stacks|--"));
}

TEST(what_is_not_understood_is_refused)
{
	assert_non_null(strstr(WORDS("-n", "BEGIN { exit(0); }", "-c", "ls"), "one kind"));
	assert_non_null(strstr(WORDS("-n", "profile- $target ustack()", "-c", "ls"), "one kind"));
	assert_non_null(strstr(WORDS("-n", SCRIPT), "give a command"));
	assert_non_null(strstr(WORDS("-n", SCRIPT, "-c", "ls", "-p", "1"), "give a command"));
	assert_non_null(strstr(WORDS("-n", SCRIPT, "-s", "x.d"), "'-s' is not known"));
	assert_non_null(strstr(WORDS("-n", SCRIPT, "-c"), "-c needs a value"));
	assert_non_null(strstr(WORDS("-oa", "-o", "b"), "-o is given twice"));
}

TEST(the_programs_name_decides)
{
	assert_true(cmd_is_dtrace("recorder-dtrace"));
	assert_true(cmd_is_dtrace("/usr/local/bin/recorder-dtrace"));
	assert_false(cmd_is_dtrace("/usr/local/bin/recorder"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_split_at_spaces_without_a_backslash),
		cmocka_unit_test(a_running_process_has_a_number),
		cmocka_unit_test(several_processes_are_a_list),
		cmocka_unit_test(a_backslash_at_the_end_is_a_character),
		cmocka_unit_test(short_words_all_have_room),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(the_programs_name_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
