/*
 * --data-file: each stored incident is exported under this name, before StopCommand runs.
 *
 *	/var/x/slow.html    the suffix says the format
 *	slow.etl, slow      PerfView's names for its output: slow.perfView.xml.zip
 *
 * An existing file is never replaced: the name gets the lowest free number, slow.1.html,
 * slow.2.html, in place of a number that ends the name already (slow.2026.html -> slow.1.html), as
 * PerfView does with CollectMultiple. A file appears whole or not at all.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define DATA_FILES_MAX 100000u

/* Whether the name ends as a file for incidents does: a format's suffix, or .etl, .etl.zip. */
bool data_file_has_suffix(const char *name);

/* Whether files of this name can be made: ERR_USAGE for a directory, or a file in a missing one. */
int data_file_check(const char *name, struct err *err);

/* The name of the first file: "/var/x/slow.perfView.xml.zip". */
void data_file_first(const char *name, struct buf *out);

/*
 * Export one incident of a store. Any thread; opens the store for itself. It takes as much time and
 * memory as `recorder export`.
 *
 * progress grows while it goes on; NULL = nobody looks
 * path     the file that was written; empty after a failure
 * returns  0; errors of the store and of writing; ERR_LIMIT when DATA_FILES_MAX are there
 */
int data_file_write(const char *store_path, int64_t incident, const char *name,
		    _Atomic uint64_t *progress, struct buf *path, struct err *err);
