/* Memory that does not answer at once: how long who reads it waits. */
#include "source/host/proc_reader_linux.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdlib.h>

struct held {
	struct job job;
	_Atomic bool *ends;                  /* NULL = after 100 ms */
};

static void run_held(struct job *job)
{
	struct held *h = (struct held *)job;

	do
		os_sleep_ns(100 * NS_PER_MS);
	while (h->ends && !atomic_load(h->ends));
}

static void free_held(struct job *job)
{
	free(job);
}

static struct held *held_until(_Atomic bool *ends)
{
	struct held *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	h->job = (struct job){.run = run_held, .free = free_held, .what = "a page"};
	h->ends = ends;
	job_init(&h->job);
	return h;
}

TEST(what_does_not_answer_is_not_waited_for)
{
	static _Atomic bool ends;
	struct proc_reader *reader;

	assert_int_equal(proc_reader_new(NULL, &reader, NULL), 0);
	assert_false(proc_reader_run(reader, 1, &held_until(&ends)->job));
	atomic_store(&ends, true);
	proc_reader_free(reader);
}

TEST(what_answers_late_is_waited_for_where_nothing_else_waits)
{
	struct proc_reader *reader;
	struct held *h = held_until(NULL);

	assert_int_equal(proc_reader_new(NULL, &reader, NULL), 0);
	proc_reader_set_answer(reader, 60 * NS_PER_SEC);
	assert_true(proc_reader_run(reader, 1, &h->job));
	job_drop(&h->job);
	proc_reader_free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_answer_is_not_waited_for),
		cmocka_unit_test(what_answers_late_is_waited_for_where_nothing_else_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
