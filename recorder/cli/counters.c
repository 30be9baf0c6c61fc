/*
 * counters: list the counters that rules can name.
 */
#include "cli/cmd.h"

#include "source/source.h"

int cmd_counters(const struct options *o, struct err *err)
{
	struct buf text = {0};
	struct out *out = NULL;
	unsigned i, nlists = 0;
	int rc;

	rc = out_to_buf(&text, &out, err);
	for (i = 0; !rc && live_sources[i]; i++) {
		if (!live_sources[i]->list)
			continue;
		nlists++;
		rc = live_sources[i]->list(o->pattern, o->json, out, err);
		/* Another source may have it. */
		if (rc == ERR_NOT_FOUND)
			rc = 0;
	}
	if (out && !rc)
		rc = out_close(out, err);
	else
		out_abandon(out);
	if (!rc && !nlists)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "no source of counters is built into this program");
	else if (!rc && !text.len)
		rc = err_set(err, ERR_NOT_FOUND, "no counter matches '%.200s'; 'recorder counters' "
			     "lists all", o->pattern ? o->pattern : "");
	if (!rc)
		rc = cmd_print(&text, err);
	buf_free(&text);
	return rc;
}
