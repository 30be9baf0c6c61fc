/* Files of perf, made by hand: what they say, the order of their records, and damage. */
#include "source/perfdata/perf_file.h"
#include "tests/support/perf_bytes.h"
#include "tests/support/test.h"

#include <string.h>

#define EVERYTHING 16u

static const uint64_t clock_ids[] = {11, 12}, fault_id = 21;
static const _Atomic bool never;

struct seen {
	uint32_t n;
	uint64_t times[EVERYTHING];
	uint32_t events[EVERYTHING];
	enum perf_record_kind kinds[EVERYTHING];
};

static int see(void *ctx, const struct perf_record *r, uint32_t event)
{
	struct seen *s = ctx;

	assert_true(s->n < EVERYTHING);
	s->times[s->n] = r->time_ns;
	s->kinds[s->n] = r->kind;
	s->events[s->n++] = event;
	return 0;
}

static int open_built(const struct perf_built *f, size_t n, struct perf_file **out, struct err *err)
{
	static struct bytes in;
	int rc;

	in = bytes_of_memory(f->bytes.data, n);
	rc = perf_file_open(&in, "x.data", out, err);
	return rc ? rc : perf_file_survey(*out, &never, err);
}

/* cpu-clock of two CPUs and page faults: ids 11, 12 and 21. */
static void begin(struct perf_built *f, bool pipe)
{
	*f = (struct perf_built){0};
	built_begin(f, pipe);
	built_event(f, 1, 0, 99, clock_ids, 2);
	built_event(f, 1, 2, 1, &fault_id, 1);
	built_records(f);
}

static void put_build_id(struct perf_built *f, const char *path)
{
	uint8_t record[256] = {67};
	size_t n = 8 + 4 + 24 + strlen(path) + 1;

	record[6] = (uint8_t)n;
	memset(record + 12, 0xab, 20);
	strcpy((char *)record + 36, path);
	if (f->pipe)
		built_own(f, 67, record + 8, n - 8);
	else
		built_feature(f, 2, record, n);
}

static void put_host(struct perf_built *f)
{
	static const char host[] = "\6\0\0\0box01";

	built_feature(f, 3, host, 10);
}

static void check_run(struct perf_file *f, uint32_t n, const uint64_t *times)
{
	struct seen seen = {0};
	struct err err = {0};
	uint32_t i;

	assert_int_equal(perf_file_run(f, see, &seen, &err), 0);
	assert_int_equal(seen.n, n);
	for (i = 0; i < n; i++)
		assert_int_equal(seen.times[i], times[i]);
}

TEST(a_file_tells_events_host_and_build_ids)
{
	struct object_key key = {0};
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, false);
	built_sample(&b, 12, 5, 100);
	built_sample(&b, 21, 5, 200);
	put_build_id(&b, "/bin/x");
	put_host(&b);
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	assert_int_equal(perf_file_events(f), 2);
	assert_string_equal(perf_file_event(f, 0)->name, "cpu-clock");
	assert_string_equal(perf_file_event(f, 1)->name, "page-faults");
	assert_int_equal(perf_file_event(f, 0)->nsamples, 1);
	assert_int_equal(perf_file_event(f, 1)->nsamples, 1);
	assert_string_equal(perf_file_facts(f)->host, "box01");
	assert_int_equal(perf_file_facts(f)->first_ns, 100);
	assert_int_equal(perf_file_facts(f)->last_ns, 200);
	assert_false(perf_file_facts(f)->cut);
	assert_true(perf_file_build_id(f, "/bin/x", &key));
	assert_int_equal(key.build_id_bytes, 20);
	assert_int_equal(key.build_id[19], 0xab);
	assert_false(perf_file_build_id(f, "/bin/y", &key));
	perf_file_close(f);
	built_free(&b);
}

TEST(a_stream_for_a_pipe_tells_the_same_by_records)
{
	struct object_key key = {0};
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, true);
	built_own(&b, 80, "\3\0\0\0\0\0\0\0\6\0\0\0box01\0\0\0\0\0\0", 22);
	built_sample(&b, 11, 5, 100);
	built_sample(&b, 21, 5, 200);
	put_build_id(&b, "/bin/x");
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	assert_int_equal(perf_file_events(f), 2);
	assert_int_equal(perf_file_event(f, 1)->nsamples, 1);
	assert_string_equal(perf_file_facts(f)->host, "box01");
	assert_true(perf_file_build_id(f, "/bin/x", &key));
	perf_file_close(f);
	built_free(&b);
}

/* Two CPUs' rings are read in turn: their records are in order only after sorting. */
TEST(records_of_several_rings_come_in_time_order)
{
	static const uint64_t times[] = {100, 150, 200, 300, 320, 350, 400};
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, false);
	built_sample(&b, 11, 5, 100);
	built_sample(&b, 11, 5, 300);
	built_sample(&b, 12, 5, 150);
	built_own(&b, 68, "", 0);
	built_sample(&b, 11, 5, 400);
	built_sample(&b, 12, 5, 200);
	built_sample(&b, 12, 5, 350);
	built_own(&b, 68, "", 0);
	built_sample(&b, 12, 5, 320);
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	check_run(f, 7, times);
	assert_int_equal(perf_file_facts(f)->late, 0);
	perf_file_close(f);
	built_free(&b);
}

TEST(what_perf_made_up_before_it_began_comes_first)
{
	static const uint64_t times[] = {0, 100};
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, false);
	built_sample(&b, 11, 5, 100);
	built_comm(&b, 5, "sh", 0);
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	check_run(f, 2, times);
	perf_file_close(f);
	built_free(&b);
}

/* perf writes the size of its data last, and features behind them. */
TEST(a_file_of_a_killed_perf_is_read_to_its_end)
{
	static const uint64_t times[] = {100};
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, false);
	built_sample(&b, 11, 5, 100);
	built_end(&b);
	put_le64((uint8_t *)b.bytes.data + 48, 0);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	check_run(f, 1, times);
	assert_true(perf_file_facts(f)->cut);
	perf_file_close(f);
	built_free(&b);
}

TEST(a_file_that_is_cut_anywhere_gives_what_precedes_the_cut)
{
	struct perf_built b;
	size_t n;

	begin(&b, false);
	built_comm(&b, 5, "sh", 100);
	built_sample(&b, 11, 5, 200);
	put_build_id(&b, "/bin/x");
	built_end(&b);
	for (n = 0; n < b.bytes.len; n++) {
		struct perf_file *f = NULL;
		struct seen seen = {0};
		struct err err = {0};

		if (open_built(&b, n, &f, &err)) {
			assert_true(err.text[0]);
			assert_true(n < b.data_at);
			continue;
		}
		assert_int_equal(perf_file_run(f, see, &seen, &err), 0);
		assert_int_equal(seen.n, n >= b.data_end ? 2 : n >= b.data_at + 56 ? 1 : 0);
		perf_file_close(f);
	}
	built_free(&b);
}

static void refuse(const char *magic, size_t n, int code, const char *sentence)
{
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, false);
	built_end(&b);
	memcpy(b.bytes.data, magic, n);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), code);
	assert_non_null(strstr(err.text, sentence));
	assert_null(f);
	built_free(&b);
}

TEST(other_byte_orders_and_formats_are_refused_in_a_sentence)
{
	refuse("2ELIFREP", 8, ERR_UNSUPPORTED, "the other byte order");
	refuse("PERFFILE", 8, ERR_FORMAT, "no file of perf");
}

TEST(a_compressed_file_is_refused_in_a_sentence)
{
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, true);
	built_own(&b, 81, "12345678", 8);
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "compressed"));
	perf_file_close(f);
	built_free(&b);
}

static struct perf_record one;

static int keep_one(void *ctx, const struct perf_record *r, uint32_t event)
{
	(void)ctx;
	(void)event;
	one = *r;
	return 0;
}

/* The kernel sets the bit for everybody while somebody records build ids (seen with 6.18). */
TEST(a_device_is_no_build_id_though_the_record_says_so)
{
	struct perf_file *f = NULL;
	struct perf_built b;
	struct err err = {0};

	begin(&b, false);
	built_mmap2(&b, 0x4002, 5, 0x400000, 254, "/bin/x", 100);
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	assert_int_equal(perf_file_run(f, keep_one, NULL, &err), 0);
	assert_int_equal(perf_file_facts(f)->damaged, 0);
	assert_int_equal(one.kind, PERF_KIND_MMAP);
	assert_int_equal(one.u.mmap.build_id_bytes, 0);
	assert_int_equal(one.u.mmap.major, 254);
	assert_int_equal(one.u.mmap.ino, 77);
	perf_file_close(f);
	built_free(&b);
}

/* A sample of period and stack: 6,000 bytes of it are there, but it may claim more. */
static void put_large(struct perf_built *f, uint64_t time_ns, uint64_t period, uint64_t claimed)
{
	static const char stack[6000];
	struct perf_bytes b;

	perf_bytes_begin(&b, 9, 2);
	perf_bytes_u64(&b, 11);
	perf_bytes_u64(&b, 0x401000);
	perf_bytes_u32(&b, 5);
	perf_bytes_u32(&b, 5);
	perf_bytes_u64(&b, time_ns);
	perf_bytes_u64(&b, 0);
	perf_bytes_u64(&b, period);
	perf_bytes_u64(&b, claimed);
	perf_bytes_put(&b, stack, sizeof(stack));
	perf_bytes_u64(&b, sizeof(stack));
	built_record(f, &b);
}

TEST(periods_of_large_samples_are_summed_and_damaged_ones_counted)
{
	static const uint64_t times[] = {100, 150, 300};
	struct perf_file *f = NULL;
	struct perf_built b = {.sample_type = 0x12187};
	struct err err = {0};

	built_begin(&b, false);
	built_event(&b, 1, 0, 99, clock_ids, 2);
	built_records(&b);
	put_large(&b, 100, 7, 6000);
	put_large(&b, 200, 20, 60000);
	built_comm(&b, 5, "x", 150);
	put_large(&b, 300, 3, 6000);
	built_end(&b);
	assert_int_equal(open_built(&b, b.bytes.len, &f, &err), 0);
	assert_int_equal(perf_file_facts(f)->nrecords, 4);
	assert_int_equal(perf_file_facts(f)->nsamples, 3);
	assert_int_equal(perf_file_facts(f)->last_ns, 300);
	assert_int_equal(perf_file_event(f, 0)->period_sum, 30);
	check_run(f, 3, times);
	assert_int_equal(perf_file_facts(f)->damaged, 1);
	perf_file_close(f);
	built_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_tells_events_host_and_build_ids),
		cmocka_unit_test(a_stream_for_a_pipe_tells_the_same_by_records),
		cmocka_unit_test(records_of_several_rings_come_in_time_order),
		cmocka_unit_test(what_perf_made_up_before_it_began_comes_first),
		cmocka_unit_test(a_file_of_a_killed_perf_is_read_to_its_end),
		cmocka_unit_test(a_file_that_is_cut_anywhere_gives_what_precedes_the_cut),
		cmocka_unit_test(other_byte_orders_and_formats_are_refused_in_a_sentence),
		cmocka_unit_test(a_compressed_file_is_refused_in_a_sentence),
		cmocka_unit_test(a_device_is_no_build_id_though_the_record_says_so),
		cmocka_unit_test(periods_of_large_samples_are_summed_and_damaged_ones_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
