#include "listing/report_requests.h"

#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_SHOWN 12u
#define NESTED_SHOWN 20u
#define STACK_INDENT 34

/* What a stack has of an activity's thread time. */
struct weight {
	uint32_t activity, stack;
	uint64_t ns;
};

struct listing {
	struct sheet *sheet;
	const struct incident *in;
	const struct activities *a;
	bool *listed;                        /* of each activity */
	struct weight *weights;
	uint32_t nweights;
	struct table by_stack;
	bool *alive;                         /* of each process: the filter has left something */
	bool disk, network;                  /* somebody waited for one: these have columns */
};

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* ---- the stack with most of it --------------------------------------------------------------- */

static bool same_weight(const void *ctx, uint32_t value, const void *wanted)
{
	const struct weight *w = &((const struct listing *)ctx)->weights[value], *x = wanted;

	return w->activity == x->activity && w->stack == x->stack;
}

/* The listed activity that one is nested in, or that it is. */
static int weigh(void *ctx, const struct incident_sample *s, uint32_t activity, uint64_t end_ns,
		 uint64_t ns)
{
	struct listing *l = ctx;
	struct weight w = {.activity = activity, .stack = s->stack};
	uint32_t found;

	(void)end_ns;
	while (w.activity != ACTIVITY_NONE && !l->listed[w.activity])
		w.activity = l->a->items[w.activity].parent;
	if (w.activity == ACTIVITY_NONE || w.stack == STACK_NONE)
		return 0;
	found = table_find(&l->by_stack, hash_pair(w.activity, w.stack), same_weight, l, &w);
	if (found == TABLE_NONE) {
		if (ARRAY_NEXT(l->weights, l->nweights) ||
		    table_add(&l->by_stack, hash_pair(w.activity, w.stack), l->nweights))
			return ERR_MEMORY;
		found = l->nweights++;
		l->weights[found] = w;
	}
	l->weights[found].ns += s->stream == STREAM_OFF_CPU ? ns : s->weight;
	return 0;
}

static int weigh_all(struct listing *l)
{
	enum stream stream = STREAM_CPU;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < l->in->nsamples && stream == STREAM_CPU; i++)
		if (l->in->samples[i].stream == STREAM_OFF_CPU)
			stream = STREAM_OFF_CPU;
	for (i = 0; !rc && i < l->in->nsamples; i++)
		if (l->in->samples[i].stream == stream)
			rc = activity_parts(l->a, &l->in->samples[i], weigh, l);
	return rc;
}

static const struct weight *heaviest(const struct listing *l, uint32_t activity)
{
	const struct weight *best = NULL;
	uint32_t i;

	for (i = 0; i < l->nweights; i++)
		if (l->weights[i].activity == activity && (!best || l->weights[i].ns > best->ns))
			best = &l->weights[i];
	return best;
}

/*
 * Leaf first; with --json as one text. For people without the kernel's frames, of which a wait has
 * many, so that the program's are among the first.
 */
static void put_stack(const struct listing *l, uint32_t stack, struct buf *out)
{
	const struct incident *in = l->in;
	bool json = l->sheet->json;
	uint32_t n;

	for (n = 0; stack != STACK_NONE; stack = in->stacks[stack].parent) {
		if (!json && n && in->frames[in->stacks[stack].frame].flags & FRAME_KERNEL)
			continue;
		if (!json && n == FRAMES_SHOWN) {
			buf_printf(out, "%*s...\n", STACK_INDENT, "");
			return;
		}
		buf_printf(out, "%*s%s", json ? 0 : STACK_INDENT, "", json && n ? ";" : "");
		incident_frame_text(in, in->stacks[stack].frame, false, out);
		buf_puts(out, json ? "" : "\n");
		n++;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_activity(const struct listing *l, uint32_t number, const char *title)
{
	const struct activity *a = &l->a->items[number];
	const struct weight *most = title ? NULL : heaviest(l, number);
	const struct incident_process *p = &l->in->processes[a->process];
	uint64_t dark_ns = a->spent_ns[SPENT_ASYNC] + a->spent_ns[SPENT_UNKNOWN];
	struct buf name = {0}, stack = {0};
	struct sheet_cell cells[] = {
		{"row", .text = a->depth ? "activity" : "request"},
		{"number", .kind = SHEET_COUNT, .n = number + 1},
		{"in", .kind = SHEET_COUNT, .n = a->parent == ACTIVITY_NONE ? 0 : a->parent + 1},
		{"depth", .kind = SHEET_COUNT, .n = a->depth},
		{"start_s", "START S", 10, SHEET_NUMBER, .digits = 3,
		 .v = incident_seconds(&l->in->head, a->t0_ns)},
		{"ms", "MS", 10, SHEET_NUMBER, .v = ms(a->t1_ns - a->t0_ns), .digits = 1},
		{"ended", .kind = SHEET_BOOL, .n = a->ended},
		{"cpu_ms", "CPU", 9, SHEET_NUMBER, .v = ms(a->spent_ns[SPENT_CPU]), .digits = 1},
		{"blocked_ms", "BLOCKED", 10, SHEET_NUMBER, .digits = 1,
		 .v = ms(a->spent_ns[SPENT_BLOCKED])},
		{"disk_ms", "DISK", l->disk * 8, SHEET_NUMBER, .digits = 1,
		 .v = ms(a->spent_ns[SPENT_DISK] + a->spent_ns[SPENT_HARD_FAULT])},
		{"network_ms", "NETWORK", l->network * 9, SHEET_NUMBER, .digits = 1,
		 .v = ms(a->spent_ns[SPENT_NETWORK])},
		{"ready_ms", "READY", 8, SHEET_NUMBER, .v = ms(a->spent_ns[SPENT_READIED]),
		 .digits = 1},
		{"unknown_ms", "UNKNOWN", 9, SHEET_NUMBER, .v = ms(dark_ns), .digits = 1},
		{"process", .text = p->name},
		{"pid", .kind = SHEET_COUNT, .n = p->pid},
		{"tid", .kind = SHEET_COUNT,
		 .n = a->thread == THREAD_NONE ? 0 : l->in->threads[a->thread].tid},
		{"name", .text = a->name},
		{"text", .text = a->text},
		{"stack_ms", .kind = SHEET_NUMBER, .v = most ? ms(most->ns) : 0, .digits = 3},
		{"stack", .text = ""},
		{.head = title, .width = -1},
	};

	buf_printf(&name, "%*s", (int)(a->depth < 20 ? a->depth * 2 : 40), "");
	utf8_put_clean(&name, a->name, strlen(a->name), INCIDENT_TEXT_MAX);
	buf_printf(&name, "(%" PRIu32 ")%s", number + 1, *a->text ? " " : "");
	utf8_put_clean(&name, a->text, strlen(a->text), INCIDENT_TEXT_MAX);
	if (!a->depth) {
		buf_puts(&name, " in ");
		utf8_put_clean(&name, p->name, strlen(p->name), INCIDENT_TEXT_MAX);
		buf_printf(&name, " (%" PRIu32 ")", p->pid);
	}
	buf_puts(&name, a->ended ? "" : ", no stop seen");
	if (most)
		put_stack(l, most->stack, &stack);
	cells[COUNT_OF(cells) - 2].text = buf_text(&stack);
	cells[COUNT_OF(cells) - 1].text = buf_text(&name);
	if (title)
		sheet_heading(l->sheet, cells, COUNT_OF(cells));
	else
		sheet_row(l->sheet, cells, COUNT_OF(cells));
	if (!l->sheet->json && most) {
		buf_printf(&l->sheet->out, "%*s%.1f ms in\n", STACK_INDENT - 2, "", ms(most->ns));
		buf_put(&l->sheet->out, buf_text(&stack), stack.len);
	}
	buf_free(&name);
	buf_free(&stack);
}

/* Those nested in one, as a tree; they stand behind it, in the order of their starts. */
static void put_nested(const struct listing *l, uint32_t outer)
{
	const struct activities *a = l->a;
	uint32_t i, at, put = 0, more = 0;

	for (i = outer + 1; i < a->n && a->items[i].t0_ns <= a->items[outer].t1_ns; i++) {
		for (at = a->items[i].parent; at != ACTIVITY_NONE && at != outer;
		     at = a->items[at].parent)
			;
		if (at == ACTIVITY_NONE)
			continue;
		if (put == NESTED_SHOWN && !l->sheet->json) {
			more++;
			continue;
		}
		put_activity(l, i, NULL);
		put++;
	}
	if (more)
		buf_printf(&l->sheet->out, "%*sand %" PRIu32 " more nested in it\n",
			   STACK_INDENT, "", more);
}

struct ranked {
	uint64_t ns;
	uint32_t number;
};

static int slower(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	int c = compare_u64(b->ns, a->ns);

	return c ? c : compare_u64(a->number, b->number);
}

/* Whether what was chosen of the incident has some of it. */
static bool is_here(const struct listing *l, const struct activity *a)
{
	return a->t1_ns >= l->in->head.t0_ns && a->t0_ns <= l->in->head.t1_ns &&
	       l->alive[a->process];
}

static void find_alive(struct listing *l)
{
	uint32_t i;

	for (i = 0; i < l->in->nsamples; i++)
		if (l->in->samples[i].thread != THREAD_NONE)
			l->alive[l->in->threads[l->in->samples[i].thread].process] = true;
	for (i = 0; i < l->in->nevents; i++)
		if (l->in->events[i].thread != THREAD_NONE)
			l->alive[l->in->threads[l->in->events[i].thread].process] = true;
}

static int put_all(struct listing *l, const struct options *o, struct ranked *ranked,
		   struct err *err)
{
	uint32_t n = 0, i;

	find_alive(l);
	for (i = 0; i < l->a->n; i++) {
		l->disk |= l->a->items[i].spent_ns[SPENT_DISK] ||
			   l->a->items[i].spent_ns[SPENT_HARD_FAULT];
		l->network |= l->a->items[i].spent_ns[SPENT_NETWORK] != 0;
	}
	for (i = 0; i < l->a->n; i++)
		if (!l->a->items[i].depth && is_here(l, &l->a->items[i]))
			ranked[n++] = (struct ranked){
				l->a->items[i].t1_ns - l->a->items[i].t0_ns, i};
	if (!n)
		return err_set(err, ERR_NOT_FOUND, "there are no requests: no event of a start and "
			       "its stop; --activity names such a pair, and 'recorder events' "
			       "lists what is there");
	if (n > 1)
		qsort(ranked, n, sizeof(*ranked), slower);
	for (i = 0; i < n && i < o->rows; i++)
		l->listed[ranked[i].number] = true;
	if (weigh_all(l))
		return err_memory(err, "for the stacks of requests");
	put_activity(l, ranked[0].number, "REQUEST, THE SLOWEST FIRST; TIMES OF ALL ITS THREADS");
	for (i = 0; i < n && i < o->rows; i++) {
		put_activity(l, ranked[i].number, NULL);
		put_nested(l, ranked[i].number);
	}
	if (!l->sheet->json && n > i)
		buf_printf(&l->sheet->out, "%*sand %" PRIu32 " more; --rows shows more\n",
			   STACK_INDENT, "", n - i);
	if (!l->sheet->json && l->a->left_out)
		buf_printf(&l->sheet->out, "%*s%" PRIu32 " were left out: there are too many\n",
			   STACK_INDENT, "", l->a->left_out);
	return 0;
}

int report_requests(struct sheet *sheet, const struct options *o, const struct incident *in,
		    const struct activities *a, struct err *err)
{
	struct listing l = {.sheet = sheet, .in = in, .a = a};
	struct ranked *ranked = calloc((size_t)a->n + 1, sizeof(*ranked));
	int rc;

	l.listed = calloc((size_t)a->n + 1, sizeof(*l.listed));
	l.alive = calloc((size_t)in->nprocesses + 1, sizeof(*l.alive));
	rc = ranked && l.listed && l.alive ? put_all(&l, o, ranked, err)
					   : err_memory(err, "for requests");
	table_free(&l.by_stack);
	free(l.weights);
	free(l.alive);
	free(l.listed);
	free(ranked);
	return rc;
}
