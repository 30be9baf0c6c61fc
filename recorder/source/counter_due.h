/*
 * Counters that are told at their own periods, on a grid: a time that was missed is not made up
 * for. What the sources of counters share. No state, any thread.
 */
#pragma once

#include "model/event.h"
#include "model/needs.h"

#define COUNTER_PERIOD_DEFAULT_NS 1000000000ULL

/* A copy with a period. */
struct need_counter counter_need(const struct need_counter *need);

/* Whether it is due at now_ns; *next_ns, which is not 0, is then the next time. */
bool counter_due(uint64_t *next_ns, uint64_t period_ns, uint64_t now_ns);

/* The event without its value; set value, or EVENT_FLAG_ABSENT in flags. Borrows the name. */
struct event counter_event(const struct need_counter *need, uint64_t time_ns);
