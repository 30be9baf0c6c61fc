/*
 * Any registers, stack and tables: the walk ends, and its result is within its limits.
 *
 *   0    u8   flags: 1 remote reading, 2 a memory to stitch from, 4 32-bit, 8 a kernel's chain,
 *             16 RBP is not sampled, 32 a runtime, whose frames are made of the stack's words,
 *             64 tables as Go writes them, 128 a function whose code, the stack's bytes, is known
 *   1    u16  size of .eh_frame, without an index
 *   3    17 registers of 2 bytes, relative to the start of the stack when the lowest bit is 0,
 *        else to that of the code
 *   37   .eh_frame, then the stack
 */
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

enum { CODE = 0x18000, FRAMES_VADDR = 0x20000, STACK = 0x100000, HEAD = 37 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
	struct eh_frame *tables;
	const uint8_t *stack;
	size_t stack_bytes;
	bool runtime;
};

static struct object known = {.key = {.kind = OBJECT_ELF}};
static struct object unknown = {.key = {.kind = OBJECT_UNKNOWN}};

/* The low bits of its page number say if an address is described, jitted, pending or nowhere. */
static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	const struct program *p = ctx;
	unsigned kind = address >> 6 & 15;

	(void)kernel;
	out->ref.object = kind == 15 ? &unknown : &known;
	out->tables = kind < 12 ? p->tables : NULL;
	out->vaddr = address;
	out->jit = kind == 13 || kind == 12;
	out->managed = kind == 12 && p->runtime;
	out->runtime = &known;
	out->pending = kind == 14;
}

/* The word under the stack pointer decides what the frame is. */
static enum unwind_result step_managed(void *ctx, struct unwind_frame *f)
{
	uint64_t word = 0, sp = f->regs[EH_RSP];
	uint32_t i;

	(void)ctx;
	if (!f->word(f->stack, sp, &word))
		return UNWIND_UNREADABLE;
	f->pending = word & 0x10;
	f->by_place = word & 0x20;
	f->nfunctions = word >> 8 & 3;
	for (i = 0; i < f->nfunctions; i++) {
		f->functions[i].offset = word >> 16;
		f->functions[i].flags = 0;
	}
	f->cfa = sp + 16;
	f->regs[EH_RSP] = f->cfa;
	f->regs[EH_RIP] = word >> 32;
	return (enum unwind_result)(word % 5);
}

static size_t read_remotely(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct program *p = ctx;
	uint64_t at = address - STACK;

	if (at >= p->stack_bytes)
		return address % 3 ? 0 : n / 2;
	if (n > p->stack_bytes - at)
		n = p->stack_bytes - (size_t)at;
	memcpy(to, p->stack + at, n);
	return n;
}

/* The code is made of the stack's bytes, too. */
static size_t read_code(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct program *p = ctx;

	return read_remotely(ctx, STACK + (p->stack_bytes ? address % p->stack_bytes : 0), to, n);
}

static void walk(const uint8_t *head, struct program *p)
{
	static struct unwinder *unwinder;
	static struct unwind_stack out;
	static struct unwind_memory memory;
	const struct unwind_caller caller = {
		.find = find, .read = head[0] & 1 ? read_remotely : NULL,
		.code = head[0] & 16 ? read_code : NULL,
		.managed = p->runtime ? step_managed : NULL, .ctx = p};
	const uint64_t chain[] = {CODE, CODE + 0x40, CODE + 0x80};
	struct unwind_input in = {.regs_abi = head[0] & 4 ? 1 : 2,
				  .regs_mask = head[0] & 16 ? 0xff01bf : 0xff01ff,
				  .user_expected = true, .user_chain = chain,
				  .nuser = head[0] & 8 ? 3 : 0};
	uint64_t regs[17];
	unsigned i;

	memset(&memory, 0, sizeof(memory));     /* each input must give the same alone */
	if (!unwinder && unwinder_new(UNWIND_REMOTE_BYTES, &unwinder, NULL))
		abort();
	for (i = 0; i < 17; i++) {
		uint64_t v = head[3 + 2 * i] | (uint64_t)head[4 + 2 * i] << 8;

		regs[i] = (v & 1 ? CODE : STACK) + (v & ~1ull);
	}
	in.regs = regs;
	in.stack = p->stack;
	in.stack_bytes = (uint32_t)p->stack_bytes;
	for (i = 0; i < 2; i++) {
		unwinder_walk(unwinder, &in, &caller, head[0] & 2 ? &memory : NULL, &out);
		if (out.nframes > STACK_MAX_FRAMES || out.quality == QUALITY_NONE ||
		    out.quality >= QUALITIES || !out.nframes || memory.npairs > UNWIND_MEMORY_PAIRS)
			__builtin_trap();
		in.stack_bytes /= 2;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct eh_sections in = {.frames_vaddr = FRAMES_VADDR};
	struct program p = {0};
	size_t n;

	if (size < HEAD)
		return 0;
	n = data[1] | (size_t)data[2] << 8;
	if (n > size - HEAD)
		n = size - HEAD;
	in.frames = malloc(n ? n : 1);
	in.frames_bytes = n;
	in.is_32_bit = data[0] & 4;
	in.cfa_only = data[0] & 64;
	if (n)
		memcpy(in.frames, data + HEAD, n);
	if (eh_frame_new(&in, &p.tables, NULL))
		p.tables = NULL;
	p.stack = data + HEAD + n;
	p.stack_bytes = size - HEAD - n;
	if (p.tables && data[0] & 128)
		eh_frame_add_code(p.tables, CODE, p.stack, p.stack_bytes);
	p.runtime = data[0] & 32;
	walk(data, &p);
	eh_frame_free(p.tables);
	return 0;
}
