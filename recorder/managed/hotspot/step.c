#include "managed/hotspot/step.h"

#include "base/bytes.h"

#include <string.h>

#define INTERPRETED_REACH ((uint64_t)1 << 20)        /* of an interpreted frame */
#define STUB_REACH 4096u                             /* of a call stub's frame */
#define SLIDE_WORDS 160u
#define SEARCH_BYTES 512u
#define ENTER_BYTES 48u

enum {
	/* Slots of an interpreted frame, in bytes below RBP (frame_x86.hpp). */
	SLOT_SENDER_SP = 8, SLOT_LAST_SP = 16, SLOT_METHOD = 24, SLOT_BCP = 64, SLOT_BCP_8 = 56,
};

/* ---- reading --------------------------------------------------------------------------------- */

bool step_word(struct hotspot_step *s, uint64_t address, uint64_t *out)
{
	if (!s->budget || s->c->nwords == HOTSPOT_WORDS_MAX)
		return false;
	s->budget--;
	s->c->nwords++;
	if (s->f->word(s->f->stack, address, out))
		return true;
	s->unreadable = true;
	return false;
}

struct hotspot_blob *step_blob(struct hotspot_step *s, uint64_t pc)
{
	return hotspot_heap_of(s->c->layout, pc) ? hotspot_cache_blob(s->c, s->host, pc) : NULL;
}

bool step_in_code(struct hotspot_step *s, uint64_t a)
{
	const struct hotspot_blob *b = step_blob(s, a - 1);

	return b && a > b->code_begin && a <= b->code_end;
}

/* ---- is this a return address? --------------------------------------------------------------- */

static bool is_call(const uint8_t *at, unsigned n)
{
	if (n == 5 && at[0] == 0xe8)
		return true;
	if (at[0] != 0xff)
		return false;
	switch (n) {
	case 2: return (at[1] & 0xf8) == 0xd0;
	case 3: return ((at[1] & 0xf8) == 0x50 && at[1] != 0x54) || at[1] == 0x14;
	case 4: return at[1] == 0x54;
	case 6: return ((at[1] & 0xf8) == 0x90 && at[1] != 0x94) || at[1] == 0x15;
	case 7: return at[1] == 0x94;
	default: return false;
	}
}

bool step_call_before(const struct hotspot_blob *b, uint64_t a)
{
	unsigned n;

	for (n = 2; n <= 7; n++) {
		const uint8_t *at = blob_code(b, a - n, n);

		if (at && is_call(at, n))
			return true;
	}
	return false;
}

static bool is_return_in(const struct hotspot_step *s, const struct hotspot_blob *b, uint64_t a)
{
	if (a <= b->code_begin || a > b->code_end)
		return false;
	if (a == s->c->layout->call_stub_return || b->kind == BLOB_INTERPRETER)
		return true;
	if (blob_is_compiled(b) && (hotspot_pc_exact(b, a) || a == b->deopt || a == b->deopt_mh))
		return true;
	return step_call_before(b, a);
}

bool step_is_valid(struct hotspot_step *s, uint64_t a)
{
	const struct hotspot_blob *b = step_blob(s, a - 1);

	return b && is_return_in(s, b, a);
}

bool step_is_plausible(struct hotspot_step *s, const struct hotspot_next *n)
{
	const struct hotspot_blob *b = step_blob(s, n->pc - 1);
	uint64_t method;

	if (n->pc == s->c->layout->call_stub_return)
		return n->bp >= n->cfa && n->bp - n->cfa < STUB_REACH;
	if (!b || b->kind != BLOB_INTERPRETER)
		return true;
	return n->bp % WORD == 0 && n->bp >= n->cfa && n->bp - n->cfa <= INTERPRETED_REACH &&
	       step_word(s, n->bp - SLOT_METHOD, &method) &&
	       hotspot_cache_method(s->c, s->host, method, NULL);
}

/* The interpreter's last SP: 0, or near; from 22 on counted in words from RBP. */
static bool fits_last_sp(struct hotspot_step *s, const struct hotspot_next *n)
{
	uint64_t last;

	if (!step_word(s, n->bp - SLOT_LAST_SP, &last))
		return false;
	if ((int64_t)last < 0 && (int64_t)last > -(int64_t)(INTERPRETED_REACH / WORD))
		last = n->bp + last * WORD;
	return last == 0 || (last >= n->cfa && last - n->cfa < STUB_REACH);
}

/* The frame of compiled code that n leads to: does it lead to a return address? */
static bool leads_on(struct hotspot_step *s, const struct hotspot_blob *b,
		     const struct hotspot_next *n, unsigned slack)
{
	bool unreadable = s->unreadable;
	unsigned i;

	for (i = 0; i <= slack; i++) {
		struct hotspot_next next;

		s->unreadable = false;
		if (!step_read_frame(s, n->cfa + WORD * (b->frame_words + i), &next)) {
			/* Beyond the copy: nothing can be said against it. */
			bool beyond = s->unreadable;

			s->unreadable = unreadable;
			return beyond;
		}
		if (step_is_valid(s, next.pc) && step_is_plausible(s, &next)) {
			s->unreadable = unreadable;
			return true;
		}
	}
	s->unreadable = unreadable;
	return false;
}

bool step_is_ok(struct hotspot_step *s, const struct hotspot_next *n, unsigned slack)
{
	const struct hotspot_blob *b = step_blob(s, n->pc - 1);

	if (n->cfa < s->sp || n->cfa % WORD || (n->cfa == s->sp && !s->popped))
		return false;
	if (!b || !is_return_in(s, b, n->pc) || !step_is_plausible(s, n))
		return false;
	if (b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE)
		return leads_on(s, b, n, slack);
	if (b->kind == BLOB_INTERPRETER && slack == 0)
		return fits_last_sp(s, n);
	return true;
}

/* ---- kinds of frames ------------------------------------------------------------------------- */

bool step_read_frame(struct hotspot_step *s, uint64_t cfa, struct hotspot_next *out)
{
	out->cfa = cfa;
	return step_word(s, cfa - WORD, &out->pc) && step_word(s, cfa - 2 * WORD, &out->bp);
}

bool step_read_return(struct hotspot_step *s, uint64_t at, struct hotspot_next *out)
{
	out->cfa = at + WORD;
	out->bp = s->bp;
	return step_word(s, at, &out->pc);
}

bool step_read_bp_frame(struct hotspot_step *s, struct hotspot_next *out)
{
	if (s->bp < s->sp || s->bp - s->sp > INTERPRETED_REACH || s->bp % WORD)
		return false;
	return step_read_frame(s, s->bp + 2 * WORD, out);
}

bool step_search(struct hotspot_step *s, struct hotspot_next *out)
{
	uint64_t at;

	for (at = s->sp; at - s->sp <= SEARCH_BYTES; at += WORD)
		if (step_read_return(s, at, out) && step_is_ok(s, out, 0))
			return true;
	return false;
}

bool step_has_enter(const struct hotspot_blob *b)
{
	uint64_t at;

	for (at = b->code_begin; at < b->code_begin + ENTER_BYTES; at++) {
		const uint8_t *code = blob_code(b, at, 4);

		if (code && memcmp(code, "\x55\x48\x8b\xec", 4) == 0)
			return true;
	}
	return false;
}

bool step_slide(struct hotspot_step *s, uint64_t cfa, struct hotspot_next *out)
{
	unsigned i;

	for (i = 1; i <= SLIDE_WORDS; i++) {
		if (!step_read_frame(s, cfa + WORD * i, out))
			return false;
		if (hotspot_heap_of(s->c->layout, out->pc) && step_is_ok(s, out, SLACK))
			return true;
	}
	return false;
}

/* The bytecode that a frame is at; -1 = not known. */
static int32_t bci_of(const struct hotspot_known *m, uint64_t bcp)
{
	return bcp >= m->bytecodes && bcp - m->bytecodes < m->nbytecodes
		       ? (int32_t)(bcp - m->bytecodes) : -1;
}

bool step_read_interpreted(struct hotspot_step *s, uint64_t bcp, struct hotspot_next *out)
{
	uint64_t slot = s->c->layout->major == 8 ? SLOT_BCP_8 : SLOT_BCP;
	uint64_t method, sender;

	if (!step_read_bp_frame(s, out) || !step_word(s, s->bp - SLOT_METHOD, &method) ||
	    !step_word(s, s->bp - SLOT_SENDER_SP, &sender))
		return false;
	if (!bcp && !step_word(s, s->bp - slot, &bcp))
		return false;
	/* Adapters extend the caller's frame: where it ends is what the slot says. */
	if (sender > s->bp && sender - s->bp <= INTERPRETED_REACH && sender % WORD == 0)
		out->cfa = sender;
	s->method.valid = hotspot_cache_method(s->c, s->host, method, &s->method);
	s->bci = s->method.valid ? bci_of(&s->method, bcp) : -1;
	return true;
}

/* ---- the end of a step ----------------------------------------------------------------------- */

enum unwind_result step_take(struct hotspot_step *s, const struct hotspot_next *n)
{
	struct unwind_frame *f = s->f;

	if (n->cfa < s->sp || (n->cfa == s->sp && !s->popped) || n->cfa % WORD)
		return UNWIND_BROKEN;
	f->cfa = n->cfa;
	f->regs[EH_RSP] = n->cfa;
	f->regs[EH_RIP] = n->pc;
	f->regs[EH_RBP] = n->bp;
	f->known = REG_BIT(EH_RSP) | REG_BIT(EH_RIP) | REG_BIT(EH_RBP);
	f->interrupted = false;
	return UNWIND_ON;
}

enum unwind_result step_give_up(const struct hotspot_step *s)
{
	return s->unreadable ? UNWIND_UNREADABLE : UNWIND_BROKEN;
}
