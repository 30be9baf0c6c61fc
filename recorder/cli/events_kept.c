/* The events of an incident or of a window of the history, as a source would deliver them. */
#include "cli/cmd.h"

#include "analysis/replay.h"
#include "engine/trace.h"

struct kept {
	struct trace *t;
	struct processes *processes;
	struct event_field what;             /* of an event that has no fields */
};

/* What only its number or its name says becomes a field. */
static void say_more(struct kept *k, struct event *e)
{
	if (e->kind == EVENT_COUNTER) {
		k->what = (struct event_field){.name = "Value", .type = FIELD_DOUBLE,
					       .v.d = e->value};
		e->nfields = !(e->flags & EVENT_FLAG_ABSENT);
		e->fields = &k->what;
	} else if (!*e->provider && *e->name && !e->nfields) {
		/* A start or an end is known by the name of its process. */
		k->what = (struct event_field){.name = "Name", .type = FIELD_TEXT,
					       .v.text = e->name};
		e->name = event_kind_text(e->kind);
		e->fields = &k->what;
		e->nfields = 1;
	}
}

static int put_event(void *ctx, const struct event *from, struct err *err)
{
	struct kept *k = ctx;
	struct event e = *from;

	(void)err;
	say_more(k, &e);
	k->t->events++;
	return k->t->each(k->t->ctx, &e, &k->t->origin);
}

static int put_incident(void *ctx, const struct incident *in, struct err *err)
{
	struct kept *k = ctx;

	if (!k->t->origin.start_ns)
		k->t->origin.start_ns = in->head.t0_ns;
	return replay_incident(in, k->processes, put_event, k, err);
}

static int put_piece(void *ctx, const struct incident *in, struct err *err)
{
	struct source_origin *origin = &((struct kept *)ctx)->t->origin;

	if (!origin->start_ns)
		origin->start_ns = origin->start_wall_ns = in->head.t0_ns;
	return put_incident(ctx, in, err);
}

int cmd_kept_events(const struct options *o, struct trace *t, struct err *err)
{
	struct incident in = {0};
	struct kept k = {.t = t};
	struct cmd_window window;
	int rc = processes_new(&k.processes, err);

	if (!rc && !o->ids.n && cmd_window_asked(o)) {
		rc = cmd_window(o, &window, err);
		if (!rc)
			rc = cmd_each_piece(o, &window, put_piece, &k, err);
	} else if (!rc) {
		rc = cmd_load(o, &in, err);
		if (!rc)
			rc = put_incident(&k, &in, err);
	}
	processes_free(k.processes);
	incident_free(&in);
	return rc;
}
