/* Sizes and growth of processes, and in whose name memory was asked for. */
#include "analysis/memory.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define S 1000000000ULL
#define START_NS (100 * S)                   /* of sample_incident(), with the trigger 5 s later */
#define MB 1048576u

static int add_event(struct incident *in, const char *who, enum event_kind kind, unsigned at_s,
		     const struct event_field *fields, uint32_t n)
{
	struct incident_event e = {.time_ns = START_NS + at_s * S, .kind = kind,
				   .thread = sample_thread(in, who, (uint32_t)who[0], who, 1),
				   .stack = STACK_NONE, .provider = "Memory", .name = "RSS",
				   .nfields = n};

	return e.thread == THREAD_NONE ? ERR_MEMORY : incident_add_event(in, &e, fields);
}

static int add_size(struct incident *in, const char *who, unsigned at_s, unsigned before_mb,
		    unsigned anon_mb, unsigned rss_mb, unsigned killed)
{
	const struct event_field fields[] = {
		{.name = "BeforeKb", .type = FIELD_UINT, .v.u = 1024 * before_mb},
		{.name = "AnonKb", .type = FIELD_UINT, .v.u = 1024 * anon_mb},
		{.name = "RssKb", .type = FIELD_UINT, .v.u = 1024 * rss_mb},
		{.name = "Killed", .type = FIELD_UINT, .v.u = killed},
	};

	return add_event(in, who, EVENT_GENERIC, at_s, fields, 4);
}

static int add_memory(struct incident *in, const char *who, enum stream stream, unsigned at_s,
		      const char *stack, uint64_t bytes)
{
	struct incident_sample s = {.time_ns = START_NS + at_s * S, .stream = (uint8_t)stream,
				    .thread = sample_thread(in, who, (uint32_t)who[0], who, 1),
				    .stack = STACK_NONE, .weight = bytes};

	if (s.thread == THREAD_NONE || sample_stack(in, stack, &s.stack))
		return ERR_MEMORY;
	return incident_add_sample(in, &s);
}

static struct memory_process only(const struct incident *in, unsigned at, const char *name)
{
	struct memory_process *all, one;
	uint32_t n;

	assert_int_equal(memory_processes(in, &all, &n, NULL), 0);
	assert_true(at < n);
	one = all[at];
	free(all);
	assert_string_equal(in->processes[one.process].name, name);
	return one;
}

/* 12 MB at first, 2 of them files; 30 at the trigger, 50 at most, 42 at the end. */
TEST(sizes_are_those_at_the_start_at_the_trigger_and_at_most)
{
	struct memory_process p;
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(add_size(&in, "a", 1, 10, 20, 22, 0), 0);
	assert_int_equal(add_size(&in, "a", 4, 20, 28, 30, 0), 0);
	assert_int_equal(add_size(&in, "a", 6, 28, 48, 50, 0), 0);
	assert_int_equal(add_size(&in, "a", 8, 48, 40, 42, 0), 0);
	p = only(&in, 0, "a");
	assert_true(p.start_kb == 12 * 1024);
	assert_true(p.trigger_kb == 30 * 1024);
	assert_true(p.peak_kb == 50 * 1024);
	assert_true(p.grew_kb == 30 * 1024);
	assert_false(p.ended);
	incident_free(&in);
}

TEST(the_killed_come_first_then_who_grew_most)
{
	struct memory_process p;
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(add_size(&in, "small", 1, 0, 10, 10, 0), 0);
	assert_int_equal(add_size(&in, "large", 1, 0, 90, 90, 0), 0);
	assert_int_equal(add_size(&in, "victim", 1, 0, 50, 50, 1), 0);
	assert_int_equal(add_event(&in, "victim", EVENT_PROCESS_EXIT, 2, NULL, 0), 0);
	assert_int_equal(add_memory(&in, "touching", STREAM_RSS, 1, "a!f", 20 * MB), 0);
	assert_int_equal(add_memory(&in, "touching", STREAM_RSS_NET, 1, "a!f", 20 * MB), 0);
	p = only(&in, 0, "victim");
	assert_true(p.killed && p.ended);
	only(&in, 1, "large");
	p = only(&in, 2, "touching");
	assert_true(!p.sized && p.touched == 20.0 * MB && p.net == 20.0 * MB);
	only(&in, 3, "small");
	incident_free(&in);
}

TEST(a_process_passes_a_module_that_is_in_its_stacks)
{
	struct incident in;
	uint32_t a;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(add_memory(&in, "b", STREAM_RSS_NET, 1, "libb.so!f", MB), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_RSS_NET, 1, "libjvm.so!f;app!g", MB), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_RSS, 1, "other.so!f", MB), 0);
	a = in.threads[in.samples[in.nsamples - 1].thread].process;
	assert_true(memory_passes(&in, a, "libjvm.so"));
	assert_true(memory_passes(&in, a, "jvm"));
	assert_true(memory_passes(&in, a, "app"));
	assert_false(memory_passes(&in, a, "libb.so"));
	assert_false(memory_passes(&in, a, "other.so"));
	incident_free(&in);
}

static const struct memory_pool *pool(const struct memory_pools *pools, unsigned at,
				      const char *name)
{
	assert_true(at < pools->n);
	assert_string_equal(pools->all[at].name, name);
	return &pools->all[at];
}

/* 3 + 1 MB by f through malloc, 2 by g, of which the kernel touched one; 9 of another process. */
static int make_pools(struct incident *in)
{
	int rc = sample_incident(in);

	if (!rc)
		rc = add_memory(in, "a", STREAM_RSS_NET, 1,
				"app!main;app!f;libc.so.6!malloc;libc.so.6!sysmalloc", 3 * MB);
	if (!rc)
		rc = add_memory(in, "a", STREAM_RSS_NET, 2, "app!main;app!f", MB);
	if (!rc)
		rc = add_memory(in, "a", STREAM_RSS_NET, 3, "app!main;lib.so!g", MB);
	if (!rc)
		rc = add_memory(in, "a", STREAM_RSS_NET, 9,
				"app!main;lib.so!g;libc.so.6!read;[kernel]!copy", MB);
	if (!rc)
		rc = add_memory(in, "a", STREAM_RSS, 3, "app!main;app!h", MB);
	if (!rc)
		rc = add_memory(in, "b", STREAM_RSS_NET, 3, "app!main;app!h", 9 * MB);
	return rc;
}

TEST(memory_is_charged_to_who_asked_for_it)
{
	const struct memory_pool *p;
	struct memory_pools pools;
	struct incident in;
	const enum stream net = STREAM_RSS_NET;
	uint32_t a;

	assert_int_equal(make_pools(&in), 0);
	a = in.threads[in.samples[0].thread].process;
	assert_int_equal(memory_pools_new(&in, a, net, MEMORY_BY_FUNCTION, &pools, NULL), 0);
	assert_int_equal(pools.n, 2);
	p = pool(&pools, 0, "app!f");
	assert_true(p->bytes == 4.0 * MB && p->samples == 2);
	assert_true(p->first_ns == START_NS + S && p->last_ns == START_NS + 2 * S);
	assert_true(pool(&pools, 1, "lib.so!g")->bytes == 2.0 * MB);
	memory_pools_free(&pools);
	assert_int_equal(memory_pools_new(&in, a, net, MEMORY_BY_MODULE, &pools, NULL), 0);
	assert_true(pool(&pools, 0, "app")->bytes == 4.0 * MB);
	memory_pools_free(&pools);
	assert_int_equal(memory_pools_new(&in, a, net, MEMORY_BY_STACK, &pools, NULL), 0);
	pool(&pools, 0, "app!f < app!main");
	memory_pools_free(&pools);
	incident_free(&in);
}

/* The window is from 0 to 10 s. */
TEST(a_suspect_is_old_and_still_grows)
{
	struct memory_pool p = {.samples = 3, .first_ns = START_NS + S,
				.last_ns = START_NS + 8 * S};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_true(memory_is_suspect(&in, &p));
	p.samples = 2;
	assert_false(memory_is_suspect(&in, &p));
	p.samples = 9;
	p.first_ns = START_NS + 6 * S;
	assert_false(memory_is_suspect(&in, &p));
	p.first_ns = START_NS + S;
	p.last_ns = START_NS + 7 * S;
	assert_false(memory_is_suspect(&in, &p));
	incident_free(&in);
}

/* Of 6 MB by f, 3 MB lived for 1 s and 1 MB for 5 s: 2 s as the mean of these bytes. */
TEST(what_was_allocated_has_a_lifetime)
{
	struct incident_freed freed[2];
	struct memory_pools pools;
	struct incident in;
	uint32_t a;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_HEAP, 1, "app!main;app!f", 6 * MB), 0);
	freed[0] = (struct incident_freed){
		.thread = in.samples[0].thread, .stack = in.samples[0].stack, .weight = 3 * MB,
		.time_ns = START_NS + S, .freed_ns = START_NS + 2 * S};
	freed[1] = freed[0];
	freed[1].weight = MB;
	freed[1].freed_ns = START_NS + 6 * S;
	in.freed = freed;
	in.nfreed = 2;
	a = in.threads[in.samples[0].thread].process;
	assert_int_equal(memory_pools_new(&in, a, STREAM_HEAP, MEMORY_BY_FUNCTION, &pools, NULL),
			 0);
	assert_true(pool(&pools, 0, "app!f")->bytes == 6.0 * MB);
	assert_true(pools.all[0].freed == 4.0 * MB);
	assert_true(pools.all[0].life_ns == 2.0 * S);
	memory_pools_free(&pools);
	in.freed = NULL;
	incident_free(&in);
}

/* 9 MB by samples of allocations, or the 6 MB of a heap whose frees are known, not both. */
TEST(what_was_allocated_is_told_by_the_heap_or_else_by_samples_of_objects)
{
	struct memory_process p;
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_ALLOC, 1, "app!f", 9 * MB), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_HEAP_NET, 1, "app!f", 2 * MB), 0);
	p = only(&in, 0, "a");
	assert_true(p.allocated == 9.0 * MB && p.in_use == 2.0 * MB);
	assert_int_equal(p.allocated_by, STREAM_ALLOC);
	assert_int_equal(add_memory(&in, "a", STREAM_HEAP, 1, "app!f", 6 * MB), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_ALLOC, 2, "app!f", 9 * MB), 0);
	p = only(&in, 0, "a");
	assert_true(p.allocated == 6.0 * MB && p.in_use == 2.0 * MB);
	assert_int_equal(p.allocated_by, STREAM_HEAP);
	assert_true(p.net == 0 && p.touched == 0);
	incident_free(&in);
}

TEST(what_only_is_in_use_is_a_process_too)
{
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(add_memory(&in, "a", STREAM_HEAP_NET, 1, "app!f", 2 * MB), 0);
	assert_true(only(&in, 0, "a").allocated == 0);
	incident_free(&in);
}

static int add_double_free(struct incident *in, const char *stack, unsigned at_s,
			   unsigned allocated_s, unsigned freed_s)
{
	const struct event_field fields[] = {
		{.name = "Address", .type = FIELD_UINT, .v.u = 0x1000},
		{.name = "AllocatedTicksAgo", .type = FIELD_UINT,
		 .v.u = (at_s - allocated_s) * (S / FAULT_TICK_NS)},
		{.name = "FreedTicksAgo", .type = FIELD_UINT,
		 .v.u = (at_s - freed_s) * (S / FAULT_TICK_NS)},
		{.name = "AllocatedCpu", .type = FIELD_UINT, .v.u = 3},
	};
	struct incident_event e = {.time_ns = START_NS + at_s * S, .kind = EVENT_GENERIC,
				   .thread = sample_thread(in, "a", 'a', "a", 1),
				   .provider = "Heap", .name = "DoubleFree", .nfields = 4};

	if (sample_stack(in, stack, &e.stack))
		return ERR_MEMORY;
	return incident_add_event(in, &e, fields);
}

TEST(a_double_free_has_the_stacks_of_both_frees_and_of_the_allocation)
{
	struct memory_mistake m;
	struct incident_freed freed[2];
	struct buf text = {0};
	struct incident in;
	uint32_t at = 0;

	assert_int_equal(sample_incident(&in), 0);
	freed[0] = (struct incident_freed){.cpu = 2, .time_ns = START_NS + S,
					   .freed_ns = START_NS + 2 * S,
					   .stack = STACK_NONE, .freed_by = STACK_NONE};
	freed[1] = freed[0];
	freed[1].cpu = 3;
	assert_int_equal(sample_stack(&in, "app!main;app!make", &freed[1].stack), 0);
	assert_int_equal(sample_stack(&in, "app!main;app!drop", &freed[1].freed_by), 0);
	assert_int_equal(add_double_free(&in, "app!main;app!drop_again", 4, 1, 2), 0);
	in.freed = freed;
	in.nfreed = 2;
	assert_true(memory_mistake_next(&in, &at, &m));
	assert_true(m.twice && m.address == 0x1000 && m.freed_first_ns == START_NS + 2 * S);
	memory_stack_text(&in, m.allocated_by, &text);
	buf_putc(&text, ' ');
	memory_stack_text(&in, m.freed_first_by, &text);
	buf_putc(&text, ' ');
	memory_stack_text(&in, m.freed_by, &text);
	assert_string_equal(buf_text(&text), "app!make < app!main app!drop < app!main "
			    "app!drop_again < app!main");
	assert_false(memory_mistake_next(&in, &at, &m));
	buf_free(&text);
	in.freed = NULL;
	incident_free(&in);
}

static int step(void *ctx)
{
	struct memory_process *all = NULL;
	struct memory_pools pools = {0};
	struct incident in;
	uint32_t n;
	int rc = make_pools(&in);

	(void)ctx;
	if (!rc)
		rc = memory_processes(&in, &all, &n, NULL);
	if (!rc)
		rc = memory_pools_new(&in, 0, STREAM_RSS_NET, MEMORY_BY_STACK, &pools, NULL);
	memory_pools_free(&pools);
	free(all);
	incident_free(&in);
	return rc;
}

TEST(an_allocation_that_fails_is_an_error)
{
	assert_in_range(alloc_walk(step, NULL), 5, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_those_at_the_start_at_the_trigger_and_at_most),
		cmocka_unit_test(the_killed_come_first_then_who_grew_most),
		cmocka_unit_test(a_process_passes_a_module_that_is_in_its_stacks),
		cmocka_unit_test(memory_is_charged_to_who_asked_for_it),
		cmocka_unit_test(a_suspect_is_old_and_still_grows),
		cmocka_unit_test(what_was_allocated_has_a_lifetime),
		cmocka_unit_test(
			what_was_allocated_is_told_by_the_heap_or_else_by_samples_of_objects),
		cmocka_unit_test(what_only_is_in_use_is_a_process_too),
		cmocka_unit_test(
			a_double_free_has_the_stacks_of_both_frees_and_of_the_allocation),
		cmocka_unit_test(an_allocation_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
