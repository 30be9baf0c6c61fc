#include "listing/report_source.h"

#include "analysis/call_tree.h"
#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AROUND 3u                            /* lines without cost before and after one with */
#define TEXT_MAX_BYTES (16u << 20)
#define LINE_MAX_BYTES 300u

struct cost {
	const char *file;
	uint32_t line, module;
	double self, all;
};

struct source {
	struct sheet *sheet;
	const struct options *o;
	const struct incident *in;
	const struct source_finder *finder;
	enum stream stream;
	bool *is_focus;                      /* by frame */
	uint32_t *line_of;                   /* by frame: its item, UINT32_MAX = none */
	struct cost *costs;
	uint32_t ncosts;
	double whole, function;
	struct buf *notes;
};

/* ---- which function -------------------------------------------------------------------------- */

/* Mark the frames of the only name that fits best. */
static int find_function(struct source *s, const char *name, struct err *err)
{
	const struct incident *in = s->in;
	struct buf text = {0}, found = {0};
	bool several = false;
	unsigned best = 0;
	uint32_t i, n = 0;

	for (i = 0; i < in->nframes; i++) {
		buf_reset(&text);
		incident_frame_text(in, i, false, &text);
		if (call_name_fit(buf_text(&text), name) > best)
			best = call_name_fit(buf_text(&text), name);
	}
	for (i = 0; best && i < in->nframes; i++) {
		buf_reset(&text);
		incident_frame_text(in, i, false, &text);
		s->is_focus[i] = call_name_fit(buf_text(&text), name) == best;
		if (!s->is_focus[i])
			continue;
		several |= n++ && strcmp(buf_text(&text), buf_text(&found)) != 0;
		if (!found.len)
			buf_put(&found, buf_text(&text), text.len);
	}
	if (several)
		err_set(err, ERR_NOT_FOUND, "several names contain '%.200s', for instance "
			"'%.200s'; give one in full, as report --by-name lists it", name,
			buf_text(&found));
	else if (!n)
		err_set(err, ERR_NOT_FOUND, "no function is called '%.200s'; report --by-name "
			"lists them all", name);
	buf_free(&text);
	buf_free(&found);
	return several || !n ? ERR_NOT_FOUND : 0;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int number_lines(struct source *s)
{
	uint32_t i, k;

	for (i = 0; i < s->in->nframes; i++) {
		const struct incident_frame *f = &s->in->frames[i];

		if (!s->is_focus[i] || !f->file || !f->line)
			continue;
		for (k = 0; k < s->ncosts && (s->costs[k].line != f->line ||
					      strcmp(s->costs[k].file, f->file) != 0); k++)
			;
		if (k == s->ncosts) {
			if (ARRAY_NEXT(s->costs, s->ncosts))
				return ERR_MEMORY;
			s->costs[s->ncosts++] = (struct cost){
				.file = f->file, .line = f->line, .module = f->module};
		}
		s->line_of[i] = k;
	}
	return 0;
}

/* A line counts once a sample, however often its function calls itself. */
static void add_sample(struct source *s, const struct incident_sample *sample, uint32_t *last,
		       uint32_t number)
{
	uint32_t at, line;
	bool in_function = false;

	for (at = sample->stack; at != STACK_NONE; at = s->in->stacks[at].parent) {
		uint32_t frame = s->in->stacks[at].frame;

		in_function |= s->is_focus[frame];
		line = s->line_of[frame];
		if (line == UINT32_MAX)
			continue;
		if (at == sample->stack)
			s->costs[line].self += (double)sample->weight;
		if (last[line] != number)
			s->costs[line].all += (double)sample->weight;
		last[line] = number;
	}
	if (in_function)
		s->function += (double)sample->weight;
}

static int add_samples(struct source *s)
{
	uint32_t *last = array_of_none((size_t)s->ncosts + 1), i;

	for (i = 0; last && i < s->in->nsamples; i++) {
		if (s->in->samples[i].stream != s->stream)
			continue;
		s->whole += (double)s->in->samples[i].weight;
		add_sample(s, &s->in->samples[i], last, i);
	}
	free(last);
	return last ? 0 : ERR_MEMORY;
}

static int by_line(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	return order ? order : compare_u64(x->line, y->line);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/*
 * The file where it was, else its longest ending that is in a directory of --source-path, else what
 * a server has.
 */
static bool open_text(const struct source *s, uint32_t module, const char *file, struct buf *text)
{
	const char *dirs = s->o->source_path, *end, *tail;
	struct buf path = {0};
	bool found = os_load(file, TEXT_MAX_BYTES, text, NULL) == 0;

	for (; !found && dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = dirs + strcspn(dirs, ";");
		for (tail = file; !found && tail; tail = strpbrk(tail, "/\\")) {
			tail += strspn(tail, "/\\");
			buf_reset(&path);
			buf_printf(&path, "%.*s/%s", (int)(end - dirs), dirs, tail);
			buf_reset(text);
			found = !path.failed && *tail &&
				os_load(buf_text(&path), TEXT_MAX_BYTES, text, NULL) == 0;
		}
	}
	if (!found)
		buf_reset(text);
	if (!found && s->finder->find(s->finder->ctx, module, file, &path))
		found = os_load(buf_text(&path), TEXT_MAX_BYTES, text, NULL) == 0;
	buf_free(&path);
	if (!found)
		buf_printf(s->notes, "%s is not here: --source-path names directories\n", file);
	return found;
}

/* Put the n-th line of a text, tabs as four blanks; "" past its end. */
static void put_text(const char *text, uint32_t n, struct buf *out)
{
	size_t len;

	for (; n > 1 && *text; n--) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	len = strcspn(text, "\r\n");
	for (; len && *text == '\t'; text++, len--)
		buf_puts(out, "    ");
	utf8_put_clean(out, text, len, LINE_MAX_BYTES);
}

static void put_line(const struct source *s, const struct cost *c, const char *text, bool heading)
{
	bool time = stream_is_time(s->stream);
	double scale = time ? 1e6 : 1;
	struct buf shown = {0};
	char number[16];
	struct sheet_cell cells[] = {
		{"row", .text = "source_line"},
		{"file", .text = c->file},
		{"line", .kind = SHEET_COUNT, .n = c->line},
		{time ? "self_ms" : "self", time ? "SELF MS" : "SELF", 10, SHEET_NUMBER,
		 .v = c->self / scale, .digits = time},
		{"self_pct", "SELF %", 8, SHEET_SHARE,
		 .v = s->whole > 0 ? 100 * c->self / s->whole : 0},
		{time ? "inclusive_ms" : "inclusive", time ? "INCL MS" : "INCL", 11, SHEET_NUMBER,
		 .v = c->all / scale, .digits = time},
		{"inclusive_pct", "INCL %", 8, SHEET_SHARE,
		 .v = s->whole > 0 ? 100 * c->all / s->whole : 0},
		{NULL, "LINE", 8, .text = number},
		{"text", c->file, .kind = SHEET_NAME},
	};

	snprintf(number, sizeof(number), "%" PRIu32, c->line);
	put_text(text, c->line, &shown);
	cells[COUNT_OF(cells) - 1].text = buf_text(&shown);
	(heading ? sheet_heading : sheet_row)(s->sheet, cells, COUNT_OF(cells));
	buf_free(&shown);
}

static void put_costless(const struct source *s, const char *file, uint32_t line, const char *text)
{
	put_line(s, &(struct cost){.file = file, .line = line}, text, false);
}

/* The lines with a cost, and those around them; n costs of one file. */
static void put_file(struct source *s, const struct cost *costs, uint32_t n)
{
	struct buf text = {0};
	bool here = open_text(s, costs->module, costs->file, &text);
	uint32_t i, at = 0, end;

	put_line(s, costs, "", true);
	for (i = 0; i < n; i++) {
		uint32_t from = costs[i].line > AROUND ? costs[i].line - AROUND : 1;

		if (here && at && from > at && !s->sheet->json)
			buf_puts(&s->sheet->out, "...\n");
		for (at = at > from ? at : from; here && at < costs[i].line; at++)
			put_costless(s, costs->file, at, buf_text(&text));
		put_line(s, &costs[i], buf_text(&text), false);
		end = costs[i].line + AROUND;
		at = costs[i].line + 1;
		while (here && at <= end && (i + 1 == n || at < costs[i + 1].line)) {
			put_costless(s, costs->file, at, buf_text(&text));
			at++;
		}
	}
	buf_free(&text);
}

int report_source(struct sheet *sheet, const struct options *o, const struct incident *in,
		  enum stream stream, const struct source_finder *finder, struct buf *notes,
		  struct err *err)
{
	struct source s = {.sheet = sheet, .o = o, .in = in, .stream = stream, .finder = finder,
			   .notes = notes};
	uint32_t i, first;
	int rc = 0;

	s.is_focus = calloc((size_t)in->nframes + 1, sizeof(*s.is_focus));
	s.line_of = array_of_none((size_t)in->nframes + 1);
	if (!s.is_focus || !s.line_of)
		rc = err_memory(err, "for source lines");
	if (!rc)
		rc = find_function(&s, o->source_of, err);
	if (!rc && (number_lines(&s) || add_samples(&s)))
		rc = err_memory(err, "for source lines");
	if (!rc && !s.ncosts)
		rc = err_set(err, ERR_NOT_FOUND, "'%.200s' has no source lines: it needs debug "
			     "information (-g) of the file that was recorded, here or in "
			     "--symbol-path",
			     o->source_of);
	if (!rc && s.ncosts)
		qsort(s.costs, s.ncosts, sizeof(*s.costs), by_line);
	for (i = 0; !rc && i < s.ncosts; i = first) {
		for (first = i; first < s.ncosts && !strcmp(s.costs[first].file, s.costs[i].file);)
			first++;
		put_file(&s, s.costs + i, first - i);
	}
	free(s.is_focus);
	free(s.line_of);
	free(s.costs);
	return rc;
}
