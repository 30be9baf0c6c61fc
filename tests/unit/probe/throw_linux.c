/* Where programs throw and what: by this process, which takes the part of one that throws. */
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
	throw_read(THROW_CXX, reader, &r, &out);
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
	struct throw_text text = {.type = "shop::no_stock"};

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

TEST(probes_go_where_c_and_java_throw)
{
	assert_string_equal(throw_function("C++", 0), "__cxa_throw");
	assert_null(throw_function("C++", 1));
	assert_string_equal(throw_function("Java", 0), "JVM_FillInStackTrace");
	assert_null(throw_function("Java", THROW_PLACES_MAX));
	assert_int_equal(throw_kind_of("Java", "/a:b/libjvm.so:JVM_FillInStackTrace"), THROW_JAVA);
	assert_int_equal(throw_kind_of("C++", "/a/libjvm.so:JVM_FillInStackTrace"), THROW_NONE);
	assert_int_equal(throw_kind_of("uprobe", "/lib/libstdc++.so.6:__cxa_throw"), THROW_NONE);
}

/* The handle is the place on the stack where the reference was at the hit. */
TEST(a_java_exception_is_taken_from_the_copy_of_the_stack)
{
	uint64_t regs[17] = {0}, stack[4] = {0, 0, 0x7f0012345678, 0}, object = 0;
	struct perf_record r = {.kind = PERF_KIND_SAMPLE};

	regs[7] = 0x10000;                   /* RSP */
	regs[4] = 0x10010;                   /* RSI */
	r.u.sample.regs_abi = 2;
	r.u.sample.regs = regs;
	r.u.sample.stack = (const uint8_t *)stack;
	r.u.sample.stack_bytes = sizeof(stack);
	assert_true(throw_java_object(&r, &object));
	assert_int_equal(object, 0x7f0012345678);
	regs[4] = 0x1001c;                   /* its end is not in the copy */
	assert_false(throw_java_object(&r, &object));
	regs[4] = 0xfff8;
	assert_false(throw_java_object(&r, &object));
}

/* What the JVM keeps ready has a type that the place tells, and of memory a text of libjvm's. */
TEST(errors_that_the_jvm_keeps_ready_have_their_type)
{
	struct proc_reader *reader = NULL;
	uint64_t regs[17] = {0};
	struct perf_record r = {.kind = PERF_KIND_SAMPLE, .pid = (uint32_t)getpid()};
	struct event_field fields[2];
	struct throw_text out;

	r.u.sample.regs_abi = 2;
	r.u.sample.regs = regs;
	regs[5] = (uint64_t)(uintptr_t)"Java heap space";
	assert_int_equal(proc_reader_new(NULL, &reader, NULL), 0);
	throw_read(THROW_JAVA_MEMORY, reader, &r, &out);
	assert_string_equal(out.type, "java.lang.OutOfMemoryError");
	assert_string_equal(out.message, "Java heap space");
	assert_int_equal(throw_fields(out.type, out.message, fields), 2);
	throw_read(THROW_JAVA_STACK, reader, &r, &out);
	assert_string_equal(out.type, "java.lang.StackOverflowError");
	assert_int_equal(throw_fields(out.type, out.message, fields), 1);
	regs[5] = 0;
	throw_read(THROW_JAVA_MEMORY, reader, &r, &out);
	assert_string_equal(out.message, "");
	proc_reader_free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_runs_is_found_by_its_name_or_number),
		cmocka_unit_test(a_type_is_read_from_the_process_that_throws),
		cmocka_unit_test(what_the_runtime_of_net_throws_is_no_exception_of_a_program),
		cmocka_unit_test(a_type_that_cannot_be_read_is_a_question_mark),
		cmocka_unit_test(probes_go_where_c_and_java_throw),
		cmocka_unit_test(a_java_exception_is_taken_from_the_copy_of_the_stack),
		cmocka_unit_test(errors_that_the_jvm_keeps_ready_have_their_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
