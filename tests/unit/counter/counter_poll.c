/* Counters are read on their grids and become events. */
#include "source/counter/poll.h"

#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define MS NS_PER_MS

/* order: the counters that were read, as "012", with a ' ' before each round. */
struct world {
	struct counter_poll poll;
	struct queue *queue;
	char order[200];
	enum counter_result result;
};

static void begin(struct counter_poll *poll)
{
	struct world *w = (struct world *)poll;

	strcat(w->order, " ");
}

static enum counter_result read_one(struct counter_poll *poll, uint32_t i, double *value)
{
	struct world *w = (struct world *)poll;

	assert_true(*value == 0);
	sprintf(w->order + strlen(w->order), "%u", (unsigned)i);
	*value = i + 0.5;
	return w->result;
}

static const struct counter_poll_ops ops = {begin, read_one, 10 * MS};

static void add(struct world *w, const char *name, uint64_t period_ns, bool monitor)
{
	struct need_counter need = {.period_ns = period_ns, .monitor = monitor};

	snprintf(need.name, sizeof(need.name), "%s", name);
	counter_poll_add(&w->poll, &need);
}

static void open_world(struct world *w, uint32_t n)
{
	*w = (struct world){.queue = queue_new(1 << 16)};
	assert_int_equal(counter_poll_open(&w->poll, &ops, w->queue, n, NULL), 0);
}

static void close_world(struct world *w)
{
	counter_poll_close(&w->poll);
	queue_free(w->queue);
}

TEST(each_counter_has_its_own_period_and_grid)
{
	struct world w;

	open_world(&w, 3);
	add(&w, "a", 100 * MS, false);
	add(&w, "b", 250 * MS, false);
	add(&w, "c", 1, false);              /* as often as allowed: every 10 ms */
	assert_int_equal(counter_poll_due(&w.poll, 1000 * MS), 1010 * MS);
	assert_int_equal(counter_poll_due(&w.poll, 1005 * MS), 1010 * MS);
	assert_int_equal(counter_poll_due(&w.poll, 1095 * MS), 1100 * MS);
	assert_int_equal(counter_poll_due(&w.poll, 1100 * MS), 1110 * MS);
	assert_int_equal(counter_poll_due(&w.poll, 1250 * MS), 1260 * MS);
	assert_string_equal(w.order, " 012 2 02 012");
	close_world(&w);
}

/* At 1735 the next reading on the grid of 100 ms is at 1800, and the seven missed ones are lost. */
TEST(what_was_missed_is_not_made_up_for)
{
	struct source_status status;
	struct world w;

	open_world(&w, 1);
	add(&w, "a", 100 * MS, false);
	counter_poll_due(&w.poll, 1000 * MS);
	assert_int_equal(counter_poll_due(&w.poll, 1735 * MS), 1800 * MS);
	assert_string_equal(w.order, " 0 0");
	counter_poll_status(&w.poll.base, &status);
	assert_int_equal(status.events, 2);
	close_world(&w);
}

TEST(a_value_is_an_event_and_not_yet_is_none)
{
	const struct event *e;
	struct world w;

	open_world(&w, 2);
	add(&w, "a", 0, false);
	add(&w, "b", 0, true);
	w.result = COUNTER_NOT_YET;
	assert_int_equal(counter_poll_due(&w.poll, 1000 * MS), 2000 * MS);
	assert_null(queue_peek(w.queue));
	w.result = COUNTER_VALUE;
	counter_poll_due(&w.poll, 2000 * MS);
	e = queue_peek(w.queue);
	assert_int_equal(e->kind, EVENT_COUNTER);
	assert_string_equal(e->name, "a");
	assert_true(e->value == 0.5);
	assert_int_equal(e->flags, 0);
	queue_pop(w.queue);
	assert_int_equal(queue_peek(w.queue)->flags, EVENT_FLAG_MONITOR);
	queue_pop(w.queue);
	w.result = COUNTER_ABSENT;
	counter_poll_due(&w.poll, 3000 * MS);
	assert_int_equal(queue_peek(w.queue)->flags, EVENT_FLAG_ABSENT);
	close_world(&w);
}

static struct world *running;

static void run(void *ctx)
{
	(void)ctx;
	counter_poll_run(&running->poll.base, NULL);
}

TEST(it_runs_until_it_is_stopped_with_watermarks_also_without_counters)
{
	struct os_thread *thread = NULL;
	uint64_t start_ns = os_now_ns();
	struct world w;

	open_world(&w, 0);
	running = &w;
	assert_int_equal(os_thread_start("counters", run, NULL, &thread, NULL), 0);
	while (queue_released(w.queue, os_now_ns()) <= start_ns)
		os_sleep_ns(MS);
	counter_poll_stop(&w.poll.base);
	os_thread_join(thread);
	assert_string_equal(w.order, "");
	close_world(&w);
}

static int make(void *ctx)
{
	struct counter_poll poll = {0};
	int rc = counter_poll_open(&poll, &ops, ctx, 2, NULL);

	counter_poll_close(&poll);
	return rc;
}

TEST(without_memory_it_says_so)
{
	assert_in_range(alloc_walk(make, NULL), 2, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_counter_has_its_own_period_and_grid),
		cmocka_unit_test(what_was_missed_is_not_made_up_for),
		cmocka_unit_test(a_value_is_an_event_and_not_yet_is_none),
		cmocka_unit_test(it_runs_until_it_is_stopped_with_watermarks_also_without_counters),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
