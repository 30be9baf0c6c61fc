/* The ledger: what was expected, recorded and lost adds up, by CPU and second. */
#include "base/os.h"
#include "model/ledger.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <string.h>

#define TRIGGER_NS (100 * NS_PER_SEC)

static struct incident in;
static struct ledger ledger;
static uint32_t named, unnamed;

static int open_incident(void **state)
{
	struct incident_module module = {.kind = OBJECT_ELF, .name = "app", .path = "/app"};
	struct incident_frame frame = {.offset = 10};

	(void)state;
	if (incident_init(&in))
		return -1;
	in.head.trigger_ns = in.head.t1_ns = TRIGGER_NS;
	in.head.t0_ns = TRIGGER_NS - 10 * NS_PER_SEC;
	frame.module = incident_add_module(&in, &module);
	unnamed = incident_add_stack(&in, STACK_NONE, incident_add_frame(&in, &frame));
	frame.offset = 20;
	frame.function = "work";
	named = incident_add_stack(&in, STACK_NONE, incident_add_frame(&in, &frame));
	return named == UINT32_MAX ? -1 : 0;
}

static int close_incident(void **state)
{
	(void)state;
	ledger_free(&ledger);
	incident_free(&in);
	return 0;
}

/* n samples in the second before -`before_s` + 1, all at its middle. */
static void samples(unsigned n, unsigned before_s, unsigned cpu, uint32_t stack,
		    enum stack_quality quality)
{
	struct incident_sample s = {.time_ns = TRIGGER_NS - before_s * NS_PER_SEC + NS_PER_SEC / 2,
				    .weight = 1, .thread = THREAD_NONE, .stack = stack,
				    .cpu = (uint16_t)cpu, .quality = (uint8_t)quality};

	while (n--)
		assert_int_equal(incident_add_sample(&in, &s), 0);
}

static void event(enum event_kind kind, const char *name, double value, uint64_t time_ns,
		  unsigned cpu)
{
	struct incident_event e = {.time_ns = time_ns, .kind = kind, .thread = THREAD_NONE,
				   .stack = STACK_NONE, .cpu = (uint16_t)cpu, .provider = "",
				   .name = name, .value = value};

	assert_int_equal(incident_add_event(&in, &e, NULL), 0);
}

/* What a source says at the end of the second -before_s. */
static void expected(double value, unsigned before_s, unsigned cpu)
{
	event(EVENT_EXPECTED, "", value, TRIGGER_NS - (before_s - 1) * NS_PER_SEC, cpu);
}

static void make(void)
{
	struct err err;

	assert_int_equal(ledger_new(&in, &ledger, &err), 0);
}

static const struct ledger_counts *row(int32_t second, uint16_t cpu)
{
	uint32_t i;

	for (i = 0; i < ledger.nrows; i++) {
		if (ledger.rows[i].second == second && ledger.rows[i].cpu == cpu)
			return &ledger.rows[i].n;
	}
	fail_msg("no row of second %d, cpu %u", second, cpu);
	return NULL;
}

static void near(double a, double b)
{
	assert_true(a - b < 1e-6 && b - a < 1e-6);
}

/*
 * CPU 0, second -2: 99 expected = 90 recorded + 5 lost to the kernel + 1 to the queue + 3
 * unexplained.
 */
TEST(known_losses_add_up_exactly)
{
	expected(99, 3, 0);
	samples(99, 3, 0, named, QUALITY_COMPLETE);
	samples(90, 2, 0, named, QUALITY_COMPLETE);
	event(EVENT_LOST, "kernel", 5, TRIGGER_NS - 2 * NS_PER_SEC + 7, 0);
	event(EVENT_LOST, "queue", 1, TRIGGER_NS - 2 * NS_PER_SEC + 8, 0);
	expected(99, 2, 0);
	make();
	assert_true(ledger.has_expected);
	assert_int_equal(row(-2, 0)->recorded, 90);
	assert_int_equal(row(-2, 0)->lost[LOSS_KERNEL], 5);
	assert_int_equal(row(-2, 0)->lost[LOSS_QUEUE], 1);
	near(ledger_unexplained(row(-3, 0)), 0);
	near(ledger_unexplained(row(-2, 0)), 3);
	near(ledger.total.expected, 198);
	near(ledger_unexplained(&ledger.total), 3);
}

/* A flood of tracepoints fills a buffer of its own: no sample is missing for it. */
TEST(lost_events_of_rules_are_no_lost_samples)
{
	expected(99, 3, 0);
	samples(99, 3, 0, named, QUALITY_COMPLETE);
	event(EVENT_LOST, "events", 171, TRIGGER_NS - 3 * NS_PER_SEC + 7, 0);
	make();
	assert_int_equal(row(-3, 0)->lost[LOSS_EVENTS], 171);
	near(ledger_unexplained(&ledger.total), 0);
}

TEST(cpus_and_seconds_have_rows_of_their_own)
{
	samples(1, 3, 1, named, QUALITY_COMPLETE);
	samples(2, 1, 1, named, QUALITY_COMPLETE);
	samples(3, 1, 0, named, QUALITY_COMPLETE);
	make();
	assert_int_equal(ledger.nrows, 3);
	assert_int_equal(ledger.rows[0].n.recorded, 1);
	assert_int_equal(ledger.rows[1].n.recorded, 3);      /* second -1: CPU 0 before CPU 1 */
	assert_int_equal(ledger.rows[2].n.recorded, 2);
	assert_int_equal(ledger.total.recorded, 6);
}

TEST(broken_truncated_and_unnamed_are_parts_of_recorded)
{
	samples(1, 1, 0, named, QUALITY_COMPLETE);
	samples(2, 1, 0, named, QUALITY_BROKEN);
	samples(3, 1, 0, unnamed, QUALITY_TRUNCATED);
	samples(4, 1, 0, STACK_NONE, QUALITY_NONE);
	make();
	assert_int_equal(row(-1, 0)->recorded, 10);
	assert_int_equal(row(-1, 0)->broken, 2);
	assert_int_equal(row(-1, 0)->truncated, 3);
	assert_int_equal(row(-1, 0)->unnamed, 7);
}

TEST(throttling_counts_times_and_no_samples)
{
	samples(10, 1, 0, named, QUALITY_COMPLETE);
	event(EVENT_LOST, "throttled", 2, TRIGGER_NS - NS_PER_SEC / 2, 0);
	expected(15, 1, 0);
	make();
	assert_int_equal(row(-1, 0)->lost[LOSS_THROTTLED], 2);
	near(ledger_unexplained(row(-1, 0)), 5);
}

/* Said half a second after the second began: half of it belongs to the second before. */
TEST(expectations_are_shared_by_the_seconds_they_touch)
{
	event(EVENT_EXPECTED, "", 100, TRIGGER_NS - 2 * NS_PER_SEC - NS_PER_SEC / 2, 0);
	event(EVENT_EXPECTED, "", 80, TRIGGER_NS - NS_PER_SEC - NS_PER_SEC / 2, 0);
	make();
	near(row(-2, 0)->expected, 40);
	near(row(-3, 0)->expected, 40 + 50);
}

/* Idle seconds are not said: the busy second after them gets its own expectation only. */
TEST(idle_seconds_expect_nothing)
{
	uint32_t i;

	expected(99, 9, 0);
	expected(99, 1, 0);
	make();
	near(row(-1, 0)->expected, 99);
	for (i = 0; i < ledger.nrows; i++)
		assert_false(ledger.rows[i].second > -9 && ledger.rows[i].second < -1);
}

TEST(what_is_expected_before_the_window_is_left_out)
{
	event(EVENT_EXPECTED, "", 100, in.head.t0_ns + NS_PER_SEC / 2, 0);
	make();
	near(ledger.total.expected, 50);                     /* half of its second */
}

TEST(samples_after_the_last_expectation_are_left_out_of_the_sum)
{
	samples(99, 2, 0, named, QUALITY_COMPLETE);
	expected(99, 2, 0);
	samples(40, 1, 0, named, QUALITY_COMPLETE);
	make();
	assert_int_equal(ledger.total.recorded, 139);
	assert_int_equal(ledger.total.uncovered, 40);
	near(ledger_unexplained(row(-2, 0)), 0);
	near(ledger_unexplained(row(-1, 0)), 0);
}

TEST(a_source_that_says_nothing_has_no_expectations)
{
	samples(5, 1, 0, named, QUALITY_COMPLETE);
	make();
	assert_false(ledger.has_expected);
	assert_int_equal(ledger.total.recorded, 5);
}

static int build(void *ctx)
{
	struct ledger l = {0};
	struct err err;
	int rc = ledger_new(&in, &l, &err);

	(void)ctx;

	ledger_free(&l);
	return rc;
}

TEST(ledger_without_memory_is_an_error)
{
	samples(5, 1, 0, named, QUALITY_COMPLETE);
	expected(7, 1, 0);
	assert_true(alloc_walk(build, NULL) > 2);
}

static void evicted(int64_t second, uint64_t n, uint64_t time_ns, unsigned cpu)
{
	struct incident_event e = {.time_ns = time_ns,
				   .kind = EVENT_GENERIC,
				   .thread = THREAD_NONE,
				   .stack = STACK_NONE,
				   .cpu = (uint16_t)cpu,
				   .provider = "Recorder",
				   .name = "Evicted",
				   .nfields = 2};
	struct event_field fields[] = {{.name = "Second", .type = FIELD_INT, .v.i = second},
				       {.name = "Samples", .type = FIELD_UINT, .v.u = n}};

	assert_int_equal(incident_add_event(&in, &e, fields), 0);
}

TEST(what_the_ring_gave_up_stands_where_it_was_and_is_in_no_other_sum)
{
	samples(5, 1, 0, named, QUALITY_COMPLETE);
	evicted(-30, 70, TRIGGER_NS, 0);
	evicted(-30, 20, TRIGGER_NS, CPU_NONE);
	evicted(-29, 9, TRIGGER_NS, 1);
	evicted(-5, 1000, TRIGGER_NS - NS_PER_SEC, 0);       /* of another firing */
	evicted(INT64_MIN, 1, TRIGGER_NS, 0);                /* and of a liar */
	make();
	assert_int_equal(row(-30, 0)->evicted, 70);
	assert_int_equal(row(-30, CPU_NONE)->evicted, 20);
	assert_int_equal(row(-29, 1)->evicted, 9);
	assert_int_equal(ledger.total.evicted, 99);
	assert_int_equal(ledger.total.recorded, 5);
}

#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, open_incident, close_incident)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(known_losses_add_up_exactly),
		IN_LAB(lost_events_of_rules_are_no_lost_samples),
		IN_LAB(cpus_and_seconds_have_rows_of_their_own),
		IN_LAB(broken_truncated_and_unnamed_are_parts_of_recorded),
		IN_LAB(throttling_counts_times_and_no_samples),
		IN_LAB(expectations_are_shared_by_the_seconds_they_touch),
		IN_LAB(idle_seconds_expect_nothing),
		IN_LAB(what_is_expected_before_the_window_is_left_out),
		IN_LAB(samples_after_the_last_expectation_are_left_out_of_the_sum),
		IN_LAB(a_source_that_says_nothing_has_no_expectations),
		IN_LAB(what_the_ring_gave_up_stands_where_it_was_and_is_in_no_other_sum),
		IN_LAB(ledger_without_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
