#include "managed/elf.h"

#include "base/bytes.h"

#include <string.h>

static const uint8_t *program(const struct managed_elf *elf, unsigned i)
{
	return elf->programs + (size_t)i * MANAGED_PHDR_BYTES;
}

bool managed_elf_read(const struct managed_memory *memory, uint64_t base, struct managed_elf *out)
{
	uint64_t first = UINT64_MAX, phoff;
	uint8_t head[64];
	unsigned i;

	if (!managed_read(memory, base, head, sizeof(head)) ||
	    memcmp(head, "\177ELF\2\1", 6) != 0)
		return false;
	phoff = le64(head + 32);
	out->n = le16(head + 56);
	if (!out->n || out->n > MANAGED_PHDRS_MAX || le16(head + 54) != MANAGED_PHDR_BYTES ||
	    phoff > 4096 ||
	    !managed_read(memory, base + phoff, out->programs,
			  out->n * (size_t)MANAGED_PHDR_BYTES))
		return false;
	for (i = 0; i < out->n; i++) {
		const uint8_t *p = program(out, i);

		if (le32(p) == MANAGED_PT_LOAD && le64(p + 16) < first)
			first = le64(p + 16);
	}
	out->bias = base - (first & ~(uint64_t)4095);
	return first != UINT64_MAX;
}

uint64_t managed_elf_segment(const struct managed_elf *elf, uint32_t type)
{
	uint64_t vaddr = 0;
	unsigned i;

	for (i = 0; i < elf->n; i++)
		if (le32(program(elf, i)) == type)
			vaddr = le64(program(elf, i) + 16);
	return vaddr ? elf->bias + vaddr : 0;
}

bool managed_elf_offset(const struct managed_elf *elf, uint64_t vaddr, uint64_t *offset)
{
	unsigned i;

	for (i = 0; i < elf->n; i++) {
		const uint8_t *p = program(elf, i);
		uint64_t at = le64(p + 16);

		if (le32(p) == MANAGED_PT_LOAD && vaddr >= at && vaddr - at < le64(p + 32)) {
			*offset = le64(p + 8) + (vaddr - at);
			return true;
		}
	}
	return false;
}
