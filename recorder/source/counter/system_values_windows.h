/*
 * Values of the most used counters from documented functions of Windows, for machines where PDH
 * fails: processor, memory, processes, the system. Names are PDH's, formulas those of proc_table.h.
 * One thread at a time per value.
 *
 * Source: docs: GetSystemTimes(), GlobalMemoryStatusEx(), GetPerformanceInfo(), Tool Help,
 * GetProcessMemoryInfo(), GetProcessTimes(). Processes that this user may not open count only with
 * what Tool Help reports.
 */
#pragma once

#include "source/counter/pdh_name.h"
#include "source/counter/proc_table.h"

struct system_value {
	const struct pdh_name *name;         /* borrowed */
	const struct counter_def *def;       /* NULL: this is not open */
	enum proc_category_id category;
	struct counter_raw before;
};

/* false: it is not one of these counters. */
bool system_value_open(struct system_value *v, const struct pdh_name *name);
enum counter_result system_value_read(struct system_value *v, double *value);
