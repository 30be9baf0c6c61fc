#include "cli/source_lines.h"

#include "analysis/managed_view.h"
#include "base/array.h"
#include "base/os.h"
#include "cli/cmd.h"
#include "symbol/debuginfod.h"
#include "symbol/lines.h"
#include "symbol/symbol_path.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_LISTED 6u                  /* modules in one remark */

/* The used frames of a module, by offset. */
struct part {
	uint32_t *frames;                    /* into those of struct work */
	uint32_t nframes, pid;
	struct lines lines;
};

struct work {
	struct incident *in;
	bool *used;                          /* by frame */
	struct part *parts;                  /* by module */
	uint32_t *frames;                    /* those used, by module, then by offset */
	uint64_t *offsets;                   /* of one module's frames */
	struct incident_expansion *of_frame;
	struct incident_line *lines;
	struct buf dirs, servers;            /* of the symbol path */
	struct debuginfod *client;           /* NULL = nobody is asked */
};

static void work_free(struct work *w)
{
	uint32_t i;

	for (i = 0; w->parts && i < w->in->nmodules; i++)
		lines_free(&w->parts[i].lines);
	free(w->used);
	free(w->parts);
	free(w->frames);
	free(w->offsets);
	free(w->of_frame);
	free(w->lines);
	buf_free(&w->dirs);
	buf_free(&w->servers);
	debuginfod_close(w->client);
}

static int no_memory(struct err *err)
{
	return err_memory(err, "for source lines");
}

/* ---- which frames ---------------------------------------------------------------------------- */

static bool has_lines(const struct incident *in, uint32_t frame)
{
	const struct incident_module *m = &in->modules[in->frames[frame].module];

	return m->kind == OBJECT_ELF && m->path && m->path[0] == '/';
}

/* Mark a stack's frames that are new, and note a process that maps each module. */
static void mark(struct work *w, bool *seen, uint32_t stack, uint32_t thread)
{
	const struct incident *in = w->in;

	for (; stack != STACK_NONE && !seen[stack]; stack = in->stacks[stack].parent) {
		uint32_t frame = in->stacks[stack].frame;
		struct part *p = &w->parts[in->frames[frame].module];

		seen[stack] = true;
		if (w->used[frame] || !has_lines(in, frame))
			continue;
		w->used[frame] = true;
		p->nframes++;
		if (!p->pid && thread != THREAD_NONE)
			p->pid = in->processes[in->threads[thread].process].pid;
	}
}

static int mark_all(struct work *w)
{
	const struct incident *in = w->in;
	bool *seen = calloc((size_t)in->nstacks + 1, sizeof(*seen));
	uint32_t i;

	if (!seen)
		return ERR_MEMORY;
	for (i = 0; i < in->nsamples; i++)
		mark(w, seen, in->samples[i].stack, in->samples[i].thread);
	for (i = 0; i < in->nevents; i++)
		mark(w, seen, in->events[i].stack, in->events[i].thread);
	free(seen);
	return 0;
}

struct placed {
	uint64_t offset;
	uint32_t module, frame;
};

static int by_place(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* Sort each module's part of w->frames by offset. */
static int sort_frames(struct work *w)
{
	const struct incident *in = w->in;
	struct placed *all = malloc(((size_t)in->nframes + 1) * sizeof(*all));
	uint32_t i, n = 0, at = 0;

	if (!all)
		return ERR_MEMORY;
	for (i = 0; i < in->nframes; i++) {
		if (w->used[i])
			all[n++] = (struct placed){in->frames[i].offset, in->frames[i].module, i};
	}
	qsort(all, n, sizeof(*all), by_place);
	for (i = 0; i < n; i++)
		w->frames[i] = all[i].frame;
	for (i = 0; i < in->nmodules; i++) {
		w->parts[i].frames = w->frames + at;
		at += w->parts[i].nframes;
	}
	free(all);
	return 0;
}

static int prepare(struct work *w, struct err *err)
{
	const struct incident *in = w->in;
	size_t nframes = (size_t)in->nframes + 1;

	w->used = calloc(nframes, sizeof(*w->used));
	w->parts = calloc((size_t)in->nmodules + 1, sizeof(*w->parts));
	w->frames = malloc(nframes * sizeof(*w->frames));
	w->offsets = malloc(nframes * sizeof(*w->offsets));
	w->of_frame = calloc(nframes, sizeof(*w->of_frame));
	if (!w->used || !w->parts || !w->frames || !w->offsets || !w->of_frame || mark_all(w) ||
	    sort_frames(w))
		return no_memory(err);
	return 0;
}

/* ---- reading and joining --------------------------------------------------------------------- */

static bool is_fetched(enum lines_state state)
{
	return state == LINES_NO_FILE || state == LINES_CHANGED || state == LINES_NO_DEBUG_INFO;
}

static int read_module(struct work *w, uint32_t module, uint64_t end_ns, struct err *err)
{
	const struct incident_module *m = &w->in->modules[module];
	struct part *p = &w->parts[module];
	struct object object = {
		.key = {.kind = m->kind, .path = m->path, .build_id_bytes = m->build_id_bytes},
		.name = m->name, .pid = p->pid,
	};
	bool asked = false;
	uint32_t i;

	memcpy(object.key.build_id, m->build_id, m->build_id_bytes);
	for (i = 0; i < p->nframes; i++)
		w->offsets[i] = w->in->frames[p->frames[i]].offset;
	for (;;) {
		const char *dirs = w->dirs.len ? buf_text(&w->dirs) : NULL;
		int rc = lines_read(&object, p->pid, dirs, w->offsets, p->nframes, end_ns,
				    &p->lines, err);

		if (rc || asked || !w->client || !is_fetched(p->lines.state) ||
		    debuginfod_fetch(w->client, m->build_id, m->build_id_bytes, &w->dirs, NULL))
			return rc;
		asked = true;
		lines_free(&p->lines);
		p->lines = (struct lines){0};
	}
}

static int read_all(struct work *w, struct err *err)
{
	uint64_t end_ns = os_now_ns() + SOURCE_LINES_MAX_NS;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < w->in->nmodules; i++) {
		if (w->parts[i].nframes)
			rc = read_module(w, i, end_ns, err);
	}
	return rc;
}

/* Join all modules' lines. Two frames at one offset (a caller, a leaf) get a copy each. */
static int join(struct work *w, uint32_t *nlines, struct err *err)
{
	const struct incident *in = w->in;
	uint64_t n = 0;
	uint32_t i, k;

	for (i = 0; i < in->nmodules; i++)
		n += w->parts[i].lines.nlines;
	w->lines = malloc(((size_t)n + 1) * sizeof(*w->lines));
	if (!w->lines || n > UINT32_MAX)
		return no_memory(err);
	*nlines = 0;
	for (i = 0; i < in->nmodules; i++) {
		const struct part *p = &w->parts[i];

		for (k = 0; k < p->nframes && p->lines.nlines; k++) {
			struct incident_expansion e = p->lines.of_offset[k];

			memcpy(w->lines + *nlines, p->lines.lines + e.first,
			       e.n * sizeof(*w->lines));
			e.first = *nlines;
			*nlines += e.n;
			w->of_frame[p->frames[k]] = e;
		}
	}
	return 0;
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* List the modules in a state, a few by name; returns how many there are. */
static uint32_t list_modules(const struct work *w, enum lines_state state, struct buf *out)
{
	uint32_t i, n = 0;

	for (i = 0; i < w->in->nmodules; i++) {
		if (!w->parts[i].nframes || w->parts[i].lines.state != state)
			continue;
		if (n++ < NAMES_LISTED)
			buf_printf(out, "%s%s", n > 1 ? ", " : "", w->in->modules[i].path);
	}
	if (n > NAMES_LISTED)
		buf_printf(out, " and %u more", n - NAMES_LISTED);
	return n;
}

static void remark(const struct work *w)
{
	static const struct {
		enum lines_state state;
		const char *why;
	} missing[] = {
		{LINES_NO_FILE, "the file is missing or unreadable"},
		{LINES_NO_BUILD_ID, "without a build id nothing tells whether the file is the "
				    "recorded one"},
		{LINES_NO_DEBUG_INFO, "no debug information is installed (packages -dbg, -dbgsym, "
				      "-debuginfo)"},
	};
	struct buf list = {0};
	uint32_t i;

	for (i = 0; i < w->in->nmodules; i++) {
		const struct part *p = &w->parts[i];

		if (!p->nframes)
			continue;
		if (p->lines.state == LINES_CHANGED)
			cmd_note("%s is not the file that was recorded (its build id differs): it "
				 "gets no source lines, and its names stay as recorded",
				 w->in->modules[i].path);
		if (p->lines.state == LINES_FAILED)
			cmd_note("%s: no source lines: %s", w->in->modules[i].path, p->lines.why);
	}
	for (i = 0; i < COUNT_OF(missing); i++) {
		buf_reset(&list);
		if (list_modules(w, missing[i].state, &list))
			cmd_note("no source lines because %s: %s", missing[i].why, buf_text(&list));
	}
	buf_free(&list);
}

bool source_text_find(void *ctx, uint32_t module, const char *file, struct buf *path)
{
	const struct source_texts *t = ctx;
	const struct incident_module *m = &t->in->modules[module];
	struct buf dirs = {0}, servers = {0};
	struct debuginfod *d = NULL;
	bool found = false;

	symbol_path_split(t->symbol_path, &dirs, &servers);
	if (servers.len && m->build_id_bytes &&
	    debuginfod_open(buf_text(&servers), &d, NULL) == 0)
		found = debuginfod_fetch_source(d, m->build_id, m->build_id_bytes, file, path,
						NULL) == 0;
	debuginfod_close(d);
	buf_free(&dirs);
	buf_free(&servers);
	return found;
}

int source_lines_add(struct incident *in, const char *symbol_path, struct err *err)
{
	const struct managed_view lines = {.lines = true};
	struct work w = {.in = in};
	uint32_t nlines = 0;
	int rc = managed_view_apply(in, &lines, err);

	if (!rc)
		rc = lines_check(err);
	symbol_path_split(symbol_path, &w.dirs, &w.servers);
	if (!rc && w.servers.len)
		rc = debuginfod_open(buf_text(&w.servers), &w.client, err);
	if (!rc)
		rc = prepare(&w, err);
	if (!rc)
		rc = read_all(&w, err);
	if (!rc)
		rc = join(&w, &nlines, err);
	if (!rc) {
		remark(&w);
		rc = incident_expand(in, w.of_frame, w.lines, nlines, err);
	}
	work_free(&w);
	return rc;
}
