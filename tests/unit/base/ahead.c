/* Jobs that another thread does ahead. */
#include "base/ahead.h"
#include "tests/support/test.h"

struct counted {
	struct ahead_job job;
	unsigned *done, number;              /* how many were done before it */
};

static void count(struct ahead_job *job)
{
	struct counted *c = (struct counted *)job;

	c->number = (*c->done)++;
}

static void give_all(struct ahead *a, struct counted *jobs, unsigned n, unsigned *done)
{
	for (unsigned i = 0; i < n; i++) {
		jobs[i] = (struct counted){.job.run = count, .done = done};
		ahead_give(a, &jobs[i].job);
	}
}

TEST(jobs_are_done_in_the_order_in_which_they_are_given)
{
	struct counted jobs[100];
	struct ahead a;
	unsigned done = 0;

	ahead_begin(&a, "ahead");
	give_all(&a, jobs, 100, &done);
	ahead_await(&a, &jobs[99].job);
	assert_int_equal(done, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(jobs[i].number, i);
	ahead_end(&a);
}

TEST(a_job_can_be_given_again)
{
	struct counted job;
	struct ahead a;
	unsigned done = 0;

	ahead_begin(&a, "ahead");
	for (unsigned i = 0; i < 10; i++) {
		give_all(&a, &job, 1, &done);
		ahead_await(&a, &job.job);
		assert_int_equal(done, i + 1);
	}
	ahead_end(&a);
}

TEST(the_end_waits_for_jobs_that_nobody_awaits)
{
	struct counted jobs[100];
	struct ahead a;
	unsigned done = 0;

	ahead_begin(&a, "ahead");
	give_all(&a, jobs, 100, &done);
	ahead_end(&a);
	assert_int_equal(done, 100);
}

TEST(without_a_thread_a_job_is_done_when_it_is_given)
{
	struct counted job;
	struct ahead a = {0};
	unsigned done = 0;

	give_all(&a, &job, 1, &done);
	assert_int_equal(done, 1);
	ahead_await(&a, &job.job);
	ahead_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_done_in_the_order_in_which_they_are_given),
		cmocka_unit_test(a_job_can_be_given_again),
		cmocka_unit_test(the_end_waits_for_jobs_that_nobody_awaits),
		cmocka_unit_test(without_a_thread_a_job_is_done_when_it_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
