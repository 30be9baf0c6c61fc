/*
 * Controls our own ETW session: start, configuration, loss counts, stop. Windows only.
 *
 * The session's name tells its owner (etw/interval_windows.h). So several recorders may run,
 * sessions of killed recorders are recognized, and foreign sessions are never touched.
 * Declarations that mingw-w64 10 lacks are here too.
 *
 * Sources: docs, "Event Tracing Functions", EVENT_TRACE_PROPERTIES, EVENT_FILTER_DESCRIPTOR,
 * TRACE_QUERY_INFO_CLASS; of sessions of heaps: ntwmi.h as published by System Informer
 * (EVENT_TRACE_FLAG_EXT_ITEMS, ETW_EXT_PIDS, ETW_EXT_STACKWALK_FILTER), used as PerfView's
 * TraceEvent does.
 */
#pragma once

#include "base/log.h"
#include "source/etw/wanted.h"

#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>

/* Of LogFileMode: FlushTimer counts milliseconds. */
#define ETW_MODE_MS_FLUSH_TIMER 0x00000010u

#define ETW_FILTER_PIDS 0x80000004u          /* EVENT_FILTER_TYPE_PID */
#define ETW_FILTER_IDS 0x80000200u           /* EVENT_FILTER_TYPE_EVENT_ID */
#define ETW_FILTER_PROGRAMS 0x80000008u      /* EVENT_FILTER_TYPE_EXECUTABLE_NAME */
#define ETW_FILTER_STACKS 0x80001000u        /* EVENT_FILTER_TYPE_STACKWALK */

struct etw_filter_ids {                      /* EVENT_FILTER_EVENT_ID */
	BOOLEAN only_these;
	UCHAR reserved;
	USHORT count;
	USHORT ids[ETW_FILTER_IDS_MAX];
};

_Static_assert(sizeof(EVENT_RECORD) == 112, "EVENT_RECORD");
_Static_assert(sizeof(EVENT_TRACE_LOGFILEW) == 448, "EVENT_TRACE_LOGFILEW");
_Static_assert(sizeof(EVENT_TRACE_PROPERTIES) == 120, "EVENT_TRACE_PROPERTIES");
_Static_assert(sizeof(CLASSIC_EVENT_ID) == 24, "CLASSIC_EVENT_ID");

struct etw_session;

struct etw_losses {
	uint64_t events, buffers;            /* since the session began */
};

/*
 * Load tdh.dll, from the system's folder only, because this program is elevated; NULL = it fails.
 * What asks ETW without a session does so first, too: the tests' ETW stands in for this library.
 */
HMODULE etw_library(void);

/* 0, or ERR_ACCESS with the missing right and what to do. */
int etw_session_probe(struct etw_wanted *wanted, struct err *err);

/* Look up the GUIDs of providers given by name; ERR_NOT_FOUND with the nearest names. */
int etw_session_identify(struct etw_wanted *wanted, struct err *err);

/*
 * Read --cpu-counters (NULL = none) into wanted->counters, against what this machine counts; as
 * etw_pmcs_read().
 */
int etw_session_counters(const char *text, struct etw_wanted *wanted, struct err *err);
/* Append what this machine counts; etw_pmc_list(). */
void etw_session_list_counters(const char *pattern, bool json, struct buf *out);

/*
 * Start the session and enable everything in `wanted`.
 *
 * interval_100ns  between samples, for the whole machine (etw/interval_windows.h) until the session
 *                 stops; becomes the interval that is set, 0 = unknown
 * returns  0; ERR_ACCESS; ERR_LIMIT no room for another session; ERR_BUSY the name is taken;
 *          ERR_UNSUPPORTED; after an error nothing is left behind
 */
int etw_session_start(const struct etw_wanted *wanted, struct log *log, uint32_t *interval_100ns,
		      struct etw_session **out, struct err *err);
/*
 * The same for the events of heaps, which need a session of their own: of one process, or of those
 * that start with TracingFlags (source/list/heap_next.h). Allocations come with stacks.
 *
 * pid  0 = of those that start
 */
int etw_session_start_heap(uint32_t pid, struct etw_session **out, struct err *err);
const wchar_t *etw_session_name(const struct etw_session *s);
/* Any thread: change the interval; as above. On error the old one stays. */
int etw_session_interval(struct etw_session *s, uint32_t *interval_100ns, struct err *err);
/* Any thread. false = the session is gone. */
bool etw_session_losses(struct etw_session *s, struct etw_losses *out);
/* Any thread, also more than once; keeps the last loss counts. NULL allowed. */
void etw_session_stop(struct etw_session *s);
void etw_session_free(struct etw_session *s);     /* stops it; NULL allowed */

/* Stop the sessions of recorders that have ended, and restore their sampling interval. */
int etw_sessions_clear(uint32_t *n, struct err *err);

/*
 * Convert an EVENT_RECORD of ProcessTrace(); borrows its payload and items. The session must
 * deliver raw timestamps.
 */
void etw_record_of(const EVENT_RECORD *event, struct etw_record *out);
