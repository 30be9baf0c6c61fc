/*
 * Windows of the history: --from with --to, --last, --at with --for. The events of one, or of an
 * incident, as a source would deliver them.
 */
#include "cli/cmd.h"

#include "analysis/replay.h"
#include "base/moment.h"
#include "base/os.h"
#include "engine/trace.h"
#include "store/history.h"

#include <string.h>

#define FOR_NS (60 * NS_PER_SEC)             /* of --at alone */
#define PIECE_NS (3600 * NS_PER_SEC)         /* read at once */

bool cmd_window_asked(const struct options *o)
{
	return o->last_ns != OPTION_NO_TIME || o->at || o->from.text || o->to.text;
}

struct options cmd_from_time(const struct options *o)
{
	const char *from = o->capture.file;
	struct options mine = *o;
	uint64_t wall_ns;

	if (from && !os_exists(from) && !moment_parse(from, os_wall_ns(), 0, &wall_ns, NULL)) {
		mine.from.text = (char *)(uintptr_t)from;
		mine.capture.file = NULL;
	}
	return mine;
}

int cmd_moment(const struct moment_option *m, uint64_t zero_wall_ns, uint64_t before_ns,
	       int64_t *out, struct err *err)
{
	uint64_t wall_ns;
	int rc;

	*out = m->ns;
	if (!m->text)
		return 0;
	rc = moment_parse(m->text, os_wall_ns(), before_ns, &wall_ns, err);
	if (!rc)
		*out = (int64_t)(wall_ns - zero_wall_ns);
	return rc;
}

/* --from with --to or --for; or --to with --for. */
static int from_to(const struct options *o, uint64_t now_ns, struct cmd_window *out,
		   struct err *err)
{
	uint64_t for_ns = o->for_ns != OPTION_NO_TIME ? (uint64_t)o->for_ns : 0;
	int rc = 0;

	if (!o->from.text && !(o->to.text && for_ns))
		return err_set(err, ERR_USAGE, "a window of the history needs a time to begin: "
			       "give --from with a time, --at, or --last");
	if (o->to.ns != OPTION_NO_TIME)
		return err_set(err, ERR_USAGE, "--from is a time: give --to as a time too, or "
			       "--for");
	if (o->to.text && o->from.text && for_ns)
		return err_set(err, ERR_USAGE, "give two of --from, --to and --for, not all");
	if (o->from.text)
		rc = moment_parse(o->from.text, now_ns, 0, &out->from_ns, err);
	out->to_ns = for_ns && o->from.text ? out->from_ns + for_ns : now_ns;
	if (!rc && o->to.text)
		rc = moment_parse(o->to.text, now_ns, o->from.text ? out->from_ns : 0, &out->to_ns,
				  err);
	if (!rc && !o->from.text)
		out->from_ns = out->to_ns > for_ns ? out->to_ns - for_ns : 0;
	return rc;
}

int cmd_window(const struct options *o, struct cmd_window *out, struct err *err)
{
	uint64_t now_ns = os_wall_ns();
	bool between = o->from.text || o->to.text;
	int rc = 0;

	if ((o->last_ns != OPTION_NO_TIME) + (o->at != NULL) + between > 1)
		return err_set(err, ERR_USAGE, "--last, --at, and --from with --to each choose a "
			       "window: give one of them");
	if (o->last_ns != OPTION_NO_TIME) {
		out->to_ns = now_ns;
		out->from_ns = now_ns - (uint64_t)o->last_ns;
	} else if (o->at) {
		rc = moment_parse(o->at, now_ns, 0, &out->from_ns, err);
		out->to_ns = out->from_ns +
			     (o->for_ns != OPTION_NO_TIME ? (uint64_t)o->for_ns : FOR_NS);
	} else {
		rc = from_to(o, now_ns, out, err);
	}
	if (!rc && out->to_ns <= out->from_ns)
		rc = err_set(err, ERR_USAGE, "the window ends before it begins: --to must be later "
			     "than --from");
	return rc;
}

static void say_window(const struct cmd_window *w)
{
	char from[MOMENT_TEXT_BYTES], to[MOMENT_TEXT_BYTES], offset[MOMENT_OFFSET_BYTES];
	char from_utc[OS_TIME_TEXT_BYTES], to_utc[OS_TIME_TEXT_BYTES];

	moment_local_text(w->from_ns, from);
	moment_local_text(w->to_ns, to);
	moment_offset_text(w->from_ns, offset);
	os_time_text(w->from_ns, from_utc);
	os_time_text(w->to_ns, to_utc);
	cmd_note("the history from %s to %s, local time (UTC%s); in UTC %.19sZ to %.19sZ", from,
		 to, offset, from_utc, to_utc);
}

int cmd_load_window(const struct options *o, const struct cmd_window *w, struct incident *out,
		    struct err *err)
{
	struct buf path = {0};
	int rc = cmd_store_path(o, STORE_READ, &path, err);

	if (!rc)
		rc = history_load(buf_text(&path), w->from_ns, w->to_ns, w->from_ns, out, err);
	if (!rc)
		say_window(w);
	buf_free(&path);
	return rc;
}

/* From the oldest file on: its name has the second that it begins in. */
static int clamp_to_history(const char *store, struct cmd_window *w, struct err *err)
{
	struct history_files files = {0};
	uint64_t oldest_ns;
	int rc = history_list(store, &files, err);

	if (!rc && files.n) {
		oldest_ns = files.all[0].name_wall_ns;
		w->from_ns = w->from_ns > oldest_ns ? w->from_ns : oldest_ns;
	}
	history_files_free(&files);
	return rc;
}

/* A damaged part is said, and costs nothing else. */
static int read_piece(const char *store, uint64_t from_ns, uint64_t to_ns, cmd_piece *each,
		      void *ctx, struct err *err)
{
	struct incident in = {0};
	int rc = history_load_events(store, from_ns, to_ns, &in, err);

	if (rc == ERR_FORMAT) {
		cmd_note("left out: %s", err->text);
		return 0;
	}
	if (rc)
		return rc;
	if (in.damage)
		cmd_note("%s", in.damage);
	rc = each(ctx, &in, err);
	incident_free(&in);
	return rc;
}

/* The sentence that says what is there instead. */
static int nothing_found(const char *store, const struct cmd_window *w, struct err *err)
{
	struct incident in = {0};
	int rc = history_load(store, w->from_ns, w->to_ns, w->from_ns, &in, err);

	incident_free(&in);
	return rc;
}

int cmd_each_piece(const struct options *o, struct cmd_window *w, cmd_piece *each, void *ctx,
		   struct err *err)
{
	const struct cmd_window asked = *w;
	struct buf path = {0};
	uint64_t from_ns, to_ns;
	bool found = false;
	int rc = cmd_store_path(o, STORE_READ, &path, err);

	if (!rc)
		rc = clamp_to_history(buf_text(&path), w, err);
	for (from_ns = w->from_ns; !rc && from_ns < w->to_ns; from_ns = to_ns) {
		to_ns = w->to_ns - from_ns > PIECE_NS ? from_ns + PIECE_NS : w->to_ns;
		rc = read_piece(buf_text(&path), from_ns, to_ns - (to_ns < w->to_ns), each, ctx,
				err);
		found |= rc != ERR_NOT_FOUND;
		rc = rc == ERR_NOT_FOUND ? 0 : rc;
	}
	if (!rc && !found)
		rc = nothing_found(buf_text(&path), &asked, err);
	if (!rc)
		say_window(w);
	buf_free(&path);
	return rc;
}

/* ---- events ---------------------------------------------------------------------------------- */

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
