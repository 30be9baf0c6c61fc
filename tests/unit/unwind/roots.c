/* Walks over made-up stacks: where a stack begins, and what is not known to be its beginning. */
#include "tests/support/test.h"
#include "tests/support/unwind_lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_stack(const struct unwind_lab *lab, enum stack_quality quality, unsigned n)
{
	assert_string_equal(stack_quality_text(lab->out.quality), stack_quality_text(quality));
	assert_int_equal(lab->out.nframes, n);
}

/* The system call in clone() gives 0 in the new thread: its stack begins here. */
static void new_thread_is_its_own_root(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_CLONE + 0x102, 0);
	lab->regs[EH_RAX] = 0;
	lab->stack[0] = LAB_SUB24 + 0x20;       /* what the parent's stack would say */
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_COMPLETE, 1);
}

static void parent_of_a_new_thread_goes_on_by_the_row_before(void **state)
{
	static const uint64_t results[] = {4711, (uint64_t)-38};
	struct unwind_lab *lab = *state;
	unsigned i;

	lab->stack[0] = LAB_SUB24 + 0x20;
	lab->stack[4] = LAB_ROOT + 5;
	for (i = 0; i < 2; i++) {
		unwind_lab_leaf(lab, LAB_CLONE + 0x109, 0);
		lab->regs[EH_RAX] = results[i];
		unwind_lab_walk(lab);
		assert_stack(lab, QUALITY_COMPLETE, 3);
	}
}

/* No register says whose stack it is; and behind LAB_VFORK no root follows. */
static void other_gaps_are_no_roots(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_CLONE + 0x102, 0);
	lab->known &= ~(1u << EH_RAX);
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_BROKEN, 1);
	lab->known = UINT32_MAX;
	lab->regs[EH_RAX] = 0;
	unwind_lab_leaf(lab, LAB_VFORK + 0x101, 0);
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_BROKEN, 1);
}

static void return_address_in_a_register_leaves_an_empty_frame(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_VFORK + 4, 0);
	lab->regs[EH_RDI] = LAB_SUB24 + 0x20;
	lab->stack[3] = LAB_ROOT + 5;
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_COMPLETE, 3);
	/* But a caller's frame cannot be empty: it was called. */
	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_VFORK + 5;
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_BROKEN, 2);
}

static void frame_pointers_that_end_at_the_entry_are_complete(void **state)
{
	struct unwind_lab *lab = *state;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->regs[EH_RBP] = 0;
	lab->stack[3] = LAB_ENTRY + 9;
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_COMPLETE, 2);
	lab->stack[3] = LAB_BARE + 9;
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_FP, 2);
}

/* Jitted code whose RBP happens to be its caller's caller's leads to the root: nobody can tell. */
static void root_behind_doubtful_code_is_doubted(void **state)
{
	struct unwind_lab *lab = *state;

	lab->stack[10] = 0;
	lab->stack[11] = LAB_SUB24 + 0x20;
	lab->stack[15] = LAB_ROOT + 5;
	unwind_lab_leaf(lab, LAB_JIT + 8, 0);
	lab->regs[EH_RBP] = unwind_lab_at(10);
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_COMPLETE, 3);
	assert_int_equal(lab->memory.npairs, 2);
	lab->memory.npairs = 0;
	lab->doubtful = true;
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_FP, 3);
	assert_int_equal(lab->memory.npairs, 0);         /* nothing is stitched from it */
}

/* The kernel has no registers of a process that is ending, and no user stack is left. */
static void process_without_memory_has_the_kernels_stack_only(void **state)
{
	static const uint64_t kernel[] = {0xffff000000000100, 0xffff000000000200};
	struct unwind_lab *lab = *state;

	lab->in.kernel_chain = kernel;
	lab->in.nkernel = 2;
	lab->in.regs_abi = 0;
	unwind_lab_walk(lab);
	assert_stack(lab, QUALITY_COMPLETE, 2);
}

int main(void)
{
#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, unwind_lab_setup, unwind_lab_teardown)
	const struct CMUnitTest tests[] = {
		IN_LAB(new_thread_is_its_own_root),
		IN_LAB(parent_of_a_new_thread_goes_on_by_the_row_before),
		IN_LAB(other_gaps_are_no_roots),
		IN_LAB(return_address_in_a_register_leaves_an_empty_frame),
		IN_LAB(frame_pointers_that_end_at_the_entry_are_complete),
		IN_LAB(root_behind_doubtful_code_is_doubted),
		IN_LAB(process_without_memory_has_the_kernels_stack_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
