/* A file of another program, mapped, that its owner cuts off. */
#include "base/os.h"
#include "source/host/mapped_linux.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

struct file {
	char path[32];
	int fd;
	struct mapped map;
};

/* A thread that left a handler by a jump is in it for ever, as far as this sanitizer knows. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_signal_unsafe=0";
}

/* Two pages: the words 0, 1, 2, … */
static struct file make(void)
{
	struct file f = {.path = "/tmp/mapped.XXXXXX"};
	uint64_t words[2 * PAGE / 8];
	uint32_t i;

	for (i = 0; i < 2 * PAGE / 8; i++)
		words[i] = i;
	f.fd = mkstemp(f.path);
	assert_true(f.fd >= 0);
	assert_int_equal(pwrite(f.fd, words, sizeof(words), 0), sizeof(words));
	assert_int_equal(mapped_open(&f.map, f.fd, sizeof(words), NULL), 0);
	return f;
}

static void end(struct file *f)
{
	mapped_close(&f->map);
	mapped_close(&f->map);
	close(f->fd);
	unlink(f->path);
}

TEST(words_are_read_as_they_change)
{
	struct file f = make();
	uint64_t words[2], news = 77;

	assert_true(mapped_read(&f.map, words, PAGE + 8, sizeof(words)));
	assert_int_equal(words[0], PAGE / 8 + 1);
	assert_int_equal(words[1], PAGE / 8 + 2);
	assert_int_equal(pwrite(f.fd, &news, 8, PAGE + 8), 8);
	assert_true(mapped_read(&f.map, words, PAGE + 8, sizeof(words)));
	assert_int_equal(words[0], 77);
	end(&f);
}

TEST(what_is_not_mapped_is_not_read)
{
	struct file f = make();
	uint64_t words[2];

	assert_true(mapped_read(&f.map, words, 2 * PAGE - 8, 8));
	assert_false(mapped_read(&f.map, words, 2 * PAGE - 8, 16));
	assert_false(mapped_read(&f.map, words, 2 * PAGE, 8));
	assert_false(mapped_read(&f.map, words, SIZE_MAX - 7, 16));
	assert_false(mapped_read(&f.map, words, 4, 8));
	end(&f);
	assert_false(mapped_read(&f.map, words, 0, 8));
}

TEST(a_file_that_was_cut_off_ends_a_reading_and_nothing_else)
{
	struct file f = make();
	uint64_t word = 0;
	unsigned i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(ftruncate(f.fd, PAGE), 0);
		assert_false(mapped_read(&f.map, &word, PAGE, 8));
		assert_true(mapped_read(&f.map, &word, 8, 8));
		assert_int_equal(word, 1);
		/* As long as before, and empty there. */
		assert_int_equal(ftruncate(f.fd, 2 * PAGE), 0);
		assert_true(mapped_read(&f.map, &word, PAGE + 8, 8));
		assert_int_equal(word, 0);
	}
	end(&f);
}

struct reader {
	const struct file *file;
	uint32_t wrong;
};

static void read_many(void *ctx)
{
	struct reader *r = ctx;
	uint64_t word;
	unsigned i;

	for (i = 0; i < 20000; i++)
		if (mapped_read(&r->file->map, &word, PAGE + 8, 8))
			r->wrong += word != 0 && word != PAGE / 8 + 1;
}

TEST(two_threads_read_while_it_is_cut_off)
{
	struct file f = make();
	struct reader readers[2] = {{.file = &f}, {.file = &f}};
	struct os_thread *threads[2];
	unsigned i;

	for (i = 0; i < 2; i++)
		assert_int_equal(
			os_thread_start("reader", read_many, &readers[i], &threads[i], NULL), 0);
	for (i = 0; i < 200; i++) {
		assert_int_equal(ftruncate(f.fd, PAGE), 0);
		assert_int_equal(ftruncate(f.fd, 2 * PAGE), 0);
	}
	for (i = 0; i < 2; i++)
		os_thread_join(threads[i]);
	assert_int_equal(readers[0].wrong + readers[1].wrong, 0);
	end(&f);
}

static int status_of_child(const struct file *f, bool sent)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (sent)
			kill(getpid(), SIGBUS);
		else if (ftruncate(f->fd, PAGE) == 0)
			_exit((int)*(volatile const unsigned char *)(f->map.at + PAGE));
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(another_bus_error_ends_the_process)
{
	struct file f = make();
	int done = status_of_child(&f, false), sent = status_of_child(&f, true);

	assert_true(WIFSIGNALED(done) && WTERMSIG(done) == SIGBUS);
	assert_true(WIFSIGNALED(sent) && WTERMSIG(sent) == SIGBUS);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_read_as_they_change),
		cmocka_unit_test(what_is_not_mapped_is_not_read),
		cmocka_unit_test(a_file_that_was_cut_off_ends_a_reading_and_nothing_else),
		cmocka_unit_test(two_threads_read_while_it_is_cut_off),
		cmocka_unit_test(another_bus_error_ends_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
