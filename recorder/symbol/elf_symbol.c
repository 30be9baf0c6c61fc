#include "symbol/elf_symbol.h"

#include "symbol/elf_format.h"
#include "symbol/elf_section.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS_AT_ONCE = 1024 };

struct search {
	const struct bytes *in;
	const struct elf_layout *l;
	const char *name;
	size_t prefix_bytes;                 /* 0 = the whole name */
	char *strings;
	size_t nstrings;
	uint64_t vaddr;
	struct elf_near *near;
	bool asks_for_near;                  /* the second search: distances are slow */
	unsigned distance[NEAREST_MAX];
};

static void add_near(struct search *s, const char *name)
{
	unsigned d = nearest_distance(s->name, name), i;

	if (strlen(name) >= ELF_SYMBOL_NAME_MAX || d > strlen(s->name) / 3 + 1)
		return;
	for (i = 0; i < s->near->n; i++)
		if (strcmp(s->near->names[i], name) == 0)
			return;
	if (s->near->n < NEAREST_MAX)
		i = s->near->n++;
	else
		for (i = NEAREST_MAX; i-- && s->distance[i] <= d;)
			;
	if (i >= NEAREST_MAX)
		return;
	strcpy(s->near->names[i], name);
	s->distance[i] = d;
}

/* Check one entry of a symbol table; true = it is the one. */
static bool check_symbol(struct search *s, const uint8_t *at)
{
	uint64_t name = le32(at), value = le_sized(at + s->l->symbol.value, s->l->word);
	uint64_t section = le16(at + s->l->symbol.shndx);
	uint8_t type = at[s->l->symbol.info] & 15;
	const char *text;

	if ((type != ELF_STT_FUNC && type != ELF_STT_GNU_IFUNC) || section == ELF_SHN_UNDEF ||
	    !value || name >= s->nstrings)
		return false;
	text = s->strings + name;            /* terminated: a NUL follows the table */
	if (s->prefix_bytes ? strncmp(text, s->name, s->prefix_bytes) == 0
			    : strcmp(text, s->name) == 0) {
		s->vaddr = value;
		if (s->near)
			snprintf(s->near->names[0], sizeof(s->near->names[0]), "%s", text);
		return true;
	}
	if (s->asks_for_near && *text)
		add_near(s, text);
	return false;
}

static int search_table(struct search *s, const struct elf_section *table, struct err *err)
{
	size_t each = s->l->symbol.bytes, n, i;
	uint64_t left = table->size / each, at = table->offset;
	uint8_t *bytes;
	int rc = 0;

	if (left > ELF_SYMBOLS_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %u symbols", ELF_SYMBOLS_MAX);
	bytes = malloc(SYMBOLS_AT_ONCE * each);
	if (!bytes)
		return err_memory(err, "for its symbols");
	for (; !rc && left && !s->vaddr; left -= n, at += n * each) {
		n = left < SYMBOLS_AT_ONCE ? (size_t)left : SYMBOLS_AT_ONCE;
		rc = bytes_read(s->in, at, bytes, n * each, "its symbol table", err);
		for (i = 0; !rc && i < n && !check_symbol(s, bytes + i * each); i++)
			;
	}
	free(bytes);
	return rc;
}

/* Search the table of a type and, through its link, the names; a file has at most one of each. */
static int search_type(struct search *s, const struct elf_section *sections, uint32_t n,
		       uint32_t type, struct err *err)
{
	const struct elf_section *table = elf_section_of_type(sections, n, type);
	struct elf_strings strings = {0};
	int rc;

	if (!table || table->link >= n)
		return 0;
	strings.offset = sections[table->link].offset;
	strings.size = sections[table->link].size;
	if (strings.size > ELF_STRINGS_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "its symbol names take more than %llu MB",
			       (unsigned long long)(ELF_STRINGS_MAX_BYTES >> 20));
	s->nstrings = (size_t)strings.size;
	rc = elf_strings_load(&strings, s->in, &s->strings, err);
	if (rc)
		return rc;
	rc = search_table(s, table, err);
	free(s->strings);
	return rc;
}

static int search_both(struct search *s, const struct elf_section *sections, uint32_t n,
		       struct err *err)
{
	int rc = search_type(s, sections, n, ELF_SHT_SYMTAB, err);

	return rc || s->vaddr ? rc : search_type(s, sections, n, ELF_SHT_DYNSYM, err);
}

int elf_symbol_find(const struct bytes *in, const struct elf_head *head, const char *name,
		    uint64_t *vaddr, struct elf_near *near, struct err *err)
{
	struct search s = {.in = in,
			   .l = elf_layout_of(head),
			   .name = name,
			   .near = near};
	struct elf_section *sections = NULL;
	int rc;

	if (near)
		near->n = 0;
	if (name[0] && name[strlen(name) - 1] == '*')
		s.prefix_bytes = strlen(name) - 1;
	rc = elf_sections_read(in, head, &sections, err);
	if (!rc)
		rc = search_both(&s, sections, head->nsections, err);
	if (!rc && !s.vaddr && near) {
		s.asks_for_near = true;
		rc = search_both(&s, sections, head->nsections, err);
	}
	free(sections);
	if (rc)
		return rc;
	if (!s.vaddr)
		return err_set(err, ERR_NOT_FOUND, "it has no function %.100s", name);
	*vaddr = s.vaddr;
	return 0;
}
