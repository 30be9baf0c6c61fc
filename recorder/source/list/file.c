#include "source/source.h"

#include "base/os.h"

#include <string.h>

extern const struct source_ops nettrace_source;      /* nettrace_file.c */
extern const struct source_ops perfdata_source;

static const struct source_ops *const etl_files[] = {&etl_source, NULL};
static const struct source_ops *const nettrace_files[] = {&nettrace_source, NULL};
static const struct source_ops *const perf_files[] = {&perfdata_source, NULL};

const struct source_ops *const *file_sources(const char *path)
{
	struct os_file *file = NULL;
	char head[8] = "";
	size_t got = 0;

	if (path && os_open(path, OS_READ, &file, NULL) == 0)
		os_pread(file, head, sizeof(head), 0, &got, NULL);
	os_close(file);
	if (got == sizeof(head) && memcmp(head, "Nettrace", 8) == 0)
		return nettrace_files;
	/* Of either byte order, and of an old version. */
	if (got == sizeof(head) &&
	    (memcmp(head, "PERFILE2", 8) == 0 || memcmp(head, "2ELIFREP", 8) == 0 ||
	     memcmp(head, "PERFFILE", 8) == 0))
		return perf_files;
	return etl_files;
}
