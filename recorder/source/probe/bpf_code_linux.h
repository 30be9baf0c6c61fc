/*
 * Programs of the kernel's virtual machine (BPF) that decide which hits of a probe the recorder
 * gets; written instruction by instruction, as there is no compiler on a production machine.
 *
 * A hit passes when it passes any of the wants. Source of instructions and helpers:
 * Documentation/bpf/standardization/instruction-set.rst, linux/bpf.h. x86-64. Pure functions.
 */
#pragma once

#include "model/process_filter.h"
#include "source/probe/uprobe_linux.h"

#include <linux/bpf.h>

#define BPF_CODE_MAX 2048u                   /* instructions */
#define BPF_NEWS_MAX 32
#define BPF_WANTS_MAX 16u                    /* of one probe */

/* What one rule wants of a probe. */
struct bpf_want {
	/*
	 * Processes: by a bit of the mask that the table of left out processes has, or by pids;
	 * bit 0 and no pids = all.
	 */
	uint64_t left_out_bit;               /* one of the lowest 31; 0 = none */
	const struct process_filter *names;  /* with that bit: which names it means */
	uint32_t pids[16];
	unsigned npids;
	const char *conditions;              /* as in need_event.filter */
};

struct bpf_code {
	uint64_t insns[BPF_CODE_MAX];        /* struct bpf_insn, as one number */
	unsigned n;
	bool too_long;
};

/* The descriptors of tables by pid; see bpf_linux.h. */
struct bpf_tables {
	int known;                           /* struct bpf_known */
	int execs;                           /* u64: when it executed its program */
	int news;                            /* u64: hits of a process that is not known yet */
};

/* How a process is, as somebody saw it at that time. */
struct bpf_known {
	uint64_t time_ns, left_out_bits;
};

/*
 * Write the filter of one place of a probe. What cannot be judged in the kernel passes. Where all
 * wants name processes, one that nobody has looked at yet passes always if its short name is such a
 * name, and else BPF_NEWS_MAX times.
 *
 * returns  false when it would pass everything, or is too long
 */
bool bpf_code_filter(const struct uprobe *probe, unsigned place, const struct bpf_want *wants,
		     unsigned nwants, const struct bpf_tables *tables, struct bpf_code *out);

/* A program is executed: it is not known until someone looks at it again. */
void bpf_code_exec(const struct bpf_tables *tables, struct bpf_code *out);
/* A process ends: its pid may come again. */
void bpf_code_exit(const struct bpf_tables *tables, struct bpf_code *out);
