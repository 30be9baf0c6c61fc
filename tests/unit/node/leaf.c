/* Where the return address is, by the bytes of instructions. */
#include "managed/node/leaf.h"
#include "tests/support/test.h"

#include <string.h>

#define ENTER "\x55\x48\x89\xe5"
#define LEAVE "\x48\x8b\xe5\x5d"
#define NO_MARKER UINT64_MAX

static uint8_t code[256];

/* Of int3 but for these bytes. */
static void put_code(size_t at, const char *bytes, size_t n)
{
	memset(code, 0xcc, sizeof(code));
	memcpy(code + at, bytes, n);
}
#define PUT(at, text) put_code(at, text, sizeof(text) - 1)

static int generated(size_t at)
{
	return v8_leaf_generated(code, sizeof(code), at, false);
}

static int builtin(size_t at, uint64_t marker)
{
	struct v8_builtin_shape shape;

	v8_builtin_shape(code, sizeof(code), &shape);
	return v8_leaf_builtin(code, sizeof(code), at, &shape, marker);
}

TEST(generated_code_has_its_frame_from_the_prologue_to_the_epilogue)
{
	PUT(8, ENTER "\x90\x90\x90" LEAVE "\x48\x83\xc4\x10\xc3\x90");
	assert_int_equal(generated(0), 0);
	assert_int_equal(generated(8), 0);
	assert_int_equal(generated(9), 1);
	assert_int_equal(generated(11), 1);
	assert_int_equal(generated(12), V8_LEAF_FRAMED);
	assert_int_equal(generated(18), V8_LEAF_FRAMED);     /* pop rbp is to come */
	assert_int_equal(generated(19), 0);
	assert_int_equal(generated(23), 0);                  /* ret */
	assert_int_equal(generated(24), V8_LEAF_FRAMED);
	assert_int_equal(generated(sizeof(code)), V8_LEAF_FRAMED);
}

TEST(baseline_code_without_a_prologue_calls_who_makes_its_frame)
{
	PUT(0, "\x90\x90\x90\x90\xe8\x00\x00\x00\x00\x90");
	assert_int_equal(v8_leaf_generated(code, sizeof(code), 4, true), 0);
	assert_int_equal(v8_leaf_generated(code, sizeof(code), 9, true), V8_LEAF_FRAMED);
	assert_int_equal(generated(4), V8_LEAF_FRAMED);
}

TEST(what_returns_through_r10_has_its_return_address_there)
{
	PUT(10, "\x41\x5a\x48\x8d\x24\xc4\x41\x52\xc3");
	assert_int_equal(generated(10), 0);
	assert_int_equal(generated(12), V8_LEAF_R10);
	assert_int_equal(generated(16), V8_LEAF_R10);
	assert_int_equal(generated(18), 0);
	PUT(10, "\x48\x8b\x6d\x00\x48\x83\xc4\x18\xe9");
	assert_int_equal(generated(14), 3);
}

TEST(a_builtin_without_a_frame_is_searched_for_a_return_address)
{
	PUT(0, "\x90\x90\x90\x90");
	assert_int_equal(builtin(2, NO_MARKER), V8_LEAF_SEARCH);
	PUT(0, "\x90\x90\xc9\x90");                          /* it leaves another's frame */
	assert_int_equal(builtin(1, NO_MARKER), V8_LEAF_FRAMED);
	assert_int_equal(builtin(3, NO_MARKER), V8_LEAF_SEARCH);
}

TEST(a_builtin_that_makes_its_frame_late_has_none_before)
{
	PUT(40, ENTER "\x6a\x1c\x90\x90");
	assert_int_equal(builtin(39, NO_MARKER), V8_LEAF_SEARCH);
	assert_int_equal(builtin(40, NO_MARKER), 0);
	assert_int_equal(builtin(41, NO_MARKER), 1);
	/* Behind it: what it pushed is below the frame, or there is none on this path. */
	assert_int_equal(builtin(47, 0x1c), V8_LEAF_CALLED_BY_V8);
	assert_int_equal(builtin(47, 0x1e), V8_LEAF_SEARCH);
	PUT(4, ENTER "\x90\x90");
	assert_int_equal(builtin(30, NO_MARKER), V8_LEAF_CALLED);
}

static bool is_call(const char *bytes, size_t n)
{
	uint8_t before[8] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
	int32_t target;

	memcpy(before + 8 - n, bytes, n);
	return v8_is_call(before, &target);
}
#define IS_CALL(text) is_call(text, sizeof(text) - 1)

TEST(a_call_is_told_by_what_is_before_its_return_address)
{
	const uint8_t direct[8] = {0, 0, 0, 0xe8, 0xfe, 0xff, 0xff, 0xff};
	int32_t target;

	assert_true(v8_is_call(direct, &target));
	assert_int_equal(target, -2);
	assert_true(IS_CALL("\xff\xd1"));                    /* rcx */
	assert_true(IS_CALL("\x41\xff\xd2"));                /* r10 */
	assert_true(IS_CALL("\xff\x51\x08"));                /* [rcx + 8] */
	assert_true(IS_CALL("\xff\x14\xc8"));                /* [rax + rcx * 8] */
	assert_true(IS_CALL("\xff\x15\x00\x01\x00\x00"));    /* [rip + N] */
	assert_true(IS_CALL("\xff\x94\x24\x00\x01\x00\x00"));        /* [rsp + N] */
	assert_false(IS_CALL("\xff\xe1"));                   /* jmp rcx */
	assert_false(IS_CALL("\xff\x14"));                   /* its operand is cut off */
	assert_false(IS_CALL("\x90\x90"));
}

TEST(a_builtin_begins_behind_padding)
{
	memset(code, 0x90, sizeof(code));
	assert_int_equal(v8_builtin_begin(code, sizeof(code), 0x1000), SIZE_MAX);
	memset(code + 60, 0xcc, 4);
	assert_int_equal(v8_builtin_begin(code, sizeof(code), 0x1000), 64);
	assert_int_equal(v8_builtin_begin(code, 64, 0x1000), SIZE_MAX);
	assert_int_equal(v8_builtin_begin(code, sizeof(code), 0x1020), SIZE_MAX);
	memset(code + 189, 0xcc, 3);                         /* too few */
	assert_int_equal(v8_builtin_begin(code, sizeof(code), 0x1000), 64);
	assert_int_equal(v8_builtin_begin(code, 0, 0x1000), SIZE_MAX);
	assert_int_equal(v8_builtin_begin(code, 3, 0), SIZE_MAX);
	assert_int_equal(v8_builtin_end(code, 1, sizeof(code), 0x1000), 64);
	assert_int_equal(v8_builtin_end(code, 65, sizeof(code), 0x1000), SIZE_MAX);
	assert_int_equal(v8_builtin_end(code, 0, 64, 0x1000), SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_code_has_its_frame_from_the_prologue_to_the_epilogue),
		cmocka_unit_test(baseline_code_without_a_prologue_calls_who_makes_its_frame),
		cmocka_unit_test(what_returns_through_r10_has_its_return_address_there),
		cmocka_unit_test(a_builtin_without_a_frame_is_searched_for_a_return_address),
		cmocka_unit_test(a_builtin_that_makes_its_frame_late_has_none_before),
		cmocka_unit_test(a_call_is_told_by_what_is_before_its_return_address),
		cmocka_unit_test(a_builtin_begins_behind_padding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
