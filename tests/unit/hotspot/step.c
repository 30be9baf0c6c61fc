/*
 * Each rule of a step, by hand: bytes at PC, words on the stack, and where the caller's frame must
 * be. A word of the stack has a number, that at SP is 0. `returns_at` puts a return address into
 * compiled code at a word; the frame that it leads to has four words, the last of them such an
 * address too. Anything else on the stack is 0, which is no return address.
 */
#include "managed/hotspot/hotspot.h"
#include "managed/hotspot/step.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

enum {
	HEAP = 0x10000, BLOB_BYTES = 0x1000, CODE_AT = 0x100, CODE_BYTES = 0x100, CALLER_WORDS = 4,
	RETURN_AT = 0x40, METHOD = 0x5000, OTHER_METHOD = 0x5010, BYTECODES = 0x6000,
	NBYTECODES = 0x40, SP = 0x70000, WORDS = 600, BP = 0x1234, CALLER_BP = 0x4321,
};
/* The blobs: the one that is left, and those that it may have been called from. */
enum { LEFT, COMPILED, INTERPRETED, CALL_STUB, WRAPPER, BLOBS };

static uint8_t code[BLOBS][CODE_BYTES];
static struct hotspot_blob blobs[BLOBS];
static struct hotspot_pc record = {RETURN_AT, 0};
static struct hotspot_known methods[2];
static struct hotspot_layout layout;
static struct hotspot_cache cache;
static uint64_t stack[WORDS];
static struct unwind_frame frame;
static struct hotspot_step step;

static bool word(void *ctx, uint64_t address, uint64_t *out)
{
	(void)ctx;
	if (address < SP || address % WORD || (address - SP) / WORD >= WORDS)
		return false;
	*out = stack[(address - SP) / WORD];
	return true;
}

/* Nothing can be read that is not known. */
static bool run(void *ctx, struct managed_task *task)
{
	(void)ctx;
	task->free(task);
	return false;
}

static const struct managed_host host = {.run = run};

static uint64_t in(unsigned blob, unsigned at)
{
	return blobs[blob].code_begin + at;
}

static uint64_t at_word(unsigned n)
{
	return SP + (uint64_t)WORD * n;
}

static void know_method(unsigned i, uint64_t address)
{
	methods[i] = (struct hotspot_known){.address = address, .valid = true, .checked = 1,
					    .bytecodes = BYTECODES + i * 0x100,
					    .nbytecodes = NBYTECODES};
	assert_int_equal(table_add(&cache.by_address, hash_u64(address), i), 0);
}

static void set(enum eh_register reg, uint64_t v)
{
	frame.regs[reg] = v;
	frame.known |= REG_BIT(reg);
	if (reg == EH_RBP)
		step.bp = v;
}

/* Code of this kind is left whose frames have six words. */
static void leave(enum hotspot_kind kind, unsigned pc)
{
	static const enum hotspot_kind kinds[BLOBS] = {
		[COMPILED] = BLOB_NMETHOD, [INTERPRETED] = BLOB_INTERPRETER,
		[CALL_STUB] = BLOB_STUBS, [WRAPPER] = BLOB_NATIVE};
	static struct hotspot_blob *list[BLOBS];
	unsigned i;

	memset(&frame, 0, sizeof(frame));
	memset(stack, 0, sizeof(stack));
	table_free(&cache.by_address);
	memset(&cache, 0, sizeof(cache));
	layout = (struct hotspot_layout){
		.refs = 1, .major = 17, .nheaps = 1,
		.heaps = {{.low = HEAP, .high_boundary = HEAP + 0x10000}}};
	for (i = 0; i < BLOBS; i++) {
		if (i != LEFT)
			memset(code[i], 0xcc, CODE_BYTES);
		blobs[i] = (struct hotspot_blob){
			.start = HEAP + i * BLOB_BYTES, .identity.size = BLOB_BYTES,
			.kind = i == LEFT ? kind : kinds[i], .code = code[i], .ncode = CODE_BYTES,
			.frame_words = i == LEFT ? 6 : CALLER_WORDS, .checked = 1};
		blobs[i].code_begin = blobs[i].start + CODE_AT;
		blobs[i].code_end = blobs[i].code_begin + CODE_BYTES;
		blobs[i].pcs = &record;
		blobs[i].npcs = i == COMPILED;
		list[i] = &blobs[i];
	}
	code[WRAPPER][RETURN_AT - 5] = 0xe8; /* call */
	blobs[LEFT].verified_entry = in(LEFT, 0x20);
	layout.call_stub_return = in(CALL_STUB, RETURN_AT);
	cache.layout = &layout;
	cache.moment = 1;
	cache.blobs = list;
	cache.nblobs = BLOBS;
	cache.methods = methods;
	know_method(0, METHOD);
	know_method(1, OTHER_METHOD);
	frame.word = word;
	step = (struct hotspot_step){.c = &cache, .host = &host, .f = &frame, .blob = &blobs[LEFT],
				     .pc = in(LEFT, pc), .sp = SP, .budget = STEP_WORDS_MAX};
	set(EH_RBP, BP);
}

static void put_code(unsigned at, const char *bytes, size_t n)
{
	memset(code[LEFT], 0xcc, CODE_BYTES);
	memcpy(code[LEFT] + at, bytes, n);
}
#define CODE(at, text) put_code(at, text, sizeof(text) - 1)

static void leads_to_frame_at(unsigned end)
{
	stack[end + CALLER_WORDS - 1] = in(COMPILED, RETURN_AT);
}

static void returns_at(unsigned n)
{
	stack[n] = in(COMPILED, RETURN_AT);
	leads_to_frame_at(n + 1);
}

/* The frame ends before that word. */
static void assert_gone(enum unwind_result result, unsigned end, uint64_t bp)
{
	assert_int_equal(result, UNWIND_ON);
	assert_int_equal((frame.regs[EH_RSP] - SP) / WORD, end);
	assert_int_equal(frame.regs[EH_RIP], in(COMPILED, RETURN_AT));
	assert_int_equal(frame.regs[EH_RBP], bp);
}

static void leaf_gone(unsigned end, uint64_t bp)
{
	assert_gone(step_from_leaf(&step), end, bp);
}

static void caller_gone(unsigned end, uint64_t bp)
{
	assert_gone(step_from_caller(&step), end, bp);
}

/* ---- compiled code --------------------------------------------------------------------------- */

TEST(a_class_check_has_no_frame_yet)
{
	CODE(0, "");
	leave(BLOB_NMETHOD, 0x10);
	returns_at(0);
	leaf_gone(1, BP);
}

/* C1: bang (7 bytes), push rbp, mov rbp, rsp (3), sub rsp, 32 (4). */
TEST(a_frame_grows_with_each_instruction_of_the_prologue)
{
	static const struct { unsigned pc, returns; uint64_t bp; } after[] = {
		{0x20, 0, BP}, {0x27, 0, BP}, {0x28, 1, CALLER_BP}, {0x2b, 1, CALLER_BP},
		{0x2f, 5, CALLER_BP}};
	unsigned i;

	CODE(0x20, "\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x8b\xec\x48\x83\xec\x20");
	for (i = 0; i < 5; i++) {
		leave(BLOB_NMETHOD, after[i].pc);
		returns_at(after[i].returns);
		if (after[i].returns)
			stack[after[i].returns - 1] = CALLER_BP;
		leaf_gone(after[i].returns + 1, after[i].bp);
	}
}

/* C2: sub rsp, 40; mov [rsp + 32], rbp, in both sizes; int3 is an instruction behind. */
TEST(rbp_is_the_callers_until_it_is_saved)
{
	static const char *const forms[] = {"\x48\x81\xec\x28\0\0\0\x48\x89\x6c\x24\x20",
					    "\x48\x83\xec\x28\x48\x89\xac\x24\x20\0\0\0"};
	static const unsigned subtracted[] = {0x27, 0x24};
	unsigned i, behind;

	for (i = 0; i < 2; i++) {
		put_code(0x20, forms[i], 12);
		leave(BLOB_NMETHOD, subtracted[i]);
		returns_at(5);
		leaf_gone(6, BP);
		for (behind = 0x2c; behind < 0x2f; behind++) {
			leave(BLOB_NMETHOD, behind);
			returns_at(5);
			stack[4] = CALLER_BP;
			leaf_gone(6, CALLER_BP);
		}
	}
}

/* add rsp, 32; pop rbp; the polls of 17, 8 and 11; ret. */
TEST(an_epilogue_ends_with_a_pop_and_a_poll)
{
	static const struct { const char *bytes; unsigned n; } polled[] = {
		{"\x48\x83\xc4\x20\x5d\x49\x3b\xa7\0\x01\0\0\x0f\x87\0\0\0\0\xc3", 19},
		{"\x48\x83\xc4\x20\x5d\x85\x05\0\0\0\0\xc3", 12},
		{"\x48\x83\xc4\x20\x5d\x4d\x8b\x97\0\x01\0\0\x41\x85\x02\xc3", 16}};
	unsigned i;

	for (i = 0; i < 3; i++) {
		put_code(0x80, polled[i].bytes, polled[i].n);
		leave(BLOB_NMETHOD, 0x84);
		returns_at(1);
		stack[0] = CALLER_BP;
		leaf_gone(2, CALLER_BP);
		leave(BLOB_NMETHOD, 0x85);
		returns_at(0);
		leaf_gone(1, BP);
		leave(BLOB_NMETHOD, 0x80 + polled[i].n - 1);
		returns_at(0);
		leaf_gone(1, BP);
	}
}

TEST(a_complete_frame_has_its_size)
{
	CODE(0, "");
	leave(BLOB_NMETHOD, 0xa0);
	returns_at(5);
	stack[4] = CALLER_BP;
	returns_at(1);                       /* left over from a call */
	leaf_gone(6, CALLER_BP);
}

TEST(pushed_words_come_on_top_of_it)
{
	leave(BLOB_NMETHOD, 0xa0);
	returns_at(7);
	stack[6] = CALLER_BP;
	returns_at(0);
	leaf_gone(8, CALLER_BP);
	/* In the first 64 bytes it is more likely that the frame is not there yet. */
	leave(BLOB_NMETHOD, 0x50);
	returns_at(7);
	returns_at(0);
	leaf_gone(1, BP);
	leave(BLOB_NMETHOD, 0xa0);
	returns_at(1);
	leaf_gone(2, BP);
}

TEST(a_return_address_that_leads_nowhere_is_none)
{
	leave(BLOB_NMETHOD, 0xa0);
	stack[5] = in(COMPILED, RETURN_AT);  /* nothing behind it */
	assert_int_equal(step_from_leaf(&step), UNWIND_BROKEN);
	leave(BLOB_NMETHOD, 0xa0);
	step.sp = at_word(WORDS - 2);        /* the copy of the stack ends here */
	assert_int_equal(step_from_leaf(&step), UNWIND_UNREADABLE);
}

TEST(a_compiled_caller_has_its_size)
{
	leave(BLOB_NMETHOD, RETURN_AT);
	returns_at(5);
	stack[4] = CALLER_BP;
	caller_gone(6, CALLER_BP);
	leave(BLOB_NMETHOD, RETURN_AT);
	returns_at(7);                       /* two words were pushed */
	caller_gone(8, 0);
	leave(BLOB_NMETHOD, RETURN_AT);
	stack[5] = in(COMPILED, 0x55);       /* in code, though behind no call */
	assert_int_equal(step_from_caller(&step), UNWIND_ON);
	assert_int_equal(frame.regs[EH_RIP], in(COMPILED, 0x55));
	leave(BLOB_NMETHOD, RETURN_AT);
	assert_int_equal(step_from_caller(&step), UNWIND_BROKEN);
}

/* ---- wrappers of native methods -------------------------------------------------------------- */

/* push rbp; mov rbp, rsp; later leave, two checks, ret. */
TEST(a_wrapper_has_a_frame_with_rbp)
{
	static char bytes[0x90];

	memset(bytes, 0xcc, sizeof(bytes));
	memcpy(bytes + 0x20, "\x55\x48\x8b\xec", 4);
	memcpy(bytes + 0x80, "\xc9\x49\x81\x7f\x10\0\0\0\0\x0f\x85\0\0\0\0\xc3", 16);
	put_code(0, bytes, sizeof(bytes));
	leave(BLOB_NATIVE, 0x20);
	blobs[LEFT].frame_complete = 0x30;
	returns_at(0);
	leaf_gone(1, BP);
	leave(BLOB_NATIVE, 0x21);
	blobs[LEFT].frame_complete = 0x30;
	returns_at(1);
	stack[0] = CALLER_BP;
	leaf_gone(2, CALLER_BP);
	leave(BLOB_NATIVE, 0x89);            /* between the checks */
	returns_at(0);
	leaf_gone(1, BP);
	leave(BLOB_NATIVE, 0x50);
	set(EH_RBP, at_word(10));
	returns_at(11);
	stack[10] = CALLER_BP;
	leaf_gone(12, CALLER_BP);
	leave(BLOB_NATIVE, 0x50);
	returns_at(5);                       /* RBP is somebody else's */
	leaf_gone(6, 0);
	leave(BLOB_NATIVE, 0x50);
	returns_at(7);
	leaf_gone(8, 0);
}

/* ---- the interpreter ------------------------------------------------------------------------- */

/* Its frame at word 20: the caller's SP, the method and the bytecode below, above as always. */
static void interpret(unsigned pc, unsigned sender)
{
	leave(BLOB_INTERPRETER, pc);
	set(EH_RBP, at_word(20));
	stack[19] = at_word(sender);
	stack[17] = METHOD;
	stack[12] = BYTECODES + 7;
	stack[20] = CALLER_BP;
	stack[21] = in(COMPILED, RETURN_AT);
	leads_to_frame_at(sender);
}

TEST(an_interpreted_frame_ends_where_its_slot_says)
{
	CODE(0, "");
	interpret(0x80, 30);
	leaf_gone(30, CALLER_BP);
	assert_int_equal(step.bci, 7);
	assert_int_equal(step.method.address, METHOD);
	interpret(0x80, 30);
	set(EH_R13, BYTECODES + 5);          /* as long as its templates run */
	leaf_gone(30, CALLER_BP);
	assert_int_equal(step.bci, 5);
	interpret(RETURN_AT, 22);
	caller_gone(22, CALLER_BP);
	assert_int_equal(step.bci, 7);
}

/* leave (C9) and pop r13 (41 5D); then mov rsp, rbx (48 8B E3), with the address in R13. */
TEST(an_interpreted_frame_goes_in_three_steps)
{
	CODE(0x80, "\xc9\x41\x5d\x48\x8b\xe3");
	leave(BLOB_INTERPRETER, 0x81);
	returns_at(0);
	set(EH_RBX, at_word(6));
	leads_to_frame_at(6);
	leaf_gone(6, BP);
	leave(BLOB_INTERPRETER, 0x83);
	set(EH_R13, in(COMPILED, RETURN_AT));
	set(EH_RBX, at_word(6));
	leads_to_frame_at(6);
	leaf_gone(6, BP);
	leave(BLOB_INTERPRETER, 0x86);
	set(EH_R13, in(COMPILED, RETURN_AT));
	leads_to_frame_at(0);
	leaf_gone(0, BP);
}

TEST(at_its_entry_a_method_is_in_rbx)
{
	CODE(0, "");
	interpret(0x80, 30);
	set(EH_RBX, OTHER_METHOD);
	set(EH_RAX, in(COMPILED, RETURN_AT));        /* popped */
	set(EH_R13, at_word(4));
	leads_to_frame_at(4);
	leaf_gone(4, at_word(20));
	assert_int_equal(step.method.address, OTHER_METHOD);
	assert_int_equal(step.bci, 0);
	interpret(0x80, 30);
	set(EH_RBX, OTHER_METHOD);
	returns_at(0);
	leaf_gone(1, at_word(20));
	interpret(0x80, 30);
	set(EH_RBX, OTHER_METHOD);
	returns_at(0);
	set(EH_R13, at_word(8));             /* an adapter has extended the caller's frame */
	leads_to_frame_at(8);
	leaf_gone(8, at_word(20));
	/* RBP, and the caller's SP below it, were pushed. */
	leave(BLOB_INTERPRETER, 0x80);
	set(EH_RBX, OTHER_METHOD);
	set(EH_RBP, at_word(1));
	stack[0] = at_word(9);
	stack[1] = CALLER_BP;
	stack[2] = in(COMPILED, RETURN_AT);
	leads_to_frame_at(9);
	leaf_gone(9, CALLER_BP);
}

/* A return into the interpreter must have a frame with a method at RBP. */
TEST(an_interpreted_caller_needs_a_method)
{
	CODE(0, "");
	leave(BLOB_NMETHOD, 0xa0);
	stack[5] = in(INTERPRETED, RETURN_AT);
	stack[4] = at_word(20);
	assert_int_equal(step_from_leaf(&step), UNWIND_BROKEN);
	leave(BLOB_NMETHOD, 0xa0);
	stack[5] = in(INTERPRETED, RETURN_AT);
	stack[4] = at_word(20);
	stack[17] = METHOD;
	assert_int_equal(step_from_leaf(&step), UNWIND_ON);
	assert_int_equal(frame.regs[EH_RIP], in(INTERPRETED, RETURN_AT));
}

/* ---- adapters and stubs ---------------------------------------------------------------------- */

TEST(an_adapter_may_have_extended_its_callers_frame)
{
	leave(BLOB_ADAPTER, 0x80);
	returns_at(0);
	leaf_gone(1, BP);
	leave(BLOB_VTABLE, 0x80);
	returns_at(0);
	set(EH_R13, at_word(8));
	leads_to_frame_at(8);
	leaf_gone(8, BP);
	leave(BLOB_SIGNATURE, 0x80);
	returns_at(0);
	leaf_gone(1, BP);
}

TEST(an_adapter_may_have_the_return_address_in_rax)
{
	leave(BLOB_MH_ADAPTER, 0x80);
	set(EH_RAX, in(COMPILED, RETURN_AT));
	set(EH_R13, at_word(3));
	leads_to_frame_at(3);
	leaf_gone(3, BP);
	leave(BLOB_MH_ADAPTER, 0x80);
	set(EH_RAX, in(COMPILED, RETURN_AT));
	leads_to_frame_at(0);
	leaf_gone(0, BP);
	leave(BLOB_MH_ADAPTER, 0x80);
	set(EH_RAX, in(COMPILED, RETURN_AT));
	set(EH_R11, at_word(40));            /* RSP before it was aligned */
	leads_to_frame_at(41);
	leaf_gone(41, BP);
}

TEST(an_adapter_that_called_has_it_where_r13_says)
{
	leave(BLOB_ADAPTER, RETURN_AT);
	assert_int_equal(step_from_caller(&step), UNWIND_UNKNOWN);
	set(EH_R13, at_word(4));
	returns_at(4);
	caller_gone(5, BP);
}

TEST(a_stub_is_known_by_the_bytes_at_pc)
{
	CODE(0x80, "\x55\x48\x8b\xec\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xc3");
	leave(BLOB_STUBS, 0x78);             /* before it makes its frame */
	returns_at(0);
	leaf_gone(1, BP);
	leave(BLOB_STUBS, 0x81);             /* RBP was pushed, not set */
	returns_at(1);
	stack[0] = CALLER_BP;
	leaf_gone(2, CALLER_BP);
	leave(BLOB_STUBS, 0x91);
	returns_at(0);
	leaf_gone(1, BP);
	leave(BLOB_STUBS, 0x91);
	stack[0] = 0x7f0000001000;           /* libjvm has called it */
	assert_int_equal(step_from_leaf(&step), UNWIND_ON);
	assert_int_equal(frame.regs[EH_RIP], 0x7f0000001000);
}

TEST(a_stub_without_such_bytes_has_a_frame_with_rbp_or_is_searched)
{
	CODE(0, "");
	leave(BLOB_STUBS, 0xa0);
	set(EH_RBP, at_word(5));
	stack[5] = CALLER_BP;
	returns_at(6);
	leaf_gone(7, CALLER_BP);
	leave(BLOB_STUBS, 0xa0);
	returns_at(9);
	leaf_gone(10, BP);
	leave(BLOB_OTHER, 0xa0);             /* makes no frame: RBP is not its own */
	set(EH_RBP, at_word(20));
	returns_at(21);
	returns_at(9);
	leaf_gone(10, at_word(20));
	leave(BLOB_OTHER, RETURN_AT);
	returns_at(9);
	caller_gone(10, BP);
}

/* Its cookie is -1. */
TEST(the_entry_barrier_of_compiled_code_has_a_cookie)
{
	leave(BLOB_STUBS, 0xa0);
	stack[0] = UINT64_MAX;
	returns_at(1);
	leaf_gone(2, BP);
	leave(BLOB_STUBS, 0xa0);
	stack[1] = UINT64_MAX;
	returns_at(2);
	leaf_gone(3, BP);
	leave(BLOB_STUBS, RETURN_AT);
	set(EH_RBP, at_word(5));
	stack[5] = CALLER_BP;
	stack[6] = UINT64_MAX;
	returns_at(7);
	caller_gone(8, CALLER_BP);
}

TEST(a_runtime_stub_has_its_size_or_a_word_more)
{
	leave(BLOB_RUNTIME, 0xa0);
	returns_at(5);
	leaf_gone(6, 0);
	leave(BLOB_SAFEPOINT, 0xa0);
	returns_at(6);
	leaf_gone(7, 0);
	leave(BLOB_EXCEPTION, 0xa0);
	set(EH_RDX, in(COMPILED, RETURN_AT));
	leads_to_frame_at(0);
	leaf_gone(0, BP);
	leave(BLOB_RUNTIME, RETURN_AT);
	returns_at(5);
	caller_gone(6, 0);
	/* It has aligned SP: deoptimization. */
	leave(BLOB_RUNTIME, RETURN_AT);
	set(EH_RBP, at_word(5));
	stack[5] = CALLER_BP;
	returns_at(6);
	caller_gone(7, CALLER_BP);
	leave(BLOB_RUNTIME, RETURN_AT);
	set(EH_RBP, at_word(8));             /* not by more than a word */
	returns_at(9);
	assert_int_equal(step_from_caller(&step), UNWIND_BROKEN);
}

/* Registers that native code keeps stand from RBP - 56 on, RBX first. */
TEST(the_call_stub_gives_back_what_native_code_keeps)
{
	static const enum eh_register regs[] = {EH_RBX, EH_R12, EH_R13, EH_R14, EH_R15};
	unsigned i;

	leave(BLOB_STUBS, 0);
	step.pc = layout.call_stub_return;
	step.blob = &blobs[CALL_STUB];
	set(EH_RBP, at_word(20));
	stack[20] = CALLER_BP;
	stack[21] = 0x7f0000001000;
	for (i = 0; i < 5; i++)
		stack[13 - i] = 100 + i;
	assert_int_equal(step_from_leaf(&step), UNWIND_ON);
	assert_int_equal(frame.regs[EH_RIP], 0x7f0000001000);
	assert_int_equal(frame.regs[EH_RSP], at_word(22));
	for (i = 0; i < 5; i++)
		assert_int_equal(frame.regs[regs[i]], 100 + i);
}

/* The return barrier of a virtual thread follows no call. Its entry is a native wrapper. */
TEST(frozen_frames_are_passed_over)
{
	leave(BLOB_STUBS, RETURN_AT);
	layout.major = 21;
	step.sp = at_word(1);                /* a caller's, so there is a word below */
	returns_at(3);                       /* not it */
	stack[9] = in(WRAPPER, RETURN_AT);
	stack[8] = CALLER_BP;
	assert_int_equal(step_from_caller(&step), UNWIND_ON);
	assert_int_equal(frame.regs[EH_RIP], in(WRAPPER, RETURN_AT));
	assert_int_equal(frame.regs[EH_RSP], at_word(10));
	assert_int_equal(frame.regs[EH_RBP], CALLER_BP);
	assert_true(step.frozen);
}

TEST(code_that_was_freed_is_searched)
{
	leave(BLOB_NMETHOD, 0x80);
	step.blob = NULL;
	stack[8] = CALLER_BP;
	returns_at(9);
	leaf_gone(10, CALLER_BP);
	leave(BLOB_NMETHOD, 0x80);
	step.blob = NULL;
	assert_int_equal(step_from_caller(&step), UNWIND_BROKEN);
}

/* The same code, if it may be there and only was not read: what is found could be beyond frames. */
TEST(a_stack_ends_and_waits_where_code_was_not_read)
{
	struct managed *m = (struct managed *)&cache;

	leave(BLOB_NMETHOD, 0x80);
	set(EH_RSP, SP);
	set(EH_RIP, in(LEFT, 0x80));
	frame.interrupted = true;
	returns_at(5);
	assert_int_equal(hotspot_reader.step(m, &host, &frame), UNWIND_ON);
	assert_false(frame.pending);
	set(EH_RSP, SP);
	set(EH_RIP, HEAP + BLOBS * BLOB_BYTES + CODE_AT);
	frame.interrupted = true;
	assert_int_equal(hotspot_reader.step(m, &host, &frame), UNWIND_BROKEN);
	assert_true(frame.pending);
}

/* Of those that may stand before a return address, by their length. */
TEST(a_call_has_two_to_seven_bytes)
{
	static const struct { const char *bytes; unsigned n; bool is; } calls[] = {
		{"\xff\xd0", 2, true}, {"\xff\x50\x10", 3, true}, {"\xff\x14\x24", 3, true},
		{"\xff\x54\x24\x10", 4, true}, {"\xe8\0\0\0\0", 5, true},
		{"\xff\x90\0\0\0\0", 6, true}, {"\xff\x15\0\0\0\0", 6, true},
		{"\xff\x94\x24\0\0\0\0", 7, true}, {"\xff\x20", 2, false},
		{"\xe9\0\0\0\0", 5, false}, {"\xff\x60\x10", 3, false}};
	unsigned i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		put_code(0x40, calls[i].bytes, calls[i].n);
		leave(BLOB_STUBS, 0x40);
		assert_int_equal(step_call_before(&blobs[LEFT], in(LEFT, 0x40 + calls[i].n)),
				 calls[i].is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_class_check_has_no_frame_yet),
		cmocka_unit_test(a_frame_grows_with_each_instruction_of_the_prologue),
		cmocka_unit_test(rbp_is_the_callers_until_it_is_saved),
		cmocka_unit_test(an_epilogue_ends_with_a_pop_and_a_poll),
		cmocka_unit_test(a_complete_frame_has_its_size),
		cmocka_unit_test(pushed_words_come_on_top_of_it),
		cmocka_unit_test(a_return_address_that_leads_nowhere_is_none),
		cmocka_unit_test(a_compiled_caller_has_its_size),
		cmocka_unit_test(a_wrapper_has_a_frame_with_rbp),
		cmocka_unit_test(an_interpreted_frame_ends_where_its_slot_says),
		cmocka_unit_test(an_interpreted_frame_goes_in_three_steps),
		cmocka_unit_test(at_its_entry_a_method_is_in_rbx),
		cmocka_unit_test(an_interpreted_caller_needs_a_method),
		cmocka_unit_test(an_adapter_may_have_extended_its_callers_frame),
		cmocka_unit_test(an_adapter_may_have_the_return_address_in_rax),
		cmocka_unit_test(an_adapter_that_called_has_it_where_r13_says),
		cmocka_unit_test(a_stub_is_known_by_the_bytes_at_pc),
		cmocka_unit_test(a_stub_without_such_bytes_has_a_frame_with_rbp_or_is_searched),
		cmocka_unit_test(the_entry_barrier_of_compiled_code_has_a_cookie),
		cmocka_unit_test(a_runtime_stub_has_its_size_or_a_word_more),
		cmocka_unit_test(the_call_stub_gives_back_what_native_code_keeps),
		cmocka_unit_test(frozen_frames_are_passed_over),
		cmocka_unit_test(code_that_was_freed_is_searched),
		cmocka_unit_test(a_stack_ends_and_waits_where_code_was_not_read),
		cmocka_unit_test(a_call_has_two_to_seven_bytes),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	table_free(&cache.by_address);
	return failed;
}
