/*
 * The overweight report: which functions are responsible for the change between two totals. What the
 * numbers mean: exports-and-store.md, section 2.11; PerfView's guide, "Overweight report".
 */
#ifndef OVERWEIGHT_H
#define OVERWEIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct overweight_row {
	const char *name;
	double base, test;                   /* inclusive weights, comparable */
	/* The rest is set by overweight(); NaN where base is 0 or the totals are the same. */
	double overweight_pct;               /* of the change that a growth of all alike would have given */
	double responsibility_pct;           /* of the whole change */
	unsigned interest;                   /* 0 to 6; of what is on one side only 0 */
	bool minor;                          /* too small a part of the change to be shown */
};

/*
 * Fill and sort: what is on both sides by interest, then overweight, then change; then what is in the
 * test only, then in the base only, by weight. Totals are the same when they differ by less than 0.01 %.
 */
void overweight(struct overweight_row *rows, uint32_t n, double base_sum, double test_sum);

#endif
