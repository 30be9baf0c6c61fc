/*
 * The kernel's perf event rings. Each CPU has one for samples and one for side-band records, so
 * that a flood of samples cannot push out the records that say which process and mapping they
 * belong to.
 *
 * The protocol is perf_event_open(2), "MMAP layout": load data_head with acquire, read, store
 * data_tail with release. The source's thread only.
 */
#pragma once

#include "base/err.h"
#include "source/ring/perf_record.h"

#define PERF_SAMPLE_RING_BYTES ((size_t)2 << 20)
#define PERF_STACK_RING_BYTES ((size_t)4 << 20)   /* with stack copies, at least and at most */
#define PERF_STACK_RING_MAX_BYTES ((size_t)16 << 20)
#define PERF_STACK_RINGS_BYTES ((size_t)128 << 20) /* of all CPUs, or more of the least */
#define PERF_STACK_RING_LEAST_BYTES ((size_t)512 << 10)
/* The same where most samples are short; for each CPU more, up to the most. */
#define PERF_SHORT_RINGS_BYTES ((size_t)16 << 20)
#define PERF_SHORT_RINGS_MORE_BYTES ((size_t)256 << 10)
#define PERF_SHORT_RINGS_MAX_BYTES ((size_t)32 << 20)
#define PERF_SHORT_RING_LEAST_BYTES ((size_t)128 << 10)
#define PERF_SHORT_SAMPLE_BYTES 2048u             /* of most programs: 1 to 3 KB */
/* Of a CPU, of all, and of a CPU if there are many. */
#define PERF_SIDEBAND_RING_BYTES ((size_t)512 << 10)
#define PERF_SIDEBAND_RINGS_BYTES ((size_t)8 << 20)
#define PERF_SIDEBAND_RING_LEAST_BYTES ((size_t)64 << 10)   /* 100 processes that start */
#define PERF_FAULT_RING_BYTES ((size_t)1 << 20)   /* 125 faults */
#define PERF_FAULT_RINGS_BYTES ((size_t)8 << 20)
#define PERF_FAULT_RING_LEAST_BYTES ((size_t)32 << 10)
#define PERF_FAULT_STACK_KB 8u
#define PERF_UNMAP_RING_BYTES ((size_t)256 << 10) /* 2,000: a third of a second */
#define PERF_UNMAP_RINGS_BYTES ((size_t)4 << 20)
#define PERF_UNMAP_RING_LEAST_BYTES ((size_t)16 << 10)
/* Both together fit into kernel.perf_event_mlock_kb, 516 KB for each CPU. */
#define PERF_SMALL_RING_BYTES ((size_t)256 << 10)
#define PERF_SMALL_SIDEBAND_BYTES ((size_t)128 << 10)

struct perf_ring {
	int fd;                              /* -1 = closed */
	int short_fd;                        /* an event of program_linux.h, if format.short_id */
	bool has_program;                    /* program_linux.h's */
	unsigned cpu;
	bool sideband, probes, faults, unmaps;
	bool heap;                           /* programs write it: heap_ring.h */
	bool unpolled;                       /* poll() does not know it */
	uint8_t probes_at;                   /* which of a CPU's probe rings */
	struct perf_format format;           /* of its samples */
	void *map;
	size_t page_bytes, data_bytes;       /* the data start at the second page */
	uint64_t head, tail;                 /* what may be read now is between them */
	uint64_t refreshed_ns;               /* and it was all written before */
	bool was_full;                       /* there was no room for a large record */
	bool have;                           /* `record` is the oldest unconsumed one */
	size_t record_bytes;
	struct perf_record record;
	uint64_t damaged;                    /* records without sense, or with a time to come */
	uint64_t unreported;                 /* of these, not reported by perf_ring_peek() yet */
	uint64_t *scratch;                   /* for a record that wraps; PERF_RECORD_MAX_BYTES */
};

struct perf_ask {
	unsigned freq_hz;
	bool kernel_stacks;
	bool no_samples;                     /* samplers are open and stay disabled */
	unsigned stack_kb;                   /* of user stacks; 0 = the kernel's frame pointers */
	size_t stack_ring_bytes;             /* for samplers that copy stacks, at any level */
	unsigned ncpus;                      /* that share the memory of rings; 0 = one */
	bool peeked;                         /* each sample wakes whoever polls its ring */
	bool has_program;                    /* most samples will be short */
	bool build_ids, ksymbols, cgroups;   /* cleared by an open on a kernel without them */
	uint32_t pid;                        /* this process and all that it starts; 0 = all */
	bool user_only, small;               /* of a pid: set by an open of a user without rights */
};

/*
 * The size of a ring that holds half a second of a busy CPU's samples. The kernel reserves the
 * whole copy for each sample: 32 KiB at 99 Hz are 3.2 MB/s. Samples wait while unwind tables are
 * loaded and while the machine is busy: at 499 Hz, 4 MiB lost 1 to 2 % of the samples and 8 MiB
 * none (two CPUs, load average 25, make bench-stacks). Many CPUs share PERF_STACK_RINGS_BYTES: 1 MB
 * for each of 128, where short samples (program_linux.h) make up for it.
 */
size_t perf_stack_ring_bytes(unsigned freq_hz, unsigned stack_kb, unsigned ncpus);
/*
 * The same where most samples are short, so that their rate decides: at least a second of them.
 * 1 MB for each of 16 CPUs at 99 Hz, 512 KB of 64, 256 KB of 128, 128 KB of 512 at 49 Hz.
 */
size_t perf_short_ring_bytes(unsigned freq_hz, unsigned stack_kb, unsigned ncpus);
/* The size of each kind, as an open makes it. */
enum perf_ring_kind { PERF_SAMPLES, PERF_SIDEBAND, PERF_FAULTS, PERF_UNMAPS };
size_t perf_ring_bytes(const struct perf_ask *ask, enum perf_ring_kind kind);

/*
 * Open and map a ring, disabled. For a process of one's own no rights are needed: where the kernel
 * refuses its own part (kernel.perf_event_paranoid is 2) or so much memory, both are done without.
 *
 * returns  0; ERR_NOT_FOUND: the CPU is offline, or the process has ended; ERR_ACCESS: no privilege
 */
int perf_ring_open(struct perf_ring *ring, unsigned cpu, bool sideband, struct perf_ask *ask,
		   struct err *err);
/*
 * A ring for probes. perf_ring_redirect() sends their events, which have this format, to it. Its
 * own event never happens, but once enabled it reports context switches if switches is set.
 */
int perf_ring_open_probes(struct perf_ring *ring, unsigned cpu, uint8_t at,
			  const struct perf_format *format, size_t data_bytes, bool switches,
			  struct err *err);
/*
 * A ring of one thread's samples, one each millisecond that it runs, as perf_ring_open() makes them
 * of a process; no child of it is sampled. Each sample wakes whoever polls the ring.
 */
int perf_ring_open_thread(struct perf_ring *ring, struct perf_ask *ask, struct err *err);
/*
 * A ring of page faults: one in `period` with its address and 8 KB of the stack. The period must be
 * fixed and is best a prime, which has no factor in common with a program's loop. A sample has no
 * period in its record: the kernel would write one for each fault.
 */
int perf_ring_open_faults(struct perf_ring *ring, unsigned cpu, uint64_t period,
			  const struct perf_ask *ask, struct err *err);
/*
 * A ring of what is unmapped: the tracepoint maple_tree/ma_write of this id, where it stores
 * nothing (since 6.1). Those of system calls would make every call slower.
 */
int perf_ring_open_unmaps(struct perf_ring *ring, unsigned cpu, uint32_t id,
			  const struct perf_ask *ask, struct err *err);
/*
 * The ring of heap_environment(), which librecorder-heap.so writes. It has samples only; all else,
 * and what does not fit together, is damage. fd: stays the caller's
 */
int perf_ring_open_heap(struct perf_ring *ring, int fd, struct err *err);
/*
 * Open the event that a program at a sampler's event writes samples to, as perf_format.short_id
 * says; its records come in this ring. 0 or an errno
 */
int perf_ring_open_short(struct perf_ring *ring, const struct perf_ask *ask);
/* Let a descriptor's event, of the same CPU, write into this ring. 0 or an errno. */
int perf_ring_redirect(const struct perf_ring *ring, int fd);
void perf_ring_close(struct perf_ring *ring);
int perf_ring_enable(struct perf_ring *ring, bool on);

struct perf_event_attr;
/* Settings of all events here: the clock, the records' trailer; disabled. */
void perf_attr_common(struct perf_event_attr *attr);
/* perf_event_open() for all tasks on a CPU, disabled. returns  a descriptor, or -1 and errno */
int perf_event_fd(struct perf_event_attr *attr, unsigned cpu);

/* Samplers, faults: change the period from now on; the current one starts again. 0 or an errno. */
int perf_ring_set_period(struct perf_ring *ring, uint64_t period);

/* Read how far the kernel has written. returns  whether it is more than half full */
bool perf_ring_refresh(struct perf_ring *ring);
/*
 * The oldest record, or NULL; valid until perf_ring_next(). Records that could not be parsed are
 * followed by a PERF_KIND_LOST record with their number; where the rest of the ring had to be
 * dropped, that is at least 1.
 */
const struct perf_record *perf_ring_peek(struct perf_ring *ring);
void perf_ring_next(struct perf_ring *ring);
/*
 * Behind a record that was just consumed: are some missing from here on? The kernel says so before
 * the next record that has room, which may come late; a ring that was full at its end must be taken
 * for one that lost some, even if it lost others before.
 *
 * returns  until when; 0 = none are missing
 */
uint64_t perf_ring_gap(struct perf_ring *ring);

/* Whether system-wide sampling is allowed; the error says what to set. */
int perf_probe(const struct perf_ask *ask, struct err *err);

/* RAX ... RIP and R8 to R15, in perf's order (asm/perf_regs.h). */
#define PERF_REGS_MASK 0xff01ffu
#define PERF_REGS_COUNT 17u

/* The highest sampling rate that the kernel allows; 0 = unknown. */
unsigned perf_max_rate(void);
