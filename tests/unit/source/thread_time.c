/* Times of threads from made-up switches; times in ms. */
#include "source/thread_time.h"

#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define MS 1000000ULL

static struct object object;
static const struct frame_ref a[] = {{&object, 1, 0}, {&object, 2, 0}}, b[] = {{&object, 3, 0}};

/* The reported pieces, as "tid kind ms stack" with the stack's first offset, '-' for none. */
static char told[2000];
static uint64_t last_end_ns;

static void put(void *ctx, const struct thread_time_piece *p)
{
	static const char *const kinds[] = {"cpu", "blocked", "disk", "readied", "unknown",
					    "lock"};
	size_t n = strlen(told);
	char stack[8] = "-";

	(void)ctx;
	assert_true(p->end_ns >= last_end_ns);
	last_end_ns = p->end_ns;
	if (p->nframes)
		snprintf(stack, sizeof(stack), "%u", (unsigned)p->frames[0].offset);
	snprintf(told + n, sizeof(told) - n, "%u %s %g %s%s\n", p->tid, kinds[p->kind],
		 (double)p->ns / MS, stack, p->nwaker ? " woken" : p->goes_on ? " and more" : "");
}

static bool stays(void *ctx, uint32_t tid)
{
	(void)ctx;
	return tid == 99;
}

static struct thread_time *begin_with(bool wakers)
{
	struct thread_time *t = thread_time_new(wakers, put, NULL);

	assert_non_null(t);
	told[0] = '\0';
	last_end_ns = 0;
	return t;
}

static struct thread_time *begin(void)
{
	return begin_with(false);
}

TEST(each_moment_is_told_once_with_its_stack)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_sample(t, 110 * MS, 7, b, 1, 1);             /* 10 of CPU */
	thread_time_stack(t, 115 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 115 * MS, 7, OUT_BLOCKED);            /* 5 more */
	thread_time_woken(t, 315 * MS, 7);                       /* 200 blocked */
	thread_time_in(t, 320 * MS, 7);                          /* 5 ready */
	assert_string_equal(told, "7 cpu 10 3\n7 cpu 5 1\n7 blocked 200 1\n7 readied 5 1\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(a_stack_that_repeats_is_named_by_its_number)
{
	struct thread_time *t = begin();
	uint32_t number;

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, true, a, 2, 1);
	assert_int_equal(thread_time_keep(t, 110 * MS, 7, 3, 555), 0);   /* it may be the last */
	thread_time_stack(t, 120 * MS, 7, true, a, 2, 1);
	number = thread_time_keep(t, 120 * MS, 7, 3, 555);
	assert_int_not_equal(number, 0);
	assert_int_equal(thread_time_keep(t, 120 * MS, 7, 3, 555), 0);   /* as before */
	thread_time_stack(t, 130 * MS, 7, false, b, 1, 1);
	thread_time_repeat(t, 140 * MS, 7, number);
	thread_time_out(t, 140 * MS, 7, OUT_BLOCKED);
	thread_time_in(t, 340 * MS, 7);
	assert_string_equal(told, "7 cpu 40 1\n7 disk 200 1\n");
	thread_time_repeat(t, 350 * MS, 7, number + THREAD_TIME_KEPT);   /* not any more */
	thread_time_out(t, 350 * MS, 7, OUT_BLOCKED);
	thread_time_in(t, 550 * MS, 7);
	assert_non_null(strstr(told, "7 blocked 200 -\n"));
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(the_stack_may_come_just_after_the_switch)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_stack(t, 110 * MS + 500, 7, true, a, 2, 1);
	thread_time_in(t, 310 * MS, 7);
	assert_string_equal(told, "7 cpu 10 1\n7 disk 200 1\n");
	thread_time_free(t);
}

TEST(a_stack_of_an_earlier_switch_is_not_taken)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, true, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_in(t, 310 * MS, 7);
	thread_time_out(t, 320 * MS, 7, OUT_BLOCKED);            /* its stack was not taken */
	thread_time_in(t, 520 * MS, 7);
	assert_string_equal(told, "7 cpu 10 1\n7 disk 200 1\n7 cpu 10 -\n7 blocked 200 -\n");
	thread_time_free(t);
}

TEST(who_could_run_when_switched_out_is_ready)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 104 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 104 * MS, 7, OUT_PREEMPTED);
	thread_time_in(t, 210 * MS, 7);
	assert_string_equal(told, "7 cpu 4 1\n7 readied 106 1\n");
	thread_time_free(t);
}

TEST(what_goes_on_is_told_at_ticks_and_the_rest_at_the_end)
{
	struct thread_time *t = begin();

	thread_time_woken(t, 90 * MS, 7);                        /* a new thread */
	thread_time_in(t, 91 * MS, 7);
	thread_time_stack(t, 100 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 100 * MS, 7, OUT_BLOCKED);
	thread_time_tick(t, 1000 * MS, stays);
	thread_time_tick(t, 2000 * MS, stays);
	assert_string_equal(told, "7 cpu 9 1\n7 blocked 900 1\n7 readied 1 -\n7 blocked 1000 1\n");
	told[0] = '\0';
	thread_time_in(t, 2500 * MS, 7);
	thread_time_out(t, 2501 * MS, 7, OUT_DEAD);
	assert_string_equal(told, "7 blocked 500 1\n7 cpu 1 -\n");
	assert_int_equal(thread_time_threads(t), 0);
	thread_time_free(t);
}

/* ---- a lock that a runtime has --------------------------------------------------------------- */

enum { LOCK = 5 };

/* From which offset on who has the lock; 0 = not known. */
static uint64_t held_by;

static void put_held(void *ctx, const struct thread_time_piece *p)
{
	put(ctx, p);
	held_by = p->nwaker ? p->waker[0].offset : 0;
}

static struct thread_time *begin_lock(void)
{
	struct thread_time *t = thread_time_new(false, put_held, NULL);

	assert_non_null(t);
	told[0] = '\0';
	last_end_ns = held_by = 0;
	return t;
}

static void sleeps(struct thread_time *t, uint64_t at_ms, uint32_t tid, uint64_t lock)
{
	thread_time_stack(t, at_ms * MS, tid, false, a, 2, 1);
	thread_time_lock(t, tid, lock);
	thread_time_out(t, at_ms * MS, tid, OUT_BLOCKED);
}

static void wakes(struct thread_time *t, uint64_t at_ms, uint32_t tid)
{
	thread_time_woken(t, at_ms * MS, tid);
	thread_time_in(t, at_ms * MS, tid);
}

static const struct frame_ref nobody = {.object = NULL};

TEST(waits_for_a_lock_are_one_until_it_is_released_and_say_who_had_it)
{
	struct thread_time *t = begin_lock();

	thread_time_in(t, 90 * MS, 8);
	thread_time_in(t, 100 * MS, 7);
	sleeps(t, 100, 7, LOCK);
	wakes(t, 105, 7);                                        /* it looks whether it is free */
	sleeps(t, 105, 7, LOCK);
	thread_time_sample(t, 108 * MS, 8, b, 1, 1);
	thread_time_ran(t, 108 * MS, 8, b, 1);
	told[0] = '\0';
	assert_int_equal(thread_time_sleeps_for(t, 7), LOCK);
	assert_int_equal(thread_time_sleeps_for(t, 8), 0);
	thread_time_released(t, 109 * MS, LOCK, 8, nobody);
	assert_string_equal(told, "7 lock 9 1 woken\n");
	assert_int_equal(held_by, b[0].offset);
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(who_is_blocked_while_another_waits_has_the_lock_with_the_stack_of_that)
{
	struct thread_time *t = begin_lock();

	thread_time_in(t, 90 * MS, 8);
	thread_time_sample(t, 95 * MS, 8, b, 1, 1);
	thread_time_ran(t, 95 * MS, 8, b, 1);
	sleeps(t, 96, 8, 0);
	thread_time_in(t, 100 * MS, 7);
	sleeps(t, 100, 7, LOCK);
	wakes(t, 130, 8);
	thread_time_released(t, 131 * MS, LOCK, 8, nobody);
	assert_int_equal(held_by, a[0].offset);
	/* Its next turn: it is not blocked. */
	wakes(t, 131, 7);
	sleeps(t, 132, 7, LOCK);
	thread_time_released(t, 137 * MS, LOCK, 8, nobody);
	assert_int_equal(held_by, b[0].offset);
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(who_has_a_lock_at_its_cpu_sample_is_told_though_nobody_sees_it_released)
{
	struct thread_time *t = begin_lock();

	thread_time_in(t, 90 * MS, 8);
	thread_time_in(t, 100 * MS, 7);
	sleeps(t, 100, 7, LOCK);
	thread_time_ran(t, 108 * MS, 8, b, 1);
	thread_time_holds(t, 108 * MS, LOCK, 8, nobody);
	assert_string_equal(told, "7 lock 8 1 woken\n");
	assert_int_equal(held_by, b[0].offset);
	/* The rest of the wait is its holder's too; what that did then is not known. */
	told[0] = '\0';
	wakes(t, 111, 7);
	thread_time_stack(t, 112 * MS, 7, false, b, 1, 1);
	assert_string_equal(told, "7 lock 3 1\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(other_locks_and_the_holder_are_not_told)
{
	struct thread_time *t = begin_lock();

	thread_time_in(t, 100 * MS, 7);
	thread_time_in(t, 100 * MS, 8);
	sleeps(t, 100, 7, LOCK + 1);
	sleeps(t, 100, 8, LOCK);
	thread_time_released(t, 110 * MS, LOCK, 8, nobody);
	assert_string_equal(told, "");
	thread_time_free(t);
}

static uint32_t says_8(void *ctx, uint32_t waiter, struct frame_ref *who)
{
	(void)ctx;
	(void)who;
	return waiter == 7 ? 8 : 0;
}

TEST(a_tick_asks_who_has_a_lock_for_long)
{
	struct thread_time *t = begin_lock();

	thread_time_ask(t, says_8);
	thread_time_in(t, 90 * MS, 8);
	thread_time_sample(t, 950 * MS, 8, b, 1, 1);
	thread_time_ran(t, 950 * MS, 8, b, 1);
	thread_time_in(t, 940 * MS, 7);
	sleeps(t, 940, 7, LOCK);
	told[0] = '\0';
	thread_time_tick(t, 1000 * MS, stays);                   /* not for long */
	assert_string_equal(told, "");
	thread_time_tick(t, 2000 * MS, stays);
	assert_string_equal(told, "7 lock 1060 1 woken\n");
	assert_int_equal(held_by, b[0].offset);
	thread_time_free(t);
}

TEST(small_times_are_told_with_the_next_of_their_kind)
{
	struct thread_time *t = begin();
	uint64_t at = 100 * MS;
	unsigned i;

	thread_time_in(t, at, 7);
	for (i = 0; i < 40; i++) {        /* 0.1 on, 0.9 off, two stacks in turn */
		thread_time_stack(t, at += MS / 10, 7, false, i % 2 ? a : b, i % 2 ? 2 : 1, 1);
		thread_time_out(t, at, 7, OUT_BLOCKED);
		thread_time_in(t, at += 9 * MS / 10, 7);
	}
	thread_time_tick(t, at, stays);
	assert_true(strlen(told) < 20 * strlen("7 blocked 2.7 1\n"));    /* not 80 */
	thread_time_free(t);
}

/* The 0.3 ms before the event are told at it, and the times after it are sums of their own. */
TEST(no_time_is_told_together_with_that_before_an_event)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 100 * MS + MS / 5, 7, false, a, 2, 1);
	thread_time_out(t, 100 * MS + MS / 5, 7, OUT_BLOCKED);   /* 0.2 of CPU */
	thread_time_in(t, 101 * MS, 7);                          /* 0.8 blocked */
	thread_time_mark(t, 101 * MS + MS / 10, 7, b, 1, 1);     /* 0.1 of CPU */
	assert_string_equal(told, "7 cpu 0.2 1\n7 blocked 0.8 1\n7 cpu 0.1 3\n");
	thread_time_mark(t, 101 * MS + MS / 10, 7, b, 1, 1);     /* nothing more */
	thread_time_mark(t, 101 * MS + MS / 10, 8, b, 1, 1);     /* nothing known of it */
	thread_time_stack(t, 102 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 102 * MS, 7, OUT_DEAD);
	assert_string_equal(told, "7 cpu 0.2 1\n7 blocked 0.8 1\n7 cpu 0.1 3\n7 cpu 0.9 1\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

/* Else what it did in one request would be told in the next. */
TEST(an_event_after_a_lost_switch_tells_what_was_before_too)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 104 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 104 * MS, 7, OUT_PREEMPTED);          /* 4 of CPU; it comes back */
	thread_time_mark(t, 110 * MS, 7, b, 1, 1);
	assert_string_equal(told, "7 cpu 4 1\n7 unknown 6 -\n");
	thread_time_mark(t, 112 * MS, 7, b, 1, 1);
	assert_string_equal(told, "7 cpu 4 1\n7 unknown 6 -\n7 cpu 2 3\n");
	thread_time_unseen(t, 7);
	thread_time_mark(t, 113 * MS, 7, b, 1, 1);
	assert_string_equal(told, "7 cpu 4 1\n7 unknown 6 -\n7 cpu 2 3\n7 unknown 1 -\n");
	thread_time_free(t);
}

TEST(a_rest_is_never_told_with_the_stack_of_another_kind)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, true, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_in(t, 111 * MS, 7);                          /* 1 ms for the disk */
	thread_time_stack(t, 121 * MS, 7, false, b, 1, 1);
	thread_time_out(t, 121 * MS, 7, OUT_BLOCKED);
	thread_time_tick(t, 131 * MS, stays);
	assert_string_equal(told, "7 cpu 10 1\n7 cpu 10 3\n7 blocked 10 3\n7 disk 1 -\n");
	thread_time_free(t);
}

TEST(totals_are_exact_however_often_it_switches)
{
	struct thread_time *t = begin();
	uint64_t at = 1000 * MS, spent[4] = {0}, seed = 1;
	double sums[4] = {0}, ms;
	char kind[16], *line;
	unsigned i, tid;

	told[0] = '\0';
	thread_time_in(t, at, 7);
	for (i = 0; i < 30; i++) {
		uint64_t on, off, ready;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		on = (seed >> 33) % (9 * MS), off = (seed >> 20) % (7 * MS),
		ready = (seed >> 40) % (3 * MS);
		thread_time_stack(t, at += on, 7, i % 3 == 0, i % 2 ? a : b, 1, 1);
		thread_time_out(t, at, 7, OUT_BLOCKED);
		thread_time_woken(t, at += off, 7);
		thread_time_in(t, at += ready, 7);
		spent[0] += on, spent[i % 3 == 0 ? 2 : 1] += off, spent[3] += ready;
	}
	thread_time_tick(t, at, stays);
	for (line = strtok(told, "\n"); line; line = strtok(NULL, "\n")) {
		assert_int_equal(sscanf(line, "%u %15s %lf", &tid, kind, &ms), 3);
		sums[kind[0] == 'c' ? 0 : kind[0] == 'b' ? 1 : kind[0] == 'd' ? 2 : 3] += ms;
	}
	for (i = 0; i < 4; i++)
		assert_true(sums[i] * MS > (double)spent[i] - 2000 &&
			    sums[i] * MS < (double)spent[i] + 2000);
	thread_time_free(t);
}

TEST(a_wait_has_the_stack_of_who_ended_it)
{
	struct thread_time *t = begin_with(true);

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_tick(t, 1000 * MS, stays);                   /* the waker is not known yet */
	thread_time_waker(t, 1310 * MS, 7, b, 1);
	thread_time_woken(t, 1310 * MS, 7);
	thread_time_in(t, 1320 * MS, 7);
	thread_time_stack(t, 1330 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 1330 * MS, 7, OUT_BLOCKED);
	thread_time_woken(t, 1730 * MS, 7);                      /* the waker was not seen */
	thread_time_in(t, 1740 * MS, 7);
	assert_string_equal(told,
			    "7 cpu 10 1\n7 blocked 890 1 and more\n7 blocked 310 1 woken\n"
			    "7 readied 10 1\n7 cpu 10 1\n7 blocked 400 1\n7 readied 10 1\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(the_end_of_a_long_wait_is_told_by_itself)
{
	struct thread_time *t = begin_with(true);
	uint64_t at;

	thread_time_in(t, 100 * MS, 7);
	/* A wait of 5 ms, whose waker is known when the next one begins. */
	thread_time_stack(t, 110 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_waker(t, 115 * MS, 7, b, 1);
	thread_time_woken(t, 115 * MS, 7);
	thread_time_in(t, 115 * MS, 7);
	thread_time_stack(t, 120 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 120 * MS, 7, OUT_BLOCKED);
	for (at = 1000 * MS; at <= 2000 * MS; at += 1000 * MS)
		thread_time_tick(t, at, stays);
	/* 1 ms would be too little for a piece of its own. */
	thread_time_waker(t, 2001 * MS, 7, a, 1);
	thread_time_woken(t, 2001 * MS, 7);
	thread_time_in(t, 2001 * MS, 7);
	assert_string_equal(told, "7 cpu 15 1\n7 blocked 5 1 woken\n7 blocked 880 1 and more\n"
				  "7 blocked 1000 1 and more\n7 blocked 1 1 woken\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(a_wait_whose_end_was_lost_is_followed_by_unknown_time)
{
	struct thread_time *t = begin_with(true);

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_tick(t, 1000 * MS, stays);
	thread_time_lost(t, 1001 * MS);
	assert_string_equal(told, "7 cpu 10 1\n7 blocked 890 1 and more\n7 unknown 1 -\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

TEST(a_waker_is_named_with_its_process_and_thread)
{
	struct frames *frames;
	struct processes *processes;
	struct process *shop, *other;
	struct frame frame = {0};
	struct frame_ref refs[2];
	struct symbol symbol;
	char text[THREAD_TIME_NAME_BYTES];

	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(processes_new(&processes, NULL), 0);
	frame.object = thread_time_leaves(frames);
	shop = process_add(processes, 4194303, 1, 0, 1, "shop");
	assert_int_equal(thread_time_add_waker(frame.object, shop, 4194302, refs, 1), 2);
	frame.offset = refs[1].offset;
	assert_true(thread_time_name(frame.object, processes, &frame, text, &symbol));
	assert_string_equal(symbol.name, "shop (4194303) thread 4194302");
	assert_int_equal(symbol.offset, refs[1].offset);
	/* The pid of a program that has ended is not named after the next one. */
	process_drop(processes, shop, 2);
	other = process_add(processes, 4194303, 3, 0, 1, "other");
	assert_true(thread_time_name(frame.object, processes, &frame, text, &symbol));
	assert_string_equal(symbol.name, "? (4194303) thread 4194302");
	thread_time_add_waker(frame.object, other, 4194302, refs, 0);
	assert_int_not_equal(refs[0].offset, refs[1].offset);
	assert_int_equal(thread_time_add_waker(frame.object, NULL, 5, refs, 1), 1);
	object_drop(frame.object, 4);
	processes_free(processes);
	frames_free(frames);
}

/* The kernel does not say who had the CPU before; 290 ms were once not reported at all. */
TEST(time_of_which_a_switch_is_missing_is_unknown_and_not_left_out)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_PREEMPTED);
	thread_time_out(t, 400 * MS, 7, OUT_BLOCKED);    /* it was on a CPU, for an unknown time */
	thread_time_tick(t, 500 * MS, stays);
	assert_string_equal(told, "7 cpu 10 1\n7 blocked 100 -\n7 unknown 290 -\n");
	told[0] = '\0';
	thread_time_in(t, 510 * MS, 7);
	thread_time_in(t, 550 * MS, 7);        /* it was switched out at 510 or later */
	thread_time_out(t, 560 * MS, 7, OUT_BLOCKED);
	thread_time_tick(t, 600 * MS, stays);
	assert_string_equal(told, "7 blocked 10 -\n7 unknown 40 -\n7 cpu 10 -\n7 blocked 40 -\n");
	thread_time_free(t);
}

TEST(why_a_thread_was_switched_out_may_be_unknown)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_out(t, 110 * MS, 7, OUT_UNKNOWN);
	thread_time_tick(t, 200 * MS, stays);
	thread_time_woken(t, 300 * MS, 7);
	thread_time_in(t, 310 * MS, 7);
	assert_string_equal(told, "7 cpu 10 -\n7 unknown 90 -\n7 readied 10 -\n7 unknown 100 -\n");
	thread_time_free(t);
}

TEST(a_thread_that_has_left_unseen_is_not_on_its_cpu)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_unseen(t, 7);
	thread_time_unseen(t, 8);                                /* an unknown thread */
	thread_time_out(t, 300 * MS, 7, OUT_DEAD);
	assert_string_equal(told, "7 unknown 200 -\n");
	assert_int_equal(thread_time_threads(t), 0);
	thread_time_free(t);
}

TEST(a_thread_has_its_time_from_its_birth_on_though_its_first_switches_are_lost)
{
	struct thread_time *t = begin();

	thread_time_born(t, 100 * MS, 7);
	thread_time_woken(t, 101 * MS, 7);               /* until then it was being created */
	thread_time_in(t, 103 * MS, 7);
	thread_time_out(t, 113 * MS, 7, OUT_DEAD);
	assert_string_equal(told, "7 readied 2 -\n7 cpu 10 -\n");
	told[0] = '\0';
	thread_time_born(t, 200 * MS, 7);
	thread_time_lost(t, 250 * MS);
	thread_time_tick(t, 300 * MS, stays);
	thread_time_woken(t, 305 * MS, 7);
	thread_time_in(t, 310 * MS, 7);
	thread_time_out(t, 320 * MS, 7, OUT_DEAD);
	assert_string_equal(told, "7 unknown 100 -\n7 readied 5 -\n7 unknown 5 -\n7 cpu 10 -\n");
	told[0] = '\0';
	thread_time_born(t, 400 * MS, 7);
	thread_time_out(t, 490 * MS, 7, OUT_BLOCKED);
	thread_time_born(t, 500 * MS, 7);                        /* another thread with this tid */
	assert_int_equal(thread_time_threads(t), 1);
	thread_time_free(t);
}

TEST(after_a_loss_nothing_is_known)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_lost(t, 200 * MS);
	thread_time_in(t, 500 * MS, 7);
	thread_time_tick(t, 600 * MS, stays);
	assert_string_equal(told, "7 cpu 10 1\n7 unknown 390 -\n");
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
}

/*
 * What a thread does within 300 ms, with the n-th allocation failing; whether there were so many.
 */
static bool lives_without_memory(unsigned long n)
{
	struct thread_time *t = begin();
	bool met;

	alloc_walk_fail_at(n);
	thread_time_in(t, 100 * MS, 7);
	thread_time_stack(t, 110 * MS, 7, false, a, 2, 1);
	thread_time_out(t, 110 * MS, 7, OUT_BLOCKED);
	thread_time_waker(t, 310 * MS, 7, b, 1);
	thread_time_woken(t, 310 * MS, 7);
	thread_time_in(t, 320 * MS, 7);
	thread_time_out(t, 330 * MS, 7, OUT_DEAD);
	met = alloc_walk_count() >= n;
	alloc_walk_fail_at(0);
	assert_true(!met || thread_time_refused(t) ||
		    !strstr(told, "cpu 10 1\n7 blocked 200 1 woken"));
	assert_true(met ||
		    (!thread_time_refused(t) && strstr(told, "cpu 10 1\n7 blocked 200 1 woken")));
	thread_time_free(t);
	assert_int_equal(object.refs, 0);
	return met;
}

TEST(without_memory_a_thread_lacks_its_stack_or_is_refused_and_counted)
{
	unsigned long n = 1;

	while (lives_without_memory(n))
		n++;
	assert_in_range(n, 4, 20);
}

TEST(who_is_gone_is_forgotten)
{
	struct thread_time *t = begin();

	thread_time_in(t, 100 * MS, 99);
	thread_time_in(t, 100 * MS, 7);
	thread_time_tick(t, 200 * MS, stays);
	assert_int_equal(thread_time_threads(t), 1);
	thread_time_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_moment_is_told_once_with_its_stack),
		cmocka_unit_test(a_stack_that_repeats_is_named_by_its_number),
		cmocka_unit_test(the_stack_may_come_just_after_the_switch),
		cmocka_unit_test(a_stack_of_an_earlier_switch_is_not_taken),
		cmocka_unit_test(who_could_run_when_switched_out_is_ready),
		cmocka_unit_test(what_goes_on_is_told_at_ticks_and_the_rest_at_the_end),
		cmocka_unit_test(small_times_are_told_with_the_next_of_their_kind),
		cmocka_unit_test(no_time_is_told_together_with_that_before_an_event),
		cmocka_unit_test(an_event_after_a_lost_switch_tells_what_was_before_too),
		cmocka_unit_test(a_rest_is_never_told_with_the_stack_of_another_kind),
		cmocka_unit_test(totals_are_exact_however_often_it_switches),
		cmocka_unit_test(a_wait_has_the_stack_of_who_ended_it),
		cmocka_unit_test(the_end_of_a_long_wait_is_told_by_itself),
		cmocka_unit_test(a_wait_whose_end_was_lost_is_followed_by_unknown_time),
		cmocka_unit_test(a_waker_is_named_with_its_process_and_thread),
		cmocka_unit_test(time_of_which_a_switch_is_missing_is_unknown_and_not_left_out),
		cmocka_unit_test(why_a_thread_was_switched_out_may_be_unknown),
		cmocka_unit_test(a_thread_that_has_left_unseen_is_not_on_its_cpu),
		cmocka_unit_test(
			a_thread_has_its_time_from_its_birth_on_though_its_first_switches_are_lost),
		cmocka_unit_test(after_a_loss_nothing_is_known),
		cmocka_unit_test(without_memory_a_thread_lacks_its_stack_or_is_refused_and_counted),
		cmocka_unit_test(who_is_gone_is_forgotten),
		cmocka_unit_test(waits_for_a_lock_are_one_until_it_is_released_and_say_who_had_it),
		cmocka_unit_test(
			who_is_blocked_while_another_waits_has_the_lock_with_the_stack_of_that),
		cmocka_unit_test(
			who_has_a_lock_at_its_cpu_sample_is_told_though_nobody_sees_it_released),
		cmocka_unit_test(other_locks_and_the_holder_are_not_told),
		cmocka_unit_test(a_tick_asks_who_has_a_lock_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
