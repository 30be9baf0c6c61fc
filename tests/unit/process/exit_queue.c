/* Whose endings are: looked up while they wait, each for itself. */
#include "source/process/exit_queue.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

struct lab {
	struct processes *processes;
	struct exit_queue queue;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	*state = l;
	return !l || processes_new(&l->processes, NULL) ||
	       exit_queue_init(&l->queue, l->processes, NULL);
}

static int teardown(void **state)
{
	struct lab *l = *state;

	exit_queue_free(&l->queue);
	processes_free(l->processes);
	free(l);
	return 0;
}

static void ends(struct lab *l, uint32_t pid, uint64_t at_ms)
{
	const struct queued_exit p = {
		.record = {
			.kind = EXIT_RECORD_EXIT, .pid = pid, .tid = pid, .time_ns = at_ms * MS}};

	exit_queue_put(&l->queue, &p);
}

/*
 * As the recorder does: look, then take what is due. The name of the first that leaves by then,
 * "" = unknown.
 */
static const char *leaves(struct lab *l, uint64_t at_ms, uint32_t *pid)
{
	static char name[PROCESS_NAME_MAX + 1];
	struct queued_exit p;

	exit_queue_look(&l->queue, at_ms * MS);
	if (!exit_queue_take(&l->queue, at_ms * MS, &p))
		return NULL;
	*pid = p.record.pid;
	memcpy(name, p.name, sizeof(name));
	return name;
}

static void an_ending_waits_until_its_process_has_its_name(void **state)
{
	struct lab *l = *state;
	uint32_t pid = 0;

	process_add(l->processes, 7, 900 * MS, 0, 1, "shop");
	ends(l, 7, 1000);
	assert_null(leaves(l, 1179, &pid));
	assert_string_equal(leaves(l, 1180, &pid), "shop");
	assert_int_equal(pid, 7);
	assert_null(leaves(l, 1180, &pid));
}

/*
 * It was: by the time that the unknown one left, the next was forgotten, and so held up the one
 * behind it.
 */
static void one_that_nobody_knows_costs_no_other_its_name(void **state)
{
	struct lab *l = *state;
	struct process *shop = process_add(l->processes, 8, 900 * MS, 1, 1, "shop");
	uint32_t pid = 0;

	ends(l, 7, 1000);
	ends(l, 8, 1010);
	assert_null(leaves(l, 1200, &pid));
	process_drop(l->processes, shop, 2010 * MS);
	processes_sweep(l->processes, 2100 * MS);
	assert_null(leaves(l, 2179, &pid));
	assert_string_equal(leaves(l, 2180, &pid), "");
	assert_int_equal(pid, 7);
	assert_string_equal(leaves(l, 2180, &pid), "shop");
	assert_int_equal(pid, 8);
}

static void endings_leave_in_the_order_of_their_times(void **state)
{
	struct lab *l = *state;
	uint32_t pid, i;

	for (i = 3; i > 0; i--) {
		process_add(l->processes, i, 1, 0, 1, "x");
		ends(l, i, 1000 + i);
	}
	for (i = 1; i <= 3; i++) {
		assert_non_null(leaves(l, 1500, &pid));
		assert_int_equal(pid, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_ending_waits_until_its_process_has_its_name,
						setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_nobody_knows_costs_no_other_its_name,
						setup, teardown),
		cmocka_unit_test_setup_teardown(endings_leave_in_the_order_of_their_times, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
