/* Any bytes as an ELF file: head, index, and lookups all over it. */
#include "symbol/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of_memory(data, size);
	struct elf_index *index = NULL;
	struct elf_function f;
	struct elf_head head;
	struct err err;
	uint64_t at, vaddr;
	char name[200];

	if (elf_head_read(&in, &head, &err) || elf_index_new(&in, &head, &index, &err))
		return 0;
	for (at = 0; at < size; at += 7) {
		if (!elf_vaddr(&head, at, &vaddr) || !elf_find(index, vaddr, &f))
			continue;
		if (vaddr < f.vaddr || vaddr - f.vaddr >= f.size)
			__builtin_trap();
		elf_function_name(index, &in, &f, name, sizeof(name), &err);
	}
	elf_index_free(index);
	return 0;
}
