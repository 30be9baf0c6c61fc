/*
 * The conf file: options of options/table.c, one "name = value" a line.
 *
 * A line is split at its first '='. Blanks around name and value are removed; otherwise the value
 * is taken as it is, without quotes. '#' begins a comment only at the start of a line, because
 * names of counters may contain it. Lists are repeated lines. The command line wins. One thread.
 */
#pragma once

#include "options/options.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/*
 * Set the options that are in the text.
 *
 * path     for error sentences only
 * returns  0; ERR_USAGE: "FILE:LINE: ...", with the nearest names for an unknown one; ERR_MEMORY
 */
int config_parse(const char *path, const char *text, size_t n, struct options *o, struct err *err);

/* Read the file and parse it. An unreadable file is ERR_USAGE. */
int config_load(const char *path, struct options *o, struct err *err);

/* The file that --config or $RECORDER_CONFIG names; 0 when neither does. */
int config_load_named(struct options *o, struct err *err);

/* Parse the same arguments again, and the file as it is now. out: free it after an error, too. */
int config_again(const struct options *o, struct options *out, struct err *err);
