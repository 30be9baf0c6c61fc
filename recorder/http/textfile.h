/*
 * The metrics of http/metrics.h in a file, for the textfile collector of node_exporter: written
 * anew every 15 s, whole or not at all, readable by everybody, and removed when recording ends.
 */
#pragma once

#include "base/log.h"

struct textfile;

/* ERR_USAGE: the collector reads only names that end in ".prom". */
int textfile_check(const char *path, struct err *err);
/* The texts must outlive it. The recorder of this store is asked, from a thread of its own. */
int textfile_open(const char *path, const char *store_path, struct log *log, struct textfile **out,
		  struct err *err);
void textfile_close(struct textfile *t);             /* NULL allowed */
