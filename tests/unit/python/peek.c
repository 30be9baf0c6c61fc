/*
 * Chains in the memory of made-up interpreters, and where their frames stand in a made-up stack.
 * Frames are at FRAMES + 128 * i, code objects at CODES + 256 * i, the C stack is at STACK.
 */
#include "base/bytes.h"
#include "base/table.h"
#include "managed/python/place.h"
#include "tests/support/test.h"

#include <string.h>

#define BASE UINT64_C(0x200000)

enum { HEAD = 0, INTERP = 64, GIL = 0x1800, TSTATE = 0x2000, PTHREAD = 0x3000, FRAMES = 0x4000,
       CODES = 0x8000, STACK = 0xc000, BYTES = 0x10000, TID = 1234 };

struct memory {
	uint8_t bytes[BYTES];
	struct managed_memory m;
	struct python_target t;
	struct python_threads threads;
	struct python_peek peek;
	unsigned calls, reads;
	unsigned moves_at;                   /* after so many reads the thread runs on; 0 = never */
};

static void put(struct memory *m, uint64_t at, uint64_t v)
{
	put_le64(m->bytes + at, v);
}

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	struct memory *m = ctx;

	if (++m->reads == m->moves_at)
		put(m, FRAMES + m->t.layout.frame_position, 1);
	if (address < BASE || address - BASE >= BYTES)
		return 0;
	if (n > BYTES - (address - BASE))
		n = (size_t)(BYTES - (address - BASE));
	memcpy(to, m->bytes + (address - BASE), n);
	return n;
}

static uint64_t frame_of(unsigned i)
{
	return BASE + FRAMES + 128 * i;
}

/* One interpreter with one thread, whose innermost frame is frame 0. */
static void set_up(struct memory *m, unsigned version)
{
	const struct python_layout *l = &m->t.layout;

	memset(m, 0, sizeof(*m));
	assert_true(python_layout_get(version, &m->t.layout));
	m->m = (struct managed_memory){.read = read_it, .ctx = m};
	m->t.pid = m->t.serial = 7;
	m->t.head = BASE + HEAD;
	put(m, HEAD, BASE + INTERP);
	put(m, INTERP + l->interp_threads, BASE + TSTATE);
	put(m, TSTATE + l->tstate_interp, BASE + INTERP);
	put(m, TSTATE + l->tstate_thread, BASE + PTHREAD);
	put_le32(m->bytes + PTHREAD + 0x2d0, TID);
	put(m, TSTATE + l->tstate_frame, frame_of(0));
}

static void put_frame(struct memory *m, unsigned i, unsigned code, uint64_t back)
{
	const struct python_layout *l = &m->t.layout;
	uint64_t at = FRAMES + 128 * i;

	put(m, at + l->frame_code, BASE + CODES + 256 * code);
	put(m, at + l->frame_back, back);
	if (python_has_anchors(l))
		put(m, at + l->frame_position, BASE + CODES + 256 * code + l->code_bytes + 4 * i);
	else
		put_le32(m->bytes + at + l->frame_position, i);
}

static void put_shim(struct memory *m, uint64_t at, uint64_t back)
{
	put(m, at + m->t.layout.frame_back, back);
	m->bytes[at + m->t.layout.frame_owner] = 3;
}

static enum python_peeked peek(struct memory *m)
{
	struct python_thread *thread;
	bool searched;

	thread = python_find_thread(&m->t, &m->m, TID, &m->threads, false, &searched);
	python_peek(&m->t, &m->m, thread, &m->threads, &m->peek);
	return m->peek.status;
}

static uint64_t code_at(const struct memory *m, unsigned i)
{
	return (m->peek.spots[i].code - BASE - CODES) / 256;
}

/* Two calls of the evaluator: frames 0 and 1, and frame 2, as 3.12 has them. */
static void put_two_groups(struct memory *m)
{
	set_up(m, PYTHON_VERSION(3, 12));
	put(m, TSTATE + m->t.layout.tstate_frame, BASE + STACK + 0x100);    /* a cframe */
	put(m, STACK + 0x100, frame_of(0));
	put_frame(m, 0, 1, frame_of(1));
	put_frame(m, 1, 2, BASE + STACK + 0x200);
	put_shim(m, STACK + 0x200, frame_of(2));
	put_frame(m, 2, 3, BASE + STACK + 0x800);
	put_shim(m, STACK + 0x800, 0);
}

TEST(a_chain_of_objects_is_read_to_its_end)
{
	struct memory m;

	set_up(&m, PYTHON_VERSION(3, 10));
	put_frame(&m, 0, 5, frame_of(1));
	put_frame(&m, 1, 6, 0);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(m.peek.n, 2);
	assert_int_equal(code_at(&m, 0), 5);
	assert_int_equal(code_at(&m, 1), 6);
	assert_int_equal(m.peek.spots[1].position, 2);      /* in units of 2 bytes */
	assert_true(m.peek.spots[0].last && m.peek.spots[1].last);
}

/* What is read first is where the chain was the last time, which says nothing of where it is. */
TEST(a_chain_that_went_elsewhere_is_read_there)
{
	struct memory m;

	put_two_groups(&m);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(m.peek.n, 3);
	/* Another page of frames, another cframe; the ones before are still there. */
	put(&m, TSTATE + m.t.layout.tstate_frame, BASE + STACK + 0x300);
	put(&m, STACK + 0x300, frame_of(40));
	put_frame(&m, 40, 9, BASE + STACK + 0x800);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(m.peek.n, 1);
	assert_int_equal(code_at(&m, 0), 9);
	/* The page of the last time cannot be read any more. */
	m.threads.threads[hash_pair(7, TID) % PYTHON_THREADS_CACHED].pages[0] = 4096;
	m.threads.threads[hash_pair(7, TID) % PYTHON_THREADS_CACHED].cframes[0] = 4096;
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(code_at(&m, 0), 9);
}

TEST(a_shim_ends_a_call_of_the_evaluator)
{
	struct memory m;

	put_two_groups(&m);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(m.peek.n, 3);
	assert_false(m.peek.spots[0].last);
	assert_true(m.peek.spots[1].anchor == BASE + STACK + 0x200);
	assert_true(m.peek.spots[2].anchor == BASE + STACK + 0x800);
	assert_int_equal(m.peek.spots[2].position, 8);
}

TEST(a_cframe_of_3_11_is_the_anchor_of_its_frames)
{
	struct memory m;
	const struct python_layout *l = &m.t.layout;

	set_up(&m, PYTHON_VERSION(3, 11));
	put(&m, TSTATE + l->tstate_frame, BASE + STACK + 0x100);
	put(&m, STACK + 0x100 + l->cframe_current, frame_of(0));
	put(&m, STACK + 0x100 + l->cframe_previous, BASE + STACK + 0x300);
	put(&m, STACK + 0x300 + l->cframe_current, frame_of(1));
	put(&m, STACK + 0x300 + l->cframe_previous, BASE + TSTATE + l->root_cframe);
	put_frame(&m, 0, 1, frame_of(1));
	put_frame(&m, 1, 2, 0);
	m.bytes[FRAMES + l->frame_owner] = m.bytes[FRAMES + 128 + l->frame_owner] = 1;
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_true(m.peek.spots[0].anchor == BASE + STACK + 0x100);
	assert_true(m.peek.spots[1].anchor == BASE + STACK + 0x300);
	/* A cframe that speaks of another frame is not believed. */
	put(&m, STACK + 0x300 + l->cframe_current, frame_of(3));
	assert_int_equal(peek(&m), PEEKED_CUT);
	assert_int_equal(m.peek.n, 1);
}

static void read_pieces(void *ctx, struct managed_piece *pieces, size_t n)
{
	struct memory *m = ctx;
	size_t i;

	for (i = 0; i < n; i++)
		pieces[i].got = read_it(m, pieces[i].address, pieces[i].to, pieces[i].n);
	m->calls++;
}

/* Two calls of the evaluator, as 3.11 has them; both functions have texts. */
static void put_two_entries(struct memory *m)
{
	const struct python_layout *l = &m->t.layout;
	unsigned i;

	set_up(m, PYTHON_VERSION(3, 11));
	m->m.read_pieces = read_pieces;
	put(m, TSTATE + l->tstate_frame, BASE + STACK + 0x100);
	for (i = 0; i < 2; i++) {
		uint64_t cframe = STACK + 0x100 * (i + 1), code = CODES + 256 * (i + 1);

		put(m, cframe + l->cframe_current, frame_of(i));
		put(m, cframe + l->cframe_previous, i ? BASE + TSTATE + l->root_cframe
						      : BASE + cframe + 0x100);
		put_frame(m, i, i + 1, i ? 0 : frame_of(1));
		m->bytes[FRAMES + 128 * i + l->frame_owner] = 1;
		put(m, code + l->code_file, BASE + CODES + 0x1000);
		put(m, code + l->code_name, BASE + CODES + 0x1000 + 256 * (i + 1));
	}
}

TEST(a_chain_that_is_where_it_was_takes_two_calls)
{
	uint64_t code = BASE + CODES + 256, stamp;
	struct memory m;

	put_two_entries(&m);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(m.peek.n, 2);
	stamp = m.peek.spots[0].stamp;
	m.calls = m.reads = 0;
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_int_equal(m.calls, 2);
	/* state, page, 2 cframes; 2 objects, 4 texts, 3 words that tell whether it ran */
	assert_int_equal(m.reads, 4 + 2 + 4 + 3);
	assert_int_equal(m.peek.n, 2);
	assert_true(m.peek.spots[0].stamp == stamp);
	/* Another function is at its address: the old texts are not its own. */
	put(&m, CODES + 256 + m.t.layout.code_name, BASE + CODES + 0x1800);
	put(&m, CODES + 0x1800 + 16, 3);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_true(m.peek.spots[0].stamp != stamp);
	python_stamps(&m.t.layout, &m.m, &code, 1, &stamp);
	assert_true(m.peek.spots[0].stamp == stamp);
}

TEST(a_thread_that_ran_meanwhile_gives_nothing)
{
	struct memory m;
	unsigned last;

	put_two_groups(&m);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	last = m.reads;
	m.reads = 0;
	put_two_groups(&m);
	m.moves_at = last - 2;               /* the last reads look whether it did */
	assert_int_equal(peek(&m), PEEKED_MOVED);
	assert_int_equal(m.peek.n, 0);
}

TEST(a_thread_has_the_lock_that_is_locked_and_names_its_state)
{
	struct memory m;

	put_two_groups(&m);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_false(m.peek.has_gil);                       /* nobody knows where the lock is */
	m.t.gil = BASE + GIL;
	put(&m, GIL + PYTHON_GIL_HOLDER, BASE + TSTATE);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_false(m.peek.has_gil);                       /* it held it last */
	put_le32(m.bytes + GIL + PYTHON_GIL_LOCKED, 1);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_true(m.peek.has_gil);
	put(&m, GIL + PYTHON_GIL_HOLDER, BASE + TSTATE + 512);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_false(m.peek.has_gil);
	m.t.gil = BASE + BYTES;                             /* unreadable */
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	assert_false(m.peek.has_gil);
}

TEST(cycles_and_wild_pointers_end)
{
	struct memory m;

	set_up(&m, PYTHON_VERSION(3, 9));
	put_frame(&m, 0, 1, frame_of(1));
	put_frame(&m, 1, 2, frame_of(0));
	assert_int_equal(peek(&m), PEEKED_CUT);
	assert_in_range(m.peek.n, 2, PYTHON_CALLS_MAX);
	put_two_groups(&m);
	put_frame(&m, 1, 2, frame_of(0));
	assert_int_equal(peek(&m), PEEKED_CUT);
	put_frame(&m, 1, 2, UINT64_C(0xdead0000));
	assert_int_equal(peek(&m), PEEKED_CUT);
	put(&m, TSTATE + m.t.layout.tstate_next, BASE + TSTATE);    /* threads in a circle */
	memset(&m.threads, 0, sizeof(m.threads));
	assert_int_equal(peek(&m), PEEKED_CUT);
}

TEST(a_state_that_is_another_threads_by_now_is_searched_again)
{
	struct python_thread *thread;
	struct memory m;
	bool searched;

	put_two_groups(&m);
	assert_int_equal(peek(&m), PEEKED_WHOLE);
	put(&m, TSTATE + m.t.layout.tstate_thread, BASE + PTHREAD + 64);
	assert_int_equal(peek(&m), PEEKED_OTHER);
	assert_int_equal(m.peek.n, 0);
	thread = python_find_thread(&m.t, &m.m, TID, &m.threads, true, &searched);
	assert_true(searched);
	assert_int_equal(thread->n, 0);
}

TEST(a_thread_without_python_is_not_searched_at_each_sample)
{
	struct python_thread *thread;
	struct memory m;
	unsigned i, n = 0;
	bool searched;

	set_up(&m, PYTHON_VERSION(3, 13 - 1));
	put(&m, TSTATE + m.t.layout.tstate_frame, BASE + STACK);    /* a cframe without frame */
	for (i = 0; i < 64; i++) {
		thread = python_find_thread(&m.t, &m.m, TID, &m.threads, false, &searched);
		python_peek(&m.t, &m.m, thread, &m.threads, &m.peek);
		assert_int_equal(m.peek.status, PEEKED_NOTHING);
		n += searched;
	}
	assert_in_range(n, 4, 12);
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Native frames 0 to 5 end at 0x100, 0x200, ... of the stack, after one kernel frame. */
static void make_stack(struct unwind_stack *s, struct unwind_pair pairs[5])
{
	unsigned i;

	memset(s, 0, sizeof(*s));
	s->nframes = 7;
	for (i = 0; i < 7; i++)
		s->frames[i].offset = i;
	for (i = 0; i < 5; i++)
		pairs[i] = (struct unwind_pair){.cfa = 0x1000 + 0x100 * (i + 1), .ip = 0x5000 + i};
	s->pairs = pairs;
	s->npairs = 5;
	s->nuser_at = 1;
	s->sp = 0x1000;
	s->quality = QUALITY_COMPLETE;
}

static void make_peek(struct python_peek *p, struct frame_ref *refs, const uint64_t *anchors,
		      unsigned n)
{
	unsigned i;

	memset(p, 0, sizeof(*p));
	p->n = n;
	for (i = 0; i < n; i++) {
		p->spots[i].anchor = anchors[i];
		p->spots[i].last = anchors[i] != 0;
		refs[i] = (struct frame_ref){.offset = 100 + i};
	}
}

static void assert_order(const struct unwind_stack *s, const unsigned *wanted, unsigned n)
{
	unsigned i;

	assert_int_equal(s->nframes, n);
	for (i = 0; i < n; i++)
		assert_int_equal(s->frames[i].offset, wanted[i]);
}

TEST(frames_stand_before_the_native_frame_that_has_their_anchor)
{
	static const uint64_t anchors[] = {0, 0x1180, 0x1400};
	static const unsigned wanted[] = {0, 1, 100, 101, 2, 3, 4, 102, 5, 6};
	struct python_layout l = {.version = PYTHON_VERSION(3, 12)};
	struct frame_ref refs[3];
	struct unwind_pair pairs[5];
	struct unwind_stack s;
	struct python_peek p;

	make_stack(&s, pairs);
	make_peek(&p, refs, anchors, 3);
	assert_true(python_place(&l, NULL, &p, refs, &s));
	assert_order(&s, wanted, 10);
}

TEST(anchors_that_fall_or_lie_outside_place_nothing)
{
	static const uint64_t falling[] = {0x1400, 0x1180}, outside[] = {0x1180, 0x9000},
			      below[] = {0x800, 0x1180};
	struct python_layout l = {.version = PYTHON_VERSION(3, 12)};
	struct frame_ref refs[2];
	struct unwind_pair pairs[5];
	struct unwind_stack s;
	struct python_peek p;

	make_stack(&s, pairs);
	make_peek(&p, refs, falling, 2);
	assert_false(python_place(&l, NULL, &p, refs, &s));
	make_peek(&p, refs, below, 2);
	assert_false(python_place(&l, NULL, &p, refs, &s));
	make_peek(&p, refs, outside, 2);
	assert_false(python_place(&l, NULL, &p, refs, &s));
	assert_int_equal(s.nframes, 7);
	/* Where native frames are missing, those that are called by none of them come last. */
	s.quality = QUALITY_TRUNCATED;
	assert_true(python_place(&l, NULL, &p, refs, &s));
	assert_int_equal(s.frames[8].offset, 101);
}

TEST(before_3_11_evaluators_are_counted_from_the_root)
{
	/* Callers 2 and 4 return into the evaluator; 1 more is inside its leaf. */
	static const uint64_t anchors[] = {1, 1};
	static const unsigned wanted[] = {0, 1, 2, 100, 3, 4, 101, 5, 6};
	static const struct python_evaluator evaluator = {.at = 0x7000, .bytes = 0x100};
	struct python_layout l = {.version = PYTHON_VERSION(3, 9)};
	struct frame_ref refs[2];
	struct unwind_pair pairs[5];
	struct unwind_stack s;
	struct python_peek p;

	make_stack(&s, pairs);
	pairs[1].ip = pairs[3].ip = 0x7080;
	make_peek(&p, refs, anchors, 2);
	assert_true(python_place(&l, &evaluator, &p, refs, &s));
	assert_order(&s, wanted, 9);
	make_stack(&s, pairs);
	pairs[1].ip = pairs[3].ip = 0x7080;
	s.ip = 0x7008;                       /* its prologue: there is no frame for it yet */
	assert_true(python_place(&l, &evaluator, &p, refs, &s));
	assert_order(&s, wanted, 9);
	make_stack(&s, pairs);
	pairs[1].ip = 0x7080;                /* one too few */
	s.ip = 0;
	assert_false(python_place(&l, &evaluator, &p, refs, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_of_objects_is_read_to_its_end),
		cmocka_unit_test(a_chain_that_went_elsewhere_is_read_there),
		cmocka_unit_test(a_shim_ends_a_call_of_the_evaluator),
		cmocka_unit_test(a_cframe_of_3_11_is_the_anchor_of_its_frames),
		cmocka_unit_test(a_chain_that_is_where_it_was_takes_two_calls),
		cmocka_unit_test(a_thread_that_ran_meanwhile_gives_nothing),
		cmocka_unit_test(a_thread_has_the_lock_that_is_locked_and_names_its_state),
		cmocka_unit_test(cycles_and_wild_pointers_end),
		cmocka_unit_test(a_state_that_is_another_threads_by_now_is_searched_again),
		cmocka_unit_test(a_thread_without_python_is_not_searched_at_each_sample),
		cmocka_unit_test(frames_stand_before_the_native_frame_that_has_their_anchor),
		cmocka_unit_test(anchors_that_fall_or_lie_outside_place_nothing),
		cmocka_unit_test(before_3_11_evaluators_are_counted_from_the_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
