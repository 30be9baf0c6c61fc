/* RBP by a function's code: beginnings of functions as GCC 12 and clang 14 make them (objdump). */
#include "tests/support/test.h"
#include "unwind/prologue.h"

#include <stdlib.h>
#include <string.h>

/* RBP - RSP after the code, from a buffer of that size; -1 = not known. */
static int depth_of(const char *code, size_t n)
{
	uint8_t *bytes = malloc(n ? n : 1);
	uint32_t depth = 0;
	bool known;

	memcpy(bytes, code, n);
	known = prologue_depth(bytes, n, &depth);
	free(bytes);
	return known ? (int)depth : -1;
}

#define DEPTH(code) depth_of(code, sizeof(code) - 1)

#define PUSH_RBP "\x55"
#define MAKE PUSH_RBP "\x48\x89\xe5"            /* push %rbp; mov %rsp, %rbp */

TEST(pushes_and_a_subtraction_are_the_depth)
{
	assert_int_equal(DEPTH(MAKE), 0);
	assert_int_equal(DEPTH("\xf3\x0f\x1e\xfa" MAKE "\x48\x83\xec\x18"), 0x18);
	/* push r15, r14; mov edi, r14d; push rbx; sub $0x1008 */
	assert_int_equal(DEPTH(MAKE "\x41\x57\x41\x56\x41\x89\xfe\x53\x48\x81\xec\x08\x10\0\0"),
			 24 + 0x1008);
	/* add $-128: shorter than sub $128 */
	assert_int_equal(DEPTH(MAKE "\x48\x83\xc4\x80"), 128);
	/* sub $4096; orq $0, (%rsp); sub $16: each page is touched */
	assert_int_equal(DEPTH(MAKE "\x48\x81\xec\0\x10\0\0\x48\x83\x0c\x24\0\x48\x83\xec\x10"),
			 4112);
}

TEST(other_instructions_between_do_not_matter)
{
	/* mov %fs:0x28, rax; mov rax, -8(%rbp); xor eax, eax; lea 8(%rdi,%rsi,4), rcx */
	assert_int_equal(DEPTH(MAKE "\x48\x83\xec\x20\x64\x48\x8b\x04\x25\x28\0\0\0"
				    "\x48\x89\x45\xf8\x31\xc0\x48\x8d\x4c\xb7\x08\x53"), 0x28);
	/* test edi, edi; je; push rbp...: an early return comes first */
	assert_int_equal(DEPTH("\x85\xff\x74\x20" MAKE "\x53"), 8);
}

TEST(what_comes_after_a_call_or_jump_is_not_counted)
{
	assert_int_equal(DEPTH(MAKE "\x53\xe8\x01\x02\x03\x04\x48\x83\xec\x20"), 8);
	assert_int_equal(DEPTH(MAKE "\x53\x0f\x84\x01\x02\x03\x04\x48\x83\xec\x20"), 8);
	/* syscall is not known, and nothing after it */
	assert_int_equal(DEPTH(MAKE "\x53\x0f\x05\x53"), 8);
}

TEST(functions_that_move_rsp_in_another_way_are_refused)
{
	assert_int_equal(DEPTH(MAKE "\x48\x83\xe4\xe0"), -1);       /* and $-32, %rsp */
	assert_int_equal(DEPTH(MAKE "\x48\x29\xc4"), -1);           /* sub %rax, %rsp */
	assert_int_equal(DEPTH(MAKE "\x48\x8d\x65\xf0"), -1);       /* lea -16(%rbp), %rsp */
	assert_int_equal(DEPTH(MAKE "\x48\x89\xc4"), -1);           /* mov %rax, %rsp */
	assert_int_equal(DEPTH(MAKE "\x48\x83\xec\xf0"), -1);       /* sub $-16: up */
	assert_int_equal(DEPTH(MAKE "\x48\x89\xfd"), -1);           /* mov %rdi, %rbp */
}

TEST(functions_without_a_frame_pointer_are_refused)
{
	assert_int_equal(DEPTH("\x48\x83\xec\x18"), -1);
	assert_int_equal(DEPTH("\x41\x54" MAKE), -1);               /* not right below the return */
	assert_int_equal(DEPTH(PUSH_RBP "\x53\x48\x89\xfd"), -1);   /* RBP for other things */
	assert_int_equal(DEPTH("\xff\xff"), -1);
}

TEST(code_that_is_cut_off_counts_what_is_whole)
{
	static const char code[] = MAKE "\x41\x57\x48\x81\xec\x08\x10\0\0";
	size_t n;

	for (n = 0; n < 4; n++)
		assert_int_equal(depth_of(code, n), -1);
	assert_int_equal(depth_of(code, 5), 0);
	for (n = 6; n < 13; n++)
		assert_int_equal(depth_of(code, n), 8);
	assert_int_equal(depth_of(code, 13), 8 + 0x1008);
}

static enum prologue_call before(const char *code, uint64_t distance)
{
	return prologue_call_before((const uint8_t *)code, distance);
}

TEST(a_call_is_seen_before_its_return_address)
{
	assert_int_equal(before("\x90\x90\xe8\xf0\xff\xff\xff", (uint64_t)-16), PROLOGUE_CALLS_IT);
	assert_int_equal(before("\x90\x90\xe8\xf0\xff\xff\xff", 16), PROLOGUE_CALLS_ELSEWHERE);
	assert_int_equal(before("\x90\x90\x90\x90\x90\xff\xd0", 0), PROLOGUE_CALLS_ELSEWHERE);
	/* call *8(%rax); *(%rax,%rbx,8); *disp32(%rip); *disp32(%rsp) */
	assert_int_equal(before("\x90\x90\x90\x90\xff\x50\x08", 0), PROLOGUE_CALLS_ELSEWHERE);
	assert_int_equal(before("\x90\x90\x90\x90\xff\x14\xd8", 0), PROLOGUE_CALLS_ELSEWHERE);
	assert_int_equal(before("\x90\xff\x15\x01\x02\x03\x04", 0), PROLOGUE_CALLS_ELSEWHERE);
	assert_int_equal(before("\xff\x94\x24\x01\x02\x03\x04", 0), PROLOGUE_CALLS_ELSEWHERE);
	assert_int_equal(before("\x90\x90\x90\x90\x90\x90\x90", 0), PROLOGUE_NO_CALL);
	assert_int_equal(before("\x90\x90\x90\x90\x90\xff\xe0", 0), PROLOGUE_NO_CALL); /* jmp */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_and_a_subtraction_are_the_depth),
		cmocka_unit_test(other_instructions_between_do_not_matter),
		cmocka_unit_test(what_comes_after_a_call_or_jump_is_not_counted),
		cmocka_unit_test(functions_that_move_rsp_in_another_way_are_refused),
		cmocka_unit_test(functions_without_a_frame_pointer_are_refused),
		cmocka_unit_test(code_that_is_cut_off_counts_what_is_whole),
		cmocka_unit_test(a_call_is_seen_before_its_return_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
