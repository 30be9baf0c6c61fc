/*
 * Where the return address of V8's code is at the instruction where it was interrupted. Its code
 * makes its frame late, leaves it early, and short builtins never make one; RBP is the caller's
 * then, and following it would skip the caller.
 *
 * Rules on the bytes of instructions. Source: 1.7 million instructions of V8 10.2 to 14.6, stepped
 * one by one beside a list of the calls in progress: 11 to 44 % of callers were skipped without
 * these rules, 0 to 1.1 % with them. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V8_LEAF_WORDS 8u                     /* above RSP in which V8_LEAF_SEARCH looks */

/* What a rule says; n >= 0: the return address is n words above RSP. RBP is the caller's. */
enum {
	V8_LEAF_FRAMED = -1,                 /* the frame is at RBP */
	V8_LEAF_R10 = -2,                    /* it is in R10, and RSP is the caller's */
	V8_LEAF_SEARCH = -3,                 /* the first word above RSP that a call has left */
	V8_LEAF_CALLED = -4,                 /* at RSP, if a call of this builtin has left it */
	V8_LEAF_CALLED_BY_V8 = -5,           /* the same, or by any code of V8 */
};

/* Generated code: n bytes from its first instruction on, stopped at `at`. */
int v8_leaf_generated(const uint8_t *code, size_t n, size_t at, bool baseline);

/* How a builtin makes its frames, by all of its bytes. */
struct v8_builtin_shape {
	uint32_t first, last;                /* where it makes one; first = UINT32_MAX: nowhere */
	int marker;                          /* that all of them push, 0 to 127; -1 = they differ */
	uint32_t leaves;                     /* where it leaves one that others made; 0 = nowhere */
};

void v8_builtin_shape(const uint8_t *code, size_t n, struct v8_builtin_shape *out);

/* marker: the word below the one that RBP points to; UINT64_MAX = it is not there */
int v8_leaf_builtin(const uint8_t *code, size_t n, size_t at, const struct v8_builtin_shape *shape,
		    uint64_t marker);

/*
 * Is this how the bytes before a return address end? before: 8 bytes. target: of a direct call,
 * counted from the return address; else 0
 */
bool v8_is_call(const uint8_t before[8], int32_t *target);

/*
 * Where the builtin begins that has the last of n bytes of builtins; SIZE_MAX = before these. One
 * begins at a multiple of 64 (of the address of the bytes), behind four bytes of padding or more.
 */
size_t v8_builtin_begin(const uint8_t *bytes, size_t n, uint64_t address);
/* Where the next one begins, from `from` on; SIZE_MAX = behind these. */
size_t v8_builtin_end(const uint8_t *bytes, size_t from, size_t n, uint64_t address);
