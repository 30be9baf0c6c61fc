/*
 * --data-file: each incident that was stored, exported under this name, before StopCommand runs.
 *
 *	/var/x/slow.html    the format is that of the suffix
 *	slow.etl, slow      PerfView's names for its output: slow.perfView.xml.zip
 *
 * A file that is there is never replaced: slow.1.html, slow.2.html, the lowest number that is free,
 * in place of one that ends the name already (slow.2026.html -> slow.1.html), as PerfView counts them
 * with CollectMultiple. A file appears whole or not at all. Source of the counting: design page
 * triggers.md, section 2.1.
 */
#ifndef DATA_FILE_H
#define DATA_FILE_H

#include "base/buf.h"

#include <stdint.h>

#define DATA_FILES_MAX 100000u

/* Whether files of this name can be made: ERR_USAGE when its directory is not there, or it is one. */
int data_file_check(const char *name, struct err *err);

/* The first name, for people: "/var/x/slow.perfView.xml.zip". */
void data_file_first(const char *name, struct buf *out);

/*
 * Export one incident of a store. Any thread; opens the store for itself. Takes time and memory, as
 * `recorder export` does.
 *
 * path     the file that was written; empty after a failure
 * returns  0; errors of the store and of writing; ERR_LIMIT when DATA_FILES_MAX are there
 */
int data_file_write(const char *store_path, int64_t incident, const char *name, struct buf *path,
		    struct err *err);

#endif
