/*
 * Walks over recorded images of JVMs. Each was made by
 *
 *	java -cp . JavaWork 60 &
 *	build/linux/programs/jvm_image_linux $! tests/data/hotspot/javaN.image > javaN.txt
 */
#include "base/os.h"
#include "managed/hotspot/blob.h"
#include "managed/hotspot/method.h"
#include "tests/support/jvm_image.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_image(const char *name)
{
	struct buf expected = {0}, found = {0};
	struct managed_memory memory;
	struct jvm_image image;
	char path[100];

	snprintf(path, sizeof(path), "tests/data/hotspot/%s.image", name);
	assert_true(jvm_image_load(path, &image));
	snprintf(path, sizeof(path), "tests/data/hotspot/%s.txt", name);
	assert_int_equal(os_load(path, 1 << 20, &expected, NULL), 0);
	memory = (struct managed_memory){.read = jvm_image_read, .ctx = &image};
	jvm_image_walk(&memory, image.base, image.regs, NULL, NULL, &found);
	assert_string_equal(buf_text(&found), buf_text(&expected));
	buf_free(&found);
	buf_free(&expected);
	jvm_image_free(&image);
}

TEST(compiled_frames_of_8_have_their_names)
{
	check_image("java8");
}

TEST(compiled_frames_of_11_have_their_names)
{
	check_image("java11");
}

TEST(compiled_frames_of_17_have_their_names)
{
	check_image("java17");
}

TEST(compiled_frames_of_21_have_their_names)
{
	check_image("java21");
}

TEST(compiled_frames_of_28_have_their_names)
{
	check_image("java28");
}

TEST(interpreted_frames_of_17_have_their_names)
{
	check_image("java17_interpreted");
}

TEST(compiled_frames_of_25_have_their_names)
{
	check_image("java25");
}

TEST(a_number_takes_one_to_five_bytes)
{
	/* 191; then 192 + 1 * 64; with 1 as the least byte each byte counts one less. */
	static const uint8_t bytes[] = {191, 192, 1, 0}, more[] = {192, 1, 192, 2};
	uint32_t at = 0, v = 0;

	assert_true(hotspot_unsigned5(bytes, 3, 0, &at, &v));
	assert_int_equal(v, 191);
	assert_true(hotspot_unsigned5(bytes, 3, 0, &at, &v));
	assert_int_equal(v, 192 + 64);
	assert_int_equal(at, 3);
	assert_false(hotspot_unsigned5(bytes, 3, 0, &at, &v));
	at = 0;
	assert_true(hotspot_unsigned5(bytes, 4, 1, &at, &v));
	assert_int_equal(v, 190);
	at = 3;
	assert_false(hotspot_unsigned5(bytes, 4, 1, &at, &v));
	at = 0;
	assert_true(hotspot_unsigned5(more, 4, 1, &at, &v));
	assert_int_equal(v, 191);
	assert_true(hotspot_unsigned5(more, 4, 1, &at, &v));
	assert_int_equal(v, 255);
	assert_int_equal(at, 4);
}

/* Steps of 8 + 2 and 2 + 1 in a byte each; then of -4 and 600 as numbers; then the end. */
TEST(a_line_table_is_told_as_text)
{
	static const uint8_t table[] = {0 << 3 | 5, 8 << 3 | 2, 2 << 3 | 1, 0xff, 7, 192 + 48, 15,
					0, 9};
	static const uint8_t first[] = {8 << 3 | 5, 0};
	struct hotspot_layout l = {.unsigned5_min = 0};
	char *text = hotspot_lines_text(&l, "A.java", table, sizeof(table));

	assert_string_equal(text, " A.java 0:5 8:7 10:8 6:608");
	free(text);
	text = hotspot_lines_text(&l, "A.java", first, 1);
	assert_string_equal(text, " A.java 8:5");
	free(text);
	text = hotspot_lines_text(&l, "A.java", table, 4);       /* cut within a number */
	assert_string_equal(text, " A.java 0:5 8:7 10:8");
	free(text);
}

/* Three records: before everything, at 16, and after everything. */
TEST(a_caller_needs_its_record_and_a_leaf_the_next_one)
{
	struct hotspot_pc pcs[] = {{-1, 0}, {16, 4}, {1000, 0}};
	struct hotspot_blob b = {.code_begin = 0x1000, .pcs = pcs, .npcs = 3};

	assert_ptr_equal(hotspot_pc_exact(&b, 0x1010), &pcs[1]);
	assert_null(hotspot_pc_exact(&b, 0x1011));
	assert_ptr_equal(hotspot_pc_next(&b, 0x100f), &pcs[1]);
	assert_ptr_equal(hotspot_pc_next(&b, 0x1010), &pcs[2]);
	assert_null(hotspot_pc_next(&b, 0x1000 + 1000));
}

/* The scope at 4 was called by that at 1, whose sender is none. */
TEST(scopes_lead_outwards_only)
{
	uint8_t scopes[] = {0, 0, 2, 8, 1, 1, 6};
	uint64_t metadata[] = {0x1000, 0x2000};
	struct hotspot_pc pc = {16, 4};
	struct hotspot_blob b = {.scopes = scopes, .nscopes = sizeof(scopes),
				 .metadata = metadata, .nmetadata = 2};
	struct hotspot_scope out[HOTSPOT_INLINE_MAX];
	struct hotspot_layout l = {0};

	assert_int_equal(hotspot_scopes(&l, &b, &pc, out), 2);
	assert_int_equal(out[0].metadata, 0);
	assert_int_equal(out[0].bci, 5);
	assert_int_equal(out[1].metadata, 1);
	assert_int_equal(out[1].bci, 7);
	scopes[4] = 4;                       /* its own sender: nothing of it counts */
	assert_int_equal(hotspot_scopes(&l, &b, &pc, out), 1);
	assert_int_equal(out[0].metadata, UINT32_MAX);
}

TEST(class_names_are_the_same_in_each_run)
{
	static const struct { const char *is, *reads; } names[] = {
		{"java/util/HashMap$Node", "java.util.HashMap$Node"},
		{"Foo$$Lambda$25", "Foo$$Lambda"},
		{"Foo$$Lambda$25+0x00007f01", "Foo$$Lambda"},
		{"Foo$$Lambda+0x00007f01", "Foo$$Lambda"},
		{"java/lang/invoke/LambdaForm$MH+0x1", "java.lang.invoke.LambdaForm$MH"},
		{"a/B+0xzz", "a.B+0xzz"}};
	char text[100];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "%s", names[i].is);
		hotspot_class_name(text);
		assert_string_equal(text, names[i].reads);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiled_frames_of_8_have_their_names),
		cmocka_unit_test(compiled_frames_of_11_have_their_names),
		cmocka_unit_test(compiled_frames_of_17_have_their_names),
		cmocka_unit_test(compiled_frames_of_21_have_their_names),
		cmocka_unit_test(compiled_frames_of_28_have_their_names),
		cmocka_unit_test(interpreted_frames_of_17_have_their_names),
		cmocka_unit_test(compiled_frames_of_25_have_their_names),
		cmocka_unit_test(a_number_takes_one_to_five_bytes),
		cmocka_unit_test(a_line_table_is_told_as_text),
		cmocka_unit_test(a_caller_needs_its_record_and_a_leaf_the_next_one),
		cmocka_unit_test(scopes_lead_outwards_only),
		cmocka_unit_test(class_names_are_the_same_in_each_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
