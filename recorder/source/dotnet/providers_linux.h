/*
 * Which providers of rules are .NET's on Linux, and whether rules on them can fire. Any thread that
 * may wait for files.
 */
#pragma once

#include "base/buf.h"
#include "model/needs.h"

#include <stdbool.h>

#define DOTNET_CLR "Microsoft-Windows-DotNETRuntime"

/* Whether this names an EventSource or the runtime; other names are Windows' or the kernel's. */
bool dotnet_provider_is(const char *name);
/* Programs know providers by name only, and tell upper from lower case. */
const char *dotnet_provider_exact(const char *name);
/*
 * Whether an EventSource that --providers names is neither .NET's own nor of a program that runs
 * now, which may take a second to see; appends a sentence with the nearest names.
 */
bool dotnet_asked_unknown(const char *name, struct buf *out);
/* The slot check of source_ops. */
int dotnet_providers_check(const struct needs *needs, struct err *err);
