/*
 * V8's heap objects, read from the target's memory: functions, what they are called, and where in
 * which script they are. Objects move and die while they are read: types are checked before any
 * other field, pointers are followed to a bounded depth, and what does not fit is "not known".
 *
 * For tasks: any thread.
 */
#pragma once

#include "managed/node/layout.h"

#define V8_NAME_BYTES 256u
#define V8_SCRIPT_BYTES 512u
#define V8_SOURCE_MAX (4u << 20)             /* characters of a script */
#define V8_LINES_MAX 200000u

/* A word that points to an object. */
static inline bool v8_is_object(uint64_t word)
{
	return (word & 3) == 1 && word > 4096 && word < (uint64_t)1 << 47;
}

/* A small integer in 0 to 2^31 - 1. */
static inline bool v8_is_count(uint64_t word)
{
	return !(word << 32) && !(word >> 63);
}

bool v8_word(const struct managed_memory *m, uint64_t object, unsigned offset, uint64_t *out);
/* The type of an object; -1 = there is none. */
int v8_type(const struct managed_memory *m, uint64_t object);

/* What tells a SharedFunctionInfo from another that came to its place: its words, and: */
struct v8_mark {
	uint64_t shared, data[2], name, script_word;
	uint64_t script_id;                  /* V8 gives each only once */
};

/* What a SharedFunctionInfo says: one for each function in a source. */
struct v8_function {
	char name[V8_NAME_BYTES];            /* UTF-8; "" = it has none */
	uint64_t script;                     /* 0 = none */
	int32_t position;                    /* where it begins in the script; -1 = not known */
	struct v8_mark mark;
};

bool v8_function_read(const struct v8_layout *l, const struct managed_memory *m, uint64_t shared,
		      struct v8_function *out);

/* Is it still this one? */
bool v8_mark_is(const struct v8_layout *l, const struct managed_memory *m,
		const struct v8_mark *mark);

/*
 * The same of a function that was compiled, and may have been compiled again, or flushed: brings
 * its data up to date. That it is still somebody's is not said: what nobody uses any more stays
 * unchanged for a while.
 */
bool v8_mark_still(const struct v8_layout *l, const struct managed_memory *m, struct v8_mark *mark);
/* Does its data lead to this bytecode? */
bool v8_mark_has(const struct v8_layout *l, const struct managed_memory *m,
		 const struct v8_mark *mark, uint64_t bytecode);

/* The SharedFunctionInfo of a JSFunction, which may have been moved; 0: not known. */
uint64_t v8_shared(const struct v8_layout *l, const struct managed_memory *m, uint64_t function);
/*
 * The SharedFunctionInfo of a JSFunction, if this is its bytecode: what the frame says and what the
 * object says agree, so it is no other object that came to its place. 0: not known
 */
uint64_t v8_shared_of(const struct v8_layout *l, const struct managed_memory *m, uint64_t function,
		      uint64_t bytecode);

struct v8_script {
	char name[V8_SCRIPT_BYTES];          /* path or URL; "" = none */
	uint32_t *ends;                      /* the position of each line's end; NULL = not known */
	uint32_t nends;
};

/* free(ends) in the end. */
bool v8_script_read(const struct v8_layout *l, const struct managed_memory *m, uint64_t script,
		    struct v8_script *out);
/* Counted from 1; 0 = not known. */
uint32_t v8_line(const struct v8_script *s, int32_t position);
