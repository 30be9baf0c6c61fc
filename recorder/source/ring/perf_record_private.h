/* Parts of records, shared by perf_record.c (our own rings) and perf_layout.c (files). */
#pragma once

#include "base/bytes.h"
#include "source/ring/perf_record.h"

/* From include/uapi/linux/perf_event.h, repeated here so that this builds on every host. */
enum {
	RECORD_MMAP = 1,
	RECORD_LOST = 2,
	RECORD_COMM = 3,
	RECORD_EXIT = 4,
	RECORD_THROTTLE = 5,
	RECORD_FORK = 7,
	RECORD_SAMPLE = 9,
	RECORD_MMAP2 = 10,
	RECORD_LOST_SAMPLES = 13,
	RECORD_SWITCH_CPU_WIDE = 15,
	RECORD_KSYMBOL = 17,
};

#define PERF_HEADER_BYTES 8u
#define PERF_MISC_MMAP_BUILD_ID 0x4000u

/* Each reads its part of a sample at the cursor; false when it is damaged. */
bool perf_read_chain(struct cursor *c, struct perf_record *out);
bool perf_read_regs(struct cursor *c, unsigned nregs, struct perf_record *out);
/* The ring holds the full copy. The size of its valid part follows it, unless the copy is empty. */
bool perf_read_stack(struct cursor *c, struct perf_record *out);
/*
 * Of other records the body, which has a fixed size; what follows it is a text or unknown. c ends
 * before the trailer.
 */
bool perf_read_body(struct cursor *c, unsigned type, unsigned misc, struct perf_record *out);
