#include "source/probe/tracepoint_linux.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NAMES_MAX 65536          /* in one directory; a kernel has about 2,500 tracepoints in all */
#define PATH_BYTES 700

bool tracepoint_provider(const char *provider)
{
	return *provider &&
	       strspn(provider, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(provider);
}

/* Find tracefs: at its own place, or at the old one below debugfs. */
static int find_root(const char **out, struct err *err)
{
	static const char *const roots[] = {"/sys/kernel/tracing/events",
					    "/sys/kernel/debug/tracing/events"};
	size_t i;
	DIR *dir;
	bool refused = false;

	for (i = 0; i < COUNT_OF(roots); i++) {
		dir = opendir(roots[i]);
		if (dir) {
			closedir(dir);
			*out = roots[i];
			return 0;
		}
		refused |= errno == EACCES || errno == EPERM;
	}
	if (refused)
		return err_set(err, ERR_ACCESS,
			       "this user may not read the tracepoints: run as root, or give the "
			       "program CAP_DAC_READ_SEARCH");
	return err_set(err, ERR_UNSUPPORTED,
		       "cannot find tracepoints, because tracefs is not mounted at "
		       "/sys/kernel/tracing; mount it with: mount -t tracefs tracefs "
		       "/sys/kernel/tracing");
}

/* ---- names ----------------------------------------------------------------------------------- */

struct names {
	struct dirent **all;
	int n;
};

static int is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void names_free(struct names *names)
{
	while (names->n > 0)
		free(names->all[--names->n]);
	free(names->all);
}

/* The names in a directory, sorted; none when it cannot be read. */
static struct names names_read(const char *path)
{
	struct names names = {0};

	names.n = scandir(path, &names.all, is_name, alphasort);
	return names.n < 0 ? (struct names){0} : names;
}

/* The error for a tracepoint, or its provider, that does not exist. */
static int no_tracepoint(const char *root, const char *provider, const char *name, struct err *err)
{
	char path[PATH_BYTES], before[TRACE_NAME_MAX * 2];
	struct nearest nearest = {.wanted = name};
	struct buf near = {0};
	struct names names;
	bool has_provider;
	int i;

	snprintf(path, sizeof(path), "%s/%.100s", root, provider);
	snprintf(before, sizeof(before), "%.100s/", provider);
	has_provider = os_exists(path);
	if (!has_provider)
		nearest.wanted = provider;
	names = names_read(has_provider ? path : root);
	for (i = 0; i < names.n; i++)
		nearest_offer(&nearest, names.all[i]->d_name);
	if (nearest.n)
		buf_puts(&near, "; the nearest are ");
	nearest_put(&nearest, has_provider ? before : "", "", &near);
	names_free(&names);
	if (has_provider)
		err_set(err, ERR_USAGE,
			"this kernel has no tracepoint %.100s/%.100s%s; 'recorder events %.100s' "
			"lists them", provider, name, buf_text(&near), provider);
	else
		err_set(err, ERR_USAGE,
			"no source on this system delivers events of %.100s%s; 'recorder events' "
			"lists all", provider, buf_text(&near));
	buf_free(&near);
	return ERR_USAGE;
}

/* ---- formats --------------------------------------------------------------------------------- */

int tracepoint_load(const char *provider, const char *name, struct trace_format *out,
		    struct err *err)
{
	struct buf text = {0};
	const char *root;
	char path[PATH_BYTES];
	int rc = find_root(&root, err);

	if (rc)
		return rc;
	if (!tracepoint_provider(provider) || strlen(provider) > 100 || strlen(name) > 200 ||
	    strchr(name, '/') || name[0] == '.')
		return no_tracepoint(root, provider, name, err);
	snprintf(path, sizeof(path), "%s/%s/%s/format", root, provider, name);
	rc = os_load(path, TRACE_FORMAT_MAX_BYTES, &text, err);
	if (rc == ERR_NOT_FOUND)
		rc = no_tracepoint(root, provider, name, err);
	else if (!rc)
		rc = trace_format_parse(buf_text(&text), text.len, out, err);
	buf_free(&text);
	return rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool contains_fold(const char *text, const char *part)
{
	size_t n = strlen(part);

	for (; *text; text++)
		if (strncasecmp(text, part, n) == 0)
			return true;
	return !n;
}

static int each_of(const char *root, const char *provider, const char *pattern, tracepoint_one *one,
		   void *ctx, bool *any)
{
	char path[PATH_BYTES], full[600];
	struct names names;
	int i, rc = 0;

	snprintf(path, sizeof(path), "%s/%.255s", root, provider);
	names = names_read(path);
	for (i = 0; i < names.n && !rc; i++) {
		const char *name = names.all[i]->d_name;

		snprintf(full, sizeof(full), "%.255s/%.255s", provider, name);
		if (names.all[i]->d_type != DT_DIR || (pattern && !contains_fold(full, pattern)))
			continue;
		*any = true;
		rc = one(ctx, provider, name);
	}
	names_free(&names);
	return rc;
}

int tracepoint_each(const char *pattern, tracepoint_one *one, void *ctx, struct err *err)
{
	struct names providers;
	const char *root;
	bool any = false;
	int i, rc = find_root(&root, err);

	if (rc)
		return rc;
	providers = names_read(root);
	for (i = 0; i < providers.n && !rc; i++) {
		/* "ftrace" holds records of the tracer itself, which are not events. */
		if (providers.all[i]->d_type == DT_DIR &&
		    strcmp(providers.all[i]->d_name, "ftrace") != 0)
			rc = each_of(root, providers.all[i]->d_name, pattern, one, ctx, &any);
	}
	names_free(&providers);
	if (!rc && !any)
		rc = err_set(err, ERR_NOT_FOUND,
			     "no tracepoint matches '%.100s'; 'recorder events' lists all",
			     pattern ? pattern : "");
	return rc;
}
