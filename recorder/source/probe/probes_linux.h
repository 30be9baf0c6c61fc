/*
 * Events of the kernel and of programs that rules ask for: tracepoints, uprobes, USDT probes; perf
 * events, in rings of their own per CPU, that the perf source drains and puts in order with its
 * samples.
 *
 * A probe that happens too often is switched off for PROBE_REST_NS, on all CPUs; the log says so
 * the first time, status each time. check(): any thread; all else: the source's thread, and open
 * before it.
 */
#pragma once

#include "base/log.h"
#include "base/out.h"
#include "base/os.h"
#include "model/needs.h"
#include "source/ring/perf_ring_linux.h"
#include "source/source.h"
#include "source/probe/trace_format.h"

/*
 * Per CPU: plain, with stacks, with registers, switches and wake-ups, their stacks; one drops none
 * of another.
 */
#define PROBE_RINGS 5u
#define PROBE_RING_OF_SWITCHES 3u
#define PROBE_SWITCH_RING_BYTES ((size_t)1 << 20)
#define PROBE_SWITCH_STACK_RING_BYTES ((size_t)4 << 20)
#define PROBE_SWITCH_STACK_KB 8u
#define PROBE_PLAIN_RING_BYTES ((size_t)256 << 10)
#define PROBE_STACK_RING_BYTES ((size_t)2 << 20)   /* 64 events with 32 KiB of stack */
#define PROBE_RATE_MAX 10000u                /* a second; see also below */
/* with stacks, and of probes in programs: 5 to 20 us each */
#define PROBE_RATE_STACK_MAX 1000u
#define PROBE_REST_NS (60 * NS_PER_SEC)

struct probe;
struct probes;

/* Those that there are, a line each; see source_ops.list_events. */
int probes_list(const char *pattern, bool json, struct out *out, struct err *err);

/* Tracepoints, uprobes; see source_ops.part. */
int probes_part(unsigned i, struct source_part *out, struct err *err);

/*
 * Whether all events of this system that these needs name are there; the sentence gives the
 * nearest.
 */
int probes_check(const struct needs *needs, struct err *err);

struct probes_config {
	const struct needs *needs;           /* NULL = none */
	struct log *log;
	const struct capture *capture;
	unsigned ncpus;                      /* of the rings that will be opened */
};

/* *out NULL: nothing of this kind is asked for. */
int probes_new(const struct probes_config *cfg, struct probes **out, struct err *err);
void probes_free(struct probes *p);

/* Rings and events of one CPU, disabled; a ring that no probe writes to stays closed (fd -1). */
int probes_open_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS],
		    struct err *err);
void probes_close_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS]);
void probes_enable(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS], bool on);
/* What records of ring number i look like. */
const struct perf_format *probes_format(const struct probes *p, unsigned i);
/* Whether its events have a stack to be unwound. */
bool probe_has_stack(const struct probe *probe);

/* Whose a record is; NULL = nobody's. It is of ring number probe_ring(). */
struct probe *probes_find(struct probes *p, uint64_t id);
/*
 * Provider, name and fields of a record, into *out; good until the next call. false: it is over its
 * rate and left out.
 */
bool probes_take(struct probes *p, struct probe *probe, const struct perf_record *r,
		 struct event *out);
/*
 * The same event under another name too, as collections are two of .NET's; true = put it once more.
 */
bool probes_again(const struct probe *probe, struct event *e);

/* What a record is for, other than for rules: see source/thread_time.h. */
enum probe_role { PROBE_EVENT, PROBE_SWITCH_STACK, PROBE_WAKEUP, PROBE_WAKER };
enum probe_role probe_role(const struct probe *probe);
/* Of a wake-up: whose. false: the record is too short. */
bool probe_pid(const struct probe *probe, const struct perf_record *r, uint32_t *pid);
/* Let only every n-th of this role come. */
void probes_every(struct probes *p, enum probe_role role, uint64_t n);

/* Once a second: those that have rested go on. */
void probes_look(struct probes *p, uint64_t now_ns);
/* Any thread: which have been switched off, one sentence; "" = none. */
void probes_note(const struct probes *p, char *out, size_t n);
