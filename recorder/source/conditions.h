/*
 * Checks whether the conditions of a need_event (model/needs.h), such as "pid=5;comm=sh", can hold
 * for an event with known fields. Portable and pure. Any thread.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct known_field {
	const char *name;
	bool is_number;                      /* never a text */
};

/*
 * Check that each condition names one of the fields, or one that every event has
 * (event_has_own_field()), and that none compares a number with a text (1M is one), but by ~ or !=.
 *
 * all      whether these are all fields of the event; if not, it may have a field of any name
 * event    "sched/sched_switch", for the sentence
 * returns  0, or ERR_USAGE with the nearest fields, and all of them
 */
int conditions_check(const struct known_field *fields, uint32_t nfields, bool all,
		     const char *event, const char *conditions, struct err *err);
/* The same for one field; "" = none. */
int conditions_check_field(const struct known_field *fields, uint32_t nfields, bool all,
			   const char *event, const char *field, struct err *err);
