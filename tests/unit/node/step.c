/* Frames of V8's code: named, and left, on a heap and a stack made by hand. */
#include "base/bytes.h"
#include "base/os.h"
#include "managed/node/known.h"
#include "managed/node/v8.h"
#include "tests/support/test.h"
#include "tests/unit/node/heap.h"

#include <stdlib.h>
#include <string.h>

#define SP UINT64_C(0x7000000)
#define BP (SP + 64)
#define CALLER UINT64_C(0x401234)
#define CALLER_BP (SP + 128)
#define ENTRY UINT64_C(0x2000)               /* an address of the interpreter */

static struct v8_heap heap;
static struct managed_names *names;
static struct v8_knowledge *k;
static uint64_t stack[32];
static unsigned nreads;
static bool busy;                            /* tasks do not run */

static bool run_now(void *ctx, struct managed_task *task)
{
	(void)ctx;
	if (busy) {
		task->free(task);
		return false;
	}
	nreads++;
	task->run(task, &heap.m);
	return true;
}

static const struct managed_host host = {.run = run_now};

static bool stack_word(void *ctx, uint64_t address, uint64_t *out)
{
	(void)ctx;
	if (address < SP || address - SP >= sizeof(stack))
		return false;
	*out = stack[(address - SP) / 8];
	return true;
}

static void put_word(uint64_t address, uint64_t word)
{
	stack[(address - SP) / 8] = word;
}

static void begin_heap(void)
{
	v8_heap_init(&heap, 12, 4);
	memset(stack, 0, sizeof(stack));
	names = managed_names_new();
	assert_non_null(names);
	assert_int_equal(v8_knowledge_new(&heap.l, names, &k), 0);
	put_word(BP, CALLER_BP);
	put_word(BP + 8, CALLER);
	nreads = 0;
}

static void end(void)
{
	v8_knowledge_free(k);
	managed_names_free(names);
}

/* A frame with bytecode at BP, of this function. returns  the bytecode */
static uint64_t put_interpreted(uint64_t shared)
{
	uint64_t bytecode = v8_heap_new(&heap, T_BYTECODE, 64, 8);

	v8_heap_set(&heap, shared, 8, bytecode);
	put_word(BP - 8, v8_heap_new(&heap, T_CONTEXT, 32, 8));
	put_word(BP - 16, v8_heap_closure(&heap, shared));
	put_word(BP - 32, bytecode);
	return bytecode;
}

static struct unwind_frame frame_at(uint64_t pc, bool interrupted, bool generated)
{
	struct unwind_frame f = {.interrupted = interrupted, .generated = generated,
				 .word = stack_word};

	f.regs[EH_RIP] = pc;
	f.regs[EH_RSP] = SP;
	f.regs[EH_RBP] = BP;
	f.known = REG_BIT(EH_RIP) | REG_BIT(EH_RSP) | REG_BIT(EH_RBP);
	return f;
}

static enum unwind_result take_step(struct unwind_frame *f, uint64_t sample_ns)
{
	v8_reader.begin((struct managed *)k, &host, sample_ns);
	return v8_reader.step((struct managed *)k, &host, f);
}

static void is_named(const struct unwind_frame *f, unsigned i, const char *expected)
{
	char text[MANAGED_TEXT_MAX + 1] = "?";

	assert_true(i < f->nfunctions);
	managed_names_get(names, managed_number(f->functions[i].offset), text, sizeof(text), NULL);
	assert_string_equal(text, expected);
}

static void is_left(const struct unwind_frame *f)
{
	assert_int_equal(f->regs[EH_RIP], CALLER);
	assert_int_equal(f->regs[EH_RBP], CALLER_BP);
	assert_int_equal(f->regs[EH_RSP], BP + 16);
	assert_int_equal(f->cfa, BP + 16);
}

TEST(an_interpreted_function_is_named_and_left)
{
	struct unwind_frame f = frame_at(ENTRY, false, false);
	uint64_t script;

	begin_heap();
	script = v8_heap_script(&heap, "/app/shop.js", "\nfunction total", 1);
	put_interpreted(v8_heap_function(&heap, "total", script, 5));
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "total shop.js:2");
	is_left(&f);
	end();
}

static int line_of(const struct unwind_frame *f)
{
	return (int)(f->functions[0].offset & ((1u << MANAGED_HOW_SHIFT) - 1)) - 1;
}

/* Bytecode 0 is at position 5, in line 2; bytecode 8 at position 18, in line 3. */
TEST(an_interpreted_frame_has_the_line_of_its_bytecode)
{
	static const uint8_t table[] = {2, 24, 16, 52};
	struct unwind_frame f = frame_at(ENTRY, false, false);
	uint64_t script, bytecode;

	begin_heap();
	script = v8_heap_script(&heap, "/app/shop.js", "\nfunction total\n  x();\n", 1);
	bytecode = put_interpreted(v8_heap_function(&heap, "total", script, 5));
	v8_heap_set(&heap, bytecode, heap.l.row.bytecode_positions,
		    v8_heap_byte_array(&heap, table, sizeof(table)));
	put_word(BP - 40, v8_small(heap.l.row.bytecode_data - 1u + 7));
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	assert_int_equal(line_of(&f), 2);
	put_word(BP - 40, v8_small(heap.l.row.bytecode_data - 1u + 8));
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	assert_int_equal(line_of(&f), 3);
	is_named(&f, 0, "total shop.js:2");
	end();
}

/* Samples that are read together cost one look: it came after all of them. */
TEST(a_function_is_looked_at_once_for_samples_before_that)
{
	struct unwind_frame f = frame_at(ENTRY, false, false);
	uint64_t sample_ns = os_now_ns();
	unsigned first;

	begin_heap();
	put_interpreted(v8_heap_function(&heap, "f", 0, 0));
	assert_int_equal(take_step(&f, sample_ns), UNWIND_ON);
	first = nreads;
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, sample_ns), UNWIND_ON);
	assert_int_equal(nreads, first);
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, os_now_ns() + NS_PER_SEC), UNWIND_ON);
	assert_int_equal(nreads, first + 1);
	end();
}

/* The bytecode's place was used again: the closure of the frame says whose it is now. */
TEST(a_name_is_not_lent_to_what_came_to_its_place)
{
	struct unwind_frame f = frame_at(ENTRY, false, false);
	uint64_t bytecode, shared, before_ns;

	begin_heap();
	bytecode = put_interpreted(v8_heap_function(&heap, "old", 0, 0));
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "old");
	before_ns = os_now_ns();
	shared = v8_heap_function(&heap, "new", 0, 0);
	put_interpreted(shared);
	v8_heap_set(&heap, shared, 8, bytecode);
	put_word(BP - 32, bytecode);
	f = frame_at(ENTRY, false, false);
	/* It may have come there after this sample; it was there at the next one. */
	assert_int_equal(take_step(&f, before_ns), UNWIND_ON);
	assert_int_equal(f.functions[0].offset, 0);
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "new");
	end();
}

/* A function of a script without a name, read now, in a sample of that time. 0 = it has no name */
static uint64_t name_of_text(struct unwind_frame *f, uint32_t script_id, uint64_t sample_ns)
{
	uint64_t script = v8_heap_script(&heap, "", "function f", script_id);

	put_interpreted(v8_heap_function(&heap, "f", script, 5));
	*f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(f, sample_ns), UNWIND_ON);
	return f->functions[0].offset;
}

/* Where functions are made from texts, the next one's closure and bytecode have its places. */
TEST(a_script_that_may_be_younger_than_the_sample_gives_it_no_name)
{
	struct unwind_frame f;
	uint64_t script;

	begin_heap();
	assert_int_equal(name_of_text(&f, 7, os_now_ns() - 5 * V8_SOON_NS), 0);
	assert_int_not_equal(name_of_text(&f, 8, os_now_ns() + NS_PER_SEC), 0);
	/* Of a file, there is one. */
	script = v8_heap_script(&heap, "/app/shop.js", "\nfunction total", 9);
	put_interpreted(v8_heap_function(&heap, "total", script, 5));
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, os_now_ns() - 5 * V8_SOON_NS), UNWIND_ON);
	is_named(&f, 0, "total shop.js:2");
	end();
}

/* Scripts are numbered as they come. */
TEST(a_script_is_older_than_one_with_a_higher_number)
{
	struct unwind_frame f;
	uint64_t sample_ns;

	begin_heap();
	assert_int_not_equal(name_of_text(&f, 8, os_now_ns() + NS_PER_SEC), 0);
	sample_ns = os_now_ns();
	while (os_now_ns() < sample_ns + 2 * V8_SOON_NS)
		;
	assert_int_not_equal(name_of_text(&f, 7, sample_ns), 0);
	assert_int_equal(name_of_text(&f, 9, sample_ns), 0);
	end();
}

/* Its closure was moved, and its place is used for something else: frame and bytecode tell. */
TEST(a_function_whose_closure_was_moved_keeps_its_name_for_a_moment)
{
	uint64_t shared, before_ns, sample_ns;
	struct unwind_frame f;

	begin_heap();
	shared = v8_heap_function(&heap, "f", 0, 0);
	put_interpreted(shared);
	do {                                 /* a moment is 200 ms */
		before_ns = os_now_ns();
		f = frame_at(ENTRY, false, false);
		assert_int_equal(take_step(&f, before_ns), UNWIND_ON);
		sample_ns = os_now_ns() + 1;
	} while (sample_ns - before_ns > 100 * NS_PER_MS);
	v8_heap_set(&heap, stack[(BP - 16 - SP) / 8], 0, v8_small(3));
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, sample_ns), UNWIND_ON);
	is_named(&f, 0, "f");
	/* Long after that another function may have the bytecode's place. */
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, sample_ns + NS_PER_SEC), UNWIND_FOREIGN);
	/* What nobody uses any more may be unchanged all the same. */
	put_word(BP - 16, v8_heap_closure(&heap, v8_heap_function(&heap, "other", 0, 0)));
	f = frame_at(ENTRY, false, false);
	assert_int_equal(take_step(&f, os_now_ns() + NS_PER_SEC), UNWIND_FOREIGN);
	end();
}

TEST(builtins_without_such_a_frame_are_left_to_others)
{
	struct unwind_frame f = frame_at(ENTRY, true, false);

	begin_heap();
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_FOREIGN);
	put_interpreted(v8_heap_function(&heap, "f", 0, 0));
	put_word(BP - 8, v8_small(9));               /* the frame's type, and no context */
	f = frame_at(ENTRY, true, false);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_FOREIGN);
	f = frame_at(ENTRY, true, true);             /* no code has a header there */
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_FOREIGN);
	end();
}

/* TurboFan's code of a function, with this deoptimization data. returns  the Code object */
static uint64_t make_optimized(uint64_t shared, uint64_t deopt, uint64_t *begin)
{
	const struct v8_row *r = &heap.l.row;
	uint64_t code, stream;

	v8_heap_set(&heap, deopt, V8_ELEMENTS + 8u * r->deopt_shared, shared);
	v8_heap_new(&heap, T_CONTEXT, 24000, 8);
	code = v8_heap_new(&heap, T_CODE, 128, 8);
	*begin = v8_heap_new(&heap, T_STREAM, 640, 64) - 1 + 64;
	stream = *begin - r->code_header + 1;
	v8_heap_set(&heap, stream, 0, heap.maps[T_STREAM]);
	v8_heap_set(&heap, stream, 8, code);
	v8_heap_set(&heap, code, r->code_start, *begin);
	v8_heap_set(&heap, code, r->code_deopt, deopt);
	put_le32(v8_heap_at(&heap, code - 1 + r->code_flags), r->kind_turbofan);
	put_le32(v8_heap_at(&heap, code - 1 + r->code_size), 512);
	return code;
}

/* An address behind a call of target, in memory. */
static uint64_t make_call(uint64_t target)
{
	uint64_t at = v8_heap_new(&heap, T_CONTEXT, 16, 8) - 1 + 8;
	uint8_t *bytes = v8_heap_at(&heap, at);

	bytes[0] = 0xe8;
	put_le32(bytes + 1, (uint32_t)(target - (at + 5)));
	return at + 5;
}

/* Before "push rbp; mov rbp, rsp" the return address is on top, and RBP is the caller's. */
TEST(optimized_code_without_a_frame_yet_is_left_by_its_stack_pointer)
{
	uint64_t begin, deopt, shared, calls[2];
	struct unwind_frame f;

	begin_heap();
	shared = v8_heap_function(&heap, "hot", 0, 0);
	deopt = v8_heap_new(&heap, T_ARRAY, 100, 8);
	make_optimized(shared, deopt, &begin);
	memcpy(v8_heap_at(&heap, begin + 8), "\x55\x48\x89\xe5", 4);
	calls[0] = make_call(begin);
	calls[1] = make_call(begin);
	put_word(SP, calls[0]);
	put_word(SP + 8, calls[1]);

	f = frame_at(begin + 8, true, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "hot");
	assert_int_equal(f.regs[EH_RIP], calls[0]);
	assert_int_equal(f.regs[EH_RBP], BP);
	f = frame_at(begin + 9, true, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	assert_int_equal(f.regs[EH_RIP], calls[1]);
	f = frame_at(begin + 12, true, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "hot");
	is_left(&f);
	end();
}

/* Other code came to the place of known code: since when is not known, but whose frame it is. */
TEST(code_in_the_place_of_other_code_has_its_name_by_the_closure_of_its_frame)
{
	uint64_t begin, deopt, old, new, before_ns;
	struct unwind_frame f;

	begin_heap();
	old = v8_heap_function(&heap, "old", 0, 0);
	new = v8_heap_function(&heap, "new", 0, 0);
	deopt = v8_heap_new(&heap, T_ARRAY, 100, 8);
	make_optimized(old, deopt, &begin);
	put_word(BP - 8, v8_heap_new(&heap, T_CONTEXT, 32, 8));
	put_word(BP - 16, v8_heap_closure(&heap, old));
	f = frame_at(begin + 30, false, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "old");
	before_ns = os_now_ns();
	v8_heap_set(&heap, deopt, V8_ELEMENTS + 8u * heap.l.row.deopt_shared, new);
	f = frame_at(begin + 30, false, true);
	assert_int_equal(take_step(&f, before_ns), UNWIND_ON);
	is_named(&f, 0, "?");
	put_word(BP - 16, v8_heap_closure(&heap, new));
	f = frame_at(begin + 30, false, true);
	assert_int_equal(take_step(&f, before_ns), UNWIND_ON);
	is_named(&f, 0, "new");
	end();
}

/* The thread that reads had no CPU: that says nothing of the place. */
TEST(a_task_that_did_not_run_does_not_make_code_unknown)
{
	uint64_t begin;
	struct unwind_frame f;

	begin_heap();
	make_optimized(v8_heap_function(&heap, "hot", 0, 0), v8_heap_new(&heap, T_ARRAY, 100, 8),
		       &begin);
	busy = true;
	f = frame_at(begin + 30, false, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_FOREIGN);
	busy = false;
	f = frame_at(begin + 30, false, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "hot");
	end();
}

TEST(what_a_file_says_is_not_read_of_a_second_process_of_it)
{
	struct managed_image image = {.file = "node"};
	struct managed *learned = NULL;

	begin_heap();
	assert_int_not_equal(v8_reader.learn(&image, &host, names, &learned, NULL), 0);
	image.twin = (struct managed *)k;
	nreads = 0;
	assert_int_equal(v8_reader.learn(&image, &host, names, &learned, NULL), 0);
	assert_int_equal(nreads, 0);
	assert_memory_equal(v8_knowledge_layout((struct v8_knowledge *)learned), &heap.l,
			    sizeof(heap.l));
	v8_reader.forget(learned);
	end();
}

/* RBP is the frame of optimized code that called it: following it would skip that code. */
TEST(a_builtin_without_a_frame_is_left_by_its_return_address)
{
	uint64_t begin, code, call;
	struct unwind_frame f;

	begin_heap();
	v8_heap_new(&heap, T_CONTEXT, 16000, 8);
	code = (v8_heap_new(&heap, T_CONTEXT, 384, 64) - 1 + 63) / 64 * 64;
	begin = code + 64;
	memset(v8_heap_at(&heap, code), 0x90, 320);
	memset(v8_heap_at(&heap, begin - 4), 0xcc, 4);       /* padding of the one before */
	memset(v8_heap_at(&heap, begin + 188), 0xcc, 4);
	call = make_call(begin);
	put_word(SP, v8_small(5));
	put_word(SP + 8, CALLER);                            /* no call is before that */
	put_word(SP + 16, call);

	f = frame_at(begin + 20, true, false);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	assert_true(f.by_place);
	assert_int_equal(f.nfunctions, 0);
	assert_int_equal(f.regs[EH_RIP], call);
	assert_int_equal(f.regs[EH_RSP], SP + 24);
	assert_int_equal(f.regs[EH_RBP], BP);
	put_word(SP + 16, 0);
	f = frame_at(begin + 20, true, false);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_FOREIGN);
	assert_false(f.by_place);
	end();
}

TEST(webassembly_is_told_by_the_type_of_its_frame)
{
	struct unwind_frame f;

	begin_heap();
	heap.l.wasm = 6;
	v8_knowledge_free(k);
	assert_int_equal(v8_knowledge_new(&heap.l, names, &k), 0);
	put_word(BP - 8, 12);
	f = frame_at(V8_HEAP_BASE + 64, false, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "[wasm]");
	is_left(&f);
	put_word(BP - 8, 14);
	f = frame_at(V8_HEAP_BASE + 64, false, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_FOREIGN);
	end();
}

TEST(code_of_a_regular_expression_is_no_function)
{
	struct unwind_frame f;
	uint64_t begin, code;

	begin_heap();
	code = make_optimized(0, v8_heap_new(&heap, T_ARRAY, 100, 8), &begin);
	put_le32(v8_heap_at(&heap, code - 1 + heap.l.row.code_flags), heap.l.row.kind_regexp);
	f = frame_at(begin + 30, true, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	is_named(&f, 0, "[regexp]");
	is_left(&f);
	end();
}

/* At 4: position 5 of function 7, inlined at position 10; no literals say who function 7 is. */
TEST(an_inlined_function_that_is_not_known_does_not_get_the_outer_ones_name)
{
	static const uint8_t positions[] = {10, 0x98, 0x80, 0x80, 0x80, 0x10};
	uint8_t inlining[16] = {22, [8] = 7};
	uint64_t begin, code, deopt, shared;
	struct unwind_frame f;

	begin_heap();
	shared = v8_heap_function(&heap, "hot", 0, 0);
	deopt = v8_heap_new(&heap, T_ARRAY, 100, 8);
	v8_heap_set(&heap, deopt, V8_ELEMENTS + 8u * heap.l.row.deopt_inlining,
		    v8_heap_byte_array(&heap, inlining, sizeof(inlining)));
	code = make_optimized(shared, deopt, &begin);
	v8_heap_set(&heap, code, heap.l.row.code_positions,
		    v8_heap_byte_array(&heap, positions, sizeof(positions)));
	f = frame_at(begin + 30, false, true);
	assert_int_equal(take_step(&f, os_now_ns()), UNWIND_ON);
	assert_int_equal(f.nfunctions, 2);
	is_named(&f, 0, "?");
	is_named(&f, 1, "hot");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interpreted_function_is_named_and_left),
		cmocka_unit_test(an_interpreted_frame_has_the_line_of_its_bytecode),
		cmocka_unit_test(a_function_is_looked_at_once_for_samples_before_that),
		cmocka_unit_test(a_name_is_not_lent_to_what_came_to_its_place),
		cmocka_unit_test(a_script_that_may_be_younger_than_the_sample_gives_it_no_name),
		cmocka_unit_test(a_script_is_older_than_one_with_a_higher_number),
		cmocka_unit_test(a_function_whose_closure_was_moved_keeps_its_name_for_a_moment),
		cmocka_unit_test(builtins_without_such_a_frame_are_left_to_others),
		cmocka_unit_test(
			code_in_the_place_of_other_code_has_its_name_by_the_closure_of_its_frame),
		cmocka_unit_test(a_task_that_did_not_run_does_not_make_code_unknown),
		cmocka_unit_test(optimized_code_without_a_frame_yet_is_left_by_its_stack_pointer),
		cmocka_unit_test(webassembly_is_told_by_the_type_of_its_frame),
		cmocka_unit_test(code_of_a_regular_expression_is_no_function),
		cmocka_unit_test(what_a_file_says_is_not_read_of_a_second_process_of_it),
		cmocka_unit_test(a_builtin_without_a_frame_is_left_by_its_return_address),
		cmocka_unit_test(
			an_inlined_function_that_is_not_known_does_not_get_the_outer_ones_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
