#include "symbol/dbghelp.h"

struct dbghelp *dbghelp_new(const char *path)
{
	(void)path;
	return NULL;
}

void dbghelp_free(struct dbghelp *d)
{
	(void)d;
}

enum dbghelp_answer dbghelp_fetch(struct dbghelp *d, const struct dbghelp_file *file,
				  struct buf *out)
{
	(void)d;
	(void)file;
	buf_reset(out);
	return DBGHELP_NO_SERVERS;
}

uint64_t dbghelp_load(struct dbghelp *d, const char *path)
{
	(void)d;
	(void)path;
	return 0;
}

void dbghelp_unload(struct dbghelp *d, uint64_t module)
{
	(void)d;
	(void)module;
}

bool dbghelp_name(struct dbghelp *d, uint64_t module, uint32_t rva, struct dbghelp_function *out)
{
	(void)d;
	(void)module;
	(void)rva;
	(void)out;
	return false;
}
