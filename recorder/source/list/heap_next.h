/*
 * --heap-next NAME: programs of that name that start from now on are sampled, whoever starts them.
 *
 * A line in /etc/ld.so.preload has every program that starts load librecorder-heap.so by a link
 * whose path says the name; in a program of another name the library does nothing. The line is
 * taken out at the end. If the recorder is killed, a small process that it left behind does so; if
 * that is killed, too, or the power is cut, the next recorder of root.
 *
 * Windows tells of the heaps of programs that start with TracingFlags in their key of Image File
 * Execution Options. The flag is set, and at the end it is what it was before, unless another
 * recorder needs it. What a killed recorder set, the next one puts back.
 *
 * As root, as administrator.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct heap_next;

/*
 * file    NULL, but in tests: /etc/ld.so.preload; Windows: the key of the options of all programs
 * folder  NULL, but in tests: /run/recorder-heap, in which the link is
 *         PID/NAME@BYTES/librecorder-heap.so; Windows: the key that says who set which flag
 * library the file that the link points to; not of Windows
 * name    base name of programs' files: letters, digits and any of . _ + -; Windows: any, with
 *         or without .exe
 * returns 0, ERR_USAGE (the name), ERR_MEMORY, or what the system said
 */
int heap_next_begin_at(const char *file, const char *folder, const char *library, const char *name,
		       uint64_t mean_bytes, struct heap_next **out, struct err *err);
void heap_next_end(struct heap_next *n);             /* NULL allowed */
/* Take out what recorders that have ended left; what cannot be written stays. NULL as above */
void heap_next_tidy(const char *file, const char *folder);
