/* The tables of a perf_state, and what its two files tell each other. */
#pragma once

#include "source/perf/state_linux.h"

#include "base/slots.h"
#include "base/table.h"

struct exited {
	uint32_t tid;
	uint64_t time_ns;
};

struct perf_state {
	struct perf_state_config cfg;
	struct slots processes, threads;
	struct table by_pid, by_tid;
	bool nested;                      /* in a pid namespace of its own */
	uint64_t now_ns;                  /* time of the newest record; queued ones are not newer */
	uint64_t lost_until_ns;           /* records went missing up to then; 0 = never */
	struct object *kernel;
	uint64_t kernel_base;                /* address of _text; 0 = hidden */
	struct kernel_symbols *kernel_symbols; /* code that was added at run time */
	_Atomic uint64_t skipped_mappings;
	_Atomic uint32_t skipped_pid;
	struct exited *exited;               /* FIFO: [exited_first, exited_count) */
	uint32_t exited_first, exited_count, exited_capacity;
	struct perf_scan *scan;
	bool starting;                       /* /proc is read, before the first sample */
	struct perf_names *names;
};

/* A thread whatever may be missing of it, or NULL. */
struct perf_thread *perf_state_known_thread(struct perf_state *s, uint32_t tid);
/* The process of a thread was doubted, and is another one to those who see it. */
void perf_state_follow(struct perf_state *s, struct perf_thread *t);
/* NULL = not known */
void perf_state_thread_exits(struct perf_state *s, struct perf_thread *t);
void perf_state_put_event(struct perf_state *s, enum event_kind kind, struct perf_process *p,
			  uint32_t tid, uint64_t time_ns);
/* The name of a pid that belongs to no process; NULL = it is a process's. */
const char *perf_state_pid_comm(const struct perf_state *s, uint32_t pid);

/* doubt_linux.c: a record of it may be missing since it was known, even if others came. */
bool perf_state_is_doubtful(const struct perf_state *s, const struct perf_process *p);
/* From here on a doubtful process has no name, unless at a ceiling. */
void perf_state_doubt(struct perf_state *s, struct perf_process *p);
/* It is known again; what it was is not needed any more. */
void perf_state_forget_before(struct perf_process *p);
/* For what is recorded of a thread: its process must be known, or have no name. */
struct perf_thread *perf_state_for_sample(struct perf_state *s, struct perf_thread *t);

/*
 * mapping_budget_linux.c: charge a process for a mapping record; false when it has no budget left.
 * Then the record is skipped.
 */
bool perf_state_spend_mapping(struct perf_state *s, struct perf_process *p);
void perf_state_skip_mapping(struct perf_state *s, struct perf_process *p,
			     const struct perf_record *r);
/* Read the mappings of a process anew when it is calm again. */
void perf_state_end_flood(struct perf_state *s, struct perf_process *p);
