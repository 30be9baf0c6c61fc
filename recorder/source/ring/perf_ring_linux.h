/*
 * Perf event rings of the kernel: two per CPU, one for samples, one for side-band records, so that
 * a flood of samples cannot drop what says which process and mapping they belong to.
 *
 * The protocol is that of perf_event_open(2), "MMAP layout": load data_head with acquire, read, store
 * data_tail with release. All functions belong to the source's thread.
 */
#ifndef SOURCE_PERF_RING_LINUX_H
#define SOURCE_PERF_RING_LINUX_H

#include "base/err.h"
#include "source/ring/perf_record.h"

#define PERF_SAMPLE_RING_BYTES ((size_t)2 << 20)
#define PERF_STACK_RING_BYTES ((size_t)4 << 20)   /* with stack copies, at least and at most */
#define PERF_STACK_RING_MAX_BYTES ((size_t)16 << 20)
#define PERF_SIDEBAND_RING_BYTES ((size_t)512 << 10)

struct perf_ring {
	int fd;                              /* -1 = closed */
	unsigned cpu;
	bool sideband, probes;
	uint8_t probes_at;                   /* which of a CPU's rings of probes */
	void *map;
	size_t page_bytes, data_bytes;       /* data follow the first page */
	uint64_t head, tail;                 /* between them: what may be read now */
	bool have;                           /* `record` is the oldest that was not consumed */
	size_t record_bytes;
	struct perf_record record;
	uint64_t damaged;                    /* records that did not parse, and... */
	uint64_t untold;                     /* ...those of which perf_ring_peek() has not told yet */
	uint64_t *scratch;                   /* for a record that wraps; PERF_RECORD_MAX_BYTES */
};

struct perf_ask {
	unsigned freq_hz;
	bool kernel_stacks;
	unsigned stack_kb;                   /* copy of the user stack; 0 = the kernel's frame pointers */
	size_t stack_ring_bytes;             /* of samplers that copy stacks, also after a step down */
	bool build_ids, ksymbols;            /* cleared by the first open on a kernel without them */
};

/*
 * For half a second of samples of a busy CPU, from each of which the kernel takes the whole size of the
 * copy; 32 KiB at 99 Hz are 3.2 MB/s. Tables that are being loaded and a busy machine keep samples waiting: at
 * 499 Hz 4 MiB lost 1 to 2 % of them (two CPUs, load average 25, make bench-stacks), 8 MiB none.
 */
size_t perf_stack_ring_bytes(unsigned freq_hz, unsigned stack_kb);

/* Open disabled and map it. ERR_NOT_FOUND: the CPU is offline; ERR_ACCESS: a privilege is missing. */
int perf_ring_open(struct perf_ring *ring, unsigned cpu, bool sideband, struct perf_ask *ask,
		   struct err *err);
/*
 * A ring for probes, whose events are sent to it by perf_ring_redirect(): what its records look like is
 * up to them. Its own event never happens, but once enabled tells of context switches, if these are wanted.
 */
int perf_ring_open_probes(struct perf_ring *ring, unsigned cpu, uint8_t at, size_t data_bytes, bool switches,
			  struct err *err);
/* Let the event of a descriptor write into this ring; of the same CPU. 0 or an errno. */
int perf_ring_redirect(const struct perf_ring *ring, int fd);
void perf_ring_close(struct perf_ring *ring);
int perf_ring_enable(struct perf_ring *ring, bool on);

struct perf_event_attr;
/* What all events here have in common: the clock, the trailer of records; disabled. */
void perf_attr_common(struct perf_event_attr *attr);
/* perf_event_open() of all tasks on a CPU, disabled; a descriptor, or -1 and errno. */
int perf_event_fd(struct perf_event_attr *attr, unsigned cpu);

/* Samplers: another time between two samples, from now on; counting starts anew. 0 or an errno. */
int perf_ring_set_period(struct perf_ring *ring, uint64_t period_ns);

/* Look at what the kernel has written by now. */
void perf_ring_refresh(struct perf_ring *ring);
/*
 * The oldest record, or NULL; good until perf_ring_next(). Behind records that did not parse comes one of kind
 * PERF_KIND_LOST with their number, as of the kernel; at least one where the rest of the ring had to be dropped.
 */
const struct perf_record *perf_ring_peek(struct perf_ring *ring, const struct perf_format *format);
void perf_ring_next(struct perf_ring *ring);

/* Whether system-wide sampling is allowed; the sentence says what to set. */
int perf_probe(const struct perf_ask *ask, struct err *err);

/* RAX ... RIP and R8 to R15, in perf's order (asm/perf_regs.h). */
#define PERF_REGS_MASK 0xff01ffu
#define PERF_REGS_COUNT 17u

/* The number of samples a second that the kernel allows at most; 0 = unknown. */
unsigned perf_max_rate(void);

#endif
