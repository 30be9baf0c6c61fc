/*
 * The part of check that examines running processes: which will have incomplete or unnamed stacks,
 * and what to do about it. It never changes check's exit code.
 */
#pragma once

#include "options/options.h"

/*
 * Append findings in the form of check's others; with --json one object a line. Takes at most 2 s.
 */
void check_stacks(const struct options *o, struct buf *out);
