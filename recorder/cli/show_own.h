/*
 * For show: what the recorder noted about itself in an incident (model/own_event.h). The bytes come
 * from a store: a field that is missing or of another type counts as 0.
 */
#pragma once

#include "cli/sheet.h"
#include "model/incident.h"

/*
 * A line for each change of rate, and a line "Ring"; nothing where the recorder noted nothing. With
 * --json, keys of the open object: "rates", and "ring", null when nothing was noted.
 */
void own_put(const struct incident *in, struct sheet *p);
