/*
 * Lists the events of Windows that rules can name: those of the kernel (etw/kernel.h) and of .NET.
 * Other providers are 'logman query providers'. Pure, any thread.
 */
#pragma once

#include "base/err.h"
#include "base/out.h"

#include <stdbool.h>

/* As source_ops.list_events. */
int etw_list_events(const char *pattern, bool json, struct out *out, struct err *err);
