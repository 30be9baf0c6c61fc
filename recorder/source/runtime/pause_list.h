/*
 * The names by which rules know collections of runtimes other than .NET on Linux: JVM/GC/Stop,
 * CPython/GC/Start, V8/GC/Stop. jvm_linux.c and, by probes, gc_probes_linux.c deliver them.
 * Portable, pure.
 */
#pragma once

#include "base/err.h"
#include "base/out.h"
#include "model/needs.h"

#include <stdbool.h>

enum pause_provider { PAUSES_OF_JVM, PAUSES_OF_CPYTHON, PAUSES_OF_V8, PAUSE_PROVIDERS };

/* returns  PAUSE_PROVIDERS when it is none of them */
enum pause_provider pause_provider(const char *name);
/* Whether a rule names events of this provider, or of any (PAUSE_PROVIDERS). */
bool pause_wanted(const struct needs *needs, enum pause_provider which);
/*
 * Check that the named events exist and have their filters' fields; else ERR_USAGE with what
 * exists.
 */
int pause_check(const struct needs *needs, struct err *err);
/* As source_ops.list_events; appends to lines. */
void pause_list(const char *pattern, bool json, struct buf *lines);
/* Append an event as a line of such a list. fields: their names, ending with NULL. */
void event_list_put(const char *provider, const char *name, const char *const *fields, bool json,
		    struct buf *lines);
