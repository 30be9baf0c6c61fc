/*
 * Records of a perf event ring: parsing only, portable, bounds-checked.
 *
 * Layouts: perf_event_open(2) and include/uapi/linux/perf_event.h.
 * Every event here is opened with sample_id_all and at least IDENTIFIER|TID|TIME|CPU, so that
 *
 *	PERF_RECORD_SAMPLE   header; identifier; [ip]; pid,tid; time; [addr]; cpu,res;
 *	                     [nr, chain]; [raw size, bytes]; [regs abi, regs];
 *	                     [stack size, bytes, dyn_size]; [cgroup]
 *	all others           header; body; pid,tid; time; cpu,res; identifier (32-byte trailer)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_RECORD_MAX_BYTES 65536u
#define PERF_BUILD_ID_BYTES 20u
#define PERF_SHORT_HEAD_BYTES 4
#define PERF_SHORT_MAX_BYTES 60000           /* of such a stack: a record's size has 16 bits */

/* A record of our own, with the body of PERF_RECORD_SWITCH_CPU_WIDE: probe/switches_linux.h. */
#define PERF_RECORD_WAKE 63u
/* Of a switch: the pid of who comes is change.repeats instead. */
#define PERF_MISC_REPEATS 8u

enum perf_record_kind {
	PERF_KIND_OTHER,
	PERF_KIND_SAMPLE,
	PERF_KIND_MMAP,
	PERF_KIND_COMM,
	PERF_KIND_FORK,
	PERF_KIND_EXIT,
	PERF_KIND_LOST,
	PERF_KIND_THROTTLE,
	PERF_KIND_KSYMBOL,                   /* a BPF program or trampoline is added or removed */
	PERF_KIND_SWITCH,                    /* a thread leaves a CPU, or comes */
	PERF_KIND_WAKE,                      /* a thread is woken: change.other_tid */
};

/* What a sampler or a probe was opened with. */
struct perf_format {
	bool address;                        /* of a page fault */
	bool callchain;
	bool raw;                            /* a tracepoint's record */
	unsigned nregs;                      /* 0 = no registers */
	uint64_t regs_mask;                  /* which; 0 = PERF_REGS_MASK */
	bool stack;
	bool cgroup;
	/*
	 * Samples of this event (PERF_EVENT_IOC_ID) have their stack as raw data, with its size in
	 * the first 4 bytes, in the place of a copy of fixed size: program_linux.h. 0 = none
	 */
	uint64_t short_id;
	/*
	 * Samples with at least so many bytes of raw data are a program's at a raw tracepoint. The
	 * data's third word is where the program returns to: the kernel's frames up to that one are
	 * not the thread's, and are left out. 0 = none
	 */
	uint32_t program_bytes;
};

struct perf_record {
	enum perf_record_kind kind;
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
	union {
		struct {
			uint64_t id;                     /* its event: PERF_EVENT_IOC_ID */
			uint64_t ip;
			uint64_t address;
			const uint8_t *raw;
			uint32_t raw_bytes;
			const uint64_t *kernel, *user;   /* leaf first; into the record */
			uint32_t nkernel, nuser;
			uint32_t regs_abi;
			const uint64_t *regs;            /* NULL = none */
			const uint8_t *stack;
			uint32_t stack_bytes;
			uint64_t cgroup;                 /* its number; 0 = not asked for */
			uint64_t period;                 /* perf_layout_parse(), as the next */
			bool kernel_mode;                /* where ip is */
		} sample;
		struct {
			uint64_t start, bytes, pgoff;
			uint32_t major, minor;
			uint64_t ino, ino_generation;
			uint8_t build_id_bytes;          /* then major, minor, ino are unknown */
			uint8_t build_id[PERF_BUILD_ID_BYTES];
			const char *path;                /* NUL-terminated, into the record */
		} mmap;
		struct {
			const char *name;
			bool exec;
		} comm;
		struct {
			uint32_t parent_pid, parent_tid;
		} task; /* FORK, EXIT; pid and tid are the child's */
		struct {
			uint64_t start;
			uint32_t bytes;
			bool gone;
			const char *name;
		} ksymbol;
		struct {
			bool out;                        /* pid, tid leave; else they come */
			bool preempted;                  /* out: the thread could have run on */
			uint32_t other_tid;              /* 0 = idle; -1 = a released task */
			uint32_t repeats;                /* its stack is the one of this number */
		} change;
		uint64_t lost;
	} u;
};

/*
 * Parse one record of n bytes, 8-byte aligned. n is the size in the record's header. Pointers in
 * out point into bytes.
 *
 * returns  false when the record is damaged
 */
bool perf_record_parse(const void *bytes, size_t n, const struct perf_format *format,
		       struct perf_record *out);
