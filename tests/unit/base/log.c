#include "base/log.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The log's text without the 25 characters of time before each line. */
static void read_log(const char *path, struct buf *out)
{
	struct buf text = {0};
	char *line, *end;

	assert_int_equal(os_load(path, 4 << 20, &text, NULL), 0);
	for (line = text.data; line && *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_true(end - line >= 25);
		assert_true(line[10] == 'T' && line[23] == 'Z' && line[24] == ' ');
		buf_put(out, line + 25, (size_t)(end - line) - 24);
	}
	buf_free(&text);
}

static void assert_log(const char *path, const char *expected)
{
	struct buf text = {0};

	read_log(path, &text);
	assert_string_equal(buf_text(&text), expected);
	buf_free(&text);
}

TEST(log_lines_reach_the_file_when_drained_in_order)
{
	const char *path = tmp_path("order.log");
	struct log *log = NULL;
	struct os_file_info info;

	assert_int_equal(log_open(path, &log, NULL), 0);
	log_line(log, LOG_INFO, "recording at %d Hz", 99);
	log_line(log, LOG_WARN, "slow");
	log_line(log, LOG_ERROR, "gone");
	assert_int_equal(os_path_info(path, &info, NULL), 0);
	assert_true(info.size_bytes == 0);
	log_drain(log);
	assert_log(path, "recording at 99 Hz\nwarning: slow\nerror: gone\n");
	log_close(log);
}

TEST(log_is_appended_to_and_closing_drains_it)
{
	const char *path = tmp_path("append.log");
	struct log *log = NULL;

	assert_int_equal(log_open(path, &log, NULL), 0);
	log_line(log, LOG_INFO, "first run");
	log_close(log);
	assert_int_equal(log_open(path, &log, NULL), 0);
	log_line(log, LOG_INFO, "second run");
	log_close(log);
	assert_log(path, "first run\nsecond run\n");
}

TEST(a_log_file_of_16_mb_is_kept_as_the_old_one_and_a_new_one_is_begun)
{
	const char *path = tmp_path("large.log");
	struct os_file *file = NULL;
	struct os_file_info info;
	struct log *log = NULL;
	char old[300];

	snprintf(old, sizeof(old), "%s.1", path);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	os_close(file);
	assert_int_equal(truncate(path, LOG_FILE_BYTES - 60), 0);
	assert_int_equal(log_open(path, &log, NULL), 0);
	log_line(log, LOG_INFO, "still fits");
	log_drain(log);
	assert_false(os_exists(old));
	log_line(log, LOG_INFO, "is the first of the new file");
	log_drain(log);
	assert_int_equal(os_path_info(old, &info, NULL), 0);
	assert_int_equal(info.size_bytes, LOG_FILE_BYTES - 60 + 36);
	assert_log(path, "is the first of the new file\n");
	log_close(log);
}

TEST(a_place_writes_60_lines_a_minute_and_the_rest_are_counted)
{
	const char *path = tmp_path("minute.log");
	uint64_t now_ns = os_now_ns();
	struct buf text = {0};
	struct log *log = NULL;
	int i;

	assert_int_equal(log_open(path, &log, NULL), 0);
	for (i = 0; i < 100; i++)
		log_line(log, LOG_WARN, "program %d breaks", i);
	log_line(log, LOG_ERROR, "%s", "the disk is full");
	log_drain_at(log, now_ns);
	read_log(path, &text);
	assert_non_null(strstr(buf_text(&text), "program 59 breaks"));
	assert_null(strstr(buf_text(&text), "program 60 breaks"));
	assert_non_null(strstr(buf_text(&text), "error: the disk is full"));
	buf_reset(&text);
	log_drain_at(log, now_ns + 61 * NS_PER_SEC);
	log_drain_at(log, now_ns + 122 * NS_PER_SEC);
	read_log(path, &text);
	assert_non_null(strstr(buf_text(&text), "\n40 more like this in a minute: warning: "
						"program 60 breaks\n"));
	log_close(log);
	buf_reset(&text);
	read_log(path, &text);
	assert_string_equal(text.data + text.len - 18, "program 60 breaks\n");
	buf_free(&text);
}

TEST(a_closed_log_says_how_many_lines_it_left_out)
{
	const char *path = tmp_path("closed.log");
	struct buf text = {0};
	struct log *log = NULL;
	int i;

	assert_int_equal(log_open(path, &log, NULL), 0);
	for (i = 0; i < 62; i++)
		log_line(log, LOG_INFO, "line");
	log_close(log);
	read_log(path, &text);
	assert_non_null(strstr(buf_text(&text), "\n2 more like this in a minute: line\n"));
	buf_free(&text);
}

TEST(a_full_log_drops_lines_counts_them_and_says_so)
{
	const char *path = tmp_path("full.log");
	struct buf text = {0};
	struct log *log = NULL;
	char formats[30][3];
	int i;

	assert_int_equal(log_open(path, &log, NULL), 0);
	for (i = 0; i < 30; i++)
		strcpy(formats[i], "%d");
	for (i = 0; i < LOG_QUEUE_LINES + 7; i++)
		log_line(log, LOG_INFO, formats[i % 30], i);
	log_drain(log);
	log_line(log, LOG_INFO, "again");
	log_close(log);
	read_log(path, &text);
	assert_non_null(strstr(buf_text(&text), "\n1022\n1023\n"));
	assert_null(strstr(buf_text(&text), "1024"));
	assert_non_null(strstr(buf_text(&text), "warning: 7 log lines were dropped"));
	assert_string_equal(text.data + text.len - 6, "again\n");
	buf_free(&text);
}

TEST(a_log_line_stays_one_line_whatever_it_quotes)
{
	const char *path = tmp_path("forged.log");
	struct log *log = NULL;

	assert_int_equal(log_open(path, &log, NULL), 0);
	log_line(log, LOG_INFO, "process %s ended", "a\nerror: \x1b[2Jforged\xff");
	log_close(log);
	assert_log(path, "process a error:  [2Jforged\xef\xbf\xbd ended\n");
}

TEST(a_long_log_line_is_cut_between_characters)
{
	const char *path = tmp_path("long.log");
	struct buf text = {0};
	struct log *log = NULL;
	char name[3001] = "";
	int i;

	for (i = 0; i < 1000; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	assert_int_equal(log_open(path, &log, NULL), 0);
	log_line(log, LOG_INFO, "%s", name);
	log_close(log);
	read_log(path, &text);
	assert_in_range(text.len, 900, LOG_LINE_BYTES + 8);
	assert_memory_equal(text.data + text.len - 4, "\xe2\x80\xa6\n", 4);
	text.data[text.len - 4] = '\0';
	for (i = 0; text.data[i]; i += 3)
		assert_memory_equal(text.data + i, "\xe2\x82\xac", 3);
	buf_free(&text);
}

TEST(log_of_nothing_is_nowhere)
{
	log_line(NULL, LOG_ERROR, "not written");
	log_drain(NULL);
	log_close(NULL);
}

TEST(log_that_cannot_be_opened_says_why)
{
	struct log *log = NULL;
	struct err err = {0};

	assert_int_equal(log_open(tmp_path("no/such/dir/x.log"), &log, &err), ERR_IO);
	assert_non_null(strstr(err.text, "x.log"));
	assert_int_equal(log_open(tmp_path("no/such/dir/x.log"), &log, NULL), ERR_IO);
	assert_null(log);
}

static int write_log(void *ctx)
{
	struct log *log = NULL;
	int rc = log_open(ctx, &log, NULL);

	log_line(log, LOG_INFO, "line");
	log_close(log);
	return rc;
}

/* A machine short of memory is when the log is read: once open it needs none. */
TEST(a_log_line_wakes_the_thread_that_drains)
{
	struct os_wake *wake = os_wake_new();
	uint64_t before = os_now_ns();
	struct log *log = NULL;

	assert_int_equal(log_open(tmp_path("wakes.log"), &log, NULL), 0);
	log_wakes(log, wake);
	log_line(log, LOG_INFO, "one");
	os_wake_wait(wake, NULL, false, 60 * NS_PER_SEC);
	assert_true(os_now_ns() - before < 30 * NS_PER_SEC);
	log_wakes(log, NULL);
	os_wake_free(wake);
	log_line(log, LOG_INFO, "two");      /* touches nothing that is gone */
	log_close(log);
	assert_log(tmp_path("wakes.log"), "one\ntwo\n");
	log_wakes(NULL, NULL);
}

TEST(log_needs_memory_only_to_open)
{
	const char *path = tmp_path("memory.log");
	struct log *log = NULL;

	assert_in_range(alloc_walk(write_log, (void *)(uintptr_t)tmp_path("walk.log")), 3, 12);
	assert_int_equal(log_open(path, &log, NULL), 0);
	alloc_walk_fail_at(1);
	log_line(log, LOG_INFO, "kept");
	log_drain(log);
	alloc_walk_fail_at(0);
	log_close(log);
	assert_log(path, "kept\n");
}

struct writers {
	struct log *log;
	int lines;
};

static void write_lines(void *ctx)
{
	struct writers *w = ctx;
	int i;

	for (i = 0; i < w->lines; i++)
		log_line(w->log, LOG_INFO, "line %03d", i);
}

TEST(log_takes_whole_lines_from_several_threads)
{
	const char *path = tmp_path("threads.log");
	struct os_thread *threads[3];
	struct writers w = {.lines = 20};
	struct buf text = {0};
	int i;

	assert_int_equal(log_open(path, &w.log, NULL), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(os_thread_start("writer", write_lines, &w, &threads[i], NULL), 0);
	log_drain(w.log);
	for (i = 0; i < 3; i++)
		os_thread_join(threads[i]);
	log_close(w.log);
	read_log(path, &text);
	assert_int_equal(text.len, 3 * 20 * strlen("line 000\n"));
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_lines_reach_the_file_when_drained_in_order),
		cmocka_unit_test(log_is_appended_to_and_closing_drains_it),
		cmocka_unit_test(a_log_file_of_16_mb_is_kept_as_the_old_one_and_a_new_one_is_begun),
		cmocka_unit_test(a_place_writes_60_lines_a_minute_and_the_rest_are_counted),
		cmocka_unit_test(a_closed_log_says_how_many_lines_it_left_out),
		cmocka_unit_test(a_full_log_drops_lines_counts_them_and_says_so),
		cmocka_unit_test(a_log_line_stays_one_line_whatever_it_quotes),
		cmocka_unit_test(a_long_log_line_is_cut_between_characters),
		cmocka_unit_test(log_of_nothing_is_nowhere),
		cmocka_unit_test(log_that_cannot_be_opened_says_why),
		cmocka_unit_test(a_log_line_wakes_the_thread_that_drains),
		cmocka_unit_test(log_needs_memory_only_to_open),
		cmocka_unit_test(log_takes_whole_lines_from_several_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
