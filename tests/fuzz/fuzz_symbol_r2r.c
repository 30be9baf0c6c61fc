/* Any bytes as a .NET image, or as a program with such images behind it. */
#include "symbol/r2r.h"
#include "symbol/sandbox.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct bytes in = bytes_of_memory(data, n);
	struct elf_function function;
	struct elf_index *index;
	char name[FUNCTION_NAME_MAX + 1];
	uint32_t i;

	if (r2r_index_new(&in, &index, NULL))
		return 0;
	/* What the process that reads files would be distrusted for. */
	if (!sandbox_index_is_sound(index) || !elf_index_has_names(index))
		abort();
	for (i = 0; i < index->nentries && i < 1000; i++)
		if (!elf_find(index, index->entries[i].start, &function) ||
		    elf_function_name(index, &in, &function, name, sizeof(name), NULL))
			abort();
	elf_index_free(index);
	return 0;
}
