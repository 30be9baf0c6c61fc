/* Samples of a chosen process wake, and no others: by a program in the kernel of this machine. */
#include "base/os.h"
#include "source/perf/wakes_linux.h"
#include "tests/support/test.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES 20u                          /* that this process has while it burns */
#define FREQ_HZ 999u

static struct perf_ring ring;
static struct perf_wakes *wakes;
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
	struct perf_ask ask = {.freq_hz = FREQ_HZ, .stack_ring_bytes = PERF_STACK_RING_BYTES};
	unsigned cpu = (unsigned)sched_getcpu();
	struct err err = {0};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    perf_wakes_new(&wakes, &err) || perf_ring_open(&ring, cpu, false, &ask, &err)) {
		printf("no samples are chosen here: %s\n", err.text);
		return false;
	}
	assert_int_equal(perf_wake_open(wakes, &ring, &wake, &err), 0);
	assert_int_equal(perf_ring_enable(&ring, true), 0);
	return true;
}

static int end(void **state)
{
	(void)state;
	perf_wake_close(&wake);
	perf_wakes_free(wakes);
	if (ring.map)
		perf_ring_close(&ring);
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
	assert_true(perf_wakes_add(wakes, (uint32_t)getpid()));
	burn();
	assert_true(wakes_within(5000));
	perf_wakes_remove(wakes, (uint32_t)getpid());
	burn();
	wakes_within(0);                     /* what came before the removal */
	burn();
	assert_false(wakes_within(0));
	/* Who waited has ended, and another one waits for the same ring. */
	perf_wake_close(&wake);
	assert_int_equal(perf_wake_open(wakes, &ring, &again, &err), 0);
	wake = again;
	assert_true(perf_wakes_add(wakes, (uint32_t)getpid()));
	burn();
	assert_true(wakes_within(5000));
	/* The samples themselves are all there. */
	perf_ring_refresh(&ring);
	assert_true(ring.head - ring.tail > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_of_chosen_processes_wake_and_no_others,
						NULL, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
