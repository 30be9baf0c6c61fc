/*
 * Walks over made-up stacks of 32-bit Windows programs. Code is given as bytes; where it is not, it
 * is nops.
 */
#include "tests/support/cfi_builder.h"
#include "tests/support/test.h"
#include "unwind/pe_x86.h"

#include <stdlib.h>
#include <string.h>

enum {
	CODE = 0x401000, CODE_BYTES = 0x1000, STACK = 0x19f000, WORDS = 256,
	CALLER = CODE + 0x800,               /* a call of FUNCTION returns there */
	OUTER = CODE + 0x900,                /* a call through a register returns there */
	FUNCTION = CODE + 0x100,             /* begins behind int3 */
};

struct lab {
	uint8_t code[CODE_BYTES];
	uint32_t stack[WORDS];
	const struct eh_frame *tables;
	struct pe_registers regs;
	struct pe_frame frames[16];
	uint32_t nframes;
	enum pe_step end;
	bool guided;
	uint64_t base;
};

static const struct eh_frame *tables(void *ctx, uint64_t address)
{
	const struct lab *lab = ctx;

	return address - CODE < 0x100 ? lab->tables : NULL;
}

static bool code(void *ctx, uint64_t address, uint8_t *to, size_t n)
{
	const struct lab *lab = ctx;

	assert_true(n <= PE_X86_CODE_BYTES);
	if (address < CODE || address + n > CODE + CODE_BYTES)
		return false;
	memcpy(to, lab->code + (address - CODE), n);
	return true;
}

static void put_bytes(struct lab *lab, uint32_t address, const char *bytes, size_t n)
{
	memcpy(lab->code + (address - CODE), bytes, n);
}

#define PUT(lab, address, text) put_bytes(lab, address, text, sizeof(text) - 1)

static void put_call(struct lab *lab, uint32_t returns_to, uint32_t target)
{
	uint32_t distance = target - returns_to;

	lab->code[returns_to - 5 - CODE] = 0xe8;
	memcpy(&lab->code[returns_to - 4 - CODE], &distance, 4);
}

static void make_lab(struct lab *lab)
{
	memset(lab, 0, sizeof(*lab));
	memset(lab->code, 0x90, sizeof(lab->code));
	put_call(lab, CALLER, FUNCTION);
	PUT(lab, OUTER - 2, "\xff\xd0");
	PUT(lab, FUNCTION - 3, "\xc3\xcc\xcc");
	/* The others have frame pointers. */
	PUT(lab, CODE + 0x3fd, "\xc3\xcc\xcc\x55\x8b\xec");
	PUT(lab, CALLER - 0x83, "\xc3\xcc\xcc\x55\x8b\xec");
	PUT(lab, OUTER - 0x83, "\xc3\xcc\xcc\x55\x89\xe5");
	lab->regs.r[PE_RSP] = STACK;
	lab->regs.interrupted = true;
}

static void walk(struct lab *lab)
{
	struct stack_view view = {.bytes = (const uint8_t *)lab->stack, .start = STACK,
				  .nbytes = sizeof(lab->stack)};
	const struct pe_x86_process process = {
		.tables = tables, .code = code, .ctx = lab, .stack_base = lab->base};

	lab->nframes = pe_x86_walk(&lab->regs, &view, &process, lab->frames, 16, &lab->end,
				   &lab->guided);
}

/* The frames are these, and the walk ended well. */
static void expect_frames(struct lab *lab, uint32_t n, const uint32_t *want)
{
	walk(lab);
	assert_int_equal(lab->nframes, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(lab->frames[i].address, want[i]);
		assert_int_equal(lab->frames[i].returns, i > 0);
	}
	assert_int_equal(lab->end, PE_STEP_ON);
	assert_int_equal(lab->regs.rip, 0);
}

#define EXPECT(lab, ...)                                                                           \
	expect_frames(lab, sizeof((const uint32_t[]){__VA_ARGS__}) / 4,                            \
		      (const uint32_t[]){__VA_ARGS__})

static void put_ebp_frame(struct lab *lab, uint32_t word, uint32_t ebp, uint32_t returns_to)
{
	lab->stack[word] = ebp;
	lab->stack[word + 1] = returns_to;
}

TEST(frame_pointers_are_followed_to_their_end)
{
	struct lab lab;

	make_lab(&lab);
	lab.regs.rip = CODE + 0x500;
	lab.regs.r[PE_RBP] = STACK + 4 * 10;
	put_ebp_frame(&lab, 10, STACK + 4 * 20, CALLER);
	put_ebp_frame(&lab, 20, 0, OUTER);
	EXPECT(&lab, CODE + 0x500, CALLER, OUTER);
	assert_false(lab.guided);
}

TEST(a_return_address_needs_a_call_in_front_of_it)
{
	struct lab lab;

	make_lab(&lab);
	lab.regs.rip = CODE + 0x500;
	lab.regs.r[PE_RBP] = STACK + 4 * 10;
	put_ebp_frame(&lab, 10, STACK + 4 * 20, CALLER + 1);
	walk(&lab);
	assert_int_equal(lab.nframes, 1);
	assert_int_equal(lab.end, PE_STEP_BROKEN);
}

TEST(calls_through_memory_are_known_by_their_length)
{
	static const struct { const char *bytes; unsigned n; bool is_call; } some[] = {
		{"\xff\xd6", 2, true},                       /* call esi */
		{"\xff\x16", 2, true},                       /* call [esi] */
		{"\xff\x15\x34\x12\x40\x00", 6, true},       /* call [0x401234] */
		{"\xff\x55\x08", 3, true},                   /* call [ebp + 8] */
		{"\xff\x54\x24\x08", 4, true},               /* call [esp + 8] */
		{"\xff\x93\x00\x01\x00\x00", 6, true},       /* call [ebx + 256] */
		{"\xff\x94\x83\x00\x01\x00\x00", 7, true},   /* call [ebx + eax * 4 + 256] */
		{"\xff\x14\x85\x00\x10\x40\x00", 7, true},   /* call [eax * 4 + 0x401000] */
		{"\xff\x14\x83", 3, true},                   /* call [ebx + eax * 4] */
		{"\xff\x15\x34\x12\x40", 5, false},          /* cut off */
		{"\xff\xe0", 2, false},                      /* jmp eax */
		{"\xff\x55\x08\x90", 4, false},
	};
	struct lab lab;

	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		make_lab(&lab);
		put_bytes(&lab, OUTER - some[i].n, some[i].bytes, some[i].n);
		lab.regs.rip = CODE + 0x500;
		lab.regs.r[PE_RBP] = STACK;
		put_ebp_frame(&lab, 0, 0, OUTER);
		walk(&lab);
		assert_int_equal(lab.nframes, some[i].is_call ? 2 : 1);
	}
}

/* mov eax, 4; mov edx, ...; call edx; ret 12: the thread waits in the call. */
TEST(a_system_call_returns_to_what_is_on_top)
{
	struct lab lab;

	make_lab(&lab);
	PUT(&lab, FUNCTION + 0x1c, "\xc2\x0c\x00");
	lab.regs.rip = FUNCTION + 0x1c;
	lab.regs.r[PE_RBP] = STACK + 4 * 10;         /* the caller's own */
	lab.stack[0] = CALLER;
	put_ebp_frame(&lab, 10, 0, OUTER);
	EXPECT(&lab, FUNCTION + 0x1c, CALLER, OUTER);
}

TEST(prologues_and_epilogues_are_exact)
{
	static const struct { const char *code; unsigned n, at, stack; } some[] = {
		{"\x55\x8b\xec\x83", 4, 0, 0},               /* push ebp; mov ebp, esp */
		{"\x8b\xff\x55\x8b\xec", 5, 0, 0},           /* mov edi, edi first */
		{"\x55\x8b\xec\x83", 4, 1, 1},               /* between the two */
		{"\x5d\xc3", 2, 0, 1},                       /* pop ebp; ret */
		{"\x83\xc4\x08\x5d\xc2\x08\x00", 7, 0, 3},   /* add esp, 8 first */
		{"\x81\xc4\x08\x00\x00\x00\x5d\xc3", 8, 0, 3},
	};
	struct lab lab;

	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		make_lab(&lab);
		put_bytes(&lab, FUNCTION, some[i].code, some[i].n);
		lab.regs.rip = FUNCTION + some[i].at;
		lab.regs.r[PE_RBP] = STACK + 4 * 10;
		if (some[i].stack)
			lab.stack[some[i].stack - 1] = STACK + 4 * 10;
		lab.stack[some[i].stack] = CALLER;
		put_ebp_frame(&lab, 10, 0, OUTER);
		EXPECT(&lab, FUNCTION + some[i].at, CALLER, OUTER);
	}
}

/* mov esp, ebp; pop ebp; ret, and leave; ret */
TEST(an_epilogue_may_take_the_stack_pointer_from_ebp)
{
	static const char *const ends[] = {"\x8b\xe5\x5d\xc3", "\xc9\xc3\xcc\xcc"};
	struct lab lab;

	for (size_t i = 0; i < 2; i++) {
		make_lab(&lab);
		put_bytes(&lab, FUNCTION, ends[i], 4);
		lab.regs.rip = FUNCTION;
		lab.regs.r[PE_RBP] = STACK + 4 * 5;
		put_ebp_frame(&lab, 5, STACK + 4 * 10, CALLER);
		put_ebp_frame(&lab, 10, 0, OUTER);
		EXPECT(&lab, FUNCTION, CALLER, OUTER);
	}
}

/* push esi; sub esp, 16: EBP is the caller's. Following it would lose the caller. */
TEST(a_function_without_a_frame_pointer_is_found_by_who_calls_it)
{
	struct lab lab;

	make_lab(&lab);
	PUT(&lab, FUNCTION, "\x56\x83\xec\x10");
	lab.regs.rip = FUNCTION + 0x30;
	lab.regs.r[PE_RBP] = STACK + 4 * 20;
	lab.stack[2] = OUTER;                        /* of an earlier call; not ours */
	lab.stack[5] = CALLER;
	put_ebp_frame(&lab, 20, 0, OUTER);
	EXPECT(&lab, FUNCTION + 0x30, CALLER, OUTER);
	assert_false(lab.guided);
}

TEST(so_it_is_when_it_is_called_through_a_pointer)
{
	struct lab lab;

	make_lab(&lab);
	PUT(&lab, FUNCTION, "\x56\x83\xec\x10");
	lab.regs.rip = FUNCTION + 0x30;
	lab.regs.r[PE_RBP] = STACK + 4 * 30;
	lab.stack[2] = OUTER;                        /* among its own variables */
	lab.stack[5] = OUTER;
	put_ebp_frame(&lab, 30, 0, CALLER);
	EXPECT(&lab, FUNCTION + 0x30, OUTER, CALLER);
}

TEST(a_call_may_pass_through_a_jump)
{
	struct lab lab;

	make_lab(&lab);
	PUT(&lab, FUNCTION, "\x56\x83\xec\x10");
	put_call(&lab, CALLER, CODE + 0x700);
	put_call(&lab, CODE + 0x705, FUNCTION);
	lab.code[0x700] = 0xe9;
	lab.regs.rip = FUNCTION + 0x30;
	lab.regs.r[PE_RBP] = STACK + 4 * 20;
	lab.stack[40] = CALLER;              /* beyond arguments: a direct call counts */
	put_ebp_frame(&lab, 60, 0, OUTER);
	lab.regs.r[PE_RBP] = STACK + 4 * 60;
	EXPECT(&lab, FUNCTION + 0x30, CALLER, OUTER);
}

TEST(a_function_that_sets_ebp_is_left_by_it)
{
	struct lab lab;

	make_lab(&lab);
	PUT(&lab, FUNCTION, "\x8b\xff\x55\x8b\xec\x83\xec\x10");
	lab.regs.rip = FUNCTION + 0x30;
	lab.regs.r[PE_RBP] = STACK + 4 * 20;
	lab.stack[5] = CALLER;                       /* of an earlier call of the same function */
	put_ebp_frame(&lab, 20, 0, OUTER);
	EXPECT(&lab, FUNCTION + 0x30, OUTER);
}

TEST(a_frame_pointer_below_the_stack_pointer_breaks_the_walk)
{
	struct lab lab;

	make_lab(&lab);
	lab.regs.rip = CODE + 0x500;
	lab.regs.r[PE_RBP] = STACK - 4;
	walk(&lab);
	assert_int_equal(lab.end, PE_STEP_BROKEN);
	lab.regs.rip = CODE + 0x500;
	lab.regs.r[PE_RBP] = STACK + 4 * WORDS;      /* beyond the copy */
	walk(&lab);
	assert_int_equal(lab.end, PE_STEP_UNREADABLE);
}

/* CODE has tables: CFA = esp + 12, ebx saved at CFA - 8 */
static struct eh_frame *make_tables(void)
{
	struct cfi c = {.vaddr = 0x420000, .is_32_bit = true};

	cfi_put_cie(&c, &(struct cfi_cie){.version = 1});
	cfi_put_fde(&c, CODE, 0x100, (const uint8_t[]){0x0e, 12, 0x83, 2}, 4);
	return cfi_tables(&c, CFI_SORTED);
}

TEST(tables_are_exact_up_to_the_root)
{
	struct eh_frame *made = make_tables();
	struct lab lab;

	make_lab(&lab);
	put_call(&lab, CODE + 0x50, CODE);
	lab.tables = made;
	lab.regs.rip = CODE + 0x20;
	lab.stack[2] = CODE + 0x50;
	EXPECT(&lab, CODE + 0x20, CODE + 0x50);
	assert_true(lab.guided);
	eh_frame_free(made);
}

/* Nobody called a thread's first function: its arguments are all that is above. */
TEST(the_top_of_the_stack_is_the_root)
{
	struct eh_frame *made = make_tables();
	struct lab lab;

	make_lab(&lab);
	lab.tables = made;
	lab.regs.rip = CODE + 0x20;
	lab.stack[2] = 12;
	lab.base = STACK + 4 * 6;
	EXPECT(&lab, CODE + 0x20);
	lab.regs = (struct pe_registers){.rip = CODE + 0x20, .interrupted = true};
	lab.regs.r[PE_RSP] = STACK;
	lab.base = STACK + 4 * 60;
	walk(&lab);
	assert_int_equal(lab.end, PE_STEP_BROKEN);
	eh_frame_free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_pointers_are_followed_to_their_end),
		cmocka_unit_test(a_return_address_needs_a_call_in_front_of_it),
		cmocka_unit_test(calls_through_memory_are_known_by_their_length),
		cmocka_unit_test(a_system_call_returns_to_what_is_on_top),
		cmocka_unit_test(prologues_and_epilogues_are_exact),
		cmocka_unit_test(an_epilogue_may_take_the_stack_pointer_from_ebp),
		cmocka_unit_test(a_function_without_a_frame_pointer_is_found_by_who_calls_it),
		cmocka_unit_test(so_it_is_when_it_is_called_through_a_pointer),
		cmocka_unit_test(a_call_may_pass_through_a_jump),
		cmocka_unit_test(a_function_that_sets_ebp_is_left_by_it),
		cmocka_unit_test(a_frame_pointer_below_the_stack_pointer_breaks_the_walk),
		cmocka_unit_test(tables_are_exact_up_to_the_root),
		cmocka_unit_test(the_top_of_the_stack_is_the_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
