/*
 * One counter of Windows, to be read repeatedly: by PDH under its English name. Where PDH fails
 * (its registry is damaged, as on some old servers), the most used counters come from the system
 * directly (system_values_windows.h). One thread at a time per counter.
 *
 * If another process takes over an instance's name, the counter is absent once, so that the two
 * processes are not mixed up. Source: docs, "Performance Data Helper (PDH)".
 */
#pragma once

#include "base/err.h"
#include "source/counter/poll.h"

#include <stdbool.h>

struct pdh_counter;

/*
 * An instance that does not exist yet is not an error.
 *
 * returns  0; ERR_USAGE no such category or counter: the error names the nearest; ERR_MEMORY
 */
int pdh_counter_open(const char *name, struct pdh_counter **out, struct err *err);
/* COUNTER_NOT_YET: a rate needs two readings, or the reading failed. */
enum counter_result pdh_counter_read(struct pdh_counter *c, double *value);
/* Whether the values come from the system instead of PDH. */
bool pdh_counter_is_fallback(const struct pdh_counter *c);
void pdh_counter_close(struct pdh_counter *c);    /* NULL allowed */
