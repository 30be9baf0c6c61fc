/*
 * What columns say by what was before: threads and stacks seen not long ago, frames that follow
 * frames.
 */
#include "tests/support/segment_lab.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static struct seglab lab;

static int open_lab(void **state)
{
	(void)state;
	return seglab_open(&lab);
}

static int close_lab(void **state)
{
	(void)state;
	seglab_close(&lab);
	return 0;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* ---- what was put comes back ----------------------------------------------------------------- */

enum { SAMPLES = 4000, THREADS = 300, LETTERS = 60, DEPTH = 20 };

struct put {
	char stack[DEPTH + 1];                  /* root first */
	struct thread *thread;
};

/* As calls are: half of a stack is like the one before, and 40 callees of a frame are no wonder. */
static void next_stack(char *stack, uint32_t *seed)
{
	uint32_t n = next_random(seed) % DEPTH,
		 i = strlen(stack) < n ? (uint32_t)strlen(stack) / 2 : n / 2;

	for (; i < n; i++)
		stack[i] = (char)('a' + (i % 5 == 4 ? 'x' - 'a' : next_random(seed) % LETTERS));
	stack[n] = '\0';
}

static void put_all(struct put *put, struct thread **threads, uint32_t seed)
{
	struct event e = {.kind = EVENT_SAMPLE, .process = lab.app, .value = 1e6};
	char stack[DEPTH + 1] = "";
	uint32_t i;

	for (i = 0; i < SAMPLES; i++) {
		bool again = i && next_random(&seed) % 3 == 0;

		if (!again)
			next_stack(stack, &seed);
		strcpy(put[i].stack, again ? put[next_random(&seed) % i].stack : stack);
		put[i].thread = next_random(&seed) % 50
					? threads[next_random(&seed) % (i / 10 + 1) % THREADS]
					: NULL;
		e.time_ns = i * 1000000ull;
		e.thread = put[i].thread;
		e.stack = seglab_stack(&lab, put[i].stack);
		assert_int_equal(segment_add(lab.builder, &e), 0);
	}
}

static void stack_is(const struct segment_content *c, struct frame **frames, uint32_t node,
		     const char *stack)
{
	size_t n = strlen(stack);

	for (; node != STACK_NONE; node = c->nodes[node].parent) {
		assert_true(n > 0);
		assert_int_equal(frames[c->nodes[node].frame]->offset, stack[--n] - 'a' + 10);
	}
	assert_int_equal(n, 0);
}

/* By local index. */
static struct frame **frames_of(const struct segment *s)
{
	struct segment_list list = segment_frames(s);
	struct frame **frames = calloc(s->nframes + 1, sizeof(struct frame *));
	uint32_t number, n = 0;

	assert_non_null(frames);
	while (segment_next(&list, &number))
		frames[n++] = frame_get(lab.frames, number);
	return frames;
}

TEST(any_stacks_and_threads_come_back)
{
	static struct put put[SAMPLES];
	struct thread *threads[THREADS];
	struct segment_content c = {0};
	uint32_t seed, i;

	for (i = 0; i < THREADS; i++)
		threads[i] = thread_add(lab.processes, lab.app, 1000 + i);
	for (seed = 1; seed <= 5; seed++) {
		struct frame **frames;
		struct segment *s;

		put_all(put, threads, seed);
		s = seglab_seal(&lab);
		assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, NULL), 0);
		assert_int_equal(c.nsamples, SAMPLES);
		frames = frames_of(s);
		for (i = 0; i < SAMPLES; i++) {
			stack_is(&c, frames, c.samples[i].stack, put[i].stack);
			if (put[i].thread)
				assert_ptr_equal(seglab_thread(&lab, s, c.samples[i].thread),
						 put[i].thread);
			else
				assert_int_equal(c.samples[i].thread, THREAD_NONE);
		}
		free(frames);
		segment_content_free(&c);
		segment_unref(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_stacks_and_threads_come_back),
	};

	return cmocka_run_group_tests(tests, open_lab, close_lab);
}
