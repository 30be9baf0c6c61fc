#include "source/list/asked.h"

#include "source/etw/session_windows.h"

#include <stdlib.h>

/* The session reads the options itself; here they are only checked. */
int asked_needs(const struct capture *capture, struct needs *needs, struct err *err)
{
	struct etw_wanted *w = malloc(sizeof(*w));
	int rc = w ? etw_wanted_read(capture, needs, w, err)
		   : err_memory(err, "for the events of a session");

	if (!rc)
		rc = etw_session_identify(w, err);
	if (!rc)
		rc = etw_session_counters(capture->cpu_counters, w, err);
	free(w);
	return rc;
}

bool asked_unknown(const struct needs *needs, struct buf *out)
{
	(void)needs, (void)out;
	return false;
}

const struct need_event *asked_of_stacks(const struct needs *needs)
{
	(void)needs;
	return NULL;
}
