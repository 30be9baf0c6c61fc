/*
 * What every rule on a duration must do, kind by kind: the same stories, with each kind's own
 * starts and stops in place of <1 (a start on one thread), >1 (its stop), <2 and >2 (on another).
 */
#include "base/array.h"
#include "tests/support/event_lab.h"
#include "tests/support/test.h"
#include "triggers/gc_duration.h"
#include "triggers/pairs.h"

#include <stdio.h>
#include <string.h>

#define IIS "{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}"
#define APP_FABRIC "{A77DCF21-545F-4191-B3D0-C396CF2683F2}"

static const struct kind {
	const char *kind, *spec, *provider;  /* a limit of 100 ms; keys follow */
	const char *start[2], *stop[2];
} kinds[] = {
	{"stop-on-gc-over-msec",
	 "100",
	 CLR_PROVIDER,
	 {"GC/Start pid=1 tid=5 Count=1", "GC/Start pid=1 tid=6 Count=2"},
	 {"GC/Stop pid=1 tid=5 Count=1", "GC/Stop pid=1 tid=6 Count=2"}},
	{"stop-on-gc-over-msec",
	 "100;Measure=pause",
	 CLR_PROVIDER,
	 {"GC/SuspendEEStart pid=1 tid=5 Reason=1",
	  "GC/SuspendEEStart pid=1 tid=6 Reason=1 ClrInstanceID=2"},
	 {"GC/RestartEEStop pid=1 tid=5", "GC/RestartEEStop pid=1 tid=6 ClrInstanceID=2"}},
	{"stop-on-gc-suspend-over-msec",
	 "100",
	 CLR_PROVIDER,
	 {"GC/SuspendEEStart pid=1 tid=5 Reason=1", "GC/SuspendEEStart pid=1 tid=6 Reason=6"},
	 {"GC/SuspendEEStop pid=1 tid=5", "GC/SuspendEEStop pid=1 tid=6"}},
	{"stop-on-bgc-final-pause-over-msec",
	 "100",
	 CLR_PROVIDER,
	 {"GC/SuspendEEStart pid=1 tid=5 Reason=6", "GC/SuspendEEStart pid=1 tid=6 Reason=6"},
	 {"GC/RestartEEStop pid=1 tid=5", "GC/RestartEEStop pid=1 tid=6"}},
	{"stop-on-etw-event",
	 "P/R/Start;TriggerMSec=100",
	 "P",
	 {"R/Start pid=1 tid=5 id=1", "R/Start pid=1 tid=6 id=2"},
	 {"R/Stop pid=1 tid=5 id=1", "R/Stop pid=1 tid=6 id=2"}},
	{"stop-on-etw-event",
	 "P/EventID(7);TriggerMSec=100;StartStopID=ThreadID",
	 "P",
	 {"A EventID=7 pid=1 tid=5 id=1", "A EventID=7 pid=1 tid=6 id=1"},
	 {"B EventID=8 pid=1 tid=5 id=1", "B EventID=8 pid=1 tid=6 id=1"}},
	{"stop-on-request-over-msec",
	 "100",
	 IIS,
	 {"EventID(1) pid=1 tid=5 ContextId=a", "Request/Begin EventID=1 pid=1 tid=6 ContextId=b"},
	 {"EventID(2) pid=1 tid=5 ContextId=a", "Request/End EventID=2 pid=1 tid=6 ContextId=b"}},
	{"stop-on-request-over-msec",
	 "100",
	 "Microsoft.AspNetCore.Hosting",
	 {"Request/Start pid=1 tid=5 ActivityID=x", "Request/Start pid=1 tid=6 ActivityID=y"},
	 {"Request/Stop pid=1 tid=5 ActivityID=x", "Request/Stop pid=1 tid=6 ActivityID=y"}},
	/* By process only, as in PerfView: the two are of two processes. */
	{"stop-on-app-fabric-over-msec",
	 "100",
	 APP_FABRIC,
	 {"EventID(123) pid=1 tid=5", "EventID(123) pid=2 tid=6"},
	 {"EventID(127) pid=1 tid=5", "EventID(127) pid=2 tid=6"}},
};

static const struct {
	const char *what, *keys, *lines;
} stories[] = {
	{"fires", "", "  10 <1\n! 111 >1\n"},
	{"does not fire", "", "  10 <1\n  60 >1\n"},
	{"equal is not over", "", "  10 <1\n  110 >1\n"},
	{"is armed again after its incident", "",
	 "  10 <1\n! 111 >1\n  112 <1\n  300 >1\n--\n  400 <1\n! 600 >1\n"},
	{"a stop without a start", "", "  10 >1\n  900 >1\n"},
	{"a start without a stop", ";InFlight=false", "  10 <1\n  100 tick\n  3000000 tick\n"},
	{"a start whose stop does not come in time", ";InFlight=true",
	 "  10 <1\n  200 tick\n! 311 tick\n--\n  400 tick\n"},
	{"two at once on two threads", ";InFlight=false",
	 "  10 <1\n  60 <2\n! 111 >1\n--\n  160 >2\n"},
	{"the second of them", ";InFlight=false", "  10 <1\n  60 <2\n  110 >1\n! 161 >2\n"},
	{"a process that ends", ";InFlight=true", "  10 <1\n  20 exit pid=1\n  900 tick\n"},
	{"a clock that jumps back", ";InFlight=true", "  5000 <1\n  100 tick\n  200 >1\n"},
	{"a clock that jumps ahead", ";InFlight=false", "  10 <1\n! 999999 >1\n"},
	{"decay: at its start", ";InFlight=false;DecayToZeroHours=1",
	 "  0 tick\n  0 <1\n  99.9 >1\n  100 <1\n! 201 >1\n"},
	{"decay: at a half", ";InFlight=false;DecayToZeroHours=1",
	 "  0 tick\n  1800000 <1\n  1800049.9 >1\n  1800100 <1\n! 1800151 >1\n"},
	{"decay: at its end", ";InFlight=false;DecayToZeroHours=1",
	 "  0 tick\n  3600000 <1\n! 3600000.001 >1\n"},
	{"decay: beyond, and never below zero", ";InFlight=false;DecayToZeroHours=1",
	 "  0 tick\n  5400000 <1\n  5400000 >1\n  5400001 <1\n! 5400001.001 >1\n"},
	{"decay: goes on after a firing", ";InFlight=false;DecayToZeroHours=1",
	 "  0 tick\n  100 <1\n! 300 >1\n--\n  1800000 <1\n! 1800051 >1\n"},
	{"of a process that is not asked for", ";Process=3", "  10 <1\n  311 >1\n  900 tick\n"},
};

/* The story with this kind's events in it. */
static void put_story(const struct kind *k, const char *lines, struct buf *out)
{
	for (; *lines; lines++) {
		if (*lines == '<' || *lines == '>') {
			buf_puts(out, (*lines == '<' ? k->start : k->stop)[lines[1] - '1']);
			lines++;
		} else {
			buf_putc(out, *lines);
		}
	}
}

TEST(every_rule_on_a_duration_does_the_same)
{
	struct buf spec = {0}, lines = {0};
	size_t k, i;

	for (k = 0; k < COUNT_OF(kinds); k++) {
		for (i = 0; i < COUNT_OF(stories); i++) {
			struct event_lab lab = {.provider = kinds[k].provider};

			buf_reset(&spec);
			buf_reset(&lines);
			buf_printf(&spec, "%s%s", kinds[k].spec, stories[i].keys);
			put_story(&kinds[k], stories[i].lines, &lines);
			print_message("  %s %s: %s\n", kinds[k].kind, kinds[k].spec,
				      stories[i].what);
			event_lab_open(&lab, kinds[k].kind, buf_text(&spec), NULL);
			event_lab_story(&lab, buf_text(&lines));
			event_lab_close(&lab);
		}
	}
	buf_free(&spec);
	buf_free(&lines);
}

TEST(two_rules_fire_in_the_same_millisecond)
{
	struct buf lines = {0};
	size_t k;

	for (k = 0; k < COUNT_OF(kinds); k++) {
		struct event_lab a = {.provider = kinds[k].provider}, b = a;

		buf_reset(&lines);
		put_story(&kinds[k], "  10 <1\n! 111 >1\n", &lines);
		event_lab_open(&a, kinds[k].kind, kinds[k].spec, NULL);
		event_lab_open(&b, kinds[k].kind, kinds[k].spec, NULL);
		event_lab_story(&a, buf_text(&lines));
		event_lab_story(&b, buf_text(&lines));
		event_lab_close(&a);
		event_lab_close(&b);
	}
	buf_free(&lines);
}

/* Of a million starts without stops, the table keeps the newest. */
TEST(a_million_open_starts_are_bounded)
{
	static const struct { const char *kind, *spec, *provider, *name; } wanted[] = {
		{"stop-on-etw-event", "P/R/Start;TriggerMSec=1e9", "P", "R/Start"},
	};
	struct event_field id = {.name = "id", .type = FIELD_UINT};
	size_t k;

	for (k = 0; k < COUNT_OF(wanted); k++) {
		struct event_lab lab = {.provider = wanted[k].provider};
		struct event e = {.kind = EVENT_GENERIC,
				  .provider = wanted[k].provider,
				  .name = wanted[k].name,
				  .fields = &id,
				  .nfields = 1};
		struct trigger_status s;

		event_lab_open(&lab, wanted[k].kind, wanted[k].spec, NULL);
		for (id.v.u = 0; id.v.u < 1000000; id.v.u++) {
			e.time_ns = 1000 + id.v.u;
			assert_false(lab.trigger->ops->feed(lab.trigger, &e, &lab.why));
		}
		event_lab_story(&lab, "  10 tick\n  11 tick\n");
		trigger_status(lab.trigger, &s);
		assert_int_equal(s.counts.lost, 1000000 - PAIRS_MAX);
		event_lab_close(&lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_on_a_duration_does_the_same),
		cmocka_unit_test(two_rules_fire_in_the_same_millisecond),
		cmocka_unit_test(a_million_open_starts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
