/*
 * fleet: the incidents of all machines, in the database that `ship` has put them into. Sums are
 * made there (ship/fleet.h); what comes here are the rows of tables, and for the spread of the
 * hosts a number for each host and function that is shown. One thread.
 */
#pragma once

#include "options/options.h"

/* list, top, report, diff or schema, as o->pattern says. ERR_NOT_FOUND: no such incidents */
int fleet_run(const struct options *o, struct err *err);
