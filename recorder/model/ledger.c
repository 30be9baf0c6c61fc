#include "model/ledger.h"

#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "model/own_event.h"

#include <stdlib.h>
#include <string.h>

struct book {
	const struct incident *in;
	struct ledger *out;
	struct table index;                  /* (second, cpu) -> row */
	uint32_t recent[64];                 /* row last looked up, by CPU */
	uint32_t room;
	uint64_t *covered_ns;               /* per CPU: up to here the expected samples are known */
	uint64_t known_ns;                   /* the same for all CPUs */
};

#define GAP_NS (NS_PER_SEC + NS_PER_SEC / 2) /* after a longer gap, the seconds between were idle */

static bool row_same(const void *ctx, uint32_t value, const void *key)
{
	const struct ledger_row *a = &((const struct ledger *)ctx)->rows[value], *b = key;

	return a->second == b->second && a->cpu == b->cpu;
}

/* The row of a CPU and second, added when it is new; NULL without memory. */
static struct ledger_row *row_of(struct book *b, uint64_t time_ns, uint16_t cpu)
{
	struct ledger_row key = {.second = incident_second(&b->in->head, time_ns), .cpu = cpu};
	uint64_t hash = hash_u64((uint64_t)(uint32_t)key.second << 16 | cpu);
	uint32_t *recent = &b->recent[cpu % COUNT_OF(b->recent)];
	struct ledger *l = b->out;
	uint32_t at = *recent;

	if (at >= l->nrows || !row_same(l, at, &key))
		at = table_find(&b->index, hash, row_same, l, &key);
	if (at != TABLE_NONE) {
		*recent = at;
		return &l->rows[at];
	}
	if (ARRAY_ROOM(l->rows, b->room, l->nrows + 1))
		return NULL;
	if (table_add(&b->index, hash, l->nrows))
		return NULL;
	l->rows[l->nrows] = key;
	return &l->rows[l->nrows++];
}

static bool count_sample(struct book *b, const struct incident_sample *s)
{
	const struct incident *in = b->in;
	struct ledger_row *row;

	if (s->stream != STREAM_CPU)
		return true;
	row = row_of(b, s->time_ns, s->cpu);
	if (!row)
		return false;
	row->n.recorded++;
	row->n.uncovered += s->time_ns > b->known_ns;
	row->n.broken += s->quality == QUALITY_BROKEN;
	row->n.truncated += s->quality == QUALITY_TRUNCATED;
	row->n.unnamed += s->stack == STACK_NONE ||
			  !in->frames[in->stacks[s->stack].frame].function;
	return true;
}

/*
 * Expected samples belong to the second that ends with the event. The part before the window is
 * left out, and the seconds that it touches share the rest by time.
 */
static bool count_expected(struct book *b, const struct incident_event *e)
{
	uint64_t *covered = &b->covered_ns[e->cpu];
	uint64_t from = e->time_ns > NS_PER_SEC ? e->time_ns - NS_PER_SEC : 0;
	uint64_t start, at, end;

	if (*covered && *covered <= e->time_ns && e->time_ns - *covered < GAP_NS)
		from = *covered;
	*covered = e->time_ns;
	if (from >= e->time_ns)
		return true;
	start = from > b->in->head.t0_ns ? from : b->in->head.t0_ns;
	for (at = start; at < e->time_ns; at = end) {
		int64_t second = incident_second(&b->in->head, at);
		struct ledger_row *row = row_of(b, at, e->cpu);

		end = b->in->head.trigger_ns + (uint64_t)((second + 1) * (int64_t)NS_PER_SEC);
		if (end > e->time_ns || end <= at)
			end = e->time_ns;
		if (!row)
			return false;
		row->n.expected += e->value * (double)(end - at) / (double)(e->time_ns - from);
	}
	b->out->has_expected = true;
	return true;
}

/* Is it an event of this firing, not of another one in the window? Segments count in 100 ns. */
static bool count_evicted(struct book *b, const struct incident_event *e)
{
	const struct incident *in = b->in;
	int64_t second = INT64_MIN;
	struct ledger_row *row;
	uint64_t n = 0;
	uint32_t i;

	if (e->time_ns / 100 != in->head.trigger_ns / 100)
		return true;
	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &in->fields[e->first_field + i];

		if (f->type == FIELD_INT && strcmp(f->name, OWN_EVICTED_SECOND) == 0)
			second = f->v.i;
		else if (f->type == FIELD_UINT && strcmp(f->name, OWN_EVICTED_SAMPLES) == 0)
			n = f->v.u;
	}
	if (second < -(INT64_C(1) << 31) || second > 0 || !n)
		return true;
	/* The middle of that second: its first moment may be rounded away. */
	row = row_of(
		b, in->head.trigger_ns + (uint64_t)(second * (int64_t)NS_PER_SEC) + NS_PER_SEC / 2,
		e->cpu);
	if (row)
		row->n.evicted += n;
	return row != NULL;
}

static bool count_event(struct book *b, const struct incident_event *e)
{
	enum loss_kind kind = loss_kind_from_text(e->name);
	struct ledger_row *row;

	if (e->kind == EVENT_GENERIC && strcmp(e->provider, OWN_PROVIDER) == 0 &&
	    strcmp(e->name, OWN_EVICTED) == 0)
		return count_evicted(b, e);
	if (!(e->value > 0 && e->value < 1e18))
		return true;
	if (e->kind == EVENT_EXPECTED && e->cpu != CPU_NONE)
		return count_expected(b, e);
	if (e->kind != EVENT_LOST || kind == LOSS_KINDS)
		return true;
	row = row_of(b, e->time_ns, e->cpu);
	if (row)
		row->n.lost[kind] += (uint64_t)e->value;
	return row != NULL;
}

static int by_second_and_cpu(const void *a, const void *b)
{
	const struct ledger_row *x = a, *y = b;

	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

void ledger_add(struct ledger_counts *to, const struct ledger_counts *n)
{
	unsigned kind;

	to->expected += n->expected;
	to->recorded += n->recorded;
	to->broken += n->broken;
	to->truncated += n->truncated;
	to->unnamed += n->unnamed;
	to->uncovered += n->uncovered;
	to->evicted += n->evicted;
	for (kind = 0; kind < LOSS_KINDS; kind++)
		to->lost[kind] += n->lost[kind];
}

int ledger_new(const struct incident *in, struct ledger *out, struct err *err)
{
	struct ledger l = {0};
	struct book b = {.in = in, .out = &l};
	bool good;
	uint32_t i;

	b.covered_ns = calloc((size_t)UINT16_MAX + 1, sizeof(*b.covered_ns));
	good = b.covered_ns != NULL;
	for (i = 0; i < in->nevents; i++) {
		if (in->events[i].kind == EVENT_EXPECTED && in->events[i].time_ns > b.known_ns)
			b.known_ns = in->events[i].time_ns;
	}
	for (i = 0; good && i < in->nsamples; i++)
		good = count_sample(&b, &in->samples[i]);
	for (i = 0; good && i < in->nevents; i++)
		good = count_event(&b, &in->events[i]);
	table_free(&b.index);
	free(b.covered_ns);
	if (!good) {
		ledger_free(&l);
		return err_memory(err, "for the ledger of losses");
	}
	if (l.nrows)
		qsort(l.rows, l.nrows, sizeof(*l.rows), by_second_and_cpu);
	for (i = 0; i < l.nrows; i++)
		ledger_add(&l.total, &l.rows[i].n);
	*out = l;
	return 0;
}

void ledger_free(struct ledger *l)
{
	free(l->rows);
	memset(l, 0, sizeof(*l));
}

double ledger_unexplained(const struct ledger_counts *n)
{
	return n->expected - (double)(n->recorded - n->uncovered) -
	       (double)n->lost[LOSS_KERNEL] - (double)n->lost[LOSS_QUEUE];
}
