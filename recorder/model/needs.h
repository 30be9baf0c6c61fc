/*
 * What rules ask of sources: counters and their periods. The engine merges the rules' needs and
 * gives them to the sources that can meet them.
 */
#ifndef MODEL_NEEDS_H
#define MODEL_NEEDS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define NEEDS_MAX_COUNTERS 256u
#define COUNTER_NAME_MAX 400            /* bytes, NUL included */

struct need_counter {
	char name[COUNTER_NAME_MAX];        /* CATEGORY:COUNTER:INSTANCE as the rule gave it */
	uint64_t period_ns;
	bool monitor;                       /* its values are kept in the incident */
};

struct needs {
	struct need_counter counters[NEEDS_MAX_COUNTERS];
	uint32_t ncounters;
};

/* Add a counter, or shorten the period of one that is there; ERR_LIMIT when there are too many. */
int needs_counter(struct needs *n, const char *name, uint64_t period_ns, bool monitor,
		  struct err *err);

#endif
