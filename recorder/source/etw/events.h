/*
 * From ETW records to the recorder's events, for a file (etl.c) and a live session (etw/live.c) alike.
 *
 * What is learned of processes, code and names, and the stacks' binding, live in tables of their own
 * (etw/state.h, etw/code.h, etw/decode.h, etw/stacks.h); here a record that has left their line with
 * its stack becomes one event of the model, or none, and goes into the queue. One thread at a time.
 */
#ifndef SOURCE_ETW_EVENTS_H
#define SOURCE_ETW_EVENTS_H

#include "base/os.h"
#include "source/etw/clock.h"
#include "source/etw/code.h"
#include "source/etw/decode.h"
#include "source/etw/stacks.h"
#include "source/etw/state.h"
#include "source/etw/thread_time.h"
#include "source/source.h"

#define ETW_INTERVAL_100NS 10000u            /* between samples, where nothing says it */
#define ETW_CLASSES 512u                     /* power of two */

/* What etw_class_find() said last of records like this; a trace has millions of few kinds. */
struct etw_known_class {
	struct etw_guid guid;
	uint16_t key;
	uint8_t header;
	bool known;
	const struct etw_class *class;
};

struct etw_events {
	struct source_config cfg;
	struct etw_clock clock;              /* of the records' ticks */
	uint64_t start_ns;                   /* t0 on the recorder's clock */
	bool waits;                          /* for room in the queue; else what does not fit is lost */
	struct etw_state *state;
	struct etw_code *code;
	struct etw_stacks *stacks;
	struct etw_decode *decode;

	struct etw_known_class classes[ETW_CLASSES];
	uint32_t interval_100ns;             /* 0 = nothing has said it yet */
	uint64_t last_ns, marked_ns;
	uint64_t idle;                       /* samples of it, not delivered */
	uint64_t cut;                        /* stacks over STACK_MAX_FRAMES */
	struct etw_thread_time time;
	struct etw_decoded decoded;
	struct frame_ref frames[STACK_MAX_FRAMES];

	/* Live: before an event of that moment is made; NULL = nothing to do. */
	void (*before)(struct etw_events *s, int64_t ticks);

	_Atomic bool stopping;
	_Atomic uint64_t delivered;
};

/* The tables, empty; ERR_MEMORY. Close it also after a failure. */
int etw_events_open(struct etw_events *s, enum etw_stacks_pass pass, struct err *err);
void etw_events_close(struct etw_events *s);

const struct etw_class *etw_events_class(struct etw_events *s, const struct etw_record *record);
/* Take what a record says about others. */
void etw_events_learn(struct etw_events *s, const struct etw_record *record,
		      const struct etw_class *class);
/* The record tells how often samples are taken. */
void etw_events_learn_interval(struct etw_events *s, const struct etw_record *record,
			       const struct etw_class *class);
/* A sample of a CPU's idle loop, outside of interrupts and deferred calls (flags 1 and 2). */
bool etw_is_idle_sample(const struct etw_record *r, const struct etw_class *class);
/* Deliver all that may leave the line. 0 or ERR_STOPPED. */
int etw_events_take(struct etw_events *s);
/* No record follows: the same with all that is left. */
int etw_events_end(struct etw_events *s);
/* Live: records were lost after that one; times of threads begin anew behind it. */
void etw_events_gap(struct etw_events *s, int64_t ticks);
/* As source_ops.name_frame, of what is no code. */
bool etw_events_name(const struct etw_events *s, const struct frame *frame, struct symbol *out);
/* So many were lost, after the last event that was delivered. */
int etw_events_loss(struct etw_events *s, enum loss_kind kind, uint64_t n);
/* A tick on the recorder's clock. */
uint64_t etw_events_time(const struct etw_events *s, int64_t ticks);
/* What tables have refused so far, and the memory of all of them. */
uint64_t etw_events_refused(const struct etw_events *s, size_t *bytes);

#endif
