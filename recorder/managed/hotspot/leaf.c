/*
 * The interrupted frame. Its state is known from the bytes at PC. Rules are tried in order; the
 * first one whose result is_ok() wins. Each of them removed stacks that looked complete and were
 * wrong.
 */
#include "managed/hotspot/step.h"

#include "base/array.h"
#include "base/bytes.h"

#include <string.h>

#define ENTRY_BYTES 96u                      /* in which a prologue ends */
#define EARLY_BYTES 64u
#define EPILOGUE_BYTES 48u                   /* between the pop of RBP and the return */
#define ADAPTER_REACH 65536u
#define FREED_BYTES 2048u

static bool has(const struct hotspot_blob *b, uint64_t pc, const char *bytes, unsigned n)
{
	const uint8_t *at = blob_code(b, pc, n);

	return at && memcmp(at, bytes, n) == 0;
}
#define HAS(b, pc, text) has(b, pc, text, sizeof(text) - 1)

static bool try_return(struct hotspot_step *s, uint64_t at, unsigned slack, struct hotspot_next *n)
{
	return step_read_return(s, at, n) && step_is_ok(s, n, slack);
}

static bool try_frame(struct hotspot_step *s, uint64_t cfa, unsigned slack, struct hotspot_next *n)
{
	return step_read_frame(s, cfa, n) && step_is_ok(s, n, slack);
}

/* ---- compiled code: prologue ----------------------------------------------------------------- */

/* The forms of instructions that stand in a prologue; "." is any byte. */
struct form {
	const char *bytes;
	uint8_t n;
	enum { FORM_SKIP, FORM_PUSH_BP, FORM_SUB8, FORM_SUB32, FORM_SAVE8, FORM_SAVE32 } does;
	uint8_t number_at;
};

#define FORM(text, does, at) {text, sizeof(text) - 1, does, at}
static const struct form prologue[] = {
	FORM("\x89\x84\x24....", FORM_SKIP, 0),      /* stack bang */
	FORM("\x55", FORM_PUSH_BP, 0),
	FORM("\x48\x8b\xec", FORM_SKIP, 0),
	FORM("\x48\x89\xe5", FORM_SKIP, 0),
	FORM("\x48\x83\xec.", FORM_SUB8, 3),
	FORM("\x48\x81\xec....", FORM_SUB32, 3),
	FORM("\x48\x89\x6c\x24.", FORM_SAVE8, 4),
	FORM("\x48\x89\xac\x24....", FORM_SAVE32, 4),
	FORM("\xf3\x0f\x1e\xfa", FORM_SKIP, 0),
	FORM("\x90", FORM_SKIP, 0),
	FORM("\x66\x90", FORM_SKIP, 0),
	FORM("\x66\x66\x90", FORM_SKIP, 0),
	FORM("\x66\x66\x66\x90", FORM_SKIP, 0),
	FORM("\x0f\x1f\x40.", FORM_SKIP, 0),
	FORM("\x0f\x1f\x44..", FORM_SKIP, 0),
	FORM("\x66\x0f\x1f\x44..", FORM_SKIP, 0),
	FORM("\x0f\x1f\x80....", FORM_SKIP, 0),
	FORM("\x0f\x1f\x84.....", FORM_SKIP, 0),
	FORM("\x66\x0f\x1f\x84.....", FORM_SKIP, 0),
};

static bool matches(const uint8_t *code, const struct form *f)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (f->bytes[i] != '.' && (uint8_t)f->bytes[i] != code[i])
			return false;
	return true;
}

static const struct form *form_at(const struct hotspot_blob *b, uint64_t at,
				  const struct form *forms, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const uint8_t *code = blob_code(b, at, forms[i].n);

		if (code && matches(code, &forms[i]))
			return &forms[i];
	}
	return NULL;
}

/* How far a prologue has come at PC. */
struct depth {
	uint64_t pushed;                     /* bytes below the return address */
	bool bp_saved;
	uint64_t bp_at;                      /* bytes below the return address */
	bool known;
};

static void follow_form(const struct form *f, const uint8_t *code, struct depth *d)
{
	uint32_t n = f->does == FORM_SUB8 || f->does == FORM_SAVE8 ? code[f->number_at]
		     : f->number_at ? le32(code + f->number_at) : 0;

	if (f->does == FORM_PUSH_BP) {
		d->pushed += WORD;
		d->bp_saved = true;
		d->bp_at = d->pushed;
	} else if (f->does == FORM_SUB8 || f->does == FORM_SUB32) {
		d->pushed += n;
	} else if ((f->does == FORM_SAVE8 || f->does == FORM_SAVE32) && n <= d->pushed) {
		d->bp_saved = true;
		d->bp_at = d->pushed - n;
	}
}

static struct depth depth_from(const struct hotspot_blob *b, uint64_t entry, uint64_t pc)
{
	struct depth d = {0};
	uint64_t at = entry;

	while (at < pc) {
		const struct form *f = form_at(b, at, prologue, COUNT_OF(prologue));

		if (!f) {
			/* Anything else comes after the prologue, if the frame is complete. */
			d.known = d.pushed + WORD == WORD * b->frame_words;
			return d;
		}
		follow_form(f, blob_code(b, at, f->n), &d);
		at += f->n;
	}
	d.known = at == pc;
	return d;
}

static bool try_prologue(struct hotspot_step *s, uint64_t entry, struct hotspot_next *n)
{
	struct depth d;

	if (!entry || s->pc < entry || s->pc - entry >= ENTRY_BYTES)
		return false;
	d = depth_from(s->blob, entry, s->pc);
	if (!d.known || d.pushed > WORD * s->blob->frame_words)
		return false;
	if (!step_read_return(s, s->sp + d.pushed, n))
		return false;
	if (d.bp_saved && !step_word(s, s->sp + d.pushed - d.bp_at, &n->bp))
		return false;
	return step_is_ok(s, n, SLACK);
}

/* ---- compiled code: epilogue ----------------------------------------------------------------- */

static const struct form polls[] = {
	FORM("\x85\x05....", FORM_SKIP, 0),          /* 8 */
	FORM("\x4d\x8b\x97....", FORM_SKIP, 0),      /* 11 */
	FORM("\x41\x85\x02", FORM_SKIP, 0),
	FORM("\x49\x3b\xa7....", FORM_SKIP, 0),      /* 17 on */
	FORM("\x49\x3b\x67.", FORM_SKIP, 0),
	FORM("\x0f\x87....", FORM_SKIP, 0),
};

/* Does the frame end right before this address: add rsp, n? */
static bool is_freed_before(const struct hotspot_blob *b, uint64_t at)
{
	return HAS(b, at - 4, "\x48\x83\xc4") || HAS(b, at - 7, "\x48\x81\xc4");
}

/* Is it instructions of these forms only from an address to PC? */
static bool leads_to_pc(const struct hotspot_step *s, uint64_t at, const struct form *forms,
			size_t n)
{
	while (at < s->pc) {
		const struct form *f = form_at(s->blob, at, forms, n);

		if (!f)
			break;
		at += f->n;
	}
	return at == s->pc;
}

/* Is PC behind a pop of RBP, with only polls between? */
static bool is_popped(const struct hotspot_step *s)
{
	unsigned back;

	for (back = 1; back <= EPILOGUE_BYTES; back++) {
		uint64_t at = s->pc - back;

		if (!HAS(s->blob, at, "\x5d") || !is_freed_before(s->blob, at))
			continue;
		at++;
		if (leads_to_pc(s, at, polls, COUNT_OF(polls)))
			return true;
	}
	return false;
}

static bool try_epilogue(struct hotspot_step *s, struct hotspot_next *n)
{
	if (HAS(s->blob, s->pc, "\x5d") && is_freed_before(s->blob, s->pc) &&
	    try_frame(s, s->sp + 2 * WORD, SLACK, n))
		return true;
	return is_popped(s) && try_return(s, s->sp, SLACK, n);
}

static bool try_top_words(struct hotspot_step *s, struct hotspot_next *n)
{
	return try_return(s, s->sp, SLACK, n) || try_return(s, s->sp + WORD, SLACK, n);
}

static bool leave_nmethod(struct hotspot_step *s, struct hotspot_next *n)
{
	const struct hotspot_blob *b = s->blob;
	uint64_t cfa = s->sp + WORD * b->frame_words;
	bool early = s->pc - b->verified_entry < EARLY_BYTES || s->pc - b->osr_entry < EARLY_BYTES;

	if (s->pc <= b->verified_entry && try_return(s, s->sp, SLACK, n))
		return true;
	if (try_prologue(s, b->verified_entry, n) || try_prologue(s, b->osr_entry, n))
		return true;
	if (try_epilogue(s, n))
		return true;
	if (b->frame_words >= 2 && try_frame(s, cfa, SLACK, n))
		return true;
	if (early && try_top_words(s, n))
		return true;
	return (b->frame_words >= 2 && step_slide(s, cfa, n)) || (!early && try_top_words(s, n));
}

/* ---- the wrapper of a native method ---------------------------------------------------------- */

static const struct form after_leave[] = {
	FORM("\x49\x81\x7f.....", FORM_SKIP, 0),
	FORM("\x49\x83\x7f..", FORM_SKIP, 0),
	FORM("\x49\x81\xbf........", FORM_SKIP, 0),
	FORM("\x49\x83\xbf.....", FORM_SKIP, 0),
	FORM("\x0f\x85....", FORM_SKIP, 0),
	FORM("\x41\xf6\x47\x28\x01", FORM_SKIP, 0),          /* 25 on */
	FORM("\x74.", FORM_SKIP, 0),
};

/* Where the wrapper makes its frame; 0 = not found. */
static uint64_t frame_made_at(const struct hotspot_blob *b)
{
	uint64_t at;

	for (at = b->frame_complete; at-- > 0;)
		if (HAS(b, b->code_begin + at, "\x55\x48\x8b\xec"))
			return b->code_begin + at;
	return 0;
}

static bool is_left(const struct hotspot_step *s)
{
	unsigned back;

	for (back = 1; back <= EPILOGUE_BYTES; back++) {
		uint64_t at = s->pc - back;

		if (!HAS(s->blob, at, "\xc9"))
			continue;
		at++;
		if (leads_to_pc(s, at, after_leave, COUNT_OF(after_leave)))
			return true;
	}
	return false;
}

static bool leave_native(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t made = frame_made_at(s->blob), size = WORD * s->blob->frame_words;

	if (made && s->pc <= made && try_return(s, s->sp, SLACK, n))
		return true;
	if (made && s->pc == made + 1 && try_frame(s, s->sp + 2 * WORD, SLACK, n))
		return true;
	if (is_left(s) && try_return(s, s->sp, SLACK, n))
		return true;
	if (step_read_bp_frame(s, n) && n->cfa >= s->sp + size && step_is_ok(s, n, SLACK))
		return true;
	return size >= 2 * WORD && (try_frame(s, s->sp + size, SLACK, n) ||
				    step_slide(s, s->sp + size, n));
}

/* ---- the interpreter ------------------------------------------------------------------------- */

/* At a method's entry: its frame is not there yet, or just being built. RBX is the method. */
static bool try_entry(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t rax = step_reg(s, EH_RAX), r13 = step_reg(s, EH_R13), sender;

	if (r13 >= s->sp && r13 - s->sp < (1u << 20)) {
		*n = (struct hotspot_next){.pc = rax, .cfa = r13, .bp = s->bp};
		s->popped = true;
		if (hotspot_heap_of(s->c->layout, rax) && step_is_ok(s, n, SLACK))
			return true;
		s->popped = false;
	}
	if (try_return(s, s->sp, SLACK, n)) {
		struct hotspot_next strict = {.pc = n->pc, .cfa = r13, .bp = s->bp};

		if (step_is_ok(s, &strict, 0))
			*n = strict;
		return true;
	}
	if (s->bp - s->sp >= 24)             /* its method would be pushed already */
		return false;
	if (!step_read_frame(s, s->bp + 2 * WORD, n))
		return false;
	n->cfa = r13;
	if (s->sp <= s->bp - WORD && step_word(s, s->bp - WORD, &sender))
		n->cfa = sender;
	return step_is_ok(s, n, SLACK);
}

static bool try_interpreted(struct hotspot_step *s, uint64_t bcp, struct hotspot_next *n)
{
	return step_read_interpreted(s, bcp, n) && step_is_ok(s, n, SLACK);
}

/* The interpreter's frame has gone, or nearly. */
static bool try_exit(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t r13 = step_reg(s, EH_R13), rbx = step_reg(s, EH_RBX);
	bool left = HAS(s->blob, s->pc - 1, "\xc9") || HAS(s->blob, s->pc - 9, "\xc9\x41\xc6\x87");

	if (hotspot_heap_of(s->c->layout, r13)) {
		*n = (struct hotspot_next){.pc = r13, .cfa = s->sp, .bp = s->bp};
		if (HAS(s->blob, s->pc, "\x48\x8b\xe3"))
			n->cfa = rbx;
		s->popped = true;
		if (step_is_ok(s, n, SLACK))
			return true;
		s->popped = false;
	}
	if (!left || !HAS(s->blob, s->pc, "\x41\x5d") || !step_read_return(s, s->sp, n))
		return false;
	n->cfa = rbx;
	return step_is_ok(s, n, SLACK);
}

static bool leave_interpreter(struct hotspot_step *s, struct hotspot_next *n)
{
	struct hotspot_known framed = {0}, entered;
	uint64_t method = 0, r13 = step_reg(s, EH_R13), rbx = step_reg(s, EH_RBX);

	if (try_exit(s, n))
		return true;
	if (s->bp >= s->sp && s->bp - s->sp < (1u << 20) && step_word(s, s->bp - 24, &method) &&
	    hotspot_cache_method(s->c, s->host, method, &framed) && r13 >= framed.bytecodes &&
	    r13 - framed.bytecodes < framed.nbytecodes && try_interpreted(s, r13, n))
		return true;
	if (rbx != method && hotspot_cache_method(s->c, s->host, rbx, &entered) &&
	    try_entry(s, n)) {
		s->method = entered;
		s->bci = 0;
		return true;
	}
	s->method.valid = false;
	return try_interpreted(s, 0, n);
}

/* ---- adapters and stubs ---------------------------------------------------------------------- */

static bool leave_adapter(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t r13 = step_reg(s, EH_R13), rax = step_reg(s, EH_RAX), r11 = step_reg(s, EH_R11);
	struct hotspot_next extended;

	if (step_read_return(s, s->sp, n)) {
		/* From compiled code to the interpreter: the caller's stack was extended. */
		extended = *n;
		extended.cfa = r13;
		if (r13 > s->sp + WORD && r13 - s->sp < ADAPTER_REACH &&
		    step_is_ok(s, &extended, 0)) {
			*n = extended;
			return true;
		}
		if (step_is_ok(s, n, SLACK))
			return true;
	}
	if (!hotspot_heap_of(s->c->layout, rax))
		return false;
	s->popped = true;
	*n = (struct hotspot_next){.pc = rax, .cfa = r13, .bp = s->bp};
	if (r13 >= s->sp && r13 - s->sp < ADAPTER_REACH && step_is_ok(s, n, SLACK))
		return true;
	n->cfa = s->sp;
	if (step_is_ok(s, n, SLACK))
		return true;
	n->cfa = r11 + WORD;
	return r11 >= s->sp && r11 - s->sp < ADAPTER_REACH && step_is_ok(s, n, SLACK);
}

/* Where the return address of a stub is, by the bytes at PC; false = not known by them. */
static bool stub_return_at(const struct hotspot_step *s, uint64_t *at)
{
	unsigned i;

	*at = s->sp;
	if (HAS(s->blob, s->pc, "\xc3"))
		return true;
	if (HAS(s->blob, s->pc - 1, "\x55\x48\x8b\xec")) {
		*at = s->sp + WORD;
		return true;
	}
	for (i = 0; i < 16; i++)
		if (HAS(s->blob, s->pc + i, "\x55\x48\x8b\xec"))
			return true;
	return false;
}

/* With RBP as it was before: its new value is not set yet when it was only pushed. */
static bool read_stub_return(struct hotspot_step *s, uint64_t at, struct hotspot_next *n)
{
	return step_read_return(s, at, n) && (at == s->sp || step_word(s, s->sp, &n->bp));
}

static bool try_cookie(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t top, second;

	if (s->c->layout->major < 17 || !step_word(s, s->sp, &top) ||
	    !step_word(s, s->sp + WORD, &second))
		return false;
	if (top == UINT64_MAX)
		return try_return(s, s->sp + WORD, SLACK, n);
	return second == UINT64_MAX && try_return(s, s->sp + 2 * WORD, SLACK, n);
}

static bool try_stub(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t at;

	if (stub_return_at(s, &at) && read_stub_return(s, at, n) && step_is_ok(s, n, SLACK))
		return true;
	if (try_cookie(s, n))
		return true;
	/* RBP is not this frame's in a stub that makes none. */
	if (s->blob->kind == BLOB_OTHER && !step_has_enter(s->blob))
		return step_search(s, n);
	if (s->bp - s->sp <= ADAPTER_REACH && step_read_bp_frame(s, n) && step_is_ok(s, n, SLACK))
		return true;
	return step_search(s, n);
}

/* libjvm calls some stubs itself; of its frames nothing is known here. */
static bool try_native_caller(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t at;

	if (stub_return_at(s, &at) && read_stub_return(s, at, n) && n->pc > 4096 &&
	    !hotspot_heap_of(s->c->layout, n->pc))
		return true;
	return s->bp - s->sp <= ADAPTER_REACH && step_read_bp_frame(s, n) && n->pc > 4096 &&
	       !hotspot_heap_of(s->c->layout, n->pc);
}

static bool leave_stub(struct hotspot_step *s, struct hotspot_next *n)
{
	return try_stub(s, n) || try_native_caller(s, n);
}

static bool leave_runtime(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t cfa = s->sp + WORD * s->blob->frame_words;

	if (s->blob->kind == BLOB_EXCEPTION) {
		*n = (struct hotspot_next){.pc = step_reg(s, EH_RDX), .cfa = s->sp, .bp = s->bp};
		s->popped = true;
		if (step_is_ok(s, n, SLACK))
			return true;
		s->popped = false;
	}
	if (s->blob->frame_words >= 2 &&
	    (try_frame(s, cfa, 2, n) || try_frame(s, cfa + WORD, 2, n)))
		return true;
	return leave_stub(s, n);
}

/* Code that was freed since. */
static bool leave_freed(struct hotspot_step *s, struct hotspot_next *n)
{
	uint64_t at;

	for (at = s->sp; at - s->sp <= FREED_BYTES; at += WORD)
		if (step_read_frame(s, at + WORD, n) && step_is_ok(s, n, SLACK))
			return true;
	return false;
}

static bool leave(struct hotspot_step *s, struct hotspot_next *n)
{
	if (!s->blob)
		return leave_freed(s, n);
	switch (s->blob->kind) {
	case BLOB_NMETHOD:
		return leave_nmethod(s, n);
	case BLOB_NATIVE:
		return leave_native(s, n);
	case BLOB_INTERPRETER:
		return leave_interpreter(s, n);
	case BLOB_VTABLE:
	case BLOB_ADAPTER:
	case BLOB_MH_ADAPTER:
		return leave_adapter(s, n);
	case BLOB_SIGNATURE:
		return try_return(s, s->sp, SLACK, n);
	case BLOB_RUNTIME:
	case BLOB_EXCEPTION:
	case BLOB_SAFEPOINT:
		return leave_runtime(s, n);
	default:
		return leave_stub(s, n);
	}
}

enum unwind_result step_from_leaf(struct hotspot_step *s)
{
	struct hotspot_next n = {0};

	if (s->pc == s->c->layout->call_stub_return)
		return step_from_caller(s);
	return leave(s, &n) ? step_take(s, &n) : step_give_up(s);
}
