/*
 * Real traces of Windows, which are not in the repository; a test without its trace skips and says
 * so.
 */
#pragma once

#include "source/etl/file.h"

#define TRACES "../shared/data/etl/"

/* Its path, until the next call; skips the test when it is not there. */
const char *real_trace(const char *name);
/* Open; a trace that is there must be good. */
struct etl_file *real_trace_open(const char *name);
