#include "tests/support/unwind_lab.h"

#include "base/array.h"
#include "tests/support/cfi_builder.h"

#include <stdlib.h>
#include <string.h>

static struct object program = {.key = {.kind = OBJECT_ELF}, .name = "program"};
static struct object library = {.key = {.kind = OBJECT_ELF}, .name = "library"};
static struct object jitted = {.key = {.kind = OBJECT_JIT}, .name = "[jit]"};
static struct object kernel = {.key = {.kind = OBJECT_KERNEL}, .name = "[kernel]"};
static struct object unknown = {.key = {.kind = OBJECT_UNKNOWN}, .name = "?"};

static void find(void *ctx, uint64_t address, bool in_kernel, struct unwind_place *out)
{
	const struct unwind_lab *lab = ctx;

	out->ref.object = &unknown;
	if (in_kernel) {
		out->ref.object = &kernel;
	} else if (address >= LAB_CODE && address < LAB_CODE + 0x2000) {
		out->ref.object = &program;
		out->ref.offset = address - LAB_CODE;
		out->tables = lab->tables;
		out->vaddr = address - LAB_CODE;
		out->entry = address >= LAB_ENTRY;
		out->injected = lab->injected && address >= lab->injected &&
				address - lab->injected < 0x100;
		out->top = lab->top && address >= lab->top && address - lab->top < 0x100;
	} else if (address >= LAB_JIT && address < LAB_JIT + 0x1000) {
		out->ref.object = &jitted;
		out->jit = true;
		out->doubtful = lab->doubtful;
		out->managed = lab->managed;
		out->runtime = &jitted;
	} else if (address >= LAB_PENDING && address < LAB_PENDING + 0x1000) {
		out->ref.object = &library;
		out->pending = true;
	}
}

static size_t read_remotely(void *ctx, uint64_t address, void *to, size_t n)
{
	struct unwind_lab *lab = ctx;
	uint64_t at = address - LAB_STACK, end = (uint64_t)lab->remote_words * 8;

	lab->reads++;
	if (address < LAB_STACK || at >= end)
		return 0;
	if (n > end - at)
		n = (size_t)(end - at);
	memcpy(to, (const uint8_t *)lab->stack + at, n);
	return n;
}

static void put_function(struct cfi *c, enum lab_function f, const uint8_t *bytes, size_t n)
{
	cfi_put_fde(c, (uint64_t)f - LAB_CODE, 0x100, bytes, n);
}

/* As in glibc's sigaction.c: each register at RSP + its distance in the ucontext. */
static void put_restorer(struct cfi *c)
{
	static const struct { uint8_t reg, at; } saved[] = {
		{8, 40}, {9, 48}, {10, 56}, {11, 64}, {12, 72}, {13, 80}, {14, 88}, {15, 96},
		{5, 104}, {4, 112}, {6, 120}, {3, 128}, {1, 136}, {0, 144}, {2, 152}, {7, 160},
		{16, 168}};
	uint8_t bytes[200] = {0x0f, 4, 0x77, 0xa0, 0x01, 0x06};
	size_t n = 6, i;

	for (i = 0; i < COUNT_OF(saved); i++) {
		const uint8_t rule[] = {0x10, saved[i].reg, 3, 0x77, (uint8_t)(saved[i].at | 0x80),
					saved[i].at >> 7};

		memcpy(bytes + n, rule, sizeof(rule));
		n += sizeof(rule);
	}
	cfi_put_cie(c, &(struct cfi_cie){.augmentation = "zRS"});
	/* Shorter than the others: its system call is its last instruction. */
	cfi_put_fde(c, LAB_RESTORER - LAB_CODE, 0xf0, bytes, n);
}

static struct eh_frame *make_tables(void)
{
	static const uint8_t usual_code[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6,
					     0x02, 0xec, 0x0c, 7, 8};
	static const uint8_t sub24[] = {0x0e, 32}, root[] = {0x07, 16};
	static const uint8_t realigned[] = {0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0};
	static const uint8_t by_rbx[] = {0x0c, 3, 16}, saves_rbx[] = {0x0e, 24, 0x83, 2};
	static const uint8_t big[] = {0x0e, 0x80, 0x20}, wrong[] = {0x3f}, stuck[] = {0x0e, 0};
	static const uint8_t popped[] = {0x0e, 0, 0x09, 16, 5};
	struct cfi c = {.vaddr = 0x20000};

	cfi_put_cie(&c, &(struct cfi_cie){.version = 1});
	put_function(&c, LAB_USUAL, usual_code, sizeof(usual_code));
	put_function(&c, LAB_SUB24, sub24, sizeof(sub24));
	put_function(&c, LAB_ROOT, root, sizeof(root));
	put_function(&c, LAB_REALIGNED, realigned, sizeof(realigned));
	put_function(&c, LAB_BY_RBX, by_rbx, sizeof(by_rbx));
	put_function(&c, LAB_SAVES_RBX, saves_rbx, sizeof(saves_rbx));
	put_function(&c, LAB_BIG, big, sizeof(big));
	put_function(&c, LAB_WRONG, wrong, sizeof(wrong));
	put_function(&c, LAB_STUCK, stuck, sizeof(stuck));
	put_function(&c, LAB_CLONE, NULL, 0);
	put_function(&c, LAB_CHILD, root, sizeof(root));
	put_function(&c, LAB_VFORK, popped, sizeof(popped));
	put_restorer(&c);
	return cfi_tables(&c, CFI_SORTED);
}

void unwind_lab_open(struct unwind_lab *lab)
{
	memset(lab, 0, sizeof(*lab));
	lab->tables = make_tables();
	lab->stack = calloc(LAB_WORDS, 8);
	if (unwinder_new(LAB_REMOTE_BYTES, &lab->unwinder, NULL) || !lab->tables || !lab->stack)
		abort();
	lab->known = UINT32_MAX;
	lab->copy_words = LAB_WORDS;
	lab->in.user_expected = true;
	lab->in.regs_abi = 2;
}

void unwind_lab_close(struct unwind_lab *lab)
{
	unwinder_free(lab->unwinder);
	eh_frame_free(lab->tables);
	free(lab->stack);
}

int unwind_lab_setup(void **state)
{
	struct unwind_lab *lab = malloc(sizeof(*lab));

	unwind_lab_open(lab);
	*state = lab;
	return 0;
}

int unwind_lab_teardown(void **state)
{
	unwind_lab_close(*state);
	free(*state);
	return 0;
}

void unwind_lab_leaf(struct unwind_lab *lab, uint64_t rip, uint32_t word)
{
	lab->regs[EH_RIP] = rip;
	lab->regs[EH_RSP] = unwind_lab_at(word);
}

uint64_t unwind_lab_at(uint32_t word)
{
	return LAB_STACK + 8 * (uint64_t)word;
}

void unwind_lab_walk(struct unwind_lab *lab)
{
	/* perf's order: AX BX CX DX SI DI BP SP IP, and R8..R15 from bit 16. */
	static const uint8_t order[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
	struct unwind_caller caller = {
		.find = find, .read = lab->remote_words ? read_remotely : NULL,
		.managed = lab->managed, .ctx = lab};
	uint32_t word = (uint32_t)((lab->regs[EH_RSP] - LAB_STACK) / 8), i;
	uint64_t regs[EH_REGISTERS];
	unsigned n = 0;

	lab->in.regs_mask = 0;
	for (i = 0; i < sizeof(order); i++) {
		if (!(lab->known & (uint32_t)1 << order[i]))
			continue;
		regs[n++] = lab->regs[order[i]];
		lab->in.regs_mask |= (uint64_t)1 << (i < 9 ? i : i + 7);
	}
	lab->in.regs = regs;
	lab->in.stack = NULL;
	lab->in.stack_bytes = 0;
	if (word < LAB_WORDS && lab->copy_words) {
		uint32_t words = LAB_WORDS - word < lab->copy_words ? LAB_WORDS - word
								    : lab->copy_words;

		lab->in.stack = (const uint8_t *)(lab->stack + word);
		lab->in.stack_bytes = 8 * words;
	}
	unwinder_walk(lab->unwinder, &lab->in, &caller, &lab->memory, &lab->out);
}
