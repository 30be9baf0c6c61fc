/*
 * Any bytes as a file of perf: surveyed, its records in time order, its processes and mappings, and
 * where the addresses of its samples lie. A file that says to be of THIS_HOST is of this machine:
 * the files that it names are looked for, and none of them is the one that was mapped. Unwind
 * tables are not read here.
 */
#include "source/perfdata/perf_world.h"

#include "base/os.h"

#include <stdlib.h>
#include <string.h>

#define THIS_HOST "this-machine"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	struct perf_world *world;
	struct perf_file *file;
	struct trace_values values;
	uint64_t sum;                        /* so that the compiler keeps every read */
};

static void put(void *ctx, const struct event *e)
{
	((struct fuzz *)ctx)->sum += e->time_ns + (e->name ? strlen(e->name) : 0);
}

static void locate(struct fuzz *f, const struct world_process *p, const uint64_t *chain,
		   uint32_t n, bool kernel)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct frame_ref ref = {0};
		struct symbol symbol;

		perf_world_locate(f->world, p, chain[i], kernel, &ref);
		if (!ref.object)
			abort();
		f->sum += ref.offset;
		if (!perf_world_kernel_is_ours(f->world) &&
		    perf_world_name(f->world, ref.object, ref.offset, &symbol))
			abort();
	}
}

static void take_sample(struct fuzz *f, const struct perf_record *r, uint32_t event)
{
	struct world_thread *t = perf_world_thread(f->world, r->pid, r->tid, r->time_ns);
	const struct perf_file_event *e = perf_file_event(f->file, event);
	uint32_t i;

	locate(f, t ? t->of : NULL, r->u.sample.kernel, r->u.sample.nkernel, true);
	locate(f, t ? t->of : NULL, r->u.sample.user, r->u.sample.nuser, false);
	for (i = 0; i < r->u.sample.stack_bytes; i++)
		f->sum += r->u.sample.stack[i];
	for (i = 0; i < r->u.sample.raw_bytes; i++)
		f->sum += r->u.sample.raw[i];
	if (e->tracepoint && r->u.sample.raw)
		trace_format_read(&e->tracepoint->format, r->u.sample.raw, r->u.sample.raw_bytes,
				  &f->values);
}

static int take(void *ctx, const struct perf_record *r, uint32_t event)
{
	struct fuzz *f = ctx;

	if (event >= perf_file_events(f->file))
		abort();
	if (r->kind == PERF_KIND_SAMPLE)
		take_sample(f, r, event);
	else
		perf_world_feed(f->world, r);
	return 0;
}

static void run(struct fuzz *f, struct frames *frames, struct processes *processes)
{
	const struct perf_world_config cfg = {.frames = frames, .processes = processes,
					 .file = f->file, .start_ns = 1, .put = put, .ctx = f};
	struct perf_file_facts *facts = (struct perf_file_facts *)(uintptr_t)
		perf_file_facts(f->file);
	static const _Atomic bool never;
	struct err err;

	if (perf_file_survey(f->file, &never, &err))
		return;
	if (strcmp(facts->host, THIS_HOST) == 0)
		os_host_name(facts->host, sizeof(facts->host));
	if (perf_world_new(&cfg, &f->world, &err))
		return;
	if (perf_file_run(f->file, take, f, &err))
		abort();
	perf_world_free(f->world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;
	struct bytes in = bytes_of_memory(data, size);
	struct processes *processes;
	struct frames *frames;
	struct err err;

	if (perf_file_open(&in, "fuzz", &f.file, &err))
		return 0;
	if (frames_new(&frames, &err) || processes_new(&processes, &err))
		abort();
	run(&f, frames, processes);
	perf_file_close(f.file);
	processes_free(processes);
	frames_free(frames);
	return 0;
}
