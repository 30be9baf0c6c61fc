/*
 * The log: lines for a person, on stderr or in a file. Writing a line never blocks the caller.
 *
 * Any thread may call log_line(): it formats into a bounded queue under a short lock. The control
 * thread calls log_drain(), which writes the queued lines. When the queue is full, lines are
 * dropped and counted, and the next drain says how many.
 *
 * Whatever a stranger makes us say, the log stays readable and small. Each place of the program
 * that calls log_line() writes LOG_MINUTE_LINES a minute; the rest are counted. When the minute
 * ends, one line says how many there were, and quotes the first. A file of LOG_FILE_BYTES is
 * renamed to "PATH.1", in place of the one before, and a new one is begun: together they take
 * twice as much.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define LOG_QUEUE_LINES 1024
#define LOG_LINE_BYTES 1000
#define LOG_FILE_BYTES (16u << 20)
#define LOG_MINUTE_LINES 60u

struct log;

enum log_level { LOG_INFO, LOG_WARN, LOG_ERROR };

/* path NULL = stderr, without time stamps on a terminal; an existing file is appended to. */
int log_open(const char *path, struct log **out, struct err *err);
void log_close(struct log *log);                   /* drains first; NULL allowed */
void log_line(struct log *log, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
/* Drop lines below this level from now on. Before other threads have the log. */
void log_least(struct log *log, enum log_level level);
void log_drain(struct log *log);
void log_drain_at(struct log *log, uint64_t now_ns);     /* the same at that time of os_now_ns() */
/*
 * Let each line wake the draining thread; NULL stops that. Call it before `wake` is freed. Any
 * thread.
 */
struct os_wake;
void log_wakes(struct log *log, struct os_wake *wake);
/*
 * Drain, then reopen the log's path: logrotate may have moved the open file away. Draining thread.
 * returns  0; ERR_UNSUPPORTED when the log goes to stderr; else the old file stays open
 */
int log_reopen(struct log *log, struct err *err);
/* Somebody reads it as it comes: its lines have no time. */
bool log_is_terminal(const struct log *log);
/* log NULL = drop the line: tests and tools without a log pass NULL. */
