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
	if (!host->run(host->ctx, &t->base))
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

static void put(struct step *s, const struct v8_known *f, int32_t position)
{
	uint32_t line = position < 0 ? 0 : v8_known_line(s->k, f, position);
	int32_t bci = line && line <= MANAGED_BCI_MAX ? (int32_t)line : -1;

	if (s->f->nfunctions < UNWIND_INLINED_MAX)
		s->f->functions[s->f->nfunctions++] = (__typeof__(s->f->functions[0])){
			.offset = f->number ? managed_offset(f->number, MANAGED_OTHER, bci) : 0,
			.flags = FRAME_JIT};
}

/* The caller's registers, when its return address is at this place. */
static enum unwind_result take(struct step *s, uint64_t at, uint64_t bp)
{
	struct unwind_frame *f = s->f;
	uint64_t pc;

	if (!word(s, at, &pc))
		return UNWIND_UNREADABLE;
	f->cfa = at + WORD;
	f->regs[EH_RSP] = at + WORD;
	f->regs[EH_RIP] = pc;
	f->regs[EH_RBP] = bp;
	f->known = REG_BIT(EH_RSP) | REG_BIT(EH_RIP) | REG_BIT(EH_RBP);
	f->interrupted = false;
	return UNWIND_ON;
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

/* The function whose frame is at RBP, if that is one with bytecode: interpreted, or Sparkplug's. */
static const struct v8_known *function_at_frame(struct step *s)
{
	uint64_t context, function, bytecode;

	if (s->bp < s->sp || s->bp - s->sp > FRAME_REACH ||
	    !word(s, s->bp - SLOT_CONTEXT, &context) || !v8_is_object(context) ||
	    !word(s, s->bp - SLOT_FUNCTION, &function) || !v8_is_object(function) ||
	    !word(s, s->bp - SLOT_BYTECODE, &bytecode) || !v8_is_object(bytecode))
		return NULL;
	return v8_known_function(s->k, s->host, function, bytecode);
}

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
		return UNWIND_FOREIGN;
	if (word(s, s->bp - SLOT_OFFSET, &at) && v8_is_count(at) && at >> 32 >= data)
		position = v8_known_position(s->k, f, (uint32_t)(at >> 32) - data);
	put(s, f, position);
	return take_framed(s);
}

static void put_optimized(struct step *s, const struct v8_known_code *c)
{
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
		put(s, f, at[i].position);
		if (i + 1 < n && s->f->nfunctions)
			s->f->functions[s->f->nfunctions - 1].flags |= FRAME_INLINED;
	}
	if (!n)
		put(s, &c->outer, -1);
}

static enum unwind_result step_generated(struct step *s)
{
	const struct v8_known_code *c = v8_known_code(s->k, s->host, s->pc);
	const struct v8_known *f;
	uint64_t offset;

	if (!c || (!c->is.optimized && !c->is.baseline))
		return UNWIND_FOREIGN;
	/* Where it was interrupted it may have no frame yet: RBP is its caller's. */
	offset = s->pc - c->is.begin;
	if (s->f->interrupted && c->framed_at && offset < c->framed_at) {
		if (c->is.optimized)
			put_optimized(s, c);
		else
			put(s, &unknown, -1);
		return take(s, s->sp + (offset + 3 >= c->framed_at ? WORD : 0), s->bp);
	}
	if (c->is.optimized) {
		put_optimized(s, c);
	} else {
		f = function_at_frame(s);
		put(s, f ? f : &unknown, -1);
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
