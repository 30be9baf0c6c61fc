/*
 * Tracepoints as a perf file describes them: the tracefs `format` files of those that it recorded.
 *
 *	23 8 68 "tracing", version "0.6", u8 big-endian, u8 bytes of a long, u32 bytes of a page
 *	"header_page", u64 n, n bytes; "header_event", u64 n, n bytes
 *	u32 count of ftrace's own: u64 n, n bytes each
 *	u32 count of systems: name; u32 count of events: u64 n, n bytes of format each
 *
 * Texts end with a NUL. Source: tools/perf/util/trace-event-info.c. Portable; not trusted.
 */
#pragma once

#include "source/probe/trace_format.h"

struct tracepoint {
	char name[2 * TRACE_NAME_MAX];       /* "sched:sched_switch" */
	struct trace_format format;
};

struct tracepoints;

/*
 * wanted  whether the tracepoint with this number was recorded; others are left out
 * returns  0, also when a part is damaged: the rest is missing then; ERR_MEMORY
 */
int tracepoints_read(const void *bytes, size_t n, bool (*wanted)(const void *ctx, uint32_t id),
		     const void *ctx, struct tracepoints **out, struct err *err);
void tracepoints_free(struct tracepoints *t);        /* NULL allowed */
/* NULL: it is not described; t may be NULL. */
const struct tracepoint *tracepoints_find(const struct tracepoints *t, uint64_t id);
