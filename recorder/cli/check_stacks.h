/*
 * The part of check that looks at the processes running now: whose stacks will be incomplete, or
 * without names, and what to do about it. Nothing of it changes check's exit code.
 */
#pragma once

#include "options/options.h"

/*
 * Append findings in the form of check's others; with --json one object a line. Takes at most 2 s.
 */
void check_stacks(const struct options *o, struct buf *out);
