#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The second process is this program again: "base/os_lock try PATH" ends with 10 when it gets
 * the lock (without giving it back), 11 when it is told that process PID has it, else with 12.
 */
enum { GOT_IT = 10, REFUSED = 11, ODD = 12 };

static const char *self;

static int try_lock(const char *path, const char *pid)
{
	struct os_file *lock = NULL;
	struct err err = {0};
	char sentence[64];
	int rc = os_lock(path, &lock, &err);

	snprintf(sentence, sizeof(sentence), "is held by process %s", pid);
	if (rc == 0)
		return GOT_IT;
	return rc == ERR_BUSY && strstr(err.text, sentence) ? REFUSED : ODD;
}

/* cmd.exe takes the outermost quotes off a command that has more than two; the shell needs none. */
static int in_second_process(const char *path)
{
	char host[16], command[2000];
	const char *outer;
	int status;

	os_host_text(host, sizeof(host));
	outer = strncmp(host, "Windows", 7) == 0 ? "\"" : "";
	snprintf(command, sizeof(command), "%s\"%s\" try \"%s\" %u%s", outer, self, path, os_pid(),
		 outer);
	status = system(command);
	return outer[0] ? status : status >> 8;
}

TEST(os_lock_excludes_a_second_process_and_tells_it_who_has_it)
{
	const char *path = tmp_path("held.lock");
	struct os_file *lock = NULL;

	assert_int_equal(os_lock(path, &lock, NULL), 0);
	assert_int_equal(in_second_process(path), REFUSED);
	os_close(lock);
	assert_int_equal(in_second_process(path), GOT_IT);
}

TEST(os_lock_of_a_process_that_ended_is_free)
{
	const char *path = tmp_path("left.lock");
	struct os_file *lock = NULL;

	assert_int_equal(in_second_process(path), GOT_IT);
	assert_true(os_exists(path));
	assert_int_equal(os_lock(path, &lock, NULL), 0);
	os_close(lock);
}

TEST(os_lock_excludes_a_second_one_in_this_process_too)
{
	const char *path = tmp_path("own.lock");
	struct os_file *lock = NULL, *second = NULL;

	assert_int_equal(os_lock(path, &lock, NULL), 0);
	assert_int_equal(os_lock(path, &second, NULL), ERR_BUSY);
	assert_null(second);
	os_close(lock);
	assert_int_equal(os_lock(path, &lock, NULL), 0);
	os_close(lock);
	os_close(NULL);
}

TEST(os_lock_in_a_missing_directory_says_where)
{
	struct os_file *lock = NULL;
	struct err err = {0};

	assert_int_equal(os_lock(tmp_path("no/dir/x.lock"), &lock, &err), ERR_IO);
	assert_non_null(strstr(err.text, "x.lock"));
	assert_null(lock);
}

static int lock_once(void *ctx)
{
	struct os_file *lock = NULL;
	int rc = os_lock(ctx, &lock, NULL);

	os_close(lock);
	return rc;
}

TEST(os_lock_without_memory_is_not_held)
{
	const char *path = tmp_path("walk.lock");

	assert_in_range(alloc_walk(lock_once, (void *)(uintptr_t)path), 2, 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_lock_excludes_a_second_process_and_tells_it_who_has_it),
		cmocka_unit_test(os_lock_of_a_process_that_ended_is_free),
		cmocka_unit_test(os_lock_excludes_a_second_one_in_this_process_too),
		cmocka_unit_test(os_lock_in_a_missing_directory_says_where),
		cmocka_unit_test(os_lock_without_memory_is_not_held),
	};

	if (argc == 4 && strcmp(argv[1], "try") == 0)
		_Exit(try_lock(argv[2], argv[3]));
	self = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
