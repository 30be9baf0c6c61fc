/* Any bytes as an ELF file's notes of USDT probes, and their arguments. */
#include "symbol/elf_symbol.h"
#include "symbol/stapsdt.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int one(void *ctx, const struct stapsdt *probe)
{
	struct stapsdt_argument arguments[STAPSDT_ARGUMENTS_MAX];
	unsigned i, nargs = stapsdt_arguments(probe->arguments, arguments);

	(void)ctx;
	for (i = 0; i < nargs; i++)
		if (arguments[i].reg > 23 || !arguments[i].bytes || arguments[i].bytes > 8)
			abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct bytes in = bytes_of_memory(data, n);
	static struct elf_near near;
	struct elf_head head;
	struct err err;
	uint64_t at;

	if (elf_head_read(&in, &head, &err))
		return 0;
	stapsdt_each(&in, &head, one, NULL, &err);
	elf_symbol_find(&in, &head, "main", &at, &near, &err);
	return 0;
}
