/*
 * The records inside a buffer of a trace: their headers, taken off.
 *
 * A buffer's payload is a row of records, each starting at a multiple of 8 bytes, with one of the
 * headers of enum etl_kind. etl_record_head() says where one ends and when it was written, which is
 * what the merge of the CPUs' streams needs; etl_record_parse() gives the whole record.
 *
 * Any bytes are safe; nothing is allocated; pointers of a record lead into the payload. Any thread.
 * Source: design page etl-format.md sections 2, 4 and 8; COMPACT, INSTANCE and MESSAGE headers and
 * PERFINFO's counters come from documents only, no trace at hand has them.
 */
#ifndef SOURCE_ETL_RECORDS_H
#define SOURCE_ETL_RECORDS_H

#include "source/etw/record.h"

#include <stdbool.h>
#include <stddef.h>

enum etl_kind {
	ETL_SYSTEM32, ETL_SYSTEM64, ETL_COMPACT32, ETL_COMPACT64, ETL_PERFINFO32, ETL_PERFINFO64,
	ETL_FULL32, ETL_FULL64, ETL_INSTANCE32, ETL_INSTANCE64, ETL_EVENT32, ETL_EVENT64,
	ETL_MESSAGE,
	ETL_KINDS
};

extern const char *const etl_kind_names[ETL_KINDS];      /* "SYSTEM32", ... */

struct etl_head {
	enum etl_kind kind;
	uint32_t nbytes;                     /* of the whole record, at least its header */
	bool has_ticks;                      /* a MESSAGE may have none */
	int64_t ticks;
};

enum etl_step {
	ETL_STEP_RECORD,
	ETL_STEP_END,                        /* the end mark, or nothing left */
	ETL_STEP_CUT,                        /* what is there starts a record that goes on further */
	ETL_STEP_BAD,                        /* no known header, or a size that cannot be */
};

/* The record at `at`, of which n bytes are left in the payload. */
enum etl_step etl_record_head(const uint8_t *at, size_t n, struct etl_head *out);

/* From one record to the next. */
static inline size_t etl_record_stride(const struct etl_head *head)
{
	return ((size_t)head->nbytes + 7) & ~(size_t)7;
}

/*
 * The record that etl_record_head() found there. A MESSAGE without a time gets head->ticks as it is.
 *
 * returns  false when its extended items do not fit into it: then it has those before the bad one,
 *          and no payload
 */
bool etl_record_parse(const uint8_t *at, const struct etl_head *head, uint16_t cpu,
		      struct etw_record *out);

/*
 * The class GUID of a kernel record, whose header has a group in its place. Image Load comes with the
 * group of processes and opcode 10 and gets the GUID of images. Groups that no table names give
 * a GUID of zeros but for bytes[15], which is the group.
 */
void etl_kernel_class(uint8_t group, uint8_t opcode, struct etw_guid *out);

#endif
