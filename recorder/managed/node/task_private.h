/*
 * What is read of a V8 on the thread that reads memory (managed/reader.h): one task for each thing
 * that known.c asks for. A task owns all that it reads.
 *
 * Threads: v8_task_new() and v8_task_free() the owner's; tasks run on any.
 */
#pragma once

#include "managed/node/known.h"

enum v8_task_kind {
	TASK_FUNCTION, TASK_SAME, TASK_SCRIPT, TASK_CODE, TASK_RUNS, TASK_BUILTIN, TASK_RETURNS
};

/* Whether a function, or code, is still the one that was known. */
struct v8_same {
	bool is_code, found;
	uint64_t key, function;
	bool lately;                         /* they belonged together a moment ago */
	struct v8_mark mark;                 /* in, out */
	struct v8_code_mark code_mark;
};

struct v8_task {
	struct managed_task base;
	enum v8_task_kind kind;
	struct v8_layout layout;
	uint64_t function, bytecode;         /* in */
	uint64_t at;                         /* in: of a script, or a pc */
	struct v8_mark mark;                 /* in: of TASK_RUNS */
	struct v8_same *same;                   /* of TASK_SAME: the one that is asked for, first */
	unsigned nsame;
	bool found;                          /* out */
	struct v8_function of;
	uint8_t *positions;
	uint32_t npositions;
	struct v8_script script;
	struct v8_code code;
	struct v8_function *inlined;         /* code.nliterals; with a mark: it was read */
	uint8_t *bytes;                      /* of code, or of a builtin that begins at `at` */
	uint32_t nbytes;
	struct v8_return returns[V8_LEAF_WORDS];     /* in: at */
	unsigned nreturns;
};

/* A task like this one, to be run; takes what it owns. NULL = no memory, and nothing is taken. */
struct v8_task *v8_task_new(const struct v8_layout *layout, const struct v8_task *what);
void v8_task_free(struct v8_task *t);
