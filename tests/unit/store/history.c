/* The history: what is put is there after any end, in files that leave whole. */
#include "store/history.h"

#include "tests/support/bad_disk.h"
#include "tests/unit/store/history_lab.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT_WRITES 69                        /* of a file, twelve puts and the end */

static uint32_t count_samples(struct lab *lab, unsigned from, unsigned to, char gaps[400])
{
	struct incident in = {0};
	struct err err = {0};
	uint32_t n;
	int rc = history_load(lab->path, LAB_WALL_NS + S(from), LAB_WALL_NS + S(to),
			      LAB_WALL_NS + S(from), &in, &err);

	if (rc == ERR_NOT_FOUND)
		return 0;
	if (rc)
		fail_msg("%s", err.text);
	n = in.nsamples;
	if (gaps)
		snprintf(gaps, 400, "%s", in.head.gap_reason ? in.head.gap_reason : "");
	incident_free(&in);
	return n;
}

static uint32_t count_files(struct lab *lab)
{
	struct history_files files = {0};
	uint32_t n;

	assert_int_equal(history_list(lab->path, &files, NULL), 0);
	n = files.n;
	history_files_free(&files);
	return n;
}

static void a_window_is_read_while_the_file_is_written(void **state)
{
	struct lab lab;
	struct history *h;

	(void)state;
	begin(&lab, "history-read.db");
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	put(&lab, h, 110);
	assert_int_equal(count_samples(&lab, 105, 112, NULL), 8);    /* 105 ... 112 */
	assert_int_equal(count_samples(&lab, 130, 140, NULL), 0);
	history_close(h, "stopped");
	assert_int_equal(count_samples(&lab, 100, 119, NULL), 20);
	end(&lab);
}

/* The lock vanishes with the process; the file and its log stay. */
static void what_a_dead_recorder_put_is_there(void **state)
{
	struct history_files files = {0};
	char gaps[400];
	struct lab lab;
	struct history *h;

	(void)state;
	begin(&lab, "history-dead.db");
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	history_close(h, NULL);
	assert_int_equal(count_samples(&lab, 100, 200, gaps), 10);
	assert_non_null(strstr(gaps, "ended without saying so"));
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	assert_int_equal(files.n, 1);
	assert_true(history_is_left(files.all[0].path));
	assert_int_equal(history_settle(files.all[0].path, "it was killed", NULL), 0);
	assert_false(history_is_left(files.all[0].path));
	history_look(&files.all[0], true);
	assert_true(files.all[0].readable);
	assert_false(files.all[0].open);
	assert_string_equal(files.all[0].end, "it was killed");
	assert_int_equal(files.all[0].samples, 10);
	assert_int_equal(files.all[0].nslots, 1);
	assert_int_equal(files.all[0].slots[0], 10);
	lab_check_integrity(files.all[0].path);
	history_files_free(&files);
	end(&lab);
}

static void files_end_by_size_and_leave_whole(void **state)
{
	struct history_use use;
	struct lab lab;
	struct history *h;
	unsigned i;

	(void)state;
	begin(&lab, "history-limit.db");
	h = open_history(&lab, 4 << 20, 60 << 10);
	for (i = 0; i < 40; i++) {
		put(&lab, h, 100 + 10 * i);
		history_use(h, &use);
		assert_true(use.bytes <= 4 << 20);
	}
	assert_true(use.files >= 2);
	assert_int_equal(use.files, count_files(&lab));
	assert_int_equal(count_samples(&lab, 100, 109, NULL), 0);
	assert_int_equal(count_samples(&lab, 480, 499, NULL), 20);
	history_close(h, "stopped");
	end(&lab);
}

/* After its disk was away, up to 8 MB are put at once: room is made for all of it before. */
static void a_large_put_stays_within_the_limit(void **state)
{
	enum { MANY = 150, SAMPLES = 8000 };
	const uint64_t limit = 10 << 20;
	struct history_now now = now_at(S(1000));
	struct segment *all[MANY];
	struct history_use use;
	struct lab lab;
	struct history *h;
	struct err err = {0};
	uint32_t chance = 1;
	unsigned i, n;

	(void)state;
	begin(&lab, "history-large.db");
	h = open_history(&lab, limit, 60 << 10);
	for (i = 0; i < 100; i++)
		put(&lab, h, 100 + 10 * i);
	history_use(h, &use);
	assert_true(use.bytes > limit / 2);
	for (i = 0; i < MANY; i++) {
		for (n = 0; n < SAMPLES; n++) {
			chance = chance * 1664525 + 1013904223;
			lab_sample(&lab, S(1000) + n * MS(1) + (chance >> 12), n % 2, "ab");
		}
		all[i] = lab_seal(&lab);
	}
	assert_int_equal(history_put(h, all, MANY, &now, &err), 0);
	history_use(h, &use);
	assert_true(use.put_bytes > 2 << 20);
	assert_true(use.bytes <= limit);
	for (i = 0; i < MANY; i++)
		segment_unref(all[i]);
	history_close(h, "stopped");
	end(&lab);
}

/* Each file has one pair of clocks, so its times are right before and after. */
static void a_wall_clock_that_is_set_begins_a_file(void **state)
{
	struct lab lab;
	struct history *h;

	(void)state;
	begin(&lab, "history-clock.db");
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	assert_int_equal(try_put(&lab, h, 110, S(3600), NULL), 0);
	assert_int_equal(count_files(&lab), 2);
	assert_int_equal(count_samples(&lab, 100, 130, NULL), 10);
	assert_int_equal(count_samples(&lab, 3710, 3730, NULL), 10);
	assert_int_equal(count_samples(&lab, 100, 3730, NULL), 20);
	history_close(h, "stopped");
	end(&lab);
}

static void a_full_disk_costs_nothing_that_was_put(void **state)
{
	struct lab lab;
	struct history *h;
	struct err err = {0};
	int writes;

	(void)state;
	begin(&lab, "history-full.db");
	bad_disk_install();
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	for (writes = 0; writes < 8; writes++) {
		bad_disk_full_after(writes);
		if (try_put(&lab, h, 200 + 10 * (unsigned)writes, 0, &err))
			assert_int_equal(err.code, ERR_FULL);
	}
	bad_disk_full_after(-1);
	put(&lab, h, 300);
	assert_int_equal(count_samples(&lab, 100, 109, NULL), 10);
	assert_int_equal(count_samples(&lab, 300, 309, NULL), 10);
	history_close(h, "stopped");
	bad_disk_remove();
	end(&lab);
}


/* What failed is put again, into a file of its own; what was put before stays. */
static void a_broken_disk_costs_nothing_that_was_put(void **state)
{
	struct lab lab;
	struct history *h;
	struct err err = {0};

	(void)state;
	begin(&lab, "history-broken.db");
	bad_disk_install();
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	bad_disk_breaks(true);
	assert_int_not_equal(try_put(&lab, h, 110, 0, &err), 0);
	assert_int_not_equal(try_put(&lab, h, 120, 0, &err), 0);
	bad_disk_breaks(false);
	put(&lab, h, 130);
	assert_int_equal(count_files(&lab), 2);
	assert_int_equal(count_samples(&lab, 100, 109, NULL), 10);
	assert_int_equal(count_samples(&lab, 130, 139, NULL), 10);
	history_close(h, "stopped");
	bad_disk_remove();
	end(&lab);
}

/* Killed before the first segment: the next one takes it away, but not while somebody writes. */
static void a_blank_file_is_taken_away(void **state)
{
	struct history_files files = {0};
	struct os_file *file = NULL, *lock = NULL;
	struct lab lab;
	char path[500], lock_path[520];
	struct history *h;

	(void)state;
	begin(&lab, "history-blank.db");
	h = open_history(&lab, 64 << 20, 0);
	history_close(h, NULL);
	snprintf(path, sizeof(path), "%s%s/000001-20261121-001640.db", lab.path, HISTORY_SUFFIX);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	os_close(file);
	assert_int_equal(os_lock(lock_path, &lock, NULL), 0);
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	assert_int_equal(files.n, 1);
	history_look(&files.all[0], true);
	assert_false(files.all[0].readable);
	assert_true(files.all[0].blank);
	history_drop_blank(&files.all[0]);
	assert_true(os_exists(path));
	os_close(lock);
	history_drop_blank(&files.all[0]);
	assert_false(os_exists(path));
	assert_false(os_exists(lock_path));
	history_files_free(&files);
	end(&lab);
}

/* A disk that is taken out, directory and all, and comes back empty. */
static void a_removed_directory_is_made_again(void **state)
{
	char dir[400];
	struct lab lab;
	struct history *h;
	struct err err = {0};

	(void)state;
	begin(&lab, "history-removed.db");
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	remove_history(lab.path);
	snprintf(dir, sizeof(dir), "%s%s", lab.path, HISTORY_SUFFIX);
	os_remove(dir, NULL);
	if (try_put(&lab, h, 110, 0, &err))
		put(&lab, h, 120);
	assert_true(count_samples(&lab, 110, 129, NULL) == 10);
	history_close(h, "stopped");
	end(&lab);
}

/*
 * What the disk holds opens, has every put that had returned, and at most one more; when it was
 * settled it is sound.
 */
static void check_image(struct lab *lab, unsigned returned, uint64_t seed)
{
	struct history_files files = {0};
	struct err err = {0};
	unsigned again;

	assert_int_equal(history_list(lab->path, &files, NULL), 0);
	assert_in_range(files.n, returned > 0, 1);
	for (again = 0; again < 2 && files.n; again++) {
		uint32_t n = count_samples(lab, 100, 300, NULL);

		if (n != 10 * returned && n != 10 * (returned + 1))
			fail_msg("seed %u, %s: %u puts had returned, and %u samples are there",
				 (unsigned)seed, again ? "settled" : "as it was", returned, n);
		history_look(&files.all[0], false);
		assert_true(files.all[0].readable || (files.all[0].blank && !returned));
		if (files.all[0].blank)
			break;
		if (!again && history_settle(files.all[0].path, "a power cut", &err))
			fail_msg("seed %u: %s", (unsigned)seed, err.text);
		if (again)
			lab_check_integrity(files.all[0].path);
	}
	history_files_free(&files);
}

/* At some write of a long run, or of its end, the power goes. */
static void cut_once(uint64_t seed)
{
	unsigned i, returned = 0;
	struct history *h;
	struct lab lab;
	char dir[400];

	begin(&lab, "history-power.db");
	snprintf(dir, sizeof(dir), "%s.image%s", lab.path, HISTORY_SUFFIX);
	assert_int_equal(os_mkdirs(dir, NULL), 0);
	os_list(dir, remove_one, dir, NULL);
	bad_disk_install();
	bad_disk_watch();
	h = open_history(&lab, 64 << 20, 0);
	bad_disk_cut_after((long)(seed * 7 % CUT_WRITES), dir, seed);
	for (i = 0; i < 12; i++) {
		put(&lab, h, 100 + 10 * i);
		returned += !bad_disk_cut_happened();
	}
	history_close(h, "stopped");
	if (!bad_disk_cut_happened())
		fail_msg("seed %u: there were fewer writes", (unsigned)seed);
	bad_disk_remove();
	end(&lab);
	lab.path = strdup(dir);
	*strstr((char *)(uintptr_t)lab.path, HISTORY_SUFFIX) = '\0';
	check_image(&lab, returned, seed);
	os_list(dir, remove_one, dir, NULL);
	os_remove(dir, NULL);
	free((char *)(uintptr_t)lab.path);
}

static void a_power_cut_costs_nothing_that_was_put(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 100; seed += EVERY(5))
		cut_once(seed);
}

static void a_window_becomes_an_incident(void **state)
{
	struct history_keep keep = {
		.from_ns = LAB_WALL_NS + S(105), .to_ns = LAB_WALL_NS + S(114),
		.trigger_ns = LAB_WALL_NS + S(114), .rule = "manual", .reason = "somebody asked",
	};
	struct incident in = {0};
	struct store *s;
	struct lab lab;
	struct history *h;
	struct err err = {0};
	int64_t id = 0;

	(void)state;
	begin(&lab, "history-keep.db");
	process_set_home(lab.app, "/system.slice/app.service", 0);
	s = lab_store(&lab, STORE_RECORD);
	lab_name(&lab, 'b');
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	put(&lab, h, 110);
	if (history_keep(lab.path, &keep, &id, &err))         /* while a recorder has the store */
		fail_msg("%s", err.text);
	lab_simple(&lab, s, S(200), 5);              /* which goes on writing after it */
	assert_int_equal(store_load(s, id, &in, &err), 0);
	assert_int_equal(in.nsamples, 10);
	assert_int_equal(in.head.state, INCIDENT_COMPLETE);
	assert_string_equal(in.head.reason, "somebody asked");
	assert_int_equal(in.head.trigger_wall_ns, keep.trigger_ns);
	assert_int_equal(in.nprocesses, 1);
	assert_string_equal(in.processes[0].cmdline, "app --serve");
	assert_string_equal(in.processes[0].home, "/system.slice/app.service");
	assert_int_equal(in.nframes, 2);
	assert_true(frame_is_named(&in, 0) || frame_is_named(&in, 1));
	incident_free(&in);
	history_close(h, "stopped");
	lab_check_integrity(lab.path);
	store_close(s);
	end(&lab);
}

static void a_window_that_is_gone_makes_no_incident(void **state)
{
	struct history_keep keep = {
		.from_ns = LAB_WALL_NS + S(5000), .to_ns = LAB_WALL_NS + S(5010),
		.trigger_ns = LAB_WALL_NS + S(5010), .rule = "manual", .reason = "too late",
	};
	struct err err = {0};
	struct lab lab;
	struct history *h;
	int64_t id = 0;

	(void)state;
	begin(&lab, "history-gone.db");
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	history_close(h, "stopped");
	assert_int_equal(history_keep(lab.path, &keep, &id, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "history"));
	assert_int_equal(id, 0);
	assert_false(os_exists(lab.path));           /* nor a store */
	end(&lab);
}

static void names_are_those_of_its_files_only(void **state)
{
	struct history_files files = {0};
	char path[500];
	struct os_file *file = NULL;
	struct lab lab;
	struct history *h;

	(void)state;
	begin(&lab, "history-names.db");
	h = open_history(&lab, 64 << 20, 0);
	snprintf(path, sizeof(path), "%s%s/notes.txt", lab.path, HISTORY_SUFFIX);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	os_close(file);
	put(&lab, h, 100);
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	assert_int_equal(files.n, 1);
	assert_int_equal(files.all[0].number, 1);
	assert_int_equal(files.all[0].name_wall_ns, LAB_WALL_NS + S(100));
	history_files_free(&files);
	history_close(h, "stopped");
	end(&lab);
}

/* A budget step: all samples of a file stand for the same time, and it says why it ended. */
TEST(a_file_has_one_sampling_rate)
{
	struct history_files files = {0};
	struct history *h;
	struct lab lab;
	char gaps[400];

	begin(&lab, "rate.db");
	h = open_history(&lab, 1 << 24, 1 << 22);
	put(&lab, h, 10);
	history_rate(h, MS(20), "sampling went on at 50 Hz: it took too much");
	put(&lab, h, 20);
	history_close(h, "the end");
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	assert_int_equal(files.n, 2);
	history_look(&files.all[0], false);
	history_look(&files.all[1], false);
	assert_int_equal(files.all[0].period_ns, MS(10));
	assert_string_equal(files.all[0].end, "sampling went on at 50 Hz: it took too much");
	assert_int_equal(files.all[1].period_ns, MS(20));
	assert_int_equal(count_samples(&lab, 0, 40, gaps), 20);
	history_files_free(&files);
	end(&lab);
}

/* What a file lists is found again without an index; a name that comes late gets to its row. */
TEST(a_row_is_written_once)
{
	struct history_files files = {0};
	struct history *h;
	struct lab lab;
	const char *path;
	unsigned i;

	begin(&lab, "rows.db");
	h = open_history(&lab, 64 << 20, 0);
	lab.threads[0] = thread_add(lab.processes, lab.app, 102);
	for (i = 0; i < 4; i++) {
		if (i == 2)
			thread_set_name(lab.threads[0], "late");
		put(&lab, h, 100 + 10 * i);
	}
	process_set_home(lab.app, "/system.slice/app.service", 0);
	put(&lab, h, 140);
	process_set_home(lab.app, "/system.slice/other.service", S(150));
	put(&lab, h, 150);
	history_close(h, "stopped");
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	path = files.all[0].path;
	assert_int_equal(lab_sql(path, "SELECT count(*) FROM module"), 1);
	/* A process in two homes, and its thread; rows for what came late. */
	assert_int_equal(lab_sql(path, "SELECT max(last_id) FROM process_page"), 2);
	assert_int_equal(lab_sql(path, "SELECT count(*) FROM process"), 1);
	assert_int_equal(lab_sql(path, "SELECT count(*) FROM process WHERE id=1 AND home_id>0"), 1);
	assert_int_equal(lab_sql(path, "SELECT max(last_id) FROM thread_page"), 2);
	assert_int_equal(lab_sql(path, "SELECT count(*) FROM thread"), 1);
	assert_int_equal(lab_sql(path, "SELECT count(*) FROM thread WHERE id=1 AND name='late'"),
			 1);
	assert_int_equal(count_samples(&lab, 100, 160, NULL), 60);
	history_files_free(&files);
	end(&lab);
}

/* A damaged file is an ordinary store afterwards: what is in pages there are rows. */
TEST(a_damaged_file_is_salvaged)
{
	struct store_salvaged out;
	struct history_files files = {0};
	struct incident in = {0};
	struct store *s = NULL;
	struct history *h;
	struct lab lab;
	char to[400];

	begin(&lab, "salvaged.db");
	snprintf(to, sizeof(to), "%s.new", lab.path);
	os_remove(to, NULL);
	h = open_history(&lab, 64 << 20, 0);
	put(&lab, h, 100);
	put(&lab, h, 110);
	history_close(h, "stopped");
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	lab_sql(files.all[0].path, "UPDATE segment SET data = x'00' WHERE id = 1");
	assert_int_equal(store_salvage(files.all[0].path, to, &out, NULL), 0);
	assert_int_equal(out.incidents, 1);
	assert_int_equal(out.unreadable, 0);
	assert_int_equal(store_open(to, STORE_READ, &s, NULL), 0);
	assert_int_equal(store_load(s, 1, &in, NULL), 0);
	assert_int_equal(in.nsamples, 10);
	assert_string_equal(in.processes[0].name, "app");
	assert_non_null(in.damage);
	incident_free(&in);
	store_close(s);
	history_files_free(&files);
	end(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_is_read_while_the_file_is_written),
		cmocka_unit_test(what_a_dead_recorder_put_is_there),
		cmocka_unit_test(files_end_by_size_and_leave_whole),
		cmocka_unit_test(a_large_put_stays_within_the_limit),
		cmocka_unit_test(a_wall_clock_that_is_set_begins_a_file),
		cmocka_unit_test(a_full_disk_costs_nothing_that_was_put),
		cmocka_unit_test(a_broken_disk_costs_nothing_that_was_put),
		cmocka_unit_test(a_blank_file_is_taken_away),
		cmocka_unit_test(a_removed_directory_is_made_again),
		cmocka_unit_test(a_power_cut_costs_nothing_that_was_put),
		cmocka_unit_test(a_window_becomes_an_incident),
		cmocka_unit_test(a_window_that_is_gone_makes_no_incident),
		cmocka_unit_test(names_are_those_of_its_files_only),
		cmocka_unit_test(a_file_has_one_sampling_rate),
		cmocka_unit_test(a_row_is_written_once),
		cmocka_unit_test(a_damaged_file_is_salvaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
