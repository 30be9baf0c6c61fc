/* Reading a perf ring that nobody but the test writes: wrapping, damage, the tail given back. */
#include "base/array.h"
#include "source/ring/perf_ring_linux.h"
#include "tests/support/perf_bytes.h"
#include "tests/support/test.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_BYTES 4096u

static struct perf_ring ring;

static int open_ring(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	ring = (struct perf_ring){.format = {.callchain = true}};
	ring.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	ring.data_bytes = DATA_BYTES;
	ring.scratch = malloc(PERF_RECORD_MAX_BYTES);
	return posix_memalign(&ring.map, page, page + DATA_BYTES) || !ring.scratch;
}

static int close_ring(void **state)
{
	(void)state;
	free(ring.map);
	free(ring.scratch);
	return 0;
}

static struct perf_event_mmap_page *page(void)
{
	return ring.map;
}

/* Writes as the kernel does: at data_head, around the end. */
static void write_bytes(const void *bytes, size_t n)
{
	char *data = (char *)ring.map + sysconf(_SC_PAGESIZE);
	size_t i;

	for (i = 0; i < n; i++)
		data[(page()->data_head + i) % DATA_BYTES] = ((const char *)bytes)[i];
	page()->data_head += n;
}

/* A sample at this time with n user addresses that count up from it. */
static void write_sample(uint64_t time_ns, size_t n)
{
	struct perf_bytes b;
	size_t i;

	perf_bytes_sample(&b, 0, 5, 6, time_ns, 0);
	perf_bytes_u64(&b, n + 1);
	perf_bytes_u64(&b, (uint64_t)PERF_CONTEXT_USER);
	for (i = 0; i < n; i++)
		perf_bytes_u64(&b, time_ns + i);
	perf_bytes_end(&b);
	write_bytes(b.bytes, b.n);
}

static void start_at(uint64_t head)
{
	memset(ring.map, 0, (size_t)sysconf(_SC_PAGESIZE));
	page()->data_head = ring.head = ring.tail = head;
	ring.have = ring.was_full = false;
	ring.damaged = ring.unreported = 0;
}

TEST(records_come_in_order_and_give_their_room_back)
{
	start_at(0);
	write_sample(100, 1);
	write_sample(200, 1);
	assert_null(perf_ring_peek(&ring));
	perf_ring_refresh(&ring);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 100);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 100);
	assert_int_equal(page()->data_tail, 0);
	perf_ring_next(&ring);
	assert_int_equal(page()->data_tail, 72);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 200);
	perf_ring_next(&ring);
	assert_null(perf_ring_peek(&ring));
	assert_int_equal(page()->data_tail, page()->data_head);
}

static void write_lost(uint64_t time_ns)
{
	struct perf_bytes b;

	perf_bytes_begin(&b, PERF_RECORD_LOST, 0);
	perf_bytes_u64(&b, 1);
	perf_bytes_u64(&b, 3);
	perf_bytes_trailer(&b, 5, 6, time_ns, 0);
	perf_bytes_end(&b);
	write_bytes(b.bytes, b.n);
}

/* A ring of 4 KB never has room for a large record. */
TEST(a_full_ring_has_a_gap_at_its_end_and_one_where_the_kernel_says_so)
{
	start_at(0);
	write_sample(100, 1);
	write_lost(200);
	write_sample(300, 1);
	perf_ring_refresh(&ring);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 100);
	perf_ring_next(&ring);
	assert_int_equal(perf_ring_gap(&ring), 200);
	perf_ring_next(&ring);
	assert_int_equal(perf_ring_gap(&ring), 0);
	perf_ring_next(&ring);
	assert_true(perf_ring_gap(&ring) > 300);
	assert_int_equal(perf_ring_gap(&ring), 0);
}

/* At each of the 512 places of the ring, so also with only its header before the end. */
TEST(record_that_wraps_is_put_together)
{
	const struct perf_record *r;
	uint64_t head, i;

	for (head = 0; head < DATA_BYTES; head += 8) {
		start_at(head);
		write_sample(1000, 100);
		perf_ring_refresh(&ring);
		r = perf_ring_peek(&ring);
		assert_non_null(r);
		assert_int_equal(r->u.sample.nuser, 100);
		for (i = 0; i < 100; i++)
			assert_int_equal(r->u.sample.user[i], 1000 + i);
		perf_ring_next(&ring);
		assert_int_equal(page()->data_tail, page()->data_head);
		assert_int_equal(ring.damaged, 0);
	}
}

/* The record that stands for so many that could not be read; it is taken. */
static void assert_lost(uint64_t n, uint64_t time_ns)
{
	const struct perf_record *r = perf_ring_peek(&ring);

	assert_non_null(r);
	assert_int_equal(r->kind, PERF_KIND_LOST);
	assert_int_equal(r->u.lost, n);
	assert_int_equal(r->time_ns, time_ns);
	perf_ring_next(&ring);
}

TEST(record_that_does_not_parse_is_counted_and_passed_over)
{
	struct perf_bytes b;

	start_at(0);
	perf_bytes_begin(&b, 9, 0);                      /* a sample of nothing */
	perf_bytes_end(&b);
	write_bytes(b.bytes, b.n);
	write_sample(200, 1);
	perf_ring_refresh(&ring);
	assert_lost(1, 200);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 200);
	assert_int_equal(ring.damaged, 1);
}

TEST(damage_is_a_loss_in_front_of_the_next_record)
{
	struct perf_bytes b;
	unsigned i;

	start_at(0);
	write_sample(100, 1);
	for (i = 0; i < 3; i++) {
		perf_bytes_begin(&b, 9, 0);
		perf_bytes_end(&b);
		write_bytes(b.bytes, b.n);
	}
	perf_ring_refresh(&ring);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 100);
	perf_ring_next(&ring);
	assert_null(perf_ring_peek(&ring));      /* when is not known yet */
	write_sample(200, 1);
	write_sample(300, 1);
	perf_ring_refresh(&ring);
	assert_lost(3, 200);
	assert_int_equal(perf_ring_peek(&ring)->u.sample.user[0], 200);
	perf_ring_next(&ring);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 300);
	assert_int_equal(ring.damaged, 3);
}

/* Sizes that no record has: less than a header, more than there is, not a multiple of eight. */
TEST(size_that_cannot_be_drops_what_is_there)
{
	const uint16_t sizes[] = {0, 7, 4000, 61, 66};
	struct perf_event_header *header;
	unsigned i;

	for (i = 0; i < COUNT_OF(sizes); i++) {
		start_at(4088);
		write_sample(100, 1);
		header = (void *)((char *)ring.map + sysconf(_SC_PAGESIZE) + 4088);
		header->size = sizes[i];
		write_sample(200, 1);
		perf_ring_refresh(&ring);
		assert_null(perf_ring_peek(&ring));
		assert_int_equal(ring.damaged, 1);
		assert_int_equal(page()->data_tail, page()->data_head);
		write_sample(300, 1);
		perf_ring_refresh(&ring);
		assert_lost(1, 300);
		assert_int_equal(perf_ring_peek(&ring)->time_ns, 300);
	}
}

TEST(a_ring_says_when_it_is_half_full)
{
	uint64_t n;

	start_at(0);
	for (n = 0; n < DATA_BYTES / 2 / 72; n++)
		write_sample(100 + n, 1);
	assert_false(perf_ring_refresh(&ring));
	write_sample(100 + n, 1);
	assert_true(perf_ring_refresh(&ring));
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 100);
	perf_ring_next(&ring);
	assert_false(perf_ring_refresh(&ring));
}

/* Of its own mapping, say, or of somebody else's exec. */
TEST(what_is_no_sample_is_damage_in_a_ring_that_programs_write)
{
	start_at(0);
	ring.heap = true;
	write_lost(200);
	write_sample(300, 1);
	perf_ring_refresh(&ring);
	assert_lost(1, 300);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 300);
	assert_int_equal(ring.damaged, 1);
	ring.heap = false;
}

TEST(what_a_program_changes_later_does_not_reach_the_record)
{
	start_at(0);
	ring.heap = true;
	write_sample(100, 1);
	perf_ring_refresh(&ring);
	assert_int_equal(perf_ring_peek(&ring)->u.sample.user[0], 100);
	memset((char *)ring.map + sysconf(_SC_PAGESIZE), 0xff, DATA_BYTES);
	assert_int_equal(perf_ring_peek(&ring)->u.sample.user[0], 100);
	perf_ring_next(&ring);
	assert_int_equal(page()->data_tail, 72);
	ring.heap = false;
}

TEST(head_that_cannot_be_drops_what_a_program_wrote)
{
	const uint64_t heads[] = {DATA_BYTES + 8, 73, UINT64_MAX - 4096, 1ull << 63};
	unsigned i;

	for (i = 0; i < COUNT_OF(heads); i++) {
		start_at(0);
		ring.heap = true;
		write_sample(100, 1);
		page()->data_head = heads[i];
		perf_ring_refresh(&ring);
		assert_null(perf_ring_peek(&ring));
		assert_int_equal(ring.damaged, 1);
		/* And back, below what was read. */
		page()->data_head = ring.tail - 8;
		perf_ring_refresh(&ring);
		assert_null(perf_ring_peek(&ring));
		assert_int_equal(ring.tail % 8, 0);
		write_sample(200, 1);
		perf_ring_refresh(&ring);
		assert_lost(2, 200);
		assert_int_equal(perf_ring_peek(&ring)->time_ns, 200);
		ring.heap = false;
	}
}

TEST(closed_ring_is_empty)
{
	struct perf_ring closed = {.fd = 0};

	closed.fd = -1;
	perf_ring_refresh(&closed);
	assert_null(perf_ring_peek(&closed));
	perf_ring_close(&closed);
	assert_int_equal(closed.fd, -1);
}

TEST(ring_holds_half_a_second_of_stack_copies)
{
	assert_int_equal(perf_stack_ring_bytes(99, 32, 2), 4 << 20);     /* half a second: 1.6 MB */
	assert_int_equal(perf_stack_ring_bytes(499, 16, 2), 4 << 20);
	assert_int_equal(perf_stack_ring_bytes(499, 32, 2), 8 << 20);
	assert_int_equal(perf_stack_ring_bytes(997, 32, 2), 16 << 20);
	assert_int_equal(perf_stack_ring_bytes(10000, 32, 2), 16 << 20);
}

TEST(rings_of_many_cpus_share_128_mb)
{
	assert_int_equal(perf_stack_ring_bytes(99, 32, 32), 4 << 20);
	assert_int_equal(perf_stack_ring_bytes(99, 32, 128), 1 << 20);
	assert_int_equal(perf_stack_ring_bytes(997, 32, 64), 2 << 20);
	assert_int_equal(perf_stack_ring_bytes(99, 32, 1024), 512 << 10);
}

TEST(rings_of_short_samples_hold_a_second_of_them)
{
	assert_int_equal(perf_short_ring_bytes(99, 32, 2), 4 << 20);
	assert_int_equal(perf_short_ring_bytes(499, 32, 2), 8 << 20);
	assert_int_equal(perf_short_ring_bytes(99, 32, 16), 1 << 20);
	assert_int_equal(perf_short_ring_bytes(99, 32, 64), 512 << 10);
	assert_int_equal(perf_short_ring_bytes(99, 32, 128), 256 << 10);         /* 200 KB */
	assert_int_equal(perf_short_ring_bytes(49, 32, 512), 128 << 10);         /* 100 KB */
	assert_int_equal(perf_short_ring_bytes(997, 32, 128), 1 << 20);  /* as without them */
}

TEST(other_rings_of_many_cpus_are_smaller)
{
	struct perf_ask ask = {.stack_kb = 32};
	size_t all;

	assert_int_equal(perf_ring_bytes(&ask, PERF_SIDEBAND), 512 << 10);
	ask.ncpus = 16;
	assert_int_equal(perf_ring_bytes(&ask, PERF_SIDEBAND), 512 << 10);
	assert_int_equal(perf_ring_bytes(&ask, PERF_UNMAPS), 256 << 10);
	ask.ncpus = 512;
	ask.stack_ring_bytes = perf_short_ring_bytes(49, 32, 512);
	all = perf_ring_bytes(&ask, PERF_SAMPLES) + perf_ring_bytes(&ask, PERF_SIDEBAND) +
	      perf_ring_bytes(&ask, PERF_FAULTS) + perf_ring_bytes(&ask, PERF_UNMAPS);
	assert_int_equal(all, 240 << 10);
}

TEST(a_record_with_a_time_to_come_is_damaged_and_holds_up_nothing)
{
	start_at(0);
	write_sample(UINT64_MAX / 2, 1);
	write_sample(200, 1);
	perf_ring_refresh(&ring);
	assert_lost(1, 200);
	assert_int_equal(perf_ring_peek(&ring)->time_ns, 200);
	assert_int_equal(ring.damaged, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_holds_half_a_second_of_stack_copies),
		cmocka_unit_test(rings_of_many_cpus_share_128_mb),
		cmocka_unit_test(rings_of_short_samples_hold_a_second_of_them),
		cmocka_unit_test(other_rings_of_many_cpus_are_smaller),
		cmocka_unit_test(records_come_in_order_and_give_their_room_back),
		cmocka_unit_test(a_full_ring_has_a_gap_at_its_end_and_one_where_the_kernel_says_so),
		cmocka_unit_test(record_that_wraps_is_put_together),
		cmocka_unit_test(record_that_does_not_parse_is_counted_and_passed_over),
		cmocka_unit_test(a_record_with_a_time_to_come_is_damaged_and_holds_up_nothing),
		cmocka_unit_test(damage_is_a_loss_in_front_of_the_next_record),
		cmocka_unit_test(size_that_cannot_be_drops_what_is_there),
		cmocka_unit_test(a_ring_says_when_it_is_half_full),
		cmocka_unit_test(what_is_no_sample_is_damage_in_a_ring_that_programs_write),
		cmocka_unit_test(what_a_program_changes_later_does_not_reach_the_record),
		cmocka_unit_test(head_that_cannot_be_drops_what_a_program_wrote),
		cmocka_unit_test(closed_ring_is_empty),
	};

	return cmocka_run_group_tests(tests, open_ring, close_ring);
}
