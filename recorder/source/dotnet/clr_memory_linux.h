/*
 * Names of generated code of the .NET programs that run, by their memory (clr_code.h).
 *
 * Any thread. A program is read by a job of a pool: one that does not answer is left alone.
 */
#pragma once

#include "model/frame.h"
#include "symbol/reader.h"

struct clr_memory;

int clr_memory_new(struct clr_memory **out, struct err *err);
void clr_memory_free(struct clr_memory *c);          /* NULL allowed */

/* As source_ops.name_late, but may wait for 200 ms. */
bool clr_memory_name(struct clr_memory *c, const struct object *object, uint64_t address,
		     struct symbol *out);
