/*
 * Folded stacks, "a;b;c 42": the first part is the process, unless it has a module; then, in our
 * own exports, the thread. Others' files have it only with --tid, or not at all. A line is so many
 * samples.
 */
#include "source/stackfile/stack_list.h"

#include <stdlib.h>
#include <string.h>

/* The count behind the last blank; 0 = there is none, or a blank begins the line: no folded one. */
static uint64_t read_count(const char *line, size_t *n)
{
	size_t at = *n, digits;
	uint64_t v = 0;

	while (at && line[at - 1] >= '0' && line[at - 1] <= '9')
		at--;
	digits = *n - at;
	if (!digits || digits > 18 || at < 2 || line[at - 1] != ' ' || *line == ' ' ||
	    *line == '\t')
		return 0;
	for (; digits; digits--)
		v = v * 10 + (uint64_t)(line[*n - digits] - '0');
	*n = at - 1;
	return v;
}

static size_t part(const char *at, const char *end)
{
	const char *semicolon = memchr(at, ';', (size_t)(end - at));

	return (size_t)((semicolon ? semicolon : end) - at);
}

static void read_line(struct stack_list *l, const char *line, size_t n)
{
	struct stack_list_sample s = {.node = STACK_LIST_NONE, .cpu = CPU_NONE,
				      .quality = QUALITY_COMPLETE};
	uint64_t count = read_count(line, &n);
	const char *at = line, *end = line + n, *second;
	size_t first = part(line, end), nsecond = 0, depth = 0;
	unsigned used = 0;

	if (!count) {
		l->skipped++;
		return;
	}
	second = line + first < end ? line + first + 1 : NULL;
	if (second)
		nsecond = part(second, end);
	if (memchr(line, '!', first))
		s.thread = stack_list_thread(l, "?", 1, 0, "?", 1, 0);
	else
		s.thread = stack_list_who(l, line, first, second, nsecond, &used);
	for (; used; used--)
		at += part(at, end) + (at + part(at, end) < end);
	for (; at < end; at++) {
		size_t length = part(at, end);

		if (length && depth++ < STACK_LIST_DEPTH_MAX &&
		    !stack_list_mark(at, length, &s.quality))
			s.node = stack_list_node(l, s.node, stack_list_text(l, at, length));
		at += length;
	}
	s.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	s.weight = (double)STACK_LIST_PERIOD_NS * ((double)count / s.count);
	stack_list_sample(l, &s);
}

int stack_list_folded(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	const char *at = text, *end = text + n;

	l->only_counts = true;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		if (length && at[length - 1] == '\r')
			read_line(l, at, length - 1);
		else if (length && *at != '#')
			read_line(l, at, length);
		at += length + (newline != NULL);
	}
	return l->nsamples ? 0
			   : err_set(err, ERR_FORMAT, "it has no line of a folded stack, such as "
				     "'sh;main;work 42'; 'recorder help export' lists what "
				     "is read");
}
