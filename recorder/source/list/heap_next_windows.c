#include "source/list/heap_next.h"

#include <stddef.h>

int heap_next_begin_at(const char *file, const char *folder, const char *library, const char *name,
		       uint64_t mean_bytes, struct heap_next **out, struct err *err)
{
	(void)file;
	(void)folder;
	(void)library;
	(void)name;
	(void)mean_bytes;
	*out = NULL;
	return err_set(err, ERR_UNSUPPORTED, "--heap-next: heaps are sampled on Linux only");
}

void heap_next_end(struct heap_next *n)
{
	(void)n;
}

void heap_next_tidy(const char *file, const char *folder)
{
	(void)file;
	(void)folder;
}
