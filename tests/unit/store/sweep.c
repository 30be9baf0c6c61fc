/* Sweeping runs in steps. Between them others write, and it can be called off. */
#include "tests/support/bad_disk.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define HOUR_LATER_NS (LAB_WALL_NS + 3600 * NS_PER_SEC)

/*
 * An incident with a segment for each letter. Each has one sample, 1 ms apart, in a named function
 * of its own, and so a page.
 */
static int64_t store_letters(struct lab *lab, struct store *s, uint64_t time_ns,
			     const char *letters)
{
	struct incident_head head = lab_head(time_ns + MS(50), MS(50), 0);
	struct segment *segments[32];
	uint32_t n;
	int64_t id;

	for (n = 0; letters[n]; n++) {
		char text[] = {letters[n], '\0'};

		lab_sample(lab, time_ns + MS(n), letters[n] < 'c', text);
		lab_name(lab, letters[n]);
		segments[n] = lab_seal(lab);
	}
	id = lab_incident(s, &head, segments, n);
	while (n)
		segment_unref(segments[--n]);
	return id;
}

/* Incident 1, pinned, has more pages than a step sweeps. 'a' and 'b' are of another thread. */
#define KEPT "cdefghijklmnopqrst"

static struct store *with_kept(struct lab *lab, const char *name)
{
	struct store *s;

	lab_open(lab, name);
	s = lab_store(lab, STORE_RECORD);
	assert_int_equal(store_letters(lab, s, NS_PER_SEC, KEPT), 1);
	assert_int_equal(store_pin(s, 1, true, NULL), 0);
	return s;
}

/* The newest incident always stays: one that is empty, so that retention deletes the others. */
static void store_empty(struct store *s)
{
	struct incident_head head = lab_head(4 * NS_PER_SEC, 0, 0);

	head.pinned = true;
	lab_incident(s, &head, NULL, 0);
}

static void check_letters(struct store *s, int64_t id, uint64_t time_ns, const char *letters)
{
	char expected[600];
	size_t n = 0;

	for (; *letters; letters++, time_ns += MS(1))
		n += (size_t)snprintf(expected + n, sizeof(expected) - n, "%.1f %s %c\n",
				      (double)time_ns / 1e6, *letters < 'c' ? "worker" : "main",
				      *letters);
	assert_string_equal(lab_samples(s, id), expected);
}

/* What a sweep has left: segments, frames and functions. */
static int64_t rows(const struct lab *lab)
{
	return lab_sql(lab->path, "SELECT (SELECT count(*) FROM segment) * 10000"
		       " + (SELECT sum(frames) FROM frame_page) * 100"
		       " + (SELECT sum(functions) FROM function_page)");
}

struct between {
	struct lab *lab;
	struct store *recorder;
	struct segment *shared;              /* with 'a' at 2 s */
	int at, calls;
	int64_t id;                          /* of what is stored there; 0 = not yet */
};

/* From now on samples are of another program, with its own module and command line. */
static void start_other_program(struct lab *lab)
{
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 4, .build_id = {5, 6, 7, 8},
				 .path = "/opt/app"};

	lab->object = objects_get(lab->frames, &key, 200);
	lab->app = process_add(lab->processes, 200, MS(2), 0, 1, "other");
	assert_non_null(lab->object);
	assert_non_null(lab->app);
	process_set_cmdline(lab->app, "other --once");
	lab->threads[1] = thread_add(lab->processes, lab->app, 201);
	assert_non_null(lab->threads[1]);
	thread_set_name(lab->threads[1], "worker");
}

static struct segment *seal_letter(struct lab *lab, uint64_t time_ns, char letter)
{
	char text[] = {letter, '\0'};

	lab_sample(lab, time_ns, 1, text);
	lab_name(lab, letter);
	return lab_seal(lab);
}

static int64_t store_shared(struct between *b)
{
	struct incident_head head = lab_head(2 * NS_PER_SEC + MS(50), MS(50), 0);
	struct segment *segments[] = {b->shared, seal_letter(b->lab, 2 * NS_PER_SEC + MS(1), 'b')};
	int64_t id = lab_incident(b->recorder, &head, segments, 2);

	segment_unref(segments[1]);
	return id;
}

static bool store_what_goes(void *ctx)
{
	struct between *b = ctx;

	if (b->calls++ == b->at)
		b->id = store_shared(b);
	return false;
}

/*
 * While an incident is swept, a recorder stores the same things again, at each place where the
 * sweep lets others write. A segment, a module and a command line are the incident's own.
 */
TEST(a_recorder_stores_between_any_two_steps)
{
	struct lab lab;
	struct between b = {.lab = &lab, .recorder = with_kept(&lab, "between.db")};
	struct store *editor = lab_store(&lab, STORE_EDIT);
	int64_t goes;

	start_other_program(&lab);
	b.shared = seal_letter(&lab, 2 * NS_PER_SEC, 'a');
	store_set_call_off(editor, store_what_goes, &b);
	b.id = store_shared(&b);
	for (b.at = 0; b.id; b.at++) {
		goes = b.id;
		b.id = b.calls = 0;
		assert_int_equal(lab_delete(editor, goes, NULL), 0);
		check_letters(b.recorder, 1, NS_PER_SEC, KEPT);
		if (b.id) {
			check_letters(b.recorder, b.id, 2 * NS_PER_SEC, "ab");
			assert_non_null(strstr(lab_dump(b.recorder, b.id),
					       " other other --once\n"));
		}
	}
	assert_in_range(b.at, 20, 100);
	segment_unref(b.shared);
	store_close(editor);
	lab_end_sound(&lab, b.recorder);
}

static bool call_off_once(void *ctx)
{
	struct between *b = ctx;

	return b->calls++ == b->at;
}

/* Called off once at each place; what is left is the same. */
TEST(retention_that_is_called_off_goes_on_later)
{
	struct store_limits limits = {.max_age_ns = 1};
	const int64_t kept = (int64_t)strlen(KEPT);
	struct between b = {0};
	uint32_t deleted, more;
	struct lab lab;
	struct store *s = with_kept(&lab, "called_off.db");
	bool reached = true;
	int rc;

	store_set_call_off(s, call_off_once, &b);
	for (b.at = 0; reached; b.at++) {
		/* What the recorder remembers of its store is right, also after the last time. */
		check_letters(s, store_letters(&lab, s, 2 * NS_PER_SEC, "abc"), 2 * NS_PER_SEC,
			      "abc");
		store_letters(&lab, s, 3 * NS_PER_SEC, "b");
		store_empty(s);
		b.calls = 0;
		rc = store_retain(s, &limits, HOUR_LATER_NS, &deleted, NULL);
		reached = b.calls > b.at;
		assert_in_range(rc, 0, 1);
		assert_int_equal(deleted, 2);
		more = 0;
		if (rc)
			assert_int_equal(store_retain(s, &limits, HOUR_LATER_NS, &more, NULL), 0);
		assert_int_equal(more, 0);
		assert_int_equal(rows(&lab), kept * 10000 + kept * 100 + kept);
	}
	assert_in_range(b.at, 20, 100);
	check_letters(s, 1, NS_PER_SEC, KEPT);
	store_close(s);
	lab_check_integrity(lab.path);
	lab_close(&lab);
}

/* The next recorder's retention sweeps and deletes nothing else; the file has no free pages. */
static struct store *check_next_recorder(struct lab *lab)
{
	struct store_limits limits = {0};
	struct os_file_info file;
	uint32_t deleted;
	struct store *s;

	lab_check_integrity(lab->path);
	s = lab_store(lab, STORE_RECORD);
	assert_int_equal(store_retain(s, &limits, LAB_WALL_NS, &deleted, NULL), 0);
	assert_int_equal(deleted, 0);
	assert_int_equal(os_path_info(lab->path, &file, NULL), 0);
	assert_int_equal(file.size_bytes, store_bytes(s));
	return s;
}

/* Called off at some of the places, and not resumed by the same recorder. */
TEST(the_next_recorder_goes_on_with_a_sweep)
{
	struct store_limits limits = {.max_age_ns = 1};
	const int64_t kept = (int64_t)strlen(KEPT);
	struct between b = {0};
	uint32_t deleted;
	struct lab lab;
	struct store *s = with_kept(&lab, "next.db");
	bool reached = true;
	int rc;

	for (b.at = 0; reached; b.at += 3) {
		store_letters(&lab, s, 2 * NS_PER_SEC, "abc");
		store_empty(s);
		b.calls = 0;
		store_set_call_off(s, call_off_once, &b);
		rc = store_retain(s, &limits, HOUR_LATER_NS, &deleted, NULL);
		reached = b.calls > b.at;
		assert_in_range(rc, 0, 1);
		assert_int_equal(deleted, 1);
		store_close(s);
		s = check_next_recorder(&lab);
		assert_int_equal(rows(&lab), kept * 10000 + kept * 100 + kept);
	}
	assert_in_range(b.at, 20, 100);
	check_letters(s, 1, NS_PER_SEC, KEPT);
	lab_end_sound(&lab, s);
}

/* Nothing is written after one of its writes, as if the recorder was killed. */
TEST(a_recorder_ends_at_any_write_of_a_deletion)
{
	struct store_limits limits = {.max_age_ns = 1};
	const int64_t kept = (int64_t)strlen(KEPT);
	uint32_t deleted, more;
	struct lab lab;
	struct store *s = with_kept(&lab, "writes.db");
	long n;

	for (n = 0; n < 110; n += 5) {
		store_letters(&lab, s, 2 * NS_PER_SEC, "abc");
		store_empty(s);
		lab_sql(lab.path, "PRAGMA wal_checkpoint(TRUNCATE)");
		bad_disk_full_after(n);
		store_retain(s, &limits, HOUR_LATER_NS, &deleted, NULL);
		store_close(s);
		bad_disk_full_after(-1);
		s = check_next_recorder(&lab);
		if (!deleted)
			assert_int_equal(store_retain(s, &limits, HOUR_LATER_NS, &more, NULL), 0);
		assert_int_equal(rows(&lab), kept * 10000 + kept * 100 + kept);
	}
	assert_int_equal(deleted, 1);
	check_letters(s, 1, NS_PER_SEC, KEPT);
	lab_end_sound(&lab, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorder_stores_between_any_two_steps),
		cmocka_unit_test(retention_that_is_called_off_goes_on_later),
		cmocka_unit_test(the_next_recorder_goes_on_with_a_sweep),
		cmocka_unit_test(a_recorder_ends_at_any_write_of_a_deletion),
	};

	bad_disk_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
