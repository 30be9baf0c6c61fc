#include "cli/show_losses.h"

#include "cli/cmd.h"

#include "base/array.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static uint64_t lost_samples(const struct ledger_counts *n)
{
	return n->lost[LOSS_KERNEL] + n->lost[LOSS_QUEUE];
}

void losses_line(const struct ledger *l, struct sheet *p)
{
	const struct ledger_counts *n = &l->total;
	double unexplained = ledger_unexplained(n);
	char a[NUMBER_BYTES], b[NUMBER_BYTES], c[NUMBER_BYTES], d[NUMBER_BYTES];

	if (!l->has_expected) {
		sheet_line(p, "Expected", SHEET_PLAIN,
			  "unknown: the window is too short, or this source does not report how "
			  "busy the CPUs were");
		return;
	}
	sheet_label(p, "Expected");
	buf_printf(&p->out, "%s samples; %s recorded, %s lost, %s %s (%.1f %%)",
		   text_count((uint64_t)(n->expected + 0.5), a),
		   text_count(n->recorded - n->uncovered, b), text_count(lost_samples(n), c),
		   text_count((uint64_t)(fabs(unexplained) + 0.5), d),
		   unexplained < -0.5 ? "more than expected" : "unexplained",
		   percent(fabs(unexplained), n->expected));
	if (n->uncovered)
		buf_printf(&p->out, "; %s recorded after the last count",
			   text_count(n->uncovered, a));
	if (n->evicted)
		buf_printf(&p->out, "; %s evicted from the buffer before the window",
			   text_count(n->evicted, a));
	buf_putc(&p->out, '\n');
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row of a CPU or a second, or their heading. */
static void put_row(struct sheet *p, const char *name, const struct ledger_counts *n, bool expected,
		    bool is_heading)
{
	double unexplained = round(ledger_unexplained(n)) + 0.0;             /* no -0 */
	const struct sheet_cell cells[] = {
		{.head = name, .width = 8, .text = name},
		{NULL, "EXPECTED", 11, SHEET_NUMBER, .v = expected ? n->expected : (double)NAN},
		{NULL, "RECORDED", 11, SHEET_NUMBER, .v = (double)n->recorded},
		{NULL, "LOST", 10, SHEET_NUMBER, .v = (double)lost_samples(n), .is_loss = true},
		{NULL, "EVICTED", 10, SHEET_NUMBER, .v = (double)n->evicted},
		{NULL, "THROTTLED", 11, SHEET_NUMBER, .v = (double)n->lost[LOSS_THROTTLED]},
		{NULL, "BROKEN", 10, SHEET_NUMBER, .v = (double)n->broken},
		{NULL, "TRUNCATED", 11, SHEET_NUMBER, .v = (double)n->truncated},
		{NULL, "UNNAMED", 10, SHEET_NUMBER, .v = (double)n->unnamed},
		{NULL, "UNEXPLAINED", 13, SHEET_NUMBER, .v = expected ? unexplained : (double)NAN},
	};

	(is_heading ? sheet_heading : sheet_row)(p, cells, COUNT_OF(cells));
}

static void put_heading(struct sheet *p, const char *first)
{
	put_row(p, first, &(struct ledger_counts){0}, false, true);
}

static void put_seconds(const struct ledger *l, struct sheet *p)
{
	struct ledger_counts sum;
	char name[24];
	uint32_t i = 0;

	put_heading(p, "SECOND");
	while (i < l->nrows) {
		int32_t second = l->rows[i].second;

		sum = (struct ledger_counts){0};
		for (; i < l->nrows && l->rows[i].second == second; i++)
			ledger_add(&sum, &l->rows[i].n);
		snprintf(name, sizeof(name), "%+" PRId32, second);
		put_row(p, name, &sum, l->has_expected, false);
	}
}

/* Rows are sorted by second, so make one pass per CPU, in CPU order; CPU_NONE comes last. */
static void put_cpus(const struct ledger *l, struct sheet *p)
{
	uint32_t cpu = 0, next, i;

	put_heading(p, "CPU");
	do {
		struct ledger_counts sum = {0};
		bool found = false;
		char name[24];

		next = UINT32_MAX;
		for (i = 0; i < l->nrows; i++) {
			if (l->rows[i].cpu == cpu) {
				ledger_add(&sum, &l->rows[i].n);
				found = true;
			} else if (l->rows[i].cpu > cpu && l->rows[i].cpu < next) {
				next = l->rows[i].cpu;
			}
		}
		snprintf(name, sizeof(name), cpu == CPU_NONE ? "none" : "%" PRIu32, cpu);
		if (found)
			put_row(p, name, &sum, l->has_expected, false);
		cpu = next;
	} while (next != UINT32_MAX);
	put_row(p, "all", &l->total, l->has_expected, false);
}

void losses_tables(const struct ledger *l, struct sheet *p)
{
	buf_puts(&p->out, "\nExpected = busy time of the CPU x sampling rate = recorded + lost + "
		 "unexplained.\nBroken, truncated and unnamed (the leaf) are parts of recorded. "
		 "Throttled is how\noften the kernel held sampling back. Seconds count from the "
		 "trigger; the last one\nmay have no expectation yet. Evicted samples were "
		 "recorded, but had left the\nbuffer when the rule fired: they lie before this "
		 "window.\n");
	put_cpus(l, p);
	put_seconds(l, p);
}

void losses_json(const struct ledger *l, struct sheet *p)
{
	const struct ledger_row *row;
	unsigned kind;

	for (row = l->rows; row < l->rows + l->nrows; row++) {
		sheet_open(p);
		json_key_int(&p->j, "second", row->second);
		json_key_int(&p->j, "cpu", row->cpu == CPU_NONE ? -1 : row->cpu);
		json_key_num(&p->j, "expected", l->has_expected ? row->n.expected : (double)NAN);
		json_key_uint(&p->j, "recorded", row->n.recorded);
		json_key_open(&p->j, "lost", '{');
		for (kind = 0; kind < LOSS_KINDS; kind++)
			json_key_uint(&p->j, loss_kind_text(kind),
				      row->n.lost[kind]);
		json_close(&p->j, '}');
		json_key_uint(&p->j, "evicted", row->n.evicted);
		json_key_uint(&p->j, "broken", row->n.broken);
		json_key_uint(&p->j, "truncated", row->n.truncated);
		json_key_uint(&p->j, "unnamed", row->n.unnamed);
		json_key_num(&p->j, "unexplained",
			     l->has_expected ? ledger_unexplained(&row->n) : (double)NAN);
		sheet_close(p);
	}
}
