/* fleet fold: sums of whole days, so that questions to them read fewer rows. */
#include "fleet/answer_private.h"

#include "base/os.h"

#include <string.h>

void fleet_find_folds(struct fleet *f)
{
	struct fleet_query q = fleet_question(f);
	struct grid g = {0};
	uint32_t i;
	int rc = 0;

	if (!f->db.clickhouse)
		return;
	fleet_ask_engine(&q);
	f->clustered = fleet_ask(f, &q, 1, &g, NULL) || !grid_rows(&g) || !count_at(&g, 0, 0);
	fleet_ask_folds(&q);
	rc = fleet_ask(f, &q, 2, &g, NULL);  /* tables of before have none */
	buf_reset(&f->folds);
	buf_reset(&f->fold_days);
	for (i = 0; !rc && i < grid_rows(&g); i++) {
		buf_printf(&f->folds, "%s%s", i ? ", " : "", text_at(&g, i, 1));
		buf_printf(&f->fold_days, "%.10s ", text_at(&g, i, 0));
	}
	if (f->folds.failed || f->fold_days.failed)
		buf_reset(&f->folds);
	grid_free(&g);
}

static int fold_day(struct fleet *f, const char *day, uint64_t incidents, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	struct grid none = {0};
	int64_t fold = 0;
	int rc = os_random(&fold, sizeof(fold), err);

	fold &= INT64_MAX;
	if (!rc) {
		fleet_fold(&q, day, fold);
		rc = fleet_ask(f, &q, 1, &none, err);
	}
	if (!rc) {
		fleet_fold_counts(&q, day, fold, incidents);
		rc = fleet_ask(f, &q, 1, &none, err);
	}
	if (!rc)
		sheet_put(&f->sheet, SHEET_PLAIN, "%.10s: %llu %s\n", day,
			  (unsigned long long)incidents,
			  f->filter.history ? "intervals of the history" : "incidents");
	grid_free(&none);
	return rc;
}

static int fold_some(struct fleet *f, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	struct grid days = {0};
	uint32_t i;
	int rc;

	fleet_find_folds(f);
	fleet_ask_days(&q);
	rc = fleet_ask(f, &q, 2, &days, err);
	for (i = 0; !rc && i < grid_rows(&days); i++)
		if (!strstr(buf_text(&f->fold_days), text_at(&days, i, 0)))
			rc = fold_day(f, text_at(&days, i, 0), count_at(&days, i, 1), err);
	grid_free(&days);
	return rc;
}

int fleet_fold_days(struct fleet *f, struct err *err)
{
	int rc;

	if (!f->db.clickhouse)
		return err_set(err, ERR_USAGE, "fleet fold: for ClickHouse only");
	f->filter.history = false;
	rc = fold_some(f, err);
	f->filter.history = true;
	if (!rc)
		rc = fold_some(f, err);
	if (!rc && !f->sheet.out.len)
		sheet_put(&f->sheet, SHEET_PLAIN, "All days that are over are summed up "
			  "already.\n");
	return rc;
}
