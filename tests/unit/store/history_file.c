/* Files of the history: where one ends and the next begins, and what each says of itself. */
#include "base/array.h"
#include "tests/support/bad_disk.h"
#include "tests/unit/store/history_lab.h"

/* Rules are tried on events: neither samples nor the threads that have nothing else are read. */
TEST(events_are_read_without_samples)
{
	struct event start = {.time_ns = S(103), .kind = EVENT_PROCESS_START, .stack = STACK_NONE,
			      .name = "app", .value = 7};
	struct incident in = {0};
	struct history *h;
	struct lab lab;

	begin(&lab, "events.db");
	h = open_history(&lab, 64 << 20, 0);
	lab_lost(&lab, S(101), 1, LOSS_KERNEL, 3);
	put(&lab, h, 100);
	start.thread = lab.threads[1];
	start.process = start.thread->process;
	assert_int_equal(segment_add(lab.builder, &start), 0);
	put(&lab, h, 110);
	history_close(h, "stopped");
	assert_int_equal(history_load_events(lab.path, LAB_WALL_NS + S(100), LAB_WALL_NS + S(200),
					     &in, NULL), 0);
	assert_int_equal(in.nsamples, 0);
	assert_int_equal(in.nstacks, 0);
	assert_int_equal(in.nframes, 0);
	assert_int_equal(in.nevents, 2);
	assert_int_equal(in.events[0].kind, EVENT_LOST);
	assert_int_equal(in.events[0].thread, THREAD_NONE);
	assert_int_equal(in.events[1].kind, EVENT_PROCESS_START);
	assert_int_equal(in.nthreads, 1);
	assert_int_equal(in.threads[in.events[1].thread].tid, lab.threads[1]->tid);
	assert_int_equal(in.head.lost, 3);
	incident_free(&in);
	end(&lab);
}

/* How busy the machine was is not how many samples events, waits or allocations have. */
TEST(the_load_counts_samples_of_cpu_time)
{
	struct event e = {.time_ns = S(103), .kind = EVENT_SAMPLE, .stream = STREAM_ALLOC,
			  .value = 4096, .stack = STACK_NONE};
	struct history_files files = {0};
	struct history *h;
	struct lab lab;
	unsigned i;

	begin(&lab, "load.db");
	h = open_history(&lab, 64 << 20, 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(segment_add(lab.builder, &e), 0);
	put(&lab, h, 100);
	put(&lab, h, 110);
	for (i = 0; i < 2; i++) {                    /* while it is written, and then */
		assert_int_equal(history_list(lab.path, &files, NULL), 0);
		history_look(&files.all[0], true);
		assert_int_equal(files.all[0].samples, 25);
		assert_int_equal(files.all[0].nslots, 1);
		assert_int_equal(files.all[0].slots[0], 20);
		history_files_free(&files);
		if (!i)
			history_close(h, "stopped");
	}
	end(&lab);
}

/* Two segments of ten samples; the first one is put again, as those with late names are. */
TEST(a_segment_is_in_one_file_only)
{
	struct history_now now = now_at(S(110));
	struct history_files files = {0};
	struct segment *all[2];
	struct history *h;
	struct lab lab;
	unsigned i;

	begin(&lab, "one-file.db");
	h = open_history(&lab, 64 << 20, 0);
	for (i = 0; i < 10; i++)
		lab_sample(&lab, S(100 + i), 0, "ab");
	all[0] = lab_seal(&lab);
	assert_int_equal(history_put(h, all, 1, &now, NULL), 0);
	for (i = 0; i < 10; i++)
		lab_sample(&lab, S(110 + i), 0, "cd");
	all[1] = lab_seal(&lab);
	lab_name(&lab, 'b');
	now = now_at(S(120));
	now.wall_ns += S(3600);                      /* which ends a file */
	assert_int_equal(history_put(h, all, 2, &now, NULL), 0);
	assert_int_equal(history_put(h, all, 2, &now, NULL), 0);
	history_close(h, "stopped");
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	assert_int_equal(files.n, 2);
	for (i = 0; i < 2; i++) {
		history_look(&files.all[i], false);
		assert_int_equal(files.all[i].samples, 10);
		segment_unref(all[i]);
	}
	assert_int_equal(lab_sql(files.all[0].path, "SELECT count(*) FROM segment"), 1);
	assert_int_equal(lab_sql(files.all[1].path, "SELECT t0_ns FROM segment"), S(110));
	history_files_free(&files);
	end(&lab);
}

/* What is in the image of a disk whose power went while one file ended and the next one began. */
static void look_at_turn(const char *store_path, bool *next_there, bool *last_complete)
{
	struct history_files files = {0};

	assert_int_equal(history_list(store_path, &files, NULL), 0);
	assert_in_range(files.n, 1, 2);
	history_look(&files.all[0], false);
	assert_true(files.all[0].readable);
	assert_int_equal(files.all[0].samples, 10);
	*last_complete = !files.all[0].open;
	if (files.n > 1)
		history_look(&files.all[1], false);
	*next_there = files.n > 1 && files.all[1].readable && files.all[1].samples == 10;
	history_files_free(&files);
}

/* To complete a file takes a while, in which nothing is put. */
TEST(what_ends_a_file_is_on_the_disk_before_it_is_complete)
{
	bool next_there = false, last_complete = false, passed = false, cut = true;
	char dir[500], image[400];
	struct history *h;
	struct lab lab;
	long writes;

	for (writes = 0; cut; writes += EVERY(2)) {
		begin(&lab, "turn.db");
		snprintf(image, sizeof(image), "%s.image", lab.path);
		snprintf(dir, sizeof(dir), "%s%s", image, HISTORY_SUFFIX);
		assert_int_equal(os_mkdirs(dir, NULL), 0);
		remove_history(image);
		bad_disk_install();
		bad_disk_watch();
		h = open_history(&lab, 64 << 20, 0);
		put(&lab, h, 100);
		bad_disk_cut_after(writes, dir, 1);
		assert_int_equal(try_put(&lab, h, 110, S(3600), NULL), 0);
		cut = bad_disk_cut_happened();
		if (cut) {
			look_at_turn(image, &next_there, &last_complete);
			assert_true(next_there || !last_complete);
			passed |= next_there && !last_complete;
		}
		history_close(h, "stopped");
		bad_disk_remove();
		end(&lab);
		remove_history(image);
		os_remove_dir(dir);
	}
	assert_true(passed);
}

/* Its sums were kept while it was written; when a recorder died, they are counted. */
TEST(the_sums_of_a_file_are_what_its_segments_hold)
{
	static const char *const sums[] = {
		"SELECT samples FROM incident", "SELECT lost FROM incident",
		"SELECT sum(n) FROM quality", "SELECT count(*) FROM quality",
		"SELECT count(*) FROM loss", "SELECT sum(n * (second + 100)) FROM loss",
		"SELECT sum(period_ns) FROM stream",
	};
	struct history_files files = {0};
	int64_t kept[COUNT_OF(sums)];
	struct history *h;
	struct lab lab;
	unsigned i;

	begin(&lab, "sums.db");
	h = open_history(&lab, 64 << 20, 0);
	for (i = 0; i < 5; i++) {
		lab_lost(&lab, S(100 + 10 * i), 1, LOSS_KERNEL, 3 + i);
		put(&lab, h, 100 + 10 * i);
	}
	history_close(h, "stopped");
	assert_int_equal(history_list(lab.path, &files, NULL), 0);
	for (i = 0; i < COUNT_OF(sums); i++)
		kept[i] = lab_sql(files.all[0].path, sums[i]);
	assert_int_equal(kept[0], 50);
	assert_int_equal(kept[4], 5);
	lab_sql(files.all[0].path, "UPDATE incident SET state='open', samples=0, lost=0");
	lab_sql(files.all[0].path, "DELETE FROM loss");
	assert_int_equal(history_settle(files.all[0].path, "it was killed", NULL), 0);
	for (i = 0; i < COUNT_OF(sums); i++)
		assert_int_equal(lab_sql(files.all[0].path, sums[i]), kept[i]);
	history_files_free(&files);
	end(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_read_without_samples),
		cmocka_unit_test(the_load_counts_samples_of_cpu_time),
		cmocka_unit_test(a_segment_is_in_one_file_only),
		cmocka_unit_test(what_ends_a_file_is_on_the_disk_before_it_is_complete),
		cmocka_unit_test(the_sums_of_a_file_are_what_its_segments_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
