/*
 * What a live ETW session should deliver: kernel events, which of them with stacks, and providers
 * with keywords and level. Read from the options and the rules' needs. Portable, no state; any
 * thread.
 *
 * Spellings are PerfView's:
 *
 *	--providers   PROVIDER[:KEYWORDS[:LEVEL[:KEY=VALUE;...]]],...
 *	              a registered name, a GUID, or *EventSourceName (its GUID is derived);
 *	              KEYWORDS: a number, * or nothing for all; LEVEL: 1 to 5 or a name;
 *	              @StacksEnabled=true, @ProcessIDFilter=1 2, @ProcessNameFilter=a.exe b.exe,
 *	              @EventIDsToEnable=1 2 or @EventIDsToDisable=3, and which come with stacks:
 *	              @EventIDStacksToEnable=1 2 or @EventIDStacksToDisable=3
 *	--kernel-events, --clr-events   names or numbers of keywords, separated by ','
 *
 * Source of flags and class events: "NT Kernel Logger constants" and the MOF classes (docs, ETW);
 * of CLR keywords: ClrEtwAll.man; of the GUID of a name: docs, EventSource (RFC 4122 version 5,
 * UTF-16BE).
 */
#pragma once

#include "base/err.h"
#include "model/capture.h"
#include "model/needs.h"
#include "source/etw/record.h"

#include <stdbool.h>
#include <stddef.h>

#define ETW_WANTED_PROVIDERS_MAX 96u
#define ETW_WANTED_STACKS_MAX 48u
#define ETW_FILTER_PIDS_MAX 8u               /* EVENT_FILTER_TYPE_PID takes no more */
#define ETW_FILTER_IDS_MAX 64u               /* MAX_EVENT_FILTER_EVENT_ID_COUNT */
#define ETW_FILTER_NAMES_BYTES 256u          /* in UTF-16: below MAX_EVENT_FILTER_DATA_SIZE */

/* A list of event ids, to include or to leave out. */
struct etw_ids {
	uint32_t ids[ETW_FILTER_IDS_MAX];
	uint32_t n;                          /* 0 = all events */
	bool are_left_out;                   /* else only these are included */
};

struct etw_wanted_provider {
	char name[PROVIDER_NAME_MAX];
	struct etw_guid guid;
	bool has_guid;                       /* else Windows looks it up by name */
	uint64_t keywords;                   /* any of these; 0 = all */
	uint8_t level;
	bool stacks;                         /* EVENT_ENABLE_PROPERTY_STACK_TRACE */
	uint32_t pids[ETW_FILTER_PIDS_MAX], npids;
	char programs[ETW_FILTER_NAMES_BYTES];       /* "a.exe;b.exe"; "" = all */
	struct etw_ids events, with_stacks;
};

/* A kernel event: CLASSIC_EVENT_ID without its padding. */
struct etw_class_event {
	struct etw_guid guid;
	uint8_t opcode;
};

struct etw_wanted {
	uint32_t kernel_flags;               /* EVENT_TRACE_FLAG_*; 0 = no kernel events */
	struct etw_class_event stacks[ETW_WANTED_STACKS_MAX];
	uint32_t nstacks;
	struct etw_wanted_provider providers[ETW_WANTED_PROVIDERS_MAX];
	uint32_t nproviders;
	bool clr;                            /* has the CLR: request a rundown of running code */
	bool named_stacks;                   /* --providers or --only-providers ask for stacks */
};

/* The kernel flag that samples CPUs. */
#define ETW_FLAG_PROFILE 0x01000000u

/*
 * returns  0; ERR_USAGE with the wrong word and the nearest right ones; ERR_LIMIT
 */
int etw_wanted_read(const struct capture *capture, const struct needs *needs,
		    struct etw_wanted *out, struct err *err);

/* Parse "{e13c0d23-...}", with or without braces, in any case. */
bool etw_guid_read(const char *text, struct etw_guid *out);
/* The default GUID of an EventSource or TraceLogging provider of this name. */
void etw_guid_of_name(const char *name, struct etw_guid *out);

extern const struct etw_guid etw_clr_guid, etw_clr_rundown_guid;
