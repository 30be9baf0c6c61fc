#include "symbol/symbol.h"
#include "tests/support/elf_image.h"
#include "tests/support/symbol_world.h"
#include "tests/support/tmp.h"

#include "base/os.h"
#include "symbol/elf.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x401000u
#define SETTLE_NS (200 * NS_PER_SEC)        /* 20 s were too short under Wine beside a load of 40 */
#define ID "0123456789abcdefghij"

static const struct elf_image_symbol functions[] = {
	{"alpha", BASE + 0x10, 0x20, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
	{"_ZN3foo3barILi3EEEvi", BASE + 0x40, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false,
	 false},
};

static const char *write_image(const char *name, const char *build_id, size_t padding)
{
	struct elf_image image = {.vaddr = BASE, .text_bytes = 0x100, .build_id = build_id,
				  .build_id_bytes = 20, .padding = padding, .symbols = functions,
				  .nsymbols = 2};
	const char *path = tmp_path(name);
	struct os_file *file = NULL;
	struct buf b = {0};

	elf_image_build(&image, &b);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, b.data, b.len, NULL), 0);
	os_close(file);
	buf_free(&b);
	return path;
}

static struct object *elf_object(struct symbol_world *w, const char *path, const char *build_id)
{
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 20, .path = path};
	struct object *object;

	memcpy(key.build_id, build_id, 20);
	object = objects_get(w->frames, &key, os_pid());
	assert_non_null(object);
	return object;
}

/* A new frame at an address of the image, referenced. */
static struct frame *frame_at(struct symbol_world *w, struct object *object, uint64_t vaddr)
{
	struct frame_ref ref = {object, ELF_IMAGE_TEXT_AT + vaddr - BASE, 0};
	bool fresh;
	struct frame *frame = frame_get(w->frames, frames_intern(w->frames, &ref, &fresh));

	frame_ref(frame);
	return frame;
}

static const struct function *named(struct frame *frame)
{
	return atomic_load(&frame->function);
}

TEST(worker_names_frames_that_are_wanted)
{
	struct frame *frames[3];
	struct symbols_use use;
	struct object *object;
	struct symbol_world w;

	symbol_world_open(&w, NULL, NULL);
	object = elf_object(&w, write_image("plain", ID, 0), ID);
	frames[0] = frame_at(&w, object, BASE + 0x18);
	frames[1] = frame_at(&w, object, BASE + 0x48);
	frames[2] = frame_at(&w, object, BASE + 0x80);
	symbols_prefetch(w.symbols, object, os_pid());
	symbols_want(w.symbols, frames[0]);
	symbols_want(w.symbols, frames[1]);
	symbols_want(w.symbols, frames[2]);
	assert_int_equal(symbols_settle(w.symbols, frames, 3, SETTLE_NS), 1);

	assert_string_equal(named(frames[0])->name, "alpha");
	assert_null(named(frames[0])->raw_name);
	assert_true(named(frames[0])->offset == ELF_IMAGE_TEXT_AT + 0x10);
	assert_string_equal(named(frames[1])->name, "foo::bar<3>");
	assert_string_equal(named(frames[1])->raw_name, "_ZN3foo3barILi3EEEvi");
	assert_null(named(frames[2]));

	symbols_settle(w.symbols, frames, 3, SETTLE_NS);
	symbols_use(w.symbols, &use);
	assert_int_equal(use.objects_open, 1);
	assert_int_equal(use.files_open, 0);           /* small: its names are in memory */
	assert_int_equal(use.named, 2);
	assert_int_equal(use.unnamed, 1);
	assert_true(use.cache_bytes > 0 && use.cache_bytes < 16384);
	symbol_world_close(&w);
}

static bool witness_find(void *ctx, const struct object *object, uint64_t offset,
			 struct symbol *out)
{
	(void)ctx;
	(void)object;
	*out = (struct symbol){.offset = offset & ~0xfULL, .name = "Late.Method",
			       .module = "App", .raw_name = "=(int32)"};
	return true;
}

/* What a runtime told late has its parameters too. */
TEST(worker_takes_all_that_a_witness_says)
{
	const struct symbol_witness witness = {.find = witness_find};
	const struct symbol_env env = {.witness = &witness};
	struct object_key key = {.kind = OBJECT_JIT, .pid = 1, .path = "[.net]"};
	struct symbol_world w;
	struct frame *frame;

	symbol_world_open(&w, &env, NULL);
	frame = frame_at(&w, objects_get(w.frames, &key, os_pid()), 0x18);
	assert_int_equal(symbols_settle(w.symbols, &frame, 1, SETTLE_NS), 0);
	assert_string_equal(named(frame)->name, "Late.Method");
	assert_string_equal(named(frame)->module, "App");
	assert_string_equal(named(frame)->raw_name, "=(int32)");
	symbol_world_close(&w);
}

TEST(worker_refuses_a_file_with_another_build_id)
{
	struct symbols_use use;
	struct object *object;
	struct frame *frame;
	struct symbol_world w;

	symbol_world_open(&w, NULL, NULL);
	object = elf_object(&w, write_image("replaced", ID, 0), "another build id ...");
	frame = frame_at(&w, object, BASE + 0x18);
	assert_int_equal(symbols_settle(w.symbols, &frame, 1, SETTLE_NS), 1);
	assert_null(named(frame));
	symbols_use(w.symbols, &use);
	assert_int_equal(use.objects_failed, 1);
	assert_int_equal(use.unnamed, 1);
	symbol_world_close(&w);
}

TEST(worker_remembers_what_cannot_be_opened_until_another_process_maps_it)
{
	const char *path = tmp_path("missing");
	struct symbols_use use;
	struct object *object;
	struct frame *frames[20];
	struct symbol_world w;
	unsigned i;

	os_remove(path, NULL);
	symbol_world_open(&w, NULL, NULL);
	object = elf_object(&w, path, ID);
	for (i = 0; i < 20; i++)
		frames[i] = frame_at(&w, object, BASE + 0x10 + i);
	assert_int_equal(symbols_settle(w.symbols, frames, 20, SETTLE_NS), 20);
	symbols_use(w.symbols, &use);
	assert_int_equal(use.failed, 1);
	assert_int_equal(use.objects_failed, 1);

	write_image("missing", ID, 0);
	os_sleep_ns(20 * NS_PER_MS);                   /* longer than the first interval */
	symbols_prefetch(w.symbols, object, os_pid() + 1);
	/* The prefetch is in another queue: settle until it has been seen. */
	for (i = 0; i < 100 && symbols_settle(w.symbols, frames, 20, NS_PER_SEC); i++)
		os_sleep_ns(NS_PER_MS);
	assert_string_equal(named(frames[19])->name, "alpha");
	symbols_use(w.symbols, &use);
	assert_int_equal(use.objects_failed, 0);
	symbol_world_close(&w);
}

/* The log of a worker that looked for the names of 16 copies of the file: as in 16 containers. */
static void log_of_copies(const char *path, struct buf *out)
{
	enum { COPIES = 16 };
	const char *log_path = tmp_path("log");
	struct frame *frames[COPIES];
	struct symbols_use use;
	struct log *log = NULL;
	struct symbol_world w;
	unsigned i;

	os_remove(log_path, NULL);
	assert_int_equal(log_open(log_path, &log, NULL), 0);
	symbol_world_open(&w, NULL, log);
	for (i = 0; i < COPIES; i++) {
		struct object_key key = {.kind = OBJECT_ELF, .path = path, .dev = i, .ino = ~0u};

		frames[i] = frame_at(&w, objects_get(w.frames, &key, os_pid()), BASE + 0x18);
	}
	assert_int_equal(symbols_settle(w.symbols, frames, COPIES, SETTLE_NS), COPIES);
	symbols_use(w.symbols, &use);
	assert_int_equal(use.failed, COPIES);
	assert_int_equal(use.objects_failed, COPIES);
	symbol_world_close(&w);
	log_close(log);
	assert_int_equal(os_load(log_path, 65536, out, NULL), 0);
}

TEST(a_library_without_names_is_told_once_with_its_place_and_remedy)
{
	const char *path = write_image("libc.so.6", ID, 0), *line;
	struct buf log = {0}, gone = {0};

	log_of_copies(path, &log);
	line = strstr(buf_text(&log), "no function names for ");
	assert_non_null(line);
	assert_non_null(strstr(line, path));
	assert_non_null(strstr(line, "is no longer the file that was mapped"));
	assert_non_null(strstr(line, "restart the processes that still run the old one"));
	assert_null(strstr(line, "/exe"));
	assert_string_equal(strchr(line, '\n'), "\n");

	/* Nothing is at its path: the program that maps it is no reason. */
	os_remove(path, NULL);
	log_of_copies(path, &gone);
	line = strstr(buf_text(&gone), "no function names for ");
	assert_non_null(line);
	assert_non_null(strstr(line, path));
	assert_null(strstr(line, "/exe"));
	assert_string_equal(strchr(line, '\n'), "\n");
	buf_free(&log);
	buf_free(&gone);
}

TEST(worker_refuses_what_is_no_file_or_no_elf)
{
	static const char *const paths[] = {"dir", "script", "", "[heap]", "relative/path"};
	struct frame *frames[5];
	struct os_file *file = NULL;
	struct object *object;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	os_mkdirs(tmp_path("dir"), NULL);
	assert_int_equal(os_open(tmp_path("script"), OS_REPLACE, &file, NULL), 0);
	os_write(file, "#!/bin/sh\n", 10, NULL);
	os_close(file);
	for (i = 0; i < 5; i++) {
		char id[21];

		snprintf(id, sizeof(id), "%020u", i);
		object = elf_object(&w, i < 2 ? tmp_path(paths[i]) : paths[i], id);
		frames[i] = frame_at(&w, object, BASE);
	}
	assert_int_equal(symbols_settle(w.symbols, frames, 5, SETTLE_NS), 5);
	symbol_world_close(&w);
}

TEST(worker_reads_names_of_a_large_table_from_the_file)
{
	struct symbols_use use;
	struct object *object;
	struct frame *frame;
	struct symbol_world w;

	symbol_world_open(&w, NULL, NULL);
	object = elf_object(&w, write_image("large", ID, ELF_STRINGS_KEPT_BYTES), ID);
	frame = frame_at(&w, object, BASE + 0x18);
	assert_int_equal(symbols_settle(w.symbols, &frame, 1, SETTLE_NS), 0);
	assert_string_equal(named(frame)->name, "alpha");
	symbols_use(w.symbols, &use);
	assert_int_equal(use.files_open, 1);
	assert_true(use.cache_bytes < 16384);
	symbol_world_close(&w);
}

TEST(worker_holds_few_files_open_however_many_objects_there_are)
{
	enum { OBJECTS = SYMBOL_FILES_MAX + 10 };
	struct frame *frames[2 * OBJECTS];
	struct object *objects[OBJECTS];
	struct symbols_use use;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	for (i = 0; i < OBJECTS; i++) {
		char id[21], name[20];

		snprintf(id, sizeof(id), "%020u", i);
		snprintf(name, sizeof(name), "many%u", i);
		objects[i] = elf_object(&w, write_image(name, id, ELF_STRINGS_KEPT_BYTES), id);
		frames[i] = frame_at(&w, objects[i], BASE + 0x18);
		frames[OBJECTS + i] = frame_at(&w, objects[i], BASE + 0x48);
	}
	/* The second round finds some files closed, and opens them again. */
	assert_int_equal(symbols_settle(w.symbols, frames, 2 * OBJECTS, SETTLE_NS), 0);
	symbols_use(w.symbols, &use);
	assert_int_equal(use.objects_open, OBJECTS);
	assert_int_equal(use.files_open, SYMBOL_FILES_MAX);
	symbol_world_close(&w);
	for (i = 0; i < OBJECTS; i++) {
		char name[20];

		snprintf(name, sizeof(name), "many%u", i);
		os_remove(tmp_path(name), NULL);
	}
}

TEST(worker_forgets_the_least_recently_used_objects)
{
	enum { OBJECTS = SYMBOL_OBJECTS_MAX + 100 };
	struct symbols_use use;
	struct frame *frame;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	for (i = 0; i < OBJECTS; i++) {
		char id[21];

		snprintf(id, sizeof(id), "%020u", i);
		frame = frame_at(&w, elf_object(&w, "[none]", id), BASE);
		assert_int_equal(symbols_settle(w.symbols, &frame, 1, SETTLE_NS), 1);
	}
	symbols_use(w.symbols, &use);
	assert_int_equal(use.objects_failed, SYMBOL_OBJECTS_MAX);
	assert_int_equal(use.failed, OBJECTS);
	symbol_world_close(&w);
}

TEST(settle_ends_when_its_time_is_over)
{
	struct frame *frame;
	struct symbol_world w;

	symbol_world_open(&w, NULL, NULL);
	frame = frame_at(&w, elf_object(&w, write_image("late", ID, 0), ID), BASE + 0x18);
	symbols_settle(w.symbols, &frame, 1, 0);       /* not a moment: named or not, it returns */
	assert_int_equal(symbols_settle(w.symbols, NULL, 0, NS_PER_SEC), 0);
	assert_int_equal(symbols_settle(w.symbols, &frame, 1, UINT64_MAX), 0);
	symbol_world_close(&w);
}

TEST(closing_drops_what_is_still_queued)
{
	struct process *process;
	struct object *object;
	struct frame *frame;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	object = elf_object(&w, write_image("busy", ID, 0), ID);
	process = process_add(w.processes, os_pid(), 1, 0, 0, "self");
	frame = frame_at(&w, object, BASE + 0x18);
	for (i = 0; i < 1000; i++) {
		symbols_want(w.symbols, frame);
		symbols_prefetch(w.symbols, object, i);
		symbols_process(w.symbols, process);
		symbols_begin(w.symbols);
	}
	symbols_close(w.symbols);
	w.symbols = NULL;
	assert_int_equal(atomic_load(&frame->refs), 1);
	assert_int_equal(atomic_load(&process->refs), 0);
	assert_int_equal(atomic_load(&object->refs), 2);       /* ours and the frame's */
	symbol_world_close(&w);
}

struct asker {
	struct symbol_world *w;
	struct frame **frames;
	uint32_t n, left;
};

static void ask(void *ctx)
{
	struct asker *a = ctx;

	a->left = symbols_settle(a->w->symbols, a->frames, a->n, SETTLE_NS);
}

TEST(settle_serves_several_threads_while_the_merge_thread_goes_on)
{
	enum { FRAMES = 0x20, THREADS = 4 };
	struct os_thread *threads[THREADS];
	struct frame *frames[FRAMES];
	struct asker askers[THREADS];
	struct symbols_use use;
	struct object *object;
	struct symbol_world w;
	unsigned i, round;

	symbol_world_open(&w, NULL, NULL);
	object = elf_object(&w, write_image("shared", ID, 0), ID);
	for (i = 0; i < FRAMES; i++)
		frames[i] = frame_at(&w, object, BASE + 0x10 + i);
	for (i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){&w, frames, FRAMES, UINT32_MAX};
		assert_int_equal(os_thread_start("ask", ask, &askers[i], &threads[i], NULL), 0);
	}
	for (round = 0; round < 100; round++) {
		for (i = 0; i < FRAMES; i++)
			symbols_want(w.symbols, frames[i]);
		symbols_prefetch(w.symbols, object, round);
		symbols_begin(w.symbols);
		symbols_use(w.symbols, &use);
	}
	for (i = 0; i < THREADS; i++) {
		os_thread_join(threads[i]);
		assert_int_equal(askers[i].left, 0);
	}
	symbol_world_close(&w);
}

TEST(a_full_queue_drops_requests_and_counts_them)
{
	struct symbols_use use;
	struct frame *frame;
	struct symbol_world w;
	unsigned i;

	symbol_world_open(&w, NULL, NULL);
	frame = frame_at(&w, elf_object(&w, "[none]", ID), BASE);
	for (i = 0; i < 40 * SYMBOL_QUEUE_MAX; i++) {
		symbols_want(w.symbols, frame);
		if (i % 4096 == 0) {
			symbols_use(w.symbols, &use);
			assert_true(use.queued <= SYMBOL_QUEUE_MAX);
			if (use.dropped)
				break;
		}
	}
	symbols_close(w.symbols);
	w.symbols = NULL;
	assert_int_equal(atomic_load(&frame->refs), 1);        /* dropped ones let go too */
	if (!use.dropped) {
		print_message("the worker was never outrun\n");
		symbol_world_close(&w);
		skip();
	}
	symbol_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_names_frames_that_are_wanted),
		cmocka_unit_test(worker_takes_all_that_a_witness_says),
		cmocka_unit_test(worker_refuses_a_file_with_another_build_id),
		cmocka_unit_test(
			worker_remembers_what_cannot_be_opened_until_another_process_maps_it),
		cmocka_unit_test(a_library_without_names_is_told_once_with_its_place_and_remedy),
		cmocka_unit_test(worker_refuses_what_is_no_file_or_no_elf),
		cmocka_unit_test(worker_reads_names_of_a_large_table_from_the_file),
		cmocka_unit_test(worker_holds_few_files_open_however_many_objects_there_are),
		cmocka_unit_test(worker_forgets_the_least_recently_used_objects),
		cmocka_unit_test(settle_ends_when_its_time_is_over),
		cmocka_unit_test(closing_drops_what_is_still_queued),
		cmocka_unit_test(settle_serves_several_threads_while_the_merge_thread_goes_on),
		cmocka_unit_test(a_full_queue_drops_requests_and_counts_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
