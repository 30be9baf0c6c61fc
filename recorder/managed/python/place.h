/*
 * Where Python frames stand among the native frames of a walk.
 *
 * From 3.11 on each call of the evaluator has an object on the C stack, which lies in exactly one
 * native frame: the evaluator's. Before, the evaluator's native frames are counted. Python frames
 * stand on the inner side of the native frame that runs them. Pure.
 */
#pragma once

#include "managed/python/peek.h"
#include "unwind/unwind.h"

struct python_evaluator {                    /* its code in memory; bytes 0 = not known */
	uint64_t at, bytes;
};

/*
 * Put the frames of a peek into a stack. Beyond STACK_MAX_FRAMES it is truncated.
 *
 * refs     of each spot
 * returns  false: where they stand is not certain; the stack is as before
 */
bool python_place(const struct python_layout *l, const struct python_evaluator *evaluator,
		  const struct python_peek *peek, const struct frame_ref *refs,
		  struct unwind_stack *stack);
