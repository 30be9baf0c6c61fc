/* Walks over made-up stacks: by each kind of rule, and how walks end. */
#include "tests/support/alloc_walk.h"
#include "tests/support/cfi_builder.h"
#include "tests/support/test.h"
#include "tests/support/unwind_lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The frames' addresses, callers as return addresses; the program's only. */
static void assert_frames(const struct unwind_lab *lab, enum stack_quality quality, unsigned n,
			  const uint64_t *expected)
{
	unsigned i;

	assert_string_equal(stack_quality_text(lab->out.quality), stack_quality_text(quality));
	assert_int_equal(lab->out.nframes, n);
	for (i = 0; i < n; i++) {
		const struct frame_ref *f = &lab->out.frames[i];
		uint64_t address = f->offset + (f->flags & FRAME_RETURN_ADDRESS ? 1 : 0);

		if (!strcmp(f->object->name, "program"))
			address += LAB_CODE;
		if (address != expected[i])
			fail_msg("frame %u is at %#" PRIx64 ", not %#" PRIx64, i, address,
				 expected[i]);
	}
}

#define FRAMES(lab, quality, ...)                                                                  \
	assert_frames(lab, quality, sizeof((uint64_t[]){__VA_ARGS__}) / 8,                         \
		      (uint64_t[]){__VA_ARGS__})

/* SUB24 called by SUB24 called by the root. */
static void rules_lead_to_the_root(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_SUB24 + 0x20;
	lab->stack[7] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8, LAB_SUB24 + 0x20, LAB_ROOT + 5);
	assert_int_equal(lab->out.frames[0].flags, 0);
	assert_int_equal(lab->out.frames[1].flags, FRAME_RETURN_ADDRESS);
	assert_int_equal(lab->out.nframe_pointer, 0);
	assert_false(lab->out.pending);
}

/* In the prologue before and after the push, in the body, and after the pop. */
static void usual_function_is_left_from_each_of_its_rows(void **state)
{
	static const struct { uint32_t ip, rsp; bool rbp_pushed; } at[] = {
		{0, 11, false}, {1, 10, true}, {4, 6, true}, {0xf0, 11, false}};
	struct unwind_lab *lab = *state;
	unsigned i;

	lab->stack[11] = LAB_USUAL + 0x20;      /* the leaf's return address */
	lab->stack[10] = unwind_lab_at(20);            /* its saved RBP */
	lab->stack[21] = LAB_ROOT + 5;
	for (i = 0; i < 4; i++) {
		unwind_lab_leaf(lab, LAB_USUAL + at[i].ip, at[i].rsp);
		lab->regs[EH_RBP] = at[i].rbp_pushed ? unwind_lab_at(10) : unwind_lab_at(20);
		unwind_lab_walk(lab);
		FRAMES(lab, QUALITY_COMPLETE, LAB_USUAL + at[i].ip, LAB_USUAL + 0x20, LAB_ROOT + 5);
	}
}

/* The rule still says that RBP is saved, but the slot is below the stack pointer: it was popped. */
static void popped_rbp_is_not_read_again(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_USUAL + 0xf0, 11);
	lab->stack[11] = LAB_USUAL + 0x20;
	lab->stack[10] = 0xdead;
	lab->stack[21] = LAB_ROOT + 5;
	lab->regs[EH_RBP] = unwind_lab_at(20);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_USUAL + 0xf0, LAB_USUAL + 0x20, LAB_ROOT + 5);
}

/* A call was the function's last instruction: the return address is in the next function. */
static void callers_are_looked_up_by_the_call(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_ROOT;               /* the call ended SUB24, whose CFA is + 32 */
	lab->stack[7] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8, LAB_ROOT, LAB_ROOT + 5);
}

static void return_address_zero_is_the_root(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8);
}

/* ---- expressions and other registers --------------------------------------------------------- */

static void realigned_stack_is_left_by_its_expression(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_REALIGNED + 0x20, 0);
	lab->regs[EH_RBP] = unwind_lab_at(8);
	lab->stack[7] = unwind_lab_at(12);             /* [rbp - 8] is the CFA */
	lab->stack[8] = unwind_lab_at(30);             /* [rbp] is the caller's rbp */
	lab->stack[11] = LAB_USUAL + 0x20;
	lab->stack[31] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_REALIGNED + 0x20, LAB_USUAL + 0x20, LAB_ROOT + 5);
}

static void leaf_may_have_its_cfa_in_any_register(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_BY_RBX + 4, 0);
	lab->regs[EH_RBX] = unwind_lab_at(5);
	lab->stack[6] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_BY_RBX + 4, LAB_ROOT + 5);
	lab->known &= ~(1u << EH_RBX);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_BY_RBX + 4);
}

/* RBX is not followed at first: the walk starts again when a caller needs it. */
static void caller_may_have_its_cfa_in_a_saved_register(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SAVES_RBX + 8, 0);
	lab->regs[EH_RBX] = 0xdead;
	lab->stack[1] = unwind_lab_at(20);             /* saved rbx */
	lab->stack[2] = LAB_SUB24 + 8;
	lab->stack[6] = LAB_BY_RBX + 8;
	lab->stack[21] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SAVES_RBX + 8, LAB_SUB24 + 8, LAB_BY_RBX + 8,
	       LAB_ROOT + 5);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* A handler, SUB24, returns to a restorer, which finds the ucontext of BY_RBX, just entered. */
static void interrupt(struct unwind_lab *lab, uint64_t restorer, uint32_t context)
{
	unwind_lab_leaf(lab, LAB_SUB24 + 8, context - 4);
	lab->stack[context - 1] = restorer;
	lab->stack[context + 15] = unwind_lab_at(60);                   /* rbp, at 120 */
	lab->stack[context + 16] = unwind_lab_at(50);                   /* rbx */
	lab->stack[context + 20] = unwind_lab_at(40);                   /* rsp */
	lab->stack[context + 21] = LAB_BY_RBX;                   /* rip */
	lab->stack[context + 23] = (uint64_t)0x2b << 48 | 0x33;  /* cs, gs, fs, ss */
	lab->stack[51] = LAB_USUAL + 0x20;
	lab->stack[61] = LAB_ROOT + 5;
}

/* The interrupted function stands at its first byte: looked up there, not one byte before. */
static void signal_frame_gives_the_interrupted_registers(void **state)
{
	struct unwind_lab *lab = *state;

	interrupt(lab, LAB_RESTORER + 1, 4);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8, LAB_RESTORER + 1, LAB_BY_RBX, LAB_USUAL + 0x20,
	       LAB_ROOT + 5);
	assert_int_equal(lab->out.frames[1].flags, 0);
	assert_int_equal(lab->out.frames[2].flags, 0);
	assert_int_equal(lab->out.frames[3].flags, FRAME_RETURN_ADDRESS);
}

/* musl and Go have no FDE for it; the ucontext is recognized by its segments. */
static void restorer_without_tables_is_recognized(void **state)
{
	struct unwind_lab *lab = *state;

	interrupt(lab, LAB_BARE + 1, 4);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8, LAB_BARE + 1, LAB_BY_RBX, LAB_USUAL + 0x20,
	       LAB_ROOT + 5);
}

/* The handler ran on a stack of its own, above the interrupted one. */
static void alternate_stack_is_left(void **state)
{
	struct unwind_lab *lab = *state;

	interrupt(lab, LAB_RESTORER + 1, 1000);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_TRUNCATED, LAB_SUB24 + 8, LAB_RESTORER + 1, LAB_BY_RBX);
	lab->remote_words = LAB_WORDS;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_REMOTE, LAB_SUB24 + 8, LAB_RESTORER + 1, LAB_BY_RBX, LAB_USUAL + 0x20,
	       LAB_ROOT + 5);
}

static void signals_without_end_are_broken(void **state)
{
	struct unwind_lab *lab = *state;

	interrupt(lab, LAB_RESTORER + 1, 4);
	lab->stack[24] = unwind_lab_at(0);             /* interrupted where it is: in the handler */
	lab->stack[25] = LAB_SUB24 + 8;
	unwind_lab_walk(lab);
	assert_int_equal(lab->out.quality, QUALITY_BROKEN);
	assert_in_range(lab->out.nframes, 10, 40);
}

/* ---- frame pointers -------------------------------------------------------------------------- */

static void jitted_code_is_left_by_its_frame_pointer(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_JIT + 0x10, 0);
	lab->regs[EH_RBP] = unwind_lab_at(4);
	lab->stack[4] = unwind_lab_at(8);
	lab->stack[5] = LAB_JIT + 0x80;
	lab->stack[8] = unwind_lab_at(20);
	lab->stack[9] = LAB_USUAL + 0x20;
	lab->stack[21] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_JIT + 0x10, LAB_JIT + 0x80, LAB_USUAL + 0x20,
	       LAB_ROOT + 5);
	assert_int_equal(lab->out.frames[1].flags, FRAME_RETURN_ADDRESS | FRAME_JIT);
	assert_int_equal(lab->out.nframe_pointer, 2);
}

static enum unwind_result step_without_a_function(void *ctx, struct unwind_frame *f)
{
	uint64_t caller;

	(void)ctx;
	f->cfa = f->regs[EH_RSP] + 8;
	if (!f->word(f->stack, f->regs[EH_RSP], &caller))
		return UNWIND_UNREADABLE;
	f->regs[EH_RSP] = f->cfa;
	f->regs[EH_RIP] = caller;
	return UNWIND_ON;
}

/* The table of names may be full. */
static void frames_of_a_runtime_without_functions_are_stepped_over(void **state)
{
	struct unwind_lab *lab = *state;

	lab->managed = step_without_a_function;
	unwind_lab_leaf(lab, LAB_JIT + 0x10, 0);
	lab->stack[0] = LAB_JIT + 0x80;
	lab->stack[1] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_ROOT + 5);
	/* Where all are such, the place is what is known. */
	lab->stack[1] = 0;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_JIT + 0x10);
}

static void code_without_tables_is_left_by_its_frame_pointer(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_BARE + 0x10, 0);
	lab->regs[EH_RBP] = unwind_lab_at(4);
	lab->stack[4] = 0;
	lab->stack[5] = LAB_BARE + 0x20;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, LAB_BARE + 0x10, LAB_BARE + 0x20);
}

/* Go's tables say where the return address is; its leaf has made its frame, or has not yet. */
static void leaf_of_go_is_left_by_its_row_and_its_callers_by_frame_pointers(void **state)
{
	static const uint8_t cfa_32[] = {0x0e, 32};
	struct unwind_lab *lab = *state;
	struct eh_frame *usual = lab->tables;
	struct cfi c = {.vaddr = 0x9000};
	struct eh_sections s;

	cfi_put_cie(&c, &(struct cfi_cie){0});
	cfi_put_fde(&c, LAB_SUB24 - LAB_CODE, 0x100, cfa_32, sizeof(cfa_32));
	cfi_sections(&c, CFI_NONE, &s);
	s.cfa_only = true;
	assert_int_equal(eh_frame_new(&s, &lab->tables, NULL), 0);
	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_USUAL + 0x20;
	lab->stack[21] = LAB_BARE + 5;
	lab->stack[2] = unwind_lab_at(20);
	lab->regs[EH_RBP] = unwind_lab_at(2);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, LAB_SUB24 + 8, LAB_USUAL + 0x20, LAB_BARE + 5);
	lab->stack[2] = 0xdead;
	lab->regs[EH_RBP] = unwind_lab_at(20);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, LAB_SUB24 + 8, LAB_USUAL + 0x20, LAB_BARE + 5);
	eh_frame_free(lab->tables);
	lab->tables = usual;
}

/* Go's runtime.mcall: where it has called on its new stack, what RBP points to is another one's. */
static void nothing_is_below_what_is_said_to_be_the_top(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_BARE + 0x20;
	lab->stack[20] = 0;
	lab->stack[21] = LAB_BARE + 0x40;
	lab->regs[EH_RBP] = unwind_lab_at(20);
	lab->top = LAB_BARE;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8, LAB_BARE + 0x20);
	unwind_lab_leaf(lab, LAB_BARE + 8, 0);       /* interrupted, it may not have switched */
	lab->regs[EH_RBP] = unwind_lab_at(20);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_BARE + 8, LAB_BARE + 0x40);
}

/* Go's runtime.sigpanic: its caller faulted, here at its first instruction, and called nothing. */
static void caller_of_what_was_injected_was_interrupted(void **state)
{
	struct unwind_lab *lab = *state;

	lab->injected = LAB_SUB24;
	unwind_lab_leaf(lab, LAB_USUAL + 4, 0);      /* what sigpanic has called */
	lab->regs[EH_RBP] = unwind_lab_at(2);
	lab->stack[2] = unwind_lab_at(20);
	lab->stack[3] = LAB_SUB24 + 8;
	lab->stack[7] = LAB_USUAL;
	lab->stack[8] = LAB_ROOT + 5;                /* not yet pushed: CFA = rsp + 8 */
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_USUAL + 4, LAB_SUB24 + 8, LAB_USUAL, LAB_ROOT + 5);
	assert_int_equal(lab->out.frames[1].flags, FRAME_RETURN_ADDRESS);
	assert_int_equal(lab->out.frames[2].flags, 0);
}

static void frame_pointer_that_does_not_rise_is_broken(void **state)
{
	static const uint64_t wrong[] = {0, 1, 8, 0x123456789, UINT64_MAX & ~7ull};
	struct unwind_lab *lab = *state;
	unsigned i;

	unwind_lab_leaf(lab, LAB_JIT + 0x10, 8);
	for (i = 0; i < 5; i++) {
		lab->regs[EH_RBP] = wrong[i];
		unwind_lab_walk(lab);
		FRAMES(lab, QUALITY_BROKEN, LAB_JIT + 0x10);
	}
	lab->regs[EH_RBP] = unwind_lab_at(10);
	lab->stack[10] = unwind_lab_at(10);            /* points to itself */
	lab->stack[11] = LAB_JIT + 0x20;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_JIT + 0x10, LAB_JIT + 0x20);
}

/* A call through a wild pointer: the leaf lies nowhere, its return address is on top. */
static void wild_call_shows_its_caller(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_NOWHERE, 0);
	lab->stack[0] = LAB_SUB24 + 8;
	lab->stack[4] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_NOWHERE, LAB_SUB24 + 8, LAB_ROOT + 5);
}

static void thirty_two_bits_follow_frame_pointers(void **state)
{
	struct unwind_lab *lab = *state;
	uint8_t *bytes = (uint8_t *)lab->stack;
	uint32_t words[] = {0x1040, LAB_BARE + 4, 0, LAB_BARE + 8};

	lab->in.regs_abi = 1;
	memcpy(bytes + 0x20, words, 8);
	memcpy(bytes + 0x40, words + 2, 8);
	lab->regs[EH_RIP] = LAB_JIT;
	lab->regs[EH_RSP] = LAB_STACK;
	lab->regs[EH_RBP] = 0x20;               /* the upper half of LAB_STACK is cut off */
	words[0] = 0x40;
	memcpy(bytes + 0x20, words, 4);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, LAB_JIT, LAB_BARE + 4, LAB_BARE + 8);
}

/* ---- tables that are not there yet ----------------------------------------------------------- */

static void pending_tables_are_said_and_frame_pointers_followed(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_PENDING + 8;
	lab->regs[EH_RBP] = unwind_lab_at(8);
	lab->stack[9] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, LAB_SUB24 + 8, LAB_PENDING + 8, LAB_ROOT + 5);
	assert_true(lab->out.pending);
}

static void kernels_chain_is_taken_when_tables_are_pending(void **state)
{
	const uint64_t chain[] = {LAB_SUB24 + 8, LAB_PENDING + 8, LAB_SUB24 + 0x20};
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_PENDING + 8;
	lab->in.user_chain = chain;
	lab->in.nuser = 3;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, chain[0], chain[1], chain[2]);
	assert_true(lab->out.pending);
}

static void without_registers_the_kernels_chain_is_taken(void **state)
{
	const uint64_t chain[] = {LAB_SUB24 + 8, LAB_SUB24 + 0x20};
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->in.user_chain = chain;
	lab->in.nuser = 2;
	lab->in.regs_abi = 0;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, chain[0], chain[1]);
	lab->in.regs_abi = 2;
	lab->known = ~(1u << EH_RBP);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_FP, chain[0], chain[1]);
}

/* ---- other ends ------------------------------------------------------------------------------ */

static void kernel_frames_come_first(void **state)
{
	const uint64_t chain[] = {0xffff000000000100, 0xffff000000000200};
	struct unwind_lab *lab = *state;

	lab->in.kernel_chain = chain;
	lab->in.nkernel = 2;
	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_COMPLETE, chain[0], chain[1], LAB_SUB24 + 8, LAB_ROOT + 5);
	assert_int_equal(lab->out.frames[1].flags, FRAME_KERNEL | FRAME_RETURN_ADDRESS);
	assert_int_equal(lab->out.frames[2].flags, 0);
}

static void caller_in_no_mapping_is_broken(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_NOWHERE + 8;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_SUB24 + 8);
}

static void cfa_that_does_not_rise_is_broken(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_STUCK + 8, 0);
	lab->stack[0] = LAB_STUCK + 8;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_STUCK + 8);
	unwind_lab_leaf(lab, LAB_BY_RBX + 8, 100);
	lab->regs[EH_RBX] = unwind_lab_at(50);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_BY_RBX + 8);
	lab->regs[EH_RBX] = unwind_lab_at(150) + 4;
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_BY_RBX + 8);
}

static void malformed_tables_are_broken(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_WRONG + 8, 0);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_BROKEN, LAB_WRONG + 8);
}

static void recursion_over_512_frames_is_truncated(void **state)
{
	struct unwind_lab *lab = *state;
	unsigned i;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	for (i = 0; i < 600; i++)
		lab->stack[4 * i + 3] = LAB_SUB24 + 8;
	unwind_lab_walk(lab);
	assert_int_equal(lab->out.quality, QUALITY_TRUNCATED);
	assert_int_equal(lab->out.nframes, 512);
	assert_int_equal(lab->memory.npairs, 0);
}

static void stack_without_a_copy_is_truncated(void **state)
{
	struct unwind_lab *lab = *state;

	lab->copy_words = 0;
	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	unwind_lab_walk(lab);
	FRAMES(lab, QUALITY_TRUNCATED, LAB_SUB24 + 8);
}

static int make_unwinder(void *ctx)
{
	struct unwinder *u = NULL;
	int rc = unwinder_new(UNWIND_REMOTE_BYTES, &u, ctx);

	unwinder_free(u);
	return rc;
}

TEST(unwinder_reports_lack_of_memory)
{
	assert_int_equal(alloc_walk(make_unwinder, NULL), 3);
	unwinder_free(NULL);
}

#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, unwind_lab_setup, unwind_lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(rules_lead_to_the_root),
		IN_LAB(usual_function_is_left_from_each_of_its_rows),
		IN_LAB(popped_rbp_is_not_read_again),
		IN_LAB(callers_are_looked_up_by_the_call),
		IN_LAB(return_address_zero_is_the_root),
		IN_LAB(realigned_stack_is_left_by_its_expression),
		IN_LAB(leaf_may_have_its_cfa_in_any_register),
		IN_LAB(caller_may_have_its_cfa_in_a_saved_register),
		IN_LAB(signal_frame_gives_the_interrupted_registers),
		IN_LAB(restorer_without_tables_is_recognized),
		IN_LAB(alternate_stack_is_left),
		IN_LAB(signals_without_end_are_broken),
		IN_LAB(jitted_code_is_left_by_its_frame_pointer),
		IN_LAB(frames_of_a_runtime_without_functions_are_stepped_over),
		IN_LAB(code_without_tables_is_left_by_its_frame_pointer),
		IN_LAB(leaf_of_go_is_left_by_its_row_and_its_callers_by_frame_pointers),
		IN_LAB(nothing_is_below_what_is_said_to_be_the_top),
		IN_LAB(caller_of_what_was_injected_was_interrupted),
		IN_LAB(frame_pointer_that_does_not_rise_is_broken),
		IN_LAB(wild_call_shows_its_caller),
		IN_LAB(thirty_two_bits_follow_frame_pointers),
		IN_LAB(pending_tables_are_said_and_frame_pointers_followed),
		IN_LAB(kernels_chain_is_taken_when_tables_are_pending),
		IN_LAB(without_registers_the_kernels_chain_is_taken),
		IN_LAB(kernel_frames_come_first),
		IN_LAB(caller_in_no_mapping_is_broken),
		IN_LAB(cfa_that_does_not_rise_is_broken),
		IN_LAB(malformed_tables_are_broken),
		IN_LAB(recursion_over_512_frames_is_truncated),
		IN_LAB(stack_without_a_copy_is_truncated),
		cmocka_unit_test(unwinder_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
