/* A FIFO that nobody writes stands for a file that does not answer. */
#include "source/host/answers_linux.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_dir(void)
{
	static char dir[] = "/tmp/recorder_answers_XXXXXX";
	int fd = mkdtemp(dir) ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	assert_true(fd >= 0);
	rmdir(dir);                          /* it lives as long as fd; nothing can be made in it */
	return fd;
}

TEST(what_answers_is_given_out)
{
	char text[OS_ARGUMENTS_MAX + 1];
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), none = open_dir();
	double total = 0, available = 0;
	struct answers *a = NULL;
	struct text io;

	assert_int_equal(answers_open(&a, NULL), 0);
	assert_true(answers_arguments(a, self, 1, text));
	assert_non_null(strstr(text, "answers_linux"));
	assert_true(answers_file(a, self, 1, "comm", &io));
	assert_true(io.end - io.at > 0);
	assert_false(answers_file(a, none, 2, "comm", &io));
	assert_ptr_equal(io.at, io.end);
	assert_false(answers_arguments(a, none, 2, text));
	assert_string_equal(text, "");
	assert_true(answers_space(a, "/", &total, &available));
	assert_true(total >= available && total > 0);
	assert_false(answers_space(a, "/nowhere", &total, &available));
	assert_false(answers_note(a, text, sizeof(text)));
	answers_close(a);
	answers_close(NULL);
	close(self);
	close(none);
}

TEST(who_does_not_answer_is_left_alone_and_said)
{
	char dir[] = "/tmp/recorder_answers_XXXXXX", path[60], note[200];
	struct answers *a = NULL;
	struct text text;
	int fd, writer;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/io", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(answers_open(&a, NULL), 0);
	while (!answers_note(a, note, sizeof(note)))
		assert_false(answers_file(a, fd, 1, "io", &text));
	assert_non_null(strstr(note, "1 of at most 4 threads that read files of processes"));
	assert_false(answers_file(a, fd, 1, "io", &text));
	answers_close(a);
	writer = open(path, O_RDWR | O_CLOEXEC);     /* lets the reader go */
	unlink(path);
	rmdir(dir);
	close(writer);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_answers_is_given_out),
		cmocka_unit_test(who_does_not_answer_is_left_alone_and_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
