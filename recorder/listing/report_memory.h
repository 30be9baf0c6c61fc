/* report --memory: how memory grew, by process, module, function and stack. */
#pragma once

#include "listing/sheet.h"
#include "model/incident.h"

/* returns  0, ERR_NOT_FOUND when the incident has no page faults, ERR_MEMORY */
int report_memory(struct sheet *sheet, const struct options *o, const struct incident *in,
		  struct err *err);
