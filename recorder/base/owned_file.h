/*
 * Files that only their owner can have written: secrets, and settings that decide what a privileged
 * process does. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Load a plain file, no link, that belongs to this process's user or to root.
 *
 * secret   others must not be able to read it
 * max      bytes
 * returns  0, ERR_USAGE (its owner or mode), or what the system said
 */
int owned_file_load(const char *path, bool secret, size_t max, struct buf *out, struct err *err);
