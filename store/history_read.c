/* Windows of the past, out of the files that they overlap. */
#include "store/history_private.h"

#include "base/array.h"
#include "base/text.h"
#include "base/version.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_NS (70 * NS_PER_SEC)           /* segments in a row overlap by less */
#define NAME_SLACK_NS (600 * NS_PER_SEC)     /* a name may lie about its file by this much */
#define GAP_NS (15 * NS_PER_SEC)             /* shorter ones are between two rounds */

/* ---- which files ----------------------------------------------------------------------------- */

/* By names alone, where their times grow with their numbers: the others need not be opened. */
static void drop_far_files(struct history_files *f, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t i, n = 0;

	for (i = 1; i < f->n; i++) {
		if (f->all[i].name_wall_ns < f->all[i - 1].name_wall_ns)
			return;
	}
	for (i = 0; i < f->n; i++) {
		uint64_t end_ns = i + 1 < f->n ? f->all[i + 1].name_wall_ns : UINT64_MAX;
		struct history_file file = f->all[i];

		if (file.name_wall_ns > to_ns + NAME_SLACK_NS ||
		    (end_ns != UINT64_MAX && end_ns + NAME_SLACK_NS < from_ns))
			free(file.path);
		else
			f->all[n++] = file;
	}
	f->n = n;
}

struct window {
	uint64_t from_ns, to_ns;             /* of the wall clock */
	bool events_only;
	uint32_t number;                     /* of the only file that counts; 0 = all */
	struct history_files files;          /* those that overlap it */
};

static int find_files(const char *store_path, struct window *w, struct err *err)
{
	uint32_t i, n = 0;
	int rc = history_list(store_path, &w->files, err);

	if (rc)
		return rc;
	drop_far_files(&w->files, w->from_ns, w->to_ns);
	for (i = 0; i < w->files.n; i++) {
		struct history_file file = w->files.all[i];

		history_look(&file, false);
		if (!file.readable || history_wall_ns(&file, file.t0_ns) > w->to_ns ||
		    history_wall_ns(&file, file.t1_ns) < w->from_ns)
			free(file.path);
		else
			w->files.all[n++] = file;
	}
	w->files.n = n;
	return 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* The first segment from an id on: its id and times; 0 = there is none. */
static int probe(struct store *s, int64_t from, int64_t *id, uint64_t *t0, uint64_t *t1,
		 struct err *err)
{
	struct query q = db_query(s, "SELECT id, t0_ns, t1_ns FROM segment WHERE id>=?"
				  " ORDER BY id LIMIT 1", ARGS(arg_int(from)), err);
	int rc = query_step(&q);

	*id = 0;
	if (rc <= 0)
		return rc;
	*id = column_int(&q, 0);
	*t0 = column_u64(&q, 1);
	*t1 = column_u64(&q, 2);
	query_reset(&q);
	return 0;
}

/* Segments were put in order of time, so the first of a window is found by halving. */
static int first_segment(struct store *s, uint64_t t0_ns, int64_t *first, struct err *err)
{
	int64_t low = 1, high = 0, id, middle;
	uint64_t t0, t1;
	int rc = db_int(s, "SELECT coalesce(max(id), 0) FROM segment", NO_ARGS, &high, err);

	high++;
	while (!rc && low < high) {
		middle = low + (high - low) / 2;
		rc = probe(s, middle, &id, &t0, &t1, err);
		if (!rc && id && t1 + SLACK_NS < t0_ns)
			low = id + 1;
		else
			high = middle;
	}
	*first = low;
	return rc;
}

/* Those that overlap [t0, t1] of the file's clock. *samples: that they hold, added up. */
static int find_segments(struct store *s, uint64_t t0_ns, uint64_t t1_ns, struct ids *out,
			 uint64_t *samples, struct err *err)
{
	int64_t first = 1;
	struct query q;
	int rc = first_segment(s, t0_ns, &first, err);

	if (rc)
		return rc;
	q = db_query(s, "SELECT id, t0_ns, t1_ns, samples FROM segment WHERE id>=? ORDER BY id",
		     ARGS(arg_int(first)), err);
	while ((rc = query_step(&q)) > 0 && column_u64(&q, 1) <= t1_ns + SLACK_NS) {
		if (column_u64(&q, 1) > t1_ns || column_u64(&q, 2) < t0_ns)
			continue;
		if (ARRAY_ROOM(out->ids, out->cap, out->n + 1)) {
			rc = err_memory(err, "while reading %s", s->path);
			break;
		}
		out->ids[out->n++] = column_int(&q, 0);
		*samples += column_u64(&q, 3);
	}
	query_reset(&q);
	return rc < 0 ? rc : 0;
}

/* ---- the incident ---------------------------------------------------------------------------- */

/*
 * Times of a window are those of the wall clock: a machine that was started anew begins its own
 * clock at 0. From a file's clock to it. Files of one run agree, apart from what the wall clock was
 * corrected by, so that a process stays one process.
 */
static int64_t shift_of(const struct history_file *f)
{
	return (int64_t)(f->wall_ns - f->clock_ns);
}

static bool same_clock(const struct history_file *f, const struct history_file *last)
{
	int64_t off_ns = shift_of(f) - shift_of(last);

	return llabs(off_ns) <= (int64_t)HISTORY_CLOCKS_AGREE_NS &&
	       strcmp(f->boot_id, last->boot_id) == 0;
}

/*
 * A put that failed, as its sync did, may be in its file all the same, and was put again into the
 * next one. So a file counts up to where the next one begins. By the files' clock.
 */
static uint64_t counts_until(const struct window *w, uint32_t i)
{
	const struct history_file *f = &w->files.all[i], *next = f + 1, *end = f + w->files.n - i;

	while (next < end && !next->samples)
		next++;
	if (next == end || !same_clock(f, next) || next->t0_ns < f->t0_ns)
		return UINT64_MAX;
	return next->t0_ns - 1;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* By the file's clock; the beginning of it for what was before. */
static uint64_t unshifted(uint64_t wall_ns, int64_t shift)
{
	return shift > 0 && wall_ns < (uint64_t)shift ? 0 : wall_ns - (uint64_t)shift;
}

static int load_file(const struct window *w, uint32_t i, struct incident *in, uint64_t *samples,
		     struct err *err)
{
	const struct history_file *f = &w->files.all[i], *last = &w->files.all[w->files.n - 1];
	int64_t shift = shift_of(!w->number && same_clock(f, last) ? last : f), id = 0;
	struct history_file now = {0};
	struct ids segments = {0};
	struct store *s = NULL;
	int rc = store_open(f->path, STORE_READ, &s, err);

	if (!rc)
		rc = history_read_file(s, &now, &id, err);
	if (!rc)
		rc = find_segments(s, unshifted(in->head.t0_ns, shift),
				   earlier(unshifted(in->head.t1_ns, shift), counts_until(w, i)),
				   &segments, samples, err);
	if (!rc && *samples > HISTORY_SAMPLES_MAX && !w->events_only)
		rc = err_set(err, ERR_LIMIT, "this window holds more than %u million samples: ask "
			     "for a shorter one", HISTORY_SAMPLES_MAX / 1000000);
	if (!rc)
		rc = load_part(s, id, &segments, w->events_only, shift, in, err);
	store_close(s);
	free(segments.ids);
	return rc;
}

static void put_gap(struct buf *out, uint64_t from_ns, uint64_t to_ns, const char *why)
{
	char from[OS_TIME_TEXT_BYTES], to[OS_TIME_TEXT_BYTES];

	os_time_text(from_ns, from);
	os_time_text(to_ns, to);
	buf_printf(out, "%snothing from %.19sZ to %.19sZ: %s", out->len ? "; " : "", from, to, why);
}

static const char *why_ended(const struct history_file *f)
{
	if (f->end[0])
		return f->end;
	return f->open && f->locked ? "not written yet" : "the recorder ended without saying so";
}

/* What is missing of the window, and why. */
static int set_gaps(const struct window *w, struct incident_head *h, struct err *err)
{
	uint64_t at_ns = w->from_ns;
	const char *why = "no recorder was running, or its history has left";
	struct buf text = {0};
	uint32_t i;
	int rc;

	for (i = 0; i < w->files.n; i++) {
		const struct history_file *f = &w->files.all[i];
		uint64_t t0_ns = history_wall_ns(f, f->t0_ns), t1_ns = history_wall_ns(f, f->t1_ns);

		if (t0_ns > at_ns + GAP_NS)
			put_gap(&text, at_ns, t0_ns, why);
		at_ns = t1_ns > at_ns ? t1_ns : at_ns;
		why = why_ended(f);
	}
	if (w->to_ns > at_ns + GAP_NS)
		put_gap(&text, at_ns, w->to_ns, why);
	rc = buf_check(&text, "a window", err);
	if (!rc && text.len && !(h->gap_reason = text_dup(text.data, SIZE_MAX)))
		rc = err_memory(err, "for a window");
	buf_free(&text);
	return rc;
}

/* What the last file's incident says of host and recorder, and the window by the wall clock. */
static int make_head(const struct window *w, uint64_t trigger_ns, struct incident *in,
		     struct err *err)
{
	const struct history_file *last = &w->files.all[w->files.n - 1];
	struct incident_head *h = &in->head;
	char from[OS_TIME_TEXT_BYTES], to[OS_TIME_TEXT_BYTES], reason[120];
	struct store *s = NULL;
	struct history_file file;
	int64_t id = 0;
	int rc = store_open(last->path, STORE_READ, &s, err);

	if (!rc)
		rc = history_read_file(s, &file, &id, err);
	if (!rc)
		rc = store_head(s, id, h, err);
	store_close(s);
	if (rc)
		return rc;
	os_time_text(w->from_ns, from);
	os_time_text(w->to_ns, to);
	snprintf(reason, sizeof(reason), "the history from %.19sZ to %.19sZ", from, to);
	free(h->reason);
	free(h->gap_reason);
	h->gap_reason = NULL;
	h->reason = text_dup(reason, SIZE_MAX);
	h->id = 0;
	memset(h->uuid, 0, sizeof(h->uuid));
	h->state = INCIDENT_COMPLETE;
	h->trigger_wall_ns = h->trigger_ns = trigger_ns;
	h->t0_ns = w->from_ns;
	h->t1_ns = w->to_ns;
	h->asked_pre_ns = trigger_ns > w->from_ns ? trigger_ns - w->from_ns : 0;
	h->asked_post_ns = w->to_ns > trigger_ns ? w->to_ns - trigger_ns : 0;
	h->lost = h->samples = h->stored_bytes = 0;
	memset(h->lost_by_kind, 0, sizeof(h->lost_by_kind));
	memset(h->quality, 0, sizeof(h->quality));
	memset(h->period_ns, 0, sizeof(h->period_ns));
	return h->reason ? set_gaps(w, h, err) : err_memory(err, "for a window");
}

static void count_losses(struct incident *in)
{
	struct incident_head *h = &in->head;
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		enum loss_kind kind;

		if (e->kind != EVENT_LOST || !(e->value > 0 && e->value < 1e18))
			continue;
		kind = loss_kind_from_text(e->name);
		if (kind == LOSS_KINDS)
			continue;
		h->lost_by_kind[kind] += (uint64_t)e->value;
		if (loss_counts(kind))
			h->lost += (uint64_t)e->value;
	}
}

/* Say what is there instead. */
static int nothing_there(const char *store_path, const struct window *w, struct err *err)
{
	char from[OS_TIME_TEXT_BYTES], to[OS_TIME_TEXT_BYTES];
	struct history_files files = {0};
	int rc = history_list(store_path, &files, err);
	uint32_t i, unreadable = 0;
	char damage[80] = "";

	for (i = 0; !rc && i < files.n; i++) {
		history_look(&files.all[i], false);
		unreadable += !files.all[i].readable && !files.all[i].blank;
	}
	if (unreadable)
		snprintf(damage, sizeof(damage), "; %u of its %u files cannot be read",
			 (unsigned)unreadable, (unsigned)files.n);
	os_time_text(w->from_ns, from);
	os_time_text(w->to_ns, to);
	if (!rc && !files.n) {
		rc = err_set(err, ERR_NOT_FOUND, "there is no history beside %s: a recorder with "
			     "--history-mb above 0 writes it", store_path);
	} else if (!rc) {
		char oldest[OS_TIME_TEXT_BYTES];

		os_time_text(files.all[0].name_wall_ns, oldest);
		rc = err_set(err, ERR_NOT_FOUND, "the history beside %s has nothing from %.19sZ to "
			     "%.19sZ; it begins at %.19sZ%s ('recorder history' shows all of it)",
			     store_path, from, to, oldest, damage);
	}
	history_files_free(&files);
	return rc;
}

/* The segments of a file that an incident's window overlaps, for one of its own clock. */
static int adopt_file(struct store *to, const struct incident_head *h, const struct window *w,
		      uint32_t i, struct err *err)
{
	struct ids segments = {0};
	struct store *s = NULL;
	uint64_t samples = 0;
	int rc = store_open(w->files.all[i].path, STORE_READ, &s, err);

	if (!rc)
		rc = find_segments(s, h->t0_ns, earlier(h->t1_ns, counts_until(w, i)), &segments,
				   &samples, err);
	if (!rc)
		rc = store_adopt(to, h->id, s, &segments, err);
	store_close(s);
	free(segments.ids);
	return rc;
}

static int put_window(struct store *to, const struct window *w, struct incident_head *h,
		      struct err *err)
{
	const struct history_file *last = &w->files.all[w->files.n - 1];
	uint32_t i;
	int rc = store_begin(to, h, err);

	for (i = 0; !rc && i < w->files.n; i++) {
		if (same_clock(&w->files.all[i], last))
			rc = adopt_file(to, h, w, i, err);
	}
	return rc ? rc : store_finish(to, h, NULL, 0, err);
}

/* The part of the window that has the clock of its last file, by that clock. */
static int cut_to_clock(const struct window *w, struct incident_head *h, struct err *err)
{
	const struct history_file *last = &w->files.all[w->files.n - 1];
	static const char why[] = "what was before the machine or its clock was set anew is left "
				  "out: show it with --from and --to";
	uint64_t first_ns = last->t0_ns;
	int64_t shift = shift_of(last);
	struct buf text = {0};
	bool others = false;
	uint32_t i;
	int rc;

	for (i = 0; i + 1 < w->files.n; i++) {
		const struct history_file *f = &w->files.all[i];

		others |= !same_clock(f, last);
		if (same_clock(f, last) && f->t0_ns < first_ns)
			first_ns = f->t0_ns;
	}
	h->trigger_ns = unshifted(h->trigger_ns, shift);
	h->t0_ns = unshifted(h->t0_ns, shift);
	h->t0_ns = h->t0_ns > first_ns ? h->t0_ns : first_ns;
	h->t1_ns = unshifted(h->t1_ns, shift);
	h->t1_ns = h->t1_ns < last->t1_ns ? h->t1_ns : last->t1_ns;
	if (!others)
		return 0;
	buf_printf(&text, "%s%s%s", h->gap_reason ? h->gap_reason : "", h->gap_reason ? "; " : "",
		   why);
	rc = buf_check(&text, "a window", err);
	free(h->gap_reason);
	h->gap_reason = rc ? NULL : text_dup(text.data, SIZE_MAX);
	buf_free(&text);
	return rc;
}

static int fill_keep(const struct window *w, const struct history_keep *keep, struct incident *in,
		     struct err *err)
{
	struct incident_head *h = &in->head;
	int rc = make_head(w, keep->trigger_ns, in, err);

	if (!rc)
		rc = cut_to_clock(w, h, err);
	if (rc)
		return rc;
	free(h->rule);
	free(h->reason);
	h->rule = text_dup(keep->rule, SIZE_MAX);
	h->reason = text_dup(keep->reason, SIZE_MAX);
	return h->rule && h->reason ? 0 : err_memory(err, "for a window");
}

int history_keep(const char *store_path, const struct history_keep *keep, int64_t *id,
		 struct err *err)
{
	struct window w = {.from_ns = keep->from_ns, .to_ns = keep->to_ns};
	const char *into = keep->into ? keep->into : store_path;
	struct incident in = {0};
	struct store *to = NULL;
	int rc = find_files(store_path, &w, err);

	if (!rc && !w.files.n)
		rc = nothing_there(store_path, &w, err);
	if (!rc)
		rc = fill_keep(&w, keep, &in, err);
	if (!rc) {
		rc = store_open(into, STORE_EDIT, &to, err);
		if (rc == ERR_NOT_FOUND)
			rc = store_open(into, STORE_RECORD, &to, err);
	}
	if (!rc)
		rc = put_window(to, &w, &in.head, err);
	if (rc && to && in.head.id)
		store_delete(to, in.head.id, NULL);
	if (!rc)
		*id = in.head.id;
	if (!rc && keep->tell_system)
		incident_tell_system(&in.head, store_path);
	store_close(to);
	history_files_free(&w.files);
	incident_free(&in);
	return rc;
}

static int load_all(const struct window *w, struct incident *in, struct err *err)
{
	uint64_t samples = 0;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < w->files.n; i++) {
		if (w->number && w->files.all[i].number != w->number)
			continue;
		rc = load_file(w, i, in, &samples, err);
		if (rc == ERR_FORMAT && w->files.n > 1)
			rc = 0;              /* the other files are evidence all the same */
	}
	if (!rc)
		rc = settle_content(in, err);
	if (rc)
		return rc;
	incident_count(in);
	count_losses(in);
	return 0;
}

static int load_window(const char *store_path, struct window *w, uint64_t trigger_ns,
		       struct incident *out, struct err *err)
{
	struct incident in = {0};
	int rc;

	if (incident_init(&in))
		return err_memory(err, "for a window");
	rc = find_files(store_path, w, err);
	if (!rc && !w->files.n)
		rc = nothing_there(store_path, w, err);
	if (!rc)
		rc = make_head(w, trigger_ns, &in, err);
	if (!rc)
		rc = load_all(w, &in, err);
	history_files_free(&w->files);
	if (rc)
		incident_free(&in);
	else
		*out = in;
	return rc;
}

int history_load(const char *store_path, uint64_t from_ns, uint64_t to_ns, uint64_t trigger_ns,
		 struct incident *out, struct err *err)
{
	struct window w = {.from_ns = from_ns, .to_ns = to_ns};

	return load_window(store_path, &w, trigger_ns, out, err);
}

int history_load_of_file(const char *store_path, uint32_t number, uint64_t from_ns, uint64_t to_ns,
			 struct incident *out, struct err *err)
{
	struct window w = {.from_ns = from_ns, .to_ns = to_ns, .number = number};

	return load_window(store_path, &w, from_ns, out, err);
}

int history_load_events(const char *store_path, uint64_t from_ns, uint64_t to_ns,
			struct incident *out, struct err *err)
{
	struct window w = {.from_ns = from_ns, .to_ns = to_ns, .events_only = true};

	return load_window(store_path, &w, from_ns, out, err);
}
