/* The pools of threads that read what belongs to other programs, and may hang: log and status. */
#pragma once

#include "source/perf/walk_linux.h"

#define HELPERS 4u

struct perf_helpers {
	bool logged[HELPERS];
};

/* Log once when so many hang that nothing more is read; the source's thread. */
void perf_helpers_look(struct perf_helpers *h, const struct perf_walker *walker, struct log *log);
/* Any thread: say so for status. returns  whether one hangs */
bool perf_helpers_note(const struct perf_walker *walker, char *out, size_t n);
