/*
 * A JVM that lies: the recorded images with bytes of memory and registers changed. The walk ends,
 * rises, and reads nothing outside of what it has.
 *
 *   0    u8   which image
 *   1    changes of 5 bytes: u32 offset in the image, modulo its size, and the byte that is there
 *        instead
 */
#include "base/bytes.h"
#include "tests/support/jvm_image.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


#define CHANGES_MAX 64u

/* Lengths and addresses of ranges are the image's own, and stay: only bytes in ranges change. */
static uint8_t *byte_at(struct jvm_image *image, uint32_t n)
{
	uint32_t i, at = n % (uint32_t)image->nraw;

	for (i = 0; i < image->nranges; i++) {
		if (at < image->ranges[i].n)
			return image->raw + (image->ranges[i].bytes - image->raw) + at;
		at -= image->ranges[i].n;
	}
	return (uint8_t *)image->regs + at % sizeof(image->regs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"tests/data/hotspot/java17.image",
					    "tests/data/hotspot/java25.image",
					    "tests/data/hotspot/java17_interpreted.image"};
	static struct jvm_image images[3];
	uint8_t *at[CHANGES_MAX], before[CHANGES_MAX];
	struct managed_memory memory = {.read = jvm_image_read};
	struct buf out = {0};
	struct jvm_image *image;
	unsigned n = 0;

	if (!size)
		return 0;
	image = &images[data[0] % 3];
	if (!image->raw && !jvm_image_load(paths[data[0] % 3], image))
		return 0;
	for (data++, size--; size >= 5 && n < CHANGES_MAX; data += 5, size -= 5, n++) {
		at[n] = byte_at(image, le32(data));
		before[n] = *at[n];
		*at[n] = data[4];
	}
	memory.ctx = image;
	jvm_image_walk(&memory, image->base, image->regs, &out);
	buf_free(&out);
	while (n-- > 0)
		*at[n] = before[n];
	return 0;
}
