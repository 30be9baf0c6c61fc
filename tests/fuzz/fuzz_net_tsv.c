/* Any bytes as the answer of a database. */
#include "net/tsv.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *at = text;
	struct tsv t = {.clickhouse = size & 1};
	const char *fields[4];
	unsigned n, i;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	while ((n = tsv_next(&at, fields, 4)) != 0) {
		if (at > text + size)
			abort();
		for (i = 0; i < n; i++)
			tsv_put_text(&t, fields[i], strlen(fields[i]));
		tsv_put_texts(&t, fields, n);
		tsv_put_int(&t, (int64_t)size);
		tsv_end_row(&t);
	}
	buf_free(&t.text);
	free(text);
	return 0;
}
