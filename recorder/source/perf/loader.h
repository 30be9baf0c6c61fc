/*
 * The loader reads unwind tables of mapped files into memory, on threads of its own.
 *
 * The source asks for an object's tables. The first answer is "pending": a loader thread opens the
 * file, checks that it is the one that was mapped (symbol/elf_file.h), and reads .eh_frame_hdr and
 * .eh_frame with pread(), never by mapping them. An open that hangs (NFS, FUSE) blocks one loader
 * thread, not capture: after LOADER_STUCK_NS another thread takes over, up to LOADER_THREADS_MAX in
 * all.
 *
 * Unless stated otherwise, only the source's thread calls these functions. What loader_get()
 * returns stays valid until the next loader_sweep().
 */
#pragma once

#include "base/log.h"
#include "model/process.h"
#include "symbol/elf.h"
#include "unwind/elf_eh_frame.h"

#define LOADER_MAX_BYTES ((size_t)256 << 20)     /* of tables */
#define LOADER_STUCK_NS 2000000000ULL
#define LOADER_THREADS_MAX 4u
#define LOADER_IDLE_NS 600000000000ULL           /* tables unused for this long are dropped */

struct loader;

struct loaded {
	const struct eh_frame *tables;       /* NULL = none, or not yet */
	const struct elf_head *head;         /* of the file; NULL = none, or not yet */
	bool pending;                        /* not yet */
};

int loader_new(struct log *log, struct loader **out, struct err *err);
/* End its threads. A thread that hangs in an open is left behind, with all that it may touch. */
void loader_free(struct loader *l);              /* NULL allowed */

/* The tables of an object that pid maps. Never blocks; without memory the answer is "none". */
void loader_get(struct loader *l, struct object *object, uint32_t pid, uint64_t now_ns,
		struct loaded *out);

/* Have the options of a JVM read; they set process->frame_pointers. Never blocks. */
void loader_jvm(struct loader *l, struct process *process);

/* Call once a second: replaces stuck threads and drops unused tables. */
void loader_sweep(struct loader *l, uint64_t now_ns);

/*
 * Any thread: set a ceiling on table memory lower than LOADER_MAX_BYTES. The next sweep drops the
 * tables that were unused for longest; they are read again when they are needed. Tables that are in
 * constant use but do not fit are left out until there is room: those stacks follow frame pointers
 * meanwhile.
 */
void loader_set_max(struct loader *l, size_t bytes);
/* Any thread: memory of all tables, and its ceiling. */
size_t loader_bytes(const struct loader *l, size_t *max_bytes);
