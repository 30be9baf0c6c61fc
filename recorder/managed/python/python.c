#include "managed/python/python.h"

#include "base/bytes.h"
#include "base/slots.h"
#include "base/table.h"
#include "managed/exports.h"
#include "managed/python/code.h"
#include "managed/python/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODES_MAX 4096u
#define LINES_MAX_BYTES ((size_t)4 << 20)    /* tables of lines of one process */
#define READ_TOGETHER 64u                    /* code objects of one task */
#define TASKS_MAX 4u                         /* of one sample */
#define LINES_KNOWN 4u
#define HEAD_CODE_BYTES 16u

struct known_line {
	int32_t position, line;
};

struct code {
	uint64_t address, stamp;
	uint32_t number;                     /* of its name; 0 = it has none */
	int32_t first_line;
	uint8_t *lines;
	uint32_t nlines, next_known;
	struct known_line known[LINES_KNOWN];        /* line 0 = empty */
};

struct python {                              /* what others know as struct managed */
	struct python_target target;
	struct python_evaluator evaluator;
	uint64_t code_type;
	struct managed_names *names;
	struct slots codes;
	struct table by_address;
	size_t lines_bytes;
};

/* ---- learning -------------------------------------------------------------------------------- */

struct learn_task {
	struct managed_task base;
	uint64_t image_base;
	unsigned version;                    /* by its file's name */
	struct python python;                /* out: without names and codes */
	int rc;
	struct err err;
};

enum { X_RUNTIME, X_CURRENT, X_VERSION, X_CODE_TYPE, X_EVALUATOR, X_EVALUATOR_2, X_HEAD, EXPORTS };

static const struct managed_export exports_wanted[EXPORTS] = {
	[X_RUNTIME] = {.name = "_PyRuntime"},
	[X_CURRENT] = {.name = "_PyThreadState_Current"},
	[X_VERSION] = {.name = "Py_Version"},
	[X_CODE_TYPE] = {.name = "PyCode_Type"},
	[X_EVALUATOR] = {.name = "_PyEval_EvalFrameDefault"},
	[X_EVALUATOR_2] = {.name = "PyEval_EvalFrameEx"},
	[X_HEAD] = {.name = "PyInterpreterState_Head"},
};

/* The address in "mov rax, [rip + N]; ret", which that function consists of. 0: it does not */
static uint64_t head_by_code(const struct managed_memory *m, uint64_t function)
{
	static const uint8_t endbr[4] = {0xf3, 0x0f, 0x1e, 0xfa}, load[3] = {0x48, 0x8b, 0x05};
	uint8_t code[HEAD_CODE_BYTES];
	size_t at = 0;

	if (!function || !managed_read(m, function, code, sizeof(code)))
		return 0;
	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		at = sizeof(endbr);
	if (memcmp(code + at, load, sizeof(load)) != 0 || code[at + 7] != 0xc3)
		return 0;
	return function + at + 7 + (uint64_t)(int64_t)(int32_t)le32(code + at + 3);
}

static bool read_layout(struct learn_task *t, const struct managed_memory *m,
			const struct managed_export *x)
{
	uint8_t bytes[PYTHON_DEBUG_WORDS * 8], version[4];
	uint64_t words[PYTHON_DEBUG_WORDS];
	size_t i;

	if (x[X_RUNTIME].at && managed_read(m, x[X_RUNTIME].at, bytes, sizeof(bytes))) {
		for (i = 0; i < PYTHON_DEBUG_WORDS; i++)
			words[i] = le64(bytes + 8 * i);
		if (python_layout_debug(words, PYTHON_DEBUG_WORDS, &t->python.target.layout))
			return true;
	}
	if (x[X_VERSION].at && managed_read(m, x[X_VERSION].at, version, sizeof(version)))
		t->version = le32(version) >> 16;
	return python_layout_get(t->version, &t->python.target.layout);
}

/* Is there an interpreter with a thread, as the offsets say? */
static bool has_started(const struct python_target *t, const struct managed_memory *m)
{
	uint8_t bytes[8];
	uint64_t interp, tstate;

	if (!t->head || !managed_read(m, t->head, bytes, 8) || !(interp = le64(bytes)) ||
	    !managed_read(m, interp + t->layout.interp_threads, bytes, 8))
		return false;
	tstate = le64(bytes);
	return tstate && managed_read(m, tstate + t->layout.tstate_interp, bytes, 8) &&
	       le64(bytes) == interp;
}

/* The lock of the first interpreter, which others share unless they ask for one of their own. */
static uint64_t find_gil(const struct python_target *t, const struct managed_memory *m,
			 uint64_t runtime)
{
	uint8_t bytes[8];

	if (!t->layout.gil || t->layout.free_threaded)
		return 0;
	if (t->layout.version < PYTHON_VERSION(3, 12))
		return runtime + t->layout.gil;
	return managed_read(m, t->head, bytes, 8) &&
	       managed_read(m, le64(bytes) + t->layout.gil, bytes, 8) ? le64(bytes) : 0;
}

static int learn_it(struct learn_task *t, const struct managed_memory *m)
{
	struct managed_export x[EXPORTS];
	struct python *p = &t->python;
	int rc;

	memcpy(x, exports_wanted, sizeof(x));
	rc = managed_exports_read(m, t->image_base, x, EXPORTS, &t->err);
	if (rc)
		return rc;
	if (!x[X_CODE_TYPE].at || (!x[X_RUNTIME].at && !x[X_CURRENT].at))
		return err_set(&t->err, ERR_UNSUPPORTED, "its file exports no interpreter");
	if (!read_layout(t, m, x))
		return err_set(&t->err, ERR_UNSUPPORTED, "version %u.%u is not known",
			       t->version >> 8, t->version & 255);
	p->code_type = x[X_CODE_TYPE].at;
	if (p->target.layout.interpreters)
		p->target.head = x[X_RUNTIME].at + p->target.layout.interpreters;
	else
		p->target.head = head_by_code(m, x[X_HEAD].at);
	p->target.current = x[X_CURRENT].at;
	p->evaluator.at = x[X_EVALUATOR].at ? x[X_EVALUATOR].at : x[X_EVALUATOR_2].at;
	p->evaluator.bytes = x[X_EVALUATOR].at ? x[X_EVALUATOR].size : x[X_EVALUATOR_2].size;
	if (!has_started(&p->target, m))
		return err_set(&t->err, ERR_BUSY, "it is still starting");
	p->target.gil = find_gil(&p->target, m, x[X_RUNTIME].at);
	return 0;
}

static void run_learn(struct managed_task *task, const struct managed_memory *memory)
{
	struct learn_task *t = (struct learn_task *)task;

	t->rc = learn_it(t, memory);
}

static void free_learn(struct managed_task *task)
{
	free(task);
}

static bool recognizes(const char *file)
{
	return python_version_of_name(file) != 0;
}

static int learn(const struct managed_image *image, const struct managed_host *host,
		 struct managed_names *names, struct managed **out, struct err *err)
{
	struct learn_task *t = calloc(1, sizeof(*t));
	struct python *p;
	int rc;

	if (!t)
		return err_memory(err, "for a Python program");
	t->base = (struct managed_task){.run = run_learn, .free = free_learn};
	t->image_base = image->base;
	t->version = python_version_of_name(image->file);
	if (!host->run(host->ctx, &t->base))
		return err_set(err, ERR_BUSY, "its memory does not answer");
	rc = t->rc;
	if (rc && err)
		*err = t->err;
	p = rc ? NULL : malloc(sizeof(*p));
	if (p)
		*p = t->python;
	free(t);
	if (rc)
		return rc;
	if (p && slots_init(&p->codes, sizeof(struct code), CODES_MAX)) {
		free(p);
		p = NULL;
	}
	if (!p)
		return err_memory(err, "for a Python program");
	p->names = names;
	*out = (struct managed *)p;
	return 0;
}

/* ---- code objects ---------------------------------------------------------------------------- */

static bool same_code(const void *ctx, uint32_t value, const void *key)
{
	const struct python *p = ctx;
	const struct code *c = slots_get(&p->codes, value);
	const struct python_spot *s = key;

	return c->address == s->code && c->stamp == s->stamp;
}

static struct code *find_code(const struct python *p, const struct python_spot *s)
{
	uint32_t number = table_find(&p->by_address, hash_pair(s->code, s->stamp), same_code, p, s);

	return number == TABLE_NONE ? NULL : slots_get(&p->codes, number);
}

static void clear_codes(struct python *p)
{
	uint32_t number, at = 0;

	while ((number = table_next(&p->by_address, &at)) != TABLE_NONE)
		free(((struct code *)slots_get(&p->codes, number))->lines);
	table_free(&p->by_address);
	slots_free(&p->codes);
	p->lines_bytes = 0;
}

static uint32_t add_name(const struct python *p, const char *function, const char *file)
{
	char detail[MANAGED_TEXT_MAX + 1];

	snprintf(detail, sizeof(detail), "@%.*s", (int)MANAGED_TEXT_MAX - 1, file);
	return managed_names_add(p->names, function, detail);
}

/* Keep what was read; takes its lines. One that was not there keeps its frame without a name. */
static void keep_code(struct python *p, const struct python_spot *s, struct python_code *read,
		      bool found)
{
	uint32_t number;
	struct code *c;

	if (p->by_address.used >= CODES_MAX || p->lines_bytes > LINES_MAX_BYTES) {
		clear_codes(p);
		if (slots_init(&p->codes, sizeof(struct code), CODES_MAX))
			return;
	}
	number = table_add_slot(&p->by_address, hash_pair(s->code, s->stamp), &p->codes,
				SLOTS_NONE);
	if (number == SLOTS_NONE) {
		free(read->lines);
		return;
	}
	c = slots_get(&p->codes, number);
	c->address = s->code;
	c->stamp = s->stamp;
	if (!found)
		return;
	c->number = add_name(p, read->function, read->file);
	c->first_line = read->first_line;
	c->lines = read->lines;
	c->nlines = read->nlines;
	p->lines_bytes += read->nlines;
}

struct code_task {
	struct managed_task base;
	struct python_layout layout;
	uint64_t type;
	uint32_t n;
	struct python_spot spots[READ_TOGETHER];
	bool found[READ_TOGETHER];
	struct python_code codes[READ_TOGETHER];
};

static void run_codes(struct managed_task *task, const struct managed_memory *memory)
{
	struct code_task *t = (struct code_task *)task;
	uint32_t i;

	for (i = 0; i < t->n; i++)
		t->found[i] = python_code_read(&t->layout, memory, t->type, t->spots[i].code,
					       t->spots[i].stamp, &t->codes[i]);
}

static void free_codes(struct managed_task *task)
{
	struct code_task *t = (struct code_task *)task;
	uint32_t i;

	for (i = 0; i < t->n; i++)
		free(t->codes[i].lines);
	free(t);
}

static void want(struct code_task *t, const struct python_spot *s)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (t->spots[i].code == s->code && t->spots[i].stamp == s->stamp)
			return;
	t->spots[t->n++] = *s;
}

/* returns  false: none is missing, or they cannot be read now */
static bool read_missing(struct python *p, const struct managed_host *host,
			 const struct python_peek *peek)
{
	struct code_task *t = NULL;
	uint32_t i;

	for (i = 0; i < peek->n; i++) {
		if (!peek->spots[i].stamp || find_code(p, &peek->spots[i]))
			continue;
		if (!t && !(t = calloc(1, sizeof(*t))))
			return false;
		want(t, &peek->spots[i]);
		if (t->n == READ_TOGETHER)
			break;
	}
	if (!t)
		return false;
	t->base = (struct managed_task){.run = run_codes, .free = free_codes};
	t->layout = p->target.layout;
	t->type = p->code_type;
	if (!host->run(host->ctx, &t->base))
		return false;
	for (i = 0; i < t->n; i++)
		keep_code(p, &t->spots[i], &t->codes[i], t->found[i]);
	free(t);
	return true;
}

static int32_t line_of(const struct python *p, struct code *c, int32_t position)
{
	struct known_line *k;
	uint32_t i;

	for (i = 0; i < LINES_KNOWN; i++)
		if (c->known[i].position == position && c->known[i].line)
			return c->known[i].line;
	k = &c->known[c->next_known++ % LINES_KNOWN];
	k->position = position;
	k->line = python_line(p->target.layout.version, c->lines, c->nlines, c->first_line,
			      position);
	return k->line;
}

/* As it was read at the sample; NULL = it was not. */
static const struct python_named *named_of(const struct python_peek *peek,
					   const struct python_spot *s)
{
	uint32_t i;

	for (i = 0; i < peek->nnamed; i++)
		if (peek->spots[peek->named[i].spot].code == s->code &&
		    peek->spots[peek->named[i].spot].stamp == s->stamp)
			return &peek->named[i];
	return NULL;
}

static struct frame_ref ref_of(const struct python *p, struct object *object,
			       const struct python_peek *peek, const struct python_spot *s)
{
	struct code *c = s->stamp ? find_code(p, s) : NULL;
	const struct python_named *named = s->stamp ? named_of(peek, s) : NULL;
	struct frame_ref ref = {.object = object, .flags = FRAME_JIT};
	int32_t line = c && c->number ? line_of(p, c, s->position) : 0;
	uint32_t number = c ? c->number : 0;

	/* It was gone, or could not be read, when that was tried. */
	if (!number && named) {
		number = add_name(p, named->text, named->text + strlen(named->text) + 1);
		line = named->first_line;
		if (c) {
			c->number = number;
			c->first_line = line;
		}
	}
	if (number)
		ref.offset = managed_offset(number, MANAGED_OTHER, line);
	return ref;
}

static bool place(struct managed *m, const struct managed_host *host, struct object *object,
		  const struct python_peek *peek, struct unwind_stack *stack)
{
	struct python *p = (struct python *)m;
	struct frame_ref refs[PYTHON_FRAMES_MAX];
	uint32_t i;

	for (i = 0; i < TASKS_MAX && read_missing(p, host, peek); i++)
		;
	for (i = 0; i < peek->n; i++)
		refs[i] = ref_of(p, object, peek, &peek->spots[i]);
	return python_place(&p->target.layout, &p->evaluator, peek, refs, stack);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static const struct python_target *target(const struct managed *m)
{
	return &((const struct python *)m)->target;
}

/* Its functions have no code of their own. */
static bool owns(const struct managed *m, uint64_t pc, const struct managed_place *place)
{
	(void)m;
	(void)pc;
	(void)place;
	return false;
}

static void begin(struct managed *m, const struct managed_host *host, uint64_t sample_ns)
{
	(void)m;
	(void)host;
	(void)sample_ns;
}

static void forget(struct managed *m)
{
	if (!m)
		return;
	clear_codes((struct python *)m);
	free(m);
}

static size_t bytes(const struct managed *m)
{
	const struct python *p = (const struct python *)m;

	return sizeof(*p) + p->lines_bytes + slots_bytes(&p->codes) + table_bytes(&p->by_address);
}

const struct frame_reader python_reader = {
	.name = "CPython",
	.object = "[python]",
	.recognizes = recognizes,
	.learn = learn,
	.owns = owns,
	.begin = begin,
	.target = target,
	.place = place,
	.forget = forget,
	.bytes = bytes,
};
