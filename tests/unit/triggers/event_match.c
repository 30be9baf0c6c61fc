/* The rule on any event, fed with stories of events; see event_lab.h. */
#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/event_lab.h"
#include "tests/support/test.h"
#include "triggers/duration.h"
#include "triggers/event_match.h"
#include "triggers/gc_duration.h"

#include <stdio.h>
#include <string.h>

#define KIND "stop-on-etw-event"

static const struct lab_story singles[] = {
	{"fires at the event", "P/A/B", "! 10 A/B pid=1\n"},
	{"other names and parts of it do not fire", "P/A/B",
	 "  10 A/C pid=1\n  11 A pid=1\n  12 XA/B\n  13 A/B/C\n"},
	{"in any case", "p/a/b", "! 10 A/B pid=1\n"},
	{"of another provider", "P/A/B", "  10 A/B Provider=Q\n"},
	{"an opcode that says nothing", "P/A", "! 10 A/Info\n--\n! 11 A\n"},
	{"nor does it have to be there", "P/A/Info", "! 10 A\n"},
	{"as the method of an EventSource is called", "P/MyAStart",
	 "  9 MyA/Stop\n! 10 MyA/Start\n"},
	{"by number", "P/EventID(17)", "  10 EventID(18)\n! 11 EventID(17)\n"},
	{"by number, whatever its name is", "P/eventid(17)",
	 "  10 A EventID=18\n! 11 B/Start EventID=17\n"},
	{"a number that the provider gave wins over a name that looks like one", "P/EventID(17)",
	 "  10 EventID(17) EventID=16\n"},
	{"by the provider's GUID", "{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}/GC/Start",
	 "! 10 GC/Start Provider=Microsoft-Windows-DotNETRuntime\n"},
	{"a GUID that has no name here", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e5/A",
	 "! 10 A Provider={E13C0D23-CCBC-4E12-931B-D9CC2EEE27E5}\n"},
	{"*Name of an EventSource", "*P/A", "! 10 A\n"},
	{"the kernel's provider", "Windows Kernel Trace/FileIO/Create",
	 "! 10 FileIO/Create Provider='Windows Kernel'\n"},
	{"the kernel's processes", "Windows Kernel Trace/Process/Start",
	 "! 10 start pid=5\n  11 exit pid=5\n"},
	{"fires again after its incident, not within it", "P/A", "! 10 A\n  11 A\n--\n! 12 A\n"},
	{"filter: equal", "P/A;FieldFilter=x=5", "  10 A x=4\n  11 A y=5\n! 12 A x=5\n"},
	{"filter: not equal; a missing field never matches", "P/A;FieldFilter=x!=5",
	 "  10 A x=5\n  11 A\n! 12 A x=4\n"},
	{"filter: under", "P/A;FieldFilter=x<5", "  10 A x=5\n! 11 A x=4\n"},
	{"filter: over", "P/A;FieldFilter=x>5", "  10 A x=5\n! 11 A x=6\n"},
	{"filter: at most", "P/A;FieldFilter=x<=5", "  10 A x=6\n! 11 A x=5\n"},
	{"filter: at least", "P/A;FieldFilter=x>=5", "  10 A x=4\n! 11 A x=5\n"},
	{"filter: at least a fraction is not rounded", "P/A;FieldFilter=x>4.5",
	 "  10 A x=4\n! 11 A x=5\n"},
	{"filter: hexadecimal", "P/A;FieldFilter=x=0x1F", "  10 A x=30\n! 11 A x=31\n"},
	{"filter: negative", "P/A;FieldFilter=x<-5", "  10 A x=-5\n  11 A x=3\n! 12 A x=-6\n"},
	{"filter: beyond what a double holds", "P/A;FieldFilter=x=9007199254740993",
	 "  10 A x=9007199254740992\n! 11 A x=9007199254740993\n"},
	{"filter: a text that is a number", "P/A;FieldFilter=x>9", "  10 A x='8'\n! 11 A x='10'\n"},
	{"filter: text, in any case", "P/A;FieldFilter=f=Web.Config",
	 "  10 A f=web.confi\n! 11 A f=WEB.config\n"},
	{"filter: expression, in any case, anywhere", "P/A;FieldFilter=f~\\.conf(ig)?$",
	 "  10 A f=a.config.bak\n! 11 A f='C:\\a b.CONFIG'\n"},
	{"filter: expression on a number", "P/A;FieldFilter=x~^4", "  10 A x=14\n! 11 A x=41\n"},
	{"filters: all must pass", "P/A;FieldFilter=x=1;FieldFilter=y=2",
	 "  10 A x=1 y=1\n  11 A x=2 y=2\n! 12 A x=1 y=2\n"},
	{"filter: the process's own", "P/A;FieldFilter=ProcessName=nginx;FieldFilter=ProcessID>5",
	 "  10 A pid=9 exe=bash\n  11 A pid=5 exe=nginx\n! 12 A pid=6 exe=nginx\n"},
	{"filter: each name of the process", "P/A;FieldFilter=ProcessName=sh;"
	 "FieldFilter=ProcessName!=bash;FieldFilter=ProcessName=dash",
	 "  10 A pid=5 exe=dash\n  11 A pid=6 exe=sh\n! 12 A pid=7 exe=dash args='sh -x'\n"},
	{"process", "P/A;Process=nginx", "  10 A pid=9 exe=bash\n  11 A\n! 12 A pid=6 exe=nginx\n"},
	{"keys that do nothing here",
	 "P/A;Verbose=true;BufferSizeMB=64;Keywords=0xFF;Level=Verbose", "! 10 A\n"},
};

static const struct lab_story pairs[] = {
	{"fires at the stop", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start id=7\n! 111 R/Stop id=7\n"},
	{"equal is not over", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start id=7\n  110 R/Stop id=7\n"},
	{"in small letters", "P/r/start;TriggerMSec=100", "  10 R/Start id=7\n! 111 R/Stop id=7\n"},
	{"by number: the next one stops", "P/EventID(4);TriggerMSec=100",
	 "  10 EventID(4) id=7\n! 111 EventID(5) id=7\n"},
	{"by number of events that have names", "P/EventID(4);TriggerMSec=100",
	 "  10 R/Start EventID=4 id=7\n! 111 R/Stop EventID=5 id=7\n"},
	{"a field that no event has: the process", "P/EventID(4);TriggerMSec=100;StartStopID=1",
	 "  10 R EventID=4 pid=1 id=7\n  20 R EventID=4 pid=2 id=8\n"
	 "! 111 S EventID=5 pid=1 id=9\n"},
	{"a stop that was named, with its provider", "P/R/Begin;TriggerMSec=100;StopEvent=P/R/End",
	 "  10 R/Begin id=7\n! 111 R/End id=7\n"},
	{"orphan stop", "P/R/Start;TriggerMSec=100", "  10 R/Stop id=7\n  999 R/Stop id=7\n"},
	{"missing stop", "P/R/Start;TriggerMSec=100", "  10 R/Start id=7\n  5000 tick\n"},
	{"missing stop, in flight", "P/R/Start;TriggerMSec=100;InFlight=true",
	 "  10 R/Start id=7\n  200 tick\n! 300 tick\n--\n  400 tick\n  500 R/Stop id=7\n"},
	{"a start again replaces the open one", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start id=7\n  100 R/Start id=7\n  150 R/Stop id=7\n"},
	{"first field tells them apart", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start id=7 x=1\n  20 R/Start id=8 x=1\n  30 R/Stop id=7\n! 121 R/Stop id=8\n"},
	{"and is a value, not 16 bits of the pid", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start pid=65537 id=7\n  200 R/Stop pid=1 id=7\n! 201 R/Stop pid=65537 id=7\n"},
	{"without fields the thread does", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start pid=1 tid=5\n  20 R/Start pid=1 tid=6\n  30 R/Stop pid=1 tid=6\n"
	 "! 111 R/Stop pid=1 tid=5\n"},
	{"by thread", "P/R/Start;TriggerMSec=100;StartStopID=ThreadID",
	 "  10 R/Start pid=1 tid=5 id=1\n  115 R/Stop pid=1 tid=6 id=1\n"
	 "! 120 R/Stop pid=1 tid=5 id=2\n"},
	{"by a named field", "P/R/Start;TriggerMSec=100;StartStopID=key",
	 "  10 R/Start id=1 key=a\n  115 R/Stop id=1 key=b\n! 120 R/Stop id=2 key=a\n"},
	{"a named field wins over an activity path", "P/R/Start;TriggerMSec=100;StartStopID=key",
	 "  10 R/Start key=a ActivityID=00000011-0000-0000-0000-0000be999d59\n"
	 "! 120 R/Stop key=a\n"},
	{"by activity", "P/R/Start;TriggerMSec=100;StartStopID=ActivityID",
	 "  10 R/Start id=1 ActivityID=x\n  115 R/Stop id=1 ActivityID=y\n"
	 "! 120 R/Stop id=2 ActivityID=x\n"},
	/* 0x11 + 0x599D99AD = 0x599D99BE, little-endian at the end. */
	{"an activity path before the first field", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start m=GET ActivityID=00000011-0000-0000-0000-0000be999d59\n"
	 "  115 R/Stop m=GET ActivityID=00000012-0000-0000-0000-0000bf999d59\n"
	 "! 120 R/Stop m=PUT ActivityID=00000011-0000-0000-0000-0000be999d59\n"},
	{"other activities are none: the first field", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start id=1 ActivityID=00000011-0000-0000-0000-000000000059\n"
	 "! 120 R/Stop id=1 ActivityID=other\n"},
	{"texts that differ late", "P/R/Start;TriggerMSec=100",
	 "  10 R/Start u=/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1\n"
	 "  115 R/Stop u=/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2\n"
	 "! 120 R/Stop u=/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1\n"},
	{"filters look at the start only", "P/R/Start;TriggerMSec=100;FieldFilter=u~^/pay",
	 "  10 R/Start id=1 u=/pay\n  11 R/Start id=2 u=/img\n  500 R/Stop id=2\n"
	 "! 501 R/Stop id=1\n"},
	{"TriggerMSec 0: every start fires", "P/R/Start;TriggerMSec=0;StopEvent=R/Stop",
	 "! 10 R/Start id=1\n"},
	{"a process that ends takes its starts along", "P/R/Start;TriggerMSec=100;InFlight=true",
	 "  10 R/Start pid=4 id=1\n  20 exit pid=4\n  900 tick\n"},
	{"decay", "P/R/Start;TriggerMSec=100;DecayToZeroHours=1",
	 "  0 tick\n  1800000 R/Start id=1\n! 1800051 R/Stop id=1\n--\n  7200000 R/Start id=1\n"
	 "! 7200000.001 R/Stop id=1\n"},
	{"a clock that jumps back", "P/R/Start;TriggerMSec=100;InFlight=true",
	 "  5000 R/Start id=1\n  100 tick\n  200 R/Stop id=1\n"},
};

TEST(single_events_fire_where_the_story_says)
{
	event_lab_stories(KIND, "P", singles, COUNT_OF(singles));
}

TEST(pairs_fire_where_the_story_says)
{
	event_lab_stories(KIND, "P", pairs, COUNT_OF(pairs));
}

/* Of two isolates of V8, the one that ends first does not end the other's. */
TEST(collections_of_v8_and_cpython_are_paired_by_thread)
{
	static const struct lab_story v8[] = {
		{"two threads", "V8/GC/Start;TriggerMSec=50",
		 "  10 GC/Start pid=1 tid=1 Reason=1\n  20 GC/Start pid=1 tid=2 Reason=1\n"
		 "  25 GC/Stop pid=1 tid=2 Reason=1\n! 110 GC/Stop pid=1 tid=1 Reason=1\n"},
	}, cpython[] = {
		{"two threads", "cpython/GCStart;TriggerMSec=50;StopEvent=GC/Stop",
		 "  10 GC/Start pid=1 tid=1 Reason=1\n  20 GC/Start pid=1 tid=2 Reason=1\n"
		 "  25 GC/Stop pid=1 tid=2 Reason=1\n! 110 GC/Stop pid=1 tid=1 Reason=1\n"},
	};

	event_lab_stories(KIND, V8_PROVIDER, v8, 1);
	event_lab_stories(KIND, CPYTHON_PROVIDER, cpython, 1);
}

TEST(a_stop_without_a_path_is_of_the_same_program)
{
	static const struct lab_story uprobe[] = {
		{"a function",
		 "uprobe:/bin/web:begin;TriggerMSec=50;StopEvent=end;StartStopID=Arg1",
		 "  10 /bin/web:begin Arg1=1\n  20 /bin/other:end Arg1=1\n"
		 "! 110 /bin/web:end Arg1=1\n"},
		{"of another one", "uprobe:/bin/web:begin;TriggerMSec=50;"
		 "StopEvent=uprobe:/bin/other:end;StartStopID=Arg1",
		 "  10 /bin/web:begin Arg1=1\n! 110 /bin/other:end Arg1=1\n"},
	}, usdt[] = {
		{"a probe", "usdt:/bin/web:web:query;TriggerMSec=50;StopEvent=answer;"
		 "StartStopID=Arg1",
		 "  10 /bin/web:web:query Arg1=1\n! 110 /bin/web:web:answer Arg1=1\n"},
	};

	event_lab_stories(KIND, "uprobe", uprobe, 2);
	event_lab_stories(KIND, "usdt", usdt, 1);
}

TEST(why_names_the_event_and_its_fields)
{
	struct event_lab lab = {.provider = "P"};
	struct trigger_status s;

	event_lab_open(&lab, KIND, "P/A;FieldFilter=x>1", NULL);
	event_lab_story(&lab, "  9 A x=1\n! 10 A pid=5 tid=6 exe=nginx x=2 f='a b'\n");
	assert_string_equal(buf_text(&lab.why), "P/A of nginx (pid 5), thread 6: x=2, f=a b");
	assert_string_equal(lab.trigger->spec, "StopOnEtwEvent:P/A;FieldFilter=x>1");
	trigger_status(lab.trigger, &s);
	assert_int_equal(s.counts.seen, 2);
	assert_int_equal(s.counts.dropped_filter, 1);
	assert_int_equal(s.counts.matched, 1);
	event_lab_close(&lab);

	event_lab_open(&lab, KIND, "P/R/Start;TriggerMSec=100", NULL);
	event_lab_story(&lab, "  10 R/Start pid=5 exe=nginx id=7\n! 1260.5 R/Stop pid=5 id=7\n");
	assert_string_equal(
		buf_text(&lab.why),
		"R/Start of nginx (pid 5) took 1250.5 ms, over its limit of 100 ms, thread 5");
	assert_true(lab.value == 1250.5 && lab.limit == 100);
	event_lab_close(&lab);
}

/* Ten matches more than it takes to tire the expression, at this time. */
static void tire(struct event_lab *lab, uint64_t ms)
{
	char line[120];
	int i;

	snprintf(line, sizeof(line), "  %llu tick\n", (unsigned long long)ms);
	event_lab_feed(lab, line);
	snprintf(line, sizeof(line), " %llu A f=%s!", (unsigned long long)ms,
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	for (i = 0; i < 110; i++)
		assert_false(event_lab_feed(lab, line));
}

static void expect_rest(struct event_lab *lab, const char *tick, const char *text)
{
	struct trigger_status s;

	event_lab_feed(lab, tick);
	trigger_status(lab->trigger, &s);
	assert_int_equal(s.phase == TRIGGER_RESTING, text != NULL);
	if (text && !strstr(s.text, text))
		fail_msg("'%s' does not say '%s'", s.text, text);
}

TEST(an_expensive_expression_rests_and_comes_back)
{
	struct event_lab lab = {.provider = "P"};

	event_lab_open(&lab, KIND, "P/A;FieldFilter=f~^(a+)+$", NULL);
	tire(&lab, 10);
	expect_rest(&lab, " 59000 tick", "rests for 60 s: the expression '^(a+)+$' took over");
	assert_false(event_lab_feed(&lab, " 59001 A f=aaa"));
	expect_rest(&lab, " 60100 tick", NULL);
	assert_true(event_lab_feed(&lab, " 60101 A f=aaa"));
	event_lab_close(&lab);
}

TEST(rests_double_up_to_an_hour_and_begin_anew_after_an_hour_of_work)
{
	struct event_lab lab = {.provider = "P"};

	event_lab_open(&lab, KIND, "P/A;FieldFilter=f~^(a+)+$", NULL);
	tire(&lab, 10);
	tire(&lab, 61000);
	expect_rest(&lab, " 61100 tick", "rests for 120 s");
	tire(&lab, 182000);
	expect_rest(&lab, " 182100 tick", "rests for 240 s");
	tire(&lab, 423000 + 3600000);
	expect_rest(&lab, " 4023100 tick", "rests for 60 s");
	event_lab_close(&lab);
}

TEST(rule_needs_its_provider)
{
	struct event_lab lab = {.provider = "P"};
	static struct needs needs;

	memset(&needs, 0, sizeof(needs));
	event_lab_open(&lab, KIND, "P/A;Keywords=8000;Level=Warning", NULL);
	assert_int_equal(lab.trigger->ops->needs(lab.trigger, &needs, NULL), 0);
	assert_int_equal(needs.nproviders, 1);
	assert_string_equal(needs.providers[0].name, "P");
	assert_int_equal(needs.providers[0].keywords, 0x8000);
	assert_int_equal(needs.providers[0].level, 3);
	event_lab_close(&lab);
}

TEST(bad_spec_error_names_the_part)
{
	event_lab_refused(KIND, "GC/", "is not PROVIDER/EVENT");
	event_lab_refused(KIND, "Provider", "is not PROVIDER/EVENT");
	event_lab_refused(KIND, "/Start", "is not PROVIDER/EVENT");
	event_lab_refused(KIND, "P/A;Foo=1", "unknown key 'Foo'; allowed are Keywords");
	event_lab_refused(KIND, "P/A;FieldFilter=x y", "'x y' is not FIELD, then one of");
	event_lab_refused(KIND, "P/A;FieldFilter=x=>5", "'x=>5' is not FIELD");
	event_lab_refused(KIND, "P/A;FieldFilter==5", "'=5' is not FIELD");
	event_lab_refused(KIND, "P/A;FieldFilter=x~(",
			  "'(' is wrong at character 2: missing closing");
	event_lab_refused(KIND, "P/A;Keywords=xyz", "'xyz' is not a hexadecimal number");
	event_lab_refused(KIND, "P/A;Level=7", "Level is 0 to 5");
	event_lab_refused(KIND, "P/A;TriggerMSec=5", "add ;StopEvent=NAME");
	event_lab_refused(KIND, "P/A;TriggerMSec=5;StopEvent=a", "StopEvent is the start itself");
	event_lab_refused(KIND, "P/A/Start;TriggerMSec=fast", "TriggerMSec 'fast' is not a number");
	event_lab_refused(KIND, "P/A/Start;TriggerMSec=-1", "below zero");
	event_lab_refused(KIND, "P/A;InFlight=true", "need TriggerMSec");
}

TEST(filters_that_exclude_each_other_are_refused)
{
	static const struct { const char *filters[2]; bool excluded; } cases[] = {
		{{"A>5", "A<3"}, true}, {{"A<3", "a>=5"}, true}, {{"A>5", "A<5"}, true},
		{{"A>=5", "A<5"}, true},
		{{"A>=5", "A<=5"}, false}, {{"A>3", "A<5"}, false}, {{"A>5", "B<3"}, false},
		{{"A>10", "A<9"}, true}, {{"A=5", "A=5.0"}, false}, {{"A=5", "A=6"}, true},
		{{"A=16", "A!=0x10"}, true}, {{"A=16", "A!=17"}, false}, {{"A=1", "A>5"}, true},
		{{"A<=5", "A=5"}, false}, {{"A=x", "A=X"}, false}, {{"A=x", "A!=X"}, true},
		{{"A=x", "A=5"}, true}, {{"A>b", "A<a"}, true}, {{"A>a", "A<b"}, false},
		{{"A=y", "A~x"}, false}, {{"A!=1", "A!=2"}, false}, {{"A=B", "A<a"}, false},
		{{"A>9007199254740992", "A<9007199254740994"}, false},
	};
	char spec[100];
	size_t i;

	for (i = 0; i < COUNT_OF(cases); i++) {
		struct trigger_env env = {.process = NULL};
		struct trigger *t = NULL;
		struct err err = {0};
		int rc;

		snprintf(spec, sizeof(spec), "P/A;FieldFilter=%s;Level=4;FieldFilter=%s",
			 cases[i].filters[0], cases[i].filters[1]);
		rc = trigger_open(&event_match_trigger, spec, &env, &t, &err);
		trigger_close(t);
		if (rc != (cases[i].excluded ? ERR_USAGE : 0))
			fail_msg("%s: %s", spec, rc ? err.text : "not refused");
		if (rc)
			assert_non_null(strstr(err.text, "no event passes both "));
	}
	event_lab_refused(KIND, "P/A;FieldFilter=A<", "has nothing to compare with");
	event_lab_refused(KIND, "P/A;Level=4;level=5", "level is given twice");
}

static int open_step(void *ctx)
{
	struct trigger_env env = {.process = NULL};
	struct trigger *t = NULL;
	int rc = trigger_open(&event_match_trigger, ctx, &env, &t, NULL);

	trigger_close(t);
	return rc;
}

TEST(rule_reports_lack_of_memory)
{
	assert_true(alloc_walk(open_step,
			       "P/A/Start;TriggerMSec=5;FieldFilter=a=b;StartStopID=id") > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_events_fire_where_the_story_says),
		cmocka_unit_test(pairs_fire_where_the_story_says),
		cmocka_unit_test(collections_of_v8_and_cpython_are_paired_by_thread),
		cmocka_unit_test(a_stop_without_a_path_is_of_the_same_program),
		cmocka_unit_test(why_names_the_event_and_its_fields),
		cmocka_unit_test(an_expensive_expression_rests_and_comes_back),
		cmocka_unit_test(rests_double_up_to_an_hour_and_begin_anew_after_an_hour_of_work),
		cmocka_unit_test(rule_needs_its_provider),
		cmocka_unit_test(bad_spec_error_names_the_part),
		cmocka_unit_test(filters_that_exclude_each_other_are_refused),
		cmocka_unit_test(rule_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
