/* A disk that is full, or nearly full. */
#include "tests/support/bad_disk.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An open incident and a segment that is not put yet. */
struct pending {
	struct lab lab;
	struct store *s;
	struct incident_head head;
	struct segment *segment;
	const char *reserve;
};

static void open_pending(struct pending *p, const char *name)
{
	char reserve[100];

	lab_open(&p->lab, name);
	snprintf(reserve, sizeof(reserve), "%s.reserve", name);
	p->reserve = tmp_path(reserve);
	p->s = lab_store(&p->lab, STORE_RECORD);
	p->head = lab_head(MS(20), MS(20), 0);
	lab_sample(&p->lab, MS(10), 0, "ab");
	p->segment = lab_seal(&p->lab);
	assert_int_equal(store_begin(p->s, &p->head, NULL), 0);
}

static void close_pending(struct pending *p)
{
	segment_unref(p->segment);
	store_close(p->s);
	lab_check_integrity(p->lab.path);
	lab_close(&p->lab);
}

TEST(a_full_disk_is_reported_and_can_be_waited_for)
{
	struct err err = {0};
	struct pending p;

	open_pending(&p, "full.db");
	bad_disk_full_after(0);
	assert_int_equal(store_put_segment(p.s, p.head.id, p.segment, &err), ERR_FULL);
	assert_non_null(strstr(err.text, "the disk of"));
	assert_non_null(strstr(err.text, "is full"));
	assert_int_equal(p.segment->store_id, 0);
	assert_int_equal(store_finish(p.s, &p.head, &p.segment, 1, &err), ERR_FULL);
	assert_int_equal(p.head.state, INCIDENT_OPEN);
	bad_disk_full_after(-1);
	assert_int_equal(store_put_segment(p.s, p.head.id, p.segment, NULL), 0);
	assert_int_equal(store_finish(p.s, &p.head, &p.segment, 1, NULL), 0);
	assert_string_equal(lab_samples(p.s, p.head.id), "10.0 main ??\n");
	close_pending(&p);
}

TEST(the_reserve_makes_room_once_and_is_made_again)
{
	struct incident_head next = lab_head(MS(20), MS(20), 0);
	struct os_file_info info;
	struct pending p;

	open_pending(&p, "reserve.db");
	assert_int_equal(os_path_info(p.reserve, &info, NULL), 0);
	assert_int_equal(info.size_bytes, 8 << 20);
	bad_disk_full_while_exists(p.reserve);
	assert_int_equal(store_put_segment(p.s, p.head.id, p.segment, NULL), 0);
	bad_disk_full_while_exists(NULL);
	assert_false(os_exists(p.reserve));
	assert_int_equal(store_finish(p.s, &p.head, &p.segment, 1, NULL), 0);
	assert_string_equal(lab_samples(p.s, p.head.id), "10.0 main ??\n");
	assert_int_equal(store_begin(p.s, &next, NULL), 0);
	assert_true(os_exists(p.reserve));
	close_pending(&p);
}

/* The disk fills up after the 1st, 2nd, 3rd... write of an incident: it is whole, or not there. */
TEST(whenever_the_disk_fills_up_the_store_stays_whole)
{
	struct pending p;
	char *first;
	int rc = -1;
	long n;

	open_pending(&p, "walk.db");
	assert_int_equal(store_put_segment(p.s, p.head.id, p.segment, NULL), 0);
	assert_int_equal(store_finish(p.s, &p.head, &p.segment, 1, NULL), 0);
	first = strdup(lab_dump(p.s, p.head.id));
	for (n = 0; rc; n++) {
		struct incident_head head = lab_head(MS(20), MS(20), 0);

		assert_in_range(n, 0, 500);
		p.segment->store_id = 0;
		bad_disk_full_after(n);
		rc = store_begin(p.s, &head, NULL);
		if (!rc)
			rc = store_put_segment(p.s, head.id, p.segment, NULL);
		if (!rc)
			rc = store_finish(p.s, &head, &p.segment, 1, NULL);
		bad_disk_full_after(-1);
		assert_true(rc == 0 || rc == ERR_FULL);
		assert_string_equal(lab_dump(p.s, p.head.id), first);
		lab_check_integrity(p.lab.path);
	}
	assert_in_range(n, 5, 500);
	free(first);
	close_pending(&p);
}

TEST(a_new_store_on_a_full_disk_is_refused_and_made_later)
{
	struct lab lab;
	long n;
	int rc = -1;

	lab_open(&lab, "new_full.db");
	for (n = 0; rc; n++) {
		struct store *s = NULL;
		struct err err = {0};

		bad_disk_full_after(n);
		rc = store_open(lab.path, STORE_RECORD, &s, &err);
		bad_disk_full_after(-1);
		if (rc && rc != ERR_FULL)
			fail_msg("full after %ld writes: %d, %s", n, rc, err.text);
		store_close(s);
	}
	assert_in_range(n, 5, 500);
	lab_check_integrity(lab.path);
	lab_close(&lab);
}

TEST(deleting_works_on_a_full_disk_by_the_reserve)
{
	struct pending p;

	open_pending(&p, "delete_full.db");
	assert_int_equal(store_finish(p.s, &p.head, NULL, 0, NULL), 0);
	bad_disk_full_while_exists(p.reserve);
	assert_int_equal(lab_delete(p.s, p.head.id, NULL), 0);
	bad_disk_full_while_exists(NULL);
	assert_int_equal(lab_sql(p.lab.path, "SELECT count(*) FROM incident"), 0);
	close_pending(&p);
}

TEST(below_the_floor_nothing_new_is_begun)
{
	struct incident_head next = lab_head(MS(20), MS(20), 0);
	struct err err = {0};
	struct pending p;

	open_pending(&p, "floor.db");
	store_set_floor(p.s, UINT64_MAX - 1);
	assert_int_equal(store_begin(p.s, &next, &err), ERR_FULL);
	assert_non_null(strstr(err.text, "MB are free"));
	assert_non_null(strstr(err.text, "nothing deleted"));
	assert_int_equal(next.id, 0);
	/* What was begun before is finished. */
	assert_int_equal(store_put_segment(p.s, p.head.id, p.segment, NULL), 0);
	assert_int_equal(store_finish(p.s, &p.head, &p.segment, 1, NULL), 0);
	close_pending(&p);
}

static int install(void **state)
{
	(void)state;
	bad_disk_install();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_is_reported_and_can_be_waited_for),
		cmocka_unit_test(the_reserve_makes_room_once_and_is_made_again),
		cmocka_unit_test(whenever_the_disk_fills_up_the_store_stays_whole),
		cmocka_unit_test(a_new_store_on_a_full_disk_is_refused_and_made_later),
		cmocka_unit_test(deleting_works_on_a_full_disk_by_the_reserve),
		cmocka_unit_test(below_the_floor_nothing_new_is_begun),
	};

	return cmocka_run_group_tests(tests, install, NULL);
}
