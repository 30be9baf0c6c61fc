/*
 * list: the incidents of the store, newest first.
 */
#include "cli/cmd.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/json.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COL_ID, COL_TIME, COL_WINDOW, COL_SAMPLES, COL_LOST, COL_SIZE, COLUMNS };

static const char *const headings[COLUMNS] = {
	"ID", "TIME (UTC)         ", "WINDOW", "SAMPLES", "LOST", "SIZE",
};

struct row {
	char cells[COLUMNS][CMD_NUMBER_BYTES];
	char *what;                          /* state where it is not "complete", and the reason */
};

struct table {
	struct row *rows;
	uint32_t n;
};

static double window_s(const struct incident_head *h)
{
	return (double)(h->t1_ns - h->t0_ns) / 1e9;
}

/* ---- --json ---------------------------------------------------------------------------------- */

static int put_json(void *ctx, const struct incident_head *h)
{
	struct json j = {.out = ctx};
	char time[OS_TIME_TEXT_BYTES];

	os_time_text(h->trigger_wall_ns, time);
	json_open(&j, '{');
	json_key_int(&j, "id", h->id);
	json_key_str(&j, "uuid", h->uuid);
	json_key_str(&j, "state", incident_state_text(h->state));
	json_key_str(&j, "trigger", h->rule);
	json_key_str(&j, "reason", h->reason);
	json_key_str(&j, "time_utc", time);
	json_key_num(&j, "window_s", window_s(h));
	json_key_uint(&j, "samples", h->samples);
	json_key_uint(&j, "lost", h->lost);
	json_key_uint(&j, "bytes", h->stored_bytes);
	json_key_bool(&j, "pinned", h->pinned);
	json_close(&j, '}');
	buf_putc(ctx, '\n');
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static char *what_text(const struct incident_head *h)
{
	const char *reason = h->reason && *h->reason ? h->reason : h->rule ? h->rule : "";
	struct buf text = {0};

	if (h->state != INCIDENT_COMPLETE)
		buf_printf(&text, "[%s] ", incident_state_text(h->state));
	if (h->pinned)
		buf_puts(&text, "[pinned] ");
	buf_puts(&text, reason);
	if (text.failed)
		buf_free(&text);
	return text.data;
}

static int add_row(void *ctx, const struct incident_head *h)
{
	struct table *t = ctx;
	char time[OS_TIME_TEXT_BYTES];
	struct row *row;

	if (ARRAY_NEXT(t->rows, t->n))
		return ERR_MEMORY;
	row = &t->rows[t->n];
	os_time_text(h->trigger_wall_ns, time);
	snprintf(row->cells[COL_ID], CMD_NUMBER_BYTES, "%" PRId64, h->id);
	snprintf(row->cells[COL_TIME], CMD_NUMBER_BYTES, "%.10s %.8s", time, time + 11);
	text_seconds(window_s(h), row->cells[COL_WINDOW]);
	text_count(h->samples, row->cells[COL_SAMPLES]);
	text_count(h->lost, row->cells[COL_LOST]);
	text_bytes(h->stored_bytes, row->cells[COL_SIZE]);
	row->what = what_text(h);
	if (!row->what)
		return ERR_MEMORY;
	t->n++;
	return 0;
}

static void put_row(struct buf *out, const int *widths, const char *const *cells,
		    const char *what, size_t terminal_columns)
{
	unsigned c;

	for (c = 0; c < COLUMNS; c++)
		buf_printf(out, "%*s  ", widths[c], cells[c]);
	fit_last(out, what, 0, terminal_columns);
	buf_putc(out, '\n');
}

static void put_table(struct buf *out, const struct table *t)
{
	size_t terminal = fit_columns();
	const char *cells[COLUMNS];
	int widths[COLUMNS];
	uint32_t i;
	unsigned c;

	for (c = 0; c < COLUMNS; c++)
		widths[c] = (int)strlen(headings[c]);
	for (i = 0; i < t->n; i++) {
		for (c = 0; c < COLUMNS; c++) {
			int n = (int)strlen(t->rows[i].cells[c]);

			widths[c] = n > widths[c] ? n : widths[c];
		}
	}
	put_row(out, widths, headings, "WHAT FIRED", terminal);
	for (i = 0; i < t->n; i++) {
		for (c = 0; c < COLUMNS; c++)
			cells[c] = t->rows[i].cells[c];
		put_row(out, widths, cells, t->rows[i].what, terminal);
	}
}

static void table_free(struct table *t)
{
	while (t->n)
		free(t->rows[--t->n].what);
	free(t->rows);
}

int cmd_list(const struct options *o, struct err *err)
{
	struct store *store = NULL;
	struct table table = {0};
	struct buf out = {0};
	int rc;

	rc = cmd_store_open(o, STORE_READ, &store, err);
	if (!rc && o->json)
		rc = store_list(store, put_json, &out, err);
	else if (!rc)
		rc = store_list(store, add_row, &table, err);
	if (!rc && !table.n && !out.len)
		rc = err_set(err, ERR_NOT_FOUND, "no incidents in %s yet", store_path(store));
	if (!rc && table.n)
		put_table(&out, &table);
	if (!rc)
		rc = cmd_print_fitted(o, &out, err);
	else if (rc == ERR_MEMORY)
		err_memory(err, "while listing incidents");
	table_free(&table);
	buf_free(&out);
	store_close(store);
	return rc;
}
