#include "source/counter/prometheus.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* Past a metric's or label's name; at = there is none. */
static const char *skip_name(const char *at, const char *end)
{
	const char *from = at;

	while (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == ':'))
		at++;
	return isdigit((unsigned char)*from) ? from : at;
}

struct label {
	const char *key, *value;             /* the value as it is written, without its quotes */
	size_t key_len, value_len;
};

/* The label at *at, which moves past it and its comma; false = none, or not well written. */
static bool next_label(const char **at, const char *end, struct label *out)
{
	const char *key = skip_blanks(*at, end), *p = skip_name(key, end);

	out->key = key;
	out->key_len = (size_t)(p - key);
	p = skip_blanks(p, end);
	if (!out->key_len || end - p < 2 || *p != '=')
		return false;
	p = skip_blanks(p + 1, end);
	if (p == end || *p != '"')
		return false;
	out->value = ++p;
	while (p < end && *p != '"')
		p += *p == '\\' && end - p > 1 ? 2 : 1;
	if (p == end)
		return false;
	out->value_len = (size_t)(p - out->value);
	p = skip_blanks(p + 1, end);
	*at = p < end && *p == ',' ? p + 1 : p;
	return true;
}

/* The closing brace of labels that begin at `at`; NULL = there is none. */
static const char *labels_end(const char *at, const char *end)
{
	struct label label;

	while (next_label(&at, end, &label))
		;
	at = skip_blanks(at, end);
	return at < end && *at == '}' ? at : NULL;
}

/* ---- names in rules -------------------------------------------------------------------------- */

int prometheus_parse(const char *name, struct prometheus_name *out, struct err *err)
{
	const char *at = name + strcspn(name, ":") + 1, *end = at + strlen(at);
	const char *p = at + strcspn(at, "{"), *url = strstr(at, ":http");

	memset(out, 0, sizeof(*out));
	/* A metric's name may hold colons itself. */
	if (url && url < p)
		p = url;
	out->metric_len = skip_name(at, p) == p ? (size_t)(p - at) : 0;
	if (*p == '{') {
		p = labels_end(p + 1, end);
		if (!p)
			return err_set(err, ERR_USAGE, "'%.300s': the labels are not well written; "
				       "write them as {code=\"500\",method=\"GET\"}", name);
		p++;
	}
	if (!out->metric_len || (size_t)(p - at) >= sizeof(out->metric) ||
	    (strncmp(p, ":http://", 8) != 0 && strncmp(p, ":https://", 9) != 0))
		return err_set(err, ERR_USAGE, "'%.300s' is not Prometheus:METRIC:URL, like "
			       "'Prometheus:http_requests_total{code=\"500\"}:"
			       "http://127.0.0.1:9100/metrics'", name);
	memcpy(out->metric, at, (size_t)(p - at));
	out->url = p + 1;
	return 0;
}

static bool has_label(const struct prometheus_series *s, const struct label *wanted)
{
	const char *at = s->labels, *end = at + s->labels_len;
	struct label label;

	while (next_label(&at, end, &label))
		if (label.key_len == wanted->key_len && label.value_len == wanted->value_len &&
		    memcmp(label.key, wanted->key, label.key_len) == 0 &&
		    memcmp(label.value, wanted->value, label.value_len) == 0)
			return true;
	return false;
}

bool prometheus_takes(const struct prometheus_name *name, const struct prometheus_series *s)
{
	const char *at = name->metric + name->metric_len, *end = at + strlen(at);
	struct label wanted;

	if (s->name_len != name->metric_len || memcmp(s->name, name->metric, s->name_len) != 0)
		return false;
	if (*at == '{')
		at++;
	while (next_label(&at, end, &wanted))
		if (!has_label(s, &wanted))
			return false;
	return true;
}

/* ---- the text -------------------------------------------------------------------------------- */

static bool ends_in(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && memcmp(name + len - n, end, n) == 0;
}

/* Whether a series is of the family, and has the family's name or this with something behind. */
static bool is_of_family(const struct prometheus_text *t, const struct prometheus_series *s)
{
	return t->family && s->name_len >= t->family_len &&
	       memcmp(s->name, t->family, t->family_len) == 0;
}

static bool grows(const struct prometheus_text *t, const struct prometheus_series *s)
{
	static const char *const parts[] = {"_bucket", "_sum", "_count"};
	size_t i;

	if (!is_of_family(t, s) || !t->type || t->type == 'u')
		return ends_in(s->name, s->name_len, "_total");
	if (t->type == 'c')
		return true;
	/* Histograms and summaries: not the quantiles, which have the family's own name. */
	for (i = 0; (t->type == 'h' || t->type == 's') && i < sizeof(parts) / sizeof(*parts); i++)
		if (s->name_len == t->family_len + strlen(parts[i]) &&
		    ends_in(s->name, s->name_len, parts[i]))
			return true;
	return false;
}

/* "# TYPE name counter" and "# HELP name text"; other comments say nothing. */
static void read_comment(struct prometheus_text *t, const char *at, const char *end)
{
	bool is_type = end - at > 7 && memcmp(at, "# TYPE ", 7) == 0;
	const char *name = at + 7, *p;

	if (!is_type && (end - at <= 7 || memcmp(at, "# HELP ", 7) != 0))
		return;
	p = skip_name(name, end);
	if (!t->family || (size_t)(p - name) != t->family_len ||
	    memcmp(name, t->family, t->family_len) != 0) {
		t->help = NULL;
		t->help_len = 0;
		t->type = 0;
	}
	t->family = name;
	t->family_len = (size_t)(p - name);
	p = skip_blanks(p, end);
	if (is_type) {
		t->type = p < end ? *p : 0;
		/* Only its first letter is kept, which "stateset" shares with "summary". */
		if (end - p >= 5 && memcmp(p, "state", 5) == 0)
			t->type = 'g';
	} else {
		t->help = p;
		t->help_len = (size_t)(end - p);
	}
}

static bool read_series(const struct prometheus_text *t, const char *at, const char *end,
			struct prometheus_series *out)
{
	const char *p = skip_name(at, end);
	char *after;

	memset(out, 0, sizeof(*out));
	out->name = at;
	out->name_len = (size_t)(p - at);
	out->labels = p;
	if (p < end && *p == '{') {
		out->labels = p + 1;
		p = labels_end(p + 1, end);
		if (!p)
			return false;
		out->labels_len = (size_t)(p - out->labels);
		p++;
	}
	p = skip_blanks(p, end);
	if (!out->name_len || p == end)
		return false;
	/* A line ends in '\n' or the text in a NUL, so it stops there. */
	out->value = strtod(p, &after);
	if (after == p || after > end || !(fabs(out->value) <= DBL_MAX))
		return false;
	out->grows = grows(t, out);
	if (is_of_family(t, out)) {
		out->help = t->help;
		out->help_len = t->help_len;
	}
	return true;
}

bool prometheus_next(struct prometheus_text *t, struct prometheus_series *out)
{
	const char *line, *end;

	while (t->text < t->end) {
		line = t->text;
		end = memchr(line, '\n', (size_t)(t->end - line));
		end = end ? end : t->end;
		t->text = end < t->end ? end + 1 : end;
		if (end > line && end[-1] == '\r')
			end--;
		line = skip_blanks(line, end);
		if (line < end && *line == '#')
			read_comment(t, line, end);
		else if (read_series(t, line, end, out))
			return true;
	}
	return false;
}
