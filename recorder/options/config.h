/*
 * The conf file: the options of the table in options/table.c, one "name = value" a line.
 *
 * A line is split at its first '='; name and value are trimmed, the value is taken verbatim
 * otherwise, without quotes. '#' makes a comment at the start of a line only, because counter names
 * may hold one. Options that are lists repeat. What the command line gave wins. One thread.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "options/options.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/*
 * Set the options that the text holds.
 *
 * path     for the sentences only
 * returns  0; ERR_USAGE: "FILE:LINE: ..." and for an unknown name the nearest ones; ERR_MEMORY
 */
int config_parse(const char *path, const char *text, size_t n, struct options *o,
		 struct err *err);

/* Read the file and parse it. A file that cannot be read is ERR_USAGE. */
int config_load(const char *path, struct options *o, struct err *err);

#endif
