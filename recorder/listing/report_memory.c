#include "listing/report_memory.h"

#include "analysis/memory.h"
#include "base/array.h"
#include "base/text.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0
#define DETAILED 3u                          /* processes with their pools */
#define LEAST_MB 1                           /* of growth, for that */
#define POOLS 5u
#define KERNEL_LINE_BYTES 300u
#define FACTOR_LEAST 0.8
#define FACTOR_MOST 1.25

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
		 .v = seconds > 0 ? p->touched / MB / seconds + (p->touched > 0 ? 0 : none) : NAN,
		 .digits = 2},
		{"factor", "FACTOR", 8, SHEET_NUMBER, .v = p->factor > 0 ? p->factor : NAN,
		 .digits = 2},
		{"heap_allocated_mb", .kind = SHEET_NUMBER, .v = p->allocated / MB, .digits = 1},
		{"heap_in_use_mb", .kind = SHEET_NUMBER, .v = p->in_use / MB, .digits = 1},
		{"ended", .kind = SHEET_BOOL, .n = p->ended},
		{"killed", .kind = SHEET_BOOL, .n = p->killed},
		{"pid", .kind = SHEET_COUNT, .n = in->processes[p->process].pid},
		{"process", "PROCESS", -7, .text = NULL},
	};

	incident_process_label(in, p->process, label);
	utf8_put_clean(&name, label, strlen(label), sizeof(label));
	buf_printf(&name, " (%u)%s", in->processes[p->process].pid,
		   p->killed ? ", killed for lack of memory" : p->ended ? ", ended" : "");
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
		{"first_s", .kind = SHEET_NUMBER, .v = incident_seconds(&in->head, p->first_ns)},
		{"last_s", .kind = SHEET_NUMBER, .v = incident_seconds(&in->head, p->last_ns)},
		{"suspect", .kind = SHEET_BOOL, .n = suspect},
		{NULL, strncmp(row, "heap", 4) == 0 ? "ALLOCATED" : "TOUCHED", -18, .text = when},
		{"name", title, .kind = SHEET_NAME, .text = p->name},
	};

	snprintf(when, sizeof(when), "%.0f to %.0f s%s", incident_seconds(&in->head, p->first_ns),
		 incident_seconds(&in->head, p->last_ns), suspect ? " *" : "");
	(title ? sheet_heading : sheet_row)(sheet, cells, COUNT_OF(cells));
}

/* stream: STREAM_RSS_NET or STREAM_HEAP_NET */
static int put_pools(struct sheet *sheet, const struct incident *in, uint32_t process,
		     enum stream stream, enum memory_by by, uint32_t rows, struct err *err)
{
	static const char *const rss_names[] = {"module", "function", "stack"};
	static const char *const heap_names[] = {"heap_module", "heap_function", "heap_stack"};
	const char *const *names = stream == STREAM_HEAP_NET ? heap_names : rss_names;
	static const char *const titles[] = {"MODULE", "FUNCTION THAT ASKED FOR IT",
					     "STACK (* = A SUSPECT: OLD, AND STILL GROWING)"};
	struct memory_pools pools;
	double all = 0;
	uint32_t i;
	int rc = memory_pools_new(in, process, stream, by, &pools, err);

	if (rc)
		return rc;
	for (i = 0; i < pools.n; i++)
		all += pools.all[i].bytes;
	if (pools.n)
		put_pool(sheet, in, process, &pools.all[0], all, names[by], titles[by]);
	for (i = 0; i < pools.n && i < rows; i++)
		put_pool(sheet, in, process, &pools.all[i], all, names[by], NULL);
	if (pools.n && by == MEMORY_BY_MODULE && !sheet->json && stream == STREAM_RSS_NET &&
	    strcmp(pools.all[0].name, "libjvm.so") == 0)
		buf_puts(&sheet->out, "A Java heap grows where its collector copies: these stacks "
			 "are the collector's, not those of who allocates.\n");
	memory_pools_free(&pools);
	return 0;
}

/* Who allocated most, how fast, and how long it lived. */
static void put_allocated(struct sheet *sheet, const struct incident *in,
			  const struct memory_pool *p, double all, const char *row,
			  bool told_of_frees, const char *title)
{
	double seconds = (double)(in->head.t1_ns - in->head.t0_ns) / 1e9;
	const struct sheet_cell cells[] = {
		{"row", .text = row},
		{"mb", "MB", 9, SHEET_NUMBER, .v = p->bytes / MB, .digits = 1},
		{"pct", "SHARE", 8, SHEET_SHARE, .v = all > 0 ? 100 * p->bytes / all : 0},
		{"mb_s", "MB/S", 8, SHEET_NUMBER,
		 .v = seconds > 0 ? p->bytes / MB / seconds : NAN, .digits = 2},
		{"freed_mb", "FREED MB", 9, SHEET_NUMBER,
		 .v = told_of_frees ? p->freed / MB : NAN, .digits = 1},
		{"life_ms", "LIFE MS", 10, SHEET_NUMBER,
		 .v = p->freed > 0 ? p->life_ns / 1e6 : NAN, .digits = 3},
		{"samples", .kind = SHEET_COUNT, .n = p->samples},
		{"name", title, .kind = SHEET_NAME, .text = p->name},
	};

	(title ? sheet_heading : sheet_row)(sheet, cells, COUNT_OF(cells));
}

static int put_allocators(struct sheet *sheet, const struct incident *in,
			  const struct memory_process *process, enum memory_by by, uint32_t rows,
			  struct err *err)
{
	bool frees = process->allocated_by == STREAM_HEAP;
	const char *row = by == MEMORY_BY_STACK ? "heap_allocated_stack"
						: "heap_allocated_function";
	struct memory_pools pools;
	double all = 0;
	uint32_t i;
	int rc = memory_pools_new(in, process->process, process->allocated_by, by, &pools, err);

	if (rc)
		return rc;
	for (i = 0; i < pools.n; i++)
		all += pools.all[i].bytes;
	if (pools.n)
		put_allocated(sheet, in, &pools.all[0], all, row, frees, by == MEMORY_BY_STACK ?
			      "STACK THAT ALLOCATED IT" : "FUNCTION THAT ALLOCATED IT");
	for (i = 0; i < pools.n && i < rows; i++)
		put_allocated(sheet, in, &pools.all[i], all, row, frees, NULL);
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

static void put_title(struct sheet *sheet, const struct incident *in, uint32_t process,
		      const char *what)
{
	char label[PROCESS_LABEL_BYTES];

	incident_process_label(in, process, label);
	buf_putc(&sheet->out, '\n');
	utf8_put_clean(&sheet->out, label, strlen(label), sizeof(label));
	buf_printf(&sheet->out, " (%u): %s\n", in->processes[process].pid, what);
}

/* What the growth of a managed heap does not tell, and what does. */
static void put_objects_hint(struct sheet *sheet, const struct incident *in, uint32_t process)
{
	static const struct {
		const char *module, *hint;
	} runtimes[] = {
		{"libjvm.so", "Who allocated its Java objects is not in this incident: 'recorder "
		 "run --heap -p PID' asks the JVM, also which of them stay.\n"},
		{"libcoreclr.so", "Who allocated its .NET objects is not in this incident: record "
		 "with --dotnet-heap, which also tells which of them stay.\n"},
		{"python", "These are the interpreter's functions, not those of Python. It hands "
		 "out small objects from arenas of 256 KB or 1 MB: the stacks are of who took the "
		 "last free block.\n"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(runtimes) && !sheet->json; i++)
		if (memory_passes(in, process, runtimes[i].module))
			buf_puts(&sheet->out, runtimes[i].hint);
}

static void tell_heap(const struct memory_process *p, double seconds, char *what, size_t n)
{
	char rate[30] = "";

	if (seconds > 0)
		snprintf(rate, sizeof(rate), " (%.2f MB/s)", p->allocated / MB / seconds);
	if (p->allocated_by == STREAM_HEAP)
		snprintf(what, n, "its heap; %.1f MB allocated%s, of these %.1f MB not freed",
			 p->allocated / MB, rate, p->in_use / MB);
	else if (!(p->allocated > 0))
		snprintf(what, n, "its heap; %.1f MB in use", p->in_use / MB);
	else if (p->in_use > 0)
		snprintf(what, n, "its objects; %.1f MB allocated%s, %.1f MB in use",
			 p->allocated / MB, rate, p->in_use / MB);
	else
		snprintf(what, n, "its objects; %.1f MB allocated%s; how much of it is still "
			 "there is not known", p->allocated / MB, rate);
}

static int put_details(struct sheet *sheet, const struct options *o, const struct incident *in,
		       const struct memory_process *p, enum stream stream, struct err *err)
{
	double seconds = (double)(in->head.t1_ns - in->head.t0_ns) / 1e9;
	uint32_t rows = o->rows < POOLS ? o->rows : POOLS;
	char what[120] = "what it touched and still had";
	int rc, by;

	if (stream == STREAM_HEAP_NET)
		tell_heap(p, seconds, what, sizeof(what));
	if (!sheet->json)
		put_title(sheet, in, p->process, what);
	if (stream == STREAM_RSS_NET)
		put_estimate(sheet, p);
	if (stream == STREAM_RSS_NET && !(p->allocated > 0 || p->in_use > 0))
		put_objects_hint(sheet, in, p->process);
	if (stream == STREAM_HEAP_NET && !sheet->json && incident_missing_events(&in->head))
		buf_printf(&sheet->out, "An estimate: %llu events of probes came too fast to be "
			   "read, so allocations or frees are missing; a larger --heap-kb has "
			   "fewer.\n",
			   (unsigned long long)incident_missing_events(&in->head));
	for (rc = 0, by = MEMORY_BY_MODULE; by <= MEMORY_BY_STACK && !rc; by++)
		rc = put_pools(sheet, in, p->process, stream, (enum memory_by)by,
			       by == MEMORY_BY_STACK ? o->rows : rows, err);
	for (by = MEMORY_BY_FUNCTION; by <= MEMORY_BY_STACK && !rc && stream == STREAM_HEAP_NET;
	     by++)
		rc = put_allocators(sheet, in, p, (enum memory_by)by, rows, err);
	return rc;
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void put_mistake_stack(struct sheet *sheet, const struct incident *in,
			      const struct memory_mistake *m, const char *what, uint64_t time_ns,
			      uint32_t stack)
{
	struct buf name = {0};

	memory_stack_text(in, stack, &name);
	sheet_row(sheet, (const struct sheet_cell[]){
		{"row", .text = m->twice ? "double_free" : "unknown_free"},
		{"pid", .kind = SHEET_COUNT,
		 .n = m->process == UINT32_MAX ? 0 : in->processes[m->process].pid},
		{"address", .kind = SHEET_COUNT, .n = m->address},
		{"at_s", "AT S", 11, SHEET_NUMBER, .v = incident_seconds(&in->head, time_ns),
		 .digits = 6},
		{"what", "", -12, .text = what},
		{"name", "", .kind = SHEET_NAME, .text = buf_text(&name)}}, 6);
	buf_free(&name);
}

static void put_mistakes(struct sheet *sheet, const struct incident *in, uint32_t rows)
{
	struct memory_mistake m;
	char label[PROCESS_LABEL_BYTES] = "?";
	uint32_t at = 0, n;

	for (n = 0; memory_mistake_next(in, &at, &m); n++) {
		if (n >= rows)
			continue;
		if (!sheet->json) {
			buf_putc(&sheet->out, '\n');
			if (m.process != UINT32_MAX)
				incident_process_label(in, m.process, label);
			utf8_put_clean(&sheet->out, label, strlen(label), sizeof(label));
			buf_printf(&sheet->out, " (%u) freed 0x%llx%s\n",
				   m.process == UINT32_MAX ? 0 : in->processes[m.process].pid,
				   (unsigned long long)m.address,
				   m.twice ? " twice" : ", which no allocation had given");
		}
		put_mistake_stack(sheet, in, &m, m.twice ? "freed again" : "freed", m.time_ns,
				  m.freed_by);
		if (m.freed_first_ns)
			put_mistake_stack(sheet, in, &m, "freed first", m.freed_first_ns,
					  m.freed_first_by);
		if (m.allocated_ns)
			put_mistake_stack(sheet, in, &m, "allocated", m.allocated_ns,
					  m.allocated_by);
	}
	if (n > rows && !sheet->json)
		buf_printf(&sheet->out, "... and %u more\n", (unsigned)(n - rows));
}

/* ---- at the firing --------------------------------------------------------------------------- */

static double mb_of(const struct incident *in, const struct incident_event *e, const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

	return f && f->type == FIELD_UINT ? (double)f->v.u / 1024 : NAN;
}

/* smaps_rollup of a process that was among the largest. */
static void put_rollup(struct sheet *sheet, const struct incident *in,
		       const struct incident_event *e, bool heading)
{
	uint32_t process = in->threads[e->thread].process;
	char label[PROCESS_LABEL_BYTES];
	struct buf name = {0};
	struct sheet_cell cells[] = {
		{"row", .text = "largest"},
		{"at_s", .kind = SHEET_NUMBER, .v = incident_seconds(&in->head, e->time_ns),
		 .digits = 1},
		{"rss_mb", "RSS MB", 9, SHEET_NUMBER, .v = mb_of(in, e, "RssKb"), .digits = 1},
		{"pss_mb", "PSS", 9, SHEET_NUMBER, .v = mb_of(in, e, "PssKb"), .digits = 1},
		{"anon_mb", "ANON", 9, SHEET_NUMBER, .v = mb_of(in, e, "AnonymousKb"),
		 .digits = 1},
		{"huge_mb", "HUGE", 9, SHEET_NUMBER, .v = mb_of(in, e, "AnonHugePagesKb"),
		 .digits = 1},
		{"swap_mb", "SWAP", 9, SHEET_NUMBER, .v = mb_of(in, e, "SwapKb"), .digits = 1},
		{"pid", .kind = SHEET_COUNT, .n = in->processes[process].pid},
		{"process", "THE LARGEST AT THE TRIGGER", -7, .text = NULL},
	};

	incident_process_label(in, process, label);
	utf8_put_clean(&name, label, strlen(label), sizeof(label));
	buf_printf(&name, " (%u)", in->processes[process].pid);
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	(heading ? sheet_heading : sheet_row)(sheet, cells, COUNT_OF(cells));
	buf_free(&name);
}

static void put_rollups(struct sheet *sheet, const struct incident *in)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind != EVENT_GENERIC || e->thread == THREAD_NONE ||
		    strcmp(e->provider, "Memory") != 0 || strcmp(e->name, "Rollup") != 0)
			continue;
		if (!any)
			put_rollup(sheet, in, e, true);
		any = true;
		put_rollup(sheet, in, e, false);
	}
}

/* Those lines of the kernel's report that say who asked, what ran out, and who was killed. */
static void put_kernel_lines(struct sheet *sheet, const struct incident *in)
{
	static const char *const parts[] = {"invoked oom-killer", "oom-kill:", "out of memory"};
	bool any = false;
	uint32_t i, j;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		const struct event_field *log, *text;
		struct buf line = {0};

		log = e->kind == EVENT_LOG ? incident_field(in, e, "Log") : NULL;
		text = log ? incident_field(in, e, "Message") : NULL;
		if (!text || log->type != FIELD_TEXT || text->type != FIELD_TEXT ||
		    strcmp(log->v.text, "kernel") != 0)
			continue;
		for (j = 0; j < COUNT_OF(parts) && !text_has_fold(text->v.text, parts[j]); j++)
			;
		if (j == COUNT_OF(parts))
			continue;
		if (!any && !sheet->json)
			sheet_put(sheet, SHEET_HEAD, "\nThe kernel's report (recorder events has "
				  "all of it)\n");
		any = true;
		utf8_put_clean(&line, text->v.text, strlen(text->v.text), KERNEL_LINE_BYTES);
		sheet_row(sheet, (const struct sheet_cell[]){
			{"row", .text = "kernel"},
			{"at_s", .kind = SHEET_NUMBER, .v = incident_seconds(&in->head, e->time_ns),
			 .digits = 1},
			{"line", "", .kind = SHEET_NAME, .text = buf_text(&line)}}, 3);
		buf_free(&line);
	}
}

int report_memory(struct sheet *sheet, const struct options *o, const struct incident *in,
		  struct err *err)
{
	struct memory_process *all = NULL;
	uint32_t n = 0, i, details = 0;
	int rc = memory_processes(in, &all, &n, err);

	if (!rc && !n)
		rc = err_set(err, ERR_NOT_FOUND, "this incident says nothing of memory: record "
			     "with --memory-period 61, run --heap (Linux), --heap-process "
			     "(Windows) or --dotnet-heap; see 'recorder help memory'");
	if (!rc)
		put_process(sheet, in, &all[0], true);
	for (i = 0; !rc && i < n && i < o->rows; i++)
		put_process(sheet, in, &all[i], false);
	for (i = 0; !rc && i < n && details < DETAILED; i++) {
		bool heap = all[i].allocated > 0 || all[i].in_use > 0;

		if (all[i].net < LEAST_MB * MB && !heap && n > 1)
			continue;
		details++;
		if (all[i].touched > 0)
			rc = put_details(sheet, o, in, &all[i], STREAM_RSS_NET, err);
		if (!rc && heap)
			rc = put_details(sheet, o, in, &all[i], STREAM_HEAP_NET, err);
	}
	if (!rc) {
		put_mistakes(sheet, in, o->rows);
		put_rollups(sheet, in);
		put_kernel_lines(sheet, in);
	}
	free(all);
	return rc;
}
