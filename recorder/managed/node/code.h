/*
 * Code that V8 generated: the Code object of an address, and whose functions it is.
 *
 * Sources: V8's code.h, deoptimization-data.h, source-position-table.cc. For tasks: any thread.
 */
#pragma once

#include "managed/node/object.h"

#define V8_INLINED_MAX 32u

/* What tells a piece of code from one that came later to the same place. */
struct v8_code_mark {
	uint64_t code, deopt, positions;
	uint64_t shared;                     /* of optimized code; 0 = not known */
	uint32_t flags, bytes;
};

struct v8_code {
	uint64_t begin, end;                 /* its instructions */
	struct v8_code_mark mark;
	bool optimized, baseline;            /* Maglev or TurboFan; Sparkplug */
	bool regexp;                         /* a regular expression's; of no function */
	/* Of optimized code; malloc()ed, v8_code_free(). */
	uint8_t *positions;
	uint32_t npositions;
	uint8_t *inlining;                   /* 16 bytes each: u64 position, i32 function */
	uint32_t ninlining;
	uint64_t *literals;                  /* SharedFunctionInfo of each inlined function */
	uint32_t nliterals;
};

/* The code that a pc lies in. false: none was found */
bool v8_code_find(const struct v8_layout *l, const struct managed_memory *m, uint64_t pc,
		  struct v8_code *out);
/* Is this still the code at begin? */
bool v8_code_is(const struct v8_layout *l, const struct managed_memory *m, uint64_t begin,
		const struct v8_code_mark *mark);
void v8_code_free(struct v8_code *c);

/*
 * The SourcePosition of the last entry at or before an offset of code, or of bytecode.
 * returns  false: there is none
 */
bool v8_position_at(const struct v8_layout *l, const uint8_t *table, uint32_t n, uint32_t offset,
		    uint64_t *out);
/* Its offset in the script; -1 = it has none. */
int32_t v8_position_offset(uint64_t position);
/* A table of positions, malloc()ed; NULL = there is none. */
uint8_t *v8_positions_read(const struct managed_memory *m, uint64_t array, uint32_t *n);

/* Functions at an offset of optimized code, the innermost first. */
struct v8_inlined {
	int32_t function;                    /* of literals; -1 = the outermost */
	int32_t position;                    /* in its script; -1 = not known */
};

/* Into at most max; 0: the table is damaged, or says nothing. */
unsigned v8_inlined_at(const struct v8_layout *l, const struct v8_code *c, uint32_t offset,
		       struct v8_inlined *out, unsigned max);
