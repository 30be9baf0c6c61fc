/* Reading ids and heads. */
#include "store/store_private.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ids ------------------------------------------------------------------------------------ */

int ids_collect(struct query *q, struct ids *out)
{
	int rc;

	while ((rc = query_step(q)) > 0) {
		if (ARRAY_ROOM(out->ids, out->cap, out->n + 1)) {
			query_reset(q);
			return err_memory(q->err, "while reading %s", q->s->path);
		}
		out->ids[out->n++] = column_int(q, 0);
	}
	return rc;
}

int not_found(struct store *s, int64_t id, struct err *err)
{
	struct query q = db_query(s, "SELECT id FROM incident ORDER BY id DESC LIMIT 11", err);
	struct buf text = {0};
	struct ids ids = {0};
	uint32_t i;
	int rc = ids_collect(&q, &ids);

	for (i = 0; i < ids.n && i < 10; i++)
		buf_printf(&text, "%s%" PRId64, i ? ", " : "", ids.ids[i]);
	if (!rc && !ids.n)
		rc = err_set(err, ERR_NOT_FOUND, "there is no incident %" PRId64 ": %s holds none",
			     id, s->path);
	else if (!rc)
		rc = err_set(err, ERR_NOT_FOUND,
			     "there is no incident %" PRId64 " in %s; it holds %s%s", id, s->path,
			     buf_text(&text), ids.n > 10 ? ", ..." : "");
	free(ids.ids);
	buf_free(&text);
	return rc;
}

int store_newest(struct store *s, int64_t *id, struct err *err)
{
	int rc = db_int(s, "SELECT id FROM incident ORDER BY id DESC LIMIT 1", id, err);

	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, rc, "%s holds no incidents yet", s->path);
	return rc;
}

/* ---- head ----------------------------------------------------------------------------------- */

/* The columns of a row, from left to right. */
struct row {
	sqlite3_stmt *st;
	int at;
	bool failed;                         /* there was no memory for a text */
};

static int64_t next_int(struct row *c)
{
	return sqlite3_column_int64(c->st, c->at++);
}

static uint64_t next_u64(struct row *c)
{
	return (uint64_t)sqlite3_column_int64(c->st, c->at++);
}

static double next_num(struct row *c)
{
	int at = c->at++;

	return sqlite3_column_type(c->st, at) == SQLITE_NULL ? (double)NAN
							     : sqlite3_column_double(c->st, at);
}

/* Borrowed until the statement moves; NULL for NULL. */
static const char *next_text(struct row *c)
{
	int at = c->at++;
	const char *text = (const char *)sqlite3_column_text(c->st, at);

	if (!text && sqlite3_column_type(c->st, at) != SQLITE_NULL)
		c->failed = true;
	return text;
}

static char *next_copy(struct row *c)
{
	const char *text = next_text(c);
	char *copy = text ? text_dup(text, SIZE_MAX) : NULL;

	c->failed |= text && !copy;
	return copy;
}

/* *windowed: the incident already has its window. */
static void read_head(sqlite3_stmt *st, struct incident_head *h, bool *windowed, bool *failed)
{
	struct row c = {.st = st};
	const char *uuid;

	h->id = next_int(&c);
	uuid = next_text(&c);
	snprintf(h->uuid, sizeof(h->uuid), "%s", uuid ? uuid : "");
	h->state = state_from_text(next_text(&c));
	h->pinned = next_int(&c) != 0;
	h->rule = next_copy(&c);
	h->reason = next_copy(&c);
	h->value = next_num(&c);
	h->limit = next_num(&c);
	h->trigger_ns = next_u64(&c);
	h->trigger_wall_ns = next_u64(&c);
	h->asked_pre_ns = next_u64(&c);
	h->asked_post_ns = next_u64(&c);
	*windowed = sqlite3_column_type(st, c.at) != SQLITE_NULL;
	h->t0_ns = next_u64(&c);
	h->t1_ns = next_u64(&c);
	h->gap_reason = next_copy(&c);
	h->samples = next_u64(&c);
	h->lost = next_u64(&c);
	h->recorder_cpu_ns = next_u64(&c);
	h->recorder_rss_bytes = next_u64(&c);
	h->recorder_version = next_copy(&c);
	h->note = next_copy(&c);
	h->host = next_copy(&c);
	h->host_text = next_copy(&c);
	h->stored_bytes = next_u64(&c);
	*failed = c.failed;
}

static int head_row(struct store *s, int64_t id, struct incident_head *h, bool *windowed,
		    struct err *err)
{
	/* An open incident has no count of samples yet: show the sum over its segments, uncut. */
	struct query q = db_query(
		s,
		"SELECT i.id, i.uuid, i.state, i.pinned, i.rule, i.reason, i.value,"
		" i.threshold, i.trigger_ns, i.trigger_wall_ns, i.asked_pre_ns,"
		" i.asked_post_ns, i.t0_ns, i.t1_ns, i.gap_reason,"
		" coalesce(i.samples, (SELECT sum(s.samples) FROM incident_segment x"
		"  JOIN segment s ON s.id = x.segment_id WHERE x.incident_id = i.id), 0),"
		" coalesce(i.lost, 0), i.recorder_cpu_ns, i.recorder_rss_bytes,"
		" i.recorder_version, i.note, h.name, h.text,"
		" coalesce((SELECT sum(s.bytes) FROM incident_segment x"
		"  JOIN segment s ON s.id = x.segment_id WHERE x.incident_id = i.id), 0)"
		" FROM incident i JOIN host h ON h.id = i.host_id WHERE i.id=?", err);
	bool failed;
	int rc;

	bind_int(&q, id);
	rc = query_step(&q);
	if (rc <= 0)
		return rc ? rc : ERR_NOT_FOUND;
	read_head(q.st, h, windowed, &failed);
	query_reset(&q);
	return failed ? err_memory(err, "while reading %s", s->path) : 0;
}

/* The sums of a rollup table, by kind. Its rows have the kind's text and a number. */
static int head_sums(struct store *s, const char *sql, int64_t id, uint64_t *sums, unsigned nsums,
		     const char *(*text_of)(unsigned kind), struct err *err)
{
	struct query q = db_query(s, sql, err);
	unsigned kind;
	int rc;

	bind_int(&q, id);
	while ((rc = query_step(&q)) > 0) {
		const char *text = column_text(&q, 0);

		for (kind = 0; text && kind < nsums; kind++) {
			if (strcmp(text, text_of(kind)) == 0)
				sums[kind] = column_u64(&q, 1);
		}
	}
	return rc;
}

static const char *loss_text(unsigned kind)
{
	return loss_kind_text((enum loss_kind)kind);
}

static const char *quality_text(unsigned kind)
{
	return stack_quality_text((enum stack_quality)kind);
}

static const char *stream_kind_text(unsigned kind)
{
	return stream_text((enum stream)kind);
}

/* Earlier recorders counted samples left out in floods as lost, too. */
static void take_floods_from_lost(struct incident_head *h)
{
	uint64_t sum = 0;
	unsigned kind;

	for (kind = 0; kind < LOSS_KINDS; kind++)
		sum += h->lost_by_kind[kind];
	if (h->lost == sum)
		h->lost -= h->lost_by_kind[LOSS_FLOOD];
}

static int find_head(struct store *s, int64_t id, struct incident_head *h, struct err *err)
{
	bool windowed = true;
	int rc = head_row(s, id, h, &windowed, err);

	if (!rc && !windowed)
		rc = window_of_segments(s, h, err);
	if (!rc)
		rc = head_sums(s, "SELECT kind, sum(n) FROM loss WHERE incident_id=? GROUP BY kind",
			       id, h->lost_by_kind, LOSS_KINDS, loss_text, err);
	if (!rc)
		take_floods_from_lost(h);
	if (!rc)
		rc = head_sums(s,
			       "SELECT kind, sum(n) FROM quality WHERE incident_id=? GROUP BY kind",
			       id, h->quality, QUALITIES, quality_text, err);
	if (!rc)
		rc = head_sums(s, "SELECT kind, period_ns FROM stream WHERE incident_id=?", id,
			       h->period_ns, STREAMS_MAX, stream_kind_text, err);
	if (rc)
		incident_head_free(h);
	return rc;
}

int store_head(struct store *s, int64_t id, struct incident_head *out, struct err *err)
{
	struct incident_head head = {0};
	int rc = find_head(s, id, &head, err);

	if (rc == ERR_NOT_FOUND)
		return not_found(s, id, err);
	if (!rc)
		*out = head;
	return rc;
}

/* Ids first, then one short read each, so that the caller may use the store in between. */
int store_list(struct store *s, int (*each)(void *ctx, const struct incident_head *head), void *ctx,
	       struct err *err)
{
	struct query q = db_query(s, "SELECT id FROM incident ORDER BY id DESC", err);
	struct ids ids = {0};
	uint32_t i;
	int rc = ids_collect(&q, &ids);

	for (i = 0; !rc && i < ids.n; i++) {
		struct incident_head head = {0};
		int stop = 0;

		rc = find_head(s, ids.ids[i], &head, err);
		if (!rc)
			stop = each(ctx, &head);
		else if (rc == ERR_NOT_FOUND)
			rc = 0;        /* deleted meanwhile */
		incident_head_free(&head);
		if (stop)
			break;
	}
	free(ids.ids);
	return rc;
}
