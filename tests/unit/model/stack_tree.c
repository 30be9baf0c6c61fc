/* One tree of calls, and how it counts functions that call themselves. */
#include "model/stack_tree.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	(void)ctx;
	buf_puts(out, in->processes[in->threads[thread].process].name);
}

static void put_thread(const struct incident *in, const void *ctx, uint32_t thread,
		       struct buf *out)
{
	(void)ctx;
	buf_puts(out, in->threads[thread].name);
}

/* Without the module: "B" of "app!B". */
static void put_frame(const struct incident *in, const void *ctx, uint32_t frame, struct buf *out)
{
	(void)ctx;
	buf_puts(out, in->frames[frame].function);
}

static const struct stack_tree_style only_frames = {.root = "ROOT", .frame = put_frame};
static const struct stack_tree_style with_threads = {
	.process = put_process, .thread = put_thread, .marks = true, .frame = put_frame,
};

struct line {
	const char *stack;
	uint32_t samples;
};

/* Of one thread "job" of "app"; ends with no stack. */
static struct incident make(const struct line *lines)
{
	struct incident in = {0};
	uint32_t thread, stack;

	assert_int_equal(sample_incident(&in), 0);
	thread = sample_thread(&in, "app", 1, "job", 2);
	for (; lines->stack; lines++) {
		assert_int_equal(sample_stack(&in, lines->stack, &stack), 0);
		assert_int_equal(sample_add(&in, thread, stack, QUALITY_COMPLETE, lines->samples),
				 0);
	}
	return in;
}

static uint64_t one(const struct incident *in, const struct incident_sample *s)
{
	(void)in;
	(void)s;
	return 1;
}

static struct stack_tree build(const struct incident *in, const struct stack_tree_style *style)
{
	struct stack_tree t;

	assert_int_equal(stack_tree_build(&t, in, 1u << STREAM_CPU, style, NULL, NULL), 0);
	return t;
}

/* Each node with samples of its own as "ROOT>A>B 3", in the order of the nodes. */
static void assert_tree(const struct stack_tree *t, const struct incident *in, const char *wanted)
{
	uint64_t *own = stack_tree_own(t, in, one);
	struct stack_tree_path path = {0};
	struct buf text = {0};
	uint32_t i, k;

	for (i = 0; i < t->nnodes; i++) {
		if (!own[i])
			continue;
		assert_int_equal(stack_tree_path(t, i, 0, &path), 0);
		buf_puts(&text, text.len ? ", " : "");
		for (k = 0; k < path.n; k++)
			buf_printf(&text, "%s%s", k ? ">" : "", stack_tree_text(t, path.texts[k]));
		buf_printf(&text, " %u", (unsigned)own[i]);
	}
	assert_string_equal(buf_text(&text), wanted);
	free(own);
	free(path.texts);
	buf_free(&text);
}

static uint32_t text_of(const struct stack_tree *t, const char *name)
{
	uint32_t i;

	for (i = 0; i < t->texts.n && strcmp(stack_tree_text(t, i), name); i++)
		;
	assert_true(i < t->texts.n);
	return i;
}

/* Samples that have a function in their stack. */
static uint64_t inclusive(const struct stack_tree *t, const struct incident *in, const char *name)
{
	uint64_t *weights = stack_tree_own(t, in, one), sum = 0;
	uint32_t text = text_of(t, name), i;

	stack_tree_add_up(t, weights);
	for (i = 0; i < t->nnodes; i++) {
		if (t->nodes[i].text == text && stack_tree_is_outermost(t, i))
			sum += weights[i];
	}
	free(weights);
	return sum;
}

static const struct line recursive[] = {
	{"app!A;app!B;app!C;app!B;app!D", 6}, {"app!A;app!B", 2}, {"app!E;app!B;app!B", 1},
	{"app!E", 4}, {NULL, 0},
};

TEST(inclusive_weight_counts_a_sample_once)
{
	struct incident in = make(recursive);
	struct stack_tree t = build(&in, &only_frames);

	assert_int_equal(inclusive(&t, &in, "A"), 8);
	assert_int_equal(inclusive(&t, &in, "B"), 9);        /* not 16 */
	assert_int_equal(inclusive(&t, &in, "C"), 6);
	assert_int_equal(inclusive(&t, &in, "ROOT"), 13);
	stack_tree_free(&t);
	incident_free(&in);
}

/* A>B>C>B>D: the caller of B is C. */
TEST(callers_are_those_of_the_deepest_call)
{
	struct incident in = make(recursive);
	struct stack_tree t = build(&in, &only_frames);

	assert_int_equal(stack_tree_focus(&t, &in, text_of(&t, "B"), true, NULL), 0);
	assert_int_equal(t.nsamples, 9);
	assert_tree(&t, &in, "ROOT>B>A 2, ROOT>B>C>B>A 6, ROOT>B>B>E 1");
	stack_tree_free(&t);
	incident_free(&in);
}

/* A>B>C>B>D: the callee of B is D. */
TEST(callees_are_those_of_the_deepest_call)
{
	struct incident in = make(recursive);
	struct stack_tree t = build(&in, &only_frames);

	assert_int_equal(stack_tree_focus(&t, &in, text_of(&t, "B"), false, NULL), 0);
	assert_tree(&t, &in, "ROOT>B 3, ROOT>B>D 6");
	assert_int_equal(t.of_sample[in.nsamples - 1], STACK_TREE_NONE);     /* E alone */
	stack_tree_free(&t);
	incident_free(&in);
}

TEST(a_thread_is_no_call_of_a_function_of_its_name)
{
	static const struct line lines[] = {{"app!job;app!app;app!job", 3}, {NULL, 0}};
	struct incident in = make(lines);
	struct stack_tree t = build(&in, &with_threads);

	assert_tree(&t, &in, "app>job>job>app>job 3");
	assert_false(stack_tree_is_frame(&t, 1));
	assert_true(stack_tree_is_frame(&t, 2));
	assert_true(stack_tree_is_outermost(&t, 2));
	assert_false(stack_tree_is_outermost(&t, 4));
	stack_tree_free(&t);
	incident_free(&in);
}

TEST(samples_without_a_stack_or_a_thread_have_a_place)
{
	static const struct line lines[] = {{"app!A", 2}, {"", 3}, {NULL, 0}};
	struct stack_tree_style style = with_threads;
	struct incident in = make(lines);
	struct stack_tree t;
	uint32_t stack;

	style.root = "ROOT";
	assert_int_equal(sample_stack(&in, "app!A", &stack), 0);
	assert_int_equal(sample_add(&in, THREAD_NONE, stack, QUALITY_COMPLETE, 1), 0);
	assert_int_equal(sample_add(&in, 0, stack, QUALITY_BROKEN, 1), 0);
	t = build(&in, &style);
	assert_tree(&t, &in, "ROOT>app>job 3, ROOT>A 1, ROOT>app>job>A 2, ROOT>app>job>BROKEN>A 1");
	stack_tree_free(&t);
	incident_free(&in);
}

static int build_and_focus(void *ctx)
{
	struct stack_tree t = {0};
	int rc = stack_tree_build(&t, ctx, 1u << STREAM_CPU, &only_frames, NULL, NULL);

	if (!rc)
		rc = stack_tree_focus(&t, ctx, 2, true, NULL);
	stack_tree_free(&t);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	struct incident in = make(recursive);

	assert_in_range(alloc_walk(build_and_focus, &in), 10, 60);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inclusive_weight_counts_a_sample_once),
		cmocka_unit_test(callers_are_those_of_the_deepest_call),
		cmocka_unit_test(callees_are_those_of_the_deepest_call),
		cmocka_unit_test(a_thread_is_no_call_of_a_function_of_its_name),
		cmocka_unit_test(samples_without_a_stack_or_a_thread_have_a_place),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
