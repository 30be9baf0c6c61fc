/* For show --threads: the threads that were looked at when a rule with ;Stacks fired. */
#pragma once

#include "cli/sheet.h"
#include "model/incident.h"

/* Each thread with its stack, with --json an object a line. ERR_NOT_FOUND: there are none. */
int threads_put(const struct incident *in, struct sheet *p, struct err *err);
