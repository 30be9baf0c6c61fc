/* Waits for locks, exceptions and compiled methods, of events made by hand. */
#include "analysis/runtimes.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define AT_MS(ms) (100 * NS_PER_SEC + (uint64_t)(ms) * NS_PER_MS)

static int event(struct incident *in, const char *name, uint32_t thread, unsigned ms,
		 uint32_t stack, const struct event_field *fields, uint32_t n)
{
	const struct incident_event e = {
		.time_ns = AT_MS(ms), .kind = EVENT_GENERIC, .thread = thread, .stack = stack,
		.cpu = CPU_NONE, .provider = "Microsoft-Windows-DotNETRuntime", .name = name,
		.nfields = n};

	return incident_add_event(in, &e, fields);
}

/* Two threads wait in shop!Cart.add, one of them also in shop!Till.open, without an end. */
static int make_waits(struct incident *in)
{
	uint32_t a, b, cart, till;
	int rc = sample_incident(in);

	if (rc)
		return rc;
	a = sample_thread(in, "shop", 10, "a", 11);
	b = sample_thread(in, "shop", 10, "b", 12);
	rc = a == UINT32_MAX || b == UINT32_MAX;
	rc = rc ? rc : sample_stack(in, "shop!main;shop!Cart.add;x!System.Threading.Monitor.Enter;"
				    "clr!JITutil_MonContention", &cart);
	rc = rc ? rc : sample_stack(in, "shop!main;shop!Till.open;clr!AwareLock::Enter", &till);
	rc = rc ? rc : event(in, "Contention/Start", a, 10, cart, NULL, 0);
	rc = rc ? rc : event(in, "Contention/Start", b, 12, cart, NULL, 0);
	rc = rc ? rc : event(in, "Contention/Stop", a, 15, STACK_NONE, NULL, 0);
	rc = rc ? rc : event(in, "Contention/Stop", b, 32, STACK_NONE, NULL, 0);
	rc = rc ? rc : event(in, "Contention/Stop", b, 40, STACK_NONE, NULL, 0);
	return rc ? rc : event(in, "Contention/Start", b, 50, till, NULL, 0);
}

TEST(waits_are_summed_by_where_the_program_waits)
{
	struct incident in = {0};
	struct event_site *all;
	uint32_t n;

	assert_int_equal(make_waits(&in), 0);
	assert_int_equal(contention_sites(&in, &all, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(all[0].what, "shop!Cart.add");
	assert_int_equal(all[0].count, 2);
	assert_int_equal(all[0].waited_ns, 25 * NS_PER_MS);
	assert_int_equal(all[0].longest_ns, 20 * NS_PER_MS);
	assert_int_equal(all[0].open, 0);
	assert_string_equal(all[1].what, "shop!Till.open");
	assert_int_equal(all[1].waited_ns, 0);
	assert_int_equal(all[1].open, 1);
	free(all);
	incident_free(&in);
}

/* A method that is compiled again has the time of each; one without a beginning has none. */
TEST(a_method_is_as_old_as_its_latest_beginning)
{
	const struct event_field begin[] = {
		{.name = "MethodID", .type = FIELD_UINT, .v.u = 7},
		{.name = "MethodILSize", .type = FIELD_UINT, .v.u = 30}};
	const struct event_field end[] = {
		{.name = "MethodID", .type = FIELD_UINT, .v.u = 7},
		{.name = "MethodSize", .type = FIELD_UINT, .v.u = 100},
		{.name = "MethodFlags", .type = FIELD_UINT, .v.u = 8 | 4 << 7}};
	struct event_field other[COUNT_OF(end)], precompiled[COUNT_OF(end)];
	struct incident in = {0};
	struct jit_method *all;
	uint32_t n, thread;

	memcpy(other, end, sizeof(end));
	other[0].v.u = 8;
	memcpy(precompiled, end, sizeof(end));
	precompiled[2].v.u = 0;
	assert_int_equal(sample_incident(&in), 0);
	thread = sample_thread(&in, "shop", 10, "a", 11);
	event(&in, "Method/JittingStarted", thread, 10, STACK_NONE, begin, 2);
	event(&in, "Method/LoadVerbose", thread, 12, STACK_NONE, end, 3);
	event(&in, "Method/JittingStarted", thread, 20, STACK_NONE, begin, 2);
	event(&in, "Method/LoadVerbose", thread, 25, STACK_NONE, end, 3);
	event(&in, "Method/LoadVerbose", thread, 30, STACK_NONE, other, 3);
	event(&in, "Method/LoadVerbose", thread, 31, STACK_NONE, precompiled, 3);
	assert_int_equal(jit_methods(&in, &all, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_true(all[0].ms == 5 && all[1].ms == 2 && all[2].ms != all[2].ms);
	assert_true(all[0].il_bytes == 30 && all[0].native_bytes == 100);
	assert_string_equal(jit_tiers[all[0].tier], "OptimizedTier1");
	free(all);
	incident_free(&in);
}

/* Of a probe or EventPipe: the stack is that of the sample beside the event. */
TEST(an_exception_has_the_stack_of_its_sample)
{
	const struct event_field type = {.name = "ExceptionType", .type = FIELD_TEXT,
					 .v.text = "java.io.IOException"};
	struct incident in = {0};
	struct incident_sample s = {.time_ns = AT_MS(10), .weight = 1, .stream = STREAM_EVENT};
	struct event_site *all;
	uint32_t n, parent;

	assert_int_equal(sample_incident(&in), 0);
	s.thread = sample_thread(&in, "shop", 10, "a", 11);
	assert_int_equal(sample_stack(&in, "shop!main;event!Exception/Start java.io.IOException",
				      &s.stack), 0);
	assert_int_equal(incident_add_sample(&in, &s), 0);
	event(&in, "Exception/Start", s.thread, 10, STACK_NONE, &type, 1);
	event(&in, "Exception/Start", s.thread, 11, STACK_NONE, &type, 1);
	assert_int_equal(exception_sites(&in, &all, &n, NULL), 0);
	assert_int_equal(n, 2);
	parent = in.stacks[s.stack].parent;
	assert_int_equal(all[0].stack, parent);
	assert_int_equal(all[1].stack, STACK_NONE);
	assert_string_equal(all[1].what, "java.io.IOException");
	free(all);
	incident_free(&in);
}

static int find_waits(void *ctx)
{
	struct incident in = {0};
	struct event_site *all = NULL;
	uint32_t n;
	int rc = make_waits(&in);

	(void)ctx;
	if (!rc)
		rc = contention_sites(&in, &all, &n, NULL);
	if (!rc)
		free(all);
	incident_free(&in);
	return rc ? ERR_MEMORY : 0;
}

TEST(lack_of_memory_is_an_error_and_leaks_nothing)
{
	assert_true(alloc_walk(find_waits, NULL) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_summed_by_where_the_program_waits),
		cmocka_unit_test(a_method_is_as_old_as_its_latest_beginning),
		cmocka_unit_test(an_exception_has_the_stack_of_its_sample),
		cmocka_unit_test(lack_of_memory_is_an_error_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
