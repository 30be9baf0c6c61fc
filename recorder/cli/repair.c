/*
 * verify, salvage: what is damaged in a store, and what can be read of it.
 */
#include "cli/cmd.h"
#include "cli/sheet.h"

#include "base/array.h"
#include "base/fit.h"

#include <inttypes.h>

static void put_finding(void *ctx, const char *what)
{
	const struct sheet_cell cell = {.key = "finding", .width = 1, .kind = SHEET_NAME,
					.text = what};

	sheet_row(ctx, &cell, 1);
}

/* With --json, the last line. */
static void put_verified(struct sheet *p, const char *path, const struct store_verified *found)
{
	const struct sheet_cell cells[] = {
		{.key = "store", .text = path},
		{.key = "sound", .kind = SHEET_BOOL, .n = !found->findings},
		{.key = "findings", .kind = SHEET_COUNT, .n = found->findings},
		{.key = "incidents", .kind = SHEET_COUNT, .n = found->incidents},
		{.key = "damaged_incidents", .kind = SHEET_COUNT, .n = found->damaged},
	};

	if (p->json)
		sheet_row(p, cells, COUNT_OF(cells));
	else if (!found->findings)
		buf_printf(&p->out, "%s is sound: %" PRIu32 " incident%s\n", path,
			   found->incidents, found->incidents == 1 ? "" : "s");
}

static int print_salvaged(const struct options *o, const char *path,
			  const struct store_salvaged *got, struct err *err)
{
	const struct sheet_cell cells[] = {
		{.key = "store", .text = path},
		{.key = "new_store", .text = o->output},
		{.key = "incidents", .kind = SHEET_COUNT, .n = got->incidents},
		{.key = "partial_incidents", .kind = SHEET_COUNT, .n = got->partial},
		{.key = "unreadable_parts", .kind = SHEET_COUNT, .n = got->unreadable},
	};
	struct sheet sheet;
	int rc;

	if (!o->json) {
		cmd_note("%s has %" PRIu32 " incident%s now, %" PRIu32 " of them with parts missing"
			 "; %" PRIu64 " rows or pages of %s could not be read", o->output,
			 got->incidents, got->incidents == 1 ? "" : "s", got->partial,
			 got->unreadable, path);
		return 0;
	}
	sheet_init(&sheet, o);
	sheet_row(&sheet, cells, COUNT_OF(cells));
	rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	return rc;
}

/* The operand names the store, too. */
static int find_store(const struct options *o, struct buf *path, struct err *err)
{
	if (!o->pattern)
		return cmd_store_path(o, STORE_READ, path, err);
	if (options_origin(o, "store") == FROM_ARGS)
		return err_set(err, ERR_USAGE, "two stores: '%.200s' and --store '%.200s'",
			       o->pattern, o->store);
	buf_puts(path, o->pattern);
	return buf_check(path, "the store's name", err);
}

/* So damaged that it cannot be opened, or no store at all. */
static void put_unopened(struct sheet *p, const char *path, const struct err *err)
{
	const struct store_verified found = {.findings = 1};

	if (!p->json)
		return;
	put_finding(p, err->text);
	put_verified(p, path, &found);
	sheet_print(p, NULL);
}

int cmd_verify(const struct options *o, struct err *err)
{
	struct store_verified found;
	struct store *store = NULL;
	struct buf path = {0};
	struct sheet sheet;
	int rc = find_store(o, &path, err);

	sheet_init(&sheet, o);
	sheet.columns = FIT_ALL;
	if (!rc)
		rc = cmd_store_open_at(o, buf_text(&path), STORE_READ, &store, err);
	if (rc == ERR_FORMAT)
		put_unopened(&sheet, buf_text(&path), err);
	if (!rc)
		rc = store_verify(store, put_finding, &sheet, &found, err);
	if (!rc)
		put_verified(&sheet, store_path(store), &found);
	if (!rc)
		rc = sheet_print(&sheet, err);
	if (!rc && found.findings)
		rc = err_set(err, ERR_FORMAT, "%s is damaged; of %" PRIu32 " incident%s %" PRIu32
			     " cannot be read in full: `recorder salvage %s -o NEW` puts what is "
			     "readable into a new store", store_path(store), found.incidents,
			     found.incidents == 1 ? "" : "s", found.damaged, store_path(store));
	sheet_free(&sheet);
	buf_free(&path);
	store_close(store);
	return rc;
}

int cmd_salvage(const struct options *o, struct err *err)
{
	struct store_salvaged got;
	struct buf path = {0};
	int rc = find_store(o, &path, err);

	if (!rc && !o->output)
		rc = err_set(err, ERR_USAGE, "where to? recorder salvage STORE -o NEW");
	if (!rc)
		rc = store_salvage(buf_text(&path), o->output, &got, err);
	if (!rc)
		rc = print_salvaged(o, buf_text(&path), &got, err);
	if (!rc && !got.incidents)
		rc = err_set(err, ERR_NOT_FOUND, "no incident of %s could be read",
			     buf_text(&path));
	buf_free(&path);
	return rc;
}
