/* Frames that called another one: PC is a return address. */
#include "managed/hotspot/step.h"

#define FROZEN_REACH 1600u                   /* above a return barrier */
#define BARRIERS_FROM 19u

/* Compiled code and wrappers of native methods: the size of the frame is known. */
static enum unwind_result leave_compiled(struct hotspot_step *s)
{
	uint64_t cfa = s->sp + WORD * s->blob->frame_words;
	struct hotspot_next n, slid;

	if (s->blob->frame_words < 2 || !step_read_frame(s, cfa, &n))
		return step_give_up(s);
	if (step_is_valid(s, n.pc) && step_is_plausible(s, &n))
		return step_take(s, &n);
	if (step_slide(s, cfa, &slid))
		return step_take(s, &slid);
	if (step_in_code(s, n.pc))
		return step_take(s, &n);
	return step_give_up(s);
}

static enum unwind_result leave_interpreted(struct hotspot_step *s)
{
	struct hotspot_next n;

	return step_read_interpreted(s, 0, &n) ? step_take(s, &n) : step_give_up(s);
}

/* Native code called Java here; the stub has saved what native code expects to find again. */
static enum unwind_result leave_call_stub(struct hotspot_step *s)
{
	static const enum eh_register saved[] = {EH_RBX, EH_R12, EH_R13, EH_R14, EH_R15};
	enum unwind_result result;
	struct hotspot_next n;
	uint64_t value[5], bp = s->bp;
	unsigned i;

	if (!step_read_bp_frame(s, &n))
		return step_give_up(s);
	for (i = 0; i < 5; i++)
		if (!step_word(s, bp - 56 - WORD * i, &value[i]))
			return step_give_up(s);
	result = step_take(s, &n);
	for (i = 0; result == UNWIND_ON && i < 5; i++) {
		s->f->regs[saved[i]] = value[i];
		s->f->known |= REG_BIT(saved[i]);
	}
	return result;
}

/*
 * A safepoint's return address is the poll's, an exception's where it was thrown: no call. The
 * stubs that deoptimize align SP before they have frames unpacked, which may make theirs a word
 * larger; they have a frame with RBP then (sharedRuntime_x86_64.cpp).
 */
static enum unwind_result leave_runtime_stub(struct hotspot_step *s)
{
	uint64_t cfa = s->sp + WORD * s->blob->frame_words;
	struct hotspot_next n;

	if (s->blob->frame_words < 2 || !step_read_frame(s, cfa, &n))
		return step_give_up(s);
	if (!step_in_code(s, n.pc) && s->bp == cfa - WORD && !step_read_bp_frame(s, &n))
		return step_give_up(s);
	return step_in_code(s, n.pc) ? step_take(s, &n) : UNWIND_BROKEN;
}

/*
 * The last thawed frame of a virtual thread: the others are in the heap, which the thread may have
 * changed since. Go on at the continuation's entry, which is a native nmethod.
 */
static enum unwind_result leave_barrier(struct hotspot_step *s)
{
	struct hotspot_next n;
	uint64_t at;

	for (at = s->sp; at - s->sp < FROZEN_REACH; at += WORD) {
		const struct hotspot_blob *b;

		if (!step_read_frame(s, at + WORD, &n))
			return step_give_up(s);
		b = step_blob(s, n.pc - 1);
		if (!b || b->kind != BLOB_NATIVE || !step_is_valid(s, n.pc))
			continue;
		s->frozen = true;
		return step_take(s, &n);
	}
	return UNWIND_BROKEN;
}

static enum unwind_result leave_stub(struct hotspot_step *s)
{
	struct hotspot_next n;

	if (s->blob->kind == BLOB_STUBS && s->c->layout->major >= BARRIERS_FROM &&
	    !step_call_before(s->blob, s->pc))
		return leave_barrier(s);
	if (s->blob->kind == BLOB_OTHER && !step_has_enter(s->blob))
		return step_search(s, &n) ? step_take(s, &n) : step_give_up(s);
	if (!step_read_bp_frame(s, &n))
		return step_give_up(s);
	/* An nmethod's entry barrier: its cookie is where the return address would be. */
	if (n.pc == UINT64_MAX) {
		n.cfa += WORD;
		if (!step_word(s, n.cfa - WORD, &n.pc))
			return step_give_up(s);
	}
	return step_take(s, &n);
}

/* Call-site patching: R13 says where the return address lies; RBP was not touched. */
static enum unwind_result leave_adapter(struct hotspot_step *s)
{
	struct hotspot_next n;

	if (!(s->f->known & REG_BIT(EH_R13)))
		return UNWIND_UNKNOWN;
	if (!step_read_return(s, s->f->regs[EH_R13], &n))
		return step_give_up(s);
	return step_is_valid(s, n.pc) ? step_take(s, &n) : UNWIND_BROKEN;
}

enum unwind_result step_from_caller(struct hotspot_step *s)
{
	if (!s->blob)
		return UNWIND_BROKEN;
	if (s->pc == s->c->layout->call_stub_return)
		return leave_call_stub(s);
	switch (s->blob->kind) {
	case BLOB_NMETHOD:
	case BLOB_NATIVE:
		return leave_compiled(s);
	case BLOB_INTERPRETER:
		return leave_interpreted(s);
	case BLOB_RUNTIME:
	case BLOB_EXCEPTION:
	case BLOB_SAFEPOINT:
		return leave_runtime_stub(s);
	case BLOB_ADAPTER:
		return leave_adapter(s);
	default:
		return leave_stub(s);
	}
}
