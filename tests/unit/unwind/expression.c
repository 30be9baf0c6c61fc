/* DWARF expressions: each operation, the forms that real tables use, limits. */
#include "unwind/elf_eh_frame.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY 0x7000u

/* Memory holds, at [0x7000, 0x7100), the byte that is its own distance. */
static bool read_memory(void *ctx, uint64_t address, unsigned n, uint64_t *out)
{
	(void)ctx;
	if (address < MEMORY || address + n > MEMORY + 0x100)
		return false;
	*out = 0;
	while (n--)
		*out = *out << 8 | (address + n - MEMORY);
	return true;
}

static enum eh_result evaluate(const uint8_t *bytes, size_t n, const uint64_t *start, uint64_t *out)
{
	uint64_t regs[EH_REGISTERS] = {0};
	uint32_t budget = EH_BUDGET;
	struct eh_machine machine = {.regs = regs, .read = read_memory, .budget = &budget,
				     .known = 1u << EH_RSP | 1u << EH_RBP | 1u << EH_RIP |
					      1u << EH_R9};

	regs[EH_RSP] = MEMORY;
	regs[EH_RBP] = MEMORY + 0x40;
	regs[EH_RIP] = 0x40102b;
	regs[EH_R9] = 3;
	return eh_evaluate(bytes, n, start, &machine, out);
}

struct expression {
	const char *name;
	uint8_t bytes[20];
	size_t n;
	uint64_t expected;
};

#define M1 UINT64_MAX

static const struct expression expressions[] = {
	{"lit0", {0x30}, 1, 0},
	{"lit31", {0x4f}, 1, 31},
	{"const1u", {0x08, 0xff}, 2, 255},
	{"const1s", {0x09, 0xff}, 2, M1},
	{"const2u", {0x0a, 0xfe, 0xff}, 3, 0xfffe},
	{"const2s", {0x0b, 0xfe, 0xff}, 3, M1 - 1},
	{"const4u", {0x0c, 0xfe, 0xff, 0xff, 0xff}, 5, 0xfffffffe},
	{"const4s", {0x0d, 0xfe, 0xff, 0xff, 0xff}, 5, M1 - 1},
	{"const8u", {0x0e, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 0x0807060504030201},
	{"const8s", {0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9, M1},
	{"constu", {0x10, 0xe5, 0x8e, 0x26}, 4, 624485},
	{"consts", {0x11, 0x80, 0x7f}, 3, M1 - 127},
	{"consts, ten bytes", {0x11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f},
	 11, (uint64_t)1 << 63},
	{"dup", {0x35, 0x12, 0x22}, 3, 10},
	{"drop", {0x35, 0x36, 0x13}, 3, 5},
	{"over", {0x35, 0x36, 0x14}, 3, 5},
	{"pick", {0x35, 0x36, 0x37, 0x15, 2}, 5, 5},
	{"swap", {0x35, 0x31, 0x16, 0x1c}, 4, M1 - 3},
	{"rot", {0x35, 0x36, 0x37, 0x17}, 4, 6},
	{"rot below", {0x35, 0x36, 0x37, 0x17, 0x13, 0x13}, 6, 7},
	{"abs", {0x09, 0xfb, 0x19}, 3, 5},
	{"and", {0x3c, 0x3a, 0x1a}, 3, 8},
	{"div", {0x09, 0xf8, 0x33, 0x1b}, 4, M1 - 1},
	{"div of the lowest by -1", {0x31, 0x08, 63, 0x24, 0x11, 0x7f, 0x1b}, 7, (uint64_t)1 << 63},
	{"minus", {0x35, 0x37, 0x1c}, 3, M1 - 1},
	{"mod", {0x3d, 0x35, 0x1d}, 3, 3},
	{"mul", {0x33, 0x34, 0x1e}, 3, 12},
	{"neg", {0x31, 0x1f}, 2, M1},
	{"not", {0x30, 0x20}, 2, M1},
	{"or", {0x34, 0x31, 0x21}, 3, 5},
	{"plus", {0x34, 0x31, 0x22}, 3, 5},
	{"plus_uconst", {0x34, 0x23, 0x80, 1}, 4, 132},
	{"shl", {0x31, 0x33, 0x24}, 3, 8},
	{"shl by too much", {0x31, 0x08, 64, 0x24}, 4, 0},
	{"shr", {0x09, 0xff, 0x08, 60, 0x25}, 5, 15},
	{"shra", {0x09, 0xf0, 0x32, 0x26}, 4, M1 - 3},
	{"shra by too much", {0x09, 0xf0, 0x08, 99, 0x26}, 5, M1},
	{"shra by nothing", {0x09, 0xf0, 0x30, 0x26}, 4, M1 - 15},
	{"xor", {0x33, 0x36, 0x27}, 3, 5},
	{"eq", {0x33, 0x33, 0x29}, 3, 1},
	{"ge is signed", {0x09, 0xff, 0x30, 0x2a}, 4, 0},
	{"gt", {0x34, 0x33, 0x2b}, 3, 1},
	{"le", {0x34, 0x33, 0x2c}, 3, 0},
	{"lt", {0x33, 0x34, 0x2d}, 3, 1},
	{"ne", {0x33, 0x34, 0x2e}, 3, 1},
	{"bra taken", {0x31, 0x31, 0x28, 1, 0, 0x20}, 6, 1},
	{"bra not taken", {0x31, 0x30, 0x28, 1, 0, 0x20}, 6, M1 - 1},
	{"skip", {0x31, 0x2f, 1, 0, 0x20}, 5, 1},
	{"a loop: 5 + 4 + 3 + 2 + 1",
	 {0x30, 0x35, 0x12, 0x17, 0x22, 0x16, 0x31, 0x1c, 0x12, 0x28, 0xf6, 0xff, 0x13}, 13, 15},
	{"nop", {0x31, 0x96}, 2, 1},
	{"breg7", {0x77, 0x78}, 2, MEMORY - 8},
	{"bregx", {0x92, 6, 8}, 3, MEMORY + 0x48},
	{"deref", {0x77, 8, 0x06}, 3, 0x0f0e0d0c0b0a0908},
	{"deref_size 1", {0x77, 8, 0x94, 1}, 4, 8},
	{"deref_size 4", {0x77, 8, 0x94, 4}, 4, 0x0b0a0908},
	{"a PLT, rip & 15 is 11", {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
	 11, MEMORY + 16},
	{"and before the push", {0x77, 8, 0x80, 1, 0x3f, 0x1a, 0x3d, 0x2a, 0x33, 0x24, 0x22},
	 11, MEMORY + 8},
	{"what a realigned stack has", {0x76, 0x78, 0x06}, 3, 0x3f3e3d3c3b3a3938},
	{"libcrypto", {0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8}, 10, 0x2726252423222128},
};

TEST(each_operation_computes)
{
	size_t i;

	for (i = 0; i < COUNT_OF(expressions); i++) {
		const struct expression *e = &expressions[i];
		uint64_t got = 77;

		if (evaluate(e->bytes, e->n, NULL, &got) != EH_OK || got != e->expected)
			fail_msg("%s: %#" PRIx64, e->name, got);
	}
}

TEST(stack_begins_with_the_cfa)
{
	const uint8_t plus[] = {0x23, 4}, nothing[1] = {0};
	uint64_t start = 100, got;

	assert_int_equal(evaluate(plus, 2, &start, &got), EH_OK);
	assert_true(got == 104);
	assert_int_equal(evaluate(nothing, 0, &start, &got), EH_OK);
	assert_true(got == 100);
	assert_int_equal(evaluate(nothing, 0, NULL, &got), EH_BAD);
}

static const struct expression wrong[] = {
	{"empty stack", {0x22}, 1, EH_BAD},
	{"one on the stack", {0x31, 0x22}, 2, EH_BAD},
	{"pick too deep", {0x31, 0x15, 1}, 3, EH_BAD},
	{"division by zero", {0x31, 0x30, 0x1b}, 3, EH_BAD},
	{"modulo by zero", {0x31, 0x30, 0x1d}, 3, EH_BAD},
	{"for ever", {0x2f, 0xfd, 0xff}, 3, EH_BAD},
	{"too much on the stack", {0x31, 0x12, 0x2f, 0xfc, 0xff}, 5, EH_BAD},
	{"jump before the start", {0x2f, 0xfc, 0xff}, 3, EH_BAD},
	{"jump past the end", {0x31, 0x2f, 1, 0}, 4, EH_BAD},
	{"operand cut off", {0x0e, 1, 2}, 3, EH_BAD},
	{"an address of the file", {0x03, 1, 2, 3, 4, 5, 6, 7, 8}, 9, EH_BAD},
	{"a location in a register", {0x50}, 1, EH_BAD},
	{"a register of nobody", {0x92, 99, 0}, 3, EH_BAD},
	{"memory of three bytes", {0x77, 0, 0x94, 3}, 4, EH_BAD},
	{"an opcode of nobody", {0x31, 0x31, 0xff}, 3, EH_BAD},
	{"a register that is not known", {0x73, 0}, 2, EH_UNKNOWN_REGISTER},
	{"memory that is not there", {0x30, 0x06}, 2, EH_UNREADABLE},
};

TEST(what_makes_no_sense_is_refused)
{
	size_t i;

	for (i = 0; i < COUNT_OF(wrong); i++) {
		uint64_t got = 77;

		if (evaluate(wrong[i].bytes, wrong[i].n, NULL, &got) !=
		    (enum eh_result)wrong[i].expected)
			fail_msg("%s was not refused", wrong[i].name);
		assert_true(got == 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_computes),
		cmocka_unit_test(stack_begins_with_the_cfa),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
