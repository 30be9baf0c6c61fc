/* The symbol cache on disk: its directory, and the worker that names programs which are gone. */
#include "symbol/disk.h"
#include "symbol/reader.h"
#include "symbol/symbol.h"
#include "tests/support/symbol_world.h"
#include "tests/support/tmp.h"

#include "base/os.h"
#include "symbol/elf.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the directory --------------------------------------------------------------------------- */

static char dir[TMP_BYTES];

/* An empty place for a cache, which is not there yet. */
static int set_up(void **state)
{
	char command[TMP_BYTES + 20];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/parent/symbols", tmp_path("disk"));
	snprintf(command, sizeof(command), "rm -rf '%s'", tmp_path("disk"));
	return system(command);
}

static const char *in_dir(const char *name)
{
	static char path[TMP_BYTES + 80];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static struct symbol_disk *open_disk(uint64_t max_bytes)
{
	struct symbol_disk *disk = NULL;

	assert_int_equal(symbol_disk_open(dir, max_bytes, &disk, NULL), 0);
	return disk;
}

static struct object_key key_of(uint8_t number)
{
	return (struct object_key){
		.kind = OBJECT_ELF, .build_id_bytes = 2, .build_id = {0xab, number}};
}

static int put(struct symbol_disk *disk, uint8_t number, size_t n)
{
	struct object_key key = key_of(number);
	void *bytes = calloc(1, n);
	int rc;

	assert_non_null(bytes);
	rc = symbol_disk_put(disk, &key, bytes, n, NULL);
	free(bytes);
	return rc;
}

static int get(struct symbol_disk *disk, uint8_t number)
{
	struct object_key key = key_of(number);
	struct os_file *file = NULL;
	int rc = symbol_disk_get(disk, &key, &file, NULL);

	os_close(file);
	return rc;
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

TEST(cache_is_private_and_gives_back_what_was_put)
{
	struct symbol_disk *disk = open_disk(1 << 20);
	struct symbol_disk_use use;

	assert_int_equal(get(disk, 1), ERR_NOT_FOUND);
	assert_int_equal(put(disk, 1, 100), 0);
	assert_int_equal(get(disk, 1), 0);
	assert_int_equal(get(disk, 2), ERR_NOT_FOUND);
	assert_int_equal(mode_of(dir), 0700);
	assert_int_equal(mode_of(in_dir("ab01.sym")), 0600);
	assert_int_equal(put(disk, 1, 50), 0);       /* in place of the old one */
	symbol_disk_use(disk, &use);
	assert_int_equal(use.bytes, 50);
	assert_int_equal(use.found, 1);
	assert_int_equal(use.written, 2);
	symbol_disk_close(disk);
	disk = open_disk(1 << 20);                   /* the next recorder */
	assert_int_equal(get(disk, 1), 0);
	symbol_disk_use(disk, &use);
	assert_int_equal(use.bytes, 50);
	symbol_disk_close(disk);
}

TEST(least_recently_used_files_make_room)
{
	struct symbol_disk *disk = open_disk(1000);
	struct symbol_disk_use use;
	uint8_t i;

	for (i = 1; i <= 3; i++) {
		assert_int_equal(put(disk, i, 300), 0);
		os_sleep_ns(20 * NS_PER_MS);         /* file times are as coarse as 10 ms */
	}
	assert_int_equal(get(disk, 1), 0);           /* so 2 was used least recently */
	assert_int_equal(put(disk, 4, 300), 0);
	assert_int_equal(get(disk, 2), ERR_NOT_FOUND);
	assert_int_equal(get(disk, 1), 0);
	assert_int_equal(get(disk, 4), 0);
	symbol_disk_use(disk, &use);
	assert_true(use.bytes <= 1000);
	assert_int_equal(use.evicted, 1);
	assert_int_equal(put(disk, 5, 501), ERR_LIMIT);
	symbol_disk_close(disk);
}

TEST(links_and_directories_of_others_are_not_used)
{
	struct symbol_disk *disk = open_disk(1 << 20), *other = NULL;
	struct err err;

	assert_int_equal(symlink("/etc/passwd", in_dir("ab01.sym")), 0);
	assert_int_equal(get(disk, 1), ERR_ACCESS);
	assert_int_equal(put(disk, 1, 10), 0);       /* replaces the link, not what it points to */
	assert_int_equal(get(disk, 1), 0);
	assert_int_equal(mkfifo(in_dir("ab02.sym"), 0600), 0);
	assert_int_equal(get(disk, 2), ERR_ACCESS);  /* and does not wait for a writer */
	assert_int_equal(get(disk, 3), ERR_NOT_FOUND);
	if (os_uid() == 0) {
		assert_int_equal(put(disk, 3, 10), 0);
		assert_int_equal(chown(in_dir("ab03.sym"), 65534, 65534), 0);
		assert_int_equal(get(disk, 3), ERR_ACCESS);
	}
	symbol_disk_close(disk);

	assert_int_equal(rename(dir, in_dir("../moved")), 0);
	assert_int_equal(symlink("moved", dir), 0);
	assert_int_not_equal(symbol_disk_open(dir, 1 << 20, &other, &err), 0);
	assert_int_equal(unlink(dir), 0);
	if (os_uid() != 0) {
		print_message("not root: a directory of another user was not tried\n");
		return;
	}
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(chown(dir, 65534, 65534), 0);
	assert_int_equal(symbol_disk_open(dir, 1 << 20, &other, &err), ERR_ACCESS);
	assert_non_null(strstr(err.text, "user 65534"));
}

TEST(directory_that_others_could_read_is_made_private)
{
	assert_int_equal(os_mkdirs(dir, NULL), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	symbol_disk_close(open_disk(1 << 20));
	assert_int_equal(mode_of(dir), 0700);
}

TEST(what_is_left_unfinished_goes_and_strange_files_stay)
{
	char command[TMP_BYTES * 3];

	symbol_disk_close(open_disk(1 << 20));
	snprintf(command, sizeof(command),
		 "cd '%s' && touch .new-7 notes && touch -d '1 hour ago' .new-8", dir);
	assert_int_equal(system(command), 0);
	symbol_disk_close(open_disk(1 << 20));
	assert_true(os_exists(in_dir(".new-7")));    /* another recorder may be writing it */
	assert_false(os_exists(in_dir(".new-8")));
	assert_true(os_exists(in_dir("notes")));
}

/* ---- the worker ------------------------------------------------------------------------------ */

enum { FUNCTIONS = 1200 };

/* app in the directory: function_7 is 7 * 16 bytes behind function_0. */
static const char *make_app(unsigned seed, const char *suffix)
{
	static char absolute[4096];
	char path[TMP_BYTES + 16], command[2 * TMP_BYTES + 1200];

	snprintf(path, sizeof(path), "%s/app", tmp_path("disk"));
	snprintf(command, sizeof(command),
		 "mkdir -p '%s' && cd '%s' && awk 'BEGIN { print \".text\"; for (i = 0; i < %d; "
		 "i++) "
		 "{ f = \"function_\" i \"%s\"; print \".globl \" f \"\\n.type \" f \",@function\\n"
		 ".p2align 4\\n\" f \": ret\\n.size \" f \", 1\" } print \".data\\n.long %u\" }'"
		 " > app.s && gcc -shared -nostdlib -Wl,--build-id -o app app.s",
		 tmp_path("disk"), tmp_path("disk"), FUNCTIONS, suffix, seed);
	if (system(command)) {
		print_message("gcc does not make a library here\n");
		skip();
	}
	assert_non_null(realpath(path, absolute));
	return absolute;
}

struct app {
	const char *path;
	struct object_key key;
	uint64_t offset;                     /* of function_7 */
};

static void read_app(const char *path, const char *wanted, struct app *app)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	struct elf_index *index;
	struct elf_function f;
	struct elf_head *head = malloc(sizeof(*head));
	struct bytes in;
	uint32_t i;
	char name[500];

	assert_non_null(head);
	assert_int_equal(os_open(path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_file_info(file, &info, NULL), 0);
	in = bytes_of_file(file, info.size_bytes);
	assert_int_equal(elf_head_read(&in, head, NULL), 0);
	assert_int_equal(elf_index_new(&in, head, NULL, &index, NULL), 0);
	*app = (struct app){.path = path, .key = {.kind = OBJECT_ELF, .path = path}};
	app->key.build_id_bytes = head->build_id_bytes;
	memcpy(app->key.build_id, head->build_id, head->build_id_bytes);
	assert_true(head->build_id_bytes);
	for (i = 0; i < head->nsegments; i++) {
		uint64_t at = head->segments[i].vaddr;

		for (; at < head->segments[i].vaddr + head->segments[i].memory_bytes; at++) {
			if (elf_find(index, at, &f) &&
			    !elf_function_name(index, &in, &f, name, sizeof(name), NULL) &&
			    !strcmp(name, wanted))
				assert_true(elf_offset(head, f.vaddr, &app->offset));
		}
	}
	assert_true(app->offset);
	elf_index_free(index);
	free(head);
	os_close(file);
}

static uint64_t written(const struct symbol_disk *disk)
{
	struct symbol_disk_use use;

	symbol_disk_use(disk, &use);
	return use.written;
}

/* What a recorder that starts now, with this cache, calls the frame; "" = nothing. */
static const char *name_by(struct symbol_disk *disk, const struct app *app)
{
	static char name[64];
	const struct symbol_env env = {.disk = disk};

	symbol_world_name(&env, NULL, &app->key, app->offset, name, sizeof(name));
	return name;
}

TEST(program_that_was_deleted_has_its_names_from_the_cache)
{
	struct symbol_disk *disk;
	struct app app;

	read_app(make_app(1, ""), "function_7", &app);
	disk = open_disk(1 << 20);
	assert_string_equal(name_by(NULL, &app), "function_7");
	assert_string_equal(name_by(disk, &app), "function_7");
	assert_int_equal(written(disk), 1);
	assert_int_equal(unlink(app.path), 0);
	assert_string_equal(name_by(NULL, &app), "");
	assert_string_equal(name_by(disk, &app), "function_7");
	assert_int_equal(written(disk), 1);
	app.key.build_id[0] ^= 1;                    /* another program */
	assert_string_equal(name_by(disk, &app), "");
	symbol_disk_close(disk);
}

TEST(worker_writes_the_cache_when_it_has_nothing_else_to_do)
{
	struct symbol_env env = {0};
	struct processes *processes;
	struct symbols *symbols;
	struct object *object;
	struct frames *frames;
	struct app app;
	unsigned i;

	read_app(make_app(5, ""), "function_7", &app);
	env.disk = open_disk(1 << 20);
	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(processes_new(&processes, NULL), 0);
	assert_int_equal(symbols_open(frames, &env, NULL, &symbols, NULL), 0);
	object = objects_get(frames, &app.key, os_pid());
	symbols_prefetch(symbols, object, os_pid());
	symbols_begin(symbols);
	for (i = 0; i < 1000 && !written(env.disk); i++)
		os_sleep_ns(10 * NS_PER_MS);
	assert_int_equal(written(env.disk), 1);
	symbols_close(symbols);
	assert_int_equal(written(env.disk), 1);
	processes_free(processes);
	frames_free(frames);
	symbol_disk_close(env.disk);
}

TEST(damaged_file_of_the_cache_is_ignored_and_written_anew)
{
	struct symbol_disk *disk;
	char command[TMP_BYTES + 100];
	struct app app;

	read_app(make_app(2, ""), "function_7", &app);
	disk = open_disk(1 << 20);
	assert_string_equal(name_by(disk, &app), "function_7");
	snprintf(command, sizeof(command), "cd '%s' && truncate -s 1000 *.sym", dir);
	assert_int_equal(system(command), 0);
	assert_string_equal(name_by(disk, &app), "function_7");
	assert_int_equal(written(disk), 2);
	/* Cut, and the program is gone: nothing is made up. */
	assert_int_equal(system(command), 0);
	assert_int_equal(unlink(app.path), 0);
	assert_string_equal(name_by(disk, &app), "");
	symbol_disk_close(disk);
}

/*
 * Build ids are easily forged: what was kept of one file is not believed for another that is there.
 */
TEST(file_that_is_there_must_be_the_one_that_was_kept)
{
	struct symbol_disk *disk;
	char command[5000];
	struct app app;

	read_app(make_app(3, ""), "function_7", &app);
	disk = open_disk(1 << 20);
	assert_string_equal(name_by(disk, &app), "function_7");
	snprintf(command, sizeof(command), "touch -d '1 hour ago' '%s'", app.path);
	assert_int_equal(system(command), 0);
	assert_string_equal(name_by(disk, &app), "function_7");
	assert_int_equal(written(disk), 2);
	symbol_disk_close(disk);
}

/*
 * Names of many functions are read from the cache's file, which may have gone when they are needed.
 */
TEST(evicted_file_of_the_cache_is_replaced_by_the_program)
{
	char suffix[301], wanted[320];
	struct object object = {.pid = os_pid()};
	struct symbol_table *table = NULL;
	struct symbol_env env = {0};
	struct symbol symbol;
	struct app app;
	unsigned round;

	memset(suffix, 'x', 300);
	suffix[300] = '\0';
	snprintf(wanted, sizeof(wanted), "function_7%s", suffix);
	read_app(make_app(4, suffix), wanted, &app);
	env.disk = open_disk(4 << 20);
	object.key = app.key;
	for (round = 0; round < 2; round++) {        /* 0: it writes the file; 1: it uses it */
		assert_int_equal(elf_reader.open(&env, &object, os_pid(), &table, NULL), 0);
		assert_true(elf_reader.find(table, app.offset, &symbol));
		assert_string_equal(symbol.name, wanted);
		elf_reader.rest(table);
		assert_true(elf_reader.find(table, app.offset, &symbol));
		assert_string_equal(symbol.name, wanted);
		if (round == 0)
			elf_reader.close(table);
	}
	elf_reader.rest(table);
	symbol_disk_drop(env.disk, &app.key);
	assert_true(elf_reader.find(table, app.offset, &symbol));
	assert_string_equal(symbol.name, wanted);
	elf_reader.close(table);

	/* Neither is there any more: no name, and no crash. */
	assert_int_equal(elf_reader.open(&env, &object, os_pid(), &table, NULL), 0);
	elf_reader.rest(table);
	symbol_disk_drop(env.disk, &app.key);
	assert_int_equal(unlink(app.path), 0);
	assert_false(elf_reader.find(table, app.offset, &symbol));
	assert_false(elf_reader.find(table, app.offset, &symbol));
	elf_reader.close(table);
	symbol_disk_close(env.disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cache_is_private_and_gives_back_what_was_put, set_up),
		cmocka_unit_test_setup(least_recently_used_files_make_room, set_up),
		cmocka_unit_test_setup(links_and_directories_of_others_are_not_used, set_up),
		cmocka_unit_test_setup(directory_that_others_could_read_is_made_private, set_up),
		cmocka_unit_test_setup(what_is_left_unfinished_goes_and_strange_files_stay, set_up),
		cmocka_unit_test_setup(program_that_was_deleted_has_its_names_from_the_cache,
				       set_up),
		cmocka_unit_test_setup(worker_writes_the_cache_when_it_has_nothing_else_to_do,
				       set_up),
		cmocka_unit_test_setup(damaged_file_of_the_cache_is_ignored_and_written_anew,
				       set_up),
		cmocka_unit_test_setup(file_that_is_there_must_be_the_one_that_was_kept, set_up),
		cmocka_unit_test_setup(evicted_file_of_the_cache_is_replaced_by_the_program,
				       set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
