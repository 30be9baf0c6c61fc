/*
 * The loader reads unwind tables of mapped files into memory, by jobs of a pool (base/pool.h).
 *
 * The source asks for an object's tables. The first answer is "pending": a job opens the file,
 * checks that it is the one that was mapped (symbol/elf_file.h), and reads .eh_frame_hdr and
 * .eh_frame with pread(), never by mapping them. While an open hangs (NFS, FUSE), the answer for
 * all files of that device is "none"; once it has come back, they are read when they are asked for.
 *
 * Unless stated otherwise, only the source's thread calls these functions. What loader_get()
 * returns stays valid until the next loader_sweep().
 */
#pragma once

#include "base/log.h"
#include "base/pool.h"
#include "model/process.h"
#include "source/host/hung_devices.h"
#include "symbol/elf.h"
#include "unwind/unwind.h"

#define LOADER_MAX_BYTES ((size_t)256 << 20)     /* of tables */
#define LOADER_IDLE_NS (600 * NS_PER_SEC)        /* tables unused for this long are dropped */
#define LOADER_UNMAPPED_NS (2 * NS_PER_SEC)      /* the same when nothing maps the file */

struct loader;

struct loader_range {
	uint64_t start, end;                 /* [start, end); 0, 0 = there is no such code */
};

struct loaded {
	const struct eh_frame *tables;       /* NULL = none, or not now */
	const struct elf_head *head;         /* of the file; NULL = none, or not now */
	struct loader_range mcall, mstart, panic;    /* see unwind_place.top, .injected */
	bool pending;                        /* it is being read */
};

/* hung: used; devices that do not answer, also those that others have found */
int loader_new(struct log *log, struct hung_devices *hung, struct loader **out, struct err *err);
void loader_free(struct loader *l);              /* NULL allowed */

/* The tables of an object that pid maps. Never blocks; without memory the answer is "none". */
void loader_get(struct loader *l, struct object *object, uint32_t pid, uint64_t now_ns,
		struct loaded *out);

/* Describe the place of out->ref.offset by what is loaded; leaves it as it is where nothing is. */
void loader_place(const struct loaded *loaded, struct unwind_place *out);

/*
 * Have the options of a JVM read; call it again until process->frame_pointers is set. Never blocks.
 */
void loader_jvm(struct loader *l, struct process *process);

/* Call once a second: replaces threads that hang, and drops unused tables. */
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
struct pool *loader_pool(const struct loader *l);
