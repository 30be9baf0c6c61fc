/* report --source: the lines of a function with what each costs, beside the text of its files. */
#pragma once

#include "listing/sheet.h"
#include "model/incident.h"

/*
 * in: with lines (cli/source_lines.h), not grouped. A text that cannot be read is a remark in
 * *notes, one a line. ERR_NOT_FOUND: no function of that name, or
 * it has no lines.
 */
int report_source(struct sheet *sheet, const struct options *o, const struct incident *in,
		  enum stream stream, struct buf *notes, struct err *err);
