#include "listing/report_memory.h"

#include "analysis/memory.h"
#include "base/array.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0
#define DETAILED 3u                          /* processes with their pools */
#define LEAST_MB 1                           /* of growth, for that */
#define POOLS 5u
#define FACTOR_LEAST 0.8
#define FACTOR_MOST 1.25

static double seconds_at(const struct incident *in, uint64_t time_ns)
{
	return ((double)time_ns - (double)in->head.trigger_ns) / 1e9;
}

static void put_process(struct sheet *sheet, const struct incident *in,
			const struct memory_process *p, bool heading)
{
	double seconds = (double)(in->head.t1_ns - in->head.t0_ns) / 1e9;
	double none = p->sized ? 0 : NAN;
	char label[PROCESS_LABEL_BYTES];
	struct buf name = {0};
	struct sheet_cell cells[] = {
		{"row", .text = "memory"},
		{"start_mb", "START MB", 9, SHEET_NUMBER, .v = p->start_kb / 1024 + none,
		 .digits = 1},
		{"trigger_mb", "TRIGGER", 9, SHEET_NUMBER, .v = p->trigger_kb / 1024 + none,
		 .digits = 1},
		{"peak_mb", "PEAK", 9, SHEET_NUMBER, .v = p->peak_kb / 1024 + none, .digits = 1},
		{"grew_mb", "GREW", 9, SHEET_NUMBER, .v = p->grew_kb / 1024 + none, .digits = 1},
		{"touched_mb_s", "TOUCHED/S", 10, SHEET_NUMBER,
		 .v = seconds > 0 ? p->touched / MB / seconds : NAN, .digits = 2},
		{"factor", "FACTOR", 8, SHEET_NUMBER, .v = p->factor > 0 ? p->factor : NAN,
		 .digits = 2},
		{"ended", .kind = SHEET_BOOL, .n = p->ended},
		{"pid", .kind = SHEET_COUNT, .n = in->processes[p->process].pid},
		{"process", "PROCESS", -7, .text = NULL},
	};

	incident_process_label(in, p->process, label);
	utf8_put_clean(&name, label, strlen(label), sizeof(label));
	buf_printf(&name, " (%u)%s", in->processes[p->process].pid, p->ended ? ", ended" : "");
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	(heading ? sheet_heading : sheet_row)(sheet, cells, COUNT_OF(cells));
	buf_free(&name);
}

static void put_pool(struct sheet *sheet, const struct incident *in, uint32_t process,
		     const struct memory_pool *p, double all, const char *row, const char *title)
{
	bool suspect = memory_is_suspect(in, p);
	char when[40];
	const struct sheet_cell cells[] = {
		{"row", .text = row},
		{"pid", .kind = SHEET_COUNT, .n = in->processes[process].pid},
		{"mb", "MB", 9, SHEET_NUMBER, .v = p->bytes / MB, .digits = 1},
		{"pct", "SHARE", 8, SHEET_SHARE, .v = all > 0 ? 100 * p->bytes / all : 0},
		{"samples", "SAMPLES", 9, SHEET_COUNT, .n = p->samples},
		{"first_s", .kind = SHEET_NUMBER, .v = seconds_at(in, p->first_ns)},
		{"last_s", .kind = SHEET_NUMBER, .v = seconds_at(in, p->last_ns)},
		{"suspect", .kind = SHEET_BOOL, .n = suspect},
		{NULL, "TOUCHED", -18, .text = when},
		{"name", title, .kind = SHEET_NAME, .text = p->name},
	};

	snprintf(when, sizeof(when), "%.0f to %.0f s%s", seconds_at(in, p->first_ns),
		 seconds_at(in, p->last_ns), suspect ? " *" : "");
	(title ? sheet_heading : sheet_row)(sheet, cells, COUNT_OF(cells));
}

static int put_pools(struct sheet *sheet, const struct incident *in, uint32_t process,
		     enum memory_by by, uint32_t rows, struct err *err)
{
	static const char *const names[] = {"module", "function", "stack"};
	static const char *const titles[] = {"MODULE", "FUNCTION THAT ASKED FOR IT",
					     "STACK (* = A SUSPECT: OLD, AND STILL GROWING)"};
	struct memory_pools pools;
	double all = 0;
	uint32_t i;
	int rc = memory_pools_new(in, process, by, &pools, err);

	if (rc)
		return rc;
	for (i = 0; i < pools.n; i++)
		all += pools.all[i].bytes;
	if (pools.n)
		put_pool(sheet, in, process, &pools.all[0], all, names[by], titles[by]);
	for (i = 0; i < pools.n && i < rows; i++)
		put_pool(sheet, in, process, &pools.all[i], all, names[by], NULL);
	if (pools.n && by == MEMORY_BY_MODULE && !sheet->json &&
	    strcmp(pools.all[0].name, "libjvm.so") == 0)
		buf_puts(&sheet->out, "A Java heap grows where its collector copies: these stacks "
			 "are the collector's, not those of who allocates.\n");
	memory_pools_free(&pools);
	return 0;
}

static void put_estimate(struct sheet *sheet, const struct memory_process *p)
{
	if (sheet->json || p->factor <= 0 ||
	    (p->factor >= FACTOR_LEAST && p->factor <= FACTOR_MOST))
		return;
	if (!memory_scales(p->factor)) {
		buf_printf(&sheet->out, "Its anonymous memory grew by %.1f MB, but of the pages "
			   "that were seen %.1f MB were still there at the end: who made it grow "
			   "is not known.\n", p->grew_kb / 1024, p->net / MB);
		return;
	}
	buf_printf(&sheet->out, "An estimate: page faults say %.1f MB, and its anonymous memory "
		   "grew by %.1f MB.\n", p->net / p->factor / MB, p->grew_kb / 1024);
}

static int put_details(struct sheet *sheet, const struct options *o, const struct incident *in,
		       const struct memory_process *p, struct err *err)
{
	uint32_t rows = o->rows < POOLS ? o->rows : POOLS;
	char label[PROCESS_LABEL_BYTES];
	int rc, by;

	if (!sheet->json) {
		incident_process_label(in, p->process, label);
		buf_putc(&sheet->out, '\n');
		utf8_put_clean(&sheet->out, label, strlen(label), sizeof(label));
		buf_printf(&sheet->out, " (%u): what it touched and still had\n",
			   in->processes[p->process].pid);
		put_estimate(sheet, p);
	}
	for (rc = 0, by = MEMORY_BY_MODULE; by <= MEMORY_BY_STACK && !rc; by++)
		rc = put_pools(sheet, in, p->process, (enum memory_by)by,
			       by == MEMORY_BY_STACK ? o->rows : rows, err);
	return rc;
}

int report_memory(struct sheet *sheet, const struct options *o, const struct incident *in,
		  struct err *err)
{
	struct memory_process *all = NULL;
	uint32_t n = 0, i, details = 0;
	int rc = memory_processes(in, &all, &n, err);

	if (!rc && !n)
		rc = err_set(err, ERR_NOT_FOUND, "this incident has no page faults: record with "
			     "--memory-period 61 (Linux)");
	if (!rc)
		put_process(sheet, in, &all[0], true);
	for (i = 0; !rc && i < n && i < o->rows; i++)
		put_process(sheet, in, &all[i], false);
	for (i = 0; !rc && i < n && details < DETAILED; i++) {
		if (all[i].net < LEAST_MB * MB && n > 1)
			continue;
		details++;
		rc = put_details(sheet, o, in, &all[i], err);
	}
	free(all);
	return rc;
}
