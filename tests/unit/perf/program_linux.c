/*
 * By a program in the kernel of this machine: samples of a chosen process wake, and no others;
 * those of a thread whose stack's end is known have that much of it.
 */
#include "base/os.h"
#include "source/perf/program_linux.h"
#include "tests/support/test.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES 20u                          /* that this process has while it burns */
#define FREQ_HZ 999u

static struct perf_ring ring;
static struct perf_program *program;
static struct perf_wake wake = {-1, NULL};
static volatile uint64_t sink;

static void burn(void)
{
	struct timespec used, from;
	uint64_t ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do {
		for (ns = 0; ns < 100000; ns++)
			sink = sink * 31 + ns;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
		ns = (uint64_t)(used.tv_sec - from.tv_sec) * NS_PER_SEC + (uint64_t)used.tv_nsec -
		     (uint64_t)from.tv_nsec;
	} while (ns < SAMPLES * NS_PER_SEC / FREQ_HZ);
}

static bool wakes_within(int timeout_ms)
{
	struct pollfd polled = {.fd = wake.fd, .events = POLLIN};

	return poll(&polled, 1, timeout_ms) == 1 && (polled.revents & POLLIN);
}

/* false: not here */
static bool begin(void)
{
	struct perf_ask ask = {.freq_hz = FREQ_HZ, .stack_kb = 16, .kernel_stacks = true,
			       .stack_ring_bytes = PERF_STACK_RING_BYTES};
	unsigned cpu = (unsigned)sched_getcpu();
	struct err err = {0};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || perf_program_new(true, &program, &err) ||
	    perf_ring_open(&ring, cpu, false, &ask, &err)) {
		printf("no samples are chosen here: %s\n", err.text);
		return false;
	}
	assert_int_equal(perf_program_attach(program, &ring, &ask), 0);
	assert_int_equal(perf_wake_open(program, &ring, &wake, &err), 0);
	perf_program_use(program, &ring);
	assert_int_equal(perf_ring_enable(&ring, true), 0);
	return true;
}

static int end(void **state)
{
	(void)state;
	perf_wake_close(&wake);
	perf_program_free(program);
	if (ring.map)
		perf_ring_close(&ring);
	program = NULL;
	return 0;
}

TEST(samples_of_chosen_processes_wake_and_no_others)
{
	struct perf_wake again = {-1, NULL};
	struct err err;

	if (!begin())
		skip();
	burn();
	assert_false(wakes_within(0));
	assert_true(perf_program_wake(program, (uint32_t)getpid()));
	burn();
	assert_true(wakes_within(5000));
	perf_program_wake_no_more(program, (uint32_t)getpid());
	burn();
	wakes_within(0);                     /* what came before the removal */
	burn();
	assert_false(wakes_within(0));
	/* Who waited has ended, and another one waits for the same ring. */
	perf_wake_close(&wake);
	assert_int_equal(perf_wake_open(program, &ring, &again, &err), 0);
	wake = again;
	assert_true(perf_program_wake(program, (uint32_t)getpid()));
	burn();
	assert_true(wakes_within(5000));
	/* The samples themselves are all there. */
	perf_ring_refresh(&ring);
	assert_true(ring.head - ring.tail > 0);
}

/* How many samples of this process are in the ring, which is empty then. */
static unsigned take_samples(void)
{
	const struct perf_record *r;
	unsigned n = 0;

	perf_ring_refresh(&ring);
	for (; (r = perf_ring_peek(&ring)) != NULL; perf_ring_next(&ring))
		n += r->kind == PERF_KIND_SAMPLE && r->tid == (uint32_t)getpid();
	return n;
}

TEST(samples_of_a_process_that_is_left_out_are_not_made)
{
	if (!begin())
		skip();
	burn();
	assert_true(take_samples() > 0);
	perf_program_leave_out(program, (uint32_t)getpid(), true);
	take_samples();                      /* what came before it */
	burn();
	assert_int_equal(take_samples(), 0);
	perf_program_leave_out(program, (uint32_t)getpid(), false);
	burn();
	assert_true(take_samples() > 0);
}

#define FILLED 5000u                         /* of the stack, above the function that burns */

static uint64_t stack_end;

/* What was copied of one's own stack is what is there; only its lowest bytes change. */
static void check_copy(const struct perf_record *r)
{
	uint64_t sp = r->u.sample.regs[7];       /* PERF_REG_X86_SP */

	assert_true(sp < stack_end && r->u.sample.stack_bytes == stack_end - sp);
	assert_memory_equal(r->u.sample.stack + r->u.sample.stack_bytes - FILLED,
			    (const void *)(uintptr_t)(stack_end - FILLED), FILLED);
}

/* returns  how many of its samples the program made; the others copied a fixed size */
static unsigned read_samples(unsigned *all)
{
	const struct perf_record *r;
	unsigned made = 0;

	*all = 0;
	perf_ring_refresh(&ring);
	for (; (r = perf_ring_peek(&ring)) != NULL; perf_ring_next(&ring)) {
		if (r->kind != PERF_KIND_SAMPLE || r->tid != (uint32_t)getpid())
			continue;
		++*all;
		if (r->u.sample.id != ring.format.short_id)
			continue;
		made++;
		check_copy(r);
	}
	return made;
}

TEST(a_thread_whose_stack_end_is_known_has_its_stack_copied_up_to_there)
{
	volatile char filled[FILLED];
	unsigned i, made, all;

	for (i = 0; i < FILLED; i++)
		filled[i] = (char)i;
	stack_end = (uint64_t)(uintptr_t)(filled + FILLED);
	if (!begin())
		skip();
	burn();
	assert_int_equal(read_samples(&all), 0);
	assert_true(all > 0);
	perf_program_stack_end(program, (uint32_t)getpid(), stack_end);
	burn();
	made = read_samples(&all);
	/* Here and below: one may have come before what was just told. */
	assert_true(made > 0 && all - made <= 1);
	/* Of 60 KB and more, and of what is not below it, the sample is as without a program. */
	perf_program_stack_end(program, (uint32_t)getpid(), stack_end + PERF_SHORT_MAX_BYTES);
	burn();
	assert_true(read_samples(&all) <= 1 && all > 1);
	perf_program_stack_end(program, (uint32_t)getpid(), 0);
	burn();
	assert_int_equal(read_samples(&all), 0);
	assert_true(all > 0 && filled[7] == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_of_chosen_processes_wake_and_no_others,
						NULL, end),
		cmocka_unit_test_teardown(samples_of_a_process_that_is_left_out_are_not_made, end),
		cmocka_unit_test_setup_teardown(
			a_thread_whose_stack_end_is_known_has_its_stack_copied_up_to_there, NULL,
			end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
