/* A store whose file is removed, replaced or damaged. Windows lets nobody remove an open one. */
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t incidents(const char *path)
{
	return lab_sql(path, "SELECT count(*) FROM incident");
}

TEST(a_store_that_was_removed_is_noticed_and_made_anew)
{
	struct err err = {0};
	struct lab lab;
	struct store *s = lab_record(&lab, "removed.db");

	assert_int_equal(lab_simple(&lab, s, MS(10), 3), 1);
	assert_int_equal(store_in_place(s, NULL), 0);
	assert_int_equal(os_remove(lab.path, NULL), 0);
	assert_int_equal(store_in_place(s, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "was removed"));
	store_close(s);
	assert_false(os_exists(tmp_path("removed.db-wal")));
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_in_place(s, NULL), 0);
	assert_int_equal(lab_simple(&lab, s, MS(20), 3), 1);
	lab_end_sound(&lab, s);
}

/* What was put in its place is complete, and stays so when the recorder closes the old one. */
TEST(a_store_that_was_replaced_does_not_harm_the_other)
{
	const char *saved = tmp_path("saved.db");
	struct err err = {0};
	struct lab lab;
	struct store *s = lab_record(&lab, "replaced.db");

	lab_simple(&lab, s, MS(10), 3);
	lab_sql(lab.path, "PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(os_rename(lab.path, saved, NULL), 0);
	lab_remove(lab.path);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	lab_simple(&lab, s, MS(10), 3);
	lab_simple(&lab, s, MS(20), 3);
	assert_int_equal(os_rename(saved, lab.path, NULL), 0);
	assert_int_equal(store_in_place(s, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "was replaced"));
	store_close(s);
	assert_int_equal(incidents(lab.path), 1);
	s = lab_store(&lab, STORE_RECORD);
	lab_end_sound(&lab, s);
}

static void write_at(const char *path, long at, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "r+b");

	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Each damages another thing: page 3 and more, or the first bytes, by which SQLite knows a file. */
TEST(a_damaged_store_is_moved_away)
{
	static const long places[] = {8192, 0};
	char noise[4096];
	unsigned i;

	memset(noise, 0xa5, sizeof(noise));
	for (i = 0; i < 2; i++) {
		struct store *s = NULL;
		struct buf moved = {0};
		struct lab lab;

		s = lab_record(&lab, "damaged.db");
		lab_simple(&lab, s, MS(10), 40);
		store_close(s);
		write_at(lab.path, places[i], noise, sizeof(noise));
		lab_refused(lab.path, STORE_RECORD, ERR_FORMAT);
		assert_int_equal(store_open_or_replace(lab.path, &moved, &s, NULL), 0);
		assert_non_null(strstr(buf_text(&moved), "damaged.db.damaged-20"));
		assert_true(os_exists(buf_text(&moved)));
		assert_int_equal(incidents(lab.path), 0);
		lab_end_sound(&lab, s);
		os_remove(buf_text(&moved), NULL);
		buf_free(&moved);
	}
}

/* Without a lock file beside it no recorder has ever written there. */
TEST(a_file_that_was_never_a_store_is_not_moved)
{
	const char *path = tmp_path("diary.db");
	struct store *s = NULL;
	struct buf moved = {0};
	struct os_file *file = NULL;

	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, "Dear diary, it was slow again.", 30, NULL), 0);
	os_close(file);
	assert_int_equal(store_open_or_replace(path, &moved, &s, NULL), ERR_FORMAT);
	assert_int_equal(moved.len, 0);
	assert_true(os_exists(path));
	buf_free(&moved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_that_was_removed_is_noticed_and_made_anew),
		cmocka_unit_test(a_store_that_was_replaced_does_not_harm_the_other),
		cmocka_unit_test(a_damaged_store_is_moved_away),
		cmocka_unit_test(a_file_that_was_never_a_store_is_not_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
