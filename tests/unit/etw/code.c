/* What addresses of a trace are: images, managed methods, over time; from hand-made records. */
#include "source/etw/code.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define IMAGE_ID_GUID "b3e675d7-2554-4f18-830b-2762732560de"
#define VOLUME_GUID "9b79ee91-b5fd-41c0-a243-4248e266e9d0"

enum { UNLOAD = 2, DCSTART = 3, DCSTOP = 4, LOAD = 10 };
enum { METHOD_LOAD = 143, METHOD_UNLOAD = 144, RUNDOWN_START = 143, RUNDOWN_END = 144 };

static struct lab {
	struct frames *frames;
	struct etw_state *state;
	struct etw_code *code;
} lab;

static int begin(void **state)
{
	(void)state;
	return frames_new(&lab.frames, NULL) || etw_state_new(&lab.state, NULL) ||
	       etw_code_new(lab.state, lab.frames, &lab.code, NULL);
}

static int end(void **state)
{
	(void)state;
	etw_code_free(lab.code, 1);
	etw_state_free(lab.state);
	frames_free(lab.frames);
	return 0;
}

static void learn(struct etw_record r, int64_t ticks, uint32_t pid)
{
	r.ticks = ticks;
	r.pid = pid;
	etw_state_learn(lab.state, &r, etw_class_find(&r));
	etw_code_learn(lab.code, &r, etw_class_find(&r));
}

static void image(uint8_t opcode, int64_t ticks, uint32_t pid, uint64_t base, const char *path)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, base, 8);
	etw_int(&b, 0x1000, 8);
	etw_int(&b, pid, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 0x12345678, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, base, 8);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);
	etw_text16(&b, path);
	learn(etw_classic(ETW_IMAGE_GUID, opcode, 3, &b), ticks, pid);
}

static void pdb(int64_t ticks, uint32_t pid, uint64_t base, uint8_t guid_byte, uint32_t age)
{
	struct etw_bytes b = {.n = 0};
	uint8_t guid[16];

	memset(guid, guid_byte, sizeof(guid));
	etw_int(&b, base, 8);
	etw_int(&b, pid, 4);
	etw_put(&b, guid, sizeof(guid));
	etw_int(&b, age, 4);
	etw_text8(&b, "a.pdb");
	learn(etw_classic(IMAGE_ID_GUID, 36, 2, &b), ticks, pid);
}

static void method(const char *guid, uint16_t id, int64_t ticks, uint32_t pid, uint64_t start,
		   uint32_t bytes, const char *name)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, start + 1, 8);                   /* its id */
	etw_int(&b, 77, 8);                          /* its module's */
	etw_int(&b, start, 8);
	etw_int(&b, bytes, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 8, 4);
	etw_text16(&b, "Test.Program");
	etw_text16(&b, name);
	etw_text16(&b, "void ()");
	etw_int(&b, 9, 2);
	learn(etw_manifest(guid, id, 1, &b), ticks, pid);
}

static void module(const char *guid, uint16_t id, int64_t ticks, uint32_t pid, const char *path)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 77, 8);
	etw_int(&b, 1, 8);
	etw_int(&b, 0, 8);
	etw_text16(&b, path);
	etw_text16(&b, "");
	etw_int(&b, 9, 2);
	learn(etw_manifest(guid, id, 1, &b), ticks, pid);
}

/* "a.dll+0x10", "a.dll!Test.Program.Main+0x4", "?": what an address is at that moment. */
static const char *place(uint32_t pid, uint64_t address, int64_t ticks)
{
	static char text[200];
	struct frame_ref ref;
	struct symbol symbol;

	etw_code_locate(lab.code, pid, address, ticks, address >> 48 == 0xFFFF, &ref);
	switch (ref.object->key.kind) {
	case OBJECT_PE:
		snprintf(text, sizeof(text), "%s%s+0x%x", ref.flags & FRAME_KERNEL ? "k " : "",
			 ref.object->key.path, (unsigned)ref.offset);
		break;
	case OBJECT_JIT:
		assert_int_equal(ref.object->key.pid, pid);
		if (!etw_code_name(lab.code, ref.object, ref.offset, &symbol)) {
			snprintf(text, sizeof(text), "unnamed");
			break;
		}
		snprintf(text, sizeof(text), "%s!%s+0x%x", symbol.module ? symbol.module : "?",
			 symbol.name, (unsigned)(ref.offset - symbol.offset));
		assert_string_equal(symbol.raw_name, "=()");
		break;
	default:
		assert_ptr_equal(ref.object, objects_unknown(lab.frames));
		assert_int_equal(ref.offset, address);
		snprintf(text, sizeof(text), "?");
	}
	return text;
}

/* ---- images ---------------------------------------------------------------------------------- */

TEST(image_is_there_from_its_load_to_its_unload)
{
	image(LOAD, 1000, 50, 0x10000, "\\a.dll");
	image(UNLOAD, 2000, 50, 0x10000, "\\a.dll");
	image(LOAD, 3000, 50, 0x10000, "\\b.dll");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x10010, 999), "?");
	assert_string_equal(place(50, 0x10010, 1000), "\\a.dll+0x10");
	assert_string_equal(place(50, 0x10010, 2001), "?");
	assert_string_equal(place(50, 0x10010, 3000), "\\b.dll+0x10");
	assert_string_equal(place(50, 0x10fff, 9000), "\\b.dll+0xfff");
	assert_string_equal(place(50, 0x11000, 9000), "?");
	assert_string_equal(place(51, 0x10010, 1000), "?");
}

TEST(images_of_a_snapshot_were_there_since_their_process_began)
{
	struct frame_ref start, end;

	image(DCSTART, 100, 50, 0x10000, "\\Windows\\a.dll");
	image(DCSTOP, 9000, 50, 0x10000, "\\Device\\HarddiskVolume2\\Windows\\a.dll");
	image(DCSTOP, 9000, 50, 0x20000, "\\b.dll");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x10010, 1), "\\Windows\\a.dll+0x10");
	assert_string_equal(place(50, 0x20010, 1), "\\b.dll+0x10");
	/* The snapshot of the end is the one of the start again. */
	etw_code_locate(lab.code, 50, 0x10010, 1, false, &start);
	etw_code_locate(lab.code, 50, 0x10010, 9001, false, &end);
	assert_ptr_equal(start.object, end.object);
}

TEST(images_end_with_their_process)
{
	struct etw_bytes b = {.n = 0};

	image(LOAD, 1000, 50, 0x10000, "\\a.dll");
	etw_int(&b, 0, 8);
	etw_int(&b, 50, 4);
	learn(etw_classic(ETW_PROCESS_GUID, 2, 4, &b), 2000, 50);
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x10010, 2000), "\\a.dll+0x10");
	assert_string_equal(place(50, 0x10010, 2001), "?");
}

TEST(kernel_images_are_every_processs)
{
	image(DCSTART, 100, 0, 0xFFFFF80000010000u, "\\SystemRoot\\nt.exe");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0xFFFFF80000010020u, 1), "k \\SystemRoot\\nt.exe+0x20");
	assert_string_equal(place(4, 0xFFFFF80000010020u, 1), "k \\SystemRoot\\nt.exe+0x20");
}

TEST(identity_is_that_of_the_pdb_of_the_same_moment)
{
	struct frame_ref ref;
	uint32_t age = 3;

	image(LOAD, 1000, 50, 0x10000, "\\a.dll");
	pdb(1000, 50, 0x10000, 0xAA, 2);
	image(UNLOAD, 2000, 50, 0x10000, "\\a.dll");
	pdb(3000, 50, 0x10000, 0xBB, 3);                     /* before or behind its image */
	image(LOAD, 3000, 50, 0x10000, "\\a.dll");
	pdb(1000, 51, 0x10000, 0xCC, 4);                     /* another process */
	etw_code_settle(lab.code);
	etw_code_locate(lab.code, 50, 0x10010, 1500, false, &ref);
	assert_int_equal(ref.object->key.build_id_bytes, 20);
	assert_int_equal(ref.object->key.build_id[0], 0xAA);
	etw_code_locate(lab.code, 50, 0x10010, 3500, false, &ref);
	assert_int_equal(ref.object->key.build_id[15], 0xBB);
	assert_memory_equal(ref.object->key.build_id + 16, &age, 4);
}

/* Two addresses: that of one image changes its meaning, at 2,000, and learning changes any. */
TEST(stack_that_comes_again_has_the_frames_of_its_moment)
{
	const uint64_t addresses[] = {0x10010, 0x20010};
	struct etw_located stack = {.pid = 50, .addresses = addresses, .naddresses = 2,
				    .os_pointer_bytes = 8, .ticks = 1500};
	const struct object *before;
	uint64_t id;

	image(LOAD, 1000, 50, 0x10000, "\\a.dll");
	image(LOAD, 1000, 50, 0x20000, "\\c.dll");
	image(UNLOAD, 2000, 50, 0x10000, "\\a.dll");
	image(LOAD, 3000, 50, 0x10000, "\\b.dll");
	etw_code_settle(lab.code);
	etw_code_stack(lab.code, &stack);
	id = stack.id;
	before = stack.frames[0].object;
	assert_int_equal(stack.nframes, 2);
	assert_string_equal(before->key.path, "\\a.dll");
	assert_int_equal(stack.frames[1].flags, FRAME_RETURN_ADDRESS);
	stack.ticks = 1600;
	etw_code_stack(lab.code, &stack);
	assert_true(id && stack.id == id);
	assert_ptr_equal(stack.frames[0].object, before);
	stack.ticks = 3500;
	etw_code_stack(lab.code, &stack);
	assert_true(stack.id != id);
	assert_string_equal(stack.frames[0].object->key.path, "\\b.dll");
	stack.pid = 51;
	etw_code_stack(lab.code, &stack);
	assert_ptr_equal(stack.frames[0].object, objects_unknown(lab.frames));
	image(LOAD, 3600, 51, 0x10000, "\\d.dll");
	stack.ticks = 3700;
	etw_code_stack(lab.code, &stack);
	assert_string_equal(stack.frames[0].object->key.path, "\\d.dll");
}

TEST(image_without_a_pdb_is_known_by_time_stamp_and_size)
{
	struct frame_ref ref;

	image(LOAD, 1000, 50, 0x10000, "\\a.dll");
	etw_code_settle(lab.code);
	etw_code_locate(lab.code, 50, 0x10010, 1500, false, &ref);
	assert_int_equal(ref.object->key.build_id_bytes, 0);
	assert_int_equal(ref.object->key.dev, 0x12345678);
	assert_int_equal(ref.object->key.ino, 0x1000);
}

TEST(same_file_of_two_processes_is_one_object_with_a_drive)
{
	struct etw_bytes b = {.n = 0};
	struct frame_ref one, two;

	image(LOAD, 1000, 50, 0x10000, "\\Device\\HarddiskVolume2\\a.dll");
	image(LOAD, 1000, 51, 0x70000, "\\Device\\HarddiskVolume2\\a.dll");
	etw_text16(&b, "\\Device\\HarddiskVolume2\\");
	etw_text16(&b, "C:\\");
	learn(etw_classic(VOLUME_GUID, 35, 2, &b), 9000, 4);
	etw_code_settle(lab.code);
	etw_code_locate(lab.code, 50, 0x10010, 1500, false, &one);
	etw_code_locate(lab.code, 51, 0x70010, 1500, false, &two);
	assert_ptr_equal(one.object, two.object);
	assert_int_equal(one.offset, two.offset);
	assert_string_equal(one.object->key.path, "C:\\a.dll");
}

TEST(senseless_images_are_left_out)
{
	image(LOAD, 1000, 50, UINT64_MAX - 0xFFE, "\\over.dll");
	image(LOAD, 1000, 50, 0x10000, "");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, UINT64_MAX - 0xFFE, 1000), "?");
	assert_string_equal(place(50, 0x10010, 1000), "?");
}

/* ---- managed code ---------------------------------------------------------------------------- */

TEST(method_has_the_name_of_module_type_and_method)
{
	method(ETW_RUNTIME_GUID, METHOD_LOAD, 1000, 50, 0x5000, 0x100, "Main");
	module(ETW_RUNDOWN_GUID, 154, 9000, 50, "C:\\x\\Test.x64.exe");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x5004, 1500), "Test.x64.exe!Test.Program.Main+0x4");
	assert_string_equal(place(50, 0x5004, 999), "?");
	assert_string_equal(place(50, 0x5100, 1500), "?");
	assert_string_equal(place(51, 0x5004, 1500), "?");
}

TEST(method_told_at_the_end_was_there_all_the_time)
{
	struct frame_ref start, end;

	method(ETW_RUNDOWN_GUID, RUNDOWN_END, 9000, 50, 0x5000, 0x100, "Main");
	method(ETW_RUNDOWN_GUID, RUNDOWN_END, 9001, 50, 0x5000, 0x100, "Main");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x5004, 1), "?!Test.Program.Main+0x4");
	/* The second record is the first again. */
	etw_code_locate(lab.code, 50, 0x5004, 1, false, &start);
	etw_code_locate(lab.code, 50, 0x5004, 9002, false, &end);
	assert_ptr_equal(start.object, end.object);
}

TEST(managed_code_wins_over_the_image_around_it)
{
	image(DCSTART, 100, 50, 0x5000, "\\mscorlib.ni.dll");
	method(ETW_RUNDOWN_GUID, RUNDOWN_END, 9000, 50, 0x5100, 0x100, "Format");
	module(ETW_RUNDOWN_GUID, 154, 9000, 50, "mscorlib.dll");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x5100, 1), "mscorlib.dll!Test.Program.Format+0x0");
	assert_string_equal(place(50, 0x50ff, 1), "\\mscorlib.ni.dll+0xff");
	assert_string_equal(place(50, 0x5200, 1), "\\mscorlib.ni.dll+0x200");
}

TEST(code_put_where_other_code_was_has_frames_of_its_own)
{
	struct frame_ref one, two;

	method(ETW_RUNTIME_GUID, METHOD_LOAD, 1000, 50, 0x5000, 0x100, "First");
	method(ETW_RUNTIME_GUID, METHOD_UNLOAD, 2000, 50, 0x5000, 0x100, "First");
	method(ETW_RUNTIME_GUID, METHOD_LOAD, 3000, 50, 0x4f80, 0x100, "Second");
	etw_code_settle(lab.code);
	assert_string_equal(place(50, 0x5004, 1500), "?!Test.Program.First+0x4");
	assert_string_equal(place(50, 0x5004, 2500), "?");
	assert_string_equal(place(50, 0x5004, 3500), "?!Test.Program.Second+0x84");
	etw_code_locate(lab.code, 50, 0x5004, 1500, false, &one);
	etw_code_locate(lab.code, 50, 0x5004, 3500, false, &two);
	assert_ptr_not_equal(one.object, two.object);
	assert_int_not_equal(one.object->key.epoch, two.object->key.epoch);
}

TEST(live_code_is_found_as_soon_as_it_is_told)
{
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		method(ETW_RUNTIME_GUID, METHOD_LOAD, 1000 + i, 50, 0x500000 - 0x100 * i, 0x100,
		       "Main");
		assert_string_not_equal(place(50, 0x500000 - 0x100 * i, 1000 + i), "?");
		assert_string_equal(place(50, 0x500000 - 0x100 * (i + 1), 1000 + i), "?");
	}
	assert_string_not_equal(place(50, 0x500000, 5000), "?");
}

/* Every address at every moment, against a search without an index. */
TEST(index_agrees_with_a_plain_search)
{
	enum { N = 200 };
	static struct etw_range all[N];
	struct etw_ranges r;
	uint32_t i, k, seed = 1;

	assert_int_equal(etw_ranges_init(&r), 0);
	for (i = 0; i < N; i++) {
		seed = seed * 1664525 + 1013904223;
		all[i].start = seed >> 8 & 0xFF;
		all[i].end = all[i].start + 1 + (seed >> 16 & 0x3F);
		all[i].from = i * 10;
		all[i].until = i * 10 + (seed >> 22 & 0xFF);
		all[i].pid = 1;
		all[i].value = i;
		assert_int_equal(etw_ranges_add(&r, &all[i]), i);
		if (i == N / 2)
			etw_ranges_settle(&r);
	}
	for (i = 0; i < 0x140; i++) {
		for (k = 0; k < N * 10 + 300; k += 7) {
			int64_t from = ETW_ALWAYS, until = ETW_EVER;
			uint32_t best = ETW_RANGE_NONE, n, found;

			for (n = 0; n < N; n++)
				if (all[n].start <= i && i < all[n].end && all[n].from <= k &&
				    k <= all[n].until)
					best = n;            /* they begin in this order */
			found = etw_ranges_find(&r, 1, i, k, &from, &until);
			assert_int_equal(found, best);
			assert_true(from <= k && k <= until);
			n = etw_ranges_find(&r, 1, i, from == ETW_ALWAYS ? 0 : from,
					    &(int64_t){ETW_ALWAYS}, &(int64_t){ETW_EVER});
			assert_int_equal(from == ETW_ALWAYS && best == ETW_RANGE_NONE ? best : n,
					 best);
		}
	}
	etw_ranges_settle(&r);
	for (i = 0; i < N; i++)
		assert_int_equal(etw_ranges_layer(&r, 1, all[i].start, etw_range(&r, i)->layer), i);
	etw_ranges_free(&r);
}

#define IN_LAB(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(image_is_there_from_its_load_to_its_unload),
		IN_LAB(images_of_a_snapshot_were_there_since_their_process_began),
		IN_LAB(images_end_with_their_process),
		IN_LAB(kernel_images_are_every_processs),
		IN_LAB(identity_is_that_of_the_pdb_of_the_same_moment),
		IN_LAB(stack_that_comes_again_has_the_frames_of_its_moment),
		IN_LAB(image_without_a_pdb_is_known_by_time_stamp_and_size),
		IN_LAB(same_file_of_two_processes_is_one_object_with_a_drive),
		IN_LAB(senseless_images_are_left_out),
		IN_LAB(method_has_the_name_of_module_type_and_method),
		IN_LAB(method_told_at_the_end_was_there_all_the_time),
		IN_LAB(managed_code_wins_over_the_image_around_it),
		IN_LAB(code_put_where_other_code_was_has_frames_of_its_own),
		IN_LAB(live_code_is_found_as_soon_as_it_is_told),
		cmocka_unit_test(index_agrees_with_a_plain_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
