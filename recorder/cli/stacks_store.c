/* stacks --store: the pictures as an incident. */
#include "cli/cmd.h"
#include "cli/stacks_store.h"

#include "base/os.h"
#include "base/text.h"
#include "base/version.h"

#include <inttypes.h>
#include <math.h>

#define STORE_NS (120 * NS_PER_SEC)          /* other crashes are being stored */
#define STORE_PAUSE_NS (50 * NS_PER_MS)

/* As a rule with ;Stacks= tells a thread (source/stopped/threads.c), for `show --threads`. */
static int add_state(struct segment_builder *b, const struct event *sample, const struct taken *t)
{
	struct event_field fields[4] = {
		{.name = "Name", .type = FIELD_TEXT, .v.text = t->name},
		{.name = "State", .type = FIELD_TEXT, .v.text = t->wait ? t->wait : ""},
		{.name = "StoppedNs", .type = FIELD_UINT, .v.u = t->suspended_ns},
		{.name = "WaitsForThread", .type = FIELD_UINT, .v.u = t->waits_for},
	};
	struct event e = *sample;

	e.kind = EVENT_GENERIC;
	e.provider = "Recorder";
	e.name = "Thread";
	e.fields = fields;
	e.nfields = t->waits_for ? 4 : 3;
	return segment_add(b, &e);
}

/* Store a thread as an event with a stack, not as a sample: a snapshot says nothing about time. */
static int add_thread(const struct stacks *s, struct segment_builder *b, struct process *process,
		      const struct taken *t)
{
	struct event e = {.time_ns = t->time_ns,
			  .kind = EVENT_SAMPLE,
			  .process = process,
			  .cpu = CPU_NONE,
			  .stream = STREAM_EVENT,
			  .quality = (uint8_t)t->quality,
			  .value = 1};
	struct frame_ref refs[STACK_MAX_FRAMES];
	uint32_t i, n = t->n < STACK_MAX_FRAMES ? t->n : STACK_MAX_FRAMES;

	e.thread = thread_add(s->processes, process, t->tid);
	if (!e.thread)
		return ERR_MEMORY;
	if (*t->name)
		thread_set_name(e.thread, t->name);
	for (i = 0; i < n; i++) {
		const struct frame *f = s->frames[t->first + i];

		refs[i] = (struct frame_ref){
			.object = f->object, .offset = f->offset, .flags = f->flags};
	}
	e.stack = segment_stack(b, refs, n, NULL, NULL);
	return segment_add(b, &e) ? ERR_MEMORY : add_state(b, &e, t);
}

static int make_segment(const struct stacks *s, struct segment **out, struct err *err)
{
	struct segment_builder *b = NULL;
	struct process *process =
		process_add(s->processes, s->pid, s->taken[0].time_ns, 0, 0, NULL);
	uint32_t i;
	int rc = segment_builder_new(s->table, s->processes, &b, err);

	if (!rc && process && *stacks_path(s))
		process_set_exe(process, stacks_path(s));
	for (i = 0; !rc && i < s->ntaken; i++)
		if (!process || add_thread(s, b, process, &s->taken[i]))
			rc = err_memory(err, "for storing the stacks of process %u",
					(unsigned)s->pid);
	if (!rc)
		rc = segment_seal(b, out, err);
	segment_builder_free(b);
	return rc;
}

static int store_segment(struct store *store, struct incident_head *h, struct segment *segment,
			 struct err *err)
{
	int rc = store_begin(store, h, err);

	if (!rc)
		rc = store_put_segment(store, h->id, segment, err);
	return rc ? rc : store_finish(store, h, &segment, 1, err);
}

int stacks_store(const struct options *o, const struct stacks *s, struct err *err)
{
	char rule[] = "stacks", version[] = RECORDER_VERSION, host[256], host_text[256];
	struct incident_head h = {.rule = rule,
				  .host = host,
				  .host_text = host_text,
				  .recorder_version = version,
				  .value = NAN,
				  .limit = NAN,
				  .trigger_wall_ns = s->dead ? s->file.wall_ns : os_wall_ns()};
	uint64_t until_ns = os_deadline_ns(STORE_NS);
	struct segment *segment = NULL;
	struct store *store = NULL;
	struct buf reason = {0};
	int rc;

	if (!s->ntaken)
		return err_set(err, ERR_NOT_FOUND, "there is no stack to store");
	if (s->dead)
		stacks_put_death(s, &reason);
	else
		buf_printf(&reason,
		   s->now ? "%u stacks of the threads of process %u (%s), one after another"
			  : "the stacks of the %u threads of process %u (%s)",
		   (unsigned)s->ntaken, (unsigned)s->pid, text_base_name(stacks_path(s)));
	os_host_name(host, sizeof(host));
	os_host_text(host_text, sizeof(host_text));
	/* The segment's times are whole ticks. */
	h.trigger_ns = h.t0_ns = s->taken[0].time_ns / SEGMENT_TICK_NS * SEGMENT_TICK_NS;
	h.t1_ns = s->taken[s->ntaken - 1].time_ns + SEGMENT_TICK_NS;
	rc = buf_check(&reason, "the reason", err);
	h.reason = reason.data;
	if (!rc)
		rc = make_segment(s, &segment, err);
	if (!rc)
		rc = cmd_store_open(o, STORE_RECORD, &store, err);
	while (rc == ERR_BUSY && s->dead && os_now_ns() < until_ns) {
		os_sleep_ns(STORE_PAUSE_NS);
		rc = cmd_store_open(o, STORE_RECORD, &store, err);
	}
	if (!rc)
		rc = store_segment(store, &h, segment, err);
	if (!rc)
		cmd_note("stored as incident %" PRId64 " of %s", h.id, store_path(store));
	store_close(store);
	segment_unref(segment);
	buf_free(&reason);
	return rc;
}
