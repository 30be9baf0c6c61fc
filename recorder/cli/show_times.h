/*
 * For show: where the threads' time went (--thread-time), summed over the samples of stream
 * off-cpu. Each sample's leaf says how its time was spent.
 */
#pragma once

#include "listing/sheet.h"
#include "model/incident.h"

/*
 * A line "Times", or with --json the key "thread_time" of the open object; nothing where context
 * switches were not recorded.
 */
void times_put(const struct incident *in, struct sheet *p);
