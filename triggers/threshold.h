/*
 * What rules with a limit share: the operator and the number of a spec, a limit that decays, and
 * "true for this long".
 *
 * Time is the time of events. Values live in the rule; no allocation; the merge thread only.
 */
#ifndef TRIGGERS_THRESHOLD_H
#define TRIGGERS_THRESHOLD_H

#include "base/buf.h"

enum compare { COMPARE_OVER, COMPARE_OVER_EQUAL, COMPARE_UNDER, COMPARE_UNDER_EQUAL };

/*
 * A limit, and on which side of it a value is a hit. With decay it falls on a straight line from
 * its value at start_ns to zero, decay_hours later, and stays there. The clock never runs back and
 * goes on over firings. Only a limit for large values can decay: see threshold_check().
 */
struct threshold {
	enum compare compare;
	double limit;
	double decay_hours;                  /* 0 = it stays */
	uint64_t start_ns, now_ns;
	bool started;
};

/*
 * Split "LEFT op NUMBER" at its last operator: < > <= >=, blanks around it and at the ends allowed.
 *
 * *left and *left_len say what stands before it, without blanks at its ends. NUMBER: sign,
 * fraction, exponent, and K, M or G for 1024, 1024^2, 1024^3 as Windows counts bytes.
 * returns  0, or ERR_USAGE with a sentence about the part that is wrong
 */
int threshold_parse(const char *spec, struct threshold *out, const char **left, size_t *left_len,
		    struct err *err);

/* Whether decay makes sense here: ERR_USAGE for '<', for limits below zero and for bad hours. */
int threshold_check(const struct threshold *t, const char *spec, struct err *err);

/* Every event moves the clock; the first one starts it. */
void threshold_clock(struct threshold *t, uint64_t time_ns);
/* The limit now; never over `limit`, never below zero when it decays. */
double threshold_now(const struct threshold *t);
bool threshold_hit(const struct threshold *t, double value);
/* Whether a is closer to being a hit than b. */
bool threshold_nearer(const struct threshold *t, double a, double b);
/* "<", ">", "<=", ">=". */
const char *compare_text(enum compare compare);

/*
 * Samples in a row. It is held once there are `need` of them, and they span their time: so samples
 * that come more often, because another rule asked for them, do not make it shorter, and a jump of
 * the clock does not make it true.
 */
struct hold {
	uint32_t need;                       /* MinSec / period, rounded up, and 1 */
	uint64_t span_ns; /* from the first to the last of them, less half a period */
	uint32_t count;
	uint64_t first_ns;
};

/* min_sec and period_sec are finite, >= 0 and > 0. */
void hold_init(struct hold *h, double min_sec, double period_sec);
void hold_reset(struct hold *h);
/* One more; true = held. */
bool hold_add(struct hold *h, uint64_t time_ns);
/* How many of need are there, for people: never over need. */
uint32_t hold_progress(const struct hold *h);

/* A number for people: up to 4 digits, whole numbers in full. */
#define NUMBER_TEXT_BYTES 40
void number_text(double v, char out[NUMBER_TEXT_BYTES]);

#endif
