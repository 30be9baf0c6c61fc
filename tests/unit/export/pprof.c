/* pprof profiles, decoded. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_has_its_samples_locations_and_functions)
{
	struct pprof_totals t;
	struct buf packed = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(export_text(&in, "pprof", NULL, &packed), 0);
	pprof_read(&packed, &t);
	assert_int_equal(t.values[0], 12);
	assert_int_equal(t.values[1], 120000000);
	assert_int_equal(t.samples, 9);      /* by thread, stack and quality */
	/* 10 addresses and BROKEN, [truncated], [no stack]; burn_alpha is one function of two */
	assert_int_equal(t.locations, 14);
	assert_int_equal(t.functions, 13);
	buf_free(&packed);
	incident_free(&in);
}

TEST(hostile_names_change_no_total)
{
	struct pprof_totals t;
	struct buf packed = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "pprof", NULL, &packed), 0);
	pprof_read(&packed, &t);
	assert_int_equal(t.values[0], in.nsamples);
	buf_free(&packed);
	incident_free(&in);
}

TEST(functions_inlined_at_an_address_share_its_location)
{
	static const struct frame_spec frames[] = {
		{"m", "main", 0x10, 0},
		{"m", "outer", 0x20, 0},
		{"m", "inner", 0x20, FRAME_INLINED},
	};
	struct pprof_totals t;
	struct buf packed = {0};
	struct incident in;
	uint32_t stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, frames, 3, &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_FP, 2), 0);
	assert_int_equal(export_text(&in, "pprof", NULL, &packed), 0);
	pprof_read(&packed, &t);
	assert_int_equal(t.locations, 2);
	assert_int_equal(t.functions, 3);
	assert_int_equal(t.samples, 1);
	buf_free(&packed);
	incident_free(&in);
}

TEST(the_file_names_no_system_and_no_time)
{
	struct buf packed = {0};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(export_text(&in, "pprof", NULL, &packed), 0);
	assert_memory_equal(packed.data, "\x1f\x8b\x08\0\0\0\0\0", 8);
	assert_int_equal((unsigned char)packed.data[9], 255);
	buf_free(&packed);
	incident_free(&in);
}

TEST(parts_of_a_service_hold_each_sample_once)
{
	struct export_part part = {.max = 2};
	struct export_options options = {.part = &part};
	struct pprof_totals t;
	struct incident in;
	uint64_t sum = 0, samples = 0, whole = 0;
	uint32_t i;

	assert_int_equal(sample_small(&in), 0);
	for (i = 0; i < in.nsamples; i++)
		whole += in.samples[i].weight;
	for (i = 0; i <= in.nprocesses; i++) {
		part.group = i < in.nprocesses ? i : UINT32_MAX;
		part.from = 0;
		do {
			struct buf packed = {0};

			assert_int_equal(export_text(&in, "pprof", &options, &packed), 0);
			pprof_read(&packed, &t);
			assert_true(t.samples <= 2);
			sum += t.values[0];
			samples += t.samples;
			part.from += part.max;
			buf_free(&packed);
		} while (part.more);
	}
	assert_int_equal(sum, whole);
	assert_int_equal(samples, 9);        /* by process, stack and quality */
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_has_its_samples_locations_and_functions),
		cmocka_unit_test(hostile_names_change_no_total),
		cmocka_unit_test(functions_inlined_at_an_address_share_its_location),
		cmocka_unit_test(the_file_names_no_system_and_no_time),
		cmocka_unit_test(parts_of_a_service_hold_each_sample_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
