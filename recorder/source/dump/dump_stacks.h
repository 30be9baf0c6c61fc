/*
 * The stacks of a dead process's threads, out of a dump: the same walker, frame readers and names
 * as for processes that live. Frames may be interned; dump_stacks_name() names those of managed
 * programs, and symbol/symbol.h the others. One thread.
 */
#pragma once

#include "source/dump/dump.h"
#include "source/stopped/thread_stacks.h"

struct dump_stacks;

/*
 * d        borrowed, as is program: where the program's file is; NULL = at its path
 * wall_ns  when the dump was made
 * env      of a minidump: its symbol path says where files are; borrowed
 */
int dump_stacks_open(const struct dump *d, const char *program, uint64_t wall_ns,
		     const struct symbol_env *env, struct frames *frames, struct dump_stacks **out,
		     struct err *err);
void dump_stacks_close(struct dump_stacks *s);       /* NULL allowed */

/* Of each thread, in the dump's order. No thread was suspended, and all have the time of now. */
void dump_stacks_take(struct dump_stacks *s, thread_stack_fn *tell, void *ctx);

bool dump_stacks_name(struct dump_stacks *s, const struct frame *frame, struct symbol *out);
const char *dump_stacks_path(const struct dump_stacks *s);

/* What makes the stacks less than they could be, in sentences. */
void dump_stacks_doubts(const struct dump_stacks *s, void (*one)(void *ctx, const char *text),
			void *ctx);
