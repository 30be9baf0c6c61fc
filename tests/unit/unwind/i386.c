/*
 * Walks over made-up stacks of 32-bit programs: i386 numbers its registers in another order (esp 4,
 * ebp 5, eip 8), and its words have 4 bytes.
 */
#include "tests/support/cfi_builder.h"
#include "tests/support/test.h"
#include "unwind/unwind.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CODE = 0x8048000, STACK = 0x7f800000, WORDS = 64,
	/* functions of 0x100 bytes */
	SUB12 = CODE,                   /* CFA = esp + 16 */
	USUAL = CODE + 0x100,           /* CFA = ebp + 8, ebp saved */
	ROOT = CODE + 0x200,            /* the return address is undefined */
	REALIGNED = CODE + 0x300,       /* CFA = [ebp - 4] */
	BY_EBX = CODE + 0x400,          /* CFA = ebx + 8 */
	SAVES_EBX = CODE + 0x500,       /* CFA = esp + 12, ebx saved at -8 */
	RESTORER = CODE + 0x600,        /* a signal frame; sigcontext at esp + 4, as in the vDSO */
	PLT = CODE + 0x700,             /* as every linker describes a PLT */
};

struct lab {
	struct unwinder *unwinder;
	struct eh_frame *tables;
	uint32_t stack[WORDS];
	uint64_t regs[9];               /* perf's order: AX BX CX DX SI DI BP SP IP */
	uint64_t chain[2];
	uint32_t nchain;
	struct unwind_stack out;
};

enum { BX = 1, SI = 4, BP = 6, SP = 7, IP = 8 };

static struct object program = {.key = {.kind = OBJECT_ELF}};
static struct object unknown = {.key = {.kind = OBJECT_UNKNOWN}};

static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	const struct lab *lab = ctx;

	(void)kernel;
	out->ref.object = &unknown;
	if (address < CODE || address >= CODE + 0x800)
		return;
	out->ref.object = &program;
	out->tables = lab->tables;
	out->vaddr = address;
}

#define FUNCTION(c, start, ...)                                                                    \
	cfi_put_fde(c, (uint32_t)(start), 0x100, (const uint8_t[]){__VA_ARGS__},                   \
		    sizeof((const uint8_t[]){__VA_ARGS__}))

static struct eh_frame *make_tables(void)
{
	struct cfi c = {.vaddr = 0x8060000, .is_32_bit = true};

	cfi_put_cie(&c, &(struct cfi_cie){.version = 1});
	FUNCTION(&c, SUB12, 0x0e, 16);
	FUNCTION(&c, USUAL, 0x0c, 5, 8, 0x85, 2);
	FUNCTION(&c, ROOT, 0x07, 8);
	FUNCTION(&c, REALIGNED, 0x0f, 3, 0x75, 0x7c, 0x06);
	FUNCTION(&c, BY_EBX, 0x0c, 3, 8);
	FUNCTION(&c, SAVES_EBX, 0x0e, 12, 0x83, 2);
	FUNCTION(&c, PLT, 0x0f, 11, 0x74, 4, 0x78, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22);
	cfi_put_cie(&c, &(struct cfi_cie){.augmentation = "zRS"});
	/* CFA = [esp + 4 + 28]; ebp at esp + 28, eip at esp + 60 (struct sigcontext_32) */
	FUNCTION(&c, RESTORER, 0x0f, 3, 0x74, 32, 0x06, 0x10, 5, 2, 0x74, 28, 0x10, 8, 2, 0x74,
		 60);
	return cfi_tables(&c, CFI_SORTED);
}

static int open_lab(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	lab->tables = make_tables();
	if (!lab->tables || unwinder_new(0, &lab->unwinder, NULL))
		abort();
	*state = lab;
	return 0;
}

static int close_lab(void **state)
{
	struct lab *lab = *state;

	unwinder_free(lab->unwinder);
	eh_frame_free(lab->tables);
	free(lab);
	return 0;
}

static uint32_t at(uint32_t word)
{
	return (uint32_t)STACK + 4 * word;
}

/* The leaf, whose stack pointer is at a word; then the walk, and its addresses. */
static void assert_walk(struct lab *lab, uint32_t ip, uint32_t word, enum stack_quality quality,
			unsigned n, const uint32_t *expected)
{
	const struct unwind_caller caller = {.find = find, .ctx = lab};
	struct unwind_input in = {
		.user_expected = true, .user_chain = lab->chain, .nuser = lab->nchain,
		.regs_abi = 1, .regs = lab->regs, .regs_mask = 0x1ff,
		.stack = (const uint8_t *)(lab->stack + word), .stack_bytes = 4 * (WORDS - word)};
	unsigned i;

	lab->regs[IP] = ip;
	lab->regs[SP] = at(word);
	unwinder_walk(lab->unwinder, &in, &caller, NULL, &lab->out);
	assert_string_equal(stack_quality_text(lab->out.quality), stack_quality_text(quality));
	assert_int_equal(lab->out.nframes, n);
	for (i = 0; i < n; i++)
		assert_int_equal(lab->out.frames[i].offset +
				 (lab->out.frames[i].flags & FRAME_RETURN_ADDRESS ? 1 : 0),
				 expected[i]);
}

#define WALK(lab, ip, word, quality, ...)                                                          \
	assert_walk(lab, ip, word, quality, sizeof((uint32_t[]){__VA_ARGS__}) / 4,                 \
		    (uint32_t[]){__VA_ARGS__})

TEST(rules_lead_to_the_root_without_frame_pointers)
{
	struct lab *lab = *state;

	lab->stack[3] = SUB12 + 0x20;
	lab->stack[7] = ROOT + 5;
	WALK(lab, SUB12 + 8, 0, QUALITY_COMPLETE, SUB12 + 8, SUB12 + 0x20, ROOT + 5);
	assert_int_equal(lab->out.nframe_pointer, 0);
}

/* The kernel's chain follows frame pointers, which this program does not have. */
TEST(the_kernels_chain_is_not_taken_instead)
{
	struct lab *lab = *state;

	lab->chain[0] = SUB12 + 8;
	lab->chain[1] = 0x1234;
	lab->nchain = 2;
	lab->stack[3] = ROOT + 5;
	WALK(lab, SUB12 + 8, 0, QUALITY_COMPLETE, SUB12 + 8, ROOT + 5);
}

TEST(ebp_is_dwarfs_register_5)
{
	struct lab *lab = *state;

	lab->regs[BP] = at(10);
	lab->stack[10] = at(20);                /* the caller's ebp */
	lab->stack[11] = USUAL + 0x20;
	lab->stack[20] = 0;
	lab->stack[21] = ROOT + 5;
	WALK(lab, USUAL + 8, 4, QUALITY_COMPLETE, USUAL + 8, USUAL + 0x20, ROOT + 5);
}

TEST(an_expression_reads_words_of_4_bytes)
{
	struct lab *lab = *state;

	lab->regs[BP] = at(10);
	lab->stack[9] = at(16);
	lab->stack[10] = 0xdeadbeef;            /* must not be the upper half of the CFA */
	lab->stack[15] = ROOT + 5;
	WALK(lab, REALIGNED + 8, 4, QUALITY_COMPLETE, REALIGNED + 8, ROOT + 5);
}

/* The number is pushed from byte 11 of an entry on. */
TEST(a_plt_is_left_by_its_expression)
{
	struct lab *lab = *state;

	lab->stack[0] = ROOT + 5;
	WALK(lab, PLT + 0x10, 0, QUALITY_COMPLETE, PLT + 0x10, ROOT + 5);
	lab->stack[0] = 0x18;
	lab->stack[1] = ROOT + 5;
	WALK(lab, PLT + 0x1b, 0, QUALITY_COMPLETE, PLT + 0x1b, ROOT + 5);
}

/* EBX is not followed at first: the walk starts again when a caller needs it. */
TEST(ebx_is_found_where_a_callee_saved_it)
{
	struct lab *lab = *state;

	lab->regs[BX] = 0xdead;
	lab->stack[1] = at(20);                 /* saved ebx */
	lab->stack[2] = SUB12 + 8;
	lab->stack[6] = BY_EBX + 8;
	lab->stack[21] = ROOT + 5;
	WALK(lab, SAVES_EBX + 8, 0, QUALITY_COMPLETE, SAVES_EBX + 8, SUB12 + 8, BY_EBX + 8,
	     ROOT + 5);
}

/* The handler SUB12 returns to the restorer; USUAL was interrupted at its first byte but one. */
TEST(a_signal_frame_gives_the_interrupted_registers)
{
	struct lab *lab = *state;

	lab->stack[3] = RESTORER + 1;
	lab->stack[4 + 7] = at(40);             /* ebp */
	lab->stack[4 + 8] = at(36);             /* esp */
	lab->stack[4 + 15] = USUAL + 4;         /* eip */
	lab->stack[41] = ROOT + 5;
	WALK(lab, SUB12 + 8, 0, QUALITY_COMPLETE, SUB12 + 8, RESTORER + 1, USUAL + 4, ROOT + 5);
}

TEST(high_halves_of_registers_are_ignored)
{
	struct lab *lab = *state;

	lab->regs[BX] = (uint64_t)0xffffffff << 32 | at(20);
	lab->stack[21] = ROOT + 5;
	WALK(lab, BY_EBX + 8, 0, QUALITY_COMPLETE, BY_EBX + 8, ROOT + 5);
}

TEST(a_caller_in_no_mapping_is_broken)
{
	struct lab *lab = *state;

	lab->stack[3] = 0x1234;
	WALK(lab, SUB12 + 8, 0, QUALITY_BROKEN, SUB12 + 8);
}

#define IN_LAB(test) cmocka_unit_test_setup_teardown(test, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(rules_lead_to_the_root_without_frame_pointers),
		IN_LAB(the_kernels_chain_is_not_taken_instead),
		IN_LAB(ebp_is_dwarfs_register_5),
		IN_LAB(an_expression_reads_words_of_4_bytes),
		IN_LAB(a_plt_is_left_by_its_expression),
		IN_LAB(ebx_is_found_where_a_callee_saved_it),
		IN_LAB(a_signal_frame_gives_the_interrupted_registers),
		IN_LAB(high_halves_of_registers_are_ignored),
		IN_LAB(a_caller_in_no_mapping_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
