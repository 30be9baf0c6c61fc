/*
 * Context switches as a program of this machine's kernel writes them: two threads that wake each
 * other on one CPU, beside what the kernel counts for them.
 */
#include "source/probe/probes_linux.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define SWITCHES 4u                          /* of a CPU's rings */
#define STACKS 5u
#define SLEEPS 1                             /* state */
#define REG_DI 5
#define REG_SP 7
#define REG_IP 8

static struct probes *probes;
static struct perf_ring rings[PROBE_RINGS];
static unsigned cpu;
static int there[2], back[2];
static pthread_t thread;
static volatile uint32_t answering;          /* its tid */
static volatile uint64_t *mark;              /* on its stack */

static void *answer(void *arg)
{
	volatile uint64_t here = 1;
	char c;

	mark = &here;
	answering = (uint32_t)syscall(SYS_gettid);
	while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
		;
	return arg;
}

static void ask(unsigned times)
{
	char c = 0;

	while (times--) {
		assert_int_equal(write(there[1], &c, 1), 1);
		assert_int_equal(read(back[0], &c, 1), 1);
	}
}

/* The same, and let it sleep in between: on a busy CPU the next question may come before that. */
static void ask_at_rest(unsigned times)
{
	while (times--) {
		ask(1);
		os_sleep_ns(NS_PER_MS / 10);
	}
}

/* false: not here. untyped: as where the kernel does not tell its types */
static bool begin(bool untyped)
{
	const struct capture capture = {.thread_time = true, .stack_kb = 8, .no_python = true};
	const struct probes_config cfg = {.capture = &capture,
					  .ncpus = (unsigned)get_nprocs_conf(),
					  .untyped = untyped};
	struct err err = {0};
	cpu_set_t one;
	unsigned i;

	cpu = (unsigned)sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	for (i = 0; i < PROBE_RINGS; i++)
		rings[i].fd = -1;
	if (sched_setaffinity(0, sizeof(one), &one) || probes_new(&cfg, &probes, &err) ||
	    !probes_switches(probes)) {
		printf("no program writes switches here: %s\n", err.text);
		return false;
	}
	assert_int_equal(probes_open_cpu(probes, cpu, rings, &err), 0);
	assert_int_equal(pipe(there) | pipe(back), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer, NULL), 0);
	ask(1);
	probes_enable(probes, cpu, rings, true);
	return true;
}

static int end(void **state)
{
	(void)state;
	if (thread) {
		close(there[1]);
		pthread_join(thread, NULL);
		close(there[0]);
		close(back[0]);
		close(back[1]);
	}
	if (probes)
		probes_close_cpu(probes, cpu, rings);
	probes_free(probes);
	probes = NULL;
	thread = 0;
	return 0;
}

/* How often a thread left the CPU since the last call, and was preempted. */
static unsigned count(uint32_t tid, unsigned *preempted)
{
	const struct perf_record *r;
	unsigned n = 0;

	*preempted = 0;
	perf_ring_refresh(&rings[SWITCHES]);
	for (; (r = perf_ring_peek(&rings[SWITCHES])) != NULL; perf_ring_next(&rings[SWITCHES])) {
		assert_true(r->kind == PERF_KIND_SWITCH || r->kind == PERF_KIND_WAKE);
		assert_int_equal(r->cpu, cpu);
		if (r->kind != PERF_KIND_SWITCH || r->tid != tid)
			continue;
		assert_true(r->u.change.out);
		n++;
		*preempted += r->u.change.preempted;
	}
	return n;
}

TEST(switches_are_as_many_as_the_kernel_counts)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid);
	unsigned preempted, n, tries = 10;
	struct rusage from, to;
	bool equal = false;

	if (!begin(*state != NULL))
		skip();
	/* One more may come between a count of ours and one of the kernel. */
	while (!equal && tries--) {
		count(self, &preempted);
		getrusage(RUSAGE_THREAD, &from);
		ask(200);
		getrusage(RUSAGE_THREAD, &to);
		n = count(self, &preempted);
		equal = n == (unsigned)(to.ru_nvcsw - from.ru_nvcsw + to.ru_nivcsw -
					from.ru_nivcsw) &&
			preempted == (unsigned)(to.ru_nivcsw - from.ru_nivcsw);
	}
	assert_true(equal);
	assert_true(n >= 200);
}

TEST(a_ring_that_was_full_says_how_many_are_missing)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid);
	unsigned preempted, i;
	const struct perf_record *r;
	uint64_t before, lost = 0;

	if (!begin(*state != NULL))
		skip();
	for (i = 0; i < 9000; i++)                       /* four records each; it holds 16,384 */
		ask(1);
	perf_ring_refresh(&rings[SWITCHES]);
	before = rings[SWITCHES].head;
	while (perf_ring_peek(&rings[SWITCHES]))
		perf_ring_next(&rings[SWITCHES]);
	ask(1);
	perf_ring_refresh(&rings[SWITCHES]);
	assert_true(rings[SWITCHES].head > before);
	r = perf_ring_peek(&rings[SWITCHES]);
	assert_non_null(r);
	assert_int_equal(r->kind, PERF_KIND_LOST);
	lost = r->u.lost;
	perf_ring_next(&rings[SWITCHES]);
	assert_in_range(lost, 9000, 1u << 20);
	assert_true(count(self, &preempted) > 0);
}

/* The last stack with which the thread that answers slept; samples: how many there were */
static struct switch_stack last_stack(unsigned *samples)
{
	struct switch_stack stack = {.state = SLEEPS};
	const struct perf_record *r;

	*samples = 0;
	perf_ring_refresh(&rings[STACKS]);
	for (; (r = perf_ring_peek(&rings[STACKS])) != NULL; perf_ring_next(&rings[STACKS])) {
		if (r->tid != answering || switches_state(r) != SLEEPS || !r->u.sample.regs)
			continue;
		++*samples;
		assert_true(switches_kernel(r, &stack));
		stack.ip = r->u.sample.regs[REG_IP];
		stack.sp = r->u.sample.regs[REG_SP];
		stack.di = r->u.sample.regs[REG_DI];
	}
	return stack;
}

/* How many records of its sleep have this number since the last call. */
static unsigned count_repeats(uint32_t number, unsigned *others)
{
	const struct perf_record *r;
	unsigned n = 0;

	*others = 0;
	perf_ring_refresh(&rings[SWITCHES]);
	for (; (r = perf_ring_peek(&rings[SWITCHES])) != NULL; perf_ring_next(&rings[SWITCHES])) {
		if (r->kind != PERF_KIND_SWITCH || r->tid != answering || r->u.change.preempted)
			continue;
		n += r->u.change.repeats == number;
		*others += r->u.change.repeats != number;
	}
	return n;
}

/* Let it sleep ten times, with this number only; it is preempted at times, too. */
static bool sleeps_with(uint32_t number)
{
	unsigned n = 0, others, tries;

	count_repeats(number, &others);
	for (tries = 0; tries < 1000 && n < 10; tries++) {
		ask_at_rest(1);
		n += count_repeats(number, &others);
		if (others)
			return false;
	}
	return n >= 10;
}

static struct switch_stack known;            /* that the program was told */

/* Tell the program the stack with which it slept last, as number 77. returns  it sleeps with it */
static bool is_known(void)
{
	struct switch_stack stack;
	unsigned samples;

	++*mark;                             /* what was told before is another one */
	ask_at_rest(50);
	stack = last_stack(&samples);
	assert_true(samples > 0);
	stack.number = 77;
	stack.nwords = 1;
	stack.words[0].address = (uintptr_t)mark;
	stack.words[0].value = *mark;
	switches_tell(probes_switches(probes), answering, &stack);
	known = stack;
	return stack.di == (uint64_t)there[0] && sleeps_with(77);
}

/* false: no program knows any stack here */
static bool begin_known(bool untyped)
{
	unsigned samples, tries = 20;

	if (!begin(untyped) || !switches_know(probes_switches(probes)))
		return false;
	/* Now and then its last sleep is one for the lock of the pipe, not for a byte. */
	while (!is_known() && --tries);
	assert_true(tries > 0);
	last_stack(&samples);
	assert_int_equal(samples, 0);
	return true;
}

TEST(a_stack_that_repeats_is_not_taken_until_a_word_of_it_changes)
{
	unsigned samples;

	if (!begin_known(*state != NULL))
		skip();
	++*mark;
	assert_true(sleeps_with(0));
	last_stack(&samples);
	assert_true(samples >= 10);
}

/* It reads a socket now, with the number that the pipe had: all of its own stack is the same. */
TEST(a_stack_that_repeats_is_taken_where_the_kernel_waits_elsewhere)
{
	unsigned samples;
	int sockets[2], before;
	char c = 0;

	if (!begin_known(*state != NULL))
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	before = dup(there[1]);
	assert_true(before >= 0 && dup2(sockets[0], there[0]) >= 0 &&
		    dup2(sockets[1], there[1]) >= 0);
	assert_int_equal(write(before, &c, 1), 1);
	assert_int_equal(read(back[0], &c, 1), 1);
	close(before);
	close(sockets[0]);
	close(sockets[1]);
	assert_true(sleeps_with(0));
	last_stack(&samples);
	assert_true(samples >= 10);
}

/* Its stacks since the last call that are the known one, of which none may come too soon. */
static unsigned count_known(uint64_t *last_ns)
{
	const struct perf_record *r;
	struct switch_stack stack;
	unsigned n = 0;

	perf_ring_refresh(&rings[STACKS]);
	for (; (r = perf_ring_peek(&rings[STACKS])) != NULL; perf_ring_next(&rings[STACKS])) {
		if (r->tid != answering || switches_state(r) != SLEEPS || !r->u.sample.regs)
			continue;
		memset(&stack, 0, sizeof(stack));
		if (!switches_kernel(r, &stack) || r->u.sample.regs[REG_IP] != known.ip ||
		    r->u.sample.regs[REG_SP] != known.sp || r->u.sample.regs[REG_DI] != known.di ||
		    memcmp(stack.kernel, known.kernel, sizeof(known.kernel)))
			continue;
		n++;
		assert_true(!*last_ns || r->time_ns - *last_ns > 5 * NS_PER_MS);
		*last_ns = r->time_ns;
	}
	return n;
}

/* One in 64, but not twice within 10 ms: the clock is read before the time of the sample is. */
TEST(a_stack_that_repeats_is_taken_now_and_then)
{
	uint64_t last_ns = 0;
	unsigned n = 0, tries;

	if (!begin_known(*state != NULL))
		skip();
	for (tries = 0; tries < 4000 && n < 10; tries++) {
		ask(50);
		n += count_known(&last_ns);
	}
	assert_true(n >= 10);
	assert_true(50 * tries >= 64 * n);
}

/* The innermost call of the kernel in the stack with which the thread that answers slept last. */
static uint64_t find_leaf(void)
{
	const struct perf_record *r;
	uint64_t leaf = 0;

	ask_at_rest(50);
	perf_ring_refresh(&rings[STACKS]);
	for (; (r = perf_ring_peek(&rings[STACKS])) != NULL; perf_ring_next(&rings[STACKS]))
		if (r->tid == answering && switches_state(r) == SLEEPS && r->u.sample.nkernel)
			leaf = r->u.sample.kernel[0];
	assert_true(leaf != 0);
	return leaf;
}

/* Frames of the program and of what calls it are none of the thread's. */
TEST(a_stack_begins_where_the_kernel_switches_either_way)
{
	uint64_t leaves[2] = {0, 1};
	unsigned tries, untyped;

	for (tries = 0; tries < 10 && leaves[0] != leaves[1]; tries++)
		for (untyped = 0; untyped < 2; untyped++) {
			if (!begin(untyped))
				skip();
			leaves[untyped] = find_leaf();
			end(NULL);
		}
	/* While somebody else traces switches, too, there is one more call. */
	assert_int_equal(leaves[0], leaves[1]);
}

/* Each with and without the kernel's types. */
#define BOTH(test)                                                                                 \
	{#test, test, NULL, end, NULL},                                                            \
	{#test "_without_types", test, NULL, end, &probes}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(switches_are_as_many_as_the_kernel_counts),
		BOTH(a_ring_that_was_full_says_how_many_are_missing),
		BOTH(a_stack_that_repeats_is_not_taken_until_a_word_of_it_changes),
		BOTH(a_stack_that_repeats_is_taken_where_the_kernel_waits_elsewhere),
		BOTH(a_stack_that_repeats_is_taken_now_and_then),
		cmocka_unit_test_teardown(a_stack_begins_where_the_kernel_switches_either_way, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
