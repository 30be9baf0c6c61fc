/*
 * The history on its way to targets with ;History=60s: one interval after the other, each as if it
 * were an incident whose rule is "history". Intervals end at whole multiples of their length, UTC,
 * and where a file of the history does: only so is each sample in one of them, whatever was done to
 * the wall clock in between. One is ready when its file is complete, or written beyond it, with the
 * names of its functions.
 *
 * The history is the spool: what leaves it before it was sent, or cannot be read, is counted, and
 * said.
 */
#pragma once

#include "ship/target.h"
#include "store/store.h"

#define PAST_MARGIN_NS (12 * NS_PER_SEC)     /* a round of the history and a moment */

struct past_interval {
	uint64_t from_ns, until_ns;          /* wall clock, until_ns left out */
	uint32_t file;                       /* number of the history's */
	uint64_t missed_from_ns;             /* != 0: nothing is there from here to from_ns */
	char unreadable[60];                 /* a file that was passed over for this; "" = none */
};
/*
 * The next one for a target. wait_s: without one, when to look again; at least 1.
 *
 * length_ns  of an interval
 * returns    0; ERR_NOT_FOUND, without a sentence: none is ready
 */
int past_next(const char *store_path, const struct ship_past *past, uint64_t length_ns,
	      uint64_t now_ns, struct past_interval *out, uint32_t *wait_s, struct err *err);
/* Load it; free with incident_free(). Its uuid is the same whenever it is loaded. */
int past_load(const char *store_path, const struct ship_past *at, const struct past_interval *i,
	      struct incident *out, struct err *err);
