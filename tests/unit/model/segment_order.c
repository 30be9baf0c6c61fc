/* What columns say by what was before: threads and stacks seen not long ago, frames that follow frames. */
#include "tests/support/segment_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* ---- version 2 ------------------------------------------------------------------------------------- */

/* seglab_rich() and the samples of several(), written by the last version that wrote format 2. */
static const uint8_t version_2[] = {
	0x02, 0x00, 0x28, 0x13, 0xe2, 0xf0, 0x04, 0x09, 0x0a, 0x02, 0x07, 0x02, 0x08, 0x01,
	0x00, 0xc0, 0x84, 0x3d, 0x04, 0x02, 0x0c, 0x17, 0x09, 0x09, 0x02, 0x0a, 0x0a, 0x02,
	0x04, 0x04, 0x06, 0x02, 0x02, 0x02, 0x02, 0x10, 0x2e, 0x2c, 0x09, 0xc0, 0x84, 0x3d,
	0x09, 0x00, 0x01, 0x00, 0x02, 0x01, 0x01, 0x00, 0x01, 0x01, 0x03, 0x00, 0x01, 0x01,
	0x9f, 0x9c, 0x01, 0x9d, 0x9c, 0x01, 0xce, 0x9b, 0x01, 0xf0, 0xb7, 0x02, 0xa0, 0x9c,
	0x01, 0xa0, 0x9c, 0x01, 0x00, 0x00, 0xe0, 0xd4, 0x03, 0x01, 0x02, 0x02, 0x01, 0x02,
	0x01, 0x01, 0x01, 0x02, 0x06, 0x02, 0x03, 0x02, 0x05, 0x00, 0x06, 0x03, 0x04, 0x09,
	0x02, 0x00, 0x01, 0x01, 0x02, 0x01, 0x00, 0x01, 0x01, 0x04, 0x01, 0x01, 0x01, 0x01,
	0x01, 0x01, 0x01, 0x0c, 0x00, 0x01, 0x01, 0x14, 0x27, 0x01, 0x0a, 0x01, 0x04, 0x01,
	0x00, 0x01, 0x02, 0x01, 0x03, 0x01, 0xff, 0xff, 0x03, 0x04, 0x00, 0x04, 0x00, 0x01,
	0x00, 0x01, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf0, 0xff, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x1c, 0x40, 0x05, 0x01, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0x01, 0x02, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0x01, 0x03, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x7f, 0x04, 0x03,
	0x04, 0x68, 0xc3, 0xa9, 0x21, 0x05, 0x03, 0x00, 0x00, 0x04, 0x70, 0x72, 0x6f, 0x76,
	0x05, 0x4c, 0x65, 0x61, 0x73, 0x74, 0x04, 0x4d, 0x6f, 0x73, 0x74, 0x0a, 0x4e, 0x6f,
	0x74, 0x41, 0x4e, 0x75, 0x6d, 0x62, 0x65, 0x72, 0x07, 0x4d, 0x65, 0x73, 0x73, 0x61,
	0x67, 0x65, 0x01, 0x3f, 0x06, 0x6b, 0x65, 0x72, 0x6e, 0x65, 0x6c,
};

static struct segment *several(void)
{
	assert_int_equal(seglab_rich(&lab), 0);
	assert_int_equal(seglab_sample(&lab, 2000000, 1, "abc"), 0);
	assert_int_equal(seglab_sample(&lab, 3000000, 0, "abde"), 0);
	assert_int_equal(seglab_sample(&lab, 4000000, 1, "abc"), 0);
	assert_int_equal(seglab_sample(&lab, 5000000, 0, ""), 0);
	assert_int_equal(seglab_sample(&lab, 6000000, 0, "xab"), 0);
	assert_int_equal(seglab_sample(&lab, 7000000, 0, "xa"), 0);
	assert_int_equal(seglab_sample(&lab, 8000000, 1, "abdefg"), 0);
	return seglab_seal(&lab);
}

static void same_samples(const struct segment_content *a, const struct segment_content *b)
{
	uint32_t i;

	assert_int_equal(a->nsamples, b->nsamples);
	for (i = 0; i < a->nsamples; i++) {
		assert_int_equal(a->samples[i].time_ns, b->samples[i].time_ns);
		assert_int_equal(a->samples[i].weight, b->samples[i].weight);
		assert_int_equal(a->samples[i].thread, b->samples[i].thread);
		assert_int_equal(a->samples[i].stack, b->samples[i].stack);
		assert_int_equal(a->samples[i].cpu, b->samples[i].cpu);
		assert_int_equal(a->samples[i].quality, b->samples[i].quality);
	}
}

static void segments_of_version_2_are_read_as_those_of_today(void **state)
{
	struct segment_content old, new;
	struct segment *s = several();
	uint32_t i;

	(void)state;
	assert_int_equal(segment_decode(version_2, sizeof(version_2), &old, NULL), 0);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &new, NULL), 0);
	assert_int_equal(new.nsamples, 9);
	same_samples(&old, &new);
	assert_int_equal(old.nnodes, new.nnodes);
	for (i = 0; i < new.nnodes; i++) {
		assert_int_equal(old.nodes[i].parent, new.nodes[i].parent);
		assert_int_equal(old.nodes[i].frame, new.nodes[i].frame);
	}
	assert_int_equal(old.nevents, 2);
	assert_int_equal(old.events[0].stack, new.events[0].stack);
	assert_string_equal(old.names[old.events[1].name], "kernel");
	segment_content_free(&old);
	segment_content_free(&new);
	segment_unref(s);
}

/* ---- what was put comes back --------------------------------------------------------------------------- */

enum { SAMPLES = 4000, THREADS = 300, LETTERS = 60, DEPTH = 20 };

struct put {
	char stack[DEPTH + 1];                  /* root first */
	struct thread *thread;
};

/* As calls are: half of a stack is like the one before, and 40 callees of a frame are no wonder. */
static void next_stack(char *stack, uint32_t *seed)
{
	uint32_t n = next_random(seed) % DEPTH, i = strlen(stack) < n ? (uint32_t)strlen(stack) / 2 : n / 2;

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
		put[i].thread = next_random(&seed) % 50 ? threads[next_random(&seed) % (i / 10 + 1) % THREADS] : NULL;
		e.time_ns = i * 1000000ull;
		e.thread = put[i].thread;
		e.stack = seglab_stack(&lab, put[i].stack);
		assert_int_equal(segment_add(lab.builder, &e), 0);
	}
}

static void stack_is(const struct segment_content *c, struct frame **frames, uint32_t node, const char *stack)
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

static void any_stacks_and_threads_come_back(void **state)
{
	static struct put put[SAMPLES];
	struct thread *threads[THREADS];
	struct segment_content c;
	uint32_t seed, i;

	(void)state;
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
				assert_ptr_equal(seglab_thread(&lab, s, c.samples[i].thread), put[i].thread);
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
		cmocka_unit_test(segments_of_version_2_are_read_as_those_of_today),
		cmocka_unit_test(any_stacks_and_threads_come_back),
	};

	return cmocka_run_group_tests(tests, open_lab, close_lab);
}
