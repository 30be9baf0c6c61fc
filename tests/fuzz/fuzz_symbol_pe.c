/* Any bytes as a PE image: head, functions, bounds, and lookups all over it. */
#include "symbol/pe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of_memory(data, size);
	struct rva_index *index;
	struct rva_function f;
	struct pe_head head;
	struct err err;

	if (pe_head_read(&in, &head, &err))
		return 0;
	index = rva_index_new();
	if (index && !pe_functions(&in, &head, index, &err) &&
	    !pe_bounds(&in, &head, index, &err) && !rva_index_finish(index, &err))
		for (uint32_t rva = 0; rva < 0x8000; rva += 7)
			if (rva_index_range(index, rva, &f) && f.name &&
			    (rva < f.rva || rva >= f.end || !*f.name))
				__builtin_trap();
	if (index && rva_index_bytes(index) < rva_index_count(index))
		__builtin_trap();
	rva_index_free(index);
	return 0;
}
