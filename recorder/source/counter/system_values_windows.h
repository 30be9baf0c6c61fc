/*
 * Values of the most used counters from documented functions of Windows, for machines where PDH
 * fails: processor, memory, processes, the system. Names are PDH's. One thread at a time per value.
 *
 * Source: docs: GetSystemTimes(), GlobalMemoryStatusEx(), GetPerformanceInfo(), Tool Help,
 * GetProcessMemoryInfo(), GetProcessTimes(). Processes that this user may not open count only with
 * what Tool Help reports.
 */
#pragma once

#include "source/counter/pdh_name.h"

struct system_value;

/* returns  0; ERR_NOT_FOUND: not one of these counters, err untouched; ERR_MEMORY */
int system_value_open(const struct pdh_name *name, struct system_value **out, struct err *err);
/* returns  an enum counter_result */
int system_value_read(struct system_value *v, double *value);
void system_value_close(struct system_value *v);  /* NULL allowed */
