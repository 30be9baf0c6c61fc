/*
 * A file of a .zip in memory, such as PerfView's .perfView.xml.zip (APPNOTE.TXT 6.3.3, section
 * 4.3.7), and gzip files, such as pprof's (RFC 1952). No state.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

bool unzip_is_zip(const void *bytes, size_t n);
bool unzip_is_gzip(const void *bytes, size_t n);
/*
 * Append to out, at most out->max_bytes. Of a .zip it is the first file whose name ends so ("" =
 * any); errors call the .zip `name`. ERR_FORMAT, also when there is none; ERR_UNSUPPORTED,
 * ERR_LIMIT, ERR_MEMORY.
 */
int unzip_file(const void *bytes, size_t n, const char *ending, const char *name, struct buf *out,
	       struct err *err);
int unzip_gzip(const void *bytes, size_t n, const char *name, struct buf *out, struct err *err);
