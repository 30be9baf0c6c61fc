#include "base/log.h"

#include "base/buf.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_BYTES 16384             /* written at a time, from the drainer's stack */

struct log {
	struct os_file *file;
	char *path;                   /* NULL = stderr */
	bool failure_reported;                    /* a failed write was reported */
	bool stamped;                 /* a time before each line */
	struct os_mutex *lock;        /* guards the fields below */
	unsigned first, count;
	uint64_t dropped;
	struct os_wake *wake;         /* NULL = no thread waits for lines */
	char lines[LOG_QUEUE_LINES][LOG_LINE_BYTES];
};

int log_open(const char *path, struct log **out, struct err *err)
{
	struct log *log = calloc(1, sizeof(*log));
	int rc = 0;

	if (log) {
		log->lock = os_mutex_new();
		log->path = path ? text_dup(path, SIZE_MAX) : NULL;
	}
	if (!log || !log->lock || (path && !log->path))
		rc = err_memory(err, "while opening the log");
	else if (!path)
		log->file = os_stderr();
	else if ((rc = os_open(path, OS_APPEND, &log->file, err)) != 0)
		err_prefix(err, "cannot open the log file");
	if (rc) {
		log_close(log);
		return rc;
	}
	log->stamped = path || !os_is_terminal(log->file);
	*out = log;
	return 0;
}

void log_close(struct log *log)
{
	if (!log)
		return;
	if (log->file)
		log_drain(log);
	os_close(log->file);
	os_mutex_free(log->lock);
	free(log->path);
	free(log);
}

/* Time and a space, or nothing: at most OS_TIME_TEXT_BYTES + 1 bytes. */
static void put_stamp(const struct log *log, struct buf *line)
{
	char stamp[OS_TIME_TEXT_BYTES];

	if (!log->stamped)
		return;
	os_time_text(os_wall_ns(), stamp);
	buf_puts(line, stamp);
	buf_putc(line, ' ');
}

void log_line(struct log *log, enum log_level level, const char *format, ...)
{
	static const char *const prefix[] = {"", "warning: ", "error: "};
	char text[LOG_LINE_BYTES], raw[LOG_LINE_BYTES];
	/*
	 * A ceiling below the array's size keeps the buf in its first array: nothing is allocated.
	 */
	struct buf line = {.data = text, .cap = sizeof(text), .max_bytes = sizeof(text) - 1};
	va_list args;

	if (!log)
		return;
	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	put_stamp(log, &line);
	buf_puts(&line, prefix[level]);
	/* Quoted names could forge lines. 4 bytes are for the ellipsis and the NUL. */
	utf8_put_clean(&line, raw, strlen(raw), sizeof(text) - 4 - line.len);

	os_mutex_lock(log->lock);
	if (log->count == LOG_QUEUE_LINES)
		log->dropped++;
	else
		memcpy(log->lines[(log->first + log->count++) % LOG_QUEUE_LINES], text,
		       line.len + 1);
	os_wake(log->wake);
	os_mutex_unlock(log->lock);
}

void log_wakes(struct log *log, struct os_wake *wake)
{
	if (!log)
		return;
	os_mutex_lock(log->lock);
	log->wake = wake;
	os_mutex_unlock(log->lock);
}

/* Move lines into text while they fit; returns how many were dropped up to here. */
static uint64_t take_lines(struct log *log, struct buf *text)
{
	uint64_t dropped;

	os_mutex_lock(log->lock);
	while (log->count && text->len + LOG_LINE_BYTES <= text->max_bytes) {
		buf_puts(text, log->lines[log->first]);
		buf_putc(text, '\n');
		log->first = (log->first + 1) % LOG_QUEUE_LINES;
		log->count--;
	}
	/* Reported once the queue is empty: that is where the lines are missing. */
	dropped = log->count ? 0 : log->dropped;
	log->dropped -= dropped;
	os_mutex_unlock(log->lock);
	return dropped;
}

/* Report a log that cannot be written once, on stderr, where somebody may see it. */
static void write_out(struct log *log, const struct buf *text)
{
	struct err err;
	char line[sizeof(err.text) + 64];

	if (os_write(log->file, text->data, text->len, &err) == 0 || log->failure_reported)
		return;
	log->failure_reported = true;
	snprintf(line, sizeof(line), "recorder: the log stops here: %s\n", err.text);
	os_write(os_stderr(), line, strlen(line), NULL);
}

void log_drain(struct log *log)
{
	char room[DRAIN_BYTES];
	struct buf text = {.data = room, .cap = sizeof(room), .max_bytes = sizeof(room) - 1};
	uint64_t dropped = 0;
	int i;

	if (!log)
		return;
	/* As many rounds as a full queue needs, and no more: writers may be faster than this. */
	for (i = 0; i < LOG_QUEUE_LINES / (DRAIN_BYTES / LOG_LINE_BYTES) + 2 && !dropped; i++) {
		buf_reset(&text);
		dropped = take_lines(log, &text);
		if (text.len)
			write_out(log, &text);
		else
			break;
	}
	if (!dropped)
		return;
	buf_reset(&text);
	put_stamp(log, &text);
	buf_printf(&text, "warning: %" PRIu64 " log lines were dropped: the log is too slow\n",
		   dropped);
	write_out(log, &text);
}

int log_reopen(struct log *log, struct err *err)
{
	struct os_file *file = NULL;
	int rc;

	if (!log || !log->path)
		return err_set(err, ERR_UNSUPPORTED, "the log goes to standard error");
	log_drain(log);
	rc = os_open(log->path, OS_APPEND, &file, err);
	if (rc)
		return rc;
	os_close(log->file);
	log->file = file;
	log->failure_reported = false;
	return 0;
}
