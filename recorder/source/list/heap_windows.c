#include "source/list/heap.h"

#include <string.h>

static int unsupported(struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "--heap: Windows tells of a heap itself: use "
		       "--heap-process NAME|PID for a program that runs, --heap-next NAME for one "
		       "that will start");
}

int heap_needs(const char *next, const char *process, struct needs *needs, struct err *err)
{
	(void)needs;
	return next || process ? 0 : unsupported(err);
}

int heap_environment(uint64_t mean_bytes, struct heap_environment *out, struct err *err)
{
	memset(out, 0, sizeof(*out));
	(void)mean_bytes;
	return unsupported(err);
}

void heap_environment_free(struct heap_environment *e)
{
	(void)e;
}

int heap_sampler_of(uint32_t pid, enum heap_sampler *out, struct err *err)
{
	(void)pid;
	*out = HEAP_SAMPLER_NONE;
	return unsupported(err);
}

int heap_java_begin(uint32_t pid, struct heap_java **out, struct err *err)
{
	(void)pid;
	*out = NULL;
	return unsupported(err);
}

int heap_java_end(struct heap_java *j, const char **path, struct err *err)
{
	(void)j;
	*path = NULL;
	return unsupported(err);
}

void heap_java_free(struct heap_java *j)
{
	(void)j;
}

int heap_probe_malloc(uint32_t pid, struct buf *out, struct err *err)
{
	(void)pid;
	(void)out;
	return unsupported(err);
}

int heap_next_begin(const char *name, uint64_t mean_bytes, struct heap_next **out, struct err *err)
{
	return heap_next_begin_at(NULL, NULL, NULL, name, mean_bytes, out, err);
}
