#include "source/jvm/hsperf.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 32u
#define ENTRY_BYTES 20u
#define COLLECTOR "sun.gc.collector."

/* A file that its JVM has completed. */
static bool is_complete(const void *bytes, size_t n)
{
	static const unsigned char head[6] = {0xca, 0xfe, 0xc0, 0xc0, 1, 2};

	return n >= HEAD_BYTES && n <= HSPERF_MAX_BYTES && memcmp(bytes, head, 6) == 0 &&
	       ((const unsigned char *)bytes)[7] == 1;
}

/* The entry at b, of `length` bytes. false = of another kind, or not within these bytes */
static bool read_entry(const unsigned char *b, uint32_t length, uint32_t place,
		       struct hsperf_entry *out)
{
	uint32_t name = le32(b + 4), nvector = le32(b + 8), data = le32(b + 16);
	uint32_t room = length - data;
	size_t nname;

	if (name >= length || data >= length)
		return false;
	nname = strnlen((const char *)b + name, length - name);
	if (nname == length - name || nname >= sizeof(out->name))
		return false;
	*out = (struct hsperf_entry){.at = place + data, .text_bytes = nvector, .units = b[14],
				     .variability = b[15]};
	memcpy(out->name, b + name, nname);
	return nvector ? b[12] == 'B' && nvector <= room
		       : b[12] == 'J' && room >= 8 && out->at % 8 == 0;
}

uint32_t hsperf_entries(const void *bytes, size_t n, struct hsperf_entry *entries)
{
	const unsigned char *b = bytes;
	uint32_t found = 0, at, left, length;

	if (!is_complete(bytes, n) || le32(b + 28) > HSPERF_ENTRIES_MAX)
		return 0;
	at = le32(b + 24);
	for (left = le32(b + 28); left && at <= n && n - at >= ENTRY_BYTES; left--) {
		length = le32(b + at);
		if (length < ENTRY_BYTES || length > n - at)
			break;
		found += read_entry(b + at, length, at, &entries[found]);
		at += length;
	}
	return found;
}

bool hsperf_is_sound(const struct hsperf_file *f)
{
	uint32_t i;

	for (i = 0; i < f->nentries; i++) {
		const struct hsperf_entry *e = &f->entries[i];
		uint32_t room = e->text_bytes ? e->text_bytes : 8;

		if (!memchr(e->name, 0, sizeof(e->name)) || e->at > f->nbytes ||
		    room > f->nbytes - e->at || (!e->text_bytes && e->at % 8))
			return false;
	}
	return f->nentries <= HSPERF_ENTRIES_MAX;
}

/* ---- counters -------------------------------------------------------------------------------- */

static const unsigned char *at_of(const struct hsperf_file *f, const struct hsperf_entry *e)
{
	return (const unsigned char *)f->bytes + e->at;
}

/* The digit, below `limit`, of a name made of prefix, digit and rest; -1 = it is another name. */
static int numbered(const char *name, const char *prefix, const char *rest, int limit)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 && name[n] >= '0' && name[n] < '0' + limit &&
	       strcmp(name + n + 1, rest) == 0 ? name[n] - '0' : -1;
}

static void note_text(struct hsperf *h, const struct hsperf_file *f, const struct hsperf_entry *e)
{
	int i = numbered(e->name, COLLECTOR, ".name", HSPERF_COLLECTORS);

	if (i >= 0)
		snprintf(h->collectors[i].name, sizeof(h->collectors[i].name), "%.*s",
			 (int)(e->text_bytes < 47 ? e->text_bytes : 47),
			 (const char *)at_of(f, e));
}

static void note_number(struct hsperf *h, const struct hsperf_file *f,
			const struct hsperf_entry *e)
{
	static const char *const values[] = {".invocations", ".time", ".lastEntryTime",
					     ".lastExitTime"};
	const char *space = strstr(e->name, ".space.");
	uint32_t k;
	int i;

	if (strcmp(e->name, "sun.os.hrt.frequency") == 0)
		h->frequency_hz = le64(at_of(f, e));
	else if (strcmp(e->name, "sun.os.hrt.ticks") == 0)
		h->ticks_at = e->at;
	else if (strcmp(e->name, "sun.rt.createVmBeginTime") == 0)
		h->began_at = e->at;
	else if (strcmp(e->name, "sun.rt.safepoints") == 0)
		h->safepoints_at = e->at;
	else if (strcmp(e->name, "sun.rt.safepointTime") == 0)
		h->safepoint_time_at = e->at;
	for (k = 0; k < HSPERF_VALUES; k++) {
		i = numbered(e->name, COLLECTOR, values[k], HSPERF_COLLECTORS);
		if (i >= 0)
			h->collectors[i].at[k] = e->at;
	}
	/* sun.gc.generation.G.space.S.used, which every collector has; 0 and 0 is eden */
	if (space && numbered(space, ".space.", ".used", 10) >= 0 && h->nspaces < HSPERF_SPACES &&
	    (i = numbered(e->name, "sun.gc.generation.", space, 10)) >= 0)
		h->spaces[h->nspaces++] = (struct hsperf_space){
			e->at, i > 0, i == 0 && space[strlen(".space.")] == '0'};
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
	bool safepoints = h->safepoints_at && h->safepoint_time_at, any;
	uint32_t i;

	h->by_safepoints = any = safepoints && is_named(h, "Shenandoah");
	h->ends_late = safepoints && (is_named(h, "Serial full") || is_named(h, "MSC"));
	h->has_sizes = safepoints && !h->by_safepoints && !is_named(h, "ZGC") && !is_named(h, "Z ");
	h->empties_eden = is_named(h, "G1");
	if (!safepoints)
		h->safepoints_at = h->safepoint_time_at = 0;
	for (i = 0; i < HSPERF_COLLECTORS; i++) {
		uint32_t *at = h->collectors[i].at;

		if (at[0] && at[1] && at[2] && at[3] && !h->by_safepoints)
			any = true;
		else
			memset(at, 0, sizeof(h->collectors[i].at));
	}
	if (!any || !h->frequency_hz || h->frequency_hz > 100000000000u)
		return err_set(err, ERR_NOT_FOUND,
			       "the JVM's performance data has no counters of a collector");
	return 0;
}

int hsperf_parse(const struct hsperf_file *f, struct hsperf *out, struct err *err)
{
	struct hsperf h = {0};
	uint32_t i;
	int rc;

	for (i = 0; i < f->nentries; i++) {
		if (f->entries[i].text_bytes)
			note_text(&h, f, &f->entries[i]);
		else
			note_number(&h, f, &f->entries[i]);
	}
	rc = finish(&h, err);
	if (!rc)
		*out = h;
	return rc;
}

/* Units and variability: PerfData::Units and PerfData::Variability in perfData.hpp. */
static struct hsperf_number read_number(const struct hsperf_file *f, const struct hsperf_entry *e)
{
	return (struct hsperf_number){.value = le64(at_of(f, e)), .at = e->at,
				      .grows = e->variability == 2, .ticks = e->units == 3};
}

void hsperf_numbers(const struct hsperf_file *f, hsperf_put *put, void *ctx)
{
	struct hsperf_number number;
	uint32_t i;

	for (i = 0; i < f->nentries; i++)
		if (!f->entries[i].text_bytes) {
			number = read_number(f, &f->entries[i]);
			put(ctx, f->entries[i].name, &number);
		}
}

bool hsperf_number(const struct hsperf_file *f, const char *name, struct hsperf_number *out)
{
	uint64_t frequency_hz = 0;
	bool found = false;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < f->nentries; i++) {
		const struct hsperf_entry *e = &f->entries[i];

		if (e->text_bytes)
			continue;
		if (strcmp(e->name, "sun.os.hrt.frequency") == 0)
			frequency_hz = le64(at_of(f, e));
		if (strcmp(e->name, name) != 0)
			continue;
		found = true;
		*out = read_number(f, e);
	}
	out->frequency_hz = frequency_hz;
	return found;
}

bool hsperf_text(const void *bytes, size_t n, const char *name, const char **text,
		 size_t *text_bytes)
{
	size_t nname = strlen(name) + 1, at;
	const char *b = bytes;

	if (!is_complete(bytes, n))
		return false;
	for (at = HEAD_BYTES; at + nname < n; at++)
		if (memcmp(b + at, name, nname) == 0) {
			*text = b + at + nname;
			*text_bytes = strnlen(*text, n - at - nname);
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

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* length: of a stop */
static void put_edge(struct edges *e, bool start, uint64_t ticks, uint64_t count, uint64_t pauses,
		     uint64_t length)
{
	e->all[e->n++] = (struct hsperf_edge){
		.start = start, .ticks = ticks, .count = count, .length = length,
		.pauses = pauses < UINT32_MAX ? (uint32_t)pauses : UINT32_MAX};
}

static void put_pause(struct edges *e, uint64_t from, uint64_t to, uint64_t count, uint64_t pauses)
{
	put_edge(e, true, from < to ? from : to, count, pauses, 0);
	put_edge(e, false, to, count, pauses, minus(to, from));
}

/* The open pause ends. */
static void put_end(struct edges *e, const struct hsperf_track *t, uint64_t exit, uint64_t pauses)
{
	put_edge(e, false, exit, t->v[HSPERF_INVOCATIONS], pauses, minus(exit, t->v[HSPERF_ENTRY]));
}

/*
 * Another pause has begun since. The sum of times covers all that ended in between, and one end is
 * known: the last pause's entry and exit or, if a pause is open now, the exit before it. So two
 * pauses are exact, and so is the length of a third.
 */
static void pauses_since(const struct hsperf_track *t, const uint64_t now[HSPERF_VALUES],
			 bool running, struct edges *e, struct hsperf_missed *missed)
{
	uint64_t count = now[HSPERF_INVOCATIONS], entry = now[HSPERF_ENTRY],
		 exit = now[HSPERF_EXIT];
	uint64_t sum = minus(now[HSPERF_TIME], t->v[HSPERF_TIME]),
		 rest = minus(sum, running ? 0 : exit - entry);
	/* pauses that began and ended, except the last */
	uint64_t others = minus(count, t->v[HSPERF_INVOCATIONS] + 1), until;

	if (t->open) {
		until = running && !others ? exit : t->v[HSPERF_ENTRY] + rest;
		put_end(e, t, until < entry ? until : entry, 1 + others);
	} else if (others == 1) {
		until = running ? exit : entry;
		rest = minus(until, rest) > t->v[HSPERF_EXIT] ? minus(until, rest)
							      : t->v[HSPERF_EXIT];
		put_pause(e, rest, until, count - 1, 1);
	} else if (others) {
		missed->pauses += others;
		missed->ticks += rest;
	}
	if (running)
		put_edge(e, true, entry, count, 1, 0);
	else
		put_pause(e, entry, exit, count, 1);
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
		     struct hsperf_edge edges[HSPERF_EDGES], struct hsperf_missed *missed)
{
	bool running = now[HSPERF_EXIT] < now[HSPERF_ENTRY];
	struct edges e = {.all = edges};

	if (t->begun && is_half_written(t, now) && t->nskipped++ < SKIPPED_MAX)
		return 0;
	t->nskipped = 0;
	if (!t->begun && running)
		put_edge(&e, true, now[HSPERF_ENTRY], now[HSPERF_INVOCATIONS], 1, 0);
	else if (t->begun && now[HSPERF_ENTRY] != t->v[HSPERF_ENTRY])
		pauses_since(t, now, running, &e, missed);
	else if (t->begun && t->open && !running)
		put_end(&e, t, now[HSPERF_EXIT], 1);
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
			       struct hsperf_edge edges[HSPERF_EDGES], struct hsperf_missed *missed)
{
	uint64_t ended = minus(time, t->v[HSPERF_TIME]), gap = minus(now, t->v[HSPERF_EXIT]);
	uint64_t begun = t->v[HSPERF_ENTRY];
	struct edges e = {.all = edges};

	if (t->begun)
		begun += minus(count, t->v[HSPERF_INVOCATIONS]);
	if (t->begun && ended) {
		/* The others fit into the gap after the open one; the last of them may be open. */
		if (begun <= 1 || (t->open && ended > gap)) {
			put_pause(&e, minus(now, ended), now, count - minus(begun, 1),
			      begun ? begun : 1);
		} else {
			missed->pauses += begun;
			missed->ticks += ended;
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
