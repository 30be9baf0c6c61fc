#include "tests/support/bench_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void row_open(struct row *r, bool as_json, const char *name)
{
	*r = (struct row){.as_json = as_json};
	r->json.out = &r->object;
	buf_printf(&r->text, "%-22s", name);
	json_open(&r->json, '{');
	json_key_str(&r->json, "row", name);
}

/* Four digits are more than any of these is worth; counts stay whole. */
static double rounded(double v)
{
	char text[40];

	if (fabs(v) >= 1000)
		return round(v);
	snprintf(text, sizeof(text), "%.4g", v);
	return atof(text);
}

void row_num(struct row *r, const char *key, double value)
{
	char number[40];
	const char *at;

	num_text(rounded(value), number, sizeof(number));
	buf_puts(&r->text, "  ");
	for (at = key; *at; at++)
		buf_printf(&r->text, "%c", *at == '_' ? ' ' : *at);
	buf_printf(&r->text, " %s", number);
	json_key_num(&r->json, key, rounded(value));
}

static void put_goal(struct row *r, const char *key, const char *sign, double goal, bool holds)
{
	char name[80], text[60], number[40];

	num_text(goal, number, sizeof(number));
	snprintf(text, sizeof(text), "%s %s", sign, number);
	buf_printf(&r->text, " (%s: %s)", text, holds ? "holds" : "MISSED");
	snprintf(name, sizeof(name), "%s_goal", key);
	json_key_str(&r->json, name, text);
	snprintf(name, sizeof(name), "%s_holds", key);
	json_key_bool(&r->json, name, holds);
}

void row_most(struct row *r, const char *key, double value, double most)
{
	row_num(r, key, value);
	put_goal(r, key, "<=", most, value <= most);
}

void row_least(struct row *r, const char *key, double value, double least)
{
	row_num(r, key, value);
	put_goal(r, key, ">=", least, value >= least);
}

static int by_size(const void *one, const void *two)
{
	double a = *(const double *)one, c = *(const double *)two;

	return a < c ? -1 : a > c;
}

double row_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
}

void row_close(struct row *r)
{
	json_close(&r->json, '}');
	fprintf(r->as_json ? stderr : stdout, "%s\n", buf_text(&r->text));
	if (r->as_json)
		printf("%s\n", buf_text(&r->object));
	fflush(stdout);
	buf_free(&r->text);
	buf_free(&r->object);
}
