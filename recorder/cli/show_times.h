/*
 * Where the time of threads went (--thread-time), for show: sums over the samples of stream
 * off-cpu, whose leaf says how each was spent.
 */
#pragma once

#include "base/json.h"
#include "model/incident.h"

/* A line "Times"; nothing where context switches were not recorded. */
void times_put(const struct incident *in, struct buf *out);
/* The same as key "thread_time" of the open object; nothing likewise. */
void times_json(const struct incident *in, struct json *j);
