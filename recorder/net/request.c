/* What requests need on every host. */
#include "net/request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void net_header(struct net_request *r, const char *format, ...)
{
	va_list args;

	if (r->nheaders == REQUEST_HEADERS_MAX)
		return;
	va_start(args, format);
	buf_vprintf(&r->headers[r->nheaders++], format, args);
	va_end(args);
}

void net_request_free(struct net_request *r)
{
	while (r->nheaders)
		buf_free(&r->headers[--r->nheaders]);
}

void net_answer_free(struct net_answer *a)
{
	buf_free(&a->body);
}

void url_put_encoded(struct buf *out, const char *text, bool slashes)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c < 0x80 && isalnum(c)) || strchr("-._~", c) || (slashes && c == '/'))
			buf_putc(out, *text);
		else
			buf_printf(out, "%%%02X", c);
	}
}

/* Days since 1970 of a date (H. Hinnant, days_from_civil). */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

uint64_t retry_after(const char *value, uint64_t wall_ns)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int day, year, hour, minute, second;
	int64_t at, now = (int64_t)(wall_ns / NS_PER_SEC);
	char month[4];
	const char *found;

	value += strspn(value, " ");
	if (isdigit((unsigned char)*value))
		return strlen(value) > 9 ? 999999999 : strtoull(value, NULL, 10);
	if (sscanf(value, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &day, month, &year, &hour, &minute,
		   &second) != 6 || !(found = strstr(months, month)) || year < 1970)
		return 0;
	at = days_of(year, (found - months) / 3 + 1, day) * 86400 + hour * 3600 + minute * 60 +
	     second;
	return at > now ? (uint64_t)(at - now) : 0;
}
