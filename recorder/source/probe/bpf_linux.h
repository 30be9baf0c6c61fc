/*
 * Filters of probes in the kernel (BPF), so that calls of processes that no rule means cost the
 * recorder nothing. Loaded by bpf(2); no library.
 *
 * Which processes no rule means is decided here in user space, by all names that they have. The
 * kernel has a table of those that somebody has looked at. A new process, or one that executes
 * another program, is not known until then, which takes some milliseconds: it passes if its short
 * name is one that a rule means, and BPF_NEWS_MAX times if not. If a rule turns out to mean it by
 * another name, what it lost is counted.
 *
 * Programs beside the filters clear the tables when a process executes or ends. The owner's thread
 * only.
 */
#pragma once

#include "base/err.h"
#include "model/process_filter.h"
#include "source/probe/bpf_code_linux.h"

#define BPF_PROCESS_FILTERS_MAX 31u          /* different ones, of all rules */
#define BPF_KNOWN_MAX 65536u                 /* processes */

struct bpf_filters;

/* ERR_ACCESS, ERR_UNSUPPORTED: the kernel has no BPF for this user, or at all. */
int bpf_filters_new(struct bpf_filters **out, struct err *err);
void bpf_filters_free(struct bpf_filters *f);    /* NULL allowed */

/*
 * What a rule wants of a probe: of these processes, under these conditions, which stay the
 * caller's. false: it cannot be told to the kernel, so everything must pass.
 */
bool bpf_filters_want(struct bpf_filters *f, const struct process_filter *processes,
		      const char *conditions, struct bpf_want *out);

/*
 * Load the filter of one place of a probe. returns  its descriptor, to be set by
 * PERF_EVENT_IOC_SET_BPF and closed; -1 = no filter is needed, or *err says why there is none
 */
int bpf_filters_load(const struct bpf_filters *f, const struct uprobe *probe, unsigned place,
		     const struct bpf_want *wants, unsigned nwants, struct err *err);

/* Whether a want means this process. */
bool bpf_filters_pass(const struct bpf_filters *f, const struct bpf_want *want,
		      const struct process *process);
/*
 * Look at a process, as it is at that time: the kernel leaves it out where no rule means it.
 * returns  false when not all its names are known yet
 */
bool bpf_filters_look(struct bpf_filters *f, const struct process *process, uint64_t time_ns);
/* How many hits of processes that a rule means were missed since the last call. */
uint64_t bpf_filters_missed(struct bpf_filters *f);
