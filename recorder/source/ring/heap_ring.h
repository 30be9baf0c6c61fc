/*
 * The ring that librecorder-heap.so shares with `recorder run --heap`: a memfd of the recorder with
 * perf records, as in the kernel's rings. Where it is full or busy, or there is none, the library's
 * probes tell instead, so nothing is lost by it; a probe takes a microsecond more.
 *
 *	struct heap_ring     a page
 *	data                 HEAP_RING_DATA_BYTES; head and tail count bytes and never go back
 *
 * Its only record is PERF_RECORD_SAMPLE as of a probe with stack: perf_record.h. Its identifier is
 * an enum heap_probe; RDI, RSI, RDX are the arguments of that probe. Writers take turns by `busy`,
 * so that records are in order of time. The variable is /proc/PID/fd/N:NONCE of the recorder; a
 * number that was used again is not taken for it. Programs may write anything there: the recorder
 * trusts no byte, and takes it for what threads of this recording tell.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define HEAP_RING_VARIABLE "RECORDER_HEAP_RING"
#define HEAP_RING_PAGE_BYTES 4096u
#define HEAP_RING_DATA_BYTES (4u << 20)

struct heap_ring {
	char unused[1024];                   /* struct perf_event_mmap_page begins so: */
	_Atomic uint64_t head, tail;         /* data_head, data_tail */
	uint64_t nonce;
	/* st_ino of /proc/self/ns/pid and time (or 0) of the recorder: others do not use it */
	uint64_t pid_namespace, time_namespace;
	_Atomic uint32_t busy;
};
