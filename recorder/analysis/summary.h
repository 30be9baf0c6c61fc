/*
 * Processes, functions and stacks of an incident by their samples, most samples first.
 *
 * Samples of the CPU count; where there are none, those of all streams but off-CPU time. A sample
 * counts once, whatever its weight, unless the sampling rate changed within the incident: then all
 * counts but without_stack are microseconds of CPU time (incident_units()). A function's inclusive
 * count has a sample once, however often the function stands in its stack. Equal counts are ordered
 * by name, then by number, so the result is the same everywhere. Stacks of one process with equal
 * names (and source lines, where frames have them) count as one stack. One thread.
 */
#pragma once

#include "model/stack_tree.h"

struct summary_process {
	uint32_t process;                    /* index; UINT32_MAX = not known */
	uint64_t samples;
	uint64_t quality[QUALITIES];
	uint64_t code[CODE_KINDS];           /* samples with such a frame, wherever it stands */
	uint64_t unnamed;                    /* with generated code that has no name */
};

struct summary_function {
	const char *name;                    /* "module!function" */
	uint64_t self, inclusive;
};

struct summary_stack {
	uint32_t process;                    /* as above */
	uint32_t stack;                      /* leaf node */
	uint64_t samples;
};

struct summary_counter {
	const char *name;                    /* points into the incident */
	uint64_t values;                     /* readings with a value */
	double min, max, mean;
	double at_trigger;                   /* the last reading up to the trigger; NaN = none */
};

struct summary {
	struct summary_process *processes;
	struct summary_function *functions;  /* by self, then inclusive */
	struct summary_stack *stacks;        /* STACK_NONE is not among them */
	uint32_t nprocesses, nfunctions, nstacks;
	uint64_t whole;                      /* samples of all processes */
	uint64_t without_stack;              /* samples */
	struct stack_tree tree;              /* owns the names; has no nodes any more */
};

/* addresses: frames without a name get their offset. Free the result with summary_free(). */
int summary_make(const struct incident *in, bool addresses, struct summary *out, struct err *err);
void summary_free(struct summary *s);

/*
 * The counters whose values the incident holds, by name. Free *out with free().
 * returns  0 or ERR_MEMORY
 */
int summary_counters(const struct incident *in, struct summary_counter **out, uint32_t *n,
		     struct err *err);

/* Reorder the functions: by inclusive, then self. */
void summary_by_inclusive(struct summary *s);
