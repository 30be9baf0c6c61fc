/*
 * The overweight report: which functions are responsible for the change between two totals.
 * "recorder help diff" explains the numbers. Source: PerfView's guide, "Overweight report".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct overweight_row {
	const char *name;
	const char *code;                    /* code_kind_text(); the caller's */
	double base, test;                   /* inclusive weights, comparable */
	/* The rest is set by overweight(); NaN where base is 0 or the totals are the same. */
	double overweight_pct;               /* of the change if all had changed alike */
	double responsibility_pct;           /* of the whole change */
	unsigned interest;                   /* 0 to 6; 0 for functions of one side */
	bool minor;                          /* too small a part of the change to be shown */
};

/*
 * Fill and sort the rows: functions of both sides by interest, overweight and change, then those
 * only in the test, then those only in the base, by weight. Totals that differ by less than 0.01 %
 * count as equal.
 */
void overweight(struct overweight_row *rows, uint32_t n, double base_sum, double test_sum);
