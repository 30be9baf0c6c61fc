/* What the recorder says about itself in an incident: its ring, its rate. */
#include "tests/support/engine_rig.h"

#include "base/os.h"
#include "cli/show_own.h"
#include "tests/support/test.h"

#include <string.h>

TEST(an_incident_says_how_far_back_the_ring_reached)
{
	struct sheet sheet = {0};
	struct incident in;
	struct rig r;

	rig_open(&r, "held.db", 60);
	r.plan.fire_s[0] = 30;               /* 3,000 samples, all of them held */
	rig_run(&r);
	rig_load(&r, 1, &in);
	own_put(&in, &sheet);
	assert_non_null(strstr(buf_text(&sheet.out), "Ring      holds 30.0 s in "));
	sheet_free(&sheet);
	assert_int_equal(in.nevents, 2);     /* with the one that fired */
	assert_string_equal(in.events[1].name, "Ring");
	assert_string_equal(in.fields[in.events[1].first_field + 2].name, "Samples");
	assert_int_equal(in.fields[in.events[1].first_field + 2].v.u, 3000);
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_change_of_rate_is_in_the_incident_and_its_samples_weigh)
{
	struct sheet sheet = {0};
	struct incident in;
	struct rig r;

	rig_open(&r, "rate.db", 60);
	r.plan.rate_after = 2500;            /* 25.00 s */
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_true(in.several_periods);
	own_put(&in, &sheet);
	assert_non_null(strstr(buf_text(&sheet.out), "Rate      at -5.0 s changed to 50 Hz"));
	assert_non_null(strstr(buf_text(&sheet.out), ": it was told to\n"));
	sheet_free(&sheet);
	incident_free(&in);
	rig_load(&r, 2, &in);        /* the end of the file: long after it, so of one rate */
	assert_false(in.several_periods);
	assert_int_equal(in.head.period_ns[STREAM_CPU], 20 * NS_PER_MS);
	incident_free(&in);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incident_says_how_far_back_the_ring_reached),
		cmocka_unit_test(a_change_of_rate_is_in_the_incident_and_its_samples_weigh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
