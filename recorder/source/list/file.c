#include "source/source.h"

#include "base/os.h"
#include "base/text.h"

#include <string.h>

extern const struct source_ops nettrace_source;      /* nettrace_file.c */
extern const struct source_ops perfdata_source, stackfile_source;

static const struct source_ops *const etl_files[] = {&etl_source, NULL};
static const struct source_ops *const nettrace_files[] = {&nettrace_source, NULL};
static const struct source_ops *const perf_files[] = {&perfdata_source, NULL};
static const struct source_ops *const stack_files[] = {&stackfile_source, NULL};

/* Or packed text; a trace of Windows has a NUL among its first bytes. */
static bool is_text(const char *path, const char *head, size_t n)
{
	size_t i;

	if (text_ends_fold(path, ".perfView.xml.zip") || text_ends_fold(path, ".trace.zip") ||
	    (n > 1 && memcmp(head, "\x1f\x8b", 2) == 0))
		return true;
	if (text_ends_fold(path, ".nettrace") || text_ends_fold(path, ".etl"))
		return false;                /* is told what it should be */
	for (i = 0; i < n; i++)
		if ((unsigned char)head[i] < 0x20 && !strchr("\t\r\n", head[i] ? head[i] : 1))
			return false;
	return n;
}

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
	if (got == sizeof(head) &&
	    (memcmp(head, "FLR", 4) == 0 || memcmp(head, "heap_v2/", 8) == 0 ||
	     memcmp(head, "\0\0\0\0\0\0\0", 8) == 0))        /* a CPU profile of gperftools */
		return stack_files;
	return got && is_text(path, head, got) ? stack_files : etl_files;
}
