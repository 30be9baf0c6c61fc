/*
 * Samples summed by thread or process and by exact stack, for formats that print addresses. In a
 * call tree (export_tree.h), stacks with the same names would be one. One thread.
 */
#pragma once

#include "export/export.h"

struct sum {
	uint32_t process;                    /* index; UINT32_MAX = not known */
	uint32_t thread;                     /* or THREAD_NONE */
	uint32_t stack;                      /* or STACK_NONE */
	const char *mark;                    /* stack_tree_mark() of its samples */
	uint64_t count, weight, time_ns;     /* samples, export_weight(), and weights in ns */
};

struct sums {
	struct sum *items;                   /* in the order of their first sample */
	uint32_t n;
};

enum sums_by { SUMS_BY_PROCESS, SUMS_BY_THREAD };

/* s starts as {0}; opt->part: samples of its processes only. 0 or ERR_MEMORY. */
int sums_make(struct sums *s, const struct incident *in, const struct export_options *opt,
	      enum sums_by by, struct err *err);
void sums_free(struct sums *s);
/* The first of a part's items, and the one after its last; all when part is NULL. */
uint32_t sums_first(const struct sums *s, struct export_part *part, uint32_t *last);

/* The process of a sum; 0 or `otherwise` when it is unknown. */
uint32_t sum_pid(const struct incident *in, const struct sum *s);
const char *sum_process_name(const struct incident *in, const struct sum *s, const char *otherwise);

/* The frames of a stack, leaf first; starts as {0}, and may be made again and again. */
struct path {
	uint32_t *frames;
	uint32_t n, capacity;
};

int path_make(struct path *p, const struct incident *in, uint32_t stack);   /* 0 or ERR_MEMORY */
void path_free(struct path *p);

/* Append a sum of the incident as text; path: its frames. */
typedef void sum_put(const struct incident *in, const struct export_options *opt,
		     const struct sum *s, const struct path *path, struct buf *text);

/*
 * Sum by process and write each sum that weighs something: the heaviest first, as far as opt->top
 * and opt->min_weight allow, or else all of them, the heaviest last.
 */
int sums_write(const struct incident *in, const struct export_options *opt, bool heaviest_first,
	       sum_put *put, struct out *out, struct err *err);
