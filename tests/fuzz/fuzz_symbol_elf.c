/*
 * Any bytes as an ELF file: head, index, and lookups all over it; then the same with its second
 * half as the symbols packed into it, and read from a file instead of from memory.
 */
#include "base/os.h"
#include "symbol/elf.h"
#include "symbol/elf_section.h"
#include "symbol/elf_symbol.h"
#include "symbol/gopclntab.h"
#include "symbol/xz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct bytes *in, const struct elf_head *head, const struct bytes *mini)
{
	struct elf_index *index = NULL;
	struct elf_function f;
	struct err err;
	uint64_t at, vaddr, back;
	char name[200];

	if (elf_index_new(in, head, mini, &index, &err))
		return;
	if (elf_index_bytes(index) < index->nentries)
		__builtin_trap();
	elf_index_has_names(index);
	for (at = 0; at < in->size; at += 7) {
		if (!elf_vaddr(head, at, &vaddr) || !elf_find(index, vaddr, &f))
			continue;
		if (vaddr < f.vaddr || vaddr - f.vaddr >= f.size ||
		    !elf_offset(head, vaddr, &back))
			__builtin_trap();
		elf_function_name(index, in, &f, name, sizeof(name), &err);
	}
	elf_index_free(index);
}

/* The file says it is longer than it is, as one does that has become shorter. */
static void from_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct os_file *file = NULL;
	struct bytes in;
	struct elf_head head;
	char path[40];
	struct err err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) == (ssize_t)size && !os_open(path, OS_READ, &file, &err)) {
		in = bytes_of_file(file, size + (size & 64));
		if (!elf_head_read(&in, &head, &err))
			look_up(&in, &head, NULL);
	}
	os_close(file);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of_memory(data, size);
	struct bytes half = bytes_of_memory(data + size / 2, size - size / 2);
	uint64_t called[ELF_CALLED_MAX], bytes;
	struct gopclntab table;
	static struct elf_near near;
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
	if (size % 8 == 0)
		from_file(data, size);
	elf_symbol_find(&in, &head, "main", &bytes, &near, &err);
	elf_symbol_find(&in, &head, "f*", &bytes, &near, &err);
	xz_load();
	elf_minidebug_read(&in, &head, &unpacked, &err);
	buf_free(&unpacked);
	return 0;
}
