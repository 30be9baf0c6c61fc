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
 *	              "Windows Kernel:KEYWORDS" as in --kernel-events, nothing for Default;
 *	              "Windows Kernel/DiskIO/Read" for what this event needs
 *	--kernel-events, --clr-events, --tpl-events
 *	              names or numbers of keywords, separated by ',', '+', '|' or ' '
 *	--event       kernel:KEYWORD or kernel:DiskIO/Read, clr:KEYWORD or clr:KEYWORD:GC/Start;
 *	              separated by ','
 *	--clr-event-level   of --clr-events and --tpl-events: 1 to 5 or a name
 *
 * A rule brings its provider; on the kernel, the flags of its events.
 *
 * Source of flags and groups: "NT Kernel Logger constants" (docs, ETW), PerfView's guide and
 * TraceEvent's KernelTraceEventParser.Keywords; of CLR keywords: ClrEtwAll.man, and the guide for
 * Default; of those of tasks: .NET's TplEventSource; of the GUID of a name: docs, EventSource (RFC
 * 4122 version 5, UTF-16BE).
 */
#pragma once

#include "base/err.h"
#include "model/capture.h"
#include "model/needs.h"
#include "source/etw/kernel.h"
#include "source/etw/pmc.h"

#include <stdbool.h>
#include <stddef.h>

#define ETW_WANTED_PROVIDERS_MAX 96u
#define ETW_WANTED_STACKS_MAX 96u            /* PerfView's ceiling too */
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

struct etw_wanted {
	uint32_t kernel_flags;               /* EVENT_TRACE_FLAG_*; 0 = no kernel events */
	struct etw_class_event stacks[ETW_WANTED_STACKS_MAX];
	uint32_t nstacks;
	struct etw_wanted_provider providers[ETW_WANTED_PROVIDERS_MAX];
	uint32_t nproviders;
	bool clr;                            /* has the CLR: request a rundown of running code */
	struct etw_pmcs counters;            /* for the session to fill in: --cpu-counters */
	bool named_stacks;                   /* --providers or --only-providers ask for stacks */
};

/*
 * returns  0; ERR_USAGE with the wrong word and the nearest right ones; ERR_LIMIT
 */
int etw_wanted_read(const struct capture *capture, const struct needs *needs,
		    struct etw_wanted *out, struct err *err);

/* Whether .NET tells which objects survive collections. */
bool etw_wanted_objects(const struct etw_wanted *wanted);
/*
 * The providers alone that options name, and the kernel's flags: for hosts without sessions, where
 * .NET programs have some of them. Texts as in *capture.
 */
int etw_wanted_named(const struct capture *capture, struct etw_wanted *out, struct err *err);
/* Read "@StacksEnabled=true;@ProcessIDFilter=1 2" into *p; spec: for the error. */
int etw_wanted_keys(struct etw_wanted_provider *p, const char *keys, const char *spec,
		    struct err *err);
/* Add the flag or group of flags of this name, as in --kernel-events. */
int etw_wanted_kernel_keyword(const char *option, const char *word, uint64_t *flags,
			      struct err *err);

/* Parse "{e13c0d23-...}", with or without braces, in any case. */
bool etw_guid_read(const char *text, struct etw_guid *out);
/* The default GUID of an EventSource or TraceLogging provider of this name. */
void etw_guid_of_name(const char *name, struct etw_guid *out);

extern const struct etw_guid etw_clr_guid, etw_clr_rundown_guid;
