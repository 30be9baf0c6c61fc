/* Notes of USDT probes, made by hand as readelf -n shows them; arguments; functions by name. */
#include "base/array.h"
#include "base/os.h"
#include "symbol/elf_symbol.h"
#include "symbol/stapsdt.h"
#include "tests/support/elf_image.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define CODE 0x401000u

TEST(arguments_are_read_as_the_assembler_writes_them)
{
	static const struct {
		const char *text;
		struct stapsdt_argument wanted;
	} rows[] = {
		{"8@%rdi", {STAPSDT_REGISTER, 8, false, 5, 0}},
		{"-4@%eax", {STAPSDT_REGISTER, 4, true, 0, 0}},
		{"1@%r9b", {STAPSDT_REGISTER, 1, false, 17, 0}},
		{"-8@%r12", {STAPSDT_REGISTER, 8, true, 20, 0}},
		{"-4@$-7", {STAPSDT_CONSTANT, 4, true, 0, -7}},
		{"-4@112(%rsp)", {STAPSDT_MEMORY, 4, true, 7, 112}},
		{"8@-80(%rbx)", {STAPSDT_MEMORY, 8, false, 1, -80}},
		{"8@(%rax)", {STAPSDT_MEMORY, 8, false, 0, 0}},
		{"8@8(%rax,%rbx,4)", {STAPSDT_UNKNOWN, 8, false, 0, 8}},
		{"8@name(%rip)", {STAPSDT_UNKNOWN, 8, false, 0, 0}},
		{"8@%r16", {STAPSDT_UNKNOWN, 8, false, 0, 0}},
		{"8@", {STAPSDT_UNKNOWN, 8, false, 0, 0}},
		{"nonsense", {STAPSDT_UNKNOWN, 8, false, 0, 0}},
	};
	struct stapsdt_argument out[STAPSDT_ARGUMENTS_MAX];
	size_t i;

	for (i = 0; i < COUNT_OF(rows); i++) {
		const struct stapsdt_argument *w = &rows[i].wanted;

		assert_int_equal(stapsdt_arguments(rows[i].text, out), 1);
		assert_int_equal(out[0].place, w->place);
		assert_int_equal(out[0].bytes, w->bytes);
		assert_int_equal(out[0].is_signed, w->is_signed);
		if (w->place == STAPSDT_REGISTER || w->place == STAPSDT_MEMORY)
			assert_int_equal(out[0].reg, w->reg);
		if (w->place == STAPSDT_CONSTANT || w->place == STAPSDT_MEMORY)
			assert_int_equal(out[0].value, w->value);
	}
	assert_int_equal(stapsdt_arguments("8@%rdx 8@-80(%rbx)", out), 2);
	assert_int_equal(stapsdt_arguments("", out), 0);
	assert_int_equal(
		stapsdt_arguments(
			"1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al "
			"1@%al 1@%al",
			out),
		STAPSDT_ARGUMENTS_MAX);
}

static int keep(void *ctx, const struct stapsdt *probe)
{
	*(struct stapsdt *)ctx = *probe;
	return 7;
}

/* A program of 1,304 bytes, linked by GNU ld; "readelf -n" says the same of it. */
TEST(notes_give_probes_with_their_places_in_the_file)
{
	struct stapsdt probe = {.offset = 0};
	struct buf file = {0};
	struct elf_head head;
	struct bytes in;
	struct err err;

	assert_int_equal(
		os_load("tests/fuzz/corpus/fuzz_symbol_stapsdt/sdt.stripped", 4096, &file, &err),
		0);
	in = bytes_of_memory(file.data, file.len);
	assert_int_equal(elf_head_read(&in, &head, &err), 0);
	assert_int_equal(stapsdt_each(&in, &head, keep, &probe, &err), 7);
	assert_string_equal(probe.provider, "mine");
	assert_string_equal(probe.name, "request__start");
	assert_string_equal(probe.arguments, "8@%rdi -4@12(%rsp) 4@$7");
	assert_int_equal((uint8_t)file.data[probe.offset], 0x90);        /* nop; ret */
	assert_int_equal((uint8_t)file.data[probe.offset + 1], 0xc3);
	assert_int_equal(probe.semaphore % 256, 1);        /* 0x400401; pages of 256 bytes */
	buf_free(&file);
}

TEST(a_function_is_found_by_its_name)
{
	static const struct elf_image_symbol symbols[] = {
		{"handle_request", CODE + 16, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
		{"handle_reply", CODE + 32, 8, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false},
		{"exported", CODE + 48, 8, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, true},
		{"table", CODE + 64, 8, ELF_IMAGE_OBJECT, ELF_IMAGE_GLOBAL, 0, false, false},
		{"missing", 0, 0, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, true, true},
	};
	struct elf_image image = {
		.vaddr = CODE, .text_bytes = 128, .symbols = symbols, .nsymbols = 5};
	struct elf_near near;
	struct elf_head head;
	struct buf file = {0};
	struct bytes in;
	struct err err;
	uint64_t at = 0;
	unsigned bits;

	for (bits = 0; bits < 2; bits++) {
		image.is32 = bits;
		buf_reset(&file);
		elf_image_build(&image, &file);
		in = bytes_of_memory(file.data, file.len);
		assert_int_equal(elf_head_read(&in, &head, &err), 0);
		assert_int_equal(elf_symbol_find(&in, &head, "handle_reply", &at, &near, &err), 0);
		assert_int_equal(at, CODE + 32);
		assert_int_equal(elf_symbol_find(&in, &head, "exported", &at, NULL, &err), 0);
		assert_int_equal(at, CODE + 48);
		assert_int_equal(elf_symbol_find(&in, &head, "handle_rep*", &at, NULL, &err), 0);
		assert_int_equal(at, CODE + 32);
		assert_int_equal(elf_symbol_find(&in, &head, "table", &at, NULL, &err),
				 ERR_NOT_FOUND);
		assert_int_equal(elf_symbol_find(&in, &head, "missing", &at, NULL, &err),
				 ERR_NOT_FOUND);
		assert_int_equal(elf_symbol_find(&in, &head, "handle_requst", &at, &near, &err),
				 ERR_NOT_FOUND);
		assert_true(near.n >= 1);
		assert_string_equal(near.names[0], "handle_request");
	}
	buf_free(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_read_as_the_assembler_writes_them),
		cmocka_unit_test(notes_give_probes_with_their_places_in_the_file),
		cmocka_unit_test(a_function_is_found_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
