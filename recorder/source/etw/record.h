/*
 * One ETW record, as a trace file or a live session delivers it, not interpreted yet; and the clock
 * of its ticks.
 *
 * The file reader (etl/file.h) and the live transport both produce it; all later code (classes,
 * fields, stacks, processes) reads only this struct. Pointers are borrowed for the call. Bytes are
 * little-endian, as in the record.
 *
 * Sources: docs, EVENT_RECORD and EVENT_HEADER; real traces.
 */
#pragma once

#include "base/bytes.h"
#include "base/os.h"

#include <stddef.h>
#include <stdint.h>

#define ETW_ITEMS_MAX 8u                     /* extended items of one record; more are ignored */
#define ETW_ID_UNKNOWN UINT32_MAX            /* the header has no pid or no tid */

/* In the byte order of records: u32, u16 and u16 little-endian, then 8 bytes. */
struct etw_guid {
	uint8_t bytes[16];
};

enum etw_header {
	ETW_CLASSIC,                         /* identified by class GUID and opcode */
	ETW_MANIFEST,                        /* identified by provider GUID and id */
	ETW_MESSAGE,                         /* WPP: identified by GUID or component, and id */
};

/* Extended item: a stack, a related activity, TraceLogging metadata, ... */
struct etw_item {
	uint16_t type;                       /* 1 related activity, 5 and 6 stack, ... */
	uint16_t nbytes;
	const uint8_t *bytes;
};

struct etw_record {
	int64_t ticks;                       /* of the trace's clock */
	uint32_t pid, tid;                   /* of the writer; ETW_ID_UNKNOWN */
	uint16_t cpu;
	uint8_t header;                      /* enum etw_header */
	uint8_t pointer_bytes;               /* 4 or 8; a 64-bit trace has records of both */
	struct etw_guid guid;
	uint16_t id;                         /* ETW_MANIFEST, ETW_MESSAGE */
	uint16_t version;
	uint8_t opcode;
	struct etw_guid activity;            /* of the thread when it wrote; all 0 = none */
	uint32_t nbytes;                     /* of the whole record, header included */
	const uint8_t *payload;
	uint32_t payload_bytes;
	uint32_t nitems;
	struct etw_item items[ETW_ITEMS_MAX];        /* last: few records have any */
};

/* Of the struct, up to its last item. */
static inline size_t etw_record_bytes(const struct etw_record *r)
{
	return offsetof(struct etw_record, items) + r->nitems * sizeof(r->items[0]);
}

/* The number at an offset of the payload; ETW_ID_UNKNOWN when the payload ends before it. */
static inline uint32_t etw_payload_u32(const struct etw_record *r, uint32_t offset)
{
	return le32_or(r->payload, r->payload_bytes, offset, ETW_ID_UNKNOWN);
}

struct etw_clock {
	int64_t t0_ticks;                    /* of the first record */
	uint64_t frequency_hz;               /* never 0 */
};

/* The time since t0 in ns; 0 before t0, UINT64_MAX when it does not fit. */
static inline uint64_t etw_clock_ns(const struct etw_clock *clock, int64_t ticks)
{
	__extension__ typedef unsigned __int128 wide;
	wide v;

	if (ticks <= clock->t0_ticks)
		return 0;
	v = (wide)((uint64_t)ticks - (uint64_t)clock->t0_ticks) * NS_PER_SEC / clock->frequency_hz;
	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}
