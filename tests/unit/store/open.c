/* What store_open() does with files that are not stores, and with a second recorder. */
#include "base/array.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_file(const char *path, const void *bytes, size_t n)
{
	struct os_file *file = NULL;

	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, bytes, n, NULL), 0);
	os_close(file);
}

/* A closed store with one incident of three samples. */
static void make_store(struct lab *lab, const char *name)
{
	struct store *s;

	s = lab_record(lab, name);
	lab_simple(lab, s, MS(10), 3);
	store_close(s);
}

TEST(a_missing_store_is_made_by_a_recorder_only)
{
	struct lab lab;
	const char *why;

	lab_open(&lab, "missing.db");
	why = lab_refused(lab.path, STORE_READ, ERR_NOT_FOUND);
	assert_non_null(strstr(why, "recorder collect"));
	lab_refused(lab.path, STORE_EDIT, ERR_NOT_FOUND);
	assert_false(os_exists(lab.path));
	store_close(lab_store(&lab, STORE_RECORD));
	assert_true(os_exists(lab.path));
	store_close(lab_store(&lab, STORE_READ));
	lab_close(&lab);
}

TEST(a_new_store_has_the_settings_of_the_design)
{
	struct lab lab;

	lab_open(&lab, "settings.db");
	store_close(lab_store(&lab, STORE_RECORD));
	assert_int_equal(lab_sql(lab.path, "PRAGMA page_size"), 4096);
	assert_int_equal(lab_sql(lab.path, "PRAGMA auto_vacuum"), 2);
	assert_int_equal(lab_sql(lab.path, "PRAGMA application_id"), STORE_APPLICATION_ID);
	assert_int_equal(lab_sql(lab.path, "PRAGMA user_version"), STORE_VERSION);
	assert_int_equal(lab_sql(lab.path, "SELECT journal_mode='wal' FROM pragma_journal_mode"),
			 1);
	assert_int_equal(lab_sql(lab.path, "SELECT value FROM meta WHERE key='min_reader'"), 3);
	lab_check_integrity(lab.path);
	lab_close(&lab);
}

/* Each view is queried once, which fails when a column of it is gone. */
TEST(the_views_can_be_asked)
{
	struct lab lab;

	make_store(&lab, "views.db");
	assert_int_equal(lab_sql(lab.path, "SELECT samples FROM v_incident WHERE host='box' AND"
				 " time_utc='2023-11-14T22:13:20.013Z' AND pre_s=0.003"), 3);
	assert_int_equal(lab_sql(lab.path,
				 "SELECT count(*) FROM v_module WHERE build_id='01020304'"), 1);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM v_thread WHERE process='app'"), 2);
	assert_int_equal(lab_sql(lab.path, "SELECT samples FROM v_segment WHERE incidents='1'"), 3);
	lab_close(&lab);
}

TEST(another_programs_database_is_left_alone)
{
	struct os_file_info before, after;
	const char *why, *lock;
	struct lab lab;

	lab_open(&lab, "foreign.db");
	write_file(lab.path, "", 0);
	lab_sql(lab.path, "CREATE TABLE bookmark(url)");
	assert_int_equal(os_path_info(lab.path, &before, NULL), 0);
	why = lab_refused(lab.path, STORE_RECORD, ERR_FORMAT);
	assert_non_null(strstr(why, "of another program"));
	lab_refused(lab.path, STORE_READ, ERR_FORMAT);
	lab_refused(lab.path, STORE_EDIT, ERR_FORMAT);
	assert_int_equal(os_path_info(lab.path, &after, NULL), 0);
	assert_int_equal(after.size_bytes, before.size_bytes);
	lock = tmp_path("foreign.db.lock");
	assert_false(os_exists(lock));
	lab_close(&lab);
}

TEST(a_file_that_is_no_database_is_left_alone)
{
	static const char text[] =
		"Dear diary, today the machine was slow again, and nobody knows why. ";
	struct os_file_info info;
	struct lab lab;

	lab_open(&lab, "garbage.db");
	write_file(lab.path, text, sizeof(text) - 1);
	assert_non_null(strstr(lab_refused(lab.path, STORE_RECORD, ERR_FORMAT),
			       "not a store of incidents"));
	lab_refused(lab.path, STORE_READ, ERR_FORMAT);
	lab_refused(lab.path, STORE_EDIT, ERR_FORMAT);
	assert_int_equal(os_path_info(lab.path, &info, NULL), 0);
	assert_int_equal(info.size_bytes, sizeof(text) - 1);
	lab_close(&lab);
}

TEST(an_empty_file_becomes_a_store)
{
	struct lab lab;

	lab_open(&lab, "zero.db");
	write_file(lab.path, "", 0);
	assert_non_null(strstr(lab_refused(lab.path, STORE_READ, ERR_NOT_FOUND), "is empty"));
	store_close(lab_store(&lab, STORE_RECORD));
	store_close(lab_store(&lab, STORE_READ));
	lab_close(&lab);
}

TEST(a_directory_is_refused_as_one)
{
	assert_non_null(
		strstr(lab_refused(tmp_path(""), STORE_RECORD, ERR_FORMAT), "is a directory"));
}

TEST(a_newer_store_can_be_read_when_it_says_so)
{
	struct lab lab;

	make_store(&lab, "newer.db");
	lab_sql(lab.path, "PRAGMA user_version=4");
	assert_non_null(strstr(lab_refused(lab.path, STORE_RECORD, ERR_FORMAT), "newer recorder"));
	assert_non_null(strstr(lab_refused(lab.path, STORE_EDIT, ERR_FORMAT), "newer recorder"));
	store_close(lab_store(&lab, STORE_READ));
	lab_sql(lab.path, "UPDATE meta SET value=4 WHERE key='min_reader'");
	assert_non_null(strstr(lab_refused(lab.path, STORE_READ, ERR_FORMAT), "newer recorder"));
	lab_close(&lab);
}

/* Format 2 kept frames as rows. A recorder could turn such a store into format 3, rows and all. */
TEST(a_store_of_an_older_format_is_refused_with_what_to_do)
{
	static const char *const old[] = {
		"PRAGMA user_version=1",
		"PRAGMA user_version=2",
		"PRAGMA user_version=3; DROP VIEW frame; CREATE TABLE frame AS SELECT 1",
	};
	const char *why;
	struct lab lab;
	unsigned i;
	int mode;

	make_store(&lab, "older.db");
	for (i = 0; i < 3; i++) {
		lab_sql(lab.path, old[i]);
		for (mode = STORE_READ; mode <= STORE_RECORD; mode++) {
			why = lab_refused(lab.path, (enum store_mode)mode, ERR_FORMAT);
			assert_non_null(strstr(why, i ? "format 2" : "format 1"));
			assert_non_null(strstr(why, "move it away"));
		}
	}
	lab_close(&lab);
}

TEST(a_store_with_the_empty_tables_and_indices_of_before_is_used)
{
	struct lab lab;

	make_store(&lab, "before.db");
	lab_sql(lab.path, "DROP VIEW frame");
	lab_sql(lab.path, "DROP VIEW function");
	lab_sql(lab.path, "CREATE TABLE frame(id INTEGER PRIMARY KEY)");
	lab_sql(lab.path, "CREATE TABLE function(id INTEGER PRIMARY KEY)");
	lab_sql(lab.path, "CREATE INDEX incident_time ON incident(trigger_wall_ns)");
	store_close(lab_store(&lab, STORE_RECORD));
	store_close(lab_store(&lab, STORE_READ));
	lab_close(&lab);
}

TEST(a_truncated_store_is_called_damaged)
{
	struct buf bytes = {0};
	struct lab lab;

	make_store(&lab, "short.db");
	assert_int_equal(os_load(lab.path, 1 << 24, &bytes, NULL), 0);
	write_file(lab.path, bytes.data, bytes.len / 2 / 4096 * 4096);
	assert_non_null(strstr(lab_refused(lab.path, STORE_RECORD, ERR_FORMAT), "is damaged"));
	assert_non_null(strstr(lab_refused(lab.path, STORE_READ, ERR_FORMAT), "is damaged"));
	buf_free(&bytes);
	lab_close(&lab);
}

/* Half of its pages are overwritten: found at the start, not in the middle of an incident. */
TEST(a_store_with_broken_pages_is_called_damaged)
{
	struct buf bytes = {0};
	struct lab lab;

	make_store(&lab, "pages.db");
	assert_int_equal(os_load(lab.path, 1 << 24, &bytes, NULL), 0);
	memset(bytes.data + bytes.len / 2, 0x5a, bytes.len - bytes.len / 2);
	write_file(lab.path, bytes.data, bytes.len);
	assert_non_null(strstr(lab_refused(lab.path, STORE_RECORD, ERR_FORMAT), "is damaged"));
	buf_free(&bytes);
	lab_close(&lab);
}

TEST(a_second_recorder_is_told_who_has_the_store)
{
	char pid[40];
	struct store *s;
	const char *why;
	struct lab lab;

	s = lab_record(&lab, "second.db");
	why = lab_refused(lab.path, STORE_RECORD, ERR_BUSY);
	snprintf(pid, sizeof(pid), "process %u", os_pid());
	assert_non_null(strstr(why, "another recorder"));
	assert_non_null(strstr(why, pid));
	assert_int_equal(lab_simple(&lab, s, MS(10), 3), 1);
	store_close(s);
	store_close(lab_store(&lab, STORE_RECORD));
	lab_close(&lab);
}

TEST(readers_and_editors_work_beside_a_recorder)
{
	struct store *s, *reader, *editor;
	struct incident_head head = {0};
	struct lab lab;

	s = lab_record(&lab, "beside.db");
	lab_simple(&lab, s, MS(10), 1);
	reader = lab_store(&lab, STORE_READ);
	editor = lab_store(&lab, STORE_EDIT);
	lab_simple(&lab, s, MS(20), 1);
	assert_string_equal(lab_samples(reader, 2), "20.0 main ???\n");
	assert_int_equal(store_pin(editor, 2, true, NULL), 0);
	assert_int_equal(lab_delete(editor, 1, NULL), 0);
	assert_int_equal(store_head(reader, 2, &head, NULL), 0);
	assert_true(head.pinned);
	assert_int_equal(store_load(reader, 1, &(struct incident){0}, NULL), ERR_NOT_FOUND);
	incident_head_free(&head);
	store_close(reader);
	store_close(editor);
	lab_end(&lab, s);
}

TEST(an_incident_being_written_is_readable_and_not_deletable)
{
	struct incident_head head = lab_head(MS(20), MS(20), MS(20));
	struct store *s, *editor;
	struct segment *segment;
	struct err err = {0};
	struct lab lab;

	s = lab_record(&lab, "writing.db");
	lab_sample(&lab, MS(10), 0, "ab");
	segment = lab_begin(&lab, s, &head);
	editor = lab_store(&lab, STORE_EDIT);
	assert_string_equal(lab_samples(editor, head.id), "10.0 main ??\n");
	assert_int_equal(lab_delete(editor, head.id, &err), ERR_BUSY);
	assert_non_null(strstr(err.text, "is being recorded"));
	assert_int_equal(lab_delete(s, head.id, &err), ERR_BUSY);
	/* Its recorder is gone: nobody will complete it. */
	store_close(s);
	assert_int_equal(lab_delete(editor, head.id, &err), 0);
	store_close(editor);
	segment_unref(segment);
	lab_close(&lab);
}

TEST(closing_leaves_the_store_in_one_file)
{
	static const char *const gone[] = {"one.db-wal", "one.db-shm", "one.db-journal"};
	struct lab lab;
	size_t i;

	make_store(&lab, "one.db");
	store_close(lab_store(&lab, STORE_READ));
	for (i = 0; i < COUNT_OF(gone); i++)
		assert_false(os_exists(tmp_path(gone[i])));
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_store_is_made_by_a_recorder_only),
		cmocka_unit_test(a_new_store_has_the_settings_of_the_design),
		cmocka_unit_test(the_views_can_be_asked),
		cmocka_unit_test(another_programs_database_is_left_alone),
		cmocka_unit_test(a_file_that_is_no_database_is_left_alone),
		cmocka_unit_test(an_empty_file_becomes_a_store),
		cmocka_unit_test(a_directory_is_refused_as_one),
		cmocka_unit_test(a_newer_store_can_be_read_when_it_says_so),
		cmocka_unit_test(a_store_of_an_older_format_is_refused_with_what_to_do),
		cmocka_unit_test(a_store_with_the_empty_tables_and_indices_of_before_is_used),
		cmocka_unit_test(a_truncated_store_is_called_damaged),
		cmocka_unit_test(a_store_with_broken_pages_is_called_damaged),
		cmocka_unit_test(a_second_recorder_is_told_who_has_the_store),
		cmocka_unit_test(readers_and_editors_work_beside_a_recorder),
		cmocka_unit_test(an_incident_being_written_is_readable_and_not_deletable),
		cmocka_unit_test(closing_leaves_the_store_in_one_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
