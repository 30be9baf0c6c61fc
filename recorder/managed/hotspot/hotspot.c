#include "managed/hotspot/hotspot.h"

#include "managed/hotspot/step.h"
#include "managed/hotspot/task.h"
#include "model/frame.h"

#include <stdio.h>
#include <string.h>

/* What others know as struct managed is a cache. */
static struct hotspot_cache *cache_of(struct managed *m)
{
	return (struct hotspot_cache *)m;
}

static bool recognizes(const char *file)
{
	return strcmp(file, "libjvm.so") == 0;
}

static int learn(const struct managed_image *image, const struct managed_host *host,
		 struct managed_names *names, struct managed **out, struct err *err)
{
	struct hotspot_task *t = hotspot_task_new(NULL);
	struct hotspot_cache *c;
	int rc;

	if (!t)
		return err_memory(err, "for a JVM");
	t->image_base = image->base;
	if (!host->run(host->ctx, &t->base))
		return err_set(err, ERR_BUSY, "its memory does not answer");
	rc = t->rc;
	if (rc) {
		if (err)
			*err = t->err;
		hotspot_task_free(t);
		return rc;
	}
	c = hotspot_cache_new(hotspot_layout_ref(t->layout), names);
	hotspot_task_free(t);
	if (!c)
		return err_memory(err, "for a JVM");
	*out = (struct managed *)c;
	return 0;
}

static bool owns(const struct managed *m, uint64_t pc, const struct managed_place *place)
{
	(void)place;
	return hotspot_heap_of(((const struct hotspot_cache *)m)->layout, pc) != NULL;
}

static void begin(struct managed *m, const struct managed_host *host, uint64_t sample_ns)
{
	hotspot_cache_begin(cache_of(m), host, sample_ns);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void put(struct unwind_frame *f, uint32_t number, enum managed_how how, int32_t bci)
{
	if (f->nfunctions == UNWIND_INLINED_MAX)
		return;
	f->functions[f->nfunctions].offset = managed_offset(number, how, bci);
	f->functions[f->nfunctions].flags = FRAME_JIT;
	f->nfunctions++;
}

static void put_text(struct hotspot_cache *c, struct unwind_frame *f, const char *text)
{
	char name[BLOB_NAME_BYTES + 2];

	snprintf(name, sizeof(name), "[%s]", text);
	put(f, managed_names_add(c->names, name, NULL), MANAGED_STUB, -1);
}

/* Where compiled code really is: deoptimized code returns to its handler instead. */
static uint64_t real_pc(struct hotspot_step *s)
{
	const struct hotspot_blob *b = s->blob;
	uint64_t pc;

	if ((s->pc == b->deopt || s->pc == b->deopt_mh) && b->orig_pc &&
	    step_word(s, s->sp + b->orig_pc, &pc) && pc > b->code_begin && pc <= b->code_end)
		return pc;
	return s->pc;
}

static void name_compiled(struct hotspot_step *s)
{
	struct hotspot_scope scopes[HOTSPOT_INLINE_MAX];
	enum managed_how how = s->blob->level >= 4 ? MANAGED_C2 : MANAGED_C1;
	uint64_t pc = real_pc(s);
	const struct hotspot_pc *at = NULL;
	uint32_t numbers[HOTSPOT_INLINE_MAX], n, i;

	if (!s->f->interrupted)
		at = hotspot_pc_exact(s->blob, pc);
	if (!at)
		at = hotspot_pc_next(s->blob, pc);
	n = hotspot_scopes(s->c->layout, s->blob, at, scopes);
	hotspot_cache_numbers(s->c, s->host, s->blob, scopes, n, numbers);
	for (i = 0; i < n; i++) {
		put(s->f, numbers[i], how, scopes[i].bci);
		if (i + 1 < n)
			s->f->functions[s->f->nfunctions - 1].flags |= FRAME_INLINED;
	}
}

static void name_native(struct hotspot_step *s)
{
	const struct hotspot_scope own = {UINT32_MAX, -1};
	uint32_t number;

	hotspot_cache_numbers(s->c, s->host, s->blob, &own, 1, &number);
	put(s->f, number, MANAGED_NATIVE, -1);
}

static void name_frame(struct hotspot_step *s)
{
	if (!s->blob)
		put(s->f, 0, MANAGED_OTHER, -1);
	else if (s->blob->kind == BLOB_NMETHOD)
		name_compiled(s);
	else if (s->blob->kind == BLOB_NATIVE)
		name_native(s);
	else if (s->blob->kind == BLOB_INTERPRETER && s->method.valid)
		put(s->f, hotspot_cache_number(s->c, &s->method), MANAGED_INTERPRETED, s->bci);
	else if (s->pc == s->c->layout->call_stub_return)
		put_text(s->c, s->f, "call stub");
	else
		put_text(s->c, s->f, s->blob->name);
	if (s->frozen)
		put_text(s->c, s->f, "frozen frames");
}

/* ---- a step ---------------------------------------------------------------------------------- */

static enum unwind_result step(struct managed *m, const struct managed_host *host,
			       struct unwind_frame *f)
{
	struct hotspot_step s = {
		.c = cache_of(m), .host = host, .f = f, .pc = f->regs[EH_RIP],
		.sp = f->regs[EH_RSP], .budget = STEP_WORDS_MAX, .bci = -1};
	struct unwind_frame in = *f;
	enum unwind_result result;

	s.c->missed = false;
	s.bp = step_reg(&s, EH_RBP);
	s.blob = step_blob(&s, f->interrupted ? s.pc : s.pc - 1);
	result = f->interrupted ? step_from_leaf(&s) : step_from_caller(&s);
	/* It may lead past frames, because their code was not read. */
	if (s.c->missed && result == UNWIND_ON)
		result = UNWIND_BROKEN;
	/* Names go by the frame's own registers, not by its caller's. */
	s.f = &in;
	in.nfunctions = 0;
	name_frame(&s);
	memcpy(f->functions, in.functions, sizeof(in.functions));
	f->nfunctions = in.nfunctions;
	f->pending = s.c->missed;
	return result;
}

static bool thrown(struct managed *m, const struct managed_host *host, uint64_t object,
		   uint64_t time_ns, struct managed_thrown *out)
{
	return hotspot_cache_thrown(cache_of(m), host, object, time_ns, out);
}

static void forget(struct managed *m)
{
	hotspot_cache_free(cache_of(m));
}

static size_t bytes(const struct managed *m)
{
	const struct hotspot_cache *c = (const struct hotspot_cache *)m;

	return sizeof(*c) + sizeof(*c->layout) + c->bytes + table_bytes(&c->by_address) +
	       c->methods_room * sizeof(*c->methods) +
	       ((size_t)c->blobs_room + c->dead_room) * sizeof(*c->blobs);
}

const struct frame_reader hotspot_reader = {
	.name = "HotSpot",
	.object = "[java]",
	.recognizes = recognizes,
	.learn = learn,
	.owns = owns,
	.begin = begin,
	.step = step,
	.thrown = thrown,
	.forget = forget,
	.bytes = bytes,
};
