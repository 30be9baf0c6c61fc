/*
 * The tracepoints of this kernel and their formats, from tracefs. Reads files of the kernel, so any
 * thread but the source's.
 */
#pragma once

#include "base/out.h"
#include "source/probe/trace_format.h"

/*
 * Whether a provider's name ("sched") can be that of tracepoints: lower-case letters, digits, '_'.
 * Names of other providers have capitals, '-', '.', '*' or '{'.
 */
bool tracepoint_provider(const char *provider);

/*
 * Load a format, such as that of sched/sched_process_exit. returns  0; ERR_USAGE when there is no
 * such tracepoint, with the nearest names; ERR_UNSUPPORTED when tracefs is not mounted; ERR_ACCESS
 */
int tracepoint_load(const char *provider, const char *name, struct trace_format *out,
		    struct err *err);

/*
 * Call one() for each tracepoint whose "provider/name" contains the pattern (any case; NULL = all),
 * sorted. A non-zero result ends the walk and is returned. ERR_NOT_FOUND: none matches.
 */
typedef int tracepoint_one(void *ctx, const char *provider, const char *name);
int tracepoint_each(const char *pattern, tracepoint_one *one, void *ctx, struct err *err);
