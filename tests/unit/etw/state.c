/* Processes, threads, files and volumes of a trace over time, from hand-made records. */
#include "source/etw/state.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define THREAD_GUID "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"
#define FILE_GUID "90cbdc39-4a3e-11d1-84f4-0000f80464e3"
#define VOLUME_GUID "9b79ee91-b5fd-41c0-a243-4248e266e9d0"

enum { START = 1, STOP = 2, DCSTART = 3, DCSTOP = 4, DEFUNCT = 39 };
enum { NAME = 0, CREATE = 32, DELETE = 35, RUNDOWN = 36 };

static struct etw_state *state_of;

static int begin(void **state)
{
	(void)state;
	return etw_state_new(&state_of, NULL);
}

static int end(void **state)
{
	(void)state;
	etw_state_free(state_of);
	return 0;
}

static void learn(struct etw_record record, int64_t ticks)
{
	record.ticks = ticks;
	etw_state_learn(state_of, &record, etw_class_find(&record));
}

static void process(uint8_t opcode, int64_t ticks, uint32_t pid, const char *image, int32_t exit)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0, 8);
	etw_int(&b, pid, 4);
	etw_int(&b, 1, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, (uint32_t)exit, 4);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 4);
	etw_int(&b, 0, 4);                           /* no SID */
	etw_text8(&b, image);
	etw_text16(&b, "a b");
	learn(etw_classic(ETW_PROCESS_GUID, opcode, 4, &b), ticks);
}

static void thread(uint8_t opcode, int64_t ticks, uint32_t tid, uint32_t pid)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, pid, 4);
	etw_int(&b, tid, 4);
	learn(etw_classic(THREAD_GUID, opcode, 3, &b), ticks);
}

static void file(uint8_t opcode, int64_t ticks, uint64_t key, const char *path)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, key, 8);
	etw_text16(&b, path);
	learn(etw_classic(FILE_GUID, opcode, 2, &b), ticks);
}

static void volume(const char *nt, const char *dos)
{
	struct etw_bytes b = {.n = 0};

	etw_text16(&b, nt);
	etw_text16(&b, dos);
	learn(etw_classic(VOLUME_GUID, 35, 2, &b), 0);
}

static uint32_t pid_of(uint32_t tid, int64_t ticks)
{
	const struct etw_thread *t = etw_state_thread(state_of, tid, ticks);

	return t ? t->pid : ETW_ID_UNKNOWN;
}

/* ---- processes ------------------------------------------------------------------------------- */

TEST(process_number_given_again_means_the_one_of_that_time)
{
	const struct etw_process *p;

	process(START, 1000, 50, "old.exe", 259);
	process(STOP, 2000, 50, "old.exe", -7);
	process(START, 3000, 50, "new.exe", 259);
	p = etw_state_process(state_of, 50, 1500);
	assert_string_equal(p->image, "old.exe");
	assert_string_equal(p->command_line, "a b");
	assert_int_equal(p->life.from, 1000);
	assert_int_equal(p->life.until, 2000);
	assert_true(p->has_exit);
	assert_int_equal(p->exit_code, -7);
	assert_string_equal(etw_state_process(state_of, 50, 3000)->image, "new.exe");
	/* Still ending. */
	assert_string_equal(etw_state_process(state_of, 50, 2500)->image, "old.exe");
	assert_null(etw_state_process(state_of, 50, 999));
}

TEST(process_of_a_snapshot_was_there_all_the_time)
{
	process(DCSTART, 100, 60, "a.exe", 259);
	process(DCSTOP, 9000, 60, "a.exe", 259);
	process(DCSTOP, 9000, 61, "b.exe", 259);
	process(STOP, 5000, 62, "c.exe", 0);
	process(DEFUNCT, 100, 63, "d.exe", 0);
	assert_string_equal(etw_state_process(state_of, 60, 0)->image, "a.exe");
	assert_string_equal(etw_state_process(state_of, 61, 0)->image, "b.exe");
	assert_int_equal(etw_state_process(state_of, 61, 0)->life.until, ETW_EVER);
	assert_int_equal(etw_state_process(state_of, 62, 0)->life.until, 5000);
	assert_int_equal(etw_state_process(state_of, 63, 0)->life.until, 100);
	/* The snapshot of the end is the one of the start again. */
	assert_ptr_equal(etw_state_process(state_of, 60, 9001),
			 etw_state_process(state_of, 60, 0));
}

TEST(process_without_a_record_is_added_when_it_is_needed)
{
	struct etw_process *p = etw_state_need_process(state_of, 70, 5);

	assert_non_null(p);
	assert_null(p->image);
	assert_ptr_equal(etw_state_need_process(state_of, 70, 6), p);
}

TEST(cut_process_record_is_not_believed)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0, 8);
	etw_int(&b, 50, 4);
	learn(etw_classic(ETW_PROCESS_GUID, START, 4, &b), 1);
	assert_null(etw_state_process(state_of, 50, 1));
}

/* ---- threads --------------------------------------------------------------------------------- */

TEST(thread_number_given_again_belongs_to_the_process_of_that_time)
{
	thread(DCSTART, 100, 7, 50);
	thread(STOP, 2000, 7, 50);
	thread(START, 3000, 7, 60);
	thread(DCSTOP, 9000, 7, 60);
	assert_int_equal(pid_of(7, 0), 50);
	assert_int_equal(pid_of(7, 2500), 50);       /* it still runs after its end was recorded */
	assert_int_equal(pid_of(7, 3000), 60);
	assert_int_equal(pid_of(7, 99999), 60);
	assert_int_equal(pid_of(8, 0), ETW_ID_UNKNOWN);
}

TEST(thread_whose_end_was_lost_ends_when_its_number_is_given_again)
{
	thread(START, 1000, 7, 50);
	thread(START, 2000, 7, 60);
	thread(DCSTOP, 3000, 7, 70);
	assert_int_equal(pid_of(7, 1999), 50);
	assert_int_equal(pid_of(7, 2500), 60);
	assert_int_equal(pid_of(7, 3001), 70);
}

TEST(threads_of_the_end_are_known_from_the_start)
{
	thread(DCSTOP, 9000, 7, 50);
	thread(STOP, 5000, 8, 50);
	assert_int_equal(pid_of(7, 1), 50);
	assert_int_equal(pid_of(8, 1), 50);
}

TEST(needed_thread_is_that_of_the_process)
{
	struct etw_thread *t;

	thread(DCSTART, 100, 7, 50);
	t = etw_state_need_thread(state_of, 7, 50, 200);
	assert_int_equal(t->pid, 50);
	assert_int_equal(etw_state_need_thread(state_of, 7, 60, 200)->pid, 60);
	assert_ptr_equal(etw_state_need_thread(state_of, 7, 50, 200), t);
}

/* PerfView wrote ImageID events in the name of process 0 before the list of threads came. */
TEST(an_assumed_thread_gives_way_to_the_one_that_an_event_names)
{
	assert_int_equal(etw_state_need_thread(state_of, 7, 0, 50)->pid, 0);
	assert_int_equal(pid_of(7, 60), 0);
	thread(DCSTART, 100, 7, 50);
	assert_int_equal(pid_of(7, 60), 50);
	assert_int_equal(etw_state_need_thread(state_of, 7, 60, 200)->pid, 60);
	assert_int_equal(pid_of(7, 210), 50);
}

/* ---- names of files -------------------------------------------------------------------------- */

TEST(file_has_the_name_of_that_time)
{
	file(CREATE, 1000, 5, "\\a");
	file(DELETE, 2000, 5, "\\a");
	file(CREATE, 3000, 5, "\\b");
	file(RUNDOWN, 9000, 5, "\\b");
	assert_string_equal(etw_state_file(state_of, 5, 999), "\\a");     /* told behind its use */
	assert_string_equal(etw_state_file(state_of, 5, 1000), "\\a");
	assert_string_equal(etw_state_file(state_of, 5, 2500), "\\a");    /* still being written */
	assert_null(etw_state_file(state_of, 7, 2500));
	assert_string_equal(etw_state_file(state_of, 5, 3000), "\\b");
}

TEST(name_that_is_told_at_the_end_was_there_before)
{
	file(RUNDOWN, 9000, 5, "\\a");
	file(DELETE, 4000, 6, "\\gone");
	file(NAME, 6000, 6, "\\next");
	assert_string_equal(etw_state_file(state_of, 5, 1), "\\a");
	assert_string_equal(etw_state_file(state_of, 6, 1), "\\gone");
	assert_string_equal(etw_state_file(state_of, 6, 5000), "\\gone");
	assert_string_equal(etw_state_file(state_of, 6, 6001), "\\next");
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void path_is(const char *path, const char *expected)
{
	char out[64];

	assert_int_equal(etw_state_path(state_of, path, out, sizeof(out)), strlen(expected));
	assert_string_equal(out, expected);
}

TEST(first_volume_that_fits_replaces_the_kernels_prefix)
{
	char cut[6];

	volume("\\Device\\HarddiskVolume2\\", "C:\\");
	volume("\\Device\\HarddiskVolume2\\", "X:\\");
	volume("\\Device\\Mup\\", "\\\\");
	path_is("\\device\\HARDDISKVOLUME2\\Windows\\a.dll", "C:\\Windows\\a.dll");
	path_is("\\Device\\HarddiskVolume22\\a", "\\Device\\HarddiskVolume22\\a");
	path_is("\\Device\\Mup\\host\\a", "\\\\host\\a");
	path_is("\\Windows\\a", "\\Windows\\a");
	path_is("", "");
	assert_int_equal(etw_state_path(state_of, "\\Device\\Mup\\host", cut, sizeof(cut)), 5);
	assert_string_equal(cut, "\\\\hos");
}

TEST(volumes_have_a_ceiling)
{
	size_t bytes = 0;
	char nt[32];
	uint32_t i;

	for (i = 0; i < ETW_VOLUMES_MAX + 2; i++) {
		snprintf(nt, sizeof(nt), "\\V%u\\", (unsigned)i);
		volume(nt, "C:\\");
	}
	snprintf(nt, sizeof(nt), "\\V%u\\", ETW_VOLUMES_MAX - 1);
	path_is(nt, "C:\\");
	snprintf(nt, sizeof(nt), "\\V%u\\", ETW_VOLUMES_MAX);
	path_is(nt, nt);
	assert_int_equal(etw_state_refused(state_of, &bytes), 2);
	assert_int_not_equal(bytes, 0);
}

/* ---- garbage collections --------------------------------------------------------------------- */

static bool gc_start(uint16_t version, uint32_t pid, uint32_t count)
{
	struct etw_bytes b = {.n = 0};
	struct etw_record r;

	etw_int(&b, count, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 9, 2);
	if (version == 2)
		etw_int(&b, 0, 8);
	r = etw_manifest(ETW_RUNTIME_GUID, 1, version, &b);
	r.pid = pid;
	return etw_state_gc_twin(state_of, &r, etw_class_find(&r));
}

TEST(second_version_of_a_gc_start_is_a_twin)
{
	assert_false(gc_start(1, 50, 1));
	assert_true(gc_start(2, 50, 1));
	assert_false(gc_start(1, 60, 1));
	assert_false(gc_start(1, 50, 2));
	assert_true(gc_start(2, 50, 2));
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void utf16_is(const uint16_t *units, size_t n, const char *expected)
{
	uint8_t bytes[32];
	char out[32];
	size_t i;

	for (i = 0; i < n; i++) {
		bytes[2 * i] = (uint8_t)units[i];
		bytes[2 * i + 1] = (uint8_t)(units[i] >> 8);
	}
	assert_int_equal(etw_utf16(bytes, n, out, sizeof(out)), strlen(expected));
	assert_string_equal(out, expected);
}

TEST(utf16_becomes_utf8)
{
	uint8_t euro[4] = {0xAC, 0x20, 0xAC, 0x20};
	char cut[6];

	utf16_is((const uint16_t[]){'a', 0xE9, 0x20AC, 0xD83D, 0xDE00}, 5,
		 "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	utf16_is((const uint16_t[]){0xD83D, 'x', 0xDE00}, 3, "\xEF\xBF\xBDx\xEF\xBF\xBD");
	utf16_is((const uint16_t[]){'a', 0, 'b'}, 3, "a");
	utf16_is((const uint16_t[]){'a', 'b', 'c', 'd', 'e', 'f', 'g', 0, 'h'}, 9, "abcdefg");
	utf16_is((const uint16_t[]){1, 0x7F, 'c', 0x80, 'e', 'f', 0x17F, 'h', 'i'}, 9,
		 "\x01\x7F" "c\xC2\x80" "ef\xC5\xBFhi");
	assert_int_equal(etw_utf16(euro, 2, cut, sizeof(cut)), 3);   /* whole characters */
	assert_int_equal(etw_utf16(euro, 2, cut, 1), 0);
	assert_int_equal(etw_utf16((const uint8_t *)"1\0002\0003\0004\0005", 5, cut, 5), 4);
	assert_string_equal(cut, "1234");
}

TEST(equal_texts_are_kept_once)
{
	struct etw_texts *t = etw_state_texts(state_of);
	const char *a = etw_texts_keep(t, "abc", 3);

	assert_ptr_equal(etw_texts_keep(t, "abcd", 3), a);
	assert_ptr_not_equal(etw_texts_keep(t, "ab", 2), a);
	assert_string_equal(a, "abc");
}

static int open_and_close(void *ctx)
{
	struct etw_state *s = NULL;
	int rc = etw_state_new(&s, NULL);

	(void)ctx;
	etw_state_free(s);
	return rc;
}

TEST(lack_of_memory_is_an_error_at_the_start)
{
	assert_in_range(alloc_walk(open_and_close, NULL), 5, 20);
}

#define IN_LAB(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(process_number_given_again_means_the_one_of_that_time),
		IN_LAB(process_of_a_snapshot_was_there_all_the_time),
		IN_LAB(process_without_a_record_is_added_when_it_is_needed),
		IN_LAB(cut_process_record_is_not_believed),
		IN_LAB(thread_number_given_again_belongs_to_the_process_of_that_time),
		IN_LAB(thread_whose_end_was_lost_ends_when_its_number_is_given_again),
		IN_LAB(threads_of_the_end_are_known_from_the_start),
		IN_LAB(needed_thread_is_that_of_the_process),
		IN_LAB(an_assumed_thread_gives_way_to_the_one_that_an_event_names),
		IN_LAB(file_has_the_name_of_that_time),
		IN_LAB(name_that_is_told_at_the_end_was_there_before),
		IN_LAB(first_volume_that_fits_replaces_the_kernels_prefix),
		IN_LAB(volumes_have_a_ceiling),
		IN_LAB(second_version_of_a_gc_start_is_a_twin),
		IN_LAB(utf16_becomes_utf8),
		IN_LAB(equal_texts_are_kept_once),
		cmocka_unit_test(lack_of_memory_is_an_error_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
