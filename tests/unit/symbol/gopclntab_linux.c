/* The functions of stripped Go programs have the names that the whole program's .symtab has. */
#include "base/bytes.h"
#include "symbol/elf.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opened {
	struct os_file *file;
	struct bytes bytes;
	struct elf_head head;
	struct elf_index *index;
};

static void open_program(const char *name, struct opened *out)
{
	struct os_file_info info;

	assert_int_equal(os_open(tmp_path(name), OS_READ, &out->file, NULL), 0);
	assert_int_equal(os_file_info(out->file, &info, NULL), 0);
	out->bytes = bytes_of_file(out->file, info.size_bytes);
	assert_int_equal(elf_head_read(&out->bytes, &out->head, NULL), 0);
	assert_int_equal(elf_index_new(&out->bytes, &out->head, NULL, &out->index, NULL), 0);
}

static void close_program(struct opened *o)
{
	elf_index_free(o->index);
	os_close(o->file);
}

static void name_of(const struct opened *o, uint64_t vaddr, char name[200])
{
	struct elf_function f;

	name[0] = '\0';
	if (elf_find(o->index, vaddr, &f))
		assert_int_equal(elf_function_name(o->index, &o->bytes, &f, name, 200, NULL), 0);
}

/* How many functions of a Go package the whole program has, each as in the stripped one. */
static unsigned compare(const char *package)
{
	struct opened whole = {0}, stripped = {0};
	char theirs[200], ours[200];
	unsigned n = 0;
	uint32_t i;

	open_program("whole", &whole);
	open_program("stripped", &stripped);
	for (i = 0; i < whole.index->nentries; i++) {
		uint64_t vaddr = whole.index->base + whole.index->entries[i].start;

		name_of(&whole, vaddr, theirs);
		if (strncmp(theirs, package, strlen(package)) != 0 ||
		    strstr(theirs, ".abi0") || strstr(theirs, ".etext"))
			continue;
		name_of(&stripped, vaddr, ours);
		assert_string_equal(ours, theirs);
		name_of(&stripped, vaddr + whole.index->entries[i].size - 1, ours);
		assert_string_equal(ours, theirs);
		n++;
	}
	print_message("%u functions of %s compared\n", n, package);
	close_program(&whole);
	close_program(&stripped);
	return n;
}

static void build(const char *cgo, const char *flags)
{
	char command[1500], dir[TMP_BYTES];

	snprintf(dir, sizeof(dir), "%s", tmp_path("."));
	snprintf(command, sizeof(command),
		 "cd %s && printf 'package main\\nfunc f(n int) int { return n + 1 }\\n"
		 "func main() { println(f(1)) }\\n' >app.go && "
		 "GOCACHE=${GOCACHE:-%s/cache} CGO_ENABLED=%s go build %s -o whole app.go 2>said "
		 "&& strip -o stripped whole", dir, dir, cgo, flags);
	if (system(command)) {
		print_message("go does not build %s here\n", flags);
		skip();
	}
}

TEST(functions_of_a_stripped_go_program_have_their_names)
{
	build("0", "");
	assert_true(compare("runtime.") > 800);
	assert_int_equal(compare("main.main"), 1);
}

TEST(so_have_those_of_one_that_may_lie_anywhere)
{
	build("0", "-buildmode=pie");
	assert_true(compare("runtime.") > 800);
}

TEST(so_have_those_of_one_that_the_systems_linker_made)
{
	build("1", "-buildmode=pie -ldflags=-linkmode=external");
	assert_true(compare("runtime.") > 800);
}

/* ---- hand-made tables ------------------------------------------------------------------------ */

/*
 * One of two functions, at the start of the code and 16 bytes behind: f and pkg.g. Header (72
 * bytes), names at 72, units at 80, table at 96: three entries and two _func.
 */
static void put_table(uint32_t magic, uint64_t text, struct buf *out)
{
	const bool old = magic == 0xfffffffau;
	const unsigned n = old ? 8 : 4;
	const uint64_t base = old ? text : 0, functions = 5 * n;

	buf_put_le(out, magic, 4);
	buf_put(out, "\0\0\1\10", 4);
	buf_put_le(out, 2, 8);               /* functions */
	buf_put_le(out, 0, 8);               /* files */
	if (!old)
		buf_put_le(out, text, 8);
	buf_put_le(out, 72, 8);
	buf_put_le(out, 80, 8);
	buf_put_le(out, 80, 8);
	buf_put_le(out, 80, 8);
	buf_put_le(out, 96, 8);
	while (out->len < 72)
		buf_putc(out, 0);
	buf_put(out, "f\0pkg.g\0", 8);
	while (out->len < 96)
		buf_putc(out, 0);
	buf_put_le(out, base, n);
	buf_put_le(out, functions, n);
	buf_put_le(out, base + 16, n);
	buf_put_le(out, functions + n + 4, n);
	buf_put_le(out, base + 32, n);
	buf_put_le(out, base, n);
	buf_put_le(out, 0, 4);
	buf_put_le(out, base + 16, n);
	buf_put_le(out, 2, 4);
}

/* A program of no symbols with this table in it. */
static void make_program(const struct buf *table)
{
	char command[1500];

	FILE *f = fopen(tmp_path("table"), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(table->data, 1, table->len, f), table->len);
	fclose(f);
	snprintf(command, sizeof(command),
		 "cd %s && echo '.globl _start; _start: .fill 64, 1, 0xcc' >app.s && "
		 "gcc -nostdlib -static -s -Wl,--build-id=none -o stripped app.s && "
		 "objcopy --add-section .gopclntab=table "
		 "--add-section .go.buildinfo=table stripped", tmp_path("."));
	if (system(command)) {
		print_message("gcc and objcopy make no program here\n");
		skip();
	}
}

TEST(each_version_of_the_table_is_read)
{
	static const uint32_t magics[] = {0xfffffffau, 0xfffffff0u, 0xfffffff1u};
	char name[200];
	unsigned i;

	for (i = 0; i < 3; i++) {
		struct buf table = {0};
		struct opened o;

		put_table(magics[i], 0x401000, &table);
		make_program(&table);
		open_program("stripped", &o);
		assert_int_equal(o.index->nentries, 2);
		name_of(&o, 0x40100f, name);
		assert_string_equal(name, "f");
		name_of(&o, 0x401010, name);
		assert_string_equal(name, "pkg.g");
		name_of(&o, 0x401020, name);
		assert_string_equal(name, "");
		close_program(&o);
		buf_free(&table);
	}
}

/* Wrong names are worse than none: where the code starts, or what the version means, is unknown. */
TEST(a_table_that_does_not_say_where_its_code_is_names_nothing)
{
	static const struct { uint32_t magic; uint64_t text; } tables[] = {
		{0xfffffff1u, 0}, {0xfffffff2u, 0x401000}};
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct buf table = {0};
		struct opened o;

		put_table(tables[i].magic, tables[i].text, &table);
		make_program(&table);
		open_program("stripped", &o);
		assert_int_equal(o.index->nentries, 0);
		close_program(&o);
		buf_free(&table);
	}
}

TEST(a_table_that_is_damaged_gives_an_error_or_names_and_nothing_else)
{
	struct buf table = {0};
	struct bytes bytes;
	size_t i;

	put_table(0xfffffff1u, 0x401000, &table);
	make_program(&table);
	buf_reset(&table);
	assert_int_equal(os_load(tmp_path("stripped"), 1 << 20, &table, NULL), 0);
	bytes = bytes_of_memory(table.data, table.len);
	for (i = 0; i < table.len; i++) {
		struct elf_index *index = NULL;
		struct elf_head head;
		struct err err;

		table.data[i] = (char)~table.data[i];
		if (!elf_head_read(&bytes, &head, &err) &&
		    !elf_index_new(&bytes, &head, NULL, &index, &err))
			elf_index_free(index);
		table.data[i] = (char)~table.data[i];
	}
	buf_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_stripped_go_program_have_their_names),
		cmocka_unit_test(so_have_those_of_one_that_may_lie_anywhere),
		cmocka_unit_test(so_have_those_of_one_that_the_systems_linker_made),
		cmocka_unit_test(each_version_of_the_table_is_read),
		cmocka_unit_test(a_table_that_does_not_say_where_its_code_is_names_nothing),
		cmocka_unit_test(
			a_table_that_is_damaged_gives_an_error_or_names_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
