#include "source/jvm/hsperf.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 32u
#define ENTRY_BYTES 20u
#define ENTRIES_MAX 16384u

static void widen(struct hsperf *range, uint32_t at)
{
	if (at < range->low)
		range->low = at;
	if (at + 8 > range->high)
		range->high = at + 8;
}

static void take_collector(struct hsperf *h, const char *name, uint32_t at)
{
	static const char *const values[] = {"invocations", "time", "lastEntryTime",
					     "lastExitTime"};
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

/* sun.gc.generation.G.space.S.used, which every collector has; some generations are only names. */
static void take_space(struct hsperf *h, const char *name, uint32_t at)
{
	static const char prefix[] = "sun.gc.generation.";
	const char *rest = name + sizeof(prefix) - 1;

	if (strncmp(name, prefix, sizeof(prefix) - 1) == 0 && rest[0] >= '0' && rest[0] <= '9' &&
	    strncmp(rest + 1, ".space.", 7) == 0 && rest[8] >= '0' && rest[8] <= '9' &&
	    strcmp(rest + 9, ".used") == 0 && h->nused < HSPERF_SPACES)
		h->used_at[h->nused++] = at;
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

/* One entry of `length` bytes at `at`, which lies within the file. */
static void take_entry(struct hsperf *h, const unsigned char *b, uint32_t at, uint32_t length)
{
	uint32_t name_at = le32(b + at + 4), nvector = le32(b + at + 8), data = le32(b + at + 16);
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
	else if (strcmp(name, "sun.rt.createVmBeginTime") == 0)
		h->began_at = at + data;
	else if (strcmp(name, "sun.rt.safepoints") == 0)
		h->safepoints_at = at + data;
	else if (strcmp(name, "sun.rt.safepointTime") == 0)
		h->safepoint_time_at = at + data;
	else {
		take_collector(h, name, at + data);
		take_space(h, name, at + data);
	}
}

static bool is_named(const struct hsperf *h, const char *part)
{
	uint32_t i;

	for (i = 0; i < HSPERF_COLLECTORS; i++)
		if (strstr(h->collectors[i].name, part))
			return true;
	return false;
}

/* Shenandoah's collectors count phases too, but only its safepoints stop the program. */
static int finish(struct hsperf *h, struct err *err)
{
	bool safepoints = h->safepoints_at && h->safepoint_time_at, any, whole;
	uint32_t i, k;

	h->low = UINT32_MAX;
	h->by_safepoints = any = safepoints && is_named(h, "Shenandoah");
	h->ends_late = safepoints && (is_named(h, "Serial full") || is_named(h, "MSC"));
	if (safepoints) {
		widen(h, h->safepoints_at);
		widen(h, h->safepoint_time_at);
	} else {
		h->safepoints_at = h->safepoint_time_at = 0;
	}
	for (i = 0; i < HSPERF_COLLECTORS; i++) {
		uint32_t *at = h->collectors[i].at;

		whole = at[0] && at[1] && at[2] && at[3] && !h->by_safepoints;
		any |= whole;
		for (k = 0; k < HSPERF_VALUES; k++) {
			if (whole)
				widen(h, at[k]);
			else
				at[k] = 0;
		}
	}
	if (!any || !h->frequency_hz || h->frequency_hz > 100000000000u)
		return err_set(err, ERR_NOT_FOUND,
			       "the JVM's performance data has no counters of a collector");
	return 0;
}

static int read_head(const unsigned char *b, size_t n, uint32_t *at, uint32_t *count,
		     struct err *err)
{
	static const unsigned char magic[4] = {0xca, 0xfe, 0xc0, 0xc0};

	if (n < HEAD_BYTES || n > HSPERF_MAX_BYTES || memcmp(b, magic, 4) != 0 || b[4] != 1 ||
	    b[5] != 2)
		return err_set(err, ERR_FORMAT,
			       "not the performance data of a JVM (hsperfdata 2, little endian)");
	if (b[7] != 1)
		return err_set(err, ERR_NOT_FOUND,
			       "the JVM has not written its performance data yet");
	*at = le32(b + 24);
	*count = le32(b + 28);
	if (*count > ENTRIES_MAX)
		return err_set(err, ERR_FORMAT, "performance data of a JVM with over %u counters",
			       ENTRIES_MAX);
	return 0;
}

int hsperf_parse(const void *bytes, size_t n, struct hsperf *out, struct err *err)
{
	const unsigned char *b = bytes;
	uint32_t at, count, length;
	struct hsperf h;
	int rc = read_head(b, n, &at, &count, err);

	memset(&h, 0, sizeof(h));
	if (rc)
		return rc;
	for (; count && at <= n && n - at >= ENTRY_BYTES; count--, at += length) {
		length = le32(b + at);
		if (length < ENTRY_BYTES || length > n - at)
			break;
		take_entry(&h, b, at, length);
	}
	rc = finish(&h, err);
	if (!rc)
		*out = h;
	return rc;
}

bool hsperf_text(const void *bytes, size_t n, const char *name, const char **text,
		 size_t *text_bytes)
{
	const unsigned char *b = bytes;
	size_t name_bytes = strlen(name) + 1;
	uint32_t at, count, length;

	if (read_head(b, n, &at, &count, NULL))
		return false;
	for (; count && at <= n && n - at >= ENTRY_BYTES; count--, at += length) {
		uint32_t name_at = le32(b + at + 4), nvector = le32(b + at + 8),
			 data = le32(b + at + 16);

		length = le32(b + at);
		if (length < ENTRY_BYTES || length > n - at)
			return false;
		if (b[at + 12] != 'B' || name_at > length || length - name_at < name_bytes ||
		    memcmp(b + at + name_at, name, name_bytes) != 0 || data > length ||
		    nvector > length - data)
			continue;
		*text = (const char *)b + at + data;
		*text_bytes = strnlen(*text, nvector);
		return true;
	}
	return false;
}

/* ---- pauses ---------------------------------------------------------------------------------- */

#define SKIPPED_MAX 3u

struct edges {
	struct hsperf_edge *all;
	uint32_t n;
};

static void pause(struct edges *e, uint64_t from, uint64_t to, uint64_t count, uint64_t pauses)
{
	uint32_t n = pauses < UINT32_MAX ? (uint32_t)pauses : UINT32_MAX;

	e->all[e->n++] = (struct hsperf_edge){true, from < to ? from : to, count, n, 0, 0};
	e->all[e->n++] = (struct hsperf_edge){false, to, count, n, from < to ? to - from : 0, 0};
}

static void begins(struct edges *e, uint64_t entry, uint64_t count)
{
	e->all[e->n++] = (struct hsperf_edge){true, entry, count, 1, 0, 0};
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The open pause ends. */
static void ends(struct edges *e, const struct hsperf_track *t, uint64_t exit, uint64_t pauses)
{
	uint32_t n = pauses < UINT32_MAX ? (uint32_t)pauses : UINT32_MAX;

	e->all[e->n++] = (struct hsperf_edge){false, exit, t->v[HSPERF_INVOCATIONS], n,
					      minus(exit, t->v[HSPERF_ENTRY]), 0};
}

/*
 * Another pause has begun since. The sum of times covers all that ended in between, and one end is
 * known: the last pause's entry and exit or, if a pause is open now, the exit before it. So two
 * pauses are exact, and so is the length of a third.
 */
static void pauses_since(const struct hsperf_track *t, const uint64_t now[HSPERF_VALUES],
			 bool running, struct edges *e, struct hsperf_together *together)
{
	uint64_t count = now[HSPERF_INVOCATIONS], entry = now[HSPERF_ENTRY],
		 exit = now[HSPERF_EXIT];
	uint64_t sum = minus(now[HSPERF_TIME], t->v[HSPERF_TIME]),
		 rest = minus(sum, running ? 0 : exit - entry);
	/* pauses that began and ended, except the last */
	uint64_t others = minus(count, t->v[HSPERF_INVOCATIONS] + 1), until;

	if (t->open) {
		until = running && !others ? exit : t->v[HSPERF_ENTRY] + rest;
		ends(e, t, until < entry ? until : entry, 1 + others);
	} else if (others == 1) {
		until = running ? exit : entry;
		rest = minus(until, rest) > t->v[HSPERF_EXIT] ? minus(until, rest)
							      : t->v[HSPERF_EXIT];
		pause(e, rest, until, count - 1, 1);
	} else if (others) {
		together->pauses += others;
		together->ticks += rest;
	}
	if (running)
		begins(e, entry, count);
	else
		pause(e, entry, exit, count, 1);
}

/*
 * When a pause begins, the collector writes the count before the time. When it ends, the sum comes
 * last.
 */
static bool is_half_written(const struct hsperf_track *t, const uint64_t now[HSPERF_VALUES])
{
	bool counted = now[HSPERF_INVOCATIONS] != t->v[HSPERF_INVOCATIONS];
	bool entered = now[HSPERF_ENTRY] != t->v[HSPERF_ENTRY],
	     ended = now[HSPERF_EXIT] != t->v[HSPERF_EXIT];

	if (counted && !entered)
		return true;
	return ended && now[HSPERF_EXIT] >= now[HSPERF_ENTRY] &&
	       minus(now[HSPERF_TIME], t->v[HSPERF_TIME]) < now[HSPERF_EXIT] - now[HSPERF_ENTRY];
}

uint32_t hsperf_step(struct hsperf_track *t, const uint64_t now[HSPERF_VALUES],
		     struct hsperf_edge edges[HSPERF_EDGES], struct hsperf_together *together)
{
	bool running = now[HSPERF_EXIT] < now[HSPERF_ENTRY];
	struct edges e = {.all = edges};

	if (t->begun && is_half_written(t, now) && t->nskipped++ < SKIPPED_MAX)
		return 0;
	t->nskipped = 0;
	if (!t->begun && running)
		begins(&e, now[HSPERF_ENTRY], now[HSPERF_INVOCATIONS]);
	else if (t->begun && now[HSPERF_ENTRY] != t->v[HSPERF_ENTRY])
		pauses_since(t, now, running, &e, together);
	else if (t->begun && t->open && !running)
		ends(&e, t, now[HSPERF_EXIT], 1);
	t->open = running;
	t->begun = true;
	memcpy(t->v, now, sizeof(t->v));
	return e.n;
}

void hsperf_first_note(struct hsperf_first *f, const uint64_t now[HSPERF_VALUES],
		       uint64_t safepoints, uint64_t safepoint_time)
{
	if (!now[HSPERF_INVOCATIONS] || now[HSPERF_EXIT] < now[HSPERF_ENTRY])
		return;
	*f = (struct hsperf_first){true, now[HSPERF_INVOCATIONS], now[HSPERF_ENTRY],
				   now[HSPERF_EXIT], now[HSPERF_EXIT], safepoints,
				   safepoint_time};
}

void hsperf_first_step(struct hsperf_first *f, uint64_t safepoints, uint64_t safepoint_time)
{
	uint64_t more = minus(safepoint_time, f->time);

	if (f->pending && safepoints == f->safepoints && more > f->exit - f->entry)
		f->end = f->entry + more;
}

/*
 * In a track of safepoints, v[HSPERF_ENTRY] counts those that have begun and are not known to have
 * ended.
 */
uint32_t hsperf_safepoint_step(struct hsperf_track *t, uint64_t count, uint64_t time, uint64_t now,
			       struct hsperf_edge edges[HSPERF_EDGES],
			       struct hsperf_together *together)
{
	uint64_t ended = minus(time, t->v[HSPERF_TIME]), gap = minus(now, t->v[HSPERF_EXIT]);
	uint64_t begun = t->v[HSPERF_ENTRY];
	struct edges e = {.all = edges};

	if (t->begun)
		begun += minus(count, t->v[HSPERF_INVOCATIONS]);
	if (t->begun && ended) {
		/* The others fit into the gap after the open one; the last of them may be open. */
		if (begun <= 1 || (t->open && ended > gap)) {
			pause(&e, minus(now, ended), now, count - minus(begun, 1),
			      begun ? begun : 1);
		} else {
			together->pauses += begun;
			together->ticks += ended;
		}
		begun = 0;
	}
	t->v[HSPERF_ENTRY] = begun;
	t->v[HSPERF_EXIT] = now;
	t->v[HSPERF_INVOCATIONS] = count;
	t->v[HSPERF_TIME] = time;
	t->open = begun == 1;
	t->begun = true;
	return e.n;
}
