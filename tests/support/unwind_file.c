#include "tests/support/unwind_file.h"

#include "base/os.h"

#include <stdlib.h>
#include <string.h>

enum { PT_LOAD = 1, PT_GNU_EH_FRAME = 0x6474e550 };

struct part {
	uint64_t vaddr, offset, bytes;
};

static uint64_t get(const uint8_t *at, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | at[n];
	return v;
}

static uint8_t *load(struct os_file *file, uint64_t offset, uint64_t n)
{
	uint8_t *bytes = malloc(n ? (size_t)n : 1);
	size_t got;

	if (bytes && !os_pread(file, bytes, (size_t)n, offset, &got, NULL) && got == n)
		return bytes;
	free(bytes);
	return NULL;
}

static bool read_segments(struct os_file *file, const uint8_t *elf, struct unwind_file *out,
			  struct part *header)
{
	unsigned n = (unsigned)get(elf + 56, 2), i;
	uint8_t *table = load(file, get(elf + 32, 8), (uint64_t)n * 56);

	for (i = 0; table && i < n; i++) {
		const uint8_t *at = table + (size_t)i * 56;
		struct part part = {get(at + 16, 8), get(at + 8, 8), get(at + 32, 8)};

		if (get(at, 4) == PT_GNU_EH_FRAME)
			*header = part;
		if (get(at, 4) != PT_LOAD || out->nsegments == UNWIND_FILE_SEGMENTS)
			continue;
		out->segments[out->nsegments].vaddr = part.vaddr;
		out->segments[out->nsegments].offset = part.offset;
		out->segments[out->nsegments++].bytes = part.bytes;
	}
	free(table);
	return table != NULL;
}

static bool read_sections(struct os_file *file, const uint8_t *elf, struct part *frames)
{
	unsigned n = (unsigned)get(elf + 60, 2), names_at = (unsigned)get(elf + 62, 2), i;
	uint8_t *table = load(file, get(elf + 40, 8), (uint64_t)n * 64), *names = NULL;

	if (table && names_at < n)
		names = load(file, get(table + names_at * 64 + 24, 8),
			     get(table + names_at * 64 + 32, 8));
	for (i = 0; names && i < n; i++) {
		const uint8_t *at = table + (size_t)i * 64;

		if (!strcmp((const char *)names + get(at, 4), ".eh_frame"))
			*frames = (struct part){get(at + 16, 8), get(at + 24, 8), get(at + 32, 8)};
	}
	free(table);
	free(names);
	return frames->bytes != 0;
}

static bool find_by_header(const struct eh_sections *sections, const struct unwind_file *file,
			   struct part *frames)
{
	unsigned i;

	if (!eh_frame_pointer(sections->header, sections->header_bytes, sections->header_vaddr,
			      &frames->vaddr))
		return false;
	for (i = 0; i < file->nsegments; i++) {
		uint64_t at = frames->vaddr - file->segments[i].vaddr;

		if (at >= file->segments[i].bytes)
			continue;
		frames->offset = file->segments[i].offset + at;
		frames->bytes = file->segments[i].bytes - at;
		return true;
	}
	return false;
}

static bool read_tables(struct os_file *file, const uint8_t *elf, enum unwind_file_how how,
			struct unwind_file *out)
{
	struct eh_sections sections = {0};
	struct part header = {0}, frames = {0};

	if (!read_segments(file, elf, out, &header))
		return false;
	if (how != UNWIND_FILE_NO_INDEX && header.bytes) {
		sections.header = load(file, header.offset, header.bytes);
		sections.header_bytes = (size_t)header.bytes;
		sections.header_vaddr = header.vaddr;
	}
	if (how == UNWIND_FILE_HEADER_ONLY ? find_by_header(&sections, out, &frames)
					   : read_sections(file, elf, &frames)) {
		sections.frames = load(file, frames.offset, frames.bytes);
		sections.frames_bytes = (size_t)frames.bytes;
		sections.frames_vaddr = frames.vaddr;
	}
	return eh_frame_new(&sections, &out->tables, NULL) == 0;
}

bool unwind_file_open(const char *path, enum unwind_file_how how, struct unwind_file *out)
{
	struct os_file *file = NULL;
	uint8_t *elf = NULL;
	bool ok;

	memset(out, 0, sizeof(*out));
	if (os_open(path, OS_READ, &file, NULL))
		return false;
	elf = load(file, 0, 64);
	ok = elf && !memcmp(elf, "\177ELF\2\1", 6);
	if (ok)
		read_tables(file, elf, how, out);
	free(elf);
	os_close(file);
	return ok;
}

void unwind_file_close(struct unwind_file *file)
{
	eh_frame_free(file->tables);
	memset(file, 0, sizeof(*file));
}

uint64_t unwind_file_vaddr(const struct unwind_file *file, uint64_t offset)
{
	unsigned i;

	for (i = 0; i < file->nsegments; i++) {
		if (offset - file->segments[i].offset < file->segments[i].bytes)
			return offset - file->segments[i].offset + file->segments[i].vaddr;
	}
	return UINT64_MAX;
}
