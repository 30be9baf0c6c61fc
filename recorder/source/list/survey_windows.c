#include "source/list/survey.h"

/* Windows requires unwind tables of every 64-bit program. */
int survey_run(uint64_t limit_ns, struct survey *out, struct err *err)
{
	(void)limit_ns;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "there is nothing to look for on Windows");
}
