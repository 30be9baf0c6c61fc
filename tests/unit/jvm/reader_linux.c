/*
 * The process that finds the entries of performance data: they are those that are found here, and a
 * file that ends it is left alone, while others are read.
 */
#include "base/os.h"
#include "source/host/mapped_linux.h"
#include "source/jvm/values.h"
#include "tests/unit/dotnet/child_linux.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define YOUNG "tests/fuzz/corpus/fuzz_jvm_hsperf/young"
#define DIRECTORY "/tmp/hsperfdata_recorder_reader"
#define WAIT_NS (6 * NS_PER_SEC)
#define CHANGED_AT 16                        /* in the head: when an entry was added */
#define INVOCATIONS_AT 192

TEST(entries_are_those_that_are_found_here)
{
	static struct hsperf_entry here[HSPERF_ENTRIES_MAX];
	struct mapped map = {0};
	struct buf bytes = {0};
	struct jvm_reader *r;
	struct hsperf_file file;
	int fd = open(YOUNG, O_RDONLY), empty = open("/dev/null", O_RDONLY);
	uint64_t cpu_ns;

	assert_int_equal(os_load(YOUNG, 4096, &bytes, NULL), 0);
	assert_int_equal(mapped_open(&map, fd, bytes.len, NULL), 0);
	assert_int_equal(jvm_reader_new(&r, NULL), 0);
	assert_int_equal(jvm_reader_ask(r, empty, map.bytes, NULL), 0);
	assert_int_equal(jvm_reader_take(r, &map, WAIT_NS, &file, &cpu_ns, NULL), ERR_NOT_FOUND);
	assert_int_equal(jvm_reader_ask(r, fd, map.bytes, NULL), 0);
	assert_int_equal(jvm_reader_take(r, &map, WAIT_NS, &file, &cpu_ns, NULL), 0);
	assert_int_equal(file.nentries, 6);
	assert_int_equal(hsperf_entries(bytes.data, bytes.len, here), 6);
	assert_memory_equal(file.entries, here, 6 * sizeof(here[0]));
	assert_int_equal(file.nbytes, bytes.len);
	assert_memory_equal(file.bytes, bytes.data, bytes.len);
	jvm_reader_free(r);
	assert_int_equal(last_child(), 0);
	mapped_close(&map);
	buf_free(&bytes);
	close(empty);
	close(fd);
}

/* ---- two JVMs: this process and a child ------------------------------------------------------ */

static struct processes *processes;
static struct os_wake *wake;
static struct jvm_table table;
static pid_t other;

static void write_file(uint32_t pid, long at, uint64_t value)
{
	struct buf bytes = {0};
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), DIRECTORY "/%u", pid);
	f = fopen(path, at ? "r+b" : "wb");
	assert_non_null(f);
	assert_int_equal(os_load(YOUNG, 4096, &bytes, NULL), 0);
	if (!at)
		fwrite(bytes.data, bytes.len, 1, f);
	fseek(f, at, SEEK_SET);
	if (at)
		fwrite(&value, sizeof(value), 1, f);
	fclose(f);
	buf_free(&bytes);
}

static int begin(void **state)
{
	(void)state;
	other = fork();
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(mkdir(DIRECTORY, 0700) == 0 || errno == EEXIST);
	write_file(os_pid(), 0, 0);
	write_file((uint32_t)other, 0, 0);
	wake = os_wake_new();
	assert_int_equal(processes_new(&processes, NULL), 0);
	assert_int_equal(jvm_table_open(&table, processes, NULL, wake, NULL, NULL), 0);
	table.wait_ns = WAIT_NS;
	for (jvm_table_look(&table, os_now_ns()); table.scan.now; os_sleep_ns(NS_PER_MS))
		jvm_table_look(&table, os_now_ns());
	return 0;
}

static int end(void **state)
{
	char path[64];

	(void)state;
	jvm_table_close(&table);
	os_wake_free(wake);
	processes_free(processes);
	snprintf(path, sizeof(path), DIRECTORY "/%d", (int)other);
	unlink(path);
	snprintf(path, sizeof(path), DIRECTORY "/%u", os_pid());
	unlink(path);
	rmdir(DIRECTORY);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return 0;
}

/* Others may run on this machine. */
static struct jvm *any_jvm_of(uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < table.n && table.all[i].pid != pid; i++)
		;
	assert_true(i < table.n);
	return &table.all[i];
}

static struct jvm *jvm_of(uint32_t pid)
{
	assert_true(any_jvm_of(pid)->ready);
	return any_jvm_of(pid);
}

static void read_again(struct jvm *j)
{
	mapped_close(&j->map);
	j->ready = false;
	j->next_try_ns = 0;
	table.nready--;
}

TEST(a_file_that_ends_its_reader_is_left_alone_and_others_are_read)
{
	const uint64_t now = os_now_ns();
	pid_t pid = last_child();

	assert_true(pid && pid != other);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	table.wait_ns = 0;
	read_again(jvm_of((uint32_t)other));
	jvm_table_look(&table, now);             /* nobody waits for the answer */
	assert_int_equal(table.asked, other);
	assert_int_equal(kill(pid, SIGKILL), 0);
	table.wait_ns = WAIT_NS;
	read_again(jvm_of(os_pid()));
	jvm_table_look(&table, now);
	assert_int_equal(table.asked, 0);
	assert_false(jvm_of(os_pid())->failed);
	assert_int_not_equal(last_child(), pid);
	jvm_table_look(&table, now + 59 * NS_PER_SEC);
	assert_false(any_jvm_of((uint32_t)other)->ready);
	jvm_table_look(&table, now + 60 * NS_PER_SEC);
	assert_true(jvm_of((uint32_t)other)->failed);
}

static void note_value(void *ctx, const struct event *e)
{
	*(double *)ctx = e->flags & EVENT_FLAG_ABSENT ? -1 : e->value;
}

static double poll_value(struct jvm_values *values, uint64_t now_ns)
{
	double value = -2;

	jvm_values_poll(values, &table, now_ns, note_value, &value);
	return value;
}

TEST(numbers_are_read_without_the_process_until_an_entry_is_added)
{
	const uint64_t now = os_now_ns() + NS_PER_SEC;
	struct needs *needs = calloc(1, sizeof(*needs));
	struct jvm_values *values;
	char name[64];

	assert_non_null(needs);
	snprintf(name, sizeof(name), "JVM:sun.gc.collector.0.invocations:pid=%u", os_pid());
	assert_int_equal(needs_counter(needs, name, NS_PER_SEC, false, NULL), 0);
	assert_int_equal(jvm_values_new(needs, &values, NULL), 0);
	table.take = jvm_values_take;
	table.take_ctx = values;
	jvm_table_look(&table, now);
	assert_true(poll_value(values, now) == 2);
	assert_int_equal(kill(last_child(), SIGKILL), 0);
	waitpid(last_child(), NULL, 0);
	write_file(os_pid(), INVOCATIONS_AT, 77);
	jvm_table_look(&table, now + NS_PER_SEC);
	assert_true(poll_value(values, now + NS_PER_SEC) == 77);
	assert_int_equal(last_child(), other);
	write_file(os_pid(), CHANGED_AT, 1);
	jvm_table_look(&table, now + 2 * NS_PER_SEC);
	assert_true(poll_value(values, now + 2 * NS_PER_SEC) == 77);
	assert_int_not_equal(last_child(), other);
	jvm_values_free(values);
	free(needs);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_those_that_are_found_here),
		cmocka_unit_test_setup_teardown(
			a_file_that_ends_its_reader_is_left_alone_and_others_are_read, begin, end),
		cmocka_unit_test_setup_teardown(
			numbers_are_read_without_the_process_until_an_entry_is_added, begin, end),
	};

	if (argc == 2 && !strcmp(argv[1], JVM_READER_WORD))
		return jvm_reader_serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
