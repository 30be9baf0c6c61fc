/*
 * Limits: the operator and number of a spec, a limit that moves with time, and "true for this
 * long".
 *
 * Time is the time of events. Nothing is allocated. The merge thread only.
 */
#pragma once

#include "base/buf.h"
#include "triggers/spec.h"

enum compare { COMPARE_OVER, COMPARE_OVER_EQUAL, COMPARE_UNDER, COMPARE_UNDER_EQUAL };

enum curve { CURVE_LINEAR, CURVE_EXPONENTIAL };

/*
 * A limit, and the side of it on which a value is a hit.
 *
 * DecayToZeroHours=H: the limit moves with time, so that something is caught in the end. With > and
 * >= it falls to zero, or to Floor=; with < and <= it rises to Ceiling=, which must be given.
 * Curve=linear moves it on a straight line that ends after H hours. Curve=exponential is fast at
 * first and has gone 99 % of the way after H hours. The limit never passes its end.
 *
 * PerDay=K: the limit steers itself towards K firings a day. Each firing moves it away by a factor
 * f = 2^(1/sqrt K), and each day moves it back by f to the power of K, so the two balance at K
 * firings a day whatever the limit was at the start. Floor= and Ceiling= bound it.
 *
 * HighWaterHours=H: a firing raises the limit to the highest value of that alarm (with < it lowers
 * it to the lowest), so the next one must be worse. After H hours without a worse value the limit
 * is what was given again.
 *
 * The clock never runs back. It runs on through firings, and with save() and load() through
 * restarts.
 */
struct threshold {
	enum compare compare;
	double limit;                        /* as it was given */
	double decay_hours;                  /* 0 = it stays */
	enum curve curve;
	double floor, ceiling;               /* where has_floor, has_ceiling */
	bool has_floor, has_ceiling;
	double per_day;                      /* 0 = no steering */
	double mark_hours;                   /* of HighWaterHours; 0 = off */
	double mark;                         /* the worst value of the last alarm */
	uint64_t marked_ns;                  /* its time, as elapsed time; 0 = none yet */
	uint64_t start_ns, now_ns;
	uint64_t earlier_ns;                 /* time in earlier runs */
	double fired_steps; /* firings, as powers of the factor, within the bounds */
	bool started;
};

/*
 * Split the head "LEFT op NUMBER" at its last operator (< > <= >=); blanks may stand around each
 * part.
 *
 * NUMBER has a sign, a fraction, an exponent, and K, M or G for 1024, 1024^2, 1024^3, as Windows
 * counts bytes.
 * left, left_len   the text before the operator, without blanks at its ends
 * returns          0, or ERR_USAGE with a sentence about the part that is wrong
 */
int threshold_parse(const struct spec *s, struct threshold *out, const char **left,
		    size_t *left_len);

/* A limit without floor, ceiling or decay. */
void threshold_init(struct threshold *t, enum compare compare, double limit);

/* The spec_take of keys about limits, into a struct threshold. THRESHOLD_KEYS names them. */
#define THRESHOLD_KEYS "DecayToZeroHours, Floor, Ceiling, Curve, PerDay and HighWaterHours"
int threshold_key(void *threshold, struct spec *s);

/*
 * Check that the keys make sense together: ERR_USAGE for '<' that decays without a ceiling, a
 * decaying limit below zero, a floor above the limit, two keys that move it, and bad hours.
 */
int threshold_check(const struct threshold *t, const struct spec *s);

/* Move the clock to the time of an event; the first event starts it. */
void threshold_clock(struct threshold *t, uint64_t time_ns);
/* The rule fired on this value: PerDay and HighWaterHours move the limit away. */
void threshold_fired(struct threshold *t, double value, uint64_t time_ns);
/* A value of the same alarm, after its firing: HighWaterHours follows it. */
void threshold_follow(struct threshold *t, double value);
double threshold_now(const struct threshold *t);
bool threshold_moves(const struct threshold *t);
/* "40 (80 at the start, decaying to 0 in 2 h)"; a limit that does not move is a number alone. */
void threshold_text(const struct threshold *t, struct buf *out);

/* Its state for a restart, at most 120 bytes. threshold_load() refuses other bytes: ERR_FORMAT. */
void threshold_save(const struct threshold *t, struct buf *out);
int threshold_load(struct threshold *t, const void *bytes, size_t n, uint64_t away_ns,
		   struct err *err);
/* Whether the hits are below the limit. */
bool threshold_wants_small(const struct threshold *t);
bool threshold_hit(const struct threshold *t, double value);
/* Whether a is closer to being a hit than b. */
bool threshold_nearer(const struct threshold *t, double a, double b);
/* "<", ">", "<=", ">="; and "under", "over", "at or under", "at or over". */
const char *compare_text(enum compare compare);
const char *compare_side(enum compare compare);

/*
 * Hits in a row. A condition has held once `need` of them have come and they span `span_ns`:
 * samples that come more often because another rule asked for them do not shorten it, and a jump of
 * the clock does not fulfil it.
 */
struct hold {
	uint32_t need;                       /* MinSec / period, rounded up, plus 1 */
	uint64_t span_ns;                    /* from the first to the last, less half a period */
	uint32_t count;
	uint64_t first_ns;
};

/* min_sec is finite and >= 0, period_sec finite and > 0. */
void hold_init(struct hold *h, double min_sec, double period_sec);
void hold_reset(struct hold *h);
/* One more hit; true = it has held. */
bool hold_add(struct hold *h, uint64_t time_ns);
/* How many of `need` have come, for people: never more. */
uint32_t hold_progress(const struct hold *h);

/* A number for people: up to 4 digits, whole numbers in full. */
#define NUMBER_TEXT_BYTES 40
void number_text(double v, char out[NUMBER_TEXT_BYTES]);
