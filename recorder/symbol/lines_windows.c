#include "symbol/lines.h"

int lines_check(struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "source lines and inlined functions are read on Linux only: leave out the "
		       "option, or copy the store to the Linux machine where it was recorded");
}

int lines_read(const struct object *object, uint32_t pid, const char *path,
	       const uint64_t *offsets, uint32_t n, uint64_t end_ns, struct lines *out,
	       struct err *err)
{
	(void)object;
	(void)pid;
	(void)path;
	(void)offsets;
	(void)n;
	(void)end_ns;
	(void)out;
	return lines_check(err);
}
