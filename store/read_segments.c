/*
 * Reading the segments of an incident. The caller's thread reads the rows, because the handle
 * belongs to it. For a long incident another thread inflates and decodes the next segments while
 * the caller works on the one before; the caller decodes, too, when it would have to wait.
 */
#include "base/ahead.h"
#include "store/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD_MIN 8u                 /* segments; fewer are not worth starting a thread */

enum { SLOTS = 4 };                  /* segments in memory: one that is worked on, others ahead */

/* One segment on its way. */
struct slot {
	struct ahead_job job;
	struct stored_segment segment;
	struct buf lists, data;      /* as they are stored */
	const struct incident_head *summed;          /* see read_segments() */
	segment_decoder *decode;
	struct err why;
	int rc;
};

/* ---- decoding ------------------------------------------------------------------------------- */

static void decode_slot(struct ahead_job *job)
{
	struct slot *slot = (struct slot *)job;
	struct segment_content *content = &slot->segment.content;
	struct lists lists = {0};
	struct buf raw = {0};
	struct blob packed_lists = {slot->lists.data, slot->lists.len};
	struct blob packed_data = {slot->data.data, slot->data.len};
	segment_decoder *decode = slot->segment.sums ? segment_decode_head : slot->decode;
	int rc = lists_unpack(&packed_lists, &lists, &slot->why);

	if (!rc)
		rc = blob_unpack(&packed_data, BLOB_OTHER, SEGMENT_MAX_BYTES, &raw, &slot->why);
	if (!rc)
		rc = decode((const uint8_t *)raw.data, raw.len, content, &slot->why);
	if (!rc && (content->nthreads != lists.nthreads || content->nframes != lists.nframes))
		rc = err_set(&slot->why, ERR_FORMAT,
			     "its lists of threads and frames are not those of its columns");
	slot->segment.threads = lists.ids;
	slot->segment.frames = lists.ids ? lists.ids + lists.nthreads : NULL;
	buf_free(&raw);
	slot->rc = rc;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The content stays until the next one takes its memory. */
static void slot_clear(struct slot *slot)
{
	free(slot->segment.threads);
	slot->segment.threads = slot->segment.frames = NULL;
	buf_reset(&slot->lists);
	buf_reset(&slot->data);
}

static void slot_free(struct slot *slot)
{
	slot_clear(slot);
	segment_content_free(&slot->segment.content);
	buf_free(&slot->lists);
	buf_free(&slot->data);
}

static int fetch_row(struct store *s, int64_t incident_id, int64_t id, struct slot *slot)
{
	struct query q = db_query(s, "SELECT lists, data FROM segment WHERE id=?",
				  ARGS(arg_int(id)), &slot->why);
	struct blob lists, data;
	int rc = query_step(&q);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(&slot->why, ERR_NOT_FOUND,
			       "incident %" PRId64 " was deleted from %s meanwhile", incident_id,
			       s->path);
	lists = column_blob(&q, 0);
	data = column_blob(&q, 1);
	buf_put(&slot->lists, lists.bytes, lists.n);
	buf_put(&slot->data, data.bytes, data.n);
	query_reset(&q);
	if (slot->lists.failed || slot->data.failed)
		return err_memory(&slot->why, "while reading %s", s->path);
	return 0;
}

static void fetch(struct store *s, int64_t incident_id, int64_t id, struct slot *slot)
{
	slot_clear(slot);
	slot->segment.sums = slot->summed ? sums_find(s, id, slot->summed) : NULL;
	memset(&slot->why, 0, sizeof(slot->why));
	slot->segment.id = id;
	slot->rc = fetch_row(s, incident_id, id, slot);
}

static int report_damage(struct store *s, const struct slot *slot, damage_reader *damaged,
			 void *ctx, struct err *err)
{
	struct damaged_segment segment = {.id = slot->segment.id, .why = slot->why.text};
	struct query q = db_query(s, "SELECT t0_ns, t1_ns, samples FROM segment WHERE id=?",
				  ARGS(arg_int(segment.id)), err);
	int rc = query_step(&q);

	if (rc > 0) {
		segment.t0_ns = column_u64(&q, 0);
		segment.t1_ns = column_u64(&q, 1);
		segment.samples = column_u64(&q, 2);
	}
	query_reset(&q);
	return rc < 0 ? rc : damaged(ctx, &segment, err);
}

static int deliver_slot(struct store *s, int64_t incident_id, struct slot *slot,
			segment_reader *each, damage_reader *damaged, void *ctx, struct err *err)
{
	if (slot->rc == ERR_FORMAT)
		err_prefix(&slot->why,
			   "segment %" PRId64 " of incident %" PRId64 " in %s is damaged",
			   slot->segment.id, incident_id, s->path);
	if (!slot->rc)
		slot->rc = each(ctx, &slot->segment, &slot->why);
	if (slot->rc == ERR_FORMAT && damaged)
		return report_damage(s, slot, damaged, ctx, err);
	if (slot->rc && err)
		*err = slot->why;
	return slot->rc;
}

int read_listed_segments(struct store *s, int64_t incident_id, const struct ids *ids,
			 const struct incident_head *summed, segment_decoder *decode,
			 segment_reader *each, damage_reader *damaged, void *ctx, struct err *err)
{
	struct slot slots[SLOTS] = {{.rc = 0}}, *slot;
	struct ahead ahead = {0};
	uint32_t given = 0, i;
	int rc = 0;

	if (ids->n >= AHEAD_MIN)
		ahead_begin(&ahead, "decode");
	ahead.owner_helps = true;
	for (i = 0; !rc && i < ids->n; i++) {
		for (; given < ids->n && given < i + SLOTS; given++) {
			slot = &slots[given % SLOTS];
			slot->job.run = decode_slot;
			slot->decode = decode;
			slot->summed = summed;
			fetch(s, incident_id, ids->ids[given], slot);
			if (!slot->rc)
				ahead_give(&ahead, &slot->job);
		}
		slot = &slots[i % SLOTS];
		ahead_await(&ahead, &slot->job);
		rc = deliver_slot(s, incident_id, slot, each, damaged, ctx, err);
	}
	ahead_end(&ahead);
	for (i = 0; i < SLOTS; i++)
		slot_free(&slots[i]);
	return rc;
}

/* Ids first: sorting rows with blobs in them would copy every blob. */
int read_segments(struct store *s, int64_t incident_id, const struct incident_head *summed,
		  segment_decoder *decode, segment_reader *each, damage_reader *damaged, void *ctx,
		  struct err *err)
{
	struct query q = db_query(
		s,
		"SELECT s.id FROM incident_segment x JOIN segment s ON s.id = x.segment_id"
		" WHERE x.incident_id=? ORDER BY s.t0_ns, s.id",
		ARGS(arg_int(incident_id)), err);
	struct ids ids = {0};
	int rc = ids_collect(&q, &ids);

	if (!rc)
		rc = read_listed_segments(s, incident_id, &ids, summed, decode, each, damaged, ctx,
					  err);
	free(ids.ids);
	return rc;
}
