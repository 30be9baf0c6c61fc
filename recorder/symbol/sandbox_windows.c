/* There is none here: see sandbox.h. */
#include "symbol/sandbox.h"

struct sandbox *sandbox_new(void)
{
	return NULL;
}

void sandbox_free(struct sandbox *s)
{
	(void)s;
}

int sandbox_index(struct sandbox *s, const struct elf_file *file, enum sandbox_index which,
		  struct elf_index **out, char *note, struct err *err)
{
	(void)s;
	return sandbox_index_here(&file->bytes, &file->head, which, out, note, err);
}

void sandbox_demangle(struct sandbox *s, const struct buf *raw, uint32_t n, struct buf *out)
{
	(void)s;
	(void)raw;
	(void)n;
	(void)out;
}

bool sandbox_waits(const struct sandbox *s, uint64_t *progress)
{
	(void)s;
	*progress = 0;
	return true;
}

void sandbox_hurry(const struct sandbox *s)
{
	(void)s;
}

void sandbox_add_usage(struct sandbox *s, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	(void)s;
	(void)cpu_ns;
	(void)rss_bytes;
}

int sandbox_serve(void)
{
	return 1;
}
