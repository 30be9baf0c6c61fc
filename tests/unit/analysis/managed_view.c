/* Parameters, kinds and lines of managed frames, from what their names keep. */
#include "analysis/managed_view.h"

#include "managed/names.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void expect_parameters(const char *signature, const char *wanted)
{
	struct buf text = {0};

	managed_parameters(signature, &text);
	assert_string_equal(buf_text(&text), wanted);
	buf_free(&text);
}

TEST(parameters_are_types_by_their_last_name)
{
	expect_parameters("()V", "()");
	expect_parameters("(I[[JLjava/lang/Object;[Ljava/util/Map$Entry;Z)V Map.java 0:1",
			  "(int, long[][], Object, Map$Entry[], boolean)");
	expect_parameters("(LNoPackage;)V", "(NoPackage)");
}

TEST(a_malformed_signature_adds_nothing)
{
	static const char *const bad[] = {"", "(", "(I", "(X)V", "(Ljava/lang/Object)V", "([)V",
					  "I)V"};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_parameters(bad[i], "");
}

static void expect_line(const char *detail, int32_t bci, const char *file, uint32_t line)
{
	const char *found = NULL;
	size_t nfound = 0;
	uint32_t at = 0;

	assert_int_equal(managed_line(detail, bci, &found, &nfound, &at), line != 0);
	if (!line)
		return;
	assert_int_equal(at, line);
	assert_int_equal(nfound, strlen(file));
	assert_memory_equal(found, file, nfound);
}

TEST(a_line_is_the_one_that_begins_last_before_the_bytecode)
{
	/* A loop's condition stands behind its body, with a smaller line. */
	static const char detail[] = "(I)V A.java 0:10 4:12 20:11 9:13";

	expect_line(detail, 0, "A.java", 10);
	expect_line(detail, 3, "A.java", 10);
	expect_line(detail, 4, "A.java", 12);
	expect_line(detail, 19, "A.java", 13);
	expect_line(detail, 65534, "A.java", 11);
}

TEST(where_nothing_is_known_there_is_no_line)
{
	expect_line("(I)V A.java 0:10", -1, NULL, 0);
	expect_line("(I)V A.java 5:10", 4, NULL, 0);
	expect_line("(I)V A.java", 4, NULL, 0);
	expect_line("(I)V", 4, NULL, 0);
	expect_line("(I)V A.java x:10", 4, NULL, 0);
	expect_line("(I)V  0:1", 4, NULL, 0);
}

/* One frame "[java]!Shop.sell" at bytecode 9, run by C2, and a native one of the same raw name. */
static int make(struct incident *in)
{
	struct incident_module java = {.kind = OBJECT_JIT, .name = "[java]", .path = "[java]"};
	struct incident_module elf = {.kind = OBJECT_ELF, .name = "shop", .path = "/shop"};
	struct incident_frame f = {.function = "Shop.sell", .raw_name = "(I)V Shop.java 0:7 9:8",
				   .offset = managed_offset(5, MANAGED_C2, 9)};
	int rc = sample_incident(in);

	f.module = rc ? 0 : incident_add_module(in, &java);
	if (!rc && incident_add_frame(in, &f) == UINT32_MAX)
		rc = ERR_MEMORY;
	f.module = rc ? 0 : incident_add_module(in, &elf);
	return !rc && incident_add_frame(in, &f) == UINT32_MAX ? ERR_MEMORY : rc;
}

TEST(only_managed_frames_are_changed)
{
	const struct managed_view view = {.parameters = true, .kinds = true, .lines = true};
	struct incident in;

	assert_int_equal(make(&in), 0);
	assert_int_equal(managed_view_apply(&in, &view, NULL), 0);
	assert_string_equal(in.frames[0].function, "Shop.sell(int) [C2]");
	assert_string_equal(in.frames[0].file, "Shop.java");
	assert_int_equal(in.frames[0].line, 8);
	assert_string_equal(in.frames[1].function, "Shop.sell");
	assert_null(in.frames[1].file);
	incident_free(&in);
}

/* Precompiled code of .NET lies in a file. */
TEST(parameters_of_net_methods_are_as_they_were_told)
{
	const struct managed_view view = {.parameters = true, .kinds = true, .lines = true};
	struct incident_frame f = {.function = "System.String.Concat",
				   .raw_name = "=(class System.String)"};
	struct incident in;

	assert_int_equal(make(&in), 0);
	f.module = in.frames[1].module;
	assert_int_equal(incident_add_frame(&in, &f), 2);
	assert_int_equal(managed_view_apply(&in, &view, NULL), 0);
	assert_string_equal(in.frames[2].function, "System.String.Concat(class System.String)");
	assert_null(in.frames[2].file);
	incident_free(&in);
}

static int step(void *ctx)
{
	const struct managed_view view = {.parameters = true, .kinds = true, .lines = true};
	struct incident in;
	int rc = make(&in);

	(void)ctx;
	if (!rc)
		rc = managed_view_apply(&in, &view, NULL);
	incident_free(&in);
	return rc;
}

TEST(an_allocation_that_fails_is_an_error)
{
	assert_in_range(alloc_walk(step, NULL), 5, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_types_by_their_last_name),
		cmocka_unit_test(a_malformed_signature_adds_nothing),
		cmocka_unit_test(a_line_is_the_one_that_begins_last_before_the_bytecode),
		cmocka_unit_test(where_nothing_is_known_there_is_no_line),
		cmocka_unit_test(only_managed_frames_are_changed),
		cmocka_unit_test(parameters_of_net_methods_are_as_they_were_told),
		cmocka_unit_test(an_allocation_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
