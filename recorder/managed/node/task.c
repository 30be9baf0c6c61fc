#include "managed/node/task_private.h"

#include "managed/ahead.h"

#include <stdlib.h>
#include <string.h>

#define CODE_KEPT (32u << 10)                /* bytes of instructions that are kept of one code */
#define BUILTIN_REACH (64u << 10)            /* larger builtins are not told from others */
#define BUILTIN_PIECE 8192u

/*
 * The functions of optimized code, while their addresses are fresh: a collection may move them at
 * any time later.
 */
static void read_functions(struct v8_task *t, const struct managed_memory *m)
{
	uint32_t i;

	if (t->code.optimized && !v8_function_read(&t->layout, m, t->code.mark.shared, &t->of))
		t->of.mark.shared = 0;
	t->inlined = t->code.nliterals ? calloc(t->code.nliterals, sizeof(*t->inlined)) : NULL;
	for (i = 0; t->inlined && i < t->code.nliterals; i++)
		if (!v8_function_read(&t->layout, m, t->code.literals[i], &t->inlined[i]))
			t->inlined[i].mark.shared = 0;
	/* They were its functions if it is still that code. */
	t->found = v8_code_is(&t->layout, m, t->code.begin, &t->code.mark);
}

static void read_bytes(struct v8_task *t, const struct managed_memory *m)
{
	uint64_t n = t->code.end - t->code.begin;

	t->nbytes = n < CODE_KEPT ? (uint32_t)n : CODE_KEPT;
	t->bytes = malloc(t->nbytes);
	if (!t->bytes || !managed_read(m, t->code.begin, t->bytes, t->nbytes))
		t->nbytes = 0;
}

/* From piece to piece: where it begins, and where the next one does. */
static bool read_builtin(struct v8_task *t, const struct managed_memory *m)
{
	uint64_t pc = t->at, from = pc & ~(uint64_t)(BUILTIN_PIECE - 1);
	size_t begin = SIZE_MAX, end, next = SIZE_MAX, n, got;

	t->bytes = malloc(2 * BUILTIN_REACH);
	if (!t->bytes || pc < 2 * BUILTIN_REACH)
		return false;
	for (;; from -= BUILTIN_PIECE) {
		n = (size_t)(pc + 1 - from);
		if (n > BUILTIN_REACH || !managed_read(m, from, t->bytes, n))
			return false;
		begin = v8_builtin_begin(t->bytes, n, from);
		if (begin != SIZE_MAX)
			break;
	}
	t->at = from + begin;
	n -= begin;
	memmove(t->bytes, t->bytes + begin, n);
	/* What cannot be read is behind its end. */
	for (end = n; end < n + BUILTIN_REACH - BUILTIN_PIECE && next == SIZE_MAX; end += got) {
		got = m->read(m->ctx, t->at + end, t->bytes + end, BUILTIN_PIECE);
		if (!got)
			break;
		next = v8_builtin_end(t->bytes, n, end + got, t->at);
	}
	t->nbytes = (uint32_t)(next != SIZE_MAX ? next : end);
	return true;
}

static bool read_returns(struct v8_task *t, const struct managed_memory *m)
{
	uint8_t before[8];
	int32_t by;
	unsigned i;

	for (i = 0; i < t->nreturns; i++) {
		struct v8_return *r = &t->returns[i];

		r->called = r->at > sizeof(before) && r->at < (uint64_t)1 << 47 &&
			    managed_read(m, r->at - sizeof(before), before, sizeof(before)) &&
			    v8_is_call(before, &by);
		r->target = r->called && by ? r->at + (uint64_t)(int64_t)by : 0;
	}
	return true;
}

/*
 * Its JSFunction says so. When that was moved and its place is not one any more, the frame has the
 * two that belonged together a moment ago, and the SharedFunctionInfo has that bytecode still.
 */
static bool is_same_function(const struct v8_layout *l, const struct managed_memory *m,
			     struct v8_same *same)
{
	uint64_t shared = v8_shared(l, m, same->function);

	return v8_mark_still(l, m, &same->mark) &&
	       (shared ? shared == same->mark.shared
		       : same->lately && v8_mark_has(l, m, &same->mark, same->key));
}

/* Words of an object that will be read, if it still is where it was. */
static void add_object(struct managed_ahead *a, uint64_t object, unsigned offset, size_t n)
{
	if (v8_is_object(object))
		managed_ahead_add(a, object - 1 + offset, n);
}

/* 68 reads of eight functions become one system call. */
static void add_same(struct managed_ahead *a, const struct v8_layout *l, const struct v8_same *same)
{
	const struct v8_code_mark *code = &same->code_mark;

	if (same->is_code) {
		managed_ahead_add(a, same->key - l->row.code_header, 16);
		add_object(a, code->code, 0, V8_CODE_BYTES);
		add_object(a, code->deopt, V8_ELEMENTS + 8 * l->row.deopt_shared, 8);
	} else {
		add_object(a, same->function, 0, l->row.function_shared + 8u);
	}
	add_object(a, same->mark.shared, 0, V8_SHARED_BYTES);
	add_object(a, same->mark.script_word, V8_SCRIPT_ID, 8);
}

/* The type of an object whose first word is in the picture `of`. */
static void add_type(struct managed_ahead *a, const struct managed_ahead *of, uint64_t object)
{
	uint64_t map;

	if (object && v8_word(&of->memory, object, 0, &map))
		add_object(a, map, V8_MAP_TYPE, 2);
}

static void read_same(struct v8_task *t, const struct managed_memory *target)
{
	struct managed_ahead objects = {.keeps = true}, types = {.keeps = true};
	const struct managed_memory *m = &types.memory;
	unsigned i;

	for (i = 0; i < t->nsame; i++)
		add_same(&objects, &t->layout, &t->same[i]);
	managed_ahead_fetch(&objects, target);
	for (i = 0; i < t->nsame; i++) {
		const struct v8_same *same = &t->same[i];

		add_type(&types, &objects, same->is_code ? same->code_mark.code : same->function);
		add_type(&types, &objects, same->mark.shared);
	}
	managed_ahead_fetch(&types, &objects.memory);
	for (i = 0; i < t->nsame; i++) {
		struct v8_same *same = &t->same[i];

		same->found = same->is_code
				      ? v8_code_is(&t->layout, m, same->key, &same->code_mark) &&
						(!same->mark.shared ||
						 v8_mark_still(&t->layout, m, &same->mark))
				      : is_same_function(&t->layout, m, same);
	}
	t->found = t->same[0].found;
	managed_ahead_free(&types);
	managed_ahead_free(&objects);
}

/* The SharedFunctionInfo of a frame's function, if it has the frame's bytecode: three calls. */
static uint64_t read_shared_of(const struct v8_task *t, const struct managed_memory *target)
{
	struct managed_ahead function = {.keeps = true}, shared = {.keeps = true},
			     types = {.keeps = true};
	const struct v8_layout *l = &t->layout;
	uint64_t at = 0, word, result;

	add_object(&function, t->function, 0, l->row.function_shared + 8u);
	managed_ahead_fetch(&function, target);
	add_type(&shared, &function, t->function);
	if (v8_word(&function.memory, t->function, l->row.function_shared, &at))
		add_object(&shared, at, 0, V8_SHARED_BYTES);
	managed_ahead_fetch(&shared, &function.memory);
	add_type(&types, &shared, at);
	if (v8_word(&shared.memory, at, l->row.shared_script, &word))
		add_object(&types, word, V8_SCRIPT_ID, 8);
	if (v8_word(&shared.memory, at, l->row.shared_data[0], &word))
		add_object(&types, word, 0, 8);
	managed_ahead_fetch(&types, &shared.memory);
	result = v8_shared_of(l, &types.memory, t->function, t->bytecode);
	managed_ahead_free(&types);
	managed_ahead_free(&shared);
	managed_ahead_free(&function);
	return result;
}

static void run_task(struct managed_task *task, const struct managed_memory *m)
{
	struct v8_task *t = (struct v8_task *)task;
	uint64_t shared;

	switch (t->kind) {
	case TASK_FUNCTION:
		shared = read_shared_of(t, m);
		t->found = shared && v8_function_read(&t->layout, m, shared, &t->of);
		if (t->found && v8_word(m, t->bytecode, t->layout.row.bytecode_positions, &shared))
			t->positions = v8_positions_read(m, shared, &t->npositions);
		break;
	case TASK_SCRIPT:
		t->found = v8_script_read(&t->layout, m, t->at, &t->script);
		break;
	case TASK_CODE:
		t->found = v8_code_find(&t->layout, m, t->at, &t->code);
		if (t->found) {
			read_bytes(t, m);
			read_functions(t, m);
		}
		break;
	case TASK_BUILTIN:
		t->found = read_builtin(t, m);
		break;
	case TASK_RETURNS:
		t->found = read_returns(t, m);
		break;
	case TASK_SAME:
		read_same(t, m);
		break;
	case TASK_RUNS:
		t->found = v8_shared(&t->layout, m, t->function) == t->mark.shared;
		break;
	}
}

static void free_it(struct managed_task *task)
{
	struct v8_task *t = (struct v8_task *)task;

	free(t->positions);
	free(t->inlined);
	free(t->bytes);
	free(t->same);
	free(t->script.ends);
	v8_code_free(&t->code);
	free(t);
}

void v8_task_free(struct v8_task *t)
{
	free_it(&t->base);
}

struct v8_task *v8_task_new(const struct v8_layout *layout, const struct v8_task *what)
{
	struct v8_task *t = malloc(sizeof(*t));

	if (!t)
		return NULL;
	*t = *what;
	t->base = (struct managed_task){.run = run_task, .free = free_it};
	t->layout = *layout;
	return t;
}
