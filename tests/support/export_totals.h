/* What an export weighs, read from its text by the grammar of its format; fails the test at a line
 * that the grammar does not have. */
#pragma once

#include "base/buf.h"

uint64_t livestacks_total(const char *text);
uint64_t dtrace_total(const char *text);
/* Sum of the periods; *samples is how many. */
uint64_t perf_script_total(const char *text, uint64_t *samples);

/* Sum of the weights of samples that have frames: gaps do not count. */
uint64_t speedscope_total(const char *text);
/* Sum of the weights in the args of slices. */
uint64_t trace_total(const char *text);

struct pprof_totals {
	uint64_t samples, values[2], locations, functions, strings;
};

/* Inflate and decode; every id that is used must have been defined or be so before the end. */
void pprof_read(const struct buf *packed, struct pprof_totals *out);
