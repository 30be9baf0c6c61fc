#include "analysis/replay.h"

#include <stdlib.h>

static int make_threads(const struct incident *in, struct processes *all, struct thread **threads,
			struct err *err)
{
	uint32_t i;

	for (i = 0; i < in->nthreads; i++) {
		const struct incident_process *from = &in->processes[in->threads[i].process];
		struct process *process = process_add(all, from->pid, from->start_ns, from->exec,
						      from->parent_pid, NULL);

		if (process && in->threads[i].tid == from->pid)
			process_set_comm(process, in->threads[i].name);
		if (process)
			process_set_exe(process, from->name);
		if (process && *from->cmdline)
			process_set_cmdline(process, from->cmdline);
		if (process)
			process_set_home(process, from->home, 0);
		threads[i] = process ? thread_add(all, process, in->threads[i].tid) : NULL;
		if (!threads[i])
			return err_memory(err, "for the incident's processes");
	}
	return 0;
}

static void event_of(const struct incident *in, uint32_t i, struct thread *const *threads,
		     struct event *out)
{
	const struct incident_event *from = &in->events[i];

	*out = (struct event){
		.time_ns = from->time_ns,
		.kind = from->kind,
		.flags = from->flags,
		.cpu = from->cpu,
		.provider = from->provider,
		.name = from->name,
		.value = from->value,
		.fields = in->fields + from->first_field,
		.nfields = from->nfields,
		.stack = STACK_NONE,
		.stream = STREAM_EVENT,
	};
	if (from->thread != THREAD_NONE) {
		const struct thread *thread = threads[from->thread];

		out->process = thread->process;
		/* Thread 0 of a process stands for none; of process 0 it is the idle one. */
		out->thread = thread->tid || !thread->process->pid ? threads[from->thread] : NULL;
	}
}

/* They stay until the next incident has been looked at for them. */
static void drop_threads(const struct incident *in, struct processes *all,
			 struct thread *const *threads)
{
	uint32_t i;

	for (i = 0; i < in->nthreads && threads[i]; i++) {
		thread_drop(all, threads[i], in->head.t1_ns);
		process_drop(all, threads[i]->process, in->head.t1_ns);
	}
}

int replay_incident(const struct incident *in, struct processes *all, replay_each *each, void *ctx,
		    struct err *err)
{
	struct thread **threads = calloc(in->nthreads + 1u, sizeof(*threads));
	struct event e;
	uint32_t i;
	int rc = threads ? make_threads(in, all, threads, err)
			 : err_memory(err, "for the incident's threads");

	processes_sweep(all, in->head.t1_ns);
	for (i = 0; !rc && i < in->nevents; i++) {
		event_of(in, i, threads, &e);
		rc = each(ctx, &e, err);
	}
	if (threads)
		drop_threads(in, all, threads);
	free(threads);
	return rc;
}
