/*
 * Whether the conditions of a need_event (model/needs.h), as "pid=5;comm=sh", can hold at all,
 * where the fields of its event are known. Portable and pure. Any thread.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct known_field {
	const char *name;
	bool is_number;                      /* and never a text */
};

/*
 * Each condition names one of the fields, or one that every event has (ProcessID, ThreadID,
 * ProcessName, ProviderName), and none wants a number to equal what is none.
 *
 * all      whether these are all of its fields: else an unknown one may be there
 * event    "sched/sched_switch", for the sentence
 * returns  0, or ERR_USAGE with the nearest fields, and all of them
 */
int conditions_check(const struct known_field *fields, uint32_t nfields, bool all,
		     const char *event, const char *conditions, struct err *err);
