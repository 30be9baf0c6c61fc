/*
 * Any bytes as the memory of a Windows program: its images are listed, its stack is walked, both
 * again after an image gave way to another.
 *
 *   0    u8   flags, see below
 *   1    u16  RIP, u16 RBP, u16 length of the stack; RIP counts from the image, or with the top bit
 *             from generated code; RBP and RSP from the stack, whose bytes follow
 *   7    the stack, then the image
 */
#include "source/stopped/pe_images.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	IS_32_BIT = 1, IS_CUT = 2, HAS_RETURNED = 4, IS_KNOWN = 8, SWITCHES = 16, IS_REPLACED = 32,
	IS_GONE = 64, IS_UNLISTED = 128,
	HEAD = 7, IMAGE = 0x400000, IMAGE_BYTES = 0x10000, NEXT = 0x500000, JIT = 0x900000,
	STACK = 0x100000, STACK_MAX = 0x8000,
};

struct memory {
	const uint8_t *bytes;
	size_t n;
	bool is_replaced;
};

/* Both images and the generated code are made of the same bytes. */
static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct memory *m = ctx;
	size_t at = (size_t)(address % IMAGE_BYTES);

	if (address < IMAGE || address >= JIT + IMAGE_BYTES || at >= m->n)
		return 0;
	n = n < m->n - at ? n : m->n - at;
	memcpy(to, m->bytes + at, n);
	if (m->is_replaced && n)
		((uint8_t *)to)[n - 1] ^= 1;
	return n;
}

static struct pe_region region_at(void *ctx, uint64_t address)
{
	uint64_t from = address - address % IMAGE_BYTES;

	(void)ctx;
	return (struct pe_region){from, from + IMAGE_BYTES,
				  from == JIT ? PE_GENERATED
				  : from == IMAGE || from == NEXT ? PE_UNLISTED : PE_NOWHERE};
}

static void list(struct pe_images *images, uint8_t flags, bool again)
{
	const struct object_key key = {.kind = OBJECT_PE, .dev = 1, .ino = IMAGE_BYTES};

	pe_images_begin(images);
	if (!(flags & IS_UNLISTED) &&
	    pe_images_note(images, IMAGE, IMAGE_BYTES, "C:\\app.exe",
			   flags & IS_KNOWN ? &key : NULL, NULL))
		abort();
	if (!(again && flags & IS_GONE) &&
	    pe_images_note(images, NEXT, IMAGE_BYTES, "C:\\wow64cpu.dll", NULL, NULL))
		abort();
	pe_images_end(images);
}

static void walk(struct pe_images *images, const uint8_t *data, uint8_t *stack, uint32_t n)
{
	static struct pe_walked walked;
	struct pe_stack s = {.bytes = stack, .nbytes = n, .start = STACK, .cut = data[0] & IS_CUT,
			     .is_32_bit = data[0] & IS_32_BIT,
			     .switching = data[0] & SWITCHES ? NEXT + 16 : 0};
	unsigned rip = le16(data + 1);
	uint32_t i;

	s.regs.interrupted = !(data[0] & HAS_RETURNED);
	s.regs.rip = (rip & 0x8000 ? JIT : IMAGE) + (rip & 0x7fff);
	s.regs.r[4] = STACK;
	s.regs.r[5] = STACK + le16(data + 3);
	pe_images_walk(images, &s, &walked);
	if (walked.nframes > STACK_MAX_FRAMES || walked.quality >= QUALITIES)
		__builtin_trap();
	for (i = 0; i < walked.nframes; i++)
		if (!walked.frames[i].object)
			__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frames *frames;
	struct memory m = {0};
	const struct pe_process process = {.read = read_it, .region = region_at, .ctx = &m};
	struct pe_images *images = NULL;
	uint8_t *stack;
	size_t n;

	if (size < HEAD || (!frames && frames_new(&frames, NULL)))
		return 0;
	n = le16(data + 5) % STACK_MAX;
	n = n < size - HEAD ? n : size - HEAD;
	m.bytes = data + HEAD + n;
	m.n = size - HEAD - n;
	stack = malloc(n ? n : 1);
	if (stack && !pe_images_open(&process, 1, frames, &images, NULL)) {
		memcpy(stack, data + HEAD, n);
		list(images, data[0], false);
		walk(images, data, stack, (uint32_t)n);
		m.is_replaced = data[0] & IS_REPLACED;
		list(images, data[0], true);
		walk(images, data, stack, (uint32_t)n);
		pe_images_close(images, 0);
		frames_sweep_all(frames, UINT64_MAX);
	}
	free(stack);
	return 0;
}
