#include "base/log.h"

#include "base/buf.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log {
	struct os_file *file;
	bool stamped;                 /* a time before each line */
	struct os_mutex *lock;        /* guards the fields below */
	unsigned first, count;
	uint64_t dropped;
	char lines[LOG_QUEUE_LINES][LOG_LINE_BYTES];
};

int log_open(const char *path, struct log **out, struct err *err)
{
	struct log *log = calloc(1, sizeof(*log));
	int rc = 0;

	if (log)
		log->lock = os_mutex_new();
	if (!log || !log->lock) {
		log_close(log);
		return err_set(err, ERR_MEMORY, "out of memory while opening the log");
	}
	if (path)
		rc = os_open(path, OS_APPEND, &log->file, err);
	else
		log->file = os_stderr();
	if (rc) {
		log_close(log);
		return err_prefix(err, "cannot open the log file");
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
	free(log);
}

void log_line(struct log *log, enum log_level level, const char *format, ...)
{
	static const char *const prefix[] = {"", "warning: ", "error: "};
	char stamp[OS_TIME_TEXT_BYTES + 1] = "";
	char *line;
	int used;
	va_list args;

	if (!log)
		return;
	if (log->stamped) {
		os_time_text(os_wall_ns(), stamp);
		strcat(stamp, " ");
	}
	os_mutex_lock(log->lock);
	if (log->count == LOG_QUEUE_LINES) {
		log->dropped++;
		os_mutex_unlock(log->lock);
		return;
	}
	line = log->lines[(log->first + log->count++) % LOG_QUEUE_LINES];
	used = snprintf(line, LOG_LINE_BYTES, "%s%s", stamp, prefix[level]);
	va_start(args, format);
	vsnprintf(line + used, LOG_LINE_BYTES - (size_t)used, format, args);
	va_end(args);
	os_mutex_unlock(log->lock);
}

void log_drain(struct log *log)
{
	struct buf text = {0};
	uint64_t dropped;

	if (!log)
		return;
	os_mutex_lock(log->lock);
	while (log->count) {
		buf_puts(&text, log->lines[log->first]);
		buf_putc(&text, '\n');
		log->first = (log->first + 1) % LOG_QUEUE_LINES;
		log->count--;
	}
	dropped = log->dropped;
	log->dropped = 0;
	os_mutex_unlock(log->lock);
	if (dropped)
		buf_printf(&text, "warning: %llu log lines were dropped: the log is too slow\n",
			   (unsigned long long)dropped);
	if (text.len)
		os_write(log->file, text.data, text.len, NULL);
	buf_free(&text);
}
