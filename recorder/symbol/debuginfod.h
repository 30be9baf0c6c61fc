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
 * Fetch the program of a build id, or its debug file, unless the cache has it.
 *
 * cache    set to the directory that holds ID/executable and ID/debuginfo
 * returns  0; ERR_NOT_FOUND: no server has it; ERR_IO
 */
int debuginfod_fetch(struct debuginfod *d, const uint8_t *build_id, unsigned n, bool debug,
		     struct buf *cache, struct err *err);
