/* Programs of the kernel's virtual machine. tests/cli/probes_linux.sh shows that they work. */
#include "source/probe/bpf_code_linux.h"

#include "tests/support/test.h"

#include <string.h>

static const struct bpf_tables tables = {3, 4, 5};
static const struct uprobe call = {.n = 1}, call_end = {.n = 1, .is_return = true};
static struct bpf_code code;

static bool filters(const struct uprobe *probe, const struct bpf_want *wants, unsigned n)
{
	return bpf_code_filter(probe, 0, wants, n, &tables, &code);
}

static bool by_field(const struct uprobe *probe, const char *conditions)
{
	return filters(probe, &(struct bpf_want){.conditions = conditions}, 1);
}

/* Whether all jumps lead to an instruction, and the last one ends the program. */
static bool is_sound(void)
{
	unsigned i;

	for (i = 0; i < code.n; i++) {
		uint8_t op = (uint8_t)code.insns[i];
		int16_t off = (int16_t)(code.insns[i] >> 16);

		if (op == (BPF_LD | BPF_DW | BPF_IMM))
			i++;
		else if ((op & 7) == BPF_JMP && (op & 0xf0) != BPF_CALL &&
			 (op & 0xf0) != BPF_EXIT && (off < 0 || i + 1 + (unsigned)off >= code.n))
			return false;
	}
	return code.n && (uint8_t)code.insns[code.n - 1] == (BPF_JMP | BPF_EXIT);
}

TEST(fields_that_stand_in_registers_are_judged)
{
	assert_true(by_field(&call, "Arg1>=5;arg6!=0x10"));
	assert_true(is_sound());
	assert_true(by_field(&call_end, "Ret<-1"));
	assert_true(by_field(&call, "Arg1=1;ProcessName=a"));
	assert_false(by_field(&call_end, "Arg1=1"));
	assert_false(by_field(&call, "Arg7=1"));
	assert_false(by_field(&call, "Arg1~5"));
	assert_false(by_field(&call, "Arg1=-5"));
	assert_false(by_field(&call, "Arg1=1.5"));
	assert_false(by_field(&call, "Arg1=text"));
	assert_false(by_field(&call, ""));
}

TEST(what_one_rule_wants_of_all_processes_passes_all)
{
	static const struct process_filter names = {1, {{.name = "quiet"}}};
	const struct bpf_want wants[] = {
		{.left_out_bit = 1, .names = &names}, {.conditions = "Arg1=5"}, {.conditions = ""},
		{.npids = 2, .pids = {7, 8}},
	};

	assert_true(filters(&call, wants, 2));
	assert_true(is_sound());
	assert_true(filters(&call, wants, 1));
	assert_true(is_sound());
	assert_false(filters(&call, wants, 3));
	assert_true(filters(&call, wants + 3, 1));
	assert_true(is_sound());
}

/* The largest: 16 rules with 16 names and many conditions each. */
TEST(a_program_that_is_too_long_is_none)
{
	static struct process_filter names = {.n = PROCESS_FILTER_MAX};
	static char conditions[512];
	struct bpf_want wants[BPF_WANTS_MAX];
	unsigned i;

	for (i = 0; i < PROCESS_FILTER_MAX; i++)
		strcpy(names.items[i].name, "a-name");
	for (i = 0; i + 7 < sizeof(conditions); i += 7)
		memcpy(conditions + i, "Arg1=1;", 7);
	for (i = 0; i < BPF_WANTS_MAX; i++)
		wants[i] = (struct bpf_want){.left_out_bit = 1u << i, .names = &names};
	assert_true(filters(&call, wants, BPF_WANTS_MAX));
	assert_true(is_sound());
	for (i = 0; i < BPF_WANTS_MAX; i++)
		wants[i].conditions = conditions;
	assert_false(filters(&call, wants, BPF_WANTS_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_stand_in_registers_are_judged),
		cmocka_unit_test(what_one_rule_wants_of_all_processes_passes_all),
		cmocka_unit_test(a_program_that_is_too_long_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
