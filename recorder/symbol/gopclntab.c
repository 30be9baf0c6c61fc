/*
 * Source: Go, src/internal/abi/symtab.go and src/runtime/symtab.go (pcHeader, functab, _func).
 *
 *	header, W = word   1.16   1.18, 1.20      functions' table: for each function
 *	magic         u32     0    0              entry   W; since 1.18 u32, distance from text
 *	0, 0                  4    4              at      the same size: of its _func, from the
 *	quantum       u8      6    6                      table's start
 *	W, 4 or 8     u8      7    7              and after the last one an entry: the end
 *	functions     W       8    8
 *	text start    W       -    8 + 2W         _func
 *	names         W  8 + 2W    8 + 3W         entry   W; since 1.18 u32
 *	units         W  8 + 3W    8 + 4W         name    u32, offset in names
 *	table         W  8 + 6W    8 + 7W
 *
 * The magic is fffffffa (1.16), fffffff0 (1.18) or fffffff1 (1.20). names, units and table are
 * offsets from the header; the names end where units start. A program that may lie anywhere has the
 * text start in a relocation.
 */
#include "symbol/gopclntab.h"

#include "symbol/elf_format.h"
#include "symbol/elf_section.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAGIC_16 = 0xa, MAGIC_18 = 0x0, MAGIC_20 = 0x1,   /* in the lowest four bits */
	HEADER_MAX_BYTES = 8 + 8 * 8,
	RELATIVE_X86_64 = 8, RELATIVE_ARM64 = 1027,
	RELOCATION_BYTES = 24,
	FIND_MAX = 8192,              /* the runtime's functions are among the first 2,000 */
};

/* A number of n bytes at an offset; what is asked for mostly lies in the block already. */
static int number_at(struct gopclntab *t, struct gopclntab_block *block, uint64_t at, unsigned n,
		     uint64_t *out, struct err *err)
{
	uint64_t left;
	int rc;

	if (at > t->end || n > t->end - at)
		return err_set(err, ERR_FORMAT, "its table of Go functions points behind its end");
	if (at < block->at || at - block->at + n > block->nbytes) {
		left = t->end - at;
		block->at = at;
		block->nbytes = 0;
		rc = bytes_read(t->in, at, block->bytes,
				left < GOPCLNTAB_BLOCK_BYTES ? left : GOPCLNTAB_BLOCK_BYTES,
				"its table of Go functions", err);
		if (rc)
			return rc;
		block->nbytes = left < GOPCLNTAB_BLOCK_BYTES ? left : GOPCLNTAB_BLOCK_BYTES;
	}
	*out = le_sized(block->bytes + (at - block->at), n);
	return 0;
}

/* What the dynamic linker writes at an address of a 64-bit program; 0 = nothing that is known. */
static int relocated(struct gopclntab *t, const struct elf_head *head, uint64_t vaddr,
		     uint64_t *out, struct err *err)
{
	struct elf_section rela;
	uint64_t at, end, value;
	int rc = head->is64 ? elf_section_find(t->in, head, ".rela.dyn", &rela, err)
			    : ERR_NOT_FOUND;

	if (rc)
		rc = head->is64 ? elf_section_find(t->in, head, ".rela", &rela, err) : rc;
	if (rc)
		return rc == ERR_NOT_FOUND ? 0 : rc;
	t->end = end = rela.offset + rela.size;
	for (at = rela.offset; !rc && at + RELOCATION_BYTES <= end; at += RELOCATION_BYTES) {
		rc = number_at(t, &t->entries, at, 8, &value, err);
		if (rc || value != vaddr)
			continue;
		rc = number_at(t, &t->entries, at + 8, 8, &value, err);
		if (!rc && (value == RELATIVE_X86_64 || value == RELATIVE_ARM64))
			return number_at(t, &t->entries, at + 16, 8, out, err);
	}
	return rc;
}

/* Where the addresses of functions count from. */
static int find_text(struct gopclntab *t, const struct elf_head *head,
		     const struct elf_section *section, uint64_t written, struct err *err)
{
	uint64_t at = section->addr + 8 + 2 * t->word;
	int rc = 0;

	t->text = written;
	if (!elf_code_segment(head, t->text)) {
		t->text = 0;
		rc = relocated(t, head, at, &t->text, err);
	}
	t->end = section->offset + section->size;
	t->entries.nbytes = 0;
	if (!rc && !elf_code_segment(head, t->text))
		rc = err_set(err, ERR_NOT_FOUND,
			     "its table of Go functions does not say where its code starts");
	return rc;
}

static int read_header(struct gopclntab *t, const struct elf_head *head,
		       const struct elf_section *section, struct err *err)
{
	uint8_t header[HEADER_MAX_BYTES];
	uint64_t text = 0, names, units, table;
	unsigned more, magic;
	int rc;

	if (section->size < sizeof(header) || section->offset > t->in->size ||
	    section->size > t->in->size - section->offset)
		return err_set(err, ERR_FORMAT, "its table of Go functions lies outside the file");
	rc = bytes_read(t->in, section->offset, header, sizeof(header),
			"its table of Go functions", err);
	if (rc)
		return rc;
	t->word = header[7];
	magic = le32(header) & 15u;
	if (le32(header) >> 4 != 0xfffffffu || t->word != (head->is64 ? 8u : 4u) ||
	    (magic != MAGIC_16 && magic != MAGIC_18 && magic != MAGIC_20))
		return err_set(err, ERR_NOT_FOUND,
			       "its table of Go functions is of no version that is known");
	t->entry_word = magic == MAGIC_16 ? t->word : 4;
	more = magic == MAGIC_16 ? 0 : t->word;
	t->nfunctions = le_sized(header + 8, t->word);
	names = le_sized(header + 8 + 2 * t->word + more, t->word);
	units = le_sized(header + 8 + 3 * t->word + more, t->word);
	table = le_sized(header + 8 + 6 * t->word + more, t->word);
	if (more)
		text = le_sized(header + 8 + 2 * t->word, t->word);
	if (names > units || units > section->size || table > section->size ||
	    t->nfunctions >= (section->size - table) / (2 * t->entry_word))
		return err_set(err, ERR_FORMAT, "its table of Go functions points behind its end");
	t->names_at = section->offset + names;
	t->names_bytes = units - names;
	t->functions_at = section->offset + table;
	t->end = section->offset + section->size;
	return more ? find_text(t, head, section, text, err) : 0;
}

/*
 * The system's linker puts the table of a program that may lie anywhere among its other relocated
 * data: the header begins at a multiple of 32, and what it says is checked as it is read.
 */
static int find_within(struct gopclntab *t, const struct elf_head *head, struct elf_section *out,
		       struct err *err)
{
	struct elf_section section;
	uint64_t at, magic = 0, quantum, end;
	int rc = elf_section_find(t->in, head, ".data.rel.ro", &section, err);

	if (rc)
		return rc;
	t->end = end = section.offset + section.size;
	for (at = section.offset; at < end && end - at > HEADER_MAX_BYTES; at += 32) {
		rc = number_at(t, &t->entries, at, 8, &magic, err);
		if (rc)
			return rc;
		quantum = magic >> 48 & 0xff;
		if ((magic & 0xfffffffffff0u) != 0xfffffff0u ||
		    magic >> 56 != (head->is64 ? 8 : 4) ||
		    (quantum != 1 && quantum != 2 && quantum != 4))
			continue;
		*out = section;
		out->addr += at - section.offset;
		out->size -= at - section.offset;
		out->offset = at;
		return 0;
	}
	return ERR_NOT_FOUND;
}

int gopclntab_open(const struct bytes *in, const struct elf_head *head, struct gopclntab *out,
		   struct err *err)
{
	struct elf_section section;
	struct gopclntab t = {.in = in};
	int rc = elf_section_find(in, head, ".go.buildinfo", &section, err);

	if (rc)
		return rc;
	rc = elf_section_find(in, head, ".gopclntab", &section, err);
	if (rc == ERR_NOT_FOUND)
		rc = elf_section_find(in, head, ".data.rel.ro.gopclntab", &section, err);
	if (rc && rc != ERR_NOT_FOUND)
		return rc;
	t.entries.bytes = malloc(GOPCLNTAB_BLOCK_BYTES);
	t.functions.bytes = malloc(GOPCLNTAB_BLOCK_BYTES);
	if (!t.entries.bytes || !t.functions.bytes)
		rc = err_memory(err, "for its Go functions");
	else if (rc)
		rc = find_within(&t, head, &section, err);
	if (!rc)
		rc = read_header(&t, head, &section, err);
	if (rc)
		gopclntab_close(&t);
	else
		*out = t;
	return rc;
}

int gopclntab_next(struct gopclntab *t, struct gopclntab_function *out, struct err *err)
{
	const unsigned n = t->entry_word;
	uint64_t at = t->functions_at + t->next * 2 * n, entry, function, end, name;
	int rc;

	if (t->next >= t->nfunctions)
		return ERR_NOT_FOUND;
	rc = number_at(t, &t->entries, at, n, &entry, err);
	if (!rc)
		rc = number_at(t, &t->entries, at + n, n, &function, err);
	if (!rc)
		rc = number_at(t, &t->entries, at + 2 * n, n, &end, err);
	if (!rc && (end < entry || function > t->end - t->functions_at))
		rc = err_set(err, ERR_FORMAT, "its Go functions are not in order");
	if (!rc)
		rc = number_at(t, &t->functions, t->functions_at + function + n, 4, &name, err);
	if (rc)
		return rc;
	*out = (struct gopclntab_function){t->text + entry, end - entry, (uint32_t)name};
	t->next++;
	return 0;
}

uint64_t gopclntab_find(struct gopclntab *t, const char *name, uint64_t *bytes)
{
	const size_t n = strlen(name) + 1;
	struct gopclntab_function f;
	char text[64];
	unsigned i;

	t->next = 0;
	for (i = 0; i < FIND_MAX && n <= sizeof(text) && !gopclntab_next(t, &f, NULL); i++) {
		if (f.name > t->names_bytes || t->names_bytes - f.name < n ||
		    bytes_read(t->in, t->names_at + f.name, text, n, "a Go function's name", NULL))
			continue;
		if (memcmp(text, name, n) == 0) {
			*bytes = f.bytes;
			return f.vaddr;
		}
	}
	return 0;
}

void gopclntab_close(struct gopclntab *t)
{
	free(t->entries.bytes);
	free(t->functions.bytes);
}
