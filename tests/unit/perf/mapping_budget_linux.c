/*
 * The budget of mapping records that a process has. Pids from 5,000,000 on are beyond any that a
 * kernel gives. Every test begins with process INIT, mapped from /sbin/init at [0x1000, 0x3000).
 */
#include "source/perf/state_linux.h"

#include "base/log.h"
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INIT 5000000u
#define SH (INIT + 1)
#define SECOND 1000000000ull

static struct frames *frames;
static struct processes *processes;
static struct queue *queue;
static struct perf_state *state_of;

static void feed_fork(uint32_t pid, uint32_t parent_pid, uint64_t time_ns)
{
	struct perf_record r = {.kind = PERF_KIND_FORK, .time_ns = time_ns, .pid = pid, .tid = pid,
				.u.task = {parent_pid, parent_pid}};

	perf_state_feed(state_of, &r);
}

/* 0x2000 bytes; the file's inode is the length of its path. */
static void feed_mmap(uint32_t pid, const char *path, uint64_t start, uint64_t time_ns)
{
	struct perf_record r = {.kind = PERF_KIND_MMAP, .time_ns = time_ns, .pid = pid, .tid = pid};

	r.u.mmap.start = start;
	r.u.mmap.bytes = 0x2000;
	r.u.mmap.pgoff = 0x400;
	r.u.mmap.ino = strlen(path);
	r.u.mmap.path = path;
	perf_state_feed(state_of, &r);
}

static const char *file_at(uint32_t pid, uint64_t address)
{
	struct frame_ref ref = {0};

	perf_state_locate(state_of, perf_state_find(state_of, pid), address, false, &ref);
	return ref.object->name;
}

static void empty_queue(void)
{
	while (queue_peek(queue))
		queue_pop(queue);
}

static int open_with(struct log *log)
{
	struct perf_state_config cfg = {.log = log};
	struct perf_process *init;

	if (frames_new(&frames, NULL) || processes_new(&processes, NULL) ||
	    !(queue = queue_new(1 << 20)))
		return -1;
	cfg.frames = frames;
	cfg.processes = processes;
	cfg.queue = queue;
	if (perf_state_new(&cfg, &state_of, NULL))
		return -1;
	init = perf_state_add_process(state_of, INIT, 1, 50, "init");
	if (!init || !perf_state_add_thread(state_of, init, INIT))
		return -1;
	feed_mmap(INIT, "/sbin/init", 0x1000, 100);
	empty_queue();
	return 0;
}

static int open_state(void **state)
{
	(void)state;
	return open_with(NULL);
}

static int close_state(void **state)
{
	(void)state;
	perf_state_free(state_of);
	queue_free(queue);
	frames_free(frames);
	processes_free(processes);
	return 0;
}

/* Replaces the same 1,000 mappings, beside those of INIT; as many as given. */
static void flood_maps(uint32_t pid, uint32_t n, uint64_t time_ns)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		feed_mmap(pid, "/lib/x.so", 0x100000 + i % 1000 * 0x4000, time_ns);
		empty_queue();               /* so that the queue does not fill */
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
	assert_int_equal(open_with(log), 0);
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
	uint64_t here = (uint64_t)(uintptr_t)&file_at, begin_ns = os_now_ns();
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
		FRESH(process_that_is_calm_again_is_read_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
