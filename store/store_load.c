/* Loading a whole incident: its segments merged, the rows they list turned into indices. */
#include "store/store_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DAMAGE_TOLD = 5 };                    /* parts that are named */

/* Frames or texts of a row; the ids of a frame's page have an index each, UINT32_MAX = not loaded. */
struct loaded_page {
	int64_t first, last;
	struct page_frame *frames;
	uint32_t *indices;
	uint32_t n;
	struct text_page texts;
};

/* In order of their ids; the one asked for last is likely the next. */
struct loaded_pages {
	struct loaded_page *items;
	uint32_t n, cap, at;
};

struct loading {
	struct store *s;
	struct incident *in;
	int64_t version;
	struct loaded_pages frame_pages, text_pages;
	struct idmap processes, threads, modules, functions, frames;   /* row id -> index */
	struct loaded_function {
		const char *name, *raw_name, *module;   /* owned by the incident */
		uint64_t offset;
	} *function_items;
	uint32_t nfunctions, functions_cap;
	struct buf damage;                   /* which parts are missing, and why */
	struct err first_damage;
	uint32_t nread, ndamaged;
	uint64_t samples_missing;
	uint32_t *indices;                   /* of the segment at hand: threads, then frames */
	size_t nindices;
};

static int no_memory(struct loading *l, struct err *err)
{
	return err_set(err, ERR_MEMORY, "out of memory while loading incident %" PRId64 " of %s",
		       l->in->head.id, l->s->path);
}

/* Remember an index; UINT32_MAX is what incident_add_*() say without memory. */
static int enter(struct loading *l, struct idmap *map, int64_t id, uint32_t index, int64_t *out,
		 struct err *err)
{
	*out = index;
	if (index == UINT32_MAX || idmap_set(map, (uint64_t)id, index))
		return no_memory(l, err);
	return 0;
}

/* One row by its id, or the sentence that it is missing. */
static int fetch(struct loading *l, const char *sql, const char *what, int64_t id,
		 sqlite3_stmt **out, struct err *err)
{
	struct args a;
	int rc = db_statement(l->s, sql, &a, err);

	if (rc)
		return rc;
	arg_int(&a, id);
	rc = db_step(l->s, a.st, err);
	if (rc == 0)
		return err_set(err, ERR_FORMAT,
			       "incident %" PRId64 " in %s is damaged: its %s %" PRId64
			       " is missing",
			       l->in->head.id, l->s->path, what, id);
	*out = a.st;
	return rc < 0 ? rc : 0;
}

static const char *text_at(sqlite3_stmt *st, int column)
{
	return (const char *)sqlite3_column_text(st, column);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Where the page with this id is, or would be. */
static uint32_t page_at(const struct loaded_pages *p, int64_t id)
{
	uint32_t lo = 0, hi = p->n, mid;

	if (p->at < p->n && id >= p->items[p->at].first && id <= p->items[p->at].last)
		return p->at;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->items[mid].last < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct loaded_page *page_find(struct loaded_pages *p, int64_t id)
{
	uint32_t at = page_at(p, id);

	if (at == p->n || id < p->items[at].first)
		return NULL;
	p->at = at;
	return &p->items[at];
}

/* Zeroed but for its ids; NULL without memory. */
static struct loaded_page *page_add(struct loaded_pages *p, int64_t first, int64_t last)
{
	struct loaded_page page = {.first = first, .last = last}, *bigger;
	uint32_t at = page_at(p, first), cap = p->cap ? p->cap * 2 : 64;

	if (p->n == p->cap) {
		bigger = realloc(p->items, cap * sizeof(*bigger));
		if (!bigger)
			return NULL;
		p->items = bigger;
		p->cap = cap;
	}
	memmove(&p->items[at + 1], &p->items[at], (p->n - at) * sizeof(*p->items));
	p->n++;
	p->at = at;
	p->items[at] = page;
	return &p->items[at];
}

static void pages_free(struct loaded_pages *p)
{
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		free(p->items[i].frames);
		free(p->items[i].indices);
		text_page_free(&p->items[i].texts);
	}
	free(p->items);
}

/*
 * The row of a page that may have an id: columns first_id, last_id, then blobs.
 * returns  1, 0 there is none, or an error
 */
static int page_row(struct loading *l, const char *sql, int64_t id, sqlite3_stmt **st, struct err *err)
{
	struct args a;
	int rc = db_statement(l->s, sql, &a, err);

	if (rc)
		return rc;
	arg_int(&a, id);
	rc = db_step(l->s, a.st, err);
	if (rc > 0 && sqlite3_column_int64(a.st, 1) < id) {
		sqlite3_reset(a.st);
		rc = 0;
	}
	*st = a.st;
	return rc;
}

static int add_page(struct loading *l, struct loaded_pages *p, sqlite3_stmt *st, struct loaded_page **out,
		    struct err *err)
{
	int64_t first = sqlite3_column_int64(st, 0), last = sqlite3_column_int64(st, 1);
	uint32_t at = page_at(p, first);

	if (at < p->n && last >= p->items[at].first)
		return err_set(err, ERR_FORMAT, "two pages of %s have the same ids", l->s->path);
	*out = page_add(p, first, last);
	return *out ? 0 : no_memory(l, err);
}

static int fill_frames(struct loading *l, struct loaded_page *page, sqlite3_stmt *st, struct err *err)
{
	struct blob data = column_blob(st, 2), functions = column_blob(st, 3);
	int rc = frame_page_unpack(&data, &functions, page->first, &page->frames, &page->n, err);

	if (rc)
		return rc;
	page->indices = malloc(page->n * sizeof(*page->indices));
	if (!page->indices)
		return no_memory(l, err);
	memset(page->indices, 0xff, page->n * sizeof(*page->indices));
	return 0;
}

/* *out NULL: no page has this id. */
static int frame_page(struct loading *l, int64_t id, struct loaded_page **out, struct err *err)
{
	sqlite3_stmt *st;
	int rc;

	*out = page_find(&l->frame_pages, id);
	if (*out || l->version < 3)
		return 0;
	rc = page_row(l, "SELECT first_id, last_id, data, functions FROM frame_page WHERE first_id <= ?"
		      " ORDER BY first_id DESC LIMIT 1", id, &st, err);
	if (rc <= 0)
		return rc;
	rc = add_page(l, &l->frame_pages, st, out, err);
	if (!rc)
		rc = fill_frames(l, *out, st, err);
	sqlite3_reset(st);
	return rc;
}

static int text_page(struct loading *l, int64_t id, struct loaded_page **out, struct err *err)
{
	struct blob blob;
	sqlite3_stmt *st;
	int rc;

	*out = page_find(&l->text_pages, id);
	if (*out)
		return 0;
	rc = page_row(l, "SELECT first_id, last_id, data FROM text_page WHERE first_id <= ?"
		      " ORDER BY first_id DESC LIMIT 1", id, &st, err);
	if (rc <= 0)
		return rc;
	blob = column_blob(st, 2);
	rc = add_page(l, &l->text_pages, st, out, err);
	if (!rc)
		rc = text_page_unpack(&blob, &(*out)->texts, err);
	sqlite3_reset(st);
	return rc;
}

/* NULL in *out: id 0, none. */
static int load_text(struct loading *l, int64_t id, const char **out, struct err *err)
{
	struct loaded_page *page = NULL;
	int rc = id ? text_page(l, id, &page, err) : 0;

	*out = NULL;
	if (rc || !id)
		return rc;
	if (!page || id - page->first >= page->texts.n)
		return err_set(err, ERR_FORMAT,
			       "incident %" PRId64 " in %s is damaged: its text %" PRId64 " is missing",
			       l->in->head.id, l->s->path, id);
	*out = page->texts.texts[id - page->first];
	return 0;
}

/* ---- processes and threads ------------------------------------------------------------------ */

static int load_process(struct loading *l, int64_t id, int64_t *index, struct err *err)
{
	struct incident_process p = {0};
	sqlite3_stmt *st;
	uint32_t at;
	int rc;

	if (idmap_get(&l->processes, (uint64_t)id, index))
		return 0;
	rc = l->version < 3
		? fetch(l, "SELECT pid, start_ns, exec, parent_pid, name, cmdline, 0 FROM process WHERE id=?",
			"process", id, &st, err)
		: fetch(l, "SELECT pid, start_ns, exec, parent_pid, name, cmdline, cmdline_id FROM process"
			" WHERE id=?", "process", id, &st, err);
	if (rc)
		return rc;
	p.pid = (uint32_t)sqlite3_column_int64(st, 0);
	p.start_ns = (uint64_t)sqlite3_column_int64(st, 1);
	p.exec = (uint32_t)sqlite3_column_int64(st, 2);
	p.parent_pid = (uint32_t)sqlite3_column_int64(st, 3);
	p.name = text_at(st, 4);
	rc = load_text(l, sqlite3_column_int64(st, 6), &p.cmdline, err);
	if (!p.cmdline)
		p.cmdline = text_at(st, 5);
	at = rc ? UINT32_MAX : incident_add_process(l->in, &p);
	sqlite3_reset(st);
	return rc ? rc : enter(l, &l->processes, id, at, index, err);
}

static int load_thread(struct loading *l, int64_t id, int64_t *index, struct err *err)
{
	struct incident_thread t = {0};
	int64_t process_id, process = 0;
	sqlite3_stmt *st;
	uint32_t at;
	int rc;

	if (idmap_get(&l->threads, (uint64_t)id, index))
		return 0;
	rc = fetch(l, "SELECT process_id, tid, name FROM thread WHERE id=?", "thread", id, &st,
		   err);
	if (rc)
		return rc;
	process_id = sqlite3_column_int64(st, 0);
	t.tid = (uint32_t)sqlite3_column_int64(st, 1);
	t.name = text_at(st, 2);
	rc = load_process(l, process_id, &process, err);
	t.process = (uint32_t)process;
	at = rc ? UINT32_MAX : incident_add_thread(l->in, &t);
	sqlite3_reset(st);
	return rc ? rc : enter(l, &l->threads, id, at, index, err);
}

/* ---- frames --------------------------------------------------------------------------------- */

static int load_module(struct loading *l, int64_t id, int64_t *index, struct err *err)
{
	struct incident_module m = {0};
	sqlite3_stmt *st;
	uint32_t at;
	int n, rc;

	if (idmap_get(&l->modules, (uint64_t)id, index))
		return 0;
	rc = fetch(l, "SELECT kind, name, path, build_id FROM module WHERE id=?", "module", id, &st,
		   err);
	if (rc)
		return rc;
	m.kind = object_kind_from_text(text_at(st, 0));
	m.name = text_at(st, 1);
	m.path = text_at(st, 2);
	n = sqlite3_column_bytes(st, 3);
	m.build_id_bytes = (uint8_t)(n < BUILD_ID_MAX ? n : BUILD_ID_MAX);
	if (m.build_id_bytes)
		memcpy(m.build_id, sqlite3_column_blob(st, 3), m.build_id_bytes);
	at = incident_add_module(l->in, &m);
	sqlite3_reset(st);
	return enter(l, &l->modules, id, at, index, err);
}

/*
 * The frame's function fields. Functions are remembered with the texts of the first frame that has
 * them: those are the incident's own copies, so a later frame reads no row.
 */
static int load_function(struct loading *l, int64_t id, struct incident_frame *f, sqlite3_stmt **st,
			 struct err *err)
{
	const struct loaded_function *known;
	int64_t at;
	int rc;

	if (idmap_get(&l->functions, (uint64_t)id, &at)) {
		known = &l->function_items[at];
		f->function = known->name;
		f->raw_name = known->raw_name;
		f->function_module = known->module;
		f->function_offset = known->offset;
		return 0;
	}
	rc = fetch(l, "SELECT name, raw_name, module, offset FROM function WHERE id=?", "function",
		   id, st, err);
	if (rc)
		return rc;
	f->function = text_at(*st, 0);
	f->raw_name = text_at(*st, 1);
	f->function_module = text_at(*st, 2);
	f->function_offset = (uint64_t)sqlite3_column_int64(*st, 3);
	return 0;
}

static int remember_function(struct loading *l, int64_t id, const struct incident_frame *f,
			     struct err *err)
{
	struct loaded_function *items;

	if (l->nfunctions == l->functions_cap) {
		l->functions_cap = l->functions_cap ? l->functions_cap * 2 : 256;
		items = realloc(l->function_items, l->functions_cap * sizeof(*items));
		if (!items)
			return no_memory(l, err);
		l->function_items = items;
	}
	items = &l->function_items[l->nfunctions];
	items->name = f->function;
	items->raw_name = f->raw_name;
	items->module = f->function_module;
	items->offset = f->function_offset;
	if (idmap_set(&l->functions, (uint64_t)id, l->nfunctions))
		return no_memory(l, err);
	l->nfunctions++;
	return 0;
}

static int add_frame(struct loading *l, struct incident_frame *f, int64_t function, uint32_t *at,
		     struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = 0;

	if (function)
		rc = load_function(l, function, f, &st, err);
	if (rc)
		return rc;
	*at = incident_add_frame(l->in, f);
	if (st)
		sqlite3_reset(st);
	if (*at != UINT32_MAX && st)
		rc = remember_function(l, function, &l->in->frames[*at], err);
	return rc;
}

static int add_page_frame(struct loading *l, const struct page_frame *from, uint32_t *at, struct err *err)
{
	struct incident_frame f = {.offset = from->offset, .flags = from->flags};
	int64_t module = 0;
	int rc = load_module(l, from->module_id, &module, err);

	f.module = (uint32_t)module;
	if (!rc)
		rc = add_frame(l, &f, from->function_id, at, err);
	return rc || *at != UINT32_MAX ? rc : no_memory(l, err);
}

/* Of a store of version 2, or one that began as such. */
static int load_frame_row(struct loading *l, int64_t id, int64_t *index, struct err *err)
{
	struct page_frame f = {.id = id};
	uint32_t at = UINT32_MAX;
	sqlite3_stmt *st;
	int rc;

	if (idmap_get(&l->frames, (uint64_t)id, index))
		return 0;
	rc = fetch(l, "SELECT module_id, offset, flags, function_id FROM frame WHERE id=?", "frame",
		   id, &st, err);
	if (rc)
		return rc;
	f.module_id = sqlite3_column_int64(st, 0);
	f.offset = (uint64_t)sqlite3_column_int64(st, 1);
	f.flags = (uint32_t)sqlite3_column_int64(st, 2);
	f.function_id = sqlite3_column_int64(st, 3);
	sqlite3_reset(st);
	rc = add_page_frame(l, &f, &at, err);
	return rc ? rc : enter(l, &l->frames, id, at, index, err);
}

static int load_frame(struct loading *l, int64_t id, int64_t *index, struct err *err)
{
	struct loaded_page *page;
	uint32_t at = UINT32_MAX;
	int rc = frame_page(l, id, &page, err);

	if (!rc && page)
		at = frame_page_find(page->frames, page->n, id);
	if (rc || at == UINT32_MAX)
		return rc ? rc : load_frame_row(l, id, index, err);
	if (page->indices[at] == UINT32_MAX)
		rc = add_page_frame(l, &page->frames[at], &page->indices[at], err);
	*index = page->indices[at];
	return rc;
}

/* ---- segments ------------------------------------------------------------------------------- */

static int make_room(struct loading *l, size_t n, struct err *err)
{
	uint32_t *bigger;

	if (n <= l->nindices)
		return 0;
	bigger = realloc(l->indices, n * sizeof(*bigger));
	if (!bigger)
		return no_memory(l, err);
	l->indices = bigger;
	l->nindices = n;
	return 0;
}

static int load_segment(void *ctx, const struct stored_segment *segment, struct err *err)
{
	struct loading *l = ctx;
	uint32_t nthreads = segment->content.nthreads, nframes = segment->content.nframes, i;
	int64_t index = 0;
	int rc = make_room(l, (size_t)nthreads + nframes + 1, err);

	for (i = 0; !rc && i < nthreads; i++) {
		rc = load_thread(l, segment->threads[i], &index, err);
		l->indices[i] = (uint32_t)index;
	}
	for (i = 0; !rc && i < nframes; i++) {
		rc = load_frame(l, segment->frames[i], &index, err);
		l->indices[nthreads + i] = (uint32_t)index;
	}
	if (!rc)
		rc = incident_add_segment(l->in, &segment->content, l->indices,
					  l->indices + nthreads, err);
	l->nread += !rc;
	return rc;
}

/* ---- damage --------------------------------------------------------------------------------- */

/* Seconds from the trigger. */
static double relative_s(const struct loading *l, uint64_t time_ns)
{
	return (double)(int64_t)(time_ns - l->in->head.trigger_ns) / 1e9;
}

static int note_damage(void *ctx, const struct damaged_segment *segment, struct err *err)
{
	const struct incident_head *head;
	struct loading *l = ctx;
	uint64_t t0, t1;

	(void)err;
	head = &l->in->head;
	t0 = segment->t0_ns > head->t0_ns ? segment->t0_ns : head->t0_ns;
	t1 = segment->t1_ns < head->t1_ns ? segment->t1_ns : head->t1_ns;
	if (!l->ndamaged)
		err_set(&l->first_damage, ERR_FORMAT, "%s", segment->why);
	if (l->ndamaged < DAMAGE_TOLD)
		buf_printf(&l->damage, "%s%+.3f s to %+.3f s", l->ndamaged ? ", " : "",
			   relative_s(l, t0), relative_s(l, t1));
	else if (l->ndamaged == DAMAGE_TOLD)
		buf_puts(&l->damage, ", and more");
	l->ndamaged++;
	l->samples_missing += segment->samples;
	return 0;
}

/* What could be read is the incident; when nothing could, the damage is the error. */
static int settle_damage(struct loading *l, struct err *err)
{
	struct buf text = {0};

	if (!l->ndamaged)
		return 0;
	if (!l->nread) {
		if (err)
			*err = l->first_damage;
		return ERR_FORMAT;
	}
	buf_printf(&text, "%" PRIu32 " of its %" PRIu32 " segments cannot be read: up to %" PRIu64 " samples and "
		   "the events beside them are missing, from %s of the trigger (%s)", l->ndamaged,
		   l->ndamaged + l->nread, l->samples_missing, buf_text(&l->damage),
		   l->first_damage.text);
	l->in->damage = text_dup(buf_text(&text), SIZE_MAX);
	buf_free(&text);
	if (!l->in->damage)
		return no_memory(l, err);
	incident_count(l->in);               /* its head counts what was stored */
	return 0;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Both kinds of item begin with their time. */
_Static_assert(offsetof(struct incident_sample, time_ns) == 0, "time first");
_Static_assert(offsetof(struct incident_event, time_ns) == 0, "time first");

static uint64_t time_at(const char *items, size_t item_bytes, size_t i)
{
	uint64_t time_ns;

	memcpy(&time_ns, items + i * item_bytes, sizeof(time_ns));
	return time_ns;
}

/* Merge the sorted runs [lo, mid) and [mid, hi) of `from` into `to`; if equal, left first. */
static void merge_runs(const char *from, char *to, size_t item_bytes, size_t lo, size_t mid,
		       size_t hi)
{
	size_t a = lo, b = mid, at;

	for (at = lo; at < hi; at++) {
		bool left = a < mid && (b >= hi || time_at(from, item_bytes, a) <=
						   time_at(from, item_bytes, b));

		memcpy(to + at * item_bytes, from + (left ? a++ : b++) * item_bytes, item_bytes);
	}
}

/*
 * By time, equal times in the order of delivery. Nearly always they are so already: an event that
 * came late, or segments sealed in a hurry, are the exception.
 */
static int sort_by_time(void *items, uint32_t n, size_t item_bytes)
{
	char *from = items, *to, *other, *swap;
	size_t i, width;

	for (i = 1; i < n && time_at(from, item_bytes, i - 1) <= time_at(from, item_bytes, i);)
		i++;
	if (i >= n)
		return 0;
	other = to = malloc(n * item_bytes);
	if (!to)
		return ERR_MEMORY;
	for (width = 1; width < n; width *= 2) {
		for (i = 0; i < n; i += 2 * width)
			merge_runs(from, to, item_bytes, i, i + width < n ? i + width : n,
				   i + 2 * width < n ? i + 2 * width : n);
		swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * item_bytes);
	free(other);
	return 0;
}

/* ---- load ----------------------------------------------------------------------------------- */

static int load_content(struct store *s, struct incident *in, struct err *err)
{
	struct loading l = {.s = s, .in = in};
	int rc = schema_version(s, &l.version, err);

	if (!rc)
		rc = read_segments(s, in->head.id, load_segment, note_damage, &l, err);
	if (!rc && (sort_by_time(in->samples, in->nsamples, sizeof(*in->samples)) ||
		    sort_by_time(in->events, in->nevents, sizeof(*in->events))))
		rc = no_memory(&l, err);
	if (!rc)
		rc = settle_damage(&l, err);
	/* Not counted when it was closed, for it is still open. */
	if (!rc && in->head.state == INCIDENT_OPEN)
		incident_count(in);
	idmap_free(&l.processes);
	idmap_free(&l.threads);
	idmap_free(&l.modules);
	idmap_free(&l.functions);
	idmap_free(&l.frames);
	pages_free(&l.frame_pages);
	pages_free(&l.text_pages);
	free(l.function_items);
	buf_free(&l.damage);
	free(l.indices);
	return rc;
}

int store_load(struct store *s, int64_t id, struct incident *out, struct err *err)
{
	struct incident in = {0};
	int rc;

	if (incident_init(&in))
		return err_set(err, ERR_MEMORY, "out of memory while reading %s", s->path);
	/* One transaction: the incident as it is at this moment, whoever writes or deletes. */
	rc = db_exec(s, "BEGIN", err);
	if (!rc) {
		rc = store_head(s, id, &in.head, err);
		if (!rc)
			rc = load_content(s, &in, err);
		sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	}
	if (rc)
		incident_free(&in);
	else
		*out = in;
	return rc;
}
