#include "managed/python/peek.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/table.h"

#include <stddef.h>
#include <string.h>

#define TSTATE_BYTES 256u                    /* all of its fields that are needed */
#define FRAME_BYTES 128u
#define PAGE_BYTES 4096u
#define HEAP_BYTES (64u << 10)               /* pieces of the heap's stack of frames are apart */
#define CFRAME_BYTES 24u
#define GIL_BYTES 12u                        /* who holds the lock, and whether */
#define STAMP_BYTES 128u
#define STAMPS_TOGETHER 32u
#define GLIBC_TID 0x2d0u                     /* of struct pthread: glibc 2.31 to 2.43 */
#define OWNER_SHIM 3u                        /* and more: no Python frame */
#define NOTHING_OFTEN 4u                     /* searches in vain, before most are left out */
#define SKIPPED 15u

static bool is_pointer(uint64_t p)
{
	return p && !(p & 7) && p < (uint64_t)1 << 47;
}

static bool read_word(const struct managed_memory *m, uint64_t address, uint64_t *out)
{
	return is_pointer(address) && managed_read_u64(m, address, out);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct search {
	const struct python_target *t;
	const struct managed_memory *m;
	uint32_t tid, left;
	struct python_thread *out;
};

static bool is_of_thread(const struct search *s, const uint8_t *tstate)
{
	const struct python_layout *l = &s->t->layout;
	uint64_t id = le64(tstate + l->tstate_thread);
	uint8_t tid[4];

	if (l->tstate_native && le64(tstate + l->tstate_native) == s->tid)
		return true;
	return is_pointer(id) && managed_read(s->m, id + GLIBC_TID, tid, sizeof(tid)) &&
	       le32(tid) == s->tid;
}

static void search_interpreter(struct search *s, uint64_t interp)
{
	const struct python_layout *l = &s->t->layout;
	uint8_t bytes[TSTATE_BYTES];
	uint64_t at;

	if (!read_word(s->m, interp + l->interp_threads, &at))
		return;
	for (; is_pointer(at) && s->left; s->left--) {
		if (!managed_read(s->m, at, bytes, sizeof(bytes)) ||
		    le64(bytes + l->tstate_interp) != interp)
			return;
		if (s->out->n < PYTHON_OF_THREAD_MAX && is_of_thread(s, bytes)) {
			s->out->ids[s->out->n] = le64(bytes + l->tstate_thread);
			s->out->tstates[s->out->n++] = at;
		}
		at = le64(bytes + l->tstate_next);
	}
}

static bool first_interpreter(const struct python_target *t, const struct managed_memory *m,
			      uint64_t *interp)
{
	uint64_t tstate;

	if (t->head)
		return read_word(m, t->head, interp);
	/* Nobody may hold the lock; the one that is found need not be the first. */
	return read_word(m, t->current, &tstate) && is_pointer(tstate) &&
	       read_word(m, tstate + t->layout.tstate_interp, interp);
}

static void search(const struct python_target *t, const struct managed_memory *m, uint32_t tid,
		   struct python_thread *out)
{
	struct search s = {.t = t, .m = m, .tid = tid, .left = PYTHON_TSTATES_MAX, .out = out};
	uint32_t n = PYTHON_INTERPRETERS_MAX;
	uint64_t interp;

	out->n = 0;
	if (!first_interpreter(t, m, &interp))
		return;
	for (; is_pointer(interp) && n--;) {
		search_interpreter(&s, interp);
		if (!read_word(m, interp + t->layout.interp_next, &interp))
			return;
	}
}

struct python_thread *python_find_thread(const struct python_target *t,
					 const struct managed_memory *memory, uint32_t tid,
					 struct python_threads *cache, bool again, bool *searched)
{
	struct python_thread *e =
		&cache->threads[hash_pair(t->serial, tid) % PYTHON_THREADS_CACHED];

	*searched = false;
	if (e->serial != t->serial || e->tid != tid)
		*e = (struct python_thread){.serial = t->serial, .tid = tid};
	else if (!again && e->n && !e->nothing)
		return e;
	/* Callbacks on threads of C make a state each time, so an empty one says nothing. */
	if (!again && e->skip) {
		e->skip--;
		return e;
	}
	*searched = true;
	search(t, memory, tid, e);
	if (e->nothing >= NOTHING_OFTEN)
		e->skip = SKIPPED;
	return e;
}

uint32_t python_gil_holder(const struct python_target *t, const struct managed_memory *memory)
{
	const struct python_layout *l = &t->layout;
	uint64_t tstate, thread;
	uint8_t tid[4];

	if (!t->gil || !read_word(memory, t->gil + PYTHON_GIL_HOLDER, &tstate) ||
	    !is_pointer(tstate) || !read_word(memory, tstate + l->tstate_thread, &thread) ||
	    !is_pointer(thread) || !managed_read(memory, thread + GLIBC_TID, tid, sizeof(tid)))
		return 0;
	return le32(tid);
}

/* ---- the chain ------------------------------------------------------------------------------- */

struct chain {
	const struct python_layout *l;
	const struct managed_memory *m;
	struct python_peek *out;
	uint32_t calls;
	uint64_t tstate, cframe, frame, position;    /* where the innermost chain begins */
	struct cframe {
		uint64_t at;                 /* 0 = none was read */
		uint8_t bytes[CFRAME_BYTES];
	} cframes[PYTHON_CFRAMES];
	uint32_t ncframes;                   /* that were read */
	uint64_t used[PYTHON_CFRAMES];       /* the first ones of the chain */
	uint32_t nused;
	struct page {                        /* not cleared, but for: */
		uint64_t at;                 /* 0 = none was read */
		size_t nbytes;
		uint8_t bytes[PAGE_BYTES + FRAME_BYTES];
	} pages[PYTHON_PAGES];               /* of the heap, and of the C stack */
};

static void chain_init(struct chain *c, const struct python_layout *l,
		       const struct managed_memory *memory, struct python_peek *out)
{
	uint32_t i;

	memset(c, 0, offsetof(struct chain, pages));
	c->l = l;
	c->m = memory;
	c->out = out;
	for (i = 0; i < PYTHON_PAGES; i++)
		c->pages[i].at = 0;
}

static bool chain_read(struct chain *c, uint64_t address, void *to, size_t n)
{
	return c->calls++ < PYTHON_CALLS_MAX && managed_read(c->m, address, to, n);
}

/* A cframe's bytes; the last ones are kept. */
static const uint8_t *cframe_at(struct chain *c, uint64_t at)
{
	struct cframe *f;
	uint32_t i;

	if (!is_pointer(at))
		return NULL;
	if (c->nused < PYTHON_CFRAMES && (!c->nused || c->used[c->nused - 1] != at))
		c->used[c->nused++] = at;
	for (i = 0; i < PYTHON_CFRAMES; i++)
		if (c->cframes[i].at == at)
			return c->cframes[i].bytes;
	f = &c->cframes[c->ncframes++ % PYTHON_CFRAMES];
	f->at = 0;
	if (!chain_read(c, at, f->bytes, CFRAME_BYTES))
		return NULL;
	f->at = at;
	return f->bytes;
}

/*
 * A frame's bytes. From 3.11 on frames are close together, on the heap's stack of frames and
 * (shims) on the C stack, so the whole page is read: one of each is kept.
 */
static const uint8_t *frame_at(struct chain *c, uint64_t frame, size_t n)
{
	uint64_t start = frame & ~(uint64_t)(PAGE_BYTES - 1);
	struct page *page = c->pages;
	size_t i, nbytes = PAGE_BYTES;

	if (!is_pointer(frame))
		return NULL;
	if (!python_has_anchors(c->l))       /* each frame is an object of its own */
		return chain_read(c, frame, page->bytes, n) ? page->bytes : NULL;
	for (i = 0; i < PYTHON_PAGES; i++, page++)
		if (page->at && frame >= page->at && frame + n <= page->at + page->nbytes)
			return page->bytes + (frame - page->at);
	page = c->pages;
	if (page->at && start - page->at + HEAP_BYTES > 2 * HEAP_BYTES)
		page++;
	if (frame + n > start + nbytes)
		nbytes = (size_t)(frame + n - start);
	page->at = 0;
	page->nbytes = nbytes;
	if (!chain_read(c, start, page->bytes, nbytes))
		return NULL;
	page->at = start;
	return page->bytes + (frame - start);
}

static size_t frame_bytes(const struct python_layout *l)
{
	return python_has_anchors(l) ? 88 : FRAME_BYTES;
}

static int32_t position_of(const struct python_layout *l, const uint8_t *frame, uint64_t code)
{
	uint64_t at;
	int32_t lasti;

	if (!python_has_anchors(l)) {
		lasti = (int32_t)le32(frame + l->frame_position);
		if (lasti < 0 || lasti > INT32_MAX / 2)
			return -1;
		return l->version >= PYTHON_VERSION(3, 10) ? lasti * 2 : lasti;
	}
	at = le64(frame + l->frame_position) - (code + l->code_bytes);
	return at <= INT32_MAX ? (int32_t)at : -1;
}

/* false: it is the last one that there is room for, or makes no sense */
static bool put_spot(struct chain *c, const uint8_t *frame)
{
	struct python_peek *out = c->out;
	uint64_t code = le64(frame + c->l->frame_code);

	if (c->l->version >= PYTHON_VERSION(3, 14))
		code &= ~(uint64_t)3;
	if (!is_pointer(code) || out->n == PYTHON_FRAMES_MAX)
		return false;
	if (!out->n)
		c->position = le64(frame + c->l->frame_position);
	out->spots[out->n++] = (struct python_spot){
		.code = code, .position = position_of(c->l, frame, code)};
	return true;
}

static void end_group(struct chain *c, uint32_t first, uint64_t anchor)
{
	if (c->out->n == first)
		return;
	c->out->spots[c->out->n - 1].anchor = anchor;
	c->out->spots[c->out->n - 1].last = true;
}

/* Up to 3.10: each frame is a call of the evaluator. returns  whether the chain ends well */
static bool follow_objects(struct chain *c, uint64_t frame)
{
	const uint8_t *at;

	for (; frame; frame = le64(at + c->l->frame_back)) {
		at = frame_at(c, frame, frame_bytes(c->l));
		if (!at || !put_spot(c, at))
			return false;
		c->out->spots[c->out->n - 1].last = true;
	}
	return true;
}

/* 3.12 and later: a shim on the C stack ends a group. */
static bool follow_shims(struct chain *c, uint64_t frame)
{
	uint32_t first = c->out->n, steps;
	const uint8_t *at;

	for (steps = 0; frame && steps < 2 * PYTHON_FRAMES_MAX; steps++) {
		at = frame_at(c, frame, frame_bytes(c->l));
		if (!at)
			return false;
		if (at[c->l->frame_owner] >= OWNER_SHIM) {
			end_group(c, first, frame);
			first = c->out->n;
		} else if (!put_spot(c, at)) {
			return false;
		}
		frame = le64(at + c->l->frame_back);
	}
	return !frame && first == c->out->n;
}

/* 3.11: the frame that entered the evaluator says so, and a cframe tells where. */
static bool follow_entries(struct chain *c, uint64_t frame, uint64_t cframe, uint64_t root)
{
	const uint8_t *bytes = NULL, *at;
	uint32_t first = c->out->n;
	bool begins = true, entry;

	while (frame) {
		if (begins && (cframe == root || !(bytes = cframe_at(c, cframe)) ||
			       le64(bytes + c->l->cframe_current) != frame))
			return false;
		at = frame_at(c, frame, frame_bytes(c->l));
		if (!at || !put_spot(c, at))
			return false;
		entry = at[c->l->frame_owner] != 0;
		frame = le64(at + c->l->frame_back);
		begins = entry;
		if (!entry)
			continue;
		end_group(c, first, cframe);
		first = c->out->n;
		cframe = le64(bytes + c->l->cframe_previous);
	}
	return first == c->out->n;
}

/* returns  false: it was cut */
static bool follow(struct chain *c, uint64_t tstate, const uint8_t *bytes)
{
	const struct python_layout *l = c->l;
	uint64_t frame = le64(bytes + l->tstate_frame), cframe = frame;

	if (l->has_cframe) {
		const uint8_t *at = cframe_at(c, cframe);

		if (!at)
			return false;
		frame = le64(at + l->cframe_current);
	}
	if (!c->out->n) {
		c->tstate = tstate;
		c->cframe = cframe;
		c->frame = frame;
	}
	if (!frame)
		return true;
	if (!python_has_anchors(l))
		return follow_objects(c, frame);
	if (python_has_shims(l))
		return follow_shims(c, frame);
	return follow_entries(c, frame, cframe, tstate + l->root_cframe);
}

static void read_pieces(const struct managed_memory *m, struct managed_piece *pieces, size_t n)
{
	size_t i;

	if (m->read_pieces) {
		m->read_pieces(m->ctx, pieces, n);
		return;
	}
	for (i = 0; i < n; i++)
		pieces[i].got = m->read(m->ctx, pieces[i].address, pieces[i].to, pieces[i].n);
}

/*
 * A thread that ran since then has changed what its innermost frame is, or where that is. The
 * process's lock is read in the same call.
 */
struct moved {
	uint8_t state[8], position[8], current[8], lock[GIL_BYTES];
	struct managed_piece pieces[4];
	uint32_t n;
	bool gil;                            /* its address is known */
};

static void ask_moved(const struct chain *c, uint64_t gil, struct moved *out)
{
	const struct python_layout *l = c->l;

	out->n = 2;
	out->pieces[0] = (struct managed_piece){c->tstate + l->tstate_frame, out->state, 8, 0};
	out->pieces[1] = (struct managed_piece){c->frame + l->frame_position, out->position, 8, 0};
	if (l->has_cframe)
		out->pieces[out->n++] = (struct managed_piece){c->cframe + l->cframe_current,
							       out->current, 8, 0};
	out->gil = gil != 0;
	if (gil)
		out->pieces[out->n++] = (struct managed_piece){gil + PYTHON_GIL_HOLDER, out->lock,
							       sizeof(out->lock), 0};
}

static bool has_moved(const struct chain *c, const struct moved *m)
{
	c->out->has_gil = m->gil && m->pieces[m->n - 1].got == sizeof(m->lock) &&
			  le64(m->lock) == c->tstate &&
			  le32(m->lock + PYTHON_GIL_LOCKED - PYTHON_GIL_HOLDER) == 1;
	if (m->pieces[0].got != 8 || m->pieces[1].got != 8 || le64(m->state) != c->cframe ||
	    le64(m->position) != c->position)
		return true;
	return c->l->has_cframe && (m->pieces[2].got != 8 || le64(m->current) != c->frame);
}

/* ---- stamps ---------------------------------------------------------------------------------- */

struct stamps {
	uint8_t code[STAMPS_TOGETHER][STAMP_BYTES];
	uint8_t text[STAMPS_TOGETHER][2][PYTHON_TEXT_STAMP];
	struct managed_piece pieces[3 * STAMPS_TOGETHER + 4];
};

/* n pieces, and then whether the thread has run. */
static void read_with(const struct managed_memory *m, struct stamps *s, uint32_t n,
		      struct moved *moved)
{
	if (!moved) {
		read_pieces(m, s->pieces, n);
		return;
	}
	memcpy(&s->pieces[n], moved->pieces, moved->n * sizeof(*moved->pieces));
	read_pieces(m, s->pieces, n + moved->n);
	memcpy(moved->pieces, &s->pieces[n], moved->n * sizeof(*moved->pieces));
}

/* Of its own bytes only: its neighbours change. bytes: from offset 16 on, got of them */
static uint64_t hash_text(const struct python_layout *l, const uint8_t *bytes, size_t got)
{
	size_t data = l->bytes_data - 16u, width = 1, n;
	uint64_t length;
	uint32_t state;

	if (got < 24)
		return 1;
	length = le64(bytes);
	if (l->text_length) {
		state = le32(bytes + l->text_state - 16);
		data = (state & 64 ? l->text_ascii : l->text_compact) - 16u;
		width = state >> 2 & 7;
	}
	n = length < PYTHON_TEXT_STAMP ? (size_t)length * width : PYTHON_TEXT_STAMP;
	if (data > got)
		return 1;
	n = n < got - data ? n : got - data;
	/* Length and hash, which is of all characters once it was needed. */
	return hash_pair(hash_bytes(bytes, 16), hash_bytes(bytes + data, n));
}

static uint64_t text_at(const struct python_layout *l, const struct stamps *s, uint32_t i,
			uint32_t which)
{
	return le64(s->code[i] + (which ? l->code_name : l->code_file) - l->stamp_at);
}

/* pieces: of a code object's two texts */
static void ask_texts(struct stamps *s, uint32_t i, struct managed_piece *pieces, uint64_t file,
		      uint64_t name)
{
	memset(s->text[i], 0, sizeof(s->text[i]));
	pieces[0] = (struct managed_piece){.address = is_pointer(file) ? file + 16 : 0,
					   .to = s->text[i][0], .n = PYTHON_TEXT_STAMP};
	pieces[1] = (struct managed_piece){.address = is_pointer(name) ? name + 16 : 0,
					   .to = s->text[i][1], .n = PYTHON_TEXT_STAMP};
}

static struct python_texts *texts_of(struct python_texts *known, uint64_t code)
{
	return &known[hash_u64(code) % PYTHON_TEXTS_CACHED];
}

/* Ask for all texts where they were the last time. false: of some that is not known */
static bool ask_texts_again(struct stamps *s, struct python_texts *known, const uint64_t *codes,
			    uint32_t n)
{
	uint32_t i;

	for (i = 0; known && i < n; i++) {
		const struct python_texts *t = texts_of(known, codes[i]);

		if (t->code != codes[i])
			return false;
		ask_texts(s, i, &s->pieces[n + 2 * i], t->file, t->name);
	}
	return known != NULL;
}

/* Are they where they were? If not, note where they are. */
static bool same_texts(const struct python_layout *l, const struct stamps *s,
		       struct python_texts *known, const uint64_t *codes, const uint64_t *stamps,
		       uint32_t n)
{
	bool same = true;
	uint32_t i;

	for (i = 0; known && i < n; i++) {
		struct python_texts now = {codes[i], text_at(l, s, i, 0), text_at(l, s, i, 1)};
		struct python_texts *t = texts_of(known, codes[i]);

		if (!stamps[i] || memcmp(t, &now, sizeof(now)) == 0)
			continue;
		*t = now;
		same = false;
	}
	return same;
}

/*
 * Before 3.12 a code object has no number of its own (co_version): another one may get its address,
 * and its texts the addresses of the old ones. The texts' beginnings with their hashes decide.
 *
 * at       of the pieces, where the texts begin
 */
static void add_texts(const struct python_layout *l, const struct stamps *s, uint32_t at,
		      uint32_t n, uint64_t *stamps)
{
	uint32_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; stamps[i] && k < 2; k++) {
			uint64_t hash = hash_text(l, s->text[i][k], s->pieces[at + 2 * i + k].got);

			stamps[i] = hash_pair(stamps[i], hash) | 1;
		}
}

/*
 * known: where texts were, which saves a call of the system; NULL = that is not known. moved: read
 * last; NULL = nobody asks
 */
static void take_stamps(const struct python_layout *l, const struct managed_memory *memory,
			const uint64_t *codes, uint32_t n, uint64_t *stamps,
			struct python_texts *known, struct moved *moved)
{
	bool texts = !python_has_shims(l) || l->free_threaded, early;
	struct stamps s;
	uint32_t i;

	for (i = 0; i < n; i++)
		s.pieces[i] = (struct managed_piece){.address = codes[i] + l->stamp_at,
						     .to = s.code[i], .n = l->stamp_bytes};
	early = texts && ask_texts_again(&s, known, codes, n);
	read_with(memory, &s, early ? 3 * n : n, early || !texts ? moved : NULL);
	for (i = 0; i < n; i++)
		stamps[i] = s.pieces[i].got == l->stamp_bytes
				    ? hash_bytes(s.code[i], l->stamp_bytes) | 1 : 0;
	if (!texts)
		return;
	if (same_texts(l, &s, known, codes, stamps, n) && early) {
		add_texts(l, &s, n, n, stamps);
		return;
	}
	for (i = 0; i < n; i++)
		ask_texts(&s, i, &s.pieces[2 * i], stamps[i] ? text_at(l, &s, i, 0) : 0,
			  stamps[i] ? text_at(l, &s, i, 1) : 0);
	read_with(memory, &s, 2 * n, moved);
	add_texts(l, &s, 0, n, stamps);
}

void python_stamps(const struct python_layout *l, const struct managed_memory *memory,
		   const uint64_t *codes, uint32_t n, uint64_t *stamps)
{
	take_stamps(l, memory, codes, n, stamps, NULL, NULL);
}

/* ---- a peek ----------------------------------------------------------------------------- */

/*
 * Recursion has the same code object again and again: it is looked at once. The last thing that is
 * read is whether the thread has run.
 */
static void stamp_spots(const struct chain *c, struct python_texts *known, struct moved *moved)
{
	struct python_peek *out = c->out;
	uint64_t codes[STAMPS_TOGETHER], stamps[STAMPS_TOGETHER];
	uint8_t which[PYTHON_FRAMES_MAX];
	uint32_t at, n, i, k;

	for (at = 0; at < out->n; at = i) {
		for (n = 0, i = at; i < out->n; i++) {
			for (k = 0; k < n && codes[k] != out->spots[i].code; k++)
				;
			if (k == STAMPS_TOGETHER)
				break;
			codes[k] = out->spots[i].code;
			n += k == n;
			which[i] = (uint8_t)k;
		}
		take_stamps(c->l, c->m, codes, n, stamps, known, i == out->n ? moved : NULL);
		for (k = at; k < i; k++)
			out->spots[k].stamp = stamps[which[k]];
	}
}

/*
 * A thread's state, together with what its chain was in the last time: mostly it still is, and
 * these are some calls of the system less.
 */
static bool read_tstate(struct chain *c, const struct python_thread *thread, uint32_t i,
			uint8_t bytes[TSTATE_BYTES])
{
	struct managed_piece pieces[1 + PYTHON_PAGES + PYTHON_CFRAMES] = {
		{thread->tstates[i], bytes, TSTATE_BYTES, 0}};
	uint64_t *whose[COUNT_OF(pieces)];   /* set when it was read */
	uint32_t n = 1, k;

	for (k = 0; k < PYTHON_PAGES && !i && thread->pages[k]; k++) {
		c->pages[k].nbytes = PAGE_BYTES;
		whose[n] = &c->pages[k].at;
		pieces[n++] = (struct managed_piece){thread->pages[k], c->pages[k].bytes,
						     PAGE_BYTES, 0};
	}
	for (k = 0; k < PYTHON_CFRAMES && !i && thread->cframes[k]; k++) {
		whose[n] = &c->cframes[k].at;
		pieces[n++] = (struct managed_piece){thread->cframes[k], c->cframes[k].bytes,
						     CFRAME_BYTES, 0};
		c->ncframes++;
	}
	read_pieces(c->m, pieces, n);
	for (k = 1; k < n; k++)
		if (pieces[k].got == pieces[k].n)
			*whose[k] = pieces[k].address;
	return pieces[0].got == TSTATE_BYTES;
}

/* For the next time. Only of the first state: others are rare. */
static void note_places(const struct chain *c, struct python_thread *thread)
{
	uint32_t i;

	for (i = 0; i < PYTHON_PAGES; i++)
		thread->pages[i] = c->pages[i].at;
	for (i = 0; i < PYTHON_CFRAMES; i++)
		thread->cframes[i] = i < c->nused ? c->used[i] : 0;
}

void python_peek(const struct python_target *t, const struct managed_memory *memory,
		 struct python_thread *thread, struct python_threads *cache,
		 struct python_peek *out)
{
	uint8_t bytes[TSTATE_BYTES];
	struct moved moved;
	struct chain c;
	uint32_t i;

	chain_init(&c, &t->layout, memory, out);
	out->n = out->nnamed = 0;
	out->has_gil = false;
	out->status = PEEKED_WHOLE;
	for (i = 0; i < thread->n && out->status == PEEKED_WHOLE; i++) {
		if (!read_tstate(&c, thread, i, bytes))
			out->status = PEEKED_UNREADABLE;
		else if (le64(bytes + t->layout.tstate_thread) != thread->ids[i])
			out->status = PEEKED_OTHER;
		else if (!follow(&c, thread->tstates[i], bytes))
			out->status = PEEKED_CUT;
	}
	note_places(&c, thread);
	ask_moved(&c, t->gil, &moved);
	stamp_spots(&c, cache->texts, &moved);
	if (out->n && has_moved(&c, &moved))
		out->status = PEEKED_MOVED;
	if (out->status >= PEEKED_OTHER)
		out->n = 0;
	else if (!out->n && out->status == PEEKED_WHOLE)
		out->status = PEEKED_NOTHING;
	if (out->n)
		thread->nothing = thread->skip = 0;
	else if (out->status == PEEKED_NOTHING && thread->nothing < NOTHING_OFTEN)
		thread->nothing++;
}
