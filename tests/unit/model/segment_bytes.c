/* The encoded form: damaged bytes are refused, and how many bytes a sample takes. */
#include "base/buf.h"
#include "base/deflate.h"
#include "base/varint.h"
#include "tests/support/segment_lab.h"
#include "tests/support/segment_sound.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct seglab lab;
static struct segment *rich;             /* 2 samples, 2 events, 5 fields, 8 names */

static int open_rich(void **state)
{
	(void)state;
	if (seglab_open(&lab) || seglab_rich(&lab))
		return -1;
	rich = seglab_seal(&lab);
	return rich ? 0 : -1;
}

static int close_rich(void **state)
{
	(void)state;
	segment_unref(rich);
	seglab_close(&lab);
	return 0;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/*
 * Decodes a copy of exactly n bytes, so that a sanitizer sees a byte too far; true when it was
 * good.
 */
static bool decodes(const uint8_t *bytes, size_t n)
{
	struct segment_content c = {0};
	struct err err = {0};
	uint8_t *copy = malloc(n ? n : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	rc = segment_decode(copy, n, &c, &err);
	if (rc) {
		assert_int_equal(rc, ERR_FORMAT);
		assert_true(strstr(err.text, "a segment is damaged: ") ||
			    strstr(err.text, "a segment has format "));
	} else {
		assert_true(segment_sound(&c));
		segment_content_free(&c);
	}
	free(copy);
	return !rc;
}

TEST(every_truncated_prefix_is_refused)
{
	size_t n;

	assert_true(decodes(rich->bytes, rich->nbytes));
	for (n = 0; n < rich->nbytes; n++)
		assert_false(decodes(rich->bytes, n));
}

TEST(one_byte_too_many_is_refused)
{
	uint8_t longer[2000] = {0};

	assert_true(rich->nbytes < sizeof(longer));
	memcpy(longer, rich->bytes, rich->nbytes);
	assert_false(decodes(longer, rich->nbytes + 1));
}

/* 20,000 times one to four bytes are changed: refused or sound, never a crash. */
static void mutate(const uint8_t *from, size_t n)
{
	uint8_t bytes[2000];
	uint32_t seed = 1, i, j, good = 0;

	for (i = 0; i < 20000; i++) {
		memcpy(bytes, from, n);
		for (j = 0; j <= i % 4; j++)
			bytes[next_random(&seed) % n] = (uint8_t)next_random(&seed);
		good += decodes(bytes, n);
	}
	print_message("%u of 20000 were still sound\n", good);
	assert_in_range(good, 1, 19000);
}

/* Codec 1: all columns as they are in one stream, as version 3 was written at first. */
TEST(columns_without_planes_are_read)
{
	struct deflater *d = deflater_new(false);
	struct buf old = {0};
	uint8_t plain[2000];
	size_t n = seglab_unpack(rich, plain, sizeof(plain)), columns;
	size_t head = seglab_head_bytes(rich);

	assert_non_null(d);
	columns = n - head;
	buf_put(&old, plain, head);
	old.data[1] = 1;
	deflater_start(d);
	deflater_put(d, plain + head, columns, &old);
	deflater_end(d, &old);
	assert_true(decodes((const uint8_t *)old.data, old.len));
	buf_free(&old);
	deflater_free(d);
}

TEST(mutated_bytes_are_refused_or_sound)
{
	uint8_t plain[2000];
	size_t n = seglab_unpack(rich, plain, sizeof(plain));

	assert_int_equal(plain[1], 0);                       /* columns as they are */
	assert_true(decodes(plain, n));
	mutate(plain, n);
	mutate(rich->bytes, rich->nbytes);
}

/* Only the header: version, codec, times 0 0 0, six counts, no streams, 20 column lengths. */
static size_t head_only(uint8_t *to, uint64_t samples, uint64_t nodes, uint64_t events,
			uint64_t names, uint64_t last_length)
{
	uint8_t *at = to;
	unsigned i;

	*at++ = SEGMENT_VERSION;
	*at++ = 0;                                           /* columns as they are */
	for (i = 0; i < 3; i++)
		*at++ = 0;
	at += varint_put(at, samples);
	at += varint_put(at, nodes);
	at += varint_put(at, events);
	at += varint_put(at, names);
	for (i = 0; i < 3; i++)
		*at++ = 0;
	for (i = 0; i < SEGMENT_COLUMNS - 1; i++)
		*at++ = 0;
	at += varint_put(at, last_length);
	return (size_t)(at - to);
}

TEST(counts_without_the_bytes_for_them_allocate_nothing)
{
	uint8_t b[200];

	assert_true(decodes(b, head_only(b, 0, 0, 0, 0, 0)));
	assert_false(decodes(b, head_only(b, 1, 0, 0, 0, 0)));
	assert_false(decodes(b, head_only(b, UINT32_MAX, 0, 0, 0, 0)));
	assert_false(decodes(b, head_only(b, 0, UINT32_MAX, 0, 0, 0)));
	assert_false(decodes(b, head_only(b, 0, 0, UINT32_MAX, 0, 0)));
	assert_false(decodes(b, head_only(b, 0, 0, 0, UINT32_MAX, 0)));
	assert_false(decodes(b, head_only(b, 1ull << 32, 0, 0, 0, 0)));
	assert_false(decodes(b, head_only(b, 0, 0, 0, 0, 1)));
	assert_false(decodes(b, head_only(b, 0, 0, 0, 0, UINT64_MAX)));
}

TEST(another_version_is_refused_by_name)
{
	struct segment_content c = {0};
	struct err err;
	uint8_t b[200];
	size_t n = head_only(b, 0, 0, 0, 0, 0);

	b[0] = 2;
	assert_int_equal(segment_decode(b, n, &c, &err), ERR_FORMAT);
	assert_string_equal(err.text,
			    "a segment has format 2, and this program reads format 3 only: "
			    "use the recorder that wrote it");
}

TEST(times_that_overflow_are_refused)
{
	uint8_t b[200] = {SEGMENT_VERSION}, rest[200];
	size_t n = head_only(rest, 0, 0, 0, 0, 0), at = 2;

	at += varint_put(b + at, UINT64_MAX / 100 + 1);      /* base, then +0, +0 */
	memcpy(b + at, rest + 3, n - 3);
	assert_false(decodes(b, at + n - 3));
	at = 2 + varint_put(b + 2, UINT64_MAX / 100);
	memcpy(b + at, rest + 3, n - 3);
	assert_true(decodes(b, at + n - 3));
	b[at + 1] = 1;                                       /* t1 one tick later */
	assert_false(decodes(b, at + n - 3));
}

/* ---- density --------------------------------------------------------------------------------- */

/*
 * Two CPUs at 99 Hz; six programs of two threads that run for 8 samples at a time; stacks of 6 to
 * 29 frames that keep to the most usual callee in 31 steps of 32, out of 600 functions each, with
 * 16 places in each leaf: 2.5 new nodes a sample, where real programs had 2.2.
 */
static uint32_t realistic_stack(struct frame_ref *leaf_first, unsigned program, uint32_t *seed)
{
	uint32_t depth = 6 + next_random(seed) % 24, i, function = program * 600;

	for (i = 0; i < depth; i++) {
		uint32_t usual = next_random(seed) % 32 < 31;

		function =
			program * 600 + (function * 7 + (usual ? 1 : next_random(seed) % 8)) % 600;
		leaf_first[depth - 1 - i] = (struct frame_ref){lab.object, function * 256ull, 0};
	}
	leaf_first[0].offset += next_random(seed) % 16;
	return depth;
}

TEST(realistic_sample_takes_at_most_7_bytes)
{
	struct frame_ref leaf_first[32];
	struct thread *threads[12];
	struct segment_content c = {0};
	struct segment *s;
	struct err err;
	uint32_t seed = 7, i;

	for (i = 0; i < 12; i++)
		threads[i] = thread_add(lab.processes, lab.app, 200 + i);
	for (i = 0; i < SEGMENT_MAX_SAMPLES; i++) {
		unsigned program = (i / 8 * 5 + i % 2) % 6;
		struct event e = {.time_ns = i / 2 * 10101010ull + next_random(&seed) % 200000,
				  .kind = EVENT_SAMPLE,
				  .thread = threads[program * 2 + i / 64 % 2],
				  .cpu = (uint16_t)(i % 2),
				  .value = 10101010,
				  .quality = QUALITY_FP};
		uint32_t n = realistic_stack(leaf_first, program, &seed);

		e.stack = segment_stack(lab.builder, leaf_first, n, NULL, NULL);
		assert_int_equal(segment_add(lab.builder, &e), 0);
	}
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, &err), 0);
	print_message(
		"%.1f bytes per sample in memory, %.1f encoded; %.2f nodes per sample, %u frames\n",
		(double)s->memory_bytes / s->nsamples, (double)s->nbytes / s->nsamples,
		(double)c.nnodes / s->nsamples, c.nframes);
	assert_in_range(c.nnodes, s->nsamples, s->nsamples * 3);
	assert_true(s->memory_bytes <= 7 * (size_t)s->nsamples);
	segment_content_free(&c);
	segment_unref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_truncated_prefix_is_refused),
		cmocka_unit_test(one_byte_too_many_is_refused),
		cmocka_unit_test(columns_without_planes_are_read),
		cmocka_unit_test(mutated_bytes_are_refused_or_sound),
		cmocka_unit_test(counts_without_the_bytes_for_them_allocate_nothing),
		cmocka_unit_test(another_version_is_refused_by_name),
		cmocka_unit_test(times_that_overflow_are_refused),
		cmocka_unit_test(realistic_sample_takes_at_most_7_bytes),
	};

	return cmocka_run_group_tests(tests, open_rich, close_rich);
}
