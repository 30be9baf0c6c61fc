/*
 * Rows of texts between tabs, as ClickHouse answers (its format TabSeparated) and PostgreSQL takes
 * (COPY, text format): \t, \n, \r, \\, \b, \f, \0 and \' stand for what would end a field. Arrays
 * are ['it\'s','b'] there, and {"a","b"} here, whose backslashes are escaped once more. Any thread.
 */
#pragma once

#include "base/buf.h"

struct tsv {
	struct buf text;
	bool clickhouse;                     /* whose arrays */
	bool begun;                          /* a row */
};

void tsv_put_int(struct tsv *t, int64_t v);
void tsv_put_text(struct tsv *t, const char *text, size_t n);
/* An array of texts. */
void tsv_put_texts(struct tsv *t, const char *const *texts, uint32_t n);
void tsv_end_row(struct tsv *t);

/*
 * The next row of an answer, from *at on, which ends in a NUL; its escapes are resolved in place. A
 * NUL in a field ends it for the reader. More than max fields are left out.
 * returns  how many fields it has; 0 = there is no row
 */
unsigned tsv_next(char **at, const char **fields, unsigned max);
