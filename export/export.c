#include "export/export.h"

#include "base/text.h"

#include <string.h>

extern const struct exporter folded_exporter;
extern const struct exporter livestacks_exporter;
extern const struct exporter dtrace_exporter;
extern const struct exporter perf_script_exporter;
extern const struct exporter speedscope_exporter;
extern const struct exporter pprof_exporter;
extern const struct exporter trace_exporter;
extern const struct exporter perfview_xml_exporter;
extern const struct exporter perfview_xml_zip_exporter;
extern const struct exporter perfview_simple_exporter;
extern const struct exporter perfview_json_exporter;
extern const struct exporter events_csv_exporter;
extern const struct exporter counters_csv_exporter;
extern const struct exporter jsonl_exporter;
extern const struct exporter sqlite_flat_exporter;
extern const struct exporter svg_exporter;
extern const struct exporter html_exporter;

/* In the order of --help. */
const struct exporter *const exporters[] = {
	&folded_exporter,
	&livestacks_exporter,
	&dtrace_exporter,
	&perf_script_exporter,
	&perfview_xml_exporter,
	&perfview_xml_zip_exporter,
	&perfview_simple_exporter,
	&perfview_json_exporter,
	&speedscope_exporter,
	&pprof_exporter,
	&trace_exporter,
	&events_csv_exporter,
	&counters_csv_exporter,
	&jsonl_exporter,
	&sqlite_flat_exporter,
	&svg_exporter,
	&html_exporter,
	NULL,
};

/* ASCII letters in either case: no locale. */
static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_bytes_fold(const char *a, const char *b, size_t n)
{
	size_t i;

	for (i = 0; i < n && lower(a[i]) == lower(b[i]); i++)
		;
	return i == n;
}

const struct exporter *exporter_by_name(const char *name)
{
	size_t i;

	for (i = 0; exporters[i]; i++) {
		if (text_same_fold(exporters[i]->name, name))
			return exporters[i];
	}
	return NULL;
}

static const struct exporter *by_suffix(const char *path, size_t path_n)
{
	const struct exporter *best = NULL;
	size_t i, n, best_n = 0;

	for (i = 0; exporters[i]; i++) {
		n = exporters[i]->suffix ? strlen(exporters[i]->suffix) : 0;
		if (n > best_n && n <= path_n &&
		    same_bytes_fold(path + path_n - n, exporters[i]->suffix, n)) {
			best = exporters[i];
			best_n = n;
		}
	}
	return best;
}

static size_t without_gz(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && same_bytes_fold(path + n - 3, ".gz", 3) ? n - 3 : n;
}

const struct exporter *exporter_by_path(const char *path)
{
	const struct exporter *e = by_suffix(path, strlen(path));

	if (e)
		return e;
	e = by_suffix(path, without_gz(path));
	return e && !e->binary ? e : NULL;
}

bool exporter_packs(const struct exporter *e, const char *path)
{
	return !e->binary && without_gz(path) < strlen(path);
}
