/*
 * What an incident says about memory: how much each process had and grew, and in whose name.
 *
 * Growth is what samples of STREAM_RSS_NET weigh (incident_memory()). It is charged to who asked
 * for the memory: the first caller outside the allocator, the C library and the kernel.
 */
#pragma once

#include "model/incident.h"

struct memory_process {
	uint32_t process;                    /* index */
	bool sized;                          /* its sizes are known; else they are 0: */
	double start_kb, trigger_kb, peak_kb;   /* resident: first, at the trigger, at most */
	double grew_kb;                      /* anonymous memory; below 0: it shrank */
	double touched, net;                 /* bytes by page faults; of these still there */
	double allocated, in_use;            /* bytes of heap or objects, if sampled */
	/* STREAM_HEAP, or STREAM_ALLOC, which does not tell what was freed */
	enum stream allocated_by;
	double factor;                       /* by what net was multiplied; 0 = not known */
	bool ended;                          /* in the window */
	bool killed;                         /* by the kernel, for lack of memory */
};

/*
 * Those that touched memory or whose size changed: those that were killed, then the most growth
 * first. Free *out with free().
 * returns  0 or ERR_MEMORY
 */
int memory_processes(const struct incident *in, struct memory_process **out, uint32_t *n,
		     struct err *err);

enum memory_by { MEMORY_BY_MODULE, MEMORY_BY_FUNCTION, MEMORY_BY_STACK };

struct memory_pool {
	const char *name;                    /* of a stack: callers after " < " */
	double bytes;
	uint32_t samples;
	uint64_t first_ns, last_ns;          /* when it was touched, or allocated */
	/* Of STREAM_HEAP, those that were freed: */
	double freed;                        /* bytes */
	double life_ns;                      /* from allocation to free, the mean of these bytes */
};

struct memory_pools {
	struct memory_pool *all;             /* the largest first */
	uint32_t n;
	struct text_table *names;
};

/*
 * What is still there of a process (STREAM_RSS_NET or _HEAP_NET), or what it allocated
 * (STREAM_HEAP or _ALLOC). returns  0 or ERR_MEMORY
 */
int memory_pools_new(const struct incident *in, uint32_t process, enum stream stream,
		     enum memory_by by, struct memory_pools *out, struct err *err);
void memory_pools_free(struct memory_pools *p);

/* Whether stacks of what is still there of a process pass a module with `module` in its name. */
bool memory_passes(const struct incident *in, uint32_t process, const char *module);

/*
 * Whether it looks like a leak: older than half of the window, and more came in its last quarter,
 * with at least three samples.
 */
bool memory_is_suspect(const struct incident *in, const struct memory_pool *p);

/* A free that was a mistake. Stacks are indices; STACK_NONE = not known. */
struct memory_mistake {
	bool twice;                          /* else of a pointer that no allocation gave */
	uint32_t process;
	uint64_t time_ns, address;
	uint32_t freed_by, freed_first_by, allocated_by;
	uint64_t freed_first_ns, allocated_ns;       /* 0 = not known */
};

/* The next one from event *at on, which moves. returns  false = there is none */
bool memory_mistake_next(const struct incident *in, uint32_t *at, struct memory_mistake *out);
/* "f < g < h": the first caller outside the allocator, and its callers; "?" of STACK_NONE */
void memory_stack_text(const struct incident *in, uint32_t stack, struct buf *out);
