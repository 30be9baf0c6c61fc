/* Source lines of this test program itself, which is built with -g, and of files that are none. */
#include "symbol/elf_file.h"
#include "symbol/lines.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_END UINT64_MAX

static char self[4096];
static struct elf_head head;
static struct buf image;                 /* the program's bytes */

/* The line of the opening brace. */
enum { MARK_LINE = __LINE__ + 3 };
static int __attribute__((noinline)) marked_function(volatile int *v)
{
	return ++*v;
}

static struct object object_of(const char *path)
{
	struct object object = {
		.key = {.kind = OBJECT_ELF, .path = path, .build_id_bytes = head.build_id_bytes},
	};

	memcpy(object.key.build_id, head.build_id, head.build_id_bytes);
	return object;
}

static int load_self(void **state)
{
	struct bytes bytes;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (n <= 0 || os_load(self, (size_t)256 << 20, &image, NULL))
		return -1;
	bytes = bytes_of_memory(image.data, image.len);
	return elf_head_read(&bytes, &head, NULL);
}

static int unload_self(void **state)
{
	(void)state;
	buf_free(&image);
	return 0;
}

static bool ready(void)
{
	struct err err = {0};

	if (lines_check(&err)) {
		print_message("%s\n", err.text);
		return false;
	}
	if (!head.build_id_bytes)
		print_message("this program has no build id\n");
	return head.build_id_bytes != 0;
}

/* The file offset of an address of this process: by the difference to a known mapping. */
static uint64_t offset_of(const void *address)
{
	unsigned long start, end, offset, at = (unsigned long)address;
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t found = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start &&
		    at < end)
			found = offset + (at - start);
	}
	if (maps)
		fclose(maps);
	return found;
}

static void check_state(const char *path, enum lines_state want)
{
	struct object object = object_of(path);
	uint64_t offset = offset_of((void *)(uintptr_t)marked_function);
	struct lines l = {0};
	struct err err = {0};

	if (lines_read(&object, 0, NULL, &offset, 1, NO_END, &l, &err))
		fail_msg("%s", err.text);
	if (l.state != want)
		fail_msg("%s: state %d (%s) instead of %d", path, (int)l.state, l.why, (int)want);
	assert_int_equal(l.of_offset[0].n != 0, want == LINES_FOUND);
	lines_free(&l);
}

TEST(a_function_has_its_name_file_and_line)
{
	uint64_t offset = offset_of((void *)(uintptr_t)marked_function);
	struct object object = object_of(self);
	struct lines l = {0};

	if (!ready())
		skip();
	assert_int_equal(lines_read(&object, 0, NULL, &offset, 1, NO_END, &l, NULL), 0);
	assert_int_equal(l.state, LINES_FOUND);
	assert_int_equal(l.of_offset[0].n, 1);
	assert_string_equal(l.lines[0].function, "marked_function");
	assert_int_equal(l.lines[0].function_offset, offset);
	assert_string_equal(strrchr(l.lines[0].file, '/'), "/lines_linux.c");
	assert_in_range(l.lines[0].line, MARK_LINE - 1, MARK_LINE);
	lines_free(&l);
}

TEST(offsets_outside_of_code_are_not_known)
{
	const uint64_t offsets[] = {0, 1, image.len - 1, UINT64_MAX};
	struct object object = object_of(self);
	struct lines l = {0};
	uint32_t i;

	if (!ready())
		skip();
	assert_int_equal(lines_read(&object, 0, NULL, offsets, 4, NO_END, &l, NULL), 0);
	assert_int_equal(l.state, LINES_FOUND);
	for (i = 0; i < 4; i++)
		assert_int_equal(l.of_offset[i].n, 0);
	lines_free(&l);
}

static void write_image(const char *path, size_t n)
{
	struct os_file *file = NULL;

	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, image.data, n, NULL), 0);
	os_close(file);
}

TEST(a_file_with_another_build_id_has_changed)
{
	if (!ready())
		skip();
	head.build_id[0] ^= 1;
	check_state(self, LINES_CHANGED);
	head.build_id[0] ^= 1;
	check_state(self, LINES_FOUND);
}

TEST(a_file_that_is_no_elf_any_more_has_changed)
{
	struct buf path = {0};

	if (!ready())
		skip();
	buf_puts(&path, tmp_path("script"));
	write_image(buf_text(&path), 3);
	check_state(buf_text(&path), LINES_CHANGED);
	buf_free(&path);
}

TEST(a_file_that_is_gone_is_not_called_changed)
{
	if (!ready())
		skip();
	check_state("/nowhere/at/all", LINES_NO_FILE);
}

TEST(without_a_build_id_nothing_is_believed)
{
	struct object object = object_of(self);
	uint64_t offset = 0;
	struct lines l = {0};

	object.key.build_id_bytes = 0;
	assert_int_equal(lines_read(&object, 0, NULL, &offset, 1, NO_END, &l, NULL), 0);
	assert_int_equal(l.state, LINES_NO_BUILD_ID);
	lines_free(&l);
}

TEST(time_that_is_over_is_said)
{
	struct object object = object_of(self);
	uint64_t offset = 0;
	struct lines l = {0};

	if (!ready())
		skip();
	assert_int_equal(lines_read(&object, 0, NULL, &offset, 1, 0, &l, NULL), 0);
	assert_int_equal(l.state, LINES_FAILED);
	assert_string_equal(l.why, "reading it took too long");
	lines_free(&l);
}

/* Every 97th byte of the last two thirds, where the debug information is, turned around. */
TEST(damaged_debug_information_costs_lines_and_nothing_else)
{
	struct buf path = {0};
	uint64_t offset = offset_of((void *)(uintptr_t)marked_function);
	struct object object;
	struct lines l = {0};
	size_t i;

	if (!ready())
		skip();
	buf_puts(&path, tmp_path("damaged"));
	for (i = image.len / 3; i < image.len; i += 97)
		image.data[i] ^= 0x55;
	write_image(buf_text(&path), image.len);
	for (i = image.len / 3; i < image.len; i += 97)
		image.data[i] ^= 0x55;
	object = object_of(buf_text(&path));
	assert_int_equal(lines_read(&object, 0, NULL, &offset, 1, NO_END, &l, NULL), 0);
	lines_free(&l);
	check_state(self, LINES_FOUND);
	buf_free(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_has_its_name_file_and_line),
		cmocka_unit_test(offsets_outside_of_code_are_not_known),
		cmocka_unit_test(a_file_with_another_build_id_has_changed),
		cmocka_unit_test(a_file_that_is_no_elf_any_more_has_changed),
		cmocka_unit_test(a_file_that_is_gone_is_not_called_changed),
		cmocka_unit_test(without_a_build_id_nothing_is_believed),
		cmocka_unit_test(time_that_is_over_is_said),
		cmocka_unit_test(damaged_debug_information_costs_lines_and_nothing_else),
	};
	volatile int calls = 0;

	marked_function(&calls);
	return cmocka_run_group_tests(tests, load_self, unload_self);
}
