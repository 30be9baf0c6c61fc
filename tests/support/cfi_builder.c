#include "tests/support/cfi_builder.h"

#include <stdlib.h>
#include <string.h>

static void put(struct buf *b, uint64_t v, unsigned n)
{
	while (n--) {
		buf_putc(b, (char)(v & 0xff));
		v >>= 8;
	}
}

static void put_uleb(struct buf *b, uint64_t v)
{
	while (v >= 0x80) {
		put(b, v | 0x80, 1);
		v >>= 7;
	}
	put(b, v, 1);
}

static void put_sleb(struct buf *b, int64_t v)
{
	while (v < -64 || v > 63) {
		put(b, ((uint64_t)v & 0x7f) | 0x80, 1);
		v = v < 0 ? -(-(v + 1) / 128) - 1 : v / 128;
	}
	put(b, (uint64_t)v & 0x7f, 1);
}

static void put_form(struct buf *b, unsigned form, uint64_t v)
{
	static const uint8_t widths[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};

	if (form == 1)
		put_uleb(b, v);
	else if (form == 9)
		put_sleb(b, (int64_t)v);
	else
		put(b, v, widths[form]);
}

/* Start an entry; returns where its length field is. */
static size_t open_entry(struct cfi *c, bool is64)
{
	size_t at = c->frames.len;

	put(&c->frames, is64 ? 0xffffffff : 0, 4);
	if (is64)
		put(&c->frames, 0, 8);
	return at;
}

/* Pad with nops and fill in the length. */
static void close_entry(struct cfi *c, size_t at, bool is64)
{
	size_t field = at + (is64 ? 4 : 0), width = is64 ? 8 : 4, i;

	while ((c->frames.len - at) % 8)
		put(&c->frames, 0, 1);
	for (i = 0; i < width; i++)
		c->frames.data[field + i] =
			(char)((uint64_t)(c->frames.len - field - width) >> (8 * i) & 0xff);
}

static void put_augmentation(struct buf *out, const char *letters, uint8_t encoding)
{
	struct buf data = {0};

	for (; *letters; letters++) {
		if (*letters == 'R')
			put(&data, encoding, 1);
		if (*letters == 'L')
			put(&data, 0x1b, 1);
		if (*letters == 'P') {
			put(&data, 0x9b, 1);
			put(&data, 0x12345678, 4);
		}
	}
	put_uleb(out, data.len);
	buf_put(out, data.data, data.len);
	buf_free(&data);
}

void cfi_put_cie(struct cfi *c, const struct cfi_cie *cie)
{
	static const uint8_t usual[] = {0x0c, 7, 8, 0x90, 1}, usual32[] = {0x0c, 4, 4, 0x88, 1};
	struct buf *b = &c->frames;

	c->shape = *cie;
	if (!c->shape.version)
		c->shape.version = 1;
	if (!c->shape.augmentation)
		c->shape.augmentation = "zR";
	if (!c->shape.encoding)
		c->shape.encoding = 0x1b;
	if (c->shape.encoding == CFI_ABSOLUTE || !strchr(c->shape.augmentation, 'R'))
		c->shape.encoding = 0;
	c->cie = open_entry(c, cie->is64);
	put(b, 0, 4);
	put(b, c->shape.version, 1);
	buf_put(b, c->shape.augmentation, strlen(c->shape.augmentation) + 1);
	if (!strncmp(c->shape.augmentation, "eh", 2))
		put(b, 0x1122334455667788, 8);
	if (c->shape.version == 4) {
		put(b, c->is_32_bit ? 4 : 8, 1);
		put(b, 0, 1);
	}
	put_uleb(b, cie->code_align ? cie->code_align : 1);
	put_sleb(b, cie->data_align ? cie->data_align : c->is_32_bit ? -4 : -8);
	put_uleb(b, cie->return_column ? cie->return_column : c->is_32_bit ? 8 : 16);
	if (c->shape.augmentation[0] == 'z')
		put_augmentation(b, c->shape.augmentation + 1, c->shape.encoding);
	if (cie->program)
		buf_put(b, cie->program, cie->nprogram);
	else
		buf_put(b, c->is_32_bit ? usual32 : usual, sizeof(usual));
	close_entry(c, c->cie, cie->is64);
}

void cfi_put_fde(struct cfi *c, uint64_t start, uint64_t bytes, const uint8_t *program, size_t n)
{
	struct buf *b = &c->frames;
	size_t at = open_entry(c, c->shape.is64);
	unsigned form = c->shape.encoding & 0x0f;
	uint64_t pointer = start;

	put(b, b->len - c->cie, 4);
	if ((c->shape.encoding & 0x70) == 0x10)
		pointer -= c->vaddr + b->len;
	if ((c->shape.encoding & 0x70) == 0x30)
		pointer -= c->vaddr - 0x10000;
	put_form(b, form, pointer);
	put_form(b, form, bytes);
	if (c->shape.augmentation[0] == 'z')
		put_uleb(b, 0);
	buf_put(b, program, n);
	close_entry(c, at, c->shape.is64);
	if (c->nfdes < CFI_FDES_MAX) {
		c->fdes[c->nfdes].start = start;
		c->fdes[c->nfdes++].at = at;
	}
}

static void sort_fdes(struct cfi *c)
{
	unsigned i, j;

	for (i = 1; i < c->nfdes; i++) {
		for (j = i; j && c->fdes[j - 1].start > c->fdes[j].start; j--) {
			struct cfi_fde swap = c->fdes[j];

			c->fdes[j] = c->fdes[j - 1];
			c->fdes[j - 1] = swap;
		}
	}
}

static void put_header(struct cfi *c, enum cfi_index index, struct buf *out)
{
	uint64_t vaddr = c->vaddr - 0x10000;
	unsigned width = index == CFI_OTHER_ENCODING ? 8 : 4, i;

	if (index != CFI_UNSORTED)
		sort_fdes(c);
	put(out, 1, 1);
	put(out, 0x1b, 1);
	put(out, 0x03, 1);
	put(out, width == 8 ? 0x3c : 0x3b, 1);
	put(out, c->vaddr - (vaddr + 4), 4);
	put(out, c->nfdes, 4);
	for (i = 0; i < c->nfdes; i++) {
		put(out, c->fdes[i].start - vaddr, width);
		put(out, c->vaddr + c->fdes[i].at - vaddr, width);
	}
}

/* Of exactly that size, so that a sanitizer sees a byte too far. */
static uint8_t *take(struct buf *b, size_t *n)
{
	uint8_t *copy = malloc(b->len ? b->len : 1);

	if (copy && b->len)
		memcpy(copy, b->data, b->len);
	*n = copy ? b->len : 0;
	buf_free(b);
	return copy;
}

void cfi_sections(struct cfi *c, enum cfi_index index, struct eh_sections *out)
{
	struct buf header = {0};

	memset(out, 0, sizeof(*out));
	put(&c->frames, 0, 4);
	if (index != CFI_NONE) {
		put_header(c, index, &header);
		out->header = take(&header, &out->header_bytes);
		out->header_vaddr = c->vaddr - 0x10000;
	}
	out->frames = take(&c->frames, &out->frames_bytes);
	out->frames_vaddr = c->vaddr;
	out->is_32_bit = c->is_32_bit;
	*c = (struct cfi){.vaddr = c->vaddr, .is_32_bit = c->is_32_bit};
}

struct eh_frame *cfi_tables(struct cfi *c, enum cfi_index index)
{
	struct eh_frame *tables = NULL;
	struct eh_sections sections;

	cfi_sections(c, index, &sections);
	return eh_frame_new(&sections, &tables, NULL) ? NULL : tables;
}
