/*
 * Functions that no FDE describes, by their code: _init and __do_global_dtors_aux as in Debian 12's
 * libraries (objdump -d of libtinfo.so.6.4), and how the following of code ends.
 */
#include "tests/support/test.h"
#include "tests/support/unwind_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* endbr64; sub $8, %rsp; mov (%rip), %rax; test; je; call *%rax; add $8, %rsp; ret */
static const uint8_t init[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8,    0x48,
			       0x8b, 0x05, 1,	 2,    3,    0,	   0x48, 0x85, 0xc0,
			       0x74, 2,	   0xff, 0xd0, 0x48, 0x83, 0xc4, 8,    0xc3};

/* cmpb; jne; push %rbp; cmpq; mov %rsp, %rbp; je; mov; call; call; movb; pop %rbp; ret; nop */
static const uint8_t aux[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x80, 0x3d, 0x45, 0x2a, 2,    0,	  0,
			      0x75, 0x2b, 0x55, 0x48, 0x83, 0x3d, 0x4a, 0x25, 2,    0,	  0,
			      0x48, 0x89, 0xe5, 0x74, 0x0c, 0x48, 0x8b, 0x3d, 0x6e, 0x25, 2,
			      0,    0xe8, 0x61, 0xff, 0xff, 0xff, 0xe8, 0x64, 0xff, 0xff, 0xff,
			      0xc6, 0x05, 0x1d, 0x2a, 2,    0,	  1,	0x5d, 0xc3, 0x0f};

static struct unwind_lab lab;

static int open_lab(void **state)
{
	(void)state;
	unwind_lab_open(&lab);
	return 0;
}

static int close_lab(void **state)
{
	(void)state;
	unwind_lab_close(&lab);
	return 0;
}

static void add(const uint8_t *code, size_t n)
{
	eh_frame_add_code(lab.tables, LAB_BARE - LAB_CODE, code, n);
}

/* "0 at 4": the depth, "r" where RBP is saved; "?" = not known. */
static const char *at(uint32_t offset)
{
	static char text[16];
	const struct eh_code *code = eh_frame_find_code(lab.tables, LAB_BARE - LAB_CODE + offset);

	if (!code)
		return "?";
	snprintf(text, sizeof(text), "%u%s", code->depth, code->rbp_saved ? "r" : "");
	return text;
}

TEST(depth_of_init_is_known_at_each_instruction)
{
	add(init, sizeof(init));
	assert_string_equal(at(0), "0");
	assert_string_equal(at(4), "0");
	assert_string_equal(at(8), "8");
	/* the last byte of the call: where a caller is looked up */
	assert_string_equal(at(21), "8");
	assert_string_equal(at(22), "8");
	assert_string_equal(at(26), "0");
	assert_string_equal(at(27), "?");
}

TEST(rbp_is_known_between_push_and_pop)
{
	add(aux, sizeof(aux));
	assert_string_equal(at(4), "0");
	assert_string_equal(at(13), "0");
	assert_string_equal(at(14), "8r");
	assert_string_equal(at(44), "8r");
	assert_string_equal(at(51), "8r");
	assert_string_equal(at(52), "0");
	assert_string_equal(at(53), "?");
}

/* Called by SUB24, which the root called. RBP is not what frame pointers would follow. */
TEST(interrupted_functions_are_left_exactly)
{
	add(aux, sizeof(aux));
	lab.stack[10] = LAB_SUB24 + 8;
	lab.stack[14] = LAB_ROOT + 5;
	unwind_lab_leaf(&lab, LAB_BARE, 10);
	unwind_lab_walk(&lab);
	assert_int_equal(lab.out.quality, QUALITY_COMPLETE);
	assert_int_equal(lab.out.nframes, 3);
	assert_int_equal(lab.out.nframe_pointer, 0);
	lab.stack[9] = 0;
	unwind_lab_leaf(&lab, LAB_BARE + 44, 9);
	unwind_lab_walk(&lab);
	assert_int_equal(lab.out.quality, QUALITY_COMPLETE);
	assert_int_equal(lab.out.nframes, 3);
}

/* USUAL's CFA is in RBP, which the function had saved. */
TEST(callers_rbp_comes_from_the_stack)
{
	add(aux, sizeof(aux));
	lab.stack[9] = unwind_lab_at(20);
	lab.stack[10] = LAB_USUAL + 8;
	lab.stack[21] = LAB_ROOT + 5;
	unwind_lab_leaf(&lab, LAB_BARE + 27, 9);
	unwind_lab_walk(&lab);
	assert_int_equal(lab.out.quality, QUALITY_COMPLETE);
	assert_int_equal(lab.out.nframes, 3);
}

TEST(following_ends_at_what_it_does_not_know)
{
	/* sub; syscall; ret */
	static const uint8_t odd[] = {0x48, 0x83, 0xec, 0x18, 0x0f, 0x05, 0xc3};
	static const uint8_t to_rsp[] = {0x48, 0x8b, 0x25, 0, 0, 0, 0, 0xc3}; /* mov (%rip), %rsp */
	static const uint8_t pops[] = {0x48, 0x83, 0xc4, 8, 0xc3};            /* below its frame */

	add(odd, sizeof(odd));
	assert_string_equal(at(0), "0");
	assert_string_equal(at(4), "?");
	eh_frame_add_code(lab.tables, LAB_BARE + 0x20 - LAB_CODE, to_rsp, sizeof(to_rsp));
	assert_string_equal(at(0x20), "0");
	assert_string_equal(at(0x27), "?");
	eh_frame_add_code(lab.tables, LAB_BARE + 0x40 - LAB_CODE, pops, sizeof(pops));
	assert_string_equal(at(0x40), "0");
	assert_string_equal(at(0x44), "?");
}

TEST(code_that_is_cut_off_or_described_adds_nothing)
{
	size_t n;

	for (n = 0; n < 4; n++)
		add(init, n);
	assert_string_equal(at(0), "?");
	eh_frame_add_code(lab.tables, LAB_SUB24 - LAB_CODE, init, sizeof(init));
	assert_null(eh_frame_find_code(lab.tables, LAB_SUB24 - LAB_CODE));
	for (n = 0; n < 100; n++)
		add(init, sizeof(init));
	assert_string_equal(at(8), "8");        /* a ceiling, and no harm */
}

/*
 * The kernel is in rt_sigreturn for the restorer, whose FDE ends with that instruction: the
 * interrupted function is BY_RBX, at its first byte.
 */
TEST(return_from_a_signal_is_left_to_what_was_interrupted)
{
	const uint32_t context = 4;

	unwind_lab_leaf(&lab, LAB_RESTORER + 0xf0, context);
	lab.stack[context + 16] = unwind_lab_at(50);                    /* rbx */
	lab.stack[context + 20] = unwind_lab_at(40);                    /* rsp */
	lab.stack[context + 21] = LAB_BY_RBX;
	lab.stack[51] = LAB_SUB24 + 8;
	lab.stack[55] = LAB_ROOT + 5;
	unwind_lab_walk(&lab);
	assert_int_equal(lab.out.quality, QUALITY_COMPLETE);
	assert_int_equal(lab.out.nframes, 4);
	assert_true(lab.out.frames[1].offset == LAB_BY_RBX - LAB_CODE);
}

#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(depth_of_init_is_known_at_each_instruction),
		IN_LAB(rbp_is_known_between_push_and_pop),
		IN_LAB(interrupted_functions_are_left_exactly),
		IN_LAB(callers_rbp_comes_from_the_stack),
		IN_LAB(following_ends_at_what_it_does_not_know),
		IN_LAB(code_that_is_cut_off_or_described_adds_nothing),
		IN_LAB(return_from_a_signal_is_left_to_what_was_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
