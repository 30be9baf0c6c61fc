/*
 * The ledger of an incident: what was expected, what was recorded, and where the rest went, per CPU
 * and second.
 *
 *	expected = recorded + lost to the kernel + lost to our queue + unexplained
 *
 * Expected is the CPU's busy time x the sampling rate, as the source counted it (EVENT_EXPECTED).
 * Recorded samples may be broken, truncated or unnamed; those are parts of `recorded`. Throttled
 * counts how often the kernel held sampling back, not samples: what that cost is in `unexplained`.
 * Samples newer than the last word on what to expect, up to a second of them at the end of a
 * window, are `uncovered` and left out of the sum. Evicted are samples that had been recorded, and
 * that the ring had given up when the rule fired: they are in front of the window that it got, and
 * in no sum. Seconds count from the trigger, rounded down: -1 is the second before it. Only samples
 * of the CPU stream count.
 */
#pragma once

#include "model/incident.h"

struct ledger_counts {
	double expected;                     /* NaN-free; 0 where nothing is known */
	uint64_t recorded, broken, truncated, unnamed, uncovered, evicted;
	uint64_t lost[LOSS_KINDS];           /* by enum loss_kind; throttled: times */
};

struct ledger_row {
	int32_t second;                      /* from the trigger */
	uint16_t cpu;                        /* CPU_NONE: losses that belong to no CPU */
	struct ledger_counts n;
};

struct ledger {
	struct ledger_row *rows;             /* by second, then CPU */
	uint32_t nrows;
	struct ledger_counts total;
	bool has_expected;                   /* the source said what it expected */
};

/* returns 0 or ERR_MEMORY */
int ledger_new(const struct incident *in, struct ledger *out, struct err *err);
void ledger_free(struct ledger *l);

/* Sums, of whichever rows belong together. */
void ledger_add(struct ledger_counts *to, const struct ledger_counts *n);

/* expected - recorded + uncovered - lost; negative when more came than the busy time says. */
double ledger_unexplained(const struct ledger_counts *n);
