/*
 * Collections of the runtimes on Linux that are no .NET, as rules may name them: JVM/GC/Stop, CPython/GC/Start,
 * V8/GC/Stop. Who delivers them: jvm_linux.c and, by probes, gc_probes_linux.c. Portable and pure.
 */
#ifndef SOURCE_PAUSE_LIST_H
#define SOURCE_PAUSE_LIST_H

#include "base/err.h"
#include "base/out.h"
#include "model/needs.h"

#include <stdbool.h>

enum pause_provider { PAUSES_OF_JVM, PAUSES_OF_CPYTHON, PAUSES_OF_V8, PAUSE_PROVIDERS };

/* PAUSE_PROVIDERS: it is none of them. */
enum pause_provider pause_provider(const char *name);
/* Whether a rule names events of this one, or of any of them (PAUSE_PROVIDERS). */
bool pause_wanted(const struct needs *needs, enum pause_provider which);
/* Every event of them that is named is one, and has the fields of its filter; else ERR_USAGE with those that there are. */
int pause_check(const struct needs *needs, struct err *err);
/* As source_ops.list_events: appends to lines. */
void pause_list(const char *pattern, bool json, struct buf *lines);

#endif
