#include "export/export.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

extern const struct exporter folded_exporter, livestacks_exporter, dtrace_exporter,
	perf_script_exporter, speedscope_exporter, pprof_exporter, otlp_exporter, trace_exporter,
	perfview_xml_exporter, perfview_xml_zip_exporter, perfview_simple_exporter,
	perfview_json_exporter, events_csv_exporter, counters_csv_exporter, jsonl_exporter,
	sqlite_flat_exporter, svg_exporter, html_exporter;

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
	&otlp_exporter,
	&trace_exporter,
	&events_csv_exporter,
	&counters_csv_exporter,
	&jsonl_exporter,
	&sqlite_flat_exporter,
	&svg_exporter,
	&html_exporter,
	NULL,
};

const struct exporter *exporter_by_name(const char *name)
{
	size_t i;

	for (i = 0; exporters[i]; i++) {
		if (text_same_fold(exporters[i]->name, name))
			return exporters[i];
	}
	return NULL;
}

static bool has_suffix(const struct exporter *e, const char *path)
{
	char packed[64];

	snprintf(packed, sizeof(packed), "%s.gz", e->suffix);
	return text_ends_fold(path, e->suffix) || (!e->binary && text_ends_fold(path, packed));
}

const struct exporter *exporter_by_path(const char *path)
{
	const struct exporter *best = NULL, *e;
	size_t i;

	for (i = 0; (e = exporters[i]) != NULL; i++) {
		if (e->suffix && has_suffix(e, path) &&
		    (!best || strlen(e->suffix) > strlen(best->suffix)))
			best = e;
	}
	return best;
}

bool exporter_packs(const struct exporter *e, const char *path)
{
	return !e->binary && text_ends_fold(path, ".gz");
}
