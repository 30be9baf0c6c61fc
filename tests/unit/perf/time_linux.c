/*
 * Thread time of perf's records of switches, by hand; times in ms. Threads of process APP, whose
 * pid is beyond any that a kernel gives; 0 is the idle task.
 */
#include "source/perf/time_linux.h"

#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define MS 1000000ull
#define APP 5000000u
#define A APP
#define B (APP + 1)
#define HIDDEN (APP + 2)
#define GONE UINT32_MAX

static struct frames *frames;
static struct processes *processes;
static struct queue *queue;
static struct perf_state *state_of;
static struct perf_time *times;
static struct source_config config;

static void feed_thread(enum perf_record_kind kind, uint32_t tid, uint64_t ms)
{
	struct perf_record r = {
		.kind = kind, .time_ns = ms * MS, .pid = APP, .tid = tid, .u.task = {APP, APP}};

	perf_state_feed(state_of, &r);
}

/* The record of who leaves CPU 0 at that time, and the one of who comes. */
static void leaves(uint32_t tid, uint32_t comes, bool preempted, uint64_t ms)
{
	struct perf_record r = {
		.kind = PERF_KIND_SWITCH,
		.time_ns = ms * MS,
		.pid = tid,
		.tid = tid,
		.u.change = {.out = true, .preempted = preempted, .other_tid = comes}};

	perf_time_switch(times, &r);
}

static void comes(uint32_t tid, uint32_t left, uint64_t ms)
{
	struct perf_record r = {.kind = PERF_KIND_SWITCH,
				.time_ns = ms * MS,
				.pid = tid,
				.tid = tid,
				.u.change = {.other_tid = left}};

	perf_time_switch(times, &r);
}

static void switches(uint32_t from, uint32_t to, bool preempted, uint64_t ms)
{
	leaves(from, to, preempted, ms);
	comes(to, from, ms);
}

/* What was told until then, summed up, as "A cpu 10 ". */
static const char *told(uint64_t ms)
{
	static const char *const kinds[] = {"cpu", "blocked", "disk", "readied", "unknown"};
	static const char *const names[] = {"A", "B", "hidden"};
	static char text[1000];
	double sums[3][5] = {0};
	const struct event *e;
	size_t n = 0, i;

	perf_time_look(times, ms * MS, 1);
	for (; (e = queue_peek(queue)) != NULL; queue_pop(queue))
		if (e->kind == EVENT_SAMPLE)
			sums[e->thread->tid - APP][e->stack_frames[0].offset] +=
				e->value / (double)MS;
	text[0] = '\0';
	for (i = 0; i < 15; i++)
		if (sums[i / 5][i % 5] > 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s %g ", names[i / 5],
					      kinds[i % 5], sums[i / 5][i % 5]);
	return text;
}

static int open_all(void **state)
{
	struct perf_state_config cfg = {0};
	struct perf_process *app;

	(void)state;
	if (frames_new(&frames, NULL) || processes_new(&processes, NULL) ||
	    !(queue = queue_new(1 << 16)))
		return -1;
	cfg.frames = frames;
	cfg.processes = processes;
	cfg.queue = queue;
	config = (struct source_config){.frames = frames, .processes = processes, .queue = queue};
	if (perf_state_new(&cfg, &state_of, NULL))
		return -1;
	app = perf_state_add_process(state_of, APP, 1, 50, "app");
	if (!app || !perf_state_add_thread(state_of, app, A) ||
	    !perf_state_add_thread(state_of, app, B) ||
	    !perf_state_add_thread(state_of, app, HIDDEN))
		return -1;
	return perf_time_new(&config, state_of, NULL, NULL, &times, NULL);
}

static int close_all(void **state)
{
	(void)state;
	perf_time_free(times);
	perf_state_free(state_of);
	queue_free(queue);
	processes_free(processes);
	frames_free(frames);
	times = NULL;
	state_of = NULL;
	return 0;
}

TEST(one_leaves_as_another_comes)
{
	switches(0, A, false, 100);
	switches(A, B, true, 110);
	switches(B, A, false, 130);
	switches(A, 0, false, 135);
	assert_string_equal(told(150), "A cpu 15 A blocked 15 A readied 20 B cpu 20 B blocked 20 ");
}

/*
 * Once A's time on the CPU was left out then, up to a second of it, as its coming was in the hidden
 * record.
 */
TEST(a_thread_that_comes_after_one_of_which_nothing_is_told_has_its_time)
{
	switches(0, A, false, 100);
	leaves(A, HIDDEN, true, 110);
	comes(A, HIDDEN, 115);
	switches(A, 0, false, 815);
	assert_string_equal(told(900),
			    "A cpu 710 A blocked 85 A readied 5 hidden cpu 5 hidden unknown 785 ");
}

TEST(of_two_in_a_row_of_which_nothing_is_told_the_time_is_unknown)
{
	switches(0, B, false, 100);
	leaves(B, A, false, 110);                /* A and HIDDEN, say, one after the other */
	comes(B, HIDDEN, 130);
	assert_string_equal(told(150), "A unknown 40 B cpu 10 B blocked 20 hidden unknown 20 ");
}

TEST(a_thread_ends_though_the_kernel_has_let_go_of_its_number)
{
	switches(0, A, false, 100);
	feed_thread(PERF_KIND_EXIT, A, 120);
	leaves(GONE, B, false, 121);
	comes(B, GONE, 121);
	assert_string_equal(told(200), "A cpu 21 ");
	switches(B, 0, false, 250);
	assert_string_equal(told(300), "B cpu 129 B blocked 50 ");
}

TEST(a_thread_that_is_preempted_while_it_ends_has_all_its_time)
{
	switches(0, A, false, 100);
	feed_thread(PERF_KIND_EXIT, A, 120);
	switches(A, B, true, 121);
	switches(B, A, false, 131);
	switches(A, 0, false, 132);
	assert_string_equal(told(200), "A cpu 22 A readied 10 B cpu 10 B blocked 69 ");
}

TEST(after_a_loss_nobody_is_on_a_cpu)
{
	switches(0, A, false, 100);
	perf_time_lost(times, 200 * MS);
	comes(A, HIDDEN, 300);                   /* a half that was not lost */
	switches(A, 0, false, 310);
	assert_string_equal(told(320), "A cpu 10 A blocked 10 A unknown 200 ");
}

TEST(a_cpu_beyond_all_is_taken_as_any_other)
{
	struct perf_record r = {.kind = PERF_KIND_SWITCH,
				.time_ns = 100 * MS,
				.pid = A,
				.tid = A,
				.cpu = 4000000000u,
				.u.change = {.other_tid = B}};

	perf_time_switch(times, &r);
	r.time_ns = 110 * MS;
	r.u.change.out = true;
	perf_time_switch(times, &r);
	assert_string_equal(told(120), "A cpu 10 A blocked 10 ");
}

static int open_times(void *ctx)
{
	struct perf_time *t = NULL;
	struct err err;
	int rc = perf_time_new(&config, state_of, NULL, NULL, &t, &err);

	(void)ctx;
	perf_time_free(t);
	return rc;
}

TEST(lack_of_memory_is_reported)
{
	assert_in_range(alloc_walk(open_times, NULL), 2, 100);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(one_leaves_as_another_comes),
		FRESH(a_thread_that_comes_after_one_of_which_nothing_is_told_has_its_time),
		FRESH(of_two_in_a_row_of_which_nothing_is_told_the_time_is_unknown),
		FRESH(a_thread_ends_though_the_kernel_has_let_go_of_its_number),
		FRESH(a_thread_that_is_preempted_while_it_ends_has_all_its_time),
		FRESH(after_a_loss_nobody_is_on_a_cpu),
		FRESH(a_cpu_beyond_all_is_taken_as_any_other),
		FRESH(lack_of_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
