/* report --source: the lines of a function with what each costs, beside the text of its files. */
#pragma once

#include "listing/sheet.h"
#include "model/incident.h"

/* Where else the text of a module's source file is; sets path. */
struct source_finder {
	bool (*find)(void *ctx, uint32_t module, const char *file, struct buf *path);
	void *ctx;
};

/*
 * in: with lines (cli/source_lines.h), not grouped. A text that cannot be read is a remark in
 * *notes, one a line. ERR_NOT_FOUND: no function of that name, or
 * it has no lines.
 */
int report_source(struct sheet *sheet, const struct options *o, const struct incident *in,
		  enum stream stream, const struct source_finder *finder, struct buf *notes,
		  struct err *err);
