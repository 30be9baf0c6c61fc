/*
 * Any bytes as an ELF file: head, index, and lookups all over it; then the same with its second
 * half as the symbols packed into it.
 */
#include "symbol/elf.h"
#include "symbol/elf_section.h"
#include "symbol/gopclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct bytes *in, const struct elf_head *head, const struct bytes *mini)
{
	struct elf_index *index = NULL;
	struct elf_function f;
	struct err err;
	uint64_t at, vaddr;
	char name[200];

	if (elf_index_new(in, head, mini, &index, &err))
		return;
	for (at = 0; at < in->size; at += 7) {
		if (!elf_vaddr(head, at, &vaddr) || !elf_find(index, vaddr, &f))
			continue;
		if (vaddr < f.vaddr || vaddr - f.vaddr >= f.size)
			__builtin_trap();
		elf_function_name(index, in, &f, name, sizeof(name), &err);
	}
	elf_index_free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of_memory(data, size);
	struct bytes half = bytes_of_memory(data + size / 2, size - size / 2);
	uint64_t called[ELF_CALLED_MAX], bytes;
	struct gopclntab table;
	struct elf_head head;
	struct buf unpacked = {0};
	struct err err;

	if (elf_head_read(&in, &head, &err))
		return 0;
	if (elf_called(&in, &head, called) > ELF_CALLED_MAX)
		__builtin_trap();
	if (!gopclntab_open(&in, &head, &table, &err)) {
		gopclntab_find(&table, "pkg.g", &bytes);
		gopclntab_close(&table);
	}
	look_up(&in, &head, NULL);
	look_up(&in, &head, &half);
	elf_minidebug_read(&in, &head, &unpacked, &err);
	buf_free(&unpacked);
	return 0;
}
