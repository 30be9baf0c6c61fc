/*
 * For show: what the recorder noted about itself in an incident (model/own_event.h). The bytes come
 * from a store: a field that is missing or of another type counts as 0.
 */
#pragma once

#include "listing/sheet.h"
#include "model/incident.h"

/*
 * A line for each change of rate, and a line "Ring"; nothing where the recorder noted nothing. With
 * --json, keys of the open object: "rates", and "ring", null when nothing was noted.
 */
void own_put(const struct incident *in, struct sheet *p);

/*
 * For show --threads: each thread that was looked at when a rule with ;Stacks fired, with its
 * stack; with --json an object a line. ERR_NOT_FOUND: there are none.
 */
int threads_put(const struct incident *in, struct sheet *p, struct err *err);
