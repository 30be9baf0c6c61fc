/* A file that is written with a log of what changed: what readers see, what a torn log costs. */
#include "store/redo_private.h"

#include "base/bytes.h"
#include "base/os.h"
#include "tests/support/bad_disk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROWS_TO_CHECKPOINT = 70,             /* of a block of the log each */
	CUTS = 150, CUT_FROM = 150, CUT_WRITES = 150,
};

struct db {
	struct redo *redo;
	sqlite3 *db;
};

static char path[TMP_BYTES], log_path[TMP_BYTES + 8];

static void use(const char *name)
{
	snprintf(path, sizeof(path), "%s", tmp_path(name));
	snprintf(log_path, sizeof(log_path), "%s" REDO_SUFFIX, path);
}

static void fresh(const char *name)
{
	use(name);
	os_remove(path, NULL);
	os_remove(log_path, NULL);
}

static struct db open_db(bool write)
{
	struct db d = {0};
	int flags = SQLITE_OPEN_READWRITE | (write ? SQLITE_OPEN_CREATE : 0);

	assert_int_equal(redo_open(path, flags, write, &d.redo, &d.db), SQLITE_OK);
	return d;
}

static void close_db(struct db *d)
{
	assert_int_equal(sqlite3_close(d->db), SQLITE_OK);
	redo_free(d->redo);
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static struct db open_writer(void)
{
	struct db d = open_db(true);

	run(d.db, "PRAGMA page_size=4096; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=FULL;"
		  "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, bytes BLOB)");
	return d;
}

static void add_row(sqlite3 *db, unsigned bytes)
{
	char sql[100];

	snprintf(sql, sizeof(sql), "INSERT INTO t(bytes) VALUES(randomblob(%u))", bytes);
	run(db, sql);
}

/* Rows of a sound file. */
static int rows(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int n = -1;

	if (!sqlite3_prepare_v2(db, "SELECT count(*) FROM t, pragma_integrity_check"
				" WHERE integrity_check='ok'", -1, &st, NULL) &&
	    sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return n;
}

static int rows_read(void)
{
	struct db d = open_db(false);
	int n = rows(d.db);

	close_db(&d);
	return n;
}

/* By a program that does not know the log. */
static int rows_of_the_file(void)
{
	sqlite3 *db;
	int n;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	n = rows(db);
	sqlite3_close(db);
	return n;
}

TEST(readers_see_each_transaction_at_once)
{
	struct db w, r;
	int i;

	fresh("redo-readers.db");
	w = open_writer();
	r = open_db(false);
	for (i = 0; i < 3 * ROWS_TO_CHECKPOINT; i++) {
		add_row(w.db, (unsigned)i * 37 % 9000);
		if (i % 20 == 0)
			assert_int_equal(rows(r.db), i + 1);
	}
	assert_int_equal(rows_read(), i);
	close_db(&r);
	close_db(&w);
	assert_false(os_exists(log_path));
	assert_int_equal(rows_of_the_file(), i);
}

/* The file alone is whole, too, as of the last checkpoint. */
TEST(a_program_without_the_log_sees_the_last_checkpoint)
{
	struct db w;
	int i, seen, before = 0;

	fresh("redo-plain.db");
	w = open_writer();
	for (i = 1; i <= 3 * ROWS_TO_CHECKPOINT; i++) {
		add_row(w.db, 3000);
		seen = i % 10 ? before : rows_of_the_file();
		assert_in_range(seen, before, i);
		before = seen;
	}
	assert_true(before > ROWS_TO_CHECKPOINT);
	close_db(&w);
}

TEST(what_a_reader_reads_stays_while_it_reads)
{
	struct db w, r;
	int i, n;

	fresh("redo-snapshot.db");
	w = open_writer();
	add_row(w.db, 100);
	r = open_db(false);
	run(r.db, "BEGIN");
	n = rows(r.db);
	for (i = 0; i < 2 * ROWS_TO_CHECKPOINT; i++)
		add_row(w.db, 100);
	assert_int_equal(rows_of_the_file(), 0);     /* no checkpoint came: it is as it began */
	assert_int_equal(rows(r.db), n);
	run(r.db, "COMMIT");
	assert_int_equal(rows(r.db), n + i);
	add_row(w.db, 100);
	assert_int_equal(rows_of_the_file(), n + i + 1);
	close_db(&r);
	close_db(&w);
}

TEST(a_rollback_leaves_nothing)
{
	struct db w;

	fresh("redo-rollback.db");
	w = open_writer();
	add_row(w.db, 100);
	run(w.db, "PRAGMA cache_size=10; BEGIN");
	add_row(w.db, 1 << 20);              /* more than the cache: written before its end */
	run(w.db, "ROLLBACK");
	assert_int_equal(rows_read(), 1);
	add_row(w.db, 100);
	assert_int_equal(rows_read(), 2);
	close_db(&w);
	assert_int_equal(rows_of_the_file(), 2);
}

/* Every page of the file changes: a record of more than SQLite writes at once. */
TEST(a_record_may_be_large)
{
	struct db w;
	int i;

	fresh("redo-large.db");
	w = open_writer();
	for (i = 0; i < 200; i++)
		add_row(w.db, 3000);
	run(w.db, "UPDATE t SET bytes=randomblob(3000)");
	add_row(w.db, 10);
	assert_int_equal(rows_read(), 201);
	close_db(&w);
	assert_int_equal(rows_of_the_file(), 201);
}

/* The disk has whether a page of the file is anything but zero. */
static bool page_is_written(size_t number)
{
	struct buf bytes = {0};
	bool written = false;
	size_t i;

	assert_int_equal(os_load(path, (size_t)64 << 20, &bytes, NULL), 0);
	for (i = 0; i < REDO_PAGE_BYTES && number * REDO_PAGE_BYTES + i < bytes.len; i++)
		written |= bytes.data[number * REDO_PAGE_BYTES + i] != 0;
	buf_free(&bytes);
	return written;
}

/* Pages 0 and 1 are there from the start, 2 and 3 become leaves, 4 and on hold a long row. */
TEST(a_page_that_fills_up_is_written_when_it_is_fuller)
{
	struct db w;
	int i;

	fresh("redo-fills.db");
	w = open_writer();
	for (i = 0; i < 7; i++)
		add_row(w.db, 750);
	run(w.db, "CREATE TABLE u(id INTEGER PRIMARY KEY, bytes BLOB)");
	run(w.db, "INSERT INTO u(bytes) VALUES(randomblob(750))");
	assert_true(page_is_written(0));
	assert_false(page_is_written(4));    /* u has a fifth of a page */
	add_row(w.db, 9000);
	assert_true(page_is_written(6));
	assert_int_equal(rows_read(), 8);
	close_db(&w);
	assert_true(page_is_written(4));
	assert_int_equal(rows_of_the_file(), 8);
}

static void copy(const char *from, const char *to, size_t n, size_t damaged)
{
	struct os_file *file = NULL;
	struct buf bytes = {0};

	assert_int_equal(os_load(from, (size_t)64 << 20, &bytes, NULL), 0);
	if (damaged < bytes.len)
		bytes.data[damaged] ^= 1;
	assert_int_equal(os_open(to, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, bytes.data, n < bytes.len ? n : bytes.len, NULL), 0);
	os_close(file);
	buf_free(&bytes);
}

/*
 * Ten transactions, and a log that ends, or is damaged, in any of their records: what was before is
 * there, and writing goes on.
 */
TEST(a_torn_record_is_as_if_it_had_not_been)
{
	char whole[TMP_BYTES + 8], whole_log[TMP_BYTES + 8];
	struct db w;
	int i, n;

	fresh("redo-torn.db");
	snprintf(whole, sizeof(whole), "%s.1", path);
	snprintf(whole_log, sizeof(whole_log), "%s.2", path);
	w = open_writer();                   /* blocks 0 and 1 of the log */
	for (i = 0; i < 10; i++)
		add_row(w.db, 300);
	copy(path, whole, SIZE_MAX, SIZE_MAX);
	copy(log_path, whole_log, SIZE_MAX, SIZE_MAX);
	close_db(&w);
	for (i = 0; i < 40; i++) {
		size_t block = 2 + (size_t)i % 10, at = block * 4096 + (size_t)i * 9;

		copy(whole, path, SIZE_MAX, SIZE_MAX);
		copy(whole_log, log_path, i < 20 ? SIZE_MAX : at, i < 20 ? at : SIZE_MAX);
		n = rows_read();
		assert_int_equal(n, block - 2);
		w = open_writer();
		add_row(w.db, 500);
		assert_int_equal(rows_read(), n + 1);
		close_db(&w);
		assert_int_equal(rows_of_the_file(), n + 1);
	}
}

/* Rows that the next reader and the next writer find; -1 = the file is not sound. */
static int rows_left(void)
{
	int read = rows_read(), n;
	struct db w = open_db(true);

	n = rows(w.db);
	if (n >= 0)
		add_row(w.db, 500);
	close_db(&w);
	return n == read && rows_of_the_file() == n + 1 ? n : -1;
}

/* The power goes at some write of a hundred transactions; a checkpoint is among them. */
TEST(a_power_cut_costs_at_most_the_transaction_that_was_open)
{
	char image[TMP_BYTES];
	int seed, i, returned, n;
	struct db w;

	snprintf(image, sizeof(image), "%s", tmp_path("redo-image"));
	assert_int_equal(os_mkdirs(image, NULL), 0);
	for (seed = 1; seed <= CUTS; seed += EVERY(7)) {
		fresh("redo-power.db");
		bad_disk_install();
		bad_disk_watch();
		w = open_writer();
		bad_disk_cut_after(CUT_FROM + seed % CUT_WRITES, image, (uint64_t)seed);
		for (i = returned = 0; i < 100; i++) {
			add_row(w.db, (unsigned)(i * 37 % 9000));
			returned += !bad_disk_cut_happened();
		}
		if (!bad_disk_cut_happened())
			fail_msg("cut %d: there were fewer writes", seed);
		close_db(&w);
		bad_disk_remove();
		use("redo-image/redo-power.db");
		n = rows_left();
		if (n != returned && n != returned + 1)
			fail_msg("cut %d: %d transactions had returned, and %d are there", seed,
				 returned, n);
	}
	fresh("redo-image/redo-power.db");
	os_remove_dir(image);
}

/* Whether a file of so many pages may have this patch. */
static int soundness(const uint8_t *patch, size_t n, uint32_t npages)
{
	struct deflater *d = deflater_new(false);
	const struct redo_record made = {.npages = npages};
	struct columns patches = {0};
	struct buf record = {0}, plain = {0};
	struct redo_record r;
	const uint8_t *head;
	int rc;

	buf_put(&patches.raw, patch, n);
	assert_int_equal(redo_put_record(d, 7, &made, &patches, &record), 0);
	assert_int_equal(record.len, REDO_PAGE_BYTES);
	head = (const uint8_t *)record.data;
	assert_true(redo_head(head, &r));
	assert_int_equal(redo_sound(8, head, head + REDO_HEAD_BYTES, &plain, &r), ERR_FORMAT);
	rc = redo_sound(7, head, head + REDO_HEAD_BYTES, &plain, &r);
	if (!rc)
		assert_memory_equal(r.patches, patch, n);
	columns_free(&patches);
	buf_free(&record);
	buf_free(&plain);
	deflater_free(d);
	return rc;
}

TEST(patches_outside_of_the_file_are_refused)
{
	uint8_t patch[12] = {0};

	put_le32(patch + 4, 4092 | 4u << 16);        /* page 0, the last four bytes */
	assert_int_equal(soundness(patch, sizeof(patch), 1), 0);
	assert_int_equal(soundness(patch, sizeof(patch), 0), ERR_FORMAT);
	put_le32(patch + 4, 4093 | 4u << 16);
	assert_int_equal(soundness(patch, sizeof(patch), 1), ERR_FORMAT);
	put_le32(patch + 4, 5u << 16);
	assert_int_equal(soundness(patch, sizeof(patch), 1), ERR_FORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_see_each_transaction_at_once),
		cmocka_unit_test(a_program_without_the_log_sees_the_last_checkpoint),
		cmocka_unit_test(what_a_reader_reads_stays_while_it_reads),
		cmocka_unit_test(a_rollback_leaves_nothing),
		cmocka_unit_test(a_record_may_be_large),
		cmocka_unit_test(a_page_that_fills_up_is_written_when_it_is_fuller),
		cmocka_unit_test(a_torn_record_is_as_if_it_had_not_been),
		cmocka_unit_test(a_power_cut_costs_at_most_the_transaction_that_was_open),
		cmocka_unit_test(patches_outside_of_the_file_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
