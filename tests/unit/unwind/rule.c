/* Rules in 8 bytes: which rows fit, what is interpreted, and when the cache answers. */
#include "base/array.h"
#include "tests/support/cfi_builder.h"
#include "tests/support/test.h"
#include "unwind/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE 0x4000u

static struct eh_frame *one(bool signal, const uint8_t *program, size_t n)
{
	struct cfi c = {.vaddr = 0x20000};

	cfi_put_cie(&c, &(struct cfi_cie){.augmentation = signal ? "zRS" : "zR"});
	cfi_put_fde(&c, CODE, 0x100, program, n);
	return cfi_tables(&c, CFI_SORTED);
}

static struct rule rule_at(const struct eh_frame *tables, uint64_t vaddr)
{
	uint32_t budget = EH_BUDGET;
	struct eh_row row;

	assert_int_equal(eh_frame_row(tables, vaddr, &budget, &row), EH_OK);
	return rule_compile(tables, &row, vaddr);
}

struct compiled {
	const char *name;
	uint8_t program[20];
	size_t n;
	struct rule expected;
};

static const struct compiled compiled[] = {
	{"rsp + n", {0x0e, 0x90, 0x80, 1}, 4, {RULE_PLAIN, EH_RSP, 0, 0, 16400}},
	{"rbp + 16, rbp saved", {0x0c, 6, 16, 0x86, 2}, 5, {RULE_PLAIN, EH_RBP, -2, 0, 16}},
	{"another register", {0x0c, 0, 8}, 3, {RULE_PLAIN, EH_RAX, 0, 0, 8}},
	{"the root", {0x07, 16}, 2, {RULE_ROOT, 0, 0, 0, 0}},
	{"realigned", {0x0f, 3, 0x76, 0x78, 0x06}, 5, {RULE_DEREF, EH_RBP, 0, 0, -8}},
	{"libcrypto", {0x0f, 6, 0x77, 0xa0, 1, 0x06, 0x23, 8}, 8, {RULE_DEREF, EH_RSP, 0, 8, 160}},
	{"PLT", {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 13,
	 {RULE_PLAIN, EH_RSP, 0, 0, 8}},
	{"PLT, pushed", {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x35, 0x2a, 0x33, 0x24, 0x22},
	 13, {RULE_PLAIN, EH_RSP, 0, 0, 16}},
	{"an index in a register", {0x0f, 8, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06}, 10,
	 {RULE_GENERAL, 0, 0, 0, 0}},
	{"a deref too far", {0x0f, 6, 0x77, 0x80, 0x80, 0x80, 1, 0x06}, 8,
	 {RULE_GENERAL, 0, 0, 0, 0}},
	{"an addend too big", {0x0f, 6, 0x77, 8, 0x06, 0x23, 0x80, 1}, 8,
	 {RULE_GENERAL, 0, 0, 0, 0}},
	{"rbp by an expression", {0x10, 6, 2, 0x76, 0}, 5, {RULE_GENERAL, 0, 0, 0, 0}},
	{"rbp saved far away", {0x86, 0x81, 1}, 3, {RULE_GENERAL, 0, 0, 0, 0}},
	{"return address elsewhere", {0x90, 2}, 2, {RULE_GENERAL, 0, 0, 0, 0}},
	{"return address in a register", {0x09, 16, 2}, 3, {RULE_GENERAL, 0, 0, 0, 0}},
	{"rsp restored", {0x14, 7, 0x7f}, 3, {RULE_GENERAL, 0, 0, 0, 0}},
};

TEST(rows_become_rules)
{
	size_t i;

	for (i = 0; i < COUNT_OF(compiled); i++) {
		struct eh_frame *tables = one(false, compiled[i].program, compiled[i].n);
		struct rule got = rule_at(tables, CODE + 8);

		if (memcmp(&got, &compiled[i].expected, sizeof(got)) != 0)
			fail_msg("%s: kind %u base %u slot %d addend %u offset %d",
				 compiled[i].name, got.kind, got.base, got.rbp_slot, got.addend,
				 got.offset);
		eh_frame_free(tables);
	}
	assert_int_equal(sizeof(struct rule), 8);
}

TEST(signal_frames_are_interpreted)
{
	struct eh_frame *tables = one(true, NULL, 0);

	assert_int_equal(rule_at(tables, CODE).kind, RULE_GENERAL);
	eh_frame_free(tables);
}

TEST(cached_rule_costs_no_instruction)
{
	static struct rule_cache cache;
	struct eh_frame *a = one(false, (const uint8_t *)"\x0e\x10", 2);
	struct eh_frame *b = one(false, (const uint8_t *)"\x0e\x20", 2);
	uint32_t budget = EH_BUDGET, left;

	assert_int_equal(rule_find(&cache, a, CODE, &budget).offset, 16);
	assert_int_equal(rule_find(&cache, b, CODE, &budget).offset, 32);
	left = budget;
	assert_int_equal(rule_find(&cache, a, CODE, &budget).offset, 16);
	assert_int_equal(rule_find(&cache, b, CODE, &budget).offset, 32);
	assert_int_equal(rule_find(&cache, b, CODE + 0x100, &budget).kind, RULE_NONE);
	assert_int_equal(rule_find(&cache, b, CODE - 1, &budget).kind, RULE_NONE);
	assert_int_equal(budget, left);
	eh_frame_free(a);
	eh_frame_free(b);
}

/* A stack that cost too much must not spoil the next one's. */
TEST(what_the_budget_cut_off_is_not_cached)
{
	static struct rule_cache cache;
	struct eh_frame *tables = one(false, (const uint8_t *)"\x0e\x10", 2);
	uint32_t budget = 1;

	assert_int_equal(rule_find(&cache, tables, CODE, &budget).kind, RULE_BAD);
	budget = EH_BUDGET;
	assert_int_equal(rule_find(&cache, tables, CODE, &budget).kind, RULE_PLAIN);
	eh_frame_free(tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_become_rules),
		cmocka_unit_test(signal_frames_are_interpreted),
		cmocka_unit_test(cached_rule_costs_no_instruction),
		cmocka_unit_test(what_the_budget_cut_off_is_not_cached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
