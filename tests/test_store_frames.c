/* Rows of frames and functions: added many at a time, each one once, with the right names. */
#include "tests/support/store_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Frame i is at 64 * i; functions have three of them: fn_0 those at 0, 64, 128; fn_1 from 192 on. */
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
	bool fresh;

	snprintf(text, sizeof(text), "fn_%u", function);
	assert_int_equal(frame_set_function(lab->frames,
					    frame_get(lab->frames, frames_intern(lab->frames, &ref, &fresh)),
					    function * (uint64_t)FUNCTION_BYTES, text, NULL, NULL), 0);
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

static void put(struct lab *lab, struct store *s)
{
	struct incident_head head = lab_head(MS(5000), MS(5000), 0);
	struct segment *segment = lab_seal(lab);

	lab_incident(s, &head, &segment, 1);
	segment_unref(segment);
}

/* So many rows, no two alike, of them so many named, all of these rightly. */
static void check_rows(const struct lab *lab, int frames, int named, int functions)
{
	assert_int_equal(lab_sql(lab->path, "SELECT count(*) FROM frame"), frames);
	assert_int_equal(lab_sql(lab->path, "SELECT count(*) FROM function"), functions);
	assert_int_equal(lab_sql(lab->path, "SELECT count(DISTINCT module_id || ' ' || offset || name) FROM function"),
			 functions);
	assert_int_equal(lab_sql(lab->path, "SELECT count(*) FROM frame f JOIN function n ON n.id=f.function_id"
				 " WHERE n.name=printf('fn_%d', f.offset / 192) AND n.module_id=f.module_id"
				 " AND n.offset=f.offset / 192 * 192"), named);
	assert_int_equal(lab_sql(lab->path, "SELECT count(function_id) FROM frame"), named);
	lab_check_integrity(lab->path);
}

static void a_hundred_frames_are_a_hundred_rows(void **state)
{
	struct object *o;
	struct store *s;
	struct lab lab;
	unsigned i;

	(void)state;
	lab_open(&lab, "many.db");
	s = lab_store(&lab, STORE_RECORD);
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
	store_close(s);
	lab_close(&lab);
}

static void a_recorder_finds_the_rows_of_the_one_before(void **state)
{
	struct object *o;
	struct store *s;
	struct lab lab;
	unsigned i;

	(void)state;
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
	store_close(s);
	lab_close(&lab);
}

/* Two objects that memory keeps apart, and one module for the store. */
static void frames_of_one_file_are_the_same_whichever_object_they_are_of(void **state)
{
	struct object *objects[2];
	struct store *s;
	struct lab lab;
	unsigned i;

	(void)state;
	lab_open(&lab, "two.db");
	s = lab_store(&lab, STORE_RECORD);
	objects[0] = object(&lab, 1);
	objects[1] = object(&lab, 2);
	assert_ptr_not_equal(objects[0], objects[1]);
	for (i = 0; i < 120; i++) {
		sample(&lab, objects[i % 2], i / 2);
		/* Of every other frame the first object's is without a name. */
		if (i % 4)
			name(&lab, objects[i % 2], i / 2);
	}
	put(&lab, s);
	assert_int_equal(lab_sql(lab.path, "SELECT count(*) FROM module"), 1);
	check_rows(&lab, 60, 60, 20);
	store_close(s);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_frames_are_a_hundred_rows),
		cmocka_unit_test(a_recorder_finds_the_rows_of_the_one_before),
		cmocka_unit_test(frames_of_one_file_are_the_same_whichever_object_they_are_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
