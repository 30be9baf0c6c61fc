/*
 * A JVM that lies: the recorded images with bytes of memory and registers changed. The walk ends,
 * rises, and reads nothing outside of what it has.
 *
 *   0    u8   which image; the top bit: it is walked once before it is changed, and learned then
 *   1    changes of 5 bytes: u32 offset in the image, modulo its size, and the byte that is there
 *        instead; an offset with the top bit set is one in the registers
 */
#include "base/array.h"
#include "base/bytes.h"
#include "tests/support/jvm_image.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHANGES_MAX 64u

struct changes {
	struct jvm_image *image;
	const uint8_t *data;
	unsigned n;
	uint8_t *at[CHANGES_MAX], before[CHANGES_MAX];
};

/* Lengths and addresses of ranges are the image's own, and stay: only bytes in ranges change. */
static uint8_t *byte_at(struct jvm_image *image, uint32_t n)
{
	uint32_t i, at = n % (uint32_t)image->nraw;

	for (i = 0; i < image->nranges && n < UINT32_C(1) << 31; i++) {
		if (at < image->ranges[i].n)
			return image->raw + (image->ranges[i].bytes - image->raw) + at;
		at -= image->ranges[i].n;
	}
	return (uint8_t *)image->regs + n % sizeof(image->regs);
}

static void make(void *ctx)
{
	struct changes *c = ctx;
	unsigned i;

	for (i = 0; i < c->n; i++) {
		c->at[i] = byte_at(c->image, le32(c->data + 5 * i));
		c->before[i] = *c->at[i];
		*c->at[i] = c->data[5 * i + 4];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"17", "25", "17_interpreted", "8", "11", "21", "28"};
	static struct jvm_image images[COUNT_OF(names)];
	struct managed_memory memory = {.read = jvm_image_read};
	struct changes changes = {.data = data + 1};
	struct buf out = {0};
	unsigned which;
	char path[64];

	if (!size)
		return 0;
	which = (data[0] & 127) % COUNT_OF(names);
	snprintf(path, sizeof(path), "tests/data/hotspot/java%s.image", names[which]);
	if (!images[which].raw && !jvm_image_load(path, &images[which]))
		return 0;
	changes.image = memory.ctx = &images[which];
	changes.n = (size - 1) / 5 < CHANGES_MAX ? (unsigned)((size - 1) / 5) : CHANGES_MAX;
	if (!(data[0] & 128))
		make(&changes);
	jvm_image_walk(&memory, images[which].base, images[which].regs,
		       data[0] & 128 ? make : NULL, &changes, &out);
	buf_free(&out);
	for (; changes.n && changes.at[0]; changes.n--)
		*changes.at[changes.n - 1] = changes.before[changes.n - 1];
	return 0;
}
