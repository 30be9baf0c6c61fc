/* Generated code: found by an address in it, and whose functions are at a place of it. */
#include "base/bytes.h"
#include "managed/node/code.h"
#include "tests/support/test.h"
#include "tests/unit/node/heap.h"

#include <stdlib.h>
#include <string.h>

#define TURBOFAN 12u                         /* of 12.4 */

static struct v8_heap heap;

/* Code of 512 bytes; its header is before an address that 64 divides. returns  the Code object */
static uint64_t make_code(unsigned kind, uint64_t *begin)
{
	const struct v8_row *r = &heap.l.row;
	uint64_t code = v8_heap_new(&heap, T_CODE, 128, 8);
	uint64_t stream = v8_heap_new(&heap, T_STREAM, 640, 64);

	/* The header is aligned; the instructions shall be. */
	*begin = stream - 1 + 64;
	stream = *begin - r->code_header + 1;
	v8_heap_set(&heap, stream, 0, heap.maps[T_STREAM]);
	v8_heap_set(&heap, stream, 8, code);
	v8_heap_set(&heap, code, r->code_stream, stream);
	v8_heap_set(&heap, code, r->code_start, *begin);
	put_le32(v8_heap_at(&heap, code - 1 + r->code_flags), kind);
	put_le32(v8_heap_at(&heap, code - 1 + r->code_size), 512);
	return code;
}

static uint64_t array_of(const uint64_t *words, unsigned n)
{
	uint64_t a = v8_heap_new(&heap, T_ARRAY, V8_ELEMENTS + 8 * n, 8);
	unsigned i;

	v8_heap_set(&heap, a, V8_LENGTH, v8_small(n));
	for (i = 0; i < n; i++)
		v8_heap_set(&heap, a, V8_ELEMENTS + 8 * i, words[i]);
	return a;
}

/* Searching reads up to 16 KiB below. */
static void begin_heap(void)
{
	v8_heap_init(&heap, 12, 4);
	v8_heap_new(&heap, T_CONTEXT, 24000, 8);
}

TEST(code_is_found_from_any_of_its_addresses)
{
	uint64_t begin, code;
	struct v8_code c;

	begin_heap();
	code = make_code(TURBOFAN, &begin);
	assert_true(v8_code_find(&heap.l, &heap.m, begin, &c));
	assert_int_equal(c.begin, begin);
	assert_int_equal(c.end, begin + 512);
	assert_int_equal(c.mark.code, code);
	assert_true(c.optimized);
	v8_code_free(&c);
	assert_true(v8_code_find(&heap.l, &heap.m, begin + 511, &c));
	v8_code_free(&c);
	assert_false(v8_code_find(&heap.l, &heap.m, begin + 512, &c));
}

TEST(code_that_was_replaced_is_noticed)
{
	uint64_t begin, code;
	struct v8_code c;

	begin_heap();
	code = make_code(TURBOFAN, &begin);
	assert_true(v8_code_find(&heap.l, &heap.m, begin, &c));
	assert_true(v8_code_is(&heap.l, &heap.m, begin, &c.mark));
	put_le32(v8_heap_at(&heap, code - 1 + heap.l.row.code_size), 448);
	assert_false(v8_code_is(&heap.l, &heap.m, begin, &c.mark));
	v8_code_free(&c);
}

/* A header that points to an object which does not point back is data. */
TEST(what_looks_like_code_is_none)
{
	uint64_t begin, code;
	struct v8_code c;

	begin_heap();
	code = make_code(TURBOFAN, &begin);
	v8_heap_set(&heap, code, heap.l.row.code_start, begin + 64);
	assert_false(v8_code_find(&heap.l, &heap.m, begin, &c));
}

/*
 * Entries of two numbers: how much code (zigzag, 7 bits a byte), how much further in the source. At
 * 4: position 10 (word 22) of the outer function; at 20: position 5 of function 0, inlined at 10.
 */
TEST(inlined_functions_are_told_innermost_first)
{
	static const uint8_t positions[] = {
		10, 44,                              /* +5: at 4; zigzag(22) */
		32, 0xec, 0xff, 0xff, 0xff, 0x0f     /* +16: at 20; to 12 | 1 << 31 */
	};
	uint8_t inlining[16] = {22};
	uint64_t begin, code, literals, deopt, outer, inner, words[10] = {0};
	struct v8_inlined at[4];
	struct v8_code c;

	begin_heap();
	outer = v8_heap_function(&heap, "outer", 0, 0);
	inner = v8_heap_function(&heap, "inner", 0, 0);
	literals = array_of(&inner, 1);
	words[1] = v8_small(1);
	words[2] = literals;
	words[6] = outer;
	words[7] = v8_heap_byte_array(&heap, inlining, sizeof(inlining));
	deopt = array_of(words, 10);
	code = make_code(TURBOFAN, &begin);
	v8_heap_set(&heap, code, heap.l.row.code_deopt, deopt);
	v8_heap_set(&heap, code, heap.l.row.code_positions,
		    v8_heap_byte_array(&heap, positions, sizeof(positions)));
	assert_true(v8_code_find(&heap.l, &heap.m, begin + 30, &c));
	assert_int_equal(c.mark.shared, outer);
	assert_int_equal(c.nliterals, 1);
	assert_int_equal(c.literals[0], inner);
	assert_int_equal(v8_inlined_at(&heap.l, &c, 3, at, 4), 0);
	assert_int_equal(v8_inlined_at(&heap.l, &c, 19, at, 4), 1);
	assert_int_equal(at[0].function, -1);
	assert_int_equal(at[0].position, 10);
	assert_int_equal(v8_inlined_at(&heap.l, &c, 20, at, 4), 2);
	assert_int_equal(at[0].function, 0);
	assert_int_equal(at[0].position, 5);
	assert_int_equal(at[1].function, -1);
	assert_int_equal(at[1].position, 10);
	v8_code_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_found_from_any_of_its_addresses),
		cmocka_unit_test(code_that_was_replaced_is_noticed),
		cmocka_unit_test(what_looks_like_code_is_none),
		cmocka_unit_test(inlined_functions_are_told_innermost_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
