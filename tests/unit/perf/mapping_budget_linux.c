/* The budget of mapping records that a process has. */
#include "source/perf/state_linux.h"

#include "tests/support/perf_state_lab_linux.h"
#include "tests/support/tmp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Replaces the same 1,000 mappings, beside those of INIT; as many as given. */
static void flood_maps(uint32_t pid, uint32_t n, uint64_t time_ns)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		feed_mmap(pid, "/lib/x.so", 0x100000 + i % 1000 * 0x4000, time_ns);
		events(false);               /* so that the queue does not fill */
	}
}

/* 20,000 changes at once are a start; the next ones are skipped, of this process only. */
TEST(process_that_maps_without_end_is_skipped)
{
	const char *path = tmp_path("maps.log");
	struct log *log = NULL;
	struct buf text = {0};
	uint32_t pid;

	close_state(NULL);
	os_remove(path, NULL);
	assert_int_equal(log_open(path, &log, NULL), 0);
	assert_int_equal(open_with(NULL, log), 0);
	feed_fork(SH, INIT, 200);
	flood_maps(INIT, 19999, SECOND);              /* its first mapping was long ago */
	feed_mmap(INIT, "/lib/last.so", 0x4000, SECOND);
	assert_int_equal(perf_state_skipped(state_of, &pid), 0);
	feed_mmap(INIT, "/lib/late.so", 0x8000, SECOND);
	feed_mmap(INIT, "/lib/late.so", 0x100000, SECOND);
	flood_maps(INIT, 98, SECOND);
	assert_int_equal(perf_state_skipped(state_of, &pid), 100);
	assert_int_equal(pid, INIT);
	assert_string_equal(file_at(INIT, 0x1500), "init");
	assert_string_equal(file_at(INIT, 0x4000), "last.so");
	assert_string_equal(file_at(INIT, 0x8000), "?");
	assert_string_equal(file_at(INIT, 0x100000), "?");    /* not what was there before */
	assert_string_equal(file_at(INIT, 0x100000 + 500 * 0x4000), "x.so");
	feed_mmap(SH, "/lib/sh.so", 0x8000, SECOND);
	assert_string_equal(file_at(SH, 0x8000), "sh.so");
	log_close(log);
	assert_int_equal(os_load(path, 100000, &text, NULL), 0);
	assert_non_null(strstr(buf_text(&text), "init (5000000) changes its executable mappings"));
	assert_null(strstr(strstr(buf_text(&text), "changes its") + 1, "changes its"));
	buf_free(&text);
	os_remove(path, NULL);
}

/* 2,000 changes a second for ever are followed; of 3,000 a second, the first 20 s. */
TEST(process_that_maps_within_its_budget_is_followed)
{
	uint32_t i, pid;

	for (i = 0; i < 100; i++)
		flood_maps(INIT, 2000, SECOND * (i + 1));
	assert_int_equal(perf_state_skipped(state_of, &pid), 0);
	for (i = 0; i < 100; i++)
		flood_maps(INIT, 3000, SECOND * (i + 200));
	assert_in_range(perf_state_skipped(state_of, &pid), 230000, 250000);
}

TEST(child_of_a_process_that_is_skipped_is_skipped_too)
{
	uint32_t pid;

	flood_maps(INIT, 20001, SECOND);
	feed_fork(SH, INIT, SECOND);
	feed_mmap(SH, "/lib/sh.so", 0x8000, SECOND);
	assert_string_equal(file_at(SH, 0x8000), "?");
	assert_in_range(perf_state_skipped(state_of, &pid), 1, 10);
	assert_int_equal(pid, SH);
}

/* Its first mapping is skipped; a library that is mapped when it is calm again names nothing. */
TEST(program_that_is_executed_in_a_flood_has_its_own_name)
{
	flood_maps(INIT, 20001, SECOND);
	feed_comm(INIT, INIT, "prog", true, SECOND);
	feed_mmap(INIT, "/bin/program", 0x8000, SECOND);
	assert_string_equal(file_at(INIT, 0x8000), "?");
	feed_mmap(INIT, "/lib/x.so", 0x8000, 2 * SECOND + MAPPINGS_CALM_NS);
	assert_string_equal(file_at(INIT, 0x8000), "x.so");
	assert_string_equal(name_of(INIT), "program");
}

/* Another thread reads /proc: wait until it has read what stands at an address, 10 s at most. */
static const char *await_file(uint32_t pid, uint64_t address, const char *wanted, uint64_t time_ns)
{
	const char *file = "none";
	unsigned i;

	for (i = 0; i < 10000 && strcmp(file, wanted) != 0; i++) {
		if (i)
			os_sleep_ns(NS_PER_MS);
		perf_state_reading(state_of, pid, pid, time_ns);
		perf_state_look(state_of, time_ns);
		if (perf_state_thread(state_of, pid, pid, time_ns))
			file = file_at(pid, address);
	}
	return file;
}

/* This process itself, so that there is something to read. */
TEST(process_that_is_calm_again_is_read_anew)
{
	uint64_t here = (uint64_t)(uintptr_t)&file_at, begin_ns = os_now_ns() + SECOND;
	uint32_t me = (uint32_t)getpid(), pid;

	assert_string_equal(await_file(me, here, "mapping_budget_linux", begin_ns),
			    "mapping_budget_linux");
	feed_mmap(me, "/lib/x.so", 0x100000, begin_ns);
	flood_maps(me, 20001, begin_ns);
	feed_mmap(me, "/lib/x.so", here & ~UINT64_C(0xfff), begin_ns);
	assert_string_equal(file_at(me, here), "?");
	assert_in_range(perf_state_skipped(state_of, &pid), 1, 10);
	perf_state_thread(state_of, me, me, begin_ns + MAPPINGS_CALM_NS - SECOND);
	assert_string_equal(file_at(me, here), "?");
	assert_string_equal(await_file(me, here, "mapping_budget_linux",
				       begin_ns + MAPPINGS_CALM_NS), "mapping_budget_linux");
	assert_string_equal(file_at(me, 0x100000), "?");
	feed_mmap(me, "/lib/y.so", 0x100000, begin_ns + MAPPINGS_CALM_NS);
	assert_string_equal(file_at(me, 0x100000), "y.so");
	assert_in_range(perf_state_skipped(state_of, &pid), 1, 10);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, open_state, close_state)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(process_that_maps_without_end_is_skipped),
		FRESH(process_that_maps_within_its_budget_is_followed),
		FRESH(child_of_a_process_that_is_skipped_is_skipped_too),
		FRESH(program_that_is_executed_in_a_flood_has_its_own_name),
		FRESH(process_that_is_calm_again_is_read_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
