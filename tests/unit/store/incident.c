/* What goes into the store comes back out: samples, stacks, names, windows, sums. */
#include "tests/support/store_lab.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(an_incident_comes_back_as_it_was_put)
{
	struct incident_head head = lab_head(MS(30), MS(30), MS(10));
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "round.db");
	lab_name(&lab, 'a');
	lab_name(&lab, 'c');
	lab_sample(&lab, MS(10), 0, "abc");
	lab_sample(&lab, MS(20), 1, "abd");
	lab_lost(&lab, MS(25), 3, LOSS_KERNEL, 5);
	segment = lab_seal(&lab);
	assert_int_equal(lab_incident(s, &head, &segment, 1), 1);
	assert_string_equal(lab_samples(s, 1), "10.0 main a?c\n20.0 worker a??\n");
	assert_int_equal(head.state, INCIDENT_COMPLETE);
	assert_int_equal(head.samples, 2);
	assert_int_equal(head.quality[QUALITY_FP], 2);
	assert_int_equal(head.lost, 5);
	assert_int_equal(head.lost_by_kind[LOSS_KERNEL], 5);
	assert_int_equal(head.period_ns[STREAM_CPU], MS(1));
	assert_true(head.stored_bytes > 0);
	segment_unref(segment);
	lab_end_sound(&lab, s);
}

/* The first lies in the window in part, in the third something was lost: both are decoded. */
TEST(what_was_counted_as_it_was_recorded_is_what_is_stored)
{
	static const char *const sums[] = {
		"SELECT samples FROM incident", "SELECT lost FROM incident",
		"SELECT sum(n) FROM quality", "SELECT count(*) FROM quality",
		"SELECT sum(n) FROM loss", "SELECT sum(period_ns) FROM stream",
	};
	struct incident_head head = lab_head(MS(50), MS(30), MS(10));
	struct event mark = {.time_ns = MS(35), .kind = EVENT_SAMPLE, .stream = STREAM_RSS_MARK,
			     .stack = STACK_NONE, .cpu = 1};
	struct segment *segments[3];
	int64_t counted[COUNT_OF(sums)];
	struct store *s;
	struct lab lab;
	unsigned i;

	s = lab_record(&lab, "counted.db");
	lab_sample(&lab, MS(10), 0, "abc");
	lab_sample(&lab, MS(25), 1, "abd");
	segments[0] = lab_seal(&lab);
	lab_sample(&lab, MS(30), 0, "abc");
	lab_sample(&lab, MS(35), 1, "ab");
	assert_int_equal(segment_add(lab.builder, &mark), 0);
	segments[1] = lab_seal(&lab);
	lab_sample(&lab, MS(40), 1, "abd");
	lab_lost(&lab, MS(45), 3, LOSS_KERNEL, 5);
	segments[2] = lab_seal(&lab);
	assert_int_equal(lab_incident(s, &head, segments, 3), 1);
	assert_int_equal(head.samples, 4);
	assert_int_equal(head.quality[QUALITY_FP], 4);
	assert_int_equal(head.lost, 5);
	for (i = 0; i < 3; i++)
		segment_unref(segments[i]);
	store_close(s);
	for (i = 0; i < COUNT_OF(sums); i++)
		counted[i] = lab_sql(lab.path, sums[i]);
	lab_sql(lab.path, "UPDATE incident SET state='open', samples=0, lost=0");
	lab_sql(lab.path, "DELETE FROM quality");
	assert_int_equal(store_open(lab.path, STORE_RECORD, &s, NULL), 0);
	for (i = 0; i < COUNT_OF(sums); i++)
		assert_int_equal(lab_sql(lab.path, sums[i]), counted[i]);
	lab_end_sound(&lab, s);
}

/* The sums of its samples are known, and yet it is read back. */
TEST(a_segment_that_is_damaged_before_its_incident_ends_is_found)
{
	struct incident_head head = lab_head(MS(30), MS(30), MS(10));
	struct segment *segment;
	struct store *s;
	struct lab lab;
	struct err err;

	s = lab_record(&lab, "early.db");
	lab_sample(&lab, MS(10), 0, "abc");
	segment = lab_seal(&lab);
	assert_int_equal(store_begin(s, &head, NULL), 0);
	assert_int_equal(store_put_segment(s, head.id, segment, NULL), 0);
	lab_sql(lab.path, "UPDATE segment SET data=substr(data, 1, length(data) - 1) || x'77'");
	head.t0_ns = 0;
	head.t1_ns = MS(40);
	assert_int_equal(store_finish(s, &head, NULL, 0, &err), ERR_FORMAT);
	assert_non_null(strstr(err.text, "its CRC is wrong"));
	segment_unref(segment);
	lab_end_sound(&lab, s);
}

TEST(a_head_comes_back_with_every_field)
{
	static char note[] = "kept", gap[] = "the ring was too short";
	struct incident_head head = lab_head(MS(5000), MS(4000), MS(1000)), back = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "head.db");
	head.value = NAN;
	head.limit = -0.1;
	assert_int_equal(store_begin(s, &head, NULL), 0);
	assert_int_equal(strlen(head.uuid), 36);
	head.t0_ns = MS(2000);
	head.gap_reason = gap;
	head.note = note;
	assert_int_equal(store_finish(s, &head, NULL, 0, NULL), 0);
	assert_int_equal(store_head(s, head.id, &back, NULL), 0);
	assert_string_equal(back.uuid, head.uuid);
	assert_int_equal(back.state, INCIDENT_COMPLETE);
	assert_string_equal(back.rule, head.rule);
	assert_string_equal(back.reason, head.reason);
	assert_true(back.value != back.value);        /* NaN: no value */
	assert_true(back.limit == -0.1);
	assert_int_equal(back.trigger_ns, MS(5000));
	assert_int_equal(back.trigger_wall_ns, LAB_WALL_NS + MS(5000));
	assert_int_equal(back.asked_pre_ns, MS(4000));
	assert_int_equal(back.asked_post_ns, MS(1000));
	assert_int_equal(back.t0_ns, MS(2000));
	assert_int_equal(back.t1_ns, MS(6000));
	assert_string_equal(back.gap_reason, gap);
	assert_string_equal(back.note, note);
	assert_string_equal(back.host, "box");
	assert_string_equal(back.host_text, "Linux 6.1");
	assert_string_equal(back.recorder_version, "1.0");
	assert_int_equal(back.recorder_cpu_ns, 7);
	assert_int_equal(back.recorder_rss_bytes, 8);
	assert_int_equal(back.samples, 0);
	incident_head_free(&back);
	lab_end(&lab, s);
}

TEST(the_window_cuts_samples_and_losses)
{
	struct incident_head head = lab_head(MS(30), MS(10), MS(10)), back = {0};
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "window.db");
	lab_sample(&lab, MS(10), 0, "a");
	lab_lost(&lab, MS(10), 0, LOSS_KERNEL, 100);
	lab_sample(&lab, MS(20), 0, "a");
	lab_lost(&lab, MS(20), 1, LOSS_QUEUE, 2);
	lab_lost(&lab, MS(30), 1, LOSS_QUEUE, 3);
	lab_lost(&lab, MS(40), 0, LOSS_KERNEL, 4);
	lab_sample(&lab, MS(40), 0, "a");
	lab_sample(&lab, MS(41), 0, "a");
	segment = lab_seal(&lab);
	lab_incident(s, &head, &segment, 1);
	assert_int_equal(head.samples, 2);
	assert_int_equal(head.lost, 9);
	assert_int_equal(store_head(s, head.id, &back, NULL), 0);
	assert_int_equal(back.lost_by_kind[LOSS_QUEUE], 5);
	assert_int_equal(back.lost_by_kind[LOSS_KERNEL], 4);
	/* By cpu and second from the trigger: 20 ms is in second -1, 30 ms in second 0. */
	assert_int_equal(lab_sql(lab.path, "SELECT n FROM loss WHERE cpu=1 AND second=-1"), 2);
	assert_int_equal(lab_sql(lab.path, "SELECT n FROM loss WHERE cpu=1 AND second=0"), 3);
	assert_string_equal(lab_samples(s, head.id), "20.0 main ?\n40.0 main ?\n");
	incident_head_free(&back);
	segment_unref(segment);
	lab_end(&lab, s);
}

TEST(samples_that_are_kept_with_less_are_not_lost)
{
	struct incident_head head = lab_head(MS(20), MS(10), 0);
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "python.db");
	lab_sample(&lab, MS(10), 0, "a");
	lab_lost(&lab, MS(12), 0, LOSS_PYTHON, 3);
	lab_lost(&lab, MS(13), 0, LOSS_TABLE, 7);
	lab_lost(&lab, MS(15), 0, LOSS_KERNEL, 4);
	segment = lab_seal(&lab);
	lab_incident(s, &head, &segment, 1);
	assert_int_equal(head.lost, 4);
	assert_int_equal(head.lost_by_kind[LOSS_PYTHON], 3);
	assert_int_equal(head.lost_by_kind[LOSS_TABLE], 7);
	segment_unref(segment);
	lab_end(&lab, s);
}

/* As it was stored before floods were counted apart. */
TEST(what_older_recorders_left_out_is_not_lost_either)
{
	struct incident_head head = lab_head(MS(20), MS(10), 0), back = {0};
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "floods.db");
	lab_sample(&lab, MS(10), 0, "a");
	lab_lost(&lab, MS(12), 0, LOSS_FLOOD, 17);
	lab_lost(&lab, MS(15), 0, LOSS_KERNEL, 4);
	segment = lab_seal(&lab);
	lab_incident(s, &head, &segment, 1);
	assert_int_equal(head.lost, 4);
	lab_sql(lab.path, "UPDATE incident SET lost=21");
	assert_int_equal(store_head(s, head.id, &back, NULL), 0);
	assert_int_equal(back.lost, 4);
	assert_int_equal(back.lost_by_kind[LOSS_FLOOD], 17);
	incident_head_free(&back);
	segment_unref(segment);
	lab_end(&lab, s);
}

/* Two incidents whose windows overlap, so that both have the same two segments. */
static void share_two(struct lab *lab, struct store *s, int64_t ids[2])
{
	struct incident_head first = lab_head(MS(20), MS(20), MS(20));
	struct incident_head second = lab_head(MS(30), MS(20), MS(20));
	struct segment *segments[2];

	lab_sample(lab, MS(10), 0, "ab");
	segments[0] = lab_seal(lab);
	lab_sample(lab, MS(30), 1, "ac");
	segments[1] = lab_seal(lab);
	ids[0] = lab_incident(s, &first, segments, 2);
	ids[1] = lab_incident(s, &second, segments, 2);
	segment_unref(segments[0]);
	segment_unref(segments[1]);
}

TEST(incidents_share_one_copy_of_a_segment)
{
	struct store *s;
	int64_t ids[2];
	struct lab lab;

	s = lab_record(&lab, "share.db");
	share_two(&lab, s, ids);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM segment"), 2);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM incident_segment"), 4);
	assert_int_equal(lab_sql(lab.path, "SELECT coalesce(sum(frames), 0) FROM frame_page"), 3);
	assert_string_equal(lab_samples(s, ids[0]), "10.0 main ??\n30.0 worker ??\n");
	assert_string_equal(lab_samples(s, ids[1]), lab_samples(s, ids[0]));
	lab_end(&lab, s);
}

TEST(deleting_one_incident_keeps_what_the_other_shares)
{
	struct store *s;
	int64_t ids[2];
	char *before;
	struct lab lab;

	s = lab_record(&lab, "share_delete.db");
	share_two(&lab, s, ids);
	before = strdup(lab_dump(s, ids[1]));
	assert_int_equal(lab_delete(s, ids[0], NULL), 0);
	assert_string_equal(lab_dump(s, ids[1]), before);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM segment"), 2);
	assert_int_equal(lab_sql(lab.path, "SELECT coalesce(sum(frames), 0) FROM frame_page"), 3);
	free(before);
	lab_end_sound(&lab, s);
}

TEST(deleting_the_last_incident_leaves_nothing)
{
	static const char *const tables[] = {
		"incident", "incident_segment", "segment", "frame_page", "function_page",
		"text_page", "module", "thread", "process", "host", "loss", "quality", "stream",
	};
	char sql[100];
	struct store *s;
	int64_t ids[2];
	struct lab lab;
	size_t i;

	s = lab_record(&lab, "empty.db");
	lab_name(&lab, 'a');
	share_two(&lab, s, ids);
	assert_int_equal(lab_delete(s, ids[1], NULL), 0);
	assert_int_equal(lab_delete(s, ids[0], NULL), 0);
	for (i = 0; i < COUNT_OF(tables); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM \"%s\"", tables[i]);
		assert_int_equal(lab_sql(lab.path, sql), 0);
	}
	assert_int_equal(lab_sql(lab.path, "PRAGMA freelist_count"), 0);
	lab_end_sound(&lab, s);
}

TEST(ids_are_not_used_twice)
{
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "ids.db");
	assert_int_equal(lab_simple(&lab, s, MS(10), 3), 1);
	assert_int_equal(lab_simple(&lab, s, MS(20), 3), 2);
	assert_int_equal(lab_delete(s, 2, NULL), 0);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(lab_simple(&lab, s, MS(30), 3), 3);
	lab_end(&lab, s);
}

TEST(a_segment_that_was_deleted_is_stored_again)
{
	struct incident_head first = lab_head(MS(20), MS(20), 0),
			     second = lab_head(MS(20), MS(20), 0);
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "again.db");
	lab_sample(&lab, MS(10), 0, "ab");
	segment = lab_seal(&lab);
	lab_incident(s, &first, &segment, 1);
	assert_true(segment->store_id != 0);
	assert_int_equal(lab_delete(s, first.id, NULL), 0);
	lab_incident(s, &second, &segment, 1);
	assert_string_equal(lab_samples(s, second.id), "10.0 main ??\n");
	segment_unref(segment);
	lab_end_sound(&lab, s);
}

/* The writer remembers row ids; another program's delete must make it forget them. */
TEST(a_delete_by_another_program_does_not_confuse_the_writer)
{
	struct store *s, *other;
	struct lab lab;

	s = lab_record(&lab, "other.db");
	assert_int_equal(lab_simple(&lab, s, MS(10), 3), 1);
	other = lab_store(&lab, STORE_EDIT);
	assert_int_equal(lab_delete(other, 1, NULL), 0);
	assert_int_equal(lab_sql(lab.path, "SELECT coalesce(sum(frames), 0) FROM frame_page"), 0);
	store_close(other);
	assert_int_equal(lab_simple(&lab, s, MS(20), 3), 2);
	assert_string_equal(lab_samples(s, 2), "20.0 main ???\n21.0 worker ???\n22.0 main ???\n");
	lab_end_sound(&lab, s);
}

TEST(names_that_come_late_are_filled_in)
{
	struct incident_head head = lab_head(MS(20), MS(20), 0);
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "late.db");
	lab_sample(&lab, MS(10), 0, "abc");
	segment = lab_begin(&lab, s, &head);
	lab_name(&lab, 'b');
	assert_int_equal(store_put_segment(s, head.id, segment, NULL), 0);
	assert_string_equal(lab_samples(s, head.id), "10.0 main ?b?\n");
	lab_name(&lab, 'c');
	assert_int_equal(store_finish(s, &head, &segment, 1, NULL), 0);
	assert_string_equal(lab_samples(s, head.id), "10.0 main ?bc\n");
	segment_unref(segment);
	lab_end(&lab, s);
}

TEST(a_name_in_the_store_is_not_replaced)
{
	struct frame_ref ref = {.offset = 10 << 12};
	struct lab lab, other;
	char path[1000];
	struct store *s;
	struct frame *frame;
	bool fresh;

	lab_open(&lab, "first_name.db");
	snprintf(path, sizeof(path), "%s", lab.path);
	lab.path = path;
	s = lab_store(&lab, STORE_RECORD);
	lab_name(&lab, 'a');
	assert_int_equal(lab_simple(&lab, s, MS(10), 1), 1);
	store_close(s);
	/* Another run names the frame 'a' differently; the frame itself is the same. */
	lab_open(&other, "second_name.db");
	ref.object = other.object;
	frame = frame_get(other.frames, frames_intern(other.frames, &ref, &fresh));
	assert_int_equal(frame_set_function(other.frames, frame, ref.offset, "another", NULL, NULL),
			 0);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(lab_simple(&other, s, MS(20), 1), 2);
	assert_string_equal(lab_samples(s, 2), "20.0 main a??\n");
	assert_int_equal(lab_sql(lab.path, "SELECT sum(functions) FROM function_page"), 1);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM module"), 1);
	store_close(s);
	lab_close(&other);
	lab_close(&lab);
}

/* Without a build id nothing says that a file is the same one as in the run before. */
TEST(frames_without_a_build_id_are_not_shared_between_runs)
{
	struct object_key key = {.kind = OBJECT_KERNEL,
				 .build_id_bytes = 4,
				 .build_id = {9, 9, 9, 9},
				 .path = "[kernel]"};
	struct store *s;
	struct lab lab;
	int run;

	lab_open(&lab, "runs.db");
	lab.object = objects_get(lab.frames, &key, 0);
	for (run = 0; run < 2; run++) {
		s = lab_store(&lab, STORE_RECORD);
		lab_simple(&lab, s, MS(10), 1);
		store_close(s);
	}
	/*
	 * Kernel modules are loaded elsewhere after the next boot, though the kernel is the same.
	 */
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM module"), 2);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM process"), 2);
	lab_close(&lab);
}

TEST(a_thread_gets_its_first_name_later)
{
	struct store *s;
	struct lab lab;

	lab_open(&lab, "nameless.db");
	thread_set_name(lab.threads[0], "");
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(lab_simple(&lab, s, MS(10), 1), 1);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM thread WHERE name=''"), 1);
	thread_set_name(lab.threads[0], "main");
	assert_int_equal(lab_simple(&lab, s, MS(20), 1), 2);
	assert_string_equal(lab_samples(s, 1), "10.0 main ???\n");
	assert_string_equal(lab_samples(s, 2), "20.0 main ???\n");
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM thread"), 1);
	lab_end(&lab, s);
}

TEST(a_renamed_thread_keeps_both_names)
{
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "rename.db");
	assert_int_equal(lab_simple(&lab, s, MS(10), 1), 1);
	thread_set_name(lab.threads[0], "renamed");
	assert_int_equal(lab_simple(&lab, s, MS(20), 1), 2);
	assert_string_equal(lab_samples(s, 1), "10.0 main ???\n");
	assert_string_equal(lab_samples(s, 2), "20.0 renamed ???\n");
	lab_end(&lab, s);
}

TEST(a_process_gets_its_better_name_later)
{
	struct incident in = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "process.db");
	assert_int_equal(lab_simple(&lab, s, MS(10), 1), 1);
	process_set_exe(lab.app, "/opt/application-server");
	assert_int_equal(lab_simple(&lab, s, MS(20), 1), 2);
	assert_int_equal(store_load(s, 1, &in, NULL), 0);
	assert_int_equal(in.nprocesses, 1);
	assert_string_equal(in.processes[0].name, "application-server");
	assert_string_equal(in.processes[0].cmdline, "app --serve");
	assert_int_equal(in.processes[0].parent_pid, 1);
	incident_free(&in);
	lab_end(&lab, s);
}

/* The home of the only process of an incident. */
static void check_home(struct store *s, int64_t id, const char *home)
{
	struct incident in = {0};

	assert_int_equal(store_load(s, id, &in, NULL), 0);
	assert_int_equal(in.nprocesses, 1);
	assert_string_equal(in.processes[0].home, home);
	incident_free(&in);
}

TEST(a_process_that_moves_has_the_home_of_its_time)
{
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "moves.db");
	assert_int_equal(lab_simple(&lab, s, MS(10), 1), 1);
	process_set_home(lab.app, "/system.slice/ssh.service", MS(15));
	assert_int_equal(lab_simple(&lab, s, MS(20), 1), 2);
	process_set_home(lab.app, "/user.slice/session-2.scope\nshop", MS(25));
	assert_int_equal(lab_simple(&lab, s, MS(30), 1), 3);
	assert_int_equal(lab_simple(&lab, s, MS(40), 1), 4);
	check_home(s, 1, "/system.slice/ssh.service");       /* first known then */
	check_home(s, 2, "/system.slice/ssh.service");
	check_home(s, 3, "/user.slice/session-2.scope\nshop");
	check_home(s, 4, "/user.slice/session-2.scope\nshop");
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM process"), 2);
	/* The texts of homes are swept with the last process that has them. */
	assert_int_equal(lab_delete(s, 1, NULL), 0);
	assert_int_equal(lab_delete(s, 2, NULL), 0);
	check_home(s, 3, "/user.slice/session-2.scope\nshop");
	lab_end_sound(&lab, s);
}

/* As recorders before homes wrote it. */
static void forget_homes(struct lab *lab, struct store *s)
{
	store_close(s);
	lab_sql(lab->path, "ALTER TABLE process DROP COLUMN home_id");
}

TEST(a_store_without_homes_is_read_and_gets_them)
{
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "older.db");
	process_set_home(lab.app, "/docker/x", 0);
	assert_int_equal(lab_simple(&lab, s, MS(10), 1), 1);
	forget_homes(&lab, s);
	s = lab_store(&lab, STORE_READ);
	check_home(s, 1, "");
	store_close(s);
	s = lab_store(&lab, STORE_EDIT);
	assert_int_equal(lab_delete(s, 7, NULL), ERR_NOT_FOUND);
	store_clean(s);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(lab_simple(&lab, s, MS(20), 1), 2);
	check_home(s, 1, "");
	check_home(s, 2, "/docker/x");
	lab_end_sound(&lab, s);
}

TEST(a_store_without_homes_is_salvaged)
{
	struct store_salvaged salvaged;
	struct store *s, *saved;
	char path[600];
	struct lab lab;

	s = lab_record(&lab, "salvage.db");
	assert_int_equal(lab_simple(&lab, s, MS(10), 3), 1);
	forget_homes(&lab, s);
	snprintf(path, sizeof(path), "%s.saved", lab.path);
	assert_int_equal(store_salvage(lab.path, path, &salvaged, NULL), 0);
	assert_int_equal(salvaged.incidents, 1);
	assert_int_equal(salvaged.unreadable, 0);
	assert_int_equal(store_open(path, STORE_READ, &saved, NULL), 0);
	check_home(saved, 1, "");
	store_close(saved);
	lab_remove(path);
	lab_close(&lab);
}

TEST(samples_of_segments_out_of_order_are_sorted)
{
	struct incident_head head = lab_head(MS(50), MS(50), 0);
	struct segment *segments[2];
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "order.db");
	lab_sample(&lab, MS(10), 0, "a");
	lab_sample(&lab, MS(30), 0, "a");
	segments[0] = lab_seal(&lab);
	lab_sample(&lab, MS(20), 1, "a");
	lab_sample(&lab, MS(30), 1, "a");
	segments[1] = lab_seal(&lab);
	lab_incident(s, &head, segments, 2);
	assert_string_equal(lab_samples(s, head.id),
			    "10.0 main ?\n20.0 worker ?\n30.0 main ?\n30.0 worker ?\n");
	segment_unref(segments[0]);
	segment_unref(segments[1]);
	lab_end(&lab, s);
}

/* Too many to be moved one by one: three of nine samples belong before four others. */
TEST(samples_of_segments_far_out_of_order_are_sorted)
{
	static const uint32_t times[] = {10, 60, 61, 62, 63, 20, 21, 22, 60};
	struct incident_head head = lab_head(MS(70), MS(70), 0);
	struct segment *segments[2];
	struct store *s;
	struct lab lab;
	unsigned i;

	s = lab_record(&lab, "far.db");
	for (i = 0; i < 5; i++)
		lab_sample(&lab, MS(times[i]), 0, "a");
	segments[0] = lab_seal(&lab);
	for (; i < 9; i++)
		lab_sample(&lab, MS(times[i]), 1, "a");
	segments[1] = lab_seal(&lab);
	lab_incident(s, &head, segments, 2);
	assert_string_equal(lab_samples(s, head.id),
			    "10.0 main ?\n20.0 worker ?\n21.0 worker ?\n22.0 worker ?\n"
			    "60.0 main ?\n60.0 worker ?\n61.0 main ?\n62.0 main ?\n63.0 main ?\n");
	segment_unref(segments[0]);
	segment_unref(segments[1]);
	lab_end(&lab, s);
}

/* Ids on both sides of the limit (2^24) up to which an array maps them, with gaps between. */
TEST(rows_of_any_id_are_found)
{
	struct incident_head head = lab_head(MS(50), MS(50), 0);
	struct segment *segments[3];
	struct store *s;
	struct lab lab;
	unsigned i;

	lab_open(&lab, "far_rows.db");
	for (i = 0; i < 4; i++)
		lab_name(&lab, (char)('a' + i));
	lab_sample(&lab, MS(10), 0, "ab");
	segments[0] = lab_seal(&lab);
	lab_sample(&lab, MS(20), 0, "abc");
	segments[1] = lab_seal(&lab);
	lab_sample(&lab, MS(30), 1, "dcba");
	segments[2] = lab_seal(&lab);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_begin(s, &head, NULL), 0);
	assert_int_equal(store_put_segment(s, head.id, segments[0], NULL), 0);
	lab_sql(lab.path, "INSERT INTO frame_page SELECT 99999, 100000, frames, data, functions"
		" FROM frame_page");
	assert_int_equal(store_put_segment(s, head.id, segments[1], NULL), 0);
	lab_sql(lab.path, "INSERT INTO frame_page SELECT 19999999, 20000000, frames, data,"
		" functions FROM frame_page WHERE first_id=1");
	assert_int_equal(store_put_segment(s, head.id, segments[2], NULL), 0);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM frame_page"
				 " WHERE first_id IN (100001, 20000001)"), 2);
	assert_int_equal(store_finish(s, &head, segments, 3, NULL), 0);
	assert_string_equal(lab_samples(s, head.id),
			    "10.0 main ab\n20.0 main abc\n30.0 worker dcba\n");
	for (i = 0; i < 3; i++)
		segment_unref(segments[i]);
	lab_end(&lab, s);
}

struct listed {
	int64_t ids[4];
	int n, stop_after;
};

static int take_id(void *ctx, const struct incident_head *head)
{
	struct listed *listed = ctx;

	listed->ids[listed->n++] = head->id;
	return listed->n == listed->stop_after;
}

TEST(the_list_is_newest_first_and_can_be_stopped)
{
	struct listed all = {.stop_after = -1}, some = {.stop_after = 2};
	struct store *s;
	int64_t newest;
	struct lab lab;

	s = lab_record(&lab, "list.db");
	assert_int_equal(store_newest(s, &newest, NULL), ERR_NOT_FOUND);
	lab_simple(&lab, s, MS(10), 1);
	lab_simple(&lab, s, MS(20), 1);
	lab_simple(&lab, s, MS(30), 1);
	assert_int_equal(store_list(s, take_id, &all, NULL), 0);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.ids[0], 3);
	assert_int_equal(all.ids[2], 1);
	assert_int_equal(store_list(s, take_id, &some, NULL), 0);
	assert_int_equal(some.n, 2);
	assert_int_equal(store_newest(s, &newest, NULL), 0);
	assert_int_equal(newest, 3);
	lab_end(&lab, s);
}

TEST(the_error_for_an_unknown_id_lists_the_known_ones)
{
	struct incident_head head;
	struct err err = {0};
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "unknown.db");
	assert_int_equal(store_head(s, 7, &head, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "there is no incident 7"));
	lab_simple(&lab, s, MS(10), 1);
	lab_simple(&lab, s, MS(20), 1);
	assert_int_equal(lab_delete(s, 7, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "it holds 2, 1"));
	assert_int_equal(store_pin(s, 7, true, &err), ERR_NOT_FOUND);
	lab_end(&lab, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incident_comes_back_as_it_was_put),
		cmocka_unit_test(what_was_counted_as_it_was_recorded_is_what_is_stored),
		cmocka_unit_test(a_segment_that_is_damaged_before_its_incident_ends_is_found),
		cmocka_unit_test(a_head_comes_back_with_every_field),
		cmocka_unit_test(the_window_cuts_samples_and_losses),
		cmocka_unit_test(incidents_share_one_copy_of_a_segment),
		cmocka_unit_test(deleting_one_incident_keeps_what_the_other_shares),
		cmocka_unit_test(deleting_the_last_incident_leaves_nothing),
		cmocka_unit_test(ids_are_not_used_twice),
		cmocka_unit_test(a_segment_that_was_deleted_is_stored_again),
		cmocka_unit_test(a_delete_by_another_program_does_not_confuse_the_writer),
		cmocka_unit_test(names_that_come_late_are_filled_in),
		cmocka_unit_test(a_name_in_the_store_is_not_replaced),
		cmocka_unit_test(frames_without_a_build_id_are_not_shared_between_runs),
		cmocka_unit_test(a_thread_gets_its_first_name_later),
		cmocka_unit_test(a_renamed_thread_keeps_both_names),
		cmocka_unit_test(a_process_gets_its_better_name_later),
		cmocka_unit_test(a_process_that_moves_has_the_home_of_its_time),
		cmocka_unit_test(a_store_without_homes_is_read_and_gets_them),
		cmocka_unit_test(a_store_without_homes_is_salvaged),
		cmocka_unit_test(samples_of_segments_out_of_order_are_sorted),
		cmocka_unit_test(samples_of_segments_far_out_of_order_are_sorted),
		cmocka_unit_test(rows_of_any_id_are_found),
		cmocka_unit_test(the_list_is_newest_first_and_can_be_stopped),
		cmocka_unit_test(the_error_for_an_unknown_id_lists_the_known_ones),
		cmocka_unit_test(samples_that_are_kept_with_less_are_not_lost),
		cmocka_unit_test(what_older_recorders_left_out_is_not_lost_either),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
