/* BPF programs and trampolines: records and lines of kallsyms by hand. */
#include "source/perf/kernel_symbols.h"

#include "base/os.h"
#include "symbol/kallsyms.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT 0xffffffffc0200000u

static struct frames *frames;
static struct kernel_symbols *symbols;
static struct kallsyms_text *given;

static int read_text(kallsyms_take *take, void *to, uint64_t *modules, struct err *err);

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(frames_new(&frames, NULL), 0);
	given = kallsyms_text_new();
	symbols = kernel_symbols_new(frames, read_text, given, NULL);
	return symbols ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	kernel_symbols_free(symbols, 1);
	kallsyms_text_free(given);
	frames_free(frames);
	return 0;
}

static void feed(uint64_t start, uint32_t bytes, const char *name, bool gone)
{
	struct perf_record r = {.kind = PERF_KIND_KSYMBOL, .time_ns = 700,
				.u.ksymbol = {start, bytes, gone, name}};

	kernel_symbols_feed(symbols, &r);
}

/* "NAME+0x10", or "-" when none holds the address. */
static const char *at(uint64_t address)
{
	struct frame_ref ref = {0};
	static char text[200];

	if (!kernel_symbols_find(symbols, address, &ref))
		return "-";
	snprintf(text, sizeof(text), "%s+0x%x", ref.object->key.path, (unsigned)ref.offset);
	return text;
}

TEST(program_has_its_addresses_from_its_coming_to_its_going)
{
	assert_string_equal(at(AT + 0x10), "-");
	feed(AT, 0x100, "bpf_prog_aa_one", false);
	assert_string_equal(at(AT - 1), "-");
	assert_string_equal(at(AT), "bpf_prog_aa_one+0x0");
	assert_string_equal(at(AT + 0xff), "bpf_prog_aa_one+0xff");
	assert_string_equal(at(AT + 0x100), "-");
	feed(AT, 0x100, "bpf_prog_aa_one", true);
	assert_string_equal(at(AT), "-");
	assert_string_equal(at(AT + 0x10), "-");
	assert_string_equal(at(AT + 0xff), "-");
}

TEST(memory_that_is_used_again_has_the_new_name_and_another_object)
{
	struct frame_ref before = {0}, after = {0};

	feed(AT, 0x100, "bpf_prog_aa_one", false);
	assert_true(kernel_symbols_find(symbols, AT + 0x20, &before));
	feed(AT + 0x10, 0x40, "bpf_prog_bb_two", false);     /* the first one's end was not told */
	assert_true(kernel_symbols_find(symbols, AT + 0x20, &after));
	assert_ptr_not_equal(before.object, after.object);
	assert_string_equal(at(AT + 0x20), "bpf_prog_bb_two+0x10");
	assert_string_equal(at(AT + 0x08), "bpf_prog_aa_one+0x8");
}

/* The same code (the tag in its name says so) is the same object, wherever it is loaded. */
TEST(same_program_at_another_address_is_the_same_object)
{
	struct frame_ref a = {0}, b = {0};

	feed(AT, 0x100, "bpf_prog_aa_one", false);
	feed(AT + 0x1000, 0x100, "bpf_prog_aa_one", false);
	assert_true(kernel_symbols_find(symbols, AT + 8, &a));
	assert_true(kernel_symbols_find(symbols, AT + 0x1008, &b));
	assert_ptr_equal(a.object, b.object);
	assert_int_equal(a.offset, b.offset);
}

static const char kallsyms[] =
	"ffffffff81000000 T _text\n"
	"ffffffff81000040 T io_schedule\n"
	"ffffffffc0100000 t ext4_sync_fs\t[ext4]\n"
	"ffffffffc0204000 t bpf_prog_cc_last\t[bpf]\n"
	"ffffffffc0200000 t bpf_prog_aa_first\t[bpf]\n"
	"ffffffffc0200200 t bpf_trampoline_7\t[bpf]\n"
	"ffffffffc0203000 t ftrace_trampoline\t[__builtin__ftrace]\n"
	"0000000000000000 t bpf_prog_dd_hidden\t[bpf]\n";

/* Line by line. */
static int read_text(kallsyms_take *take, void *to, uint64_t *modules, struct err *err)
{
	const char *at = kallsyms, *lf;

	(void)err;
	*modules = 7;
	for (; (lf = strchr(at, '\n')) != NULL; at = lf + 1)
		if (take(to, at, (size_t)(lf + 1 - at)))
			return ERR_MEMORY;
	return *at ? take(to, at, strlen(at)) : 0;
}

TEST(what_ran_before_the_start_stands_in_kallsyms)
{
	kernel_symbols_scan(symbols, kallsyms, sizeof(kallsyms) - 1, 1);
	assert_string_equal(at(0), "-");             /* the hidden one */
	assert_string_equal(at(AT + 0x1ff), "bpf_prog_aa_first+0x1ff");
	assert_string_equal(at(AT + 0x200), "bpf_trampoline_7+0x0");
	assert_string_equal(at(AT + 0x3000), "ftrace_trampoline+0x0");
	assert_string_equal(at(AT + 0x4000), "bpf_prog_cc_last+0x0");
	/* It has no size there: 64 KB are believed, and no module. */
	assert_string_equal(at(AT + 0x4000 + 65536), "-");
	assert_string_equal(at(0xffffffffc0100000), "-");
	/* After a loss everything is read again: what has gone meanwhile is gone. */
	feed(AT + 0x8000, 0x100, "bpf_prog_ee_unseen", false);
	kernel_symbols_scan(symbols, kallsyms, sizeof(kallsyms) - 1, 2);
	assert_string_equal(at(AT + 0x8000), "bpf_prog_cc_last+0x4000");
	assert_string_equal(at(AT + 0x1ff), "bpf_prog_aa_first+0x1ff");
}

/* kallsyms does not have these symbols, and may be older than the records. */
TEST(records_that_come_while_kallsyms_is_read_are_kept)
{
	struct pool *pool = NULL;

	assert_int_equal(pool_new("test", 1, OS_PRIORITY_NORMAL, &pool, NULL), 0);
	kernel_symbols_look(symbols, pool, 1, 0);            /* nobody has asked for it */
	feed(1, 0x100, "bpf_prog_aa_unseen", false);
	kernel_symbols_rescan(symbols, false);
	kernel_symbols_look(symbols, pool, 2, 0);
	feed(0x2000, 0x100, "bpf_prog_cc_new", false);
	feed(0x3000, 0x100, "bpf_prog_dd_short", false);
	feed(0x3000, 0x100, "bpf_prog_dd_short", true);
	kernel_symbols_look(symbols, pool, 3, 60 * NS_PER_SEC);
	assert_string_equal(at(0x2008), "bpf_prog_cc_new+0x8");
	assert_string_equal(at(0x3008), "-");
	assert_string_equal(at(8), "-");
	assert_string_equal(at(AT + 0x1ff), "bpf_prog_aa_first+0x1ff");
	kernel_symbols_rescan(symbols, false);
	kernel_symbols_look(symbols, pool, 4, 0);            /* too early */
	kernel_symbols_look(symbols, pool, 3 + 10 * NS_PER_SEC, 0);
	feed(0x2000, 0x100, "bpf_prog_cc_new", true);        /* and it ends while one is read */
	pool_free(pool);
}

static void read_once(uint64_t now_ns)
{
	struct pool *pool = NULL;

	assert_int_equal(pool_new("test", 1, OS_PRIORITY_NORMAL, &pool, NULL), 0);
	kernel_symbols_look(symbols, pool, now_ns, 0);
	kernel_symbols_look(symbols, pool, now_ns, 60 * NS_PER_SEC);
	pool_free(pool);
}

TEST(what_is_read_once_is_there_for_the_names_too)
{
	struct buf text = {0};
	uint64_t modules = 0;

	kernel_symbols_rescan(symbols, false);
	read_once(1);
	assert_string_equal(at(AT + 0x1ff), "bpf_prog_aa_first+0x1ff");
	assert_true(kallsyms_text_take(given, &text, &modules));
	assert_string_equal(buf_text(&text), kallsyms);
	assert_int_equal(modules, 7);
	buf_free(&text);
	/* A later reading is of no use to who has one. */
	kernel_symbols_rescan(symbols, false);
	read_once(1 + 11 * NS_PER_SEC);
	assert_false(kallsyms_text_take(given, &text, &modules));
	assert_false(kallsyms_text_take(NULL, &text, &modules));
}

TEST(what_nobody_takes_for_10_seconds_is_dropped)
{
	struct buf text = {0};
	uint64_t modules;

	kernel_symbols_rescan(symbols, false);
	read_once(1);
	read_once(1 + 11 * NS_PER_SEC);
	assert_false(kallsyms_text_take(given, &text, &modules));
}

TEST(names_do_not_wait_for_a_text_that_could_not_be_read)
{
	struct buf text = {0};
	uint64_t modules;

	kallsyms_text_promise(given);
	kallsyms_text_give(given, &text, 7);
	assert_false(kallsyms_text_take(given, &text, &modules));
}

/* No record would tell when it goes. */
TEST(of_a_kernel_that_does_not_tell_only_its_own_functions_are_read)
{
	static const uint64_t io[] = {0xffffffff81000080};

	kernel_symbols_rescan(symbols, true);
	read_once(1);
	assert_string_equal(at(AT + 0x1ff), "-");
	assert_true(kernel_symbols_in(symbols, KERNEL_IO, io, 1));
}

TEST(waits_for_a_device_are_known_by_io_schedule)
{
	static const char text[] =
		"ffffffff81000000 T _text\n"
		"ffffffff81000100 T __pfx_io_schedule\n"
		"ffffffff81000110 T io_schedule\n"
		"ffffffff81000110 t alias\n"
		"ffffffff81000150 t io_schedule_timeout\n"
		"ffffffff81000200 t io_schedule\t[other]";
	static const uint64_t in[] = {0xffffffff81000000, 0xffffffff8100014f};
	static const uint64_t around[] = {0xffffffff81000108, 0xffffffff81000150,
					  0xffffffff81000208};

	kernel_symbols_scan(symbols, text, sizeof(text) - 1, 1);
	assert_true(kernel_symbols_in(symbols, KERNEL_IO, in, 2));
	assert_false(kernel_symbols_in(symbols, KERNEL_EXEC, in, 2));
	assert_false(kernel_symbols_in(symbols, KERNEL_IO, around, 3));
}

TEST(execve_is_known_by_its_addresses)
{
	static const char text[] =
		"ffffffff81000000 T _text\n"
		"ffffffff816c5ea0 T __pfx___x64_sys_execve\n"
		"ffffffff816c5eb0 T __x64_sys_execve\n"
		"ffffffff816c5f00 T __pfx___ia32_sys_execve\n"
		"ffffffff816c5f70 T __x64_sys_execveat\n"
		"ffffffff816c5fd0 T __x64_sys_other\n"
		"ffffffff82000000 d p_syscall_meta__sys_execve\n";
	static const uint64_t in[] = {0xffffffff81234567, 0xffffffff816c5ed0, 0xffffffff81000100};
	static const uint64_t in_at[] = {0xffffffff816c5fcf};
	static const uint64_t around[] = {0xffffffff816c5ea8, 0xffffffff816c5f00,
					  0xffffffff816c5fd0, 0xffffffff82000010};

	/* Not read yet, or hidden. */
	assert_false(kernel_symbols_in(symbols, KERNEL_EXEC, in, 3));
	kernel_symbols_scan(symbols, text, sizeof(text) - 1, 1);
	assert_true(kernel_symbols_in(symbols, KERNEL_EXEC, in, 3));
	assert_true(kernel_symbols_in(symbols, KERNEL_EXEC, in_at, 1));
	assert_false(kernel_symbols_in(symbols, KERNEL_EXEC, around, 4));
	assert_false(kernel_symbols_in(symbols, KERNEL_EXEC, NULL, 0));
}

TEST(absurd_records_are_passed_over)
{
	feed(AT, 0, "bpf_prog_aa_empty", false);
	feed(UINT64_MAX - 0x10, 0x100, "bpf_prog_aa_wraps", false);
	feed(AT, 0x100, "", false);
	feed(AT, 0x100, "[kernel]", false);
	feed(UINT64_MAX - 0x10, 0x100, "bpf_prog_aa_wraps", true);
	assert_string_equal(at(AT), "-");
	assert_string_equal(at(0), "-");
	assert_string_equal(at(UINT64_MAX - 0x10), "-");
}

int main(void)
{
#define WITH_SYMBOLS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_SYMBOLS(program_has_its_addresses_from_its_coming_to_its_going),
		WITH_SYMBOLS(memory_that_is_used_again_has_the_new_name_and_another_object),
		WITH_SYMBOLS(same_program_at_another_address_is_the_same_object),
		WITH_SYMBOLS(what_ran_before_the_start_stands_in_kallsyms),
		WITH_SYMBOLS(records_that_come_while_kallsyms_is_read_are_kept),
		WITH_SYMBOLS(what_is_read_once_is_there_for_the_names_too),
		WITH_SYMBOLS(what_nobody_takes_for_10_seconds_is_dropped),
		WITH_SYMBOLS(names_do_not_wait_for_a_text_that_could_not_be_read),
		WITH_SYMBOLS(of_a_kernel_that_does_not_tell_only_its_own_functions_are_read),
		WITH_SYMBOLS(waits_for_a_device_are_known_by_io_schedule),
		WITH_SYMBOLS(execve_is_known_by_its_addresses),
		WITH_SYMBOLS(absurd_records_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
