/* The parts of a long wait become those of one wait, with the stack of who ended it. */
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <string.h>

#define S 1000000000ULL
#define START_NS (100 * S)

struct told {
	unsigned at_s, for_s, tid;
	const char *leaf;                    /* "wait", "part", "woken", "unknown", "cpu" */
};

static uint32_t thread_frame(struct incident *in, const char *function)
{
	struct incident_module module = {.kind = OBJECT_JIT, .name = "[thread]",
					 .path = "[thread]"};
	struct incident_frame frame = {.module = incident_add_module(in, &module),
				       .function = function};

	return incident_add_frame(in, &frame);
}

static uint32_t below(struct incident *in, uint32_t stack, const char *function)
{
	return stack == STACK_NONE ? STACK_NONE :
				     incident_add_stack(in, stack, thread_frame(in, function));
}

/* app!main, BLOCKED_TIME, and what the leaf says. */
static uint32_t stack_of(struct incident *in, const char *leaf)
{
	uint32_t stack = STACK_NONE;

	if (sample_stack(in, "app!main", &stack))
		return STACK_NONE;
	if (strcmp(leaf, "unknown") == 0)
		return incident_add_stack(in, STACK_NONE, thread_frame(in, "UNKNOWN_TIME"));
	if (strcmp(leaf, "cpu") == 0)
		return below(in, stack, "CPU_TIME");
	stack = below(in, stack, "BLOCKED_TIME");
	if (strcmp(leaf, "part") == 0)
		stack = below(in, stack, "NOT_READIED_YET");
	if (strcmp(leaf, "woken") == 0)
		stack = below(in, below(in, stack, "READIED_BY"), "shop (7) thread 8");
	return stack;
}

static int make(struct incident *in, const struct told *told, unsigned n)
{
	struct incident_sample s = {.stream = STREAM_OFF_CPU, .quality = QUALITY_COMPLETE};
	int rc = sample_incident(in);
	unsigned i;

	for (i = 0; !rc && i < n; i++) {
		s.time_ns = START_NS + told[i].at_s * S;
		s.weight = told[i].for_s * S;
		s.thread = sample_thread(in, "app", 10, "app", told[i].tid);
		s.stack = stack_of(in, told[i].leaf);
		rc = s.thread == THREAD_NONE || s.stack == STACK_NONE ? ERR_MEMORY :
									incident_add_sample(in, &s);
	}
	return rc;
}

/* The leaf of each sample after joining, a word each. */
static void expect(const struct told *told, unsigned n, const char *leaves)
{
	char text[400] = "";
	struct incident in;
	const char *leaf;
	unsigned i;

	assert_int_equal(make(&in, told, n), 0);
	assert_int_equal(incident_join_waits(&in), 0);
	for (i = 0; i < n; i++) {
		leaf = in.frames[in.stacks[in.samples[i].stack].frame].function;
		strcat(strcat(text, i ? ", " : ""), leaf);
	}
	assert_string_equal(text, leaves);
	incident_free(&in);
}

TEST(every_part_gets_the_waker_that_the_last_one_has)
{
	static const struct told told[] = {
		{1, 1, 10, "cpu"},  {2, 1, 10, "part"},  {2, 1, 11, "part"},
		{3, 1, 10, "part"}, {3, 1, 11, "wait"},  {4, 1, 10, "woken"},
		{5, 1, 10, "part"},
	};

	expect(told, 7, "CPU_TIME, shop (7) thread 8, BLOCKED_TIME, shop (7) thread 8, "
			"BLOCKED_TIME, shop (7) thread 8, NOT_READIED_YET");
}

TEST(a_later_wait_is_not_the_end_of_one_whose_end_was_lost)
{
	static const struct told unknown[] = {
		{1, 1, 10, "part"}, {2, 1, 10, "unknown"}, {3, 1, 10, "woken"}};
	static const struct told gap[] = {{1, 1, 10, "part"}, {5, 1, 10, "woken"}};
	/* What was left of an earlier unknown time is told with the part. */
	static const struct told rest[] = {
		{1, 1, 10, "part"}, {1, 0, 10, "unknown"}, {2, 1, 10, "woken"}};

	expect(unknown, 3, "NOT_READIED_YET, UNKNOWN_TIME, shop (7) thread 8");
	expect(gap, 2, "NOT_READIED_YET, shop (7) thread 8");
	expect(rest, 3, "shop (7) thread 8, UNKNOWN_TIME, shop (7) thread 8");
}

TEST(the_stack_in_the_kernel_says_what_a_wait_is_for)
{
	static const struct {
		const char *stack, *leaf, *now;
	} waits[] = {
		{"app!main;[kernel]!do_syscall_64;[kernel]!tcp_recvmsg;[kernel]!schedule",
		 "BLOCKED_TIME", "NETWORK_TIME"},
		{"app!main;[kernel]!asm_exc_page_fault;[kernel]!filemap_fault;[kernel]!io_schedule",
		 "DISK_TIME", "HARD_FAULT"},
		{"app!main;[kernel]!vfs_read;[kernel]!io_schedule", "DISK_TIME", "DISK_TIME"},
		{"app!main;[kernel]!futex_wait;[kernel]!schedule", "BLOCKED_TIME", "BLOCKED_TIME"},
		/* A function of the program may have such a name. */
		{"app!tcp_recvmsg;[kernel]!futex_wait", "BLOCKED_TIME", "BLOCKED_TIME"},
	};
	struct incident in;
	uint32_t stacks[5];
	unsigned i;

	assert_int_equal(sample_incident(&in), 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(sample_stack(&in, waits[i].stack, &stacks[i]), 0);
		stacks[i] = below(&in, stacks[i], waits[i].leaf);
	}
	assert_int_equal(incident_name_waits(&in), 0);
	for (i = 0; i < 5; i++)
		assert_string_equal(in.frames[in.stacks[stacks[i]].frame].function, waits[i].now);
	incident_free(&in);
}

static int step(void *ctx)
{
	static const struct told told[] = {{1, 1, 10, "part"}, {2, 1, 10, "woken"}};
	struct incident in;
	int rc = make(&in, told, 2);

	(void)ctx;
	if (!rc)
		rc = incident_join_waits(&in);
	if (!rc)
		rc = incident_name_waits(&in);
	incident_free(&in);
	return rc;
}

TEST(an_allocation_that_fails_is_an_error)
{
	assert_in_range(alloc_walk(step, NULL), 5, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_gets_the_waker_that_the_last_one_has),
		cmocka_unit_test(a_later_wait_is_not_the_end_of_one_whose_end_was_lost),
		cmocka_unit_test(the_stack_in_the_kernel_says_what_a_wait_is_for),
		cmocka_unit_test(an_allocation_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
