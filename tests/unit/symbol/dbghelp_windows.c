/*
 * Names by dbghelp.dll (Wine's) beside those of our own readers: of a PDB that lld wrote, and of
 * the DWARF of this very program, which has a COFF symbol table for ours.
 */
#include "symbol/dbghelp.h"
#include "symbol/pdb.h"
#include "symbol/pe.h"
#include "symbol/reader.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

static struct rva_index *own_names(const char *image_path, const char *pdb_path)
{
	struct rva_index *index = rva_index_new();
	struct buf image = {0}, pdb = {0};
	struct pe_head head;
	struct bytes in;

	assert_int_equal(os_load(image_path, 64 << 20, &image, NULL), 0);
	in = bytes_of_memory(image.data, image.len);
	assert_int_equal(pe_head_read(&in, &head, NULL), 0);
	assert_int_equal(pe_functions(&in, &head, index, NULL), 0);
	assert_int_equal(pe_bounds(&in, &head, index, NULL), 0);
	if (pdb_path) {
		assert_int_equal(os_load(pdb_path, 1 << 20, &pdb, NULL), 0);
		in = bytes_of_memory(pdb.data, pdb.len);
		assert_int_equal(pdb_functions(&in, index, NULL), 0);
	}
	assert_int_equal(rva_index_finish(index, NULL), 0);
	buf_free(&image);
	buf_free(&pdb);
	return index;
}

/*
 * How many places in [from, to) both name as the same function; ours *named in all. Of a copy that
 * the compiler made for itself ("f.constprop.0") DWARF tells the source's name.
 */
static unsigned compare(const struct rva_index *own, struct dbghelp *d, uint64_t module,
			uint32_t from, uint32_t to, uint32_t step, unsigned *named)
{
	struct dbghelp_function theirs;
	struct rva_function ours;
	unsigned same = 0;
	uint32_t rva;

	for (*named = 0, rva = from; rva < to; rva += step) {
		if (!rva_index_range(own, rva, &ours) || !ours.name)
			continue;
		++*named;
		if (!dbghelp_name(d, module, rva, &theirs) || theirs.rva != ours.rva)
			continue;
		if (strcmp(theirs.name, ours.name) != 0)
			assert_int_equal(strcspn(ours.name, "."), strlen(theirs.name));
		assert_memory_equal(theirs.name, ours.name, strlen(theirs.name));
		same++;
	}
	return same;
}

TEST(a_pdb_gives_the_names_that_our_reader_gives)
{
	struct rva_index *own =
		own_names("tests/data/pdb/functions.exe", "tests/data/pdb/functions.pdb");
	struct dbghelp *d = dbghelp_new(NULL);
	uint64_t module = dbghelp_load(d, "tests/data/pdb/functions.exe");
	unsigned named, same;

	assert_int_not_equal(module, 0);
	same = compare(own, d, module, 0x1000, 0x1074, 1, &named);
	assert_int_equal(named, 0x61);       /* the rest is padding */
	assert_int_equal(same, named);
	dbghelp_unload(d, module);
	dbghelp_free(d);
	rva_index_free(own);
}

__attribute__((noinline)) static int some_function(int x)
{
	volatile int y = x;

	return y + 1;
}

TEST(dwarf_gives_the_names_of_the_coff_table)
{
	char path[MAX_PATH];
	struct rva_index *own;
	struct dbghelp *d = dbghelp_new(NULL);
	struct dbghelp_function f;
	uint32_t rva = (uint32_t)((uintptr_t)some_function - (uintptr_t)GetModuleHandleA(NULL));
	uint64_t module;
	unsigned named;

	assert_int_equal(some_function(1), 2);
	GetModuleFileNameA(NULL, path, sizeof(path));
	own = own_names(path, NULL);
	module = dbghelp_load(d, path);
	assert_int_not_equal(module, 0);
	assert_true(dbghelp_name(d, module, rva + 2, &f));
	assert_string_equal(f.name, "some_function");
	assert_int_equal(f.rva, rva);
	assert_in_range(f.nbytes, 3, 200);
	assert_in_range(compare(own, d, module, 0x1000, 0x20000, 0x100, &named), 20, UINT32_MAX);
	dbghelp_unload(d, module);
	assert_false(dbghelp_name(d, module, rva, &f));
	dbghelp_free(d);
	rva_index_free(own);
}

TEST(a_file_without_debug_information_is_none)
{
	struct dbghelp *d = dbghelp_new(NULL);

	assert_int_equal(dbghelp_load(d, "tests/data/pdb/functions.c"), 0);
	assert_int_equal(dbghelp_load(d, "tests/data/pdb/nowhere.exe"), 0);
	dbghelp_free(d);
	dbghelp_free(NULL);
}

TEST(without_a_server_in_the_path_none_is_asked)
{
	const struct dbghelp_file file = {
		.name = "functions.pdb", .guid = (const uint8_t *)"0123456789abcdef", .age = 1};
	struct dbghelp *d = dbghelp_new("C:\\nowhere;cache*C:\\nothing");
	struct buf path = {0};

	assert_int_equal(dbghelp_fetch(d, &file, &path), DBGHELP_NO_SERVERS);
	dbghelp_free(d);
	d = dbghelp_new("srv*C:\\nowhere*https://localhost/symbols");
	assert_int_equal(dbghelp_fetch(d, &file, &path), DBGHELP_NO_SYMSRV);
	assert_int_equal(path.len, 0);
	dbghelp_free(d);
	buf_free(&path);
}

/* The reader as the worker asks it: an image whose only names are in what dbghelp reads. */
TEST(the_reader_asks_dbghelp_for_what_it_does_not_know)
{
	struct symbol_env env = {.dbghelp = dbghelp_new(NULL)};
	struct object object = {.key = {.kind = OBJECT_PE}};
	struct symbol_table *table = NULL;
	char path[MAX_PATH + 16];
	struct pe_head head;
	struct buf image = {0};
	struct bytes in;
	struct symbol found;
	struct os_file *file = NULL;
	uint32_t rva = (uint32_t)((uintptr_t)some_function - (uintptr_t)GetModuleHandleA(NULL));

	GetModuleFileNameA(NULL, path, MAX_PATH);
	assert_int_equal(os_load(path, 64 << 20, &image, NULL), 0);
	in = bytes_of_memory(image.data, image.len);
	assert_int_equal(pe_head_read(&in, &head, NULL), 0);
	/*
	 * Sections' long names are in the string table behind the symbols: it stays, the symbols
	 * are no functions.
	 */
	for (uint32_t i = 0; i < head.nsymbols; i++)
		image.data[head.symbols_at + i * 18 + 16] = 0;
	snprintf(path, sizeof(path), "%s/unnamed.exe",
		 getenv("TEST_TMP") ? getenv("TEST_TMP") : ".");
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, image.data, image.len, NULL), 0);
	os_close(file);
	object.key.path = path;
	object.key.dev = head.timestamp;
	object.key.ino = head.image_bytes;
	assert_int_equal(pe_reader.open(&env, &object, 0, &table, NULL), 0);
	assert_true(table->reader->find(table, rva + 1, &found));
	assert_string_equal(found.name, "some_function");
	assert_int_equal(found.offset, rva);
	table->reader->close(table);
	dbghelp_free(env.dbghelp);
	buf_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pdb_gives_the_names_that_our_reader_gives),
		cmocka_unit_test(dwarf_gives_the_names_of_the_coff_table),
		cmocka_unit_test(a_file_without_debug_information_is_none),
		cmocka_unit_test(without_a_server_in_the_path_none_is_asked),
		cmocka_unit_test(the_reader_asks_dbghelp_for_what_it_does_not_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
