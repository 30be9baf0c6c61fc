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

/* The thread is in the first job until the second is done, which only the owner can do. */
struct pair_of_jobs {
	struct ahead_job first, second;
	struct os_mutex *lock;
	struct os_cond *changed;
	bool begun, second_done;
};

static void first_run(struct ahead_job *job)
{
	struct pair_of_jobs *p = (struct pair_of_jobs *)job;

	os_mutex_lock(p->lock);
	p->begun = true;
	os_cond_broadcast(p->changed);
	while (!p->second_done)
		os_cond_wait(p->changed, p->lock, UINT64_MAX);
	os_mutex_unlock(p->lock);
}

static void second_run(struct ahead_job *job)
{
	struct pair_of_jobs *p =
		(struct pair_of_jobs *)((char *)job - offsetof(struct pair_of_jobs, second));

	os_mutex_lock(p->lock);
	p->second_done = true;
	os_cond_broadcast(p->changed);
	os_mutex_unlock(p->lock);
}

TEST(an_owner_that_helps_does_the_next_job_while_it_awaits_one)
{
	struct pair_of_jobs p = {.first.run = first_run, .second.run = second_run};
	struct ahead a;

	p.lock = os_mutex_new();
	p.changed = os_cond_new();
	ahead_begin(&a, "ahead");
	a.owner_helps = true;
	ahead_give(&a, &p.first);
	os_mutex_lock(p.lock);
	while (!p.begun)
		os_cond_wait(p.changed, p.lock, UINT64_MAX);
	os_mutex_unlock(p.lock);
	ahead_give(&a, &p.second);
	ahead_await(&a, &p.first);
	assert_true(p.second_done);
	ahead_end(&a);
	os_cond_free(p.changed);
	os_mutex_free(p.lock);
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
		cmocka_unit_test(
			an_owner_that_helps_does_the_next_job_while_it_awaits_one),
		cmocka_unit_test(a_job_can_be_given_again),
		cmocka_unit_test(the_end_waits_for_jobs_that_nobody_awaits),
		cmocka_unit_test(without_a_thread_a_job_is_done_when_it_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
