/*
 * .pdata and UNWIND_INFO, by hand: one function at 0x1000, what its prologue did, and where it
 * stands.
 */
#include "unwind/pe_pdata.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <string.h>

enum {
	CODE = 0x1000,
	CODE_END = 0x1100,
	PDATA = 0x2000,
	INFO = 0x3000,
	STACK = 0x7000,
	WORDS = 64
};
enum { RBX = 3, RSI = 6 };

static struct lab {
	uint8_t code[CODE_END - CODE], pdata[24], info[128];
	uint64_t stack[WORDS];
	struct pe_range ranges[3];
	struct pe_tables tables;
	struct pe_registers regs;
	struct stack_view view;
} lab;

static void put_u32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

/* A thread at CODE + at, whose stack holds 100, 101, ...; code of nops. */
static void set_up(uint32_t at, const uint8_t *info, size_t n)
{
	memset(&lab, 0, sizeof(lab));
	memset(lab.code, 0x90, sizeof(lab.code));
	put_u32(lab.pdata, CODE);
	put_u32(lab.pdata + 4, CODE_END);
	put_u32(lab.pdata + 8, INFO);
	memcpy(lab.info, info, n);
	for (unsigned i = 0; i < WORDS; i++)
		lab.stack[i] = 100 + i;
	lab.ranges[0] = (struct pe_range){CODE, sizeof(lab.code), lab.code};
	lab.ranges[1] = (struct pe_range){PDATA, 12, lab.pdata};
	lab.ranges[2] = (struct pe_range){INFO, sizeof(lab.info), lab.info};
	lab.tables = (struct pe_tables){lab.ranges, 3, PDATA, 12};
	lab.regs = (struct pe_registers){.rip = CODE + at, .interrupted = true};
	lab.regs.r[PE_RSP] = STACK;
	lab.view = (struct stack_view){.bytes = (const uint8_t *)lab.stack, .start = STACK,
				       .nbytes = sizeof(lab.stack)};
}

#define SET_UP(at, ...) \
	set_up(at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static enum pe_step step(void)
{
	return pe_step(&lab.tables, (uint32_t)lab.regs.rip, &lab.regs, &lab.view);
}

static void assert_caller(uint64_t rip, uint64_t rsp_words)
{
	assert_int_equal(step(), PE_STEP_ON);
	assert_int_equal(lab.regs.rip, rip);
	assert_int_equal(lab.regs.r[PE_RSP], STACK + 8 * rsp_words);
	assert_false(lab.regs.interrupted);
}

/* push rbx (ends at 1); push rsi (2); sub rsp, 0x20 (6) */
#define PUSHES 1, 6, 3, 0, 6, 0x32, 2, 0x60, 1, 0x30

TEST(the_prologue_is_undone_last_first)
{
	SET_UP(0x50, PUSHES);
	assert_caller(106, 7);
	assert_int_equal(lab.regs.r[RSI], 104);
	assert_int_equal(lab.regs.r[RBX], 105);
}

TEST(inside_the_prologue_what_is_done_is_undone)
{
	SET_UP(0, PUSHES);
	assert_caller(100, 1);
	SET_UP(1, PUSHES);
	assert_caller(101, 2);
	assert_int_equal(lab.regs.r[RBX], 100);
	SET_UP(2, PUSHES);
	assert_caller(102, 3);
	SET_UP(6, PUSHES);
	assert_caller(106, 7);
}

/* A call on the prologue's bytes returns behind it all the same. */
TEST(a_frame_that_called_has_its_whole_prologue_behind_it)
{
	SET_UP(2, PUSHES);
	lab.regs.interrupted = false;
	assert_caller(106, 7);
}

TEST(large_frames_come_in_two_sizes)
{
	SET_UP(0x50, 1, 7, 2, 0, 7, 0x01, 10, 0);            /* 10 words */
	assert_caller(110, 11);
	SET_UP(0x50, 1, 7, 3, 0, 7, 0x11, 0xa0, 0, 0, 0);    /* 0xa0 bytes */
	assert_caller(120, 21);
}

/* push rbp; lea rbp, [rsp + 0x10] with the frame at RBP - 0x10; mov [rsp + 8], rbx */
#define FRAMED 1, 9, 4, 0x15, 9, 0x34, 1, 0, 6, 0x03, 1, 0x50

TEST(a_frame_register_counts_once_it_is_set)
{
	SET_UP(0x50, FRAMED);
	lab.regs.r[PE_RBP] = STACK + 8 * 10 + 0x10;
	assert_caller(111, 12);
	assert_int_equal(lab.regs.r[RBX], 111);
	assert_int_equal(lab.regs.r[PE_RBP], 110);
	SET_UP(1, FRAMED);
	lab.regs.r[PE_RBP] = 5;
	assert_caller(101, 2);
	assert_int_equal(lab.regs.r[PE_RBP], 100);
}

TEST(a_description_may_go_on_in_another)
{
	/* sub rsp, 8 here; the rest as PUSHES, which stands 0x40 behind */
	SET_UP(0x50, 1 | 4 << 3, 4, 1, 0, 4, 0x02, 0, 0);
	put_u32(lab.info + 8, CODE);
	put_u32(lab.info + 12, CODE_END);
	put_u32(lab.info + 16, INFO + 0x40);
	memcpy(lab.info + 0x40, (const uint8_t[]){PUSHES}, 10);
	assert_caller(107, 8);
	/* for ever */
	put_u32(lab.info + 16, INFO);
	lab.regs =
		(struct pe_registers){.rip = CODE + 0x50, .interrupted = true, .r[PE_RSP] = STACK};
	assert_int_equal(step(), PE_STEP_BROKEN);
}

TEST(an_entry_may_point_to_another)
{
	SET_UP(0x50, PUSHES);
	put_u32(lab.info + 0x20, CODE);
	put_u32(lab.info + 0x24, CODE_END);
	put_u32(lab.info + 0x28, INFO);
	put_u32(lab.pdata + 8, (INFO + 0x20) | 1);
	assert_caller(106, 7);
}

TEST(an_interrupt_left_all_on_the_stack)
{
	SET_UP(0x50, 1, 0, 1, 0, 0, 0x1a);
	lab.stack[4] = STACK + 0x100;
	assert_int_equal(step(), PE_STEP_ON);
	assert_int_equal(lab.regs.rip, 101);
	assert_int_equal(lab.regs.r[PE_RSP], STACK + 0x100);
	assert_true(lab.regs.interrupted);
}

static void put_code(uint32_t at, const uint8_t *bytes, size_t n)
{
	memcpy(lab.code + at, bytes, n);
}

#define PUT_CODE(at, ...) \
	put_code(at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* add rsp, 0x20; pop rsi; pop rbx; and how it leaves */
TEST(an_epilogue_is_followed_from_each_of_its_instructions)
{
	static const uint8_t leave[][8] = {{0xc3}, {0xe9, 0, 0, 1, 0}, {0xeb, 0x7f}, {0xff, 0x25},
					   {0x48, 0xff, 0xe0}, {0xf3, 0xc3}};
	static const uint8_t at[] = {0x80, 0x84, 0x85, 0x86}, left[] = {6, 2, 1, 0};

	for (unsigned i = 0; i < COUNT_OF(leave); i++) {
		for (unsigned k = 0; k < sizeof(at); k++) {
			SET_UP(at[k], PUSHES);
			PUT_CODE(0x80, 0x48, 0x83, 0xc4, 0x20, 0x5e, 0x5b);
			put_code(0x86, leave[i], sizeof(leave[i]));
			assert_caller(100 + left[k], left[k] + 1);
		}
	}
}

TEST(what_only_looks_like_an_epilogue_is_none)
{
	SET_UP(0x80, PUSHES);
	PUT_CODE(0x80, 0x5e, 0x48, 0x83, 0xc4, 0x20, 0xc3);  /* RSP is set first or not at all */
	assert_caller(106, 7);
	SET_UP(0x80, PUSHES);
	PUT_CODE(0x80, 0x5e, 0xeb, 0xf0);                    /* a jump inside the function */
	assert_caller(106, 7);
	SET_UP(0xfc, PUSHES);                                /* its code is not there to its end */
	assert_caller(106, 7);
}

TEST(code_without_an_entry_is_a_leaf)
{
	SET_UP(0x200, PUSHES);
	assert_caller(100, 1);
	SET_UP(0x200, PUSHES);
	lab.regs.interrupted = false;                        /* a leaf does not call */
	assert_int_equal(step(), PE_STEP_BROKEN);
}

TEST(what_makes_no_sense_leaves_the_registers_alone)
{
	static const uint8_t bad[][8] = {
		{0, 0, 0, 0}, {3, 0, 0, 0},                  /* versions */
		{1, 0, 1, 0, 0, 0x0b},                       /* operation 11 */
		{1, 0, 1, 0, 0, 0x21},                       /* a large frame of a third kind */
		{1, 0, 1, 0, 0, 0x01},                       /* its number is not there */
	};

	for (unsigned i = 0; i < COUNT_OF(bad); i++) {
		set_up(0x50, bad[i], sizeof(bad[i]));
		assert_int_equal(step(), PE_STEP_BROKEN);
		assert_int_equal(lab.regs.rip, CODE + 0x50);
		assert_int_equal(lab.regs.r[PE_RSP], STACK);
	}
	SET_UP(0x50, PUSHES);
	put_u32(lab.pdata + 8, 0x900000);                    /* no such place */
	assert_int_equal(step(), PE_STEP_BROKEN);
	SET_UP(0x50, PUSHES);
	lab.view.nbytes = 40;                                /* the copy ends before the caller */
	assert_int_equal(step(), PE_STEP_UNREADABLE);
	assert_int_equal(lab.view.missing, STACK + 40);
}

static const struct pe_tables *find(void *ctx, uint64_t address, uint32_t *rva)
{
	(void)ctx;
	*rva = (uint32_t)address;
	return address >= CODE && address < CODE_END ? &lab.tables : NULL;
}

/* PUSHES, called by generated code with a frame pointer, called by PUSHES, called by nobody. */
TEST(a_walk_crosses_generated_code_by_its_frame_pointer)
{
	struct pe_frame frames[8];
	enum pe_step end;

	SET_UP(0x50, PUSHES);
	lab.stack[6] = 0x900010;                             /* into generated code */
	lab.regs.r[PE_RBP] = STACK + 8 * 9;
	lab.stack[9] = 0x1234;
	lab.stack[10] = CODE + 0x60;
	lab.stack[17] = 0;
	assert_int_equal(pe_walk(&lab.regs, &lab.view, find, NULL, frames, 8, &end), 3);
	assert_int_equal(end, PE_STEP_ON);
	assert_int_equal(frames[0].address, CODE + 0x50);
	assert_false(frames[0].returns);
	assert_int_equal(frames[1].address, 0x900010);
	assert_int_equal(frames[2].address, CODE + 0x60);
	assert_true(frames[2].returns);
	assert_int_equal(lab.regs.r[PE_RBP], 0x1234);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_prologue_is_undone_last_first),
		cmocka_unit_test(inside_the_prologue_what_is_done_is_undone),
		cmocka_unit_test(a_frame_that_called_has_its_whole_prologue_behind_it),
		cmocka_unit_test(large_frames_come_in_two_sizes),
		cmocka_unit_test(a_frame_register_counts_once_it_is_set),
		cmocka_unit_test(a_description_may_go_on_in_another),
		cmocka_unit_test(an_entry_may_point_to_another),
		cmocka_unit_test(an_interrupt_left_all_on_the_stack),
		cmocka_unit_test(an_epilogue_is_followed_from_each_of_its_instructions),
		cmocka_unit_test(what_only_looks_like_an_epilogue_is_none),
		cmocka_unit_test(code_without_an_entry_is_a_leaf),
		cmocka_unit_test(what_makes_no_sense_leaves_the_registers_alone),
		cmocka_unit_test(a_walk_crosses_generated_code_by_its_frame_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
