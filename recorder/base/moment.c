/* Moments as people write them. mktime() and localtime() know the time zone on both hosts. */
#include "base/moment.h"

#include "base/os.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIDNIGHT_NOT_SAID (-1)

struct parts {
	int year, month, day;                /* year 0: no date */
	int hour, minute;                    /* hour MIDNIGHT_NOT_SAID: no time */
	double second;
	bool has_offset;
	int offset_min;                      /* of its time from UTC */
};

static void local_time(time_t t, struct tm *out)
{
	const struct tm *tm = localtime(&t);

	if (tm)
		*out = *tm;
	else
		memset(out, 0, sizeof(*out));
}

/* tm_isdst -1: as it was at that time. ERR_USAGE: there is no such moment. */
static int from_local(struct tm *tm, double second, uint64_t *out)
{
	time_t t;

	tm->tm_isdst = -1;
	t = mktime(tm);
	if (t == (time_t)-1 || t < 0)
		return ERR_USAGE;
	*out = (uint64_t)t * NS_PER_SEC + (uint64_t)(second * 1e9);
	return 0;
}

static const char *skip(const char *at)
{
	return at + strspn(at, " ");
}

/* Digits as a number; NULL when there are not between 1 and most of them. */
static const char *digits(const char *at, unsigned least, unsigned most, int *out)
{
	unsigned n = 0;

	*out = 0;
	for (; n < most && isdigit((unsigned char)*at); n++)
		*out = *out * 10 + (*at++ - '0');
	return n >= least ? at : NULL;
}

/* "HH:MM", "HH:MM:SS", "HH:MM:SS.fraction". */
static const char *parse_time(const char *at, struct parts *p)
{
	double scale = 0.1;
	int v;

	at = digits(at, 1, 2, &p->hour);
	if (!at || *at != ':')
		return NULL;
	at = digits(at + 1, 2, 2, &p->minute);
	if (!at || p->hour > 23 || p->minute > 59)
		return NULL;
	if (*at != ':')
		return at;
	at = digits(at + 1, 2, 2, &v);
	if (!at || v > 59)
		return NULL;
	p->second = v;
	if (*at != '.' && *at != ',')
		return at;
	for (at++; isdigit((unsigned char)*at); at++, scale /= 10)
		p->second += scale * (*at - '0');
	return at;
}

static bool is_date(const struct parts *p)
{
	return p->year >= 1971 && p->month >= 1 && p->month <= 12 && p->day >= 1 && p->day <= 31;
}

static const char *parse_date(const char *at, char between, struct parts *p)
{
	at = digits(at, 4, 4, &p->year);
	if (!at || *at != between)
		return NULL;
	at = digits(at + 1, 2, 2, &p->month);
	if (!at || *at != between)
		return NULL;
	at = digits(at + 1, 2, 2, &p->day);
	return at && is_date(p) ? at : NULL;
}

/* "Z", "+01:00", "-0530". */
static const char *parse_offset(const char *at, struct parts *p)
{
	int hours, minutes, sign;

	if (*at == 'Z' || *at == 'z') {
		p->has_offset = true;
		return at + 1;
	}
	if (*at != '+' && *at != '-')
		return at;
	sign = *at == '-' ? -1 : 1;
	at = digits(at + 1, 2, 2, &hours);
	if (!at)
		return NULL;
	at = digits(at + (*at == ':'), 2, 2, &minutes);
	if (!at || hours > 14 || minutes > 59)
		return NULL;
	p->has_offset = true;
	p->offset_min = sign * (hours * 60 + minutes);
	return at;
}

static bool take_word(const char **at, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*at, word, n) != 0 || isalnum((unsigned char)(*at)[n]))
		return false;
	*at = skip(*at + n);
	return true;
}

/* Days since 1970 (H. Hinnant, days_from_civil), for times with an offset of their own. */
static int64_t days_of(int64_t y, int m, int d)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = y / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int with_offset(const struct parts *p, uint64_t *out)
{
	int64_t s = days_of(p->year, p->month, p->day) * 86400 + p->hour * 3600 + p->minute * 60 -
		    p->offset_min * 60;

	if (s < 0)
		return ERR_USAGE;
	*out = (uint64_t)s * NS_PER_SEC + (uint64_t)(p->second * 1e9);
	return 0;
}

/* This time on the local day of a moment, so many days from it. */
static int on_day(const struct parts *p, uint64_t of_ns, int days, uint64_t *out)
{
	struct tm tm;

	local_time((time_t)(of_ns / NS_PER_SEC), &tm);
	tm.tm_mday += days;
	tm.tm_hour = p->hour == MIDNIGHT_NOT_SAID ? 0 : p->hour;
	tm.tm_min = p->minute;
	tm.tm_sec = 0;
	return from_local(&tm, p->second, out);
}

static int on_date(const struct parts *p, uint64_t *out)
{
	struct tm tm = {.tm_year = p->year - 1900, .tm_mon = p->month - 1, .tm_mday = p->day,
			.tm_hour = p->hour == MIDNIGHT_NOT_SAID ? 0 : p->hour,
			.tm_min = p->minute};

	return from_local(&tm, p->second, out);
}

/* The last time it was that late; for the end of a window, the first after its beginning. */
static int time_alone(const struct parts *p, uint64_t now_ns, uint64_t before_ns, uint64_t *out)
{
	int rc = on_day(p, before_ns ? before_ns : now_ns, 0, out);

	if (!rc && before_ns && *out < before_ns)
		rc = on_day(p, before_ns, 1, out);
	else if (!rc && !before_ns && *out > now_ns)
		rc = on_day(p, now_ns, -1, out);
	return rc;
}

double duration_unit_s(const char *name, size_t n)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"sec", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60},
		     {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}, {"y", 365.0 * 86400}};
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == n && memcmp(units[i].name, name, n) == 0)
			return units[i].seconds;
	return 0;
}

bool duration_parse(const char *text, double *out_s)
{
	size_t n = text_number_length(text);
	double unit_s = n ? duration_unit_s(text + n, strlen(text + n)) : 0;

	if (unit_s == 0)
		return false;
	*out_s = strtod(text, NULL) * unit_s;
	return true;
}

/* "-30m": before now. */
static int before_now(const char *at, uint64_t now_ns, uint64_t *out)
{
	double seconds;

	if (!isdigit((unsigned char)*at) || !duration_parse(at, &seconds) ||
	    !(seconds * 1e9 <= (double)now_ns))
		return ERR_USAGE;
	*out = now_ns - (uint64_t)(seconds * 1e9);
	return 0;
}

static int parse(const char *text, uint64_t now_ns, uint64_t before_ns, uint64_t *out)
{
	struct parts p = {.hour = MIDNIGHT_NOT_SAID};
	const char *at = skip(text), *after;
	bool today, yesterday;
	char *end;
	double v;

	if (strncmp(at, "now-", 4) == 0)
		return before_now(at + 4, now_ns, out);
	if (take_word(&at, "now")) {
		*out = now_ns;
		return *at ? ERR_USAGE : 0;
	}
	if (*at == '-')
		return before_now(at + 1, now_ns, out);
	if (*at == '@') {
		v = isdigit((unsigned char)at[1]) ? strtod(at + 1, &end) : -1;
		if (!(v >= 0) || v > 1e10 || *end)
			return ERR_USAGE;
		*out = (uint64_t)(v * 1e9);
		return 0;
	}
	today = take_word(&at, "today");
	yesterday = !today && take_word(&at, "yesterday");
	if (!today && !yesterday) {
		after = parse_date(at, '-', &p);
		if (after)
			at = *after == 'T' && after[1] ? after + 1 : skip(after);
		else
			p.year = 0;
	}
	if (*at) {
		at = parse_time(at, &p);
		if (at && p.year)
			at = parse_offset(at, &p);
		if (!at || *skip(at))
			return ERR_USAGE;
	}
	if (p.year)
		return p.has_offset ? with_offset(&p, out) : on_date(&p, out);
	if (today || yesterday)
		return on_day(&p, now_ns, yesterday ? -1 : 0, out);
	return p.hour == MIDNIGHT_NOT_SAID ? ERR_USAGE : time_alone(&p, now_ns, before_ns, out);
}

int moment_parse(const char *text, uint64_t now_ns, uint64_t before_ns, uint64_t *out,
		 struct err *err)
{
	uint64_t found = 0;

	if (strlen(text) > 60 || parse(text, now_ns, before_ns, &found))
		return err_set(err, ERR_USAGE, "'%.60s' is no moment: write 2026-11-21T03:10, "
			       "03:10, 'yesterday 03:12', -30m or now, with Z at a date's end for "
			       "UTC", text);
	*out = found;
	return 0;
}

/* ---- in a line of a log ---------------------------------------------------------------------- */

/* "Nov" */
static const char *parse_month(const char *at, int *out)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (*out = 1; *out <= 12; ++*out)
		if (strncmp(at, names + 3 * (*out - 1), 3) == 0)
			return at + 3;
	return NULL;
}

/* "21/Nov/2026:" */
static const char *parse_apache_date(const char *at, struct parts *p)
{
	at = digits(at, 2, 2, &p->day);
	at = at && *at == '/' ? parse_month(at + 1, &p->month) : NULL;
	at = at && *at == '/' ? digits(at + 1, 4, 4, &p->year) : NULL;
	return at && *at == ':' && is_date(p) ? at + 1 : NULL;
}

/* "Nov 21 ", "Nov  1 "; the year is of now. */
static const char *parse_syslog_date(const char *at, uint64_t now_ns, struct parts *p)
{
	p->year = 1970 + (int)(now_ns / NS_PER_SEC / 31556952);
	at = parse_month(at, &p->month);
	at = at && *at == ' ' ? digits(skip(at), 1, 2, &p->day) : NULL;
	return at && *at == ' ' && is_date(p) ? at + 1 : NULL;
}

/* A moment that begins here. */
static bool moment_at(const char *at, uint64_t now_ns, uint64_t *out)
{
	struct parts p = {0};
	bool no_year = isalpha((unsigned char)*at);
	const char *time = no_year ? parse_syslog_date(at, now_ns, &p) : parse_apache_date(at, &p);

	if (!time && !no_year) {
		time = parse_date(at, at[4] == '/' ? '/' : '-', &p);
		time = time && (*time == 'T' || *time == ' ') ? time + 1 : NULL;
	}
	time = time ? parse_time(time, &p) : NULL;
	if (!time)
		return false;
	/* An offset is behind the time, or behind a blank; else something else may stand there. */
	if (!parse_offset(*time == ' ' && strchr("+-", time[1]) ? time + 1 : time, &p)) {
		p.has_offset = false;
		p.offset_min = 0;
	}
	if (p.has_offset ? with_offset(&p, out) : on_date(&p, out))
		return false;
	if (!no_year || *out <= now_ns + 86400 * NS_PER_SEC)
		return true;
	p.year--;
	return !on_date(&p, out);
}

bool moment_find(const char *line, uint64_t now_ns, uint64_t *out)
{
	char begin[MOMENT_LINE_BYTES + 40] = "";
	uint64_t found;
	size_t i, n;

	n = (size_t)snprintf(begin, sizeof(begin), "%.*s", (int)sizeof(begin) - 1, line);
	for (i = 0; i < n && i < MOMENT_LINE_BYTES; i++) {
		bool begins = isalnum((unsigned char)begin[i]) &&
			      (!i || !isalnum((unsigned char)begin[i - 1]));

		if (begins && moment_at(begin + i, now_ns, &found)) {
			*out = found;
			return true;
		}
	}
	return false;
}

/* ---- texts ----------------------------------------------------------------------------------- */

void moment_local_text(uint64_t wall_ns, char out[MOMENT_TEXT_BYTES])
{
	struct tm tm;

	local_time((time_t)(wall_ns / NS_PER_SEC), &tm);
	snprintf(out, MOMENT_TEXT_BYTES, "%04d-%02d-%02d %02d:%02d:%02d",
		 (tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100, tm.tm_mday % 100,
		 tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
}

void moment_offset_text(uint64_t wall_ns, char out[MOMENT_OFFSET_BYTES])
{
	int64_t utc_s = (int64_t)(wall_ns / NS_PER_SEC), off_min;
	struct tm tm;

	local_time((time_t)utc_s, &tm);
	off_min = (days_of(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday) * 86400 +
		   tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec - utc_s) / 60;
	snprintf(out, MOMENT_OFFSET_BYTES, "%c%02d:%02d", off_min < 0 ? '-' : '+',
		 (int)(llabs(off_min) / 60 % 100), (int)(llabs(off_min) % 60));
}

uint64_t moment_days_before(uint64_t wall_ns, unsigned days)
{
	uint64_t out = wall_ns, rest_ns = wall_ns % NS_PER_SEC;
	struct tm tm;

	local_time((time_t)(wall_ns / NS_PER_SEC), &tm);
	tm.tm_mday -= (int)days;
	return from_local(&tm, 0, &out) ? wall_ns - days * 86400 * NS_PER_SEC : out + rest_ns;
}
