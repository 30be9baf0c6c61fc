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

enum curve { CURVE_LINEAR, CURVE_EXPONENTIAL };

/*
 * A limit, and on which side of it a value is a hit.
 *
 * DecayToZeroHours=H: the limit moves with time, so that something is caught in the end. For large
 * values (> >=) it falls to zero, or to Floor=; for small ones (< <=) it rises to Ceiling=, which
 * must be given. Curve=linear: on a straight line that ends after H hours. Curve=exponential: fast
 * at first, 99 % of the way after H hours, and never wholly there. It never passes its end.
 *
 * PerDay=K: the limit steers itself so that about K firings a day come: each firing moves it away
 * by a factor of f = 2^(1/sqrt K), and time moves it back by f to the power of K a day; the two are
 * in balance at K a day, whatever the limit was at the start. Within Floor= and Ceiling=.
 *
 * The clock is the time of events, never runs back, goes on over firings, and by save() and load()
 * over restarts.
 */
struct threshold {
	enum compare compare;
	double limit;                        /* as it was given */
	double decay_hours;                  /* 0 = it stays */
	enum curve curve;
	double floor, ceiling;               /* where has_floor, has_ceiling */
	bool has_floor, has_ceiling;
	double per_day;                      /* 0 = no steering */
	uint64_t start_ns, now_ns;
	uint64_t earlier_ns;                 /* of earlier runs */
	double fired_steps;                  /* firings, as powers of the factor, within bounds */
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

/* A limit without floor, ceiling, decay. */
void threshold_init(struct threshold *t, enum compare compare, double limit);

/* Take a ;Key=Value that is about limits; *taken = it was. THRESHOLD_KEYS names them. */
struct spec;
struct spec_part;
#define THRESHOLD_KEYS "DecayToZeroHours, Floor, Ceiling, Curve and PerDay"
int threshold_key(struct threshold *t, const struct spec *s, const struct spec_part *part,
		  bool *taken, struct err *err);

/*
 * Whether all this makes sense together: ERR_USAGE for '<' that decays without a ceiling, a limit
 * below zero that decays, a floor above the limit, decay and PerDay at once, bad hours.
 */
int threshold_check(const struct threshold *t, const char *spec, struct err *err);

/* Every event moves the clock; the first one starts it. */
void threshold_clock(struct threshold *t, uint64_t time_ns);
/* The rule fired: PerDay moves the limit away. */
void threshold_fired(struct threshold *t, uint64_t time_ns);
/* The limit now. */
double threshold_now(const struct threshold *t);
/* Whether it moves at all. */
bool threshold_moves(const struct threshold *t);
/* "40 (80 at the start, decaying to 0 in 2 h)"; the number alone when it does not move. */
void threshold_text(const struct threshold *t, struct buf *out);

/* What is left of it for a restart, at most 80 bytes; load: ERR_FORMAT for what is not that. */
void threshold_save(const struct threshold *t, struct buf *out);
int threshold_load(struct threshold *t, const void *bytes, size_t n, uint64_t away_ns,
		   struct err *err);
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
