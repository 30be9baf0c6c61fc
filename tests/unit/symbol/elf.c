#include "symbol/elf.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/elf_image.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x401000u
#define ID "0123456789abcdefghij"       /* 20 bytes, as SHA-1 */

static const struct elf_image_symbol plain[] = {
	{"alpha", BASE + 0x10, 0x20, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
	{"beta", BASE + 0x40, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false},
	{"gamma", BASE + 0x60, 0x10, ELF_IMAGE_IFUNC, ELF_IMAGE_GLOBAL, 0, false, true},
};

static const struct elf_image plain_image = {
	.vaddr = BASE,
	.text_bytes = 0x100,
	.build_id = ID,
	.build_id_bytes = 20,
	.symbols = plain,
	.nsymbols = 3,
};

struct opened {
	struct buf image;
	struct bytes bytes;
	struct elf_head head;
	struct elf_index *index;
};

static int open_image(const struct elf_image *image, struct opened *out, struct err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	elf_image_build(image, &out->image);
	out->bytes = bytes_of_memory(out->image.data, out->image.len);
	rc = elf_head_read(&out->bytes, &out->head, err);
	return rc ? rc : elf_index_new(&out->bytes, &out->head, NULL, &out->index, err);
}

static void open_symbols(const struct elf_image_symbol *symbols, size_t n, struct opened *out)
{
	struct elf_image image = {
		.vaddr = BASE, .text_bytes = 0x100, .symbols = symbols, .nsymbols = n};

	assert_int_equal(open_image(&image, out, NULL), 0);
}

static void close_image(struct opened *o)
{
	elf_index_free(o->index);
	buf_free(&o->image);
}

/* The name at an address; "" in a gap. */
static const char *name_at(const struct opened *o, uint64_t vaddr)
{
	static char name[4001];
	struct elf_function f;

	name[0] = '\0';
	if (elf_find(o->index, vaddr, &f))
		assert_int_equal(elf_function_name(o->index, &o->bytes, &f, name, sizeof(name),
						   NULL), 0);
	return name;
}

TEST(elf_names_addresses_inside_functions_and_none_in_gaps)
{
	struct elf_image image = plain_image;
	int is32;

	for (is32 = 0; is32 < 2; is32++) {
		struct opened o;

		image.is32 = is32;
		assert_int_equal(open_image(&image, &o, NULL), 0);
		assert_int_equal(o.index->nentries, 3);
		assert_string_equal(name_at(&o, BASE + 0x10), "alpha");
		assert_string_equal(name_at(&o, BASE + 0x2f), "alpha");
		assert_string_equal(name_at(&o, BASE + 0x30), "");
		assert_string_equal(name_at(&o, BASE + 0x40), "beta");
		assert_string_equal(name_at(&o, BASE + 0x65), "gamma");
		assert_string_equal(name_at(&o, BASE), "");
		assert_string_equal(name_at(&o, 0), "");
		assert_string_equal(name_at(&o, UINT64_MAX), "");
		close_image(&o);
	}
}

TEST(elf_reads_build_id_and_translates_offsets)
{
	struct opened o;
	uint64_t v = 0;

	assert_int_equal(open_image(&plain_image, &o, NULL), 0);
	assert_int_equal(o.head.build_id_bytes, 20);
	assert_memory_equal(o.head.build_id, ID, 20);
	assert_true(elf_vaddr(&o.head, ELF_IMAGE_TEXT_AT + 0x10, &v) && v == BASE + 0x10);
	assert_true(elf_offset(&o.head, BASE + 0xff, &v) && v == ELF_IMAGE_TEXT_AT + 0xff);
	assert_false(elf_vaddr(&o.head, ELF_IMAGE_TEXT_AT + 0x100, &v));
	assert_false(elf_vaddr(&o.head, ELF_IMAGE_TEXT_AT - 1, &v));
	assert_false(elf_offset(&o.head, BASE + 0x100, &v));
	close_image(&o);
}

TEST(elf_without_a_usable_build_id_has_none)
{
	struct elf_image image = plain_image;
	struct opened o;

	image.build_id_bytes = 25;             /* longer than a key can hold */
	image.build_id = ID "....";
	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_int_equal(o.head.build_id_bytes, 0);
	close_image(&o);
	image.build_id = NULL;
	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_int_equal(o.head.build_id_bytes, 0);
	close_image(&o);
}

TEST(elf_prefers_typed_then_global_then_weak_then_fewer_underscores)
{
	static const struct elf_image_symbol symbols[] = {
		{"label", BASE + 0x10, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_GLOBAL, 0, false, false},
		{"local", BASE + 0x10, 8, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false},
		{"local2", BASE + 0x20, 8, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false},
		{"weak2", BASE + 0x20, 8, ELF_IMAGE_FUNC, ELF_IMAGE_WEAK, 0, false, false},
		{"weak3", BASE + 0x30, 8, ELF_IMAGE_FUNC, ELF_IMAGE_WEAK, 0, false, false},
		{"__global3", BASE + 0x30, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"__libc_malloc", BASE + 0x40, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false,
		 false},
		{"malloc", BASE + 0x40, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"_malloc", BASE + 0x40, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, true},
		{"first", BASE + 0x50, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"second", BASE + 0x50, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
	};
	struct opened o;

	open_symbols(symbols, 11, &o);
	assert_int_equal(o.index->nentries, 5);
	assert_string_equal(name_at(&o, BASE + 0x10), "local");
	assert_string_equal(name_at(&o, BASE + 0x20), "weak2");
	assert_string_equal(name_at(&o, BASE + 0x30), "__global3");
	assert_string_equal(name_at(&o, BASE + 0x40), "malloc");
	assert_string_equal(name_at(&o, BASE + 0x50), "first");
	close_image(&o);
}

TEST(elf_extends_symbols_without_size_to_the_next_or_the_section_end)
{
	static const struct elf_image_symbol symbols[] = {
		{"asm_b", BASE + 0x80, 0, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false},
		{"asm_a", BASE + 0x40, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_GLOBAL, 0, false, false},
	};
	struct opened o;

	open_symbols(symbols, 2, &o);
	assert_string_equal(name_at(&o, BASE + 0x3f), "");
	assert_string_equal(name_at(&o, BASE + 0x7f), "asm_a");
	assert_string_equal(name_at(&o, BASE + 0xff), "asm_b");
	assert_string_equal(name_at(&o, BASE + 0x100), "");
	close_image(&o);
}

TEST(elf_finds_the_innermost_of_nested_functions)
{
	static const struct elf_image_symbol symbols[] = {
		{"outer", BASE + 0x10, 0x80, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"inner", BASE + 0x20, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"loop", BASE + 0x50, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_LOCAL, 0, false, false},
	};
	struct opened o;

	open_symbols(symbols, 3, &o);
	assert_string_equal(name_at(&o, BASE + 0x18), "outer");
	assert_string_equal(name_at(&o, BASE + 0x28), "inner");
	assert_string_equal(name_at(&o, BASE + 0x30), "outer");
	assert_string_equal(name_at(&o, BASE + 0x55), "outer"); /* a label in it is no function */
	close_image(&o);
}

TEST(elf_leaves_out_what_is_no_function)
{
	static const struct elf_image_symbol symbols[] = {
		{"data", BASE + 0x10, 8, ELF_IMAGE_OBJECT, ELF_IMAGE_GLOBAL, 0, false, false},
		{"import", BASE + 0x20, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, true, false},
		{".L1", BASE + 0x30, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_LOCAL, 0, false, false},
		{"$x", BASE + 0x40, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_LOCAL, 0, false, false},
		{"in_data", BASE + 0x50, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_GLOBAL, 2, false, false},
		{"_etext", BASE + 0x100, 0, ELF_IMAGE_NOTYPE, ELF_IMAGE_GLOBAL, 0, false, false},
		{"elsewhere", 0x10, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"absolute", BASE + 0x60, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0xfff1, false,
		 false},
		{"", BASE + 0x70, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
	};
	struct opened o;

	open_symbols(symbols, 9, &o);
	/* The one with the empty name is there, as a name without bytes; nobody shows it. */
	assert_int_equal(o.index->nentries, 1);
	assert_string_equal(name_at(&o, BASE + 0x70), "");
	close_image(&o);
}

TEST(elf_removes_the_thumb_bit_on_arm)
{
	static const struct elf_image_symbol thumb[] = {
		{"thumb", BASE + 0x11, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false}};
	struct elf_image image = {.is32 = true, .machine = 40, .vaddr = BASE, .text_bytes = 0x100,
				  .symbols = thumb, .nsymbols = 1};
	struct opened o;

	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_string_equal(name_at(&o, BASE + 0x10), "thumb");
	close_image(&o);
}

TEST(elf_without_sections_is_an_empty_index)
{
	struct elf_image image = plain_image;
	struct opened o;

	image.no_sections = true;
	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_int_equal(o.index->nentries, 0);
	assert_string_equal(name_at(&o, BASE + 0x10), "");
	close_image(&o);
}

TEST(elf_leaves_the_names_of_a_large_string_table_in_the_file)
{
	struct elf_image image = plain_image;
	struct opened o;

	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_true(elf_index_has_names(o.index));
	close_image(&o);
	image.padding = ELF_STRINGS_KEPT_BYTES;
	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_false(elf_index_has_names(o.index));
	assert_true(elf_index_bytes(o.index) < 4096);
	assert_string_equal(name_at(&o, BASE + 0x10), "alpha");
	close_image(&o);
}

TEST(elf_cuts_a_long_name_to_the_room_there_is)
{
	struct elf_function f;
	struct opened o;
	char name[4];

	assert_int_equal(open_image(&plain_image, &o, NULL), 0);
	assert_true(elf_find(o.index, BASE + 0x10, &f));
	assert_int_equal(elf_function_name(o.index, &o.bytes, &f, name, sizeof(name), NULL), 0);
	assert_string_equal(name, "alp");
	close_image(&o);
}

static void refuse(const void *data, size_t n, const char *sentence)
{
	struct bytes in = bytes_of_memory(data, n);
	struct elf_index *index = NULL;
	struct elf_head head;
	struct err err = {0};
	int rc = elf_head_read(&in, &head, &err);

	if (!rc)
		rc = elf_index_new(&in, &head, NULL, &index, &err);
	assert_true(rc < 0 && err.code == rc);
	if (!strstr(err.text, sentence))
		fail_msg("\"%s\" lacks \"%s\"", err.text, sentence);
}

TEST(elf_says_what_is_wrong_with_a_file)
{
	struct buf b = {0};

	elf_image_build(&plain_image, &b);
	refuse("", 0, "lies outside the file of 0 bytes");
	refuse("#!/bin/sh, and more than enough bytes for an ELF32 header follow", 64,
	       "it is not an ELF file");
	b.data[5] = 2;
	refuse(b.data, b.len, "neither little-endian");
	b.data[5] = 1;
	b.data[56] = 0;
	refuse(b.data, b.len, "no program headers");
	b.data[57] = 5;
	refuse(b.data, b.len, "1280 program headers");
	b.data[56] = 2;
	b.data[57] = 0;
	b.data[60] = 0;
	refuse(b.data, b.len, "more than 65279 sections");
	b.data[60] = 7;
	memset(b.data + 64 + 40, 0xff, 8);     /* memory size of the first segment */
	refuse(b.data, b.len, "wraps around");
	buf_free(&b);
}

TEST(elf_refuses_absurd_symbol_tables)
{
	struct buf b = {0};
	char *symtab;

	elf_image_build(&plain_image, &b);
	symtab = b.data + b.len - 4 * 64;      /* the fourth section header from the end */
	symtab[56] = 23;
	refuse(b.data, b.len, "symbols have the wrong size");
	symtab[56] = 24;
	symtab[40] = 99;
	refuse(b.data, b.len, "no string table");
	symtab[40] = 4;
	symtab[32 + 3] = 1;                    /* 16 MB of symbols in a file of 2 KB */
	refuse(b.data, b.len, "its symbol table");
	symtab[32 + 6] = 1;
	refuse(b.data, b.len, "the limit is 16777216");
	symtab[32 + 6] = symtab[32 + 3] = 0;
	symtab[64 + 32 + 4] = 1;               /* size of .strtab: 4 GB */
	refuse(b.data, b.len, "its string table has");
	buf_free(&b);
}

/* Use whatever can be opened: the sanitizers watch. */
static void exercise(const void *data, size_t n)
{
	struct bytes in = bytes_of_memory(data, n);
	struct elf_index *index = NULL;
	struct elf_function f;
	struct elf_head head;
	uint64_t vaddr;
	char name[64];
	uint64_t at;

	if (elf_head_read(&in, &head, NULL) || elf_index_new(&in, &head, NULL, &index, NULL))
		return;
	for (at = 0; at < n; at += 13) {
		if (elf_vaddr(&head, at, &vaddr) && elf_find(index, vaddr, &f))
			elf_function_name(index, &in, &f, name, sizeof(name), NULL);
	}
	elf_index_free(index);
}

TEST(elf_survives_truncation_everywhere_and_every_changed_byte)
{
	struct elf_image image = plain_image;
	int is32;

	for (is32 = 0; is32 < 2; is32++) {
		struct buf b = {0};
		size_t i;

		image.is32 = is32;
		elf_image_build(&image, &b);
		for (i = 0; i < b.len; i++) {
			char *cut = malloc(i + 1); /* of its very size, for the sanitizer */

			memcpy(cut, b.data, i);
			exercise(cut, i);
			free(cut);
		}
		for (i = 0; i < b.len; i++) {
			char old = b.data[i];

			b.data[i] = (char)0xff;
			exercise(b.data, b.len);
			b.data[i] = (char)(old + 1);
			exercise(b.data, b.len);
			b.data[i] = old;
		}
		buf_free(&b);
	}
}

static int index_step(void *ctx)
{
	const struct opened *o = ctx;
	struct elf_index *index = NULL;
	struct elf_head head;
	int rc = elf_head_read(&o->bytes, &head, NULL);

	if (!rc)
		rc = elf_index_new(&o->bytes, &head, NULL, &index, NULL);
	elf_index_free(index);
	return rc;
}

TEST(elf_reports_lack_of_memory)
{
	struct opened o;

	assert_int_equal(open_image(&plain_image, &o, NULL), 0);
	assert_in_range(alloc_walk(index_step, &o), 8, 20);
	close_image(&o);
}

TEST(elf_sorts_many_functions_whatever_their_order)
{
	enum { MANY = 20000 };
	struct elf_image_symbol *symbols = calloc(MANY, sizeof(*symbols));
	char (*names)[12] = calloc(MANY, sizeof(*names));
	struct elf_image image = {.vaddr = BASE, .text_bytes = MANY * 16, .symbols = symbols,
				  .nsymbols = MANY};
	struct opened o;
	unsigned i;

	for (i = 0; i < MANY; i++) {
		unsigned place = (unsigned)((uint64_t)i * 7919 % MANY);  /* a permutation */

		snprintf(names[i], sizeof(names[i]), "f%u", place);
		symbols[i] = (struct elf_image_symbol){.name = names[i], .value = BASE + place * 16,
						       .size = 16, .type = ELF_IMAGE_FUNC};
	}
	assert_int_equal(open_image(&image, &o, NULL), 0);
	assert_int_equal(o.index->nentries, MANY);
	for (i = 0; i < MANY; i++) {
		char want[12];

		snprintf(want, sizeof(want), "f%u", i);
		assert_string_equal(name_at(&o, BASE + i * 16 + 7), want);
	}
	close_image(&o);
	free(names);
	free(symbols);
}

TEST(elf_completes_dynamic_symbols_by_those_of_a_packed_file)
{
	static const struct elf_image_symbol exported[] = {
		{"shown", BASE + 0x10, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, true}};
	static const struct elf_image_symbol packed[] = {
		{"hidden", BASE + 0x30, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false}};
	struct elf_image outer = {.vaddr = BASE, .text_bytes = 0x100, .symbols = exported,
				  .nsymbols = 1, .no_symtab = true};
	struct elf_image inner = {
		.vaddr = BASE, .text_bytes = 0x100, .symbols = packed, .nsymbols = 1};
	struct buf text = {0};
	struct opened o;
	struct bytes mini;
	struct err err;

	assert_int_equal(open_image(&outer, &o, NULL), 0);
	elf_index_free(o.index);
	elf_image_build(&inner, &text);
	mini = bytes_of_memory(text.data, text.len);
	assert_int_equal(elf_index_new(&o.bytes, &o.head, &mini, &o.index, NULL), 0);
	assert_string_equal(name_at(&o, BASE + 0x18), "shown");
	assert_string_equal(name_at(&o, BASE + 0x38), "hidden");
	/* For another machine, or no ELF at all: refused, not believed. */
	text.data[18] = 40;
	assert_int_equal(elf_index_new(&o.bytes, &o.head, &mini, NULL, &err), ERR_FORMAT);
	text.data[0] = 'x';
	assert_int_equal(elf_index_new(&o.bytes, &o.head, &mini, NULL, &err), ERR_FORMAT);
	close_image(&o);
	buf_free(&text);
}

/* ---- what the dynamic linker calls ----------------------------------------------------------- */

static void put_words(struct buf *out, const uint64_t *words, size_t n)
{
	buf_put(out, words, n * 8);
}

/*
 * One segment, of the whole file at address 0; at 0xb0 a dynamic section, at 0x130 the two arrays.
 */
static void build_dynamic(struct buf *out)
{
	static const uint8_t magic[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	const uint64_t header[] = {(uint64_t)1 << 32 | 62 << 16 | 3,	    0, 64, 0,
				   (uint64_t)56 << 48 | (uint64_t)64 << 32, 2};
	const uint64_t load[] = {(uint64_t)5 << 32 | 1, 0, 0, 0, 0x160, 0x160, 8};
	const uint64_t dynamic[] = {(uint64_t)6 << 32 | 2, 0xb0, 0xb0, 0xb0, 0x80, 0x80, 8};
	const uint64_t pairs[] = {12, 0x1000, 13, 0x2000, 25, 0x130, 27, 40,
				  26, 0x158,  28, 8,	  0,  0,     13, 0x9999};
	const uint64_t arrays[] = {0x3000, 0, 0x3002, 0x3003, 0x3004, 0x4000};

	memset(out, 0, sizeof(*out));
	buf_put(out, magic, 16);
	put_words(out, header, 6);
	put_words(out, load, 7);
	put_words(out, dynamic, 7);
	put_words(out, pairs, 16);
	put_words(out, arrays, 6);
}

/* Of an array the first four count; 0 = a relocation gives it. */
TEST(elf_tells_what_the_dynamic_linker_calls)
{
	static const uint64_t expected[] = {0x1000, 0x2000, 0x3000, 0x3002, 0x3003, 0x4000};
	uint64_t called[ELF_CALLED_MAX];
	struct elf_head head;
	struct buf image;
	struct bytes in;

	build_dynamic(&image);
	in = bytes_of_memory(image.data, image.len);
	assert_int_equal(elf_head_read(&in, &head, NULL), 0);
	assert_int_equal(elf_called(&in, &head, called), 6);
	assert_memory_equal(called, expected, sizeof(expected));
	in.size = 0x140;                        /* the arrays are cut off */
	assert_int_equal(elf_called(&in, &head, called), 2);
	in.size = 0x100;                        /* the dynamic section too */
	assert_int_equal(elf_called(&in, &head, called), 0);
	buf_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_names_addresses_inside_functions_and_none_in_gaps),
		cmocka_unit_test(elf_reads_build_id_and_translates_offsets),
		cmocka_unit_test(elf_without_a_usable_build_id_has_none),
		cmocka_unit_test(elf_prefers_typed_then_global_then_weak_then_fewer_underscores),
		cmocka_unit_test(elf_extends_symbols_without_size_to_the_next_or_the_section_end),
		cmocka_unit_test(elf_finds_the_innermost_of_nested_functions),
		cmocka_unit_test(elf_leaves_out_what_is_no_function),
		cmocka_unit_test(elf_removes_the_thumb_bit_on_arm),
		cmocka_unit_test(elf_without_sections_is_an_empty_index),
		cmocka_unit_test(elf_leaves_the_names_of_a_large_string_table_in_the_file),
		cmocka_unit_test(elf_cuts_a_long_name_to_the_room_there_is),
		cmocka_unit_test(elf_says_what_is_wrong_with_a_file),
		cmocka_unit_test(elf_refuses_absurd_symbol_tables),
		cmocka_unit_test(elf_survives_truncation_everywhere_and_every_changed_byte),
		cmocka_unit_test(elf_reports_lack_of_memory),
		cmocka_unit_test(elf_sorts_many_functions_whatever_their_order),
		cmocka_unit_test(elf_completes_dynamic_symbols_by_those_of_a_packed_file),
		cmocka_unit_test(elf_tells_what_the_dynamic_linker_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
