/* Any bytes as lines of logs: kernel records, lines of the journal, and bytes cut into lines. */
#include "source/log/parse.h"

#include "base/moment.h"

#include <stdlib.h>
#include <string.h>

static size_t total;

static void each(void *ctx, const char *line, size_t len)
{
	char text[LOG_LINE_MAX + 1];
	struct log_line l;
	uint64_t wall_ns;
	size_t i;

	(void)ctx;
	if (!len || len > LOG_LINE_MAX)
		abort();
	memcpy(text, line, len);
	text[len] = '\0';
	total += moment_find(text, 1795230600ULL * 1000000000, &wall_ns);
	if (log_parse_journal(line, len, &l)) {
		for (i = 0; i < l.len; i++)
			total += (unsigned char)l.text[i];
		for (i = 0; l.name && i < l.name_len; i++)
			total += (unsigned char)l.name[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct log_cutter *c = calloc(1, sizeof(*c));
	char *copy = malloc(n ? n : 1);
	struct log_line l;
	uint64_t seq;
	size_t i;

	if (!c || !copy)
		abort();
	memcpy(copy, data, n);
	if (log_parse_kmsg(copy, n, &l, &seq))
		for (i = 0; i < l.len; i++)
			total += (unsigned char)l.text[i];
	log_cut(c, copy, n / 2, each, NULL);
	log_cut(c, copy + n / 2, n - n / 2, each, NULL);
	free(copy);
	free(c);
	return 0;
}
