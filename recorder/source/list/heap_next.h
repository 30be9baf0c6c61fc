/*
 * --heap-next NAME: programs of that name that start from now on are sampled, whoever starts them.
 *
 * A line in /etc/ld.so.preload has every program that starts load librecorder-heap.so by a link
 * whose path says the name; in a program of another name the library does nothing. The line is
 * taken out at the end. If the recorder is killed, a small process that it left behind does so; if
 * that is killed, too, or the power is cut, the next recorder of root. Linux only, as root.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

#define HEAP_NEXT_FILE "/etc/ld.so.preload"
#define HEAP_NEXT_FOLDER "/run/recorder-heap"

struct heap_next;

/*
 * file    HEAP_NEXT_FILE, but in tests
 * folder  HEAP_NEXT_FOLDER; the link is PID/NAME@BYTES/librecorder-heap.so in it
 * library the file that the link points to
 * name    base name of programs' files: letters, digits and any of . _ + -
 * returns 0, ERR_USAGE (the name), ERR_MEMORY, or what the system said
 */
int heap_next_begin_at(const char *file, const char *folder, const char *library, const char *name,
		       uint64_t mean_bytes, struct heap_next **out, struct err *err);
void heap_next_end(struct heap_next *n);             /* NULL allowed */
/* Take out the lines of recorders that have ended; what cannot be written stays. */
void heap_next_tidy(const char *file, const char *folder);
