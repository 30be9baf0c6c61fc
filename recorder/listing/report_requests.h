/* The part of report on requests, and other activities from a start event to its stop. */
#pragma once

#include "analysis/activities.h"
#include "listing/sheet.h"

/*
 * The slowest first, --rows of them, each with those nested in it. a: measured.
 * ERR_NOT_FOUND: there are none.
 */
int report_requests(struct sheet *sheet, const struct options *o, const struct incident *in,
		    const struct activities *a, struct err *err);
