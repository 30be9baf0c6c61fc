/* The end of a window, live: what sources still hold then is asked for. */
#include "tests/support/engine_rig.h"
#include "tests/support/stub_source.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define POST_NS (200 * NS_PER_MS)
#define GIVE_UP_NS (20 * NS_PER_SEC)

static uint64_t fired_ns, asked_ns;
static bool given_up;

/* Fires, samples once, and keeps the sample until it is asked: a source may be so far behind. */
static int patient_run(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;
	struct event sample = {.kind = EVENT_SAMPLE, .stream = STREAM_CPU, .stack = STACK_NONE,
			       .value = 1};

	(void)err;
	fired_ns = stub_source_fire(s);
	queue_watermark(s->queue, fired_ns);
	while (!atomic_load(&s->asked_ns) && !atomic_load(&s->stopping) &&
	       os_now_ns() - fired_ns < GIVE_UP_NS)
		os_sleep_ns(NS_PER_MS);
	asked_ns = atomic_load(&s->asked_ns);
	given_up = !asked_ns;
	sample.time_ns = fired_ns + POST_NS;
	queue_put(s->queue, &sample);
	queue_watermark(s->queue, sample.time_ns + 1);
	while (!atomic_load(&s->stopping))
		os_sleep_ns(NS_PER_MS);
	return 0;
}

TEST(what_sources_hold_at_the_end_of_a_window_is_asked_for)
{
	struct source_ops patient = stub_source;
	const struct source_ops *const sources[] = {&patient, NULL};
	struct incident in;
	struct rig r;

	patient.run = patient_run;
	patient.behind_ns = 3 * GIVE_UP_NS;
	rig_open(&r, "window_end.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.post_ns = POST_NS;
	r.cfg.capture.incidents = 1;
	rig_run(&r);
	assert_false(given_up);
	assert_true(asked_ns > fired_ns + POST_NS);
	rig_load(&r, 1, &in);
	/* All of it, and no more: its end is its own, not the next tick or the time of asking. */
	assert_int_equal(in.nsamples, 1);
	assert_int_equal(in.head.state, INCIDENT_COMPLETE);
	assert_int_equal(in.head.t1_ns, fired_ns + POST_NS);
	assert_null(in.head.gap_reason ? strstr(in.head.gap_reason, "stopped") : NULL);
	incident_free(&in);
	remove_store(r.path);
}

/* Fires, and ends: that nothing follows does not mean that its window has passed. */
static int brief_run(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;

	(void)err;
	fired_ns = stub_source_fire(s);
	queue_finish(s->queue);
	return 0;
}

TEST(a_window_that_is_cut_by_the_end_says_so)
{
	struct source_ops brief = stub_source;
	const struct source_ops *const sources[] = {&brief, NULL};
	struct incident in;
	struct rig r;

	brief.run = brief_run;
	brief.catch_up = NULL;
	brief.behind_ns = 3 * GIVE_UP_NS;
	rig_open(&r, "window_cut.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.post_ns = 60 * NS_PER_SEC;
	r.cfg.capture.incidents = 2;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_true(in.head.t1_ns < fired_ns + 30 * NS_PER_SEC);
	assert_non_null(in.head.gap_reason);
	assert_non_null(strstr(in.head.gap_reason,
			       "recording was stopped 0.0 s after the trigger"));
	incident_free(&in);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_sources_hold_at_the_end_of_a_window_is_asked_for),
		cmocka_unit_test(a_window_that_is_cut_by_the_end_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
