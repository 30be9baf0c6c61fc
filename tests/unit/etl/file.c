/* Files that the writer in tests/support makes, read back. */
#include "base/array.h"
#include "base/os.h"
#include "source/etl/file.h"
#include "source/etl/etl_private.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etl_writer.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MAX 512

struct log {
	unsigned n;
	unsigned stop_at;                    /* the callback's nth call returns 7; 0 = none */
	struct entry {
		int64_t ticks;
		uint16_t cpu;
		uint32_t tid;
	} entries[LOG_MAX];
};

static int keep(void *ctx, const struct etw_record *record)
{
	struct log *log = ctx;

	if (log->n < LOG_MAX)
		log->entries[log->n] = (struct entry){record->ticks, record->cpu, record->tid};
	log->n++;
	return log->n == log->stop_at ? 7 : 0;
}

static struct etl_file *open_bytes(const struct buf *bytes)
{
	struct etl_file *file = NULL;
	struct err err;

	if (etl_file_open_memory("test.etl", bytes->data, bytes->len, &file, &err))
		fail_msg("%s", err.text);
	return file;
}

/* Twice: the same. */
static void run(struct etl_file *file, struct log *log, struct etl_counts *counts)
{
	struct etl_counts again_counts = {0};
	struct log again = {.n = 0};
	struct err err;

	memset(log, 0, sizeof(*log));
	memset(counts, 0, sizeof(*counts));
	if (etl_file_run(file, keep, log, counts, &err))
		fail_msg("%s", err.text);
	if (etl_file_run(file, keep, &again, &again_counts, &err))
		fail_msg("%s", err.text);
	assert_memory_equal(log, &again, sizeof(again));
	assert_memory_equal(counts, &again_counts, sizeof(again_counts));
}

/* A kernel record, 40 bytes, its tid telling them apart. */
static void put_record(struct etl_writer *w, unsigned cpu, int64_t ticks, uint32_t tid)
{
	static const uint8_t payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	etl_write_kernel(w, &(struct etw_record){.ticks = ticks, .cpu = (uint16_t)cpu, .tid = tid,
			 .pid = 1, .opcode = 36, .payload = payload, .payload_bytes = 8}, 5);
}

TEST(the_session_s_header_is_read_for_both_pointer_sizes)
{
	for (unsigned p = 4; p <= 8; p += 4) {
		struct etl_session session = {
			.pointer_bytes = p, .ncpus = 3, .t0_ticks = 500, .events_lost = 11,
			.buffers_lost = 22, .name = "my session", .perf_hz = 3579545};
		const struct etl_facts *facts;
		struct etl_file *file;
		struct etl_writer w;

		etl_writer_begin(&w, &session);
		etl_writer_end(&w);
		file = open_bytes(&w.out);
		facts = etl_file_facts(file);
		assert_int_equal(facts->pointer_bytes, p);
		assert_int_equal(facts->ncpus, 3);
		assert_int_equal(facts->clock.t0_ticks, 500);
		assert_int_equal(facts->clock.frequency_hz, 3579545);
		assert_int_equal(facts->events_lost, 11);
		assert_int_equal(facts->buffers_lost, 22);
		assert_int_equal(facts->os_major, 10);
		assert_int_equal(facts->os_build, 19045);
		/* 2020-01-01T00:00:00Z */
		assert_int_equal(facts->start_wall_ns, 1577836800000000000);
		assert_int_equal(file->nbuffers, 1);
		assert_false(facts->truncated);
		etl_file_close(file);
		etl_writer_free(&w);
	}
}

TEST(the_clock_s_kind_chooses_its_frequency)
{
	static const struct {
		uint32_t kind, mhz;
		uint64_t perf_hz, hz;
	} cases[] = {
		{1, 3000, 2500, 2500},
		{2, 3000, 2500, 10000000},
		{3, 3000, 2500, 3000000000},
		{100, 3000, 2500, 2500},     /* 0 in the file */
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct etl_session session = {.clock_kind = cases[i].kind, .cpu_mhz = cases[i].mhz,
					      .perf_hz = cases[i].perf_hz};
		struct etl_writer w;
		struct etl_file *file;

		etl_writer_begin(&w, &session);
		etl_writer_end(&w);
		file = open_bytes(&w.out);
		assert_int_equal(etl_file_facts(file)->clock.frequency_hz, cases[i].hz);
		etl_file_close(file);
		etl_writer_free(&w);
	}
}

TEST(ticks_become_nanoseconds_without_overflow)
{
	struct etw_clock mhz10 = {.t0_ticks = 100, .frequency_hz = 10000000};
	struct etw_clock ghz3 = {.t0_ticks = 0, .frequency_hz = 3000000000};
	struct etw_clock slow = {.t0_ticks = -5, .frequency_hz = 1};
	struct etw_clock absurd = {.t0_ticks = 0, .frequency_hz = UINT64_MAX};

	assert_int_equal(etw_clock_ns(&mhz10, 99), 0);
	assert_int_equal(etw_clock_ns(&mhz10, INT64_MIN), 0);
	assert_int_equal(etw_clock_ns(&mhz10, 101), 100);
	/* A year of 10 MHz: 3.15e14 ticks, times 1e9 is far over 64 bits. */
	assert_int_equal(etw_clock_ns(&mhz10, 100 + 315360000000000), 31536000000000000);
	assert_int_equal(etw_clock_ns(&ghz3, 1), 0);
	assert_int_equal(etw_clock_ns(&ghz3, 3), 1);
	assert_int_equal(etw_clock_ns(&ghz3, 9000000000000000000), 3000000000000000000);
	assert_int_equal(etw_clock_ns(&slow, -4), 1000000000);
	assert_true(etw_clock_ns(&slow, INT64_MAX) == UINT64_MAX);
	assert_int_equal(etw_clock_ns(&absurd, INT64_MAX), 499999999);
}

TEST(records_of_all_cpus_come_in_the_order_of_time)
{
	struct etl_writer w;
	struct etl_counts counts;
	struct etl_file *file;
	struct log log;

	/* Two records of 40 bytes in each buffer; 3 CPUs, 30 times, in an order of their own. */
	etl_writer_begin(&w, &(struct etl_session){.ncpus = 3, .buffer_bytes = 72 + 2 * 40});
	for (unsigned i = 0; i < 30; i++)
		put_record(&w, i * 7 % 3, (int64_t)i, i);
	etl_writer_end(&w);
	file = open_bytes(&w.out);
	run(file, &log, &counts);
	assert_int_equal(log.n, 31);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(log.entries[i + 1].ticks, i);
		assert_int_equal(log.entries[i + 1].tid, i);
		assert_int_equal(log.entries[i + 1].cpu, i * 7 % 3);
	}
	assert_int_equal(file->nbuffers, 16);
	assert_int_equal(counts.nrecords, 31);
	etl_file_close(file);
	etl_writer_free(&w);
}

TEST(equal_ticks_keep_the_order_of_the_file)
{
	struct etl_writer w;
	struct etl_counts counts;
	struct etl_file *file;
	struct log log;

	etl_writer_begin(&w, &(struct etl_session){.ncpus = 3});
	put_record(&w, 2, 9, 20);
	put_record(&w, 0, 9, 30);
	put_record(&w, 0, 9, 31);
	put_record(&w, 1, 9, 10);
	etl_writer_flush(&w, 1);
	etl_writer_flush(&w, 2);
	etl_writer_end(&w);
	file = open_bytes(&w.out);
	run(file, &log, &counts);
	assert_int_equal(log.entries[1].tid, 10);
	assert_int_equal(log.entries[2].tid, 20);
	assert_int_equal(log.entries[3].tid, 30);
	assert_int_equal(log.entries[4].tid, 31);
	etl_file_close(file);
	etl_writer_free(&w);
}

TEST(buffers_that_wait_on_disk_give_the_same_records)
{
	static uint8_t payload[60000];
	struct etl_writer w;
	struct etl_counts counts;
	struct etl_file *file;
	struct log log;

	/* 5 CPUs, buffers of 200 KB, each fourth record longer than any window. */
	etl_writer_begin(&w, &(struct etl_session){.ncpus = 5, .buffer_bytes = 200000,
						   .compressed = true});
	for (unsigned i = 0; i < 400; i++) {
		payload[0] = (uint8_t)i;
		etl_write_kernel(&w,
				 &(struct etw_record){.ticks = i, .cpu = (uint16_t)(i * 7 % 5),
						      .tid = i, .payload = payload,
						      .payload_bytes = i % 4 ? 1000 : 60000},
				 5);
	}
	etl_writer_end(&w);
	/* A ceiling for none, for one, for all of them, for all and the next ones. */
	for (size_t held = 0; held <= 4000000; held = held ? held * 4 : 250000) {
		file = open_bytes(&w.out);
		file->open_max_bytes = held;
		run(file, &log, &counts);
		assert_int_equal(log.n, 401);
		assert_int_equal(counts.ndamaged, 0);
		for (unsigned i = 0; i < 400; i++)
			assert_int_equal(log.entries[i + 1].tid, i);
		etl_file_close(file);
	}
	etl_writer_free(&w);
}

static void same_payload(const struct etl_payload *a, const struct etl_payload *b)
{
	assert_int_equal(a->nbytes, b->nbytes);
	assert_memory_equal(a->bytes, b->bytes, a->nbytes);
}

TEST(a_buffer_expanded_ahead_is_what_the_run_would_have_read)
{
	struct etl_payload ahead = {0}, own = {0}, stored = {0};
	struct etl_lane lanes[2] = {{0, 21}, {21, 41}};      /* of CPU 0, with the header; of 1 */
	struct etl_ahead a = {.nlanes = 0};
	struct etl_writer w;
	struct etl_file *file;
	const char *why;
	unsigned nahead = 0;

	etl_writer_begin(&w, &(struct etl_session){.ncpus = 2, .buffer_bytes = 72 + 2 * 40,
						   .compressed = true});
	for (unsigned i = 0; i < 80; i++)
		put_record(&w, i % 2, (int64_t)i, i);
	etl_writer_end(&w);
	w.out.data[etl_writer_start(&w, 9) + 4]++;   /* damage */
	file = open_bytes(&w.out);
	assert_int_equal(file->nbuffers, 41);
	etl_ahead_begin(&a, file, lanes, 2);
	for (size_t n = 0, next[2] = {0, 21}; n < file->nbuffers; n++) {
		bool lane = next[0] > 20 || (next[1] < 41 && file->buffers[next[1]].number <
								     file->buffers[next[0]].number);
		size_t i = next[lane]++;

		assert_int_equal(etl_buffer_load(file, &file->buffers[i], &stored, &own, &why,
						 NULL), 0);
		assert_int_equal(why != NULL, file->buffers[i].number == 9);
		if (etl_ahead_take(&a, lane, i, &ahead)) {
			assert_null(why);
			same_payload(&ahead, &own);
			nahead++;
		}
		ahead_await(&a.ahead, &a.job);
	}
	/* Not the first one, which wakes the thread; not the damaged one. */
	assert_int_equal(nahead, file->nbuffers - 2);
	etl_ahead_end(&a);
	free(ahead.bytes);
	free(own.bytes);
	free(stored.bytes);
	etl_file_close(file);
	etl_writer_free(&w);
}

TEST(a_circular_file_that_wrapped_is_sorted_by_sequence)
{
	struct etl_writer w;
	struct etl_counts counts;
	struct etl_file *file;
	struct log log;

	etl_writer_begin(&w, &(struct etl_session){.buffer_bytes = 72 + 40, .log_file_mode = 2});
	for (unsigned i = 0; i < 10; i++)
		put_record(&w, 0, (int64_t)i, i);
	etl_writer_end(&w);
	etl_writer_rotate(&w, 4);
	file = open_bytes(&w.out);
	run(file, &log, &counts);
	assert_int_equal(log.n, 11);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(log.entries[i + 1].tid, i);
	etl_file_close(file);
	etl_writer_free(&w);
}

TEST(cpus_over_255_need_the_wide_field)
{
	for (unsigned wide = 0; wide < 2; wide++) {
		struct etl_writer w;
		struct etl_counts counts;
		struct etl_file *file;
		struct log log;

		etl_writer_begin(&w, &(struct etl_session){.wide_cpu = wide});
		put_record(&w, 5, 1, 1);
		etl_writer_end(&w);
		/* CPU 0x305 in the buffer's header. */
		w.out.data[etl_writer_start(&w, 1) + 41] = 3;
		file = open_bytes(&w.out);
		run(file, &log, &counts);
		assert_int_equal(log.entries[1].cpu, wide ? 0x305 : 5);
		etl_file_close(file);
		etl_writer_free(&w);
	}
}

TEST(buffers_marked_as_lossy_are_counted)
{
	struct etl_writer w;
	struct etl_file *file;

	etl_writer_begin(&w, &(struct etl_session){.buffer_bytes = 72 + 40});
	for (unsigned i = 0; i < 4; i++) {
		w.flags[0] = i == 1 ? 2 : i == 2 ? 4 : 0;
		put_record(&w, 0, (int64_t)i, i);
		etl_writer_flush(&w, 0);
	}
	etl_writer_end(&w);
	file = open_bytes(&w.out);
	assert_int_equal(etl_file_facts(file)->nbuffers_loss, 2);
	etl_file_close(file);
	etl_writer_free(&w);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* A compressed or plain file of 3 buffers of one CPU behind the first: tids 0 to 5. */
static void three_buffers(struct etl_writer *w, bool compressed)
{
	etl_writer_begin(w, &(struct etl_session){.buffer_bytes = 72 + 2 * 40,
						  .compressed = compressed});
	for (unsigned i = 0; i < 6; i++)
		put_record(w, 0, (int64_t)i, i);
	etl_writer_end(w);
}

static void expect_two_missing(const struct etl_writer *w, const char *why, unsigned missing)
{
	struct etl_file *file = open_bytes(&w->out);
	struct etl_counts counts;
	struct log log;

	run(file, &log, &counts);
	assert_int_equal(counts.ndamaged, 1);
	assert_int_equal(counts.damaged, 2);
	assert_non_null(strstr(counts.why, why));
	assert_int_equal(log.n, 7 - missing);
	assert_int_equal(log.entries[2].tid, 1);
	assert_int_equal(log.entries[log.n - 1].tid, 5);
	etl_file_close(file);
}

TEST(a_damaged_buffer_is_skipped_and_named)
{
	struct etl_writer w;
	size_t start;

	three_buffers(&w, true);
	start = (size_t)etl_writer_start(&w, 2);
	w.out.data[start + 4]++;             /* SavedOffset: one byte more than there is */
	expect_two_missing(&w, "end too early", 2);
	w.out.data[start + 4] = (char)(w.out.data[start + 4] - 2);
	expect_two_missing(&w, "more than it says", 2);
	w.out.data[start + 6] = 0x7F;
	expect_two_missing(&w, "larger than any buffer", 2);
	etl_writer_free(&w);

	three_buffers(&w, false);
	start = (size_t)etl_writer_start(&w, 2);
	w.out.data[start + 5] = 0x7F;
	expect_two_missing(&w, "more than fits into it", 2);
	etl_writer_free(&w);

	/* The second record of the buffer: no such marker; a size past the end. */
	three_buffers(&w, false);
	w.out.data[start + 72 + 40 + 3] = 0x11;
	expect_two_missing(&w, "unknown header", 1);
	w.out.data[start + 72 + 40 + 3] = (char)0xC0;
	w.out.data[start + 72 + 40 + 4] = 48;
	expect_two_missing(&w, "extends past its end", 1);
	etl_writer_free(&w);

	/* The size of a whole buffer: the next one is found where it must be. */
	three_buffers(&w, false);
	w.out.data[start] = 3;
	expect_two_missing(&w, "its size is impossible", 2);
	etl_writer_free(&w);
}

TEST(a_broken_chain_of_compressed_buffers_ends_the_file_aloud)
{
	struct etl_writer w;
	struct etl_counts counts;
	struct etl_file *file;
	struct log log;

	three_buffers(&w, true);
	w.out.data[etl_writer_start(&w, 2)] = 3;
	file = open_bytes(&w.out);
	run(file, &log, &counts);
	assert_int_equal(log.n, 3);
	assert_int_equal(counts.ndamaged, 1);
	assert_int_equal(counts.damaged, 2);
	assert_non_null(strstr(counts.why, "cannot be found"));
	etl_file_close(file);
	etl_writer_free(&w);
}

/* Records wholly before `cut` in a plain file of three_buffers(), the session's header included. */
static unsigned records_before(const struct etl_writer *w, size_t cut, size_t session_bytes)
{
	unsigned n = cut >= 72 + session_bytes;

	for (size_t i = 1; i < etl_writer_nbuffers(w); i++)
		for (size_t k = 1; k <= 2; k++)
			n += cut >= etl_writer_start(w, i) + 72 + k * 40;
	return n;
}

TEST(a_trace_cut_at_any_byte_gives_what_precedes_the_cut)
{
	for (unsigned compressed = 0; compressed < 2; compressed++) {
		struct etl_writer w;
		size_t session_bytes;
		unsigned before = 0;

		three_buffers(&w, compressed);
		session_bytes = (unsigned char)w.out.data[72 + 4] +
				256u * (unsigned char)w.out.data[72 + 5];
		for (size_t cut = 0; cut <= w.out.len; cut++) {
			struct etl_file *file = NULL;
			struct etl_counts counts;
			struct log log = {0};
			struct err err;

			if (cut < 72 + session_bytes) {
				assert_int_equal(
					etl_file_open_memory("x.etl", w.out.data, cut, &file, &err),
					ERR_FORMAT);
				assert_non_null(strstr(err.text, "x.etl is not a Windows trace"));
				continue;
			}
			assert_int_equal(
				etl_file_open_memory("x.etl", w.out.data, cut, &file, &err), 0);
			run(file, &log, &counts);
			assert_int_equal(counts.ndamaged, 0);
			assert_true(log.n >= before);
			before = log.n;
			if (!compressed)
				assert_int_equal(log.n, records_before(&w, cut, session_bytes));
			for (unsigned i = 1; i < log.n; i++)
				assert_int_equal(log.entries[i].tid, i - 1);
			assert_int_equal(etl_file_facts(file)->truncated,
					 cut < w.out.len && cut != etl_writer_start(&w, 1) &&
						 cut != etl_writer_start(&w, 2) &&
						 cut != etl_writer_start(&w, 3));
			etl_file_close(file);
		}
		assert_int_equal(before, 7);
		etl_writer_free(&w);
	}
}

TEST(what_is_no_trace_is_refused_in_one_sentence)
{
	static const char *const texts[] = {
		"",
		"x",
		("#!/bin/sh\necho this is longer than the header of a buffer, by some bytes, as it "
		 "must be\n"),
		"H\0\0\0H\0\0\0................................................................",
	};
	static const size_t sizes[] = {0, 1, 92, 72};
	struct etl_file *file = NULL;
	struct err err;

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(etl_file_open_memory("notes.txt", texts[i], sizes[i], &file, &err),
				 ERR_FORMAT);
		assert_ptr_equal(strstr(err.text, "notes.txt is not a Windows trace (.etl): "),
				 err.text);
		assert_null(file);
	}
	assert_int_equal(etl_file_open(tmp_path("absent.etl"), &file, &err), ERR_NOT_FOUND);
	assert_int_equal(etl_file_open(".", &file, &err) != 0, 1);
	assert_null(file);
}

/* ---- the run --------------------------------------------------------------------------------- */

TEST(a_run_ends_when_the_callback_says_so)
{
	struct etl_writer w;
	struct etl_file *file;
	struct log log = {.stop_at = 3};

	three_buffers(&w, false);
	file = open_bytes(&w.out);
	assert_int_equal(etl_file_run(file, keep, &log, NULL, NULL), 7);
	assert_int_equal(log.n, 3);
	etl_file_close(file);
	etl_writer_free(&w);
}

static int stop(void *ctx, const struct etw_record *record)
{
	(void)record;
	etl_file_stop(ctx);
	return 0;
}

TEST(a_stopped_file_stays_stopped)
{
	struct etl_writer w;
	struct etl_file *file;
	struct log log = {0};
	struct err err;

	three_buffers(&w, false);
	file = open_bytes(&w.out);
	assert_int_equal(etl_file_run(file, stop, file, NULL, &err), ERR_STOPPED);
	assert_int_equal(etl_file_run(file, keep, &log, NULL, &err), ERR_STOPPED);
	assert_int_equal(log.n, 0);
	etl_file_close(file);
	etl_writer_free(&w);
}

static int read_it_all(void *ctx)
{
	struct etl_writer *w = ctx;
	struct etl_file *file = NULL;
	struct log log = {0};
	int rc = etl_file_open_memory("test.etl", w->out.data, w->out.len, &file, NULL);

	if (!rc)
		rc = etl_file_run(file, keep, &log, NULL, NULL);
	etl_file_close(file);
	return rc;
}

TEST(lack_of_memory_is_an_error_at_every_place)
{
	struct etl_writer w;

	three_buffers(&w, true);
	assert_in_range(alloc_walk(read_it_all, &w), 5, 50);
	etl_writer_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_session_s_header_is_read_for_both_pointer_sizes),
		cmocka_unit_test(the_clock_s_kind_chooses_its_frequency),
		cmocka_unit_test(ticks_become_nanoseconds_without_overflow),
		cmocka_unit_test(records_of_all_cpus_come_in_the_order_of_time),
		cmocka_unit_test(equal_ticks_keep_the_order_of_the_file),
		cmocka_unit_test(buffers_that_wait_on_disk_give_the_same_records),
		cmocka_unit_test(a_buffer_expanded_ahead_is_what_the_run_would_have_read),
		cmocka_unit_test(a_circular_file_that_wrapped_is_sorted_by_sequence),
		cmocka_unit_test(cpus_over_255_need_the_wide_field),
		cmocka_unit_test(buffers_marked_as_lossy_are_counted),
		cmocka_unit_test(a_damaged_buffer_is_skipped_and_named),
		cmocka_unit_test(a_broken_chain_of_compressed_buffers_ends_the_file_aloud),
		cmocka_unit_test(a_trace_cut_at_any_byte_gives_what_precedes_the_cut),
		cmocka_unit_test(what_is_no_trace_is_refused_in_one_sentence),
		cmocka_unit_test(a_run_ends_when_the_callback_says_so),
		cmocka_unit_test(a_stopped_file_stays_stopped),
		cmocka_unit_test(lack_of_memory_is_an_error_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
