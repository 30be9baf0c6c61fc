#include "model/incident_join.h"

#include "base/os.h"
#include "tests/support/test.h"

/* n samples of a function, 10 ns apart, the first `from` before or after the trigger. */
static void make(struct incident *in, uint64_t trigger_ns, int from, unsigned n)
{
	struct incident_process p = {.pid = 7, .name = "cook", .cmdline = "", .home = ""};
	struct incident_module m = {.name = "cook", .path = ""};
	struct incident_frame f = {.function = "stir"};
	struct incident_thread t = {.tid = 8, .name = ""};
	struct incident_sample s = {.weight = 10};
	unsigned i;

	assert_int_equal(incident_init(in), 0);
	in->head.trigger_ns = trigger_ns;
	in->head.t0_ns = trigger_ns + (uint64_t)from;
	in->head.t1_ns = in->head.t0_ns + n * 10ull;
	t.process = incident_add_process(in, &p);
	s.thread = incident_add_thread(in, &t);
	f.module = incident_add_module(in, &m);
	s.stack = incident_add_stack(in, STACK_NONE, incident_add_frame(in, &f));
	for (i = 0; i < n; i++) {
		s.time_ns = in->head.t0_ns + i * 10ull;
		assert_int_equal(incident_add_sample(in, &s), 0);
	}
	s.thread = THREAD_NONE;
	s.time_ns = in->head.t1_ns;
	assert_int_equal(incident_add_sample(in, &s), 0);
}

static void parts_lie_at_one_trigger_in_order_of_time(void **state)
{
	struct incident set, a, b;
	uint32_t i;

	(void)state;
	assert_int_equal(incident_init(&set), 0);
	make(&a, 1000, -40, 4);
	make(&b, 90, -85, 10);
	assert_int_equal(incident_add_part(&set, &a, "Incident 1", NULL), 0);
	assert_int_equal(incident_add_part(&set, &b, "Incident 2", NULL), 0);
	incident_free(&a);
	incident_free(&b);
	assert_int_equal(set.nparts, 2);
	assert_string_equal(set.parts[1], "Incident 2");
	assert_int_equal(set.nsamples, 16);
	assert_int_equal(set.head.samples, 16);
	for (i = 1; i < set.nsamples; i++)
		assert_true(set.samples[i].time_ns >= set.samples[i - 1].time_ns);
	assert_int_equal(set.head.trigger_ns - set.head.t0_ns, 85);
	assert_int_equal(set.head.t1_ns - set.head.trigger_ns, 15);
	assert_int_equal(set.samples[0].time_ns, set.head.t0_ns);
	/* One function, but a process of each, and one that is not known. */
	assert_int_equal(set.nframes, 1);
	assert_int_equal(set.nprocesses, 4);
	assert_int_equal(set.processes[set.threads[set.samples[0].thread].process].part, 1);
	incident_free(&set);
}

static void a_set_of_too_many_is_refused(void **state)
{
	struct incident set, one;
	struct err err = {0};
	uint32_t i;

	(void)state;
	assert_int_equal(incident_init(&set), 0);
	make(&one, 1000, -10, 1);
	for (i = 0; i < INCIDENT_PARTS_MAX; i++)
		assert_int_equal(incident_add_part(&set, &one, "Incident 1", &err), 0);
	assert_int_equal(incident_add_part(&set, &one, "Incident 1", &err), ERR_LIMIT);
	incident_free(&one);
	incident_free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_lie_at_one_trigger_in_order_of_time),
		cmocka_unit_test(a_set_of_too_many_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
