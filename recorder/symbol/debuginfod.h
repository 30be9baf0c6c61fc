/*
 * Programs and debug files from servers of debuginfod, by libdebuginfod, which is loaded when
 * somebody names a server. It keeps what it fetched in a cache of its own, whose layout is one of
 * those that elf_file_open_in() knows. Linux only: elsewhere nothing is fetched, and says so.
 *
 * One thread; waits for the network, up to DEBUGINFOD_TIMEOUT (90 s) without a byte.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct debuginfod;

/* urls: separated by blanks. ERR_UNSUPPORTED: the library is not there; ERR_MEMORY. */
int debuginfod_open(const char *urls, struct debuginfod **out, struct err *err);
void debuginfod_close(struct debuginfod *d);         /* NULL allowed */
/*
 * Fetch the program of a build id and its debug file, unless the cache has them.
 *
 * dirs     directories separated by ';': the cache that holds ID/executable and ID/debuginfo is
 *          appended once
 * returns  0: there is something; ERR_NOT_FOUND: no server has anything; ERR_IO
 */
int debuginfod_fetch(struct debuginfod *d, const uint8_t *build_id, unsigned n, struct buf *dirs,
		     struct err *err);
/* The same for the text of a source file, as the debug information names it; its path here. */
int debuginfod_fetch_source(struct debuginfod *d, const uint8_t *build_id, unsigned n,
			    const char *file, struct buf *path, struct err *err);
