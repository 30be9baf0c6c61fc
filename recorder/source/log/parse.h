/*
 * Parses lines of logs. Portable and pure; nothing is allocated.
 *
 * Sources: kernel, Documentation/ABI/testing/dev-kmsg ("prio,seq,usec,flags;text", continuation
 * lines begin with a blank); journalctl(1), output short-monotonic ("[ 123.456789] name[pid]:
 * text").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4000u               /* bytes; longer lines are cut, and counted */

struct log_line {
	const char *text;                    /* not NUL-terminated */
	size_t len;
	const char *name;                    /* of the writer; NULL = unknown */
	size_t name_len;
	uint32_t pid;                        /* 0 = unknown */
	int level;                           /* 0 emergency to 7 debug; -1 = unknown */
};

/* Parse a record of /dev/kmsg; false = malformed. *seq: its number, to count lost records. */
bool log_parse_kmsg(const char *record, size_t len, struct log_line *out, uint64_t *seq);
/*
 * Parse a line of journalctl -o short-monotonic --no-hostname; false for journalctl's own remarks
 * ("-- Boot ...").
 */
bool log_parse_journal(const char *line, size_t len, struct log_line *out);

/* Cuts the bytes of a file or a pipe into lines. */
struct log_cutter {
	char line[LOG_LINE_MAX];
	size_t len;
	uint64_t cut;                        /* lines that were too long */
	bool skipping;                       /* the rest of a long line */
};

/* Pass each line to each(), without LF and CR; skip empty lines, and wait for missing LFs. */
typedef void log_each(void *ctx, const char *line, size_t len);
void log_cut(struct log_cutter *c, const char *bytes, size_t n, log_each *each, void *ctx);
