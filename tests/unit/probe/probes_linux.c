/*
 * Probes that rules ask for, up to the point where they would be opened: this test's own functions.
 */
#include "source/probe/probes_linux.h"

#include "source/probe/uprobe_linux.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int asked_for(int n);
int asked_for(int n) { return n + 1; }

static struct needs *needs;

/* uprobe:THIS_PROGRAM:function */
static void need(const char *function)
{
	char self[UPROBE_PATH_MAX] = "";
	struct need_event *e = &needs->events[needs->nevents++];

	assert_in_range(readlink("/proc/self/exe", self, sizeof(self) - 1), 1, sizeof(self) - 2);
	memset(e, 0, sizeof(*e));
	snprintf(e->provider, sizeof(e->provider), "uprobe");
	snprintf(e->name, sizeof(e->name), "%s:%s", self, function);
}

static int begin(void **state)
{
	(void)state;
	needs = calloc(1, sizeof(*needs));
	return needs ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	free(needs);
	return 0;
}

static bool no_uprobes(void)
{
	struct err err;
	uint32_t pmu;

	if (uprobe_pmu(&pmu, &err) == 0)
		return false;
	printf("skipped: %s\n", err.text);
	return true;
}

static int open_probes(void *ctx)
{
	const struct probes_config cfg = {
		.needs = needs, .capture = &(struct capture){.stack_kb = 8}, .ncpus = 2};
	struct probes *p = NULL;
	int rc = probes_new(&cfg, &p, ctx);

	probes_free(p);
	return rc;
}

TEST(a_function_is_found_and_a_wrong_name_gives_the_nearest)
{
	struct err err;

	if (no_uprobes())
		skip();
	need("asked_for");
	assert_int_equal(probes_check(needs, &err), 0);
	assert_int_equal(open_probes(&err), 0);
	need("asked_four");
	assert_int_equal(probes_check(needs, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "the nearest are asked_for"));
	assert_int_equal(open_probes(&err), ERR_USAGE);
}

TEST(who_asks_for_nothing_gets_nothing)
{
	const struct probes_config cfg = {
		.needs = needs, .capture = &(struct capture){0}, .ncpus = 2};
	struct probes *p = NULL;

	assert_int_equal(probes_new(&cfg, &p, NULL), 0);
	assert_null(p);
}

TEST(lack_of_memory_is_reported)
{
	struct err err;

	if (no_uprobes())
		skip();
	need("asked_for");
	need("asked_for+0");
	needs->events[1].stack = true;
	assert_in_range(alloc_walk(open_probes, &err), 5, 200);
}

static int check_probes(void *ctx)
{
	return probes_check(needs, ctx);
}

TEST(lack_of_memory_for_a_check_is_reported)
{
	struct err err;

	if (no_uprobes())
		skip();
	need("asked_for");
	assert_in_range(alloc_walk(check_probes, &err), 3, 200);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(a_function_is_found_and_a_wrong_name_gives_the_nearest),
		FRESH(who_asks_for_nothing_gets_nothing),
		FRESH(lack_of_memory_is_reported),
		FRESH(lack_of_memory_for_a_check_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
