/*
 * Frame readers: how a runtime's own code is stepped over and named while a stack is unwound.
 *
 * A reader works from bytes: the registers of a frame, the sample's copy of stack bytes, and a
 * function that reads the target's memory. So every rule is tested on recorded images of memory.
 * All of it is hostile.
 *
 * Reading another process may hang. So a reader never reads on the thread that walks: it makes a
 * task, and its host runs the task where hanging does no harm (managed_host). A task owns all that
 * it uses, because a task that hangs is left behind.
 *
 * Threads: one thread, the owner, calls the slots of a reader. Tasks run on any thread.
 */
#pragma once

#include "base/bytes.h"
#include "managed/names.h"
#include "unwind/unwind.h"

struct managed_piece {
	uint64_t address;
	void *to;
	size_t n, got;                       /* got: as managed_memory.read() returns it */
};

/* The target's memory, as it is now. */
struct managed_memory {
	/* returns  how many of the n bytes were read, from the first on */
	size_t (*read)(void *ctx, uint64_t address, void *to, size_t n);
	/* The same of many pieces, cheaper than one by one; NULL = there is no such way. */
	void (*read_pieces)(void *ctx, struct managed_piece *pieces, size_t n);
	void *ctx;
};

/* Read exactly n bytes. */
static inline bool managed_read(const struct managed_memory *m, uint64_t address, void *to,
				size_t n)
{
	return m->read(m->ctx, address, to, n) == n;
}

/* A little-endian word of 8 bytes. */
static inline bool managed_read_u64(const struct managed_memory *m, uint64_t address,
				    uint64_t *out)
{
	uint8_t bytes[8];

	if (!managed_read(m, address, bytes, sizeof(bytes)))
		return false;
	*out = le64(bytes);
	return true;
}

/* First member of what its maker allocates. */
struct managed_task {
	void (*run)(struct managed_task *task, const struct managed_memory *memory);
	void (*free)(struct managed_task *task);
};

/* What a reader asks of whoever walks. */
struct managed_host {
	/*
	 * Run a task and wait for it, for a short time.
	 * returns  true: it has run, and is the caller's again. false: it hangs, or may not run
	 *          now; the host takes it
	 */
	bool (*run)(void *ctx, struct managed_task *task);
	void *ctx;
};

/* Where an address is, by the process's mappings. */
struct managed_place {
	bool generated;                      /* in no file: code was generated there, or unknown */
	uint64_t offset;                     /* in the file that the process was recognized by: */
};

#define MANAGED_NOWHERE UINT64_MAX           /* in another file, or none */

/* A file that a process maps and that its reader knows. */
struct managed_image {
	uint64_t base;                       /* where its first byte is mapped */
	const char *file;                    /* its base name */
	const struct managed *twin;          /* of another process of this very file; NULL: none */
};

#define MANAGED_TYPE_BYTES 512u
#define MANAGED_MESSAGE_BYTES 512u

/* What was thrown. */
struct managed_thrown {
	char type[MANAGED_TYPE_BYTES];       /* "java.io.IOException"; "" = not known */
	char message[MANAGED_MESSAGE_BYTES]; /* "" = none, or not known */
	/* The object may have been moved since: type is what stands in its place. */
	bool moved;
};

struct managed;                              /* one process, as its reader knows it */
struct python_target;
struct python_peek;

struct frame_reader {
	const char *name;                    /* for people: "HotSpot" */
	const char *object;                  /* the path of the object of its frames: "[java]" */

	/* Does a process that maps a file of this base name belong to this reader? */
	bool (*recognizes)(const char *file);

	/*
	 * Learn the process. One task; it can be called again later.
	 *
	 * names    borrowed: of the frames that managed_step() gives
	 * returns  0; ERR_BUSY: it is still starting, or its memory does not answer; any other:
	 *          err says why not. A process that has just been started may do better later
	 */
	int (*learn)(const struct managed_image *image, const struct managed_host *host,
		     struct managed_names *names, struct managed **out, struct err *err);

	/* May this address be its code? Cheap: asked for each frame of each stack. */
	bool (*owns)(const struct managed *m, uint64_t pc, const struct managed_place *place);

	/*
	 * A sample of this time is walked next: what was learned of code is checked, at most once
	 * for each moment.
	 */
	void (*begin)(struct managed *m, const struct managed_host *host, uint64_t sample_ns);

	/* Name the frame and step to its caller: unwind_managed() in unwind/unwind.h. */
	enum unwind_result (*step)(struct managed *m, const struct managed_host *host,
				   struct unwind_frame *frame);

	/*
	 * What an exception object says that was at this address at that time; NULL = this reader
	 * does not know. returns  false: nothing
	 */
	bool (*thrown)(struct managed *m, const struct managed_host *host, uint64_t object,
		       uint64_t time_ns, struct managed_thrown *out);

	/*
	 * Frames that must be read at the moment of a sample (managed/python/peek.h). target: what
	 * that needs to know. place: put what was read among the frames of a walk, false: where
	 * they stand is not certain. Both NULL = it has none.
	 */
	const struct python_target *(*target)(const struct managed *m);
	bool (*place)(struct managed *m, const struct managed_host *host, struct object *object,
		      const struct python_peek *peek, struct unwind_stack *stack);

	void (*forget)(struct managed *m);   /* NULL allowed */

	size_t (*bytes)(const struct managed *m);    /* memory that it holds */
};
