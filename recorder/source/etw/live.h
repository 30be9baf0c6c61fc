/*
 * A live ETW session's records, decoded: what etl.c does for a file, in one pass, as they come.
 *
 * The transport (etw_windows.c) puts each record in the order in which the system gives them. A record
 * waits ETW_STACKS_WAIT_MS of their time for its stack, then becomes an event. Code, processes and
 * names are learned at once, so an event knows also what was told right behind it.
 *
 * Any thread; one lock for all. Nothing here waits: what does not fit into the queue is lost, and
 * counted by it. Processes that have ended and code that is gone are forgotten by etw_live_trim(), so
 * that months of them take no memory.
 */
#ifndef SOURCE_ETW_LIVE_H
#define SOURCE_ETW_LIVE_H

#include "source/etw/events.h"

#define ETW_LIVE_KEEP_NS (120 * NS_PER_SEC)
#define ETW_LIVE_TRIM_BYTES ((size_t)16 << 20)       /* more than twice what was left last, and this */

struct etw_live;

struct etw_live_counts {
	uint64_t records, delivered, idle;   /* idle: samples of idle CPUs, not kept */
	uint64_t lost;                       /* as etw_live_lost() was told */
	uint64_t no_user;                    /* stacks whose user part did not come in time */
	uint64_t refused;                    /* by tables that were full */
	uint32_t interval_100ns;             /* between samples that are delivered now */
	size_t bytes;
};

/* frequency_hz: of the records' ticks, which the recorder's clock counts too, from the same 0. */
int etw_live_open(const struct source_config *cfg, uint64_t frequency_hz, struct etw_live **out,
		  struct err *err);
void etw_live_close(struct etw_live *l);          /* NULL allowed */

/* A path prefix as the kernel writes it, and as people do: "\Device\HarddiskVolume2\", "C:\". */
void etw_live_volume(struct etw_live *l, const char *nt, const char *dos);

/* How often samples are taken, until a record says it; 0 = as Windows does unless asked: every ms. */
void etw_live_interval(struct etw_live *l, uint32_t interval_100ns);
/*
 * The same from that moment on, asked by source_ops.set_level: samples from it on weigh so much, and
 * EVENT_RATE without a name stands in front of them. The moment is now or a little ago.
 */
void etw_live_level(struct etw_live *l, int64_t ticks, uint32_t interval_100ns);
/* A CPU was busy so long until that moment, since it was said last: samples are expected for it. */
void etw_live_busy(struct etw_live *l, int64_t ticks, unsigned cpu, uint64_t busy_ns);
void etw_live_put(struct etw_live *l, const struct etw_record *record);
/* No record older than this follows, although none has come. */
void etw_live_time(struct etw_live *l, int64_t ticks);
/* About once a second: when much is known, forget what ended over ETW_LIVE_KEEP_NS ago. */
void etw_live_trim(struct etw_live *l);
/* About once a second: so many records were lost since the last call; 0 as well. */
void etw_live_lost(struct etw_live *l, uint64_t n);
/* Whether nothing tells what the fields of records like this are; true once for each kind. */
bool etw_live_wants_schema(struct etw_live *l, const struct etw_record *record);
/* TRACE_EVENT_INFO of an event, as the system gives it: the layout of its fields. */
void etw_live_schema(struct etw_live *l, const void *info, size_t n);
/* No record follows. */
void etw_live_end(struct etw_live *l);

bool etw_live_name(struct etw_live *l, const struct frame *frame, struct symbol *out);
void etw_live_counts(struct etw_live *l, struct etw_live_counts *out);

#endif
