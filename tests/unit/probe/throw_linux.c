/* Where C++ programs throw and what: by this process, which takes the part of one that throws. */
#include "source/host/proc_reader_linux.h"
#include "source/probe/throw_linux.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned find(const char *filter, char *first)
{
	char paths[THROW_PROGRAMS_MAX][UPROBE_PATH_MAX] = {{0}};
	struct programs *programs = NULL;
	unsigned n;

	assert_int_equal(programs_new(NULL, &programs, NULL), 0);
	n = throw_programs(programs, filter, paths);
	programs_free(programs);
	snprintf(first, UPROBE_PATH_MAX, "%s", paths[0]);
	return n;
}

TEST(a_program_that_runs_is_found_by_its_name_or_number)
{
	char self[UPROBE_PATH_MAX] = "", path[UPROBE_PATH_MAX], filter[100];

	assert_in_range(readlink("/proc/self/exe", self, sizeof(self) - 1), 1, sizeof(self) - 2);
	snprintf(filter, sizeof(filter), "ProcessID=%d", (int)getpid());
	assert_int_equal(find(filter, path), 1);
	assert_string_equal(path, self);
	assert_int_equal(find("ProcessName=THROW_linux", path), 1);
	assert_int_equal(find("ProcessName=throw_lin", path), 0);
	assert_int_equal(find("ProcessID=0", path), 0);
	assert_int_equal(find("", path), 0);
}

/* What a throw in this process says whose second argument, a type_info, lies there. */
static const char *thrown(const void *type_info, bool has_regs)
{
	static struct throw_text out;
	struct proc_reader *reader = NULL;
	uint64_t regs[17] = {0};
	struct perf_record r = {.kind = PERF_KIND_SAMPLE, .pid = (uint32_t)getpid()};

	regs[4] = (uint64_t)(uintptr_t)type_info;
	r.u.sample.regs_abi = 2;
	r.u.sample.regs = has_regs ? regs : NULL;
	assert_int_equal(proc_reader_new(NULL, &reader, NULL), 0);
	throw_read(reader, &r, &out);
	proc_reader_free(reader);
	return out.type;
}

struct type_info {
	const void *vtable;
	const char *name;
};

TEST(a_type_is_read_from_the_process_that_throws)
{
	struct type_info type = {NULL, "N4shop8no_stockE"}, local = {NULL, "*N4shop8no_stockE"};
	struct type_info own = {NULL, "?odd"};

	assert_string_equal(thrown(&type, true), "shop::no_stock");
	assert_string_equal(thrown(&local, true), "shop::no_stock");
	assert_string_equal(thrown(&own, true), "?odd");
}

TEST(what_the_runtime_of_net_throws_is_no_exception_of_a_program)
{
	struct type_info type = {NULL, "16PAL_SEHException"};
	struct throw_text text = {"shop::no_stock"};

	assert_false(throw_is_of_runtime(&text));
	snprintf(text.type, sizeof(text.type), "%s", thrown(&type, true));
	assert_true(throw_is_of_runtime(&text));
}

TEST(a_type_that_cannot_be_read_is_a_question_mark)
{
	struct type_info nowhere = {NULL, (const char *)16}, empty = {NULL, ""},
			 endless = {NULL, NULL};
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, 'x', 8192);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	endless.name = pages;
	assert_string_equal(thrown(&endless, true), "?");
	endless.name = pages + 4096 - 5;                 /* and over what cannot be read */
	assert_string_equal(thrown(&endless, true), "?");
	assert_string_equal(thrown(&nowhere, true), "?");
	assert_string_equal(thrown(&empty, true), "?");
	assert_string_equal(thrown((const void *)8, true), "?");
	assert_string_equal(thrown(&empty, false), "?");
	munmap(pages, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_runs_is_found_by_its_name_or_number),
		cmocka_unit_test(a_type_is_read_from_the_process_that_throws),
		cmocka_unit_test(what_the_runtime_of_net_throws_is_no_exception_of_a_program),
		cmocka_unit_test(a_type_that_cannot_be_read_is_a_question_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
