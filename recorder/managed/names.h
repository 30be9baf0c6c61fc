/*
 * Names of managed frames, one table for each process.
 *
 * A name is (function, detail), interned by contents: equal names have one number, which is never
 * given to another name. So code that was unloaded or compiled again never lends its name.
 *
 * The detail is what tells overloads apart and where the lines are; incidents keep it as the
 * function's raw name (analysis/managed_view.h reads it there):
 *
 *	SIGNATURE[ FILE BCI:LINE...]    (ILjava/lang/Object;)V HashMap.java 0:570 9:572
 *
 * An entry says at which line the bytecodes from this index on are; they are in no order.
 * A Python function's detail is "@FILE", its path; its offsets have the line in place of the bci.
 * A .NET method's is "=(class System.String,int32)", its parameters as PerfView writes them.
 * The frame reader adds names on the thread that walks; the merge thread looks them up.
 *
 * A frame's offset is number << MANAGED_NUMBER_SHIFT | how << MANAGED_HOW_SHIFT | bci + 1.
 *
 * Threads: each call locks inside, but for managed_names_new() and _free().
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANAGED_NUMBER_SHIFT 20
#define MANAGED_HOW_SHIFT 17
#define MANAGED_BCI_MAX ((1 << MANAGED_HOW_SHIFT) - 2)
#define MANAGED_NAMES_MAX 131072u            /* of one process */
#define MANAGED_NAMES_BYTES ((size_t)16 << 20)       /* their text */
#define MANAGED_TEXT_MAX 4000u               /* of one function */

/* How a frame was run. */
enum managed_how {
	MANAGED_OTHER,
	MANAGED_INTERPRETED,
	MANAGED_C1,
	MANAGED_C2,
	MANAGED_STUB,
	MANAGED_NATIVE,                      /* the wrapper of a native method */
};

struct managed_names;

struct managed_names *managed_names_new(void);       /* NULL = no memory */
void managed_names_free(struct managed_names *n);    /* NULL allowed */

/*
 * The number of a name, added if it is new; never 0.
 *
 * detail   NULL = none
 * returns  0 = a ceiling is reached or there is no memory: the frame stays without a name
 */
uint32_t managed_names_add(struct managed_names *n, const char *function, const char *detail);

/*
 * Copy the function of a number, and its detail ("" = none); false = there is none.
 *
 * detail  NULL = it is not wanted; else of MANAGED_TEXT_MAX + 1 bytes
 */
bool managed_names_get(struct managed_names *n, uint32_t number, char *out, size_t out_bytes,
		       char *detail);

size_t managed_names_bytes(struct managed_names *n);
/* A 16th is left: a program that runs for months is learned anew then, with a table of its own. */
bool managed_names_nearly_full(struct managed_names *n);

static inline uint64_t managed_offset(uint32_t number, enum managed_how how, int32_t bci)
{
	uint32_t code = bci < 0 || bci > MANAGED_BCI_MAX ? 0 : (uint32_t)bci + 1;

	return (uint64_t)number << MANAGED_NUMBER_SHIFT | (uint64_t)how << MANAGED_HOW_SHIFT | code;
}

static inline uint32_t managed_number(uint64_t offset)
{
	return (uint32_t)(offset >> MANAGED_NUMBER_SHIFT);
}
