/* Recorders that ended too early, and bytes that changed on the disk. */
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* An incident at 30 ms that asks for 20 ms before and after; its segment is put, it never ends. */
static void leave_open(struct lab *lab, struct store *s)
{
	struct incident_head head = lab_head(MS(30), MS(20), MS(20));
	struct segment *segment;

	lab_sample(lab, MS(5), 0, "ab");
	lab_sample(lab, MS(25), 0, "ab");
	lab_lost(lab, MS(26), 0, LOSS_KERNEL, 4);
	lab_sample(lab, MS(35), 1, "ab");
	segment = lab_begin(lab, s, &head);
	segment_unref(segment);
	store_close(s);
}

TEST(what_a_recorder_left_open_becomes_partial)
{
	struct incident_head head = {0};
	struct store *s;
	struct lab lab;

	lab_open(&lab, "partial.db");
	leave_open(&lab, lab_store(&lab, STORE_RECORD));
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_head(s, 1, &head, NULL), 0);
	assert_int_equal(head.state, INCIDENT_PARTIAL);
	/* It asked for 10 to 50 ms; the segments cover 5 to 35. */
	assert_int_equal(head.t0_ns, MS(10));
	assert_int_equal(head.t1_ns, MS(35));
	assert_int_equal(head.samples, 2);
	assert_int_equal(head.quality[QUALITY_FP], 2);
	assert_int_equal(head.lost_by_kind[LOSS_KERNEL], 4);
	assert_int_equal(head.period_ns[STREAM_CPU], MS(1));
	assert_non_null(strstr(head.gap_reason, "the recorder ended"));
	assert_string_equal(lab_samples(s, 1), "25.0 main ??\n35.0 worker ??\n");
	incident_head_free(&head);
	lab_end_sound(&lab, s);
}

TEST(only_a_recorder_turns_open_into_partial)
{
	struct incident_head head = {0};
	struct store *s;
	struct lab lab;

	lab_open(&lab, "still_open.db");
	leave_open(&lab, lab_store(&lab, STORE_RECORD));
	s = lab_store(&lab, STORE_READ);
	assert_int_equal(store_head(s, 1, &head, NULL), 0);
	assert_int_equal(head.state, INCIDENT_OPEN);
	assert_int_equal(head.t0_ns, MS(10));
	assert_int_equal(head.t1_ns, MS(35));
	assert_string_equal(lab_samples(s, 1), "25.0 main ??\n35.0 worker ??\n");
	incident_head_free(&head);
	lab_end(&lab, s);
}

TEST(an_incident_without_segments_is_partial_too)
{
	struct incident_head head = lab_head(MS(30), MS(20), MS(20)), back = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "nothing.db");
	assert_int_equal(store_begin(s, &head, NULL), 0);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_head(s, 1, &back, NULL), 0);
	assert_int_equal(back.state, INCIDENT_PARTIAL);
	assert_int_equal(back.t0_ns, MS(30));
	assert_int_equal(back.t1_ns, MS(30));
	assert_string_equal(lab_samples(s, 1), "");
	incident_head_free(&back);
	lab_end(&lab, s);
}

/* Two incidents with a segment each; the statement then damages the first segment's row. */
static void damage(struct lab *lab, const char *name, const char *sql)
{
	struct store *s;

	s = lab_record(lab, name);
	lab_simple(lab, s, MS(10), 40);
	lab_simple(lab, s, MS(60), 3);
	store_close(s);
	lab_sql(lab->path, sql);
}

static void refuses_to_load(struct lab *lab, const char *what)
{
	struct store *s = lab_store(lab, STORE_READ);
	struct incident in = {0};
	struct err err = {0};

	assert_int_equal(store_load(s, 1, &in, &err), ERR_FORMAT);
	assert_null(in.samples);
	assert_non_null(strstr(err.text, "incident 1 in"));
	assert_non_null(strstr(err.text, what));
	assert_string_equal(lab_samples(s, 2), "60.0 main ???\n61.0 worker ???\n62.0 main ???\n");
	store_close(s);
}

TEST(a_changed_crc_is_found_and_the_segment_named)
{
	struct lab lab;

	/* Bytes 7 to 10 of a blob are its CRC. */
	damage(&lab, "crc.db", "UPDATE segment SET data = CAST(substr(data, 1, 6) || x'00000000' ||"
	       " substr(data, 11) AS BLOB) WHERE id=1");
	refuses_to_load(&lab, "segment 1 of incident 1");
	lab_close(&lab);
	damage(&lab, "crc2.db",
	       "UPDATE segment SET lists = CAST(substr(lists, 1, 6) || x'00000000' ||"
	       " substr(lists, 11) AS BLOB) WHERE id=1");
	refuses_to_load(&lab, "its CRC is wrong");
	lab_close(&lab);
}

TEST(every_flipped_byte_of_a_blob_is_found)
{
	struct lab lab;
	struct store *s;
	char sql[300];
	int i, n;

	damage(&lab, "flip.db", "SELECT 1");
	n = (int)lab_sql(lab.path, "SELECT length(data) FROM segment WHERE id=1");
	assert_in_range(n, 20, 2000);
	lab_sql(lab.path, "CREATE TABLE spare AS SELECT data FROM segment WHERE id=1");
	s = lab_store(&lab, STORE_READ);
	for (i = 1; i <= n; i++) {
		struct incident in = {0};

		/* Every byte becomes FF, and FF becomes 00. */
		snprintf(sql, sizeof(sql),
			 "UPDATE segment SET data = (SELECT CAST(substr(data, 1, %d) || CASE"
			 " hex(substr(data, %d, 1)) WHEN 'FF' THEN x'00' ELSE x'FF' END || "
			 "substr(data, %d)"
			 " AS BLOB) FROM spare) WHERE id=1",
			 i - 1, i, i + 1);
		lab_sql(lab.path, sql);
		assert_int_equal(store_load(s, 1, &in, NULL), ERR_FORMAT);
	}
	lab_end(&lab, s);
}

TEST(a_blob_cut_short_is_found)
{
	struct lab lab;

	damage(&lab, "cut.db", "UPDATE segment SET data = substr(data, 1, 20) WHERE id=1");
	refuses_to_load(&lab, "damaged");
	lab_close(&lab);
	damage(&lab, "cut2.db", "UPDATE segment SET lists = x'01' WHERE id=1");
	refuses_to_load(&lab, "it ends after 1 bytes");
	lab_close(&lab);
}

TEST(a_blob_that_claims_a_huge_size_is_refused)
{
	struct lab lab;

	damage(&lab, "huge.db",
	       "UPDATE segment SET data = CAST(substr(data, 1, 2) || x'FFFFFF7F' ||"
	       " substr(data, 7) AS BLOB) WHERE id=1");
	refuses_to_load(&lab, "impossible");
	lab_close(&lab);
}

TEST(rows_that_a_segment_lists_must_be_there)
{
	struct lab lab;

	damage(&lab, "rows.db",
	       "UPDATE frame_page SET first_id = first_id + 1000000, last_id = last_id + 1000000;"
	       "DELETE FROM incident WHERE id=2");
	{
		struct store *s = lab_store(&lab, STORE_READ);
		struct err err = {0};
		struct incident in = {0};

		assert_int_equal(store_load(s, 1, &in, &err), ERR_FORMAT);
		assert_non_null(strstr(err.text, "its frame 1 is missing"));
		store_close(s);
	}
	lab_close(&lab);
}

/*
 * Three segments of 10 samples, from 0, 10 and 20 ms. The trigger is at 15 ms, and the middle
 * segment is damaged.
 */
TEST(a_damaged_segment_leaves_the_others)
{
	struct incident_head head = lab_head(MS(15), MS(15), MS(15));
	struct segment *segments[3];
	struct incident in = {0};
	struct err err = {0};
	struct store *s;
	struct lab lab;
	unsigned i, k;

	s = lab_record(&lab, "others.db");
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 10; k++)
			lab_sample(&lab, MS(10 * i + k), 0, "ab");
		segments[i] = lab_seal(&lab);
	}
	lab_incident(s, &head, segments, 3);
	store_close(s);
	lab_sql(lab.path, "UPDATE segment SET data = substr(data, 1, 20) WHERE id=2");
	s = lab_store(&lab, STORE_READ);
	assert_int_equal(store_load(s, 1, &in, &err), 0);
	assert_int_equal(in.nsamples, 20);
	assert_int_equal(in.head.samples, 20);
	assert_int_equal(in.samples[9].time_ns, MS(9));
	assert_int_equal(in.samples[10].time_ns, MS(20));
	assert_non_null(strstr(in.damage, "1 of its 3 segments cannot be read: up to 10 samples "
			       "and the events beside them are missing, from -0.005 s to +0.004 s "
			       "of the trigger"));
	assert_int_equal(incident_whole(&in, &err), ERR_FORMAT);
	assert_non_null(strstr(err.text, "incident 1 is damaged: 1 of its 3 segments"));
	incident_free(&in);
	store_close(s);
	for (i = 0; i < 3; i++)
		segment_unref(segments[i]);
	lab_close(&lab);
}

/*
 * 20 segments of 10 samples: so many that another thread decodes ahead. The last but one is
 * damaged, the others come in order.
 */
TEST(a_damaged_one_of_many_segments_leaves_the_others)
{
	enum { MANY = 20 };
	struct incident_head head = lab_head(MS(150), MS(150), MS(150));
	struct segment *segments[MANY];
	struct incident in = {0};
	struct err err = {0};
	struct store *s;
	struct lab lab;
	unsigned i, k;

	s = lab_record(&lab, "many.db");
	for (i = 0; i < MANY; i++) {
		for (k = 0; k < 10; k++)
			lab_sample(&lab, MS(10 * i + k), 0, i % 2 ? "ab" : "ac");
		segments[i] = lab_seal(&lab);
	}
	lab_incident(s, &head, segments, MANY);
	store_close(s);
	lab_sql(lab.path, "UPDATE segment SET data = substr(data, 1, 20) WHERE id=19");
	s = lab_store(&lab, STORE_READ);
	assert_int_equal(store_load(s, 1, &in, &err), 0);
	assert_int_equal(in.nsamples, 190);
	for (i = 0; i < 190; i++)
		assert_int_equal(in.samples[i].time_ns, MS(i < 180 ? i : i + 10));
	assert_non_null(strstr(in.damage, "1 of its 20 segments cannot be read: up to 10 samples"));
	incident_free(&in);
	store_close(s);
	s = lab_store(&lab, STORE_EDIT);
	assert_int_equal(lab_delete(s, 1, NULL), 0);
	assert_int_equal(store_load(s, 1, &in, &err), ERR_NOT_FOUND);
	store_close(s);
	for (i = 0; i < MANY; i++)
		segment_unref(segments[i]);
	lab_close(&lab);
}

/* Two samples of "ab", where b has a name. The statement damages the store; it must still load. */
static void load_without(const char *name, const char *sql, const char *samples,
			 const char *cmdline, const char *damage)
{
	struct incident in = {0};
	struct err err = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, name);
	lab_name(&lab, 'b');
	lab_simple(&lab, s, MS(10), 2);
	store_close(s);
	lab_sql(lab.path, sql);
	s = lab_store(&lab, STORE_READ);
	assert_string_equal(lab_samples(s, 1), samples);
	assert_int_equal(store_load(s, 1, &in, &err), 0);
	assert_int_equal(in.head.samples, 2);
	assert_string_equal(in.processes[0].cmdline, cmdline);
	assert_non_null(in.damage);
	assert_non_null(strstr(in.damage, damage));
	assert_ptr_equal(strstr(in.damage, "some"), in.damage);
	assert_null(strstr(in.damage + 1, "some"));
	incident_free(&in);
	lab_end(&lab, s);
}

TEST(a_damaged_page_of_texts_costs_command_lines_only)
{
	static const char why[] = "some command lines cannot be read and are missing (";
	static const char samples[] = "10.0 main ?b?\n11.0 worker ?b?\n";

	load_without("text.db", "UPDATE text_page SET data = substr(data, 1, 12)", samples, "",
		     why);
	load_without("text_gone.db", "DELETE FROM text_page", samples, "", why);
	load_without("text_wild.db", "UPDATE text_page SET first_id = -9223372036854775807",
		     samples, "", why);
}

TEST(a_damaged_page_of_functions_costs_names_only)
{
	static const char why[] = "some names of functions cannot be read and are missing (";
	static const char samples[] = "10.0 main ???\n11.0 worker ???\n";

	load_without("name.db", "UPDATE function_page SET names = substr(names, 1, 12)", samples,
		     "app --serve", why);
	load_without("name_gone.db", "DELETE FROM function_page", samples, "app --serve", why);
	load_without("name_wild.db", "UPDATE function_page SET first_id = -9223372036854775807",
		     samples, "app --serve", why);
}

/* Nothing may be swept while a list cannot be read: it may list anything. */
TEST(damage_does_not_spread_when_something_is_deleted)
{
	struct store *s;
	struct lab lab;

	damage(&lab, "spread.db", "CREATE TABLE spare AS SELECT lists FROM segment WHERE id=1;"
	       "UPDATE segment SET lists = x'01' WHERE id=1");
	s = lab_store(&lab, STORE_EDIT);
	assert_int_equal(lab_delete(s, 2, NULL), 0);
	lab_sql(lab.path, "UPDATE segment SET lists = (SELECT lists FROM spare) WHERE id=1");
	assert_int_equal(strlen(lab_samples(s, 1)), 20 * 14 + 20 * 16);
	lab_end(&lab, s);
}

/* Four incidents with a page of frames and one of functions each; and a module nobody lists. */
static void four_incidents(struct lab *lab, const char *name)
{
	static const char *const stacks[] = {"ab", "cd", "ef", "gh"};
	struct store *s;
	unsigned i;

	s = lab_record(lab, name);
	for (i = 0; i < 4; i++) {
		struct incident_head head = lab_head(MS(10 * (i + 1)), MS(5), 0);
		struct segment *segment;

		lab_sample(lab, MS(10 * (i + 1)), 0, stacks[i]);
		lab_name(lab, stacks[i][0]);
		lab_name(lab, stacks[i][1]);
		segment = lab_seal(lab);
		assert_int_equal(lab_incident(s, &head, &segment, 1), i + 1);
		segment_unref(segment);
	}
	store_close(s);
	lab_sql(lab->path,
		"INSERT INTO module(identity, kind, name, path) VALUES('x', 'elf', 'x', '/x')");
}

static void delete_incident(struct lab *lab, int64_t id)
{
	struct store *s = lab_store(lab, STORE_EDIT);

	assert_int_equal(lab_delete(s, id, NULL), 0);
	store_close(s);
}

static void check_samples(struct lab *lab, int64_t id, const char *samples)
{
	struct store *s = lab_store(lab, STORE_READ);

	assert_string_equal(lab_samples(s, id), samples);
	store_close(s);
}

static void check_pages(struct lab *lab, int frames, int functions, int modules)
{
	assert_int_equal(lab_sql(lab->path, "SELECT count(*) FROM frame_page"), frames);
	assert_int_equal(lab_sql(lab->path, "SELECT count(*) FROM function_page"), functions);
	assert_int_equal(lab_sql(lab->path, "SELECT count(*) FROM module"), modules);
}

/*
 * The page of frames 3 and 4 is damaged: it stays until its incident, the second, is deleted. The
 * others are swept.
 */
TEST(a_damaged_page_of_frames_does_not_end_sweeping)
{
	struct lab lab;

	four_incidents(&lab, "sweep_frames.db");
	lab_sql(lab.path, "CREATE TABLE spare AS SELECT data FROM frame_page WHERE first_id = 3;"
		"UPDATE frame_page SET data = substr(data, 1, 12) WHERE first_id = 3");
	check_pages(&lab, 4, 4, 2);
	delete_incident(&lab, 4);
	check_pages(&lab, 3, 4, 2);          /* what the damaged page names is unknown */
	lab_sql(lab.path,
		"UPDATE frame_page SET data = (SELECT data FROM spare) WHERE first_id = 3");
	check_samples(&lab, 1, "10.0 main ab\n");
	check_samples(&lab, 2, "20.0 main cd\n");
	check_samples(&lab, 3, "30.0 main ef\n");
	lab_sql(lab.path, "UPDATE frame_page SET data = substr(data, 1, 12) WHERE first_id = 3");
	delete_incident(&lab, 2);
	check_pages(&lab, 2, 2, 1);
	check_samples(&lab, 1, "10.0 main ab\n");
	check_samples(&lab, 3, "30.0 main ef\n");
	lab_close(&lab);
}

TEST(a_damaged_page_of_functions_does_not_end_sweeping)
{
	struct lab lab;

	four_incidents(&lab, "sweep_functions.db");
	lab_sql(lab.path,
		"UPDATE function_page SET names = substr(names, 1, 12) WHERE first_id = 3");
	delete_incident(&lab, 4);
	/* The three pages of frames became one. Which modules the damaged page names is unknown. */
	check_pages(&lab, 1, 3, 2);
	delete_incident(&lab, 2);
	check_pages(&lab, 1, 2, 1);
	check_samples(&lab, 1, "10.0 main ab\n");
	check_samples(&lab, 3, "30.0 main ef\n");
	lab_close(&lab);
}

/* The id of one thread is far away from the others: threads stay, all else is swept. */
TEST(ids_too_far_apart_leave_only_their_own_kind_unswept)
{
	struct lab lab;

	four_incidents(&lab, "sweep_range.db");
	lab_sql(lab.path,
		"INSERT INTO thread(id, process_id, tid, name)"
		" SELECT 1 << 40, process_id, 7, 'far' FROM thread LIMIT 1");
	delete_incident(&lab, 4);
	check_pages(&lab, 1, 3, 1);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM thread"), 2);
	check_samples(&lab, 1, "10.0 main ab\n");
	check_samples(&lab, 3, "30.0 main ef\n");
	lab_close(&lab);
}

TEST(a_damaged_open_incident_does_not_stop_a_recorder)
{
	struct incident_head head = {0};
	struct store *s;
	struct lab lab;

	lab_open(&lab, "damaged_open.db");
	leave_open(&lab, lab_store(&lab, STORE_RECORD));
	lab_sql(lab.path, "UPDATE segment SET data = x'01'");
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_head(s, 1, &head, NULL), 0);
	assert_int_equal(head.state, INCIDENT_PARTIAL);
	assert_int_equal(lab_simple(&lab, s, MS(100), 2), 2);
	incident_head_free(&head);
	lab_end(&lab, s);
}

/* It is put into statements for databases, URLs and names of files. */
TEST(a_uuid_of_a_hostile_store_has_no_quotes)
{
	struct incident_head head = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "quotes.db");
	lab_name(&lab, 'b');
	lab_simple(&lab, s, MS(10), 2);
	store_close(s);
	lab_sql(lab.path, "UPDATE incident SET uuid = 'x'';DROP TABLE a/../b--%00' || char(10)");
	s = lab_store(&lab, STORE_READ);
	assert_int_equal(store_head(s, 1, &head, NULL), 0);
	assert_string_equal(head.uuid, "x--DROP-TABLE-a----b---00-");
	incident_head_free(&head);
	store_close(s);
	lab_close(&lab);
}

/* A store whose last ids are in use: what is stored next would get none. */
static void refuses_to_store(const char *name, const char *sql, const char *what)
{
	struct incident_head head = lab_head(MS(60), MS(5), MS(5));
	struct segment *segment;
	struct err err = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, name);
	lab_name(&lab, 'b');
	lab_simple(&lab, s, MS(10), 2);
	store_close(s);
	lab_sql(lab.path, sql);
	s = lab_store(&lab, STORE_RECORD);
	lab_name(&lab, 'x');
	lab_sample(&lab, MS(60), 0, "axy");
	segment = lab_seal(&lab);
	assert_int_equal(store_begin(s, &head, NULL), 0);
	assert_int_equal(store_put_segment(s, head.id, segment, &err), ERR_FORMAT);
	assert_non_null(strstr(err.text, what));
	assert_non_null(strstr(err.text, "move it away"));
	segment_unref(segment);
	lab_end_sound(&lab, s);
}

TEST(ids_that_are_used_up_are_refused_with_what_to_do)
{
	refuses_to_store("last_frame.db", "UPDATE frame_page SET last_id = 9223372036854775807",
			 "its frames have ids up to 9223372036854775807");
	refuses_to_store("last_function.db",
			 "UPDATE function_page SET last_id = 9223372036854775806",
			 "its functions have ids up to 9223372036854775806");
	refuses_to_store("last_text.db", "UPDATE text_page SET last_id = 9223372036854775807",
			 "its texts have ids up to 9223372036854775807");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_recorder_left_open_becomes_partial),
		cmocka_unit_test(only_a_recorder_turns_open_into_partial),
		cmocka_unit_test(an_incident_without_segments_is_partial_too),
		cmocka_unit_test(a_changed_crc_is_found_and_the_segment_named),
		cmocka_unit_test(every_flipped_byte_of_a_blob_is_found),
		cmocka_unit_test(a_blob_cut_short_is_found),
		cmocka_unit_test(a_blob_that_claims_a_huge_size_is_refused),
		cmocka_unit_test(rows_that_a_segment_lists_must_be_there),
		cmocka_unit_test(a_damaged_segment_leaves_the_others),
		cmocka_unit_test(a_uuid_of_a_hostile_store_has_no_quotes),
		cmocka_unit_test(a_damaged_one_of_many_segments_leaves_the_others),
		cmocka_unit_test(a_damaged_page_of_texts_costs_command_lines_only),
		cmocka_unit_test(a_damaged_page_of_functions_costs_names_only),
		cmocka_unit_test(damage_does_not_spread_when_something_is_deleted),
		cmocka_unit_test(a_damaged_page_of_frames_does_not_end_sweeping),
		cmocka_unit_test(a_damaged_page_of_functions_does_not_end_sweeping),
		cmocka_unit_test(ids_too_far_apart_leave_only_their_own_kind_unswept),
		cmocka_unit_test(a_damaged_open_incident_does_not_stop_a_recorder),
		cmocka_unit_test(ids_that_are_used_up_are_refused_with_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
