/*
 * Decodes the records of a live ETW session: the work of etl.c for a file, but in one pass.
 *
 * The transport (etw_windows.c) puts records in the order in which Windows delivers them. A record
 * waits for its stack for ETW_STACKS_WAIT_MS of record time, then becomes an event. Code, processes
 * and names are learned at once, so an event may use what a record shortly after it says.
 *
 * Any thread; one lock guards everything. Nothing here waits: events that do not fit into the
 * queue are lost, and the queue counts them. etw_live_trim() forgets ended processes and unloaded
 * code, so that memory stays bounded over months.
 */
#pragma once

#include "source/etw/events.h"

#define ETW_LIVE_KEEP_NS (120 * NS_PER_SEC)
#define ETW_LIVE_TRIM_BYTES ((size_t)16 << 20)       /* trim at twice the last size plus this */

#define ETW_LIVE_LAG_S 2u

struct etw_live;

struct etw_live_counts {
	uint64_t delivered;
	uint64_t lost;                       /* sum of etw_live_lost() */
	uint64_t no_user;                    /* stacks whose user part did not come in time */
	uint32_t interval_100ns;             /* between samples delivered now */
	size_t bytes;                        /* of all tables */
};

/*
 * frequency_hz: of the records' ticks; the recorder's clock counts the same ticks from the same
 * 0.
 */
int etw_live_open(const struct source_config *cfg, uint64_t frequency_hz, struct etw_live **out,
		  struct err *err);
void etw_live_close(struct etw_live *l);          /* NULL allowed */

/* What rules want; before the first record. */
void etw_live_needs(struct etw_live *l, const struct needs *needs);
/* Add a volume: a path prefix of the kernel and of DOS, "\Device\HarddiskVolume2\" and "C:\". */
void etw_live_volume(struct etw_live *l, const char *nt, const char *dos);

/* How often samples are taken, until a record says so; 0 = Windows' default, every ms. */
void etw_live_interval(struct etw_live *l, uint32_t interval_100ns);
/* The counters of the processor that the session samples by; before the first record. */
void etw_live_counters(struct etw_live *l, const struct etw_pmcs *counters);
/* The session has the keyword of survivals (gc_objects.h); before the first record. */
void etw_live_objects(struct etw_live *l);
/*
 * source_ops.set_level changed the interval at this time, which is now or shortly before. Later
 * samples have the new weight, and an EVENT_RATE without a name precedes them.
 */
void etw_live_level(struct etw_live *l, int64_t ticks, uint32_t interval_100ns);
/*
 * A CPU was busy for busy_ns from the last call for it to this time: so many samples are
 * expected.
 */
void etw_live_busy(struct etw_live *l, int64_t ticks, unsigned cpu, uint64_t busy_ns);
void etw_live_put(struct etw_live *l, const struct etw_record *record);
/*
 * The same of a second session, of heaps, once etw_live_heap() has prepared for it (0, ERR_MEMORY).
 * It may lag behind the first one by ETW_LIVE_LAG_S: each has its own stacks that wait.
 */
int etw_live_heap(struct etw_live *l, struct err *err);
void etw_live_put_heap(struct etw_live *l, const struct etw_record *record);
/* No record has come, but none older than this follows. */
void etw_live_time(struct etw_live *l, int64_t ticks);
/* About once a second: when the tables are large, forget what ended over ETW_LIVE_KEEP_NS ago. */
void etw_live_trim(struct etw_live *l);
/* About once a second: n records, or none, were lost since the last call. */
void etw_live_lost(struct etw_live *l, uint64_t n);
/* Whether the fields of such records are unknown; true only once for each kind. */
bool etw_live_wants_schema(struct etw_live *l, const struct etw_record *record);
/* Take a TRACE_EVENT_INFO of Windows: the layout of an event's fields. */
void etw_live_schema(struct etw_live *l, const void *info, size_t n);
/* After the last record. */
void etw_live_end(struct etw_live *l);

bool etw_live_name(struct etw_live *l, const struct frame *frame, struct symbol *out);
void etw_live_counts(struct etw_live *l, struct etw_live_counts *out);
