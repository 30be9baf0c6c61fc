/*
 * What the files of fleet/ share: answers of the database, and what each host has of what is shown.
 */
#pragma once

#include "base/array.h"
#include "base/text_table.h"
#include "fleet/fleet.h"
#include "listing/numbers.h"
#include "listing/sheet.h"
#include "ship/fleet.h"

#define SPREADS 3.0                          /* what exceeds so many differs */

/* An answer: its fields, row by row. */
struct grid {
	const char **cells;
	uint32_t n, capacity, ncolumns;
	struct text_table texts;
};
void grid_free(struct grid *g);
uint32_t grid_rows(const struct grid *g);
const char *text_at(const struct grid *g, uint32_t row, uint32_t column);
double number_at(const struct grid *g, uint32_t row, uint32_t column);
uint64_t count_at(const struct grid *g, uint32_t row, uint32_t column);

struct fleet {
	const struct options *o;
	struct sheet sheet;
	struct target target;
	struct net *net;
	struct database db;
	struct fleet_filter filter, base;
	enum stream stream;
	bool clustered;                      /* this and the next of struct fleet_query */
	struct buf fold_days, folds;
};

/* A question about f->filter. */
struct fleet_query fleet_question(const struct fleet *f);
/* Look which days are summed up, and whether there are several servers. */
void fleet_find_folds(struct fleet *f);
/* Sum up days of ClickHouse that are over. */
int fleet_fold_days(struct fleet *f, struct err *err);
/* Takes the query's text. */
int fleet_ask(struct fleet *f, struct fleet_query *q, uint32_t ncolumns, struct grid *out,
	      struct err *err);
/* The columns of fleet_totals(), of f->filter. ERR_NOT_FOUND where there is nothing. */
int fleet_ask_totals(struct fleet *f, struct grid *g, struct err *err);

/* What each host has of each function: values[function * nhosts + host]. */
struct spread {
	struct grid hosts;                   /* fleet_hosts(), by name */
	uint32_t nhosts, nnames;
	double *values, *scratch;
};
/* functions: the answer of fleet_functions(). base: of f->base; NULL = not asked for. */
int spread_make(struct fleet *f, const struct grid *functions, struct spread *test,
		struct spread *base, struct err *err);
void spread_free(struct spread *s);
/* The median of values, and as their spread 1.4826 medians of what they differ by from it. */
double median_and_spread(struct spread *s, const double *values, double *spread);
/* How many hosts have anything of a function. */
uint32_t hosts_with(const struct spread *s, uint32_t name);

int fleet_diff(struct fleet *f, struct err *err);
/* Write what is in the sheet and lanes of the hosts into o->output, as HTML. */
int fleet_put_page(struct fleet *f, const struct grid *totals, struct err *err);
