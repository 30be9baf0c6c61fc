/* Objects, frames and functions: interning by contents, names, ceilings, sweeping. */
#include "base/os.h"
#include "model/frame.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct frames *open_table(void)
{
	struct frames *f = NULL;

	assert_int_equal(frames_new(&f, NULL), 0);
	return f;
}

static struct frames_use use_of(struct frames *f)
{
	struct frames_use use;

	frames_use(f, &use);
	return use;
}

static struct object *file(struct frames *f, uint64_t ino, const char *path)
{
	struct object_key key = {.kind = OBJECT_ELF, .dev = 8, .ino = ino, .path = path};
	struct object *object = objects_get(f, &key, 1);

	assert_non_null(object);
	return object;
}

static uint32_t intern(struct frames *f, struct object *object, uint64_t offset, uint32_t flags)
{
	struct frame_ref ref = {object, offset, flags};
	bool fresh;

	return frames_intern(f, &ref, &fresh);
}

/*
 * As many sweeps as it takes to look at everything, and once more for the objects of freed frames.
 */
static void sweep_all(struct frames *f, uint64_t released_ns)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		frames_sweep(f, released_ns);
}

/* Device and inode do not count then; a copy under another name is to be called by that name. */
TEST(object_with_a_build_id_is_that_id_and_its_path)
{
	struct object_key a = {.kind = OBJECT_ELF, .build_id_bytes = 2, .build_id = {1, 2},
			       .dev = 8, .ino = 5, .path = "/bin/a"};
	struct object_key b = {.kind = OBJECT_ELF, .build_id_bytes = 2, .build_id = {1, 2},
			       .path = "/bin/a"};
	struct frames *f = open_table();
	struct object *object = objects_get(f, &a, 1);

	assert_ptr_equal(objects_get(f, &b, 2), object);
	assert_string_equal(object->name, "a");
	assert_int_equal(object->pid, 1);
	assert_int_equal(atomic_load(&object->refs), 2);
	b.path = "/bin/b";
	assert_ptr_not_equal(objects_get(f, &b, 2), object);
	b.path = "/bin/a";
	b.build_id[1] = 3;
	assert_ptr_not_equal(objects_get(f, &b, 2), object);
	b.build_id[1] = 2;
	b.build_id_bytes = 1;
	assert_ptr_not_equal(objects_get(f, &b, 2), object);
	frames_free(f);
}

TEST(object_without_a_build_id_is_device_inode_generation_and_path)
{
	struct object_key key = {.kind = OBJECT_ELF, .dev = 8, .ino = 5, .ino_generation = 1,
				 .path = "/bin/a"};
	struct frames *f = open_table();
	struct object *object = objects_get(f, &key, 1);

	assert_ptr_equal(objects_get(f, &key, 1), object);
	key.ino_generation = 2;
	assert_ptr_not_equal(objects_get(f, &key, 1), object);
	key.ino_generation = 1;
	key.dev = 9;
	assert_ptr_not_equal(objects_get(f, &key, 1), object);
	key.dev = 8;
	key.path = "/bin/b";
	assert_ptr_not_equal(objects_get(f, &key, 1), object);
	key.path = "/bin/a";
	key.kind = OBJECT_JIT;
	assert_ptr_not_equal(objects_get(f, &key, 1), object);
	assert_int_equal(use_of(f).objects, 6);              /* these five and the unknown one */
	frames_free(f);
}

TEST(jitted_code_of_two_processes_or_epochs_is_two_objects)
{
	struct object_key key = {.kind = OBJECT_JIT, .pid = 5, .path = "[jit]"};
	struct frames *f = open_table();
	struct object *object = objects_get(f, &key, 5);

	key.pid = 6;
	assert_ptr_not_equal(objects_get(f, &key, 6), object);
	key.pid = 5;
	key.epoch = 1;
	assert_ptr_not_equal(objects_get(f, &key, 5), object);
	frames_free(f);
}

TEST(frame_has_one_number_per_contents)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a"), *b = file(f, 2, "/b");
	uint32_t number = intern(f, a, 16, 0);
	struct frame_ref ref = {a, 17, 0};
	bool fresh;

	assert_int_equal(intern(f, a, 16, 0), number);
	assert_int_not_equal(intern(f, b, 16, 0), number);
	assert_int_not_equal(intern(f, a, 16, FRAME_RETURN_ADDRESS), number);
	assert_int_not_equal(frames_intern(f, &ref, &fresh), number);
	assert_true(fresh);
	frames_intern(f, &ref, &fresh);
	assert_false(fresh);
	assert_int_equal(use_of(f).frames, 4);
	assert_ptr_equal(frame_get(f, number)->object, a);
	assert_int_equal(frame_get(f, number)->offset, 16);
	frames_free(f);
}

/* 200,000 frames: their 32-bit hashes meet about five times; contents never do. */
TEST(frames_are_interned_by_contents_not_by_hash)
{
	struct frames *f = open_table();
	struct object *object = file(f, 1, "/a");
	uint32_t i;

	for (i = 0; i < 200000; i++)
		assert_int_equal(intern(f, object, i, 0), i);
	for (i = 0; i < 200000; i++)
		assert_int_equal(intern(f, object, i, 0), i);
	for (i = 0; i < 200000; i++)
		assert_int_equal(frame_get(f, i)->offset, i);
	frames_free(f);
}

TEST(name_once_set_is_never_replaced)
{
	struct frames *f = open_table();
	struct frame *frame = frame_get(f, intern(f, file(f, 1, "/a"), 16, 0));
	struct function *function;

	assert_null(atomic_load(&frame->function));
	assert_int_equal(frame_set_function(f, frame, 8, "ns::burn()", "_ZN2ns4burnEv", "ext4"), 0);
	assert_int_equal(frame_set_function(f, frame, 0, "other", NULL, NULL), 0);
	function = atomic_load(&frame->function);
	assert_string_equal(function->name, "ns::burn()");
	assert_string_equal(function->raw_name, "_ZN2ns4burnEv");
	assert_string_equal(function->module, "ext4");
	assert_int_equal(function->offset, 8);
	assert_int_equal(use_of(f).named, 1);
	assert_int_equal(use_of(f).functions, 1);
	frames_free(f);
}

TEST(frames_of_one_function_share_it)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	struct frame *first = frame_get(f, intern(f, a, 16, 0));
	struct frame *second = frame_get(f, intern(f, a, 20, 0));
	struct frame *other = frame_get(f, intern(f, file(f, 2, "/b"), 16, 0));

	frame_set_function(f, first, 8, "burn", NULL, NULL);
	frame_set_function(f, second, 8, "burn", "burn", NULL);
	frame_set_function(f, other, 8, "burn", NULL, NULL);
	assert_ptr_equal(atomic_load(&first->function), atomic_load(&second->function));
	assert_ptr_not_equal(atomic_load(&first->function), atomic_load(&other->function));
	assert_null(((struct function *)atomic_load(&second->function))->raw_name);
	assert_int_equal(use_of(f).functions, 2);
	assert_int_equal(use_of(f).named, 3);
	frames_free(f);
}

TEST(a_frame_in_a_file_takes_the_name_of_the_function_there_and_others_do_not)
{
	static const struct object_key jit = {.kind = OBJECT_JIT, .pid = 7, .path = "[jit]"};
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a"), *made = objects_get(f, &jit, 7);
	struct frame *first = frame_get(f, intern(f, a, 16, 0));
	struct frame *second = frame_get(f, intern(f, a, 20, 0));
	struct frame *code = frame_get(f, intern(f, made, 16, 0));
	struct frame *next = frame_get(f, intern(f, made, 20, 0));

	assert_false(frame_take_function(f, first, 8));
	frame_set_function(f, first, 8, "ns::burn", "_ZN2ns4burnEv", NULL);
	frame_set_function(f, code, 8, "jitted", NULL, NULL);
	assert_false(frame_take_function(f, second, 9));
	assert_true(frame_take_function(f, second, 8));
	assert_ptr_equal(atomic_load(&second->function), atomic_load(&first->function));
	assert_false(frame_take_function(f, next, 8));        /* other code may be there by now */
	assert_int_equal(use_of(f).named, 3);
	frames_free(f);
}

TEST(name_of_over_4000_bytes_is_cut_and_still_shared)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	struct frame *first = frame_get(f, intern(f, a, 16, 0));
	struct frame *second = frame_get(f, intern(f, a, 20, 0));
	char name[5001];

	memset(name, 'n', 5000);
	name[5000] = '\0';
	assert_int_equal(frame_set_function(f, first, 8, "short", name, NULL), 0);
	assert_int_equal(frame_set_function(f, second, 8, "short", name, NULL), 0);
	assert_int_equal(strlen(((struct function *)atomic_load(&first->function))->raw_name),
			 FUNCTION_NAME_MAX);
	assert_int_equal(use_of(f).functions, 1);
	frames_free(f);
}

TEST(sweep_frees_only_unreferenced_frames)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	uint32_t kept = intern(f, a, 16, 0);
	bool fresh;

	intern(f, a, 17, 0);
	frame_set_function(f, frame_get(f, kept), 8, "kept", NULL, NULL);
	frame_set_function(f, frame_get(f, 1), 17, "gone", NULL, NULL);
	frame_ref(frame_get(f, kept));
	sweep_all(f, 100);
	assert_int_equal(use_of(f).frames, 1);
	assert_int_equal(use_of(f).functions, 1);
	assert_int_equal(use_of(f).named, 1);
	assert_int_equal(frames_intern(f, &(struct frame_ref){a, 16, 0}, &fresh), kept);
	assert_false(fresh);
	frame_unref(frame_get(f, kept));
	sweep_all(f, 100);
	assert_int_equal(use_of(f).frames, 0);
	assert_int_equal(use_of(f).functions, 0);
	frames_free(f);
}

/* 20,000 frames, every third referenced, in sweeps of 8,192: the table is never damaged. */
TEST(sweep_in_slices_leaves_the_rest_findable)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	uint32_t i, sweeps;
	bool fresh;

	for (i = 0; i < 20000; i++) {
		assert_int_equal(intern(f, a, i, 0), i);
		if (i % 3 == 0)
			frame_ref(frame_get(f, i));
	}
	for (sweeps = 0; sweeps < 20; sweeps++)
		frames_sweep(f, 100);
	assert_int_equal(use_of(f).frames, 6667);
	for (i = 0; i < 20000; i += 3) {
		assert_int_equal(frames_intern(f, &(struct frame_ref){a, i, 0}, &fresh), i);
		assert_false(fresh);
	}
	for (i = 1; i < 20000; i += 3) {
		frames_intern(f, &(struct frame_ref){a, i, 0}, &fresh);
		assert_true(fresh);
	}
	frames_free(f);
}

/* Unreferenced frames of one object: three slices. */
static struct frames *open_with_20000(struct object **a)
{
	struct frames *f = open_table();
	uint32_t i;

	*a = file(f, 1, "/a");
	for (i = 0; i < 20000; i++)
		assert_int_equal(intern(f, *a, i, 0), i);
	return f;
}

/* The frame that comes later is of the next sweep. */
TEST(sweep_goes_on_to_its_last_slice_and_begins_no_other)
{
	struct object *a;
	struct frames *f = open_with_20000(&a);

	frames_sweep_more(f, 100);
	assert_int_equal(use_of(f).frames, 20000);
	frames_sweep(f, 100);
	assert_int_equal(use_of(f).frames, 20000 - 8192);
	frames_sweep_more(f, 100);
	frames_sweep_more(f, 100);
	assert_int_equal(use_of(f).frames, 0);
	intern(f, a, 7, 0);
	frames_sweep_more(f, 100);
	assert_int_equal(use_of(f).frames, 1);
	frames_free(f);
}

TEST(sweeping_all_does_not_stop_at_a_slice)
{
	struct object *a;
	struct frames *f = open_with_20000(&a);

	frames_sweep(f, 100);
	assert_true(use_of(f).frames > 0);
	frames_sweep_all(f, 100);
	assert_int_equal(use_of(f).frames, 0);
	frames_free(f);
}

TEST(slot_of_a_swept_frame_starts_anew)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	uint32_t number = intern(f, a, 16, FRAME_JIT);
	struct frame *frame;

	frame_set_function(f, frame_get(f, number), 8, "old", NULL, NULL);
	atomic_store(&frame_get(f, number)->asked, true);
	sweep_all(f, 100);
	assert_int_equal(intern(f, a, 99, 0), number);
	frame = frame_get(f, number);
	assert_null(atomic_load(&frame->function));
	assert_false(atomic_load(&frame->asked));
	assert_int_equal(frame->offset, 99);
	assert_int_equal(frame->flags, 0);
	frames_free(f);
}

/* As a queued symbol request does: the slot must not become another frame meanwhile. */
TEST(frame_that_a_request_holds_keeps_its_slot)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	uint32_t number = intern(f, a, 16, 0);
	struct frame *held = frame_get(f, number);

	frame_ref(held);
	object_drop(a, 10);
	sweep_all(f, 100);
	assert_int_not_equal(intern(f, objects_unknown(f), 99, 0), number);
	assert_int_equal(frame_set_function(f, held, 8, "late", NULL, NULL), 0);
	assert_string_equal(held->object->name, "a");
	assert_string_equal(((struct function *)atomic_load(&held->function))->name, "late");
	frames_free(f);
}

TEST(object_goes_once_dropped_and_released)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");

	sweep_all(f, 1000);
	assert_int_equal(use_of(f).objects, 2);
	object_drop(a, 50);
	frames_sweep(f, 50);
	assert_int_equal(use_of(f).objects, 2);
	frames_sweep(f, 51);
	assert_int_equal(use_of(f).objects, 1);
	assert_non_null(objects_unknown(f));
	frames_free(f);
}

TEST(object_that_is_got_again_stays)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");

	object_drop(a, 50);
	assert_ptr_equal(file(f, 1, "/a"), a);
	frames_sweep(f, 100);
	assert_int_equal(use_of(f).objects, 2);
	assert_int_equal(atomic_load(&a->refs), 1);
	frames_free(f);
}

/*
 * The source dropped its mapping at 100, and may have queued frames of it up to then. A frame swept
 * while only 50 is released lets go of the object too: that must not make it free before 100.
 */
TEST(object_waits_for_the_latest_of_its_drops)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");

	intern(f, a, 16, 0);
	object_drop(a, 100);
	frames_sweep(f, 50);
	assert_int_equal(use_of(f).frames, 0);
	frames_sweep(f, 60);
	assert_int_equal(use_of(f).objects, 2);
	frames_sweep(f, 101);
	assert_int_equal(use_of(f).objects, 1);
	frames_free(f);
}

struct droppers {
	struct frames *f;
	struct object *object;
};

static void get_and_drop(void *ctx)
{
	struct droppers *d = ctx;
	struct object_key key = {.kind = OBJECT_ELF, .dev = 8, .ino = 1, .path = "/a"};
	uint32_t i;

	for (i = 0; i < 20000; i++) {
		struct object *object = objects_get(d->f, &key, 1);

		object_ref(object);
		object_drop(object, i + 1);
		object_drop(object, i + 1);
	}
}

TEST(object_got_and_dropped_by_two_threads_is_freed_once_at_the_end)
{
	struct droppers d = {.f = open_table()};
	struct os_thread *threads[2];

	d.object = file(d.f, 1, "/a");
	assert_int_equal(os_thread_start("a", get_and_drop, &d, &threads[0], NULL), 0);
	assert_int_equal(os_thread_start("b", get_and_drop, &d, &threads[1], NULL), 0);
	os_thread_join(threads[0]);
	os_thread_join(threads[1]);
	frames_sweep(d.f, 1000000);
	assert_int_equal(use_of(d.f).objects, 2);
	assert_int_equal(atomic_load(&d.object->refs), 1);
	object_drop(d.object, 5);
	frames_sweep(d.f, 1000000);
	assert_int_equal(use_of(d.f).objects, 1);
	frames_free(d.f);
}

TEST(frames_at_their_ceiling_are_refused_and_counted)
{
	struct frames *f = open_table();
	struct object *a = file(f, 1, "/a");
	uint32_t i;

	for (i = 0; i < FRAMES_MAX; i++) {
		if (intern(f, a, i, 0) != i)
			fail_msg("frame %u was refused", i);
	}
	assert_int_equal(intern(f, a, i, 0), FRAME_NONE);
	assert_int_equal(intern(f, a, 7, 0), 7);
	assert_int_equal(use_of(f).refused, 1);
	sweep_all(f, 100);
	assert_int_not_equal(intern(f, a, FRAMES_MAX, 0), FRAME_NONE);
	frames_free(f);
}

TEST(objects_at_their_ceiling_are_refused_and_counted)
{
	struct object_key key = {.kind = OBJECT_JIT, .path = "[jit]"};
	struct frames *f = open_table();

	for (key.pid = 1; key.pid < OBJECTS_MAX; key.pid++)
		assert_non_null(objects_get(f, &key, key.pid));
	assert_null(objects_get(f, &key, key.pid));
	assert_int_equal(use_of(f).refused, 1);
	assert_int_equal(use_of(f).objects, OBJECTS_MAX);
	frames_free(f);
}

/* Processes from 1000 on belong to the user 54321, the others to root; 7 has gone. */
static bool user_of(uint32_t pid, uint32_t *uid)
{
	if (pid != 7)
		*uid = pid < 1000 ? 0 : 54321;
	return pid != 7;
}

static struct object *file_of(struct frames *f, uint32_t pid, uint64_t ino)
{
	struct object_key key = {.kind = OBJECT_ELF, .dev = 8, .ino = ino, .path = "/tmp/a"};

	return objects_get_for(f, &key, pid, user_of);
}

/* A process that maps 78,000 files left no place for those of the others. */
TEST(objects_of_one_user_fill_half_of_the_table)
{
	struct frames *f = open_table();
	uint64_t ino = 1;

	for (; ino <= OBJECTS_MAX / 2; ino++)
		assert_non_null(file_of(f, (uint32_t)(1000 + ino % 100), ino));
	assert_null(file_of(f, 5000, ino));
	assert_int_equal(use_of(f).over_share, 1);
	assert_int_equal(use_of(f).over_share_uid, 54321);
	assert_int_equal(use_of(f).refused, 1);
	/* What is known already is found by everybody, and others have new ones. */
	assert_ptr_equal(file_of(f, 5000, 1), file_of(f, 1, 1));
	assert_non_null(file_of(f, 7, ino));
	while (++ino < OBJECTS_MAX)
		assert_non_null(file_of(f, 1, ino));
	frames_free(f);
}

TEST(an_object_that_has_gone_leaves_its_place_in_the_share)
{
	struct frames *f = open_table();
	struct object *first = file_of(f, 1000, 1);
	uint64_t ino;

	for (ino = 2; ino <= OBJECTS_MAX / 2; ino++)
		assert_non_null(file_of(f, 1000, ino));
	assert_null(file_of(f, 1000, ino));
	object_drop(first, 5);
	sweep_all(f, 6);
	assert_non_null(file_of(f, 1000, ino));
	assert_null(file_of(f, 1000, ino + 1));
	frames_free(f);
}

/* Code is compiled and unloaded for months: 1,000 rounds of 100 frames, each of a new epoch. */
TEST(churn_does_not_grow_memory)
{
	struct object_key key = {.kind = OBJECT_JIT, .pid = 1, .path = "[jit]"};
	struct frames *f = open_table();
	size_t bytes = 0;
	uint32_t i, j;

	for (i = 0; i < 1000; i++) {
		struct object *object;

		key.epoch = i;
		object = objects_get(f, &key, 1);
		for (j = 0; j < 100; j++)
			frame_set_function(f, frame_get(f, intern(f, object, j, 0)), j, "jitted",
					   NULL, NULL);
		object_drop(object, i + 1);
		sweep_all(f, i + 2);
		if (i == 1)
			bytes = use_of(f).bytes;
	}
	sweep_all(f, i + 2);
	assert_int_equal(use_of(f).objects, 1);
	assert_int_equal(use_of(f).functions, 0);
	assert_int_equal(use_of(f).bytes, bytes);
	frames_free(f);
}

static int build_step(void *ctx)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = "/bin/app"};
	struct frames *f = NULL;
	struct object *object;
	int rc = frames_new(&f, NULL);
	uint32_t number = FRAME_NONE;

	(void)ctx;
	if (rc)
		return rc;
	object = objects_get(f, &key, 1);
	if (object)
		number = intern(f, object, 16, 0);
	if (number == FRAME_NONE)
		rc = ERR_MEMORY;
	else
		rc = frame_set_function(f, frame_get(f, number), 8, "name", "raw", "module");
	frames_free(f);
	return rc;
}

TEST(frames_without_memory_are_refused_and_leak_nothing)
{
	assert_in_range(alloc_walk(build_step, NULL), 10, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_with_a_build_id_is_that_id_and_its_path),
		cmocka_unit_test(object_without_a_build_id_is_device_inode_generation_and_path),
		cmocka_unit_test(jitted_code_of_two_processes_or_epochs_is_two_objects),
		cmocka_unit_test(frame_has_one_number_per_contents),
		cmocka_unit_test(frames_are_interned_by_contents_not_by_hash),
		cmocka_unit_test(name_once_set_is_never_replaced),
		cmocka_unit_test(frames_of_one_function_share_it),
		cmocka_unit_test(
			a_frame_in_a_file_takes_the_name_of_the_function_there_and_others_do_not),
		cmocka_unit_test(name_of_over_4000_bytes_is_cut_and_still_shared),
		cmocka_unit_test(sweep_frees_only_unreferenced_frames),
		cmocka_unit_test(sweep_in_slices_leaves_the_rest_findable),
		cmocka_unit_test(sweep_goes_on_to_its_last_slice_and_begins_no_other),
		cmocka_unit_test(sweeping_all_does_not_stop_at_a_slice),
		cmocka_unit_test(slot_of_a_swept_frame_starts_anew),
		cmocka_unit_test(frame_that_a_request_holds_keeps_its_slot),
		cmocka_unit_test(object_goes_once_dropped_and_released),
		cmocka_unit_test(object_that_is_got_again_stays),
		cmocka_unit_test(object_waits_for_the_latest_of_its_drops),
		cmocka_unit_test(object_got_and_dropped_by_two_threads_is_freed_once_at_the_end),
		cmocka_unit_test(frames_at_their_ceiling_are_refused_and_counted),
		cmocka_unit_test(objects_at_their_ceiling_are_refused_and_counted),
		cmocka_unit_test(objects_of_one_user_fill_half_of_the_table),
		cmocka_unit_test(an_object_that_has_gone_leaves_its_place_in_the_share),
		cmocka_unit_test(churn_does_not_grow_memory),
		cmocka_unit_test(frames_without_memory_are_refused_and_leak_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
