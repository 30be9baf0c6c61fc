/*
 * Lists the events that rules can name: those of the .NET runtime, and the garbage collections of
 * other runtimes (pause_list.h). See source_ops.list_events. Portable.
 */
#pragma once

#include "base/err.h"
#include "base/out.h"

#include <stdbool.h>

int dotnet_list_events(const char *pattern, bool json, struct out *out, struct err *err);
