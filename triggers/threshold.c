#include "triggers/threshold.h"

#include "base/array.h"
#include "base/os.h"
#include "triggers/spec.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_HOUR (3600.0 * (double)NS_PER_SEC)

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int parse_number(const struct spec *s, const char *at, size_t len, double *out)
{
	static const char units[] = "KMG";
	double v = 0;
	size_t n = number_prefix(at, len, DECIMAL_CHARACTERS, &v);
	const char *unit = n && n < len ? strchr(units, at[n] & ~0x20) : NULL;

	if (!len)
		return spec_wrong(s, "no number after the operator; write for example '> 80'");
	if (len >= 64)
		return spec_wrong(s, "a limit of %zu characters is too long", len);
	if (unit && *unit) {
		for (n++; unit >= units; unit--)
			v *= 1024;
	}
	if (n != len)
		return spec_wrong(s, "the limit '%.*s' is not a number; allowed are a sign, a "
				  "fraction, an exponent and K, M or G (times 1024), like 80, 0.5, "
				  "1e6 or 512M", (int)len, at);
	if (!(fabs(v) <= DBL_MAX))
		return spec_wrong(s, "the limit '%.*s' is too large", (int)len, at);
	*out = v;
	return 0;
}

/* Find the last operator: a name may hold the characters of one, a number may not. */
static int parse_operator(const struct spec *s, const char *end, enum compare *out,
			  const char **op, const char **after)
{
	const char *at, *found = NULL;
	bool or_equal;

	for (at = s->text; at < end; at++)
		if (*at == '<' || *at == '>')
			found = at;
	if (!found)
		return spec_wrong(s, "no operator; allowed are < > <= >=, like 'Processor:%% "
				  "Processor Time:_Total>80'");
	/* Otherwise "=>" and ">>" would count as part of the name or the number. */
	for (*op = found; *op > s->text && strchr("<>=!", (*op)[-1]);)
		(*op)--;
	for (at = found + 1; at < end && strchr("<>=!", *at);)
		at++;
	or_equal = at == found + 2 && found[1] == '=';
	if (*op < found || (at > found + 1 && !or_equal))
		return spec_wrong(s, "'%.*s' is not an operator; allowed are < > <= >=, like '> "
				  "80'", (int)(at - *op), *op);
	if (*found == '>')
		*out = or_equal ? COMPARE_OVER_EQUAL : COMPARE_OVER;
	else
		*out = or_equal ? COMPARE_UNDER_EQUAL : COMPARE_UNDER;
	*after = at;
	return 0;
}

int threshold_parse(const struct spec *s, struct threshold *out, const char **left,
		    size_t *left_len)
{
	const char *begin = s->text, *end = begin + s->head_len, *op = end, *number = end;
	enum compare compare = COMPARE_OVER;
	double limit = 0;
	int rc;

	while (end > begin && is_blank(end[-1]))
		end--;
	rc = parse_operator(s, end, &compare, &op, &number);
	if (rc)
		return rc;
	while (number < end && is_blank(*number))
		number++;
	rc = parse_number(s, number, (size_t)(end - number), &limit);
	if (rc)
		return rc;
	while (begin < op && is_blank(*begin))
		begin++;
	while (op > begin && is_blank(op[-1]))
		op--;
	*left = begin;
	*left_len = (size_t)(op - begin);
	threshold_init(out, compare, limit);
	return 0;
}

void threshold_init(struct threshold *t, enum compare compare, double limit)
{
	memset(t, 0, sizeof(*t));
	t->compare = compare;
	t->limit = limit;
}

int threshold_key(void *threshold, struct spec *s)
{
	static const char *const curves[] = {"linear", "exponential"};
	struct threshold *t = threshold;
	int curve;

	if (spec_key_is(s, "DecayToZeroHours"))
		return spec_value_number(s, "DecayToZeroHours", &t->decay_hours);
	if (spec_key_is(s, "PerDay"))
		return spec_value_number(s, "PerDay", &t->per_day);
	if (spec_key_is(s, "HighWaterHours"))
		return spec_value_number(s, "HighWaterHours", &t->mark_hours);
	if (spec_key_is(s, "Floor")) {
		t->has_floor = true;
		return spec_value_number(s, "Floor", &t->floor);
	}
	if (spec_key_is(s, "Ceiling")) {
		t->has_ceiling = true;
		return spec_value_number(s, "Ceiling", &t->ceiling);
	}
	if (!spec_key_is(s, "Curve"))
		return ERR_NOT_FOUND;
	curve = spec_choice(s, curves, COUNT_OF(curves));
	if (curve < 0)
		return spec_wrong(s, "Curve is linear or exponential");
	t->curve = (enum curve)curve;
	return 0;
}

bool threshold_wants_small(const struct threshold *t)
{
	return t->compare == COMPARE_UNDER || t->compare == COMPARE_UNDER_EQUAL;
}

int threshold_check(const struct threshold *t, const struct spec *s)
{
	if (!(t->decay_hours >= 0 && t->decay_hours <= DBL_MAX))
		return err_set(s->err, ERR_USAGE,
			       "DecayToZeroHours must be a number of hours, 0 = off, like 24");
	if (t->has_floor && t->floor > t->limit)
		return spec_wrong(s, "Floor is above the limit");
	if (t->has_ceiling && t->ceiling < t->limit)
		return spec_wrong(s, "Ceiling is below the limit");
	if (t->per_day != 0 && !(t->per_day > 0 && t->per_day <= 1000))
		return spec_wrong(s, "PerDay is a number of incidents a day, above 0 and up to "
				  "1000");
	if (!(t->mark_hours >= 0 && t->mark_hours <= 8760))
		return spec_wrong(s, "HighWaterHours is a number of hours, 0 = off, up to 8760");
	if ((t->per_day != 0) + (t->decay_hours != 0) + (t->mark_hours != 0) > 1)
		return spec_wrong(s, "PerDay, DecayToZeroHours and HighWaterHours each move the "
				  "limit; give one of them");
	if (t->per_day != 0 && !(t->limit > 0))
		return spec_wrong(s, "PerDay multiplies the limit, which must therefore be above "
				  "0");
	if (t->decay_hours != 0 && threshold_wants_small(t) && !t->has_ceiling)
		return spec_wrong(s, "DecayToZeroHours moves a limit until it is reached; with "
				  "'%s' it rises, so say how far: add ;Ceiling=NUMBER, or leave "
				  "out the decay", compare_text(t->compare));
	if (t->decay_hours != 0 && !threshold_wants_small(t) && t->limit < 0)
		return spec_wrong(s, "a limit below zero cannot decay to zero; leave out "
				  "DecayToZeroHours");
	return 0;
}

void threshold_clock(struct threshold *t, uint64_t time_ns)
{
	if (!t->started) {
		t->started = true;
		t->start_ns = t->now_ns = time_ns;
	}
	if (time_ns > t->now_ns)
		t->now_ns = time_ns;
}

/* ---- a limit that moves ---------------------------------------------------------------------- */

#define POWER_MAX 500.0              /* of 2: the limit stays a number, and not 0 */

static uint64_t elapsed_ns(const struct threshold *t)
{
	return t->now_ns - t->start_ns + t->earlier_ns;
}

static double elapsed_hours(const struct threshold *t)
{
	return (double)elapsed_ns(t) / NS_PER_HOUR;
}

static double keep_within_bounds(const struct threshold *t, double v)
{
	if (t->has_floor && v < t->floor)
		v = t->floor;
	return t->has_ceiling && v > t->ceiling ? t->ceiling : v;
}

/* How far a decaying limit has gone: 0 at the start, 1 at its end. */
static double decayed_part(const struct threshold *t)
{
	double gone = elapsed_hours(t) / t->decay_hours;

	if (t->curve == CURVE_EXPONENTIAL)
		return 1 - pow(0.01, gone);
	return gone < 1 ? gone : 1;
}

/* Where a decaying limit ends; a floor below zero does not count. */
static double end_of(const struct threshold *t)
{
	if (threshold_wants_small(t))
		return t->ceiling;
	return t->has_floor && t->floor > 0 ? t->floor : 0;
}

static double steps_back(const struct threshold *t)
{
	return elapsed_hours(t) / 24 * t->per_day;
}

static double steered(const struct threshold *t)
{
	double steps = t->fired_steps - steps_back(t), power = steps / sqrt(t->per_day);

	power = power < -POWER_MAX ? -POWER_MAX : power > POWER_MAX ? POWER_MAX : power;
	return keep_within_bounds(t, t->limit * pow(2, threshold_wants_small(t) ? -power : power));
}

/* A plateau with noise must not fire again and again, so the mark stays, and then goes whole. */
static double marked(const struct threshold *t)
{
	bool stands = t->marked_ns &&
		      (double)(elapsed_ns(t) + 1 - t->marked_ns) < t->mark_hours * NS_PER_HOUR;

	return stands ? t->mark : t->limit;
}

void threshold_follow(struct threshold *t, double value)
{
	if (t->mark_hours == 0 || !threshold_hit(t, value))
		return;
	t->mark = value;
	t->marked_ns = elapsed_ns(t) + 1;
}

void threshold_fired(struct threshold *t, double value, uint64_t time_ns)
{
	double power;

	threshold_clock(t, time_ns);
	threshold_follow(t, value);
	if (t->per_day == 0)
		return;
	/* Start from the bounded limit, as the limit does not run on beyond its bound. */
	power = log2(steered(t) / t->limit);
	if (!(fabs(power) <= POWER_MAX))
		power = 0;
	if (threshold_wants_small(t))
		power = -power;
	t->fired_steps = power * sqrt(t->per_day) + steps_back(t) + 1;
}

double threshold_now(const struct threshold *t)
{
	double end = end_of(t);

	if (t->per_day != 0)
		return steered(t);
	if (t->decay_hours == 0)
		return t->mark_hours != 0 ? marked(t) : t->limit;
	/* The hours are those to zero, so Floor= stops the same line and does not flatten it. */
	return threshold_wants_small(t) ? t->limit + (end - t->limit) * decayed_part(t)
			      : fmax(t->limit * (1 - decayed_part(t)), end);
}

bool threshold_moves(const struct threshold *t)
{
	return t->decay_hours != 0 || t->per_day != 0 || t->mark_hours != 0;
}

void threshold_text(const struct threshold *t, struct buf *out)
{
	char now[NUMBER_TEXT_BYTES], start[NUMBER_TEXT_BYTES], more[NUMBER_TEXT_BYTES];

	number_text(threshold_now(t), now);
	number_text(t->limit, start);
	buf_puts(out, now);
	if (t->per_day != 0) {
		number_text(t->per_day, more);
		buf_printf(out, " (%s at the start, steered to %s a day)", start, more);
	} else if (t->decay_hours != 0) {
		number_text(end_of(t), more);
		buf_printf(out, " (%s at the start, %s to %s in ", start,
			   threshold_wants_small(t) ? "rising" : "decaying", more);
		number_text(t->decay_hours, more);
		buf_printf(out, "%s h)", more);
	} else if (threshold_now(t) != t->limit) {
		buf_printf(out, " (its worst value in the last alarm; %s at the start)", start);
	}
}

void threshold_save(const struct threshold *t, struct buf *out)
{
	buf_printf(out, "limit2 %" PRIu64 " %.17g %.17g %" PRIu64, elapsed_ns(t), t->fired_steps,
		   t->mark, t->marked_ns);
}

int threshold_load(struct threshold *t, const void *bytes, size_t n, uint64_t away_ns,
		   struct err *err)
{
	uint64_t earlier_ns = 0, marked_ns = 0;
	double steps = 0, mark = 0;
	char copy[120] = "";
	int version = 0, end = 0, got;

	if (n < sizeof(copy))
		memcpy(copy, bytes, n);
	got = sscanf(copy, "limit%1d %20" SCNu64 " %40lf%n %40lf %20" SCNu64 "%n", &version,
		     &earlier_ns, &steps, &end, &mark, &marked_ns, &end);
	if (got != (version == 2 ? 5 : 3) || copy[end] || !(fabs(steps) <= 1e9) ||
	    earlier_ns > UINT64_MAX / 4 || away_ns > UINT64_MAX / 4 || !(fabs(mark) <= DBL_MAX) ||
	    marked_ns > earlier_ns + 1)
		return err_set(err, ERR_FORMAT,
			       "the saved state of a limit cannot be read; the limit "
			       "starts afresh");
	t->earlier_ns = earlier_ns + away_ns;
	t->fired_steps = steps;
	t->mark = mark;
	t->marked_ns = marked_ns;
	return 0;
}

bool threshold_hit(const struct threshold *t, double value)
{
	double limit = threshold_now(t);

	if (value == limit)
		return t->compare == COMPARE_OVER_EQUAL || t->compare == COMPARE_UNDER_EQUAL;
	return threshold_wants_small(t) ? value < limit : value > limit;
}

bool threshold_nearer(const struct threshold *t, double a, double b)
{
	return threshold_wants_small(t) ? a < b : a > b;
}

const char *compare_text(enum compare compare)
{
	static const char *const texts[] = {
		[COMPARE_OVER] = ">",
		[COMPARE_OVER_EQUAL] = ">=",
		[COMPARE_UNDER] = "<",
		[COMPARE_UNDER_EQUAL] = "<=",
	};

	return texts[compare];
}

const char *compare_side(enum compare compare)
{
	static const char *const sides[] = {
		[COMPARE_OVER] = "over",
		[COMPARE_OVER_EQUAL] = "at or over",
		[COMPARE_UNDER] = "under",
		[COMPARE_UNDER_EQUAL] = "at or under",
	};

	return sides[compare];
}

void hold_init(struct hold *h, double min_sec, double period_sec)
{
	/* 0.3 / 0.1 is a little less or more than 3. */
	double intervals = ceil(min_sec / period_sec - 1e-6);
	double span_sec;

	if (intervals > 1e9)
		intervals = 1e9;
	memset(h, 0, sizeof(*h));
	h->need = (uint32_t)intervals + 1;
	/* Polls come a little early or late; half a period tells three intervals from two. */
	span_sec = (intervals - 0.5) * period_sec;
	if (span_sec > 1e9)
		span_sec = 1e9;
	h->span_ns = span_sec > 0 ? (uint64_t)(span_sec * (double)NS_PER_SEC) : 0;
}

void hold_reset(struct hold *h)
{
	h->count = 0;
}

bool hold_add(struct hold *h, uint64_t time_ns)
{
	if (!h->count || time_ns < h->first_ns) {
		h->first_ns = time_ns;
		h->count = 0;
	}
	if (h->count < UINT32_MAX)
		h->count++;
	return h->count >= h->need && time_ns - h->first_ns >= h->span_ns;
}

uint32_t hold_progress(const struct hold *h)
{
	return h->count < h->need ? h->count : h->need;
}

void number_text(double v, char out[NUMBER_TEXT_BYTES])
{
	bool whole = v == floor(v) || fabs(v) >= 1000;

	if (whole && fabs(v) < 1e15)
		snprintf(out, NUMBER_TEXT_BYTES, "%.0f", v == 0 ? 0 : v);  /* no "-0" */
	else
		snprintf(out, NUMBER_TEXT_BYTES, "%.4g", v);
}
