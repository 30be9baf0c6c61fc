#include "source/counter_name.h"

#include "base/json.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int counter_name_split(const char *name, struct counter_name *out, struct err *err)
{
	const char *first = strchr(name, ':');
	const char *second = first ? strchr(first + 1, ':') : NULL;

	if (strlen(name) >= COUNTER_NAME_MAX)
		return err_set(err, ERR_USAGE, "the counter name '%.60s...' has over %d bytes",
			       name, COUNTER_NAME_MAX - 1);
	if (!second)
		return err_set(err, ERR_USAGE,
			       "the counter '%s' is not CATEGORY:COUNTER:INSTANCE, like "
			       "'Processor:%% Processor Time:_Total' or 'Memory:Available MBytes:'",
			       name);
	if (first == name)
		return err_set(err, ERR_USAGE,
			       "the counter '%s' has no category before its first ':'", name);
	if (second == first + 1)
		return err_set(err, ERR_USAGE, "the counter '%s' has no name between its two ':'",
			       name);
	snprintf(out->category, sizeof(out->category), "%.*s", (int)(first - name), name);
	snprintf(out->counter, sizeof(out->counter), "%.*s", (int)(second - first - 1), first + 1);
	snprintf(out->instance, sizeof(out->instance), "%s", second + 1);
	return 0;
}

bool jvm_counter_is(const char *name)
{
	struct counter_name parts;

	return !counter_name_split(name, &parts, NULL) && text_same_fold(parts.category, "JVM");
}

bool event_counter_is(const char *name)
{
	struct counter_name parts;

	return !counter_name_split(name, &parts, NULL) && !strchr(parts.category, ' ') &&
	       (*parts.category == '*' || strchr(parts.category, '.') ||
		strchr(parts.category, '-'));
}

bool prometheus_counter_is(const char *name)
{
	static const char category[] = "Prometheus:";
	char head[sizeof(category)] = "";

	strncpy(head, name, sizeof(category) - 1);
	return text_same_fold(head, category);
}

static bool contains(const char *text, const char *part)
{
	size_t n = strlen(part);

	while (*text && strncasecmp(text, part, n) != 0)
		text++;
	return *text || !n;
}

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* With one point to go back to, the last '*': enough, and linear in practice. */
static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || same_letter(*pattern, *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool name_matches(const char *pattern, const char *text)
{
	return !pattern || contains(text, pattern) || glob(pattern, text);
}

void counter_value_text(double v, char *out, size_t n)
{
	if (v != v)
		snprintf(out, n, "-");
	else if (v == floor(v) || fabs(v) >= 1e5)
		snprintf(out, n, "%.0f", v);
	else
		snprintf(out, n, fabs(v) >= 0.01 ? "%.2f" : "%.3g", v);
}

void counter_put_json(const struct counter_row *row, struct buf *out)
{
	struct json j = {.out = out};

	json_open(&j, '{');
	json_key_str(&j, "counter", row->counter);
	json_key_str(&j, "category", row->category);
	json_key_str(&j, "name", row->name);
	json_key_str(&j, "instance", row->instance);
	json_key_num(&j, "value", row->value);
	json_key_str(&j, "unit", row->unit);
	json_key_str(&j, "meaning", row->meaning);
	if (row->means && *row->means)
		json_key_str(&j, "means", row->means);
	json_close(&j, '}');
	buf_putc(out, '\n');
}
