/*
 * The names of sections are in a section of their own, whose number is in the header (shstrndx, at
 * 50 in ELF32 and 62 in ELF64); layouts in elf_format.h.
 */
#include "symbol/elf_section.h"

#include "symbol/elf_format.h"
#include "symbol/xz.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_AT_ONCE 1024u                  /* some 40 sections have 350 bytes of names */

enum { SHSTRNDX_AT32 = 50, SHSTRNDX_AT64 = 62, SHT_NOBITS = 8 };

int elf_sections_read(const struct bytes *in, const struct elf_head *head,
		      struct elf_section **out, struct err *err)
{
	const struct elf_layout *l = elf_layout_of(head);
	size_t each = l->section.bytes, n = head->nsections, i;
	struct elf_section *sections = malloc((n + 1) * sizeof(*sections));
	uint8_t *table = malloc(n * each + 1);
	int rc;

	if (sections && table)
		rc = bytes_read(in, head->sections_at, table, n * each, "its section header table",
				err);
	else
		rc = err_memory(err, "for its section headers");
	for (i = 0; !rc && i < n; i++) {
		const uint8_t *at = table + i * each;

		sections[i] = (struct elf_section){
			.name = le32(at),
			.type = le32(at + 4),
			.link = le32(at + l->section.link),
			.flags = le_sized(at + ELF_SECTION_FLAGS_AT, l->word),
			.addr = le_sized(at + l->section.addr, l->word),
			.offset = le_sized(at + l->section.offset, l->word),
			.size = le_sized(at + l->section.size, l->word),
			.entsize = le_sized(at + l->section.entsize, l->word),
		};
	}
	free(table);
	if (rc)
		free(sections);
	else
		*out = sections;
	return rc;
}

const struct elf_section *elf_section_of_type(const struct elf_section *sections, uint32_t n,
					      uint32_t type)
{
	const struct elf_section *s;

	for (s = sections; s < sections + n; s++)
		if (s->type == type)
			return s;
	return NULL;
}

/* all: the table of names; NULL = a long one, of which only a few bytes matter */
static bool is_named(const struct bytes *in, const struct elf_section *names, const char *all,
		     const struct elf_section *section, const char *name)
{
	char there[ELF_SECTION_NAME_MAX + 1];
	size_t n = strlen(name) + 1;
	uint64_t at = section->name;

	assert(n <= sizeof(there));
	if (section->type == SHT_NOBITS || names->size < n || at > names->size - n ||
	    names->offset + at < at)
		return false;
	if (all)
		return !memcmp(all + at, name, n);
	return !bytes_read(in, names->offset + at, there, n, "a section's name", NULL) &&
	       !memcmp(there, name, n);
}

/* returns  the number of sections = none has this name */
static uint32_t find_named(const struct bytes *in, const struct elf_section *sections, uint32_t n,
			   const struct elf_section *names, const char *name)
{
	char all[NAMES_AT_ONCE];
	const bool at_once = names->size <= sizeof(all) &&
			     !bytes_read(in, names->offset, all, (size_t)names->size,
					 "the names of its sections", NULL);
	uint32_t i = 0;

	while (i < n && !is_named(in, names, at_once ? all : NULL, &sections[i], name))
		i++;
	return i;
}

int elf_section_find(const struct bytes *in, const struct elf_head *head, const char *name,
		     struct elf_section *out, struct err *err)
{
	struct elf_section *sections = NULL;
	uint8_t number[2];
	uint32_t i = 0, names;
	int rc;

	if (!head->nsections)
		return err_set(err, ERR_NOT_FOUND, "it has no sections");
	rc = bytes_read(in, head->is64 ? SHSTRNDX_AT64 : SHSTRNDX_AT32, number, sizeof(number),
			"the ELF header", err);
	if (!rc)
		rc = elf_sections_read(in, head, &sections, err);
	if (rc)
		return rc;
	names = le16(number);
	if (names < head->nsections)
		i = find_named(in, sections, head->nsections, &sections[names], name);
	if (names >= head->nsections)
		rc = err_set(err, ERR_NOT_FOUND, "its sections have no names");
	else if (i == head->nsections)
		rc = err_set(err, ERR_NOT_FOUND, "it has no section %s", name);
	else
		*out = sections[i];
	free(sections);
	return rc;
}

#define MINIDEBUG_SECTION ".gnu_debugdata"

int elf_minidebug_read(const struct bytes *in, const struct elf_head *head, struct buf *out,
		       struct err *err)
{
	struct elf_section section;
	uint8_t *packed;
	int rc = elf_section_find(in, head, MINIDEBUG_SECTION, &section, err);

	if (rc)
		return rc;
	if (section.size > ELF_MINIDEBUG_PACKED_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "its section %s has %" PRIu64 " bytes",
			       MINIDEBUG_SECTION, section.size);
	/* Checked before allocating: the size is only what the header claims. */
	if (section.offset > in->size || section.size > in->size - section.offset)
		return err_set(err, ERR_FORMAT,
			       "its section " MINIDEBUG_SECTION " lies outside the file");
	packed = malloc(section.size ? (size_t)section.size : 1);
	if (!packed)
		return err_memory(err, "for its packed symbols");
	rc = bytes_read(in, section.offset, packed, (size_t)section.size,
			"its section " MINIDEBUG_SECTION, err);
	if (!rc)
		rc = xz_unpack(packed, (size_t)section.size, ELF_MINIDEBUG_MAX_BYTES, out, err);
	free(packed);
	return rc;
}
