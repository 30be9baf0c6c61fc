/*
 * Exporters: functions from an incident to bytes. A new one is one file, one line in exporters[],
 * one test, one README row.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/out.h"
#include "model/incident.h"

struct export_options {
	enum stream stream;                  /* which samples; CPU unless it is set */
	bool annotate;                       /* folded: _[k] and _[j] suffixes */
	bool ids;                            /* pid and tid in the names of root frames */
	bool addresses;                      /* numbers in place of missing names */
	bool offsets;                        /* folded: LiveStacks' own, with offsets in functions */
	bool evented;                        /* speedscope: calls and returns in place of samples */
	bool excel;                          /* CSV: no cell that a spreadsheet would compute */
	uint32_t top;                        /* livestacks: so many stacks; 0 = all */
	uint64_t min_weight;                 /* livestacks: none below */
	const char *file_name;               /* base name of the output; for archives; may be NULL */
};

struct exporter {
	const char *name;                    /* --format NAME */
	const char *suffix;                  /* ".folded"; chosen by the suffix of -o; NULL = none */
	const char *summary;                 /* for --help: at most 40 characters */
	bool binary;                         /* not for a terminal */
	bool usual;                          /* one of those that --all writes */
	int (*write)(const struct incident *in, const struct export_options *opt, struct out *out,
		     struct err *err);
};

/* Ending in NULL. */
extern const struct exporter *const exporters[];

/*
 * Whether a sample is of the stream that is exported, and what it counts there: its weight in the
 * stream's unit; a CPU sample is one sample, or microseconds (incident_units()).
 */
static inline bool export_takes(const struct export_options *opt, const struct incident_sample *s)
{
	return s->stream == opt->stream;
}

static inline uint64_t export_weight(const struct incident *in, const struct incident_sample *s)
{
	return s->stream == STREAM_CPU ? incident_units(in, s) : s->weight;
}

/*
 * By name (case-insensitive), or by the longest matching suffix of a path, before ".gz" for one that is
 * not binary; NULL when none.
 */
const struct exporter *exporter_by_name(const char *name);
const struct exporter *exporter_by_path(const char *path);

/* Whether the file is to be packed by out_pack(): it ends in ".gz", and the format does not pack itself. */
bool exporter_packs(const struct exporter *e, const char *path);

#endif
