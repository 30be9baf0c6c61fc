/* Unwind tables of this very program and of files that are not there. */
#include "source/perf/loader.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct world {
	struct frames *frames;
	struct hung_devices *hung;
	struct loader *loader;
	struct object *object;
};

static void open_world(struct world *w, const char *path, uint64_t ino)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = path, .ino = ino};
	struct os_file_info info;

	if (os_path_info(path, &info, NULL) == 0) {
		key.dev = info.dev;
		key.ino = info.ino;
	}
	assert_int_equal(frames_new(&w->frames, NULL), 0);
	w->hung = hung_devices_new();
	assert_non_null(w->hung);
	assert_int_equal(loader_new(NULL, w->hung, &w->loader, NULL), 0);
	w->object = objects_get(w->frames, &key, os_pid());
	assert_non_null(w->object);
}

static void close_world(struct world *w)
{
	loader_free(w->loader);
	hung_devices_drop(w->hung);
	frames_free(w->frames);
}

/* Ask until it is there, 5 s at most. */
static void wait_for(struct world *w, uint64_t now_ns, struct loaded *out)
{
	unsigned i;

	for (i = 0; i < 5000; i++) {
		loader_get(w->loader, w->object, os_pid(), now_ns, out);
		if (!out->pending)
			return;
		os_sleep_ns(NS_PER_MS);
	}
	fail_msg("not loaded within 5 s");
}

/* "/proc/self/exe" is a link: the file itself. */
static void own_path(char *path, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", path, room - 1);

	assert_true(n > 0);
	path[n] = '\0';
}

TEST(loader_reads_the_tables_of_a_mapped_program)
{
	char path[4096];
	struct loaded loaded;
	struct world w;

	own_path(path, sizeof(path));
	open_world(&w, path, 0);
	loader_get(w.loader, w.object, os_pid(), 1, &loaded);
	assert_true(loaded.pending || loaded.tables);        /* never waits */
	wait_for(&w, 1, &loaded);
	assert_non_null(loaded.tables);
	assert_non_null(loaded.head);
	assert_true(eh_frame_count(loaded.tables) > 10);
	close_world(&w);
}

void _init(void);                        /* crti.o's; no unwind table describes it */

TEST(start_code_without_tables_is_read)
{
	char path[512];
	struct loaded loaded;
	const struct eh_code *code = NULL;
	struct world w;
	uint64_t vaddr;

	own_path(path, sizeof(path));
	open_world(&w, path, 0);
	wait_for(&w, 1, &loaded);
	/*
	 * Its address modulo a page is the file's; the segment that begins with it tells the rest.
	 */
	for (vaddr = 0; vaddr < 0x1000000 && !code; vaddr += 0x1000)
		code = eh_frame_find_code(loaded.tables, vaddr + ((uintptr_t)&_init & 0xfff));
	assert_non_null(code);
	assert_int_equal(code->depth, 0);
	close_world(&w);
}

TEST(options_of_a_jvm_are_read)
{
	struct processes *processes;
	struct process *self;
	struct world w;
	unsigned i;

	assert_int_equal(processes_new(&processes, NULL), 0);
	self = process_add(processes, os_pid(), 1, 0, 1, "test");
	open_world(&w, "/nowhere", 1);
	for (i = 0; i < 5000 && !atomic_load(&self->frame_pointers); i++) {
		loader_jvm(w.loader, self);
		os_sleep_ns(NS_PER_MS);
	}
	assert_int_equal(self->frame_pointers, FRAME_POINTERS_NONE);
	/* What is still in the queue at the end is let go, or was done. */
	loader_jvm(w.loader, self);
	close_world(&w);
	processes_free(processes);
}

TEST(a_file_that_is_not_there_has_no_tables)
{
	struct loaded loaded;
	struct world w;

	open_world(&w, "/no/such/program", 77);
	wait_for(&w, 1, &loaded);
	assert_null(loaded.tables);
	assert_null(loaded.head);
	close_world(&w);
}

TEST(files_of_a_device_that_hangs_are_left_alone_until_it_answers)
{
	char path[4096];
	struct loaded loaded;
	struct world w;
	unsigned i;

	own_path(path, sizeof(path));
	open_world(&w, path, 0);
	hung_devices_add(w.hung, w.object->key.dev);         /* in another file */
	for (i = 0; i < 10; i++) {
		loader_get(w.loader, w.object, os_pid(), 1, &loaded);
		assert_false(loaded.pending || loaded.tables);
	}
	hung_devices_came_back(w.hung, w.object->key.dev);
	wait_for(&w, 1, &loaded);
	assert_non_null(loaded.tables);
	close_world(&w);
}

TEST(the_vdso_has_tables)
{
	struct loaded loaded;
	struct world w;

	open_world(&w, "[vdso]", 0);
	wait_for(&w, 1, &loaded);
	assert_non_null(loaded.tables);
	close_world(&w);
}

#define NOW_NS (100 * NS_PER_SEC)

static size_t table_bytes(const struct world *w)
{
	size_t max_bytes;

	return loader_bytes(w->loader, &max_bytes);
}

TEST(tables_over_the_ceiling_go_and_are_read_again)
{
	struct loaded loaded;
	struct world w;

	open_world(&w, "[vdso]", 0);
	wait_for(&w, NOW_NS, &loaded);
	loader_set_max(w.loader, 1);
	loader_sweep(w.loader, NOW_NS + 11 * NS_PER_SEC);
	assert_int_equal(table_bytes(&w), 0);
	loader_get(w.loader, w.object, os_pid(), NOW_NS + 11 * NS_PER_SEC, &loaded);
	assert_true(loaded.pending || loaded.tables);        /* nothing is known: asked again */
	wait_for(&w, NOW_NS + 11 * NS_PER_SEC, &loaded);
	assert_non_null(loaded.tables);
	close_world(&w);
}

TEST(what_is_used_all_the_time_and_has_no_room_is_done_without)
{
	struct loaded loaded;
	struct world w;

	open_world(&w, "[vdso]", 0);
	wait_for(&w, NOW_NS, &loaded);
	loader_set_max(w.loader, 1);
	loader_sweep(w.loader, NOW_NS + NS_PER_SEC);
	loader_get(w.loader, w.object, os_pid(), NOW_NS + NS_PER_SEC, &loaded);
	assert_false(loaded.pending);
	assert_null(loaded.tables);
	assert_non_null(loaded.head);
	loader_set_max(w.loader, LOADER_MAX_BYTES);
	loader_sweep(w.loader, NOW_NS + 2 * NS_PER_SEC);
	wait_for(&w, NOW_NS + 2 * NS_PER_SEC, &loaded);
	assert_non_null(loaded.tables);
	close_world(&w);
}

TEST(tables_that_nobody_uses_are_forgotten)
{
	struct loaded loaded;
	struct world w;

	open_world(&w, "[vdso]", 0);
	wait_for(&w, 1, &loaded);
	loader_sweep(w.loader, LOADER_IDLE_NS);
	assert_int_not_equal(table_bytes(&w), 0);    /* its object is still mapped */
	object_drop(w.object, 1);
	loader_sweep(w.loader, 2);
	assert_int_not_equal(table_bytes(&w), 0);    /* used a moment ago */
	loader_sweep(w.loader, LOADER_UNMAPPED_NS + 2);
	assert_int_equal(table_bytes(&w), 0);
	close_world(&w);
}

TEST(code_made_at_run_time_is_never_looked_for)
{
	struct object_key key = {.kind = OBJECT_JIT, .path = "[jit]", .pid = 1};
	struct loaded loaded;
	struct world w;

	open_world(&w, "[vdso]", 0);
	w.object = objects_get(w.frames, &key, 1);
	loader_get(w.loader, w.object, 1, 1, &loaded);
	assert_false(loaded.pending);
	assert_null(loaded.tables);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loader_reads_the_tables_of_a_mapped_program),
		cmocka_unit_test(start_code_without_tables_is_read),
		cmocka_unit_test(options_of_a_jvm_are_read),
		cmocka_unit_test(a_file_that_is_not_there_has_no_tables),
		cmocka_unit_test(files_of_a_device_that_hangs_are_left_alone_until_it_answers),
		cmocka_unit_test(the_vdso_has_tables),
		cmocka_unit_test(tables_over_the_ceiling_go_and_are_read_again),
		cmocka_unit_test(what_is_used_all_the_time_and_has_no_room_is_done_without),
		cmocka_unit_test(tables_that_nobody_uses_are_forgotten),
		cmocka_unit_test(code_made_at_run_time_is_never_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
