/*
 * The names of sections are in a section of their own, whose number is in the header (shstrndx, at
 * 50 in ELF32 and 62 in ELF64); layouts in elf_format.h.
 */
#include "symbol/elf_section.h"

#include "base/bytes.h"
#include "symbol/elf_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SHSTRNDX_AT32 = 50, SHSTRNDX_AT64 = 62, SHT_NOBITS = 8 };

static struct elf_section section_of(const uint8_t *header, const struct elf_layout *l)
{
	return (struct elf_section){le_sized(header + l->section.offset, l->word),
				    le_sized(header + l->section.size, l->word)};
}

/* Compared in the file, because only a few bytes of the name table matter. */
static bool is_named(const struct bytes *in, const struct elf_section *names, const uint8_t *header,
		     const char *name)
{
	char there[ELF_SECTION_NAME_MAX + 1];
	size_t n = strlen(name) + 1;
	uint64_t at = le32(header);

	assert(n <= sizeof(there));
	if (le32(header + 4) == SHT_NOBITS || names->size < n || at > names->size - n ||
	    names->offset + at < at)
		return false;
	return !bytes_read(in, names->offset + at, there, n, "a section's name", NULL) &&
	       !memcmp(there, name, n);
}

static int find(const struct bytes *in, const struct elf_head *head, const uint8_t *table,
		const char *name, struct elf_section *out, struct err *err)
{
	const struct elf_layout *l = head->is64 ? &elf_layout64 : &elf_layout32;
	struct elf_section names;
	uint8_t number[2];
	uint32_t i, at;
	int rc;

	rc = bytes_read(in, head->is64 ? SHSTRNDX_AT64 : SHSTRNDX_AT32, number, sizeof(number),
			"the ELF header", err);
	if (rc)
		return rc;
	at = le16(number);
	if (at >= head->nsections)
		return err_set(err, ERR_NOT_FOUND, "its sections have no names");
	names = section_of(table + (size_t)at * l->section.bytes, l);
	for (i = 0; i < head->nsections; i++) {
		const uint8_t *header = table + (size_t)i * l->section.bytes;

		if (is_named(in, &names, header, name)) {
			*out = section_of(header, l);
			return 0;
		}
	}
	return err_set(err, ERR_NOT_FOUND, "it has no section %s", name);
}

int elf_section_find(const struct bytes *in, const struct elf_head *head, const char *name,
		     struct elf_section *out, struct err *err)
{
	const struct elf_layout *l = head->is64 ? &elf_layout64 : &elf_layout32;
	size_t n = (size_t)head->nsections * l->section.bytes;
	uint8_t *table;
	int rc;

	if (!n)
		return err_set(err, ERR_NOT_FOUND, "it has no sections");
	table = malloc(n);
	if (!table)
		return err_memory(err, "for its section headers");
	rc = bytes_read(in, head->sections_at, table, n, "its section header table", err);
	if (!rc)
		rc = find(in, head, table, name, out, err);
	free(table);
	return rc;
}
