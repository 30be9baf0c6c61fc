/*
 * The stacks of a minidump's threads: the walker of processes that live (stopped/pe_images.h), on
 * the dump's memory. Unwind tables and code that were not dumped come from the images' files, if
 * the very ones are found at their paths or on the symbol path. One thread.
 */
#pragma once

#include "source/dump/dump.h"
#include "source/stopped/pe_images.h"
#include "symbol/reader.h"

struct pe_stacks;

/*
 * d        borrowed; of Windows
 * program  look here for the program's file; NULL = where images are
 * env      its symbol path is used; borrowed
 */
int pe_stacks_open(const struct dump *d, const char *program, const struct symbol_env *env,
		   struct frames *frames, struct pe_stacks **out, struct err *err);
void pe_stacks_close(struct pe_stacks *s);           /* NULL allowed */

/* The stack of a thread; valid until the next call. */
const struct pe_walked *pe_stacks_walk(struct pe_stacks *s, const struct dump_thread *t);

/* What makes the stacks less than they could be, in sentences. */
void pe_stacks_doubts(const struct pe_stacks *s, void (*one)(void *ctx, const char *text),
		      void *ctx);
