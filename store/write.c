/* Writing an incident: begin, put its segments, finish; and what a past recorder left open. */
#include "store/interner_private.h"

#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums of the history -------------------------------------------------------------------- */

/* A file's window begins with it, and ends with its last segment. */
static void sums_begin(struct store *s, const struct incident_head *head)
{
	sums_end(s);
	s->sums = calloc(1, sizeof(*s->sums));
	s->sums_of = (struct incident_head){
		.id = head->id, .trigger_ns = head->trigger_ns, .t0_ns = head->trigger_ns,
		.t1_ns = UINT64_MAX,
	};
	if (s->sums)
		memcpy(s->sums->period_ns, head->period_ns, sizeof(s->sums->period_ns));
}

void sums_end(struct store *s)
{
	if (s->sums)
		rollup_free(s->sums);
	free(s->sums);
	s->sums = NULL;
}

/* Without memory for it, or with losses without end, all is counted when the file is complete. */
static void sums_add(struct store *s, int64_t incident_id, const struct segment *segment)
{
	const struct put_sums *known = sums_find(s, segment->store_id, &s->sums_of);
	segment_decoder *decode = known ? segment_decode_head : segment_decode_sums;
	struct segment_content content = {0};

	if (!s->sums || s->sums_of.id != incident_id)
		return;
	if (decode(segment->bytes, segment->nbytes, &content, NULL) ||
	    rollup_add(s->sums, &s->sums_of, &content, known, NULL) ||
	    s->sums->nlosses > LOSSES_MAX)
		sums_end(s);
	segment_content_free(&content);
}

/* ---- begin ---------------------------------------------------------------------------------- */

/* Version 4 of RFC 9562: random, except for the bits of version and variant. */
static int make_uuid(char out[37], struct err *err)
{
	uint8_t b[16];
	size_t i, n = 0;
	int rc = os_random(b, sizeof(b), err);

	if (rc)
		return rc;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	for (i = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[n++] = '-';
		n += (size_t)snprintf(out + n, 37 - n, "%02x", b[i]);
	}
	return 0;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static int host_id(struct store *s, const struct incident_head *head, int64_t *id, struct err *err)
{
	const char *name = or_empty(head->host), *text = or_empty(head->host_text);
	int rc = db_run(s, "INSERT OR IGNORE INTO host(name, text) VALUES(?, ?)",
			ARGS(arg_text(name), arg_text(text)), err);

	return rc ? rc : db_int(s, "SELECT id FROM host WHERE name=? AND text=?",
				ARGS(arg_text(name), arg_text(text)), id, err);
}

static int insert_incident(struct store *s, void *arg, struct err *err)
{
	struct incident_head *head = arg;
	int64_t host = 0;
	int rc = host_id(s, head, &host, err);

	if (rc)
		return rc;
	return db_insert(
		s,
		"INSERT INTO incident(uuid, host_id, state, pinned, rule, reason, value,"
		" threshold, trigger_ns, trigger_wall_ns, asked_pre_ns, asked_post_ns,"
		" recorder_cpu_ns, recorder_rss_bytes, recorder_version, note, kept_wall_ns)"
		" VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))",
		ARGS(arg_text(head->uuid), arg_int(host), arg_text(state_to_text(INCIDENT_OPEN)),
		     arg_int(head->pinned), arg_text(or_empty(head->rule)),
		     arg_text(or_empty(head->reason)), arg_num(head->value), arg_num(head->limit),
		     arg_u64(head->trigger_ns), arg_u64(head->trigger_wall_ns),
		     arg_u64(head->asked_pre_ns), arg_u64(head->asked_post_ns),
		     arg_u64(head->recorder_cpu_ns), arg_u64(head->recorder_rss_bytes),
		     arg_text(or_empty(head->recorder_version)), arg_text(head->note),
		     arg_u64(head->kept_wall_ns)),
		&head->id, err);
}

int store_begin(struct store *s, struct incident_head *head, struct err *err)
{
	struct incident_head work = *head;
	int rc;

	assert(s->mode != STORE_READ);
	rc = space_check_floor(s, err);
	if (rc)
		return rc;
	if (s->mode == STORE_RECORD)
		space_make_reserve(s);
	rc = make_uuid(work.uuid, err);
	if (!rc)
		rc = db_transact(s, TX_NORMAL, insert_incident, &work, err);
	if (rc)
		return rc;
	head->id = work.id;
	head->state = INCIDENT_OPEN;
	memcpy(head->uuid, work.uuid, sizeof(head->uuid));
	if (s->history)
		sums_begin(s, head);
	return 0;
}

/* ---- put ------------------------------------------------------------------------------------ */

struct put_work {
	int64_t incident_id, segment_id;
	bool fresh;                          /* out: the row was not there */
	const struct segment *segment;
	struct buf lists, data;
};

static int check_open(struct store *s, int64_t id, struct err *err)
{
	int64_t found;
	int rc = db_int(s, "SELECT 1 FROM incident WHERE id=? AND state='open'", ARGS(arg_int(id)),
			&found, err);

	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, rc,
			     "incident %lld is not open in %s: it was finished, or deleted while "
			     "it was being written",
			     (long long)id, s->path);
	return rc;
}

/* *stored: the segment is still there. It may have gone with the last incident that had it. */
static int is_stored(struct store *s, const struct segment *segment, uint32_t crc, bool *stored,
		     struct err *err)
{
	int64_t found;
	int rc;

	*stored = false;
	if (!segment->store_id)
		return 0;
	rc = db_int(s, "SELECT 1 FROM segment WHERE id=? AND t0_ns=? AND crc=?",
		    ARGS(arg_int(segment->store_id), arg_u64(segment->t0_ns), arg_int(crc)), &found,
		    err);
	*stored = rc == 0;
	return rc == ERR_NOT_FOUND ? 0 : rc;
}

/*
 * SQLite keeps the first L bytes of a long row in a page of the tree and the rest in pages of their
 * own; L is 489 to 4,061, so that the last of these is full (its file format, 1.6). Where two rows
 * share a page of the tree, it is written twice, and once to the history's log. So a row there is
 * made so long that its L takes half a page.
 */
#define ROW_FIRST 489u
#define ROW_HALF 2100u
#define ROW_FIRST_MOST (REDO_PAGE_BYTES - 35u)
#define ROW_PAGE (REDO_PAGE_BYTES - 4u)
#define ROW_NUMBERS 32u                      /* what a row has beside its blobs, at least; */
#define ROW_NUMBERS_MORE 32u                 /* and may have beside that */

static uint64_t padding(size_t nblobs)
{
	size_t n = nblobs + ROW_NUMBERS, first;

	if (n <= ROW_FIRST_MOST)
		return 0;
	first = ROW_FIRST + (n - ROW_FIRST) % ROW_PAGE;
	if (first < ROW_HALF)
		return ROW_HALF - first;
	return first < ROW_FIRST_MOST - ROW_NUMBERS_MORE ? 0 : ROW_PAGE + ROW_HALF - first;
}

#define INSERT_SEGMENT "INSERT INTO segment(t0_ns, t1_ns, samples, bytes, crc, lists, data"
#define SEGMENT_ROW \
	arg_u64(segment->t0_ns), arg_u64(segment->t1_ns), arg_u64(segment->nsamples), \
	arg_u64(nblobs), arg_int(crc), arg_buf(&w->lists), arg_buf(&w->data)

static int insert_segment(struct store *s, struct put_work *w, uint32_t crc, struct err *err)
{
	const struct segment *segment = w->segment;
	size_t nblobs;
	int rc = intern_segment(s, segment, &w->lists, err);

	if (!rc)
		rc = blob_plain(segment->bytes, segment->nbytes, &w->data, err);
	if (rc)
		return rc;
	nblobs = w->lists.len + w->data.len;
	if (s->history)
		rc = db_insert(s, INSERT_SEGMENT
			       ", cpu_samples, pad) VALUES(?, ?, ?, ?, ?, ?, ?, ?, zeroblob(?))",
			       ARGS(SEGMENT_ROW, arg_u64(segment->ncpu_samples),
				    arg_u64(padding(nblobs))), &w->segment_id, err);
	else
		rc = db_insert(s, INSERT_SEGMENT ") VALUES(?, ?, ?, ?, ?, ?, ?)",
			       ARGS(SEGMENT_ROW), &w->segment_id, err);
	return rc ? rc : intern_stored(s, w->segment_id, err);
}

static int put_segment(struct store *s, void *arg, struct err *err)
{
	struct put_work *w = arg;
	uint32_t crc = blob_crc(w->segment->bytes, w->segment->nbytes);
	bool stored;
	int rc = check_open(s, w->incident_id, err);

	if (!rc)
		rc = is_stored(s, w->segment, crc, &stored, err);
	if (rc)
		return rc;
	w->segment_id = w->segment->store_id;
	w->fresh = !stored;
	if (stored)
		rc = intern_names(s, w->segment, err);
	else
		rc = insert_segment(s, w, crc, err);
	if (rc)
		return rc;
	return db_run(s,
		      "INSERT OR IGNORE INTO incident_segment(incident_id, segment_id)"
		      " VALUES(?, ?)", ARGS(arg_int(w->incident_id), arg_int(w->segment_id)), err);
}

struct put_all_work {
	int64_t incident_id;
	struct segment *const *segments;
	int64_t *ids;                        /* out: of the rows */
	bool *fresh;                         /* out: the row was not there */
	uint32_t n;
	struct buf lists, data;
};

static int put_all(struct store *s, void *arg, struct err *err)
{
	struct put_all_work *all = arg;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < all->n; i++) {
		struct put_work w = {.incident_id = all->incident_id, .lists = all->lists,
				     .data = all->data, .segment = all->segments[i]};

		buf_reset(&w.lists);
		buf_reset(&w.data);
		rc = put_segment(s, &w, err);
		all->ids[i] = w.segment_id;
		all->fresh[i] = w.fresh;
		all->lists = w.lists;
		all->data = w.data;
	}
	return rc;
}

int store_put_segments(struct store *s, int64_t incident_id, struct segment *const *segments,
		       uint32_t n, struct err *err)
{
	struct put_all_work all = {.incident_id = incident_id, .segments = segments, .n = n};
	uint32_t i;
	int rc = 0;

	assert(s->mode == STORE_RECORD);
	all.ids = calloc(n + 1u, sizeof(*all.ids));
	all.fresh = calloc(n + 1u, sizeof(*all.fresh));
	rc = all.ids && all.fresh ? db_transact(s, TX_NORMAL, put_all, &all, err)
				  : err_memory(err, "while storing segments");
	for (i = 0; !rc && i < n; i++) {
		segments[i]->store_id = all.ids[i];
		sums_put(s, segments[i]);
		if (all.fresh[i])
			sums_add(s, incident_id, segments[i]);
	}
	free(all.ids);
	free(all.fresh);
	buf_free(&all.lists);
	buf_free(&all.data);
	return rc;
}

int store_put_segment(struct store *s, int64_t incident_id, struct segment *segment,
		      struct err *err)
{
	return store_put_segments(s, incident_id, &segment, 1, err);
}

/* ---- finish --------------------------------------------------------------------------------- */

struct finish_work {
	const struct incident_head *head;
	enum incident_state state;
	struct segment *const *segments;
	uint32_t nsegments;
	struct rollup rollup;
};

static int update_incident(struct store *s, const struct incident_head *head,
			   enum incident_state state, struct err *err)
{
	return db_run(
		s,
		"UPDATE incident SET state=?, rule=?, reason=?, value=?, threshold=?,"
		" asked_pre_ns=?, asked_post_ns=?, t0_ns=?, t1_ns=?, gap_reason=?,"
		" samples=?, lost=?, recorder_cpu_ns=?, recorder_rss_bytes=?,"
		" note=" STORE_SQL_NOTE " WHERE id=?",
		ARGS(arg_text(state_to_text(state)), arg_text(or_empty(head->rule)),
		     arg_text(or_empty(head->reason)), arg_num(head->value), arg_num(head->limit),
		     arg_u64(head->asked_pre_ns), arg_u64(head->asked_post_ns),
		     arg_u64(head->t0_ns), arg_u64(head->t1_ns), arg_text(head->gap_reason),
		     arg_u64(head->samples), arg_u64(head->lost), arg_u64(head->recorder_cpu_ns),
		     arg_u64(head->recorder_rss_bytes), arg_text(head->note), arg_int(head->id)),
		err);
}

static int finish_incident(struct store *s, void *arg, struct err *err)
{
	struct finish_work *w = arg;
	uint32_t i;
	int rc = check_open(s, w->head->id, err);

	for (i = 0; !rc && i < w->nsegments; i++)
		rc = intern_names(s, w->segments[i], err);
	if (!rc)
		rc = rollup_store(s, w->head->id, &w->rollup, err);
	if (!rc)
		rc = update_incident(s, w->head, w->state, err);
	return rc;
}

static int stored_bytes(struct store *s, int64_t id, uint64_t *out, struct err *err)
{
	int64_t bytes = 0;
	int rc = db_int(s,
			"SELECT coalesce(sum(s.bytes), 0) FROM incident_segment x"
			" JOIN segment s ON s.id = x.segment_id WHERE x.incident_id=?",
			ARGS(arg_int(id)), &bytes, err);

	*out = (uint64_t)bytes;
	return rc;
}

int store_finish(struct store *s, struct incident_head *head, struct segment *const *segments,
		 uint32_t nsegments, struct err *err)
{
	struct incident_head done = *head;
	struct finish_work w = {.head = &done, .segments = segments, .nsegments = nsegments};
	int rc = 0;

	w.state = head->state == INCIDENT_PARTIAL ? INCIDENT_PARTIAL : INCIDENT_COMPLETE;
	assert(s->mode != STORE_READ);
	/* Before the transaction: it reads a lot, and segments do not change. */
	if (s->sums && s->sums_of.id == head->id) {
		w.rollup = *s->sums;
		*s->sums = (struct rollup){0};
		sums_end(s);
	} else {
		rc = rollup_count(s, head, &w.rollup, err);
	}
	if (!rc) {
		rollup_head(&w.rollup, &done);
		rc = stored_bytes(s, head->id, &done.stored_bytes, err);
	}
	if (!rc)
		rc = db_transact(s, TX_DURABLE, finish_incident, &w, err);
	rollup_free(&w.rollup);
	if (rc)
		return rc;
	done.state = w.state;
	*head = done;
	return 0;
}

/* ---- partial -------------------------------------------------------------------------------- */

int window_of_segments(struct store *s, struct incident_head *head, struct err *err)
{
	uint64_t trigger = head->trigger_ns, t0, t1, from, to;
	struct query q = db_query(s,
				  "SELECT min(s.t0_ns), max(s.t1_ns) FROM incident_segment x"
				  " JOIN segment s ON s.id = x.segment_id WHERE x.incident_id=?",
				  ARGS(arg_int(head->id)), err);
	int rc = query_step(&q);

	head->t0_ns = head->t1_ns = head->trigger_ns;
	if (rc <= 0)
		return rc;
	if (!column_is_null(&q, 0)) {
		t0 = column_u64(&q, 0);
		t1 = column_u64(&q, 1);
		from = trigger - (head->asked_pre_ns < trigger ? head->asked_pre_ns : trigger);
		to = trigger + head->asked_post_ns;
		if (to < trigger)
			to = UINT64_MAX;
		head->t0_ns = t0 > from ? t0 : from;
		head->t1_ns = t1 < to ? t1 : to;
		if (head->t1_ns < head->t0_ns)
			head->t1_ns = head->t0_ns;
	}
	query_reset(&q);
	return 0;
}

/*
 * A damaged segment must not keep a recorder from starting. What cannot be counted stays as the
 * rows of the segments say, and loading the incident reports the damage.
 */
static int convert_incident(struct store *s, int64_t id, struct err *err)
{
	static const char why[] = "the recorder ended before this incident was complete";
	struct incident_head head = {0};
	struct finish_work w = {.head = &head, .state = INCIDENT_PARTIAL};
	int rc = store_head(s, id, &head, err);

	if (!rc && !head.gap_reason) {
		head.gap_reason = text_dup(why, SIZE_MAX);
		if (!head.gap_reason)
			rc = err_memory(err, "while opening %s", s->path);
	}
	if (!rc) {
		rc = rollup_count(s, &head, &w.rollup, err);
		if (!rc)
			rollup_head(&w.rollup, &head);
		else if (rc == ERR_FORMAT)
			rollup_free(&w.rollup);
	}
	if (!rc || rc == ERR_FORMAT)
		rc = db_transact(s, TX_DURABLE, finish_incident, &w, err);
	rollup_free(&w.rollup);
	incident_head_free(&head);
	return rc;
}

int partial_convert(struct store *s, struct err *err)
{
	int64_t id = 0;
	int rc = 0;

	while (!rc) {
		rc = db_int(s, "SELECT id FROM incident WHERE state='open' ORDER BY id LIMIT 1",
			    NO_ARGS, &id, err);
		if (rc == ERR_NOT_FOUND)
			return 0;
		if (!rc)
			rc = convert_incident(s, id, err);
	}
	return rc;
}
