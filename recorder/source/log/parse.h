/*
 * Lines of logs, as the systems write them: portable, pure, no allocation but the buffer of a line.
 *
 * Sources: kernel, Documentation/ABI/testing/dev-kmsg ("prio,seq,usec,flags;text", continuation lines
 * begin with a blank); journalctl(1), output short-monotonic ("[ 123.456789] name[pid]: text").
 */
#ifndef SOURCE_LOG_PARSE_H
#define SOURCE_LOG_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4000u               /* bytes; the rest of a longer line is dropped, and counted */

struct log_line {
	const char *text;                    /* not NUL-terminated */
	size_t len;
	const char *name;                    /* who wrote it; NULL = not known */
	size_t name_len;
	uint32_t pid;                        /* 0 = not known */
	int level;                           /* 0 emergency to 7 debug; -1 = not known */
};

/* One record of /dev/kmsg; false when it is none. *seq: to count those that were overwritten. */
bool log_parse_kmsg(const char *record, size_t len, struct log_line *out, uint64_t *seq);
/* One line of journalctl -o short-monotonic --no-hostname; false for its own remarks ("-- Boot ..."). */
bool log_parse_journal(const char *line, size_t len, struct log_line *out);
/* A line of a file: all of it. */
void log_parse_plain(const char *line, size_t len, struct log_line *out);

/* Bytes of a file or a pipe, cut into lines. */
struct log_cutter {
	char line[LOG_LINE_MAX];
	size_t len;
	uint64_t cut;                        /* lines that were too long */
	bool skipping;                       /* the rest of one */
};

/* Each line without its LF and CR, empty ones left out; what has no LF yet waits for the next call. */
void log_cut(struct log_cutter *c, const char *bytes, size_t n,
	     void (*each)(void *ctx, const char *line, size_t len), void *ctx);

#endif
