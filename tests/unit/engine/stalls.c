/* Sources that hang, by the real clock: about 10 s. */
#include "tests/support/engine_rig.h"
#include "tests/support/stub_source.h"
#include "tests/support/test.h"

#include "model/own_event.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define TICK_NS (50 * NS_PER_MS)

/* What the source does: it delivers until hangs_at_ns, and again from returns_at_ns on. */
static uint64_t hangs_for_ns;

static int run_with_a_stall(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;
	uint64_t start_ns = os_now_ns();
	bool fired = false;

	(void)err;
	while (!atomic_load(&s->stopping)) {
		uint64_t since_ns = os_now_ns() - start_ns;

		if (since_ns < NS_PER_SEC / 2 || since_ns > NS_PER_SEC / 2 + hangs_for_ns)
			queue_watermark(s->queue, os_now_ns());
		if (!fired && since_ns > 3 * NS_PER_SEC / 2 + hangs_for_ns) {
			stub_source_fire(s);
			fired = true;
		}
		os_sleep_ns(TICK_NS);
	}
	return 0;
}

static int run_for_ever(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;

	(void)err;
	queue_watermark(s->queue, os_now_ns());
	stub_source_fire(s);
	queue_watermark(s->queue, os_now_ns() + NS_PER_SEC);
	while (os_now_ns())                  /* always */
		os_sleep_ns(TICK_NS);
	return 0;
}

/* The texts of the incident's own events of that name, each behind a '|'. */
static void stalls_of(struct rig *r, int64_t id, struct buf *out)
{
	struct incident in = {0};
	uint32_t i, k;

	rig_load(r, id, &in);
	for (i = 0; i < in.nevents; i++) {
		const struct incident_event *e = &in.events[i];

		if (!e->provider || strcmp(e->provider, OWN_PROVIDER) != 0 ||
		    strcmp(e->name, OWN_STALL) != 0)
			continue;
		for (k = 0; k < e->nfields; k++)
			buf_printf(out, "|%s", in.fields[e->first_field + k].v.text);
	}
	incident_free(&in);
}

TEST(a_source_that_stands_still_is_in_the_incident_with_what_it_waited_for)
{
	struct source_ops hanging = stub_source;
	const struct source_ops *const sources[] = {&hanging, NULL};
	struct buf stalls = {0};
	struct rig r;

	hangs_for_ns = 4 * NS_PER_SEC;
	hanging.run = run_with_a_stall;
	rig_open(&r, "stall.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.post_ns = 100 * NS_PER_MS;
	r.cfg.capture.incidents = 1;
	rig_run(&r);
	stalls_of(&r, 1, &stalls);
	assert_non_null(strstr(buf_text(&stalls), "|the stub source has delivered nothing for "));
	assert_non_null(strstr(buf_text(&stalls), "|the stub source delivers again, after "));
	buf_free(&stalls);
	remove_store(r.path);
}

TEST(a_source_that_never_ends_is_left_behind_and_the_last_incident_says_so)
{
	static struct source_ops endless;    /* its thread outlives the test's stack */
	static const struct source_ops *const sources[] = {&endless, NULL};
	static struct rig r;
	struct buf stalls = {0};

	endless = stub_source;
	endless.run = run_for_ever;
	rig_open(&r, "endless.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.max_collect_ns = NS_PER_SEC / 2;
	rig_run(&r);
	assert_int_equal(r.result.stored, 2);
	stalls_of(&r, 2, &stalls);
	assert_non_null(strstr(buf_text(&stalls), "the stub source did not end within 5 s"));
	buf_free(&stalls);
	remove_store(r.path);
}

static uint64_t began_ns;

static int run_after_a_while(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;

	(void)err;
	os_sleep_ns(NS_PER_SEC);
	for (began_ns = os_now_ns(); !atomic_load(&s->stopping); os_sleep_ns(TICK_NS))
		queue_watermark(s->queue, os_now_ns());
	return 0;
}

TEST(the_time_to_record_begins_when_every_source_delivers)
{
	struct source_ops slow = stub_source;
	const struct source_ops *const sources[] = {&slow, NULL};
	struct incident in = {0};
	struct rig r;

	slow.run = run_after_a_while;
	rig_open(&r, "slow.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.max_collect_ns = NS_PER_SEC / 2;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_true(in.head.trigger_ns >= began_ns + NS_PER_SEC / 2);
	incident_free(&in);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_source_that_stands_still_is_in_the_incident_with_what_it_waited_for),
		cmocka_unit_test(the_time_to_record_begins_when_every_source_delivers),
		cmocka_unit_test(
			a_source_that_never_ends_is_left_behind_and_the_last_incident_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
