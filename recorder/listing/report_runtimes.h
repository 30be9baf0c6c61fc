/* The parts of report that runtimes tell: collections, compiled methods, exceptions, waits. */
#pragma once

#include "listing/sheet.h"
#include "model/incident.h"

/* The longest collections; nothing without any. */
int report_collections(struct sheet *sheet, const struct options *o, const struct incident *in,
		       struct err *err);

/* All of --runtimes. ERR_NOT_FOUND: no runtime told anything. in gets frames and texts. */
int report_runtimes(struct sheet *sheet, const struct options *o, struct incident *in,
		    struct err *err);
