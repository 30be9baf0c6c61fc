/* .eh_frame by hand: heads, encodings, the index, each call frame instruction, limits. */
#include "base/array.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/cfi_builder.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x20000u                   /* .eh_frame; code lies below */
#define CODE 0x4000u

static const struct cfi_cie usual;

static struct eh_frame *one(const struct cfi_cie *cie, const uint8_t *program, size_t n)
{
	struct cfi c = {.vaddr = BASE};

	cfi_put_cie(&c, cie);
	cfi_put_fde(&c, CODE, 0x100, program, n);
	return cfi_tables(&c, CFI_SORTED);
}

static enum eh_result row_at(const struct eh_frame *tables, uint64_t vaddr, struct eh_row *row)
{
	uint32_t budget = EH_BUDGET;

	return eh_frame_row(tables, vaddr, &budget, row);
}

/* ---- instructions ---------------------------------------------------------------------------- */

struct instruction {
	const char *name;
	uint8_t program[16];
	size_t n;
	unsigned reg;                   /* EH_REGISTERS = the CFA */
	struct eh_rule expected;
};

#define CFA EH_REGISTERS
#define RULE(h, r, v) {.how = (h), .reg = (r), .value = (v)}

static const struct instruction instructions[] = {
	{"def_cfa", {0x0c, 6, 16}, 3, CFA, RULE(EH_VALUE, EH_RBP, 16)},
	{"def_cfa_sf", {0x12, 6, 0x7e}, 3, CFA, RULE(EH_VALUE, EH_RBP, 16)},
	{"def_cfa_register", {0x0d, 10}, 2, CFA, RULE(EH_VALUE, EH_R10, 8)},
	{"def_cfa_offset", {0x0e, 0x90, 0x80, 1}, 4, CFA, RULE(EH_VALUE, EH_RSP, 16400)},
	{"def_cfa_offset_sf", {0x13, 0x7c}, 2, CFA, RULE(EH_VALUE, EH_RSP, 32)},
	{"offset", {0x83, 2}, 2, EH_RBX, RULE(EH_AT, 0, -16)},
	{"offset_extended", {0x05, 12, 3}, 3, EH_R12, RULE(EH_AT, 0, -24)},
	{"offset_extended_sf", {0x11, 12, 0x7f}, 3, EH_R12, RULE(EH_AT, 0, 8)},
	{"GNU_negative_offset_extended", {0x2f, 12, 2}, 3, EH_R12, RULE(EH_AT, 0, 16)},
	{"val_offset", {0x14, 7, 1}, 3, EH_RSP, RULE(EH_VALUE, 0, -8)},
	{"val_offset_sf", {0x15, 7, 0x7e}, 3, EH_RSP, RULE(EH_VALUE, 0, 16)},
	{"undefined", {0x07, 16}, 2, EH_RIP, RULE(EH_UNDEFINED, 0, 0)},
	{"same_value", {0x08, 6}, 2, EH_RBP, RULE(EH_SAME, 0, 0)},
	{"register", {0x09, 16, 2}, 3, EH_RIP, RULE(EH_IN_REGISTER, EH_RCX, 0)},
	{"register that is not followed", {0x09, 3, 17}, 3, EH_RBX, RULE(EH_UNDEFINED, 17, 0)},
	{"restore", {0x90, 5, 0xd0}, 3, EH_RIP, RULE(EH_AT, 0, -8)},
	{"restore of what the CIE does not mention", {0x83, 2, 0xc3}, 3, EH_RBX, RULE(0, 0, 0)},
	{"restore_extended", {0x83, 2, 0x06, 3}, 4, EH_RBX, RULE(0, 0, 0)},
	{"remember and restore state", {0x0a, 0x83, 2, 0x0b}, 4, EH_RBX, RULE(0, 0, 0)},
	{"state of the CFA", {0x0a, 0x0e, 64, 0x0b}, 4, CFA, RULE(EH_VALUE, EH_RSP, 8)},
	{"GNU_args_size", {0x2e, 0x80, 1, 0x83, 2}, 5, EH_RBX, RULE(EH_AT, 0, -16)},
	{"nop", {0, 0, 0x83, 2}, 4, EH_RBX, RULE(EH_AT, 0, -16)},
	{"rule of a vector register", {0x05, 0x85, 1, 2, 0x83, 2}, 6, EH_RBX, RULE(EH_AT, 0, -16)},
	{"advance_loc", {0x84, 9, 0x44, 0x84, 2, 0x5f, 0x84, 7}, 8, EH_RSI, RULE(EH_AT, 0, -16)},
	{"advance_loc1", {0x02, 16, 0x84, 2, 0x02, 1, 0x84, 7}, 8, EH_RSI, RULE(EH_AT, 0, -16)},
	{"advance_loc2", {0x03, 16, 0, 0x84, 2, 0x03, 0, 1}, 8, EH_RSI, RULE(EH_AT, 0, -16)},
	{"advance_loc4", {0x04, 16, 0, 0, 0, 0x84, 2}, 7, EH_RSI, RULE(EH_AT, 0, -16)},
	{"advance_loc8", {0x1d, 16, 0, 0, 0, 0, 0, 0, 0, 0x84, 2}, 11, EH_RSI, RULE(EH_AT, 0, -16)},
};

TEST(each_instruction_sets_its_rule)
{
	size_t i;

	for (i = 0; i < COUNT_OF(instructions); i++) {
		const struct instruction *in = &instructions[i];
		struct eh_frame *tables = one(&usual, in->program, in->n);
		const struct eh_rule *got;
		struct eh_row row;

		assert_non_null(tables);
		assert_int_equal(row_at(tables, CODE + 16, &row), EH_OK);
		got = in->reg == CFA ? &row.cfa : &row.regs[in->reg];
		if (memcmp(got, &in->expected, sizeof(*got)) != 0)
			fail_msg("%s: how %u reg %u value %d", in->name, got->how, got->reg,
				 got->value);
		eh_frame_free(tables);
	}
}

TEST(expressions_are_kept_by_their_place)
{
	static const uint8_t program[] = {0x0f, 2, 0x77, 8, 0x10, 6, 1, 0x57, 0x16, 3, 1, 0x30};
	static const uint8_t opcodes[] = {0x77, 0x57, 0x30};
	struct eh_frame *tables = one(&usual, program, sizeof(program));
	struct eh_row row;
	unsigned i;

	assert_int_equal(row_at(tables, CODE, &row), EH_OK);
	assert_int_equal(row.cfa.how, EH_EXPRESSION);
	assert_int_equal(row.regs[EH_RBP].how, EH_AT_EXPRESSION);
	assert_int_equal(row.regs[EH_RBX].how, EH_EXPRESSION);
	for (i = 0; i < 3; i++) {
		const struct eh_rule *rules[] = {&row.cfa, &row.regs[EH_RBP], &row.regs[EH_RBX]};
		const uint8_t *bytes;
		size_t n;

		assert_true(eh_frame_expression(tables, rules[i]->value, &bytes, &n));
		assert_int_equal(n, i ? 1 : 2);
		assert_int_equal(bytes[0], opcodes[i]);
	}
	assert_false(eh_frame_expression(tables, -1, &(const uint8_t *){NULL}, &(size_t){0}));
	eh_frame_free(tables);
}

/* push %rbp; mov %rsp,%rbp; ...; pop; ret, as GCC describes it. */
TEST(rows_hold_between_their_addresses)
{
	static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x7f, 0x0c, 7, 8};
	struct eh_frame *tables = one(&usual, program, sizeof(program));
	struct eh_row row;

	assert_int_equal(row_at(tables, CODE, &row), EH_OK);
	assert_true(row.start == CODE && row.end == CODE + 1 && row.cfa.value == 8);
	assert_int_equal(row_at(tables, CODE + 3, &row), EH_OK);
	assert_true(row.start == CODE + 1 && row.end == CODE + 4 && row.cfa.value == 16);
	assert_int_equal(row_at(tables, CODE + 4, &row), EH_OK);
	assert_true(row.cfa.reg == EH_RBP && row.end == CODE + 4 + 63);
	assert_int_equal(row_at(tables, CODE + 0xff, &row), EH_OK);
	assert_true(row.start == CODE + 67 && row.end == CODE + 0x100 && row.cfa.reg == EH_RSP);
	assert_int_equal(row.regs[EH_RBP].value, -16);
	assert_int_equal(row_at(tables, CODE + 0x100, &row), EH_NONE);
	assert_int_equal(row_at(tables, CODE - 1, &row), EH_NONE);
	assert_int_equal(row_at(tables, 0, &row), EH_NONE);
	assert_int_equal(row_at(tables, UINT64_MAX, &row), EH_NONE);
	eh_frame_free(tables);
}

TEST(set_loc_moves_to_an_address)
{
	static const uint8_t program[] = {0x01, 0x10, 0x40, 0, 0, 0, 0, 0, 0, 0x0e, 32};
	const struct cfi_cie absolute = {.encoding = CFI_ABSOLUTE};
	struct eh_frame *tables = one(&absolute, program, sizeof(program));
	struct eh_row row;

	assert_int_equal(row_at(tables, CODE + 0xf, &row), EH_OK);
	assert_int_equal(row.cfa.value, 8);
	assert_int_equal(row_at(tables, CODE + 0x10, &row), EH_OK);
	assert_int_equal(row.cfa.value, 32);
	eh_frame_free(tables);
}

TEST(code_alignment_multiplies_addresses)
{
	static const uint8_t program[] = {0x42, 0x0e, 32};
	const struct cfi_cie by4 = {.code_align = 4, .data_align = -4};
	struct eh_frame *tables = one(&by4, program, sizeof(program));
	struct eh_row row;

	assert_int_equal(row_at(tables, CODE + 7, &row), EH_OK);
	assert_int_equal(row.cfa.value, 8);
	assert_int_equal(row.regs[EH_RIP].value, -4);
	assert_int_equal(row_at(tables, CODE + 8, &row), EH_OK);
	assert_int_equal(row.cfa.value, 32);
	eh_frame_free(tables);
}

struct refused {
	const char *why;
	uint8_t program[24];
	size_t n;
};

static const struct refused refused[] = {
	{"an opcode of nobody", {0x3f}, 1},
	{"an opcode of another machine", {0x2d}, 1},
	{"restore_state without remember_state", {0x0b}, 1},
	{"remembered nine times", {10, 10, 10, 10, 10, 10, 10, 10, 10}, 9},
	{"CFA in a register that is not followed", {0x0c, 17, 8}, 3},
	{"CFA offset of 64 bits", {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 8},
	{"CFA offset after an expression", {0x0f, 1, 0x30, 0x0e, 8}, 5},
	{"slot of 64 bits", {0x83, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 8},
	{"expression past the end", {0x0f, 0x7f, 0x77}, 3},
	{"a number without end", {0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
				  0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, 19},
	{"going back", {0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9},
};

TEST(programs_that_make_no_sense_are_refused)
{
	struct eh_row row;
	size_t i;

	for (i = 0; i < COUNT_OF(refused); i++) {
		struct eh_frame *tables = one(&usual, refused[i].program, refused[i].n);

		if (row_at(tables, CODE + 16, &row) != EH_BAD)
			fail_msg("%s was not refused", refused[i].why);
		eh_frame_free(tables);
	}
}

TEST(program_ends_with_its_budget)
{
	static uint8_t nops[1000];
	struct eh_frame *tables = one(&usual, nops, sizeof(nops));
	uint32_t budget = 1100;
	struct eh_row row;

	assert_int_equal(eh_frame_row(tables, CODE, &budget, &row), EH_OK);
	assert_in_range(budget, 80, 97);
	assert_int_equal(eh_frame_row(tables, CODE, &budget, &row), EH_BAD);
	assert_int_equal(budget, 0);
	eh_frame_free(tables);
}

/* ---- heads ----------------------------------------------------------------------------------- */

static const struct cfi_cie heads[] = {
	{.version = 1},
	{.version = 3},
	{.version = 4},
	{.is64 = true},
	{.augmentation = ""},
	{.augmentation = "eh"},
	{.augmentation = "zPLR"},
	{.augmentation = "zRB"},
	{.augmentation = "zRX"},        /* unknown letters are skipped by length */
	{.augmentation = "z"},
	{.encoding = CFI_ABSOLUTE},
	{.encoding = 0x01},
	{.encoding = 0x02},
	{.encoding = 0x03},
	{.encoding = 0x04},
	{.encoding = 0x0a},
	{.encoding = 0x0b},
	{.encoding = 0x0c},
	{.encoding = 0x09},
	{.encoding = 0x1c},
	{.encoding = 0x19},
	{.encoding = 0x3b},
};

TEST(each_head_and_encoding_is_read)
{
	static const uint8_t program[] = {0x44, 0x0e, 24};
	struct eh_row row;
	size_t i;

	for (i = 0; i < COUNT_OF(heads); i++) {
		struct eh_frame *tables = one(&heads[i], program, sizeof(program));
		uint64_t start = 0, end = 0;

		assert_non_null(tables);
		if (!eh_frame_range(tables, 0, &start, &end) || start != CODE ||
		    end != CODE + 0x100)
			fail_msg("head %u: %#x-%#x", (unsigned)i, (unsigned)start, (unsigned)end);
		assert_int_equal(row_at(tables, CODE + 4, &row), EH_OK);
		assert_int_equal(row.cfa.value, 24);
		assert_false(row.signal);
		assert_int_equal(row.return_column, EH_RIP);
		eh_frame_free(tables);
	}
}

TEST(signal_frame_is_marked)
{
	const struct cfi_cie cie = {.augmentation = "zRS"};
	struct eh_frame *tables = one(&cie, NULL, 0);
	struct eh_row row;

	assert_int_equal(row_at(tables, CODE, &row), EH_OK);
	assert_true(row.signal);
	eh_frame_free(tables);
}

static const struct cfi_cie wrong_heads[] = {
	{.version = 2},
	{.version = 5},
	{.augmentation = "R"},
	{.augmentation = "armcc+"},
	{.augmentation = "zRRRRRRRRRRRRRRRRRRRR"},
	{.return_column = 17},
	{.encoding = 0x5b},             /* aligned */
	{.encoding = 0x9b},             /* indirect */
	{.encoding = 0x05},
};

TEST(heads_that_are_not_understood_give_no_row)
{
	struct eh_row row;
	size_t i;

	for (i = 0; i < COUNT_OF(wrong_heads); i++) {
		struct eh_frame *tables = one(&wrong_heads[i], NULL, 0);

		assert_non_null(tables);
		if (row_at(tables, CODE, &row) != EH_BAD)
			fail_msg("head %u was accepted", (unsigned)i);
		eh_frame_free(tables);
	}
}

/* ---- the index ------------------------------------------------------------------------------- */

static struct eh_frame *three(enum cfi_index index)
{
	static const uint8_t a[] = {0x0e, 16}, b[] = {0x0e, 32}, c[] = {0x0e, 48};
	struct cfi cfi = {.vaddr = BASE};

	cfi_put_cie(&cfi, &usual);
	cfi_put_fde(&cfi, CODE + 0x200, 0x80, b, sizeof(b));
	cfi_put_fde(&cfi, CODE + 0x400, 0x80, c, sizeof(c));
	cfi_put_fde(&cfi, CODE, 0x80, a, sizeof(a));
	return cfi_tables(&cfi, index);
}

TEST(index_is_used_or_built)
{
	static const enum cfi_index kinds[] = {CFI_SORTED, CFI_UNSORTED, CFI_OTHER_ENCODING,
					       CFI_NONE};
	unsigned i, f;

	for (i = 0; i < 4; i++) {
		struct eh_frame *tables = three(kinds[i]);
		struct eh_row row;

		assert_non_null(tables);
		assert_int_equal(eh_frame_count(tables), 3);
		assert_true(eh_frame_first(tables) == CODE);
		for (f = 0; f < 3; f++) {
			assert_int_equal(row_at(tables, CODE + 0x200 * f + 0x7f, &row), EH_OK);
			assert_int_equal(row.cfa.value, 16 * (f + 1));
			assert_int_equal(row_at(tables, CODE + 0x200 * f + 0x80, &row), EH_NONE);
		}
		eh_frame_free(tables);
	}
}

TEST(header_says_where_the_frames_are)
{
	struct eh_sections s;
	struct cfi c = {.vaddr = BASE};
	uint64_t vaddr = 0;

	cfi_put_cie(&c, &usual);
	cfi_put_fde(&c, CODE, 1, NULL, 0);
	cfi_sections(&c, CFI_SORTED, &s);
	assert_true(eh_frame_pointer(s.header, s.header_bytes, s.header_vaddr, &vaddr));
	assert_true(vaddr == BASE);
	assert_false(eh_frame_pointer(s.header, 7, s.header_vaddr, &vaddr));
	assert_false(eh_frame_pointer(NULL, 0, 0, &vaddr));
	s.header[0] = 2;
	assert_false(eh_frame_pointer(s.header, s.header_bytes, s.header_vaddr, &vaddr));
	free(s.header);
	free(s.frames);
}

/* As Go 1.19 writes it: a CIE of version 3 and two functions, by absolute addresses. */
TEST(debug_frame_is_read_as_well)
{
	static const uint8_t section[] = {
		0x10, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0x7c, 16, 0x0c, 7, 8,
		5, 16, 2, 0,
		0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x40, 0, 0, 0, 0, 0,
		0x59, 0, 0, 0, 0, 0, 0, 0, 0x13, 0x7e, 0x4a, 0x13, 0x78, 0, 0, 0,
		0x1c, 0, 0, 0, 0, 0, 0, 0, 0x60, 0x10, 0x40, 0, 0, 0, 0, 0,
		0x20, 0, 0, 0, 0, 0, 0, 0, 0x13, 0x7e, 0, 0, 0, 0, 0, 0};
	struct eh_frame *tables;
	struct eh_sections s;
	struct eh_row row;
	size_t cut;

	for (cut = 0; cut <= sizeof(section); cut++) {
		s = (struct eh_sections){.frames_bytes = cut, .frames = malloc(cut ? cut : 1)};
		assert_non_null(s.frames);
		memcpy(s.frames, section, cut);
		eh_frame_of_debug_frame(s.frames, cut);
		tables = NULL;
		if (eh_frame_new(&s, &tables, NULL) == 0 && cut == sizeof(section)) {
			assert_int_equal(eh_frame_count(tables), 2);
			assert_int_equal(row_at(tables, 0x401009, &row), EH_OK);
			assert_int_equal(row.cfa.value, 8);
			assert_int_equal(row_at(tables, 0x40100a, &row), EH_OK);
			assert_int_equal(row.cfa.value, 32);
			assert_int_equal(row.cfa.reg, EH_RSP);
			assert_int_equal(row.regs[EH_RIP].how, EH_AT);
			assert_int_equal(row_at(tables, 0x401058, &row), EH_OK);
			assert_int_equal(row_at(tables, 0x401059, &row), EH_NONE);
			assert_int_equal(row_at(tables, 0x40107f, &row), EH_OK);
		}
		assert_true(cut != sizeof(section) || tables);
		eh_frame_free(tables);
	}
}

TEST(each_tables_have_their_own_number)
{
	struct eh_frame *a = three(CFI_SORTED), *b = three(CFI_SORTED);

	assert_int_not_equal(eh_frame_id(a), eh_frame_id(b));
	assert_in_range(eh_frame_bytes(a), 100, 2500);
	eh_frame_free(a);
	eh_frame_free(b);
	eh_frame_free(NULL);
}

TEST(tables_without_a_function_are_an_error)
{
	struct eh_frame *tables = NULL;
	struct eh_sections s = {0};
	struct err err;

	assert_int_equal(eh_frame_new(&s, &tables, &err), ERR_FORMAT);
	assert_string_equal(err.text, "its .eh_frame is empty");
	s.frames = calloc(1, 64);
	s.frames_bytes = 64;
	assert_int_equal(eh_frame_new(&s, &tables, &err), ERR_FORMAT);
	assert_string_equal(err.text, "its .eh_frame describes no functions");
	s.frames = calloc(1, 1);
	s.frames_bytes = EH_FRAME_MAX_BYTES + 1;
	assert_int_equal(eh_frame_new(&s, &tables, &err), ERR_LIMIT);
	assert_null(tables);
}

/* Every cut of the sections is survived; what is found lies inside its function. */
TEST(cut_sections_are_survived)
{
	size_t cut;

	for (cut = 1; cut < 130; cut++) {
		struct eh_frame *tables = NULL;
		struct cfi c = {.vaddr = BASE};
		struct eh_sections s;
		struct eh_row row;

		cfi_put_cie(&c, &(struct cfi_cie){.augmentation = "zPLR"});
		cfi_put_fde(&c, CODE, 0x80, (const uint8_t *)"\x44\x0e\x10\x83\x02", 5);
		cfi_put_fde(&c, CODE + 0x80, 0x80, (const uint8_t *)"\x44\x0f\x02\x77\x08", 5);
		cfi_sections(&c, cut % 2 ? CFI_SORTED : CFI_NONE, &s);
		s.frames = realloc(s.frames, cut);
		s.frames_bytes = cut < s.frames_bytes ? cut : s.frames_bytes;
		if (eh_frame_new(&s, &tables, NULL))
			continue;
		if (row_at(tables, CODE + 5, &row) == EH_OK)
			assert_true(row.start == CODE + 4 && row.end == CODE + 0x80);
		row_at(tables, CODE + 0x85, &row);
		eh_frame_free(tables);
	}
}

static int make_and_free(void *ctx)
{
	struct eh_frame *tables = NULL;
	struct eh_sections *s = ctx, copy = *s;
	int rc;

	copy.frames = malloc(s->frames_bytes);
	if (!copy.frames)
		return ERR_MEMORY;
	memcpy(copy.frames, s->frames, s->frames_bytes);
	rc = eh_frame_new(&copy, &tables, NULL);
	eh_frame_free(tables);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	struct cfi c = {.vaddr = BASE};
	struct eh_sections s;

	cfi_put_cie(&c, &usual);
	cfi_put_fde(&c, CODE, 0x80, NULL, 0);
	cfi_sections(&c, CFI_NONE, &s);
	assert_int_equal(alloc_walk(make_and_free, &s), 5);
	free(s.frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_sets_its_rule),
		cmocka_unit_test(expressions_are_kept_by_their_place),
		cmocka_unit_test(rows_hold_between_their_addresses),
		cmocka_unit_test(set_loc_moves_to_an_address),
		cmocka_unit_test(code_alignment_multiplies_addresses),
		cmocka_unit_test(programs_that_make_no_sense_are_refused),
		cmocka_unit_test(program_ends_with_its_budget),
		cmocka_unit_test(each_head_and_encoding_is_read),
		cmocka_unit_test(signal_frame_is_marked),
		cmocka_unit_test(heads_that_are_not_understood_give_no_row),
		cmocka_unit_test(index_is_used_or_built),
		cmocka_unit_test(header_says_where_the_frames_are),
		cmocka_unit_test(debug_frame_is_read_as_well),
		cmocka_unit_test(each_tables_have_their_own_number),
		cmocka_unit_test(tables_without_a_function_are_an_error),
		cmocka_unit_test(cut_sections_are_survived),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
