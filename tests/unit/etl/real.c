/* The records of the real traces, number by number. */
#include "base/os.h"
#include "source/etl/etl_private.h"
#include "tests/support/real_trace.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* By the bytes of a kernel record's header, or of another classic one's. */
enum { PERFINFO = 16, SYSTEM = 32, FULL = 48, EVENT };

struct seen {
	uint64_t sum;                        /* of ticks - t0 */
	int64_t t0, last_ticks;
	unsigned records[EVENT + 1][2];      /* with pointers of 4 and of 8 bytes */
};

static int add_up(void *ctx, const struct etw_record *record)
{
	uint32_t kind = record->header == ETW_CLASSIC ? record->nbytes - record->payload_bytes
						      : EVENT;
	struct seen *seen = ctx;

	assert_true(record->ticks >= seen->last_ticks);
	assert_in_range(kind, 0, EVENT);
	seen->sum += (uint64_t)(record->ticks - seen->t0);
	seen->last_ticks = record->ticks;
	seen->records[kind][record->pointer_bytes == 8]++;
	return 0;
}

static void run(struct etl_file *file, struct etl_counts *counts, struct seen *seen)
{
	struct err err;

	*seen = (struct seen){.t0 = etl_file_facts(file)->clock.t0_ticks};
	if (etl_file_run(file, add_up, seen, counts, &err))
		fail_msg("%s", err.text);
	assert_int_equal(counts->ndamaged, 0);
	assert_int_equal(counts->bad_items, 0);
}

/* zlib's CRC-32 of the payloads of all buffers, in file order; *nbytes: of them all. */
static uint32_t crc_of(struct etl_file *file, size_t *nbytes)
{
	struct etl_payload payload = {0}, stored = {0};
	uLong crc = crc32(0, NULL, 0);
	const char *why;
	uint32_t number;
	size_t i;

	*nbytes = 0;
	for (number = 0; number < file->nbuffers; number++) {
		for (i = 0; file->buffers[i].number != number; i++)
			;
		assert_int_equal(etl_buffer_load(file, &file->buffers[i], &stored,
						 &payload, &why, NULL), 0);
		if (payload.nbytes)
			crc = crc32(crc, payload.bytes, (uInt)payload.nbytes);
		*nbytes += payload.nbytes;
	}
	free(payload.bytes);
	free(stored.bytes);
	return (uint32_t)crc;
}

/* Microseconds after t0, rounded. */
static uint64_t us_of(const struct etl_file *file, int64_t ticks)
{
	return (etw_clock_ns(&etl_file_facts(file)->clock, ticks) + 500) / 1000;
}

TEST(net452_has_its_header_counts_checksum_and_times)
{
	struct etl_file *file = real_trace_open("net.4.5.2.x64.etl.zip");
	const struct etl_facts *facts = etl_file_facts(file);
	struct etl_counts counts;
	struct seen seen;
	size_t nbytes;

	assert_string_equal(facts->entry, "net.4.5.2.x64.etl");
	assert_int_equal(facts->trace_bytes, 4879401);
	assert_int_equal(file->nbuffers, 360);
	assert_int_equal(facts->clock.t0_ticks, 1942608875);
	assert_int_equal(facts->clock.frequency_hz, 10000000);
	assert_int_equal(facts->ncpus, 8);
	assert_int_equal(facts->pointer_bytes, 8);
	assert_int_equal(facts->events_lost, 0);
	assert_int_equal(facts->buffers_lost, 0);
	assert_int_equal(facts->nbuffers_loss, 0);
	assert_false(facts->truncated);
	assert_false(facts->limited);
	assert_false(facts->entry_damaged);
	/* 2020-07-29T00:07:00.623616Z; the file has one digit more. */
	assert_int_equal(facts->start_wall_ns / 1000, 1595981220623616);

	run(file, &counts, &seen);
	assert_int_equal(seen.records[SYSTEM][1], 3189);
	assert_int_equal(seen.records[SYSTEM][0], 2);
	assert_int_equal(seen.records[PERFINFO][1], 100157);
	assert_int_equal(seen.records[FULL][1], 7956);
	assert_int_equal(seen.records[FULL][0], 27);
	assert_int_equal(seen.records[EVENT][1], 34765);
	assert_int_equal(seen.records[EVENT][0], 33378);
	assert_int_equal(counts.nrecords, 179474);
	assert_int_equal(seen.sum, 11202481684533);
	assert_int_equal(us_of(file, seen.last_ticks), 12581565);
	assert_int_equal(crc_of(file, &nbytes), 0x67f84a11);
	assert_int_equal(nbytes, 23016672);
	etl_file_close(file);
}

TEST(a_second_run_gives_the_same_as_the_first)
{
	struct etl_file *file = real_trace_open("net.4.5.2.x64.etl.zip");
	struct etl_counts first, second;
	struct seen a, b;

	run(file, &first, &a);
	run(file, &second, &b);
	assert_int_equal(a.sum, b.sum);
	assert_memory_equal(&first, &second, sizeof(first));
	etl_file_close(file);
}

TEST(gcevents_has_its_numbers)
{
	struct etl_file *file = real_trace_open("gcevents.etl.zip");
	struct etl_counts counts;
	struct seen seen;
	size_t nbytes;

	assert_string_equal(etl_file_facts(file)->entry, "gcevents/PerfViewData.etl");
	assert_int_equal(etl_file_facts(file)->trace_bytes, 327680);
	assert_int_equal(file->nbuffers, 5);
	run(file, &counts, &seen);
	assert_int_equal(seen.records[SYSTEM][1], 2);
	assert_int_equal(seen.records[EVENT][1], 69);
	assert_int_equal(counts.nrecords, 71);
	assert_int_equal(us_of(file, seen.last_ticks), 11608895);
	assert_int_equal(crc_of(file, &nbytes), 0x89ba3392);
	etl_file_close(file);
}

TEST(primitive_types_has_its_numbers)
{
	struct etl_file *file = real_trace_open("primitive-types.etl.zip");
	struct etl_counts counts;
	struct seen seen;
	size_t nbytes;

	assert_int_equal(file->nbuffers, 2);
	run(file, &counts, &seen);
	assert_int_equal(counts.nrecords, 7);
	assert_int_equal(us_of(file, seen.last_ticks), 4626652);
	assert_int_equal(crc_of(file, &nbytes), 0x943dc2cb);
	etl_file_close(file);
}

TEST(lxcore_kernel_has_its_numbers)
{
	struct etl_file *file = real_trace_open("lxcore_kernel.etl");
	struct etl_counts counts;
	struct seen seen;
	size_t nbytes;

	assert_int_equal(file->nbuffers, 3);
	assert_string_equal(etl_file_facts(file)->entry, "");
	run(file, &counts, &seen);
	assert_int_equal(counts.nrecords, 4);
	assert_int_equal(us_of(file, seen.last_ticks), 5765135);
	assert_int_equal(crc_of(file, &nbytes), 0xe09a875d);
	etl_file_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net452_has_its_header_counts_checksum_and_times),
		cmocka_unit_test(a_second_run_gives_the_same_as_the_first),
		cmocka_unit_test(gcevents_has_its_numbers),
		cmocka_unit_test(primitive_types_has_its_numbers),
		cmocka_unit_test(lxcore_kernel_has_its_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
