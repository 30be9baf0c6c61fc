/*
 * Segments of one store in another: rows are copied, and the ids in their lists are rewritten to
 * those of new rows. The encoded columns go over as they are. Frames, functions and texts get new
 * pages, without a look at those that are there: readers merge what is equal. Modules with a
 * global identity are shared.
 *
 * It works beside a recorder that writes to the other store: everything is one transaction, and
 * the recorder forgets the ids that it knew when it sees that somebody else has written.
 */
#include "store/interner_private.h"
#include "store/rows_private.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct adopting {
	struct store *from, *to;
	struct page_cache pages;             /* of from */
	struct task_rows tasks;
	struct err lost;                     /* why a name cannot be read */
	struct idmap sessions, modules, processes, threads;
	struct idmap frames, functions;      /* id there -> id here */
	int64_t next_frame, next_function, next_text;
	struct page_frame *new_frames;
	struct page_function *new_functions;
	const char **new_texts;              /* borrowed from pages */
	uint32_t nframes, frames_cap, nfunctions, functions_cap, ntexts, texts_cap;
	struct columns columns;
	struct buf data, more;
};

static int no_memory(struct err *err)
{
	return err_memory(err, "while copying segments");
}

static int missing(const struct adopting *a, const char *what, int64_t id, struct err *err)
{
	return err_set(err, ERR_FORMAT, "%s is damaged: its %s %" PRId64 " is missing",
		       a->from->path, what, id);
}

static int remember(struct idmap *map, int64_t from, int64_t to, struct err *err)
{
	return idmap_set(map, (uint64_t)from, to) ? no_memory(err) : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int map_session(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	struct query q;
	int rc;

	if (idmap_get(&a->sessions, (uint64_t)id, to))
		return 0;
	q = db_query(a->from, "SELECT pid, started_wall_ns FROM session WHERE id=?",
		     ARGS(arg_int(id)), err);
	rc = query_step(&q);
	if (rc <= 0)
		return rc ? rc : missing(a, "session", id, err);
	rc = db_insert(a->to, "INSERT INTO session(pid, started_wall_ns) VALUES(?, ?)",
		       ARGS(arg_int(column_int(&q, 0)), arg_int(column_int(&q, 1))), to, err);
	query_reset(&q);
	return rc ? rc : remember(&a->sessions, id, *to, err);
}

/* A module of one run keeps its contents, under an identity that no other run has. */
static int insert_module(struct adopting *a, const struct query *q, const char *identity,
			 struct argument session, int64_t *to, struct err *err)
{
	int rc = db_int(a->to, "SELECT id FROM module WHERE identity=?", ARGS(arg_text(identity)),
			to, err);
	struct blob build_id = column_blob(q, 4);

	if (rc != ERR_NOT_FOUND)
		return rc;
	return db_insert(a->to,
			 "INSERT INTO module(identity, session_id, kind, name, path, build_id)"
			 " VALUES(?, ?, ?, ?, ?, ?)",
			 ARGS(arg_text(identity), session, arg_text(column_text(q, 1)),
			      arg_text(column_text(q, 2)), arg_text(column_text(q, 3)),
			      arg_blob(build_id.bytes, build_id.n)), to, err);
}

static int map_module(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	struct argument session = arg_text(NULL);
	struct buf identity = {0};
	int64_t session_id = 0;
	struct query q;
	int rc;

	if (idmap_get(&a->modules, (uint64_t)id, to))
		return 0;
	q = db_query(a->from, "SELECT identity, kind, name, path, build_id, session_id FROM module"
		     " WHERE id=?", ARGS(arg_int(id)), err);
	rc = query_step(&q);
	if (rc <= 0)
		return rc ? rc : missing(a, "module", id, err);
	rc = 0;
	if (!column_is_null(&q, 5)) {
		rc = map_session(a, column_int(&q, 5), &session_id, err);
		session = arg_int(session_id);
		buf_printf(&identity, "adopted:%" PRId64 ":%" PRId64, session_id, id);
	} else {
		buf_puts(&identity, column_text(&q, 0) ? column_text(&q, 0) : "");
	}
	if (!rc)
		rc = buf_check(&identity, "a module's identity", err);
	if (!rc)
		rc = insert_module(a, &q, identity.data, session, to, err);
	query_reset(&q);
	buf_free(&identity);
	return rc ? rc : remember(&a->modules, id, *to, err);
}

/* *to: 0 for none, and for one that cannot be read. */
static int map_text(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	const char *text = NULL;
	int rc = id ? page_cache_text(&a->pages, id, &text, err) : 0;

	*to = 0;
	if (!text || (rc && rc != ERR_MEMORY))
		return rc == ERR_MEMORY ? rc : 0;
	if (ARRAY_ROOM(a->new_texts, a->texts_cap, a->ntexts + 1))
		return no_memory(err);
	*to = a->next_text + a->ntexts;
	a->new_texts[a->ntexts++] = text;
	return 0;
}

static int map_process(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	struct stored_process p, new;
	int rc;

	if (idmap_get(&a->processes, (uint64_t)id, to))
		return 0;
	rc = task_rows_process(&a->tasks, id, &p, &a->lost, err);
	if (rc <= 0)
		return rc ? rc : missing(a, "process", id, err);
	new = p;
	*to = 0;
	rc = map_session(a, p.session_id, &new.session_id, err);
	if (!rc)
		rc = map_text(a, p.cmdline_id, &new.cmdline_id, err);
	if (!rc)
		rc = map_text(a, p.home_id, &new.home_id, err);
	if (!rc)
		rc = process_row_put(a->to, ROW_IS_NEW, &new, to, err);
	return rc ? rc : remember(&a->processes, id, *to, err);
}

static int map_thread(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	struct stored_thread t;
	int rc;

	if (idmap_get(&a->threads, (uint64_t)id, to))
		return 0;
	rc = task_rows_thread(&a->tasks, id, &t, &a->lost, err);
	if (rc <= 0)
		return rc ? rc : missing(a, "thread", id, err);
	*to = 0;
	rc = map_process(a, t.process_id, &t.process_id, err);
	if (!rc)
		rc = thread_row_put(a->to, ROW_IS_NEW, &t, to, err);
	return rc ? rc : remember(&a->threads, id, *to, err);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* A name that cannot be read is left out. */
static int map_function(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	const struct page_function *stored = NULL;
	struct page_function f;
	int rc;

	*to = 0;
	if (!id || idmap_get(&a->functions, (uint64_t)id, to))
		return 0;
	rc = page_cache_function(&a->pages, id, &stored, err);
	if (rc == ERR_FORMAT || (!rc && !stored))
		return 0;
	if (rc)
		return rc;
	f = *stored;
	rc = map_module(a, stored->module_id, &f.module_id, err);
	if (!rc && ARRAY_ROOM(a->new_functions, a->functions_cap, a->nfunctions + 1))
		rc = no_memory(err);
	if (rc)
		return rc;
	f.id = *to = a->next_function + a->nfunctions;
	a->new_functions[a->nfunctions++] = f;
	return remember(&a->functions, id, *to, err);
}

static int map_frame(struct adopting *a, int64_t id, int64_t *to, struct err *err)
{
	const struct page_frame *stored = NULL;
	struct page_frame f;
	int rc;

	if (idmap_get(&a->frames, (uint64_t)id, to))
		return 0;
	rc = page_cache_frame(&a->pages, id, &stored, err);
	if (!rc && !stored)
		rc = missing(a, "frame", id, err);
	if (rc)
		return rc;
	f = *stored;
	rc = map_module(a, f.module_id, &f.module_id, err);
	if (!rc)
		rc = map_function(a, f.function_id, &f.function_id, err);
	if (!rc && ARRAY_ROOM(a->new_frames, a->frames_cap, a->nframes + 1))
		rc = no_memory(err);
	if (rc)
		return rc;
	f.id = *to = a->next_frame + a->nframes;
	a->new_frames[a->nframes++] = f;
	return remember(&a->frames, id, *to, err);
}

static int next_ids(struct adopting *a, struct err *err)
{
	int rc = page_next_id(a->to, "SELECT coalesce((SELECT last_id FROM frame_page"
			      " ORDER BY first_id DESC LIMIT 1), 0)", "frames", &a->next_frame,
			      err);

	if (!rc)
		rc = page_next_id(a->to, "SELECT coalesce((SELECT last_id FROM function_page"
				  " ORDER BY first_id DESC LIMIT 1), 0)", "functions",
				  &a->next_function, err);
	if (!rc)
		rc = page_next_id(a->to, "SELECT coalesce((SELECT last_id FROM text_page"
				  " ORDER BY first_id DESC LIMIT 1), 0)", "texts", &a->next_text,
				  err);
	return rc;
}

static int flush_texts(struct adopting *a, struct err *err)
{
	uint32_t at, n;
	int rc = 0;

	for (at = 0; !rc && at < a->ntexts; at += n) {
		n = a->ntexts - at < PAGE_FRAMES ? a->ntexts - at : PAGE_FRAMES;
		rc = text_page_pack(a->to->deflater, &a->columns, a->new_texts + at, n, &a->data,
				    err);
		if (!rc)
			rc = db_run(a->to, "INSERT INTO text_page(first_id, last_id, data)"
				    " VALUES(?, ?, ?)",
				    ARGS(arg_int(a->next_text + at),
					 arg_int(a->next_text + at + n - 1), arg_buf(&a->data)),
				    err);
	}
	a->next_text += a->ntexts;
	a->ntexts = 0;
	return rc;
}

/* What the segment at hand needed for the first time. */
static int flush(struct adopting *a, struct err *err)
{
	uint32_t at, n;
	int rc = 0;

	for (at = 0; !rc && at < a->nfunctions; at += n) {
		n = a->nfunctions - at < PAGE_FRAMES ? a->nfunctions - at : PAGE_FRAMES;
		rc = function_page_insert(a->to, a->new_functions + at, n, &a->columns, &a->data,
					  &a->more, err);
	}
	for (at = 0; !rc && at < a->nframes; at += n) {
		n = a->nframes - at < PAGE_FRAMES ? a->nframes - at : PAGE_FRAMES;
		rc = frame_page_insert(a->to, a->new_frames + at, n, &a->columns, &a->data,
				       &a->more, err);
	}
	a->next_function += a->nfunctions;
	a->next_frame += a->nframes;
	a->nfunctions = a->nframes = 0;
	return rc ? rc : flush_texts(a, err);
}

/* ---- a segment ------------------------------------------------------------------------------- */

static int map_lists(struct adopting *a, struct lists *l, struct buf *packed, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < l->nthreads; i++)
		rc = map_thread(a, l->ids[i], &l->ids[i], err);
	for (; !rc && i < l->nthreads + l->nframes; i++)
		rc = map_frame(a, l->ids[i], &l->ids[i], err);
	if (!rc)
		rc = flush(a, err);
	return rc ? rc : lists_pack(a->to->deflater, &a->columns, (uint64_t *)(void *)l->ids,
				    l->nthreads, l->nframes, packed, err);
}

static int adopt_segment(struct adopting *a, int64_t incident_id, int64_t id, struct err *err)
{
	struct query q = db_query(a->from, "SELECT t0_ns, t1_ns, samples, crc, lists, data"
				  " FROM segment WHERE id=?", ARGS(arg_int(id)), err);
	struct buf packed = {0};
	struct lists lists = {0};
	struct blob blob;
	int64_t to = 0;
	int rc = query_step(&q);

	if (rc <= 0)
		return rc ? rc : missing(a, "segment", id, err);
	blob = column_blob(&q, 4);
	rc = lists_unpack(&blob, &lists, err);
	if (!rc)
		rc = map_lists(a, &lists, &packed, err);
	if (!rc) {
		blob = column_blob(&q, 5);
		rc = db_insert(a->to,
			       "INSERT INTO segment(t0_ns, t1_ns, samples, bytes, crc, lists, data)"
			       " VALUES(?, ?, ?, ?, ?, ?, ?)",
			       ARGS(arg_u64(column_u64(&q, 0)), arg_u64(column_u64(&q, 1)),
				    arg_int(column_int(&q, 2)), arg_u64(packed.len + blob.n),
				    arg_int(column_int(&q, 3)), arg_buf(&packed),
				    arg_blob(blob.bytes, blob.n)), &to, err);
	}
	if (!rc)
		rc = db_run(a->to, "INSERT INTO incident_segment(incident_id, segment_id)"
			    " VALUES(?, ?)", ARGS(arg_int(incident_id), arg_int(to)), err);
	query_reset(&q);
	free(lists.ids);
	buf_free(&packed);
	return rc;
}

static void adopting_free(struct adopting *a)
{
	task_rows_free(&a->tasks);
	page_cache_free(&a->pages);
	idmap_free(&a->sessions);
	idmap_free(&a->modules);
	idmap_free(&a->processes);
	idmap_free(&a->threads);
	idmap_free(&a->frames);
	idmap_free(&a->functions);
	free(a->new_frames);
	free(a->new_functions);
	free(a->new_texts);
	columns_free(&a->columns);
	buf_free(&a->data);
	buf_free(&a->more);
}

int adopt_segments(struct store *to, int64_t incident_id, struct store *from,
		   const struct ids *segments, struct err *err)
{
	struct adopting a = {.from = from, .to = to, .pages = {.s = from}};
	uint32_t i;
	int rc = next_ids(&a, err);

	task_rows_init(&a.tasks, &a.pages);
	for (i = 0; !rc && i < segments->n; i++) {
		rc = adopt_segment(&a, incident_id, segments->ids[i], err);
		if (rc == ERR_FORMAT)
			rc = 0;              /* the others are evidence all the same */
	}
	adopting_free(&a);
	return rc;
}

struct adopt_work {
	struct store *from;
	int64_t incident_id;
	const struct ids *segments;
};

static int adopt_all(struct store *to, void *arg, struct err *err)
{
	const struct adopt_work *w = arg;

	return adopt_segments(to, w->incident_id, w->from, w->segments, err);
}

int store_adopt(struct store *to, int64_t incident_id, struct store *from,
		const struct ids *segments, struct err *err)
{
	struct adopt_work work = {from, incident_id, segments};

	return db_transact(to, TX_NORMAL, adopt_all, &work, err);
}
