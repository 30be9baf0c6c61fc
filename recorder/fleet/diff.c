/* diff: two versions, or two times, by what each host has. */
#include "fleet/answer_private.h"

#include "base/moment.h"
#include "base/os.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MIN 0.005

/* Mean of what each host has a second, and the variance of that mean. NaN of one host. */
static double mean_rate(const struct spread *s, uint32_t name, double *variance)
{
	double sum = 0, squares = 0, seconds = 0, value, mean;
	uint32_t i;

	for (i = 0; i < s->nhosts; i++) {
		sum += s->values[(size_t)name * s->nhosts + i];
		seconds += number_at(&s->hosts, i, 1);
	}
	mean = seconds > 0 ? sum / seconds : 0;
	for (i = 0; i < s->nhosts; i++) {
		double ns = number_at(&s->hosts, i, 1);

		value = ns > 0 ? s->values[(size_t)name * s->nhosts + i] / ns : 0;
		squares += (value - mean) * (value - mean);
	}
	*variance = s->nhosts > 1 ? squares / (s->nhosts - 1) / s->nhosts : (double)NAN;
	return mean;
}

static void put_change(struct fleet *f, const char *name, double base, double test, double spread,
		       bool is_heading)
{
	const struct sheet_cell cells[] = {
		{"row", .text = "function"},
		{"name", name, .kind = SHEET_NAME, .text = name},
		{"base_cpus", "BASE CPUS", 10, SHEET_NUMBER, .v = base, .digits = 4},
		{"test_cpus", "TEST CPUS", 11, SHEET_NUMBER, .v = test, .digits = 4},
		{"change_cpus", "CHANGE", 10, SHEET_NUMBER, .v = test - base, .digits = 4},
		{"spread_cpus", "SPREAD", 10, SHEET_NUMBER, .v = spread, .digits = 4},
	};

	(is_heading ? sheet_heading : sheet_row)(&f->sheet, cells, COUNT_OF(cells));
}

/* Of functions chosen by their own weight, or of the others. */
static void put_changes(struct fleet *f, const struct grid *functions, bool own,
			const struct spread *test, const struct spread *base)
{
	uint32_t i, within = 0, n = 0;
	double x, y, vx, vy, spread;

	put_change(f, own ? "FUNCTION, ITS OWN TIME" : "FUNCTION, INCLUSIVE", 0, 0, 0, true);
	for (i = 0; i < grid_rows(functions); i++) {
		if (count_at(functions, i, 5) != own)
			continue;
		n++;
		x = mean_rate(base, i, &vx);
		y = mean_rate(test, i, &vy);
		spread = sqrt(vx + vy);
		if (fabs(y - x) < CPUS_MIN || fabs(y - x) <= SPREADS * spread)
			within++;
		else
			put_change(f, text_at(functions, i, 0), x, y, spread, false);
	}
	if (within && !f->sheet.json)
		sheet_put(&f->sheet, SHEET_PLAIN, "  %u of %u differ by less than 0.005 CPUs, or "
			  "than three times the spread of the hosts\n", within, n);
}

static int compare(struct fleet *f, const struct grid *of_test, const struct grid *of_base,
		   struct err *err)
{
	struct fleet_query q = fleet_question(f);
	struct spread test = {0}, base = {0};
	struct grid functions = {0};
	int rc;

	q.base = &f->base;
	fleet_functions(&q, fmax(number_at(of_test, 0, 2), 1), fmax(number_at(of_base, 0, 2), 1));
	rc = fleet_ask(f, &q, 6, &functions, err);
	if (!rc)
		rc = spread_make(f, &functions, &test, &base, err);
	if (!rc) {
		put_changes(f, &functions, false, &test, &base);
		put_changes(f, &functions, true, &test, &base);
	}
	grid_free(&functions);
	spread_free(&test);
	spread_free(&base);
	return rc;
}

/* What the base is, by --against. */
static int choose_base(struct fleet *f, struct err *err)
{
	const char *against = f->o->against;
	double seconds = 0;
	uint64_t ns;

	f->base = f->filter;
	if (!against)
		return err_set(err, ERR_USAGE, "fleet diff: with what? --version 2.1 --against "
			       "2.0, or --since 1d --against 7d");
	if (f->filter.release) {
		f->base.release = against;
		return 0;
	}
	if (!duration_parse(against, &seconds) || !(seconds > 0) ||
	    !(seconds * 1e9 < (double)f->filter.from_wall_ns))
		return err_set(err, ERR_USAGE, "fleet diff --against %.60s: a version needs "
			       "--version, a time (7d) --since", against);
	ns = (uint64_t)(seconds * 1e9);
	f->filter.until_wall_ns = os_wall_ns();
	f->base.from_wall_ns -= ns;
	f->base.until_wall_ns = f->filter.until_wall_ns - ns;
	return 0;
}

static void put_side(struct fleet *f, const char *label, const struct grid *g)
{
	char text[3][NUMBER_BYTES];

	sheet_line(&f->sheet, label, SHEET_PLAIN, "%s incidents of %s hosts, windows of %s",
		   text_count(count_at(g, 0, 0), text[0]), text_count(count_at(g, 0, 1), text[1]),
		   text_seconds(number_at(g, 0, 2) / 1e9, text[2]));
}

int fleet_diff(struct fleet *f, struct err *err)
{
	const struct fleet_filter test = f->filter;
	struct grid of_test = {0}, of_base = {0};
	int rc = choose_base(f, err);

	if (!rc)
		rc = fleet_ask_totals(f, &of_test, err);
	if (!rc) {
		struct fleet_filter both = f->filter;

		f->filter = f->base;
		rc = fleet_ask_totals(f, &of_base, err);
		f->filter = both;
		if (rc == ERR_NOT_FOUND)
			err_set(err, ERR_NOT_FOUND, "there is no incident of --against %s "
				"in %s", f->o->against, buf_text(&f->target.name));
	}
	if (!rc && !f->sheet.json) {
		put_side(f, "Base", &of_base);
		put_side(f, "Test", &of_test);
	}
	if (!rc)
		rc = compare(f, &of_test, &of_base, err);
	f->filter = test;
	grid_free(&of_test);
	grid_free(&of_base);
	return rc;
}
