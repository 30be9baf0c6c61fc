/* stacks: on Linux, what to use instead. */
#include "cli/cmd.h"

int cmd_stacks(const struct options *o, struct err *err)
{
	if (!o->process)
		return err_set(err, ERR_USAGE,
			       "stacks of which process? -p takes its name or number");
	return err_set(err, ERR_UNSUPPORTED, "stacks of stopped threads are available on Windows "
		       "only; record for a while instead: recorder collect --record-process NAME "
		       "--max-collect-sec 5, with --thread-time for waiting threads");
}
