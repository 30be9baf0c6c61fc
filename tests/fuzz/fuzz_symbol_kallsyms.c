/* Any text as /proc/kallsyms: every listed function is found at its own address. */
#include "symbol/kallsyms.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct kallsyms_line line;
	struct kernel_function f;
	struct kallsyms *k = NULL;
	struct err err;

	if (kallsyms_parse(at, size, &k, &err))
		return 0;
	while (size && kallsyms_next(&at, end, &line)) {
		if (kallsyms_find(k, line.address, &f) && f.address > line.address)
			__builtin_trap();
		kallsyms_find(k, line.address + 1, &f);
	}
	kallsyms_free(k);
	return 0;
}
