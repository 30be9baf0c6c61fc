/* What a probe reads out of a record: registers and the stack. UBSan watches their alignment. */
#include "source/probe/uprobe_linux.h"
#include "source/ring/perf_record.h"
#include "tests/support/perf_bytes.h"
#include "tests/support/test.h"

#include <stdint.h>
#include <string.h>

enum { REGS = 17, PERF_SP = 7, PERF_DI = 5 };

/* A hit: nraw bytes of raw data, the registers 1 to 17, and 24 bytes of stack; SP is 8. */
static bool hit(struct perf_bytes *b, uint32_t nraw, struct perf_record *r)
{
	static const struct perf_format format = {.raw = true, .nregs = REGS, .stack = true};
	uint64_t i;

	perf_bytes_sample(b, 0x1000, 5, 6, 700, 8);
	perf_bytes_put(b, &nraw, 4);
	perf_bytes_put(b, "raw data, as of a probe", nraw);
	perf_bytes_u64(b, 2);
	for (i = 1; i <= REGS; i++)
		perf_bytes_u64(b, i);
	perf_bytes_u64(b, 24);
	perf_bytes_put(b, "the stack of the thread ", 24);
	perf_bytes_u64(b, 24);
	perf_bytes_end(b);
	return perf_record_parse(b->bytes, b->n, &format, r);
}

TEST(uprobe_reads_registers_behind_raw_data_of_any_length_or_refuses_the_record)
{
	struct perf_bytes b;
	struct perf_record r;
	uint32_t n, read = 0;
	uint64_t value;

	for (n = 0; n < 24; n++) {
		if (!hit(&b, n, &r))
			continue;
		read++;
		assert_true(perf_record_register(&r, PERF_DI, &value));
		assert_int_equal(value, PERF_DI + 1);
	}
	assert_int_equal(read, 3);           /* 4, 12 and 20 leave them aligned */
}

TEST(uprobe_reads_an_argument_at_an_odd_place_of_the_stack)
{
	struct uprobe probe = {.is_usdt = true, .n = 1};
	struct event_field fields[STAPSDT_ARGUMENTS_MAX];
	struct stapsdt_argument *a = probe.places[0].arguments;
	struct perf_bytes b;
	struct perf_record r;
	uint64_t expected;

	assert_true(hit(&b, 4, &r));
	probe.places[0].narguments = 1;
	*a = (struct stapsdt_argument){.place = STAPSDT_MEMORY, .bytes = 8, .reg = PERF_SP,
				       .value = 3};
	assert_int_equal(uprobe_fields(&probe, 0, &r, fields), 1);
	memcpy(&expected, " stack o", 8);
	assert_int_equal(fields[0].v.u, expected);
	a->value = 16;                       /* its last 8 bytes */
	assert_int_equal(uprobe_fields(&probe, 0, &r, fields), 1);
	a->value = 17;
	assert_int_equal(uprobe_fields(&probe, 0, &r, fields), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			uprobe_reads_registers_behind_raw_data_of_any_length_or_refuses_the_record),
		cmocka_unit_test(uprobe_reads_an_argument_at_an_odd_place_of_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
