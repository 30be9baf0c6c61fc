#include "managed/python/place.h"

#include <string.h>

#define PROLOGUE_BYTES 64u                   /* in which the evaluator has set no frame yet */

struct placing {
	const struct python_peek *peek;
	uint32_t n;                          /* spots that are placed */
	/* Of each spot: the index of the frame that it stands before. */
	uint32_t before[PYTHON_FRAMES_MAX];
};

static bool is_whole(const struct unwind_stack *s)
{
	return s->quality == QUALITY_COMPLETE || s->quality == QUALITY_STITCHED ||
	       s->quality == QUALITY_REMOTE;
}

static bool place_by_anchors(struct placing *p, const struct unwind_stack *s)
{
	uint64_t low = s->sp, anchor;
	uint32_t frame = 0, first = 0, spot;

	for (spot = 0; spot < p->peek->n; spot++) {
		if (!p->peek->spots[spot].last)
			continue;
		anchor = p->peek->spots[spot].anchor;
		if (anchor < low)
			return false;
		for (; frame < s->npairs && anchor >= s->pairs[frame].cfa; frame++) {
			if (s->pairs[frame].cfa < low)
				return false;
			low = s->pairs[frame].cfa;
		}
		/* Beyond the last frame whose end is known: only where more frames are missing. */
		if (frame == s->npairs && (is_whole(s) || s->quality == QUALITY_BROKEN))
			return false;
		for (; first <= spot; first++)
			p->before[first] = frame == s->npairs ? s->nframes : s->nuser_at + frame;
		low = anchor;
	}
	p->n = first;
	return first != 0;
}

/* Indices of the evaluator's frames, the innermost first. */
static uint32_t find_evaluators(const struct python_evaluator *e, const struct unwind_stack *s,
				uint32_t out[STACK_MAX_FRAMES], uint64_t *innermost)
{
	uint32_t n = 0, i;

	for (i = 0; s->nuser_at + i < s->nframes && i <= s->npairs; i++) {
		uint64_t ip = i ? s->pairs[i - 1].ip - !s->pairs[i - 1].interrupted : s->ip;

		if (ip < e->at || ip - e->at >= e->bytes)
			continue;
		if (!n)
			*innermost = ip - e->at;
		out[n++] = s->nuser_at + i;
	}
	return n;
}

static bool place_by_count(struct placing *p, const struct python_evaluator *e,
			   const struct unwind_stack *s)
{
	uint32_t at[STACK_MAX_FRAMES], n, skip = 0, i;
	uint64_t innermost = 0;

	n = find_evaluators(e, s, at, &innermost);
	if (is_whole(s)) {
		/* The innermost evaluator may have set no frame yet, or unset it already. */
		if (n != p->peek->n && n != p->peek->n + 1)
			return false;
		skip = n - p->peek->n;
	} else if (s->quality != QUALITY_TRUNCATED || n > p->peek->n || !n ||
		   innermost < PROLOGUE_BYTES) {
		return false;
	}
	for (i = 0; i < p->peek->n; i++)
		p->before[i] = skip + i < n ? at[skip + i] : s->nframes;
	p->n = p->peek->n;
	return true;
}

bool python_place(const struct python_layout *l, const struct python_evaluator *evaluator,
		  const struct python_peek *peek, const struct frame_ref *refs,
		  struct unwind_stack *stack)
{
	struct placing p = {.peek = peek};
	struct frame_ref frames[STACK_MAX_FRAMES];
	uint32_t n = 0, native, spot = 0;

	if (!stack->npairs)
		return false;
	if (python_has_anchors(l) ? !place_by_anchors(&p, stack)
				  : peek->status != PEEKED_WHOLE ||
				    !place_by_count(&p, evaluator, stack))
		return false;
	for (native = 0; native <= stack->nframes; native++) {
		for (; spot < p.n && p.before[spot] == native && n < STACK_MAX_FRAMES; spot++)
			frames[n++] = refs[spot];
		if (native < stack->nframes && n < STACK_MAX_FRAMES)
			frames[n++] = stack->frames[native];
	}
	if (n < stack->nframes + p.n)
		stack->quality = QUALITY_TRUNCATED;
	memcpy(stack->frames, frames, n * sizeof(*frames));
	stack->nframes = n;
	return true;
}
