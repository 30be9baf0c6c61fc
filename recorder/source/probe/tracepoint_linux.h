/*
 * Tracepoints of this kernel, from tracefs: which there are, and their formats. Files of the
 * kernel, so any thread but the source's.
 */
#pragma once

#include "base/out.h"
#include "source/probe/trace_format.h"

/*
 * Whether a provider's name can be that of tracepoints ("sched"): small letters, digits, '_'. Names
 * of other providers have capitals, '-', '.', '*' or '{'.
 */
bool tracepoint_provider(const char *provider);

/*
 * The format of sched/sched_process_exit. ERR_USAGE: there is none of that name, and which are
 * near; ERR_UNSUPPORTED: tracefs is not mounted; ERR_ACCESS.
 */
int tracepoint_load(const char *provider, const char *name, struct trace_format *out,
		    struct err *err);

/*
 * Each tracepoint whose "provider/name" contains the pattern (any case; NULL = all), sorted, to
 * one(): non-zero ends it and is returned. ERR_NOT_FOUND: none.
 */
typedef int tracepoint_one(void *ctx, const char *provider, const char *name);
int tracepoint_each(const char *pattern, tracepoint_one *one, void *ctx, struct err *err);
