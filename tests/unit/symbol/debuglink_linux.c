/* .gnu_debuglink, on files that the compiler and objcopy of this machine make. */
#include "symbol/debuglink.h"
#include "symbol/symbol.h"
#include "tests/support/symbol_world.h"
#include "tests/support/tmp.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool run(const char *command)
{
	return system(command) == 0;
}

/* app: stripped, without a build id, linked to app.dbg beside it. sh -c in the test's directory. */
static bool make_files(const char *dir)
{
	char command[2400];

	snprintf(command, sizeof(command),
		 "rm -rf %s && mkdir -p %s && cd %s && "
		 "echo 'static __attribute__((noinline)) int hidden(int x) { return x * 3; }"
		 " int main(int n, char **v) { (void)v; return hidden(n); }' > app.c && "
		 "gcc -O1 -Wl,--build-id=none -o app app.c && "
		 "objcopy --only-keep-debug app app.dbg && "
		 "nm app | sed -n 's/^\\([0-9a-f]*\\) t hidden$/\\1/p' > address && test -s "
		 "address && "
		 "strip app && objcopy --add-gnu-debuglink=app.dbg app",
		 dir, dir, dir);
	return run(command);
}

static void open_file(const char *path, struct elf_file *out)
{
	struct os_file_info info;

	memset(out, 0, sizeof(*out));
	assert_int_equal(os_open(path, OS_READ, &out->file, NULL), 0);
	assert_int_equal(os_file_info(out->file, &info, NULL), 0);
	out->bytes = bytes_of_file(out->file, info.size_bytes);
	assert_int_equal(elf_head_read(&out->bytes, &out->head, NULL), 0);
}

/* What the worker calls the function whose address is in the file "address"; "" = nothing. */
static void hidden_name(const char *dir, char out[64])
{
	char path[TMP_BYTES + 16], text[TMP_BYTES + 16];
	struct object_key key = {.kind = OBJECT_ELF, .path = path};
	struct os_file_info info;
	struct buf address = {0};
	struct elf_file app;
	uint64_t offset = 0;

	snprintf(path, sizeof(path), "%s/app", dir);
	snprintf(text, sizeof(text), "%s/address", dir);
	assert_int_equal(os_load(text, 100, &address, NULL), 0);
	assert_int_equal(os_path_info(path, &info, NULL), 0);
	open_file(path, &app);
	assert_true(elf_offset(&app.head, strtoull(buf_text(&address), NULL, 16), &offset));
	elf_file_close(&app);
	buf_free(&address);
	key.dev = info.dev;
	key.ino = info.ino;
	symbol_world_name(NULL, NULL, &key, offset, out, 64);
}

static const char *prepare(void)
{
	static char dir[TMP_BYTES];
	char absolute[4096] = "";

	snprintf(dir, sizeof(dir), "%s", tmp_path("link"));
	if (!make_files(dir)) {
		print_message("gcc and objcopy do not make a linked debug file here\n");
		skip();
	}
	assert_non_null(realpath(dir, absolute));
	snprintf(dir, sizeof(dir), "%.500s", absolute);
	return dir;
}

TEST(worker_names_a_stripped_program_by_its_linked_debug_file)
{
	const char *dir = prepare();
	char command[3 * TMP_BYTES], name[64];

	hidden_name(dir, name);
	assert_string_equal(name, "hidden");
	snprintf(command, sizeof(command), "cd %s && mkdir .debug && mv app.dbg .debug/", dir);
	assert_true(run(command));
	hidden_name(dir, name);
	assert_string_equal(name, "hidden");
	/* Another one by that name comes first in the search: it is not believed. */
	snprintf(command, sizeof(command), "cd %s && cp .debug/app.dbg . && echo x >> app.dbg",
		 dir);
	assert_true(run(command));
	hidden_name(dir, name);
	assert_string_equal(name, "hidden");
	snprintf(command, sizeof(command), "cd %s && rm .debug/app.dbg", dir);
	assert_true(run(command));
	hidden_name(dir, name);
	assert_string_equal(name, "");
	snprintf(command, sizeof(command), "cd %s && rm app.dbg && mkfifo app.dbg", dir);
	assert_true(run(command));
	hidden_name(dir, name);
	assert_string_equal(name, "");
}

TEST(debuglink_opens_the_same_file_again_and_no_other)
{
	const char *dir = prepare();
	struct object object = {.key = {.kind = OBJECT_ELF}};
	char app_path[TMP_BYTES + 16], command[TMP_BYTES + 100];
	struct elf_file app, debug = {0}, again = {0};
	struct debuglink link;
	struct buf path = {0};
	struct err err = {0};

	snprintf(app_path, sizeof(app_path), "%s/app", dir);
	object.key.path = app_path;
	open_file(app_path, &app);
	assert_int_equal(debuglink_read(&app.bytes, &app.head, &link, NULL), 0);
	assert_string_equal(link.name, "app.dbg");
	assert_int_equal(debuglink_open(&object, 0, &app.head, &link, &path, &debug, NULL), 0);
	elf_file_close(&debug);
	assert_int_equal(elf_file_open_path(buf_text(&path), &again, NULL), 0);
	assert_true(elf_file_same(&debug, &again));
	elf_file_close(&again);
	snprintf(command, sizeof(command), "echo x >> %s/app.dbg", dir);
	assert_true(run(command));
	assert_int_equal(elf_file_open_path(buf_text(&path), &again, NULL), 0);
	assert_false(elf_file_same(&debug, &again));
	elf_file_close(&again);
	assert_int_equal(debuglink_open(&object, 0, &app.head, &link, &path, &debug, &err),
			 ERR_FORMAT);
	assert_non_null(strstr(err.text, "CRC"));
	assert_int_equal(path.len, 0);
	elf_file_close(&app);
	buf_free(&path);
}

TEST(debuglink_crc_is_the_usual_one)
{
	struct bytes in = bytes_of_memory("123456789", 9);
	uint32_t crc = 0;

	assert_int_equal(debuglink_crc(&in, &crc, NULL), 0);
	assert_true(crc == 0xcbf43926);              /* the check value of CRC-32/ISO-HDLC */
	in = bytes_of_memory("", 0);
	assert_int_equal(debuglink_crc(&in, &crc, NULL), 0);
	assert_true(crc == 0);
}

/* Cut anywhere, and with any byte changed: an error or a sound link, never a bad access. */
TEST(debuglink_survives_damaged_files)
{
	char path[TMP_BYTES + 16];
	struct elf_head head;
	struct debuglink link;
	struct buf b = {0};
	unsigned found = 0;
	size_t i;

	snprintf(path, sizeof(path), "%s/app", prepare());
	assert_int_equal(os_load(path, 1 << 20, &b, NULL), 0);
	for (i = 0; i < b.len; i++) {
		struct bytes whole = bytes_of_memory(b.data, b.len), cut = {0};
		uint8_t *copy = malloc(i ? i : 1);
		char was = b.data[i];

		b.data[i] = (char)~b.data[i];
		if (!elf_head_read(&whole, &head, NULL) &&
		    !debuglink_read(&whole, &head, &link, NULL)) {
			assert_true(link.name[0] && !strchr(link.name, '/'));
			found++;
		}
		b.data[i] = was;
		assert_non_null(copy);
		memcpy(copy, b.data, i);             /* of just that size: a sanitizer sees more */
		cut = bytes_of_memory(copy, i);
		assert_true(elf_head_read(&cut, &head, NULL) ||
			    debuglink_read(&cut, &head, &link, NULL));
		free(copy);
	}
	assert_true(found > b.len / 2);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_names_a_stripped_program_by_its_linked_debug_file),
		cmocka_unit_test(debuglink_opens_the_same_file_again_and_no_other),
		cmocka_unit_test(debuglink_crc_is_the_usual_one),
		cmocka_unit_test(debuglink_survives_damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
