/*
 * The log: lines for a person, on stderr or in a file, never waiting on the caller's thread.
 *
 * Any thread may call log_line(): it formats into a bounded queue under a short lock. log_drain(),
 * called by the control thread, writes what is queued. When the queue is full lines are dropped and
 * counted, and the next drain says how many.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

#include <stdbool.h>

#define LOG_QUEUE_LINES 1024
#define LOG_LINE_BYTES 1000

struct log;

enum log_level { LOG_INFO, LOG_WARN, LOG_ERROR };

/* path NULL = stderr, without time stamps when that is a terminal; a file is appended to. */
int log_open(const char *path, struct log **out, struct err *err);
void log_close(struct log *log);                   /* drains first; NULL allowed */
void log_line(struct log *log, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
void log_drain(struct log *log);
/* Each line wakes the thread that drains; NULL: none does any more. Before `wake` is freed, any thread. */
struct os_wake;
void log_wakes(struct log *log, struct os_wake *wake);
/*
 * Open the file of its path anew, as one moved away by logrotate stays open; drains first. For the
 * thread that drains. returns  0, ERR_UNSUPPORTED it goes to stderr, or why not: the old one stays
 */
int log_reopen(struct log *log, struct err *err);
/* log NULL = nowhere: tests and tools without a log pass NULL. */

#endif
