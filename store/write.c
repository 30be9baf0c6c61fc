/* Writing an incident: begin, put its segments, finish; and what an ended recorder left open. */
#include "store/store_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- begin ---------------------------------------------------------------------------------- */

/* Version 4 of RFC 9562: random but for the version and variant bits. */
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

static int host_id(struct store *s, const struct incident_head *head, int64_t *id, struct err *err)
{
	const char *name = head->host ? head->host : "";
	const char *text = head->host_text ? head->host_text : "";
	struct args a;
	int rc = db_statement(s, "INSERT OR IGNORE INTO host(name, text) VALUES(?, ?)", &a, err);

	if (rc)
		return rc;
	arg_text(&a, name);
	arg_text(&a, text);
	rc = db_run(s, a.st, err);
	if (!rc)
		rc = db_statement(s, "SELECT id FROM host WHERE name=? AND text=?", &a, err);
	if (rc)
		return rc;
	arg_text(&a, name);
	arg_text(&a, text);
	return db_int(s, a.st, id, err);
}

static int begin(struct store *s, void *arg, struct err *err)
{
	struct incident_head *head = arg;
	int64_t host = 0;
	struct args a;
	int rc = host_id(s, head, &host, err);

	if (!rc)
		rc = db_statement(
			s,
			"INSERT INTO incident(uuid, host_id, state, pinned, rule, reason, value,"
			" threshold, trigger_ns, trigger_wall_ns, asked_pre_ns, asked_post_ns,"
			" recorder_cpu_ns, recorder_rss_bytes, recorder_version, note, kept_wall_ns)"
			" VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))",
			&a, err);
	if (rc)
		return rc;
	arg_text(&a, head->uuid);
	arg_int(&a, host);
	arg_text(&a, state_to_text(INCIDENT_OPEN));
	arg_int(&a, head->pinned);
	arg_text(&a, head->rule ? head->rule : "");
	arg_text(&a, head->reason ? head->reason : "");
	arg_num(&a, head->value);
	arg_num(&a, head->limit);
	arg_u64(&a, head->trigger_ns);
	arg_u64(&a, head->trigger_wall_ns);
	arg_u64(&a, head->asked_pre_ns);
	arg_u64(&a, head->asked_post_ns);
	arg_u64(&a, head->recorder_cpu_ns);
	arg_u64(&a, head->recorder_rss_bytes);
	arg_text(&a, head->recorder_version ? head->recorder_version : "");
	arg_text(&a, head->note);
	arg_u64(&a, head->kept_wall_ns);
	rc = db_run(s, a.st, err);
	head->id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

int store_begin(struct store *s, struct incident_head *head, struct err *err)
{
	struct incident_head work = *head;
	int rc;

	assert(s->mode == STORE_RECORD);
	rc = space_check_floor(s, err);
	if (rc)
		return rc;
	space_make_reserve(s);
	rc = make_uuid(work.uuid, err);
	if (!rc)
		rc = db_transact(s, TX_NORMAL, begin, &work, err);
	if (rc)
		return rc;
	head->id = work.id;
	head->state = INCIDENT_OPEN;
	memcpy(head->uuid, work.uuid, sizeof(head->uuid));
	return 0;
}

/* ---- put ------------------------------------------------------------------------------------ */

struct put_work {
	int64_t incident_id, segment_id;
	const struct segment *segment;
	struct buf lists, data;
};

static int check_open(struct store *s, int64_t id, struct err *err)
{
	struct args a;
	int64_t found;
	int rc = db_statement(s, "SELECT 1 FROM incident WHERE id=? AND state='open'", &a, err);

	if (rc)
		return rc;
	arg_int(&a, id);
	rc = db_int(s, a.st, &found, err);
	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, rc,
			     "incident %lld is not open in %s: it was finished, or deleted while "
			     "it was written",
			     (long long)id, s->path);
	return rc;
}

/* Whether the segment is still there: it may have gone with the last incident that had it. */
static int is_stored(struct store *s, const struct segment *segment, uint32_t crc, bool *stored,
		     struct err *err)
{
	struct args a;
	int64_t found;
	int rc;

	*stored = false;
	if (!segment->store_id)
		return 0;
	rc = db_statement(s, "SELECT 1 FROM segment WHERE id=? AND t0_ns=? AND crc=?", &a, err);
	if (rc)
		return rc;
	arg_int(&a, segment->store_id);
	arg_u64(&a, segment->t0_ns);
	arg_int(&a, crc);
	rc = db_int(s, a.st, &found, err);
	*stored = rc == 0;
	return rc == ERR_NOT_FOUND ? 0 : rc;
}

static int insert_segment(struct store *s, struct put_work *w, uint32_t crc, struct err *err)
{
	const struct segment *segment = w->segment;
	struct args a;
	int rc;

	rc = intern_segment(s, segment, &w->lists, err);
	if (!rc)
		rc = blob_plain(segment->bytes, segment->nbytes, &w->data, err);
	if (!rc)
		rc = db_statement(
			s,
			"INSERT INTO segment(t0_ns, t1_ns, samples, bytes, crc, lists, data)"
			" VALUES(?, ?, ?, ?, ?, ?, ?)",
			&a, err);
	if (rc)
		return rc;
	arg_u64(&a, segment->t0_ns);
	arg_u64(&a, segment->t1_ns);
	arg_u64(&a, segment->nsamples);
	arg_u64(&a, w->lists.len + w->data.len);
	arg_int(&a, crc);
	arg_blob(&a, w->lists.data, w->lists.len);
	arg_blob(&a, w->data.data, w->data.len);
	rc = db_run(s, a.st, err);
	w->segment_id = sqlite3_last_insert_rowid(s->db);
	return rc ? rc : intern_stored(s, w->segment_id, err);
}

static int put(struct store *s, void *arg, struct err *err)
{
	struct put_work *w = arg;
	uint32_t crc = blob_crc(w->segment->bytes, w->segment->nbytes);
	struct args a;
	bool stored;
	int rc = check_open(s, w->incident_id, err);

	if (!rc)
		rc = is_stored(s, w->segment, crc, &stored, err);
	if (rc)
		return rc;
	w->segment_id = w->segment->store_id;
	if (stored)
		rc = intern_names(s, w->segment, err);
	else
		rc = insert_segment(s, w, crc, err);
	if (!rc)
		rc = db_statement(s,
				  "INSERT OR IGNORE INTO incident_segment(incident_id, segment_id)"
				  " VALUES(?, ?)",
				  &a, err);
	if (rc)
		return rc;
	arg_int(&a, w->incident_id);
	arg_int(&a, w->segment_id);
	return db_run(s, a.st, err);
}

int store_put_segment(struct store *s, int64_t incident_id, struct segment *segment,
		      struct err *err)
{
	struct put_work w = {.incident_id = incident_id, .segment = segment};
	int rc;

	assert(s->mode == STORE_RECORD);
	rc = db_transact(s, TX_NORMAL, put, &w, err);
	if (!rc)
		segment->store_id = w.segment_id;
	buf_free(&w.lists);
	buf_free(&w.data);
	return rc;
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
	struct args a;
	int rc = db_statement(s,
			      "UPDATE incident SET state=?, rule=?, reason=?, value=?, threshold=?,"
			      " asked_pre_ns=?, asked_post_ns=?, t0_ns=?, t1_ns=?, gap_reason=?,"
			      " samples=?, lost=?, recorder_cpu_ns=?, recorder_rss_bytes=?, note=?"
			      " WHERE id=?",
			      &a, err);

	if (rc)
		return rc;
	arg_text(&a, state_to_text(state));
	arg_text(&a, head->rule ? head->rule : "");
	arg_text(&a, head->reason ? head->reason : "");
	arg_num(&a, head->value);
	arg_num(&a, head->limit);
	arg_u64(&a, head->asked_pre_ns);
	arg_u64(&a, head->asked_post_ns);
	arg_u64(&a, head->t0_ns);
	arg_u64(&a, head->t1_ns);
	arg_text(&a, head->gap_reason);
	arg_u64(&a, head->samples);
	arg_u64(&a, head->lost);
	arg_u64(&a, head->recorder_cpu_ns);
	arg_u64(&a, head->recorder_rss_bytes);
	arg_text(&a, head->note);
	arg_int(&a, head->id);
	return db_run(s, a.st, err);
}

static int finish(struct store *s, void *arg, struct err *err)
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
	struct args a;
	int64_t bytes = 0;
	int rc = db_statement(s,
			      "SELECT coalesce(sum(s.bytes), 0) FROM incident_segment x"
			      " JOIN segment s ON s.id = x.segment_id WHERE x.incident_id=?",
			      &a, err);

	if (rc)
		return rc;
	arg_int(&a, id);
	rc = db_int(s, a.st, &bytes, err);
	*out = (uint64_t)bytes;
	return rc;
}

int store_finish(struct store *s, struct incident_head *head, struct segment *const *segments,
		 uint32_t nsegments, struct err *err)
{
	struct incident_head done = *head;
	struct finish_work w = {.head = &done, .segments = segments, .nsegments = nsegments};
	int rc;

	w.state = head->state == INCIDENT_PARTIAL ? INCIDENT_PARTIAL : INCIDENT_COMPLETE;
	assert(s->mode == STORE_RECORD);
	/* Before the transaction: it reads much, and segments do not change. */
	rc = rollup_count(s, head, &w.rollup, err);
	if (!rc) {
		rollup_head(&w.rollup, &done);
		rc = stored_bytes(s, head->id, &done.stored_bytes, err);
	}
	if (!rc)
		rc = db_transact(s, TX_DURABLE, finish, &w, err);
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
	struct args a;
	int rc = db_statement(s,
			      "SELECT min(s.t0_ns), max(s.t1_ns) FROM incident_segment x"
			      " JOIN segment s ON s.id = x.segment_id WHERE x.incident_id=?",
			      &a, err);

	head->t0_ns = head->t1_ns = head->trigger_ns;
	if (rc)
		return rc;
	arg_int(&a, head->id);
	rc = db_step(s, a.st, err);
	if (rc <= 0)
		return rc;
	if (sqlite3_column_type(a.st, 0) != SQLITE_NULL) {
		t0 = (uint64_t)sqlite3_column_int64(a.st, 0);
		t1 = (uint64_t)sqlite3_column_int64(a.st, 1);
		from = trigger - (head->asked_pre_ns < trigger ? head->asked_pre_ns : trigger);
		to = trigger + head->asked_post_ns;
		if (to < trigger)
			to = UINT64_MAX;
		head->t0_ns = t0 > from ? t0 : from;
		head->t1_ns = t1 < to ? t1 : to;
		if (head->t1_ns < head->t0_ns)
			head->t1_ns = head->t0_ns;
	}
	sqlite3_reset(a.st);
	return 0;
}

/*
 * A damaged segment must not keep a recorder from starting: what cannot be counted stays as the
 * segments' own numbers say, and whoever loads the incident hears of the damage.
 */
static int convert(struct store *s, int64_t id, struct err *err)
{
	static const char why[] = "the recorder ended before this incident was complete";
	struct incident_head head = {0};
	struct finish_work w = {.head = &head, .state = INCIDENT_PARTIAL};
	int rc = store_head(s, id, &head, err);

	if (!rc && !head.gap_reason) {
		head.gap_reason = malloc(sizeof(why));
		if (head.gap_reason)
			memcpy(head.gap_reason, why, sizeof(why));
		else
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
		rc = db_transact(s, TX_DURABLE, finish, &w, err);
	rollup_free(&w.rollup);
	incident_head_free(&head);
	return rc;
}

int partial_convert(struct store *s, struct err *err)
{
	int64_t id = 0;
	int rc = 0;

	while (!rc) {
		struct args a;

		rc = db_statement(s,
				  "SELECT id FROM incident WHERE state='open' ORDER BY id LIMIT 1",
				  &a, err);
		if (!rc)
			rc = db_int(s, a.st, &id, err);
		if (rc == ERR_NOT_FOUND)
			return 0;
		if (!rc)
			rc = convert(s, id, err);
	}
	return rc;
}
