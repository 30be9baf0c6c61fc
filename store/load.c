/* Loading a whole incident: its segments merged, the rows they list turned into indices. */
#include "store/rows_private.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DAMAGE_LISTED_MAX = 5 };              /* parts of the window that are listed */

enum { FLAT_IDS = 1 << 24 };

#define LARGE_PAGES_BYTES ((size_t)8 << 20)  /* the system gets back what such pages took */

/* Ids of the store -> indices in the incident. */
struct indices {
	uint32_t *flat;                      /* id -> index + 1, 0 = not loaded */
	uint32_t nflat;
	struct idmap beyond;                 /* ids from FLAT_IDS on -> index */
};

struct loading {
	struct store *s;
	struct incident *in;
	struct page_cache pages;
	struct task_rows tasks;
	struct row_walk modules;
	struct indices processes, threads, modules_loaded, frames;
	struct indices functions;            /* -> a frame of each */
	struct buf damage;                   /* parts of the window that are missing */
	struct err first_damage;
	struct err lost_text, lost_name, lost_function;      /* why the first was lost, if any */
	uint32_t nread, ndamaged;
	uint64_t samples_missing;
	int64_t shift_ns;                    /* to the incident's clock, from the file's */
	bool events_only;
	uint32_t *indices;                   /* of the segment at hand: threads, then frames */
	uint32_t indices_cap;
};

static int no_memory(struct loading *l, struct err *err)
{
	return err_memory(err, "while loading incident %" PRId64 " of %s", l->in->head.id,
			  l->s->path);
}

static int missing(const struct loading *l, const char *what, int64_t id, struct err *err)
{
	return err_set(err, ERR_FORMAT,
		       "incident %" PRId64 " in %s is damaged: its %s %" PRId64 " is missing",
		       l->in->head.id, l->s->path, what, id);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool find_beyond(const struct indices *r, int64_t id, uint32_t *index)
{
	int64_t beyond;

	if ((uint64_t)id < FLAT_IDS || !idmap_get(&r->beyond, (uint64_t)id, &beyond))
		return false;
	*index = (uint32_t)beyond;
	return true;
}

/* Inline: a large incident asks for millions of frames. */
static inline bool find_index(const struct indices *r, int64_t id, uint32_t *index)
{
	if ((uint64_t)id >= r->nflat)
		return find_beyond(r, id, index);
	*index = r->flat[id] - 1;
	return r->flat[id] != 0;
}

/* calloc(): only the pages of memory that are used take any. */
static int make_flat(struct indices *r, uint64_t id)
{
	uint32_t n = id < FLAT_IDS / 2 ? (uint32_t)id * 2 + 1024 : FLAT_IDS;
	uint32_t *bigger = calloc(n, sizeof(*bigger));

	if (!bigger)
		return ERR_MEMORY;
	if (r->nflat)
		memcpy(bigger, r->flat, r->nflat * sizeof(*bigger));
	free(r->flat);
	r->flat = bigger;
	r->nflat = n;
	return 0;
}

/* Remember an index. UINT32_MAX, from incident_add_*(), means that there was no memory. */
static int remember_index(struct loading *l, struct indices *r, int64_t id, uint32_t index,
			  struct err *err)
{
	int rc = index == UINT32_MAX ? ERR_MEMORY : 0;

	if (!rc && (uint64_t)id >= FLAT_IDS)
		rc = idmap_set(&r->beyond, (uint64_t)id, index);
	else if (!rc && (uint64_t)id >= r->nflat)
		rc = make_flat(r, (uint64_t)id);
	if (rc)
		return no_memory(l, err);
	if ((uint64_t)id < FLAT_IDS)
		r->flat[id] = index + 1;
	return 0;
}

static void indices_free(struct indices *r)
{
	free(r->flat);
	idmap_free(&r->beyond);
}

/*
 * Samples without a command line or a name are still evidence, and the incident says what it lacks.
 * rc is what looking for one gave. Only other errors than damage are returned.
 */
static int go_without(struct err *first, int rc, const struct err *why, struct err *err)
{
	if (rc == ERR_FORMAT) {
		*first = first->code ? *first : *why;
		return 0;
	}
	if (rc && err)
		*err = *why;
	return rc;
}

/* *out: NULL when the id is 0, or the text cannot be read. */
static int load_text(struct loading *l, int64_t id, const char **out, struct err *err)
{
	struct err why = {0};
	int rc;

	*out = NULL;
	if (!id)
		return 0;
	rc = page_cache_text(&l->pages, id, out, &why);
	if (!rc && !*out)
		rc = missing(l, "text", id, &why);
	return go_without(&l->lost_text, rc, &why, err);
}

/* ---- processes and threads ------------------------------------------------------------------ */

static int load_process(struct loading *l, int64_t id, uint32_t *index, struct err *err)
{
	struct incident_process p = {0};
	struct stored_process stored;
	int rc;

	if (find_index(&l->processes, id, index))
		return 0;
	rc = task_rows_process(&l->tasks, id, &stored, &l->lost_name, err);
	if (rc <= 0)
		return rc ? rc : missing(l, "process", id, err);
	p.pid = stored.pid;
	p.start_ns = stored.start_ns + (stored.start_ns ? (uint64_t)l->shift_ns : 0);
	p.exec = stored.exec;
	p.parent_pid = stored.parent_pid;
	p.name = stored.name;
	rc = load_text(l, stored.cmdline_id, &p.cmdline, err);
	if (!rc)
		rc = load_text(l, stored.home_id, &p.home, err);
	if (rc)
		return rc;
	*index = incident_add_process(l->in, &p);
	return remember_index(l, &l->processes, id, *index, err);
}

static int load_thread(struct loading *l, int64_t id, uint32_t *index, struct err *err)
{
	struct incident_thread t = {0};
	struct stored_thread stored;
	int rc;

	if (find_index(&l->threads, id, index))
		return 0;
	rc = task_rows_thread(&l->tasks, id, &stored, &l->lost_name, err);
	if (rc <= 0)
		return rc ? rc : missing(l, "thread", id, err);
	t.tid = stored.tid;
	t.name = stored.name;
	rc = load_process(l, stored.process_id, &t.process, err);
	if (rc)
		return rc;
	*index = incident_add_thread(l->in, &t);
	return remember_index(l, &l->threads, id, *index, err);
}

/* ---- frames --------------------------------------------------------------------------------- */

static int load_module(struct loading *l, int64_t id, uint32_t *index, struct err *err)
{
	const struct query *q = &l->modules.query;
	struct incident_module m = {0};
	struct blob build_id;
	int rc;

	if (find_index(&l->modules_loaded, id, index))
		return 0;
	rc = row_walk_to(l->s, &l->modules, id, err);
	if (rc <= 0)
		return rc ? rc : missing(l, "module", id, err);
	m.kind = object_kind_from_text(column_text(q, 1));
	m.name = column_text(q, 2);
	m.path = column_text(q, 3);
	if (m.path && !*m.path)
		m.path = m.name;             /* the history's; see module_insert() */
	build_id = column_blob(q, 4);
	m.build_id_bytes = (uint8_t)(build_id.n < BUILD_ID_MAX ? build_id.n : BUILD_ID_MAX);
	if (m.build_id_bytes)
		memcpy(m.build_id, build_id.bytes, m.build_id_bytes);
	*index = incident_add_module(l->in, &m);
	return remember_index(l, &l->modules_loaded, id, *index, err);
}

/*
 * Set the frame's function fields; they stay empty when they cannot be read. *known: they are those
 * of a frame that was loaded before.
 */
static int load_function(struct loading *l, int64_t id, struct incident_frame *f, bool *known,
			 struct err *err)
{
	const struct page_function *stored;
	struct err why = {0};
	uint32_t like;
	int rc;

	*known = find_index(&l->functions, id, &like);
	if (*known) {
		f->function = l->in->frames[like].function;
		f->raw_name = l->in->frames[like].raw_name;
		f->function_module = l->in->frames[like].function_module;
		f->function_offset = l->in->frames[like].function_offset;
		return 0;
	}
	rc = page_cache_function(&l->pages, id, &stored, &why);
	if (!rc && !stored)
		rc = missing(l, "function", id, &why);
	if (rc)
		return go_without(&l->lost_function, rc, &why, err);
	f->function = stored->name;
	f->raw_name = stored->raw_name;
	f->function_module = stored->module;
	f->function_offset = stored->offset;
	return 0;
}

/* One that is not loaded yet. */
static int load_frame(struct loading *l, int64_t id, uint32_t *index, struct err *err)
{
	struct incident_frame f = {0};
	const struct page_frame *stored;
	int64_t function_id;
	bool known = false;
	int rc;

	rc = page_cache_frame(&l->pages, id, &stored, err);
	if (!rc && !stored)
		rc = missing(l, "frame", id, err);
	if (rc)
		return rc;
	f.offset = stored->offset;
	f.flags = stored->flags;
	function_id = stored->function_id;
	rc = load_module(l, stored->module_id, &f.module, err);
	if (!rc && function_id)
		rc = load_function(l, function_id, &f, &known, err);
	if (rc)
		return rc;
	*index = known ? incident_add_known_frame(l->in, &f) : incident_add_frame(l->in, &f);
	rc = remember_index(l, &l->frames, id, *index, err);
	if (!rc && f.function && !known)
		rc = remember_index(l, &l->functions, function_id, *index, err);
	return rc;
}

/* ---- segments ------------------------------------------------------------------------------- */

/* Move a segment's times to the incident's clock. The decoded arrays are ours for the call. */
static void shift_times(struct segment_content *c, int64_t shift_ns)
{
	uint32_t i;

	c->t0_ns += (uint64_t)shift_ns;
	c->t1_ns += (uint64_t)shift_ns;
	for (i = 0; i < c->nsamples; i++)
		c->samples[i].time_ns += (uint64_t)shift_ns;
	for (i = 0; i < c->nevents; i++)
		c->events[i].time_ns += (uint64_t)shift_ns;
}

/* Threads that have only samples are not referred to: they stand for any other, or are left out. */
static int load_threads_of_events(struct loading *l, const struct stored_segment *segment,
				  struct segment_content *c, struct err *err)
{
	uint32_t any = UINT32_MAX, i;
	int rc = 0;

	memset(l->indices, 0xff, c->nthreads * sizeof(*l->indices));
	for (i = 0; !rc && i < c->nevents; i++) {
		uint32_t thread = c->events[i].thread;

		if (thread == THREAD_NONE || l->indices[thread] != UINT32_MAX)
			continue;
		rc = load_thread(l, segment->threads[thread], &any, err);
		l->indices[thread] = any;
	}
	for (i = 0; i < c->nthreads; i++) {
		if (l->indices[i] == UINT32_MAX)
			l->indices[i] = any;
	}
	if (any == UINT32_MAX)
		c->nthreads = 0;
	return rc;
}

static int load_threads(struct loading *l, const struct stored_segment *segment, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < segment->content.nthreads; i++)
		rc = load_thread(l, segment->threads[i], &l->indices[i], err);
	return rc;
}

static int load_segment(void *ctx, const struct stored_segment *segment, struct err *err)
{
	struct loading *l = ctx;
	struct segment_content content = segment->content;
	uint32_t nthreads = content.nthreads, nframes, i;
	int rc = 0;

	if (l->shift_ns)
		shift_times(&content, l->shift_ns);
	if (l->events_only)
		content.nframes = 0;
	nframes = content.nframes;

	if (ARRAY_ROOM(l->indices, l->indices_cap, (size_t)nthreads + nframes + 1))
		rc = no_memory(l, err);

	if (!rc)
		rc = l->events_only ? load_threads_of_events(l, segment, &content, err)
				    : load_threads(l, segment, err);
	for (i = 0; !rc && i < nframes; i++) {
		if (!find_index(&l->frames, segment->frames[i], &l->indices[nthreads + i]))
			rc = load_frame(l, segment->frames[i], &l->indices[nthreads + i], err);
	}
	if (!rc)
		rc = incident_add_segment(l->in, &content, l->indices,
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
	struct loading *l = ctx;
	const struct incident_head *head = &l->in->head;
	uint64_t t0, t1;

	(void)err;
	t0 = segment->t0_ns + (uint64_t)l->shift_ns;
	t1 = segment->t1_ns + (uint64_t)l->shift_ns;
	t0 = t0 > head->t0_ns ? t0 : head->t0_ns;
	t1 = t1 < head->t1_ns ? t1 : head->t1_ns;
	if (!l->ndamaged)
		err_set(&l->first_damage, ERR_FORMAT, "%s", segment->why);
	if (l->ndamaged < DAMAGE_LISTED_MAX)
		buf_printf(&l->damage, "%s%+.3f s to %+.3f s", l->ndamaged ? ", " : "",
			   relative_s(l, t0), relative_s(l, t1));
	else if (l->ndamaged == DAMAGE_LISTED_MAX)
		buf_puts(&l->damage, ", and more");
	l->ndamaged++;
	l->samples_missing += segment->samples;
	return 0;
}

static void put_lost(struct buf *text, const char *what, const struct err *why)
{
	if (why->code)
		buf_printf(text, "%ssome %s cannot be read and are missing (%s)",
			   text->len ? "; " : "", what, why->text);
}

/* What was read is the incident; when nothing could be, the damage is the error. */
static int settle_damage(struct loading *l, struct err *err)
{
	struct buf text = {0};
	int rc;

	if (l->ndamaged && !l->nread) {
		if (err)
			*err = l->first_damage;
		return ERR_FORMAT;
	}
	if (l->ndamaged)
		buf_printf(&text,
			   "%" PRIu32 " of its %" PRIu32 " segments cannot be read: up to %" PRIu64
			   " samples and the events beside them are missing, from %s of the trigger"
			   " (%s)",
			   l->ndamaged, l->ndamaged + l->nread, l->samples_missing,
			   buf_text(&l->damage), l->first_damage.text);
	put_lost(&text, "command lines", &l->lost_text);
	put_lost(&text, "names of processes and threads", &l->lost_name);
	put_lost(&text, "names of functions", &l->lost_function);
	rc = text.failed ? no_memory(l, err) : 0;
	if (!rc && text.len && !l->in->damage) {     /* of several parts the first says it */
		l->in->damage = text_dup(buf_text(&text), SIZE_MAX);
		rc = l->in->damage ? 0 : no_memory(l, err);
	}
	buf_free(&text);
	if (!rc && l->ndamaged)
		incident_count(l->in);       /* its head counts what was stored */
	return rc;
}

/* ---- load ----------------------------------------------------------------------------------- */

/* segments NULL: all of the incident of the head. */
static int load_segments(struct store *s, int64_t incident_id, const struct ids *segments,
			 bool events_only, int64_t shift_ns, struct incident *in, struct err *err)
{
	struct loading l = {
		.s = s,
		.in = in,
		.shift_ns = shift_ns,
		.events_only = events_only,
		.pages = {.s = s},
		.modules.sql = "SELECT id, kind, name, path, build_id FROM module"
			       " WHERE id>=? ORDER BY id",
	};
	bool large;
	int rc;

	task_rows_init(&l.tasks, &l.pages);
	if (segments)
		rc = read_listed_segments(s, incident_id, segments, NULL,
					  events_only ? segment_decode_events : segment_decode,
					  load_segment, note_damage, &l, err);
	else
		rc = read_segments(s, incident_id, NULL, segment_decode, load_segment, note_damage,
				   &l, err);
	if (!rc)
		rc = settle_damage(&l, err);
	task_rows_free(&l.tasks);
	row_walk_free(&l.modules);
	indices_free(&l.processes);
	indices_free(&l.threads);
	indices_free(&l.modules_loaded);
	indices_free(&l.frames);
	indices_free(&l.functions);
	large = l.pages.bytes > LARGE_PAGES_BYTES;
	page_cache_free(&l.pages);
	buf_free(&l.damage);
	free(l.indices);
	if (large)
		os_give_memory_back();
	return rc;
}

int settle_content(struct incident *in, struct err *err)
{
	if (incident_sort(in) || incident_join_waits(in) || incident_name_waits(in) ||
	    incident_memory(in))
		return err_memory(err, "while reading an incident");
	return 0;
}

static int load_content(struct store *s, struct incident *in, struct err *err)
{
	int rc = load_segments(s, in->head.id, NULL, false, 0, in, err);

	if (!rc)
		rc = settle_content(in, err);
	/* An incident that is still open has not been counted. */
	if (!rc && in->head.state == INCIDENT_OPEN)
		incident_count(in);
	return rc;
}

/* One transaction, as in store_load(). */
int load_part(struct store *s, int64_t incident_id, const struct ids *segments, bool events_only,
	      int64_t shift_ns, struct incident *in, struct err *err)
{
	int rc = db_exec(s, "BEGIN", err);

	if (rc)
		return rc;
	rc = load_segments(s, incident_id, segments, events_only, shift_ns, in, err);
	sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	return rc;
}

int store_load(struct store *s, int64_t id, struct incident *out, struct err *err)
{
	struct incident in = {0};
	int rc;

	if (incident_init(&in))
		return err_memory(err, "while reading %s", s->path);
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
