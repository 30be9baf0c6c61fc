#include "tests/support/elf_image.h"

#include <stdlib.h>
#include <string.h>

enum { NOTE_AT = 0x200, NSECTIONS = 7 };

struct table {
	struct buf symbols, strings;
	uint64_t symbols_at, strings_at;
};

static void put(struct buf *b, uint64_t v, unsigned n)
{
	while (n--) {
		buf_putc(b, (char)(v & 0xff));
		v >>= 8;
	}
}

static void zeros(struct buf *b, uint64_t to)
{
	while (b->len < to)
		buf_putc(b, 0);
}

static void put_symbol(const struct elf_image *image, struct buf *b, uint32_t name,
		       const struct elf_image_symbol *s)
{
	unsigned info = (unsigned)s->binding << 4 | (unsigned)s->type;
	unsigned section = s->undefined ? 0 : s->section ? s->section : 1;

	put(b, name, 4);
	if (image->is32) {
		put(b, s->value, 4);
		put(b, s->size, 4);
	}
	put(b, info, 1);
	put(b, 0, 1);
	put(b, section, 2);
	if (!image->is32) {
		put(b, s->value, 8);
		put(b, s->size, 8);
	}
}

static void fill(const struct elf_image *image, bool dynamic, struct table *t)
{
	static const struct elf_image_symbol none = {.undefined = true};
	size_t i;

	buf_putc(&t->strings, 0);
	put_symbol(image, &t->symbols, 0, &none);
	for (i = 0; i < image->nsymbols; i++) {
		const struct elf_image_symbol *s = &image->symbols[i];

		if (s->dynamic != dynamic)
			continue;
		put_symbol(image, &t->symbols, (uint32_t)t->strings.len, s);
		buf_put(&t->strings, s->name, strlen(s->name) + 1);
	}
	zeros(&t->strings, t->strings.len + (dynamic ? 0 : image->padding));
}

static void put_program(const struct elf_image *image, struct buf *b, uint32_t type,
			uint64_t offset, uint64_t vaddr, uint64_t size)
{
	unsigned word = image->is32 ? 4 : 8;

	put(b, type, 4);
	if (!image->is32)
		put(b, 5, 4);
	put(b, offset, word);
	put(b, vaddr, word);
	put(b, vaddr, word);
	put(b, size, word);
	put(b, size, word);
	if (image->is32)
		put(b, 5, 4);
	put(b, 4, word);
}

static void put_section(const struct elf_image *image, struct buf *b, uint32_t type, uint64_t flags,
			uint64_t addr, uint64_t offset, uint64_t size, uint32_t link, uint64_t each)
{
	unsigned word = image->is32 ? 4 : 8;

	put(b, 0, 4);
	put(b, type, 4);
	put(b, flags, word);
	put(b, addr, word);
	put(b, offset, word);
	put(b, size, word);
	put(b, link, 4);
	put(b, 0, 4);
	put(b, 1, word);
	put(b, each, word);
}

static void put_header(const struct elf_image *image, struct buf *b, uint64_t sections_at)
{
	unsigned word = image->is32 ? 4 : 8;
	unsigned machine = image->machine ? image->machine : image->is32 ? 3 : 62;

	buf_put(b, "\177ELF", 4);
	put(b, image->is32 ? 1 : 2, 1);
	put(b, 1, 1);
	put(b, 1, 10);
	put(b, 3, 2);
	put(b, machine, 2);
	put(b, 1, 4);
	put(b, image->vaddr, word);
	put(b, image->is32 ? 52 : 64, word);
	put(b, sections_at, word);
	put(b, 0, 4);
	put(b, image->is32 ? 52 : 64, 2);
	put(b, image->is32 ? 32 : 56, 2);
	put(b, image->build_id ? 2 : 1, 2);
	put(b, image->is32 ? 40 : 64, 2);
	put(b, sections_at ? NSECTIONS : 0, 2);
	put(b, 0, 2);
	put_program(image, b, 1, ELF_IMAGE_TEXT_AT, image->vaddr, image->text_bytes);
	if (image->build_id)
		put_program(image, b, 4, NOTE_AT, image->vaddr, 16 + image->build_id_bytes);
}

static void put_sections(const struct elf_image *image, struct buf *b, const struct table *tables)
{
	uint64_t each = image->is32 ? 16 : 24;
	unsigned i;

	put_section(image, b, 0, 0, 0, 0, 0, 0, 0);
	put_section(image, b, 1, 6, image->vaddr, ELF_IMAGE_TEXT_AT, image->text_bytes, 0, 0);
	put_section(image, b, 1, 3, image->vaddr, 0, image->text_bytes, 0, 0);
	for (i = 0; i < 2; i++) {
		put_section(image, b,
			    i		       ? 11
			    : image->no_symtab ? 1
					       : 2,
			    0, 0, tables[i].symbols_at, tables[i].symbols.len, 4 + 2 * i, each);
		put_section(image, b, 3, 0, 0, tables[i].strings_at, tables[i].strings.len, 0, 0);
	}
}

void elf_image_build(const struct elf_image *image, struct buf *out)
{
	struct table tables[2] = {{.symbols_at = 0}, {.symbols_at = 0}};
	uint64_t at = ELF_IMAGE_TEXT_AT + image->text_bytes;
	unsigned i;

	for (i = 0; i < 2; i++) {
		fill(image, i == 1, &tables[i]);
		tables[i].symbols_at = at;
		tables[i].strings_at = at + tables[i].symbols.len;
		at = tables[i].strings_at + tables[i].strings.len;
	}
	put_header(image, out, image->no_sections ? 0 : at);
	if (image->build_id) {
		zeros(out, NOTE_AT);
		put(out, 4, 4);
		put(out, image->build_id_bytes, 4);
		put(out, 3, 4);
		buf_put(out, "GNU", 4);
		buf_put(out, image->build_id, image->build_id_bytes);
	}
	zeros(out, ELF_IMAGE_TEXT_AT);
	while (out->len < ELF_IMAGE_TEXT_AT + image->text_bytes)
		buf_putc(out, (char)0xcc);
	for (i = 0; i < 2; i++) {
		buf_put(out, buf_text(&tables[i].symbols), tables[i].symbols.len);
		buf_put(out, buf_text(&tables[i].strings), tables[i].strings.len);
	}
	if (!image->no_sections)
		put_sections(image, out, tables);
	for (i = 0; i < 2; i++) {
		buf_free(&tables[i].symbols);
		buf_free(&tables[i].strings);
	}
}
