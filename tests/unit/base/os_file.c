#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int put(const char *path, enum os_open how, const char *text)
{
	struct os_file *file = NULL;
	int rc = os_open(path, how, &file, NULL);

	if (!rc)
		rc = os_write(file, text, strlen(text), NULL);
	os_close(file);
	return rc;
}

static void assert_file(const char *path, const char *expected)
{
	struct buf text = {0};

	assert_int_equal(os_load(path, 1 << 20, &text, NULL), 0);
	assert_string_equal(buf_text(&text), expected);
	buf_free(&text);
}

TEST(os_create_makes_a_new_file_and_refuses_one_that_is_there)
{
	const char *path = tmp_path("create");

	assert_int_equal(put(path, OS_CREATE, "first"), 0);
	assert_int_equal(put(path, OS_CREATE, "second"), ERR_EXISTS);
	assert_file(path, "first");
}

TEST(os_replace_empties_and_os_append_goes_on_at_the_end)
{
	const char *path = tmp_path("replace");

	assert_int_equal(put(path, OS_REPLACE, "a long first text"), 0);
	assert_int_equal(put(path, OS_REPLACE, "ab"), 0);
	assert_int_equal(put(path, OS_APPEND, "cd"), 0);
	assert_int_equal(put(path, OS_APPEND, "ef"), 0);
	assert_file(path, "abcdef");
	assert_int_equal(put(tmp_path("new"), OS_APPEND, "x"), 0);
	assert_file(tmp_path("new"), "x");
}

/* Two that append to one file never write over each other. */
TEST(os_append_is_at_the_end_whoever_wrote_last)
{
	const char *path = tmp_path("two");
	struct os_file *a = NULL, *b = NULL;

	assert_int_equal(os_open(path, OS_APPEND, &a, NULL), 0);
	assert_int_equal(os_open(path, OS_APPEND, &b, NULL), 0);
	os_write(a, "1", 1, NULL);
	os_write(b, "2", 1, NULL);
	os_write(a, "3", 1, NULL);
	assert_int_equal(os_sync(a, NULL), 0);
	os_close(a);
	os_close(b);
	assert_file(path, "123");
}

TEST(os_missing_file_is_not_found_by_each_way_to_ask)
{
	const char *path = tmp_path("missing");
	struct os_file *file = NULL;
	struct os_file_info info;
	struct err err = {0};

	assert_int_equal(os_open(path, OS_READ, &file, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(os_path_info(path, &info, NULL), ERR_NOT_FOUND);
	assert_int_equal(os_remove(path, NULL), ERR_NOT_FOUND);
	assert_int_equal(os_rename(path, tmp_path("x"), NULL), ERR_NOT_FOUND);
	assert_false(os_exists(path));
	assert_int_equal(os_open(tmp_path("missing/dir"), OS_CREATE, &file, NULL), ERR_IO);
	assert_null(file);
	os_close(NULL);
}

TEST(os_plain_is_a_file_and_no_directory)
{
	static const enum os_open ways[] = {OS_READ_PLAIN, OS_READ_NO_LINK};
	struct os_file *file = NULL;
	char text[8] = "";
	size_t got = 0, i;
	struct err err;

	put(tmp_path("plain"), OS_CREATE, "text");
	assert_int_equal(os_mkdirs(tmp_path("plain_dir"), NULL), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(os_open(tmp_path("plain"), ways[i], &file, NULL), 0);
		assert_int_equal(os_pread(file, text, 8, 0, &got, NULL), 0);
		assert_int_equal(got, 4);
		os_close(file);
		file = NULL;
		assert_int_equal(os_open(tmp_path("plain_dir"), ways[i], &file, &err), ERR_ACCESS);
		assert_non_null(strstr(err.text, "plain_dir"));
		assert_int_equal(os_open(tmp_path("missing"), ways[i], &file, NULL), ERR_NOT_FOUND);
		assert_null(file);
	}
}

TEST(os_pread_gives_less_only_at_the_end)
{
	const char *path = tmp_path("pread");
	struct os_file *file = NULL;
	char text[8] = "";
	size_t got = 99;

	put(path, OS_CREATE, "0123456789");
	assert_int_equal(os_open(path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_pread(file, text, 4, 3, &got, NULL), 0);
	assert_int_equal(got, 4);
	assert_memory_equal(text, "3456", 4);
	assert_int_equal(os_pread(file, text, 8, 7, &got, NULL), 0);
	assert_int_equal(got, 3);
	assert_memory_equal(text, "789", 3);
	assert_int_equal(os_pread(file, text, 8, 10, &got, NULL), 0);
	assert_int_equal(got, 0);
	assert_int_equal(os_pread(file, text, 8, (uint64_t)1 << 33, &got, NULL), 0);
	assert_int_equal(got, 0);
	os_close(file);
}

TEST(os_temporary_files_are_written_and_read_at_any_place)
{
	struct os_file *a = NULL, *b = NULL;
	char text[8] = "";
	size_t got;

	assert_int_equal(os_temp(&a, NULL), 0);
	assert_int_equal(os_temp(&b, NULL), 0);
	assert_int_equal(os_pwrite(a, "later", 5, 100000, NULL), 0);
	assert_int_equal(os_pwrite(a, "first", 5, 0, NULL), 0);
	assert_int_equal(os_pwrite(b, "other", 5, 0, NULL), 0);
	assert_int_equal(os_pread(a, text, 5, 100000, &got, NULL), 0);
	assert_string_equal(text, "later");
	assert_int_equal(os_pread(a, text, 5, 0, &got, NULL), 0);
	assert_string_equal(text, "first");
	assert_int_equal(os_pread(b, text, 8, 0, &got, NULL), 0);
	assert_int_equal(got, 5);
	os_close(a);
	os_close(b);
}

TEST(os_read_all_is_not_moved_by_pread_and_keeps_to_its_limit)
{
	const char *path = tmp_path("all");
	struct os_file *file = NULL;
	struct buf text = {0};
	struct err err = {0};
	char c;
	size_t got;

	put(path, OS_CREATE, "0123456789");
	assert_int_equal(os_open(path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_pread(file, &c, 1, 5, &got, NULL), 0);
	assert_int_equal(os_read_all(file, 10, &text, NULL), 0);
	assert_string_equal(buf_text(&text), "0123456789");
	os_close(file);
	buf_reset(&text);
	assert_int_equal(os_load(path, 9, &text, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "9 bytes"));
	buf_free(&text);
}

TEST(os_info_tells_files_from_directories)
{
	const char *path = tmp_path("info");
	struct os_file_info by_path, by_file;
	struct os_file *file = NULL;
	uint64_t now = os_wall_ns();

	put(path, OS_CREATE, "12345");
	assert_int_equal(os_path_info(path, &by_path, NULL), 0);
	assert_true(by_path.regular && !by_path.directory);
	assert_true(by_path.size_bytes == 5);
	assert_true(by_path.mtime_ns > now - 100 * NS_PER_SEC);
	assert_true(by_path.mtime_ns < now + 100 * NS_PER_SEC);
	assert_int_equal(os_open(path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_file_info(file, &by_file, NULL), 0);
	os_close(file);
	assert_true(by_file.ino == by_path.ino && by_file.dev == by_path.dev);
	assert_int_equal(os_path_info(tmp_path("."), &by_path, NULL), 0);
	assert_true(by_path.directory && !by_path.regular);
}

TEST(os_rename_replaces_and_remove_removes)
{
	const char *from = tmp_path("from"), *to = tmp_path("to");

	put(from, OS_CREATE, "new");
	put(to, OS_CREATE, "old");
	assert_int_equal(os_rename(from, to, NULL), 0);
	assert_false(os_exists(from));
	assert_file(to, "new");
	assert_int_equal(os_remove(to, NULL), 0);
	assert_false(os_exists(to));
}

TEST(os_mkdirs_makes_parents_and_accepts_what_is_there)
{
	struct os_file_info info;

	assert_int_equal(os_mkdirs(tmp_path("a/b/c"), NULL), 0);
	assert_int_equal(os_mkdirs(tmp_path("a/b/c"), NULL), 0);
	assert_int_equal(os_mkdirs(tmp_path("a/b/d/"), NULL), 0);
	assert_int_equal(os_path_info(tmp_path("a/b/d"), &info, NULL), 0);
	assert_true(info.directory);
	put(tmp_path("file"), OS_CREATE, "");
	assert_true(os_mkdirs(tmp_path("file"), NULL) != 0);
	assert_true(os_mkdirs(tmp_path("file/below"), NULL) != 0);
}

TEST(os_names_and_texts_are_utf8)
{
	const char *path = tmp_path("gr\xc3\xbc\xc3\x9f-\xe6\x97\xa5\xe6\x9c\xac.txt");

	assert_int_equal(put(path, OS_CREATE, "x"), 0);
	assert_true(os_exists(path));
	assert_file(path, "x");
	assert_int_equal(os_remove(path, NULL), 0);
}

/* Ten directories of 40 characters: more than the 260 of an old Windows path. */
TEST(os_paths_may_be_long)
{
	struct buf path = {0};
	struct os_file_info info;
	int i;

	buf_puts(&path, tmp_path("deep"));
	for (i = 0; i < 10; i++)
		buf_puts(&path, "/0123456789012345678901234567890123456789");
	assert_int_equal(os_mkdirs(buf_text(&path), NULL), 0);
	buf_puts(&path, "/file");
	assert_int_equal(put(buf_text(&path), OS_CREATE, "deep"), 0);
	assert_int_equal(os_path_info(buf_text(&path), &info, NULL), 0);
	assert_file(buf_text(&path), "deep");
	assert_int_equal(os_remove(buf_text(&path), NULL), 0);
	buf_free(&path);
}

TEST(os_free_bytes_are_some_of_the_total)
{
	uint64_t free_bytes = 0, total_bytes = 0;

	assert_int_equal(os_free_bytes(tmp_path("."), &free_bytes, &total_bytes, NULL), 0);
	assert_true(total_bytes > 0 && free_bytes <= total_bytes);
	assert_int_equal(os_free_bytes(tmp_path("nowhere"), &free_bytes, &total_bytes, NULL),
			 ERR_NOT_FOUND);
}

TEST(os_private_files_stay_usable_by_their_owner)
{
	const char *path = tmp_path("private");

	assert_int_equal(put(path, OS_CREATE, "mine"), 0);
	assert_file(path, "mine");
}

TEST(os_dirname_is_the_part_before_the_last_separator)
{
	static const char *const pairs[][2] = {
		{"/a/b", "/a"}, {"/a", "/"}, {"a", "."}, {"a/b", "a"}, {"./a", "."},
		{"/a/b/", "/a/b"},
	};
	struct buf dir = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(pairs); i++) {
		buf_reset(&dir);
		os_dirname(pairs[i][0], &dir);
		assert_string_equal(buf_text(&dir), pairs[i][1]);
	}
	buf_free(&dir);
}

static int make_and_load(void *ctx)
{
	const char *path = ctx;
	struct buf text = {0};
	struct os_file *file = NULL;
	int rc = os_open(path, OS_REPLACE, &file, NULL);

	if (!rc)
		rc = os_write(file, "text", 4, NULL);
	os_close(file);
	if (!rc)
		rc = os_load(path, 100, &text, NULL);
	buf_free(&text);
	return rc;
}

TEST(os_files_report_lack_of_memory)
{
	assert_in_range(alloc_walk(make_and_load, (void *)(uintptr_t)tmp_path("walk")), 3, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_create_makes_a_new_file_and_refuses_one_that_is_there),
		cmocka_unit_test(os_replace_empties_and_os_append_goes_on_at_the_end),
		cmocka_unit_test(os_append_is_at_the_end_whoever_wrote_last),
		cmocka_unit_test(os_missing_file_is_not_found_by_each_way_to_ask),
		cmocka_unit_test(os_plain_is_a_file_and_no_directory),
		cmocka_unit_test(os_pread_gives_less_only_at_the_end),
		cmocka_unit_test(os_temporary_files_are_written_and_read_at_any_place),
		cmocka_unit_test(os_read_all_is_not_moved_by_pread_and_keeps_to_its_limit),
		cmocka_unit_test(os_info_tells_files_from_directories),
		cmocka_unit_test(os_rename_replaces_and_remove_removes),
		cmocka_unit_test(os_mkdirs_makes_parents_and_accepts_what_is_there),
		cmocka_unit_test(os_names_and_texts_are_utf8),
		cmocka_unit_test(os_paths_may_be_long),
		cmocka_unit_test(os_free_bytes_are_some_of_the_total),
		cmocka_unit_test(os_private_files_stay_usable_by_their_owner),
		cmocka_unit_test(os_dirname_is_the_part_before_the_last_separator),
		cmocka_unit_test(os_files_report_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
