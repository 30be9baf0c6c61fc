/* Windows programs have no .gnu_debugdata; ELF objects reach this host from trace files only. */
#include "symbol/xz.h"

int xz_unpack(const void *in, size_t n, size_t max_bytes, struct buf *out, struct err *err)
{
	(void)in;
	(void)n;
	(void)max_bytes;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "packed symbols are not read on Windows");
}
