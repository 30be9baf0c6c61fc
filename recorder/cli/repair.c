/*
 * verify, salvage: what is damaged in a store, and what can be read of it.
 */
#include "cli/cmd.h"

#include <inttypes.h>

static void put_finding(void *ctx, const char *what)
{
	buf_printf(ctx, "%s\n", what);
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

int cmd_verify(const struct options *o, struct err *err)
{
	struct store_verified found;
	struct store *store = NULL;
	struct buf text = {0}, path = {0};
	int rc = find_store(o, &path, err);

	if (!rc)
		rc = cmd_store_open_at(o, buf_text(&path), STORE_READ, &store, err);
	if (!rc)
		rc = store_verify(store, put_finding, &text, &found, err);
	if (!rc && !found.findings)
		buf_printf(&text, "%s is sound: %" PRIu32 " incident%s\n", store_path(store),
			   found.incidents, found.incidents == 1 ? "" : "s");
	if (!rc)
		rc = cmd_print(&text, err);
	if (!rc && found.findings)
		rc = err_set(err, ERR_FORMAT, "%s is damaged; of %" PRIu32 " incident%s %" PRIu32
			     " cannot be read in full: `recorder salvage %s -o NEW` puts what is "
			     "readable into a new store", store_path(store), found.incidents,
			     found.incidents == 1 ? "" : "s", found.damaged, store_path(store));
	buf_free(&text);
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
		cmd_note("%s has %" PRIu32 " incident%s now, %" PRIu32 " of them with parts missing"
			 "; %" PRIu64 " rows or pages of %s could not be read", o->output,
			 got.incidents, got.incidents == 1 ? "" : "s", got.partial, got.unreadable,
			 buf_text(&path));
	if (!rc && !got.incidents)
		rc = err_set(err, ERR_NOT_FOUND, "no incident of %s could be read",
			     buf_text(&path));
	buf_free(&path);
	return rc;
}
