/*
 * Frames -> pages, those of a segment at once.
 *
 * A minute of a busy machine has 15,000 frames of 8,000 functions, all of them new in a new store, and
 * somebody waits for the incident. So those of a segment that are new become one page; a page is not
 * written again but for names that come late: those of the frames of a segment together.
 *
 * No index says which frames there are. The newest are known: read from their pages at first, the
 * writer's own then. Beyond KNOWN_FRAMES_MAX those that were not asked for again are forgotten; a frame that
 * comes again after that gets a second place, and readers merge the two (incident_add_frame()).
 */
#include "store/interner_private.h"

#include <stdlib.h>

/* A frame of the segment: what it is called, if its row does not say so yet. */
struct item {
	const struct function *function;
	uint32_t known;
};

struct late_name {
	int64_t frame_id;
	const struct function *function;
};

struct work {
	struct store *s;
	struct interner *in;
	struct item *items;
	struct page_frame *fresh;            /* ids follow each other */
	struct late_name *late;
	uint32_t nitems, nfresh, nlate;
};

static int no_memory(struct err *err)
{
	return err_memory(err, "while storing a segment");
}

/* ---- what is listed ------------------------------------------------------------------------- */

static bool same_frame(const void *ctx, uint32_t value, const void *key)
{
	const struct known_frame *a = &((const struct interner *)ctx)->frames[value];
	const struct known_frame *b = key;

	return a->offset == b->offset && a->module_id == b->module_id && a->flags == b->flags;
}

static uint64_t frame_hash(const struct known_frame *f)
{
	return hash_pair(hash_pair((uint64_t)f->module_id, f->flags), f->offset);
}

static int reserve(struct interner *in, uint32_t n, struct err *err)
{
	struct known_frame *frames;
	uint32_t cap = in->frames_cap ? in->frames_cap : 1024;

	while (cap < in->nframes + n)
		cap *= 2;
	if (cap == in->frames_cap)
		return 0;
	frames = realloc(in->frames, cap * sizeof(*frames));
	if (!frames)
		return no_memory(err);
	in->frames = frames;
	in->frames_cap = cap;
	return 0;
}

/* Room for it is reserved. */
static int know(struct interner *in, const struct known_frame *f, struct err *err)
{
	if (table_add(&in->table, frame_hash(f), in->nframes))
		return no_memory(err);
	in->frames[in->nframes++] = *f;
	return 0;
}

static void keep(struct interner *in)
{
	uint32_t i, n = in->nframes;

	table_clear(&in->table);
	in->nframes = 0;
	for (i = 0; i < n; i++) {
		struct known_frame f = in->frames[i];

		/* The table has its memory from before: adding does not fail. */
		if (f.kept)
			know(in, &f, NULL);
	}
}

void frames_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame), const void *ctx)
{
	uint32_t i;

	for (i = 0; i < in->nframes; i++)
		in->frames[i].kept = listed(ctx, in->frames[i].id);
	keep(in);
}

/* Room for n more, so that nothing is forgotten while they are added. */
static int make_room(struct interner *in, uint32_t n, struct err *err)
{
	uint32_t i;

	if (in->nframes + n > KNOWN_FRAMES_MAX) {
		for (i = 0; i < in->nframes; i++) {
			in->frames[i].kept = in->frames[i].asked;
			in->frames[i].asked = false;
		}
		keep(in);
	}
	if (in->nframes + n > KNOWN_FRAMES_MAX) {
		table_clear(&in->table);
		in->nframes = 0;
	}
	return reserve(in, n, err);
}

/* ---- what there is -------------------------------------------------------------------------- */

static int learn_page(struct interner *in, const struct page_frame *frames, uint32_t n, struct err *err)
{
	uint32_t i;
	int rc = reserve(in, n, err);

	for (i = 0; !rc && i < n; i++) {
		struct known_frame f = {.module_id = frames[i].module_id, .id = frames[i].id,
					.offset = frames[i].offset, .flags = frames[i].flags,
					.named = frames[i].function_id != 0};

		if (table_find(&in->table, frame_hash(&f), same_frame, in, &f) == TABLE_NONE)
			rc = know(in, &f, err);
	}
	return rc;
}

static const char newest_page[] = "SELECT first_id, last_id, data, functions FROM frame_page"
				  " WHERE first_id BETWEEN 1 AND ? ORDER BY first_id DESC LIMIT 1";

static int learn_row(struct interner *in, const struct page_row *row, struct err *err)
{
	struct page_frame *frames;
	uint32_t n;
	int rc = frame_page_unpack(&row->data, &row->more, row->first, &frames, &n, err);

	if (rc)
		return rc;
	rc = learn_page(in, frames, n, err);
	free(frames);
	return rc;
}

static bool knows_enough(const struct interner *in)
{
	return in->nframes >= KNOWN_FRAMES_MAX / 2;
}

/* What is damaged is not known, and stored again. */
static const struct page_learner learner = {
	.what = "frames",
	.last_id = "SELECT coalesce((SELECT last_id FROM frame_page ORDER BY first_id DESC LIMIT 1), 0)",
	.newest = newest_page,
	.learn = learn_row,
	.enough = knows_enough,
};

/* ---- what is listed ------------------------------------------------------------------------- */

static void list_fresh(struct work *w, struct known_frame *f)
{
	struct page_frame *fresh = &w->fresh[w->nfresh++];

	f->id = w->in->next_frame++;
	fresh->id = f->id;
	fresh->module_id = f->module_id;
	fresh->function_id = 0;
	fresh->offset = f->offset;
	fresh->flags = f->flags;
}

static int list_frame(struct work *w, const struct frame *frame, const struct function *f, struct err *err)
{
	struct item *item = &w->items[w->nitems];
	struct interner *in = w->in;
	struct known_frame key = {.offset = frame->offset, .flags = frame->flags};
	int rc = module_id(w->s, frame->object, &key.module_id, err);

	if (rc)
		return rc;
	item->known = table_find(&in->table, frame_hash(&key), same_frame, in, &key);
	if (item->known == TABLE_NONE) {
		list_fresh(w, &key);
		item->known = in->nframes;
		rc = know(in, &key, err);
		if (rc)
			return rc;
	} else {
		in->frames[item->known].asked = true;
	}
	item->function = in->frames[item->known].named ? NULL : f;
	w->nitems++;
	return 0;
}

static int list_frames(struct work *w, const struct segment *segment, struct err *err)
{
	struct segment_list list = segment_frames(segment);
	uint32_t number;
	int rc = 0;

	while (!rc && segment_next(&list, &number)) {
		const struct frame *frame = frame_get(segment->frame_table, number);

		rc = list_frame(w, frame, atomic_load_explicit(&frame->function, memory_order_acquire), err);
	}
	return rc;
}

/* ---- functions ------------------------------------------------------------------------------ */

static int add_functions(struct work *w, struct err *err)
{
	int64_t id;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < w->nitems; i++) {
		if (w->items[i].function)
			rc = function_id(w->s, w->items[i].function, &id, err);
	}
	return rc ? rc : functions_flush(w->s, err);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void name_frame(struct work *w, const struct item *item)
{
	struct known_frame *f = &w->in->frames[item->known];
	int64_t function = 0;

	if (!item->function || f->named)
		return;
	idmap_get(&w->in->functions, (uintptr_t)item->function, &function);
	f->named = true;
	if (w->nfresh && f->id >= w->fresh[0].id)
		w->fresh[f->id - w->fresh[0].id].function_id = function;
	else
		w->late[w->nlate++] = (struct late_name){f->id, item->function};
}

int frame_page_insert(struct store *s, const struct page_frame *frames, uint32_t n, struct columns *c,
		      struct buf *data, struct buf *functions, struct err *err)
{
	struct args a;
	int rc = frame_page_pack(s->deflater, c, frames, n, data, err);

	if (!rc)
		rc = frame_page_pack_functions(s->deflater, c, frames, n, functions, err);
	if (!rc)
		rc = db_statement(s, "INSERT INTO frame_page(first_id, last_id, frames, data, functions)"
				  " VALUES(?, ?, ?, ?, ?)", &a, err);
	if (rc)
		return rc;
	arg_int(&a, frames[0].id);
	arg_int(&a, frames[n - 1].id);
	arg_int(&a, n);
	arg_blob(&a, data->data, data->len);
	arg_blob(&a, functions->data, functions->len);
	return db_run(s, a.st, err);
}

static int add_pages(struct work *w, struct err *err)
{
	struct interner *in = w->in;
	uint32_t at, n;
	int rc = 0;

	for (at = 0; !rc && at < w->nfresh; at += n) {
		n = w->nfresh - at < PAGE_FRAMES ? w->nfresh - at : PAGE_FRAMES;
		rc = frame_page_insert(w->s, w->fresh + at, n, &in->columns, &in->packed,
				       &in->packed_functions, err);
	}
	return rc;
}

/* ---- names that come late ------------------------------------------------------------------- */

static int by_frame(const void *a, const void *b)
{
	int64_t x = ((const struct late_name *)a)->frame_id, y = ((const struct late_name *)b)->frame_id;

	return (x > y) - (x < y);
}

static int update_functions(struct work *w, int64_t first, const struct page_frame *frames, uint32_t n,
			    struct err *err)
{
	struct interner *in = w->in;
	struct args a;
	int rc = frame_page_pack_functions(w->s->deflater, &in->columns, frames, n, &in->packed_functions, err);

	if (!rc)
		rc = db_statement(w->s, "UPDATE frame_page SET functions=? WHERE first_id=?", &a, err);
	if (rc)
		return rc;
	arg_blob(&a, in->packed_functions.data, in->packed_functions.len);
	arg_int(&a, first);
	return db_run(w->s, a.st, err);
}

/* A function gets its id only here: most names of a page that is read again are there. */
static int name_one(struct work *w, struct page_frame *frames, uint32_t n, const struct late_name *late,
		    bool *changed, struct err *err)
{
	uint32_t i = frame_page_find(frames, n, late->frame_id);

	if (i == UINT32_MAX || frames[i].function_id)
		return 0;
	*changed = true;
	return function_id(w->s, late->function, &frames[i].function_id, err);
}

/* The names of one page, from w->late[*at] on, which moves behind them. Of a damaged one none is given. */
static int name_page(struct work *w, uint32_t *at, struct err *err)
{
	struct page_frame *frames = NULL;
	struct page_row row = {0};
	uint32_t n = 0;
	bool changed = false;
	int rc = page_row(w->s, newest_page, w->late[*at].frame_id, &row, err);

	if (rc > 0) {
		rc = frame_page_unpack(&row.data, &row.more, row.first, &frames, &n, err);
		sqlite3_reset(row.st);
	}
	if (rc && rc != ERR_FORMAT)
		return rc;
	rc = 0;
	do {
		if (frames)
			rc = name_one(w, frames, n, &w->late[*at], &changed, err);
		++*at;
	} while (!rc && frames && *at < w->nlate && w->late[*at].frame_id <= frames[n - 1].id);
	if (!rc && changed)
		rc = update_functions(w, row.first, frames, n, err);
	free(frames);
	return rc;
}

static int add_late_names(struct work *w, struct err *err)
{
	uint32_t at = 0;
	int rc = 0;

	if (w->nlate)
		qsort(w->late, w->nlate, sizeof(*w->late), by_frame);
	while (!rc && at < w->nlate)
		rc = name_page(w, &at, err);
	return rc ? rc : functions_flush(w->s, err);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int intern(struct work *w, const struct segment *segment, struct buf *ids, struct err *err)
{
	uint32_t i;
	int rc = list_frames(w, segment, err);

	if (!rc)
		rc = add_functions(w, err);
	for (i = 0; !rc && i < w->nitems; i++)
		name_frame(w, &w->items[i]);
	if (!rc)
		rc = add_pages(w, err);
	if (!rc)
		rc = add_late_names(w, err);
	for (i = 0; !rc && i < w->nitems; i++)
		buf_put(ids, &w->in->frames[w->items[i].known].id, sizeof(int64_t));
	return rc;
}

int intern_frames(struct store *s, const struct segment *segment, struct buf *ids, struct err *err)
{
	struct work w = {.s = s, .in = s->interner};
	uint32_t n = segment->nframes;
	int rc = w.in->next_frame ? 0 : page_learn(s, &learner, &w.in->next_frame, err);

	if (rc || !n)
		return rc;
	w.items = malloc(n * sizeof(*w.items));
	w.fresh = malloc(n * sizeof(*w.fresh));
	w.late = malloc(n * sizeof(*w.late));
	rc = w.items && w.fresh && w.late ? make_room(w.in, n, err) : no_memory(err);
	if (!rc)
		rc = intern(&w, segment, ids, err);
	free(w.items);
	free(w.fresh);
	free(w.late);
	return rc;
}

/* ---- names of what is stored ---------------------------------------------------------------- */

/* The frame of this id, unless it is known to have its name. Known by content is not enough: see name_frames(). */
static int list_late(struct work *w, const struct frame *frame, const struct function *function, int64_t id,
		     struct err *err)
{
	struct known_frame key = {.offset = frame->offset, .flags = frame->flags}, *known = NULL;
	struct interner *in = w->in;
	uint32_t at;
	int rc = module_id(w->s, frame->object, &key.module_id, err);

	if (rc)
		return rc;
	at = table_find(&in->table, frame_hash(&key), same_frame, in, &key);
	if (at != TABLE_NONE && in->frames[at].id == id)
		known = &in->frames[at];
	if (known && known->named)
		return 0;
	if (known)
		known->named = true;
	w->late[w->nlate++] = (struct late_name){id, function};
	return 0;
}

int name_frames(struct store *s, const struct segment *segment, const int64_t *ids, struct err *err)
{
	struct work w = {.s = s, .in = s->interner};
	struct segment_list list = segment_frames(segment);
	uint32_t number;
	int rc = 0;

	if (!segment->nframes)
		return 0;
	w.late = malloc(segment->nframes * sizeof(*w.late));
	if (!w.late)
		return no_memory(err);
	for (; !rc && segment_next(&list, &number); ids++) {
		const struct frame *frame = frame_get(segment->frame_table, number);
		const struct function *f = atomic_load_explicit(&frame->function, memory_order_acquire);

		if (f)
			rc = list_late(&w, frame, f, *ids, err);
	}
	if (!rc)
		rc = add_late_names(&w, err);
	free(w.late);
	return rc;
}
