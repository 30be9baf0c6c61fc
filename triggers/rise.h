/*
 * A limit on how much a value has changed: ">+20% in 5m", "<-512M in 30s".
 *
 * The change is the value's distance from its smallest (for '<': largest) value of that time. The
 * time is kept in RISE_SLOTS parts, so it is exact to one of them. A percentage is one of that
 * smallest or largest value; where this is not above 0 the change counts as 0. One thread.
 */
#pragma once

#include "triggers/spec.h"

#include <stdint.h>

#define RISE_SLOTS 128u
#define RISE_MAX_SEC (30 * 86400.0)

struct rise {
	uint64_t within_ns;                  /* 0 = the value itself is compared */
	bool percent, falls;
	struct {
		uint64_t number;             /* of the part of time, plus 1; 0 = empty */
		double extreme;              /* smallest value, or largest where it falls */
	} slots[RISE_SLOTS];
};

/*
 * Take "% in 5m" off the end of the head, whose sign and number are left: ">+20". Without " in "
 * nothing is changed. ERR_USAGE: no time, no sign, or the sign of the other direction.
 */
int rise_parse(struct rise *r, struct spec *s);

/* The change that this value makes, in percent or its own unit; below 0 where it fell. */
double rise_change(struct rise *r, double value, uint64_t time_ns);
/* What comes next is another thing: a new process of that name. */
void rise_forget(struct rise *r);
