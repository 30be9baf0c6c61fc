/* Stacks deeper than the copy: stitched from the thread's last complete one, or read remotely. */
#include "tests/support/test.h"
#include "tests/support/unwind_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the memory by itself -------------------------------------------------------------------- */

static const struct unwind_pair pairs[] = {
	{.cfa = 0x100, .ip = 0x1001},
	{.cfa = 0x200, .ip = 0x2002},
	{.cfa = 0x300, .ip = 0x3003, .interrupted = true},
	{.cfa = 0x400, .ip = 0x4004},
};

static uint32_t callers(const struct unwind_memory *memory, uint64_t cfa, uint64_t ip,
			uint64_t next)
{
	const struct unwind_pair pair = {.cfa = cfa, .ip = ip};
	uint32_t n = 77;

	return unwind_stitch(memory, &pair, next, &n) ? n : 77;
}

TEST(only_an_equal_pair_has_callers)
{
	struct unwind_memory memory = {0};
	const struct unwind_pair *next;
	uint32_t n;

	assert_int_equal(callers(&memory, 0x100, 0x1001, 0), 77);
	unwind_remember(&memory, pairs, 4, false);
	next = unwind_stitch(&memory, &pairs[1], 0, &n);
	assert_int_equal(n, 2);
	assert_true(next[0].ip == 0x3003 && next[0].interrupted && next[1].ip == 0x4004);
	assert_int_equal(callers(&memory, 0x100, 0x1001, 0), 3);
	assert_int_equal(callers(&memory, 0x400, 0x4004, 0), 0);
	assert_int_equal(callers(&memory, 0x200, 0x2003, 0), 77);
	assert_int_equal(callers(&memory, 0x208, 0x2002, 0), 77);
	assert_int_equal(callers(&memory, 0x300, 0x3003, 0), 77);      /* that was interrupted */
	assert_int_equal(callers(&memory, 0x200, 0x2002, 0x300), 2);
	/* The next frame ends elsewhere. */
	assert_int_equal(callers(&memory, 0x200, 0x2002, 0x308), 77);
}

TEST(memory_keeps_the_pairs_next_to_the_root)
{
	static struct unwind_pair many[UNWIND_MEMORY_PAIRS + 10];
	static struct unwind_memory memory;
	unsigned i;

	for (i = 0; i < UNWIND_MEMORY_PAIRS + 10; i++)
		many[i] = (struct unwind_pair){.cfa = 8 * i + 8, .ip = i + 1};
	unwind_remember(&memory, many, UNWIND_MEMORY_PAIRS + 10, true);
	assert_int_equal(memory.npairs, UNWIND_MEMORY_PAIRS);
	assert_true(memory.remote);
	assert_true(memory.pairs[0].ip == 11);
	assert_int_equal(callers(&memory, 8 * 9 + 8, 10, 0), 77);
	assert_int_equal(callers(&memory, 8 * 10 + 8, 11, 0), UNWIND_MEMORY_PAIRS - 1);
}

/* ---- in walks -------------------------------------------------------------------------------- */

/* The leaf, then `deep` frames of 4 KiB, then the root. RSP is at word 0. */
static void stand(struct unwind_lab *lab, unsigned deep)
{
	unsigned i;

	unwind_lab_leaf(lab, LAB_SUB24 + 8, 0);
	lab->stack[3] = LAB_BIG + 0x10;
	for (i = 0; i < deep; i++)
		lab->stack[4 + 512 * (i + 1) - 1] =
			i + 1 < deep ? LAB_BIG + 0x10 + i : LAB_ROOT + 5;
}

static int open_lab(void **state)
{
	struct unwind_lab *lab;

	unwind_lab_setup(state);
	lab = *state;
	lab->copy_words = 2048;                 /* 16 KiB: three big frames, part of a fourth */
	return 0;
}

static void assert_walk(struct unwind_lab *lab, enum stack_quality quality, unsigned nframes)
{
	unwind_lab_walk(lab);
	assert_string_equal(stack_quality_text(lab->out.quality), stack_quality_text(quality));
	assert_int_equal(lab->out.nframes, nframes);
}

static void deep_stack_is_truncated(void **state)
{
	struct unwind_lab *lab = *state;

	stand(lab, 3);
	assert_walk(lab, QUALITY_COMPLETE, 5);
	memset(&lab->memory, 0, sizeof(lab->memory));
	stand(lab, 8);
	assert_walk(lab, QUALITY_TRUNCATED, 5);
	assert_int_equal(lab->memory.npairs, 0);
}

/* First seen whole with a bigger copy, then cut; the leaf has moved on, its callers have not. */
static void deep_stack_is_stitched_on_the_last_complete_one(void **state)
{
	struct unwind_lab *lab = *state;
	struct unwind_stack whole;

	stand(lab, 8);
	lab->copy_words = LAB_WORDS;
	assert_walk(lab, QUALITY_COMPLETE, 10);
	whole = lab->out;
	lab->copy_words = 2048;
	lab->regs[EH_RIP]++;
	assert_walk(lab, QUALITY_STITCHED, 10);
	assert_int_equal(lab->out.frames[0].offset, whole.frames[0].offset + 1);
	assert_memory_equal(lab->out.frames + 1, whole.frames + 1, 9 * sizeof(whole.frames[0]));
	/* What was stitched can be stitched on again. */
	assert_walk(lab, QUALITY_STITCHED, 10);
}

static void another_call_is_not_stitched(void **state)
{
	struct unwind_lab *lab = *state;

	stand(lab, 8);
	lab->copy_words = LAB_WORDS;
	assert_walk(lab, QUALITY_COMPLETE, 10);
	lab->copy_words = 2048;
	lab->stack[4 + 512 * 3 - 1]++;          /* the last return address of the copy */
	assert_walk(lab, QUALITY_TRUNCATED, 5);
}

static void deep_stack_is_read_from_the_process(void **state)
{
	struct unwind_lab *lab = *state;

	stand(lab, 8);
	lab->remote_words = LAB_WORDS;
	assert_walk(lab, QUALITY_REMOTE, 10);
	assert_int_equal(lab->reads, 2);        /* 18 KiB beyond the copy, 16 at a time */
	assert_true(lab->memory.remote);
	/* From now on its tail is known, but was remote: nothing is read, the quality says it. */
	assert_walk(lab, QUALITY_REMOTE, 10);
	assert_int_equal(lab->reads, 2);
}

static void remote_reading_has_a_ceiling(void **state)
{
	struct unwind_lab *lab = *state;

	stand(lab, 40);
	lab->remote_words = LAB_WORDS;
	assert_walk(lab, QUALITY_TRUNCATED, 5);
	assert_int_equal(lab->reads, LAB_REMOTE_BYTES / 16384);
	stand(lab, 18);
	assert_walk(lab, QUALITY_REMOTE, 20);
}

/* The process is gone, or its stack has shrunk. */
static void failed_remote_reading_leaves_what_the_copy_gave(void **state)
{
	struct unwind_lab *lab = *state;

	stand(lab, 8);
	lab->remote_words = 1;
	assert_walk(lab, QUALITY_TRUNCATED, 5);
	lab->remote_words = 3000;
	assert_walk(lab, QUALITY_TRUNCATED, 5);
}

/* It ran on since: what stands there now leads nowhere, and nothing of it is shown. */
static void remote_bytes_that_make_no_sense_are_dropped(void **state)
{
	struct unwind_lab *lab = *state;

	stand(lab, 8);
	lab->remote_words = LAB_WORDS;
	lab->stack[4 + 512 * 6 - 1] = LAB_NOWHERE;
	assert_walk(lab, QUALITY_TRUNCATED, 5);
	assert_int_equal(lab->memory.npairs, 0);
}

static void red_zone_below_the_stack_pointer_is_read_remotely(void **state)
{
	struct unwind_lab *lab = *state;

	/* CFA = [rbp - 8], which lies below RSP. */
	unwind_lab_leaf(lab, LAB_REALIGNED + 4, 600);
	lab->regs[EH_RBP] = unwind_lab_at(600);
	lab->stack[599] = unwind_lab_at(604);
	lab->stack[603] = LAB_ROOT + 5;
	assert_walk(lab, QUALITY_BROKEN, 1);
	lab->remote_words = LAB_WORDS;
	assert_walk(lab, QUALITY_REMOTE, 2);
}

#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, open_lab, unwind_lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_an_equal_pair_has_callers),
		cmocka_unit_test(memory_keeps_the_pairs_next_to_the_root),
		IN_LAB(deep_stack_is_truncated),
		IN_LAB(deep_stack_is_stitched_on_the_last_complete_one),
		IN_LAB(another_call_is_not_stitched),
		IN_LAB(deep_stack_is_read_from_the_process),
		IN_LAB(remote_reading_has_a_ceiling),
		IN_LAB(failed_remote_reading_leaves_what_the_copy_gave),
		IN_LAB(remote_bytes_that_make_no_sense_are_dropped),
		IN_LAB(red_zone_below_the_stack_pointer_is_read_remotely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
