/* Rules on garbage collections, fed with stories of events; see event_lab.h. */
#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/event_lab.h"
#include "tests/support/test.h"
#include "triggers/duration.h"
#include "triggers/gc_duration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>


static const struct lab_story gc_over[] = {
	{"fires at the stop, with the duration", "1",
	 "  3228.778 GC/Start pid=3676 Count=1 Depth=0 Type=0 ClrInstanceID=9\n"
	 "! 3230.112 GC/Stop pid=3676 Count=1 Depth=0 ClrInstanceID=9\n"},
	{"does not fire when it is short", "2",
	 "  3228.778 GC/Start pid=3676 Count=1\n"
	 "  3230.112 GC/Stop pid=3676 Count=1\n"},
	{"equal is not over", "2", "  10 GC/Start pid=1 Count=1\n  12 GC/Stop pid=1 Count=1\n"},
	{"a nanosecond more is over", "2",
	 "  10 GC/Start pid=1 Count=1\n! 12.000001 GC/Stop pid=1 Count=1\n"},
	{"two start events of one collection are one; the first counts", "5",
	 "  10 GC/Start pid=1 Count=1\n  14 GC/Start pid=1 Count=1\n! 16 GC/Stop pid=1 Count=1\n"},
	{"background collections are left out", "1",
	 "  10 GC/Start pid=1 Count=1 Type=1\n  90 GC/Stop pid=1 Count=1\n"
	 "  91 GC/Start pid=1 Count=2 Type=BackgroundGC\n  99 GC/Stop pid=1 Count=2\n"},
	{"foreground collections count, by number and by name", "1",
	 "  10 GC/Start pid=1 Count=1 Type=2\n! 20 GC/Stop pid=1 Count=1\n--\n"
	 "  30 GC/Start pid=1 Count=2 Type=ForegroundGC\n! 40 GC/Stop pid=1 Count=2\n"},
	{"a stop without a start is ignored", "1",
	 "  10 GC/Stop pid=1 Count=1\n  20 GC/Stop pid=1 Count=1\n"},
	{"another count is another collection", "1",
	 "  10 GC/Start pid=1 Count=1\n  20 GC/Stop pid=1 Count=2\n"},
	{"another process is another collection", "1",
	 "  10 GC/Start pid=1 Count=1\n  20 GC/Stop pid=2 Count=1\n"},
	{"two runtimes of one process do not mix", "5",
	 "  10 GC/Start pid=1 Count=1 ClrInstanceID=8\n"
	 "  12 GC/Start pid=1 Count=1 ClrInstanceID=9\n"
	 "  16 GC/Stop pid=1 Count=1 ClrInstanceID=9\n"
	 "! 16.5 GC/Stop pid=1 Count=1 ClrInstanceID=8\n"},
	{"collections of two processes overlap", "5",
	 "  10 GC/Start pid=1 Count=7\n  11 GC/Start pid=2 Count=7\n"
	 "  14 GC/Stop pid=1 Count=7\n! 17 GC/Stop pid=2 Count=7\n"},
	{"one that hangs fires while it is open, once", "500",
	 "  1000 GC/Start pid=1 Count=1\n  1500 tick\n  1600 tick\n! 1700 tick\n  1800 tick\n--\n"
	 "  1900 tick\n  2000 GC/Stop pid=1 Count=1\n"},
	{"unless in-flight firing is off", "500;InFlight=false",
	 "  1000 GC/Start pid=1 Count=1\n  1700 tick\n! 2000 GC/Stop pid=1 Count=1\n"},
	{"a process that has ended has no open collection", "500",
	 "  1000 GC/Start pid=1 Count=1\n  1100 exit pid=1\n  2000 tick\n"},
	{"it fires again once its incident has ended", "1",
	 "  10 GC/Start pid=1 Count=1\n! 20 GC/Stop pid=1 Count=1\n"
	 "  30 GC/Start pid=1 Count=2\n  40 GC/Stop pid=1 Count=2\n--\n"
	 "  50 GC/Start pid=1 Count=3\n! 60 GC/Stop pid=1 Count=3\n"},
	{"what hung within its incident does not fire after it", "500",
	 "  1000 GC/Start pid=1 Count=1\n  1050 GC/Start pid=2 Count=1\n! 1601 tick\n  1651 tick\n"
	 "--\n  1701 tick\n"},
	{"0 is off", "0",
	 "  10 GC/Start pid=1 Count=1\n  90 GC/Stop pid=1 Count=1\n  99999 tick\n"},
	{"by name, in any case, with .exe, or by pid", "1;Process=APP.exe,77",
	 "  10 GC/Start pid=1 exe=/opt/app Count=1\n! 20 GC/Stop pid=1 exe=/opt/app Count=1\n--\n"
	 "  30 GC/Start pid=2 exe=other Count=1\n  40 GC/Stop pid=2 exe=other Count=1\n"
	 "  50 GC/Start pid=77 exe=any Count=1\n! 60 GC/Stop pid=77 exe=any Count=1\n"},
	{"a clock that jumps back is no duration", "1",
	 "  100 GC/Start pid=1 Count=1\n  50 GC/Stop pid=1 Count=1\n"},
	{"a clock that jumps ahead fires with what it says", "1000",
	 "  100 GC/Start pid=1 Count=1\n! 86400000 GC/Stop pid=1 Count=1\n"},
	{"a stop that never comes is forgotten after an hour", "500;InFlight=false",
	 "  1000 GC/Start pid=1 Count=1\n  3601001 tick\n  3601002 GC/Stop pid=1 Count=1\n"},
	{"the pause is from suspension to restart", "5;Measure=pause",
	 "  10 GC/SuspendEEStart pid=1 Reason=1\n  11 GC/Start pid=1 Count=1\n"
	 "  13 GC/Stop pid=1 Count=1\n"
	 "! 15.5 GC/RestartEEStop pid=1\n"},
	{"a suspension for a debugger is no pause of a collection", "5;Measure=pause",
	 "  10 GC/SuspendEEStart pid=1 Reason=5\n  99 GC/RestartEEStop pid=1\n"
	 "  110 GC/SuspendEEStart pid=1 Reason=SuspendForGCPrep\n! 199 GC/RestartEEStop pid=1\n"},
};

TEST(gc_over_fires_where_the_story_says)
{
	event_lab_stories("stop-on-gc-over-msec", CLR_PROVIDER, gc_over, COUNT_OF(gc_over));
}

/* Java: pauses that came and went between two looks; the longest is at least their mean. */
TEST(pauses_reported_together_fire_when_one_must_be_over_the_limit)
{
	static const struct lab_story stories[] = {
		{"the mean is over", "10", "! 50 GC/Pauses pid=1 Pauses=3 PauseMSec=30.3\n"},
		{"the mean is not", "10", "  50 GC/Pauses pid=1 Pauses=3 PauseMSec=30.0\n"},
		{"one alone is known", "10", "! 50 GC/Pauses pid=1 Pauses=1 PauseMSec=10.5\n"},
		{"the source knows more", "10",
		 "! 50 GC/Pauses pid=1 Pauses=3 PauseMSec=15.0 PauseMinMSec=11.0\n"},
		{"pauses of the program too", "10;Measure=pause",
		 "! 50 GC/Pauses pid=1 Pauses=2 PauseMSec=20.2\n"},
		{"of another process", "10;Process=7",
		 "  50 GC/Pauses pid=1 Pauses=2 PauseMSec=90.0\n"},
		{"none of them", "10",
		 "  50 GC/Pauses pid=1 Pauses=0 PauseMSec=90.0\n  60 GC/Pauses pid=1\n"},
		{"an end that stands for several is no pause of their sum", "10",
		 "  10 GC/Start pid=1 Count=4\n"
		 "  22 GC/Stop pid=1 Count=4 PauseMSec=12.0 Pauses=2 PauseMinMSec=7.0\n"
		 "  30 GC/Start pid=1 Count=6\n"
		 "! 45 GC/Stop pid=1 Count=6 PauseMSec=15.0 Pauses=2 PauseMinMSec=13.0\n"},
		{"one that fired while it was open fires once", "500",
		 "  1000 GC/Start pid=1 Count=4\n! 1700 tick\n--\n"
		 "  1800 GC/Stop pid=1 Count=4 PauseMSec=800.0 Pauses=2 PauseMinMSec=790.0\n"},
	};

	event_lab_stories("stop-on-gc-over-msec", JVM_PROVIDER, stories, COUNT_OF(stories));
}

TEST(status_says_when_a_group_may_hide_one_over_the_limit)
{
	struct event_lab lab = {.provider = JVM_PROVIDER};
	struct trigger_status status;

	event_lab_open(&lab, "stop-on-gc-over-msec", "10", NULL);
	event_lab_story(&lab, "  50 GC/Pauses pid=1 Pauses=3 PauseMSec=9.0\n");
	trigger_status(lab.trigger, &status);
	assert_string_equal(status.text, "3 ms, limit > 10 ms");
	event_lab_story(&lab, "  60 GC/Pauses pid=1 Pauses=4 PauseMSec=26.0\n"
			      "  70 GC/Pauses pid=1 Pauses=2 PauseMSec=12.0\n");
	trigger_status(lab.trigger, &status);
	assert_string_equal(status.text, "6 ms, limit > 10 ms; 2 reports of several may hide one "
			    "over it (the longest: 4 in 26 ms)");
	assert_true(status.nearest > 6.49 && status.nearest < 6.51);
	assert_int_equal(status.counts.matched, 9);
	event_lab_story(&lab, "! 80 GC/Pauses pid=1 exe=/opt/java Pauses=2 PauseMSec=25.0\n");
	assert_string_equal(buf_text(&lab.why),
			    "GC of java (pid 1): 2 pauses, reported together, took "
			    "25 ms in all, the longest at least 12.5 ms, over its limit of 10 ms");
	event_lab_close(&lab);
}

TEST(status_says_when_no_event_is_of_the_chosen_processes)
{
	struct event_lab lab = {.provider = CLR_PROVIDER};
	struct trigger_status status;

	event_lab_open(&lab, "stop-on-gc-over-msec", "10;Process=python3", NULL);
	trigger_status(lab.trigger, &status);
	assert_string_equal(status.text, "no such event yet, limit > 10 ms");
	event_lab_story(&lab, "  50 GC/Start pid=1 exe=/usr/bin/python3.11 Count=1\n");
	trigger_status(lab.trigger, &status);
	assert_string_equal(status.text,
			    "no such event of the chosen processes yet, limit > 10 ms");
	event_lab_story(&lab, "  60 GC/Start pid=2 exe=/usr/bin/python3 Count=1\n");
	trigger_status(lab.trigger, &status);
	assert_string_equal(status.text, "none has ended yet, limit > 10 ms, 1 open");
	event_lab_close(&lab);
}

TEST(full_collections_reported_together_are_of_generation_2)
{
	static const struct lab_story stories[] = {
		{"full", "", "! 10 GC/Pauses pid=1 Depth=2 Pauses=3 PauseMSec=1.0\n"},
		{"young", "", "  10 GC/Pauses pid=1 Depth=0 Pauses=3 PauseMSec=1.0\n"},
	};

	event_lab_stories("stop-on-gen2-gc", JVM_PROVIDER, stories, COUNT_OF(stories));
}

TEST(events_of_other_providers_are_ignored)
{
	static const struct lab_story story[] = {
		{"of another provider", "1",
		 "  10 GC/Start pid=1 Count=1\n  90 GC/Stop pid=1 Count=1\n"},
	};

	event_lab_stories("stop-on-gc-over-msec", "Microsoft-Windows-DotNETRuntimePrivate", story,
			  1);
}

TEST(suspension_is_by_thread_and_ends_when_all_threads_stand_still)
{
	static const struct lab_story stories[] = {
		{"fires", "1",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=1\n"
		 "! 12 GC/SuspendEEStop pid=1 tid=5\n"},
		{"by thread", "1",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=1\n"
		 "  12 GC/SuspendEEStop pid=1 tid=6\n"},
		{"overlapping on two threads", "3",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=1\n"
		 "  11 GC/SuspendEEStart pid=1 tid=6 Reason=6\n"
		 "  12 GC/SuspendEEStop pid=1 tid=5\n! 15 GC/SuspendEEStop pid=1 tid=6\n"},
		{"the restart does not belong to it", "1",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=1\n"
		 "  10.5 GC/SuspendEEStop pid=1 tid=5\n"
		 "  20 GC/RestartEEStop pid=1 tid=5\n"},
	};

	event_lab_stories("stop-on-gc-suspend-over-msec", CLR_PROVIDER, stories, COUNT_OF(stories));
}

/* Java, CPython and V8 report when a pause begins and ends, but not when all threads stand. */
TEST(only_dotnet_reports_how_long_suspending_took)
{
	static const struct lab_story story[] = {
		{"a pause", "5",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=1\n  60 tick\n"
		 "  90 GC/Stop pid=1 tid=5\n"
				 "  90 GC/RestartEEStop pid=1 tid=5\n  200 tick\n"},
	};

	event_lab_stories("stop-on-gc-suspend-over-msec", JVM_PROVIDER, story, 1);
	event_lab_stories("stop-on-gc-suspend-over-msec", CPYTHON_PROVIDER, story, 1);
	event_lab_stories("stop-on-gc-suspend-over-msec", V8_PROVIDER, story, 1);
}

/* A number that is not known is left out, not reported as 0. */
TEST(the_reason_has_only_what_the_runtime_reported)
{
	struct event_lab lab = {.provider = CPYTHON_PROVIDER};

	event_lab_open(&lab, "stop-on-gc-over-msec", "5", NULL);
	event_lab_story(&lab, "  10 GC/Start pid=1 tid=5 exe=/usr/bin/python3 Depth=2\n"
			      "! 20 GC/Stop pid=1 tid=5 exe=/usr/bin/python3 Depth=2\n");
	assert_string_equal(buf_text(&lab.why),
			    "GC of python3 (pid 1) took 10 ms, over its limit of 5 ms, thread 5, "
			    "generation 2");
	event_lab_story(&lab, "--\n  30 GC/Start pid=1 tid=5 exe=/usr/bin/python3 Depth=2\n"
			      "! 40 GC/Stop pid=1 tid=5 exe=/usr/bin/python3\n");
	assert_string_equal(buf_text(&lab.why),
			    "GC of python3 (pid 1) took 10 ms, over its limit of 5 ms, thread 5");
	event_lab_close(&lab);
	event_lab_open(&lab, "stop-on-gen2-gc", "", NULL);
	event_lab_story(&lab, "! 10 GC/Start pid=1 tid=5 exe=/usr/bin/node Depth=2\n");
	assert_string_equal(buf_text(&lab.why), "GC of generation 2 of node (pid 1) began");
	event_lab_close(&lab);
}

/*
 * V8's isolates (worker threads) collect side by side, and number nothing; nor does CPython, nor do
 * probes in a JVM.
 */
TEST(threads_identify_collections_without_a_number)
{
	static const struct lab_story gc[] = {
		{"a worker's does not end that of the main thread", "50",
		 "  10 GC/Start pid=1 tid=1\n  20 GC/Start pid=1 tid=2\n  25 GC/Stop pid=1 tid=2\n"
		 "! 110 GC/Stop pid=1 tid=1\n"},
		{"nor do their pauses mix", "50;Measure=pause",
		 "  10 GC/SuspendEEStart pid=1 tid=1 Reason=1\n"
		 "  20 GC/SuspendEEStart pid=1 tid=2 Reason=1\n"
		 "  25 GC/RestartEEStop pid=1 tid=2\n! 110 GC/RestartEEStop pid=1 tid=1\n"},
	}, gen2[] = {
		{"each thread begins its own", "",
		 "! 10 GC/Start pid=1 tid=1 Depth=2\n--\n! 20 GC/Start pid=1 tid=2 Depth=2\n"},
	};

	event_lab_stories("stop-on-gc-over-msec", V8_PROVIDER, gc, COUNT_OF(gc));
	event_lab_stories("stop-on-gc-over-msec", CPYTHON_PROVIDER, gc, COUNT_OF(gc));
	event_lab_stories("stop-on-gc-over-msec", JVM_PROVIDER, gc, 1);
	event_lab_stories("stop-on-gen2-gc", V8_PROVIDER, gen2, COUNT_OF(gen2));
}

/* The second start does not repeat the first: its collection took 5 ms, not 995. */
TEST(a_lost_stop_does_not_make_the_next_collection_long)
{
	static const struct lab_story gc[] = {
		{"short", "50;InFlight=false",
		 "  10 GC/Start pid=1 tid=1\n  1000 GC/Start pid=1 tid=1\n"
		 "  1005 GC/Stop pid=1 tid=1\n"},
		{"a pause", "50;Measure=pause;InFlight=false",
		 "  10 GC/SuspendEEStart pid=1 tid=1 Reason=1\n"
		 "  1000 GC/SuspendEEStart pid=1 tid=1 Reason=1\n"
		 "  1005 GC/RestartEEStop pid=1 tid=1\n"},
		{"long", "50;InFlight=false",
		 "  10 GC/Start pid=1 tid=1\n  1000 GC/Start pid=1 tid=1\n"
		 "! 1060 GC/Stop pid=1 tid=1\n"},
	}, gen2[] = {
		{"the next begins too", "",
		 "! 10 GC/Start pid=1 tid=1 Depth=2\n--\n! 900 GC/Start pid=1 tid=1 Depth=2\n"},
	};

	event_lab_stories("stop-on-gc-over-msec", V8_PROVIDER, gc, COUNT_OF(gc));
	event_lab_stories("stop-on-gc-over-msec", JVM_PROVIDER, gc, COUNT_OF(gc));
	event_lab_stories("stop-on-gen2-gc", V8_PROVIDER, gen2, COUNT_OF(gen2));
}

TEST(final_pause_has_reason_6)
{
	static const struct lab_story stories[] = {
		{"reason 6", "5",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=6\n"
		 "! 20 GC/RestartEEStop pid=1 tid=5\n"},
		{"reason 1", "5",
		 "  10 GC/SuspendEEStart pid=1 tid=5 Reason=1\n"
		 "  20 GC/RestartEEStop pid=1 tid=5\n"},
		{"by name", "5", "  10 GC/SuspendEEStart pid=1 tid=5 Reason=SuspendForGCPrep\n"
				 "! 20 GC/RestartEEStop pid=1 tid=5\n"},
	};

	event_lab_stories("stop-on-bgc-final-pause-over-msec", CLR_PROVIDER, stories,
			  COUNT_OF(stories));
}

TEST(gen2_fires_when_it_begins)
{
	static const struct lab_story stories[] = {
		{"generation 2", "", "! 10 GC/Start pid=1 Count=1 Depth=2 Type=0\n"},
		{"generation 1 and background", "",
		 "  10 GC/Start pid=1 Count=1 Depth=1 Type=0\n"
		 "  20 GC/Start pid=1 Count=2 Depth=2 Type=1\n"},
		{"twice the same start is one", "",
		 "! 10 GC/Start pid=1 Count=1 Depth=2\n--\n  11 GC/Start pid=1 Count=1 Depth=2\n"
		 "  12 GC/Stop pid=1 Count=1\n! 13 GC/Start pid=1 Count=2 Depth=2\n"},
		{"of a process", ";Process=9",
		 "  10 GC/Start pid=1 Count=1 Depth=2\n! 11 GC/Start pid=9 Count=1 Depth=2\n"},
	};

	event_lab_stories("stop-on-gen2-gc", CLR_PROVIDER, stories, COUNT_OF(stories));
}

TEST(a_gen2_collection_lasts_until_its_own_stop)
{
	struct event_lab lab = {.provider = CLR_PROVIDER};
	const struct trigger_ops *ops;
	uint64_t first_ns;

	event_lab_open(&lab, "stop-on-gen2-gc", "", NULL);
	ops = lab.trigger->ops;
	assert_true(event_lab_feed(&lab, "10 GC/Start pid=1 Count=1 Depth=2"));
	first_ns = lab.time_ns;
	assert_true(ops->lasts(lab.trigger, first_ns));
	event_lab_feed(&lab, "20 GC/Start pid=2 Count=1 Depth=2");
	event_lab_feed(&lab, "30 GC/Stop pid=1 Count=1");
	assert_false(ops->lasts(lab.trigger, first_ns));       /* though that of pid 2 is open */
	assert_true(ops->lasts(lab.trigger, first_ns + 10000000));
	event_lab_feed(&lab, "40 exit pid=2");
	assert_false(ops->lasts(lab.trigger, first_ns + 10000000));
	event_lab_close(&lab);
}

TEST(why_and_status_say_who_and_how_long)
{
	struct event_lab lab = {.provider = CLR_PROVIDER};
	struct trigger_status s;

	event_lab_open(&lab, "stop-on-gc-over-msec", "5", NULL);
	trigger_status(lab.trigger, &s);
	assert_string_equal(s.text, "no such event yet, limit > 5 ms");
	event_lab_story(&lab, "  9700 GC/Start pid=3988 tid=4032 exe=PerfView.exe Count=1 Depth=1\n"
			"! 9710.8275 GC/Stop pid=3988 exe=PerfView.exe Count=1 Depth=1\n");
	assert_string_equal(buf_text(&lab.why),
			    "GC of PerfView (pid 3988) took 10.8275 ms, over its "
			    "limit of 5 ms, thread 4032, count 1, generation 1");
	assert_true(fabs(lab.value - 10.8275) < 1e-9 && lab.limit == 5);
	trigger_status(lab.trigger, &s);
	assert_string_equal(s.text, "10.8275 ms, limit > 5 ms, in its incident's window");
	event_lab_story(&lab, "--\n  9800 GC/Stop pid=3988 Count=9\n");
	trigger_status(lab.trigger, &s);
	assert_int_equal(s.counts.seen, 3);
	assert_int_equal(s.counts.matched, 1);
	assert_int_equal(s.counts.orphans, 1);
	assert_string_equal(lab.trigger->spec, "StopOnGCOverMsec:5");
	event_lab_close(&lab);
}

TEST(limit_decays_from_spec_or_option)
{
	struct trigger_env env = {.decay_hours = 2};
	struct event_lab lab = {.provider = CLR_PROVIDER};

	event_lab_open(&lab, "stop-on-gc-over-msec", "100", &env);
	event_lab_story(&lab, "  0 tick\n  3600000 GC/Start pid=1 Count=1\n"
				"  3600049 GC/Stop pid=1 Count=1\n"
			"  3600050 GC/Start pid=1 Count=2\n! 3600101 GC/Stop pid=1 Count=2\n");
	assert_non_null(strstr(buf_text(&lab.why), "(100 at the start, decaying to 0 in 2 h) ms"));
	event_lab_close(&lab);
	event_lab_open(&lab, "stop-on-gc-over-msec", "100;DecayToZeroHours=1;Floor=40", &env);
	event_lab_story(&lab, "  0 tick\n  7200000 GC/Start pid=1 Count=1\n"
				"  7200040 GC/Stop pid=1 Count=1\n"
			"  7200100 GC/Start pid=1 Count=2\n! 7200141 GC/Stop pid=1 Count=2\n");
	event_lab_close(&lab);
}

/* A million that never stop: the table is bounded; the oldest leave and are counted. */
TEST(open_collections_are_bounded)
{
	struct event_lab lab = {.provider = CLR_PROVIDER};
	struct event_field count = {.name = "Count", .type = FIELD_UINT};
	struct event e = {.kind = EVENT_GENERIC, .provider = CLR_PROVIDER, .name = "GC/Start",
			  .fields = &count, .nfields = 1};
	struct trigger_status s;

	event_lab_open(&lab, "stop-on-gc-over-msec", "1e6", NULL);
	for (count.v.u = 0; count.v.u < 1000000; count.v.u++) {
		e.time_ns = 1000 + count.v.u;
		assert_false(lab.trigger->ops->feed(lab.trigger, &e, &lab.why));
	}
	assert_int_equal(((struct duration *)lab.trigger)->pairs.slots.used, PAIRS_MAX);
	event_lab_story(&lab, "  10 tick\n");
	trigger_status(lab.trigger, &s);
	assert_int_equal(s.counts.lost, 1000000 - PAIRS_MAX);
	/* The newest is still there, and the oldest is not. */
	event_lab_story(&lab, "  20 GC/Stop Count=999999\n  20 GC/Stop Count=1\n");
	assert_int_equal(lab.trigger->counts.orphans, 1);
	event_lab_close(&lab);
}

TEST(two_rules_fire_in_the_same_millisecond)
{
	struct event_lab a = {.provider = CLR_PROVIDER}, b = {.provider = CLR_PROVIDER};
	const char *story = "  10 GC/Start pid=1 Count=1\n! 20 GC/Stop pid=1 Count=1\n";

	event_lab_open(&a, "stop-on-gc-over-msec", "5", NULL);
	event_lab_open(&b, "stop-on-gc-over-msec", "9", NULL);
	event_lab_story(&a, story);
	event_lab_story(&b, story);
	event_lab_close(&a);
	event_lab_close(&b);
}

TEST(rule_needs_the_runtime_provider)
{
	struct event_lab lab = {.provider = CLR_PROVIDER};
	static struct needs needs;

	memset(&needs, 0, sizeof(needs));
	event_lab_open(&lab, "stop-on-gen2-gc", "", NULL);
	assert_int_equal(lab.trigger->ops->needs(lab.trigger, &needs, NULL), 0);
	assert_int_equal(needs.nproviders, 1);
	assert_string_equal(needs.providers[0].name, CLR_PROVIDER);
	assert_int_equal(needs.providers[0].keywords, 1);
	assert_int_equal(needs.providers[0].level, 4);
	event_lab_close(&lab);
}

TEST(bad_spec_error_names_the_part)
{
	event_lab_refused("stop-on-gc-over-msec", "fast", "'fast' is not a number");
	event_lab_refused("stop-on-gc-over-msec", "-1", "below zero");
	event_lab_refused("stop-on-gc-over-msec", "5;Measure=stop", "Measure is gc");
	event_lab_refused("stop-on-gc-over-msec", "5;Foo=1",
			  "unknown key 'Foo'; allowed are Measure, InFlight");
	event_lab_refused("stop-on-gc-suspend-over-msec", "5;Measure=pause",
			  "unknown key 'Measure'");
	event_lab_refused("stop-on-gc-over-msec", "5;Process=", "an empty process name");
	event_lab_refused("stop-on-gc-over-msec", "5;InFlight=maybe",
			  "InFlight is true or false, not 'maybe'");
	event_lab_refused("stop-on-gc-over-msec", "5;Floor", "'Floor' is not Key=Value");
	event_lab_refused("stop-on-gen2-gc", "7", "it takes true, false or ;Process=");
}

static int open_step(void *ctx)
{
	struct trigger_env env = {.process = "a"};
	struct trigger *t = NULL;
	int rc = trigger_open(&gc_over_trigger, ctx, &env, &t, NULL);

	trigger_close(t);
	return rc;
}

TEST(rule_reports_lack_of_memory)
{
	assert_int_equal(alloc_walk(open_step, "5"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gc_over_fires_where_the_story_says),
		cmocka_unit_test(
			pauses_reported_together_fire_when_one_must_be_over_the_limit),
		cmocka_unit_test(status_says_when_a_group_may_hide_one_over_the_limit),
		cmocka_unit_test(status_says_when_no_event_is_of_the_chosen_processes),
		cmocka_unit_test(full_collections_reported_together_are_of_generation_2),
		cmocka_unit_test(events_of_other_providers_are_ignored),
		cmocka_unit_test(suspension_is_by_thread_and_ends_when_all_threads_stand_still),
		cmocka_unit_test(only_dotnet_reports_how_long_suspending_took),
		cmocka_unit_test(the_reason_has_only_what_the_runtime_reported),
		cmocka_unit_test(threads_identify_collections_without_a_number),
		cmocka_unit_test(a_lost_stop_does_not_make_the_next_collection_long),
		cmocka_unit_test(final_pause_has_reason_6),
		cmocka_unit_test(gen2_fires_when_it_begins),
		cmocka_unit_test(a_gen2_collection_lasts_until_its_own_stop),
		cmocka_unit_test(why_and_status_say_who_and_how_long),
		cmocka_unit_test(limit_decays_from_spec_or_option),
		cmocka_unit_test(open_collections_are_bounded),
		cmocka_unit_test(two_rules_fire_in_the_same_millisecond),
		cmocka_unit_test(rule_needs_the_runtime_provider),
		cmocka_unit_test(bad_spec_error_names_the_part),
		cmocka_unit_test(rule_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
