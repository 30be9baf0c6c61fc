#include "synthetic_source.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_OFFSET 0x100000

struct synthetic {
	struct source base;
	struct source_config cfg;
	struct synthetic_plan plan;
	struct object *object;
	struct process *process;
	struct process *child;               /* that fires; NULL = none has yet */
	struct thread *thread;
	_Atomic bool stopping;
	char name[32];
};

static struct synthetic_plan next_plan;

void synthetic_plan(const struct synthetic_plan *plan)
{
	next_plan = *plan;
	if (!next_plan.depth)
		next_plan.depth = 4;
	if (!next_plan.functions)
		next_plan.functions = 10;
}

static int synthetic_open(const struct source_config *cfg, const struct needs *needs,
			  struct source **out, struct err *err)
{
	static const struct object_key key = {
		.kind = OBJECT_ELF, .build_id_bytes = 4, .build_id = {1, 2, 3, 4},
		.path = "/bin/synthetic",
	};
	struct synthetic *s = calloc(1, sizeof(*s));

	(void)needs;
	if (!s)
		return err_memory(err, "for this program");
	s->base.ops = &synthetic_source;
	s->cfg = *cfg;
	s->plan = next_plan;
	s->object = objects_get(cfg->frames, &key, 100);
	s->process = process_add(cfg->processes, 100, 1, 0, 1, "synthetic");
	s->thread = thread_add(cfg->processes, s->process, 100);
	*out = &s->base;
	return 0;
}

static void put(struct synthetic *s, const struct event *e)
{
	while (!queue_offer(s->cfg.queue, e) && !s->stopping)
		os_sleep_ns(NS_PER_MS / 10);
}

/* A shell's child: its start, one sample, its end. */
static void put_child(struct synthetic *s, struct event *sample)
{
	struct event e = {.time_ns = sample->time_ns, .kind = EVENT_PROCESS_START,
			  .stack = STACK_NONE};
	uint32_t pid = 1000 + (uint32_t)sample->value;

	e.process = sample->process = process_add(s->cfg.processes, pid, e.time_ns, 0, 100,
						  "child");
	e.thread = sample->thread = thread_add(s->cfg.processes, e.process, pid);
	put(s, &e);
	put(s, sample);
	e.kind = EVENT_PROCESS_EXIT;
	put(s, &e);
	process_drop(s->cfg.processes, e.process, e.time_ns);
}

static void put_sample(struct synthetic *s, uint64_t number, uint64_t time_ns)
{
	struct frame_ref stack[64];
	struct event e = {.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = s->process,
			  .thread = s->thread, .cpu = (uint16_t)(number % 2), .stream = STREAM_CPU,
			  .quality = QUALITY_COMPLETE, .value = (double)number,
			  .stack_frames = stack,
			  .nstack_frames = s->plan.depth};
	uint32_t i;

	/* Where the rate matters, samples weigh their period; else the weight numbers them. */
	if (s->plan.rate_after)
		e.value = number > s->plan.rate_after ? 2e7 : 1e7;
	for (i = 0; i < s->plan.depth; i++)
		stack[i] = (struct frame_ref){s->object, 0x1000 + 16 * i, 0};
	stack[0].offset = LEAF_OFFSET + 16 * (number % s->plan.functions);
	if (s->plan.child_each && number % s->plan.child_each == 0)
		put_child(s, &e);
	else
		put(s, &e);
}

static void put_leak(struct synthetic *s, uint64_t number, uint64_t time_ns)
{
	struct frame_ref leaf = {s->object, LEAF_OFFSET + (number % 10 < 7 ? 0 : 16), 0};
	struct event e = {.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = s->process,
			  .thread = s->thread, .stream = STREAM_RSS, .stack_frames = &leaf,
			  .quality = QUALITY_COMPLETE, .value = SYNTHETIC_LEAK_BYTES,
			  .nstack_frames = 1};
	struct event mark = {.kind = EVENT_SAMPLE, .stream = STREAM_RSS_MARK,
			     .stack = STACK_NONE};

	time_ns += number * 2654435761u % 1000000 * 100;     /* up to 0.1 s: no even beat */
	e.time_ns = time_ns;
	put(s, &e);
	leaf.offset = LEAF_OFFSET + 32;
	e.time_ns = time_ns + 10000;
	mark.time_ns = time_ns + 10000 + number * 40503u % 10000 * 1000;
	put(s, &e);
	mark.value = memory_mark_weight(e.time_ns, mark.time_ns, MARK_GONE);
	put(s, &mark);
}

static void put_named(struct synthetic *s, enum event_kind kind, const char *name, double value,
		      uint64_t time_ns)
{
	struct event e = {.time_ns = time_ns, .kind = kind, .cpu = 0, .stack = STACK_NONE,
			  .provider = "test", .name = name, .value = value};

	put(s, &e);
}

static void put_fire(struct synthetic *s, unsigned fire, uint64_t number, uint64_t time_ns)
{
	struct frame_ref stack[10];
	struct event e = {.time_ns = time_ns, .kind = EVENT_GENERIC, .stack = STACK_NONE,
			  .provider = "test", .name = "fire", .value = (double)number,
			  .process = s->process, .thread = s->thread, .stack_frames = stack,
			  .nstack_frames = s->plan.fire_stack[fire] ? 10 : 0};
	struct event_field at = {.name = "StartsAt", .type = FIELD_TEXT};
	char time[OS_TIME_TEXT_BYTES];
	uint32_t i;

	if (s->plan.fire_late_s > 0) {       /* as live_wall_ns() sees the time of this event */
		os_time_text(os_wall_ns() - (os_now_ns() - time_ns) -
			     (uint64_t)(s->plan.fire_late_s * 1e9), time);
		at.v.text = time;
		e.fields = &at;
		e.nfields = 1;
	}
	for (i = 0; i < 10; i++)
		stack[i] = (struct frame_ref){s->object, LEAF_OFFSET + 16 * (100 + i), 0};
	if (s->plan.fire_child[fire]) {
		s->child = process_add(s->cfg.processes, 101, 1, 0, 100, "child");
		e.process = s->child;
		e.thread = thread_add(s->cfg.processes, s->child, 101);
	}
	if (s->plan.fire_stack[fire] >= 1 && s->plan.fire_stack[fire] <= 10)
		stack[s->plan.fire_stack[fire] - 1].offset += 16 * 100;
	put(s, &e);
}

static int synthetic_run(struct source *source, struct err *err)
{
	struct synthetic *s = (struct synthetic *)source;
	const struct synthetic_plan *p = &s->plan;
	uint64_t number, mark_ns = p->start_ns;
	unsigned fire = 0;

	for (number = 1; number <= p->nsamples && !s->stopping; number++) {
		uint64_t time_ns = p->start_ns + number * p->step_ns;

		if (p->gap_after && number > p->gap_after)
			time_ns += p->gap_ns;
		if (p->fail_after && number > p->fail_after)
			return err_set(err, ERR_IO, "cannot read on");
		if (p->at)
			p->at(p->ctx, number);
		if (p->leak)
			put_leak(s, number, time_ns);
		else
			put_sample(s, number, time_ns);
		if (p->lose_each && number % p->lose_each == 0)
			put_named(s, EVENT_LOST, loss_kind_text(p->lose), 1, time_ns);
		if (number == p->rate_after)
			put_named(s, EVENT_RATE, "it was told to", 2e7, time_ns);
		if (fire < SYNTHETIC_FIRES_MAX && p->fire_s[fire] > 0 &&
		    (double)(time_ns - p->start_ns) >= p->fire_s[fire] * 1e9) {
			put_fire(s, fire, number, time_ns);
			fire++;
		}
		if (time_ns - mark_ns >= 100 * NS_PER_MS) {
			mark_ns = time_ns;
			queue_watermark(s->cfg.queue, time_ns);
		}
	}
	return 0;
}

static void synthetic_stop(struct source *source)
{
	((struct synthetic *)source)->stopping = true;
}

static void synthetic_close(struct source *source)
{
	struct synthetic *s = (struct synthetic *)source;

	object_drop(s->object, 1);
	process_drop(s->cfg.processes, s->process, 1);
	if (s->child)
		process_drop(s->cfg.processes, s->child, 1);
	free(s);
}

static void synthetic_origin(struct source *source, struct source_origin *out)
{
	*out = ((struct synthetic *)source)->plan.origin;
}

static bool synthetic_name(struct source *source, const struct frame *frame, struct symbol *out)
{
	struct synthetic *s = (struct synthetic *)source;

	if (!s->plan.names || frame->offset < LEAF_OFFSET)
		return false;
	snprintf(s->name, sizeof(s->name), "leaf_%u", (unsigned)(frame->offset - LEAF_OFFSET) / 16);
	*out = (struct symbol){.offset = frame->offset, .name = s->name};
	return true;
}

const struct source_ops synthetic_source = {
	.name = "synthetic",
	.summary = "numbered samples for tests",
	.open = synthetic_open,
	.run = synthetic_run,
	.stop = synthetic_stop,
	.origin = synthetic_origin,
	.name_frame = synthetic_name,
	.close = synthetic_close,
};

/* ---- the rule -------------------------------------------------------------------------------- */

static uint64_t lasts_until_ns, rule_now_ns;

void synthetic_lasts(uint64_t until_ns)
{
	lasts_until_ns = until_ns;
}

static bool rule_lasts(const struct trigger *t, uint64_t fired_ns)
{
	(void)t;
	return fired_ns < lasts_until_ns && rule_now_ns < lasts_until_ns;
}

static bool rule_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	(void)t;
	rule_now_ns = e->time_ns;
	if (e->kind != EVENT_GENERIC || strcmp(e->name, "fire") != 0)
		return false;
	buf_printf(why, "fire at sample %.0f", e->value);
	return true;
}

static void rule_status(const struct trigger *t, struct trigger_status *out)
{
	(void)t;
	memset(out, 0, sizeof(*out));
	out->phase = TRIGGER_ARMED;
}

struct trigger *synthetic_trigger(void)
{
	static const struct trigger_ops ops = {
		.name = "synthetic", .feed = rule_feed, .status = rule_status, .lasts = rule_lasts,
	};
	static struct trigger rule = {.ops = &ops, .spec = "test/fire"};

	return &rule;
}
