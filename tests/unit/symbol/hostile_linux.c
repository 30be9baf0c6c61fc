/*
 * Files that change while they are read, or claim to be huge: an error and a note, never a crash.
 */
#include "symbol/elf.h"
#include "symbol/symbol.h"
#include "tests/support/symbol_world.h"
#include "tests/support/tmp.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A copy of this program, which has symbols. */
static const char *copy_of_this_program(void)
{
	static char absolute[4096];
	char command[TMP_BYTES + 40];

	snprintf(command, sizeof(command), "cp /proc/%u/exe '%s'", os_pid(), tmp_path("program"));
	assert_int_equal(system(command), 0);
	assert_non_null(realpath(tmp_path("program"), absolute));
	return absolute;
}

struct opened {
	struct os_file *file;
	struct os_file_info info;
	struct bytes bytes;
	struct elf_head head;
};

static void open_program(const char *path, struct opened *o)
{
	memset(o, 0, sizeof(*o));
	assert_int_equal(os_open(path, OS_READ, &o->file, NULL), 0);
	assert_int_equal(os_file_info(o->file, &o->info, NULL), 0);
	o->bytes = bytes_of_file(o->file, o->info.size_bytes);
	assert_int_equal(elf_head_read(&o->bytes, &o->head, NULL), 0);
}

TEST(file_that_shrinks_before_it_is_indexed_is_an_error)
{
	const char *path = copy_of_this_program();
	struct elf_index *index = NULL;
	struct opened o;
	struct err err;

	open_program(path, &o);
	assert_int_equal(truncate(path, (off_t)(o.info.size_bytes / 2)), 0);
	assert_int_equal(elf_index_new(&o.bytes, &o.head, NULL, &index, &err), ERR_FORMAT);
	assert_non_null(strstr(err.text, "became shorter"));
	os_close(o.file);
}

/*
 * Names are in the file where they are many: it is cut to nothing between finding and reading one.
 */
TEST(file_that_shrinks_after_it_was_indexed_gives_no_name)
{
	const struct elf_function f = {.name = 1};
	const char *path = copy_of_this_program();
	struct elf_index *index = NULL;
	char name[100] = "?";
	struct opened o;
	int rc;

	open_program(path, &o);
	assert_int_equal(elf_index_new(&o.bytes, &o.head, NULL, &index, NULL), 0);
	assert_int_equal(truncate(path, 0), 0);
	rc = elf_function_name(index, &o.bytes, &f, name, sizeof(name), NULL);
	assert_int_equal(rc, elf_index_has_names(index) ? 0 : ERR_FORMAT);
	assert_true(rc == 0 || name[0] == '\0');
	elf_index_free(index);
	os_close(o.file);
}

/* What the log says of a file at this path when a frame in it is to be named. */
static void settle_in(const char *path, struct buf *said)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = path};
	const char *log_path = tmp_path("log");
	struct os_file_info info;
	struct log *log = NULL;
	char name[64];

	assert_int_equal(os_path_info(path, &info, NULL), 0);
	key.dev = info.dev;
	key.ino = info.ino;
	unlink(log_path);
	assert_int_equal(log_open(log_path, &log, NULL), 0);
	symbol_world_name(NULL, log, &key, 0x1000, name, sizeof(name));
	log_close(log);
	assert_int_equal(os_load(log_path, 65536, said, NULL), 0);
}

TEST(program_of_3_gb_is_not_read_and_the_log_says_so)
{
	const char *path = copy_of_this_program();
	struct buf said = {0};

	assert_int_equal(truncate(path, (off_t)3 << 30), 0);         /* takes no disk space */
	settle_in(path, &said);
	assert_non_null(strstr(buf_text(&said), "larger than 2 GB"));
	buf_free(&said);
	unlink(path);
}

/* The same with a debug file: it would have to be read whole for its CRC. */
TEST(debug_file_of_3_gb_is_not_read_and_the_log_says_so)
{
	char command[3 * TMP_BYTES + 400], path[4096];
	struct buf said = {0};

	snprintf(command, sizeof(command),
		 "rm -rf '%s' && mkdir -p '%s' && cd '%s' && echo 'int main(void) { return 0; }' > "
		 "a.c && "
		 "gcc -Wl,--build-id=none -o app a.c && objcopy --only-keep-debug app app.dbg && "
		 "strip app &&"
		 " objcopy --add-gnu-debuglink=app.dbg app && truncate -s 3G app.dbg",
		 tmp_path("linked"), tmp_path("linked"), tmp_path("linked"));
	if (system(command)) {
		print_message("gcc and objcopy do not make a linked debug file here\n");
		skip();
	}
	assert_non_null(realpath(tmp_path("linked/app"), path));
	settle_in(path, &said);
	assert_non_null(strstr(buf_text(&said), "debug file is not used"));
	assert_non_null(strstr(buf_text(&said), "larger than 2 GB"));
	buf_free(&said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_that_shrinks_before_it_is_indexed_is_an_error),
		cmocka_unit_test(file_that_shrinks_after_it_was_indexed_gives_no_name),
		cmocka_unit_test(program_of_3_gb_is_not_read_and_the_log_says_so),
		cmocka_unit_test(debug_file_of_3_gb_is_not_read_and_the_log_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
