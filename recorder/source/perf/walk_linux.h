/*
 * From a perf record to its stack. The unwinder's questions about addresses are answered from the
 * known processes and mappings (state_linux.h) and from the unwind tables that the loader has by
 * now; stack pages beyond the copy are read from the live process.
 *
 * The source's thread only. Opens nothing; allocates only when a thread is sampled for the first
 * time.
 */
#pragma once

#include "source/perf/loader.h"
#include "source/perf/managed_linux.h"
#include "source/perf/state_linux.h"
#include "source/ring/perf_ring_linux.h"
#include "unwind/unwind.h"

struct perf_walker {                         /* borrows these */
	struct perf_state *state;
	struct loader *loader;
	struct unwinder *unwinder;
	struct proc_reader *reader;
	struct perf_managed *managed;
	bool kernel_stacks;
	struct unwind_stack stack;           /* of the last perf_walk() */
	struct perf_process *sampled;        /* during a walk: the stack's process */
	uint64_t sampled_ns;
	const struct mapping *mapping;       /* of the last frame, and its tables */
	struct loaded loaded;
};

/*
 * Unwind the stack of ring->record, a sample, into walker->stack. When stack.pending is set, its
 * unwind tables are still being loaded, and the record may be walked again.
 *
 * thread   the sampled thread; NULL = not known
 */
void perf_walk(struct perf_walker *walker, const struct perf_ring *ring,
	       struct perf_thread *thread);
