/* elf_format.h draws the layouts. */
#include "symbol/elf.h"

#include "symbol/elf_format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROGRAM_HEADERS_MAX = 1024,
	NOTE_SEGMENT_MAX_BYTES = 65536, /* the build id is in the first hundred */
	DYNAMIC_MAX_BYTES = 4096,       /* 256 pairs; libraries have 25 to 40 */
	CALLED_OF_ARRAY = 4,
};

const struct elf_layout elf_layout32 = {
	.word = 4,
	.header = {.phoff = 28, .shoff = 32, .phentsize = 42, .phnum = 44, .shentsize = 46,
		   .shnum = 48, .bytes = 52},
	.program = {.offset = 4, .vaddr = 8, .filesz = 16, .memsz = 20, .flags = 24, .align = 28,
		    .bytes = 32},
	.section = {.addr = 12, .offset = 16, .size = 20, .link = 24, .entsize = 36, .bytes = 40},
	.symbol = {.value = 4, .size = 8, .info = 12, .shndx = 14, .bytes = 16},
};

const struct elf_layout elf_layout64 = {
	.word = 8,
	.header = {.phoff = 32, .shoff = 40, .phentsize = 54, .phnum = 56, .shentsize = 58,
		   .shnum = 60, .bytes = 64},
	.program = {.offset = 8, .vaddr = 16, .filesz = 32, .memsz = 40, .flags = 4, .align = 48,
		    .bytes = 56},
	.section = {.addr = 16, .offset = 24, .size = 32, .link = 40, .entsize = 56, .bytes = 64},
	.symbol = {.value = 8, .size = 16, .info = 4, .shndx = 6, .bytes = 24},
};

/* ---- notes: the build id --------------------------------------------------------------------- */

bool elf_note_next(struct cursor *c, unsigned align, struct elf_note *out)
{
	const uint8_t *head = cursor_take(c, 12);
	uint64_t mask = align - 1, rest;

	if (!head)
		return false;
	out->name_bytes = le32(head);
	out->desc_bytes = le32(head + 4);
	out->type = le32(head + 8);
	out->name = cursor_take(c, ((12 + (uint64_t)out->name_bytes + mask) & ~mask) - 12);
	out->desc = out->name ? cursor_take(c, out->desc_bytes) : NULL;
	if (!out->desc)
		return false;
	rest = -(uint64_t)out->desc_bytes & mask;
	cursor_skip(c, rest < cursor_left(c) ? rest : cursor_left(c));
	return true;
}

static void find_build_id(struct cursor notes, unsigned align, struct elf_head *head)
{
	struct elf_note note;

	while (!head->build_id_bytes && elf_note_next(&notes, align, &note)) {
		if (note.name_bytes != 4 || memcmp(note.name, "GNU", 4) != 0 ||
		    note.type != ELF_NOTE_BUILD_ID || note.desc_bytes > BUILD_ID_MAX)
			continue;
		memcpy(head->build_id, note.desc, note.desc_bytes);
		head->build_id_bytes = (uint8_t)note.desc_bytes;
	}
}

static int read_notes(const struct bytes *in, uint64_t offset, uint64_t n, uint64_t align,
		      struct elf_head *head, struct err *err)
{
	uint8_t *notes;
	int rc;

	if (n > NOTE_SEGMENT_MAX_BYTES)
		n = NOTE_SEGMENT_MAX_BYTES;
	notes = malloc(n ? (size_t)n : 1);
	if (!notes)
		return err_memory(err, "for its notes");
	rc = bytes_read(in, offset, notes, (size_t)n, "its note segment", err);
	if (!rc)
		find_build_id(cursor_over(notes, (size_t)n), align == 8 ? 8 : 4, head);
	free(notes);
	return rc;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int add_segment(const struct elf_segment *segment, struct elf_head *head, struct err *err)
{
	if (head->nsegments == ELF_SEGMENTS_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %u loaded segments",
			       ELF_SEGMENTS_MAX);
	if (segment->offset + segment->file_bytes < segment->offset ||
	    segment->vaddr + segment->memory_bytes < segment->vaddr ||
	    segment->vaddr + segment->file_bytes < segment->vaddr)
		return err_set(err, ERR_FORMAT, "loaded segment %u wraps around the address space",
			       head->nsegments);
	head->segments[head->nsegments++] = *segment;
	return 0;
}

static int read_segment(const struct bytes *in, const uint8_t *at, const struct elf_layout *l,
			struct elf_head *head, struct err *err)
{
	struct elf_segment segment = {
		.offset = le_sized(at + l->program.offset, l->word),
		.vaddr = le_sized(at + l->program.vaddr, l->word),
		.file_bytes = le_sized(at + l->program.filesz, l->word),
		.memory_bytes = le_sized(at + l->program.memsz, l->word),
		.executable = le32(at + l->program.flags) & ELF_PF_X,
	};

	switch (le32(at)) {
	case ELF_PT_LOAD:
		return add_segment(&segment, head, err);
	case ELF_PT_GNU_EH_FRAME:
		head->unwind = segment;
		return 0;
	case ELF_PT_DYNAMIC:
		head->dynamic = segment;
		return 0;
	case ELF_PT_NOTE:
		if (head->build_id_bytes)
			return 0;
		return read_notes(in, segment.offset, segment.file_bytes,
				  le_sized(at + l->program.align, l->word), head, err);
	}
	return 0;
}

static int read_segments(const struct bytes *in, const uint8_t *header, const struct elf_layout *l,
			 struct elf_head *head, struct err *err)
{
	uint64_t phoff = le_sized(header + l->header.phoff, l->word);
	unsigned phnum = le16(header + l->header.phnum);
	uint8_t *table;
	unsigned i;
	int rc;

	if (!phnum || le16(header + l->header.phentsize) != l->program.bytes)
		return err_set(err, ERR_FORMAT,
			       "it has no program headers: it is neither a program nor a library");
	if (phnum > PROGRAM_HEADERS_MAX)
		return err_set(err, ERR_LIMIT, "it has %u program headers, the limit is %d", phnum,
			       PROGRAM_HEADERS_MAX);
	table = malloc((size_t)phnum * l->program.bytes);
	if (!table)
		return err_memory(err, "for its program headers");
	rc = bytes_read(in, phoff, table, (size_t)phnum * l->program.bytes,
			"its program header table", err);
	for (i = 0; !rc && i < phnum; i++)
		rc = read_segment(in, table + (size_t)i * l->program.bytes, l, head, err);
	free(table);
	return rc;
}

static int read_section_count(const uint8_t *header, const struct elf_layout *l,
			      struct elf_head *head, struct err *err)
{
	head->sections_at = le_sized(header + l->header.shoff, l->word);
	if (!head->sections_at)
		return 0;
	head->nsections = le16(header + l->header.shnum);
	if (!head->nsections || head->nsections >= ELF_SHN_LORESERVE)
		return err_set(err, ERR_LIMIT, "it has more than %d sections",
			       ELF_SHN_LORESERVE - 1);
	if (le16(header + l->header.shentsize) != l->section.bytes)
		return err_set(err, ERR_FORMAT, "its section headers have the wrong size");
	return 0;
}

int elf_head_read(const struct bytes *in, struct elf_head *out, struct err *err)
{
	uint8_t header[64] = {0};
	const struct elf_layout *l;
	struct elf_head head = {0};
	int rc;

	rc = bytes_read(in, 0, header, elf_layout32.header.bytes, "the ELF header", err);
	if (rc)
		return rc;
	if (memcmp(header, "\177ELF", 4) != 0)
		return err_set(err, ERR_FORMAT, "it is not an ELF file");
	if ((header[4] != 1 && header[4] != 2) || header[5] != 1)
		return err_set(err, ERR_FORMAT, "it is neither little-endian ELF32 nor ELF64");
	head.is64 = header[4] == 2;
	l = elf_layout_of(&head);
	rc = bytes_read(in, 0, header, l->header.bytes, "the ELF header", err);
	if (rc)
		return rc;
	head.entry = le_sized(header + ELF_ENTRY_AT, l->word);
	head.machine = le16(header + ELF_MACHINE_AT);
	rc = read_segments(in, header, l, &head, err);
	if (!rc)
		rc = read_section_count(header, l, &head, err);
	if (!rc)
		*out = head;
	return rc;
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool elf_vaddr(const struct elf_head *head, uint64_t offset, uint64_t *vaddr)
{
	const struct elf_segment *best = NULL;
	uint32_t i;

	for (i = 0; i < head->nsegments; i++) {
		const struct elf_segment *s = &head->segments[i];

		if (offset < s->offset || offset - s->offset >= s->file_bytes)
			continue;
		if (!best || (s->executable && !best->executable))
			best = s;
	}
	if (best)
		*vaddr = best->vaddr + (offset - best->offset);
	return best != NULL;
}

bool elf_offset(const struct elf_head *head, uint64_t vaddr, uint64_t *offset)
{
	uint32_t i;

	for (i = 0; i < head->nsegments; i++) {
		const struct elf_segment *s = &head->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_bytes) {
			*offset = s->offset + (vaddr - s->vaddr);
			return true;
		}
	}
	return false;
}

const struct elf_segment *elf_code_segment(const struct elf_head *head, uint64_t vaddr)
{
	uint32_t i;

	for (i = 0; i < head->nsegments; i++) {
		const struct elf_segment *s = &head->segments[i];

		if (s->executable && vaddr >= s->vaddr && vaddr - s->vaddr < s->memory_bytes)
			return s;
	}
	return NULL;
}

/* ---- what the dynamic linker calls ----------------------------------------------------------- */

static uint32_t add_array(const struct bytes *in, const struct elf_head *head, uint64_t vaddr,
			  uint64_t bytes, uint64_t *out, uint32_t count)
{
	unsigned word = head->is64 ? 8 : 4, i;
	uint8_t values[8 * CALLED_OF_ARRAY];
	size_t n = word * CALLED_OF_ARRAY;
	uint64_t offset;

	if (bytes < n)
		n = (size_t)bytes / word * word;
	if (!n || !elf_offset(head, vaddr, &offset) ||
	    bytes_read(in, offset, values, n, "an array", NULL))
		return count;
	for (i = 0; i < n; i += word) {
		if (le_sized(values + i, word))
			out[count++] = le_sized(values + i, word);
	}
	return count;
}

uint32_t elf_called(const struct bytes *in, const struct elf_head *head,
		    uint64_t out[ELF_CALLED_MAX])
{
	uint64_t values[ELF_DT_FINI_ARRAYSZ + 1] = {0};      /* by tag */
	unsigned word = head->is64 ? 8 : 4;
	uint8_t pairs[DYNAMIC_MAX_BYTES];
	size_t n = sizeof(pairs), at;
	uint32_t count = 0;

	if (head->dynamic.file_bytes < n)
		n = (size_t)head->dynamic.file_bytes;
	if (!n || bytes_read(in, head->dynamic.offset, pairs, n, "its dynamic section", NULL))
		return 0;
	for (at = 0; at + 2 * word <= n && le_sized(pairs + at, word); at += 2 * word) {
		uint64_t tag = le_sized(pairs + at, word);

		if (tag <= ELF_DT_FINI_ARRAYSZ)
			values[tag] = le_sized(pairs + at + word, word);
	}
	if (values[ELF_DT_INIT])
		out[count++] = values[ELF_DT_INIT];
	if (values[ELF_DT_FINI])
		out[count++] = values[ELF_DT_FINI];
	count = add_array(in, head, values[ELF_DT_INIT_ARRAY], values[ELF_DT_INIT_ARRAYSZ], out,
			  count);
	return add_array(in, head, values[ELF_DT_FINI_ARRAY], values[ELF_DT_FINI_ARRAYSZ], out,
			 count);
}
