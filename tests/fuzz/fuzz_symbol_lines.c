/*
 * Any bytes as the reply of a process that reads debug information: what is accepted lies within
 * bounds, its texts end, and writing it gives the same lines again.
 */
#include "symbol/lines.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const struct incident_line *line, const struct lines *l)
{
	const char *texts[2] = {line->function, line->file};
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (texts[i] && texts[i] + strlen(texts[i]) >= l->reply.data + l->reply.len)
			__builtin_trap();
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void write_again(const struct lines *l)
{
	struct buf reply = {0};
	struct lines again = {0};
	uint32_t i;

	lines_put_state(&reply, l->state, l->why);
	for (i = 0; i < l->noffsets; i++)
		if (l->of_offset[i].n)
			lines_put(&reply, i, l->lines + l->of_offset[i].first, l->of_offset[i].n);
	if (l->state == LINES_FOUND)
		lines_put_end(&reply);
	if (lines_parse(&reply, l->noffsets, &again, NULL) || again.nlines != l->nlines ||
	    again.state != l->state || strcmp(again.why, l->why) != 0)
		__builtin_trap();
	for (i = 0; i < l->nlines; i++)
		if (again.lines[i].line != l->lines[i].line ||
		    again.lines[i].function_offset != l->lines[i].function_offset ||
		    !same_text(again.lines[i].file, l->lines[i].file) ||
		    !same_text(again.lines[i].function, l->lines[i].function))
			__builtin_trap();
	lines_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf reply = {0};
	struct lines l = {0};
	uint32_t i, k, n = 0, noffsets = size ? data[0] : 0;

	if (!size)
		return 0;
	buf_put(&reply, data + 1, size - 1);
	if (lines_parse(&reply, noffsets, &l, NULL))
		return 0;
	if (l.state >= LINES_STATES || !l.why || l.noffsets != noffsets)
		__builtin_trap();
	for (i = 0; i < noffsets; i++) {
		const struct incident_expansion *e = &l.of_offset[i];

		if (e->n > LINES_DEPTH_MAX || (e->n && e->first != n))
			__builtin_trap();
		for (k = 0; k < e->n; k++)
			check_line(&l.lines[e->first + k], &l);
		n += e->n;
	}
	if (n != l.nlines)
		__builtin_trap();
	write_again(&l);
	lines_free(&l);
	return 0;
}
