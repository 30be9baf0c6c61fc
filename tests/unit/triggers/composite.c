/* Rules made of rules: what they mean, on stories of events, and what is refused where. */
#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/event_lab.h"
#include "tests/support/test.h"
#include "triggers/composite.h"

#include <stdio.h>
#include <string.h>


/* a, b: events; cpu: a counter over 80; slow: an event with a duration over 100 ms. */
static char *const rules[] = {
	"a=StopOnEtwEvent:P/A", "b=stop-on-event:P/B", "cpu=StopOnPerfCounter:X:Cpu:>80",
	"mem=X:Mem:<10", "slow=StopOnEtwEvent:P/R/Start;TriggerMSec=100",
};
static const struct trigger_env env = {
	.min_sec = 3, .already_true_fires = true, .rules = rules, .nrules = COUNT_OF(rules),
};

#define CPU(v) "counter Name=X:Cpu: value=" v "\n"
#define CPU_ABSENT "counter Name=X:Cpu:\n"
#define MEM(v) "counter Name=X:Mem: value=" v "\n"

TEST(expressions_fire_where_the_story_says)
{
	static const struct lab_story stories[] = {
		{"a state fires when it becomes true, not again", "cpu",
		 "  1 " CPU("10") "! 2 " CPU("90") "--\n"
		 "  3 " CPU("91") "  4 " CPU("10") "! 5 " CPU("90")},
		{"already true fires", "cpu", "! 1 " CPU("90")},
		{"equal is not over", "cpu", "  1 " CPU("80")},
		{"a moment fires each time", "a", "! 1 A\n--\n! 2 A\n  3 A\n--\n! 4 A\n"},
		{"and of two states", "cpu and mem",
		 "  1 " CPU("90") "  2 " MEM("50") "! 3 " MEM("5")},
		{"and of a state and a moment", "cpu and a",
		 "  1 A\n  2 " CPU("90") "! 3 A\n--\n  4 " CPU("9") "  5 A\n"},
		{"or of two moments", "a or b", "! 1 A\n--\n! 2 B\n"},
		{"or of a state and a moment", "cpu or a",
		 "! 1 " CPU("90") "--\n  2 " CPU("90") "! 3 A\n"},
		{"or of states", "cpu or mem",
		 "! 1 " CPU("90") "--\n"
		 "  2 " MEM("5") "  3 " CPU("9") "  4 " MEM("50") "! 5 " MEM("5")},
		{"not", "not cpu", "  1 " CPU("90") "! 2 " CPU("9")},
		{"what is absent is neither true nor false", "not cpu",
		 "  1 tick\n  2 " CPU_ABSENT "! 3 " CPU("9")
		 "--\n  4 " CPU_ABSENT "! 5 " CPU("9")},
		{"unknown and false is false", "not (cpu and mem)", "! 1 " CPU("9")},
		{"not binds stronger than and", "not cpu and a",
		 "  1 " CPU("90") "  2 A\n  3 " CPU("9") "! 4 A\n"},
		{"and binds stronger than or", "a or b and cpu",
		 "  1 B\n! 2 A\n--\n  3 " CPU("90") "! 4 B\n"},
		{"parentheses", "(a or b) and cpu", "  1 A\n  2 " CPU("90") "! 3 B\n"},
		{"for", "cpu for 3s",
		 "  1000 " CPU("90") "  3000 " CPU("90") "  3900 tick\n! 4000 tick\n--\n"
		 "  5000 " CPU("90")},
		{"for is broken by one false", "cpu for 3s",
		 "  1000 " CPU("90") "  2000 " CPU("9") "  3000 " CPU("90") "  4500 tick\n"
		 "! 6000 tick\n"},
		{"for is broken by absence", "cpu for 3s",
		 "  1000 " CPU("90") "  2000 " CPU_ABSENT "  5000 tick\n"},
		{"within", "cpu and a within 5s",
		 "  1000 A\n! 6000 " CPU("90") "--\n  6001 tick\n"
		 "  7000 " CPU("9") "  8000 " CPU("90")},
		{"within binds stronger than not", "not a within 5s",
		 "  1000 A\n  6000 tick\n! 6001 tick\n"},
		{"for binds stronger than not", "not cpu for 3s",
		 "! 1000 " CPU("90") "--\n  4000 tick\n! 5000 " CPU("9")},
		{"not within", "a and not b within 5s", "  1000 B\n  2000 A\n  6000 A\n! 6001 A\n"},
		{"then", "a then b within 5s", "  1000 B\n  2000 A\n! 7000 B\n--\n  7001 B\n"},
		{"then is too late", "a then b within 5s", "  2000 A\n  7001 B\n"},
		{"then keeps the last", "a then b within 5s", "  1000 A\n  3000 A\n! 8000 B\n"},
		{"then not at once", "a then a within 5s", "  1000 A\n! 2000 A\n--\n! 3000 A\n"},
		{"then with states: when they become true", "cpu then a within 5s",
		 "  1000 " CPU("90") "  5000 " CPU("90") "  6001 A\n"},
		{"then, then", "a then b within 5s then cpu within 5s",
		 "  1000 A\n  2000 B\n! 7000 " CPU("90")},
		{"rate", "rate(a) > 2/s over 2s",
		 "  1000 A\n  1100 A\n  1200 A\n  1300 A\n! 1400 A\n--\n  1500 A\n"
		 "  9000 tick\n  9100 A\n"},
		{"rate, fewer than", "rate(a) < 1/s over 2s",
		 "  1000 A\n  1100 A\n  2000 tick\n  2999 tick\n! 3200 tick\n"},
		{"rate a minute", "rate(a) >= 3/min", "  1000 A\n  20000 A\n! 50000 A\n"},
		{"percentile", "p50(slow) > 100ms over 10s",
		 "  1000 R/Start id=1\n  1010 R/Stop id=1\n  1020 R/Start id=2\n"
		 "  1220 R/Stop id=2\n"
		 "  1300 R/Start id=3\n! 1500 R/Stop id=3\n"},
		{"percentile forgets", "p99(slow) > 100 over 2s",
		 "  1000 R/Start id=1\n! 1200 R/Stop id=1\n--\n  1300 tick\n  5000 tick\n"
		 "  5100 R/Start id=1\n! 5300 R/Stop id=1\n"},
		{"percentile of readings", "p90(cpu) < 50 over 10s",
		 "  1000 " CPU("60") "  2000 " CPU("40") "! 14000 " CPU("40")},
		{"what became true in the window is news after it", "cpu",
		 "! 1 " CPU("90") "  2 " CPU("9") "  3 " CPU("90")
		 "--\n! 4 tick\n"},
		{"unless it is over by then", "cpu",
		 "! 1 " CPU("90") "  2 " CPU("9") "  3 " CPU("90") "  4 " CPU("9") "--\n"
		 "  5 tick\n"},
		{"a clock that jumps back", "cpu for 3s",
		 "  9000 " CPU("90") "  1000 " CPU("90") "! 4000 tick\n"},
		{"capitals and blanks do not matter", " CPU\tFOR 2 s ",
		 "  1000 " CPU("90") "! 3000 tick\n"},
	};
	struct event_lab lab;
	size_t i;

	for (i = 0; i < COUNT_OF(stories); i++) {
		print_message("  %s: %s\n", stories[i].what, stories[i].spec);
		lab.provider = "P";
		event_lab_open(&lab, "stop-on", stories[i].spec, &env);
		event_lab_story(&lab, stories[i].lines);
		event_lab_close(&lab);
	}
}

static void assert_refused(const char *spec, const struct trigger_env *in, struct err *err)
{
	struct trigger *t = NULL;

	assert_int_equal(trigger_open(&composite_trigger, spec, in, &t, err), ERR_USAGE);
}

TEST(errors_point_at_the_column)
{
	static const struct { const char *spec, *says; } bad[] = {
		{"", "column 1, at its end: the name of a rule"},
		{"cpu adn a", "column 5, at 'adn': and, or, then, for, within or the end"},
		{"cpu and", "column 8, at its end: the name of a rule"},
		{"cpu and nope",
		 "column 9, at 'nope': no rule has this name; define it with --rule NAME=SPEC"},
		{"(cpu", "column 5, at its end: ')'"},
		{"cpu)", "column 4, at ')'"},
		{"cpu for", "column 8, at its end: a time is expected"},
		{"cpu for 5", "column 10, at its end: a unit of time"},
		{"cpu for 5parsecs", "column 10, at 'parsecs': a unit of time"},
		{"cpu for 8d", "between 1 ms and 7 days"},
		{"a for 5s", "column 3, at 'for': an event is a moment"},
		{"not a", "column 6, at its end: 'not' needs a state"},
		{"a and b", "two events never come at the same moment"},
		{"a then b", "column 9, at its end: 'within' and a time are expected"},
		{"rate(cpu) > 5/s", "rate() counts events"},
		{"rate(a) 5/s", "column 9, at '5': a comparison is expected"},
		{"rate(a) > 5", "a rate needs a unit: /s"},
		{"rate a > 5/s", "column 1, at 'rate': no rule has this name"},
		{"p99(slow) > x", "column 13, at 'x': a number is expected"},
		{"p100(slow) > 1", "column 1, at 'p100': no rule has this name"},
		{"cpu & a", "column 5, at '&'"},
		{"cpu and not cpu", "column 16, at its end: the part before this is never true"},
		{"not cpu and (a and cpu)", "never true: a rule and its 'not' exclude each other"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		struct err err = {0};

		assert_refused(bad[i].spec, &env, &err);
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s': %s", bad[i].spec, err.text);
	}
}

TEST(nesting_and_length_are_bounded)
{
	struct buf deep = {0}, longish = {0};
	struct err err;
	int i;

	for (i = 0; i < 400; i++)
		buf_putc(&deep, '(');
	assert_refused(buf_text(&deep), &env, &err);
	assert_non_null(strstr(err.text, "too deep"));
	for (i = 0; i < 100; i++)
		buf_puts(&longish, i ? " or cpu" : "cpu");
	assert_refused(buf_text(&longish), &env, &err);
	assert_non_null(strstr(err.text, "too long"));
	buf_free(&deep);
	buf_free(&longish);
}

TEST(names_are_defined_by_rules)
{
	static char *const again[] = {"x=StopOnGCOverMsec:5", "X=StopOnGen2GC"};
	static char *const wrong[] = {"x=StopOnNothing:5", "y=StopOnGCOverMsec:fast", "z"};
	struct trigger_env bad = {.rules = wrong, .nrules = 1};
	struct err err;

	assert_refused("x", &bad, &err);
	assert_non_null(strstr(err.text, "no rule is called 'StopOnNothing'"));
	bad.rules = wrong + 1;
	assert_refused("y", &bad, &err);
	assert_non_null(strstr(err.text, "--rule y: "));
	bad.rules = again;
	bad.nrules = 2;
	assert_refused("x", &bad, &err);
	assert_string_equal(err.text, "--rule x is given twice; a name stands for one rule");
	bad.nrules = 1;
	bad.rules = wrong + 2;
	assert_refused("z", &bad, &err);
	assert_non_null(strstr(err.text, "is not NAME=SPEC"));
}

TEST(why_and_needs_come_from_the_parts)
{
	struct event_lab lab = {.provider = "P"};
	struct trigger_status s;
	static struct needs needs;

	event_lab_open(&lab, "stop-on", "cpu and a", &env);
	assert_int_equal(lab.trigger->ops->needs(lab.trigger, &needs, NULL), 0);
	assert_int_equal(needs.ncounters, 1);
	assert_int_equal(needs.nproviders, 1);
	event_lab_story(&lab, "  1 " CPU("90") "! 2 A pid=5 exe=shop x=1\n");
	assert_string_equal(buf_text(&lab.why),
			    "cpu and a; cpu: X:Cpu: was 90, over its limit of 80; "
			    "a: P/A of shop (pid 5), thread 5: x=1");
	trigger_status(lab.trigger, &s);
	assert_string_equal(s.text, "cpu: true; a: armed, in its incident's window");
	event_lab_close(&lab);
	event_lab_open(&lab, "stop-on", "rate(a) > 1/min", &env);
	event_lab_story(&lab, "  1 A\n! 2 A\n");
	assert_non_null(strstr(buf_text(&lab.why), "rate(a) was 2 a minute, limit > 1"));
	event_lab_close(&lab);
}

static int open_step(void *ctx)
{
	struct trigger *t = NULL;
	int rc = trigger_open(&composite_trigger, ctx, &env, &t, NULL);

	trigger_close(t);
	return rc;
}

TEST(rule_reports_lack_of_memory)
{
	assert_true(alloc_walk(open_step, "(cpu or rate(a) > 1/s) and p99(slow) > 5") > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_fire_where_the_story_says),
		cmocka_unit_test(errors_point_at_the_column),
		cmocka_unit_test(nesting_and_length_are_bounded),
		cmocka_unit_test(names_are_defined_by_rules),
		cmocka_unit_test(why_and_needs_come_from_the_parts),
		cmocka_unit_test(rule_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
