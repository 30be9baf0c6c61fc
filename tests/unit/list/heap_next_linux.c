/* --heap-next: the line in the file, and that it goes. */
#include "source/list/heap_next.h"

#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20

static char file[TMP_BYTES], folder[TMP_BYTES];

static void write_text(const char *text)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static const char *read_text(void)
{
	static char text[4096];
	FILE *f = fopen(file, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		fclose(f);
	return f ? text : NULL;
}

static int begin(const char *name, struct heap_next **out)
{
	snprintf(file, sizeof(file), "%s", tmp_path("ld.so.preload"));
	snprintf(folder, sizeof(folder), "%s", tmp_path("links"));
	return heap_next_begin_at(file, folder, "/lib/x.so", name, 65536, out, NULL);
}

TEST(a_line_is_added_and_goes_with_the_file_that_was_not_there)
{
	char line[2 * TMP_BYTES], link[2 * TMP_BYTES] = "";
	struct heap_next *n;

	assert_int_equal(begin("shop", &n), 0);
	snprintf(line, sizeof(line), "%s/%d/shop@65536/librecorder-heap.so", folder,
		 (int)getpid());
	assert_true(readlink(line, link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "/lib/x.so");
	strcat(line, "\n");
	assert_string_equal(read_text(), line);
	heap_next_end(n);
	assert_null(read_text());
	assert_int_equal(access(folder, F_OK), -1);
}

TEST(lines_of_others_and_the_mode_stay_and_those_of_the_killed_go)
{
	char text[2 * TMP_BYTES];
	struct heap_next *n;
	struct stat st;

	assert_int_equal(begin("shop", &n), 0);
	heap_next_end(n);
	/* No process has that number. */
	snprintf(text, sizeof(text),
		 "/lib/a.so\n%s/99999999/shop@1/librecorder-heap.so\n/lib/b.so", folder);
	write_text(text);
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(begin("shop", &n), 0);
	assert_non_null(strstr(read_text(), "/lib/a.so\n/lib/b.so\n"));
	assert_null(strstr(read_text(), "99999999"));
	heap_next_end(n);
	assert_string_equal(read_text(), "/lib/a.so\n/lib/b.so\n");
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	unlink(file);
}

/* Wait for what another process does; the test's own limit of time ends it. */
static void wait_until_gone(void)
{
	while (read_text())
		os_sleep_ns(5 * NS_PER_MS);
}

TEST(a_recorder_that_is_killed_leaves_no_line)
{
	struct heap_next *n;
	char byte;
	int ready[2];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		if (!begin("shop", &n) && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_non_null(read_text());
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	wait_until_gone();
	close(ready[0]);
	close(ready[1]);
}

TEST(what_is_no_name_of_a_file_is_refused)
{
	static const char *const names[] = {"", "a b", "/bin/ls", "a:b", "x@1"};
	struct heap_next *n;
	unsigned i;

	for (i = 0; i < 5; i++)
		assert_int_equal(begin(names[i], &n), ERR_USAGE);
}

TEST(a_line_that_a_power_cut_left_goes_though_its_number_is_another_process_s)
{
	char text[2 * TMP_BYTES];
	struct heap_next *n;

	assert_int_equal(begin("shop", &n), 0);
	heap_next_end(n);
	snprintf(text, sizeof(text), "/lib/a.so\n%s/%d/shop@1/librecorder-heap.so\n", folder,
		 (int)getppid());
	write_text(text);
	heap_next_tidy(file, folder);
	assert_string_equal(read_text(), "/lib/a.so\n");
	heap_next_tidy(file, folder);
	assert_string_equal(read_text(), "/lib/a.so\n");
}

/* One recorder of several: its line is there until it ends, whatever the others do. */
static bool come_and_go(void)
{
	char line[2 * TMP_BYTES];
	bool ok = true;
	int round;

	for (round = 0; ok && round < ROUNDS; round++) {
		struct heap_next *n;

		ok = begin("shop", &n) == 0;
		snprintf(line, sizeof(line), "%s/%d/shop@", folder, (int)getpid());
		if (ok) {
			const char *text = read_text();

			ok = text && strstr(text, line) && strstr(text, "/lib/a.so\n");
			heap_next_end(n);
		}
		ok = ok && read_text() && !strstr(read_text(), line);
	}
	return ok;
}

TEST(recorders_that_rewrite_the_file_at_once_lose_no_line)
{
	struct heap_next *n;
	pid_t children[3];
	int i, status;

	assert_int_equal(begin("shop", &n), 0);
	heap_next_end(n);
	write_text("/lib/a.so\n");
	for (i = 0; i < 3; i++) {
		children[i] = fork();
		if (!children[i])
			_exit(come_and_go() ? 0 : 1);
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(read_text(), "/lib/a.so\n");
	unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_added_and_goes_with_the_file_that_was_not_there),
		cmocka_unit_test(lines_of_others_and_the_mode_stay_and_those_of_the_killed_go),
		cmocka_unit_test(a_recorder_that_is_killed_leaves_no_line),
		cmocka_unit_test(what_is_no_name_of_a_file_is_refused),
		cmocka_unit_test(
			a_line_that_a_power_cut_left_goes_though_its_number_is_another_process_s),
		cmocka_unit_test(recorders_that_rewrite_the_file_at_once_lose_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
