/*
 * The loader: unwind tables of mapped files, read into memory by threads of its own.
 *
 * The source asks by object; the first time the answer is "pending", and a thread opens the file,
 * makes sure that it is the one that was mapped (symbol/elf_file.h), and reads .eh_frame_hdr and
 * .eh_frame with pread, never by mapping. An open that hangs (NFS, FUSE) stops a loader thread, not
 * capture: after LOADER_STUCK_NS another one takes over, LOADER_THREADS_MAX in all.
 *
 * Threads: all functions belong to the source's thread; what loader_get() returns stays good until
 * its next loader_sweep().
 */
#ifndef SOURCE_LOADER_H
#define SOURCE_LOADER_H

#include "base/log.h"
#include "model/process.h"
#include "symbol/elf.h"
#include "unwind/elf_eh_frame.h"

#define LOADER_MAX_BYTES ((size_t)256 << 20)     /* of tables */
#define LOADER_STUCK_NS 2000000000ULL
#define LOADER_THREADS_MAX 4u
#define LOADER_IDLE_NS 600000000000ULL           /* tables that nothing used for this long go */

struct loader;

struct loaded {
	const struct eh_frame *tables;       /* NULL = none, or not yet */
	const struct elf_head *head;         /* of the file, for addresses; NULL = none, or not yet */
	bool pending;                        /* not yet */
};

int loader_new(struct log *log, struct loader **out, struct err *err);
/* Ends its threads; one that hangs in an open is left behind, with what it may still touch. */
void loader_free(struct loader *l);              /* NULL allowed */

/* The tables of an object that pid maps. Never blocks; ERR_MEMORY counts as "none". */
void loader_get(struct loader *l, struct object *object, uint32_t pid, uint64_t now_ns,
		struct loaded *out);

/* It is a JVM: have its options read, for process->frame_pointers. Never blocks. */
void loader_jvm(struct loader *l, struct process *process);

/* Once a second: replace stuck threads, forget what is unused. */
void loader_sweep(struct loader *l, uint64_t now_ns);

/*
 * Any thread: another ceiling of the tables than LOADER_MAX_BYTES. At the next sweep those that were not
 * used for longest go, to be read again when they are needed. What is used all the time and has no room
 * is done without (its stacks follow frame pointers) until there is room.
 */
void loader_set_max(struct loader *l, size_t bytes);
/* Any thread: what they take now, and may. */
size_t loader_bytes(const struct loader *l, size_t *max_bytes);

struct loader_use {
	uint32_t loaded, without, queued, stuck;
	size_t bytes;
};
void loader_use(struct loader *l, struct loader_use *out);

#endif
