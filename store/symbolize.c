/*
 * Names that come years later, on another machine: frames without one, and giving them theirs.
 *
 * It works beside a recorder that writes to the store, as adopt.c does: one transaction, after
 * which the recorder forgets what it knew.
 */
#include "store/interner_private.h"
#include "store/sweep_marks_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* ---- what has no name ------------------------------------------------------------------------ */

static const char pages_from[] = "SELECT first_id, last_id, data, functions FROM frame_page"
				 " WHERE first_id >= ? ORDER BY first_id LIMIT 1";

/* wanted NULL = all */
static int list_page(const struct page_row *row, const struct marks *wanted,
		     struct store_unnamed *out, struct err *err)
{
	struct page_frame *frames;
	uint32_t n, i;
	int rc = frame_page_unpack(&row->data, &row->more, row->first, &frames, &n, err);

	if (rc)
		return rc == ERR_FORMAT ? 0 : rc;    /* damaged: `verify` says so */
	for (i = 0; !rc && i < n; i++) {
		if (wanted && !is_marked(wanted, MARK_FRAMES, frames[i].id))
			continue;
		out->frames_seen++;
		if (frames[i].function_id)
			continue;
		if (ARRAY_NEXT(out->frames, out->n)) {
			rc = err_memory(err, "for frames without a name");
			break;
		}
		out->frames[out->n++] = (struct store_unnamed_frame){
			.id = frames[i].id, .module_id = frames[i].module_id,
			.offset = frames[i].offset, .flags = frames[i].flags};
	}
	free(frames);
	return rc;
}

static int mark_incidents(struct marks *m, const int64_t *incidents, uint32_t n, struct err *err)
{
	uint32_t i, nsegments;
	int rc = marks_init(m);

	for (i = 0; !rc && i < n; i++) {
		rc = mark_incident(m, incidents[i], &nsegments);
		if (!rc && !nsegments && !db_int(m->s, "SELECT 1 FROM incident WHERE id=?",
						 ARGS(arg_int(incidents[i])), &(int64_t){0}, NULL))
			continue;
		if (!rc && !nsegments)
			return not_found(m->s, incidents[i], err);
	}
	return rc ? err_set(err, rc, "cannot read what incidents of %s list: `recorder verify` "
			    "says what is damaged", m->s->path) : 0;
}

int store_unnamed(struct store *s, const int64_t *incidents, uint32_t n, struct store_unnamed *out,
		  struct err *err)
{
	struct marks wanted = {.s = s};
	struct page_row row = {0};
	int64_t from = 1;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (n)
		rc = mark_incidents(&wanted, incidents, n, err);
	while (!rc && (rc = page_row(s, pages_from, from, &row, err)) > 0) {
		from = row.first + 1;
		rc = list_page(&row, n ? &wanted : NULL, out, err);
		query_reset(&row.query);
		if (rc)
			break;
	}
	marks_free(&wanted);
	if (rc)
		store_unnamed_free(out);
	return rc;
}

void store_unnamed_free(struct store_unnamed *u)
{
	free(u->frames);
	memset(u, 0, sizeof(*u));
}

int store_module(struct store *s, int64_t id, struct object_key *key, struct buf *path,
		 struct err *err)
{
	struct query q = db_query(s, "SELECT kind, path, build_id FROM module WHERE id=?",
				  ARGS(arg_int(id)), err);
	struct blob build_id;
	int rc = query_step(&q);

	if (rc <= 0)
		return rc ? rc : err_set(err, ERR_NOT_FOUND, "%s has no module %lld", s->path,
					 (long long)id);
	memset(key, 0, sizeof(*key));
	key->kind = object_kind_from_text(column_text(&q, 0));
	buf_reset(path);
	buf_puts(path, column_text(&q, 1));
	build_id = column_blob(&q, 2);
	if (build_id.n <= BUILD_ID_MAX) {
		key->build_id_bytes = (uint8_t)build_id.n;
		memcpy(key->build_id, build_id.bytes, build_id.n);
	}
	query_reset(&q);
	key->path = buf_text(path);
	return path->failed ? err_memory(err, "for the path of a module") : 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct naming {
	struct store *s;
	const struct store_unnamed *names;
	uint32_t named;
	struct idmap ids;                    /* a function's address -> its id */
	int64_t next_function;
	struct page_function *fresh;
	uint32_t nfresh, fresh_room;
	struct columns columns;
	struct buf data, more;
};

static int flush_functions(struct naming *w, struct err *err)
{
	int rc = w->nfresh ? function_page_insert(w->s, w->fresh, w->nfresh, &w->columns, &w->data,
						  &w->more, err) : 0;

	w->nfresh = 0;
	return rc;
}

static int id_of(struct naming *w, const struct function *f, int64_t module_id, int64_t *id,
		 struct err *err)
{
	uint64_t key = (uint64_t)(uintptr_t)f;
	int rc = 0;

	if (idmap_get(&w->ids, key, id))
		return 0;
	if (w->nfresh == PAGE_FRAMES)
		rc = flush_functions(w, err);
	if (rc)
		return rc;
	if (ARRAY_ROOM(w->fresh, w->fresh_room, w->nfresh + 1) ||
	    idmap_set(&w->ids, key, w->next_function))
		return err_memory(err, "for names");
	*id = w->next_function++;
	w->fresh[w->nfresh++] = (struct page_function){
		.id = *id, .module_id = module_id, .offset = f->offset, .name = f->name,
		.raw_name = f->raw_name, .module = f->module};
	return 0;
}

/* Names for the frames of one page, from names->frames[*at] on; *at moves behind it. */
static int name_frames_of(struct naming *w, struct page_frame *frames, uint32_t n, uint32_t *at,
			  bool *changed, struct err *err)
{
	const struct store_unnamed *u = w->names;
	int rc = 0;

	for (; !rc && *at < u->n && u->frames[*at].id <= frames[n - 1].id; ++*at) {
		const struct store_unnamed_frame *f = &u->frames[*at];
		uint32_t i = frame_page_find(frames, n, f->id);

		if (!f->function || i == UINT32_MAX || frames[i].function_id ||
		    frames[i].module_id != f->module_id || frames[i].offset != f->offset)
			continue;
		rc = id_of(w, f->function, f->module_id, &frames[i].function_id, err);
		*changed = true;
		w->named++;
	}
	return rc;
}

static int name_page(struct naming *w, const struct page_row *row, uint32_t *at, struct err *err)
{
	struct page_frame *frames;
	bool changed = false;
	uint32_t n;
	int rc = frame_page_unpack(&row->data, &row->more, row->first, &frames, &n, err);

	if (rc)
		return rc == ERR_FORMAT ? 0 : rc;
	while (*at < w->names->n && w->names->frames[*at].id < row->first)
		++*at;                       /* their page is gone */
	rc = name_frames_of(w, frames, n, at, &changed, err);
	if (!rc && changed)
		rc = frame_page_pack_functions(w->s->deflater, &w->columns, frames, n, &w->more,
					       err);
	if (!rc && changed)
		rc = db_run(w->s, "UPDATE frame_page SET functions=? WHERE first_id=?",
			    ARGS(arg_buf(&w->more), arg_int(row->first)), err);
	free(frames);
	return rc;
}

static int name_all(struct store *s, void *arg, struct err *err)
{
	struct naming *w = arg;
	struct page_row row = {0};
	int64_t from = 1;
	uint32_t at = 0;
	int rc = page_next_id(s, "SELECT coalesce((SELECT last_id FROM function_page"
			      " ORDER BY first_id DESC LIMIT 1), 0)", "functions",
			      &w->next_function, err);

	while (!rc && at < w->names->n && (rc = page_row(s, pages_from, from, &row, err)) > 0) {
		from = row.first + 1;
		rc = name_page(w, &row, &at, err);
		query_reset(&row.query);
	}
	return rc ? rc : flush_functions(w, err);
}

int store_name(struct store *s, const struct store_unnamed *names, uint32_t *named, struct err *err)
{
	struct naming w = {.s = s, .names = names};
	int rc = db_transact(s, TX_NORMAL, name_all, &w, err);

	*named = rc ? 0 : w.named;
	idmap_free(&w.ids);
	free(w.fresh);
	columns_free(&w.columns);
	buf_free(&w.data);
	buf_free(&w.more);
	return rc;
}
