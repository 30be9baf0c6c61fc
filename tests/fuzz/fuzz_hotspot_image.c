/*
 * A JVM that lies: the recorded images with bytes of memory and registers changed. The walk ends,
 * rises, and reads nothing outside of what it has.
 *
 *   0    u8   which image; 128: it is walked once before it is changed, and learned then; 64: what
 *             it does not have leads to performance data with counts of classes
 *   1    changes of 5 bytes: u32 offset in the image, modulo its size, and the byte that is there
 *        instead; an offset with the top bit set is one in the registers
 */
#include "base/array.h"
#include "base/bytes.h"
#include "managed/hotspot/unloads.h"
#include "tests/support/jvm_image.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHANGES_MAX 64u

enum { PERFORMANCE = 0x10000, PERFORMANCE_BYTES = 32 + 2 * 64 };

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

/* Two entries of 64 bytes; their values change from one reading to the next. */
static size_t read_performance(uint64_t at, uint8_t *to, size_t n)
{
	static const char *const counters[] = {COUNTER_LOADED, COUNTER_UNLOADED};
	static uint8_t data[PERFORMANCE_BYTES] = {0xca, 0xfe, 0xc0, 0xc0, 1, 2};
	unsigned i;

	data[24] = 32;
	for (i = 0; i < COUNT_OF(counters); i++) {
		uint8_t *entry = data + 32 + 64 * i;

		entry[0] = 64;
		entry[4] = 20;
		entry[12] = 'J';
		entry[16] = 48;
		entry[48] = (uint8_t)(entry[48] + (at == PERFORMANCE + 32 + 64 * i + 48));
		strcpy((char *)entry + 20, counters[i]);
	}
	at -= PERFORMANCE;
	n = n < sizeof(data) - (size_t)at ? n : sizeof(data) - (size_t)at;
	memcpy(to, data + at, n);
	return n;
}

static size_t read_with_performance(void *image, uint64_t address, void *to, size_t n)
{
	const uint64_t performance = PERFORMANCE;
	size_t got;

	if (address >= PERFORMANCE && address - PERFORMANCE < PERFORMANCE_BYTES)
		return read_performance(address, to, n);
	got = jvm_image_read(image, address, to, n);
	if (got || n > sizeof(performance))
		return got;
	memcpy(to, &performance, n);
	return n;
}

static void read_pieces(void *image, struct managed_piece *pieces, size_t n)
{
	for (; n; n--, pieces++)
		pieces->got = jvm_image_read(image, pieces->address, pieces->to, pieces->n);
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
	struct managed_memory memory = {.read = jvm_image_read, .read_pieces = read_pieces};
	struct changes changes = {.data = data + 1};
	struct buf out = {0};
	unsigned which;
	char path[64];

	if (!size)
		return 0;
	if (data[0] & 64)
		memory = (struct managed_memory){.read = read_with_performance};
	which = (data[0] & 63) % COUNT_OF(names);
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
