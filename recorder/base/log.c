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

#define SITES 64u                     /* in a minute; the rest share the last one */
#define QUOTED_BYTES 200
#define MINUTE_NS (60 * NS_PER_SEC)

/* What one call of log_line() wrote in this minute. Several calls have the format "%s". */
struct site {
	const void *caller;
	const char *format;
	uint32_t lines, withheld;
	char first[QUOTED_BYTES];             /* of those withheld */
};

struct log {
	struct os_file *file;
	char *path;                   /* NULL = stderr */
	bool failure_reported;                    /* a failed write was reported */
	uint64_t file_bytes;          /* its size; UINT64_MAX = no regular file, never renamed */
	bool stamped;                 /* a time before each line */
	enum log_level least;         /* lines below are dropped */
	struct os_mutex *lock;        /* guards the fields below */
	unsigned first, count;
	uint64_t dropped;
	struct os_wake *wake;         /* NULL = no thread waits for lines */
	uint64_t minute_end_ns;
	uint32_t nsites;
	struct site sites[SITES];
	char lines[LOG_QUEUE_LINES][LOG_LINE_BYTES];
};

/* Where the next line goes in the file that was opened. */
static uint64_t bytes_of(struct os_file *file)
{
	struct os_file_info info;

	return !os_file_info(file, &info, NULL) && info.regular ? info.size_bytes : UINT64_MAX;
}

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
	log->minute_end_ns = os_now_ns() + MINUTE_NS;
	log->file_bytes = path ? bytes_of(log->file) : UINT64_MAX;
	log->stamped = path || !os_is_terminal(log->file);
	*out = log;
	return 0;
}

void log_close(struct log *log)
{
	if (!log)
		return;
	if (log->file) {
		log_drain(log);
		log_drain_at(log, log->minute_end_ns);
	}
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

/* Under the lock: whether this place has written its lines of the minute. */
static bool is_withheld(struct log *log, const void *caller, const char *format, const char *text)
{
	struct site *s;
	struct buf first;
	uint32_t i;

	for (i = 0; i < log->nsites; i++)
		if (log->sites[i].caller == caller && log->sites[i].format == format)
			break;
	if (i == SITES)
		i--;
	s = &log->sites[i];
	if (i == log->nsites) {
		log->nsites++;
		*s = (struct site){.caller = caller, .format = format};
	}
	if (s->lines < LOG_MINUTE_LINES) {
		s->lines++;
		return false;
	}
	if (!s->withheld++) {
		first = (struct buf){.data = s->first, .cap = sizeof(s->first),
				     .max_bytes = sizeof(s->first) - 1};
		utf8_put_clean(&first, text, strlen(text), sizeof(s->first) - 4);
	}
	return true;
}

void log_line(struct log *log, enum log_level level, const char *format, ...)
{
	static const char *const prefix[] = {"", "warning: ", "error: "};
	char text[LOG_LINE_BYTES], raw[LOG_LINE_BYTES];
	/*
	 * A ceiling below the array's size keeps the buf in its first array: nothing is allocated.
	 */
	struct buf line = {.data = text, .cap = sizeof(text), .max_bytes = sizeof(text) - 1};
	size_t unstamped;
	va_list args;

	if (!log || level < log->least)
		return;
	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	put_stamp(log, &line);
	unstamped = line.len;
	buf_puts(&line, prefix[level]);
	/* Quoted names could forge lines. 4 bytes are for the ellipsis and the NUL. */
	utf8_put_clean(&line, raw, strlen(raw), sizeof(text) - 4 - line.len);

	os_mutex_lock(log->lock);
	if (!is_withheld(log, __builtin_return_address(0), format, buf_text(&line) + unstamped)) {
		if (log->count == LOG_QUEUE_LINES)
			log->dropped++;
		else
			memcpy(log->lines[(log->first + log->count++) % LOG_QUEUE_LINES], text,
			       line.len + 1);
		os_wake(log->wake);
	}
	os_mutex_unlock(log->lock);
}

void log_least(struct log *log, enum log_level level)
{
	log->least = level;
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

/*
 * The old file keeps its lines as PATH.1. It is closed first, because Windows renames no open file;
 * where that or the new file is refused, lines go where they can.
 */
static void begin_file(struct log *log)
{
	struct os_file *file = NULL;
	struct buf old = {0};

	buf_printf(&old, "%s.1", log->path);
	os_close(log->file);
	log->file = os_stderr();
	if (!old.failed)
		os_rename(log->path, old.data, NULL);
	buf_free(&old);
	if (!os_open(log->path, OS_APPEND, &file, NULL))
		log->file = file;
	/* Not renamed: tried again after as many bytes. */
	log->file_bytes = file && bytes_of(file) != UINT64_MAX ? 0 : UINT64_MAX;
}

/* Report a log that cannot be written once, on stderr, where somebody may see it. */
static void write_out(struct log *log, const struct buf *text)
{
	struct err err;
	char line[sizeof(err.text) + 64];

	if (log->file_bytes != UINT64_MAX && log->file_bytes + text->len > LOG_FILE_BYTES)
		begin_file(log);
	if (os_write(log->file, text->data, text->len, &err) == 0) {
		log->file_bytes += log->file_bytes == UINT64_MAX ? 0 : text->len;
		return;
	}
	if (log->failure_reported)
		return;
	log->failure_reported = true;
	snprintf(line, sizeof(line), "recorder: the log stops here: %s\n", err.text);
	os_write(os_stderr(), line, strlen(line), NULL);
}

/* Say what was withheld in the minute that ends, and begin the next one. */
static void end_minute(struct log *log, uint64_t now_ns)
{
	char room[QUOTED_BYTES + 100];
	struct buf text = {.data = room, .cap = sizeof(room), .max_bytes = sizeof(room) - 1};
	struct site s;
	uint32_t i;

	for (i = 0; i < SITES; i++) {
		os_mutex_lock(log->lock);
		s = log->sites[i];
		log->sites[i].withheld = 0;
		os_mutex_unlock(log->lock);
		if (!s.withheld)
			continue;
		buf_reset(&text);
		put_stamp(log, &text);
		buf_printf(&text, "%" PRIu32 " more like this in a minute: %s\n", s.withheld,
			   s.first);
		write_out(log, &text);
	}
	os_mutex_lock(log->lock);
	log->nsites = 0;
	os_mutex_unlock(log->lock);
	log->minute_end_ns = now_ns + MINUTE_NS;
}

void log_drain(struct log *log)
{
	log_drain_at(log, os_now_ns());
}

static void write_lines(struct log *log)
{
	char room[DRAIN_BYTES];
	struct buf text = {.data = room, .cap = sizeof(room), .max_bytes = sizeof(room) - 1};
	uint64_t dropped = 0;
	int i;

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

void log_drain_at(struct log *log, uint64_t now_ns)
{
	if (!log)
		return;
	write_lines(log);
	if (now_ns >= log->minute_end_ns)
		end_minute(log, now_ns);
}

bool log_is_terminal(const struct log *log)
{
	return !log->stamped;
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
	log->file_bytes = bytes_of(file);
	log->failure_reported = false;
	return 0;
}
