/*
 * delete: remove incidents by number, also while a recorder runs. Each is one short transaction;
 * data that no other incident uses is swept once, after the last.
 */
#include "cli/cmd.h"

#include <inttypes.h>

int cmd_delete(const struct options *o, struct err *err)
{
	struct store *store = NULL;
	struct err why;
	uint32_t i;
	int rc, first = 0;

	if (!o->ids.n)
		return err_set(err, ERR_USAGE,
			       "which incident? delete takes --id N; 'recorder list' "
			       "shows the numbers");
	rc = cmd_store_open(o, STORE_EDIT, &store, err);
	/* A missing incident does not stop the others; the first error is returned. */
	for (i = 0; !rc && i < o->ids.n; i++) {
		int one = store_delete_only(store, o->ids.items[i], &why);

		if (!one)
			cmd_note("incident %" PRId64 " is deleted", o->ids.items[i]);
		else if (first)
			cmd_note("%s", why.text);
		else
			first = err_set(err, (enum err_code)why.code, "%s", why.text);
	}
	if (!rc)
		store_clean(store);
	store_close(store);
	return rc ? rc : first;
}
