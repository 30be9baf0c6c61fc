/* What stacks has taken, and what its files share. One thread. */
#pragma once

#include "base/log.h"
#include "listing/deadlocks.h"
#include "options/options.h"
#include "source/dump/dump_file.h"
#include "source/dump/dump_stacks.h"
#include "source/stopped/thread_stacks.h"
#include "symbol/symbol.h"

/* A stack, kept until its frames have names. */
struct taken {
	uint32_t tid, waits_for;             /* a thread; 0 = none */
	char name[64];
	char *wait;                          /* NULL = not known */
	enum stack_quality quality;
	uint64_t time_ns, suspended_ns;
	uint32_t first, n;                   /* of the frames and addresses */
	bool told;                           /* with an earlier thread of the same stack */
	uint32_t still;                      /* pictures before this one with the same stack */
};

struct stacks {
	uint32_t pid;
	struct frames *table;
	struct processes *processes;
	struct symbols *symbols;
	struct symbol_env env;
	struct log *log;
	struct thread_stacks *threads;       /* NULL: the process is dead, and there is its */
	struct dump_file file;
	struct dump_stacks *dead;
	struct taken *taken;
	uint32_t ntaken, taken_room;
	uint32_t before, now;                /* where the picture before and this one begin */
	struct frame **frames;
	uint64_t *addresses;
	uint32_t nframes, frames_room;
	bool failed;                         /* no memory, or no room for a frame */
};

/* Of the program's file; "" = unknown. */
const char *stacks_path(const struct stacks *s);

/* "program x (12) died of SIGSEGV at address 0x10 (not mapped), thread 13" */
void stacks_put_death(const struct stacks *s, struct buf *out);

const char *stacks_module_of(const struct frame *f, const struct function **function);
/* The function's name; else its offset, or its address where nothing else is known. */
void stacks_put_name(const struct stacks *s, uint32_t which, const struct function *function,
		     struct buf *out);
/* The threads of this picture, *n of them, on the heap; NULL = no memory. */
struct waiting *stacks_waiting(const struct stacks *s, uint32_t *n);
void stacks_put_jstack(const struct stacks *s, struct sheet *p);

/* Store all pictures as one incident. */
int stacks_store(const struct options *o, const struct stacks *s, struct err *err);
