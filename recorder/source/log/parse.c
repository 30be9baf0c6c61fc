#include "source/log/parse.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read at most 18 digits at *at, and move behind them. */
static bool read_number(const char **at, const char *end, uint64_t *out)
{
	const char *from = *at;

	*out = 0;
	while (*at < end && is_digit(**at) && *at - from < 18)
		*out = *out * 10 + (uint64_t)(*(*at)++ - '0');
	return *at > from;
}

bool log_parse_kmsg(const char *record, size_t len, struct log_line *out, uint64_t *seq)
{
	const char *at = record, *end = record + len, *line;
	uint64_t priority;

	memset(out, 0, sizeof(*out));
	if (!read_number(&at, end, &priority) || at == end || *at++ != ',' ||
	    !read_number(&at, end, seq))
		return false;
	at = memchr(at, ';', (size_t)(end - at));
	if (!at)
		return false;
	at++;
	/* The record's keys follow the first line. */
	line = memchr(at, '\n', (size_t)(end - at));
	out->text = at;
	out->len = (size_t)((line ? line : end) - at);
	out->level = (int)(priority & 7);
	out->name = "kernel";
	out->name_len = 6;
	return true;
}

/* The writer at the start of a line: "name[pid]: " or "name: ". */
static void read_writer(const char *at, const char *end, struct log_line *out)
{
	const char *from = at;
	uint64_t pid = 0;

	while (at < end && *at != ' ' && *at != '[' && *at != ':')
		at++;
	out->name_len = (size_t)(at - from);
	if (at < end && *at == '[') {
		at++;
		if (!read_number(&at, end, &pid) || at == end || *at++ != ']')
			return;
	}
	if (at == end || *at != ':' || !out->name_len)
		return;
	out->name = from;
	out->pid = pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

bool log_parse_journal(const char *line, size_t len, struct log_line *out)
{
	const char *at = line, *end = line + len;

	memset(out, 0, sizeof(*out));
	out->level = -1;
	if (len > 3 && memcmp(line, "-- ", 3) == 0)
		return false;
	/* Only the first of several lines has the time; the others are indented. */
	if (at < end && *at == '[') {
		at = memchr(at, ']', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	while (at < end && *at == ' ')
		at++;
	out->text = at;
	out->len = (size_t)(end - at);
	read_writer(at, end, out);
	return out->len > 0;
}

static void end_line(struct log_cutter *c, log_each *each, void *ctx)
{
	size_t len = c->len;

	while (len && c->line[len - 1] == '\r')
		len--;
	if (len)
		each(ctx, c->line, len);
	c->cut += c->skipping;
	c->len = 0;
	c->skipping = false;
}

void log_cut(struct log_cutter *c, const char *bytes, size_t n, log_each *each, void *ctx)
{
	const char *end = bytes + n, *lf;
	size_t part, room;

	while (bytes < end) {
		lf = memchr(bytes, '\n', (size_t)(end - bytes));
		part = (size_t)((lf ? lf : end) - bytes);
		room = sizeof(c->line) - c->len;
		if (part > room)
			c->skipping = true;
		memcpy(c->line + c->len, bytes, part < room ? part : room);
		c->len += part < room ? part : room;
		if (lf)
			end_line(c, each, ctx);
		bytes += part + (lf != NULL);
	}
}
