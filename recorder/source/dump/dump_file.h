/*
 * A dump on disk, or one that comes through a pipe: from the kernel (core(5), "Piping core dumps to
 * a program"), or from coredumpctl. What comes through a pipe is kept in a temporary file that
 * nobody else can open; its pages of zeros take no room.
 */
#pragma once

#include "source/dump/dump.h"

#define DUMP_PIPE_MAX_BYTES ((uint64_t)8 << 30)      /* kept of what comes through a pipe */

struct dump_file {
	struct os_file *file;
	struct dump *dump;
	uint64_t wall_ns;                    /* when it was made */
};

/*
 * path     "-" = standard input, to its end
 * returns  0; ERR_NOT_FOUND, ERR_ACCESS; ERR_FORMAT, ERR_UNSUPPORTED: core.h, minidump.h
 */
int dump_file_open(const char *path, struct dump_file *out, struct err *err);
void dump_file_close(struct dump_file *f);           /* an empty one is allowed */
