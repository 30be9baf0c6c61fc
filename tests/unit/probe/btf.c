/* The kernel's types, in a made list of five. */
#include "source/probe/btf.h"

#include "base/bytes.h"
#include "tests/support/test.h"

static const char strings[] = "\0task\0pid\0flag\0other\0call";
enum { TASK = 1, PID = 6, FLAG = 10, OTHER = 15, CALL = 21 };

static const uint32_t types[] = {
	PID, 1u << 24, 4, 32,                        /* 1: int pid */
	OTHER, 19u << 24 | 1, 8, 0, 0, 0,            /* 2: enum64 other of one */
	TASK, 8u << 24, 1,                           /* 3: typedef int task */
	TASK, 0x80000000 | 4u << 24 | 3, 24,         /* 4: struct task, with bit fields */
	OTHER, 1, 0,
	FLAG, 1, 1u << 24 | 68,                      /* int flag : 1 */
	PID, 1, 128,
	CALL, 12u << 24, 1,                          /* 5 */
};

static uint8_t bytes[24 + sizeof(types) + sizeof(strings)];

static struct btf_type wanted[] = {
	{.kind = BTF_STRUCT, .name = "task"}, {.kind = BTF_TYPEDEF, .name = "task"},
	{.kind = BTF_FUNCTION, .name = "call"}, {.kind = BTF_STRUCT, .name = "other"},
};

static struct btf make(void)
{
	const uint32_t header[] = {0x1eb9f, 24, 0, sizeof(types), sizeof(types), sizeof(strings)};
	struct btf b;

	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + 24, types, sizeof(types));
	memcpy(bytes + 24 + sizeof(types), strings, sizeof(strings));
	assert_true(btf_open(bytes, sizeof(bytes), &b));
	return b;
}

TEST(types_are_found_by_kind_and_name)
{
	struct btf b = make();

	btf_find(&b, wanted, 4);
	assert_int_equal(wanted[0].id, 4);
	assert_int_equal(wanted[1].id, 3);
	assert_int_equal(wanted[2].id, 5);
	assert_int_equal(wanted[3].id, 0);
}

TEST(a_member_is_at_its_byte_and_a_bit_field_is_none)
{
	struct btf b = make();
	uint32_t offset;

	btf_find(&b, wanted, 4);
	assert_true(btf_member(&b, &wanted[0], "pid", &offset));
	assert_int_equal(offset, 16);
	assert_false(btf_member(&b, &wanted[0], "flag", &offset));
	assert_false(btf_member(&b, &wanted[0], "call", &offset));
	assert_false(btf_member(&b, &wanted[3], "pid", &offset));
}

TEST(a_kind_that_is_not_known_ends_the_list)
{
	struct btf b = make();

	bytes[24 + 16 + 7] = 20;
	btf_find(&b, wanted, 4);
	assert_int_equal(wanted[0].id | wanted[1].id | wanted[2].id, 0);
}

TEST(types_that_are_cut_off_are_not_read)
{
	struct btf b = make();
	size_t n;

	for (n = 0; n < sizeof(bytes); n++)
		assert_false(btf_open(bytes, n, &b));
	b = make();
	b.types_bytes -= 1;                          /* of the last one */
	btf_find(&b, wanted, 4);
	assert_int_equal(wanted[0].id, 4);
	assert_int_equal(wanted[2].id, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_found_by_kind_and_name),
		cmocka_unit_test(a_member_is_at_its_byte_and_a_bit_field_is_none),
		cmocka_unit_test(a_kind_that_is_not_known_ends_the_list),
		cmocka_unit_test(types_that_are_cut_off_are_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
