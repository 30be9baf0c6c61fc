/*
 * Records of any perf event, laid out as its attributes say: those of other programs' files, where
 * perf_record.h knows only those of our own rings.
 *
 *	SAMPLE      header; then of these what sample_type asks for, in this order: identifier, ip,
 *	            pid/tid, time, addr, id, stream id, cpu, period, read values, call chain, raw
 *	            data, branches, user registers, user stack (what follows is not read)
 *	all others  header; body; with sample_id_all a trailer: pid/tid, time, id, stream id, cpu,
 *	            identifier, of 8 bytes each
 *
 * Source: perf_event_open(2), include/uapi/linux/perf_event.h. Portable; bytes are not trusted.
 */
#pragma once

#include "base/err.h"
#include "source/ring/perf_record.h"

#define PERF_ATTR_MIN_BYTES 64u              /* PERF_ATTR_SIZE_VER0 */
#define PERF_ATTR_MAX_BYTES 4096u
#define PERF_ATTR_TRACEPOINT 2u              /* its type; config is the tracepoint's number */

struct perf_layout {
	uint64_t sample_type, read_format, branch_type;
	uint64_t regs_mask;                  /* of user registers */
	bool sample_id_all;
	bool build_ids;                      /* mappings come with them */
};

/* What is said about an event: struct perf_event_attr. */
struct perf_attr {
	uint32_t type;                       /* 0 hardware, 1 software, 2 tracepoint, ... */
	uint64_t config;
	uint64_t period;                     /* between samples, or their rate a second: */
	bool is_rate;
	struct perf_layout layout;
};

/* ERR_FORMAT: it is too short, or not one */
int perf_attr_read(const void *bytes, size_t n, struct perf_attr *out, struct err *err);

/*
 * The time of a record of n bytes, and the id of its event; for a sample the first 128 bytes do.
 * returns  false when the record has none
 */
bool perf_layout_time(const struct perf_layout *layout, const void *bytes, size_t n, uint64_t *out);
bool perf_layout_id(const struct perf_layout *layout, const void *bytes, size_t n, uint64_t *out);
/* The period of a sample, 0 where it tells none; false: it is no sample, or cut. */
bool perf_layout_period(const struct perf_layout *layout, const void *bytes, size_t n,
			uint64_t *out);

/*
 * Parse one record of n bytes, 8-byte aligned. n is the size in the record's header. Pointers in
 * out point into bytes. What a record does not tell is 0; a CPU, UINT32_MAX.
 *
 * returns  false when the record is damaged
 */
bool perf_layout_parse(const void *bytes, size_t n, const struct perf_layout *layout,
		       struct perf_record *out);
