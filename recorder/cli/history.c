/*
 * history: what the files beside the store hold: stretches of recording and the gaps between them,
 * and a bar for each day with the load of its hours and its incidents.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/moment.h"
#include "base/os.h"
#include "store/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP_NS (15 * NS_PER_SEC)
#define DAYS_MAX 62u
#define HOURS 24u

enum { COLUMNS = 7 };

/* Files in a row of one recorder, without a gap, and of one sampling rate. */
struct stretch {
	uint64_t from_ns, to_ns;             /* of the wall clock */
	uint64_t samples, lost, bytes;
	uint32_t nfiles, damaged;
	const struct history_file *last;
};

struct day {
	uint64_t midnight_ns;                /* local */
	double busy_s[HOURS], recorded_s[HOURS];
	uint32_t incidents[HOURS];
};

struct view {
	struct sheet sheet;
	const struct options *o;
	struct history_files files;
	struct stretch *stretches;
	uint32_t nstretches, nunreadable;    /* nunreadable: files */
	struct day *days;
	uint32_t ndays;
	int widths[COLUMNS];
};

/* ---- stretches ------------------------------------------------------------------------------- */

static const char *what_ended(const struct history_file *f)
{
	if (f->open && f->locked)
		return "recording now";
	return f->end[0] ? f->end : "the recorder ended without saying so";
}

static int add_file(struct view *v, const struct history_file *f)
{
	uint64_t t0 = history_wall_ns(f, f->t0_ns), t1 = history_wall_ns(f, f->t1_ns);
	struct stretch *s = v->nstretches ? &v->stretches[v->nstretches - 1] : NULL;

	if (!s || t0 > s->to_ns + GAP_NS || t0 + GAP_NS < s->to_ns ||
	    f->period_ns != s->last->period_ns || f->pid != s->last->pid ||
	    strcmp(f->boot_id, s->last->boot_id) != 0) {
		if (ARRAY_NEXT(v->stretches, v->nstretches))
			return ERR_MEMORY;
		s = &v->stretches[v->nstretches++];
		*s = (struct stretch){.from_ns = t0};
	}
	s->to_ns = t1 > s->to_ns ? t1 : s->to_ns;
	s->samples += f->samples;
	s->lost += f->lost;
	s->bytes += f->bytes;
	s->nfiles++;
	s->last = f;
	return 0;
}

static void put_stretch(struct view *v, const struct stretch *s, const struct stretch *next,
			bool measures)
{
	char from[MOMENT_TEXT_BYTES], to[MOMENT_TEXT_BYTES];
	char from_utc[OS_TIME_TEXT_BYTES], to_utc[OS_TIME_TEXT_BYTES];
	double gap_s = next && next->from_ns > s->to_ns
			       ? (double)(next->from_ns - s->to_ns) / 1e9 : 0;
	struct buf what = {0};
	char seconds[NUMBER_BYTES];
	struct sheet_cell cells[COLUMNS + 5] = {
		{.head = "FROM               ", .text = from},
		{.head = "TO                 ", .text = to},
		{.key = "seconds", .head = "LENGTH", .kind = SHEET_SECONDS,
		 .v = (double)(s->to_ns - s->from_ns) / 1e9},
		{.key = "samples", .head = "SAMPLES", .kind = SHEET_COUNT, .n = s->samples},
		{.key = "lost", .head = "LOST", .kind = SHEET_COUNT, .n = s->lost, .is_loss = true},
		{.key = "bytes", .head = "SIZE", .kind = SHEET_BYTES, .n = s->bytes},
		{.key = "end", .head = "WHAT ENDED IT", .kind = SHEET_NAME},
		{.key = "from_utc", .text = from_utc},
		{.key = "to_utc", .text = to_utc},
		{.key = "files", .kind = SHEET_COUNT, .n = s->nfiles},
		{.key = "rate_hz", .kind = SHEET_NUMBER, .digits = 1,
		 .v = s->last->period_ns ? 1e9 / (double)s->last->period_ns : 0},
		{.key = "gap_after_s", .kind = SHEET_NUMBER, .v = gap_s, .digits = 1},
	};
	size_t i, n = v->o->json ? COUNT_OF(cells) : COLUMNS;

	moment_local_text(s->from_ns, from);
	moment_local_text(s->to_ns, to);
	os_time_text(s->from_ns, from_utc);
	os_time_text(s->to_ns, to_utc);
	buf_puts(&what, what_ended(s->last));
	if (gap_s >= 1 && !v->o->json)
		buf_printf(&what, "; then nothing for %s", text_seconds(gap_s, seconds));
	cells[COLUMNS - 1].text = buf_text(&what);
	if (measures)
		sheet_measure(cells, COLUMNS, v->widths);
	for (i = 0; i < COLUMNS; i++)
		cells[i].width = v->widths[i];
	if (!measures && s == v->stretches)
		sheet_heading(&v->sheet, cells, COLUMNS);
	if (!measures)
		sheet_row(&v->sheet, cells, n);
	buf_free(&what);
}

static void put_stretches(struct view *v)
{
	uint32_t pass, i;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < v->nstretches; i++)
			put_stretch(v, &v->stretches[i],
				    i + 1 < v->nstretches ? &v->stretches[i + 1] : NULL, !pass);
}

/* ---- days ------------------------------------------------------------------------------------ */

static int make_days(struct view *v)
{
	uint64_t last_ns = v->stretches[v->nstretches - 1].to_ns, from_ns = v->stretches[0].from_ns;
	uint64_t midnight_ns = last_ns;
	uint32_t n = 0, i;

	v->days = calloc(DAYS_MAX, sizeof(*v->days));
	if (!v->days)
		return ERR_MEMORY;
	if (moment_parse("today", last_ns, 0, &midnight_ns, NULL))
		return 0;
	while (n < DAYS_MAX && (!n || v->days[n - 1].midnight_ns > from_ns)) {
		v->days[n].midnight_ns = moment_days_before(midnight_ns, n);
		n++;
	}
	for (i = 0; i < n / 2; i++) {
		struct day swap = v->days[i];

		v->days[i] = v->days[n - 1 - i];
		v->days[n - 1 - i] = swap;
	}
	v->ndays = n;
	return 0;
}

/* The day of a moment, and its hour; false before the first. */
static bool find_hour(struct view *v, uint64_t wall_ns, struct day **day, uint32_t *hour)
{
	uint32_t i = v->ndays;

	while (i && v->days[i - 1].midnight_ns > wall_ns)
		i--;
	if (!i)
		return false;
	*day = &v->days[i - 1];
	*hour = (uint32_t)((wall_ns - (*day)->midnight_ns) / (3600 * NS_PER_SEC));
	return *hour < HOURS;                /* a day of 25 hours has one without a place */
}

static void add_slots(struct view *v, const struct history_file *f)
{
	uint64_t t0 = history_wall_ns(f, f->t0_ns), t1 = history_wall_ns(f, f->t1_ns);
	struct day *day;
	uint32_t hour, i;

	for (i = 0; i < f->nslots; i++) {
		uint64_t from = (f->first_slot + i) * HISTORY_SLOT_NS, to = from + HISTORY_SLOT_NS;

		from = from > t0 ? from : t0;
		to = to < t1 ? to : t1;
		if (to <= from || !find_hour(v, from, &day, &hour))
			continue;
		day->recorded_s[hour] += (double)(to - from) / 1e9;
		day->busy_s[hour] += (double)f->slots[i] * (double)f->period_ns / 1e9;
	}
}

static int add_incident(void *ctx, const struct incident_head *h)
{
	struct view *v = ctx;
	struct day *day;
	uint32_t hour;

	if (find_hour(v, h->trigger_wall_ns, &day, &hour))
		day->incidents[hour]++;
	return 0;
}

/* Its incidents, as far as the store is there. */
static void add_incidents(struct view *v)
{
	struct store *store = NULL;

	if (!cmd_store_open(v->o, STORE_READ, &store, NULL))
		store_list(store, add_incident, v, NULL);
	store_close(store);
}

static double busiest(const struct view *v)
{
	double most = 0;
	uint32_t i, hour;

	for (i = 0; i < v->ndays; i++) {
		for (hour = 0; hour < HOURS; hour++) {
			const struct day *d = &v->days[i];

			if (d->recorded_s[hour] > 0 &&
			    d->busy_s[hour] / d->recorded_s[hour] > most)
				most = d->busy_s[hour] / d->recorded_s[hour];
		}
	}
	return most;
}

static char level(double share)
{
	if (share < 0.05)
		return '.';
	return (char)('0' + (share >= 0.95 ? 9 : (int)(share * 9 + 0.5)));
}

static void put_day(struct view *v, const struct day *d, double most)
{
	char day[MOMENT_TEXT_BYTES];
	struct buf bar = {0};
	uint32_t hour, fired = 0;

	moment_local_text(d->midnight_ns, day);
	for (hour = 0; hour < HOURS; hour++) {
		char c = ' ';

		if (d->recorded_s[hour] > 0)
			c = level(most > 0 ? d->busy_s[hour] / d->recorded_s[hour] / most : 0);
		buf_putc(&bar, c);
		buf_putc(&bar, d->incidents[hour] ? '!' : ' ');
		fired += d->incidents[hour];
	}
	sheet_put(&v->sheet, SHEET_PLAIN, "%.10s  %s", day, buf_text(&bar));
	if (fired)
		sheet_put(&v->sheet, SHEET_LOSS, " %" PRIu32 " incident%s", fired,
			  fired == 1 ? "" : "s");
	sheet_put(&v->sheet, SHEET_PLAIN, "\n");
	buf_free(&bar);
}

static void put_days(struct view *v)
{
	double most = busiest(v);
	uint32_t i;

	sheet_put(&v->sheet, SHEET_HEAD, "\n%-12s", "LOCAL TIME");
	for (i = 0; i < HOURS; i += 2)
		sheet_put(&v->sheet, SHEET_HEAD, "%-4" PRIu32, i);
	sheet_put(&v->sheet, SHEET_PLAIN, "\n");
	for (i = 0; i < v->ndays; i++)
		put_day(v, &v->days[i], most);
	sheet_put(&v->sheet, SHEET_PLAIN, "\n9 = %.2f busy CPUs, the most of an hour; . = under a "
		  "20th of it;\nblank = nothing recorded; ! = incidents\n", most);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int look(struct view *v, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < v->files.n; i++) {
		struct history_file *f = &v->files.all[i];

		history_look(f, true);
		if (f->blank)
			continue;
		if (f->readable) {
			rc = add_file(v, f);
		} else {
			v->nunreadable++;
			cmd_note("%s cannot be read: 'recorder salvage %s -o NEW.db' gets out what "
				 "is readable", f->path, f->path);
		}
	}
	if (!rc && v->nstretches)
		rc = make_days(v);
	for (i = 0; !rc && i < v->files.n; i++)
		if (v->files.all[i].readable)
			add_slots(v, &v->files.all[i]);
	return rc ? err_memory(err, "for the history") : 0;
}

int cmd_history(const struct options *o, struct err *err)
{
	struct view v = {.o = o};
	struct buf path = {0};
	int rc = cmd_store_path(o, STORE_READ, &path, err);

	sheet_init(&v.sheet, o);
	if (!rc)
		rc = history_list(buf_text(&path), &v.files, err);
	if (!rc)
		rc = look(&v, err);
	if (!rc && !v.nstretches)
		rc = err_set(err, ERR_NOT_FOUND, v.nunreadable
			     ? "no file of the history beside %s can be read"
			     : "there is no history beside %s: a recorder with --history-mb above "
			       "0 writes it", buf_text(&path));
	if (!rc) {
		put_stretches(&v);
		if (!o->json) {
			add_incidents(&v);
			put_days(&v);
		}
		rc = sheet_print(&v.sheet, err);
	}
	sheet_free(&v.sheet);
	history_files_free(&v.files);
	free(v.stretches);
	free(v.days);
	buf_free(&path);
	return rc;
}
