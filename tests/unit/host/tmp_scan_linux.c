/* Searches that wait at a gate, as one does at a mount whose server is gone. */
#include "source/host/tmp_scan_linux.h"
#include "tests/support/test.h"

#include <stdlib.h>

struct gate {
	_Atomic bool open;
	_Atomic unsigned looked[3];          /* at each subject */
};

struct search {
	struct tmp_search base;
	struct gate *gate;
	bool waits;                          /* at subject 1 */
};

static void run(struct tmp_search *search)
{
	struct search *s = (struct search *)search;
	uint64_t subject;

	for (subject = 1; subject <= 2; subject++) {
		if (!tmp_search_at(search, tmp_place(subject << 1, 7)))
			continue;
		s->gate->looked[subject]++;
		while (s->waits && subject == 1 && !s->gate->open)
			os_sleep_ns(NS_PER_MS);
	}
	tmp_search_at(search, 0);
}

static void free_search(struct job *job)
{
	free(job);
}

static void begin(struct tmp_scan *scan, struct gate *gate, bool waits)
{
	struct search *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->base.run = run;
	s->base.job.free = free_search;
	s->gate = gate;
	s->waits = waits;
	tmp_scan_begin(scan, &s->base);
}

static struct tmp_search *await(struct tmp_scan *scan, uint64_t now_ns)
{
	struct tmp_search *done;

	while ((done = tmp_scan_done(scan, now_ns)) == NULL && scan->now)
		os_sleep_ns(NS_PER_MS);
	return done;
}

TEST(a_search_rests_fifty_times_its_cpu_time_half_a_minute_at_most)
{
	struct tmp_scan scan = {0};
	struct gate gate = {0};
	struct tmp_search *done;
	uint64_t s = NS_PER_SEC;

	assert_int_equal(pool_new("test", 2, OS_PRIORITY_NORMAL, &scan.pool, NULL), 0);
	assert_true(tmp_scan_is_free(&scan, s));
	begin(&scan, &gate, false);
	assert_false(tmp_scan_is_free(&scan, s));
	assert_true(tmp_scan_due_ns(&scan, s, 0) > s);
	done = await(&scan, s);
	assert_non_null(done);
	assert_int_equal(scan.rest_until_ns, s + done->cpu_ns * 50);
	assert_false(tmp_scan_is_free(&scan, scan.rest_until_ns - 1));
	assert_true(tmp_scan_is_free(&scan, scan.rest_until_ns));
	assert_int_equal(tmp_scan_due_ns(&scan, s, 0), scan.rest_until_ns);
	assert_int_equal(tmp_scan_due_ns(&scan, s, 100 * s), 100 * s);
	job_drop(&done->job);
	tmp_scan_close(&scan);
	pool_free(scan.pool);
}

TEST(what_a_search_hangs_at_is_left_alone_until_it_comes_back)
{
	static struct gate gate;
	struct tmp_scan scan = {0};
	struct tmp_search *done;

	assert_int_equal(pool_new("test", 2, OS_PRIORITY_NORMAL, &scan.pool, NULL), 0);
	pool_set_stuck(scan.pool, 10 * NS_PER_MS);
	begin(&scan, &gate, true);
	assert_null(await(&scan, 0));
	assert_int_equal(scan.nhung, 1);
	assert_true(tmp_scan_is_free(&scan, 0));
	begin(&scan, &gate, true);
	done = await(&scan, 0);
	assert_non_null(done);
	job_drop(&done->job);
	assert_int_equal(gate.looked[1], 1);
	assert_int_equal(gate.looked[2], 1);
	gate.open = true;
	while (scan.nhung) {
		assert_null(tmp_scan_done(&scan, 0));
		os_sleep_ns(NS_PER_MS);
	}
	begin(&scan, &gate, false);
	done = await(&scan, 0);
	assert_non_null(done);
	job_drop(&done->job);
	assert_int_equal(gate.looked[1], 2);
	tmp_scan_close(&scan);
	pool_free(scan.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_rests_fifty_times_its_cpu_time_half_a_minute_at_most),
		cmocka_unit_test(what_a_search_hangs_at_is_left_alone_until_it_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
