/* The queue between a source and the merge thread: copies, wrapping, refusals, two threads. */
#include "base/os.h"
#include "model/queue.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plain event takes this much: 8 bytes of header and the struct. */
#define EVENT_BYTES (16 + sizeof(struct event))

static bool put_number(struct queue *q, uint64_t n)
{
	struct event e = {.time_ns = n, .kind = EVENT_SAMPLE, .value = (double)n};

	return queue_put(q, &e);
}

/* Takes one and says its number; UINT64_MAX when empty. */
static uint64_t take_number(struct queue *q)
{
	const struct event *e = queue_peek(q);
	uint64_t n = e ? e->time_ns : UINT64_MAX;

	if (e)
		queue_pop(q);
	return n;
}

TEST(queue_gives_events_in_order)
{
	struct queue *q = queue_new(4096);

	assert_null(queue_peek(q));
	assert_true(put_number(q, 1));
	assert_true(put_number(q, 2));
	assert_int_equal(queue_peek(q)->time_ns, 1);
	assert_int_equal(queue_peek(q)->time_ns, 1);
	assert_int_equal(take_number(q), 1);
	assert_int_equal(take_number(q), 2);
	assert_int_equal(take_number(q), UINT64_MAX);
	assert_int_equal(queue_used_bytes(q), 0);
	queue_free(q);
}

TEST(queue_copies_frames_fields_and_texts)
{
	char provider[] = "prov", name[] = "name", text[] = "text", field_name[] = "Message";
	struct frame_ref frames[2] = {{NULL, 16, 1}, {NULL, 32, 2}};
	struct event_field fields[2] = {{field_name, FIELD_TEXT, {.text = text}},
					{"Count", FIELD_INT, {.i = -5}}};
	struct event e = {.kind = EVENT_GENERIC,
			  .provider = provider,
			  .name = name,
			  .stack_frames = frames,
			  .nstack_frames = 2,
			  .fields = fields,
			  .nfields = 2};
	struct queue *q = queue_new(4096);
	const struct event *got;

	assert_true(queue_put(q, &e));
	memset(frames, 0, sizeof(frames));
	provider[0] = name[0] = text[0] = field_name[0] = 'X';
	memset(fields, 0, sizeof(fields));
	got = queue_peek(q);
	assert_string_equal(got->provider, "prov");
	assert_string_equal(got->name, "name");
	assert_int_equal(got->stack_frames[1].offset, 32);
	assert_int_equal(got->stack_frames[1].flags, 2);
	assert_string_equal(event_field(got, "message")->v.text, "text");
	assert_int_equal(event_field(got, "COUNT")->v.i, -5);
	queue_free(q);
}

static struct event with_stack(const struct frame_ref *frames, uint32_t n, uint64_t id)
{
	return (struct event){.kind = EVENT_SAMPLE, .stack_frames = frames, .nstack_frames = n,
			      .stack_id = id};
}

static size_t bytes_of(struct queue *q, const struct event *e)
{
	size_t before = queue_used_bytes(q);

	assert_true(queue_put(q, e));
	return queue_used_bytes(q) - before;
}

TEST(queue_copies_the_frames_of_a_stack_with_an_id_once)
{
	struct frame_ref frames[2] = {{NULL, 16, 1}, {NULL, 32, 2}};
	struct event e = with_stack(frames, 2, 7);
	struct queue *q = queue_new(4096);
	unsigned i;

	assert_int_equal(bytes_of(q, &e), EVENT_BYTES + sizeof(frames));
	assert_int_equal(bytes_of(q, &e), EVENT_BYTES);
	memset(frames, 0, sizeof(frames));
	for (i = 0; i < 3; i++) {
		assert_int_equal(queue_peek(q)->nstack_frames, 2);
		assert_int_equal(queue_peek(q)->stack_frames[0].offset, 16);
		assert_int_equal(queue_peek(q)->stack_frames[1].offset, 32);
		assert_int_equal(queue_peek(q)->stack_id, 7);
		if (!i)
			assert_int_equal(bytes_of(q, &e), EVENT_BYTES);
		queue_pop(q);
	}
	queue_free(q);
}

/* Ids that differ by 128 share a place. */
TEST(queue_copies_a_stack_again_that_another_one_displaced)
{
	struct frame_ref one = {NULL, 1, 0}, other = {NULL, 2, 0};
	struct event a = with_stack(&one, 1, 3), b = with_stack(&other, 1, 3 + 128);
	struct queue *q = queue_new(65536);
	unsigned i;

	for (i = 0; i < 5; i++) {
		assert_int_equal(bytes_of(q, &a), EVENT_BYTES + sizeof(one));
		assert_int_equal(bytes_of(q, &b), EVENT_BYTES + sizeof(one));
		assert_int_equal(bytes_of(q, &b), EVENT_BYTES);
	}
	for (i = 0; i < 15; i++) {
		assert_int_equal(queue_peek(q)->stack_frames->offset, i % 3 ? 2 : 1);
		queue_pop(q);
	}
	queue_free(q);
}

TEST(queue_copies_the_frames_of_a_stack_that_it_refused)
{
	struct frame_ref frame = {NULL, 5, 0};
	struct event e = with_stack(&frame, 1, 9);
	struct queue *q = queue_new(4096);

	while (put_number(q, 1))
		;
	assert_false(queue_put(q, &e));
	while (take_number(q) != UINT64_MAX)
		;
	assert_true(queue_put(q, &e));
	assert_int_equal(queue_peek(q)->stack_frames->offset, 5);
	queue_free(q);
}

TEST(queue_copies_a_stack_that_is_too_deep_to_be_kept_each_time)
{
	struct frame_ref frames[129] = {{NULL, 16, 1}};
	struct event e = with_stack(frames, 129, 7);
	struct queue *q = queue_new(65536);

	assert_int_equal(bytes_of(q, &e), EVENT_BYTES + sizeof(frames));
	assert_int_equal(bytes_of(q, &e), EVENT_BYTES + sizeof(frames));
	assert_int_equal(queue_peek(q)->stack_id, 0);
	assert_int_equal(queue_peek(q)->stack_frames->offset, 16);
	queue_free(q);
}

static void is_next(struct queue *q, enum event_kind kind, uint32_t nframes, uint64_t leaf)
{
	const struct event *e = queue_peek(q);

	assert_int_equal(e->kind, kind);
	assert_int_equal(e->nfields, kind != EVENT_SAMPLE);
	assert_int_equal(e->value, kind == EVENT_SAMPLE ? 1 : 5);
	assert_int_equal(e->nstack_frames, nframes);
	assert_int_equal(e->stack_frames[0].offset, leaf);
	queue_pop(q);
}

/* The stack of the first is kept; that of the second is too deep. A refused one counts as two. */
TEST(queue_gives_an_event_and_then_the_sample_that_follows_from_it)
{
	struct frame_ref frames[130] = {{NULL, 16, 0}, {NULL, 17, 0}};
	struct event_field field = {.name = "n", .type = FIELD_INT};
	struct event e = {.kind = EVENT_GENERIC, .fields = &field, .nfields = 1, .value = 5,
			  .stack_frames = frames + 1, .stack_id = 7, .sample_id = 8};
	struct queue *q = queue_new(16384);
	unsigned i;

	for (e.nstack_frames = 1; e.nstack_frames < 130; e.nstack_frames += 128) {
		assert_true(queue_put(q, &e) && queue_put(q, &e));
		for (i = 0; i < 2; i++) {
			is_next(q, EVENT_GENERIC, e.nstack_frames, 17);
			is_next(q, EVENT_SAMPLE, e.nstack_frames + 1, 16);
		}
	}
	assert_null(queue_peek(q));
	for (e.nstack_frames = 1; queue_put(q, &e);)
		;
	assert_int_equal(queue_lost(q), 2);
	queue_free(q);
}

TEST(queue_does_not_copy_names_that_stay)
{
	static const char provider[] = "prov", name[] = "name", field_name[] = "Message";
	char text[] = "text";
	struct event_field field = {field_name, FIELD_TEXT, {.text = text}};
	struct event e = {.kind = EVENT_GENERIC, .provider = provider, .name = name,
			  .names_stay = true, .fields = &field, .nfields = 1};
	struct queue *q = queue_new(4096);

	assert_int_equal(bytes_of(q, &e), EVENT_BYTES + sizeof(field) + 8);
	text[0] = 'X';
	assert_ptr_equal(queue_peek(q)->provider, provider);
	assert_ptr_equal(queue_peek(q)->name, name);
	assert_ptr_equal(queue_peek(q)->fields->name, field_name);
	assert_string_equal(queue_peek(q)->fields->v.text, "text");
	queue_free(q);
}

TEST(queue_keeps_absent_texts_and_fields_get_empty_ones)
{
	struct event_field field = {NULL, FIELD_TEXT, {.text = NULL}};
	struct event e = {.kind = EVENT_LOG, .fields = &field, .nfields = 1};
	struct queue *q = queue_new(4096);

	assert_true(queue_put(q, &e));
	assert_null(queue_peek(q)->provider);
	assert_null(queue_peek(q)->name);
	assert_string_equal(queue_peek(q)->fields[0].name, "");
	assert_string_equal(queue_peek(q)->fields[0].v.text, "");
	queue_free(q);
}

TEST(queue_cuts_long_texts)
{
	char text[EVENT_MAX_TEXT + 100];
	struct event_field field = {"Message", FIELD_TEXT, {.text = text}};
	struct event e = {.kind = EVENT_LOG, .name = text, .fields = &field, .nfields = 1};
	struct queue *q = queue_new(65536);

	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_true(queue_put(q, &e));
	assert_int_equal(strlen(queue_peek(q)->name), EVENT_MAX_TEXT);
	assert_int_equal(strlen(queue_peek(q)->fields[0].v.text), EVENT_MAX_TEXT);
	queue_free(q);
}

TEST(queue_refuses_when_full_counts_and_goes_on)
{
	struct queue *q = queue_new(4096);
	uint64_t fits = 4096 / EVENT_BYTES, n;

	for (n = 0; n < fits; n++)
		assert_true(put_number(q, n));
	assert_false(put_number(q, 100));
	assert_false(put_number(q, 101));
	assert_int_equal(queue_lost(q), 2);
	assert_int_equal(queue_used_bytes(q), fits * EVENT_BYTES);
	for (n = 0; n < fits; n++)
		assert_int_equal(take_number(q), n);
	assert_true(put_number(q, 102));
	assert_int_equal(take_number(q), 102);
	assert_int_equal(queue_lost(q), 2);
	queue_free(q);
}

/* Sizes that do not divide 4,096: the end of the ring is skipped again and again. */
TEST(queue_wraps_and_skips_its_end)
{
	static char texts[3][301];
	struct queue *q = queue_new(4096);
	struct event e = {.kind = EVENT_LOG};
	uint64_t n;

	memset(texts[0], 'a', 10);
	memset(texts[1], 'b', 125);
	memset(texts[2], 'c', 300);
	for (n = 0; n < 5000; n++) {
		e.time_ns = n;
		e.name = texts[n % 3];
		assert_true(queue_put(q, &e));
		if (n < 3)
			continue;
		assert_int_equal(queue_peek(q)->time_ns, n - 3);
		assert_string_equal(queue_peek(q)->name, texts[(n - 3) % 3]);
		queue_pop(q);
	}
	assert_int_equal(queue_lost(q), 0);
	queue_free(q);
}

/* As long as the consumer keeps up, no more of the memory is touched. */
TEST(queue_that_is_mostly_empty_stays_in_a_quarter_of_its_memory)
{
	struct queue *q = queue_new(65536);
	const char *first = NULL, *at;
	uint64_t n;

	for (n = 0; n < 10000; n++) {
		assert_true(put_number(q, n));
		assert_int_equal(queue_used_bytes(q), EVENT_BYTES);
		at = (const char *)queue_peek(q);
		first = first ? first : at;
		assert_true(at >= first && (size_t)(at - first) < 65536 / 4 + EVENT_BYTES);
		assert_int_equal(take_number(q), n);
		assert_int_equal(queue_used_bytes(q), 0);
	}
	for (n = 0; n < 65536 / EVENT_BYTES / 2; n++)
		assert_true(put_number(q, n));       /* and there is room all the same */
	queue_free(q);
}

/* The same of a large one whose records come in bursts, with a watermark between. */
TEST(large_queue_that_bursts_pass_stays_in_a_quarter_of_its_memory)
{
	struct queue *q = queue_new(QUEUE_BYTES);
	const char *first = NULL, *at;
	uint64_t n, i;

	for (n = 0; n < 200000; n += 1000) {
		queue_watermark(q, n + 1);
		for (i = 0; i < 1000; i++)
			assert_true(put_number(q, n + i));
		for (i = 0; i < 1000; i++) {
			at = (const char *)queue_peek(q);
			first = first ? first : at;
			assert_true(at >= first && (size_t)(at - first) <
							   QUEUE_BYTES / 4 + 1000 * EVENT_BYTES);
			assert_int_equal(take_number(q), n + i);
		}
		assert_null(queue_peek(q));
		assert_int_equal(queue_used_bytes(q), 0);
	}
	queue_free(q);
}

/* 64 MB, all of it touched: some 16 MB stay, whether the queue is ever empty or not. */
TEST(what_a_burst_filled_goes_back_once_it_is_over)
{
	struct queue *q = queue_new((size_t)64 << 20);
	uint64_t cpu_ns, full_bytes, after_bytes, n = 0, i;

	while (put_number(q, n))
		n++;
	os_self_usage(&cpu_ns, &full_bytes);
	for (i = 0; i < n - 10; i++)
		assert_int_equal(take_number(q), i);
	assert_true(put_number(q, n));
	os_self_usage(&cpu_ns, &after_bytes);
	assert_in_range(full_bytes - after_bytes, (uint64_t)40 << 20, (uint64_t)64 << 20);
	for (i = n; i < 4 * n; i++) {        /* and what is put is there, wherever that was */
		assert_int_equal(take_number(q), i - 10);
		assert_true(put_number(q, i + 1));
	}
	queue_free(q);
}

/* A record of half the ring fits into an empty one, wherever its head stands. */
TEST(queue_takes_half_of_its_size_wherever_it_stands)
{
	char text[2048 - EVENT_BYTES];
	struct event e = {.kind = EVENT_LOG, .name = text};
	struct queue *q = queue_new(4096);
	unsigned i, before;

	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < 40; i++) {
		for (before = 0; before < i; before++) {
			assert_true(put_number(q, i));
			assert_int_equal(take_number(q), i);
		}
		assert_true(queue_put(q, &e));
		assert_int_equal(strlen(queue_peek(q)->name), sizeof(text) - 1);
		queue_pop(q);
	}
	assert_int_equal(queue_lost(q), 0);
	queue_free(q);
}

/* A file's source waits until an event fits: being refused is no loss then. */
TEST(queue_that_refuses_an_offer_counts_no_loss)
{
	struct event e = {.kind = EVENT_LOG};
	struct queue *q = queue_new(4096);

	while (queue_offer(q, &e))
		;
	assert_int_equal(queue_used_bytes(q), 4096 / EVENT_BYTES * EVENT_BYTES);
	assert_int_equal(queue_lost(q), 0);
	take_number(q);
	assert_true(queue_offer(q, &e));
	queue_free(q);
}

TEST(queue_refuses_what_could_never_fit)
{
	static struct frame_ref frames[STACK_MAX_FRAMES];
	struct event e = {.stack_frames = frames, .nstack_frames = STACK_MAX_FRAMES};
	struct queue *q = queue_new(4096);

	assert_false(queue_offer(q, &e));
	assert_int_equal(queue_lost(q), 0);          /* who offers waits: nothing is lost */
	assert_false(queue_put(q, &e));
	assert_int_equal(queue_lost(q), 1);
	assert_null(queue_peek(q));
	queue_free(q);
}

TEST(queue_watermark_never_moves_back)
{
	struct queue *q = queue_new(4096);

	assert_int_equal(queue_released(q, 0), 0);
	queue_watermark(q, 50);
	queue_watermark(q, 40);
	assert_int_equal(queue_released(q, 0), 50);
	queue_finish(q);
	assert_true(queue_released(q, 0) == UINT64_MAX);
	queue_watermark(q, 60);
	assert_true(queue_released(q, 0) == UINT64_MAX);
	queue_free(q);
}

/* What the oldest event that waits is about must not be swept, wherever it stands. */
TEST(an_older_event_behind_a_newer_one_is_not_taken_for_consumed)
{
	struct queue *q = queue_new(4096);
	struct event count = {.time_ns = 90, .kind = EVENT_COUNTER};
	struct event old = {.time_ns = 50, .kind = EVENT_GENERIC};

	queue_watermark(q, 40);
	assert_true(queue_put(q, &count));
	assert_true(queue_put(q, &old));
	queue_watermark(q, 100);
	assert_int_equal(queue_consumed(q, 0), 40);
	queue_finish(q);
	assert_int_equal(queue_consumed(q, 0), 40);
	queue_pop(q);
	assert_int_equal(queue_consumed(q, 0), 40);
	queue_pop(q);
	assert_int_equal(queue_consumed(q, 0), UINT64_MAX);
	queue_free(q);
}

TEST(a_rest_moves_the_watermark_with_the_clock)
{
	struct queue *q = queue_new(4096);

	queue_watermark(q, 50);
	queue_rest(q, 9);
	assert_int_equal(queue_released(q, 55), 50);         /* 55 - 9 is less */
	assert_int_equal(queue_released(q, 100), 90);        /* what has 91 may still come */
	queue_resume(q, 120);
	assert_int_equal(queue_released(q, 200), 110);  /* it ended at 120, and no longer follows */
	assert_true(put_number(q, 111));
	queue_watermark(q, 115);
	queue_resume(q, 300);                                /* there is none */
	assert_int_equal(queue_released(q, 300), 115);
	queue_rest(q, 0);
	queue_finish(q);
	assert_true(queue_released(q, 400) == UINT64_MAX);
	queue_free(q);
}

TEST(a_rest_longer_than_the_clock_releases_nothing)
{
	struct queue *q = queue_new(4096);

	queue_rest(q, 1000);
	assert_int_equal(queue_released(q, 999), 0);
	queue_resume(q, 999);
	assert_int_equal(queue_released(q, 999), 0);
	queue_free(q);
}

struct sleeper {
	struct os_mutex *lock;
	struct os_cond *wake;
	bool asleep;
};

static void sleep_for_a_minute(void *ctx)
{
	struct sleeper *s = ctx;

	os_mutex_lock(s->lock);
	s->asleep = true;
	os_cond_wait(s->wake, s->lock, 60 * NS_PER_SEC);
	os_mutex_unlock(s->lock);
}

static void fill_a_quarter(struct queue *q)
{
	uint64_t n = 1024 / EVENT_BYTES + 2;

	while (n--)
		assert_true(put_number(q, n));
}

static void begin_to_deliver(struct queue *q)
{
	queue_watermark(q, 1);
}

static void assert_wakes(void (*produce)(struct queue *q))
{
	struct sleeper s = {.lock = os_mutex_new(), .wake = os_cond_new()};
	struct queue *q = queue_new(4096);
	uint64_t before = os_now_ns();
	struct os_thread *thread;
	bool asleep = false;

	queue_wakes(q, s.wake);
	assert_int_equal(os_thread_start("sleeper", sleep_for_a_minute, &s, &thread, NULL), 0);
	while (!asleep) {
		os_mutex_lock(s.lock);
		asleep = s.asleep;           /* then it waits: it has given the lock away */
		os_mutex_unlock(s.lock);
	}
	produce(q);
	os_thread_join(thread);
	assert_true(os_now_ns() - before < 30 * NS_PER_SEC);
	queue_free(q);
	os_cond_free(s.wake);
	os_mutex_free(s.lock);
}

TEST(a_queue_over_a_quarter_full_wakes_who_takes)
{
	assert_wakes(fill_a_quarter);
}

TEST(the_first_watermark_wakes_who_takes)
{
	assert_wakes(begin_to_deliver);
}

/* ---- two threads: the writer never waits, the reader takes its time -------------------------- */

#define ENOUGH 20000u                   /* events that the reader takes before the writer ends */

struct pair {
	struct queue *q;
	_Atomic uint64_t put, taken;
};

static void write_numbers(void *ctx)
{
	struct pair *pair = ctx;
	struct frame_ref frames[3];
	struct event e = {.kind = EVENT_SAMPLE, .stack_frames = frames, .name = "sample"};

	while (atomic_load(&pair->taken) < ENOUGH) {
		uint64_t n = atomic_fetch_add(&pair->put, 1) + 1;

		e.time_ns = n;
		e.nstack_frames = n % 4;
		frames[0].offset = frames[1].offset = frames[2].offset = n;
		queue_put(pair->q, &e);
		queue_watermark(pair->q, n);
	}
	queue_finish(pair->q);
}

/* Fails when one is torn or out of order. */
static void read_numbers(struct pair *pair)
{
	uint64_t last = 0, released;
	const struct event *e;
	uint32_t i;

	do {
		released = queue_released(pair->q, 0);
		while ((e = queue_peek(pair->q)) != NULL) {
			assert_true(e->time_ns > last);
			last = e->time_ns;
			assert_int_equal(e->nstack_frames, last % 4);
			assert_string_equal(e->name, "sample");
			for (i = 0; i < e->nstack_frames; i++)
				assert_int_equal(e->stack_frames[i].offset, last);
			queue_pop(pair->q);
			atomic_fetch_add(&pair->taken, 1);
		}
	} while (released != UINT64_MAX);
}

TEST(queue_of_a_writer_faster_than_its_reader_tears_nothing)
{
	struct pair pair = {.q = queue_new(8192)};
	struct os_thread *writer;

	assert_int_equal(os_thread_start("writer", write_numbers, &pair, &writer, NULL), 0);
	/* The reader starts late, so that the queue has been full for certain. */
	while (!queue_lost(pair.q) && queue_released(pair.q, 0) != UINT64_MAX)
		os_sleep_ns(1000);
	read_numbers(&pair);
	os_thread_join(writer);
	print_message("taken %u, refused %u\n", (unsigned)pair.taken, (unsigned)queue_lost(pair.q));
	assert_int_equal(pair.taken + queue_lost(pair.q), pair.put);
	assert_true(queue_lost(pair.q) > 0);
	queue_free(pair.q);
}

/* From 1 to 256, two for each place: some come again at once, some displace others. */
static uint64_t id_of(uint64_t n)
{
	return 1 + (n % 3 ? n % 8 : n % 256);
}

static void write_stacks(void *ctx)
{
	struct frame_ref frames[2] = {{NULL, 0, 0}};
	struct event e = {.kind = EVENT_SAMPLE, .stack_frames = frames, .nstack_frames = 2};
	uint64_t n;

	for (n = 1; n <= ENOUGH; n++) {
		e.time_ns = n;
		e.stack_id = frames[0].offset = frames[1].offset = id_of(n);
		while (!queue_offer(ctx, &e))
			os_sleep_ns(1000);
	}
	queue_finish(ctx);
}

TEST(a_reader_sees_the_frames_of_each_stack_that_comes_again)
{
	struct queue *q = queue_new(8192);
	struct os_thread *writer;
	const struct event *e;
	uint64_t n = 0;

	assert_int_equal(os_thread_start("writer", write_stacks, q, &writer, NULL), 0);
	while (n < ENOUGH) {
		e = queue_peek(q);
		if (!e)
			continue;
		assert_int_equal(e->time_ns, ++n);
		assert_int_equal(e->stack_id, id_of(n));
		assert_int_equal(e->stack_frames[0].offset, id_of(n));
		assert_int_equal(e->stack_frames[1].offset, id_of(n));
		queue_pop(q);
	}
	os_thread_join(writer);
	queue_free(q);
}

/* What was put before a watermark is seen by whoever sees the watermark. */
static bool marked_events_are_there(struct queue *q)
{
	uint64_t released, n = 0;

	while ((released = queue_released(q, 0)) != UINT64_MAX) {
		for (; n < released; n++) {
			if (take_number(q) != n + 1)
				return false;
		}
	}
	return true;
}

static void put_then_mark(void *ctx)
{
	uint64_t n;

	for (n = 1; n <= 20000; n++) {
		while (!put_number(ctx, n))
			os_sleep_ns(1000);
		queue_watermark(ctx, n);
	}
	queue_finish(ctx);
}

TEST(queue_events_are_there_before_their_watermark)
{
	struct queue *q = queue_new(1 << 16);
	struct os_thread *writer;

	assert_int_equal(os_thread_start("writer", put_then_mark, q, &writer, NULL), 0);
	assert_true(marked_events_are_there(q));
	os_thread_join(writer);
	queue_free(q);
}

/* A clock that both threads read, and move: each moment of it is one of theirs. */
struct resting {
	struct queue *q;
	_Atomic uint64_t clock;
};

#define LAG 7u

static void rest_and_put(void *ctx)
{
	struct resting *r = ctx;
	unsigned i;

	for (i = 0; i < 20000; i++) {
		queue_rest(r->q, LAG);
		if (i % 16 == 0)
			os_sleep_ns(1000);
		queue_resume(r->q, atomic_load(&r->clock));
		while (!put_number(r->q, atomic_fetch_add(&r->clock, 1) + 1))
			os_sleep_ns(1000);
	}
	queue_finish(r->q);
}

TEST(nothing_older_follows_what_a_rest_released)
{
	struct resting r = {.q = queue_new(1 << 16), .clock = 100};
	uint64_t released = 0, now, seen, n, late = 0, taken = 0;
	struct os_thread *producer;

	assert_int_equal(os_thread_start("producer", rest_and_put, &r, &producer, NULL), 0);
	while (released != UINT64_MAX) {
		now = atomic_fetch_add(&r.clock, 1) + 1;
		seen = queue_released(r.q, now);
		while ((n = take_number(r.q)) != UINT64_MAX) {
			late += n < released;     /* than what was told before this one was there */
			taken++;
			if (n > seen)
				break;
		}
		released = seen > released ? seen : released;
	}
	while (take_number(r.q) != UINT64_MAX)
		taken++;
	os_thread_join(producer);
	assert_int_equal(late, 0);
	assert_int_equal(taken, 20000);
	queue_free(r.q);
}

static int new_step(void *ctx)
{
	struct queue *q = queue_new(4096);

	(void)ctx;
	queue_free(q);
	return q ? 0 : ERR_MEMORY;
}

TEST(queue_without_memory_is_none_and_putting_takes_none)
{
	struct queue *q;

	assert_int_equal(alloc_walk(new_step, NULL), 3);
	q = queue_new(4096);
	alloc_walk_fail_at(0);
	assert_true(put_number(q, 1));
	assert_int_equal(take_number(q), 1);
	assert_int_equal(alloc_walk_count(), 0);
	queue_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_gives_events_in_order),
		cmocka_unit_test(queue_copies_frames_fields_and_texts),
		cmocka_unit_test(queue_copies_the_frames_of_a_stack_with_an_id_once),
		cmocka_unit_test(queue_copies_a_stack_again_that_another_one_displaced),
		cmocka_unit_test(queue_copies_the_frames_of_a_stack_that_it_refused),
		cmocka_unit_test(queue_copies_a_stack_that_is_too_deep_to_be_kept_each_time),
		cmocka_unit_test(queue_gives_an_event_and_then_the_sample_that_follows_from_it),
		cmocka_unit_test(queue_does_not_copy_names_that_stay),
		cmocka_unit_test(queue_keeps_absent_texts_and_fields_get_empty_ones),
		cmocka_unit_test(queue_cuts_long_texts),
		cmocka_unit_test(queue_refuses_when_full_counts_and_goes_on),
		cmocka_unit_test(queue_wraps_and_skips_its_end),
		cmocka_unit_test(queue_that_is_mostly_empty_stays_in_a_quarter_of_its_memory),
		cmocka_unit_test(large_queue_that_bursts_pass_stays_in_a_quarter_of_its_memory),
		cmocka_unit_test(what_a_burst_filled_goes_back_once_it_is_over),
		cmocka_unit_test(queue_takes_half_of_its_size_wherever_it_stands),
		cmocka_unit_test(queue_that_refuses_an_offer_counts_no_loss),
		cmocka_unit_test(queue_refuses_what_could_never_fit),
		cmocka_unit_test(queue_watermark_never_moves_back),
		cmocka_unit_test(an_older_event_behind_a_newer_one_is_not_taken_for_consumed),
		cmocka_unit_test(a_rest_moves_the_watermark_with_the_clock),
		cmocka_unit_test(a_rest_longer_than_the_clock_releases_nothing),
		cmocka_unit_test(a_queue_over_a_quarter_full_wakes_who_takes),
		cmocka_unit_test(the_first_watermark_wakes_who_takes),
		cmocka_unit_test(nothing_older_follows_what_a_rest_released),
		cmocka_unit_test(queue_of_a_writer_faster_than_its_reader_tears_nothing),
		cmocka_unit_test(a_reader_sees_the_frames_of_each_stack_that_comes_again),
		cmocka_unit_test(queue_events_are_there_before_their_watermark),
		cmocka_unit_test(queue_without_memory_is_none_and_putting_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
