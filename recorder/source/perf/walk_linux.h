/*
 * From a record of perf to its stack: what the unwinder asks about addresses is looked up in the state of
 * processes and mappings and in the tables that the loader has by now, and pages beyond the copy are read
 * from the live process.
 *
 * One thread, the source's. Nothing is opened here, and nothing allocated but the memory of a thread that is
 * sampled for the first time.
 */
#ifndef SOURCE_PERF_WALK_LINUX_H
#define SOURCE_PERF_WALK_LINUX_H

#include "source/perf/loader.h"
#include "source/ring/perf_record.h"
#include "source/perf/state_linux.h"
#include "unwind/unwind.h"

struct perf_walker {                         /* all borrowed */
	struct perf_state *state;
	struct loader *loader;
	struct unwinder *unwinder;
	bool kernel_stacks;
	struct unwind_stack stack;           /* of the last perf_walk() */
	struct perf_process *sampled;        /* during a walk: whose stack it is */
	uint64_t sampled_ns;
};

/*
 * The stack of a sample into walker->stack. When stack.pending is set, tables for it are being loaded, and it
 * may be walked again.
 *
 * format   of the record
 * thread   whose it is; NULL = not known
 */
void perf_walk(struct perf_walker *walker, const struct perf_record *r, const struct perf_format *format,
	       struct perf_thread *thread);

#endif
