/* The walk along the kernel's callchain: order, return addresses, limits, quality. */
#include "tests/support/test.h"
#include "unwind/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct object app = {.key = {.kind = OBJECT_ELF}, .name = "app"};
static struct object kernel = {.key = {.kind = OBJECT_KERNEL}, .name = "[kernel]"};
static struct object unknown = {.key = {.kind = OBJECT_UNKNOWN}, .name = "?"};
static struct unwinder *unwinder;
static struct unwind_stack out;

/* The program is mapped at [0x1000, 0x2000), the kernel from 0xffff000000000000 on. */
static void find(void *ctx, uint64_t address, bool in_kernel, struct unwind_place *place)
{
	struct frame_ref *ref = &place->ref;

	(void)ctx;
	ref->offset = in_kernel ? address - 0xffff000000000000u : address - 0x1000;
	ref->object = in_kernel ? &kernel : &app;
	if (in_kernel || (address >= 0x1000 && address < 0x2000))
		return;
	ref->object = &unknown;
	ref->offset = address;
}

static void walk(const uint64_t *user, uint32_t nuser, struct unwind_input in)
{
	const struct unwind_caller caller = {.find = find};

	in.user_chain = user;
	in.nuser = nuser;
	unwinder_walk(unwinder, &in, &caller, NULL, &out);
}

static const struct unwind_input user_thread = {.user_expected = true};

TEST(user_leaf_is_itself_and_callers_are_the_call_before)
{
	const uint64_t user[] = {0x1100, 0x1200, 0x1000};

	walk(user, 2, user_thread);
	assert_int_equal(out.nframes, 2);
	assert_int_equal(out.quality, QUALITY_FP);
	assert_int_equal(out.frames[0].offset, 0x100);
	assert_int_equal(out.frames[0].flags, 0);
	assert_int_equal(out.frames[1].offset, 0x1ff);
	assert_int_equal(out.frames[1].flags, FRAME_RETURN_ADDRESS);
	assert_ptr_equal(out.frames[1].object, &app);
}

/* The call was the last instruction of the mapping: the return address lies behind it. */
TEST(return_address_at_the_end_of_a_mapping_is_in_it)
{
	const uint64_t user[] = {0x1100, 0x2000};

	walk(user, 2, user_thread);
	assert_int_equal(out.nframes, 2);
	assert_ptr_equal(out.frames[1].object, &app);
	assert_int_equal(out.frames[1].offset, 0xfff);
}

TEST(kernel_frames_come_before_the_user_ones)
{
	const uint64_t kernel_chain[] = {0xffff000000000100, 0xffff000000000200};
	const uint64_t user[] = {0x1100, 0x1200};
	struct unwind_input in = {
		.kernel_chain = kernel_chain, .nkernel = 2, .user_expected = true};

	walk(user, 2, in);
	assert_int_equal(out.nframes, 4);
	assert_int_equal(out.frames[0].offset, 0x100);
	assert_int_equal(out.frames[0].flags, FRAME_KERNEL);
	assert_int_equal(out.frames[1].offset, 0x1ff);
	assert_int_equal(out.frames[1].flags, FRAME_KERNEL | FRAME_RETURN_ADDRESS);
	/* Where user code was interrupted is no return address. */
	assert_int_equal(out.frames[2].offset, 0x100);
	assert_int_equal(out.frames[2].flags, 0);
	assert_int_equal(out.frames[3].offset, 0x1ff);
}

TEST(kernel_thread_is_complete_without_user_frames)
{
	const uint64_t kernel_chain[] = {0xffff000000000100, 0xffff000000000200};
	struct unwind_input in = {.kernel_chain = kernel_chain, .nkernel = 2};

	walk(NULL, 0, in);
	assert_int_equal(out.nframes, 2);
	assert_int_equal(out.quality, QUALITY_COMPLETE);
}

TEST(user_thread_without_a_caller_is_broken)
{
	const uint64_t user[] = {0x1100};
	const uint64_t kernel_chain[] = {0xffff000000000100};
	struct unwind_input in = {
		.kernel_chain = kernel_chain, .nkernel = 1, .user_expected = true};

	walk(user, 1, user_thread);
	assert_int_equal(out.nframes, 1);
	assert_int_equal(out.quality, QUALITY_BROKEN);
	walk(NULL, 0, in);
	assert_int_equal(out.nframes, 1);
	assert_int_equal(out.quality, QUALITY_BROKEN);
	walk(NULL, 0, user_thread);
	assert_int_equal(out.nframes, 0);
	assert_int_equal(out.quality, QUALITY_BROKEN);
}

TEST(caller_in_no_mapping_ends_the_walk_as_broken)
{
	const uint64_t user[] = {0x1100, 0x1200, 0x9000, 0x1300};

	walk(user, 4, user_thread);
	assert_int_equal(out.nframes, 2);
	assert_int_equal(out.quality, QUALITY_BROKEN);
}

TEST(caller_zero_ends_the_walk_as_broken)
{
	const uint64_t user[] = {0x1100, 0};

	walk(user, 2, user_thread);
	assert_int_equal(out.nframes, 1);
	assert_int_equal(out.quality, QUALITY_BROKEN);
}

/* A jump to nowhere is what one wants to see: the leaf is kept wherever it lies. */
TEST(leaf_in_no_mapping_is_kept)
{
	const uint64_t user[] = {0x9000, 0x1200};

	walk(user, 2, user_thread);
	assert_int_equal(out.nframes, 2);
	assert_ptr_equal(out.frames[0].object, &unknown);
	assert_int_equal(out.frames[0].offset, 0x9000);
	assert_int_equal(out.quality, QUALITY_FP);
}

TEST(chain_that_the_kernel_cut_is_truncated)
{
	const uint64_t user[] = {0x1100, 0x1200};
	struct unwind_input in = {.chain_cut = true, .user_expected = true};

	walk(user, 2, in);
	assert_int_equal(out.nframes, 2);
	assert_int_equal(out.quality, QUALITY_TRUNCATED);
}

TEST(stack_of_over_512_frames_loses_its_root)
{
	static uint64_t user[600];
	unsigned i;

	for (i = 0; i < 600; i++)
		user[i] = 0x1001 + i;
	walk(user, 512, user_thread);
	assert_int_equal(out.nframes, 512);
	assert_int_equal(out.quality, QUALITY_FP);
	walk(user, 600, user_thread);
	assert_int_equal(out.nframes, 512);
	assert_int_equal(out.frames[511].offset, 511);
	assert_int_equal(out.quality, QUALITY_TRUNCATED);
}

TEST(scratch_of_the_stack_before_does_not_show)
{
	const uint64_t user[] = {0x1100, 0x1200, 0x1300};

	walk(user, 3, user_thread);
	walk(user, 2, user_thread);
	assert_int_equal(out.nframes, 2);
	assert_int_equal(out.frames[0].flags, 0);
	assert_int_equal(out.quality, QUALITY_FP);
}

static int make_unwinder(void **state)
{
	(void)state;
	return unwinder_new(UNWIND_REMOTE_BYTES, &unwinder, NULL);
}

static int free_unwinder(void **state)
{
	(void)state;
	unwinder_free(unwinder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_leaf_is_itself_and_callers_are_the_call_before),
		cmocka_unit_test(return_address_at_the_end_of_a_mapping_is_in_it),
		cmocka_unit_test(kernel_frames_come_before_the_user_ones),
		cmocka_unit_test(kernel_thread_is_complete_without_user_frames),
		cmocka_unit_test(user_thread_without_a_caller_is_broken),
		cmocka_unit_test(caller_in_no_mapping_ends_the_walk_as_broken),
		cmocka_unit_test(caller_zero_ends_the_walk_as_broken),
		cmocka_unit_test(leaf_in_no_mapping_is_kept),
		cmocka_unit_test(chain_that_the_kernel_cut_is_truncated),
		cmocka_unit_test(stack_of_over_512_frames_loses_its_root),
		cmocka_unit_test(scratch_of_the_stack_before_does_not_show),
	};

	return cmocka_run_group_tests(tests, make_unwinder, free_unwinder);
}
