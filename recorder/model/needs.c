#include "model/needs.h"

#include <string.h>

int needs_counter(struct needs *n, const char *name, uint64_t period_ns, bool monitor,
		  struct err *err)
{
	struct need_counter *c;
	uint32_t i;

	if (strlen(name) >= COUNTER_NAME_MAX)
		return err_set(err, ERR_LIMIT, "the counter name '%.60s...' has over %d bytes", name,
			       COUNTER_NAME_MAX - 1);
	for (i = 0; i < n->ncounters; i++) {
		c = &n->counters[i];
		if (strcmp(c->name, name) != 0)
			continue;
		if (period_ns < c->period_ns)
			c->period_ns = period_ns;
		c->monitor |= monitor;
		return 0;
	}
	if (n->ncounters == NEEDS_MAX_COUNTERS)
		return err_set(err, ERR_LIMIT, "over %u different counters are asked for",
			       NEEDS_MAX_COUNTERS);
	c = &n->counters[n->ncounters++];
	strcpy(c->name, name);
	c->period_ns = period_ns;
	c->monitor = monitor;
	return 0;
}
