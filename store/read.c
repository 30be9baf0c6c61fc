/* Reading ids and heads. */
#include "store/store_private.h"

#include "base/array.h"
#include "base/text.h"

#include <ctype.h>
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
	struct query q = db_query(s, "SELECT id FROM incident ORDER BY id DESC LIMIT 11", NO_ARGS,
				  err);
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
	int rc = db_int(s, "SELECT id FROM incident ORDER BY id DESC LIMIT 1", NO_ARGS, id, err);

	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, rc, "%s holds no incidents yet", s->path);
	return rc;
}

/* ---- head ----------------------------------------------------------------------------------- */

/* A copy of a text; NULL for NULL. *complete becomes false without memory. */
static char *copy_text(const struct query *q, int column, bool *complete)
{
	const char *text = column_text(q, column);
	char *copy = text ? text_dup(text, SIZE_MAX) : NULL;

	if (!copy && !column_is_null(q, column))
		*complete = false;
	return copy;
}

static double column_num(const struct query *q, int column)
{
	return column_is_null(q, column) ? (double)NAN : sqlite3_column_double(q->st, column);
}

/* Remarks are the lines after the note's own. Returns false without memory. */
static bool split_note(struct incident_head *h)
{
	char *line = h->note ? strchr(h->note, '\n') : NULL;

	if (!line)
		return true;
	*line = '\0';
	h->remarks = text_dup(line + 1, SIZE_MAX);
	if (!*h->note) {
		free(h->note);
		h->note = NULL;
	}
	return h->remarks != NULL;
}

/* The file may be a stranger's, and a uuid goes into SQL, URLs and names of files. */
static void copy_uuid(struct incident_head *h, const char *text)
{
	char *at;

	snprintf(h->uuid, sizeof(h->uuid), "%s", text ? text : "");
	for (at = h->uuid; *at; at++)
		if (!isalnum((unsigned char)*at))
			*at = '-';
}

/* *windowed: the incident already has its window. Returns false without memory. */
static bool read_head(const struct query *q, struct incident_head *h, bool *windowed)
{
	const char *uuid = column_text(q, 1), *state = column_text(q, 2);
	bool complete = (uuid || column_is_null(q, 1)) && (state || column_is_null(q, 2));

	h->id = column_int(q, 0);
	copy_uuid(h, uuid);
	h->state = state_from_text(state);
	h->pinned = column_int(q, 3) != 0;
	h->rule = copy_text(q, 4, &complete);
	h->reason = copy_text(q, 5, &complete);
	h->value = column_num(q, 6);
	h->limit = column_num(q, 7);
	h->trigger_ns = column_u64(q, 8);
	h->trigger_wall_ns = column_u64(q, 9);
	h->asked_pre_ns = column_u64(q, 10);
	h->asked_post_ns = column_u64(q, 11);
	*windowed = !column_is_null(q, 12);
	h->t0_ns = column_u64(q, 12);
	h->t1_ns = column_u64(q, 13);
	h->gap_reason = copy_text(q, 14, &complete);
	h->samples = column_u64(q, 15);
	h->lost = column_u64(q, 16);
	h->recorder_cpu_ns = column_u64(q, 17);
	h->recorder_rss_bytes = column_u64(q, 18);
	h->recorder_version = copy_text(q, 19, &complete);
	h->note = copy_text(q, 20, &complete);
	complete &= split_note(h);
	h->host = copy_text(q, 21, &complete);
	h->host_text = copy_text(q, 22, &complete);
	h->stored_bytes = column_u64(q, 23);
	return complete;
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
		" FROM incident i JOIN host h ON h.id = i.host_id WHERE i.id=?",
		ARGS(arg_int(id)), err);
	bool complete;
	int rc = query_step(&q);

	if (rc <= 0)
		return rc ? rc : ERR_NOT_FOUND;
	complete = read_head(&q, h, windowed);
	query_reset(&q);
	return complete ? 0 : err_memory(err, "while reading %s", s->path);
}

/* The sums of a rollup table, by kind. Its rows have the kind's text and a number. */
static int head_sums(struct store *s, const char *sql, int64_t id, uint64_t *sums, unsigned nsums,
		     const char *(*text_of)(unsigned kind), struct err *err)
{
	struct query q = db_query(s, sql, ARGS(arg_int(id)), err);
	unsigned kind;
	int rc;

	while ((rc = query_step(&q)) > 0) {
		const char *text = column_text(&q, 0);

		for (kind = 0; text && kind < nsums; kind++) {
			if (strcmp(text, text_of(kind)) == 0)
				sums[kind] = column_u64(&q, 1);
		}
	}
	return rc;
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
			       id, h->lost_by_kind, LOSS_KINDS, loss_kind_text, err);
	if (!rc)
		take_floods_from_lost(h);
	if (!rc)
		rc = head_sums(s,
			       "SELECT kind, sum(n) FROM quality WHERE incident_id=? GROUP BY kind",
			       id, h->quality, QUALITIES, stack_quality_text, err);
	if (!rc)
		rc = head_sums(s, "SELECT kind, period_ns FROM stream WHERE incident_id=?", id,
			       h->period_ns, STREAMS_MAX, stream_text, err);
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
	struct query q = db_query(s, "SELECT id FROM incident ORDER BY id DESC", NO_ARGS, err);
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
