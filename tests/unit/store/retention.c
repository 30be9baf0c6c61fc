/* What store_retain() deletes, and what it leaves. */
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define DAY_NS (86400 * NS_PER_SEC)

/* n incidents; incident i fired i seconds after the recorder's clock began. */
static struct store *with_incidents(struct lab *lab, const char *name, unsigned n)
{
	struct store *s;
	unsigned i;

	s = lab_record(lab, name);
	for (i = 1; i <= n; i++)
		assert_int_equal(lab_simple(lab, s, i * NS_PER_SEC - MS(5), 5), i);
	return s;
}

static int64_t left(struct lab *lab)
{
	return lab_sql(lab->path, "SELECT sum(1 << (id - 1)) FROM incident");
}

TEST(without_limits_nothing_is_deleted)
{
	struct store_limits limits = {0};
	uint32_t deleted = 9;
	struct lab lab;
	struct store *s = with_incidents(&lab, "no_limits.db", 3);

	assert_int_equal(store_retain(s, &limits, UINT64_MAX, &deleted, NULL), 0);
	assert_int_equal(deleted, 0);
	assert_int_equal(left(&lab), 7);
	lab_end(&lab, s);
}

TEST(the_oldest_leave_when_there_are_too_many)
{
	struct store_limits limits = {.max_incidents = 2};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "count.db", 4);

	assert_int_equal(store_retain(s, &limits, LAB_WALL_NS, &deleted, NULL), 0);
	assert_int_equal(deleted, 2);
	assert_int_equal(left(&lab), 8 + 4);
	lab_end(&lab, s);
}

TEST(pinned_ones_stay_and_do_not_count)
{
	struct store_limits limits = {.max_incidents = 1};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "pinned.db", 4);

	assert_int_equal(store_pin(s, 1, true, NULL), 0);
	assert_int_equal(store_pin(s, 2, true, NULL), 0);
	assert_int_equal(store_retain(s, &limits, LAB_WALL_NS, &deleted, NULL), 0);
	assert_int_equal(deleted, 1);
	assert_int_equal(left(&lab), 8 + 2 + 1);
	assert_int_equal(store_pin(s, 1, false, NULL), 0);
	assert_int_equal(store_retain(s, &limits, LAB_WALL_NS, &deleted, NULL), 0);
	assert_int_equal(left(&lab), 8 + 2);
	lab_end(&lab, s);
}

TEST(the_old_leave_by_age_but_for_the_newest)
{
	struct store_limits limits = {.max_age_ns = DAY_NS};
	uint64_t second = LAB_WALL_NS + 2 * NS_PER_SEC;
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "age.db", 3);

	/* Just a day after the second: the first is a day and a second old. */
	assert_int_equal(store_retain(s, &limits, second + DAY_NS, &deleted, NULL), 0);
	assert_int_equal(deleted, 1);
	assert_int_equal(left(&lab), 4 + 2);
	assert_int_equal(store_retain(s, &limits, second + DAY_NS + 1, &deleted, NULL), 0);
	assert_int_equal(deleted, 1);
	assert_int_equal(store_retain(s, &limits, second + 100 * DAY_NS, &deleted, NULL), 0);
	assert_int_equal(deleted, 0);
	assert_int_equal(left(&lab), 4);
	/* A time before the incidents deletes nothing. */
	assert_int_equal(lab_simple(&lab, s, NS_PER_SEC, 5), 4);
	assert_int_equal(store_retain(s, &limits, 1, &deleted, NULL), 0);
	assert_int_equal(deleted, 0);
	lab_end(&lab, s);
}

/* ---- the time by which they age ------------------------------------------------------------- */

TEST(a_wall_clock_that_jumps_while_a_recorder_runs_makes_nothing_older)
{
	const uint64_t wall = LAB_WALL_NS, clock = 500 * NS_PER_SEC;
	struct lab lab;
	struct store *s = lab_record(&lab, "jump.db");

	assert_int_equal(store_time(s, wall, clock), wall);
	assert_int_equal(store_time(s, wall + 31 * DAY_NS, clock + 3), wall + 3);
	assert_int_equal(store_time(s, wall - 31 * DAY_NS, clock + 5), wall + 5);
	assert_int_equal(store_time(s, wall + DAY_NS, clock + DAY_NS), wall + DAY_NS);
	lab_end(&lab, s);
}

TEST(a_wall_clock_that_jumped_before_the_start_makes_nothing_older)
{
	const uint64_t wall = LAB_WALL_NS, clock = 500 * NS_PER_SEC;
	struct store_limits limits = {.max_age_ns = 30 * DAY_NS};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "restart.db", 3);

	assert_int_equal(store_time(s, wall, clock), wall);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_time(s, wall + 31 * DAY_NS, clock + 7), wall + 7);
	assert_int_equal(store_retain(s, &limits, wall + 7, &deleted, NULL), 0);
	assert_int_equal(deleted, 0);
	lab_end(&lab, s);
}

/* The recorder clock began anew. Of the time before that, a day counts at most. */
TEST(time_that_the_machine_was_off_counts_up_to_a_day)
{
	const uint64_t wall = LAB_WALL_NS, clock = 500 * NS_PER_SEC, up = 9 * NS_PER_SEC;
	const uint64_t away[] = {3600 * NS_PER_SEC, DAY_NS / 2, 31 * DAY_NS};
	const uint64_t counts[] = {3600 * NS_PER_SEC, DAY_NS / 2, DAY_NS + up};
	struct store *s;
	struct lab lab;
	unsigned i;

	for (i = 0; i < 3; i++) {
		s = lab_record(&lab, "off.db");
		assert_int_equal(store_time(s, wall, clock), wall);
		store_close(s);
		s = lab_store(&lab, STORE_RECORD);
		assert_int_equal(store_time(s, wall + away[i], up), wall + counts[i]);
		lab_end(&lab, s);
	}
}

TEST(a_store_without_a_noted_time_goes_on_from_its_newest_incident)
{
	const uint64_t newest = LAB_WALL_NS + 3 * NS_PER_SEC;
	struct lab lab;
	struct store *s = with_incidents(&lab, "unnoted.db", 3);

	assert_int_equal(store_time(s, newest + 31 * DAY_NS, 1), newest + DAY_NS);
	lab_end(&lab, s);
}

TEST(the_oldest_leave_until_the_size_is_right)
{
	struct store_limits limits = {0};
	uint64_t full;
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "size.db", 40);
	struct os_file_info file;

	assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
	full = store_bytes(s);
	limits.max_bytes = full - 4096;
	assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
	assert_in_range(deleted, 1, 20);
	assert_true(store_bytes(s) <= limits.max_bytes);
	/* The pages went back to the disk: nothing in the file is free, and the log is empty. */
	assert_int_equal(os_path_info(lab.path, &file, NULL), 0);
	assert_int_equal(file.size_bytes, store_bytes(s));
	assert_int_equal(lab_sql(lab.path, "SELECT min(id) FROM incident"), deleted + 1);
	lab_end_sound(&lab, s);
}

TEST(the_newest_stays_however_large_it_is)
{
	struct store_limits limits = {.max_bytes = 1};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "newest.db", 3);

	assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
	assert_int_equal(deleted, 2);
	assert_int_equal(left(&lab), 4);
	lab_end(&lab, s);
}

TEST(an_open_incident_is_not_deleted)
{
	struct incident_head head = lab_head(MS(1), 0, 0);
	struct store_limits limits = {.max_age_ns = 1, .max_incidents = 1, .max_bytes = 1};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "open.db", 2);

	assert_int_equal(store_begin(s, &head, NULL), 0);
	assert_int_equal(store_retain(s, &limits, LAB_WALL_NS + DAY_NS, &deleted, NULL), 0);
	assert_int_equal(deleted, 2);
	assert_int_equal(left(&lab), 4);
	lab_end(&lab, s);
}

/* Ten incidents pass through a store that keeps three: all rows of the other seven are gone. */
TEST(nothing_is_left_of_what_was_deleted)
{
	struct store_limits limits = {.max_incidents = 3};
	uint32_t deleted, i;
	struct store *s;
	char name[16];
	struct lab lab;

	s = lab_record(&lab, "through.db");
	for (i = 1; i <= 10; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		thread_set_name(lab.threads[0], name);
		assert_int_equal(lab_simple(&lab, s, i * NS_PER_SEC, 1), i);
		assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
	}
	assert_int_equal(left(&lab), 1 << 9 | 1 << 8 | 1 << 7);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM segment"), 3);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM thread"), 3);
	assert_string_equal(lab_samples(s, 8), "8000.0 name 8 ???\n");
	lab_end_sound(&lab, s);
}

/* An incident of a trace file: it happened long ago, and was stored now. */
TEST(the_age_of_a_trace_files_incident_counts_from_its_storing)
{
	struct store_limits limits = {.max_age_ns = DAY_NS};
	uint64_t now = LAB_WALL_NS + 300 * DAY_NS;
	struct incident_head head;
	uint32_t deleted;
	struct lab lab;
	struct store *s;

	s = lab_record(&lab, "kept.db");
	lab_simple(&lab, s, NS_PER_SEC, 5);
	head = lab_head(2 * NS_PER_SEC, NS_PER_SEC, 0);
	head.kept_wall_ns = now;
	lab_incident(s, &head, NULL, 0);
	lab_incident(s, &head, NULL, 0);
	assert_int_equal(store_retain(s, &limits, now + DAY_NS, &deleted, NULL), 0);
	assert_int_equal(left(&lab), 4 + 2);
	assert_int_equal(store_retain(s, &limits, now + DAY_NS + 1, &deleted, NULL), 0);
	assert_int_equal(left(&lab), 4);
	lab_end(&lab, s);
}

/* As after recorders that were killed when the incidents were deleted, but not yet swept. */
TEST(what_a_deletion_left_behind_costs_no_other_incident)
{
	struct store_limits limits = {0};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_incidents(&lab, "killed.db", 40);
	struct os_file_info file;

	assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
	limits.max_bytes = store_bytes(s) - 4096;
	store_close(s);
	lab_sql(lab.path,
		"DELETE FROM incident_segment WHERE incident_id <= 30;"
		"DELETE FROM incident WHERE id <= 30;"
		"DELETE FROM stream WHERE incident_id <= 30;"
		"DELETE FROM quality WHERE incident_id <= 30;"
		"DELETE FROM loss WHERE incident_id <= 30");
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
	assert_int_equal(deleted, 0);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM segment"), 10);
	assert_int_equal(os_path_info(lab.path, &file, NULL), 0);
	assert_int_equal(file.size_bytes, store_bytes(s));
	lab_end_sound(&lab, s);
}

static bool count_calls(void *ctx)
{
	++*(unsigned *)ctx;
	return false;
}

/* A sweep asks between any two steps whether to go on. */
TEST(several_are_deleted_with_one_sweep)
{
	unsigned asked = 0, one;
	struct lab lab;
	struct store *s = with_incidents(&lab, "several.db", 12);
	struct os_file_info file;
	int64_t id;

	store_set_call_off(s, count_calls, &asked);
	assert_int_equal(lab_delete(s, 1, NULL), 0);
	one = asked;
	asked = 0;
	for (id = 2; id <= 11; id++)
		assert_int_equal(store_delete(s, id, NULL), 0);
	assert_int_equal(left(&lab), 1 << 11);
	assert_int_equal(asked, 0);
	store_clean(s);
	assert_in_range(asked, 1, one);      /* of fewer segments and pages */
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM segment"), 1);
	assert_int_equal(os_path_info(lab.path, &file, NULL), 0);
	assert_int_equal(file.size_bytes, store_bytes(s));
	lab_end_sound(&lab, s);
}

/* People remark something while the recorder still counts repeats. */
TEST(remarks_stay_where_the_note_is_replaced)
{
	static char large[STORE_REMARK_MAX + 2];
	struct incident_head head;
	struct err err;
	struct lab lab;
	struct store *s = lab_record(&lab, "remarks.db");
	int64_t id = lab_simple(&lab, s, MS(10), 2);
	unsigned n = 0;

	assert_int_equal(store_add_remark(s, id, "first\nof all", NULL), 0);
	assert_int_equal(store_set_note(s, id, "fired again", NULL), 0);
	assert_int_equal(store_add_remark(s, id, "second", NULL), 0);
	assert_int_equal(store_set_note(s, id, "fired 2 times again", NULL), 0);
	assert_int_equal(store_head(s, id, &head, NULL), 0);
	assert_string_equal(head.note, "fired 2 times again");
	assert_string_equal(head.remarks, "first of all\nsecond");
	incident_head_free(&head);
	assert_int_equal(store_add_remark(s, 99, "x", NULL), ERR_NOT_FOUND);
	memset(large, 'x', STORE_REMARK_MAX + 1);
	assert_int_equal(store_add_remark(s, id, large, &err), ERR_LIMIT);
	large[STORE_REMARK_MAX] = '\0';
	while (store_add_remark(s, id, large, &err) == 0)
		n++;
	assert_int_equal(err.code, ERR_LIMIT);
	assert_in_range(n, 16, 17);          /* 64 KB */
	lab_end_sound(&lab, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_limits_nothing_is_deleted),
		cmocka_unit_test(the_oldest_leave_when_there_are_too_many),
		cmocka_unit_test(pinned_ones_stay_and_do_not_count),
		cmocka_unit_test(the_old_leave_by_age_but_for_the_newest),
		cmocka_unit_test(a_wall_clock_that_jumps_while_a_recorder_runs_makes_nothing_older),
		cmocka_unit_test(a_wall_clock_that_jumped_before_the_start_makes_nothing_older),
		cmocka_unit_test(time_that_the_machine_was_off_counts_up_to_a_day),
		cmocka_unit_test(a_store_without_a_noted_time_goes_on_from_its_newest_incident),
		cmocka_unit_test(the_oldest_leave_until_the_size_is_right),
		cmocka_unit_test(the_newest_stays_however_large_it_is),
		cmocka_unit_test(an_open_incident_is_not_deleted),
		cmocka_unit_test(nothing_is_left_of_what_was_deleted),
		cmocka_unit_test(the_age_of_a_trace_files_incident_counts_from_its_storing),
		cmocka_unit_test(what_a_deletion_left_behind_costs_no_other_incident),
		cmocka_unit_test(several_are_deleted_with_one_sweep),
		cmocka_unit_test(remarks_stay_where_the_note_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
