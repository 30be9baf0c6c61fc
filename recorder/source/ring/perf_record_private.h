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
	RECORD_WAKE = PERF_RECORD_WAKE,
};

#define PERF_HEADER_BYTES 8u
#define PERF_MISC_MMAP_BUILD_ID 0x4000u

/*
 * The bytes of a record up to its trailer's end. Of a kernel symbol they are fewer than its header
 * says where several programs record such symbols: kernels add the trailer's size for each of them
 * to the same header (kernel/events/core.c, perf_event_ksymbol_output(); 6.18 still does), and what
 * follows the trailer is what stood in the ring before.
 */
size_t perf_record_length(const void *bytes, size_t n, size_t trailer_bytes);

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
