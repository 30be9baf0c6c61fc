/*
 * Pauses of a JVM as events, which jvm_linux.c has read from its performance data.
 *
 * A pause is delivered as four events of provider "JVM": GC/SuspendEEStart and GC/Start at its
 * entry, GC/Stop at its exit (as -Xlog:gc reports it) and GC/RestartEEStop when the program resumed
 * (as -Xlog:safepoint reports it). They have the fields of the .NET events (Reason, Count, Depth: 2
 * for a full collection, else 0; Type 0; ClrInstanceID: the collector's number) and Collector, its
 * name. The last two events also have PauseMSec, the time since the pause began, which may be
 * before the window. If that time may contain several pauses, Pauses is their number, PauseMSec
 * their sum, and the longest took PauseMinMSec or more. Missed pauses become one event GC/Pauses
 * with their number, the sum of their times (PauseMSec) and their mean (PauseMinMSec). Collections
 * of Serial, which continue after their exit, end with their pause. For Shenandoah every safepoint
 * is reported once it has ended. After a collection that stops the program follows GC/HeapStats
 * with what it left in the young and the old generation (GenerationSize0 and 2, in bytes).
 *
 * The thread of the source.
 */
#pragma once

#include "model/process.h"
#include "model/queue.h"
#include "source/jvm/table_linux.h"
#include "source/runtime/gc_counters.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define JVM_SAFEPOINTS HSPERF_COLLECTORS     /* the index of the safepoints' track */

/* Where pauses go. */
struct jvm_pauses {
	struct processes *processes;
	struct queue *queue;
	struct gc_counters *counters;
	uint64_t gap_ns;                     /* the time since the last look at the current JVM */
	uint64_t least_ns;                   /* earlier is what a false clock says of a new pause */
	bool missed_much;                    /* set when pauses were missed that are too long */
	_Atomic uint64_t events, missed, missed_ns;
};

/* Of edges of a collector's pauses, in order; zero_ns: when the JVM's clock was 0. */
void jvm_pauses_put(struct jvm_pauses *s, struct jvm *j, uint32_t collector,
		    const struct hsperf_edge *edges, uint32_t n, uint64_t zero_ns);
/* Report missed pauses by what is known of them; none are missed when it has none. */
void jvm_pauses_missed(struct jvm_pauses *s, struct jvm *j, uint32_t collector,
		       const struct hsperf_missed *missed);
struct jvm_heap {
	uint64_t eden, survivors, old;       /* bytes in use */
};

/* Report what the collector's collection number `count` left. */
void jvm_pauses_heap(struct jvm_pauses *s, struct jvm *j, uint32_t collector, uint64_t count,
		     const struct jvm_heap *heap);
/* Deliver an event of the JVM; ctx: struct jvm_pauses. */
void jvm_pauses_deliver(void *ctx, const struct event *e);
/* A process that no other source knows lives as long as the JVM is in our table. Unreference it. */
struct process *jvm_pauses_process(struct jvm_pauses *s, struct jvm *j);
