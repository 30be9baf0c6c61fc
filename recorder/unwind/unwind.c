#include "unwind/unwind.h"

#include "unwind/step.h"

#include <stdlib.h>
#include <string.h>

/* A read this far above the stack pointer is a wild pointer, not a deeper frame. */
#define STACK_REACH ((uint64_t)1 << 30)

struct unwinder {
	struct rule_cache rules;
	struct stepper stepper;
	struct unwind_pair pairs[STACK_MAX_FRAMES];     /* of the user frames, leaf first */
	struct unwind_frame frame;                      /* of a runtime's code */
};

/* One sample in progress. */
struct walk {
	struct unwinder *u;
	const struct unwind_input *in;
	const struct unwind_caller *caller;
	struct unwind_memory *memory;
	struct unwind_stack *out;
	uint32_t first;                 /* index of the first user frame, after the kernel's */
	uint32_t npairs;
	bool managed;                   /* frames of a runtime are among them */
	uint32_t local, local_pairs;    /* frames and pairs that needed no remote bytes */
	bool remote;                    /* reading remotely has begun */
	bool callchain;                 /* restart, along the kernel's callchain */
	bool doubtful;                  /* a frame may hide some of its callers */
	bool injected;                  /* the last step left a frame that was not called */
};

/* ---- life ------------------------------------------------------------------------------------ */

int unwinder_new(uint32_t remote_bytes, struct unwinder **out, struct err *err)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	uint32_t chunks;

	if (remote_bytes > UNWIND_REMOTE_MAX_BYTES)
		remote_bytes = UNWIND_REMOTE_MAX_BYTES;
	chunks = (remote_bytes + VIEW_CHUNK_BYTES - 1) / VIEW_CHUNK_BYTES;
	if (u && chunks)
		u->stepper.view.room = malloc((size_t)chunks * VIEW_CHUNK_BYTES);
	if (!u || (chunks && !u->stepper.view.room)) {
		free(u);
		return err_memory(err, "for the unwinder");
	}
	u->stepper.view.chunks_max = chunks;
	*out = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (u)
		free(u->stepper.view.room);
	free(u);
}

/* ---- a thread's last complete stack ---------------------------------------------------------- */

void unwind_remember(struct unwind_memory *memory, const struct unwind_pair *pairs, uint32_t n,
		     bool remote)
{
	uint32_t skip = n > UNWIND_MEMORY_PAIRS ? n - UNWIND_MEMORY_PAIRS : 0;

	memory->npairs = n - skip;
	memory->remote = remote;
	memcpy(memory->pairs, pairs + skip, (n - skip) * sizeof(*pairs));
}

const struct unwind_pair *unwind_stitch(const struct unwind_memory *memory,
					const struct unwind_pair *pair, uint64_t cfa, uint32_t *n)
{
	uint32_t i;

	for (i = 0; i < memory->npairs; i++) {
		const struct unwind_pair *p = &memory->pairs[i];

		if (p->cfa != pair->cfa || p->ip != pair->ip || p->interrupted != pair->interrupted)
			continue;
		/* Either the same frame ends at the same place, or the pair is equal by chance. */
		if (cfa && i + 1 < memory->npairs && p[1].cfa != cfa)
			continue;
		*n = memory->npairs - i - 1;
		return p + 1;
	}
	return NULL;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool is_unknown(const struct frame_ref *ref)
{
	return ref->object && ref->object->key.kind == OBJECT_UNKNOWN;
}

static void find_place(const struct walk *w, uint64_t address, bool kernel, bool caller,
		       struct unwind_place *place)
{
	memset(place, 0, sizeof(*place));
	place->ref.flags = kernel ? FRAME_KERNEL : 0;
	/* A return address may be the next function's first byte: look up the call before it. */
	if (caller) {
		place->ref.flags |= FRAME_RETURN_ADDRESS;
		address--;
	}
	place->ref.offset = address;
	w->caller->find(w->caller->ctx, address, kernel, place);
	if (place->jit)
		place->ref.flags |= FRAME_JIT;
}

static bool append(const struct walk *w, const struct frame_ref *ref)
{
	struct unwind_stack *out = w->out;

	if (out->nframes == STACK_MAX_FRAMES) {
		out->quality = QUALITY_TRUNCATED;
		return false;
	}
	out->frames[out->nframes++] = *ref;
	return true;
}

/*
 * Append one frame. false ends the walk: at the depth limit, or at a return address in no mapping,
 * which no call can have left (the chain ran through something that is no frame).
 */
static bool put_place(const struct walk *w, bool kernel, bool caller,
		      const struct unwind_place *place)
{
	if (caller && !kernel && is_unknown(&place->ref)) {
		w->out->quality = QUALITY_BROKEN;
		return false;
	}
	return append(w, &place->ref);
}

static bool put_frame(const struct walk *w, uint64_t address, bool kernel, bool caller,
		      struct unwind_place *place)
{
	find_place(w, address, kernel, caller, place);
	return put_place(w, kernel, caller, place);
}

static bool put_chain(const struct walk *w, const uint64_t *chain, uint32_t n, bool kernel)
{
	struct unwind_place place;
	bool going = true;
	uint32_t i;

	for (i = 0; going && i < n; i++)
		going = put_frame(w, chain[i], kernel, i > 0, &place);
	return going;
}

/*
 * Registers were requested, but the kernel has none: the process is ending and has released its
 * memory, or the thread is a kernel worker in it (perf_sample_regs_user()). The source says the
 * same about a process that has released its old memory in execve(2).
 */
static bool has_no_user(const struct unwind_input *in)
{
	return in->regs_mask && !in->regs_abi && !in->nuser && in->nkernel;
}

/* Follow the kernel's frame-pointer walk of user code. */
static void put_user_chain(const struct walk *w)
{
	const struct unwind_input *in = w->in;

	w->out->quality = QUALITY_FP;
	if (!put_chain(w, in->user_chain, in->nuser, false))
		return;
	if (in->chain_cut)
		w->out->quality = QUALITY_TRUNCATED;
	else if (!in->user_expected || has_no_user(in))
		w->out->quality = QUALITY_COMPLETE;
	else if (in->nuser < 2)
		w->out->quality = QUALITY_BROKEN;
}

/* ---- by registers and stack copy ------------------------------------------------------------- */

/* perf's register numbers, in the order of mask bits (arch/x86/include/uapi/asm/perf_regs.h). */
static const uint8_t perf_order[24] = {
	EH_RAX, EH_RBX, EH_RCX, EH_RDX, EH_RSI, EH_RDI, EH_RBP, EH_RSP, EH_RIP,
	EH_REGISTERS, EH_REGISTERS, EH_REGISTERS, EH_REGISTERS, EH_REGISTERS, EH_REGISTERS,
	EH_REGISTERS, EH_R8, EH_R9, EH_R10, EH_R11, EH_R12, EH_R13, EH_R14, EH_R15};

static void set_up_stepper(const struct walk *w, bool all)
{
	const struct unwind_input *in = w->in;
	struct stepper *s = &w->u->stepper;
	const uint64_t *reg = in->regs;
	uint64_t mask;
	unsigned bit;

	s->known = 0;
	for (mask = in->regs_mask; mask; mask &= mask - 1) {
		bit = (unsigned)__builtin_ctzll(mask);
		if (bit < sizeof(perf_order) && perf_order[bit] < EH_REGISTERS) {
			s->regs[perf_order[bit]] = in->regs_abi == 1 ? *reg & UINT32_MAX : *reg;
			s->known |= (uint32_t)1 << perf_order[bit];
		}
		reg++;
	}
	s->interrupted = true;
	s->all = all;
	s->switched = false;
	s->nsignals = 0;
	s->word = in->regs_abi == 1 ? 4 : 8;
	s->cfa = 0;
	s->view.bytes = in->stack;
	s->view.start = s->regs[EH_RSP];
	s->view.nbytes = in->stack ? in->stack_bytes : 0;
	s->view.fetch = NULL;
	s->view.ctx = w->caller->ctx;
	s->view.nchunks = 0;
	s->view.fetched = false;
	s->view.used = 0;
	s->code = in->regs_mask & ~UNWIND_REGS_NEEDED & UNWIND_REGS_BETTER ? NULL : w->caller->code;
	s->worked_out = false;
}

static enum step_result step_frame(struct walk *w, const struct unwind_place *place)
{
	struct stepper *s = &w->u->stepper;
	bool by_pointer = false;
	enum step_result result;

	if (s->interrupted && is_unknown(&place->ref) && !place->jit)
		return step_wild(s);
	if (place->top && !s->interrupted)
		return STEP_ROOT;
	if (place->pending)
		w->out->pending = true;
	if (place->pending && w->in->nuser > 1) {
		w->callchain = true;
		return STEP_BROKEN;
	}
	if (place->tables && eh_frame_is_32_bit(place->tables) == (s->word == 4)) {
		result = step_tables(s, &w->u->rules, place->tables, place->vaddr, &by_pointer);
	} else if (place->jit || place->pending || s->word != 8) {
		by_pointer = true;
		result = step_frame_pointer(s);
	} else {
		result = step_undescribed(s, &by_pointer);
	}
	if (by_pointer && result == STEP_ON)
		w->out->nframe_pointer++;
	w->injected = place->injected && result == STEP_ON;
	s->interrupted |= w->injected;
	if (by_pointer && place->doubtful)
		w->doubtful = true;
	return result == STEP_END && place->entry ? STEP_ROOT : result;
}

static void add_pair(struct walk *w)
{
	const struct stepper *s = &w->u->stepper;
	uint32_t n = w->out->nframes;        /* 0: frames of a runtime without a function */
	struct frame_ref *frame = w->out->frames + (n ? n - 1 : 0);

	/* A signal's restorer was not called: its frame is at its first byte, not before it. */
	if (n && s->interrupted && !w->injected && (frame->flags & FRAME_RETURN_ADDRESS)) {
		frame->flags &= ~(uint32_t)FRAME_RETURN_ADDRESS;
		frame->offset++;
	}
	if (w->npairs < STACK_MAX_FRAMES)
		w->u->pairs[w->npairs++] = (struct unwind_pair){
			.cfa = s->cfa, .ip = s->regs[EH_RIP], .interrupted = s->interrupted};
}

/* A pair does not say which method the interpreter ran, nor what was inlined. */
static bool has_managed(const struct walk *w, const struct unwind_pair *pairs, uint32_t n)
{
	struct unwind_place place;
	uint32_t i;

	for (i = 0; i < n; i++) {
		find_place(w, pairs[i].ip, false, !pairs[i].interrupted, &place);
		if (place.managed)
			return true;
	}
	return false;
}

/* Graft the callers of the last pair, if it is in the memory. */
static bool stitch_callers(struct walk *w)
{
	const struct unwind_pair *callers;
	struct unwind_place place;
	uint32_t n = 0, i;

	if (!w->memory || !w->npairs)
		return false;
	callers = unwind_stitch(w->memory, &w->u->pairs[w->npairs - 1], w->u->stepper.cfa, &n);
	if (!callers || has_managed(w, callers, n))
		return false;
	w->out->quality = w->memory->remote ? QUALITY_REMOTE : QUALITY_STITCHED;
	for (i = 0; i < n; i++) {
		if (!put_frame(w, callers[i].ip, false, !callers[i].interrupted, &place))
			break;
		if (w->npairs < STACK_MAX_FRAMES)
			w->u->pairs[w->npairs++] = callers[i];
	}
	return true;
}

/* A step needs memory outside the copy. True: try again, reading remotely; false: the end. */
static bool get_more(struct walk *w)
{
	struct stepper *s = &w->u->stepper;
	bool deeper = s->switched || s->view.missing - s->view.start < STACK_REACH;

	if (!w->remote && deeper && stitch_callers(w))
		return false;
	w->out->quality = deeper ? QUALITY_TRUNCATED : QUALITY_BROKEN;
	if (w->remote || !w->caller->read || !s->view.chunks_max)
		return false;
	w->remote = true;
	w->local = w->out->nframes;
	w->local_pairs = w->npairs;
	s->view.fetch = w->caller->read;
	return true;
}

/* ---- frames of runtimes ---------------------------------------------------------------------- */

static bool read_stack_word(void *stack, uint64_t address, uint64_t *out)
{
	return view_read(stack, address, 8, out);
}

static enum unwind_result ask_runtime(struct walk *w, const struct unwind_place *place)
{
	struct stepper *s = &w->u->stepper;
	struct unwind_frame *f = &w->u->frame;
	enum unwind_result result;

	memcpy(f->regs, s->regs, sizeof(f->regs));
	f->known = s->known;
	f->interrupted = s->interrupted;
	f->generated = place->jit;
	f->cfa = 0;
	f->word = read_stack_word;
	f->stack = &s->view;
	f->pending = f->by_place = false;
	f->nfunctions = 0;
	result = w->caller->managed(w->caller->ctx, f);
	w->out->pending |= f->pending;
	return result;
}

static bool put_functions(struct walk *w, const struct unwind_place *place)
{
	const struct unwind_frame *f = &w->u->frame;
	uint32_t i;

	w->managed = true;

	for (i = 0; i < f->nfunctions; i++) {
		const struct frame_ref ref = {place->runtime, f->functions[i].offset,
					      f->functions[i].flags};

		if (!append(w, &ref))
			return false;
	}
	return true;
}

static void take_registers(struct walk *w)
{
	struct stepper *s = &w->u->stepper;
	const struct unwind_frame *f = &w->u->frame;

	memcpy(s->regs, f->regs, sizeof(s->regs));
	s->known = f->known;
	s->interrupted = f->interrupted;
	s->cfa = f->cfa;
}

/* Name and step over a frame of a runtime. *foreign: it was not its code, and nothing was done. */
static enum step_result step_managed(struct walk *w, const struct unwind_place *place,
				     bool *foreign)
{
	uint32_t nframes = w->out->nframes;
	bool caller = !w->u->stepper.interrupted, put;
	enum unwind_result result;

	do {
		/* What it said before it had the missing bytes is replaced. */
		w->out->nframes = nframes;
		result = ask_runtime(w, place);
		*foreign = result == UNWIND_FOREIGN;
		if (*foreign)
			return STEP_BROKEN;
		put = w->u->frame.by_place ? put_place(w, false, caller, place)
					   : put_functions(w, place);
	} while (put && result == UNWIND_UNREADABLE && get_more(w));
	if (!put)
		return STEP_CUT;
	switch (result) {
	case UNWIND_ON:
		take_registers(w);
		return w->u->frame.regs[EH_RIP] ? STEP_ON : STEP_ROOT;
	case UNWIND_UNREADABLE:
		return STEP_UNREADABLE;
	case UNWIND_UNKNOWN:
		return STEP_UNKNOWN;
	default:
		return STEP_BROKEN;
	}
}

/* Name the frame and step to its caller. STEP_CUT: the quality is set. */
static enum step_result walk_frame(struct walk *w)
{
	struct stepper *s = &w->u->stepper;
	bool caller = !s->interrupted, foreign = true;
	enum step_result result = STEP_BROKEN;
	struct unwind_place place;

	w->injected = false;
	find_place(w, s->regs[EH_RIP], false, caller, &place);
	if (place.managed && s->word == 8)
		result = step_managed(w, &place, &foreign);
	if (!foreign)
		return result;
	if (!put_place(w, false, caller, &place))
		return STEP_CUT;
	do
		result = step_frame(w, &place);
	while (result == STEP_UNREADABLE && get_more(w));
	return result;
}

/* Walk to an end. Returns the last step: STEP_UNKNOWN when it is worth a restart. */
static enum step_result walk_frames(struct walk *w)
{
	struct stepper *s = &w->u->stepper;
	enum step_result result = STEP_ON;

	while (result == STEP_ON) {
		result = walk_frame(w);
		if (result == STEP_CUT)
			return STEP_BROKEN;
		if (result == STEP_ON)
			add_pair(w);
	}
	if (result == STEP_ROOT)
		w->out->quality = s->view.fetched && !w->caller->frozen ? QUALITY_REMOTE
									: QUALITY_COMPLETE;
	else if (result == STEP_END)
		w->out->quality = w->npairs ? QUALITY_FP : QUALITY_BROKEN;
	else if (result != STEP_UNREADABLE)
		w->out->quality = QUALITY_BROKEN;
	return result;
}

static void drop_user_frames(struct walk *w)
{
	w->out->nframes = w->first;
	w->out->nframe_pointer = 0;
}

static void restart(struct walk *w, bool all)
{
	drop_user_frames(w);
	w->npairs = 0;
	w->remote = false;
	w->doubtful = false;
	set_up_stepper(w, all);
}

static void walk_user(struct walk *w)
{
	enum stack_quality quality;

	w->u->stepper.budget = EH_BUDGET;
	restart(w, false);
	if (walk_frames(w) == STEP_UNKNOWN) {
		restart(w, true);
		walk_frames(w);
	}
	if (w->callchain) {
		drop_user_frames(w);
		put_user_chain(w);
		return;
	}
	quality = w->out->quality;
	if (quality == QUALITY_COMPLETE && !w->u->stepper.view.fetched && w->u->stepper.view.used)
		w->out->end = w->u->stepper.view.start + w->u->stepper.view.used;
	if (quality == QUALITY_COMPLETE || quality == QUALITY_STITCHED ||
	    quality == QUALITY_REMOTE) {
		if (w->doubtful || w->u->stepper.worked_out)
			w->out->quality = QUALITY_FP;
		else if (w->memory)
			unwind_remember(w->memory, w->u->pairs, w->npairs,
					quality == QUALITY_REMOTE);
	} else if (w->u->stepper.view.fetched && !w->caller->frozen) {
		/* The process has moved on: the frames from remote bytes lead nowhere. */
		w->out->nframes = w->local;
		w->npairs = w->local_pairs;
		w->out->quality = QUALITY_TRUNCATED;
	}
}

/* Where the frames end, for who has more frames to put between them. */
static void tell_pairs(const struct walk *w)
{
	struct unwind_stack *out = w->out;

	if (w->callchain || w->managed)
		return;
	set_up_stepper(w, false);
	out->pairs = w->u->pairs;
	out->npairs = w->npairs;
	out->nuser_at = w->first;
	out->ip = w->u->stepper.regs[EH_RIP];
	out->sp = w->u->stepper.regs[EH_RSP];
}

/* All frames may be a runtime's that have no function: then it says where the thread was. */
static void put_leaf(struct walk *w)
{
	struct unwind_place place;

	set_up_stepper(w, false);
	put_frame(w, w->u->stepper.regs[EH_RIP], false, false, &place);
}

/* ---- one sample ------------------------------------------------------------------------------ */

static bool has_registers(const struct unwind_input *in)
{
	const uint64_t needed = in->nuser ? UNWIND_REGS_BETTER : UNWIND_REGS_NEEDED;

	if (!in->regs || (in->regs_mask & needed) != needed)
		return false;
	return in->regs_abi == 1 || in->regs_abi == 2;
}

void unwinder_walk(struct unwinder *u, const struct unwind_input *in,
		   const struct unwind_caller *caller, struct unwind_memory *memory,
		   struct unwind_stack *out)
{
	struct walk w = {.u = u, .in = in, .caller = caller, .memory = memory, .out = out};

	out->nframes = 0;
	out->quality = QUALITY_FP;
	out->pending = false;
	out->nframe_pointer = 0;
	out->npairs = 0;
	out->end = 0;
	if (!put_chain(&w, in->kernel_chain, in->nkernel, true))
		return;
	w.first = out->nframes;
	if (has_registers(in)) {
		walk_user(&w);
		tell_pairs(&w);
		if (out->nframes == w.first)
			put_leaf(&w);
	} else {
		put_user_chain(&w);
	}
}
