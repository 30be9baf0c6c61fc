#include "fleet/answer_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- asking ---------------------------------------------------------------------------------- */

static int take_row(void *ctx, const char *const *fields, unsigned n, struct err *err)
{
	struct grid *g = ctx;
	uint32_t number, i;

	if (ARRAY_ROOM(g->cells, g->capacity, (size_t)g->n + g->ncolumns))
		return err_memory(err, "for an answer");
	for (i = 0; i < g->ncolumns; i++) {
		const char *text = i < n ? fields[i] : "";

		number = text_table_add(&g->texts, text, strlen(text));
		if (number == TABLE_NONE)
			return err_memory(err, "for an answer");
		g->cells[g->n++] = text_table_get(&g->texts, number);
	}
	return 0;
}

void grid_free(struct grid *g)
{
	free(g->cells);
	text_table_free(&g->texts);
	*g = (struct grid){0};
}

uint32_t grid_rows(const struct grid *g)
{
	return g->ncolumns ? g->n / g->ncolumns : 0;
}

const char *text_at(const struct grid *g, uint32_t row, uint32_t column)
{
	return g->cells[row * g->ncolumns + column];
}

double number_at(const struct grid *g, uint32_t row, uint32_t column)
{
	return strtod(text_at(g, row, column), NULL);
}

uint64_t count_at(const struct grid *g, uint32_t row, uint32_t column)
{
	return strtoull(text_at(g, row, column), NULL, 10);
}

struct fleet_query fleet_question(const struct fleet *f)
{
	return (struct fleet_query){.clickhouse = f->db.clickhouse, .filter = &f->filter,
				    .rows = f->o->rows, .clustered = f->clustered,
				    .folds = f->folds.len ? f->folds.data : NULL,
				    .fold_days = f->folds.len ? f->fold_days.data : NULL};
}

int fleet_ask(struct fleet *f, struct fleet_query *q, uint32_t ncolumns, struct grid *out,
	       struct err *err)
{
	struct net_answer a = {0};
	struct err why = {0};
	int rc = buf_check(&q->out, "a question", err);

	grid_free(out);
	out->ncolumns = ncolumns;
	if (!rc) {
		rc = database_ask(&f->db, q->out.data, take_row, out, &a, &why);
		if (rc)
			rc = err_set(err, (enum err_code)rc, "%s: %.400s",
				     buf_text(&f->target.name), why.text);
		else if (a.status != 200)
			rc = err_set(err, ERR_IO, "%s: %.*s ('recorder fleet schema' prints "
				     "what makes the tables)", buf_text(&f->target.name),
				     (int)(strcspn(buf_text(&a.body), "\r\n") < 350
					   ? strcspn(buf_text(&a.body), "\r\n") : 350),
				     buf_text(&a.body));
	}
	buf_free(&q->out);
	net_answer_free(&a);
	return rc;
}

/* ---- hosts and their spread ------------------------------------------------------------------ */

void spread_free(struct spread *s)
{
	grid_free(&s->hosts);
	free(s->values);
	free(s->scratch);
	*s = (struct spread){0};
}

static uint32_t index_of(const struct grid *g, const char *text)
{
	uint32_t low = 0, high = grid_rows(g), middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(text_at(g, middle, 0), text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < grid_rows(g) && strcmp(text_at(g, low, 0), text) == 0 ? low : UINT32_MAX;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The database sorts by its own locale. */
static int compare_rows(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int make_side(struct fleet *f, const struct fleet_filter *filter, uint32_t nnames,
		     struct spread *s, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	int rc;

	q.filter = filter;
	fleet_hosts(&q);
	rc = fleet_ask(f, &q, 3, &s->hosts, err);
	if (rc)
		return rc;
	s->nhosts = grid_rows(&s->hosts);
	s->nnames = nnames;
	if (s->nhosts)
		qsort(s->hosts.cells, s->nhosts, 3 * sizeof(*s->hosts.cells), compare_rows);
	s->values = calloc((size_t)s->nhosts * s->nnames + 1, sizeof(*s->values));
	s->scratch = calloc((size_t)s->nhosts + 1, sizeof(*s->scratch));
	return s->values && s->scratch ? 0 : err_memory(err, "for hosts");
}

/* A row of fleet_hosts_of(); its weights of this side begin at a column: own, inclusive. */
static void take_host(struct spread *s, const struct grid *functions, const struct grid *parts,
		      uint32_t row, uint32_t column)
{
	uint32_t host = index_of(&s->hosts, text_at(parts, row, 1)), k;

	for (k = 0; host != UINT32_MAX && k < s->nnames; k++)
		if (strcmp(text_at(functions, k, 0), text_at(parts, row, 0)) == 0)
			s->values[(size_t)k * s->nhosts + host] =
				number_at(parts, row, column + !count_at(functions, k, 5));
}

int spread_make(struct fleet *f, const struct grid *functions, struct spread *test,
		struct spread *base, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	struct grid parts = {0};
	uint32_t n = grid_rows(functions), i;
	const char **names = calloc(n + 1u, sizeof(*names));
	int rc = names ? make_side(f, &f->filter, n, test, err) : err_memory(err, "for names");

	if (!rc && base)
		rc = make_side(f, &f->base, n, base, err);
	for (i = 0; !rc && i < n; i++)
		names[i] = text_at(functions, i, 0);
	if (!rc && n) {
		q.base = base ? &f->base : NULL;
		fleet_hosts_of(&q, names, n);
		rc = fleet_ask(f, &q, 6, &parts, err);
	}
	for (i = 0; !rc && i < grid_rows(&parts); i++) {
		take_host(test, functions, &parts, i, 2);
		if (base)
			take_host(base, functions, &parts, i, 4);
	}
	grid_free(&parts);
	free(names);
	return rc;
}

static double median(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return n ? (values[(n - 1) / 2] + values[n / 2]) / 2 : 0;
}

double median_and_spread(struct spread *s, const double *values, double *spread)
{
	double middle;
	uint32_t i;

	memcpy(s->scratch, values, s->nhosts * sizeof(*values));
	middle = median(s->scratch, s->nhosts);
	for (i = 0; i < s->nhosts; i++)
		s->scratch[i] = fabs(values[i] - middle);
	*spread = 1.4826 * median(s->scratch, s->nhosts);
	return middle;
}

uint32_t hosts_with(const struct spread *s, uint32_t name)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->nhosts; i++)
		n += s->values[(size_t)name * s->nhosts + i] > 0;
	return n;
}

/* ---- totals ---------------------------------------------------------------------------------- */

int fleet_ask_totals(struct fleet *f, struct grid *g, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	int rc;

	fleet_totals(&q);
	rc = fleet_ask(f, &q, 7, g, err);
	if (!rc && (!grid_rows(g) || !count_at(g, 0, 0)))
		rc = err_set(err, ERR_NOT_FOUND, "no incident in %s matches",
			     buf_text(&f->target.name));
	return rc;
}
