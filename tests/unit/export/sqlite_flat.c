/* The database of plain rows, opened by SQLite. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

static void answer(sqlite3 *db, const char *sql, int64_t expected)
{
	sqlite3_stmt *row;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(row, 0), expected);
	sqlite3_finalize(row);
}

TEST(sql_finds_every_sample_event_and_counter)
{
	struct buf bytes = {0};
	struct incident in;
	sqlite3 *db = NULL;

	assert_int_equal(sample_streams(&in), 0);
	in.head.lost_by_kind[LOSS_FLOOD] = 17;
	assert_int_equal(export_text(&in, "sqlite-flat", NULL, &bytes), 0);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_deserialize(db, "main", (unsigned char *)bytes.data,
					     (sqlite3_int64)bytes.len, (sqlite3_int64)bytes.len,
					     SQLITE_DESERIALIZE_READONLY), SQLITE_OK);
	answer(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'", 1);
	answer(db, "SELECT sum(weight) FROM v_sample WHERE stream = 'cpu'", 120000000);
	answer(db, "SELECT sum(weight) FROM sample WHERE stream = 'off-cpu'", STREAMS_OFF_CPU_NS);
	answer(db, "SELECT sum(weight) FROM sample WHERE stream = 'alloc'", STREAMS_ALLOC_BYTES);
	answer(db, "SELECT count(*) FROM v_sample WHERE function = 'burn_alpha' AND stream = 'cpu'",
	       4);
	answer(db, "SELECT count(*) FROM event", 2);
	answer(db, "SELECT count(*) FROM counter WHERE value IS NULL", 1);
	answer(db, "SELECT value FROM incident WHERE key = 'lost'", 3);
	answer(db, "SELECT value FROM incident WHERE key = 'flooded'", 17);
	sqlite3_close(db);
	buf_free(&bytes);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sql_finds_every_sample_event_and_counter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
