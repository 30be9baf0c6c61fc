/* The rings of many CPUs as one queue, by rings that nobody but the test writes. */
#include "source/perf/cpus_linux.h"

#include "base/os.h"
#include "tests/support/perf_bytes.h"
#include "tests/support/test.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#define RINGS 1024u                          /* of 512 CPUs: samples, and side-band */
#define RECORDS 20u                          /* in each */
#define DATA_BYTES 4096u

static struct perf_ring rings[RINGS];
static struct perf_ring *open_rings[RINGS];
static struct perf_turn turns[RINGS];

static void write_record(struct perf_ring *ring, uint64_t time_ns)
{
	struct perf_event_mmap_page *page = ring->map;
	struct perf_bytes b;

	perf_bytes_sample(&b, 0, 5, 6, time_ns, ring->cpu);
	perf_bytes_end(&b);
	memcpy((char *)ring->map + ring->page_bytes + page->data_head, b.bytes, b.n);
	page->data_head += b.n;
}

static void make_ring(unsigned i)
{
	struct perf_ring *ring = &rings[i];

	*ring = (struct perf_ring){.cpu = i / 2, .sideband = i % 2};
	ring->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	ring->data_bytes = DATA_BYTES;
	assert_int_equal(posix_memalign(&ring->map, ring->page_bytes,
					ring->page_bytes + DATA_BYTES), 0);
	memset(ring->map, 0, ring->page_bytes + DATA_BYTES);
	open_rings[i] = ring;
}

/* Many times occur in several rings: then side-band is first, and a ring keeps its order. */
TEST(records_of_512_cpus_come_by_time_with_side_band_first)
{
	struct perf_cpus cpus = {.open = open_rings, .nopen = RINGS, .turns = turns};
	uint64_t last_ns = 0, n = 0;
	bool was_sample = false;
	struct perf_ring *ring;
	unsigned i, j;

	for (i = 0; i < RINGS; i++) {
		make_ring(i);
		for (j = 0; j < (i % 7 ? RECORDS : 0); j++)
			write_record(&rings[i], 1 + j * 1000 + i * 37 % 1000 * j / 2);
	}
	perf_cpus_refresh(&cpus);
	for (; (ring = perf_cpus_oldest(&cpus)) != NULL; n++) {
		const struct perf_record *r = perf_ring_peek(ring);

		assert_true(r->time_ns >= last_ns);
		if (r->time_ns == last_ns)
			assert_false(was_sample && ring->sideband);
		last_ns = r->time_ns;
		was_sample = !ring->sideband;
		/* One that stays is the oldest again. */
		assert_ptr_equal(perf_cpus_oldest(&cpus), ring);
		perf_ring_next(ring);
	}
	assert_int_equal(n, (RINGS - (RINGS + 6) / 7) * RECORDS);
	/* What has come since is seen at the next refresh. */
	write_record(&rings[3], last_ns + 1);
	assert_null(perf_cpus_oldest(&cpus));
	perf_cpus_refresh(&cpus);
	assert_ptr_equal(perf_cpus_oldest(&cpus), &rings[3]);
	for (i = 0; i < RINGS; i++)
		free(rings[i].map);
}

/* ---- a CPU that goes and comes --------------------------------------------------------------- */

#define ONLINE "/sys/devices/system/cpu/online"

/* In a mount namespace of this program: a file in the place of the kernel's. */
static int replace_online(void)
{
	char path[] = "/tmp/online.XXXXXX";
	int fd = mkstemp(path);

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(path, ONLINE, NULL, MS_BIND, NULL)) {
		close(fd);
		fd = -1;
	}
	unlink(path);
	return fd;
}

static void say_online(int fd, unsigned ncpus)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_true(dprintf(fd, "0-%u\n", ncpus - 1) > 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

static void burn_on(unsigned cpu)
{
	uint64_t until_ns = os_thread_cpu_ns() + 100 * NS_PER_MS;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	while (os_thread_cpu_ns() < until_ns)
		;
}

/* returns  how many of them were of this CPU */
static unsigned read_all(struct perf_cpus *cpus, unsigned cpu)
{
	struct perf_ring *ring;
	unsigned n = 0;

	perf_cpus_refresh(cpus);
	for (; (ring = perf_cpus_oldest(cpus)) != NULL; perf_ring_next(ring))
		n += !ring->sideband && ring->record.kind == PERF_KIND_SAMPLE && ring->cpu == cpu;
	return n;
}

static void stop(struct perf_cpus *cpus)
{
	perf_cpus_enable(cpus, false, false);
	perf_cpus_enable(cpus, true, false);
}

TEST(a_cpu_that_goes_is_read_to_its_end_and_one_that_comes_is_recorded)
{
	const struct capture capture = {.freq_hz = 99, .stack_kb = 16};
	const struct probes_config probes = {.capture = &capture};
	unsigned n = os_cpu_count(), all;
	struct perf_ask ask = perf_cpus_ask(&capture, n);
	struct perf_cpus cpus;
	struct err err;
	int fd = -1;

	if (n < 2 || (fd = replace_online()) < 0)
		skip();
	say_online(fd, n);
	if (perf_cpus_open(&cpus, &ask, &probes, 0, 0, &err))
		skip();
	all = cpus.nopen;
	perf_cpus_enable(&cpus, true, true);
	perf_cpus_enable(&cpus, false, true);
	burn_on(n - 1);
	say_online(fd, n - 1);
	stop(&cpus);
	assert_false(perf_cpus_follow(&cpus, NULL));
	assert_int_equal(cpus.nopen, all);           /* its samples are still there */
	assert_true(read_all(&cpus, n - 1) > 0);
	assert_false(perf_cpus_follow(&cpus, NULL));
	assert_int_equal(cpus.nopen, all - 2);
	assert_null(perf_cpus_sampler(&cpus, n - 1));

	say_online(fd, n);
	assert_true(perf_cpus_follow(&cpus, NULL));
	assert_int_equal(cpus.nopen, all);
	burn_on(n - 1);

	/* It comes back before that. */
	say_online(fd, n - 1);
	assert_false(perf_cpus_follow(&cpus, NULL));
	say_online(fd, n);
	assert_true(read_all(&cpus, n - 1) > 0);
	stop(&cpus);
	read_all(&cpus, n - 1);
	assert_true(perf_cpus_follow(&cpus, NULL));
	burn_on(n - 1);
	assert_true(read_all(&cpus, n - 1) > 0);
	perf_cpus_close(&cpus);
	close(fd);
}

/* A COMM record, which wakes at once. */
static bool wakes(struct perf_cpus *cpus)
{
	prctl(PR_SET_NAME, "test_cpus");
	return perf_cpus_wait(cpus, 10 * NS_PER_SEC);
}

TEST(records_wake_once_and_a_wake_up_ends_a_wait)
{
	const struct capture capture = {.freq_hz = 99, .stack_kb = 16};
	const struct probes_config probes = {.capture = &capture};
	struct perf_ask ask = perf_cpus_ask(&capture, os_cpu_count());
	struct perf_cpus cpus;
	struct err err;
	unsigned i;

	if (perf_cpus_open(&cpus, &ask, &probes, 0, 0, &err))
		skip();
	for (i = 0; i < 2; i++) {
		perf_cpus_enable(&cpus, true, true);
		assert_true(wakes(&cpus));
		assert_true(wakes(&cpus));
		stop(&cpus);
		while (perf_cpus_wait(&cpus, 0))     /* others' records came meanwhile */
			;
		assert_false(perf_cpus_wait(&cpus, NS_PER_MS));
		assert_non_null((perf_cpus_refresh(&cpus), perf_cpus_oldest(&cpus)));
	}
	perf_cpus_wake(&cpus);
	assert_false(perf_cpus_wait(&cpus, 3600 * NS_PER_SEC));
	perf_cpus_close(&cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_512_cpus_come_by_time_with_side_band_first),
		cmocka_unit_test(
			a_cpu_that_goes_is_read_to_its_end_and_one_that_comes_is_recorded),
		cmocka_unit_test(records_wake_once_and_a_wake_up_ends_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
