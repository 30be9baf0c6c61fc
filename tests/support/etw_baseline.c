/* PerfView's baselines, read and compared. */
#include "tests/support/etw_baseline.h"

#include "base/buf.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)4 << 20)
#define CUT 20u                              /* characters of a value that are printed */

static char *line_end(char *at)
{
	char *end = at + strcspn(at, "\r\n");

	if (*end) {
		*end++ = '\0';
		end += strspn(end, "\r\n");
	}
	return end;
}

/* "1,249.834" */
static double number_of(const char *at)
{
	char plain[64];
	size_t n = 0;

	for (; *at && !strchr(":;", *at) && n < sizeof(plain) - 1; at++)
		if (*at != ',')
			plain[n++] = *at;
	plain[n] = '\0';
	return strtod(plain, NULL);
}

static uint32_t value_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? (uint32_t)number_of(at + strlen(key)) : 0;
}

static void read_event(char *line, struct baseline_line *out)
{
	char *name = strstr(line, ": "), *pid = strstr(line, " PID="),
	     *nbytes = strstr(line, "DataLen=");

	out->ms = number_of(line);
	out->cpu = value_of(line, "ProceNum=");
	out->nbytes = value_of(line, "DataLen=");
	out->name = name + 2;
	*pid = '\0';
	out->fields = strstr(nbytes, "; ");
	out->fields = out->fields ? out->fields + 2 : nbytes + strlen(nbytes);
}

bool baseline_open(const char *path, struct baseline *b)
{
	struct os_file *file = NULL;
	struct buf text = {.data = NULL};
	size_t max = 0;

	*b = (struct baseline){.nlines = 0};
	if (!os_exists(path) || os_open(path, OS_READ, &file, NULL) ||
	    os_read_all(file, FILE_MAX, &text, NULL)) {
		os_close(file);
		return false;
	}
	os_close(file);
	b->text = text.data;
	for (size_t i = 0; i < text.len; i++)
		max += text.data[i] == '\n';
	b->lines = calloc(max + 1, sizeof(*b->lines));
	b->counts = calloc(max + 1, sizeof(*b->counts));
	for (char *at = b->text, *next; *at; at = next) {
		next = line_end(at);
		if (strncmp(at, "\xef\xbb\xbf", 3) == 0)
			at += 3;
		if (strncmp(at, "EVENT ", 6) == 0) {
			read_event(at + 6, &b->lines[b->nlines++]);
		} else if (strncmp(at, "COUNT ", 6) == 0) {
			char *colon = strrchr(at, ':');

			*colon = '\0';
			b->counts[b->ncounts].name = at + 6;
			b->counts[b->ncounts++].n = (uint32_t)number_of(colon + 1);
		}
	}
	return true;
}

void baseline_close(struct baseline *b)
{
	free(b->text);
	free(b->lines);
	free(b->counts);
}

struct baseline_count *baseline_count(struct baseline *b, const char *provider, const char *name)
{
	size_t n = strlen(provider);

	for (uint32_t i = 0; i < b->ncounts; i++)
		if (strncmp(b->counts[i].name, provider, n) == 0 && b->counts[i].name[n] == '/' &&
		    strcmp(b->counts[i].name + n + 1, name) == 0)
			return &b->counts[i];
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_time(const char *text)
{
	return strlen(text) > 20 && text[4] == '-' && text[10] == 'T';
}

/*
 * As PerfView prints a text: 2020-07-29T00:07:10.69... as 20/07/29 00:07:10.69..., cut after 20
 * characters.
 */
static void as_printed(const char *text, char *out, size_t size)
{
	char copy[128];
	size_t chars = 0, n = 0;

	if (is_time(text)) {
		snprintf(copy, sizeof(copy), "%s", text + 2);
		copy[2] = copy[5] = '/';
		copy[8] = ' ';
		text = copy;
	}
	for (; text[n] && n < size - 5; n++) {
		if (((uint8_t)text[n] & 0xc0) != 0x80 && chars++ == CUT)
			break;
		out[n] = text[n];
	}
	snprintf(out + n, size - n, "%s", text[n] ? "..." : "");
}

static bool same_number(const char *theirs, const struct event_field *ours)
{
	char plain[64], text[64];
	size_t n = 0;
	double d;

	for (const char *p = theirs; *p && n < sizeof(plain) - 1; p++)
		if (*p != ',')
			plain[n++] = *p;
	plain[n] = '\0';
	if (strncmp(plain, "0x", 2) == 0)
		return ours->v.u == strtoull(plain, NULL, 16);
	if (ours->type == FIELD_DOUBLE) {
		d = strtod(plain, NULL);
		return ours->v.d > d - 0.001 && ours->v.d < d + 0.001;
	}
	snprintf(text, sizeof(text), "%" PRId64, ours->v.i);
	if (strcmp(text, plain) == 0)
		return true;
	snprintf(text, sizeof(text), "%" PRId32, (int32_t)ours->v.i);    /* PerfView: an int */
	return ours->v.u <= UINT32_MAX && strcmp(text, plain) == 0;
}

static bool is_digits(const char *text)
{
	return *text && text[strspn(text, "-0123456789,.")] == '\0';
}

static void differ(const struct baseline_line *line, const char *name, const char *theirs,
		   const char *ours, struct baseline_fields *out)
{
	size_t n = strlen(out->differences);

	out->different++;
	snprintf(out->differences + n, sizeof(out->differences) - n, "%s %s: %s, %s\n", line->name,
		 name, theirs, ours);
}

static void compare(const struct baseline_line *line, const char *name, const char *theirs,
		    const struct etw_decoded *decoded, struct baseline_fields *out)
{
	struct event e = {.fields = decoded->fields, .nfields = decoded->nfields};
	const struct event_field *ours = event_field(&e, name);
	char text[256];

	if (!ours) {
		*(*theirs ? &out->absent : &out->blank) += 1;
		return;
	}
	if (ours->type == FIELD_TEXT) {
		as_printed(ours->v.text, text, sizeof(text));
		if (strcmp(text, theirs) == 0)
			out->equal++;
		else
			differ(line, name, theirs, text, out);
	} else if (same_number(theirs, ours)) {
		out->equal++;
	} else if (strncmp(theirs, "0x", 2) == 0 || is_digits(theirs)) {
		snprintf(text, sizeof(text), "%" PRIu64, ours->v.u);
		differ(line, name, theirs, text, out);
	} else {
		out->named++;
	}
}

void baseline_compare(const struct baseline_line *line, const struct etw_decoded *ours,
		      struct baseline_fields *out)
{
	char *at = line->fields;

	while (*at) {
		char *end = strstr(at, "; "), *equals, *trail;

		if (!end)
			end = at + strlen(at);
		equals = memchr(at, '=', (size_t)(end - at));
		if (!equals)
			return;
		trail = *end ? end + 2 : end;
		*end = '\0';
		*equals = '\0';
		if (end > equals + 1 && end[-1] == ';')
			end[-1] = '\0';
		compare(line, at, equals + 1, ours, out);
		at = trail;
	}
}
