#include "source/source.h"

#include "base/os.h"

#include <string.h>

extern const struct source_ops nettrace_source;      /* nettrace_file.c */

static const struct source_ops *const etl_files[] = {&etl_source, NULL};
static const struct source_ops *const nettrace_files[] = {&nettrace_source, NULL};

const struct source_ops *const *file_sources(const char *path)
{
	struct os_file *file = NULL;
	char head[8] = "";
	size_t got = 0;

	if (path && os_open(path, OS_READ, &file, NULL) == 0)
		os_pread(file, head, sizeof(head), 0, &got, NULL);
	os_close(file);
	return got == sizeof(head) && memcmp(head, "Nettrace", 8) == 0 ? nettrace_files : etl_files;
}
