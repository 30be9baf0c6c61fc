/*
 * delete, pin, unpin: remove incidents, exempt them from retention, or stop exempting them; by
 * number, also while a recorder runs.
 */
#include "cli/cmd.h"

#include <inttypes.h>

int cmd_edit(const struct options *o, struct err *err)
{
	const char *done = o->command == CMD_DELETE ? "deleted"
			   : o->command == CMD_PIN  ? "pinned: retention will not delete it"
						    : "unpinned";
	struct store *store = NULL;
	struct err why;
	uint32_t i;
	int rc, first = 0;

	if (!o->ids.n)
		return err_set(err, ERR_USAGE, "which incident? 'recorder list' shows the numbers, "
			       "and 'recorder %s 3' takes one", command_table[o->command].name);
	rc = cmd_store_open(o, STORE_EDIT, &store, err);
	/* A missing incident does not stop the others from being deleted. */
	for (i = 0; !rc && i < o->ids.n && (!first || o->command == CMD_DELETE); i++) {
		int64_t id = o->ids.items[i];
		int one = o->command == CMD_DELETE
				  ? store_delete(store, id, &why)
				  : store_pin(store, id, o->command == CMD_PIN, &why);

		if (!one)
			cmd_note("incident %" PRId64 " is %s", id, done);
		else if (first)
			cmd_note("%s", why.text);
		else
			first = err_set(err, (enum err_code)why.code, "%s", why.text);
	}
	/* Data that no other incident uses is swept once, after the last. */
	if (!rc && o->command == CMD_DELETE)
		store_clean(store);
	store_close(store);
	return rc ? rc : first;
}
