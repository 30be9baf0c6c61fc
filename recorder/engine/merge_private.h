/* The merge thread's: struct merge, and what its files call of each other. */
#pragma once

#include "engine/feed.h"
#include "model/budget.h"
#include "model/memory_budget.h"
#include "model/ring.h"
#include "model/segment.h"

#define TICK_NS (100 * NS_PER_MS)
#define OWN_QUEUE_BYTES ((size_t)512 << 10)  /* all evicted_put() rows of three firings */

struct engine;

struct evicted_samples {                     /* a circle */
	uint64_t *items;                     /* 100 ns since start_ns << 16 | cpu */
	uint32_t first, count;
	uint64_t forgotten, forgotten_ns;    /* samples that no longer fit; the first one's time */
};

struct merge {
	/* what is recorded */
	struct segment_builder *builder;     /* the open segment */
	struct queue *own;                   /* events about the recorder itself; see own.c */
	struct evicted_samples evicted;
	struct source_origin origin;         /* of a file */

	/* moments of the recorder clock, which is the time of events */
	bool started;                        /* start_ns is known */
	uint64_t start_ns;
	uint64_t now_ns;                     /* the last tick */
	uint64_t last_ns;                    /* the newest event */
	uint64_t next_tick_ns, next_tables_ns;
	uint64_t next_housekeeping_ns;       /* this one of the real clock */

	/* counts, and how much of them was put among the events already */
	uint64_t events, samples, lost, late;
	uint64_t flooded, flooded_reported;  /* events over a quota */
	uint64_t refused_reported;           /* by the tables of processes and frames */
	uint64_t queue_lost_reported[FEED_SOURCES_MAX];

	/* windows: incident.c */
	uint32_t open_windows;               /* incidents that wait for their end */
	uint64_t next_end_ns;                /* the first of these ends; UINT64_MAX = none */
	bool window_extended;                /* one goes on beyond its end: checked at each tick */
	uint64_t caught_up_ns;               /* the end for which sources were asked to catch up */
	bool seal_past;                      /* an incident began: seal what came before it soon */

	/* the end of the run */
	bool closed;                         /* its time is over: further events are dropped */
	bool stopping_sources;

	/* costs: budget.c, memory.c, tables.c */
	struct budget budget;
	char budget_reason[200];             /* of the step that a source is about to take */
	struct memory_budget memory;
	bool full_tables_logged;
};

void merge_main(void *engine);

/* ---- the open segment: segments.c ----------------------------------------------------------- */

/* Put an event into the open segment, sealed first when it is full. false: over a quota. */
bool engine_keep(struct engine *e, struct event *event);
/* Seal the open segment: it goes to the ring, and to the incidents that wait for it. */
void engine_seal(struct engine *e);
/* The same, if it holds enough to be worth its memory. */
void engine_seal_past(struct engine *e);

/* ---- incidents: incident.c ------------------------------------------------------------------ */

/* What makes an incident. */
struct firing {
	uint32_t rule;                       /* index of the trigger, or MANUAL_RULE */
	const char *rule_text, *reason;
	double value, limit;                 /* NaN = none */
	const struct event *event;           /* NULL = none */
	uint64_t time_ns, pre_ns, post_ns;
	bool whole;                          /* a whole file; see struct pending */
};

/* Why windows end early. */
struct window_end {
	const char *cut;                     /* NULL = recording ended */
	bool partial;                        /* somebody ended the run before they were whole */
};

/* false: it cannot be kept; the log says why. */
bool engine_fire(struct engine *e, const struct firing *f);
/* Complete the incidents whose post-window has ended; with end: all of them. */
void engine_windows(struct engine *e, uint64_t now_ns, const struct window_end *end);
/*
 * How long the merge thread may sleep, at most wait_ns, for the next end of a window. When an end
 * has come the sources are asked to deliver what belongs to it: somebody waits.
 */
uint64_t engine_windows_wait(struct engine *e, uint64_t wait_ns);

/* ---- the recorder about itself -------------------------------------------------------------- */

/* own.c: put an event into the queue of own events; merge.c takes them from there. */
void own_event_put(struct engine *e, uint64_t time_ns, uint16_t cpu, const char *name,
		   const struct event_field *fields, uint32_t nfields);
/* How much the ring holds. */
void own_event_put_ring(struct engine *e, uint64_t time_ns);
double ring_bytes_per_sample(const struct ring_use *use);

/* evicted.c: which samples of requested windows the ring gave up. note: for ring_on_evict(). */
void evicted_note(void *engine, const struct segment *segment);
void evicted_put(struct engine *e, uint64_t from_ns, uint64_t trigger_ns);

/* ---- limits --------------------------------------------------------------------------------- */

/* memory.c: how much memory may be resident. look: once a second. */
void memory_open(struct engine *e);
void memory_look(struct engine *e);

/* budget.c: what the recorder may cost. look: once a second. */
void engine_budget_open(struct engine *e);
void engine_budget_look(struct engine *e);
/* EVENT_RATE has come: the samples behind it stand for another period. */
void engine_budget_rate(struct engine *e, struct event *event);

/* tables.c: forget what nothing lists any more. sweep: a slice of it. */
void tables_sweep(struct engine *e);
void tables_sweep_all(struct engine *e);
/* When a table is nearly full: forget everything unused, then give up the oldest history. */
void tables_keep_room(struct engine *e);
/* At the start of each segment: how much of it one process may take. */
void tables_set_quota(struct engine *e);
