#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shared {
	struct os_mutex *lock;
	struct os_cond *changed;
	int turn, count;
};

static void shared_open(struct shared *s)
{
	memset(s, 0, sizeof(*s));
	s->lock = os_mutex_new();
	s->changed = os_cond_new();
	assert_non_null(s->lock);
	assert_non_null(s->changed);
}

static void shared_close(struct shared *s)
{
	os_cond_free(s->changed);
	os_mutex_free(s->lock);
}

static void add_10000(void *ctx)
{
	struct shared *s = ctx;
	int i;

	for (i = 0; i < 10000; i++) {
		os_mutex_lock(s->lock);
		s->count++;
		os_mutex_unlock(s->lock);
	}
}

TEST(os_mutex_lets_one_thread_in_at_a_time)
{
	struct os_thread *threads[4];
	struct shared s;
	int i;

	shared_open(&s);
	for (i = 0; i < 4; i++)
		assert_int_equal(os_thread_start("adder", add_10000, &s, &threads[i], NULL), 0);
	for (i = 0; i < 4; i++)
		os_thread_join(threads[i]);
	assert_int_equal(s.count, 40000);
	shared_close(&s);
}

/* Answers each odd turn with the next even one, 100 times. */
static void play(void *ctx)
{
	struct shared *s = ctx;

	os_mutex_lock(s->lock);
	while (s->turn < 200) {
		if (s->turn % 2) {
			s->turn++;
			os_cond_signal(s->changed);
		} else {
			os_cond_wait(s->changed, s->lock, UINT64_MAX);
		}
	}
	os_mutex_unlock(s->lock);
}

TEST(os_cond_wakes_the_other_thread_each_time)
{
	struct os_thread *thread = NULL;
	struct shared s;

	shared_open(&s);
	assert_int_equal(os_thread_start("player", play, &s, &thread, NULL), 0);
	os_mutex_lock(s.lock);
	while (s.turn < 200) {
		if (s.turn % 2 == 0) {
			s.turn++;
			os_cond_broadcast(s.changed);
		} else {
			assert_true(os_cond_wait(s.changed, s.lock, 10 * NS_PER_SEC));
		}
	}
	os_mutex_unlock(s.lock);
	os_thread_join(thread);
	assert_int_equal(s.turn, 200);
	shared_close(&s);
}

TEST(os_cond_wait_says_when_the_time_ran_out)
{
	uint64_t before = os_now_ns();
	struct shared s;

	shared_open(&s);
	os_mutex_lock(s.lock);
	assert_false(os_cond_wait(s.changed, s.lock, 0));
	while (os_cond_wait(s.changed, s.lock, 20 * NS_PER_MS))
		;
	os_mutex_unlock(s.lock);
	assert_true(os_now_ns() - before >= 19 * NS_PER_MS);
	shared_close(&s);
}

static void set_every_priority(void *ctx)
{
	static const enum os_priority all[] = {OS_PRIORITY_LOW, OS_PRIORITY_NORMAL,
					       OS_PRIORITY_HIGH, OS_PRIORITY_LOW};
	atomic_int *done = ctx;
	size_t i;

	for (i = 0; i < COUNT_OF(all); i++)
		os_thread_priority(all[i]);
	atomic_store(done, 1);
}

TEST(os_thread_priority_may_be_refused_but_never_fails)
{
	struct os_thread *thread = NULL;
	atomic_int done = 0;

	assert_int_equal(os_thread_start("a name that is too long", set_every_priority, &done,
					 &thread, NULL), 0);
	os_thread_join(thread);
	assert_int_equal(atomic_load(&done), 1);
}

static int start_one(void *ctx)
{
	struct os_thread *thread = NULL;
	struct shared s = {.lock = os_mutex_new()};
	int rc = ERR_MEMORY;

	(void)ctx;
	s.changed = s.lock ? os_cond_new() : NULL;
	if (s.changed)
		rc = os_thread_start("walked", add_10000, &s, &thread, NULL);
	os_thread_join(thread);
	shared_close(&s);
	return rc;
}

static atomic_int done_working;

static void wait_then_work(void *ctx)
{
	struct shared *s = ctx;

	os_mutex_lock(s->lock);
	os_mutex_unlock(s->lock);
	while (!atomic_load(&done_working))
		;
}

TEST(os_thread_waits_tells_a_thread_that_waits_from_one_that_works)
{
	uint64_t before = 0, after = 1;
	struct os_thread *thread = NULL;
	struct shared s;

	shared_open(&s);
	os_mutex_lock(s.lock);
	assert_int_equal(os_thread_start("both", wait_then_work, &s, &thread, NULL), 0);
	while (!os_thread_waits(thread, &before) || !os_thread_waits(thread, &after) ||
	       before != after)
		os_sleep_ns(20 * NS_PER_MS);
	os_mutex_unlock(s.lock);
	while (os_thread_waits(thread, &after) && after == before)
		os_sleep_ns(20 * NS_PER_MS);
	atomic_store(&done_working, 1);
	os_thread_join(thread);
	shared_close(&s);
}

TEST(os_threads_report_lack_of_memory)
{
	alloc_walk_fail_at(1);
	assert_int_equal(start_one(NULL), ERR_MEMORY);
	alloc_walk_fail_at(2);
	assert_int_equal(start_one(NULL), ERR_MEMORY);
	alloc_walk_fail_at(3);
	assert_int_equal(start_one(NULL), ERR_MEMORY);
	alloc_walk_fail_at(0);
	assert_int_equal(start_one(NULL), 0);
	os_thread_join(NULL);
	os_mutex_free(NULL);
	os_cond_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_mutex_lets_one_thread_in_at_a_time),
		cmocka_unit_test(os_cond_wakes_the_other_thread_each_time),
		cmocka_unit_test(os_cond_wait_says_when_the_time_ran_out),
		cmocka_unit_test(os_thread_priority_may_be_refused_but_never_fails),
		cmocka_unit_test(os_thread_waits_tells_a_thread_that_waits_from_one_that_works),
		cmocka_unit_test(os_threads_report_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
