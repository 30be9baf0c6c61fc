/*
 * Counters of the processor that Windows samples by ("profile sources"): after each so many counted
 * things the kernel writes a PerfInfo/PMCSample, with a stack.
 *
 * Their names are Windows' own, which PerfView writes too: TotalCycles, BranchMispredictions,
 * LLCMisses... Portable, no state.
 *
 * Source: PROFILE_SOURCE_INFO of evntrace.h; docs, TRACE_QUERY_INFO_CLASS.
 *
 *	u32 offset of the next entry (0 = the last), u32 number of the source, u32 least interval,
 *	u32 largest interval, u64 reserved, UTF-16 name with its NUL
 *
 * A PerfInfo/PMCSample (opcode 47, version 2) is a pointer (the instruction), u32 thread, u16
 * number of the source, 2 bytes of nothing.
 * Source: _PERFINFO_PMC_SAMPLE_INFORMATION in the public symbols
 * of Windows 10 1607 to 11; PmcCounterProfile of wmicore.mof.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define ETW_PMC_MAX 8u
#define ETW_PMC_NAME_BYTES 64u
#define ETW_PMC_TIMER 0u                     /* the number of the source of CPU samples */

struct etw_pmc {
	uint32_t id, interval;               /* interval: of those in a list, the least */
	uint32_t interval_max;
	char name[ETW_PMC_NAME_BYTES];
};

struct etw_pmcs {
	struct etw_pmc all[ETW_PMC_MAX];
	uint32_t n;
};

/* Read the entry of a list at *at, which begins at 0. false: there is none, or it is damaged. */
bool etw_pmc_next(const uint8_t *list, size_t n, size_t *at, struct etw_pmc *out);

/*
 * Read "NAME@INTERVAL,NAME:INTERVAL,NAME" against the list of this machine.
 * returns  0; ERR_USAGE with the nearest names, or the bounds of the interval; ERR_UNSUPPORTED
 *          where this machine counts nothing
 */
int etw_pmcs_read(const char *text, const uint8_t *list, size_t n, struct etw_pmcs *out,
		  struct err *err);
/* By its number; NULL = none. */
const struct etw_pmc *etw_pmcs_find(const struct etw_pmcs *counters, uint32_t id);
/* List those whose "cpu-counter/NAME" the pattern (NULL = all) means, a line each. */
void etw_pmc_list(const char *pattern, bool json, const uint8_t *list, size_t n, struct buf *out);
