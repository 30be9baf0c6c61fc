#include "tests/support/export_totals.h"

#include "base/varint.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

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

uint64_t speedscope_total(const char *text)
{
	const char *samples = text, *weights;
	uint64_t total = 0, weight;
	char *end;

	while ((samples = strstr(samples, "\"samples\":[")) != NULL) {
		weights = strstr(samples, "\"weights\":[");
		assert_non_null(weights);
		samples += strlen("\"samples\":[");
		weights += strlen("\"weights\":[");
		for (; *samples == '[';
		     samples = strchr(samples, ']') + 1, samples += *samples == ',') {
			weight = strtoull(weights, &end, 10);
			assert_true(end > weights && (*end == ',' || *end == ']'));
			total += samples[1] == ']' ? 0 : weight;
			weights = end + 1;
		}
		assert_true(*samples == ']');
	}
	return total;
}

uint64_t trace_total(const char *text)
{
	uint64_t total = 0;

	while ((text = strstr(text, "\"args\":{\"weight\":")) != NULL) {
		text += strlen("\"args\":{\"weight\":");
		total += strtoull(text, NULL, 10);
	}
	return total;
}

/* ---- pprof ----------------------------------------------------------------------------------- */

static uint64_t number(const uint8_t **at, const uint8_t *end)
{
	uint64_t v = 0;

	assert_true(varint_get(at, end, &v));
	return v;
}

/* The field's number; a length in *n, or the value when it is no message. */
static unsigned field(const uint8_t **at, const uint8_t *end, uint64_t *n, bool *message)
{
	uint64_t key = number(at, end);

	assert_true((key & 7) == 0 || (key & 7) == 2);
	*message = (key & 7) == 2;
	*n = number(at, end);
	assert_true(!*message || *n <= (uint64_t)(end - *at));
	return (unsigned)(key >> 3);
}

static void read_sample(const uint8_t *at, const uint8_t *end, struct pprof_totals *t,
			uint64_t *highest)
{
	const uint8_t *part_end;
	unsigned f, i, locations = 0;
	uint64_t n;
	bool message;

	while (at < end) {
		f = field(&at, end, &n, &message);
		assert_true(message && f >= 1 && f <= 3);
		part_end = at + n;
		for (i = 0; f != 3 && at < part_end; i++) {
			n = number(&at, part_end);
			if (f == 1) {
				assert_true(n > 0);
				locations++;
				*highest = n > *highest ? n : *highest;
			} else {
				assert_true(i < 2);
				t->values[i] += n;
			}
		}
		at = part_end;
	}
	assert_true(locations > 0);
	t->samples++;
}

void pprof_read(const struct buf *packed, struct pprof_totals *out)
{
	static uint8_t plain[8 << 20];
	const uint8_t *at = plain, *end;
	uint64_t n, highest = 0;
	z_stream stream = {0};
	bool message;

	stream.next_in = (Bytef *)packed->data;
	stream.avail_in = (uInt)packed->len;
	stream.next_out = plain;
	stream.avail_out = sizeof(plain);
	assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	end = plain + stream.total_out;
	inflateEnd(&stream);
	memset(out, 0, sizeof(*out));
	while (at < end) {
		unsigned f = field(&at, end, &n, &message);

		if (!message)
			continue;
		if (f == 2)
			read_sample(at, at + n, out, &highest);
		assert_true(f != 6 || out->strings || n == 0);   /* the first is empty */
		out->locations += f == 4;
		out->functions += f == 5;
		out->strings += f == 6;
		at += n;
	}
	assert_true(highest <= out->locations);
}
