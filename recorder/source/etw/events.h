/*
 * Turns ETW records into the recorder's events, for files (etl.c) and live sessions (etw/live.c).
 *
 * Processes, code, names and stacks have tables of their own (etw/state.h, etw/code.h,
 * etw/decode.h, etw/stacks.h). Here a record with its stack becomes one event of the model, or
 * none, and goes into the source's queue. One thread at a time.
 */
#pragma once

#include "source/etw/code.h"
#include "source/etw/computed.h"
#include "source/etw/decode.h"
#include "source/etw/pmc.h"
#include "source/etw/stacks.h"
#include "source/etw/state.h"
#include "source/etw/thread_time.h"
#include "source/heap_blocks.h"
#include "source/runtime/gc_objects.h"
#include "source/source.h"

#define ETW_INTERVAL_100NS 10000u            /* between samples, if nothing else is known */

struct etw_events {
	struct source_config cfg;
	struct etw_clock clock;              /* of the records' ticks */
	uint64_t start_ns;                   /* t0 on the recorder's clock */
	bool waits;                          /* while the queue is full; else events are lost */
	struct etw_state *state;
	struct etw_code *code;
	struct etw_stacks *stacks;
	struct etw_stacks *heap_stacks;      /* of a second session, which lags; NULL = none */
	struct etw_decode *decode;
	struct etw_class_memo classes;

	uint32_t interval_100ns;             /* between samples; 0 = unknown so far */
	struct etw_pmcs counters;            /* that the session samples by */
	uint64_t last_ns, marked_ns;         /* the latest event; the latest watermark */
	uint64_t idle;                       /* samples of idle CPUs, not delivered */
	struct etw_thread_time time;
	bool switch_rules;                   /* rules want the switches that thread time takes */
	struct heap_blocks heap;
	bool heap_full;                      /* that was said */
	struct gc_objects objects;
	struct etw_computed computed;
	struct etw_decoded decoded;

	/* Live: called before each event is made, with its ticks; NULL allowed. */
	void (*before)(struct etw_events *s, int64_t ticks);

	_Atomic bool stopping;
	_Atomic uint64_t delivered;
};

/* Make the empty tables; 0 or ERR_MEMORY. Close it also after a failure. */
int etw_events_open(struct etw_events *s, enum etw_stacks_pass pass, struct err *err);
void etw_events_close(struct etw_events *s);
/* What rules want of these events. */
void etw_events_needs(struct etw_events *s, const struct needs *needs);

/* Learn what a record says about other records. */
void etw_events_learn(struct etw_events *s, const struct etw_record *record,
		      const struct etw_class *class);
/*
 * Whether it is a sample of a CPU's idle loop, not of an interrupt or deferred call (flags 1, 2).
 */
bool etw_is_idle_sample(const struct etw_record *r, const struct etw_class *class);
/* Deliver every record that no longer waits for its stack. 0 or ERR_STOPPED. */
int etw_events_take(struct etw_events *s);
/* After the last record: deliver the rest. */
int etw_events_end(struct etw_events *s);
/* Like source_ops.name_frame, for frames that are not code. */
bool etw_events_name(struct etw_events *s, const struct frame *frame, struct symbol *out);
/* Report n lost events, after the last delivered event. */
int etw_events_loss(struct etw_events *s, enum loss_kind kind, uint64_t n);
/* The recorder's time of a tick. */
uint64_t etw_events_time(const struct etw_events *s, int64_t ticks);
/* How many items full tables have refused, and the memory of all tables. */
uint64_t etw_events_refused(const struct etw_events *s, size_t *bytes);
