/*
 * Parse the records inside a buffer of a trace.
 *
 * A buffer's payload is a row of records, each starting at a multiple of 8 bytes with one of the
 * headers of enum etl_kind. etl_record_head() gives a record's end and time, all that the merge of
 * the CPUs' streams needs; etl_record_parse() gives the whole record.
 *
 * Any bytes are safe. Nothing is allocated: a record points into the payload. Any thread.
 * Sources: EVENT_TRACE_HEADER and EVENT_HEADER (docs, ETW), and real traces. COMPACT, INSTANCE and
 * MESSAGE headers and PERFINFO's counters come from documents only; no available trace has them.
 */
#pragma once

#include "source/etw/record.h"

#include <stdbool.h>
#include <stddef.h>

enum etl_kind {                              /* those with pointers of 8 bytes are odd */
	ETL_SYSTEM32, ETL_SYSTEM64, ETL_COMPACT32, ETL_COMPACT64, ETL_PERFINFO32, ETL_PERFINFO64,
	ETL_FULL32, ETL_FULL64, ETL_INSTANCE32, ETL_INSTANCE64, ETL_EVENT32, ETL_EVENT64,
	ETL_MESSAGE,
	ETL_KINDS
};

struct etl_head {
	enum etl_kind kind;
	uint32_t nbytes;                     /* of the whole record, at least its header */
	bool has_ticks;                      /* a MESSAGE may have none */
	int64_t ticks;
};

enum etl_step {
	ETL_STEP_RECORD,
	ETL_STEP_END,                        /* the end mark, or nothing left */
	ETL_STEP_CUT,                        /* a record starts there, but ends beyond the bytes */
	ETL_STEP_BAD,                        /* an unknown header or an impossible size */
};

/* The head of the record at `at`; the payload has n bytes from there on. */
enum etl_step etl_record_head(const uint8_t *at, size_t n, struct etl_head *out);

/* The distance from this record to the next. */
static inline size_t etl_record_stride(const struct etl_head *head)
{
	return ((size_t)head->nbytes + 7) & ~(size_t)7;
}

/*
 * Parse the record that etl_record_head() found. A MESSAGE without a time gets head->ticks.
 *
 * returns  false when an extended item does not fit into the record, which then has the items
 *          before it and no payload
 */
bool etl_record_parse(const uint8_t *at, const struct etl_head *head, uint16_t cpu,
		      struct etw_record *out);

/*
 * The class GUID of a kernel record, whose header has a group instead. Image Load comes with the
 * group of processes and opcode 10; it gets the GUID of images. An unknown group gives a GUID of
 * zeros with the group in bytes[15].
 */
void etl_kernel_class(uint8_t group, uint8_t opcode, struct etw_guid *out);
