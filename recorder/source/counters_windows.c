#include "source/source.h"

int counter_read_once(const char *name, struct counter_value *out, struct err *err)
{
	(void)out;
	return err_set(err, ERR_UNSUPPORTED,
		       "cannot read '%s': live counters on Windows come with the Windows source",
		       name);
}
