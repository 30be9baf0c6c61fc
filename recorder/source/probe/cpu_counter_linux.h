/*
 * Counters of the processor (PMU) and of the kernel's scheduler and memory, as events: one of every
 * PERIOD counted things is recorded with the stack that caused it.
 *
 * A name is one that perf has (cycles, cache-misses, L1-dcache-load-misses, page-faults), or rUUEE:
 * event EE with unit mask UU of the processor's manual. "NAME@PERIOD", or "NAME:PERIOD" as PerfView
 * writes it; without a period, a usual one.
 *
 * Any thread. Source: perf_event_open(2), include/uapi/linux/perf_event.h.
 */
#pragma once

#include "base/err.h"
#include "base/out.h"
#include "source/source.h"

#include <stdbool.h>
#include <stdint.h>

#define CPU_COUNTER_NAME_MAX 64

struct cpu_counter {
	char name[CPU_COUNTER_NAME_MAX];     /* without the period */
	uint32_t type;                       /* of perf_event_attr; 0 is the hardware's */
	uint64_t config, period;
};

bool cpu_counter_provider(const char *provider);

/*
 * Read a name and check that this machine counts it.
 * returns  0; ERR_USAGE for an unknown name (the error gives the nearest ones) or period;
 *          ERR_UNSUPPORTED where this machine does not count it
 */
int cpu_counter_find(const char *text, struct cpu_counter *out, struct err *err);

/* List all, with their usual periods, and whether this machine counts them. */
void cpu_counter_list(bool json, struct out *out);
