/* Pages of frames and functions: many are added at a time, each once, with the right names. */
#include "store/store_private.h"

#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Frame i is at 64 * i. A function has three: fn_0 those at 0, 64 and 128, fn_1 from 192 on. */
enum { STEP = 64, FUNCTION_FRAMES = 3, FUNCTION_BYTES = STEP * FUNCTION_FRAMES };

static struct object *object(struct lab *lab, uint32_t epoch)
{
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 4, .build_id = {1, 2, 3, 4},
				 .epoch = epoch, .path = "/opt/many"};
	struct object *o = objects_get(lab->frames, &key, 100);

	assert_non_null(o);
	return o;
}

static struct frame_ref ref_of(struct object *o, unsigned i)
{
	return (struct frame_ref){.object = o, .offset = STEP * (uint64_t)i};
}

static void name(struct lab *lab, struct object *o, unsigned i)
{
	struct frame_ref ref = ref_of(o, i);
	unsigned function = i / FUNCTION_FRAMES;
	char text[20];
	struct frame *frame;
	bool fresh;

	snprintf(text, sizeof(text), "fn_%u", function);
	frame = frame_get(lab->frames, frames_intern(lab->frames, &ref, &fresh));
	assert_int_equal(frame_set_function(lab->frames, frame,
					    function * (uint64_t)FUNCTION_BYTES, text, NULL, NULL),
			 0);
}

/* A sample in frame i, called by nobody. */
static void sample(struct lab *lab, struct object *o, unsigned i)
{
	struct frame_ref ref = ref_of(o, i);
	struct event e = {.time_ns = MS(10 + i), .kind = EVENT_SAMPLE, .process = lab->app,
			  .thread = lab->threads[0], .quality = QUALITY_FP, .value = 1e6};

	e.stack = segment_stack(lab->builder, &ref, 1, NULL, NULL);
	assert_int_equal(segment_add(lab->builder, &e), 0);
}

static int64_t put(struct lab *lab, struct store *s)
{
	struct incident_head head = lab_head(MS(5000), MS(5000), 0);
	struct segment *segment = lab_seal(lab);

	lab_incident(s, &head, &segment, 1);
	segment_unref(segment);
	return head.id;
}

struct found {
	int frames, named;
	int64_t last_id, nfunctions;
	struct {
		char name[20];
		int64_t module_id;
		uint64_t offset;
	} functions[512];                    /* by id */
};

static struct blob blob_at(sqlite3_stmt *row, int column)
{
	return (struct blob){sqlite3_column_blob(row, column),
			     (size_t)sqlite3_column_bytes(row, column)};
}

/* No two are alike. */
static void look_at_functions(sqlite3_stmt *row, struct found *found)
{
	struct blob data = blob_at(row, 3), names = blob_at(row, 4);
	struct function_page page;
	uint32_t i, k;

	assert_int_equal(function_page_unpack(&data, &names, sqlite3_column_int64(row, 0), &page,
					      NULL), 0);
	assert_int_equal(page.n, sqlite3_column_int(row, 2));
	for (i = 0; i < page.n; i++, found->nfunctions++) {
		const struct page_function *f = &page.functions[i];

		assert_in_range(f->id, 1, 511);
		assert_null(f->raw_name);
		for (k = 1; k < 512; k++)
			assert_string_not_equal(found->functions[k].name, f->name);
		snprintf(found->functions[f->id].name, 20, "%s", f->name);
		found->functions[f->id].module_id = f->module_id;
		found->functions[f->id].offset = f->offset;
	}
	function_page_free(&page);
}

/* Ids ascend from page to page, and the names are right. */
static void look_at_frames(sqlite3_stmt *row, struct found *found)
{
	struct blob data = blob_at(row, 3), functions = blob_at(row, 4);
	struct page_frame *frames;
	char text[20];
	uint32_t n, i;

	assert_int_equal(frame_page_unpack(&data, &functions, sqlite3_column_int64(row, 0),
					   &frames, &n, NULL), 0);
	assert_int_equal(n, sqlite3_column_int(row, 2));
	assert_true(frames[0].id == sqlite3_column_int64(row, 0) && frames[0].id > found->last_id);
	assert_true(frames[n - 1].id == sqlite3_column_int64(row, 1));
	for (i = 0; i < n; i++) {
		unsigned function = (unsigned)(frames[i].offset / FUNCTION_BYTES);
		int64_t id = frames[i].function_id;

		if (!id)
			continue;
		found->named++;
		assert_in_range(id, 1, 511);
		snprintf(text, sizeof(text), "fn_%u", function);
		assert_string_equal(found->functions[id].name, text);
		assert_true(found->functions[id].module_id == frames[i].module_id);
		assert_int_equal(found->functions[id].offset, function * FUNCTION_BYTES);
	}
	found->frames += (int)n;
	found->last_id = frames[n - 1].id;
	free(frames);
}

static struct found look(const struct lab *lab)
{
	struct found found = {0};
	sqlite3_stmt *row;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(lab->path, &db), 0);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM function_page ORDER BY first_id",
					    -1, &row, NULL), 0);
	while (sqlite3_step(row) == SQLITE_ROW)
		look_at_functions(row, &found);
	sqlite3_finalize(row);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM frame_page ORDER BY first_id",
					    -1, &row, NULL), 0);
	while (sqlite3_step(row) == SQLITE_ROW)
		look_at_frames(row, &found);
	sqlite3_finalize(row);
	sqlite3_close(db);
	return found;
}

/* The store has this many frames, this many of them with a name, and this many functions. */
static void check_rows(const struct lab *lab, int frames, int named, int functions)
{
	struct found found = look(lab);

	assert_int_equal(found.frames, frames);
	assert_int_equal(found.named, named);
	assert_int_equal(found.nfunctions, functions);
	lab_check_integrity(lab->path);
}

TEST(a_hundred_frames_get_a_hundred_ids)
{
	struct object *o;
	struct store *s;
	struct lab lab;
	unsigned i;

	s = lab_record(&lab, "many.db");
	o = object(&lab, 1);
	for (i = 0; i < 100; i++) {
		sample(&lab, o, i);
		if (i % 4)
			name(&lab, o, i);
	}
	put(&lab, s);
	check_rows(&lab, 100, 75, 34);
	/* The next segment has half of them again, 50 more, and names for all. */
	for (i = 50; i < 150; i++) {
		sample(&lab, o, i);
		name(&lab, o, i);
	}
	put(&lab, s);
	check_rows(&lab, 150, 75 - 38 + 100, 50);
	lab_end(&lab, s);
}

TEST(a_recorder_finds_the_frames_of_the_one_before)
{
	struct object *o;
	struct store *s;
	struct lab lab;
	unsigned i;

	lab_open(&lab, "again.db");
	o = object(&lab, 1);
	s = lab_store(&lab, STORE_RECORD);
	for (i = 0; i < 60; i += 2)          /* no names yet */
		sample(&lab, o, i);
	put(&lab, s);
	check_rows(&lab, 30, 0, 0);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	for (i = 0; i < 60; i++) {
		sample(&lab, o, i);
		name(&lab, o, i);
	}
	put(&lab, s);
	check_rows(&lab, 60, 60, 20);
	lab_end(&lab, s);
}

/* Two objects in memory that are one module in the store. */
TEST(frames_of_one_file_are_the_same_whichever_object_they_are_of)
{
	struct object *objects[2];
	struct store *s;
	struct lab lab;
	unsigned i;

	s = lab_record(&lab, "two.db");
	objects[0] = object(&lab, 1);
	objects[1] = object(&lab, 2);
	assert_ptr_not_equal(objects[0], objects[1]);
	for (i = 0; i < 120; i++) {
		sample(&lab, objects[i % 2], i / 2);
		/* Every other frame of the first object has no name. */
		if (i % 4)
			name(&lab, objects[i % 2], i / 2);
	}
	put(&lab, s);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM module"), 1);
	check_rows(&lab, 60, 60, 20);
	lab_end(&lab, s);
}

/*
 * The frames 1 to 3 get second ids, 101 to 103, as after they were forgotten. Late names go to the
 * ids that the segment lists, and no frame is added for them.
 */
TEST(late_names_go_to_the_ids_that_a_segment_lists)
{
	struct incident_head head = lab_head(MS(50), MS(50), 0);
	struct segment *segment;
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "late.db");
	lab_sample(&lab, MS(10), 0, "abc");
	segment = lab_begin(&lab, s, &head);
	lab_sql(lab.path, "INSERT INTO frame_page SELECT first_id + 100, last_id + 100, frames,"
		" data, functions FROM frame_page");
	lab_name(&lab, 'a');
	lab_name(&lab, 'c');
	assert_int_equal(store_finish(s, &head, &segment, 1, NULL), 0);
	assert_string_equal(lab_samples(s, head.id), "10.0 main a?c\n");
	assert_int_equal(lab_sql(lab.path, "SELECT sum(frames) FROM frame_page"), 6);
	segment_unref(segment);
	lab_end(&lab, s);
}

/*
 * More frames than a writer remembers: those that come again soon keep their ids, one of long ago
 * gets another.
 */
TEST(what_a_writer_has_forgotten_is_stored_again)
{
	enum { AT_ONCE = 8000, TIMES = 40, EARLY = AT_ONCE * TIMES + 1 };
	struct incident_head head = lab_head(MS(5000), MS(5000), 0);
	struct segment *early;
	struct object *o;
	struct store *s;
	struct lab lab;
	unsigned i;

	s = lab_record(&lab, "forgotten.db");
	o = object(&lab, 1);
	sample(&lab, o, EARLY);
	early = lab_begin(&lab, s, &head);
	name(&lab, o, 0);
	for (i = 1; i <= AT_ONCE * TIMES; i++) {
		sample(&lab, o, i);
		if (i % AT_ONCE)
			continue;
		sample(&lab, o, 0);
		put(&lab, s);
	}
	assert_int_equal(look(&lab).frames, AT_ONCE * TIMES + 2);
	sample(&lab, o, 0);
	sample(&lab, o, 1);
	put(&lab, s);
	assert_int_equal(look(&lab).frames, AT_ONCE * TIMES + 3);
	assert_int_equal(look(&lab).named, 1);
	/* The name of a forgotten frame adds no frame. */
	name(&lab, o, EARLY);
	assert_int_equal(store_finish(s, &head, &early, 1, NULL), 0);
	segment_unref(early);
	assert_int_equal(look(&lab).frames, AT_ONCE * TIMES + 3);
	assert_int_equal(look(&lab).named, 2);
	lab_end(&lab, s);
}

/* Frames of all puts that a file of the history has; each has `fresh` of its own, and these. */
static int history_frames(const char *name, unsigned puts, unsigned fresh, unsigned of_all)
{
	unsigned i, n, next = of_all;
	struct object *o;
	struct store *s;
	struct lab lab;
	int frames;

	lab_open(&lab, name);
	o = object(&lab, 1);
	assert_int_equal(store_open_history(lab.path, &s, NULL), 0);
	for (i = 0; i < puts; i++) {
		for (n = 0; n < of_all; n++)
			sample(&lab, o, n);
		for (n = 0; n < fresh; n++)
			sample(&lab, o, next++);
		put(&lab, s);
	}
	sample(&lab, o, of_all);             /* of the first put */
	put(&lab, s);
	store_close(s);
	frames = look(&lab).frames;
	lab_close(&lab);
	return frames;
}

/* It remembers a quarter of what a store of incidents does; more where that does not last. */
TEST(a_file_of_the_history_forgets_sooner_what_does_not_come_again)
{
	assert_int_equal(history_frames("few.db", 6, 8000, 100), 6 * 8000 + 100);
	assert_int_equal(history_frames("many.db", 10, 8000, 100), 10 * 8000 + 100 + 1);
	assert_int_equal(history_frames("used.db", 6, 8000, 40000), 6 * 8000 + 2 * 40000 + 1);
}

/*
 * Months of code that comes and goes: each incident has 300 frames of its own, and one that all
 * have. The store keeps three incidents, and must not grow.
 */
TEST(pages_are_merged_after_deletions)
{
	struct store_limits limits = {.max_incidents = 3};
	uint32_t deleted;
	struct object *o;
	struct store *s;
	struct lab lab;
	unsigned i;
	int64_t n = 0, bytes = 0;

	s = lab_record(&lab, "churn.db");
	o = object(&lab, 1);
	name(&lab, o, 0);
	for (i = 1; i <= 40 * 300; i++) {
		sample(&lab, o, i);
		if (i % 300 < 30)
			name(&lab, o, i);
		if (i % 300)
			continue;
		sample(&lab, o, 0);
		n = put(&lab, s);
		assert_int_equal(store_retain(s, &limits, 0, &deleted, NULL), 0);
		assert_int_equal(deleted, n > 3);
		if (n == 5)
			bytes = lab_sql(lab.path, "PRAGMA page_count");
	}
	assert_int_equal(n, 40);
	assert_int_equal(look(&lab).frames, 3 * 300 + 1);
	assert_int_equal(look(&lab).named, 3 * 30 + 1);
	assert_true(look(&lab).nfunctions <= 3 * 15);
	lab_check_integrity(lab.path);
	assert_true(lab_sql(lab.path, "SELECT count(*) FROM frame_page") <= 2);
	assert_true(lab_sql(lab.path, "PRAGMA page_count") <= bytes + 2);
	store_close(s);
	/* Another recorder knows what is left, and so does a reader. */
	s = lab_store(&lab, STORE_RECORD);
	sample(&lab, o, 0);
	sample(&lab, o, 40 * 300);
	put(&lab, s);
	assert_int_equal(look(&lab).frames, 3 * 300 + 1);
	lab_end(&lab, s);
}

enum { BOMBS = 20, BOMB_BYTES = 15 << 20 };

/* Processes 1 to BOMBS get a command line each, in a page with 15 MB that deflate to 15 KB. */
static void put_bombs(const struct lab *lab)
{
	struct deflater *d = deflater_new(false);
	char *long_text = calloc(1, BOMB_BYTES + 1);
	const char *const texts[] = {"short", long_text};
	struct columns columns = {0};
	struct buf blob = {0};
	sqlite3_stmt *insert;
	sqlite3 *db;

	assert_true(d && long_text);
	memset(long_text, 'x', BOMB_BYTES);
	assert_int_equal(text_page_pack(d, &columns, texts, 2, &blob, NULL), 0);
	assert_int_equal(sqlite3_open(lab->path, &db), 0);
	assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO text_page(first_id, last_id, data)"
					    " SELECT 1000 + 2 * id, 1001 + 2 * id, ? FROM process",
					    -1, &insert, NULL), 0);
	sqlite3_bind_blob(insert, 1, blob.data, (int)blob.len, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
	sqlite3_finalize(insert);
	sqlite3_close(db);
	lab_sql(lab->path, "UPDATE process SET cmdline_id = 1000 + 2 * id");
	columns_free(&columns);
	buf_free(&blob);
	free(long_text);
	deflater_free(d);
}

/*
 * A store that somebody else wrote, with 20 such pages: 18 are read, and two processes have no
 * command line.
 */
TEST(pages_beyond_the_cache_limit_are_not_read)
{
	struct incident in;
	struct store *s;
	struct lab lab;
	uint32_t i, n = 0;

	lab_open(&lab, "bombs.db");
	for (i = 0; i < BOMBS; i++) {
		struct process *process = process_add(lab.processes, 1000 + i, MS(1), 0, 1, "bomb");
		struct event e = {.time_ns = MS(10 + i), .kind = EVENT_SAMPLE, .process = process,
				  .thread = thread_add(lab.processes, process, 1000 + i),
				  .quality = QUALITY_FP, .value = 1e6, .stack = STACK_NONE};

		assert_int_equal(segment_add(lab.builder, &e), 0);
	}
	s = lab_store(&lab, STORE_RECORD);
	put(&lab, s);
	put_bombs(&lab);
	assert_int_equal(store_load(s, 1, &in, NULL), 0);
	assert_int_equal(in.nsamples, BOMBS);
	for (i = 0; i < in.nprocesses; i++)
		n += strcmp(in.processes[i].cmdline, "short") == 0;
	assert_int_equal(n, 18);
	assert_non_null(in.damage);
	assert_non_null(strstr(in.damage, "over 256 MB"));
	incident_free(&in);
	lab_end(&lab, s);
}

TEST(a_store_keeps_every_statement)
{
	enum { N = 300 };
	static char sql[N][20];
	sqlite3_stmt *first[N];
	struct store *s;
	struct query q;
	struct lab lab;
	int i;

	lab_open(&lab, "statements.db");
	s = lab_store(&lab, STORE_RECORD);
	for (i = 0; i < N; i++) {
		snprintf(sql[i], sizeof(sql[i]), "SELECT %d", i);
		q = db_query(s, sql[i], NO_ARGS, NULL);
		assert_int_equal(q.rc, 0);
		first[i] = q.st;
	}
	for (i = 0; i < N; i++) {
		q = db_query(s, sql[i], NO_ARGS, NULL);
		assert_ptr_equal(q.st, first[i]);
		assert_int_equal(query_step(&q), 1);
		assert_int_equal(column_int(&q, 0), i);
		query_reset(&q);
	}
	store_close(s);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_frames_get_a_hundred_ids),
		cmocka_unit_test(a_recorder_finds_the_frames_of_the_one_before),
		cmocka_unit_test(frames_of_one_file_are_the_same_whichever_object_they_are_of),
		cmocka_unit_test(late_names_go_to_the_ids_that_a_segment_lists),
		cmocka_unit_test(what_a_writer_has_forgotten_is_stored_again),
		cmocka_unit_test(a_file_of_the_history_forgets_sooner_what_does_not_come_again),
		cmocka_unit_test(pages_beyond_the_cache_limit_are_not_read),
		cmocka_unit_test(pages_are_merged_after_deletions),
		cmocka_unit_test(a_store_keeps_every_statement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
