/*
 * Which process, thread and code a sample of a perf file belongs to, from the file's records of
 * forks, execs, mappings and ends, in time order. The live counterpart is perf/state_linux.h.
 *
 * Only files prove what they are: user code is named after files of this machine with the build id
 * that was recorded, or, where none was, the device and inode if this is the machine of the
 * recording. The kernel's functions are those of this machine's kernel if it has the recorded build
 * id. One thread, but for perf_world_name().
 */
#pragma once

#include "base/log.h"
#include "model/process.h"
#include "source/host/maps.h"
#include "source/perf/kernel_symbols.h"
#include "source/perfdata/perf_file.h"
#include "symbol/reader.h"
#include "unwind/unwind.h"

struct world_process {
	uint32_t number;                     /* of its slot */
	uint32_t pid, exec;
	uint64_t start_ns, ended_ns;         /* ended_ns 0 = it runs */
	struct process *process;
	struct maps *maps;                   /* never NULL */
	bool exe_known;
};

struct world_thread {
	uint32_t number;
	uint32_t tid;
	uint64_t ended_ns;
	struct world_process *of;
	struct process *process;             /* of->process when it was found */
	struct thread *thread;
	struct unwind_memory *memory;        /* its last complete stack; NULL = none */
};

struct perf_world_config {
	struct frames *frames;
	struct processes *processes;
	struct log *log;
	const struct perf_file *file;        /* surveyed */
	uint64_t start_ns;                   /* the time of what has none */
	void (*put)(void *ctx, const struct event *e);
	void *ctx;
};

struct perf_world;

int perf_world_new(const struct perf_world_config *cfg, struct perf_world **out, struct err *err);
void perf_world_free(struct perf_world *w);                    /* NULL allowed */

/* One record that is no sample. */
void perf_world_feed(struct perf_world *w, const struct perf_record *r);
/* NULL: at a ceiling, or without memory. The pointer is valid until the next call or record. */
struct world_thread *perf_world_thread(struct perf_world *w, uint32_t pid, uint32_t tid,
				       uint64_t now_ns);
/* Set object, offset and flags. process NULL = unknown */
void perf_world_locate(struct perf_world *w, const struct world_process *process,
		       uint64_t address, bool kernel, struct frame_ref *out);
/* Whether the kernel's functions can be named; known once its mapping was fed. */
bool perf_world_kernel_is_ours(const struct perf_world *w);
/* The symbol workers: name a function of the kernel; false = it is not known. */
bool perf_world_name(struct perf_world *w, const struct object *object, uint64_t offset,
		     struct symbol *out);
