/*
 * Files that export and diff write: their format, what is refused, packing, progress.
 */
#include "cli/cmd.h"

#include "base/os.h"
#include "base/utf8.h"
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#define QUIET_NS NS_PER_SEC                  /* shorter writes show no progress */
#define REPEAT_NS (NS_PER_SEC / 5)

enum { LINE_COLUMNS = 78 };

int cmd_choose_format(const struct options *o, const char *path, bool of_diff,
		      const struct exporter **out, struct err *err)
{
	const char *name = o->format ? o->format : o->sqlite_flat ? "sqlite-flat" : NULL;
	const struct exporter *e = name ? exporter_by_name(name) : exporter_by_path(path);
	bool is_stdout = strcmp(path, "-") == 0;
	struct buf names = {0};
	unsigned i;

	if (e && (!of_diff || e->write_diff)) {
		*out = e;
		return 0;
	}
	for (i = 0; exporters[i]; i++)
		if (!of_diff || exporters[i]->write_diff)
			buf_printf(&names, "%s%s", names.len ? ", " : "", exporters[i]->name);
	err_set(err, ERR_USAGE, "%s%s; --format%s is one of: %s",
		name        ? of_diff ? "diff has no format " : "unknown format "
		: is_stdout ? "no format was given"
		: of_diff   ? "no format of diff has the suffix of "
			    : "no format has the suffix of ",
		name ? name : is_stdout ? "" : path, of_diff ? " of diff" : "", buf_text(&names));
	buf_free(&names);
	return ERR_USAGE;
}

int cmd_check_output(const struct options *o, const char *path, const struct exporter *e,
		     struct err *err)
{
	if (strcmp(path, "-") == 0) {
		if (e->binary && os_is_terminal(os_stdout()))
			return err_set(err, ERR_USAGE, "%s is binary and would spoil the terminal; "
				       "use -o FILE, or a pipe", e->name);
		return 0;
	}
	if (!o->force && os_exists(path))
		return err_set(err, ERR_EXISTS, "%s exists already; use --force to replace it, or "
			       "-o another name", path);
	return 0;
}

struct progress {
	const char *name;
	const struct out *out;
	uint64_t next_ns;
	bool shown;
};

/* Overwrite the line, with blanks first: not every terminal can erase. */
static void put_line(const char *text, const char *bytes)
{
	struct buf line = {0};
	char blank[LINE_COLUMNS + 3];

	snprintf(blank, sizeof(blank), "\r%*s\r", LINE_COLUMNS, "");
	buf_puts(&line, blank);
	if (text) {
		buf_puts(&line, "recorder: ");
		utf8_put_clean(&line, text, strlen(text), LINE_COLUMNS / 2);
		buf_printf(&line, ": %s", bytes);
	}
	if (!line.failed)
		os_write(os_stderr(), line.data, line.len, NULL);
	buf_free(&line);
}

static void show_progress(void *ctx)
{
	struct progress *p = ctx;
	char bytes[NUMBER_BYTES];

	if (os_now_ns() < p->next_ns)
		return;
	put_line(p->name, text_bytes(out_bytes(p->out), bytes));
	p->next_ns = os_now_ns() + REPEAT_NS;
	p->shown = true;
}

int cmd_write_output(const struct options *o, const char *path, const struct exporter *e,
		     int (*write)(void *ctx, struct out *out, struct err *err), void *ctx,
		     struct err *err)
{
	struct progress progress = {.name = os_base_name(path), .next_ns = os_now_ns() + QUIET_NS};
	struct out *out = NULL;
	int rc = out_open(path, o->force, &out, err);

	if (rc)
		return rc;
	progress.out = out;
	/* Progress would mix with standard output on the same terminal. */
	if (os_is_terminal(os_stderr()) && !(strcmp(path, "-") == 0 && os_is_terminal(os_stdout())))
		out_watch(out, show_progress, &progress);
	if (exporter_packs(e, path))
		rc = out_pack(out, err);
	if (!rc)
		rc = write(ctx, out, err);
	if (rc)
		out_abandon(out);
	else
		rc = out_close(out, err);
	if (progress.shown)
		put_line(NULL, NULL);
	return rc;
}
