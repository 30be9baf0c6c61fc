/*
 * Any bytes as an image and a stack: walks end, and never go down the stack.
 *
 *   0    u8  words of .pdata entries
 *   1    u8  where the walk begins
 *   2..      the image, which begins with .pdata; the same bytes are the stack
 */
#include "unwind/pe_pdata.h"

#include <stdlib.h>
#include <string.h>

enum { STACK = 0x10000, FRAMES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct pe_tables *find(void *ctx, uint64_t address, uint32_t *rva)
{
	*rva = (uint32_t)address;
	return address < 0x8000 ? ctx : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct pe_range range;
	struct pe_tables tables = {&range, 1, 0, 0};
	struct pe_registers regs = {.interrupted = true};
	struct pe_frame frames[FRAMES];
	struct stack_view view = {.start = STACK};
	uint8_t *image;
	enum pe_step end;
	uint32_t found;

	if (n < 3 || n > 0x8000)
		return 0;
	image = malloc(n - 2);
	if (!image)
		return 0;
	memcpy(image, data + 2, n - 2);
	range = (struct pe_range){0, (uint32_t)n - 2, image};
	tables.pdata_bytes = 12u * data[0];
	view.bytes = image;
	view.nbytes = (uint32_t)n - 2;
	for (unsigned i = 0; i < PE_REGISTERS; i++)
		regs.r[i] = STACK + 8 * i;
	regs.r[PE_RSP] = STACK;
	regs.rip = data[1] + 1u;
	found = pe_walk(&regs, &view, find, &tables, frames, FRAMES, &end);
	if (!found || found > FRAMES)
		abort();
	free(image);
	return 0;
}
