/*
 * Stacks of .NET events: what a program's addresses are called, and frames made of them.
 *
 * EventPipe gives each event the addresses of its thread's managed frames; a sample has those of
 * its own stack. What they are called is told by the runtime (code.h). All of it is hostile, and
 * bounded by shares of all programs together.
 *
 * A frame's object is "[.net]" of its process; its offset is the number of a name
 * (managed/names.h), so code that is compiled again, or unloaded, never lends its name to other
 * code. An address of no known method is a frame of the unknown object; of a sample in generated
 * code, one that gets its name when that is told (untold.h).
 *
 * Threads: dotnet_stacks_name() and _settle() the merge thread's, _late() the symbol worker's;
 * everything else the source's.
 */
#pragma once

#include "base/shares.h"
#include "model/event.h"
#include "model/frame.h"
#include "source/dotnet/code.h"
#include "source/runtime/gc_objects.h"
#include "symbol/reader.h"

#define DOTNET_STACKS_MAX_BYTES ((size_t)64 << 20)   /* methods of all programs */
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
/* None came: it needs another one, a few times. NULL allowed. */
void dotnet_program_no_rundown(struct dotnet_program *p);

/* From this time on the program tells of its code, until it ends. */
void dotnet_program_tells(struct dotnet_program *p, uint64_t time_ns);
/* Learn from an event of that time for which dotnet_tells_code() is true. */
void dotnet_program_learn(struct dotnet_program *p, const struct nettrace_event *event,
			  uint64_t time_ns);

/* A mapping of a file that may have precompiled methods. */
struct dotnet_image {
	char *path;                          /* as the process sees it; owned */
	uint64_t start, bytes, pgoff;
};

/* Whether it told of a module since the last call: its mappings are to be read again. */
bool dotnet_program_wants_images(struct dotnet_program *p);
void dotnet_program_want_images(struct dotnet_program *p);
/* Takes the executable mappings of files that the program has now. */
void dotnet_program_images(struct dotnet_program *p, struct dotnet_image *images, uint32_t n);
void dotnet_images_free(struct dotnet_image *images, uint32_t n);

/*
 * As source_ops.settle: frames of another source that lie in generated or precompiled methods, at
 * the event's time, become frames of the program's names. The others stay as they are.
 */
void dotnet_stacks_settle(struct dotnet_stacks *s, struct event *e);
/* Whether a process is one of the programs that tell of their code. */
bool dotnet_stacks_knows(struct dotnet_stacks *s, uint32_t pid);
/*
 * As source_ops.name_late: a frame whose code is told by now; or one in a file that stayed as it
 * was, of a program that has been asked since, if its code is the only one that was ever at this
 * address, and its module is known.
 */
bool dotnet_stacks_late(struct dotnet_stacks *s, const struct object *object, uint64_t offset,
			struct symbol *out);

/*
 * Give put() the event e, decoded from `raw`, with its stack; and, unless objects is NULL, as
 * samples: an event with a stack is one of --metric event, whose leaf says what happened and of
 * what type an exception or object is, and allocated bytes are --metric alloc; where survivals are
 * told, also of --metric heap. The first of these samples follows from the event where it has a
 * leaf (event.sample_id); the others are events of their own. e is unchanged afterwards.
 */
typedef void dotnet_put(void *ctx, const struct event *e);
void dotnet_program_deliver(struct dotnet_program *p, struct gc_objects *objects,
			    const struct nettrace_event *raw, uint32_t pointer_bytes,
			    struct event *e, dotnet_put *put, void *ctx);

/* As source_ops.name_frame. */
bool dotnet_stacks_name(struct dotnet_stacks *s, const struct frame *frame, struct symbol *out);
/* Call four times a second: names what was told late, and forgets names of programs that ended. */
void dotnet_stacks_look(struct dotnet_stacks *s, uint64_t now_ns);
