/*
 * Each system call of writing a store and a history fails in turn, in each way of io_walk_linux.h.
 * After each the file is sound and holds what had been promised, and what was not stored is stored
 * by trying again with the same handle, as the writer does.
 */
#include "tests/support/io_walk_linux.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include "base/text.h"
#include "store/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CALLS 3000u                     /* a step that never runs through ends here */
#define S(n) ((uint64_t)(n) * NS_PER_SEC)

static struct {                              /* what fails, for messages */
	const char *step, *call;
	enum io_fault fault;
	unsigned long n;
} now;

static void must(int rc, const char *what, const struct err *err)
{
	if (rc)
		fail_msg("%s, %s at call %lu (%s): %s: %s", now.step, io_fault_text(now.fault),
			 now.n, now.call ? now.call : "none", what, err->text);
}

/* What was tried while calls failed has ended. */
static void faults_end(int rc, const struct err *err)
{
	now.call = io_walk_end();
	if (!now.call)
		must(rc, "it failed by itself", err);
}

/* The 8 MB beside the store are made once; only make_a_store() makes them each time. */
static void keep_reserve(const struct lab *lab, bool bring)
{
	char name[TMP_BYTES + 16], kept[TMP_BYTES + 16];

	snprintf(name, sizeof(name), "%s.reserve", lab->path);
	snprintf(kept, sizeof(kept), "%s.kept", lab->path);
	os_rename(bring ? kept : name, bring ? name : kept, NULL);
}

/*
 * Run a step with its 1st, 2nd... call failing in each way, until it runs through. Of a long row of
 * calls with one name (the reserve's 8 MB are 128 writes) one in eight fails. every: 1, or more for
 * a step that takes long.
 */
static void walk(const char *name, void (*step)(struct lab *lab), unsigned every)
{
	unsigned long all = 0, row;
	const char *before;
	struct lab lab;
	int fault;

#ifdef __SANITIZE_ADDRESS__
	every *= 7;                          /* it is as much slower */
#endif
	for (fault = 0; fault < IO_FAULTS; fault++) {
		now.fault = (enum io_fault)fault;
		now.step = name;
		before = "";
		row = 0;
		now.n = 1 + (unsigned)fault % every;
		for (; now.n < MOST_CALLS; now.n += row > 20 ? 8 : every, all++) {
			lab_open(&lab, "walk.db");
			keep_reserve(&lab, true);
			step(&lab);
			keep_reserve(&lab, false);
			lab_close(&lab);
			if (!now.call)
				break;
			row = strcmp(now.call, before) ? 0 : row + 1;
			before = now.call;
		}
		assert_in_range(now.n, 2, MOST_CALLS - 1);
	}
	print_message("%s: %lu failures\n", name, all);
}

static void faults_begin(void)
{
	io_walk_fail_at(now.fault, now.n);
}

static int try_open(struct lab *lab, enum store_mode mode, struct store **s, struct err *err)
{
	int rc = store_open(lab->path, mode, s, err);

	if (!rc)
		store_set_floor(*s, 0);
	return rc;
}

static struct {                              /* incidents 1 and 2, in a store that was closed */
	struct buf bytes;
	char *dumps[3];
} made;

/* Thousands of times, hence a copy. */
static void make_store(struct lab *lab)
{
	struct os_file *file = NULL;
	struct store *s;
	int id;

	if (made.bytes.len) {
		assert_int_equal(os_open(lab->path, OS_CREATE, &file, NULL), 0);
		assert_int_equal(os_write(file, made.bytes.data, made.bytes.len, NULL), 0);
		os_close(file);
		return;
	}
	s = lab_store(lab, STORE_RECORD);
	for (id = 1; id <= 2; id++) {
		assert_int_equal(lab_simple(lab, s, MS(100u * (unsigned)id), 5), id);
		made.dumps[id] = text_dup(lab_dump(s, id), SIZE_MAX);
	}
	store_close(s);
	assert_int_equal(os_load(lab->path, 64 << 20, &made.bytes, NULL), 0);
}

/* It is sound, opens to record, and has incidents from..2 as they were. */
static void check_store(struct lab *lab, int from)
{
	struct store *s = NULL;
	struct err err = {0};
	int id;

	lab_check_integrity(lab->path);
	must(try_open(lab, STORE_RECORD, &s, &err), "it does not open again", &err);
	for (id = from; id <= 2; id++)
		if (strcmp(lab_dump(s, id), made.dumps[id]) != 0)
			fail_msg("%s, %s at call %lu (%s): incident %d is now:\n%s", now.step,
				 io_fault_text(now.fault), now.n, now.call, id, lab_dump(s, id));
	store_close(s);
}

/* ---- an incident ----------------------------------------------------------------------------- */

struct bringing {
	struct incident_head head;
	struct segment *segment;
	bool begun, put, finished;
};

/* As far as it goes, from where it was. */
static int bring(struct bringing *b, struct store *s, struct err *err)
{
	int rc = b->begun ? 0 : store_begin(s, &b->head, err);

	b->begun |= !rc;
	if (!rc && !b->put)
		rc = store_put_segment(s, b->head.id, b->segment, err);
	b->put |= !rc;
	if (!rc)
		rc = store_finish(s, &b->head, &b->segment, 1, err);
	b->finished = !rc;
	return rc;
}

static void store_one_incident(struct lab *lab)
{
	struct bringing b = {.head = lab_head(MS(310), MS(20), MS(20))};
	struct store *s = NULL;
	struct err err = {0};
	int rc;

	make_store(lab);
	lab_sample(lab, MS(300), 0, "ab");
	lab_sample(lab, MS(310), 1, "ab");
	b.segment = lab_seal(lab);
	faults_begin();
	rc = try_open(lab, STORE_RECORD, &s, &err);
	if (!rc)
		rc = bring(&b, s, &err);
	if (!rc) {
		store_close(s);
		s = NULL;
	}
	faults_end(rc, &err);
	if (!b.finished) {
		if (!s)
			must(try_open(lab, STORE_RECORD, &s, &err), "it does not open again", &err);
		must(bring(&b, s, &err), "it cannot be stored later", &err);
	}
	store_close(s);
	segment_unref(b.segment);
	check_store(lab, 1);
	s = lab_store(lab, STORE_READ);
	assert_string_equal(lab_samples(s, b.head.id), "300.0 main ??\n310.0 worker ??\n");
	store_close(s);
}

static void delete_one_incident(struct lab *lab)
{
	struct incident_head head = {0};
	struct store *s = NULL;
	struct err err = {0};
	int rc, there;

	make_store(lab);
	faults_begin();
	rc = try_open(lab, STORE_EDIT, &s, &err);
	if (!rc)
		rc = lab_delete(s, 1, &err);
	store_close(s);
	faults_end(rc, &err);
	check_store(lab, 2);
	s = lab_store(lab, STORE_READ);
	there = store_head(s, 1, &head, &err);
	store_close(s);
	incident_head_free(&head);
	assert_true(there == ERR_NOT_FOUND || (rc && !there));
	if (!there)
		check_store(lab, 1);
}

/* ---- stores that are made -------------------------------------------------------------------- */

static void make_a_store(struct lab *lab)
{
	struct store *s = NULL;
	struct err err = {0};
	int rc;

	lab_remove(lab->path);
	faults_begin();
	rc = try_open(lab, STORE_RECORD, &s, &err);
	store_close(s);
	faults_end(rc, &err);
	s = NULL;
	must(try_open(lab, STORE_RECORD, &s, &err), "it cannot be made later", &err);
	assert_int_equal(lab_simple(lab, s, MS(100), 5), 1);
	store_close(s);
	lab_check_integrity(lab->path);
}

static void spoil(const char *path)
{
	FILE *f = fopen(path, "r+b");
	char noise[4096];

	memset(noise, 0xa5, sizeof(noise));
	assert_non_null(f);
	assert_int_equal(fseek(f, sizeof(noise), SEEK_SET), 0);
	assert_int_equal(fwrite(noise, 1, sizeof(noise), f), sizeof(noise));
	assert_int_equal(fclose(f), 0);
}

static int remove_damaged(void *ctx, const char *name)
{
	if (strstr(name, "walk.db.damaged-")) {
		os_remove(tmp_path(name), NULL);
		++*(int *)ctx;
	}
	return 0;
}

static void replace_a_damaged_store(struct lab *lab)
{
	struct buf moved = {0}, dir = {0};
	struct store *s = NULL;
	struct err err = {0};
	int rc, there = 0;

	make_store(lab);
	spoil(lab->path);
	faults_begin();
	rc = store_open_or_replace(lab->path, &moved, &s, &err);
	faults_end(rc, &err);
	if (rc)
		must(store_open_or_replace(lab->path, &moved, &s, &err), "not replaced later",
		     &err);
	store_set_floor(s, 0);
	assert_int_equal(lab_simple(lab, s, MS(100), 5), 1);
	store_close(s);
	lab_check_integrity(lab->path);
	os_dirname(lab->path, &dir);
	os_list(buf_text(&dir), remove_damaged, &there, NULL);
	assert_true(there >= 1);             /* what it was is not thrown away */
	buf_free(&dir);
	buf_free(&moved);
}

static void salvage_a_store(struct lab *lab)
{
	struct store_salvaged got;
	struct err err = {0};
	char to[TMP_BYTES];
	struct lab saved = *lab;
	int rc;

	snprintf(to, sizeof(to), "%s", tmp_path("walk-saved.db"));
	saved.path = to;
	lab_remove(to);
	make_store(lab);
	faults_begin();
	rc = store_salvage(lab->path, to, &got, &err);
	faults_end(rc, &err);
	if (now.fault == IO_BROKEN)
		lab_remove(to);              /* the disk did not take it back */
	else
		assert_int_equal(os_exists(to), !rc);
	if (rc)
		must(store_salvage(lab->path, to, &got, &err), "not salvaged later", &err);
	/* What cannot be read is passed over, and said. */
	if (os_exists(to) && !got.unreadable && !got.partial)
		check_store(&saved, 1);
	check_store(lab, 1);
	lab_remove(to);
}

/* ---- the history ----------------------------------------------------------------------------- */

static int open_history(struct lab *lab, struct history **h, struct err *err)
{
	const struct history_config cfg = {
		.store_path = lab->path, .max_bytes = 64 << 20, .host = "test",
		.host_text = "Test 1", .version = "0", .boot_id = "boot-1", .kills = "",
		.period_ns = MS(10),
	};

	return history_open(&cfg, h, err);
}

static struct segment *ten_samples(struct lab *lab, unsigned from)
{
	unsigned i;

	for (i = 0; i < 10; i++)
		lab_sample(lab, S(from + i), 0, "ab");
	return lab_seal(lab);
}

static int put(struct history *h, struct segment *segment, unsigned until, struct err *err)
{
	const struct history_now at = {S(until), LAB_WALL_NS + S(until)};

	return history_put(h, &segment, 1, &at, err);
}

static uint32_t samples_of(struct lab *lab, unsigned from, unsigned to)
{
	struct incident in = {0};
	struct err err = {0};
	uint32_t n;

	must(history_load(lab->path, LAB_WALL_NS + S(from), LAB_WALL_NS + S(to),
			  LAB_WALL_NS + S(to), &in, &err), "the history cannot be read", &err);
	n = in.nsamples;
	incident_free(&in);
	return n;
}

static int remove_one(void *ctx, const char *name)
{
	char path[TMP_BYTES * 2];

	snprintf(path, sizeof(path), "%s/%s", (const char *)ctx, name);
	os_remove(path, NULL);
	return 0;
}

static void write_history(struct lab *lab)
{
	struct segment *segments[3];
	struct history *h = NULL;
	struct err err = {0};
	char dir[TMP_BYTES + 16];
	unsigned i;
	int rc;

	snprintf(dir, sizeof(dir), "%s%s", lab->path, HISTORY_SUFFIX);
	os_list(dir, remove_one, dir, NULL);
	for (i = 0; i < 3; i++)
		segments[i] = ten_samples(lab, 100 + 10 * i);
	must(open_history(lab, &h, &err), "no history", &err);
	must(put(h, segments[0], 110, &err), "no history", &err);
	history_close(h, "stopped");
	h = NULL;
	faults_begin();
	rc = open_history(lab, &h, &err);
	if (!rc)
		rc = put(h, segments[1], 120, &err);
	if (!rc) {
		history_close(h, "stopped");
		h = NULL;
	}
	faults_end(rc, &err);
	if (!h)
		must(open_history(lab, &h, &err), "it does not open again", &err);
	if (rc)
		must(put(h, segments[1], 120, &err), "it cannot be put later", &err);
	must(put(h, segments[2], 130, &err), "it cannot go on", &err);
	history_close(h, "stopped");
	if (samples_of(lab, 100, 129) != 30)
		fail_msg("history, %s at call %lu (%s): %u samples, not 30",
			 io_fault_text(now.fault), now.n, now.call, samples_of(lab, 100, 129));
	for (i = 0; i < 3; i++)
		segment_unref(segments[i]);
	os_list(dir, remove_one, dir, NULL);
}

TEST(an_incident_survives_every_fault) { walk("incident", store_one_incident, 1); }
TEST(deleting_survives_every_fault) { walk("delete", delete_one_incident, 1); }
TEST(a_new_store_survives_every_fault) { walk("new store", make_a_store, 1); }
TEST(replacing_survives_every_fault) { walk("replace", replace_a_damaged_store, 1); }
TEST(salvaging_survives_every_fault) { walk("salvage", salvage_a_store, 6); }
TEST(the_history_survives_every_fault) { walk("history", write_history, 1); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incident_survives_every_fault),
		cmocka_unit_test(deleting_survives_every_fault),
		cmocka_unit_test(a_new_store_survives_every_fault),
		cmocka_unit_test(replacing_survives_every_fault),
		cmocka_unit_test(salvaging_survives_every_fault),
		cmocka_unit_test(the_history_survives_every_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
