/*
 * counters: list the counters that rules can name.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/fit.h"
#include "source/source.h"

int cmd_counters(const struct options *o, struct err *err)
{
	struct out *out = NULL;
	unsigned i, nlists = 0;
	struct sheet sheet;
	int rc;

	sheet_init(&sheet, o);
	sheet.columns = FIT_ALL;             /* a name is typed as it stands there */
	rc = out_to_buf(&sheet.out, &out, err);
	for (i = 0; !rc && live_sources[i]; i++) {
		if (o->pmu ? !live_sources[i]->list_events : !live_sources[i]->list)
			continue;
		nlists++;
		rc = o->pmu ? live_sources[i]->list_events(CPU_COUNTER_PROVIDER, o->json, out, err)
			    : live_sources[i]->list(o->pattern, o->json, out, err);
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
	else if (!rc && !sheet.out.len && o->pmu)
		rc = err_set(err, ERR_UNSUPPORTED, "this machine lets nobody count what its "
			     "processor counts");
	else if (!rc && !sheet.out.len)
		rc = err_set(err, ERR_NOT_FOUND, "no counter matches '%.200s'; 'recorder counters' "
			     "lists all", o->pattern ? o->pattern : "");
	if (!rc)
		rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	return rc;
}
