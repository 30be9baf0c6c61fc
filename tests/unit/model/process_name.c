/* What processes are called: by their file, the kernel, argv[0] and the script that they run. */
#include "model/process_name.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct command {
	const char *file, *cmdline, *called, *script;
};

static void check(const struct command *all, size_t n)
{
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES];
	size_t i;

	for (i = 0; i < n; i++) {
		process_names_of_command(all[i].file, all[i].cmdline, called, script);
		if (strcmp(called, all[i].called) != 0 || strcmp(script, all[i].script) != 0)
			fail_msg("'%s' of %s: called '%s', script '%s'", all[i].cmdline,
				 all[i].file ? all[i].file : "?", called, script);
	}
}

TEST(command_is_called_by_its_first_word)
{
	static const struct command all[] = {
		{"dash", "/bin/sh", "sh", ""},
		{"bash", "-bash", "bash", ""},
		{"nginx", "nginx: worker process", "nginx", ""},
		{"python3.11", "gunicorn: master [shop]", "gunicorn", ""},
		{"busybox", "sleep 5", "sleep", ""},
		{"busybox", "/bin/busybox sleep 5", "sleep", ""},
		{"busybox", "busybox sh /srv/run.sh", "sh", "run.sh"},
		{"busybox", "busybox", "busybox", ""},
		{"app", "\"C:\\Program Files\\App\\App.EXE\" -x", "App", ""},
		{"wine64-preloader", "C:\\windows\\notepad.exe", "notepad", ""},
		{NULL, "/opt/a\\b c", "a\\b", ""},
		{NULL, "relative/path/", "path", ""},
		{NULL, "", "", ""},
		{NULL, "   ", "", ""},
		{NULL, "\"", "", ""},
		{NULL, "- x", "-", ""},
		{NULL, ": x", "", ""},
		{NULL, "/ x", "", ""},
	};

	check(all, COUNT(all));
}

TEST(scripts_are_found_behind_options_of_their_interpreters)
{
	static const struct command all[] = {
		{"dash", "sh script.sh", "sh", "script.sh"},
		{"dash", "sh -eu ./script.sh now", "sh", "script.sh"},
		{"bash", "bash -xo pipefail /srv/run it", "bash", "run"},
		{"bash", "bash --rcfile /etc/x -O extglob run", "bash", "run"},
		{"bash", "bash +x run", "bash", "run"},
		{"python3.11", "python3 manage.py", "python3", "manage.py"},
		{"python3.11", "python3 -u /srv/manage.py runserver", "python3", "manage.py"},
		{"python3.11", "python3 -uW ignore -X dev -Xutf8 a.py", "python3", "a.py"},
		{"python3.11", "python3 --check-hash-based-pycs never a.py", "python3", "a.py"},
		{"python3.11", "python3 -m http.server 80", "python3", "http.server"},
		{"python3.11", "python3 -um http.server", "python3", "http.server"},
		{"python3.11", "python3 -mvenv x", "python3", "venv"},
		{"python3.11", "python3 -- -odd.py", "python3", "-odd.py"},
		{"python3.11", "python3 /srv/site/", "python3", "site"},
		{"node", "node --max-old-space-size=4096 -r hook.js a.js", "node", "a.js"},
		{"node", "node inspect app.js", "node", "app.js"},
		{"node", "node -c app.js", "node", "app.js"},
		{"java", "java -Xmx2g -cp a.jar:b.jar -jar /opt/app.jar serve", "java", "app.jar"},
		{"java", "java -cp a.jar org.shop.Main -x", "java", "org.shop.Main"},
		{"java", "java -p mods -m shop/org.shop.Main", "java", "org.shop.Main"},
		{"perl", "perl -w -I lib -Mstrict /srv/poll.pl", "perl", "poll.pl"},
		{"ruby3.1", "ruby -rjson -I lib app.rb", "ruby", "app.rb"},
		{"php8.2", "php -d memory_limit=1G -f job.php", "php", "job.php"},
		{"php8.2", "php artisan queue:work", "php", "artisan"},
		{"lua5.4", "lua -l socket -e x=1 job.lua", "lua", "job.lua"},
		{"dotnet", "dotnet exec --depsfile a.json /app/shop.dll", "dotnet", "shop.dll"},
		{"mono-sgen", "mono --debug /srv/tool.exe", "mono", "tool"},
		{"python", "C:\\Python\\python.exe \"C:\\My Jobs\\job.py\" x", "python", "job.py"},
		{"powershell", "powershell.exe -NoProfile -executionpolicy Bypass -file C:\\a.ps1",
		 "powershell", "a.ps1"},
		/* The file says what argv[0] hides. */
		{"python3.11", "celery worker", "celery", "worker"},
		{NULL, "/usr/bin/python3 manage.py", "python3", "manage.py"},
		{"pypy3.9-c", "python3 manage.py", "python3", "manage.py"},
	};

	check(all, COUNT(all));
}

TEST(program_text_and_standard_input_are_no_scripts)
{
	static const struct command all[] = {
		{"dash", "sh -c exec /srv/run", "sh", ""},
		{"bash", "bash -lc run", "bash", ""},
		{"bash", "bash -s run", "bash", ""},
		{"dash", "sh", "sh", ""},
		{"python3.11", "python3 -c import\\ os a.py", "python3", ""},
		{"python3.11", "python3 -Ic import\\ os a.py", "python3", ""},
		{"python3.11", "python3 - a.py", "python3", ""},
		{"python3.11", "python3 -m", "python3", ""},
		{"python3.11", "python3 -W", "python3", ""},
		{"node", "node -e 1 server.js", "node", ""},
		{"node", "node --eval 1 server.js", "node", ""},
		{"perl", "perl -pe s/a/b/ file", "perl", ""},
		{"ruby3.1", "ruby -ne print file", "ruby", ""},
		{"php8.2", "php -r echo file", "php", ""},
		{"php8.2", "php -S :80 -t /srv", "php", ""},
		{"java", "java @args", "java", ""},
		{"dotnet", "dotnet build x.csproj", "dotnet", ""},
		{"powershell", "powershell -Command a.ps1", "powershell", ""},
		{"vim", "vim manage.py", "vim", ""},
		{"pythonista", "pythonista manage.py", "pythonista", ""},
	};

	check(all, COUNT(all));
}

TEST(names_that_are_too_long_or_do_not_print_are_not_known)
{
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES], text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	process_names_of_command(NULL, text, called, script);
	assert_string_equal(called, "");
	text[PROCESS_CALLED_BYTES - 1] = '\0';
	process_names_of_command(NULL, text, called, script);
	assert_string_equal(called, text);
	process_names_of_command("dash", "s\033[31mh run\n.sh", called, script);
	assert_string_equal(called, "");
	assert_string_equal(script, "");
	process_names_of_command("dash", "sh \xff\xfe", called, script);
	assert_string_equal(script, "\xff\xfe");
}

TEST(every_name_of_a_process_matches)
{
	const struct process_names n = {"python3.11", "manage.py", "python3", "manage.py"};
	const struct process_names wine = {.file = "wine64-preloader", .comm = "notepad.exe"};

	assert_true(process_names_match(&n, "python3.11"));
	assert_true(process_names_match(&n, "Python3"));
	assert_true(process_names_match(&n, "python3.exe"));
	assert_true(process_names_match(&n, "MANAGE.PY"));
	assert_false(process_names_match(&n, "python"));
	assert_false(process_names_match(&n, "manage"));
	assert_false(process_names_match(&n, ""));
	assert_true(process_names_match(&wine, "notepad"));
	assert_true(process_names_match(&wine, "notepad.exe"));
	assert_false(process_names_match(&(struct process_names){0}, "x"));
	assert_false(process_names_match(&(struct process_names){0}, ""));
}

TEST(cut_name_matches_where_nothing_tells_the_rest)
{
	struct process_names n = {.comm = "my-service-work"};

	assert_true(process_names_match(&n, "my-service-worker"));
	assert_true(process_names_match(&n, "My-Service-Worker-2"));
	assert_true(process_names_match(&n, "my-service-work"));
	assert_false(process_names_match(&n, "my-service-wor"));
	n.file = "my-service-worker";
	assert_false(process_names_match(&n, "my-service-worker-2"));
	n.file = "busybox";
	n.called = "my-service-worker-2";
	assert_true(process_names_match(&n, "my-service-worker-2"));
	assert_false(process_names_match(&n, "my-service-worker"));
	n = (struct process_names){.comm = "my-service"};    /* not cut */
	assert_false(process_names_match(&n, "my-service-worker"));
}

TEST(a_list_means_each_of_its_items)
{
	const struct process_names names = {.file = "nginx", .comm = "nginx"};

	assert_true(process_names_mean(&names, 12, "12"));
	assert_true(process_names_mean(&names, 12, "7,12"));
	assert_true(process_names_mean(&names, 12, "nginx,7"));
	assert_true(process_names_mean(&names, 12, ",,12,"));
	assert_false(process_names_mean(&names, 12, "1,2"));
	assert_false(process_names_mean(&names, 12, ","));
	assert_false(process_names_mean(&names, 12, ""));
}

TEST(label_is_what_people_typed_with_the_file_in_brackets)
{
	static const struct {
		struct process_names names;
		const char *label;
	} all[] = {
		{{"dash", "sh", "sh", ""}, "sh [dash]"},
		{{"nginx", "nginx", "nginx", ""}, "nginx"},
		{{"python3.11", "python3", "python3", "manage.py"}, "manage.py [python3.11]"},
		{{"perl", "perl", "perl", "backup.pl"}, "backup.pl [perl]"},
		{{"java", "java", "java", "app.jar"}, "app.jar [java]"},
		/* Without the file's name the label would hide what runs the script. */
		{{NULL, "perl", "perl", "backup.pl"}, "perl"},
		{{"python3.11", "manage.py", "python3", "manage.py"}, "manage.py [python3.11]"},
		{{"busybox", "sleep", "sleep", ""}, "sleep [busybox]"},
		{{"busybox", "my-service-work", "my-service-worker", ""},
		 "my-service-worker [busybox]"},
		/* What argv alone says is not believed. */
		{{"miner", "miner", "sshd", ""}, "miner"},
		{{"miner", NULL, "sshd", ""}, "miner"},
		{{"python3.11", "python3.11", "gunicorn", ""}, "python3.11"},
		{{NULL, "kworker/0:1", NULL, NULL}, "kworker/0:1"},
		{{NULL, "my-service-work", "my-service-worker", ""}, "my-service-worker"},
		{{"", "", "", ""}, "?"},
		{{NULL, NULL, NULL, NULL}, "?"},
		{{"App", "App.exe", "app", ""}, "App"},
	};
	char label[PROCESS_LABEL_BYTES];
	size_t i;

	for (i = 0; i < COUNT(all); i++)
		assert_string_equal(process_names_label(&all[i].names, label), all[i].label);
}

TEST(interpreters_that_nothing_reads_are_known_by_their_files)
{
	assert_string_equal(process_unread_language("ruby3.1"), "Ruby");
	assert_string_equal(process_unread_language("php-fpm8.2"), "PHP");
	assert_string_equal(process_unread_language("perl"), "Perl");
	assert_string_equal(process_unread_language("beam.smp"), "Erlang");
	assert_null(process_unread_language("python3.11"));
	assert_null(process_unread_language("perlbug"));
	assert_null(process_unread_language("bash"));
	assert_null(process_unread_language(""));
	assert_null(process_unread_language(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_is_called_by_its_first_word),
		cmocka_unit_test(scripts_are_found_behind_options_of_their_interpreters),
		cmocka_unit_test(program_text_and_standard_input_are_no_scripts),
		cmocka_unit_test(names_that_are_too_long_or_do_not_print_are_not_known),
		cmocka_unit_test(every_name_of_a_process_matches),
		cmocka_unit_test(cut_name_matches_where_nothing_tells_the_rest),
		cmocka_unit_test(interpreters_that_nothing_reads_are_known_by_their_files),
		cmocka_unit_test(a_list_means_each_of_its_items),
		cmocka_unit_test(label_is_what_people_typed_with_the_file_in_brackets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
