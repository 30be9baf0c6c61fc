/*
 * Rules on texts and on processes: exceptions, lines of logs, starts and ends; and request presets.
 */
#include "base/array.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/event_lab.h"
#include "tests/support/test.h"
#include "triggers/gc_duration.h"
#include "triggers/request.h"

#include <stdio.h>
#include <string.h>

#define THROW "Exception/Start pid=7 tid=8 exe=shop ExceptionType="

TEST(exceptions_match_by_type_and_message)
{
	static const struct lab_story stories[] = {
		{"any", "", "! 10 " THROW "System.IO.IOException ExceptionMessage='disk full'\n"},
		{"by message", "full$", "  9 " THROW "E ExceptionMessage='full disk'\n"
		 "! 10 " THROW "E ExceptionMessage='disk full'\n"},
		{"by type and message", "^E: disk",
		 "! 10 " THROW "E ExceptionMessage='disk full'\n"},
		{"by the type alone", "^System\\.IO\\.IOException$",
		 "  9 " THROW "System.IO.IOExceptionX ExceptionMessage=x\n"
		 "! 10 " THROW "System.IO.IOException ExceptionMessage=x\n"},
		{"with regard to case", "disk", "  10 " THROW "E ExceptionMessage='Disk full'\n"},
		{"without type and message nothing matches but the empty one", ".*",
		 "  10 Exception/Start pid=7\n"},
		{"nor does it throw one away", "", "! 10 Exception/Start pid=7\n"},
		{"of a process", "E;Process=other", "  10 " THROW "E ExceptionMessage=x\n"},
		{"a ';' may be in the expression", "a;b",
		 "! 10 " THROW "E ExceptionMessage='a;b'\n"},
		{"of other events", "E",
		 "  10 Exception/Stop pid=7 ExceptionType=E ExceptionMessage=x\n"
		 "  11 " THROW "E Provider=Other ExceptionMessage=x\n"},
		{"again after its incident", "E", "! 10 " THROW "E ExceptionMessage=x\n  11 " THROW
		 "E ExceptionMessage=x\n--\n! 12 " THROW "E ExceptionMessage=x\n"},
	};
	struct event_lab lab = {.provider = CLR_PROVIDER};

	event_lab_stories("stop-on-exception", CLR_PROVIDER, stories, COUNT_OF(stories));
	event_lab_open(&lab, "stop-on-exception", "full", NULL);
	event_lab_story(&lab, "! 10 " THROW "System.IO.IOException ExceptionMessage='disk full'\n");
	assert_string_equal(buf_text(&lab.why),
			    "exception System.IO.IOException: disk full, of shop "
			    "(pid 7), thread 8");
	assert_string_equal(lab.trigger->spec, "StopOnException:full");
	event_lab_close(&lab);
	event_lab_refused("stop-on-exception", "(", "is wrong at character 2");
}

TEST(log_lines_match_by_log_and_text)
{
	static const struct lab_story stories[] = {
		{"in any case, anywhere", "out of memory",
		 "  9 log Log=Application Message='fine'\n"
		 "! 10 log Log=Application Message='Out of Memory: Killed'\n"},
		{"of another log", "x", "  10 log Log=System Message=x\n"},
		{"a log that is named", "system@x",
		 "  9 log Log=Application Message=x\n! 10 log Log=System Message=x\n"},
		{"a file", "/var/log/a.log@timed out",
		 "! 10 log Log=/var/log/a.log Message='it timed out'\n"},
		{"a channel", "Microsoft-Windows-Kernel-Power/Thermal@x",
		 "! 10 log Log=Microsoft-Windows-Kernel-Power/Thermal Message=x\n"},
		{"any name", "Log=Shop@x", "! 10 log Log=Shop Message=x\n"},
		{"user@host is an expression", "user@host", "  9 log Log=user Message=host\n"
		 "! 10 log Log=Application Message='for user@host'\n"},
		{"as PerfView shows it", "^Type: Error EventId: 1000 Message: a",
		 "! 10 log Log=Application Type=Error EventId=1000 Message='a fault'\n"},
		{"within its incident", "x",
		 "! 9 log Log=Application Message=x\n  10 log Log=Application Message=x\n"},
	};
	struct event_lab lab = {0};
	static struct needs needs;

	event_lab_stories("stop-on-event-log-message", NULL, stories, COUNT_OF(stories));
	event_lab_open(&lab, "stop-on-event-log-message", "kernel@oom", NULL);
	event_lab_story(&lab, "! 10 log Log=kernel Message='oom-killer'\n");
	assert_string_equal(buf_text(&lab.why), "log kernel: oom-killer");
	assert_int_equal(lab.trigger->ops->needs(lab.trigger, &needs, NULL), 0);
	assert_int_equal(needs.nlogs, 1);
	assert_string_equal(needs.logs[0].name, "kernel");
	event_lab_close(&lab);
	event_lab_refused("stop-on-event-log-message", "System@", "has no expression");
	event_lab_refused("stop-on-event-log-message", "", "has no expression");
	event_lab_refused("stop-on-event-log-message", "[", "is wrong at character");
}

#define LINE "log Log=/a.log Message="

TEST(a_number_in_a_line_has_a_limit)
{
	static const struct lab_story stories[] = {
		{"over it", "/a.log@took ([0-9.]+) s;Number>0.5", "  8 " LINE "'took 0.5 s'\n"
		 "  9 " LINE "'took x s'\n! 10 " LINE "'it took 0.51 s'\n"},
		{"under it", "/a.log@free ([0-9]+);number <= 1K",
		 "  9 " LINE "'free 1025'\n! 10 " LINE "'free 1024'\n"},
		{"a group that took no part", "/a.log@a|b ([0-9]+);Number>1",
		 "  9 " LINE "a\n! 10 " LINE "'b 2'\n"},
		{"no number", "/a.log@a (.*);Number>1",
		 "  7 " LINE "'a 2x'\n  8 " LINE "'a '\n  9 " LINE "'a -'\n! 10 " LINE "'a 2'\n"},
		{"words that look like it", "/a.log@;Numbers?;Number ([0-9]+);Number>1",
		 "! 10 " LINE "';Number;Number 2'\n"},
		{"only worse ones", "/a.log@a ([0-9]+);Number>1;HighWaterHours=1",
		 "! 10 " LINE "'a 5'\n--\n  11 " LINE "'a 5'\n! 12 " LINE "'a 6'\n"},
	};
	struct event_lab lab = {0};
	struct trigger_status status;

	event_lab_stories("stop-on-event-log-message", NULL, stories, COUNT_OF(stories));
	event_lab_open(&lab, "stop-on-event-log-message", "/a.log@GET .* ([0-9.]+)$;Number>0.5",
		       NULL);
	event_lab_story(&lab, "! 10 " LINE "'GET /slow 0.75'\n");
	assert_string_equal(buf_text(&lab.why),
			    "0.75 was over the limit of 0.5, in log /a.log: GET /slow 0.75");
	trigger_status(lab.trigger, &status);
	assert_non_null(strstr(status.text, "0.75 of > 0.5"));
	event_lab_close(&lab);
	event_lab_refused("stop-on-event-log-message", "a;Number>1", "it has none");
	event_lab_refused("stop-on-event-log-message", "/a.log@;Number>1", "has no expression");
	event_lab_refused("stop-on-event-log-message", "(a);Number>", "number");
	event_lab_refused("stop-on-event-log-message", "(a);Number>1;Foo=2", "unknown key");
}

TEST(processes_start_end_and_crash)
{
	static const struct lab_story stories[] = {
		{"an end", "shop",
		 "  8 start pid=7 exe=shop\n  9 exit pid=8 exe=other\n! 10 exit pid=7 exe=shop\n"},
		{"a start", "shop;On=start",
		 "! 10 start pid=7 exe=shop\n  11 exit pid=7 exe=shop\n"},
		{"a link to the program", "sh",
		 "! 10 exit pid=7 exe=/bin/dash args='/bin/sh -c x'\n"},
		{"a script", "manage.py,other",
		 "  9 exit pid=6 exe=/bin/python3 args='python3 -c manage.py'\n"
		 "! 10 exit pid=7 exe=/bin/python3 args='python3 -u /srv/manage.py'\n"},
		{"by pid, of any", "7", "! 10 exit pid=7 exe=x\n"},
		{"all", "*", "! 10 exit pid=7\n"},
		{"an exit code of Windows", "shop;ExitCode!=0",
		 "  9 exit pid=7 exe=shop ExitStatus=0\n"
		 "! 10 exit pid=7 exe=shop ExitStatus=3\n"},
		{"an end of which nothing is known", "shop;ExitCode!=0",
		 "  9 exit pid=7 exe=shop\n"},
		{"an exit code of Linux", "shop;ExitCode=3", "  8 exit pid=7 exe=shop\n"
		 "  9 Process/Exit pid=7 ExitCode=2 Signal=0\n"
		 "! 10 Process/Exit pid=7 ExitCode=3 Signal=0\n"},
		{"a fault of Linux", "*;On=crash", "  8 Process/Exit pid=7 ExitCode=3 Signal=0\n"
		 "  9 Process/Exit pid=7 ExitCode=0 Signal=15\n"
		 "! 10 Process/Exit pid=7 ExitCode=0 Signal=11\n"},
		{"a fault of Windows", "*;On=crash",
		 "  9 exit pid=7 ExitStatus=1\n! 10 exit pid=7 ExitStatus=-1073741819\n"},
		{"a signal", "*;Signal=SIGKILL", "  9 Process/Exit pid=7 ExitCode=0 Signal=11\n"
		 "! 10 Process/Exit pid=7 ExitCode=0 Signal=9\n"},
		{"a signal is not exit code 0", "*;ExitCode!=0",
		 "! 10 Process/Exit pid=7 ExitCode=0 Signal=9\n"},
		{"nor is it exit code 0 there", "*;ExitCode=0",
		 "  10 Process/Exit pid=7 ExitCode=0 Signal=9\n"},
		{"a crash with its stack: at the signal that nobody handles",
		 "shop;On=crash;Stack=true",
		 "  7 signal_deliver Provider=signal pid=7 exe=shop sig=11 sa_handler=4096\n"
		 "  8 signal_deliver Provider=signal pid=7 exe=shop sig=15 sa_handler=0\n"
		 "  9 signal_deliver Provider=signal pid=8 exe=other sig=11 sa_handler=0\n"
		 "! 10 signal_deliver Provider=signal pid=7 exe=shop sig=11 sa_handler=0\n--\n"
		 "  11 Process/Exit pid=7 exe=shop ExitCode=0 Signal=11\n"},
		{"a kill for lack of memory, whoever asked for it", "a_long_process_name;On=oom",
		 "  9 mark_victim Provider=oom pid=7 exe=a_long_process_name comm=other\n"
		 "! 10 mark_victim Provider=oom pid=7 exe=other comm=a_long_process_\n"},
		{"without the code asked, one end is one", "*",
		 "! 10 exit pid=7\n--\n  11 Process/Exit pid=7 ExitCode=0\n"},
	};
	struct event_lab lab = {.provider = "Linux"};

	event_lab_stories("stop-on-process", "Linux", stories, COUNT_OF(stories));
	event_lab_open(&lab, "stop-on-process", "*;On=crash", NULL);
	event_lab_story(&lab, "! 10 Process/Exit pid=7 exe=shop ExitCode=0 Signal=11\n--\n");
	assert_string_equal(buf_text(&lab.why),
			    "process shop (pid 7) was killed by signal 11 (SIGSEGV)");
	event_lab_story(&lab, "! 10 exit pid=9 exe=svc.exe ExitStatus=3221225477\n");
	assert_string_equal(buf_text(&lab.why), "process svc (pid 9) ended with code 0xC0000005");
	event_lab_close(&lab);
	event_lab_open(&lab, "stop-on-process", "*;On=oom", NULL);
	event_lab_story(&lab,
			"! 10 mark_victim Provider=oom pid=7 exe=shop comm=db anon_rss=204800\n");
	assert_non_null(strstr(buf_text(&lab.why), "process db (pid "));
	assert_non_null(strstr(buf_text(&lab.why),
			       "is being killed, as the kernel is out of memory; it holds 200 MB"));
	event_lab_close(&lab);
	event_lab_refused("stop-on-process", "a;On=exit;Stack=true", "Stack=true needs On=crash");
	event_lab_refused("stop-on-process", "a;On=oom;ExitCode=1",
			  "a kill for lack of memory has no exit code");
	event_lab_refused("stop-on-process", "", "an empty process name");
	event_lab_refused("stop-on-process", "a;On=stop", "On is start, exit, crash or oom");
	event_lab_refused("stop-on-process", "a;Signal=NO", "Signal is a name");
	event_lab_refused("stop-on-process", "a;ExitCode=x", "ExitCode is a whole number");
	event_lab_refused("stop-on-process", "a;On=start;ExitCode=1", "a start has no exit code");
	event_lab_refused("stop-on-process", "a;Signal=KILL;ExitCode=1",
			  "give ExitCode= or Signal=, not both");
	event_lab_refused("stop-on-process", "a;On=crash;Signal=TERM",
			  "that signal is not a crash");
	event_lab_refused("stop-on-process", "a;On=crash;ExitCode=1", "a crash ends by a signal");
	event_lab_refused("stop-on-process", "a;ExitCode=1;ExitCode!=1", "ExitCode is given twice");
	event_lab_refused("stop-on-process", "a;On=exit;on=crash", "on is given twice");
	event_lab_refused("stop-on-process", "a;Foo=1", "unknown key 'Foo'; allowed are On");
}

#define CORE "Provider=Microsoft.AspNetCore.Hosting"

TEST(requests_are_those_of_iis_and_aspnet_core)
{
	static const struct lab_story stories[] = {
		{"IIS", "100",
		 "  10 EventID(1) pid=7 ContextId=a\n! 111 EventID(2) pid=7 ContextId=a\n"},
		{"ASP.NET Core, by activity", "100",
		 "  10 Request/Start " CORE " pid=7 method=GET ActivityID=x\n"
		 "  111 Request/Stop " CORE " pid=7 ActivityID=y\n"
		 "! 112 Request/Stop " CORE " pid=7 ActivityID=x\n"},
		{"ASP.NET Core, none without an activity", "100",
		 "  10 Request/Start " CORE " pid=7 method=GET\n"
		 "  300 Request/Stop " CORE " pid=7\n"},
		{"one that hangs", "100", "  10 EventID(1) pid=7 ContextId=a\n! 300 tick\n"},
		{"unless that is off", "100;InFlight=false",
		 "  10 EventID(1) pid=7 ContextId=a\n  300 tick\n"},
		{"0 is off", "0", "  10 EventID(1) pid=7 ContextId=a\n  300 tick\n"},
		{"equal is not over", "100",
		 "  10 EventID(1) pid=7 ContextId=a\n  110 EventID(2) pid=7 ContextId=a\n"},
		{"of a process", "100;Process=9",
		 "  10 EventID(1) pid=7 ContextId=a\n  300 tick\n"},
		{"an orphan stop", "100", "  10 EventID(2) pid=7 ContextId=a\n"},
	};
	struct event_lab lab = {.provider = "{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}"};
	struct trigger_status s;

	event_lab_stories("stop-on-request-over-msec", lab.provider, stories, COUNT_OF(stories));
	event_lab_open(&lab, "stop-on-request-over-msec", "100", NULL);
	assert_string_equal(
		preset_line(lab.trigger, 1),
		"*Microsoft.AspNetCore.Hosting/Request/Start;"
		"StopEvent=Request/Stop;StartStopID=ActivityID;TriggerMSec=100;InFlight=true");
	assert_null(preset_line(lab.trigger, 2));
	event_lab_story(&lab, "  10 EventID(1) pid=7 exe=w3wp ContextId=a\n"
				"! 260 EventID(2) pid=7 ContextId=a\n");
	assert_string_equal(
		buf_text(&lab.why),
		"request of w3wp (pid 7) took 250 ms, over its limit of 100 ms, thread 7");
	trigger_status(lab.trigger, &s);
	assert_true(s.value == 250 && s.limit == 100 && s.counts.seen == 2);
	event_lab_story(&lab, "--\n"
			      "  1000 Request/Start " CORE " pid=8 exe=shop method=POST path=/pay "
			      "ActivityID=x\n"
			      "  1050 Request/Start " CORE " pid=8 exe=shop method=GET path=/ "
			      "ActivityID=y\n"
			      "  1060 Request/Stop " CORE " pid=8 ActivityID=y\n"
			      "! 1101 Request/Stop " CORE " pid=8 ActivityID=x\n");
	assert_string_equal(buf_text(&lab.why), "request POST /pay of shop (pid 8) took 101 ms, "
						"over its limit of 100 ms, thread 8");
	event_lab_close(&lab);
	event_lab_refused("stop-on-request-over-msec", "soon", "'soon' is not a number");
	event_lab_refused("stop-on-request-over-msec", "5;Foo=1", "unknown key 'Foo'");
}

struct wanted {
	const char *kind, *spec;
};

static int open_step(void *ctx)
{
	const struct wanted *w = ctx;
	struct trigger_env env = {.process = NULL};
	struct trigger *t = NULL;
	const struct trigger_ops *ops = trigger_kind(w->kind);
	int rc = trigger_open(ops, w->spec, &env, &t, NULL);

	trigger_close(t);
	return rc;
}

/* 48 letters in groups of one or two: more ways than the limit lets it try. */
TEST(status_counts_texts_that_were_not_judged)
{
	struct event_lab lab = {0};
	struct trigger_status s;
	int i;

	event_lab_open(&lab, "stop-on-event-log-message", "^(a|aa)+$", NULL);
	for (i = 0; i < 2; i++)
		event_lab_story(&lab, "  10 log Log=Application "
				"Message=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n");
	trigger_status(lab.trigger, &s);
	assert_int_equal(s.phase, TRIGGER_ARMED);
	assert_string_equal(s.text,
			    "armed; 2 texts were not judged, as the expression took over 50000 "
			    "steps on them");
	event_lab_close(&lab);
}

TEST(rules_report_lack_of_memory)
{
	static struct wanted all[] = {
		{"stop-on-exception",
		 "a"}, {"stop-on-event-log-message", "a"}, {"stop-on-process", "a"},
		{"stop-on-request-over-msec", "5"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(all); i++)
		assert_true(alloc_walk(open_step, &all[i]) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exceptions_match_by_type_and_message),
		cmocka_unit_test(log_lines_match_by_log_and_text),
		cmocka_unit_test(a_number_in_a_line_has_a_limit),
		cmocka_unit_test(processes_start_end_and_crash),
		cmocka_unit_test(requests_are_those_of_iis_and_aspnet_core),
		cmocka_unit_test(status_counts_texts_that_were_not_judged),
		cmocka_unit_test(rules_report_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
