/*
 * Whether rules on events whose names are known can come true: those of the .NET runtime, which are
 * the same on Windows and Linux, and those of Windows' kernel. Portable and pure; any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "model/needs.h"

/*
 * Check the events that rules name: that the provider has them, that they have the fields, and for
 * .NET that keywords and level bring them. Newer runtimes may have more events; those are named by
 * number, EventID(39), and not checked.
 *
 * returns  0; ERR_USAGE with the nearest names
 */
int etw_known_check(const struct needs *needs, struct err *err);

/* Whether this is the .NET runtime, by name or GUID. */
bool etw_is_clr(const char *provider);
