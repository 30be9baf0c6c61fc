/*
 * What is known of one V8: functions by what their frames point to, scripts, and generated code by
 * address. Objects move, and others come to their places. So what is known serves a sample only if
 * it was seen unchanged after the sample was taken: that takes one look for all samples that are
 * read together. Names are never lent: they are made of what was read.
 *
 * One thread, the owner of the reader.
 */
#pragma once

#include "managed/node/code.h"
#include "managed/node/leaf.h"

#define V8_TASKS_OF_A_SAMPLE 24u

/* A function with a name. */
struct v8_known {
	uint64_t key;                        /* its bytecode */
	struct v8_mark mark;
	uint64_t checked_ns;                 /* when it was seen unchanged, as that of: */
	uint64_t function;                   /* a JSFunction; 0 = none was seen */
	uint64_t since_ns;                   /* v8_known_serves() samples from then on */
	uint32_t number;                     /* of its name; 0 = not known */
	uint32_t script;                     /* of its script, among the known ones; 0 = none */
	uint64_t script_ns;                  /* from then on its script was there */
	uint32_t npositions;
	uint8_t *positions;                  /* of its bytecode; owned; NULL = not known */
};

/* Generated code, with the names of its functions. */
struct v8_known_code {
	struct v8_code is;                   /* literals: freed */
	uint64_t checked_ns;
	uint8_t *bytes;                      /* its instructions, from the first on; owned */
	uint32_t nbytes;
	struct v8_known outer;
	uint64_t former;                     /* a JSFunction of the code before; 0 = none */
	struct v8_known *inlined;            /* is.nliterals of them */
};

/* A builtin: its instructions, which never change. */
struct v8_known_builtin {
	uint64_t begin;
	uint32_t nbytes;
	uint8_t *bytes;                      /* owned */
	struct v8_builtin_shape shape;
};

/* A word of a stack, that may be a return address. */
struct v8_return {
	uint64_t at;
	uint64_t target;                     /* of a direct call; 0 = of another one */
	bool called;                         /* there is a call before it */
};

struct v8_knowledge;

int v8_knowledge_new(const struct v8_layout *layout, struct managed_names *names,
		     struct v8_knowledge **out);
void v8_knowledge_free(struct v8_knowledge *k);      /* NULL allowed */
size_t v8_knowledge_bytes(const struct v8_knowledge *k);
const struct v8_layout *v8_knowledge_layout(const struct v8_knowledge *k);

/* A sample of this time comes next, with reads of its own. */
void v8_knowledge_begin(struct v8_knowledge *k, uint64_t sample_ns);

/*
 * The function of a frame: its JSFunction, and its bytecode. Valid until the next call. NULL: they
 * do not belong together, or cannot be read now
 */
const struct v8_known *v8_known_function(struct v8_knowledge *k, const struct managed_host *host,
					 uint64_t function, uint64_t bytecode);
/* The code of an address; valid until the next call. NULL = none that is known. */
const struct v8_known_code *v8_known_code(struct v8_knowledge *k, const struct managed_host *host,
					  uint64_t pc);
/*
 * Whether the sample that was begun may have this name. What was read for the first time may have
 * come to its place after a sample that is older than V8_LATE_NS; or than V8_SOON_NS, if it is of
 * one of many scripts that come and go, and the script may have come after the sample, too: the
 * next one is laid out as the one before, so function and bytecode are found in its places. What
 * is another one than at the last look may have come after any sample.
 */
#define V8_LATE_NS 500000000ULL
#define V8_SOON_NS 80000000ULL
bool v8_known_serves(const struct v8_knowledge *k, const struct v8_known *f);
/*
 * Is it certain all the same that the code of this address was there, because a frame of the
 * sample has this JSFunction, which is the code's? Not if the code before had the same one.
 */
bool v8_known_runs(struct v8_knowledge *k, const struct managed_host *host, uint64_t pc,
		   uint64_t function);
/* The number of a name of code that is no function's. */
uint32_t v8_known_text(struct v8_knowledge *k, const char *name);
/* The builtin of an address in V8's builtins; valid until the next call. NULL = not known. */
const struct v8_known_builtin *v8_known_builtin(struct v8_knowledge *k,
						const struct managed_host *host, uint64_t pc);
/* Look at what is before these words: at most V8_LEAF_WORDS. false: it cannot be read now */
bool v8_known_returns(struct v8_knowledge *k, const struct managed_host *host,
		      struct v8_return *words, unsigned n);
/* Where in the script a bytecode is, counted from the first; -1 = not known. */
int32_t v8_known_position(const struct v8_knowledge *k, const struct v8_known *f, uint32_t offset);
/* The line of a position in the function's script; 0 = not known. */
uint32_t v8_known_line(const struct v8_knowledge *k, const struct v8_known *f, int32_t position);
