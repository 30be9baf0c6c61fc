/* Names for frames of PE images: the right file is found and used, and no other. */
#include "symbol/pe.h"
#include "symbol/reader.h"

#include "base/bytes.h"
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <string.h>

static const struct symbol_reader *const reader = &pe_reader;
static struct pe_head head;                          /* of tests/data/pdb/functions.exe */
static char guid[33];

static void copy(const char *name, const char *to)
{
	char from[200];
	struct buf b = {0};
	struct os_file *file = NULL;

	snprintf(from, sizeof(from), "tests/data/pdb/%s", name);
	assert_int_equal(os_load(from, 1 << 20, &b, NULL), 0);
	assert_int_equal(os_open(to, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, b.data, b.len, NULL), 0);
	os_close(file);
	buf_free(&b);
}

static int setup(void **state)
{
	struct buf b = {0};
	struct bytes in;
	const uint8_t *g = head.pdb_guid;

	(void)state;
	if (os_load("tests/data/pdb/functions.exe", 1 << 20, &b, NULL))
		return -1;
	in = bytes_of_memory(b.data, b.len);
	if (pe_head_read(&in, &head, NULL) || !head.has_pdb)
		return -1;
	snprintf(guid, sizeof(guid), "%08X%04X%04X%02X%02X%02X%02X%02X%02X%02X%02X",
		 le32(g), le16(g + 4), le16(g + 6),
		 g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]);
	buf_free(&b);
	return 0;
}

/* As a trace knows it: a path of its own machine, and GUID and age. */
static struct object object_of(const char *path)
{
	struct object o = {.key = {.kind = OBJECT_PE, .build_id_bytes = 20, .path = path}};

	memcpy(o.key.build_id, head.pdb_guid, 16);
	memcpy(o.key.build_id + 16, &head.pdb_age, 4);
	return o;
}

/* The name of the function that begins at rva, "" without one. */
static const char *name_at(struct symbol_table *t, uint32_t rva)
{
	struct symbol s;

	return reader->find(t, rva, &s) ? s.name : "";
}

static int try_open(const char *path, const char *dirs, struct symbol_table **out)
{
	struct symbol_env env = {.path = dirs, .foreign = true};
	struct object o = object_of(path);

	*out = NULL;
	return reader->open(&env, &o, 0, out, NULL);
}

/* start is at 0x1070 in functions.exe, as llvm-nm says of the PDB. */
static void expect_private_names(struct symbol_table *t)
{
	char all[4000] = "";
	uint32_t rva;

	for (rva = 0x1000; rva < 0x1100; rva++) {
		const char *name = name_at(t, rva);

		if (*name && !strstr(all, name))
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", name);
	}
	assert_string_equal(all, "alpha beta hidden start ");
	reader->close(t);
}

TEST(image_and_pdb_are_found_in_a_flat_directory)
{
	struct symbol_table *t;

	assert_int_equal(try_open("C:\\app\\functions.exe", "/nowhere;tests/data/pdb", &t), 0);
	expect_private_names(t);
}

/* A live session tells of an image only its timestamp and size: the image itself names its PDB. */
TEST(an_image_known_by_its_timestamp_leads_to_its_pdb)
{
	struct symbol_env env = {.path = "tests/data/pdb", .foreign = true};
	struct object o = {.key = {.kind = OBJECT_PE, .path = "C:\\app\\functions.exe"}};
	struct symbol_table *t = NULL;

	o.key.dev = head.timestamp;
	o.key.ino = head.image_bytes;
	assert_int_equal(reader->open(&env, &o, 0, &t, NULL), 0);
	expect_private_names(t);
	o.key.dev++;                         /* another build: neither it nor its PDB */
	assert_int_not_equal(reader->open(&env, &o, 0, &t, NULL), 0);
}

TEST(a_recorded_name_in_capitals_finds_the_file_in_small_letters)
{
	struct symbol_table *t;

	assert_int_equal(try_open("C:\\APP\\FUNCTIONS.EXE", "tests/data/pdb", &t), 0);
	reader->close(t);
}

TEST(a_pdb_is_found_in_a_symbol_store)
{
	char dir[TMP_BYTES], path[2 * TMP_BYTES];
	struct symbol_table *t;

	snprintf(dir, sizeof(dir), "%s", tmp_path("store"));
	snprintf(path, sizeof(path), "%s/functions.pdb/%s%X", dir, guid, (unsigned)head.pdb_age);
	assert_int_equal(os_mkdirs(path, NULL), 0);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/functions.pdb");
	copy("functions.pdb", path);
	assert_int_equal(try_open("C:\\app\\functions.exe", dir, &t), 0);
	expect_private_names(t);
}

TEST(another_build_of_the_image_is_not_used)
{
	struct symbol_env env = {.path = "tests/data/pdb", .foreign = true};
	struct object o = object_of("C:\\app\\functions.exe");
	struct symbol_table *t;
	struct err err;

	o.key.build_id[3] ^= 1;
	assert_int_equal(reader->open(&env, &o, 0, &t, &err), ERR_NOT_FOUND);
	o = object_of("C:\\app\\functions.exe");
	o.key.build_id[16] ^= 1;                     /* the age */
	assert_int_equal(reader->open(&env, &o, 0, &t, &err), ERR_NOT_FOUND);
}

TEST(an_image_without_a_pdb_is_known_by_timestamp_and_size)
{
	struct symbol_env env = {.path = "tests/data/pdb", .foreign = true};
	struct object o = {.key = {.kind = OBJECT_PE, .path = "C:\\app\\symtab.exe"}};
	struct symbol_table *t;
	struct pe_head symtab;
	struct buf b = {0};
	struct bytes in;
	struct err err;

	assert_int_equal(os_load("tests/data/pdb/symtab.exe", 1 << 20, &b, NULL), 0);
	in = bytes_of_memory(b.data, b.len);
	assert_int_equal(pe_head_read(&in, &symtab, NULL), 0);
	o.key.dev = symtab.timestamp;
	o.key.ino = symtab.image_bytes;
	assert_int_equal(reader->open(&env, &o, 0, &t, &err), 0);
	assert_string_equal(name_at(t, 0x1000), "alpha");
	reader->close(t);
	o.key.dev++;
	assert_int_equal(reader->open(&env, &o, 0, &t, &err), ERR_NOT_FOUND);
	buf_free(&b);
}

TEST(without_a_symbol_path_nothing_is_found)
{
	struct symbol_table *t;

	assert_int_equal(try_open("C:\\app\\functions.exe", NULL, &t), ERR_NOT_FOUND);
	assert_int_equal(try_open("", "tests/data/pdb;", &t), ERR_NOT_FOUND);
}

TEST(an_image_at_its_own_path_needs_no_symbol_path)
{
	struct symbol_table *t;

	assert_int_equal(try_open("tests/data/pdb/functions.exe", NULL, &t), 0);
	expect_private_names(t);                     /* the PDB beside it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_and_pdb_are_found_in_a_flat_directory),
		cmocka_unit_test(an_image_known_by_its_timestamp_leads_to_its_pdb),
		cmocka_unit_test(a_recorded_name_in_capitals_finds_the_file_in_small_letters),
		cmocka_unit_test(a_pdb_is_found_in_a_symbol_store),
		cmocka_unit_test(another_build_of_the_image_is_not_used),
		cmocka_unit_test(an_image_without_a_pdb_is_known_by_timestamp_and_size),
		cmocka_unit_test(without_a_symbol_path_nothing_is_found),
		cmocka_unit_test(an_image_at_its_own_path_needs_no_symbol_path),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
