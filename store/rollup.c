/*
 * What an incident's segments add up to in its window: samples by quality, losses by cpu and
 * second.
 *
 * Every segment is read back from what was stored, so that its CRC is proven. Where the same store
 * put it, all of it lies in the window, and nothing was lost in it, its samples were counted as
 * they were recorded; any other segment is decoded, and so are those of a partial incident. A file
 * of the history holds hours, which nobody may wait for: each segment of it is counted when it is
 * put.
 */
#include "store/store_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define PUT_SUMS 1024u                       /* segments; 64 KB */

struct counting {
	const struct incident_head *head;
	struct rollup *r;
};

static int no_memory(struct err *err)
{
	return err_memory(err, "while counting an incident's samples");
}

/* ---- quality -------------------------------------------------------------------------------- */

static void count_samples(struct counting *c, const struct segment_content *content)
{
	uint32_t i;

	for (i = 0; i < content->nsamples; i++) {
		const struct incident_sample *sample = &content->samples[i];

		if (!incident_reaches(c->head, sample->time_ns) ||
		    !stream_is_counted(sample->stream))
			continue;
		c->r->quality[sample->quality]++;
		c->r->samples++;
	}
}

void sums_put(struct store *s, const struct segment *segment)
{
	const int64_t id = segment->store_id;
	struct put_sums *at;

	if (!s->put)
		s->put = calloc(PUT_SUMS, sizeof(*s->put));
	if (!s->put)
		return;
	at = &s->put[(uint64_t)id % PUT_SUMS];
	*at = (struct put_sums){.id = segment->nlosses ? 0 : id, .t0_ns = segment->t0_ns,
				.t1_ns = segment->t1_ns};
	memcpy(at->quality, segment->quality, sizeof(at->quality));
}

const struct put_sums *sums_find(const struct store *s, int64_t id,
				 const struct incident_head *head)
{
	const struct put_sums *at = s->put ? &s->put[(uint64_t)id % PUT_SUMS] : NULL;

	return at && at->id == id && incident_reaches(head, at->t0_ns) &&
			       incident_reaches(head, at->t1_ns)
		       ? at : NULL;
}

static void add_sums(struct rollup *r, const struct put_sums *sums)
{
	unsigned i;

	for (i = 0; i < QUALITIES; i++) {
		r->quality[i] += sums->quality[i];
		r->samples += sums->quality[i];
	}
}

/* ---- losses --------------------------------------------------------------------------------- */

static int add_loss(struct counting *c, const struct loss_row *loss, struct err *err)
{
	uint64_t key = (uint64_t)(uint32_t)loss->second << 32 | (uint64_t)(uint16_t)loss->cpu << 8 |
		       (uint64_t)loss->kind;
	struct rollup *r = c->r;
	int64_t row;

	if (idmap_get(&r->loss_index, key, &row)) {
		r->losses[row].n += loss->n;
		return 0;
	}
	if (ARRAY_ROOM(r->losses, r->losses_cap, r->nlosses + 1) ||
	    idmap_set(&r->loss_index, key, r->nlosses))
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

		if (e->kind != EVENT_LOST || !incident_reaches(c->head, e->time_ns) ||
		    !(e->value > 0 && e->value < 1e18))
			continue;
		loss.kind = loss_kind_from_text(e->name);
		loss.n = (uint64_t)e->value;
		loss.cpu = e->cpu == CPU_NONE ? -1 : e->cpu;
		loss.second = incident_second(c->head, e->time_ns);
		if (loss.kind != LOSS_KINDS)
			rc = add_loss(c, &loss, err);
	}
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------ */

int rollup_add(struct rollup *r, const struct incident_head *head,
	       const struct segment_content *content, const struct put_sums *sums, struct err *err)
{
	struct counting c = {.head = head, .r = r};
	unsigned stream;
	int rc = count_losses(&c, content, err);

	count_samples(&c, content);
	if (sums)
		add_sums(r, sums);
	for (stream = 0; stream < STREAMS_MAX; stream++) {
		if (!r->period_ns[stream])
			r->period_ns[stream] = content->period_ns[stream];
	}
	return rc;
}

static int count_segment(void *ctx, const struct stored_segment *segment, struct err *err)
{
	struct counting *c = ctx;

	return rollup_add(c->r, c->head, &segment->content, segment->sums, err);
}

int rollup_count(struct store *s, const struct incident_head *head, struct rollup *out,
		 struct err *err)
{
	struct counting c = {.head = head, .r = out};

	memcpy(out->period_ns, head->period_ns, sizeof(out->period_ns));
	return read_segments(s, head->id, head, segment_decode_sums, count_segment, NULL, &c, err);
}

void rollup_free(struct rollup *r)
{
	free(r->losses);
	idmap_free(&r->loss_index);
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
		if (loss_counts(r->losses[i].kind))
			head->lost += r->losses[i].n;
	}
	head->samples = r->samples;
	memcpy(head->period_ns, r->period_ns, sizeof(head->period_ns));
}

/* ---- rows ----------------------------------------------------------------------------------- */

int rollup_delete(struct store *s, int64_t incident_id, struct err *err)
{
	static const char *const deletions[] = {
		"DELETE FROM loss WHERE incident_id=?",
		"DELETE FROM quality WHERE incident_id=?",
		"DELETE FROM stream WHERE incident_id=?",
	};
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < COUNT_OF(deletions); i++)
		rc = db_run(s, deletions[i], ARGS(arg_int(incident_id)), err);
	return rc;
}

int rollup_store(struct store *s, int64_t incident_id, const struct rollup *r, struct err *err)
{
	uint32_t i;
	int rc = rollup_delete(s, incident_id, err);

	for (i = 0; !rc && i < r->nlosses; i++) {
		const struct loss_row *loss = &r->losses[i];

		rc = db_run(s, "INSERT INTO loss(incident_id, kind, second, cpu, n)"
			    " VALUES(?, ?, ?, ?, ?)",
			    ARGS(arg_int(incident_id), arg_text(loss_kind_text(loss->kind)),
				 arg_int(loss->second), arg_int(loss->cpu), arg_u64(loss->n)), err);
	}
	for (i = 0; !rc && i < QUALITIES; i++) {
		if (r->quality[i])
			rc = db_run(s, "INSERT INTO quality(incident_id, kind, n) VALUES(?, ?, ?)",
				    ARGS(arg_int(incident_id),
					 arg_text(stack_quality_text(i)),
					 arg_u64(r->quality[i])), err);
	}
	for (i = 0; !rc && i < STREAMS_MAX; i++) {
		if (r->period_ns[i])
			rc = db_run(s, "INSERT INTO stream(incident_id, kind, period_ns)"
				    " VALUES(?, ?, ?)",
				    ARGS(arg_int(incident_id),
					 arg_text(stream_text(i)),
					 arg_u64(r->period_ns[i])), err);
	}
	return rc;
}
