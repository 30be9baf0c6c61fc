#include "tests/support/export_totals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINE_MAX_BYTES 200000

/* The next line without its LF in line[]; NULL at the end. Behind it, else. */
static const char *next_line(const char *at, char *line)
{
	const char *end = strchr(at, '\n');

	if (!*at)
		return NULL;
	assert_non_null(end);
	assert_true(end - at < LINE_MAX_BYTES);
	memcpy(line, at, (size_t)(end - at));
	line[end - at] = '\0';
	return end + 1;
}

/* A line like a format, all of it; n is that of a closing %n. */
static void whole(const char *line, int matched, int wanted, int n)
{
	if (matched < wanted || n < 0 || line[n])
		fail_msg("not of the grammar: %.200s", line);
}

static bool is_hex(const char *text, const char *digits)
{
	return *text && strspn(text, digits) == strlen(text);
}

uint64_t livestacks_total(const char *text)
{
	static char line[LINE_MAX_BYTES];
	uint64_t total = 0;
	bool inside = false;

	while ((text = next_line(text, line)) != NULL) {
		const char *plus = strrchr(line, '+'), *open;

		if (!inside) {
			open = strchr(line, '[');
			assert_memory_equal(line, "  ", 2);
			assert_true(open && open >= line + 13 && open[-1] == ' ');
			assert_int_equal(line[strlen(line) - 1], ']');
			total += strtoull(line, NULL, 10);
			inside = true;
		} else if (!*line) {
			inside = false;
		} else {
			assert_memory_equal(line, "    ", 4);
			if (strcmp(line + 4, "BROKEN") && strcmp(line + 4, "[truncated]") &&
			    !(strlen(line) == 20 && is_hex(line + 4, " 0123456789ABCDEF")) &&
			    !(plus && strchr(line, '!') && strncmp(plus, "+0x", 3) == 0 &&
			      is_hex(plus + 3, "0123456789ABCDEF")))
				fail_msg("no frame: %.200s", line);
		}
	}
	assert_false(inside);
	return total;
}

uint64_t dtrace_total(const char *text)
{
	static char line[LINE_MAX_BYTES];
	uint64_t total = 0;
	unsigned frames = 0, header;

	for (header = 1; header <= 3; header++) {
		text = next_line(text, line);
		assert_non_null(text);
		assert_int_equal(!*line, header == 3);
	}
	while ((text = next_line(text, line)) != NULL) {
		const char *at = line + strspn(line, " "), *plus = strrchr(line, '+');

		assert_true(at > line);
		if (is_hex(at, "0123456789")) {      /* a count has frames, and an empty line */
			assert_true(frames > 0);
			total += strtoull(at, NULL, 10);
			text = next_line(text, line);
			assert_true(text && !*line);
			frames = 0;
			continue;
		}
		frames++;
		if (strncmp(at, "0x", 2) == 0 && is_hex(at + 2, "0123456789abcdef"))
			continue;
		if (!plus || !strchr(line, '`') || strncmp(plus, "+0x", 3) != 0 ||
		    !is_hex(plus + 3, "0123456789abcdef"))
			fail_msg("no frame: %.200s", line);
	}
	assert_int_equal(frames, 0);
	return total;
}

uint64_t perf_script_total(const char *text, uint64_t *samples)
{
	static char line[LINE_MAX_BYTES], word[LINE_MAX_BYTES];
	uint64_t total = 0;
	bool inside = false;

	for (*samples = 0; (text = next_line(text, line)) != NULL;) {
		unsigned pid, tid, cpu, sec, usec;
		unsigned long long period, address;
		int n = -1, matched;

		if (!inside) {
			assert_true(*line != '#' && *line != '\t');
			matched = sscanf(line, "%s %u/%u [%u] %u.%6u: %llu %*[a-z-]:%n", word, &pid,
					 &tid, &cpu, &sec, &usec, &period, &n);
			whole(line, matched, 7, n);
			total += period;
			++*samples;
			inside = true;
		} else if (!*line) {
			inside = false;
		} else {
			const char *open = strrchr(line, ' '), *plus;

			matched = sscanf(line, "\t%llx %n", &address, &n);
			assert_true(matched == 1 && n > 0 && *line == '\t');
			assert_true(open && open[1] == '(');
			assert_int_equal(line[strlen(line) - 1], ')');
			if (strncmp(line + n, "[unknown] (", 11) != 0) {
				for (plus = open; plus > line && *plus != '+';)
					plus--;
				assert_memory_equal(plus, "+0x", 3);
			}
		}
	}
	assert_false(inside);
	return total;
}
