#include "managed/node/v8.h"

#include "managed/node/known.h"

#include <stdlib.h>
#include <string.h>

#define WORD 8u
#define SLOT_CONTEXT 8u                      /* below RBP: a context, or the frame's type */
#define SLOT_FUNCTION 16u
#define SLOT_BYTECODE 32u
#define SLOT_OFFSET 40u                      /* interpreted: of the bytecode, a small integer */
#define FRAME_REACH (1u << 20)               /* no frame is larger */
#define NEAR_BYTES (8u << 20)                /* all builtins are within */

/* ---- learning -------------------------------------------------------------------------------- */

struct learn_task {
	struct managed_task base;
	uint64_t image;
	struct v8_layout layout;
	int rc;
	struct err err;
};

static void run_learn(struct managed_task *task, const struct managed_memory *memory)
{
	struct learn_task *t = (struct learn_task *)task;

	t->rc = v8_layout_read(memory, t->image, &t->layout, &t->err);
}

static void free_learn(struct managed_task *task)
{
	free(task);
}

/* The program, or the library of it that Debian and others have. */
static bool recognizes(const char *file)
{
	return strcmp(file, "node") == 0 || strcmp(file, "nodejs") == 0 ||
	       strncmp(file, "libnode.so", 10) == 0;
}

static int learn(const struct managed_image *image, const struct managed_host *host,
		 struct managed_names *names, struct managed **out, struct err *err)
{
	struct learn_task *t = calloc(1, sizeof(*t));
	struct v8_knowledge *k;
	int rc;

	if (!t)
		return err_memory(err, "for a Node.js program");
	t->base = (struct managed_task){.run = run_learn, .free = free_learn};
	t->image = image->base;
	/* All of it is offsets in the file, and constants of it. */
	if (image->twin)
		t->layout = *v8_knowledge_layout((const struct v8_knowledge *)image->twin);
	else if (!host->run(host->ctx, &t->base))
		return err_set(err, ERR_BUSY, "its memory does not answer");
	rc = t->rc;
	if (rc && err)
		*err = t->err;
	if (!rc) {
		rc = v8_knowledge_new(&t->layout, names, &k);
		if (rc)
			err_memory(err, "for a Node.js program");
		else
			*out = (struct managed *)k;
	}
	free(t);
	return rc;
}

static bool owns(const struct managed *m, uint64_t pc, const struct managed_place *place)
{
	const struct v8_layout *l = v8_knowledge_layout((const struct v8_knowledge *)m);

	(void)pc;
	return place->generated ||
	       (place->offset >= l->builtins && place->offset < l->builtins_end);
}

/* ---- a frame --------------------------------------------------------------------------------- */

struct step {
	struct v8_knowledge *k;
	const struct managed_host *host;
	struct unwind_frame *f;
	uint64_t pc, sp, bp;
};

static bool word(struct step *s, uint64_t at, uint64_t *out)
{
	return at % WORD == 0 && s->f->word(s->f->stack, at, out);
}

static const struct v8_known unknown;

/* certain: it was at its place at the time of the sample */
static void put(struct step *s, const struct v8_known *f, int32_t position, bool certain)
{
	uint32_t line = position < 0 ? 0 : v8_known_line(s->k, f, position);
	int32_t bci = line && line <= MANAGED_BCI_MAX ? (int32_t)line : -1;
	bool named = f->number && (certain || v8_known_serves(s->k, f));

	if (s->f->nfunctions < UNWIND_INLINED_MAX)
		s->f->functions[s->f->nfunctions++] = (__typeof__(s->f->functions[0])){
			.offset = named ? managed_offset(f->number, MANAGED_OTHER, bci) : 0,
			.flags = FRAME_JIT};
}

/* The caller's registers. */
static enum unwind_result take_at(struct step *s, uint64_t sp, uint64_t bp, uint64_t pc)
{
	struct unwind_frame *f = s->f;

	f->cfa = sp;
	f->regs[EH_RSP] = sp;
	f->regs[EH_RIP] = pc;
	f->regs[EH_RBP] = bp;
	f->known = REG_BIT(EH_RSP) | REG_BIT(EH_RIP) | REG_BIT(EH_RBP);
	f->interrupted = false;
	return UNWIND_ON;
}

/* The same, when its return address is at this place. */
static enum unwind_result take(struct step *s, uint64_t at, uint64_t bp)
{
	uint64_t pc;

	return word(s, at, &pc) ? take_at(s, at + WORD, bp, pc) : UNWIND_UNREADABLE;
}

static enum unwind_result take_framed(struct step *s)
{
	uint64_t bp;

	if (s->bp < s->sp || s->bp - s->sp > FRAME_REACH || s->bp % WORD)
		return UNWIND_BROKEN;
	if (!word(s, s->bp, &bp))
		return UNWIND_UNREADABLE;
	return take(s, s->bp + WORD, bp);
}

/* A word of the frame at RBP. */
static bool frame_word(struct step *s, unsigned slot, uint64_t *out)
{
	return s->bp >= s->sp && s->bp - s->sp <= FRAME_REACH && word(s, s->bp - slot, out);
}

/* The function whose frame is at RBP, if that is one with bytecode: interpreted, or Sparkplug's. */
static const struct v8_known *function_at_frame(struct step *s)
{
	uint64_t context, function, bytecode;

	if (!frame_word(s, SLOT_CONTEXT, &context) || !v8_is_object(context) ||
	    !frame_word(s, SLOT_FUNCTION, &function) || !v8_is_object(function) ||
	    !frame_word(s, SLOT_BYTECODE, &bytecode) || !v8_is_object(bytecode))
		return NULL;
	return v8_known_function(s->k, s->host, function, bytecode);
}

/* ---- where execution stopped ----------------------------------------------------------------- */

/*
 * Is the n-th word above RSP a return address? Those that are found by searching must lead to code
 * of V8: to builtins near the one that was interrupted, or to generated code.
 */
static bool is_return(struct step *s, unsigned n)
{
	struct v8_return r = {0};

	return word(s, s->sp + WORD * n, &r.at) && v8_known_returns(s->k, s->host, &r, 1) &&
	       r.called;
}

static bool is_v8(struct step *s, uint64_t pc)
{
	uint64_t by = pc > s->pc ? pc - s->pc : s->pc - pc;

	return by < NEAR_BYTES || v8_known_code(s->k, s->host, pc - 1);
}

/* returns  how many words above RSP the return address is; -1: not there */
static int search_return(struct step *s)
{
	struct v8_return words[V8_LEAF_WORDS] = {{0}};
	unsigned n = 0, i;

	while (n < V8_LEAF_WORDS && (s->bp <= s->sp || s->sp + WORD * n < s->bp) &&
	       word(s, s->sp + WORD * n, &words[n].at))
		n++;
	if (!v8_known_returns(s->k, s->host, words, n))
		return -1;
	for (i = 0; i < n; i++)
		if (words[i].called && is_v8(s, words[i].at))
			return (int)i;
	return -1;
}

static int called_return(struct step *s, uint64_t builtin, bool by_v8)
{
	struct v8_return r = {0};

	if (!word(s, s->sp, &r.at) || !v8_known_returns(s->k, s->host, &r, 1) || !r.called)
		return -1;
	return r.target == builtin || (by_v8 && is_v8(s, r.at)) ? 0 : -1;
}

/* Step by what a rule says. FOREIGN: the frame is at RBP */
static enum unwind_result take_leaf(struct step *s, int rule, uint64_t builtin)
{
	if (rule == V8_LEAF_R10) {
		struct v8_return r = {.at = s->f->regs[EH_R10]};

		if (!(s->f->known & REG_BIT(EH_R10)) ||
		    !v8_known_returns(s->k, s->host, &r, 1) || !r.called)
			return UNWIND_FOREIGN;
		return take_at(s, s->sp, s->bp, r.at);
	}
	if (rule == V8_LEAF_SEARCH)
		rule = search_return(s);
	else if (rule == V8_LEAF_CALLED || rule == V8_LEAF_CALLED_BY_V8)
		rule = called_return(s, builtin, rule == V8_LEAF_CALLED_BY_V8);
	else if (rule >= 0 && !is_return(s, (unsigned)rule))
		rule = -1;
	return rule < 0 ? UNWIND_FOREIGN : take(s, s->sp + WORD * (unsigned)rule, s->bp);
}

/* A builtin that has no frame when it is interrupted; it keeps its own name. */
static enum unwind_result step_leaf_builtin(struct step *s)
{
	const struct v8_known_builtin *b = v8_known_builtin(s->k, s->host, s->pc);
	uint64_t marker = UINT64_MAX;
	enum unwind_result result;

	if (!b)
		return UNWIND_FOREIGN;
	if (s->bp < s->sp || !word(s, s->bp - WORD, &marker))
		marker = UINT64_MAX;
	result = take_leaf(s, v8_leaf_builtin(b->bytes, b->nbytes, (size_t)(s->pc - b->begin),
					      &b->shape, marker), b->begin);
	s->f->by_place = result == UNWIND_ON;
	return result;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/*
 * In builtins: handlers of bytecodes run on the frame of the function that they interpret, and
 * stubs that make no frame count for it.
 */
static enum unwind_result step_builtin(struct step *s)
{
	const struct v8_known *f = function_at_frame(s);
	uint32_t data = v8_knowledge_layout(s->k)->row.bytecode_data - 1u;
	int32_t position = -1;
	uint64_t at;

	if (!f)
		return s->f->interrupted ? step_leaf_builtin(s) : UNWIND_FOREIGN;
	if (word(s, s->bp - SLOT_OFFSET, &at) && v8_is_count(at) && at >> 32 >= data)
		position = v8_known_position(s->k, f, (uint32_t)(at >> 32) - data);
	put(s, f, position, false);
	return take_framed(s);
}

/* framed: it runs in the frame at RBP */
static void put_optimized(struct step *s, const struct v8_known_code *c, bool framed)
{
	uint64_t function;
	bool certain = framed && !v8_known_serves(s->k, &c->outer) &&
		       frame_word(s, SLOT_FUNCTION, &function) &&
		       v8_known_runs(s->k, s->host, s->pc, function);
	struct v8_inlined at[V8_INLINED_MAX + 1];
	uint32_t offset = (uint32_t)(s->pc - c->is.begin);
	unsigned i, n = v8_inlined_at(v8_knowledge_layout(s->k), &c->is, offset, at,
				      V8_INLINED_MAX + 1);

	for (i = 0; i < n; i++) {
		const struct v8_known *f = &unknown;

		if (at[i].function == -1)
			f = &c->outer;
		else if (at[i].function >= 0 && (uint32_t)at[i].function < c->is.nliterals)
			f = &c->inlined[at[i].function];
		put(s, f, at[i].position, certain);
		if (i + 1 < n && s->f->nfunctions)
			s->f->functions[s->f->nfunctions - 1].flags |= FRAME_INLINED;
	}
	if (!n)
		put(s, &c->outer, -1, certain);
}

/* WebAssembly's code has no object before it to be found; its frames say what they are. */
static bool is_wasm(struct step *s)
{
	uint64_t wasm = v8_knowledge_layout(s->k)->wasm, type;

	return wasm && frame_word(s, SLOT_CONTEXT, &type) && type == wasm << 1;
}

static enum unwind_result step_text(struct step *s, const char *name, uint64_t since_ns)
{
	const struct v8_known text = {.number = v8_known_text(s->k, name), .since_ns = since_ns};

	put(s, &text, -1, false);
	return take_framed(s);
}

static enum unwind_result step_generated(struct step *s)
{
	const struct v8_known_code *c;
	enum unwind_result result;
	const struct v8_known *f;

	if (is_wasm(s))
		return step_text(s, "[wasm]", 0);
	c = v8_known_code(s->k, s->host, s->pc);
	if (c && c->is.regexp)
		return step_text(s, "[regexp]", c->outer.since_ns);
	if (!c || (!c->is.optimized && !c->is.baseline))
		return UNWIND_FOREIGN;
	/* Where it was interrupted it may have no frame, yet or any more: RBP is its caller's. */
	if (s->f->interrupted) {
		int rule = v8_leaf_generated(c->bytes, c->nbytes, (size_t)(s->pc - c->is.begin),
					     c->is.baseline);

		result = rule == V8_LEAF_FRAMED ? UNWIND_FOREIGN : take_leaf(s, rule, 0);
		if (result != UNWIND_FOREIGN) {
			if (c->is.optimized)
				put_optimized(s, c, false);
			else
				put(s, &unknown, -1, false);
			return result;
		}
	}
	if (c->is.optimized) {
		put_optimized(s, c, true);
	} else {
		f = function_at_frame(s);
		put(s, f ? f : &unknown, -1, false);
	}
	return take_framed(s);
}

static enum unwind_result step(struct managed *m, const struct managed_host *host,
			       struct unwind_frame *f)
{
	struct step s = {.k = (struct v8_knowledge *)m, .host = host, .f = f,
			 .pc = f->regs[EH_RIP] - !f->interrupted, .sp = f->regs[EH_RSP],
			 .bp = f->regs[EH_RBP]};
	const uint32_t needed = REG_BIT(EH_RIP) | REG_BIT(EH_RSP) | REG_BIT(EH_RBP);

	if ((f->known & needed) != needed)
		return UNWIND_FOREIGN;
	return f->generated ? step_generated(&s) : step_builtin(&s);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void begin(struct managed *m, const struct managed_host *host, uint64_t sample_ns)
{
	(void)host;
	v8_knowledge_begin((struct v8_knowledge *)m, sample_ns);
}

static void forget(struct managed *m)
{
	v8_knowledge_free((struct v8_knowledge *)m);
}

static size_t bytes(const struct managed *m)
{
	return v8_knowledge_bytes((const struct v8_knowledge *)m);
}

const struct frame_reader v8_reader = {
	.name = "V8",
	.object = "[javascript]",
	.recognizes = recognizes,
	.learn = learn,
	.owns = owns,
	.begin = begin,
	.step = step,
	.forget = forget,
	.bytes = bytes,
};
