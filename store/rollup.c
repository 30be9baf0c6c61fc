/*
 * What an incident's segments add up to in its window: samples by quality, losses by cpu and
 * second.
 *
 * It is counted from what was stored, not from memory. So it also proves that every segment can be
 * read back, and the same code counts a partial incident.
 */
#include "store/store_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct counting {
	const struct incident_head *head;
	struct rollup *r;
	struct idmap loss_index;             /* (cpu, second, kind) -> row */
};

static int no_memory(struct err *err)
{
	return err_memory(err, "while counting an incident's samples");
}

/* ---- quality -------------------------------------------------------------------------------- */

static bool in_window(const struct counting *c, uint64_t time_ns)
{
	return time_ns >= c->head->t0_ns && time_ns <= c->head->t1_ns;
}

static void count_samples(struct counting *c, const struct segment_content *content)
{
	uint32_t i;

	for (i = 0; i < content->nsamples; i++) {
		const struct incident_sample *sample = &content->samples[i];

		if (!in_window(c, sample->time_ns) || sample->stream == STREAM_OFF_CPU)
			continue;
		c->r->quality[sample->quality]++;
		c->r->samples++;
	}
}

/* ---- losses --------------------------------------------------------------------------------- */

/* Seconds from the trigger, rounded down. No sound incident reaches the limits, 68 years away. */
static int32_t second_of(const struct counting *c, uint64_t time_ns)
{
	int64_t ns = (int64_t)(time_ns - c->head->trigger_ns);
	int64_t second = ns / (int64_t)NS_PER_SEC - (ns % (int64_t)NS_PER_SEC < 0);

	return second < INT32_MIN ? INT32_MIN : second > INT32_MAX ? INT32_MAX : (int32_t)second;
}

static int add_loss(struct counting *c, const struct loss_row *loss, struct err *err)
{
	uint64_t key = (uint64_t)(uint32_t)loss->second << 32 | (uint64_t)(uint16_t)loss->cpu << 8 |
		       (uint64_t)loss->kind;
	struct rollup *r = c->r;
	int64_t row;

	if (idmap_get(&c->loss_index, key, &row)) {
		r->losses[row].n += loss->n;
		return 0;
	}
	if (ARRAY_ROOM(r->losses, r->losses_cap, r->nlosses + 1) ||
	    idmap_set(&c->loss_index, key, r->nlosses))
		return no_memory(err);
	r->losses[r->nlosses++] = *loss;
	return 0;
}

static int count_losses(struct counting *c, const struct segment_content *content, struct err *err)
{
	struct loss_row loss;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < content->nevents; i++) {
		const struct incident_event *e = &content->events[i];

		if (e->kind != EVENT_LOST || !in_window(c, e->time_ns) ||
		    !(e->value > 0 && e->value < 1e18))
			continue;
		loss.kind = loss_kind_from_text(e->name);
		loss.n = (uint64_t)e->value;
		loss.cpu = e->cpu == CPU_NONE ? -1 : e->cpu;
		loss.second = second_of(c, e->time_ns);
		if (loss.kind != LOSS_KINDS)
			rc = add_loss(c, &loss, err);
	}
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int count_segment(void *ctx, const struct stored_segment *segment, struct err *err)
{
	struct counting *c = ctx;
	unsigned stream;
	int rc = count_losses(c, &segment->content, err);

	count_samples(c, &segment->content);
	for (stream = 0; stream < STREAMS_MAX; stream++) {
		if (!c->r->period_ns[stream])
			c->r->period_ns[stream] = segment->content.period_ns[stream];
	}
	return rc;
}

int rollup_count(struct store *s, const struct incident_head *head, struct rollup *out,
		 struct err *err)
{
	struct counting c = {.head = head, .r = out};
	int rc;

	memcpy(out->period_ns, head->period_ns, sizeof(out->period_ns));
	rc = read_segments(s, head->id, count_segment, NULL, &c, err);
	idmap_free(&c.loss_index);
	return rc;
}

void rollup_free(struct rollup *r)
{
	free(r->losses);
	memset(r, 0, sizeof(*r));
}

void rollup_head(const struct rollup *r, struct incident_head *head)
{
	uint32_t i;

	memset(head->lost_by_kind, 0, sizeof(head->lost_by_kind));
	memcpy(head->quality, r->quality, sizeof(head->quality));
	head->lost = 0;
	for (i = 0; i < r->nlosses; i++) {
		head->lost_by_kind[r->losses[i].kind] += r->losses[i].n;
		if (r->losses[i].kind != LOSS_FLOOD)
			head->lost += r->losses[i].n;
	}
	head->samples = r->samples;
	memcpy(head->period_ns, r->period_ns, sizeof(head->period_ns));
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int put_loss(struct store *s, int64_t incident, const struct loss_row *loss, struct err *err)
{
	struct query q = db_query(s, "INSERT INTO loss(incident_id, kind, second, cpu, n)"
				  " VALUES(?, ?, ?, ?, ?)", err);

	bind_int(&q, incident);
	bind_text(&q, loss_kind_text(loss->kind));
	bind_int(&q, loss->second);
	bind_int(&q, loss->cpu);
	bind_u64(&q, loss->n);
	return query_run(&q);
}

static int put_quality(struct store *s, int64_t incident, enum stack_quality kind, uint64_t n,
		       struct err *err)
{
	struct query q = db_query(s, "INSERT INTO quality(incident_id, kind, n) VALUES(?, ?, ?)",
				  err);

	bind_int(&q, incident);
	bind_text(&q, stack_quality_text(kind));
	bind_u64(&q, n);
	return query_run(&q);
}

static int put_stream(struct store *s, int64_t incident, enum stream stream, uint64_t period_ns,
		      struct err *err)
{
	struct query q = db_query(s, "INSERT INTO stream(incident_id, kind, period_ns)"
				  " VALUES(?, ?, ?)", err);

	bind_int(&q, incident);
	bind_text(&q, stream_text(stream));
	bind_u64(&q, period_ns);
	return query_run(&q);
}

int rollup_delete(struct store *s, int64_t incident_id, struct err *err)
{
	int rc = db_run_int(s, "DELETE FROM loss WHERE incident_id=?", incident_id, err);

	if (!rc)
		rc = db_run_int(s, "DELETE FROM quality WHERE incident_id=?", incident_id, err);
	if (!rc)
		rc = db_run_int(s, "DELETE FROM stream WHERE incident_id=?", incident_id, err);
	return rc;
}

int rollup_store(struct store *s, int64_t incident_id, const struct rollup *r, struct err *err)
{
	uint32_t i;
	unsigned k;
	int rc = rollup_delete(s, incident_id, err);

	for (i = 0; !rc && i < r->nlosses; i++)
		rc = put_loss(s, incident_id, &r->losses[i], err);
	for (k = 0; !rc && k < QUALITIES; k++) {
		if (r->quality[k])
			rc = put_quality(s, incident_id, (enum stack_quality)k, r->quality[k], err);
	}
	for (k = 0; !rc && k < STREAMS_MAX; k++) {
		if (r->period_ns[k])
			rc = put_stream(s, incident_id, (enum stream)k, r->period_ns[k], err);
	}
	return rc;
}
