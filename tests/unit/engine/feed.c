#include "engine/feed.h"
#include "tests/support/stub_source.h"
#include "tests/support/test.h"

#include <string.h>

#define SEC(n) ((uint64_t)(n) * NS_PER_SEC)

static void open_feed(struct feed *f, uint32_t nsources)
{
	struct source_config cfg = {0};
	const struct needs needs = {0};
	struct err err;

	assert_int_equal(feed_open_tables(f, &err), 0);
	while (f->n < nsources)
		assert_int_equal(feed_open(f, &stub_source, &cfg, &needs, &err), 0);
}

static uint32_t nprocesses(struct feed *f)
{
	struct processes_use use;

	processes_use(f->processes, &use);
	return use.processes;
}

/* A process that ended at 100 s. */
static struct process *ended_process(struct feed *f)
{
	struct process *p = process_add(f->processes, 12, SEC(1), 0, 1, "worker");

	assert_non_null(p);
	process_drop(f->processes, p, SEC(100));
	return p;
}

TEST(a_process_is_forgotten_ten_seconds_after_every_source_has_passed_its_end)
{
	struct feed f = {0};

	open_feed(&f, 2);
	ended_process(&f);
	queue_watermark(f.sources[0].queue, SEC(200));
	queue_watermark(f.sources[1].queue, SEC(110));
	feed_sweep(&f, SEC(200));
	assert_int_equal(nprocesses(&f), 1);
	queue_watermark(f.sources[1].queue, SEC(111));
	feed_sweep(&f, SEC(200));
	assert_int_equal(nprocesses(&f), 0);
	feed_close(&f);
}

TEST(a_source_that_lags_by_a_minute_still_finds_its_process)
{
	struct event e = {.time_ns = SEC(99), .kind = EVENT_GENERIC, .stack = STACK_NONE};
	struct feed f = {0};
	struct feed_source *from;
	const struct event *got;

	open_feed(&f, 2);
	e.process = ended_process(&f);
	queue_watermark(f.sources[0].queue, SEC(160));
	queue_watermark(f.sources[1].queue, SEC(98));
	feed_sweep(&f, SEC(160));
	assert_true(queue_put(f.sources[1].queue, &e));
	queue_watermark(f.sources[1].queue, SEC(160));
	feed_sweep(&f, SEC(160));
	got = feed_peek(&f, &from);
	assert_non_null(got);
	assert_int_equal(nprocesses(&f), 1);
	assert_string_equal(process_name(got->process), "worker");
	queue_pop(from->queue);
	feed_sweep(&f, SEC(160));
	assert_int_equal(nprocesses(&f), 0);
	feed_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_is_forgotten_ten_seconds_after_every_source_has_passed_its_end),
		cmocka_unit_test(a_source_that_lags_by_a_minute_still_finds_its_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
