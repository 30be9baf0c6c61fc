#include "cli/show_losses.h"

#include "cli/cmd.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static uint64_t lost_samples(const struct ledger_counts *n)
{
	return n->lost[LOSS_KERNEL] + n->lost[LOSS_QUEUE];
}

void losses_line(const struct ledger *l, struct buf *out)
{
	const struct ledger_counts *n = &l->total;
	double unexplained = ledger_unexplained(n);
	char a[CMD_NUMBER_BYTES], b[CMD_NUMBER_BYTES], c[CMD_NUMBER_BYTES], d[CMD_NUMBER_BYTES];

	if (!l->has_expected) {
		buf_puts(out, "unknown: this source does not report how busy the CPUs were");
		return;
	}
	buf_printf(out, "%s samples; %s of them recorded, %s lost, %s %s (%.1f %%)",
		   text_count((uint64_t)(n->expected + 0.5), a),
		   text_count(n->recorded - n->uncovered, b), text_count(lost_samples(n), c),
		   text_count((uint64_t)(fabs(unexplained) + 0.5), d),
		   unexplained < -0.5 ? "more than expected" : "unexplained",
		   percent(fabs(unexplained), n->expected));
	if (n->uncovered)
		buf_printf(out, "; %s recorded after the last count", text_count(n->uncovered, a));
	if (n->evicted)
		buf_printf(out, "; %s evicted from the buffer before the window",
			   text_count(n->evicted, a));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_heading(struct buf *out, const char *first)
{
	buf_printf(out, "\n%8s  %9s  %9s  %8s  %8s  %9s  %8s  %9s  %8s  %11s\n", first, "EXPECTED",
		   "RECORDED", "LOST", "EVICTED", "THROTTLED", "BROKEN", "TRUNCATED", "UNNAMED",
		   "UNEXPLAINED");
}

static void put_row(struct buf *out, const char *first, const struct ledger_counts *n,
		    bool expected)
{
	char a[CMD_NUMBER_BYTES] = "-", b[CMD_NUMBER_BYTES] = "-";

	if (expected) {
		snprintf(a, sizeof(a), "%.0f", n->expected);
		snprintf(b, sizeof(b), "%.0f", round(ledger_unexplained(n)) + 0.0);   /* no -0 */
	}
	buf_printf(out,
		   "%8s  %9s  %9" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %9" PRIu64 "  %8" PRIu64
		   "  %9" PRIu64 "  %8" PRIu64 "  %11s\n",
		   first, a, n->recorded, lost_samples(n), n->evicted, n->lost[LOSS_THROTTLED],
		   n->broken, n->truncated, n->unnamed, b);
}

static void put_seconds(const struct ledger *l, struct buf *out)
{
	struct ledger_counts sum;
	char name[24];
	uint32_t i = 0;

	put_heading(out, "SECOND");
	while (i < l->nrows) {
		int32_t second = l->rows[i].second;

		sum = (struct ledger_counts){0};
		for (; i < l->nrows && l->rows[i].second == second; i++)
			ledger_add(&sum, &l->rows[i].n);
		snprintf(name, sizeof(name), "%+" PRId32, second);
		put_row(out, name, &sum, l->has_expected);
	}
}

/* Rows are sorted by second, so make one pass per CPU, in CPU order; CPU_NONE comes last. */
static void put_cpus(const struct ledger *l, struct buf *out)
{
	uint32_t cpu = 0, next, i;

	put_heading(out, "CPU");
	do {
		struct ledger_counts sum = {0};
		bool there = false;
		char name[24];

		next = UINT32_MAX;
		for (i = 0; i < l->nrows; i++) {
			if (l->rows[i].cpu == cpu) {
				ledger_add(&sum, &l->rows[i].n);
				there = true;
			} else if (l->rows[i].cpu > cpu && l->rows[i].cpu < next) {
				next = l->rows[i].cpu;
			}
		}
		snprintf(name, sizeof(name), cpu == CPU_NONE ? "none" : "%" PRIu32, cpu);
		if (there)
			put_row(out, name, &sum, l->has_expected);
		cpu = next;
	} while (next != UINT32_MAX);
	put_row(out, "all", &l->total, l->has_expected);
}

void losses_tables(const struct ledger *l, struct buf *out)
{
	buf_puts(
		out,
		"\nExpected = busy time of the CPU x sampling rate = recorded + lost + "
		"unexplained.\nBroken, truncated and unnamed (the leaf) are parts of recorded. "
		"Throttled is how\noften the kernel held sampling back. Seconds count from the "
		"trigger; the last one\nmay have no expectation yet. Evicted samples were "
		"recorded, but had left the\nbuffer when the rule fired: they lie before this "
		"window.\n");
	put_cpus(l, out);
	put_seconds(l, out);
}

void losses_json(const struct ledger *l, struct buf *out)
{
	uint32_t i;
	unsigned kind;

	for (i = 0; i < l->nrows; i++) {
		const struct ledger_row *row = &l->rows[i];
		struct json j = {.out = out};

		json_open(&j, '{');
		json_key_int(&j, "second", row->second);
		json_key_int(&j, "cpu", row->cpu == CPU_NONE ? -1 : row->cpu);
		json_key_num(&j, "expected", l->has_expected ? row->n.expected : (double)NAN);
		json_key_uint(&j, "recorded", row->n.recorded);
		json_key(&j, "lost");
		json_open(&j, '{');
		for (kind = 0; kind < LOSS_KINDS; kind++)
			json_key_uint(&j, loss_kind_text((enum loss_kind)kind), row->n.lost[kind]);
		json_close(&j, '}');
		json_key_uint(&j, "evicted", row->n.evicted);
		json_key_uint(&j, "broken", row->n.broken);
		json_key_uint(&j, "truncated", row->n.truncated);
		json_key_uint(&j, "unnamed", row->n.unnamed);
		json_key_num(&j, "unexplained",
			     l->has_expected ? ledger_unexplained(&row->n) : (double)NAN);
		json_close(&j, '}');
		buf_putc(out, '\n');
	}
}
