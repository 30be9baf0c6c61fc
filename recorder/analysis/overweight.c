#include "analysis/overweight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_totals(double base, double test)
{
	return !(base > 0) || fabs(test - base) < base * 1e-4;
}

static void weigh_row(struct overweight_row *r, double base_sum, double test_sum)
{
	double change = test_sum - base_sum, part;

	r->overweight_pct = r->responsibility_pct = NAN;
	r->interest = 0;
	if (same_totals(base_sum, test_sum)) {
		r->minor = fabs(r->test - r->base) < test_sum * 1e-3;
		return;
	}
	r->responsibility_pct = 100 * (r->test - r->base) / change;
	part = fabs(r->responsibility_pct);
	r->minor = part < 2;
	if (!(r->base > 0))
		return;
	/* Rounded, or rounding errors would order rows that are equal. */
	r->overweight_pct = 100 * (r->test - r->base) / (r->base * (test_sum / base_sum - 1));
	r->overweight_pct = round(r->overweight_pct * 1e6) / 1e6;
	if (!(r->test > 0))
		return;
	r->interest = (unsigned)(fabs(r->overweight_pct) > 110) + (unsigned)(part > 5) +
		      (unsigned)(part > 20) + (unsigned)(part > 100) +
		      (unsigned)(r->test / test_sum < 0.95) + (unsigned)(r->test / test_sum < 0.75);
}

/* 0 = on both sides, 1 = only in the test, 2 = only in the base. */
static int side_order(const struct overweight_row *r)
{
	if (r->base > 0)
		return r->test > 0 ? 0 : 2;
	return 1;
}

/* The larger first; NaN last. */
static int compare_larger_first(double a, double b)
{
	bool no_a = a != a, no_b = b != b;

	if (no_a || no_b)
		return (int)no_a - (int)no_b;
	return a > b ? -1 : a < b;
}

static int compare_rows(const void *left, const void *right)
{
	const struct overweight_row *a = left, *b = right;
	int order = side_order(a) - side_order(b);

	if (!order)
		order = (a->interest < b->interest) - (a->interest > b->interest);
	if (!order && side_order(a) == 0)
		order = compare_larger_first(a->overweight_pct, b->overweight_pct);
	if (!order)
		order = compare_larger_first(fabs(a->test - a->base), fabs(b->test - b->base));
	return order ? order : strcmp(a->name, b->name);
}

void overweight(struct overweight_row *rows, uint32_t n, double base_sum, double test_sum)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		weigh_row(&rows[i], base_sum, test_sum);
	if (n)
		qsort(rows, n, sizeof(*rows), compare_rows);
}
