/*
 * What PerfView says of a trace: the *.baseline.txt files of its repository.
 *
 *	EVENT 1,249.834: Windows Kernel/DiskIO/Write PID=4; TID=44; PName=System; ProceNum=0;
 *		DataLen=52; Name=value; ...                       (all on one line)
 *	COUNT Windows Kernel/DiskIO/Write:21
 *
 * At most five events of a kind, in the order of the trace; values longer than 20 characters are
 * cut.
 */
#pragma once

#include "source/etw/decode.h"

#define BASELINE_LISTED 5u

struct baseline_line {
	double ms;
	char *name;                          /* "Windows Kernel/DiskIO/Write" */
	uint32_t cpu, nbytes;
	char *fields;                        /* "Name=value; ..." */
};

struct baseline_count {
	char *name;
	uint32_t n, seen;
};

struct baseline {
	char *text;
	struct baseline_line *lines;
	struct baseline_count *counts;
	uint32_t nlines, ncounts;
};

/* Read one; false when the file is not there. */
bool baseline_open(const char *path, struct baseline *out);
void baseline_close(struct baseline *b);

/* The count of a kind, or NULL when it has none. */
struct baseline_count *baseline_count(struct baseline *b, const char *provider, const char *name);

/* How the values that PerfView prints compare with ours. */
struct baseline_fields {
	uint32_t equal;
	uint32_t named;                      /* PerfView has a name for our number */
	uint32_t absent;                     /* we have no such field, and it has a value */
	uint32_t blank;                      /* we have no such field, and it is empty there */
	uint32_t different;
	char differences[4000];              /* "Provider/Name Field: theirs, ours\n" */
};

void baseline_compare(const struct baseline_line *line, const struct etw_decoded *ours,
		      struct baseline_fields *out);
