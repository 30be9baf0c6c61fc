/* The rings of many CPUs as one queue, by rings that nobody but the test writes. */
#include "source/perf/cpus_linux.h"
#include "tests/support/perf_bytes.h"
#include "tests/support/test.h"

#include <linux/perf_event.h>
#include <stdlib.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_512_cpus_come_by_time_with_side_band_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
