/*
 * A source that a test writes by hand: numbered samples at a steady rate in trace time, and "fire"
 * events at given times. The weight of a sample is its number, so a gap shows in any incident.
 */
#pragma once

#include "source/source.h"
#include "triggers/trigger.h"

#define SYNTHETIC_FIRES_MAX 32u
#define SYNTHETIC_LEAK_BYTES 249856u         /* of a fault: 61 pages */

struct synthetic_plan {
	uint64_t start_ns, step_ns;
	uint64_t nsamples;
	double fire_s[SYNTHETIC_FIRES_MAX];  /* seconds after start_ns, rising; 0 ends the list */
	/* 0 = the event has no stack; else 10 named functions, of which the n-th differs */
	double fire_late_s;                  /* they speak of so long ago; 0 = they do not */
	uint8_t fire_stack[SYNTHETIC_FIRES_MAX];
	bool fire_child[SYNTHETIC_FIRES_MAX];        /* by another process */
	uint32_t depth;                      /* frames of a stack; 0 = 4 */
	uint32_t functions;                  /* different leaf functions; 0 = 10 */
	uint32_t child_each;                 /* each such sample is of a new process; 0 = none */
	void (*at)(void *ctx, uint64_t number);   /* called before each sample; NULL = nothing */
	void *ctx;
	uint64_t lose_each;                  /* one loss event after so many samples; 0 = none */
	enum loss_kind lose;                 /* of this kind */
	uint64_t gap_after, gap_ns;          /* so much time passes after this sample; 0 = none */
	uint64_t rate_after;                 /* EVENT_RATE behind this sample: 20 ms; 0 = none */
	uint64_t fail_after;                 /* then run() fails: "cannot read on"; 0 = never */
	/* samples are page faults: 7 of 10 by leaf 0, 3 by leaf 1; as many by leaf 2 go again */
	bool leak;
	bool names;                          /* leaf functions have names, "leaf_3": name_frame() */
	struct source_origin origin;         /* of a file */
};

/* The plan that the next open() of synthetic_source takes; one test at a time. */
void synthetic_plan(const struct synthetic_plan *plan);
extern const struct source_ops synthetic_source;

/* A rule that fires at each "fire" event of the provider "test". */
struct trigger *synthetic_trigger(void);
/* What it fires goes on until this time; 0 = it does not. Of all rules that it gives. */
void synthetic_lasts(uint64_t until_ns);
