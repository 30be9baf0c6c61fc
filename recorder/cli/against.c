/*
 * diff --against, and the first lines of show and of the HTML report: a window against the same
 * time of other days, or against the windows just before it, out of the history.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "analysis/drift.h"
#include "base/moment.h"
#include "base/os.h"
#include "store/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_NS (2 * NS_PER_SEC)            /* a shorter window says nothing */
#define LONGEST_NS (3600 * NS_PER_SEC)
#define PAUSE_NS (15 * NS_PER_SEC)           /* the history is put down every ten seconds */
#define SAID_MAX 3u                          /* changes that show and the report name */

/* What a window is compared with. */
struct against {
	enum { AGAINST_DAYS, AGAINST_HOURS, AGAINST_WINDOWS } kind;
	uint32_t n;
};

static int parse(const char *text, struct against *out, struct err *err)
{
	static const struct {
		const char *word;
		struct against is;
	} words[] = {
		{"yesterday", {AGAINST_DAYS, 1}}, {"week", {AGAINST_DAYS, 7}},
		{"same-hour", {AGAINST_DAYS, 7}}, {"hour", {AGAINST_HOURS, 1}},
		{"before", {AGAINST_WINDOWS, 5}},
	};
	size_t len = strcspn(text, "*"), i;
	unsigned long n;
	char *end;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) != len || strncmp(text, words[i].word, len) != 0)
			continue;
		*out = words[i].is;
		if (!text[len])
			return 0;
		n = strtoul(text + len + 1, &end, 10);
		if (text[len + 1] < '1' || text[len + 1] > '9' || *end ||
		    n >= DRIFT_WINDOWS_MAX)
			break;
		out->n = (uint32_t)n;
		return 0;
	}
	return err_set(err, ERR_USAGE, "--against '%.40s': write yesterday, week, same-hour*N "
		       "(days), hour*N (hours before) or before*N (just before), N below %u", text,
		       DRIFT_WINDOWS_MAX);
}

static void put_against(const struct against *a, uint32_t found, struct buf *out)
{
	static const char *const words[] = {"at this hour of", "an hour apart, in",
					    "just before, in"};

	if (a->kind == AGAINST_DAYS && a->n == 1)
		buf_puts(out, "at this hour yesterday");
	else
		buf_printf(out, "%s %" PRIu32 " earlier %s%s", words[a->kind], found,
			   a->kind == AGAINST_DAYS ? "day" : "window", found == 1 ? "" : "s");
}

/* The i-th window before one that begins at from_ns and lasts so long. */
static uint64_t moment_before(const struct against *a, uint64_t from_ns, uint64_t length_ns,
			      uint32_t i)
{
	switch (a->kind) {
	case AGAINST_DAYS:
		return moment_days_before(from_ns, i);
	case AGAINST_HOURS:
		return from_ns - i * 3600 * NS_PER_SEC;
	default:
		return from_ns - i * length_ns;
	}
}

/* The window that is compared. */
struct now {
	const struct incident *in;
	uint64_t t0, t1;
};

/*
 * Add one; what is not there, or not whole, is passed over. Only with the first that is there, the
 * window that it is compared with is added, before it: mostly there is none.
 */
static int add_window(struct drift *d, const char *store, const struct now *now, uint64_t from_ns,
		      struct err *err)
{
	uint64_t to_ns = from_ns + (now->t1 - now->t0);
	struct incident in = {0};
	struct err why = {0};
	int rc = history_load(store, from_ns, to_ns, from_ns, &in, &why);

	if (rc == ERR_NOT_FOUND || rc == ERR_FORMAT)
		return 0;
	if (rc)
		return err_set(err, (enum err_code)rc, "%s", why.text);
	if (!in.head.gap_reason && in.nsamples) {
		if (!d->nwindows)
			rc = drift_add(d, now->in, now->t0, now->t1, err);
		if (!rc)
			rc = drift_add(d, &in, in.head.t0_ns, in.head.t1_ns, err);
	}
	incident_free(&in);
	return rc;
}

/*
 * A window that is not whole is judged where it was recorded, so that its shares are of that time.
 * false: nothing was recorded for a time within.
 */
static bool recorded_part(const struct incident *in, uint64_t *t0, uint64_t *t1)
{
	uint64_t first = 0, last = 0;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		uint64_t at = in->samples[i].time_ns;

		if (at < *t0 || at > *t1)
			continue;
		if (last && at - last > PAUSE_NS)
			return false;
		first = first ? first : at;
		last = at;
	}
	*t0 = first;
	*t1 = last;
	return last != 0;
}

/* The part of an incident that is judged: before its trigger, where there is enough of that. */
static bool judged_part(const struct incident *in, uint64_t *t0, uint64_t *t1)
{
	const struct incident_head *h = &in->head;

	*t0 = h->t0_ns;
	*t1 = h->trigger_ns > h->t0_ns + LEAST_NS && h->trigger_ns < h->t1_ns ? h->trigger_ns
									     : h->t1_ns;
	if (*t1 - *t0 > LONGEST_NS)
		*t0 = *t1 - LONGEST_NS;
	return (!h->gap_reason || recorded_part(in, t0, t1)) && *t1 >= *t0 + LEAST_NS;
}

/* *found: windows that there are; without any d has no rows. */
static int compare(const char *store, const struct incident *in, const struct against *a,
		   struct drift *d, uint32_t *found, struct err *err)
{
	struct now now = {.in = in};
	uint64_t from_ns, length_ns;
	uint32_t i;
	int rc = 0;

	*found = 0;
	if (!judged_part(in, &now.t0, &now.t1))
		return 0;
	length_ns = now.t1 - now.t0;
	from_ns = in->head.trigger_wall_ns + (now.t0 - in->head.trigger_ns);
	for (i = 1; !rc && i <= a->n; i++)
		rc = add_window(d, store, &now, moment_before(a, from_ns, length_ns, i), err);
	if (rc || !d->nwindows)
		return rc;
	*found = d->nwindows - 1;
	return drift_finish(d, err);
}

/* "since 03:10:02 cc1 took 86.1 % of a CPU, which was 0.4 ± 0.3 % at this hour of 7 days". */
static int put_change(const struct drift_row *r, const struct incident *in, const char *when,
		      struct buf *out)
{
	char since[MOMENT_TEXT_BYTES];
	uint64_t t0, t1, since_ns;
	double cpus;
	int rc;

	judged_part(in, &t0, &t1);
	rc = drift_onset(r, in, t0, t1, &since_ns, &cpus, NULL);
	moment_local_text(in->head.trigger_wall_ns + (since_ns - in->head.trigger_ns), since);
	buf_printf(out, "%ssince %.8s %s %s %.1f %% of a CPU, which was %.1f \xc2\xb1 %.1f %% %s",
		   out->len ? "\n" : "", since + 11, r->name,
		   r->kind == DRIFT_FUNCTION ? "itself took" : "took", cpus * 100,
		   r->mean * 100, r->sd * 100, when);
	return rc;
}

/* What all code without a name took together tells nobody anything. */
static bool has_name(const struct drift_row *r)
{
	size_t n = strlen(r->name);

	return r->kind == DRIFT_PROGRAM || n < 2 || strcmp(r->name + n - 2, "!?") != 0;
}

static int put_largest(const struct drift *d, const struct incident *in, const char *when,
		       struct buf *out)
{
	uint32_t i, said = 0;
	int rc = 0;

	for (i = 0; !rc && i < d->nrows && said < SAID_MAX; i++) {
		if (!has_name(&d->rows[i]))
			continue;
		rc = put_change(&d->rows[i], in, when, out);
		said++;
	}
	return rc;
}

int cmd_put_changed(const struct options *o, const struct incident *in, struct buf *out)
{
	/* The days where there are enough of them, else what was just before. */
	static const struct against kinds[] = {{AGAINST_DAYS, 7}, {AGAINST_HOURS, 6},
					       {AGAINST_WINDOWS, 6}};
	struct buf path = {0}, when = {0};
	uint32_t found = 0, k;
	int rc = cmd_store_path(o, STORE_READ, &path, NULL);

	for (k = 0; !rc && found < 2 && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct drift d = {0};

		rc = compare(buf_text(&path), in, &kinds[k], &d, &found, NULL);
		put_against(&kinds[k], found, &when);
		if (!rc && found >= 2)
			rc = put_largest(&d, in, buf_text(&when), out);
		buf_reset(&when);
		drift_free(&d);
	}
	buf_free(&path);
	buf_free(&when);
	return out->failed ? ERR_MEMORY : 0;
}

/* ---- diff --against -------------------------------------------------------------------------- */

static void put_rows(struct sheet *p, const struct options *o, const struct drift *d)
{
	static const char *const kinds[DRIFT_KINDS] = {"program", "function", "inclusive"};
	/* One incident has no spread. */
	int spread = d->njudged > 1 ? 9 : 0;
	int base_spread = d->nwindows - (d->njudged ? d->njudged : 1) > 1 ? 9 : 0;
	uint32_t i;

	for (i = 0; i < d->nrows && i < o->rows; i++) {
		const struct drift_row *r = &d->rows[i];
		const struct sheet_cell cells[] = {
			{"now_percent", "NOW %", 9, SHEET_NUMBER, .v = r->now * 100, .digits = 1},
			{spread ? "now_spread_percent" : NULL, "SPREAD", spread, SHEET_NUMBER,
			 .v = r->now_sd * 100, .digits = 1},
			{"was_percent", "WAS %", 9, SHEET_NUMBER, .v = r->mean * 100, .digits = 1},
			{base_spread ? "spread_percent" : NULL, "SPREAD", base_spread,
			 SHEET_NUMBER, .v = r->sd * 100, .digits = 1},
			{"kind", "KIND     ", -9, .text = kinds[r->kind]},
			{"name", "NAME", .kind = SHEET_NAME, .text = r->name},
		};

		if (!i)
			sheet_heading(p, cells, sizeof(cells) / sizeof(cells[0]));
		sheet_row(p, cells, sizeof(cells) / sizeof(cells[0]));
	}
	if (!d->nrows && !o->json)
		sheet_put(p, SHEET_PLAIN, "\nNothing does.\n");
	else if (i < d->nrows && !o->json)
		sheet_put(p, SHEET_PLAIN, "  and %" PRIu32 " more; --rows shows more\n",
			  d->nrows - i);
}

int cmd_against(const struct options *o, struct err *err)
{
	struct against against;
	struct incident in = {0};
	struct drift d = {0};
	struct buf path = {0}, when = {0};
	struct sheet sheet;
	uint32_t found = 0;
	int rc = parse(o->against, &against, err);

	sheet_init(&sheet, o);
	if (!rc)
		rc = cmd_store_path(o, STORE_READ, &path, err);
	if (!rc)
		rc = cmd_load(o, &in, err);
	if (!rc)
		rc = compare(buf_text(&path), &in, &against, &d, &found, err);
	if (!rc && !found)
		rc = err_set(err, ERR_NOT_FOUND, "the history has none of those windows whole, or "
			     "this one has a gap or is under 2 s: 'recorder history' shows what is "
			     "there");
	if (!rc) {
		put_against(&against, found, &when);
		if (!o->json)
			sheet_put(&sheet, SHEET_PLAIN, "CPU time in %% of a CPU, against what it "
				  "was %s; only what exceeds their spread\n", buf_text(&when));
		put_rows(&sheet, o, &d);
		rc = sheet_print(&sheet, err);
	}
	sheet_free(&sheet);
	drift_free(&d);
	incident_free(&in);
	buf_free(&path);
	buf_free(&when);
	return rc;
}

/* ---- a set against a set --------------------------------------------------------------------- */

struct side {
	const struct options *o;
	struct drift *d;
};

static int add_incident(void *ctx, const char *store, struct incident *in, struct err *err)
{
	const struct side *side = ctx;
	struct err why = {0};
	int rc = cmd_filter_and_group(side->o, in, &why);

	(void)store;
	/* An incident without what was asked for counts, with nothing. */
	if (rc == ERR_NOT_FOUND)
		in->nsamples = 0;
	else if (rc)
		return err_set(err, (enum err_code)rc, "incident %" PRId64 ": %s", in->head.id,
			       why.text);
	if (in->head.t1_ns <= in->head.t0_ns)
		return err_set(err, ERR_NOT_FOUND, "the window of incident %" PRId64 " is empty",
			       in->head.id);
	return drift_add(side->d, in, in->head.t0_ns, in->head.t1_ns, err);
}

int cmd_diff_sets(const struct options *o, struct err *err)
{
	struct drift d = {.inclusive = true};
	struct side side = {o, &d};
	struct sheet sheet;
	int rc = 0;

	sheet_init(&sheet, o);
	if (o->format || o->output || o->per_process || o->normalize || cmd_stream(o) != STREAM_CPU)
		rc = err_set(err, ERR_USAGE, "sets of incidents are compared by CPU time, in a "
			     "table: omit --format, -o, --per-process, --normalize and --metric");
	if (!rc)
		rc = cmd_each_incident(o, NULL, &o->test_ids, add_incident, &side, err);
	d.njudged = d.nwindows;
	if (!rc)
		rc = cmd_each_incident(o, o->base_store, &o->base_ids, add_incident, &side, err);
	if (!rc && (!d.njudged || d.nwindows == d.njudged))
		rc = err_set(err, ERR_NOT_FOUND, "none of the incidents of the %s is there",
			     d.njudged ? "base" : "test");
	if (!rc)
		rc = drift_finish(&d, err);
	if (!rc) {
		if (!o->json)
			sheet_put(&sheet, SHEET_PLAIN, "CPU time in %% of a CPU: the mean of %"
				  PRIu32 " incidents now, against that of %" PRIu32
				  " before; only what exceeds three times their spread%s\n",
				  d.njudged, d.nwindows - d.njudged,
				  d.njudged > 1 && d.nwindows - d.njudged > 1
				  ? "" : "; one incident alone has none");
		put_rows(&sheet, o, &d);
		rc = sheet_print(&sheet, err);
	}
	sheet_free(&sheet);
	drift_free(&d);
	return rc;
}
