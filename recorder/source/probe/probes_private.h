/*
 * What the parts of probes_linux.h share: probes_linux.c (which events are wanted), cpu_linux.c
 * (the events of a CPU), events_linux.c (the content of records). list_linux.c does not use it.
 */
#pragma once

#include "base/table.h"
#include "source/probe/bpf_linux.h"
#include "source/probe/cpu_counter_linux.h"
#include "source/probe/gc_probes_linux.h"
#include "source/heap_blocks.h"
#include "source/probe/probes_linux.h"
#include "source/probe/programs_linux.h"
#include "source/probe/throw_linux.h"
#include "source/probe/uprobe_linux.h"

#include <stdatomic.h>

#define PROBES_SEEN 64u
#define HEAP_RATE 50000u                     /* allocations and frees a second */

/* Events in the second that began at second_ns. */
struct probe_rate {
	uint64_t second_ns, hits;
};

struct probe {
	char provider[PROVIDER_NAME_MAX], name[EVENT_NAME_MAX];
	struct trace_format format;          /* of a tracepoint */
	struct uprobe *uprobe;               /* NULL = a tracepoint, or: */
	struct cpu_counter counter;          /* as asked for; period 0 = none */
	uint64_t period, old_period;         /* of the counter, now and before: */
	uint64_t switched_ns;
	enum throw_kind throws;              /* a uprobe where programs throw */
	struct gc_probe gc;                  /* a uprobe where a program collects */
	enum heap_probe heap;                /* a probe of an allocator */
	enum probe_role role;
	uint32_t pid;                        /* of a wake-up: the index of its field `pid` */
	uint32_t first_place, nplaces;       /* its part of probes.nplaces */
	uint32_t place;                      /* of the record that probes_find() saw last */
	struct buf filter;                   /* the kernel's filter; empty = all events */
	bool unfiltered;                     /* some rule wants what no filter can express */
	/* What rules want of a uprobe, and the kernel's filter for each place, -1 = none. */
	struct bpf_want wants[BPF_WANTS_MAX];
	char *conditions[BPF_WANTS_MAX];     /* of the wants; owned */
	unsigned nwants;
	int in_kernel[UPROBE_PLACES_MAX];
	bool by_process;                     /* the kernel's filter leaves processes out */
	bool stack;
	bool in_program;                     /* switches_linux.h writes its events */
	bool asked;                          /* by --providers: over its limit it is counted */
	bool ruled;                          /* by a rule, too */
	bool unlimited_by_process;           /* somebody wants those of all processes */
	struct buf processes;                /* else of these: names and pids, with ';' between */
	unsigned limit;                      /* events a second */
	struct probe_rate rate, unwanted;    /* unwanted: of processes that no rule means */
	bool held;                           /* over its limit: the kernel only counts */
	uint64_t held_from, held_ns;         /* its count then, and when */
	uint64_t left_out;                   /* over its limit, not told yet */
	uint64_t paused_until_ns;
	_Atomic uint64_t npauses, nleft_out;
	bool pause_logged;
};

/* The event of one place of a probe on one CPU. */
struct place_event {
	int fd;                              /* -1 = closed */
	uint64_t id;
	uint32_t probe, place;
};

struct probes {
	struct log *log;
	struct proc_reader *reader;
	struct bpf_filters *filters;         /* NULL = no rule needs them, or the kernel refuses */
	uint32_t seen[PROBES_SEEN];          /* numbers of processes looked at in a hit, plus 1 */
	bool no_filters;                     /* it refuses, and the log says so */
	struct programs *programs;           /* NULL = no probe is in a program */
	unsigned ncpus, stack_kb;
	bool kernel_stacks, untyped;
	struct probe *all;
	uint32_t room;
	_Atomic uint32_t n;                  /* of them; others than the owner read it */
	uint32_t nplaces;                    /* all places of all probes, and room for later ones */
	uint32_t nused;                      /* of them */
	struct probes_later *later;          /* NULL = no rule needs it */
	struct program_library *library;     /* while its probes are added; else NULL */
	struct switches *switches;           /* NULL = perf records them */
	uint32_t pmu;                        /* perf's type number of uprobes */
	struct place_event *events;          /* nplaces * ncpus, by CPU, then place */
	struct table by_id;                  /* of the events that are open */
	struct perf_format formats[PROBE_RINGS];
	struct trace_values values;          /* the last event */
	struct event_field fields[STAPSDT_ARGUMENTS_MAX];
	char texts[UPROBE_TEXTS_MAX][UPROBE_TEXT_BYTES];     /* of these fields */
	struct event_field gc_fields[GC_PROBE_FIELDS];
	struct gc_generations generations;
	struct throw_text thrown;
	struct heap_blocks heap;
	struct probe_rate blocks;            /* of the ring of heaps, */
	uint64_t blocks_left_out;            /* and what was over HEAP_RATE, not told yet */
};

/*
 * later_linux.c: JVMs whose libjvm.so is seen only while it records, as those of containers are.
 * needs: of exceptions of Java; copied. known: where probes are already.
 */
int probes_later_want(struct probes *p, const struct need_event *need,
		      const struct program_files *known, struct err *err);
void probes_later_free(struct probes *p);
/* Add what a rule wants of p->library. */
void probes_add_library(struct probes *p, const struct need_event *need);
/* Load the kernel's filters of the probes from this number on; their rules are all added. */
void probes_load_filters(struct probes *p, uint32_t from);

enum {
	RING_PLAIN, RING_STACK, RING_REGS, RING_SWITCH = PROBE_RING_OF_SWITCHES, RING_SWITCHES,
	RING_SWITCH_STACK
};

/* The events of a probe on a CPU, nplaces of them. */
static inline struct place_event *probe_events(const struct probes *p, const struct probe *probe,
					       unsigned cpu)
{
	return p->events + (size_t)cpu * p->nplaces + probe->first_place;
}

/*
 * Let the kernel count its events without writing records, or write them again. returns  the count
 * of all CPUs so far
 */
uint64_t probe_hold(const struct probes *p, const struct probe *probe, bool on);
/* One of n is recorded from now on. */
void probe_set_period(const struct probes *p, const struct probe *probe, uint64_t n);
/* Switch all its events of a CPU on or off. */
void probe_switch(const struct probes *p, const struct probe *probe, unsigned cpu, bool on);
/* The same on all CPUs; the probe stays off until paused_until_ns, 0 = it is on. */
void probe_pause(const struct probes *p, struct probe *probe, uint64_t until_ns);
