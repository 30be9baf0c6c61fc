/*
 * Frames -> pages, those of a segment at once.
 *
 * A minute of a busy machine has 15,000 frames of 8,000 functions. In a new store all of them are
 * new, and somebody waits for the incident. So the new frames of a segment become one page. A page
 * is written again only for names that come late: those of one segment together.
 *
 * No index says which frames there are. The newest are known: first those read from their pages,
 * then the writer's own. Beyond known_max the frames are forgotten that were not used since the
 * last time; a frame that comes again after that gets a second id, and readers merge the two
 * (incident_add_frame()).
 */
#include "store/interner_private.h"

#include "base/array.h"

#include <stdlib.h>

/* A name for a frame that is in a page already. */
struct late_name {
	int64_t frame_id;
	const struct function *function;
};

struct work {
	struct store *s;
	struct interner *in;
	struct page_frame *fresh;            /* ids follow each other */
	struct late_name *late;
	uint32_t nfresh, nlate;
};

static int no_memory(struct err *err)
{
	return err_memory(err, "while storing a segment");
}

static const struct function *function_of(const struct frame *frame)
{
	return atomic_load_explicit(&frame->function, memory_order_acquire);
}

/* ---- known frames --------------------------------------------------------------------------- */

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

static uint32_t find_frame(const struct interner *in, const struct known_frame *key)
{
	return table_find(&in->table, frame_hash(key), same_frame, in, key);
}

/* The caller has made room. */
static int add_known(struct interner *in, const struct known_frame *f, struct err *err)
{
	if (table_add(&in->table, frame_hash(f), in->nframes))
		return no_memory(err);
	in->frames[in->nframes++] = *f;
	return 0;
}

static void forget_unkept(struct interner *in)
{
	uint32_t i, n = in->nframes;

	table_clear(&in->table);
	in->nframes = 0;
	for (i = 0; i < n; i++) {
		struct known_frame f = in->frames[i];

		/* The table still has its memory, so adding does not fail. */
		if (f.kept)
			add_known(in, &f, NULL);
	}
}

void frames_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame),
		 const void *ctx)
{
	uint32_t i;

	for (i = 0; i < in->nframes; i++)
		in->frames[i].kept = listed(ctx, in->frames[i].id);
	forget_unkept(in);
}

/* Room for n more, so that nothing is forgotten while they are added. */
static int make_room(struct interner *in, uint32_t n, struct err *err)
{
	uint32_t i;

	in->segments_known++;
	if (in->nframes + n > in->known_max) {
		for (i = 0; i < in->nframes; i++) {
			in->frames[i].kept = in->frames[i].used;
			in->frames[i].used = false;
		}
		forget_unkept(in);
		if (in->segments_known < KNOWN_SEGMENTS && in->known_max < KNOWN_FRAMES_MAX)
			in->known_max *= 2;
		in->segments_known = 0;
	}
	if (in->nframes + n > in->known_max) {
		table_clear(&in->table);
		in->nframes = 0;
	}
	return ARRAY_ROOM(in->frames, in->frames_cap, in->nframes + n) ? no_memory(err) : 0;
}

static int learn_row(struct interner *in, const struct page_row *row, struct err *err)
{
	struct page_frame *frames;
	uint32_t n, i;
	int rc = frame_page_unpack(&row->data, &row->more, row->first, &frames, &n, err);

	if (rc)
		return rc;
	if (ARRAY_ROOM(in->frames, in->frames_cap, in->nframes + n))
		rc = no_memory(err);
	for (i = 0; !rc && i < n; i++) {
		struct known_frame f = {.module_id = frames[i].module_id, .id = frames[i].id,
					.offset = frames[i].offset, .flags = frames[i].flags,
					.named = frames[i].function_id != 0};

		if (find_frame(in, &f) == TABLE_NONE)
			rc = add_known(in, &f, err);
	}
	free(frames);
	return rc;
}

static bool knows_enough(const struct interner *in)
{
	return in->nframes >= in->known_max / 2;
}

static const char newest_page[] = "SELECT first_id, last_id, data, functions FROM frame_page"
				  " WHERE first_id BETWEEN 1 AND ? ORDER BY first_id DESC LIMIT 1";

static const struct page_learner learner = {
	.what = "frames",
	.last_id = "SELECT coalesce((SELECT last_id FROM frame_page"
		   " ORDER BY first_id DESC LIMIT 1), 0)",
	.newest = newest_page,
	.learn = learn_row,
	.knows_enough = knows_enough,
};

/* ---- what the segment lists ----------------------------------------------------------------- */

/* A frame that is in no page yet gets its function's id there, another one a late name. */
static int name_frame(struct work *w, struct known_frame *f, const struct function *function,
		      struct err *err)
{
	f->named = true;
	if (w->nfresh && f->id >= w->fresh[0].id)
		return function_id(w->s, function, &w->fresh[f->id - w->fresh[0].id].function_id,
				   err);
	w->late[w->nlate++] = (struct late_name){.frame_id = f->id, .function = function};
	return 0;
}

/* Find or add a frame, and append its id to ids. */
static int list_frame(struct work *w, const struct frame *frame, struct buf *ids, struct err *err)
{
	struct known_frame key = {.offset = frame->offset, .flags = frame->flags};
	const struct function *function = function_of(frame);
	struct interner *in = w->in;
	uint32_t at;
	int rc = module_id(w->s, frame->object, &key.module_id, err);

	if (rc)
		return rc;
	at = find_frame(in, &key);
	if (at != TABLE_NONE) {
		in->frames[at].used = true;
	} else {
		at = in->nframes;
		key.id = in->next_frame++;
		w->fresh[w->nfresh++] = (struct page_frame){
			.id = key.id, .module_id = key.module_id, .offset = key.offset,
			.flags = key.flags,
		};
		rc = add_known(in, &key, err);
	}
	if (!rc && function && !in->frames[at].named)
		rc = name_frame(w, &in->frames[at], function, err);
	if (!rc)
		buf_put(ids, &in->frames[at].id, sizeof(int64_t));
	return rc;
}

/* ---- pages ---------------------------------------------------------------------------------- */

int frame_page_insert(struct store *s, const struct page_frame *frames, uint32_t n,
		      struct columns *c, struct buf *data, struct buf *functions, struct err *err)
{
	int rc = frame_page_pack(s->deflater, c, frames, n, data, err);

	if (!rc)
		rc = frame_page_pack_functions(s->deflater, c, frames, n, functions, err);
	if (rc)
		return rc;
	return db_run(s, "INSERT INTO frame_page(first_id, last_id, frames, data, functions)"
		      " VALUES(?, ?, ?, ?, ?)",
		      ARGS(arg_int(frames[0].id), arg_int(frames[n - 1].id), arg_int(n),
			   arg_buf(data), arg_buf(functions)), err);
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
	const struct late_name *x = a, *y = b;

	return compare_u64((uint64_t)x->frame_id, (uint64_t)y->frame_id);
}

static int update_functions(struct work *w, int64_t first, const struct page_frame *frames,
			    uint32_t n, struct err *err)
{
	struct buf *packed = &w->in->packed_functions;
	int rc = frame_page_pack_functions(w->s->deflater, &w->in->columns, frames, n, packed, err);

	if (rc)
		return rc;
	return db_run(w->s, "UPDATE frame_page SET functions=? WHERE first_id=?",
		      ARGS(arg_buf(packed), arg_int(first)), err);
}

/* The function is looked up only here: most frames of a page that is read again have their name. */
static int name_one(struct work *w, struct page_frame *frames, uint32_t n,
		    const struct late_name *late, bool *changed, struct err *err)
{
	uint32_t i = frame_page_find(frames, n, late->frame_id);

	if (i == UINT32_MAX || frames[i].function_id)
		return 0;
	*changed = true;
	return function_id(w->s, late->function, &frames[i].function_id, err);
}

/* Name frames of one page, from w->late[*at] on; *at moves behind them. Skips damaged pages. */
static int name_page(struct work *w, uint32_t *at, struct err *err)
{
	struct page_frame *frames = NULL;
	struct page_row row = {0};
	uint32_t n = 0;
	bool changed = false;
	int rc = page_row(w->s, newest_page, w->late[*at].frame_id, &row, err);

	if (rc > 0) {
		rc = frame_page_unpack(&row.data, &row.more, row.first, &frames, &n, err);
		query_reset(&row.query);
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

/* ---- a segment ------------------------------------------------------------------------------ */

static int add_frames(struct work *w, const struct segment *segment, struct buf *ids,
		      struct err *err)
{
	struct segment_list list = segment_frames(segment);
	uint32_t number;
	int rc = 0;

	while (!rc && segment_next(&list, &number))
		rc = list_frame(w, frame_get(segment->frame_table, number), ids, err);
	if (!rc)
		rc = add_pages(w, err);
	return rc ? rc : add_late_names(w, err);
}

int intern_frames(struct store *s, const struct segment *segment, struct buf *ids, struct err *err)
{
	struct work w = {.s = s, .in = s->interner};
	uint32_t n = segment->nframes;
	int rc = w.in->next_frame ? 0 : page_learn(s, &learner, &w.in->next_frame, err);

	if (rc || !n)
		return rc;
	w.fresh = malloc(n * sizeof(*w.fresh));
	w.late = malloc(n * sizeof(*w.late));
	rc = w.fresh && w.late ? make_room(w.in, n, err) : no_memory(err);
	if (!rc)
		rc = add_frames(&w, segment, ids, err);
	free(w.fresh);
	free(w.late);
	return rc;
}

/* ---- names of a stored segment -------------------------------------------------------------- */

/*
 * Note the frame of this id as one to be named, unless it is known to have its name. A known frame
 * of the same content is not enough: see name_frames().
 */
static int list_late(struct work *w, const struct frame *frame, const struct function *function,
		     int64_t id, struct err *err)
{
	struct known_frame key = {.offset = frame->offset, .flags = frame->flags}, *known = NULL;
	uint32_t at;
	int rc = module_id(w->s, frame->object, &key.module_id, err);

	if (rc)
		return rc;
	at = find_frame(w->in, &key);
	if (at != TABLE_NONE && w->in->frames[at].id == id)
		known = &w->in->frames[at];
	if (known && known->named)
		return 0;
	if (known)
		known->named = true;
	w->late[w->nlate++] = (struct late_name){.frame_id = id, .function = function};
	return 0;
}

int name_frames(struct store *s, const struct segment *segment, const int64_t *ids,
		struct err *err)
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
		const struct function *function = function_of(frame);

		if (function)
			rc = list_late(&w, frame, function, *ids, err);
	}
	if (!rc)
		rc = add_late_names(&w, err);
	free(w.late);
	return rc;
}
