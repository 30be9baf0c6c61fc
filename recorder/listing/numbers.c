#include "listing/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *text_count(uint64_t n, char out[NUMBER_BYTES])
{
	char digits[NUMBER_BYTES];
	size_t len, i, used = 0;

	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	len = strlen(digits);
	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = '\0';
	return out;
}

const char *text_bytes(uint64_t bytes, char out[NUMBER_BYTES])
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	double v = (double)bytes;
	unsigned unit = 0;

	while (v >= 999.5 && unit < 4) {
		v /= 1024;
		unit++;
	}
	snprintf(out, NUMBER_BYTES, unit && v < 9.95 ? "%.1f %s" : "%.0f %s", v, units[unit]);
	return out;
}

const char *text_seconds(double seconds, char out[NUMBER_BYTES])
{
	if (seconds < 999.5)
		snprintf(out, NUMBER_BYTES, seconds == floor(seconds) ? "%.0f s" : "%.1f s",
			 seconds);
	else if (seconds < 5400)
		snprintf(out, NUMBER_BYTES, "%.1f min", seconds / 60);
	else if (seconds < 2 * 86400)
		snprintf(out, NUMBER_BYTES, "%.1f h", seconds / 3600);
	else
		snprintf(out, NUMBER_BYTES, "%.1f days", seconds / 86400);
	return out;
}

void put_span(struct buf *out, const struct incident_head *h)
{
	double from = ((double)h->t0_ns - (double)h->trigger_ns) / 1e9;
	double to = ((double)h->t1_ns - (double)h->trigger_ns) / 1e9;
	char a[NUMBER_BYTES], b[NUMBER_BYTES];

	text_seconds(fabs(from), a);
	text_seconds(fabs(to), b);
	/* A window of the history has no trigger. */
	if (!h->id) {
		text_seconds(to - from, a);
		buf_puts(out, a);
		return;
	}
	/* A requested part may lie on one side of the trigger. */
	if (from <= 0 && to >= 0)
		buf_printf(out, "%s before to %s after the trigger", a, b);
	else
		buf_printf(out, "%s to %s %s the trigger", a, b, from > 0 ? "after" : "before");
}
