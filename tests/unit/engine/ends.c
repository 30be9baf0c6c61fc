/* The end of a run with a store, or a command, that hangs: about 3 s of the real clock. */
#include "tests/support/bad_disk.h"
#include "tests/support/engine_rig.h"
#include "tests/support/stub_source.h"
#include "tests/support/test.h"

#include "engine/engine_private.h"

#include <string.h>

#define STUB_TICK_NS (10 * NS_PER_MS)

static int run_until_stopped(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;

	(void)err;
	bad_disk_hang(true);
	stub_source_fire(s);
	while (!atomic_load(&s->stopping)) {
		queue_watermark(s->queue, os_now_ns());
		os_sleep_ns(STUB_TICK_NS);
	}
	return 0;
}

/* What hangs outlives the test: nothing of it is on the stack, and the disk hangs until the end. */
TEST(a_store_that_hangs_does_not_keep_a_recording_from_its_end)
{
	static struct source_ops ops;
	static const struct source_ops *const sources[] = {&ops, NULL};
	static struct rig r;
	struct err err = {0};
	uint64_t start_ns = os_now_ns();

	ops = stub_source;
	ops.run = run_until_stopped;
	bad_disk_install();
	rig_open(&r, "hangs.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.post_ns = 0;
	r.cfg.capture.max_collect_ns = NS_PER_SEC / 2;
	r.cfg.store_wait_ns = NS_PER_SEC;
	assert_int_equal(engine_run(&r.cfg, &r.result, &err), ERR_IO);
	assert_true(os_now_ns() - start_ns < 20 * NS_PER_SEC);
	assert_non_null(strstr(err.text, "hangs.db has not answered for 1 s"));
	assert_non_null(strstr(err.text, "2 incidents, the last one among them, were not stored"));
	assert_int_equal(r.result.stored, 0);
	assert_int_equal(r.result.failed, 2);
}

static void sleep_long(void *ctx)
{
	(void)ctx;
	os_sleep_ns(5 * NS_PER_SEC);
}

TEST(a_stop_command_that_hangs_is_left_behind)
{
	struct engine e = {0};
	struct os_thread *thread = NULL;
	uint64_t start_ns = os_now_ns();
	struct err err = {0};

	e.shared.lock = os_mutex_new();
	e.shared.wake_command = os_cond_new();
	ends_allow(&e, "the stop command", 1);
	atomic_store(&e.command_wait_ns, 200 * NS_PER_MS);
	assert_int_equal(os_thread_start("command", sleep_long, NULL, &thread, NULL), 0);
	assert_int_equal(ends_with_command(&e, thread, &err), ERR_IO);
	assert_true(os_now_ns() - start_ns < 4 * NS_PER_SEC);
	assert_true(e.left_behind);
	assert_non_null(strstr(err.text, "the stop command of the last incident did not end"));
	os_mutex_free(e.shared.lock);
	os_cond_free(e.shared.wake_command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_command_that_hangs_is_left_behind),
		cmocka_unit_test(a_store_that_hangs_does_not_keep_a_recording_from_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
