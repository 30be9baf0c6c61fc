/* Texts that a rule reads from a program's memory; here the memory of this test. */
#include "base/os.h"
#include "source/host/proc_reader_linux.h"
#include "source/probe/uprobe_text_linux.h"
#include "tests/support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PERF_AX = 0, PERF_DI = 5 };

static uint32_t lasting_ms;                  /* as the rule of text_at() has it */

/* What a hit says whose register holds this address; "-" = nothing. */
static const char *text_at(bool is_go, const char *texts, unsigned reg, const void *address,
			   uint64_t age_ns)
{
	static char bytes[UPROBE_TEXTS_MAX][UPROBE_TEXT_BYTES];
	struct uprobe probe = {.is_go = is_go};
	struct perf_record r = {.kind = PERF_KIND_SAMPLE, .pid = (uint32_t)getpid()};
	struct event_field fields[STAPSDT_ARGUMENTS_MAX];
	struct proc_reader *reader = NULL;
	uint64_t regs[17] = {0};
	char byte;
	unsigned n;

	assert_int_equal(uprobe_texts_parse(&probe, texts, lasting_ms, NULL), 0);
	regs[reg] = (uint64_t)(uintptr_t)address;
	r.time_ns = 1000;
	r.u.sample.regs_abi = 2;
	r.u.sample.regs = regs;
	assert_int_equal(proc_reader_new(NULL, &reader, NULL), 0);
	/* Its thread waits for a CPU on a busy machine. */
	while (proc_reader_memory(reader, r.pid, (uintptr_t)regs, &byte, 1) != 1)
		os_sleep_ns(NS_PER_MS);
	n = uprobe_texts_read(&probe, reader, &r, r.time_ns + age_ns, bytes, fields, 0);
	proc_reader_free(reader);
	if (!n)
		return "-";
	assert_string_equal(fields[n - 1].name, "url");
	return fields[n - 1].v.text;
}

TEST(a_text_is_read_where_its_argument_points)
{
	struct {
		char head[16];
		char text[16];
		const char *pointer;
		char open_end[200];
	} there = {.text = "/pay?ms=9", .pointer = there.text};

	memset(there.open_end, 'x', sizeof(there.open_end));
	assert_string_equal(text_at(false, "url:+16(Arg1)", PERF_DI, &there, 0), "/pay?ms=9");
	assert_string_equal(text_at(false, "url:+0(+32(Arg1))", PERF_DI, &there, 0), "/pay?ms=9");
	assert_string_equal(text_at(false, "url:+1(+32(Arg1))", PERF_DI, &there, 0), "pay?ms=9");
	assert_string_equal(text_at(false, "url:-4(Arg1)", PERF_DI, there.text + 4, 0),
			    "/pay?ms=9");
	assert_int_equal(strlen(text_at(false, "url:+40(Arg1)", PERF_DI, &there, 0)),
			 UPROBE_TEXT_BYTES - 1);
	assert_string_equal(text_at(false, "url:+0(Arg1)", PERF_DI, NULL, 0), "-");
	assert_string_equal(text_at(false, "url:+0(+32(Arg1))", PERF_DI, (void *)16, 0), "-");
}

TEST(in_a_go_program_a_pointer_and_a_length_stand_there)
{
	struct {
		const char *text;
		uint64_t length;
	} go = {"/pay HTTP/1.1", 4}, wild = {(const char *)(uintptr_t)4096, 4};

	/* Go's first argument is in AX. */
	assert_string_equal(text_at(true, "m:+0(Arg1),url:+0(Arg1)", PERF_AX, &go, 0), "/pay");
	assert_string_equal(text_at(true, "url:+0(Arg1)", PERF_AX, &wild, 0), "-");
	go.length = 0;
	assert_string_equal(text_at(true, "url:+0(Arg1)", PERF_AX, &go, 0), "");
}

TEST(what_is_read_too_late_is_not_told)
{
	char text[] = "/pay";

	assert_string_equal(text_at(false, "url:+0(Arg1)", PERF_DI, text, UPROBE_TEXT_LATE_NS),
			    "/pay");
	assert_string_equal(text_at(false, "url:+0(Arg1)", PERF_DI, text, UPROBE_TEXT_LATE_NS + 1),
			    "-");
	lasting_ms = 500;
	assert_string_equal(text_at(false, "url:+0(Arg1)", PERF_DI, text, 500 * NS_PER_MS), "/pay");
	assert_string_equal(text_at(false, "url:+0(Arg1)", PERF_DI, text, 500 * NS_PER_MS + 1),
			    "-");
	lasting_ms = 0;
}

TEST(what_is_no_text_is_refused)
{
	static const char *const wrong[] = {
		"url", ":+0(Arg1)", "url:", "url:Arg1", "url:+(Arg1)", "url:+0(Arg1",
		"url:+0Arg1)", "url:+0(Arg7)", "url:+0(Goroutine)", "url:+0()",
		"url:+0(Arg1))", "url:+99999(Arg1)",
		"url:+0(+0(Arg1)", "url:+0(+0(+0(+0(+0(Arg1)))))", "url:+0(Arg1)x", ",",
		"a:+0(Arg1),b:+0(Arg1),c:+0(Arg1)", "a_name_that_is_far_too_long:+0(Arg1)",
	};
	struct uprobe probe = {0};
	struct err err;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		if (!uprobe_texts_parse(&probe, wrong[i], 0, &err))
			fail_msg("'%s' is taken", wrong[i]);
		probe.ntexts = 0;
	}
	assert_int_equal(uprobe_texts_parse(&probe, "a:+0(Arg1),b:-8(+0(Arg6))", 0, &err), 0);
	assert_int_equal(probe.ntexts, 2);
	/* Another rule on the same probe. */
	assert_int_equal(uprobe_texts_parse(&probe, "b:-8(+0(Arg6)),c:+0(Arg1)", 0, &err), 0);
	assert_int_equal(probe.ntexts, 3);
	assert_int_equal(uprobe_texts_parse(&probe, "b:+8(+0(Arg6))", 0, &err), ERR_USAGE);
	assert_int_equal(uprobe_texts_parse(&probe, "d:+0(Arg1)", 0, &err), 0);
	assert_int_equal(uprobe_texts_parse(&probe, "e:+0(Arg1)", 0, &err), ERR_USAGE);
	probe = (struct uprobe){.is_go = true};
	assert_int_equal(uprobe_texts_parse(&probe, "a:+0(Goroutine),b:+0(Arg9)", 0, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_read_where_its_argument_points),
		cmocka_unit_test(in_a_go_program_a_pointer_and_a_length_stand_there),
		cmocka_unit_test(what_is_read_too_late_is_not_told),
		cmocka_unit_test(what_is_no_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
