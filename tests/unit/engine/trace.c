/* Reading a trace event by event, on numbered samples. */
#include "tests/support/synthetic_source.h"
#include "engine/trace.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <string.h>

#define START_NS (1000 * NS_PER_SEC)

struct seen {
	uint64_t next;                       /* number of the sample that must come */
	uint64_t stop_at;
};

static int each(void *ctx, const struct event *e, const struct source_origin *origin)
{
	struct seen *seen = ctx;

	assert_int_equal(origin->start_ns, START_NS);
	assert_int_equal(e->time_ns, START_NS + seen->next * NS_PER_MS);
	assert_int_equal(e->value, seen->next);
	return seen->next++ == seen->stop_at ? ERR_STOPPED : 0;
}

static struct trace trace_of(struct seen *seen, struct synthetic_plan *plan)
{
	static const struct source_ops *const sources[] = {&synthetic_source, NULL};
	struct trace t = {.sources = sources, .path = "a.etl", .each = each, .ctx = seen};

	seen->next = 1;
	plan->start_ns = START_NS;
	plan->step_ns = NS_PER_MS;
	plan->origin.start_ns = START_NS;
	synthetic_plan(plan);
	return t;
}

/* 300,000 samples are many times what the queue holds. */
TEST(every_event_comes_once_and_in_order)
{
	struct synthetic_plan plan = {.nsamples = 300000};
	struct seen seen = {0};
	struct trace t = trace_of(&seen, &plan);

	assert_int_equal(trace_read(&t, NULL), 0);
	assert_int_equal(t.events, 300000);
	assert_int_equal(seen.next, 300001);
}

TEST(whoever_has_seen_enough_ends_it)
{
	struct synthetic_plan plan = {.nsamples = 1u << 30};
	struct seen seen = {.stop_at = 1000};
	struct trace t = trace_of(&seen, &plan);

	assert_int_equal(trace_read(&t, NULL), ERR_STOPPED);
	assert_int_equal(t.events, 1000);
}

TEST(what_precedes_an_error_is_given)
{
	struct synthetic_plan plan = {.nsamples = 1000, .fail_after = 500};
	struct seen seen = {0};
	struct trace t = trace_of(&seen, &plan);
	struct err err = {0};

	assert_int_equal(trace_read(&t, &err), ERR_IO);
	assert_string_equal(err.text, "cannot read on");
	assert_int_equal(t.events, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_comes_once_and_in_order),
		cmocka_unit_test(whoever_has_seen_enough_ends_it),
		cmocka_unit_test(what_precedes_an_error_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
