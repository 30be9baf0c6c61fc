/*
 * Values of the most used counters from documented functions of Windows, for machines where PDH
 * fails: processor, memory, processes, the system. Names are PDH's; one thread at a time per value.
 *
 * Source: docs: GetSystemTimes(), GlobalMemoryStatusEx(), GetPerformanceInfo(), Tool Help,
 * GetProcessMemoryInfo(), GetProcessTimes(). Processes that this user may not open count with what
 * Tool Help says of them only.
 */
#pragma once

#include "source/counter/pdh_name.h"

struct system_value;

/* 0; ERR_NOT_FOUND: it is none of them, err untouched; ERR_MEMORY */
int system_value_open(const struct pdh_name *name, struct system_value **out, struct err *err);
/* enum counter_result */
int system_value_read(struct system_value *v, double *value);
void system_value_close(struct system_value *v);  /* NULL allowed */
