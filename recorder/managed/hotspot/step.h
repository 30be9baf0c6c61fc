/*
 * Stepping over one frame of a JVM's code: what is shared by the rules for callers (caller.c) and
 * those for the interrupted frame (leaf.c). Private to this folder.
 *
 * HotSpot's compiled code keeps no frame pointer, but saves its caller's RBP right below the return
 * address and states the size of its frames. So compiled frames are stepped by RSP alone, and RBP
 * arrives intact at the interpreter and at the call stub, which need it.
 *
 * Old return addresses lie about everywhere on Java stacks. So a place on the stack counts as a
 * return address only if it is one (is_valid), fits the frame it leads to (is_plausible), and what
 * follows is one too (is_ok).
 */
#pragma once

#include "managed/hotspot/cache.h"

#define STEP_WORDS_MAX 4096u                 /* read from the stack for one step */
#define WORD 8u
#define SLACK 6u                             /* words that may have been pushed */

struct hotspot_step {
	struct hotspot_cache *c;
	const struct managed_host *host;
	struct unwind_frame *f;
	struct hotspot_blob *blob;           /* of pc; NULL = none */
	uint64_t pc, sp, bp;
	unsigned budget;
	bool unreadable;                     /* a word was not there */
	bool popped;                         /* the return address is in a register */

	/* What the interpreter runs, once a rule knows it. */
	struct hotspot_known method;         /* valid: it does */
	int32_t bci;
	bool frozen;                         /* frames are missing that are not on the stack */
};

/* Where a frame leads. */
struct hotspot_next {
	uint64_t pc, cfa, bp;
};

static inline uint64_t step_reg(const struct hotspot_step *s, enum eh_register reg)
{
	return s->f->known & REG_BIT(reg) ? s->f->regs[reg] : 0;
}

bool step_word(struct hotspot_step *s, uint64_t address, uint64_t *out);
struct hotspot_blob *step_blob(struct hotspot_step *s, uint64_t pc);

/* Is a in a blob's code? */
bool step_in_code(struct hotspot_step *s, uint64_t a);
/* Do the bytes before a call something? */
bool step_call_before(const struct hotspot_blob *b, uint64_t a);
bool step_is_valid(struct hotspot_step *s, uint64_t a);
bool step_is_plausible(struct hotspot_step *s, const struct hotspot_next *n);
/* Valid, plausible, and the frame that it leads to leads to such a place too. */
bool step_is_ok(struct hotspot_step *s, const struct hotspot_next *n, unsigned slack);

/* The frame whose return address is right below cfa, with the caller's RBP right below that. */
bool step_read_frame(struct hotspot_step *s, uint64_t cfa, struct hotspot_next *out);
/* The same with the return address at a place, and RBP as it is. */
bool step_read_return(struct hotspot_step *s, uint64_t at, struct hotspot_next *out);
/* A frame with a frame pointer. */
bool step_read_bp_frame(struct hotspot_step *s, struct hotspot_next *out);

/* The first word above SP that is a return address beyond doubt. */
bool step_search(struct hotspot_step *s, struct hotspot_next *out);
/* Does a stub of a blob of its own make a frame with a frame pointer? */
bool step_has_enter(const struct hotspot_blob *b);

/* Words were pushed that the frame's size does not count. */
bool step_slide(struct hotspot_step *s, uint64_t cfa, struct hotspot_next *out);

/* The interpreted frame at RBP; sets method and bci. bcp 0: as the frame has it. */
bool step_read_interpreted(struct hotspot_step *s, uint64_t bcp, struct hotspot_next *out);

/* Go there. */
enum unwind_result step_take(struct hotspot_step *s, const struct hotspot_next *n);
enum unwind_result step_give_up(const struct hotspot_step *s);

enum unwind_result step_from_caller(struct hotspot_step *s);
enum unwind_result step_from_leaf(struct hotspot_step *s);
