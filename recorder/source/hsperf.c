#include "source/hsperf.h"

#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 32u
#define ENTRY_BYTES 20u
#define ENTRIES_MAX 16384u

static uint32_t u32_at(const unsigned char *bytes, size_t at)
{
	uint32_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

static void widen(struct hsperf *h, uint32_t at)
{
	if (at < h->low)
		h->low = at;
	if (at + 8 > h->high)
		h->high = at + 8;
}

static void take_collector(struct hsperf *h, const char *name, uint32_t at)
{
	static const char *const values[] = {"invocations", "time", "lastEntryTime", "lastExitTime"};
	static const char prefix[] = "sun.gc.collector.";
	const char *rest = name + sizeof(prefix) - 1;
	uint32_t i;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || rest[0] < '0' ||
	    rest[0] >= (char)('0' + HSPERF_COLLECTORS) || rest[1] != '.')
		return;
	for (i = 0; i < HSPERF_VALUES; i++)
		if (strcmp(rest + 2, values[i]) == 0)
			h->collectors[rest[0] - '0'].at[i] = at;
}

static void take_text(struct hsperf *h, const char *name, const char *text, size_t n)
{
	static const char prefix[] = "sun.gc.collector.";
	const char *rest = name + sizeof(prefix) - 1;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || rest[0] < '0' ||
	    rest[0] >= (char)('0' + HSPERF_COLLECTORS) || strcmp(rest + 1, ".name") != 0)
		return;
	n = strnlen(text, n);
	snprintf(h->collectors[rest[0] - '0'].name, sizeof(h->collectors[0].name), "%.*s",
		 (int)(n < 47 ? n : 47), text);
}

/* One entry of `length` bytes at `at`; all of it is in the file. */
static void take_entry(struct hsperf *h, const unsigned char *b, uint32_t at, uint32_t length)
{
	uint32_t name_at = u32_at(b, at + 4), nvector = u32_at(b, at + 8), data = u32_at(b, at + 16);
	const char *name = (const char *)b + at + name_at;

	if (name_at >= length || data >= length || !memchr(name, 0, length - name_at))
		return;
	if (b[at + 12] == 'B' && nvector && nvector <= length - data) {
		take_text(h, name, (const char *)b + at + data, nvector);
		return;
	}
	if (b[at + 12] != 'J' || nvector || length - data < 8 || (at + data) % 8)
		return;
	if (strcmp(name, "sun.os.hrt.frequency") == 0)
		memcpy(&h->frequency_hz, b + at + data, 8);
	else if (strcmp(name, "sun.os.hrt.ticks") == 0)
		h->ticks_at = at + data;
	else
		take_collector(h, name, at + data);
}

static int finish(struct hsperf *h, struct err *err)
{
	bool any = false, whole;
	uint32_t i, k;

	h->low = UINT32_MAX;
	if (h->ticks_at)
		widen(h, h->ticks_at);
	for (i = 0; i < HSPERF_COLLECTORS; i++) {
		uint32_t *at = h->collectors[i].at;

		whole = at[0] && at[1] && at[2] && at[3];
		any |= whole;
		for (k = 0; k < HSPERF_VALUES; k++) {
			if (whole)
				widen(h, at[k]);
			else
				at[k] = 0;
		}
	}
	if (!any || !h->frequency_hz || h->frequency_hz > 100000000000u)
		return err_set(err, ERR_NOT_FOUND, "the JVM's performance data has no counters of a collector");
	return 0;
}

int hsperf_parse(const void *bytes, size_t n, struct hsperf *out, struct err *err)
{
	static const unsigned char magic[4] = {0xca, 0xfe, 0xc0, 0xc0};
	const unsigned char *b = bytes;
	uint32_t at, count, length;
	struct hsperf h;
	int rc;

	memset(&h, 0, sizeof(h));
	if (n < HEAD_BYTES || n > HSPERF_MAX_BYTES || memcmp(b, magic, 4) != 0 || b[4] != 1 || b[5] != 2)
		return err_set(err, ERR_FORMAT, "no performance data of a JVM (hsperfdata 2, little endian)");
	if (b[7] != 1)
		return err_set(err, ERR_NOT_FOUND, "the JVM has not written its performance data yet");
	at = u32_at(b, 24);
	count = u32_at(b, 28);
	if (count > ENTRIES_MAX)
		return err_set(err, ERR_FORMAT, "performance data of a JVM with over %u counters", ENTRIES_MAX);
	for (; count && at <= n && n - at >= ENTRY_BYTES; count--, at += length) {
		length = u32_at(b, at);
		if (length < ENTRY_BYTES || length > n - at)
			break;
		take_entry(&h, b, at, length);
	}
	rc = finish(&h, err);
	if (!rc)
		*out = h;
	return rc;
}

/* ---- pauses -------------------------------------------------------------------------------------- */

static void edge(struct hsperf_edge *edges, uint32_t *n, bool start, uint64_t ticks, uint64_t count)
{
	edges[(*n)++] = (struct hsperf_edge){.start = start, .ticks = ticks, .count = count};
}

/* When the pause that was open has ended, though another one's exit is there now: by the sum of times. */
static uint64_t lost_exit(const struct hsperf_track *t, const uint64_t now[HSPERF_VALUES])
{
	uint64_t last = now[HSPERF_EXIT] >= now[HSPERF_ENTRY] ? now[HSPERF_EXIT] - now[HSPERF_ENTRY] : 0;
	uint64_t sum = now[HSPERF_TIME] - t->v[HSPERF_TIME], end;

	if (!last)
		return now[HSPERF_EXIT];     /* the other one is open: the exit is that of the first */
	end = t->v[HSPERF_ENTRY] + (sum > last ? sum - last : 0);
	return end < now[HSPERF_ENTRY] ? end : now[HSPERF_ENTRY];
}

uint32_t hsperf_step(struct hsperf_track *t, const uint64_t now[HSPERF_VALUES],
		     struct hsperf_edge edges[HSPERF_EDGES], uint64_t *missed)
{
	bool running = now[HSPERF_EXIT] < now[HSPERF_ENTRY];
	uint64_t more = now[HSPERF_INVOCATIONS] - t->v[HSPERF_INVOCATIONS];
	uint32_t n = 0;

	if (!t->begun) {
		if (running)
			edge(edges, &n, true, now[HSPERF_ENTRY], now[HSPERF_INVOCATIONS]);
		t->open = running;
	} else if (now[HSPERF_ENTRY] != t->v[HSPERF_ENTRY]) {
		if (t->open)
			edge(edges, &n, false, lost_exit(t, now), t->v[HSPERF_INVOCATIONS]);
		if (now[HSPERF_INVOCATIONS] > t->v[HSPERF_INVOCATIONS] && more > 1)
			*missed += more - 1;
		edge(edges, &n, true, now[HSPERF_ENTRY], now[HSPERF_INVOCATIONS]);
		if (!running)
			edge(edges, &n, false, now[HSPERF_EXIT], now[HSPERF_INVOCATIONS]);
		t->open = running;
	} else if (t->open && !running) {
		edge(edges, &n, false, now[HSPERF_EXIT], now[HSPERF_INVOCATIONS]);
		t->open = false;
	}
	t->begun = true;
	memcpy(t->v, now, sizeof(t->v));
	return n;
}
