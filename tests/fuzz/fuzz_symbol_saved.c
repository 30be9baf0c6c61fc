/*
 * Any bytes as a saved index, given the right checksum, and lookups all over it. What can be read
 * is written again, and has the same functions then.
 */
#include "symbol/elf_saved.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct bytes *in, const struct elf_saved *saved)
{
	struct elf_function f;
	struct err err;
	uint64_t at, vaddr;
	char name[200];

	for (at = 0; at < 4096; at += 7) {
		if (elf_vaddr(&saved->head, at, &vaddr))
			elf_offset(&saved->head, vaddr, &vaddr);
		vaddr = at + 0x401000;       /* the code of the corpus is there */
		if (!elf_find(saved->index, vaddr, &f))
			continue;
		if (vaddr < f.vaddr || vaddr - f.vaddr >= f.size)
			__builtin_trap();
		elf_function_name(saved->index, in, &f, name, sizeof(name), &err);
	}
}

static void write_again(const struct bytes *in, const struct elf_saved *saved)
{
	struct elf_function f, g;
	struct elf_saved again;
	char name[200], same[200];
	struct buf image = {0};
	struct bytes written;
	uint32_t i;

	if (elf_saved_write(saved, in, &image, NULL))
		__builtin_trap();
	written = bytes_of_memory(image.data, image.len);
	if (elf_saved_read(&written, &again, NULL) || !elf_saved_same(&written, again.checksum) ||
	    again.index->nentries != saved->index->nentries ||
	    again.head.nsegments != saved->head.nsegments)
		__builtin_trap();
	for (i = 0; i < again.index->nentries && i < 100; i++) {
		uint64_t at = saved->index->base + saved->index->entries[i].start;

		if (elf_find(saved->index, at, &f) != elf_find(again.index, at, &g))
			__builtin_trap();
		if (!elf_find(saved->index, at, &f) ||
		    elf_function_name(saved->index, in, &f, name, sizeof(name), NULL))
			continue;
		if (elf_function_name(again.index, &written, &g, same, sizeof(same), NULL) ||
		    g.vaddr != f.vaddr || g.size != f.size || strcmp(name, same) != 0)
			__builtin_trap();
	}
	elf_index_free(again.index);
	buf_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_saved saved;
	struct bytes in;
	struct err err;
	uint8_t *copy;
	uint32_t crc, i;

	if (size < 12)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	crc = (uint32_t)crc32(0, copy + 12, (uInt)(size - 12));
	for (i = 0; i < 4; i++)
		copy[8 + i] = (uint8_t)(crc >> 8 * i);
	in = bytes_of_memory(copy, size);
	if (!elf_saved_read(&in, &saved, &err)) {
		look_up(&in, &saved);
		write_again(&in, &saved);
		elf_index_free(saved.index);
	}
	free(copy);
	return 0;
}
