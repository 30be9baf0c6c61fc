/* V8's strings, functions and scripts, on a heap made by hand. */
#include "base/bytes.h"
#include "tests/support/test.h"
#include "tests/unit/node/heap.h"

#include <stdlib.h>
#include <string.h>

static struct v8_heap heap;

static void named_by(uint64_t text, const char *expected)
{
	uint64_t shared = v8_heap_new(&heap, T_SHARED, 64, 8);
	struct v8_function f;

	v8_heap_set(&heap, shared, heap.l.row.shared_name, text);
	assert_true(v8_function_read(&heap.l, &heap.m, shared, &f));
	assert_string_equal(f.name, expected);
	assert_int_equal(f.script, 0);
}

static uint64_t two(unsigned type, uint32_t length, uint64_t first, uint64_t second)
{
	uint64_t s = v8_heap_new(&heap, type, 32, 8);

	put_le32(v8_heap_at(&heap, s - 1 + 12), length);
	v8_heap_set(&heap, s, 16, first);
	v8_heap_set(&heap, s, 24, second);
	return s;
}

TEST(strings_of_all_kinds_are_names)
{
	uint64_t flat, wide, external;

	v8_heap_init(&heap, 12, 4);
	flat = v8_heap_text(&heap, "serve");
	named_by(flat, "serve");
	wide = v8_heap_new(&heap, T_FLAT_2, 20, 8);
	put_le32(v8_heap_at(&heap, wide - 1 + 12), 2);
	memcpy(v8_heap_at(&heap, wide - 1 + 16), "\x3b\x04\xac\x20", 4);
	named_by(wide, "\xd0\xbb\xe2\x82\xac");
	named_by(two(T_CONS + 8, 7, flat, v8_heap_text(&heap, "_a")), "serve_a");
	named_by(two(T_SLICED, 3, flat, v8_small(1)), "erv");
	named_by(two(T_THIN, 5, flat, 0), "serve");
	external = two(T_EXTERNAL, 3, 0, flat - 1 + 16 + 2);
	named_by(external, "rve");
}

TEST(a_string_without_end_is_no_name)
{
	uint64_t s;

	v8_heap_init(&heap, 12, 4);
	s = two(T_CONS, 7, 0, 0);
	v8_heap_set(&heap, s, 16, s);
	v8_heap_set(&heap, s, 24, s);
	named_by(s, "");
	named_by(two(T_FLAT, 100000000, 0, 0), "");
	named_by(V8_HEAP_BASE + V8_HEAP_BYTES - 7, "");
}

TEST(control_characters_do_not_break_lines)
{
	v8_heap_init(&heap, 12, 4);
	named_by(v8_heap_text(&heap, "a\nb\x1b[c"), "a b [c");
}

/* 10.2 to 12.4 keep positions behind the names, 12.9 and later before them. */
TEST(a_function_has_its_name_and_place_from_its_scope)
{
	static const unsigned versions[][2] = {{10, 2}, {11, 3}, {11, 8}, {12, 4}};
	struct v8_function f;
	uint64_t script, shared;
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		v8_heap_init(&heap, versions[i][0], versions[i][1]);
		script = v8_heap_script(&heap, "/app/shop.js", "a\nbc\n", 7);
		shared = v8_heap_function(&heap, "total", script, 3);
		assert_true(v8_function_read(&heap.l, &heap.m, shared, &f));
		assert_string_equal(f.name, "total");
		assert_int_equal(f.position, 3);
		assert_int_equal(f.script, script);
		assert_int_equal(f.mark.script_id, v8_small(7));
	}
}

TEST(another_function_in_its_place_is_noticed)
{
	struct v8_function f;
	uint64_t shared;

	v8_heap_init(&heap, 12, 4);
	shared = v8_heap_function(&heap, "old", v8_heap_script(&heap, "a.js", "", 1), 0);
	assert_true(v8_function_read(&heap.l, &heap.m, shared, &f));
	assert_true(v8_mark_is(&heap.l, &heap.m, &f.mark));
	/* The script that is there now has another number: all else is the same. */
	v8_heap_set(&heap, f.script, 64, v8_small(2));
	assert_false(v8_mark_is(&heap.l, &heap.m, &f.mark));
}

TEST(a_frame_is_its_functions_only_if_its_bytecode_is)
{
	uint64_t shared, function, bytecode, data, code;

	v8_heap_init(&heap, 12, 4);
	shared = v8_heap_function(&heap, "f", 0, 0);
	function = v8_heap_closure(&heap, shared);
	bytecode = v8_heap_new(&heap, T_BYTECODE, 64, 8);
	assert_int_equal(v8_shared_of(&heap.l, &heap.m, function, bytecode), 0);
	v8_heap_set(&heap, shared, 8, bytecode);
	assert_int_equal(v8_shared_of(&heap.l, &heap.m, function, bytecode), shared);
	assert_int_equal(v8_shared_of(&heap.l, &heap.m, shared, bytecode), 0);
	/* Sparkplug's code, which has it behind interpreter data. */
	data = v8_heap_new(&heap, T_DATA, 24, 8);
	v8_heap_set(&heap, data, 8, bytecode);
	code = v8_heap_new(&heap, T_CODE, 64, 8);
	v8_heap_set(&heap, code, heap.l.row.code_deopt, data);
	v8_heap_set(&heap, shared, 8, code);
	assert_int_equal(v8_shared_of(&heap.l, &heap.m, function, bytecode), shared);
}

/* A collection leaves the new address in the old place. */
TEST(a_function_that_was_moved_is_followed)
{
	uint64_t shared, function, moved;

	v8_heap_init(&heap, 12, 4);
	shared = v8_heap_function(&heap, "f", 0, 0);
	function = v8_heap_closure(&heap, shared);
	moved = v8_heap_closure(&heap, shared);
	v8_heap_set(&heap, function, 0, moved - 1);
	v8_heap_set(&heap, function, heap.l.row.function_shared, 0);
	assert_int_equal(v8_shared(&heap.l, &heap.m, function), shared);
}

TEST(lines_end_as_javascript_says)
{
	struct v8_script s;

	v8_heap_init(&heap, 12, 4);
	assert_true(v8_script_read(&heap.l, &heap.m,
				   v8_heap_script(&heap, "/app/x.js", "ab\ncd\r\ne\rf", 1), &s));
	assert_string_equal(s.name, "/app/x.js");
	assert_int_equal(s.nends, 3);
	assert_int_equal(v8_line(&s, 0), 1);
	assert_int_equal(v8_line(&s, 2), 1);
	assert_int_equal(v8_line(&s, 3), 2);
	assert_int_equal(v8_line(&s, 7), 3);
	assert_int_equal(v8_line(&s, 9), 4);
	assert_int_equal(v8_line(&s, -1), 0);
	free(s.ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_of_all_kinds_are_names),
		cmocka_unit_test(a_string_without_end_is_no_name),
		cmocka_unit_test(control_characters_do_not_break_lines),
		cmocka_unit_test(a_function_has_its_name_and_place_from_its_scope),
		cmocka_unit_test(another_function_in_its_place_is_noticed),
		cmocka_unit_test(a_frame_is_its_functions_only_if_its_bytecode_is),
		cmocka_unit_test(a_function_that_was_moved_is_followed),
		cmocka_unit_test(lines_end_as_javascript_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
