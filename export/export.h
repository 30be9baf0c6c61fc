/*
 * Exporters: functions from an incident to bytes. A new one is one file, one line in exporters[],
 * one test, one row in cli/help/export.md.
 */
#pragma once

#include "base/out.h"
#include "model/incident.h"

/*
 * A part of an incident that a server takes as a profile: a group of processes, by stack without
 * threads, one value a sample.
 */
struct export_part {
	const uint32_t *group_of;            /* of each process; NULL = each is one */
	uint32_t group;                      /* UINT32_MAX = samples of no known process */
	uint32_t from, max;                  /* of its stacks: from this one on, at most so many */
	bool more;                           /* out: there are more */
};

static inline bool export_part_has(const struct export_part *p, uint32_t process)
{
	return p->group == (p->group_of && process != UINT32_MAX ? p->group_of[process] : process);
}

struct export_options {
	enum stream stream;                  /* which samples; CPU unless it is set */
	bool annotate;                       /* folded: _[k] and _[j] suffixes */
	bool ids;                            /* pid and tid in the names of root frames */
	bool addresses;                      /* addresses in place of missing names */
	bool offsets;                        /* folded: LiveStacks' variant with offsets */
	bool evented;                        /* speedscope: calls and returns, not samples */
	bool excel;                          /* CSV: quote cells that a spreadsheet would compute */
	uint32_t top;                        /* livestacks: how many stacks; 0 = all */
	uint64_t min_weight;                 /* livestacks: leave out lighter stacks */
	bool before_otlp_10;                 /* otlp: values where 1.9 has them */
	struct export_part *part;            /* pprof, otlp: this only; NULL = all */
	const char *changed;                 /* html: first lines, joined by LF; or NULL */
	const char *runtimes;                /* html: rows of report as a JSON array; or NULL */
	const char *file_name;               /* the output's base name, for archives; or NULL */
};

struct diff;

struct exporter {
	const char *name;                    /* --format NAME */
	const char *suffix;                  /* ".folded": -o chooses by it; NULL = none */
	const char *summary;                 /* for --help: at most 40 characters */
	bool binary;                         /* not for a terminal */
	bool usual;                          /* --all writes it */
	bool sets;                           /* also several incidents as one */
	int (*write)(const struct incident *in, const struct export_options *opt, struct out *out,
		     struct err *err);
	/* Two incidents, see export/diff.h; opt->stream is theirs. NULL = not in this format. */
	int (*write_diff)(const struct diff *d, const struct export_options *opt, struct out *out,
			  struct err *err);
};

/* Ending in NULL. */
extern const struct exporter *const exporters[];

/*
 * Whether a sample belongs to the exported stream, and what it counts: its weight in the stream's
 * unit, or for CPU samples 1 or microseconds (incident_units()).
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
 * The exporter of a name (case-insensitive), or with the longest suffix that a path ends in; a
 * ".gz" after the suffix of a format that is not binary is ignored. NULL when there is none.
 */
const struct exporter *exporter_by_name(const char *name);
const struct exporter *exporter_by_path(const char *path);

/* Whether out_pack() is to pack the file: it ends in ".gz" and the format does not pack itself. */
bool exporter_packs(const struct exporter *e, const char *path);
