/*
 * pin, unpin: exempt incidents from retention, or stop exempting them.
 */
#include "cli/cmd.h"

#include <inttypes.h>

int cmd_pin(const struct options *o, struct err *err)
{
	bool pinned = o->command == CMD_PIN;
	struct store *store = NULL;
	uint32_t i;
	int rc;

	if (!o->ids.n)
		return err_set(err, ERR_USAGE,
			       "which incident? %s takes --id N; 'recorder list' shows "
			       "the numbers",
			       command_table[o->command].name);
	rc = cmd_store_open(o, STORE_EDIT, &store, err);
	for (i = 0; !rc && i < o->ids.n; i++) {
		rc = store_pin(store, o->ids.items[i], pinned, err);
		if (!rc)
			cmd_note("incident %" PRId64 " is %s", o->ids.items[i],
				 pinned ? "pinned: retention will not delete it" : "unpinned");
	}
	store_close(store);
	return rc;
}
