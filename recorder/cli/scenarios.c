/*
 * collect --from of many files: those below a directory, or those that a set of scenarios lists.
 * Each becomes the incidents that it would become alone; report and export take them as one.
 */
#include "cli/cmd.h"

#include "analysis/name_pattern.h"
#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "source/stackfile/scenario.h"

#include <stdlib.h>
#include <string.h>

#define SET_MAX_BYTES (1u << 20)
#define FILES_MAX 4096u                      /* as many as a set of incidents may have */
#define DEPTH_MAX 16u                        /* of directories */

struct found {
	char *path;                          /* from the set's directory on */
	const struct scenario *of;           /* NULL = none says what it is called */
	char *title;
};

struct finding {
	const char *dir;
	struct buf below;                    /* the directory that is looked at, with its '/' */
	uint32_t depth, nfiles;
	struct found *files;
	bool full, no_memory;
};

/* What a directory is searched for. */
static const struct scenario traces[] = {
	{.files = "*.etl"}, {.files = "*.etl.zip"}, {.files = "*.nettrace"},
	{.files = "*.perfView.xml"}, {.files = "*.perfView.xml.zip"}, {.files = "*.perfView.json"},
	{.files = "*perf.data"}, {.files = "*.data.txt"}, {.files = "*.trace.zip"},
	{.files = "*.folded"}, {.files = "*.speedscope.json"}, {.files = "*.pb.gz"},
	{.files = "*.trace.json"}, {.files = "*.cpuprofile"}, {.files = "*.jfr"},
};

static int is_there(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 1;
}

/* ---- finding files --------------------------------------------------------------------------- */

static int look(void *ctx, const char *name)
{
	struct finding *f = ctx;
	size_t len = f->below.len;
	struct buf path = {0};

	buf_printf(&f->below, "%s/", name);
	buf_printf(&path, "%s/%s", f->dir, buf_text(&f->below));
	f->no_memory |= f->below.failed || path.failed;
	f->depth++;
	/* A name that cannot be listed is a file. */
	if (!f->no_memory && f->depth <= DEPTH_MAX &&
	    os_list(buf_text(&path), look, f, NULL) < 0) {
		f->full |= f->nfiles == FILES_MAX;
		f->no_memory |= ARRAY_NEXT(f->files, f->nfiles) != 0;
		if (!f->no_memory && !f->full) {
			f->files[f->nfiles] = (struct found){
				.path = text_dup(buf_text(&f->below), f->below.len - 1)};
			f->no_memory |= !f->files[f->nfiles++].path;
		}
	}
	f->depth--;
	if (!f->no_memory)
		f->below.len = len;
	buf_free(&path);
	return f->no_memory || f->full;
}

/* Note what a file is called by a scenario that names it; else leave it as it is. */
static int name_file(struct found *file, const struct scenario *s, struct name_pattern *p)
{
	const char *name = strpbrk(s->files, "/\\") ? file->path : os_base_name(file->path);
	struct buf title = {0};

	if (!name_pattern_match(p, name, strlen(name)))
		return name_pattern_no_memory(p) ? ERR_MEMORY : 0;
	file->of = s;
	free(file->title);
	file->title = NULL;
	if (!s->name)
		return 0;
	name_pattern_expand(p, name, s->name, &title);
	file->title = title.data;
	return title.failed ? ERR_MEMORY : 0;
}

static int name_files(struct finding *f, const struct scenario *all, uint32_t n, struct err *err)
{
	struct name_pattern *p = NULL;
	struct buf regex = {0};
	uint32_t i, k;
	int rc = 0;

	for (i = 0; !rc && i < n; i++) {
		buf_reset(&regex);
		buf_putc(&regex, '@');
		scenario_regex(all[i].files, &regex);
		rc = buf_check(&regex, "a pattern of files", err);
		if (!rc)
			rc = name_pattern_open(buf_text(&regex), regex.len, "files", 0, &p, err);
		for (k = 0; !rc && k < f->nfiles; k++)
			if (name_file(&f->files[k], &all[i], p))
				rc = err_memory(err, "for the names of files");
		name_pattern_close(p);
		p = NULL;
	}
	buf_free(&regex);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

static int find_files(struct finding *f, struct err *err)
{
	int rc = os_list(f->dir, look, f, err);

	if (f->no_memory)
		return err_memory(err, "for the names of files");
	if (f->full)
		return err_set(err, ERR_LIMIT, "%s has more than %u files", f->dir, FILES_MAX);
	if (f->nfiles)
		qsort(f->files, f->nfiles, sizeof(*f->files), by_path);
	return rc < 0 ? rc : 0;
}

/* ---- reading them ---------------------------------------------------------------------------- */

static int collect_one(const struct options *o, const char *dir, const struct found *file,
		       struct err *err)
{
	struct options part = *o;
	struct buf path = {0};
	int rc;

	buf_printf(&path, "%s/%s", dir, file->path);
	part.capture.file = buf_text(&path);
	part.capture.file_title = file->title;
	if (file->of->process)
		part.capture.only_process = file->of->process;
	rc = buf_check(&path, "a file's name", err);
	if (!rc)
		rc = cmd_record(&part, NULL, err);
	buf_free(&path);
	return rc;
}

/* One that cannot be read, or in which no rule fired, is noted, and the others are taken. */
static int collect_files(const struct options *o, const struct finding *f, struct err *err)
{
	uint32_t i, taken = 0, wanted = 0;
	struct err why;
	int rc, last = 0;

	for (i = 0; i < f->nfiles; i++) {
		if (!f->files[i].of)
			continue;
		wanted++;
		rc = collect_one(o, f->dir, &f->files[i], &why);
		if (rc == ERR_USAGE)
			return err_set(err, ERR_USAGE, "%s", why.text);
		taken += rc == 0;
		if (rc) {
			last = rc;
			cmd_note("%s: %s", f->files[i].path, why.text);
		}
	}
	if (!wanted)
		return err_set(err, ERR_NOT_FOUND, "%s: none of its %u files is one of the set",
			       o->capture.file, f->nfiles);
	return taken == wanted ? 0
			       : err_set(err, (enum err_code)last, "%u of %u files of %s were "
					 "taken", taken, wanted, o->capture.file);
}

/* The text of a set of scenarios; false: the file is none. */
static bool load_set(const char *path, struct buf *text)
{
	struct err err;

	return text_ends_fold(path, ".xml") && !os_load(path, SET_MAX_BYTES, text, &err) &&
	       scenario_is_set(buf_text(text), text->len);
}

static int collect_set(const struct options *o, const char *dir, const struct scenario *all,
		       uint32_t n, struct err *err)
{
	struct finding f = {.dir = dir};
	int rc = find_files(&f, err);

	if (!rc)
		rc = name_files(&f, all, n, err);
	if (!rc)
		rc = collect_files(o, &f, err);
	while (f.nfiles) {
		free(f.files[--f.nfiles].path);
		free(f.files[f.nfiles].title);
	}
	free(f.files);
	buf_free(&f.below);
	return rc;
}

int cmd_collect_set(const struct options *o, bool *is_set, struct err *err)
{
	const char *path = o->capture.file;
	struct scenario_list list = {0};
	struct buf text = {0}, dir = {0};
	struct err why;
	int rc = 0;

	*is_set = false;
	if (path && os_list(path, is_there, NULL, NULL) >= 0) {
		*is_set = true;
		return collect_set(o, path, traces, COUNT_OF(traces), err);
	}
	if (path && load_set(path, &text)) {
		*is_set = true;
		os_dirname(path, &dir);
		if (scenario_parse(buf_text(&text), text.len, &list, &why))
			rc = err_set(err, ERR_FORMAT, "%s: %s", path, why.text);
		else
			rc = collect_set(o, buf_text(&dir), list.items, list.n, err);
	}
	buf_free(&text);
	buf_free(&dir);
	scenario_list_free(&list);
	return rc;
}
