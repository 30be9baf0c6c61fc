/*
 * Stacks of .NET events: what a program's addresses are called, and frames made of them.
 *
 * EventPipe gives each event the addresses of its thread's managed frames. Their names come from
 * the runtime's own events of the same stream: MethodLoadVerbose and ModuleLoad, and from those of
 * the rundown, which tells what was loaded before. Both are hostile: bounded by shares of all
 * programs together.
 *
 * A frame's object is "[.net]" of its process; its offset is the number of a name
 * (managed/names.h), so code that is compiled again, or unloaded, never lends its name to other
 * code. An address of no known method is a frame of the unknown object.
 *
 * Threads: dotnet_stacks_name() the merge thread's; everything else the source's.
 */
#pragma once

#include "base/shares.h"
#include "model/event.h"
#include "model/frame.h"
#include "source/dotnet/nettrace.h"
#include "symbol/reader.h"

#define DOTNET_STACKS_MAX_BYTES ((size_t)64 << 20)   /* methods of all programs */
#define DOTNET_METHODS_MAX 200000u           /* of one program */
#define DOTNET_FRAMES_MAX (NETTRACE_STACK_MAX_BYTES / 4)

struct dotnet_stacks;
struct dotnet_program;                       /* one process */

int dotnet_stacks_new(struct frames *frames, uint32_t own_uid, struct dotnet_stacks **out,
		      struct err *err);
void dotnet_stacks_free(struct dotnet_stacks *s);    /* NULL allowed; after the programs */

/* NULL = no memory, or too many programs: events go without stacks. uid: its user. */
struct dotnet_program *dotnet_program_new(struct dotnet_stacks *s, uint32_t pid, uint64_t key,
					  uint32_t uid);
struct dotnet_program *dotnet_program_ref(struct dotnet_program *p); /* NULL allowed */
/* Drop a reference; NULL allowed. Names stay for a minute after the last, for queued events. */
void dotnet_program_free(struct dotnet_program *p, uint64_t now_ns);

/* Whether its rundown has not been asked for; only the first call returns true. */
bool dotnet_program_needs_rundown(struct dotnet_program *p);

/* Whether this event tells of code, so that only stacks need it. */
bool dotnet_tells_code(const struct nettrace_event *event);
/* Learn from an event for which dotnet_tells_code() is true. */
void dotnet_program_learn(struct dotnet_program *p, const struct nettrace_event *event);

/*
 * Give put() the event e, decoded from `raw`, with its stack; and, where it has one, as samples:
 * an event with a stack is one of --metric event, whose leaf says what happened and of what type an
 * exception or object is, and allocated bytes are --metric alloc. e is unchanged afterwards.
 */
typedef void dotnet_put(void *ctx, const struct event *e);
void dotnet_program_deliver(struct dotnet_program *p, const struct nettrace_event *raw,
			    uint32_t pointer_bytes, struct event *e, dotnet_put *put, void *ctx);

/*
 * The frames of a stack, leaf first. what: a leaf above them that says what happened ("GC/Start",
 * "GC/AllocationTick System.String"); NULL = none.
 *
 * returns  how many, at most DOTNET_FRAMES_MAX + 1; their objects live as long as the program
 */
uint32_t dotnet_program_frames(struct dotnet_program *p, const uint8_t *stack, uint32_t nbytes,
			       uint32_t pointer_bytes, const char *what, struct frame_ref *out);

/* As source_ops.name_frame. */
bool dotnet_stacks_name(struct dotnet_stacks *s, const struct frame *frame, struct symbol *out);
/* Call about once a second: forgets names of programs that ended. */
void dotnet_stacks_look(struct dotnet_stacks *s, uint64_t now_ns);
