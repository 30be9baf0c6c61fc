#include "listing/report_runtimes.h"

#include "analysis/event_samples.h"
#include "analysis/report_events.h"
#include "analysis/runtimes.h"
#include "base/array.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB 1e6                               /* as PerfView counts it */
#define FRAMES_SHOWN 12u

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double window_s(const struct incident *in)
{
	return (double)(in->head.t1_ns - in->head.t0_ns) / 1e9;
}

static uint32_t pid_of(const struct incident *in, uint32_t process)
{
	return process == UINT32_MAX ? 0 : in->processes[process].pid;
}

static const char *name_of(const struct incident *in, uint32_t process)
{
	return process == UINT32_MAX ? "?" : in->processes[process].name;
}

/* "shop [java] (12)" */
static void put_process(const struct incident *in, uint32_t process, struct buf *out)
{
	char label[PROCESS_LABEL_BYTES];
	const char *name = process == UINT32_MAX ? "?" : incident_process_label(in, process, label);

	utf8_put_clean(out, name, strlen(name), PROCESS_LABEL_BYTES);
	buf_printf(out, " (%" PRIu32 ")", pid_of(in, process));
}

static void put_row(struct sheet *sheet, const struct sheet_cell *cells, size_t n, bool heading)
{
	(heading ? sheet_heading : sheet_row)(sheet, cells, n);
}

/* ---- collections ----------------------------------------------------------------------------- */

static void put_collection(struct sheet *sheet, const struct incident *in,
			   const struct collection *c, const char *title)
{
	uint32_t process = incident_process_of(in, c->start->thread);
	struct buf name = {0};
	struct sheet_cell cells[] = {
		{"row", .text = "collection"},
		{"start_s", "START S", 10, SHEET_NUMBER,
		 .v = incident_seconds(&in->head, c->start->time_ns), .digits = 3},
		{"duration_ms", "TOOK MS", 12, SHEET_NUMBER, .v = ms(c->duration_ns), .digits = 3},
		{"pause_ms", "PAUSE MS", 11, SHEET_NUMBER,
		 .v = c->npauses ? ms(c->pause_ns) : (double)NAN, .digits = 3},
		{"pauses", .kind = SHEET_COUNT, .n = c->npauses},
		{"ended", .kind = SHEET_BOOL, .n = c->ended},
		{"generation", "GEN", 5, SHEET_NUMBER, .v = c->generation},
		{"count", "COUNT", 8, SHEET_NUMBER, .v = c->count},
		{"allocated_mb", "ALLOC MB", 10, SHEET_NUMBER, .v = c->allocated_bytes / MB,
		 .digits = 2},
		{"promoted_mb", "PROMOTED", 10, SHEET_NUMBER, .v = c->promoted_bytes / MB,
		 .digits = 2},
		{"heap_before_mb", "BEFORE MB", 11, SHEET_NUMBER, .v = c->before_bytes / MB,
		 .digits = 2},
		{"heap_after_mb", "AFTER MB", 10, SHEET_NUMBER, .v = c->after_bytes / MB,
		 .digits = 2},
		{"reason", .kind = SHEET_NUMBER, .v = c->reason},
		{"why", .text = collection_reason(c)},
		{"process", .text = name_of(in, process)},
		{"pid", .kind = SHEET_COUNT, .n = pid_of(in, process)},
		{.head = title, .width = -1},
	};

	put_process(in, process, &name);
	buf_printf(&name, "%s%s%s", *collection_reason(c) ? ", " : "", collection_reason(c),
		   c->ended      ? ""
		   : c->end_lost ? ", its end was lost"
				 : ", it did not end in the window");
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	put_row(sheet, cells, COUNT_OF(cells), title != NULL);
	buf_free(&name);
}

/* The longest ones. */
static void put_collections(struct sheet *sheet, const struct options *o, const struct incident *in,
			    const struct collection *all, uint32_t n)
{
	uint32_t i, nopen = 0;
	char title[100];

	for (i = 0; i < n; i++)
		nopen += !all[i].ended;
	snprintf(title, sizeof(title), "GARBAGE COLLECTIONS, THE LONGEST OF %" PRIu32, n);
	if (nopen)
		snprintf(title + strlen(title), sizeof(title) - strlen(title),
			 ", %" PRIu32 " WITHOUT AN END", nopen);
	if (n)
		put_collection(sheet, in, &all[0], title);
	for (i = 0; i < n && i < o->rows; i++)
		put_collection(sheet, in, &all[i], NULL);
}

int report_collections(struct sheet *sheet, const struct options *o, const struct incident *in,
		       struct err *err)
{
	struct collection *all;
	uint32_t n;
	int rc = collections_find(in, &all, &n, err);

	if (rc)
		return rc;
	put_collections(sheet, o, in, all, n);
	free(all);
	return 0;
}

/* title NULL = a row. generation GENERATIONS = all of them. */
static void put_gc(struct sheet *sheet, const struct incident *in, const struct gc_process *p,
		   uint32_t generation, const char *title)
{
	bool all = generation == GENERATIONS;
	const struct gc_stats *s = all ? &p->all : &p->generations[generation];
	double whole = window_s(in), pauses = s->pauses ? ms(s->pause_ns) : (double)NAN;
	struct buf name = {0};
	struct sheet_cell cells[] = {
		{"row", .text = all ? "gc_process" : "gc_generation"},
		{"runtime", .text = p->runtime},
		{"process", .text = name_of(in, p->process)},
		{"pid", .kind = SHEET_COUNT, .n = pid_of(in, p->process)},
		{all ? NULL : "generation", .kind = SHEET_NUMBER,
		 .v = generation < GENERATIONS - 1 ? generation : (double)NAN},
		{"collections", "COUNT", 8, SHEET_COUNT, .n = s->collections},
		{"induced", "INDUCED", 9, SHEET_COUNT, .n = s->induced},
		{"pauses", .kind = SHEET_COUNT, .n = s->pauses},
		{"pauses_ms", "PAUSES MS", 11, SHEET_NUMBER, .v = pauses, .digits = 1},
		{"pause_max_ms", "MAX MS", 9, SHEET_NUMBER,
		 .v = s->longest_pause_ns ? ms(s->longest_pause_ns) : (double)NAN, .digits = 2},
		{"pause_mean_ms", "MEAN MS", 9, SHEET_NUMBER,
		 .v = s->pauses ? pauses / (double)s->pauses : (double)NAN, .digits = 2},
		{"pauses_pct", "% TIME", 9, SHEET_SHARE,
		 .v = whole > 0 ? pauses / whole / 10 : (double)NAN},
		{"promoted_mb", "PROMOTED", 10, SHEET_NUMBER, .v = s->promoted_bytes / MB,
		 .digits = 1},
		{all ? "allocated_mb" : NULL, "ALLOC MB", 10, SHEET_NUMBER,
		 .v = all ? p->allocated_bytes / MB : (double)NAN, .digits = 1},
		{all ? "allocated_mb_s" : NULL, "MB/S", 8, SHEET_NUMBER,
		 .v = all && whole > 0 ? p->allocated_bytes / MB / whole : (double)NAN,
		 .digits = 1},
		{all ? "heap_peak_mb" : NULL, "PEAK MB", 9, SHEET_NUMBER,
		 .v = all ? p->peak_bytes / MB : (double)NAN, .digits = 2},
		{all ? "heap_last_mb" : NULL, "LAST MB", 9, SHEET_NUMBER,
		 .v = all ? p->last_bytes / MB : (double)NAN, .digits = 2},
		{.head = title, .width = -1},
	};

	if (all)
		put_process(in, p->process, &name);
	else if (generation < GENERATIONS - 1)
		buf_printf(&name, "  generation %" PRIu32, generation);
	else
		buf_puts(&name, "  no generation");
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	put_row(sheet, cells, COUNT_OF(cells), title != NULL);
	buf_free(&name);
}

/* Which runtimes left the columns of sizes empty. */
static void put_untold(struct sheet *sheet, const struct gc_process *all, uint32_t n)
{
	uint32_t i, k, nput = 0;

	for (i = 0; !sheet->json && i < n; i++) {
		bool told = false;

		for (k = 0; k < n && !told; k++)
			told = strcmp(all[k].runtime, all[i].runtime) == 0 &&
			       (k < i || all[k].peak_bytes == all[k].peak_bytes);
		if (told)
			continue;
		buf_puts(&sheet->out, nput++ ? ", " : "\nNo sizes of the heap are told by ");
		buf_puts(&sheet->out, all[i].runtime);
	}
	if (nput)
		buf_puts(&sheet->out, "; `recorder help runtimes` says why.\n");
}

static int put_gc_processes(struct sheet *sheet, const struct options *o, const struct incident *in,
			    uint32_t *told, struct err *err)
{
	struct collection *all;
	struct gc_process *processes;
	uint32_t n, np = 0, i, g;
	int rc = collections_find(in, &all, &n, err);

	if (rc)
		return rc;
	rc = gc_processes(in, all, n, &processes, &np, err);
	if (rc) {
		free(all);
		return rc;
	}
	*told += np;
	if (np)
		put_gc(sheet, in, &processes[0], GENERATIONS, "GARBAGE COLLECTION BY PROCESS");
	for (i = 0; i < np && i < o->rows; i++) {
		put_gc(sheet, in, &processes[i], GENERATIONS, NULL);
		for (g = 0; g < GENERATIONS; g++)
			if (processes[i].generations[g].collections)
				put_gc(sheet, in, &processes[i], g, NULL);
	}
	put_untold(sheet, processes, np);
	put_collections(sheet, o, in, all, n);
	free(processes);
	free(all);
	return 0;
}

/* ---- compiled methods ------------------------------------------------------------------------ */

struct jit_sum {
	uint32_t process, methods, timed;    /* timed: whose beginning was recorded */
	double ms, il_bytes;
	uint64_t native_bytes;
};

/* title NULL = a row. tier JIT_TIERS = all of them. */
static void put_jit(struct sheet *sheet, const struct incident *in, const struct jit_sum *s,
		    uint32_t tier, const char *title)
{
	bool all = tier == JIT_TIERS;
	struct buf name = {0};
	struct sheet_cell cells[] = {
		{"row", .text = all ? "jit_process" : "jit_tier"},
		{"process", .text = name_of(in, s->process)},
		{"pid", .kind = SHEET_COUNT, .n = pid_of(in, s->process)},
		{all ? NULL : "tier", .text = all ? "" : jit_tiers[tier]},
		{"methods", "METHODS", 9, SHEET_COUNT, .n = s->methods},
		{"ms", "TOOK MS", 11, SHEET_NUMBER, .v = s->timed ? s->ms : (double)NAN,
		 .digits = 1},
		{"mean_ms", "MEAN MS", 10, SHEET_NUMBER,
		 .v = s->timed ? s->ms / s->timed : (double)NAN, .digits = 3},
		{"il_bytes", "IL BYTES", 11, SHEET_NUMBER,
		 .v = s->timed ? s->il_bytes : (double)NAN},
		{"native_bytes", "NATIVE BYTES", 14, SHEET_COUNT, .n = s->native_bytes},
		{.head = title, .width = -1},
	};

	if (all)
		put_process(in, s->process, &name);
	else
		buf_printf(&name, "  %s", jit_tiers[tier]);
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	put_row(sheet, cells, COUNT_OF(cells), title != NULL);
	buf_free(&name);
}

static void put_method(struct sheet *sheet, const struct incident *in, const struct jit_method *m,
		       const char *title)
{
	struct buf name = {0};
	struct sheet_cell cells[] = {
		{"row", .text = "jit_method"},
		{"pid", .kind = SHEET_COUNT, .n = pid_of(in, m->process)},
		{"start_s", "READY S", 10, SHEET_NUMBER,
		 .v = incident_seconds(&in->head, m->time_ns), .digits = 3},
		{"ms", "TOOK MS", 10, SHEET_NUMBER, .v = m->ms, .digits = 3},
		{"il_bytes", "IL BYTES", 10, SHEET_NUMBER, .v = m->il_bytes},
		{"native_bytes", "NATIVE", 9, SHEET_COUNT, .n = m->native_bytes},
		{"tier", "TIER", -14, .text = jit_tiers[m->tier]},
		{"name", title, .kind = SHEET_NAME},
	};

	buf_printf(&name, "%s.", m->class);
	buf_puts(&name, m->name);
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	put_row(sheet, cells, COUNT_OF(cells), title != NULL);
	buf_free(&name);
}

static void add_method(struct jit_sum *s, const struct jit_method *m)
{
	s->process = m->process;
	s->methods++;
	s->native_bytes += m->native_bytes;
	if (!(m->ms == m->ms))
		return;
	s->timed++;
	s->ms += m->ms;
	s->il_bytes += m->il_bytes;
}

/* Of one process, and of its tiers. */
static void put_jit_of(struct sheet *sheet, const struct incident *in, const struct jit_method *all,
		       uint32_t n, uint32_t process, bool first)
{
	struct jit_sum sums[JIT_TIERS + 1] = {0};
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (all[i].process != process)
			continue;
		add_method(&sums[all[i].tier], &all[i]);
		add_method(&sums[JIT_TIERS], &all[i]);
	}
	if (first)
		put_jit(sheet, in, &sums[JIT_TIERS], JIT_TIERS, "COMPILED METHODS BY PROCESS");
	put_jit(sheet, in, &sums[JIT_TIERS], JIT_TIERS, NULL);
	for (i = 0; i < JIT_TIERS; i++)
		if (sums[i].methods)
			put_jit(sheet, in, &sums[i], i, NULL);
}

static int put_methods(struct sheet *sheet, const struct options *o, const struct incident *in,
		       uint32_t *told, struct err *err)
{
	struct jit_method *all;
	uint32_t n = 0, i, nput = 0;
	bool *seen = calloc((size_t)in->nprocesses + 1, sizeof(*seen));
	int rc = seen ? jit_methods(in, &all, &n, err) : err_memory(err, "for compiled methods");

	if (rc) {
		free(seen);
		return rc;
	}
	*told += n;
	for (i = 0; i < n && nput < o->rows; i++) {
		uint32_t at = all[i].process == UINT32_MAX ? in->nprocesses : all[i].process;

		if (!seen[at])
			put_jit_of(sheet, in, all, n, all[i].process, !nput++);
		seen[at] = true;
	}
	if (n)
		put_method(sheet, in, &all[0], "METHOD, THE LONGEST TO COMPILE");
	for (i = 0; i < n && i < o->rows; i++)
		put_method(sheet, in, &all[i], NULL);
	free(seen);
	free(all);
	return 0;
}

/* ---- exceptions, waits ----------------------------------------------------------------------- */

/* The frames of a stack: with --json as one text, leaf first, else a line each. */
static void put_frames(const struct sheet *sheet, const struct incident *in, uint32_t stack,
		       struct buf *out)
{
	uint32_t n;

	for (n = 0; stack != STACK_NONE; n++, stack = in->stacks[stack].parent) {
		if (!sheet->json && n == FRAMES_SHOWN) {
			buf_puts(out, "                                  ...\n");
			return;
		}
		buf_puts(out, sheet->json ? n ? ";" : "" : "                                  ");
		incident_frame_text(in, in->stacks[stack].frame, false, out);
		buf_puts(out, sheet->json ? "" : "\n");
	}
}

static void put_site(struct sheet *sheet, const struct incident *in, const struct event_site *s,
		     bool waits, const char *title)
{
	struct buf who = {0}, frames = {0};
	struct sheet_cell cells[] = {
		{"row", .text = waits ? "contention" : "exception"},
		{"count", "COUNT", 9, SHEET_COUNT, .n = s->count},
		{"first_s", waits ? "" : "FIRST S", waits ? 0 : 11, SHEET_NUMBER,
		 .v = incident_seconds(&in->head, s->first_ns), .digits = 3},
		{"last_s", waits ? "" : "LAST S", waits ? 0 : 11, SHEET_NUMBER,
		 .v = incident_seconds(&in->head, s->last_ns), .digits = 3},
		{waits ? "waited_ms" : NULL, "WAITED MS", waits ? 12 : 0, SHEET_NUMBER,
		 .v = ms(s->waited_ns), .digits = 1},
		{waits ? "longest_ms" : NULL, "MAX MS", waits ? 10 : 0, SHEET_NUMBER,
		 .v = ms(s->longest_ns), .digits = 2},
		{waits ? "open" : NULL, .kind = SHEET_COUNT, .n = s->open},
		{"process", .text = name_of(in, s->process)},
		{"pid", .kind = SHEET_COUNT, .n = pid_of(in, s->process)},
		{waits ? "site" : "type", .text = s->what},
		{"stack", .text = ""},
		{.head = title, .width = -1},
	};

	utf8_put_clean(&who, s->what, strlen(s->what), INCIDENT_TEXT_MAX);
	buf_puts(&who, " in ");
	put_process(in, s->process, &who);
	if (!title)
		put_frames(sheet, in, s->stack, &frames);
	cells[COUNT_OF(cells) - 2].text = buf_text(&frames);
	cells[COUNT_OF(cells) - 1].text = buf_text(&who);
	put_row(sheet, cells, COUNT_OF(cells), title != NULL);
	if (!sheet->json)
		buf_put(&sheet->out, buf_text(&frames), frames.len);
	buf_free(&who);
	buf_free(&frames);
}

static int put_sites(struct sheet *sheet, const struct options *o, struct incident *in, bool waits,
		     uint32_t *told, struct err *err)
{
	struct event_site *all;
	uint32_t n, i;
	int rc = (waits ? contention_sites : exception_sites)(in, &all, &n, err);

	if (rc)
		return rc;
	*told += n;
	if (n)
		put_site(sheet, in, &all[0], waits,
			 waits ? "WAITS FOR LOCKS, BY WHERE" : "EXCEPTIONS, BY TYPE AND STACK");
	for (i = 0; i < n && i < o->rows; i++)
		put_site(sheet, in, &all[i], waits, NULL);
	free(all);
	return 0;
}

int report_runtimes(struct sheet *sheet, const struct options *o, struct incident *in,
		    struct err *err)
{
	uint32_t told = 0;
	int rc = event_samples_add(in, err);

	if (!rc)
		rc = put_gc_processes(sheet, o, in, &told, err);
	if (!rc)
		rc = put_methods(sheet, o, in, &told, err);
	if (!rc)
		rc = put_sites(sheet, o, in, false, &told, err);
	if (!rc)
		rc = put_sites(sheet, o, in, true, &told, err);
	if (!rc && !told)
		rc = err_set(err, ERR_NOT_FOUND, "no runtime told anything in this incident; "
			     "record with --runtime-events, or a rule on collections or "
			     "exceptions");
	return rc;
}
