/*
 * Events of the kernel and of programs that rules ask for: tracepoints, uprobes and USDT probes.
 * They are perf events in rings of their own on each CPU; the perf source drains these and puts the
 * records in order with its samples.
 *
 * A rule's probe that fires too often is switched off for PROBE_PAUSE_NS on all CPUs. The log says
 * so the first time, the status each time. One that was asked for is only counted until the second
 * is over: probes_left_out() tells how many. probes_check() may be called on any thread,
 * probes_new() and the opening before the source's thread starts, all else on the source's thread.
 */
#pragma once

#include "base/log.h"
#include "base/out.h"
#include "base/os.h"
#include "model/needs.h"
#include "source/ring/perf_ring_linux.h"
#include "source/source.h"
#include "source/probe/switches_linux.h"
#include "source/probe/trace_format.h"

/*
 * The rings of a CPU: plain, with stacks, with registers, switches and wake-ups, those of a program
 * (switches_linux.h), their stacks. A full ring drops no records of another one.
 */
#define PROBE_RINGS 6u
#define PROBE_RING_OF_SWITCHES 3u

static inline bool probe_ring_has_switches(unsigned at)
{
	return at == PROBE_RING_OF_SWITCHES || at == PROBE_RING_OF_SWITCHES + 1;
}

#define PROBE_SWITCH_RING_BYTES ((size_t)1 << 20)
#define PROBE_SWITCH_STACK_RING_BYTES ((size_t)8 << 20)      /* 1,000 */
#define PROBE_SWITCH_STACK_KB 8u
#define PROBE_PLAIN_RING_BYTES ((size_t)256 << 10)
#define PROBE_STACK_RING_BYTES ((size_t)8 << 20) /* holds 256 events with 32 KiB of stack */
#define PROBE_RATE_MAX 10000u                /* events a second */
#define PROBE_RATE_STACK_MAX 1000u        /* the same with stacks or in programs: 5 to 20 us each */
#define PROBES_OF_PATTERN_MAX 256u            /* of one "SUBSYSTEM:*" */
#define PROBE_PAUSE_NS (60 * NS_PER_SEC)

struct probe;
struct probes;

/* List the events that exist, one a line; see source_ops.list_events. */
int probes_list(const char *pattern, bool json, struct out *out, struct err *err);

/* Tracepoints, uprobes; see source_ops.part. */
#define PROBES_IN_PROGRAMS 1u
int probes_part(unsigned i, struct source_part *out, struct err *err);

/* Whether all events that these needs name exist here; the error gives the nearest names. */
int probes_check(const struct needs *needs, struct err *err);

struct probes_config {
	const struct needs *needs;           /* NULL = none */
	struct log *log;
	struct proc_reader *reader;          /* NULL: no event is taken */
	const struct capture *capture;
	unsigned ncpus;                      /* for how many CPUs rings will be opened */
	bool untyped;                        /* as where the kernel does not tell its types */
};

/* *out stays NULL when the needs name no such event. */
int probes_new(const struct probes_config *cfg, struct probes **out, struct err *err);
void probes_free(struct probes *p);

/* Tell of a process that has mapped libjvm.so. probes: struct probes */
void probes_saw_java(void *probes, const struct process *process);
/*
 * Add probes to JVMs that were told of, as far as they are found by now. true: there are more than
 * before, to be opened on each CPU. Cheap, never waits long.
 */
bool probes_follow(struct probes *p);
/* They are open now, so the log says what is seen; failed: why not on each CPU, NULL = they are. */
void probes_followed(const struct probes *p, const struct err *failed);

/*
 * Open the rings and events of one CPU that are not open yet (fd -1), disabled; a ring without
 * probes stays closed. After an error the caller closes the CPU.
 */
int probes_open_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS],
		    struct err *err);
void probes_close_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS]);
void probes_enable(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS], bool on);
/* Whether its events are samples only: of a counter, or of a heap. */
bool probe_is_sampled(const struct probe *probe);
/* Whether its events carry a stack to unwind. */
bool probe_has_stack(const struct probe *probe);

/*
 * Of a counter of the processor: how many things a record of that time stands for; 0 = it is none.
 */
uint64_t probe_period(const struct probe *probe, uint64_t time_ns);
/* A probe's number; what samples of a number are called: "cache-misses", "sched/sched_switch". */
uint32_t probes_number(const struct probes *p, const struct probe *probe);
#define PROBE_LABEL_BYTES (PROVIDER_NAME_MAX + EVENT_NAME_MAX)
bool probes_name(const struct probes *p, uint64_t number, char *out, size_t n);

/* Whether anybody wants this event of this process; NULL = it is not known. */
bool probe_wants(const struct probe *probe, const struct process *process);
/*
 * An event of a process that is not of the program which is recorded with what it starts. true: it
 * is left out, and does not count for the limit of a second, as no rule asked for it. Over
 * PROBE_RATE_MAX of them the kernel only counts, as over the limit.
 */
bool probe_leaves_out(struct probes *p, struct probe *probe, uint64_t time_ns);
/* The probe of a record, by its event; NULL = none. */
struct probe *probes_find(struct probes *p, uint64_t id);
/*
 * Put provider, name and fields of a record into *out; they are valid until the next call. false:
 * the probe is over its rate, and the record is left out.
 */
bool probes_take(struct probes *p, struct probe *probe, const struct perf_record *r,
		 struct event *out);
/*
 * The same of a record that librecorder-heap.so wrote into the ring of heaps; process and time are
 * set. false: it is over its rate, which is counted, or tells nothing new
 */
bool probes_take_block(struct probes *p, const struct perf_record *r, struct event *out);
/*
 * Of an event that probes_take() told: the Java object that was thrown, which the caller reads to
 * add its fields. false: it has all.
 */
bool probe_java_object(const struct probe *probe, const struct perf_record *r, uint64_t *object);
/*
 * Give the event its second name, because a collection is two events as in .NET. true: deliver it
 * once more.
 */
bool probes_again(const struct probe *probe, struct event *e);

/* What a record is for besides rules: see source/thread_time.h. */
enum probe_role { PROBE_EVENT, PROBE_SWITCH_STACK, PROBE_WAKEUP, PROBE_WAKER };
enum probe_role probe_role(const struct probe *probe);
/* Which thread was woken up. false: the record is too short. */
bool probe_pid(const struct probe *probe, const struct perf_record *r, uint32_t *pid);
/* Those of PROBE_WAKER without stacks are off until they are wanted. */
void probes_want(struct probes *p, enum probe_role role, bool on);
/* The program that writes switches; NULL = none does. */
const struct switches *probes_switches(const struct probes *p);
/* Record only every n-th event of this role. */
void probes_every(struct probes *p, enum probe_role role, uint64_t n);

/*
 * Look at a process as it is at that time, so that the kernel leaves it out where no rule means it.
 * Call it for those that run when the events are switched on, and when names are known of others.
 */
void probes_look_at(struct probes *p, const struct process *process, uint64_t time_ns);
/*
 * How many events were missed since the last call: of processes before the kernel knew them, and by
 * the program that writes switches.
 */
uint64_t probes_missed(struct probes *p);
/* How many records of asked ones were left out since the last call; call after probes_look(). */
uint64_t probes_left_out(struct probes *p);
/* Call once a second: switches on the probes whose pause has ended. */
void probes_look(struct probes *p, uint64_t now_ns);
/* Any thread: one sentence about the probes that were switched off; "" = none. */
void probes_note(const struct probes *p, char *out, size_t n);
