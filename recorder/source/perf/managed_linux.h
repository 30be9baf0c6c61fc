/*
 * The frame readers that this source has, and the processes that they know.
 *
 * A process that maps a file which a reader recognizes is learned when it is sampled; until then,
 * and when that fails, its stacks are unwound as any others. Tasks of readers run on the thread
 * that reads memory (host/proc_reader_linux.h), so a process that hangs stops nobody.
 *
 * What is known of all processes has one total, MANAGED_TOTAL_BYTES, shared out by user
 * (base/shares.h). One that has no samples for MANAGED_IDLE_NS is forgotten, and so is, where there
 * is no room, the one that has had none for longest. A process is learned again when it is sampled
 * again.
 *
 * The source's thread only, unless stated otherwise.
 */
#pragma once

#include "base/log.h"
#include "managed/reader.h"
#include "model/frame.h"
#include "source/host/proc_reader_linux.h"
#include "symbol/reader.h"

#define MANAGED_TOTAL_BYTES ((uint64_t)128 << 20)        /* half of it for one user */
#define MANAGED_PROGRAM_BYTES ((uint64_t)24 << 20)
#define MANAGED_IDLE_NS (300 * NS_PER_SEC)
#define MANAGED_RUNTIMES_MAX 1024u           /* half of them for one user */

struct perf_managed;
struct perf_runtime;                         /* of one process */
struct perf_process;

/* All readers that there are, or all but that of Node.js; ending in NULL. */
const struct frame_reader *const *perf_managed_readers(bool no_node);
/* readers: ending in NULL; NULL = all that there are */
int perf_managed_new(struct frames *frames, struct proc_reader *reader, struct log *log,
		     const struct frame_reader *const *readers, struct perf_managed **out,
		     struct err *err);
void perf_managed_free(struct perf_managed *m);      /* NULL allowed */

/* A process maps a file, whose first byte is at base. */
void perf_managed_map(struct perf_managed *m, struct perf_process *process, struct object *code,
		      uint64_t base);
/* A child has its parent's mappings. */
void perf_managed_inherit(struct perf_managed *m, struct perf_process *child,
			  const struct perf_process *parent);
/* It ends, or runs another program. Its names stay for a while, for samples that are queued. */
void perf_managed_forget(struct perf_managed *m, struct perf_process *process, uint64_t now_ns);

/*
 * A sample of this process and time is walked next; learns the process if it is time.
 * returns  false: no reader knows the process (yet)
 */
bool perf_managed_begin(struct perf_managed *m, struct perf_process *process, uint64_t sample_ns);
/*
 * Is an address code of the runtime of the process that was begun? ref: where it is by the
 * mappings; code that lies in no file becomes the runtime's, too, so that it is known for it where
 * the reader says nothing.
 */
bool perf_managed_find(struct perf_managed *m, const struct perf_process *process,
		       uint64_t address, struct frame_ref *ref, struct object **runtime);
/* unwind_managed() for the process that was begun. */
enum unwind_result perf_managed_step(struct perf_managed *m, const struct perf_process *process,
				     struct unwind_frame *frame);

/*
 * Where the frames of a process that was begun are, if they must be read while its thread stands
 * still. false: they need not.
 */
struct python_target;
bool perf_managed_target(struct perf_managed *m, const struct perf_process *process,
			 struct python_target *out);
/* Peekers (peekers_linux.h) read what must be read at a sample; borrowed. NULL = nobody does. */
struct perf_peekers;
void perf_managed_peek_by(struct perf_managed *m, struct perf_peekers *peekers);
/* Address of the lock that all threads of a Python process share (managed/python); 0 = none. */
uint64_t perf_managed_gil(const struct perf_process *process);
/* Who holds it now, or held it last; 0 = not known. */
uint32_t perf_managed_gil_holder(struct perf_managed *m, const struct perf_process *process);
uint32_t perf_managed_peeked(const struct perf_managed *m);  /* processes */
bool perf_managed_is_peeked(const struct perf_process *process);
/*
 * Put what was read at a sample of such a process among the frames of its walk.
 * returns  false: it is not certain where they stand
 */
bool perf_managed_place(struct perf_managed *m, struct perf_process *process,
			const struct python_peek *peek, struct unwind_stack *stack);

/*
 * What an exception of the process that was begun says, whose object was at this address at that
 * time; frames: the stack of the throw. Where a collection may have moved the object, the type is
 * told only if its constructor is on that stack, and no message.
 */
bool perf_managed_thrown(struct perf_managed *m, const struct perf_process *process,
			 uint64_t object, uint64_t time_ns, const struct frame_ref *frames,
			 uint32_t nframes, struct managed_thrown *out);

/* Call about once a second. */
void perf_managed_look(struct perf_managed *m, uint64_t now_ns);
/* Any thread: how often a process was forgotten because there was no room. */
uint64_t perf_managed_forgotten(const struct perf_managed *m);

/* Read pieces of a process, several by one system call; any thread that may hang. */
void perf_managed_pieces(uint32_t pid, struct managed_piece *pieces, size_t n);

/* As source_ops.name_frame: the merge thread. */
bool perf_managed_name(struct perf_managed *m, const struct frame *frame, struct symbol *out);
