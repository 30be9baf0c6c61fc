/*
 * Tries rules on recorded data: the events and counters of an incident or of a trace file.
 *
 * Rules see each event in the order in which it was first delivered, with a tick every 100 ms in
 * between. A rule that fires rests for the window of the incident that it would have made. So a
 * rule fires here where it would have fired then, and the same input gives the same output. Nothing
 * is recorded. One thread.
 */
#pragma once

#include "base/buf.h"
#include "model/event.h"
#include "triggers/trigger.h"

#define BACKTEST_FIRINGS_MAX 100000u     /* kept singly; the rest is counted */

struct backtest_firing {
	uint32_t rule;
	uint64_t time_ns;
	double value, limit;                 /* NaN = none */
	char *why;
};

struct backtest_rule {
	struct trigger *trigger;             /* borrowed */
	bool in_window;
	uint64_t fired_ns, window_end_ns;
	uint64_t fired;
};

struct backtest {
	struct backtest_rule *rules;
	uint32_t nrules;
	uint64_t post_ns;                    /* --delay-after-trigger-sec */
	bool only_count;                     /* keep no firings */
	uint64_t next_tick_ns;
	uint64_t first_ns, last_ns;
	bool started;
	struct backtest_firing *firings;
	uint32_t nfirings;
	uint64_t events;
};

/* rules: borrowed until backtest_free(). ERR_MEMORY */
int backtest_init(struct backtest *b, struct trigger *const *rules, uint32_t n, uint64_t post_ns,
		  bool only_count, struct err *err);
void backtest_free(struct backtest *b);
/* One event, in the order of delivery. ERR_MEMORY */
int backtest_feed(struct backtest *b, const struct event *e, struct err *err);
/* The end: ticks up to it, for what would have fired while still open. */
int backtest_end(struct backtest *b, uint64_t until_ns, struct err *err);
