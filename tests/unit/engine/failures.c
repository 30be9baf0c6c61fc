/* --on-failure exit, by the real clock: about 4 s. */
#include "tests/support/bad_disk.h"
#include "tests/support/engine_rig.h"
#include "tests/support/stub_source.h"
#include "tests/support/test.h"

#include <string.h>

static int run_until_stopped(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;

	(void)err;
	while (!atomic_load(&s->stopping)) {
		queue_watermark(s->queue, os_now_ns());
		os_sleep_ns(10 * NS_PER_MS);
	}
	return 0;
}

static int run_and_fail(struct source *source, struct err *err)
{
	(void)source;
	return err_set(err, ERR_IO, "the device is gone");
}

TEST(a_source_that_ends_ends_the_run_with_a_last_incident)
{
	struct source_ops lasting = stub_source, failing = stub_source;
	const struct source_ops *const sources[] = {&lasting, &failing, NULL};
	struct incident in = {0};
	struct err err = {0};
	struct rig r;

	lasting.run = run_until_stopped;
	failing.run = run_and_fail;
	failing.name = "frail";
	rig_open(&r, "frail.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.exit_on_failure = true;
	assert_int_equal(engine_run(&r.cfg, &r.result, &err), ERR_IO);
	assert_true(r.result.ended_by_failure);
	rig_load(&r, 1, &in);
	assert_string_equal(in.head.reason, "the frail source ended: the device is gone");
	incident_free(&in);
	remove_store(r.path);
}

/* Loses a million of that kind, and fails some time later. */
static int run_and_lose(struct source *source, enum loss_kind kind, uint64_t later_ns,
			struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;
	struct event e = {.time_ns = os_now_ns(), .kind = EVENT_LOST, .cpu = CPU_NONE,
			  .stack = STACK_NONE, .name = loss_kind_text(kind), .value = 1e6};
	uint64_t end_ns = os_now_ns() + later_ns;

	queue_put(s->queue, &e);
	while (!atomic_load(&s->stopping) && os_now_ns() < end_ns) {
		queue_watermark(s->queue, os_now_ns());
		os_sleep_ns(10 * NS_PER_MS);
	}
	return err_set(err, ERR_IO, "the device is gone");
}

static int run_and_lose_samples(struct source *source, struct err *err)
{
	return run_and_lose(source, LOSS_KERNEL, 60 * NS_PER_SEC, err);
}

static int run_and_lose_events(struct source *source, struct err *err)
{
	return run_and_lose(source, LOSS_EVENTS, 3 * NS_PER_SEC, err);
}

/* Why a run ends whose source loses a million. */
static void ends_because(int (*run)(struct source *source, struct err *err), const char *reason)
{
	struct source_ops lasting = stub_source, losing = stub_source;
	const struct source_ops *const sources[] = {&lasting, &losing, NULL};
	struct incident in = {0};
	struct err err = {0};
	struct rig r;

	lasting.run = run_until_stopped;
	losing.run = run;
	losing.name = "frail";
	rig_open(&r, "losing.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.exit_on_failure = true;
	engine_run(&r.cfg, &r.result, &err);
	assert_true(r.result.ended_by_failure);
	rig_load(&r, 1, &in);
	if (!strstr(in.head.reason, reason))
		fail_msg("the reason is '%s'", in.head.reason);
	incident_free(&in);
	remove_store(r.path);
}

/* A program of somebody else may say that it lost any number of events. */
TEST(lost_samples_are_a_failure_and_lost_events_are_not)
{
	ends_because(run_and_lose_samples, "is lost: 1000000 of 1000000");
	ends_because(run_and_lose_events, "the frail source ended");
}

static int fire_on_a_full_disk(struct source *source, struct err *err)
{
	bad_disk_full_after(0);
	stub_source_fire((struct stub_source *)source);
	return run_until_stopped(source, err);
}

/* The log's text, to be freed. */
static void read_log(const char *path, struct log *log, struct buf *out)
{
	log_close(log);
	assert_int_equal(os_load(path, 65536, out, NULL), 0);
	os_remove(path, NULL);
}

TEST(a_full_disk_ends_the_run_and_the_log_says_so)
{
	struct source_ops firing = stub_source;
	const struct source_ops *const sources[] = {&firing, NULL};
	char path[TMP_BYTES];
	struct buf text = {0};
	struct err err = {0};
	struct rig r;

	firing.run = fire_on_a_full_disk;
	bad_disk_install();
	rig_open(&r, "full.db", 0);
	snprintf(path, sizeof(path), "%s", tmp_path("full.log"));
	assert_int_equal(log_open(path, &r.cfg.log, &err), 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.post_ns = 0;
	r.cfg.exit_on_failure = true;
	assert_int_not_equal(engine_run(&r.cfg, &r.result, &err), 0);
	bad_disk_remove();
	assert_true(r.result.ended_by_failure);
	read_log(path, r.cfg.log, &text);
	assert_non_null(strstr(buf_text(&text), "recording fails (disk-full) and ends, as "
					       "--on-failure says: "));
	buf_free(&text);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_that_ends_ends_the_run_with_a_last_incident),
		cmocka_unit_test(lost_samples_are_a_failure_and_lost_events_are_not),
		cmocka_unit_test(a_full_disk_ends_the_run_and_the_log_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
