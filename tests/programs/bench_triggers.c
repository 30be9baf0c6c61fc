/*
 * What rules cost on the merge thread: 20 active rules of all kinds on a made stream of a busy
 * machine, and a week of simulated time for limits that move.
 *
 *	bench_triggers [--json]
 *
 * The stream, per 1000 events: 900 samples, 60 of GC and of other providers, 20 counters, 10 starts
 * and ends of processes, 5 lines of a log, 5 ticks. Dispatch is that of engine/rules.c: a mask of
 * kinds, then feed(). Best of 5.
 */
#include "base/os.h"
#include "tests/support/bench_rows.h"
#include "triggers/threshold.h"
#include "triggers/trigger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULES = 20, EVENTS = 1000000, REPS = 5 };

static const struct {
	const char *kind, *spec;
} rules[RULES] = {
	{"stop-on-perf-counter", "Processor:% Processor Time:_Total>1000"},
	{"stop-on-perf-counter", "Memory:Available Bytes:<1"},
	{"stop-on-perf-counter", "Process:Working Set:java>1e18;PerDay=4"},
	{"stop-on-gc-over-msec", "100000"}, {"stop-on-gc-over-msec", "100000;Measure=pause"},
	{"stop-on-gc-suspend-over-msec", "100000"}, {"stop-on-bgc-final-pause-over-msec", "100000"},
	{"stop-on-gen2-gc", ";Process=none"},
	{"stop-on-etw-event", "Shop/Order/Start;TriggerMSec=100000"},
	{"stop-on-etw-event", "Shop/Order/Start;FieldFilter=Count>1000000000"},
	{"stop-on-etw-event", "Windows Kernel Trace/FileIO/Create;FieldFilter=FileName~\\.dmp$"},
	{"stop-on-etw-event", "Shop/Cache/Miss"}, {"stop-on-exception", "OutOfMemory"},
	{"stop-on-request-over-msec", "100000"}, {"stop-on-event-log-message", "kernel@oom-killer"},
	{"stop-on-event-log-message", "out of memory"}, {"stop-on-process", "none"},
	{"stop-on-process", "none;On=start"}, {"stop-on", "cpu for 10s and not gc within 60s"},
	{"stop-on", "rate(gc) > 100/s or p99(gc) > 100000 over 60s"},
};
static char *const named[] = {
	"cpu=Processor:% Processor Time:_Total>1000", "gc=StopOnGCOverMsec:100000",
};

static struct trigger *open_rule(const char *kind, const char *spec)
{
	struct trigger_env env = {
		.min_sec = 3, .already_true_fires = true, .rules = named, .nrules = 2};
	struct trigger *t = NULL;
	struct err err;

	if (trigger_open(trigger_kind(kind), spec, &env, &t, &err)) {
		fprintf(stderr, "bench_triggers: %s\n", err.text);
		exit(1);
	}
	return t;
}

static void make(struct event *e, uint32_t i, struct event_field *fields)
{
	static const char *const names[] = {"GC/SuspendEEStart", "GC/Start",	"GC/Stop",
					    "GC/RestartEEStop",	 "Order/Start", "Order/Stop"};
	uint32_t at = i % 1000;

	e->time_ns += 10000;
	e->kind = EVENT_SAMPLE;
	e->name = e->provider = NULL;
	fields[0].v.u = i / 1000;
	if (at < 900)
		return;
	if (at < 960) {
		e->kind = EVENT_GENERIC;
		e->name = names[at % 6];
		e->provider = at % 6 < 4 ? "Microsoft-Windows-DotNETRuntime" : "Shop";
	} else if (at < 980) {
		e->kind = EVENT_COUNTER;
		e->name = at % 2 ? "Processor:% Processor Time:_Total" : "Memory:Available Bytes:";
		e->value = at;
	} else if (at < 990) {
		e->kind = at % 2 ? EVENT_PROCESS_START : EVENT_PROCESS_EXIT;
	} else {
		e->kind = at < 995 ? EVENT_LOG : EVENT_TICK;
	}
}

/* Nanoseconds for an event, all rules together; 0 rules is the stream's own cost. */
static double once(uint32_t nrules)
{
	static struct process process = {.pid = 7, .start_ns = 1};
	static struct thread thread = {.tid = 8, .process = &process};
	struct event_field fields[3] = {
		{.name = "Count", .type = FIELD_UINT},
		{.name = "Log", .type = FIELD_TEXT, .v.text = "kernel"},
		{.name = "Message",
		 .type = FIELD_TEXT,
		 .v.text = "eth0: link is up, 1000 Mbps, full duplex"},
	};
	struct event e = {.process = &process, .thread = &thread, .fields = fields, .nfields = 3};
	struct trigger *open[RULES];
	struct buf why = {0};
	uint64_t start_ns, took_ns;
	uint32_t i, k;

	for (k = 0; k < nrules; k++)
		open[k] = open_rule(rules[k].kind, rules[k].spec);
	start_ns = os_now_ns();
	for (i = 0; i < EVENTS; i++) {
		make(&e, i, fields);
		for (k = 0; k < nrules; k++)
			if (open[k]->kinds >> e.kind & 1 && open[k]->ops->feed(open[k], &e, &why))
				trigger_fired(open[k]);
	}
	took_ns = os_now_ns() - start_ns;
	for (k = 0; k < nrules; k++)
		trigger_close(open[k]);
	buf_free(&why);
	return (double)took_ns / EVENTS;
}

static double best(uint32_t nrules)
{
	double best_ns = 0, ns;
	int rep;

	for (rep = 0; rep < REPS; rep++) {
		ns = once(nrules);
		if (!rep || ns < best_ns)
			best_ns = ns;
	}
	return best_ns;
}

/*
 * Seven days in ticks of 100 ms, a value every 10 s, for a limit that decays and one that steers.
 */
static void week(struct row *r)
{
	uint64_t day_ns = 86400 * NS_PER_SEC, ns, start_ns = os_now_ns();
	struct threshold decay, steer;
	uint32_t seed = 1, fired[2] = {0};

	threshold_init(&decay, COMPARE_OVER, 1e6);
	decay.decay_hours = 24;
	threshold_init(&steer, COMPARE_OVER, 100);
	steer.per_day = 6;
	for (ns = 0; ns < 7 * day_ns; ns += 100 * NS_PER_MS) {
		threshold_clock(&decay, ns);
		threshold_clock(&steer, ns);
		if (ns % (10 * NS_PER_SEC))
			continue;
		seed = seed * 1664525u + 1013904223u;
		fired[0] += threshold_hit(&decay, 16777216.0 / (1 + (seed >> 8)));
		if (threshold_hit(&steer, 16777216.0 / (1 + (seed >> 8)))) {
			threshold_fired(&steer, 0, ns);
			fired[1]++;
		}
	}
	row_num(r, "simulated_days", 7);
	row_num(r, "took_ms", (double)(os_now_ns() - start_ns) / 1e6);
	row_num(r, "values_over_a_limit_that_decays", fired[0]);
	row_num(r, "firings_at_6_a_day", fired[1]);
}

int main(int argc, char **argv)
{
	bool as_json = argc > 1 && strcmp(argv[1], "--json") == 0;
	double none = best(0), all = best(RULES);
	struct row r;

	row_open(&r, as_json, "rules");
	row_num(&r, "rules", RULES);
	row_num(&r, "events", EVENTS);
	row_num(&r, "added_ns_per_event", all - none);
	row_num(&r, "stream_ns_per_event", none);
	row_close(&r);
	row_open(&r, as_json, "rules over time");
	week(&r);
	row_close(&r);
	return 0;
}
