/* The events of an incident or of a window of the history, as a source would deliver them. */
#include "cli/cmd.h"

#include "engine/trace.h"

#include <stdlib.h>
#include <string.h>

struct kept {
	const struct incident *in;
	struct processes *processes;
	struct thread **threads;             /* by their index; NULL = no memory for it */
	struct event_field what;             /* of an event that has no fields */
};

static int make_threads(struct kept *k, struct err *err)
{
	const struct incident *in = k->in;
	uint32_t i;
	int rc = processes_new(&k->processes, err);

	k->threads = calloc((size_t)in->nthreads + 1, sizeof(struct thread *));
	if (rc || !k->threads)
		return rc ? rc : err_memory(err, "for the threads of events");
	for (i = 0; i < in->nthreads; i++) {
		const struct incident_thread *t = &in->threads[i];
		const struct incident_process *p = &in->processes[t->process];
		struct process *process = process_add(k->processes, p->pid, p->start_ns, p->exec,
						      p->parent_pid, NULL);

		if (!process)
			continue;
		if (!process_exe_is(process, p->name))
			process_set_exe(process, p->name);
		k->threads[i] = thread_add(k->processes, process, t->tid);
	}
	return 0;
}

static void fill(struct kept *k, const struct incident_event *from, struct event *e)
{
	*e = (struct event){
		.time_ns = from->time_ns, .kind = from->kind, .flags = from->flags,
		.cpu = from->cpu, .provider = from->provider, .name = from->name,
		.value = from->value, .stack = STACK_NONE, .stream = STREAM_EVENT,
		.fields = k->in->fields + from->first_field, .nfields = from->nfields,
	};
	if (from->thread != THREAD_NONE)
		e->thread = k->threads[from->thread];
	if (e->thread)
		e->process = e->thread->process;
	if (e->kind == EVENT_COUNTER) {
		k->what = (struct event_field){.name = "Value", .type = FIELD_DOUBLE,
					       .v.d = e->value};
		e->nfields = !(e->flags & EVENT_FLAG_ABSENT);
		e->fields = &k->what;
	} else if (!*from->provider && *from->name && !e->nfields) {
		/* A start or an end is known by the name of its process. */
		k->what = (struct event_field){.name = "Name", .type = FIELD_TEXT,
					       .v.text = from->name};
		e->name = event_kind_text(e->kind);
		e->fields = &k->what;
		e->nfields = 1;
	}
}

int cmd_kept_events(const struct options *o, struct trace *t, struct err *err)
{
	struct incident in = {0};
	struct kept k = {.in = &in};
	struct event e;
	uint32_t i;
	int rc = cmd_load(o, &in, err);

	if (!rc)
		rc = make_threads(&k, err);
	t->origin.start_ns = in.head.t0_ns;
	for (i = 0; !rc && i < in.nevents; i++) {
		fill(&k, &in.events[i], &e);
		t->events++;
		rc = t->each(t->ctx, &e, &t->origin);
	}
	free(k.threads);
	processes_free(k.processes);
	incident_free(&in);
	return rc;
}
