/* An incident's events come once more in their order, with the processes that they had. */
#include "analysis/replay.h"

#include "tests/support/test.h"

#include <string.h>

struct seen {
	struct event events[8];
	unsigned n, stop_after;
};

static int see(void *ctx, const struct event *e, struct err *err)
{
	struct seen *seen = ctx;

	(void)err;
	seen->events[seen->n++] = *e;
	return seen->n == seen->stop_after ? ERR_STOPPED : 0;
}

/* nginx with two threads, and an event of each; one of no thread in between. */
static int make(struct incident *in)
{
	const struct incident_process nginx = {.pid = 7, .name = "nginx", .cmdline = "nginx -g x"};
	struct incident_thread t = {.tid = 7, .name = "main"};
	struct incident_event e = {.time_ns = 100, .kind = EVENT_GENERIC, .provider = "P",
				   .name = "first", .cpu = CPU_NONE,
				   .stack = STACK_NONE};
	int rc = incident_init(in);

	if (rc)
		return rc;
	in->head.t1_ns = 1000;
	t.process = incident_add_process(in, &nginx);
	e.thread = incident_add_thread(in, &t);
	if (t.process == UINT32_MAX || e.thread == UINT32_MAX || incident_add_event(in, &e, NULL))
		return ERR_MEMORY;
	e = (struct incident_event){.time_ns = 200, .kind = EVENT_COUNTER, .name = "A:B:",
				    .value = 3, .thread = THREAD_NONE, .cpu = CPU_NONE,
				   .stack = STACK_NONE};
	if (incident_add_event(in, &e, NULL))
		return ERR_MEMORY;
	t.tid = 8;
	e = (struct incident_event){.time_ns = 300, .kind = EVENT_GENERIC, .provider = "P",
				    .name = "last", .cpu = 1, .stack = STACK_NONE};
	e.thread = incident_add_thread(in, &t);
	return e.thread == UINT32_MAX || incident_add_event(in, &e, NULL) ? ERR_MEMORY : 0;
}

TEST(events_come_with_their_threads)
{
	struct processes *all = NULL;
	struct incident in = {0};
	struct seen seen = {.stop_after = 9};

	assert_int_equal(make(&in), 0);
	assert_int_equal(processes_new(&all, NULL), 0);
	assert_int_equal(replay_incident(&in, all, see, &seen, NULL), 0);
	assert_int_equal(seen.n, 3);
	assert_string_equal(seen.events[0].name, "first");
	assert_true(process_is_meant(seen.events[0].process, "nginx"));
	assert_null(seen.events[1].process);
	assert_true(seen.events[1].value == 3);
	assert_int_equal(seen.events[2].thread->tid, 8);
	assert_ptr_equal(seen.events[2].process, seen.events[0].process);

	/* The next part of the same machine's past: the same processes. */
	assert_int_equal(replay_incident(&in, all, see, &seen, NULL), 0);
	assert_ptr_equal(seen.events[3].thread, seen.events[0].thread);
	seen = (struct seen){.stop_after = 2};
	assert_int_equal(replay_incident(&in, all, see, &seen, NULL), ERR_STOPPED);
	assert_int_equal(seen.n, 2);
	processes_free(all);
	incident_free(&in);
}

/* A week has more processes than a table has room for; one that the next part has, too, stays. */
TEST(processes_that_the_next_part_does_not_have_are_freed)
{
	const struct incident_process other = {.pid = 8, .name = "sh", .cmdline = ""};
	struct incident_thread t = {.tid = 8, .name = "main"};
	struct incident in = {0}, next = {0};
	struct seen seen = {.stop_after = 9};
	struct processes *all = NULL;
	struct processes_use use;

	assert_int_equal(make(&in), 0);
	assert_int_equal(incident_init(&next), 0);
	next.head.t1_ns = 2000;
	t.process = incident_add_process(&next, &other);
	incident_add_thread(&next, &t);
	assert_int_equal(processes_new(&all, NULL), 0);
	assert_int_equal(replay_incident(&in, all, see, &seen, NULL), 0);
	processes_use(all, &use);
	assert_int_equal(use.threads, 2);
	assert_int_equal(replay_incident(&next, all, see, &seen, NULL), 0);
	processes_use(all, &use);
	assert_int_equal(use.processes, 1);
	assert_int_equal(use.threads, 1);
	processes_free(all);
	incident_free(&next);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_with_their_threads),
		cmocka_unit_test(processes_that_the_next_part_does_not_have_are_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
