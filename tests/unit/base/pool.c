#include "base/pool.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdlib.h>

#define LONG_NS (60 * NS_PER_SEC)            /* nothing here takes that long */

/* A gate that jobs wait at, and what they did. It outlives the pool, as a job's own data must. */
struct gate {
	struct os_mutex *lock;
	struct os_cond *changed;
	bool open;
	unsigned entered, left, freed;
};

struct gate_job {
	struct job job;
	struct gate *gate;
	bool waits;
};

static void count(struct gate *g, unsigned *what)
{
	os_mutex_lock(g->lock);
	++*what;
	os_cond_broadcast(g->changed);
	os_mutex_unlock(g->lock);
}

static void pass_gate(struct job *job)
{
	struct gate_job *j = (struct gate_job *)job;
	struct gate *g = j->gate;

	count(g, &g->entered);
	os_mutex_lock(g->lock);
	while (j->waits && !g->open)
		os_cond_wait(g->changed, g->lock, UINT64_MAX);
	os_mutex_unlock(g->lock);
	count(g, &g->left);
}

static void free_gate_job(struct job *job)
{
	struct gate_job *j = (struct gate_job *)job;

	count(j->gate, &j->gate->freed);
	free(j);
}

static struct job *new_job(struct gate *g, bool waits)
{
	struct gate_job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	j->job = (struct job){.run = pass_gate, .free = free_gate_job, .what = "a gate"};
	j->gate = g;
	j->waits = waits;
	job_init(&j->job);
	return &j->job;
}

static void gate_init(struct gate *g)
{
	*g = (struct gate){.lock = os_mutex_new(), .changed = os_cond_new()};
	assert_true(g->lock && g->changed);
}

static void open_gate(struct gate *g)
{
	os_mutex_lock(g->lock);
	g->open = true;
	os_cond_broadcast(g->changed);
	os_mutex_unlock(g->lock);
}

static void await(struct gate *g, const unsigned *what, unsigned n)
{
	os_mutex_lock(g->lock);
	while (*what < n)
		assert_true(os_cond_wait(g->changed, g->lock, LONG_NS));
	os_mutex_unlock(g->lock);
}

static void gate_free(struct gate *g)
{
	os_cond_free(g->changed);
	os_mutex_free(g->lock);
}

static struct pool *new_pool(void)
{
	struct pool *p = NULL;
	struct err err;

	assert_int_equal(pool_new("test", 1, OS_PRIORITY_NORMAL, &p, &err), 0);
	return p;
}

/* Put a job that hangs, and have it left behind. */
static void leave_behind(struct pool *p, struct gate *g, unsigned nth)
{
	struct job *job = new_job(g, true);
	const struct job *found;

	pool_put(p, job);
	await(g, &g->entered, nth);
	found = pool_look(p, os_now_ns() + POOL_STUCK_NS);
	assert_ptr_equal(found, job);
	assert_string_equal(found->what, "a gate");
	assert_null(pool_look(p, os_now_ns() + POOL_STUCK_NS));
	assert_false(job_done(job));
	job_drop(job);
}

TEST(a_job_runs_and_is_freed_when_nobody_uses_it)
{
	struct pool *p = new_pool();
	struct gate g;
	struct job *job;

	gate_init(&g);
	job = new_job(&g, false);
	pool_put(p, job);
	assert_true(pool_wait(p, job, LONG_NS));
	job_drop(job);
	pool_free(p);
	assert_int_equal(g.left, 1);
	assert_int_equal(g.freed, 1);
	gate_free(&g);
}

TEST(who_waits_for_a_job_that_hangs_goes_on_after_the_timeout)
{
	struct pool *p = new_pool();
	struct gate g;
	struct job *job;

	gate_init(&g);
	job = new_job(&g, true);
	pool_put(p, job);
	assert_false(pool_wait(p, job, NS_PER_MS));
	open_gate(&g);
	assert_true(pool_wait(p, job, LONG_NS));
	job_drop(job);
	pool_free(p);
	gate_free(&g);
}

TEST(another_thread_takes_over_from_one_that_hangs)
{
	struct pool *p = new_pool();
	struct gate g;
	struct job *job;

	gate_init(&g);
	leave_behind(p, &g, 1);
	assert_int_equal(pool_stuck(p), 1);
	job = new_job(&g, false);
	pool_put(p, job);
	assert_true(pool_wait(p, job, LONG_NS));
	job_drop(job);
	open_gate(&g);
	await(&g, &g.freed, 2);
	pool_free(p);
	gate_free(&g);
}

static _Atomic unsigned begun;

static void begin(void)
{
	atomic_fetch_add(&begun, 1);
}

TEST(each_thread_begins_once_also_one_that_takes_over)
{
	struct pool *p = new_pool();
	struct gate g;
	unsigned i;

	gate_init(&g);
	pool_set_begin(p, begin);
	leave_behind(p, &g, 1);
	assert_int_equal(begun, 1);
	for (i = 0; i < 2; i++) {
		struct job *job = new_job(&g, false);

		pool_put(p, job);
		assert_true(pool_wait(p, job, LONG_NS));
		job_drop(job);
		assert_int_equal(begun, 2);
	}
	open_gate(&g);
	await(&g, &g.freed, 3);
	pool_free(p);
	gate_free(&g);
}

TEST(a_pool_of_short_jobs_is_not_patient)
{
	struct pool *p = new_pool();
	struct gate g;
	struct job *job;

	gate_init(&g);
	pool_set_stuck(p, NS_PER_SEC / 2);
	job = new_job(&g, true);
	pool_put(p, job);
	await(&g, &g.entered, 1);
	assert_ptr_equal(pool_look(p, os_now_ns() + NS_PER_SEC / 2), job);
	open_gate(&g);
	assert_true(pool_wait(p, job, LONG_NS));
	job_drop(job);
	pool_free(p);
	gate_free(&g);
}

TEST(a_pool_leaves_four_threads_behind_at_most_and_goes_on_when_one_comes_back)
{
	struct pool *p = new_pool();
	struct gate g;
	struct job *job;
	unsigned i;

	gate_init(&g);
	for (i = 1; i <= POOL_STUCK_MAX; i++)
		leave_behind(p, &g, i);
	assert_int_equal(pool_stuck(p), POOL_STUCK_MAX);
	job = new_job(&g, false);
	pool_put(p, job);
	assert_null(pool_look(p, os_now_ns() + POOL_STUCK_NS));
	assert_int_equal(pool_queued(p), 1);

	open_gate(&g);
	assert_true(pool_wait(p, job, LONG_NS));
	job_drop(job);
	await(&g, &g.freed, POOL_STUCK_MAX + 1);
	pool_free(p);
	gate_free(&g);
}

TEST(a_pool_ends_without_the_threads_that_hang)
{
	static struct gate g;                /* as long as the threads that come back */
	struct pool *p = new_pool();

	gate_init(&g);
	leave_behind(p, &g, 1);
	leave_behind(p, &g, 2);
	pool_free(p);
	assert_int_equal(g.left, 0);
	open_gate(&g);
	await(&g, &g.freed, 2);
}

TEST(jobs_that_have_not_begun_are_dropped_with_the_pool)
{
	static struct gate g;
	struct pool *p = new_pool();
	struct job *waiting;

	gate_init(&g);
	leave_behind(p, &g, 1);
	leave_behind(p, &g, 2);
	leave_behind(p, &g, 3);
	leave_behind(p, &g, 4);
	waiting = new_job(&g, false);
	pool_put(p, waiting);
	pool_free(p);
	assert_false(job_done(waiting));
	job_drop(waiting);
	assert_int_equal(g.freed, 1);
	open_gate(&g);
	await(&g, &g.freed, 5);
}

/* Ask about a subject: a job that hangs until the gate is open, or one that does not. */
static bool ask(struct pool *p, uint64_t subject, struct gate *g, bool waits)
{
	struct job *job = new_job(g, waits);
	bool answered = pool_ask(p, subject, job, waits ? NS_PER_MS : LONG_NS);

	if (answered)
		job_drop(job);
	return answered;
}

TEST(a_subject_that_does_not_answer_is_left_alone_until_it_does)
{
	struct pool *p = new_pool();
	char note[200] = "";
	struct gate g;

	gate_init(&g);
	assert_true(ask(p, 1, &g, false));
	assert_false(ask(p, 1, &g, true));
	await(&g, &g.entered, 2);
	assert_false(ask(p, 2, &g, false));          /* no thread works now */
	assert_false(pool_note(p, "gates", note, sizeof(note)));
	assert_non_null(pool_look(p, os_now_ns() + POOL_STUCK_NS));
	assert_true(ask(p, 2, &g, false));
	assert_false(ask(p, 1, &g, false));
	assert_true(pool_note(p, "gates", note, sizeof(note)));
	assert_string_equal(note, "1 of at most 4 threads that read gates hang, and 0 jobs wait: "
			    "a file system or a process does not answer");
	open_gate(&g);
	while (!ask(p, 1, &g, false))
		os_sleep_ns(NS_PER_MS);
	pool_free(p);
	gate_free(&g);
}

TEST(a_subject_is_not_blamed_for_a_thread_that_came_late)
{
	struct pool *p = new_pool();
	struct job *before;
	struct gate g;

	gate_init(&g);
	before = new_job(&g, true);
	pool_put(p, before);
	await(&g, &g.entered, 1);
	assert_false(pool_ask(p, 1, new_job(&g, false), 100 * NS_PER_MS));   /* does not begin */
	open_gate(&g);
	while (!ask(p, 2, &g, false))                /* nobody is asked before it is done */
		os_sleep_ns(NS_PER_MS / 10);
	assert_true(ask(p, 1, &g, false));
	job_drop(before);
	pool_free(p);
	gate_free(&g);
}

TEST(a_patient_pool_waits_once_for_a_job_that_was_late)
{
	struct pool *p = new_pool();
	struct job *before;
	struct gate g;

	gate_init(&g);
	pool_set_patience(p, NS_PER_SEC);
	before = new_job(&g, true);
	pool_put(p, before);
	await(&g, &g.entered, 1);
	assert_false(pool_ask(p, 1, new_job(&g, false), NS_PER_MS));   /* does not begin */
	open_gate(&g);
	assert_true(ask(p, 1, &g, false));           /* it is done before this begins */
	g.open = false;
	assert_false(ask(p, 1, &g, true));
	assert_false(ask(p, 2, &g, false));          /* does not wait: it is too soon */
	await(&g, &g.entered, 4);                    /* one that has not begun would be dropped */
	open_gate(&g);
	job_drop(before);
	pool_free(p);
	await(&g, &g.left, 4);
	gate_free(&g);
}

TEST(nobody_is_asked_while_four_threads_hang)
{
	static struct gate g;
	struct pool *p = new_pool();
	unsigned i;

	gate_init(&g);
	for (i = 1; i <= POOL_STUCK_MAX; i++) {
		assert_false(ask(p, i, &g, true));
		await(&g, &g.entered, i);
		assert_non_null(pool_look(p, os_now_ns() + POOL_STUCK_NS));
	}
	assert_false(ask(p, 99, &g, true));
	assert_int_equal(pool_queued(p), 0);
	pool_free(p);
	open_gate(&g);
	await(&g, &g.left, POOL_STUCK_MAX);
}

/* Windows also allocates to name a thread, and does without. */
TEST(a_pool_without_memory_is_refused_or_works)
{
	unsigned long n, refused = 0;

	for (n = 1; n <= 20; n++) {
		struct pool *p = NULL;
		struct err err;

		alloc_walk_fail_at(n);
		if (pool_new("test", 2, OS_PRIORITY_NORMAL, &p, &err)) {
			assert_int_equal(err.code, ERR_MEMORY);
			refused++;
		}
		alloc_walk_fail_at(0);
		pool_free(p);
	}
	assert_in_range(refused, 4, 19);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_runs_and_is_freed_when_nobody_uses_it),
		cmocka_unit_test(who_waits_for_a_job_that_hangs_goes_on_after_the_timeout),
		cmocka_unit_test(another_thread_takes_over_from_one_that_hangs),
		cmocka_unit_test(each_thread_begins_once_also_one_that_takes_over),
		cmocka_unit_test(a_pool_of_short_jobs_is_not_patient),
		cmocka_unit_test(
			a_pool_leaves_four_threads_behind_at_most_and_goes_on_when_one_comes_back),
		cmocka_unit_test(a_pool_ends_without_the_threads_that_hang),
		cmocka_unit_test(jobs_that_have_not_begun_are_dropped_with_the_pool),
		cmocka_unit_test(a_subject_that_does_not_answer_is_left_alone_until_it_does),
		cmocka_unit_test(a_subject_is_not_blamed_for_a_thread_that_came_late),
		cmocka_unit_test(a_patient_pool_waits_once_for_a_job_that_was_late),
		cmocka_unit_test(nobody_is_asked_while_four_threads_hang),
		cmocka_unit_test(a_pool_without_memory_is_refused_or_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
