#include "source/perf/walk_linux.h"

#include "source/host/proc_reader_linux.h"

#include <stdatomic.h>
#include <stdlib.h>

#define STACK_DEPTH_MAX 127u

/* A JVM's compiled code uses RBP as a general register unless an option forbids it. */
static void find_in_jvm(struct perf_walker *w, struct unwind_place *out)
{
	struct perf_process *p = w->sampled;
	uint8_t pointers = atomic_load(&p->process->frame_pointers);

	if (pointers == FRAME_POINTERS_UNKNOWN)
		loader_jvm(w->loader, p->process);
	pointers = atomic_load(&p->process->frame_pointers);
	out->doubtful = pointers != FRAME_POINTERS_KEPT;
	out->pending |= pointers == FRAME_POINTERS_UNKNOWN;
}

/* Answers the unwinder's question about an address. */
static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	struct perf_walker *w = ctx;
	const struct mapping *m;

	if (kernel) {
		perf_state_locate_kernel(w->state, address, &out->ref);
		return;
	}
	m = perf_state_locate(w->state, w->sampled, w->mapping, address, &out->ref);
	out->managed = w->sampled &&
		       perf_managed_find(w->managed, w->sampled, address, &out->ref, &out->runtime);
	if (out->managed && out->ref.object == out->runtime) {
		out->jit = true;
		return;
	}
	out->jit = (out->ref.flags & FRAME_JIT) != 0;
	/* A call mostly stays in its file. */
	if (!m || m != w->mapping)
		loader_get(w->loader, out->ref.object, w->sampled ? w->sampled->pid : 0,
			   w->sampled_ns, &w->loaded);
	w->mapping = m;
	out->pending = w->loaded.pending;
	if (out->jit && w->sampled && w->sampled->jvm)
		find_in_jvm(w, out);
	loader_place(&w->loaded, out);
}

/* Stack pages beyond the copy, as they are now. */
static size_t read_remote(void *ctx, uint64_t address, void *to, size_t n)
{
	struct perf_walker *w = ctx;

	return w->sampled ? proc_reader_memory(w->reader, w->sampled->pid, address, to, n) : 0;
}

static enum unwind_result step_managed(void *ctx, struct unwind_frame *frame)
{
	struct perf_walker *w = ctx;

	return perf_managed_step(w->managed, w->sampled, frame);
}

/* 3 KiB for a thread that is sampled for the first time; without memory nothing is stitched. */
static struct unwind_memory *memory_of(struct perf_thread *thread)
{
	if (thread && !thread->memory && !thread->process->kernel)
		thread->memory = calloc(1, sizeof(*thread->memory));
	return thread ? thread->memory : NULL;
}

static uint64_t regs_mask(const struct perf_format *format)
{
	if (!format->nregs)
		return 0;
	return format->regs_mask ? format->regs_mask : PERF_REGS_MASK;
}

void perf_walk(struct perf_walker *w, const struct perf_ring *ring, struct perf_thread *thread)
{
	const struct unwind_caller caller = {
		.find = find, .read = read_remote, .code = read_remote, .managed = step_managed,
		.ctx = w};
	const struct perf_record *r = &ring->record;
	struct unwind_input in = {
		.kernel_chain = r->u.sample.kernel,
		.nkernel = w->kernel_stacks ? r->u.sample.nkernel : 0,
		.user_chain = r->u.sample.user,
		.nuser = r->u.sample.nuser,
		.chain_cut = r->u.sample.nkernel + r->u.sample.nuser >= STACK_DEPTH_MAX,
		.user_expected = thread && !thread->process->kernel && r->pid != 0,
		.regs_abi = r->u.sample.regs_abi,
		.regs = r->u.sample.regs,
		.regs_mask = regs_mask(&ring->format),
		.stack = r->u.sample.stack,
		.stack_bytes = r->u.sample.stack_bytes,
	};

	if (in.regs_abi && !in.stack_bytes &&
	    perf_state_in(w->state, KERNEL_EXEC, in.kernel_chain, in.nkernel))
		in.regs_abi = 0;             /* as in an ending process: there is no user stack */
	w->sampled = thread ? thread->process : NULL;
	w->sampled_ns = r->time_ns;
	w->mapping = NULL;
	perf_managed_begin(w->managed, w->sampled, r->time_ns);
	unwinder_walk(w->unwinder, &in, &caller, memory_of(thread), &w->stack);
}
