/*
 * Exporters: functions from an incident to bytes. A new one is one file, one line in exporters[],
 * one test, one README row.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/out.h"
#include "model/incident.h"

struct export_options {
	bool annotate;                       /* folded: _[k] and _[j] suffixes */
	bool ids;                            /* pid and tid in the names of root frames */
	bool addresses;                      /* numbers in place of missing names */
	const char *file_name;               /* base name of the output; for archives; may be NULL */
};

struct exporter {
	const char *name;                    /* --format NAME */
	const char *suffix;                  /* ".folded"; chosen by the suffix of -o; NULL = none */
	const char *summary;                 /* one line for --help */
	bool binary;                         /* not for a terminal */
	int (*write)(const struct incident *in, const struct export_options *opt, struct out *out,
		     struct err *err);
};

/* Ending in NULL. */
extern const struct exporter *const exporters[];

/* By name (case-insensitive), or by the longest matching suffix of a path; NULL when none. */
const struct exporter *exporter_by_name(const char *name);
const struct exporter *exporter_by_path(const char *path);

#endif
