/*
 * One counter of Windows, to be read again and again: by PDH under its English name, or, where PDH
 * fails (its registry is damaged, as it is on some old servers), by what the system says itself,
 * for the most used ones (system_values_windows.h). One thread at a time per counter.
 *
 * A process that takes over an instance's name is another: it is absent once, so that what the one
 * was at does not count for the other. Source: docs, "Performance Data Helper (PDH)".
 */
#pragma once

#include "base/err.h"
#include "source/counter/poll.h"

#include <stdbool.h>

struct pdh_counter;

/*
 * An instance that does not exist yet is no error.
 *
 * returns  0; ERR_USAGE no such category or counter: the sentence has the nearest; ERR_MEMORY
 */
int pdh_counter_open(const char *name, struct pdh_counter **out, struct err *err);
/* COUNTER_NOT_YET: a rate needs two readings; or it could not be read. */
enum counter_result pdh_counter_read(struct pdh_counter *c, double *value);
/* It comes from the system, not from PDH. */
bool pdh_counter_is_fallback(const struct pdh_counter *c);
void pdh_counter_close(struct pdh_counter *c);    /* NULL allowed */
