/*
 * Any bytes as the code and the stack of a 32-bit program: walks end, and never go down the stack.
 *
 *   0    u8  words between the stack pointer and EBP
 *   1    u8  where the walk begins; the top bit: with .eh_frame
 *   2..      the code; the same bytes are the stack, and .eh_frame
 */
#include "unwind/pe_x86.h"

#include <stdlib.h>
#include <string.h>

enum { CODE = 0x10000, STACK = 0x40000, BYTES_MAX = 0x8000, FRAMES = 64 };

struct image {
	const uint8_t *bytes;
	size_t n;
	struct eh_frame *tables;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct eh_frame *tables(void *ctx, uint64_t address)
{
	const struct image *image = ctx;

	return address - CODE < image->n ? image->tables : NULL;
}

static bool code(void *ctx, uint64_t address, uint8_t *to, size_t n)
{
	const struct image *image = ctx;

	if (n > PE_X86_CODE_BYTES)
		abort();
	if (address < CODE || image->n < n || address - CODE > image->n - n)
		return false;
	memcpy(to, image->bytes + (address - CODE), n);
	return true;
}

static uint8_t *copy(const uint8_t *data, size_t n)
{
	uint8_t *bytes = malloc(n);

	if (!bytes)
		exit(0);
	return memcpy(bytes, data, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct stack_view view = {.start = STACK};
	struct pe_registers regs = {.interrupted = true};
	struct pe_frame frames[FRAMES];
	struct image image = {.n = n - 2};
	struct eh_sections in = {.frames_vaddr = CODE, .is_32_bit = true};
	struct pe_x86_process process = {tables, code, &image, 0};
	enum pe_step end;
	bool guided;
	uint32_t found;

	if (n < 3 || n > BYTES_MAX)
		return 0;
	view.bytes = copy(data + 2, n - 2);
	view.nbytes = (uint32_t)n - 2;
	image.bytes = view.bytes;
	process.stack_base = STACK + n - 2;
	if (data[1] & 0x80) {
		in.frames = copy(data + 2, n - 2);
		in.frames_bytes = n - 2;
		eh_frame_new(&in, &image.tables, NULL);
	}
	for (unsigned i = 0; i < 8; i++)
		regs.r[i] = STACK + 4u * i;
	regs.r[PE_RSP] = STACK;
	regs.r[PE_RBP] = STACK + 4u * data[0];
	regs.rip = CODE + (data[1] & 0x7fu);
	found = pe_x86_walk(&regs, &view, &process, frames, FRAMES, &end, &guided);
	if (!found || found > FRAMES || regs.r[PE_RSP] < STACK)
		abort();
	eh_frame_free(image.tables);
	free((void *)(uintptr_t)view.bytes);
	return 0;
}
