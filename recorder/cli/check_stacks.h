/*
 * The part of check that examines running processes: which will have incomplete or unnamed stacks,
 * and what to do about it. It never changes check's exit code.
 */
#pragma once

#include "listing/sheet.h"

/* Put findings in the form of check's others. Takes at most 2 s. */
void check_stacks(const struct options *o, struct sheet *p);
