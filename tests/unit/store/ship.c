/* An incident copied into another store, and what a store remembers of what was sent. */
#include "base/text.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdlib.h>
#include <string.h>

#define TARGET "s3://bucket/x"

TEST(a_copied_incident_is_the_same_in_a_file_of_its_own)
{
	char *to = text_dup(tmp_path("one.db"), SIZE_MAX), *dump;
	struct incident_head a = {0}, b = {0};
	struct store *one = NULL;
	struct lab lab;
	struct store *s = lab_record(&lab, "from.db");
	int64_t copy = 0;

	lab_name(&lab, 'b');
	assert_int_equal(lab_simple(&lab, s, MS(100), 60), 1);
	assert_int_equal(lab_simple(&lab, s, MS(300), 7), 2);
	dump = text_dup(lab_dump(s, 2), SIZE_MAX);
	assert_int_equal(store_copy_to_file(s, 2, to, NULL), 0);
	lab_check_integrity(to);
	assert_int_equal(store_open(to, STORE_EDIT, &one, NULL), 0);
	assert_int_equal(store_head(s, 2, &a, NULL), 0);
	assert_int_equal(store_head(one, 1, &b, NULL), 0);
	assert_string_equal(a.uuid, b.uuid);
	assert_string_equal(a.host, b.host);
	assert_int_equal(a.samples, b.samples);
	assert_int_equal(b.state, INCIDENT_COMPLETE);
	assert_int_equal(store_copy(s, one, 1, NULL, NULL), ERR_EXISTS);
	assert_int_equal(store_delete(s, 2, NULL), 0);
	assert_int_equal(store_copy(s, one, 1, &copy, NULL), 0);
	assert_int_equal(copy, 3);
	/* All of it came back; the first line has the number. */
	assert_string_equal(strchr(lab_dump(s, 3), '\n'), strchr(dump, '\n'));
	incident_head_free(&a);
	incident_head_free(&b);
	store_close(one);
	lab_remove(to);
	free(to);
	free(dump);
	lab_end_sound(&lab, s);
}

static void note(struct store *s, int64_t id, enum ship_result state, const char *answer)
{
	struct incident_head h = {0};
	struct ship_note n = {.state = state, .answer = answer, .due_wall_ns = 77};

	assert_int_equal(store_head(s, id, &h, NULL), 0);
	n.uuid = h.uuid;
	assert_int_equal(store_ship_note(s, TARGET, &n, 5, NULL), 0);
	incident_head_free(&h);
}

static int64_t next(struct store *s)
{
	int64_t id = 0;
	int rc = store_ship_next(s, TARGET, &id, NULL);

	return rc ? rc : id;
}

TEST(incidents_wait_in_order_until_they_are_sent_refused_or_lost)
{
	struct ship_state is;
	struct lab lab;
	struct store *s = lab_record(&lab, "ship.db");
	uint32_t lost, i;

	for (i = 1; i <= 4; i++)
		lab_simple(&lab, s, MS(100 * i), 5);
	assert_int_equal(store_ship_look(s, TARGET, 1, &lost, NULL), 0);
	assert_int_equal(next(s), 1);
	note(s, 1, SHIP_SENT, NULL);
	assert_int_equal(next(s), 2);
	note(s, 2, SHIP_WAITING, "503");
	note(s, 2, SHIP_WAITING, "503 again");
	assert_int_equal(store_ship_state(s, TARGET, &is, NULL), 0);
	assert_int_equal(is.failures, 2);
	assert_int_equal(is.due_wall_ns, 77);
	assert_string_equal(is.answer, "503 again");
	note(s, 2, SHIP_REFUSED, "400: no");
	assert_int_equal(next(s), 3);
	assert_int_equal(store_delete(s, 3, NULL), 0);
	assert_int_equal(store_ship_look(s, TARGET, 9, &lost, NULL), 0);
	assert_int_equal(lost, 1);
	assert_int_equal(next(s), 4);
	note(s, 4, SHIP_SENT, NULL);
	assert_int_equal(next(s), ERR_NOT_FOUND);
	assert_int_equal(store_ship_state(s, TARGET, &is, NULL), 0);
	assert_int_equal(is.n[SHIP_WAITING], 0);
	assert_int_equal(is.n[SHIP_SENT], 2);
	assert_int_equal(is.n[SHIP_REFUSED], 1);
	assert_int_equal(is.n[SHIP_LOST], 1);
	assert_int_equal(is.failures, 0);
	assert_int_equal(is.due_wall_ns, 0);
	lab_end_sound(&lab, s);
}

TEST(one_that_failed_often_lets_others_go_first)
{
	struct lab lab;
	struct store *s = lab_record(&lab, "often.db");
	uint32_t lost, i;

	lab_simple(&lab, s, MS(100), 5);
	lab_simple(&lab, s, MS(200), 5);
	assert_int_equal(store_ship_look(s, TARGET, 1, &lost, NULL), 0);
	for (i = 0; i < 8; i++) {
		assert_int_equal(next(s), 1);
		note(s, 1, SHIP_WAITING, "reset");
	}
	assert_int_equal(next(s), 2);
	lab_end(&lab, s);
}

TEST(how_many_parts_were_sent_is_remembered_until_all_are)
{
	struct ship_note n = {.state = SHIP_WAITING, .parts = 5};
	struct incident_head h = {0};
	struct lab lab;
	struct store *s = lab_record(&lab, "parts.db");
	uint32_t lost, parts = 9;

	lab_simple(&lab, s, MS(100), 5);
	/* As a table that was made before there were parts. */
	assert_int_equal(store_ship_look(s, TARGET, 1, &lost, NULL), 0);
	lab_sql(tmp_path("parts.db"), "ALTER TABLE ship DROP COLUMN parts");
	assert_int_equal(store_ship_look(s, TARGET, 1, &lost, NULL), 0);
	assert_int_equal(store_head(s, 1, &h, NULL), 0);
	n.uuid = h.uuid;
	assert_int_equal(store_ship_parts(s, TARGET, h.uuid, &parts, NULL), 0);
	assert_int_equal(parts, 0);
	assert_int_equal(store_ship_keep(s, TARGET, h.uuid, 3, NULL), 0);
	assert_int_equal(store_ship_parts(s, TARGET, h.uuid, &parts, NULL), 0);
	assert_int_equal(parts, 3);
	assert_int_equal(store_ship_note(s, TARGET, &n, 5, NULL), 0);
	assert_int_equal(store_ship_parts(s, TARGET, h.uuid, &parts, NULL), 0);
	assert_int_equal(parts, 5);
	n.state = SHIP_SENT;
	assert_int_equal(store_ship_note(s, TARGET, &n, 5, NULL), 0);
	assert_int_equal(store_ship_parts(s, TARGET, h.uuid, &parts, NULL), 0);
	assert_int_equal(parts, 0);
	incident_head_free(&h);
	lab_end_sound(&lab, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copied_incident_is_the_same_in_a_file_of_its_own),
		cmocka_unit_test(incidents_wait_in_order_until_they_are_sent_refused_or_lost),
		cmocka_unit_test(one_that_failed_often_lets_others_go_first),
		cmocka_unit_test(how_many_parts_were_sent_is_remembered_until_all_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
