/* PDB files come by srv* in the symbol path, which is Windows' own. */
#include "symbol/debuginfod.h"

int debuginfod_open(const char *urls, struct debuginfod **out, struct err *err)
{
	(void)urls;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "servers of debuginfod are asked on Linux only");
}

void debuginfod_close(struct debuginfod *d)
{
	(void)d;
}

int debuginfod_fetch(struct debuginfod *d, const uint8_t *build_id, unsigned n, struct buf *dirs,
		     struct err *err)
{
	(void)d;
	(void)build_id;
	(void)n;
	(void)dirs;
	return err_set(err, ERR_UNSUPPORTED, "servers of debuginfod are asked on Linux only");
}

int debuginfod_fetch_source(struct debuginfod *d, const uint8_t *build_id, unsigned n,
			    const char *file, struct buf *path, struct err *err)
{
	(void)file;
	return debuginfod_fetch(d, build_id, n, path, err);
}
