/* DTrace text. */
#include "base/array.h"
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_is_as_in_the_file)
{
	assert_export_is("dtrace", NULL, "small.stacks");
}

TEST(hostile_names_keep_to_the_grammar)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "dtrace", NULL, &text), 0);
	assert_int_equal(dtrace_total(buf_text(&text)), in.nsamples);
	assert_non_null(strstr(text.data, "`operator++0x0\n"));
	assert_non_null(strstr(text.data, "`std::map<int, int>::operator- >+0x0\n"));
	assert_null(strstr(text.data, "->"));
	buf_free(&text);
	incident_free(&in);
}

TEST(inlined_functions_stand_on_the_line_of_their_caller)
{
	static const struct frame_spec frames[] = {
		{"m", "main", 0x10, 0},
		{"m", "outer", 0x20, 0},
		{"m", "inner", 0x20, FRAME_INLINED},
		{"m", "inmost->", 0x20, FRAME_INLINED},
	};
	struct buf text = {0};
	struct incident in;
	uint32_t stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, frames, 4, &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_FP, 2), 0);
	assert_int_equal(export_text(&in, "dtrace", NULL, &text), 0);
	assert_non_null(strstr(text.data, "\n\n"
			       "              m`outer->inner->inmost- >+0x20\n"
			       "              m`main+0x10\n"
			       "              process`[unknown] (0)+0x0\n"
			       "               2\n\n"));
	buf_free(&text);
	incident_free(&in);
}

/* ---- as inferno-collapse-dtrace reads it ----------------------------------------------------- */

/*
 * Source: github.com/jonhoo/inferno, src/collapse/dtrace.rs (read of 2026-11). Its rules, by the
 * functions that have them:
 *
 *	collapse_single_threaded   all up to the first empty line is a header; lines are trimmed;
 *	                           digits alone are a count, which ends a stack
 *	remove_offset              a frame ends at its last '+'; "::" may be C++, "->" an inline
 *	uncpp                      of C++, all from the last '(' or '<' behind the first "::" goes
 *	on_stack_line              "a->b" is a, and b with "_[i]"; both lose each L at their
 *	                           beginning; ';' becomes ':'; frames come leaf first
 *	on_stack_end               a count without a stack is a panic
 *	is_applicable              (inferno-collapse-guess) up to the first count behind the
 *	                           header, each line has a '`' or is a hexadecimal number
 */
static void put_function(const char *from, const char *to, bool trims, bool is_inlined,
			 struct buf *out)
{
	while (trims && from < to && *from == 'L')
		from++;
	for (; from < to; from++)
		buf_putc(out, *from == ';' ? ':' : *from);
	buf_puts(out, is_inlined ? "_[i];" : ";");
}

/* The frames of a line, each with ';' behind it, root first. */
static void fold_line(const char *from, const char *to, struct buf *out)
{
	const char *at, *plus = to, *scope = NULL, *arrow = NULL, *cut = NULL;

	for (at = from; at < to; at++) {
		plus = *at == '+' ? at : plus;
		scope = !scope && strncmp(at, "::", 2) == 0 ? at + 2 : scope;
		arrow = !arrow && strncmp(at, "->", 2) == 0 ? at : arrow;
	}
	for (at = scope; at && at < plus; at++)
		cut = *at == '(' || *at == '<' ? at : cut;
	to = cut ? cut : plus;
	for (at = from; arrow && arrow < to; arrow = strstr(at, "->")) {
		put_function(at, arrow, true, at > from, out);
		at = arrow + 2;
	}
	put_function(at, to, at > from, at > from, out);
}

/* "root;..;leaf COUNT", a line for each stack. */
static void inferno_folds(const char *text, struct buf *out)
{
	struct buf stack = {0}, frames = {0};
	const char *end;

	text = strstr(text, "\n\n");
	assert_non_null(text);
	for (text += 2; *text; text = end + 1) {
		end = strchr(text, '\n');
		assert_non_null(end);
		text += strspn(text, " ");
		if (text == end)
			continue;
		buf_reset(&frames);
		if (strspn(text, "0123456789") == (size_t)(end - text)) {
			assert_true(stack.len > 0);
			buf_printf(out, "%.*s %.*s\n", (int)stack.len - 1, buf_text(&stack),
				   (int)(end - text), text);
			buf_reset(&stack);
			continue;
		}
		assert_true(memchr(text, '`', (size_t)(end - text)) != NULL ||
			    (strncmp(text, "0x", 2) == 0 &&
			     strspn(text + 2, "0123456789abcdefABCDEF") + 2 ==
				     (size_t)(end - text)));
		fold_line(text, end, &frames);
		buf_put(&frames, stack.data, stack.len);
		buf_reset(&stack);
		buf_put(&stack, frames.data, frames.len);
	}
	assert_int_equal(stack.len, 0);
	buf_free(&stack);
	buf_free(&frames);
}

static void assert_inferno_folds(const struct incident *in, const char *expected)
{
	struct buf text = {0}, folded = {0};

	assert_int_equal(export_text(in, "dtrace", NULL, &text), 0);
	inferno_folds(buf_text(&text), &folded);
	assert_string_equal(buf_text(&folded), expected);
	buf_free(&text);
	buf_free(&folded);
}

TEST(inferno_reads_every_stack_and_count)
{
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	assert_inferno_folds(&in, "process`node (200) 1\n"
			     "process`app (100);app`main;app`burn_alpha 1\n"
			     "process`app (100);libc.so.6`start;app`?;[kernel]`read 1\n"
			     "process`app (100);walk`[truncated];app`deep 1\n"
			     "process`app (100);walk`BROKEN;app`orphan 1\n"
			     "process`app (100);app`main 1\n"
			     "process`[unknown] (0) 1\n"
			     "process`node (200);node`main;[jit]`run;0x1000 2\n"
			     "process`app (100);app`main;app`burn_alpha 3\n");
	incident_free(&in);
}

TEST(inferno_keeps_names_that_look_like_its_marks)
{
	static const struct frame_spec frames[] = {
		{"m", "main", 0x10, 0},
		{"m", "ns::Type::call(int)", 0x20, 0},
		{"m", "Loop", 0x20, FRAME_INLINED},
		{"m", "operator+", 0x30, 0},
		{"m", "a;b", 0x40, 0},
		{"m", "p->q", 0x50, 0},
		{"L", "Lone", 0x60, 0},
	};
	struct incident in;
	uint32_t stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_frames(&in, frames, COUNT_OF(frames), &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_COMPLETE, 2), 0);
	assert_inferno_folds(&in, "process`[unknown] (0);m`main;m`ns::Type::call(int);"
			     "m`Loop_[i];m`operator+;m`a:b;m`p- >q;L`Lone 2\n");
	incident_free(&in);
}

TEST(inferno_counts_all_samples_of_hostile_names)
{
	struct buf text = {0}, folded = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "dtrace", NULL, &text), 0);
	inferno_folds(buf_text(&text), &folded);
	assert_int_equal(folded_total(buf_text(&folded)), in.nsamples);
	buf_free(&text);
	buf_free(&folded);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_file),
		cmocka_unit_test(hostile_names_keep_to_the_grammar),
		cmocka_unit_test(inlined_functions_stand_on_the_line_of_their_caller),
		cmocka_unit_test(inferno_reads_every_stack_and_count),
		cmocka_unit_test(inferno_keeps_names_that_look_like_its_marks),
		cmocka_unit_test(inferno_counts_all_samples_of_hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
